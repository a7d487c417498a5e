#include "pg/lease/lease_report.h"

#include "pg/server/shmem.h"

using randflake::LeaseHolder;

void lease_init_report() {
    SpinLockInit(&shared->lease_report.mutex);
}

LeaseReport lease_report() {
    SpinLockAcquire(&shared->lease_report.mutex);
    const LeaseReport copy = shared->lease_report;
    SpinLockRelease(&shared->lease_report.mutex);
    return copy;
}

void lease_wake_worker() {
    PGPROC* worker = BackendPidGetProc(shared->lease_worker_pid);
    if (worker != nullptr)
        SetLatch(&worker->procLatch);
}

void lease_show(const LeaseHolder& holder) {
    LeaseReport* report = &shared->lease_report;
    SpinLockAcquire(&report->mutex);
    report->open = holder.open();
    report->next = holder.next();
    SpinLockRelease(&report->mutex);
}

void lease_note(LeaseProblem problem, const char* message, randflake::UnixSecond not_before) {
    LeaseReport* report = &shared->lease_report;
    const TimestampTz now = message[0] == '\0' ? 0 : GetCurrentTimestamp();
    SpinLockAcquire(&report->mutex);
    strlcpy(report->error, message, sizeof report->error);
    report->error_at = now;
    if (problem != report->problem)
        report->problem_since = now;
    report->problem = problem;
    report->not_before = not_before;
    SpinLockRelease(&report->mutex);
}
