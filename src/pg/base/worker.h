// Describes the background workers of this library.

#pragma once

#include "pg/base/pg.h"

// Describes a worker that calls `function` of this library and starts only outside recovery. The
// postmaster restarts the worker `restart_seconds` after its exit.
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

// Starts a worker without a database. PostgreSQL discards a SIGHUP that arrives before a worker
// sets its handlers, so the worker first reads the settings again.
static inline void worker_start() {
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    Assert(!RecoveryInProgress());
    ConfigReloadPending = true;
}

// Sleeps for `ms` milliseconds, or until another process sets the latch. An earlier wait may have
// reset the latch, so this function first checks for barriers, a shutdown and a reload.
static inline void worker_sleep(long ms, uint32 wait_event) {
    Assert(InterruptHoldoffCount == 0);  // so it holds no lock
    CHECK_FOR_INTERRUPTS();
    if (!ShutdownRequestPending && !ConfigReloadPending)
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, wait_event);
    ResetLatch(MyLatch);
}
