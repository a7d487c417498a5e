// Registers the worker that looks for other running servers with this server's node ids, if the
// settings name a server to ask.

#pragma once

void rival_register_worker();
