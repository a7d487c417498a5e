// The lease worker, for the library's start.

#pragma once

// Asks the server for the worker; while the library is preloaded.
void lease_register_worker();
