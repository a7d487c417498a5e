// The background workers of this library.

#pragma once

#include "pg/base/pg.h"

// Describes a worker that runs this function of the library while the server is not in recovery.
// The postmaster restarts it `restart_seconds` after its end. pg_stat_activity shows it.
static inline BackgroundWorker background_worker(const char* function, const char* name,
                                                 int restart_seconds) {
    BackgroundWorker worker{};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = restart_seconds;
    strlcpy(worker.bgw_library_name, "randflake", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, function, sizeof worker.bgw_function_name);
    strlcpy(worker.bgw_name, name, sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, name, sizeof worker.bgw_type);
    return worker;
}
