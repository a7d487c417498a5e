// Registers the worker that looks for other running servers with the node ids of this one, if the
// settings name a server to ask.

#pragma once

void rival_register_worker();
