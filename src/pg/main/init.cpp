// Initializes the library. With shared_preload_libraries, the following happens:
//   1. _PG_init defines and checks settings and sets hooks.
//   2. The shmem_request hook asks for shared memory.
//   3. The shmem_startup hook maps shared memory. Each subsystem initializes its part once.
// Without preloading, _PG_init does nothing. Functions that need shared memory raise an error.

#include "pg/base/pg.h"

#include "pg/base/compat.h"
#include "pg/identifier/copy.h"
#include "pg/identifier/load.h"
#include "pg/identifier/snowflake_layout.h"
#include "pg/identifier/vector_path.h"
#include "pg/lease/lease_look.h"
#include "pg/lease/lease_worker.h"
#include "pg/lease/rival_worker.h"
#include "pg/memory/counters.h"
#include "pg/memory/require.h"
#include "pg/memory/settings.h"
#include "pg/memory/shmem.h"
#include "pg/secret/secret.h"
#include "pg/server/environment.h"
#include "pg/type/type.h"

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

// The exit status is 0 only at a clean stop, not after a crash of the server or a backend.
static void on_exit(int status, Datum) {
    if (status == 0)
        server_stop();
    else
        secret_keep_added();
}

static void log_missing_setting() {
    if (const ErrorText* missing = missing_setting())
        ereport(LOG, (errmsg("randflake cannot generate identifiers: %s", missing->message),
                      errhint("%s", missing->hint)));
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
    if (previous_shmem_startup != nullptr)
        previous_shmem_startup();

    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    if (shmem_attach()) {
        secret_init_shared();
        server_init_shared();
        counters_reset();
        log_missing_setting();
        log_nodes53();
    }
    LWLockRelease(AddinShmemInitLock);

    // The postmaster calls on_exit after its children have exited, even after a crash of a backend.
    if (!IsUnderPostmaster)
        on_shmem_exit(on_exit, 0);
}

void _PG_init(void) {
    if (!process_shared_preload_libraries_in_progress)
        return;
    warn_of_old_minor_release();
    settings_define();
    snowflake_layout_define_setting();
    secret_define_settings();
    vector_path_define_setting();
    load_define_setting();
    rival_define_setting();
    MarkGUCPrefixReserved("randflake");
    settings_check();
    secret_load();
    vector_path_choose();
    if (setting_coordinator[0] != '\0')
        lease_register_worker();
    look_register_worker();
    rival_register_worker();
    copy_init();
    load_init();
    type_default_init();

    previous_shmem_request = shmem_request_hook;
    shmem_request_hook = on_shmem_request;
    previous_shmem_startup = shmem_startup_hook;
    shmem_startup_hook = on_shmem_startup;
}
