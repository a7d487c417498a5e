// Registers the rival worker (see rival_worker.cpp) if the settings name a server to ask.

#pragma once

void rival_register_worker();
void rival_define_setting();
