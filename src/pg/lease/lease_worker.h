// Registers the lease worker. Call while the server preloads the library.

#pragma once

void lease_register_worker();
