// Keeps the report in shared memory, and describes problems of the leases.

#include "pg/lease/lease_report.h"

#include <cstdlib>

#include "pg/base/clock.h"
#include "pg/base/shared_memory.h"
#include "pg/base/timestamp.h"
#include "pg/server/environment.h"
#include "pg/settings/settings.h"

using namespace randflake;

namespace {
struct SharedLeases {
    Guarded<LeaseReport> report;
    FileFailure lock_failure;     // why this postmaster lacks the marker's lock; fixed
    std::atomic<int> worker_pid;  // may be stale, or the pid of another process
};
}  // namespace

static SharedLeases* shared_leases;

// Returns the problem that a later postmaster will not resume this server's leases, or none.
static ErrorText unlocked_error() {
    const FileFailure& failure = shared_leases->lock_failure;
    if (failure.error == 0) return {};
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

static void init_leases() {
    shared_leases->report.Init();
    if (!shared_server->memory.leased) return;
    shared_leases->lock_failure = server_lock_failure;
    if (const ErrorText error = unlocked_error(); error.message != nullptr)
        ereport(LOG, (errmsg("%s", error.message), errdetail("%s", error.detail),
                      errhint("%s", error.hint)));
}

const SharedPart lease_part = kSharedPart<SharedLeases, shared_leases, init_leases>;

LeaseReport lease_report() { return shared_leases->report.Copy(); }

void lease_worker_started() {
    Assert(shared_server->memory.leased);
    shared_leases->worker_pid = MyProcPid;
}

void lease_wake_worker() {
    PGPROC* worker = BackendPidGetProc(shared_leases->worker_pid);
    if (worker != nullptr) SetLatch(&worker->procLatch);
}

void ServerEnvironment::ShowLeases(const Holder& holder) {
    Assert(window_lock_held());
    shared_leases->report.Update([&holder](LeaseReport* report) {
        report->open = holder.open();
        report->next = holder.next();
    });
}

Window lease_window(const LeaseReport& report, const Window& window) {
    if (report.open.id == 0) return window;
    const LeaseTerms terms{setting_lease_duration, setting_max_clock_skew};
    const Second latest = LatestEnd(wall_clock_second(), terms);
    const Second start = window.closed() ? Max(window.end, report.open.start) : window.start;
    return {start, Max(window.end, Min(report.open.end, latest))};
}

// Returns how far this server's clock is ahead of the coordinator's; 0 if the difference is
// tolerable or uncertain.
static int64 wrong_by_ms(const CoordinatorClock& clock) {
    if (clock.at == UptimeMs{}) return 0;
    const int64 ahead = clock.Ahead(uptime_clock(), precise_wall_clock()).count;
    return std::abs(ahead) > setting_max_clock_skew + clock.error.count ? ahead : 0;
}

bool lease_clock_wrong(const LeaseReport& report) { return wrong_by_ms(report.clock) != 0; }

const char* lease_clock_text(const LeaseReport& report) {
    const int64 ahead = wrong_by_ms(report.clock);
    if (ahead == 0) return nullptr;
    return psprintf("%lld.%03d seconds %s, give or take %lld ms",
                    static_cast<long long>(std::abs(ahead) / 1000),
                    static_cast<int>(std::abs(ahead) % 1000),
                    ahead < 0 ? "behind the coordinator's" : "ahead of the coordinator's",
                    static_cast<long long>(report.clock.error.count));
}

void lease_record_clock(const CoordinatorClock& clock) {
    Assert(shared_leases->worker_pid == MyProcPid);
    shared_leases->report.Update([&clock](LeaseReport* report) { report->clock = clock; });
}

void lease_record_problem(LeaseProblem problem, const char* message, UnixSecond not_before) {
    Assert(shared_leases->worker_pid == MyProcPid);
    const TimestampTz now = message[0] == '\0' ? 0 : GetCurrentTimestamp();
    shared_leases->report.Update([&](LeaseReport* report) {
        strlcpy(report->error, message, sizeof report->error);
        report->error_at = now;
        if (problem != report->problem) report->problem_since = now;
        report->problem = problem;
        report->not_before = not_before;
    });
}

const char* lease_wrong_clock(const LeaseReport& report, const char* before) {
    const char* by = lease_clock_text(report);
    return by != nullptr ? psprintf("%sThis server's clock is %s.", before, by) : "";
}

// Returns why the worker has no lease. All roles see this text, so it never quotes the coordinator.
static const char* lease_failure_text(const LeaseReport& report) {
    if (report.problem == LeaseProblem::kNone) return "The coordinator has not answered yet.";
    // In the order of LeaseProblem.
    static constexpr const char* kTexts[] = {
        "",
        "The settings have not allowed a request to the coordinator since",
        "The server has been unable to ask the coordinator since",
        "The coordinator has not answered since",
        "The coordinator has refused since",
        "The coordinator has not agreed about this server's secrets since",
        "The coordinator has given no usable answer since",
        "The clocks of this server and of the coordinator have differed since",
        ("The node ids that the coordinator leases were used by this server itself, by a clock "
         "that was ahead; it has asked for others since"),
    };
    static_assert(lengthof(kTexts) == static_cast<size_t>(LeaseProblem::kUsed) + 1);
    return psprintf("%s %s.", kTexts[static_cast<size_t>(report.problem)],
                    timestamptz_to_str(report.problem_since));
}

// Returns why the worker has no lease, or by how much the clock is wrong, or both.
static const char* lease_problem_text(const LeaseReport& report) {
    const char* wrong = lease_wrong_clock(report, " ");
    const bool all =
        report.problem == LeaseProblem::kNone || report.problem == LeaseProblem::kClocks;
    return all && wrong[0] != '\0' ? wrong + 1
                                   : psprintf("%s%s", lease_failure_text(report), wrong);
}

// Returns the problem. If the coordinator grants no lease before a future time, adds this time.
static const char* lease_problem_detail(const LeaseReport& report, Second clock) {
    const char* text = lease_problem_text(report);
    const Second second = FromUnix(report.not_before);
    return second > clock
               ? psprintf("%s The coordinator grants none before %s.", text, second_text(second))
               : text;
}

// Returns a remedy and the place of the full message. `usual` is the remedy for most problems.
static const char* lease_hint(const LeaseReport& report, const char* usual) {
    return psprintf(
        "%sSee the view \"randflake_status\" or the server log for the full error message.",
        report.problem == LeaseProblem::kSecrets
            ? "Compare \"randflake.secret_file\" with that of the other servers, and call "
              "randflake_reload_secret(). "
        : report.problem == LeaseProblem::kClocks || lease_clock_wrong(report)
            ? "Set the clock that is wrong, this server's or the coordinator's. "
            : usual);
}

ErrorText no_lease_error(Second clock) {
    Assert(shared_server->memory.leased);
    const LeaseReport report = lease_report();
    const Lease& lease = clock >= report.open.end ? report.newest() : report.open;
    const char* now = second_text(clock);
    const char* problem = lease_problem_detail(report, clock);
    if (lease.id == 0)
        return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "this server has no lease of node ids",
                problem, lease_hint(report, "")};
    if (clock < lease.start)
        return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the lease of node ids has not begun",
                psprintf("It begins at %s, the clock shows %s.%s", second_text(lease.start), now,
                         lease_wrong_clock(report, " ")),
                "Set the clock that is wrong, this server's or the coordinator's."};
    const char* ended =
        psprintf("It ended at %s, the clock shows %s.", second_text(lease.end), now);
    return {
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the lease of node ids has ended",
        report.problem == LeaseProblem::kNone && !lease_clock_wrong(report)
            ? ended
            : psprintf("%s %s", ended, problem),
        lease_hint(report, "Check the coordinator, and compare its clock with this server's. ")};
}

bool lease_in_force(Second clock) {
    const LeaseReport report = lease_report();
    return report.open.id != 0 && clock >= report.open.start &&
           clock < lease_window(report, {report.open.start, report.open.start}).end;
}

// The worker may fail to get the next lease while the present lease is still open. While a lock is
// missing, the server still makes identifiers, so postgres_exporter.yml counts no problem.
ErrorText lease_problem_error(Second now, const Window& in_force) {
    const LeaseReport report = lease_report();
    const Window window = lease_window(report, in_force);
    if (window.closed() || now < window.start || now >= window.end) return no_lease_error(now);
    const char* wrong = lease_wrong_clock(report, "");
    if (wrong[0] != '\0')
        return {0, "the clocks of this server and of the coordinator differ", wrong, nullptr};
    if (report.problem == LeaseProblem::kNone) return unlocked_error();
    return {0, psprintf("identifiers end at %s", second_text(report.newest().end)),
            lease_problem_text(report), nullptr};
}
