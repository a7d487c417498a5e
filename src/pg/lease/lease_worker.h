// Registers the lease worker.

#pragma once

// Call while the server preloads the library.
void lease_register_worker();
