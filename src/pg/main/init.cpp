// Initializes the library. With shared_preload_libraries, the following happens:
//   1. _PG_init defines and checks settings and sets hooks.
//   2. The shmem_request hook asks for shared memory.
//   3. The shmem_startup hook maps shared memory. Each subject initializes its part once.
// Without preloading, _PG_init does nothing. Functions that need shared memory raise an error.

#include "pg/base/compat.h"
#include "pg/base/shared_memory.h"
#include "pg/identifier/copy.h"
#include "pg/lease/lease_report.h"
#include "pg/rival/rival.h"
#include "pg/secret/secret.h"
#include "pg/server/require.h"
#include "pg/settings/settings.h"
#include "pg/type/type.h"

extern "C" {
RANDFLAKE_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

static shmem_request_hook_type previous_shmem_request;
static shmem_startup_hook_type previous_shmem_startup;

static void on_shmem_request() {
    if (previous_shmem_request != nullptr) previous_shmem_request();
    shared_memory_request();
}

// For each major version, kClosedIn lists the first minor release that fixes CVE-2026-6460.
static void warn_of_old_minor_release() {
    static constexpr int kClosedIn[] = {150020, 160016, 170012, 180007};
    const long version = strtol(GetConfigOption("server_version_num", false, false), nullptr, 10);
    for (const int closed : kClosedIn)
        if (version / 10000 == closed / 10000 && version < closed)
            ereport(WARNING,
                    (errmsg("this minor release of PostgreSQL lets roles forge identifiers"),
                     errdetail("Where the extension randflake_type is, a role that may create a "
                               "type can have any number encrypted (CVE-2026-6460)."),
                     errhint("Install PostgreSQL %d.%d or a later minor release.", closed / 10000,
                             closed % 10000)));
}

static void on_shmem_startup() {
    if (previous_shmem_startup != nullptr) previous_shmem_startup();

    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    if (shared_memory_attach()) log_requirements();
    LWLockRelease(AddinShmemInitLock);
}

void _PG_init(void) {
    if (!process_shared_preload_libraries_in_progress) return;
    warn_of_old_minor_release();
    settings_define();
    secret_define_settings();
    rival_define_setting();
    MarkGUCPrefixReserved("randflake");
    settings_check();
    secret_load();
    lease_register_workers();
    rival_register_worker();
    copy_init();
    type_default_init();

    previous_shmem_request = shmem_request_hook;
    shmem_request_hook = on_shmem_request;
    previous_shmem_startup = shmem_startup_hook;
    shmem_startup_hook = on_shmem_startup;
}
