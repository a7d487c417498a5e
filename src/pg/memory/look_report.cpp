// Processes hold the report's spinlock only while they copy the report from or to shared memory.

#include "pg/memory/look_report.h"

#include "pg/base/clock.h"
#include "pg/base/worker.h"
#include "pg/memory/shmem.h"

using randflake::SteadyMs;

// A launcher starts at least this long after the last launcher's start.
static constexpr randflake::Ms kAgain = 1000;

static LookReport* report() {
    return &shared->look;
}

void look_init_report() {
    SpinLockInit(&report()->mutex);
}

LookReport look_report() {
    SpinLockAcquire(&report()->mutex);
    const LookReport copy = *report();
    SpinLockRelease(&report()->mutex);
    return copy;
}

void look_record_failure(uint32 question, const char* failure, Oid database, bool no_worker) {
    SpinLockAcquire(&report()->mutex);
    if (question == report()->question) {
        report()->database = database;
        report()->failed = question;
        report()->no_worker = no_worker;
        strlcpy(report()->failure, failure, sizeof report()->failure);
    }
    SpinLockRelease(&report()->mutex);
}

bool look_start_worker(const char* function, Oid database, uint32 question,
                       BackgroundWorkerHandle** handle) {
    BackgroundWorker worker = background_worker(function, "randflake look", BGW_NEVER_RESTART);
    worker.bgw_notify_pid = handle != nullptr ? MyProcPid : 0;
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    memcpy(worker.bgw_extra, &question, sizeof question);
    const bool started = RegisterDynamicBackgroundWorker(&worker, handle);
    if (!started)
        look_record_failure(question, "no background worker is free", database, true);
    return started;
}

void look_start() {
    const SteadyMs now = steady_clock();
    SpinLockAcquire(&report()->mutex);
    const bool due = report()->launcher == 0 && now >= report()->start_at_ms;
    if (due)
        report()->start_at_ms = now + kAgain;
    SpinLockRelease(&report()->mutex);
    if (due)
        (void)look_start_worker("randflake_look_main", InvalidOid, report()->question, nullptr);
}
