// Entry of the library. What happens depends on who loads it:
//
//   the server, through shared_preload_libraries
//     1. _PG_init: settings are defined and checked, hooks are set
//     2. shmem_request hook: shared memory is asked for
//     3. shmem_startup hook: it is mapped, and filled in once
//   a backend of a server that did not preload it
//     nothing; text and shard functions need none of this, the others protect themselves

#include "pg/pg.h"

#include "pg/compat.h"
#include "pg/lease_worker.h"
#include "pg/settings.h"
#include "pg/shmem.h"

extern "C" {
RANDFLAKE_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

static shmem_request_hook_type previous_shmem_request;
static shmem_startup_hook_type previous_shmem_startup;

static void on_shmem_request() {
    if (previous_shmem_request != nullptr)
        previous_shmem_request();
    shmem_request();
}

static void on_shmem_startup() {
    if (previous_shmem_startup != nullptr)
        previous_shmem_startup();
    shmem_startup();
}

void _PG_init(void) {
    if (!process_shared_preload_libraries_in_progress)
        return;
    settings_init();
    if (setting_coordinator[0] != '\0')
        lease_register_worker();

    previous_shmem_request = shmem_request_hook;
    shmem_request_hook = on_shmem_request;
    previous_shmem_startup = shmem_startup_hook;
    shmem_startup_hook = on_shmem_startup;
}
