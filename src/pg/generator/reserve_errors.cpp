// Describes the errors of calls that got no identifier. randflake_status shows the same texts.

#include "pg/generator/reserve.h"

#include "pg/base/clock.h"
#include "pg/base/timestamp.h"
#include "pg/lease/lease_look.h"
#include "pg/lease/lease_report.h"
#include "pg/rival/rival.h"
#include "pg/server/require.h"
#include "pg/server/window_report.h"
#include "pg/settings/settings.h"

using namespace randflake;

static int64 first_node_id() {
    return shared_server->memory.leased
               ? lease_report().open.nodes.first
               : int64{shared_server->memory.ranges.At(window_report().range).first};
}

static ErrorText without_window_error() {
    require_snowflake_nodes(first_node_id());
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            psprintf("the window for identifiers began before the epoch of layout \"%s\"",
                     setting_snowflake_layout),
            psprintf("The epoch is %s.",
                     timestamptz_to_str(timestamp_of(snowflake_layout.TickStart(0)))),
            shared_server->memory.leased ? "Wait for the next lease of node ids."
                                         : "Restart the server."};
}

static ErrorText clock_out_of_range_error(const Layout& layout, Tick tick, bool early) {
    const auto tick_text = [&layout](uint64 at) {
        return pstrdup(timestamptz_to_str(timestamp_of(layout.TickStart(at))));
    };
    const char* now = tick_text(static_cast<uint64>(tick.count));
    const char* limit = tick_text(early ? 0 : layout.max_timestamp());
    if (&layout == &snowflake_layout)
        return {ERRCODE_DATETIME_FIELD_OVERFLOW,
                psprintf(early ? "the clock is before the first time of layout \"%s\""
                               : "the clock is after the last time of layout \"%s\"",
                         setting_snowflake_layout),
                psprintf("The clock shows %s; the layout holds %s %s.", now,
                         early ? "times from" : "times through", limit),
                "Set \"randflake.snowflake_layout\" to another layout, or the server's clock if it "
                "is wrong."};
    return {ERRCODE_DATETIME_FIELD_OVERFLOW,
            early ? "the clock is before the first second of an identifier"
                  : "the clock is after the last second of an identifier",
            psprintf("The clock shows %s; identifiers hold %s %s.", now,
                     early ? "times from" : "times through", limit),
            "Set the server's clock."};
}

// Returns the error for a clock that shows `now`, which is before `used`. `what` names the source
// of `used`, such as "the last identifier".
static ErrorText clock_behind_error(Second now, Second used, const char* what) {
    const char* now_text = second_text(now);
    const WindowReport report = window_report();
    const bool waits =
        report.trouble.problem == WindowProblem::kNoRange && report.trouble.second > now;
    return {
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        psprintf("the clock is %lld seconds behind %s", static_cast<long long>((used - now).count),
                 what),
        psprintf("The clock shows %s. The server issues no identifier before %s.%s%s", now_text,
                 second_text(used),
                 waits ? psprintf(" No range of node ids may be used before %s.",
                                  second_text(report.trouble.second))
                       : "",
                 lease_wrong_clock(lease_report(), " ")),
        shared_server->memory.leased
            ? "Set the clock if it is wrong, or wait until it has caught up. If it was in the "
              "future before, restart the server: it leases other node ids."
            : "Set the clock if it is wrong, or wait until it has caught up. If it was in the "
              "future before, raise \"randflake.spare_node_ranges\", or set "
              "\"randflake.node_id\" to node ids that were never used, and restart the server."};
}

static ErrorText file_failed_error(const WindowReport& report) {
    const bool irregular = report.failure.error == kNotRegular;
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            psprintf("could not extend the window for identifiers: %s",
                     file_failure_text(report.failure)),
            psprintf("Could not %s file \"%s\" in the data directory.", report.failure.action,
                     report.failure.path),
            irregular ? "Move it away. Identifiers continue as soon as that is done."
                      : "Identifiers continue as soon as the file can be written."};
}

static ErrorText clock_jumped_error(const WindowReport& report, Second now) {
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            psprintf("the clock has jumped %lld seconds ahead since the server started",
                     static_cast<long long>(report.trouble.jump.count)),
            psprintf("The clock shows %s.", second_text(now)),
            "Set the clock if it is wrong. If it is right, restart the server."};
}

static ErrorText not_yet_error(const WindowReport& report, Second now) {
    // A crash or a hold-off delays the window by at most this many seconds. A longer delay means
    // that the clock was set back.
    const int64 usual = kWindowSeconds.count + report.hold_off_ms / 1000 + 1;
    if (report.trouble.second - now > usual)
        return clock_behind_error(now, report.trouble.second, "the end of the last window");
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the window for identifiers is not open yet",
            psprintf("It opens at %s.", second_text(report.trouble.second)),
            "Try again at that time, or raise \"randflake.max_wait\"."};
}

static ErrorText no_window_error(const WindowReport& report, Second now) {
    switch (report.trouble.problem) {
        case WindowProblem::kNotYet: return not_yet_error(report, now);
        case WindowProblem::kClockJumped: return clock_jumped_error(report, now);
        case WindowProblem::kFileFailed: return file_failed_error(report);
        case WindowProblem::kSecrets: return secrets_refused_error(report.trouble.second);
        case WindowProblem::kNoRange:
            return clock_behind_error(now, report.trouble.second, "the end of the last window");
        case WindowProblem::kNotLooked: return not_looked_error();
        case WindowProblem::kLeased: return leased_error(report.range, report.trouble.second);
        case WindowProblem::kWriting:
        case WindowProblem::kNone: break;
    }
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the window for identifiers is not open",
            psprintf("Another session is writing its new end. The call waited %d ms.",
                     setting_max_wait),
            "Check the latency of the data directory's disk, or raise \"randflake.max_wait\"."};
}

// Returns whether the server issues nothing even if it has a lease.
static bool issues_nothing(const WindowReport& report) {
    return report.trouble.problem == WindowProblem::kFileFailed ||
           report.trouble.problem == WindowProblem::kSecrets;
}

static const char* capacity_text(const Layout& layout) {
    const uint32 nodes = shared_slots->slot_count;
    const uint64 first_word = randflake_slot(0).word.load(std::memory_order_relaxed);
    const auto numbers =
        static_cast<unsigned long long>(nodes * (layout.max_sequence() + 1) -
                                        layout.FirstSequence(layout.Unpack(first_word).node_id));
    const char* give = nodes == 1 ? "1 node id gives" : psprintf("%u node ids give", nodes);
    return psprintf("%s %llu identifiers %s.", give, numbers,
                    layout.unit == kSecondMs
                        ? "a second"
                        : psprintf("in %lld ms", static_cast<long long>(layout.unit)));
}

static constexpr char kSecondUsed[] = "every identifier of this second is used";

static ErrorText exhausted_error(const Layout& layout) {
    return {
        ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        layout.unit == kSecondMs ? kSecondUsed : "every identifier of this unit of time is used",
        psprintf("%s The call waited %d ms.", capacity_text(layout), setting_max_wait),
        "Raise \"randflake.node_count\" or \"randflake.max_wait\"."};
}

void log_exhausted(const Layout& layout, const Reservation& last) {
    static constexpr uint64 kInterval = 60;
    if (last.outcome != Outcome::kExhausted || layout.unit != kSecondMs) return;
    std::atomic<int64>& logged_at = shared_slots->counters.exhaustion_logged_at;
    const int64 now = layout.SecondOf(static_cast<uint64>(last.now.count)).count;
    int64 before = logged_at.load(std::memory_order_relaxed);
    if (static_cast<uint64>(now - before) < kInterval ||
        !logged_at.compare_exchange_strong(before, now))
        return;
    ereport(LOG_SERVER_ONLY,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg(kSecondUsed),
             errdetail("%s Calls wait for the next second.", capacity_text(layout)),
             errhint("Raise \"randflake.node_count\" and restart the server."), errhidestmt(true),
             errhidecontext(true)));
}

static ErrorText recovery_error() {
    return {ERRCODE_READ_ONLY_SQL_TRANSACTION, "cannot generate identifiers during recovery",
            nullptr, "Generate them on the primary server."};
}

static ErrorText unavailable_error(const Layout& layout, const Reservation& last) {
    const Second now = layout.SecondOf(static_cast<uint64>(last.now.count));
    if (RecoveryInProgress()) return recovery_error();
    switch (last.outcome) {
        case Outcome::kClockBeforeEpoch:
        case Outcome::kClockAfterEnd:
            return clock_out_of_range_error(layout, last.now,
                                            last.outcome == Outcome::kClockBeforeEpoch);
        case Outcome::kExhausted: return exhausted_error(layout);
        case Outcome::kClockBehind: {
            const Second used = layout.SecondOf(layout.Unpack(last.previous).timestamp);
            return clock_behind_error(now, Max(used, now + 1), "the last identifier");
        }
        case Outcome::kBeforeWindow: {
            if (shared_server->memory.leased && !lease_in_force(now)) return no_lease_error(now);
            const Second first = layout.SecondOf(layout.FirstTick(last.window.start));
            return clock_behind_error(now, Max(first, now + 1), "the window for identifiers");
        }
        case Outcome::kNotInLayout:
            if (&layout == &kRandflake53) {
                require_nodes53(first_node_id());
                // The call saw node ids above the limit. The server has changed them meanwhile.
                return shared_server->memory.leased ? no_lease_error(now)
                                                    : no_window_error(window_report(), now);
            }
            return without_window_error();
        case Outcome::kWindowClosed:
        case Outcome::kNoWord:
        case Outcome::kWindowEnded:
            if (shared_server->memory.leased && !lease_in_force(now) &&
                !issues_nothing(window_report()))
                return no_lease_error(now);
            return no_window_error(window_report(), now);
        case Outcome::kReserved: break;
    }
    pg_unreachable();
}

void raise_unavailable(const Layout& layout, const Reservation& last) {
    Assert(last.outcome != Outcome::kReserved);
    raise_error(unavailable_error(layout, last));
}

static Second reached_by_all_slots() {
    uint64 least = kRandflake.max_timestamp();
    for (uint32 i = 0; i < shared_slots->slot_count; i++)
        least = Min(least, kRandflake.Unpack(randflake_slot(i).word.load()).timestamp);
    return kRandflake.SecondOf(least);
}

// docs/monitoring/postgres_exporter.yml counts neither this message nor the one about differing
// clocks as a problem, because the server still makes identifiers.
static ErrorText spare_range_error(const WindowReport& report, Second now) {
    const NodeRanges& ranges = shared_server->memory.ranges;
    Second last = now;
    for (uint32 i = 0; i < ranges.count; i++)
        if (i != report.range) last = Max(last, report.opens_at[i]);
    if (last == now) return {};
    return {
        0, "a spare range of node ids is in use",
        psprintf("The clock was set back, and may have been ahead up to %s.", second_text(last)),
        nullptr};
}

// The server still makes identifiers, so postgres_exporter.yml counts no problem.
static ErrorText copy_error() {
    TimestampTz found_at;
    if (!window_of_copy(&found_at)) return {};
    return {0, "this data directory is a copy",
            "A server that runs with the same node ids makes the same identifiers. If there is "
            "none, let a superuser run randflake_acknowledge_copy().",
            nullptr};
}

static ErrorText static_problem_error(Second now, const Window& window) {
    const WindowReport report = window_report();
    const WindowProblem problem = report.trouble.problem;
    const bool later = report.trouble.second > now;
    if (problem == WindowProblem::kClockJumped || (later && problem == WindowProblem::kNotYet) ||
        (later && problem == WindowProblem::kLeased) ||
        (window.closed() && problem == WindowProblem::kNotLooked) ||
        (window.closed() && later && problem == WindowProblem::kNoRange))
        return no_window_error(report, now);
    if (!window.closed() && now < window.start)
        return clock_behind_error(now, window.start, "the window for identifiers");
    if (const ErrorText rival = rival_error(); rival.message != nullptr) return rival;
    if (const ErrorText copy = copy_error(); copy.message != nullptr) return copy;
    const ErrorText spare = spare_range_error(report, now);
    return spare.message != nullptr ? spare : rival_unseen_error();
}

static ErrorText problem_error() {
    if (const ErrorText* missing = missing_setting()) return *missing;
    if (RecoveryInProgress()) return recovery_error();
    const Second now = wall_clock_second();
    if (now < Second{0} || now >= kNoSecond)
        return clock_out_of_range_error(kRandflake, Tick{now.count}, now < Second{0});
    if (const WindowReport report = window_report(); issues_nothing(report))
        return no_window_error(report, now);

    const Window window = Window::FromWord(shared_slots->window.load());
    const Second used = reached_by_all_slots();
    if (!window.closed() && used >= window.start && used > now + 1)
        return clock_behind_error(now, used, "the last identifier");
    const ErrorText error = shared_server->memory.leased ? lease_problem_error(now, window)
                                                         : static_problem_error(now, window);
    if (const ErrorText* next = next_start_error(); next != nullptr && error.message == nullptr)
        return {next->sqlstate,
                psprintf("the next start of the server will fail: %s", next->message), next->detail,
                next->hint};
    return error;
}

const char* generator_problem() {
    const ErrorText error = problem_error();
    return error.message == nullptr || error.detail == nullptr
               ? error.message
               : psprintf("%s: %s", error.message, error.detail);
}
