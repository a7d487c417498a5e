// Processes hold the report's spinlock only while they copy the report from or to shared memory.

#include "pg/memory/lease_report.h"

#include <cstdlib>

#include "pg/base/clock.h"
#include "pg/memory/settings.h"
#include "pg/memory/shmem.h"

using namespace randflake;

void lease_init_report() {
    SpinLockInit(&shared->lease_report.mutex);
}

ErrorText lease_unlocked() {
    const FileFailure& failure = shared->lock_failure;
    if (failure.error == 0)
        return {};
    const bool lives = failure.error == kLocked;
    return {0, "leases of this server will not survive a crash of its postmaster",
            psprintf("Could not %s \"%s\": %s.", failure.action, failure.path,
                     file_failure_text(failure)),
            lives
                ? "\"fuser\" names the process: one that a former postmaster left, or a server in "
                  "a copy or a snapshot of this data directory. When it has ended, restart this "
                  "server."
                : "Let the file's owner or root remove it, or let the server's user write it. Then "
                  "restart this server."};
}

void lease_report_unlocked(const FileFailure& failure) {
    shared->lock_failure = failure;
    if (const ErrorText error = lease_unlocked(); error.message != nullptr)
        ereport(LOG, (errmsg("%s", error.message), errdetail("%s", error.detail),
                      errhint("%s", error.hint)));
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

Window lease_window(const LeaseReport& report, const Window& window) {
    if (report.open.id == 0)
        return window;
    const LeaseTerms terms{setting_lease_duration, setting_max_clock_skew};
    const Second latest = LatestEnd(wall_clock_second(), terms);
    const Second start = window.closed() ? Max(window.end, report.open.start) : window.start;
    return {start, Max(window.end, Min(report.open.end, latest))};
}

// Returns how far this server's clock is ahead of the coordinator's; 0 if the difference is
// tolerable or uncertain.
static int64 wrong_by_ms(const CoordinatorClock& clock) {
    if (clock.at == UptimeMs{})
        return 0;
    const int64 ahead = clock.Ahead(uptime_clock(), precise_wall_clock()).count;
    return std::abs(ahead) > setting_max_clock_skew + clock.error.count ? ahead : 0;
}

bool lease_clock_wrong(const LeaseReport& report) {
    return wrong_by_ms(report.clock) != 0;
}

const char* lease_clock_text(const LeaseReport& report) {
    const int64 ahead = wrong_by_ms(report.clock);
    if (ahead == 0)
        return nullptr;
    return psprintf("%lld.%03d seconds %s, give or take %lld ms",
                    static_cast<long long>(std::abs(ahead) / 1000),
                    static_cast<int>(std::abs(ahead) % 1000),
                    ahead < 0 ? "behind the coordinator's" : "ahead of the coordinator's",
                    static_cast<long long>(report.clock.error.count));
}

void lease_record_clock(const CoordinatorClock& clock) {
    LeaseReport* report = &shared->lease_report;
    SpinLockAcquire(&report->mutex);
    report->clock = clock;
    SpinLockRelease(&report->mutex);
}

void lease_record_problem(LeaseProblem problem, const char* message, UnixSecond not_before) {
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
