// The errors of a call that got no identifier, each with its cause and remedy.

#include "pg/reserve_errors.h"

#include "pg/require.h"
#include "pg/secret.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/snowflake_layout.h"
#include "pg/timestamp.h"
#include "pg/window.h"

using randflake::FloorDivide;
using randflake::Layout;
using randflake::Lease;
using randflake::LeaseHolder;
using randflake::Outcome;
using randflake::Run;

static void report_without_window() {
    if (shared->leased)
        require_snowflake_nodes(lease_control().holder.open().first_node_id);
    const char* epoch =
        timestamptz_to_str(timestamp_of_milliseconds(snowflake_layout.TickStart(0)));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the window for identifiers began before the epoch of layout \"%s\"",
                           setting_snowflake_layout),
                    errdetail("The epoch is %s.", epoch),
                    shared->leased ? errhint("Wait for the next lease of node ids.")
                                   : errhint("Restart the server.")));
}

static void report_clock_out_of_range(const Layout& layout, const Run& last) {
    const bool early = last.outcome == Outcome::kClockBeforeEpoch;
    const auto tick_text = [&layout](uint64 tick) {
        return pstrdup(timestamptz_to_str(timestamp_of_milliseconds(layout.TickStart(tick))));
    };
    const char* now = tick_text(static_cast<uint64>(last.now));
    const char* limit = tick_text(early ? 0 : layout.max_timestamp());
    if (&layout == &snowflake_layout)
        ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
                        early ? errmsg("the clock is before the first time of layout \"%s\"",
                                       setting_snowflake_layout)
                              : errmsg("the clock is after the last time of layout \"%s\"",
                                       setting_snowflake_layout),
                        errdetail("The clock shows %s; the layout holds %s %s.", now,
                                  early ? "times from" : "times through", limit),
                        errhint("Set \"randflake.snowflake_layout\" to another layout, or the "
                                "server's clock if it is wrong.")));
    ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
                    early ? errmsg("the clock is before the first second of an identifier")
                          : errmsg("the clock is after the last second of an identifier"),
                    errdetail("The clock shows %s; identifiers hold %s %s.", now,
                              early ? "times from" : "times through", limit),
                    errhint("Set the server's clock.")));
}

// The clock is behind the last identifier, or behind the end that was written to disk.
static void report_clock_behind(int64 now, int64 used, const char* what) {
    const char* now_text = second_text(now);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("the clock is %lld seconds behind %s", static_cast<long long>(used - now), what),
         errdetail("The clock shows %s, identifiers may have been issued up to %s.", now_text,
                   second_text(used)),
         shared->leased
             ? errhint("Set the clock if it is wrong, or wait until it has caught up. If it was "
                       "in the future before, restart the server: it leases other node ids.")
             : errhint("Set the clock if it is wrong, or wait until it has caught up. If it was "
                       "in the future before, set \"randflake.node_id\" to node ids that were "
                       "never used and restart the server.")));
}

// Why the worker has no lease, as a sentence that everybody may see: it quotes nothing of the
// coordinator's answer.
static const char* lease_problem_text(const LeaseControl& control) {
    const char* since = pstrdup(timestamptz_to_str(control.problem_since));
    switch (control.problem) {
        case LeaseProblem::kNone:
            break;
        case LeaseProblem::kSettings:
            return psprintf("The settings have not allowed a request to the coordinator since %s.",
                            since);
        case LeaseProblem::kNotAsked:
            return psprintf("The server has been unable to ask the coordinator since %s.", since);
        case LeaseProblem::kNoAnswer:
            return psprintf("The coordinator has not answered since %s.", since);
        case LeaseProblem::kRefused:
            return psprintf("The coordinator has refused since %s.", since);
        case LeaseProblem::kUnusable:
            return psprintf("The coordinator has given no usable answer since %s.", since);
        case LeaseProblem::kClocks:
            return psprintf(
                "The clocks of this server and of the coordinator have differed since "
                "%s.",
                since);
        case LeaseProblem::kUsed:
            return psprintf(
                "The node ids that the coordinator leases were used by this server "
                "itself, by a clock that was ahead; it has asked for others since %s.",
                since);
    }
    return "The coordinator has not answered yet.";
}

// The same, and until when the coordinator grants nothing.
static const char* lease_problem_detail(const LeaseControl& control, int64 clock) {
    const char* text = lease_problem_text(control);
    const int64 second = control.not_before - randflake::kWindowEpochSeconds;
    return second > clock
               ? psprintf("%s The coordinator grants none before %s.", text, second_text(second))
               : text;
}

// There is no lease, or the clock is outside of it.
static void report_no_lease(int64 clock) {
    const LeaseControl control = lease_control();
    const LeaseHolder& holder = control.holder;
    const Lease& lease = clock >= holder.open().end ? holder.newest() : holder.open();
    const char* now = second_text(clock);
    const char* problem = lease_problem_detail(control, clock);
    if (lease.id == 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("this server has no lease of node ids"), errdetail("%s", problem),
                        errhint("See the view \"randflake_status\" or the server log for the full "
                                "error message.")));
    if (clock < lease.start)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the lease of node ids has not begun"),
                 errdetail("It begins at %s, the clock shows %s.", second_text(lease.start), now),
                 errhint("Compare the clocks of this server and of the coordinator.")));
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the lease of node ids has ended"),
             control.problem == LeaseProblem::kNone
                 ? errdetail("It ended at %s, the clock shows %s.", second_text(lease.end), now)
                 : errdetail("It ended at %s, the clock shows %s. %s", second_text(lease.end), now,
                             problem),
             errhint("Check the coordinator, and compare its clock with this server's. See the "
                     "view \"randflake_status\" or the server log for the full error message.")));
}

// The window is closed or ended, and was not moved on within randflake.max_wait.
static void report_no_window(int64 now) {
    const WindowReport report = window_report();
    switch (report.problem) {
        case WindowProblem::kNotYet: {
            // The longest wait after a crash or during a hold-off. A longer one means that the
            // clock was set back.
            const int64 usual = kWindowSeconds + setting_max_clock_skew / 1000 + 1;
            if (report.opens_at - now > usual)
                report_clock_behind(now, report.opens_at, "the end of the last window");
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("the window for identifiers is not open yet"),
                            errdetail("It opens at %s. The call waited %d ms.",
                                      second_text(report.opens_at), setting_max_wait),
                            errhint("Try again at that time, or raise \"randflake.max_wait\".")));
            break;
        }
        case WindowProblem::kClockJumped:
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("the clock has jumped %lld seconds ahead since the server started",
                            static_cast<long long>(report.clock_jump)),
                     errdetail("The clock shows %s.", second_text(now)),
                     errhint("Set the clock if it is wrong. If it is right, restart the server.")));
            break;
        case WindowProblem::kFileFailed:
            errno = report.failure.error;
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("could not extend the window for identifiers: %m"),
                            errdetail("Could not %s file \"%s\" in the data directory.",
                                      report.failure.action, report.failure.path),
                            errhint("Identifiers continue as soon as the file can be written.")));
            break;
        case WindowProblem::kSecrets:
            report_secrets_refused(ERROR, static_cast<uint32>(report.written_end));
            break;
        case WindowProblem::kWriting:
        case WindowProblem::kNone:
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("the window for identifiers is not open"),
                     errdetail("Another session is writing its new end. The call waited %d ms.",
                               setting_max_wait),
                     errhint("Check the latency of the data directory's disk, or raise "
                             "\"randflake.max_wait\".")));
            break;
    }
}

// Every number of this tick is used.
static void report_exhausted(const Layout& layout) {
    const auto numbers = static_cast<uint32>(layout.max_sequence() + 1);
    ereport(
        ERROR,
        (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
         layout.unit == randflake::kSecondMs
             ? errmsg("every identifier of this second is used")
             : errmsg("every identifier of this unit of time is used"),
         layout.unit == randflake::kSecondMs
             ? errdetail_plural("%u node id gives %u identifiers a second. The call waited %d ms.",
                                "%u node ids give %u identifiers a second each. The call "
                                "waited %d ms.",
                                shared->slot_count, shared->slot_count, numbers, setting_max_wait)
             : errdetail_plural("%u node id gives %u identifiers in %lld ms. The call waited "
                                "%d ms.",
                                "%u node ids give %u identifiers in %lld ms each. The call "
                                "waited %d ms.",
                                shared->slot_count, shared->slot_count, numbers,
                                static_cast<long long>(layout.unit), setting_max_wait),
         errhint("Raise \"randflake.node_count\" or \"randflake.max_wait\".")));
}

void report_unavailable(const Layout& layout, const Run& last) {
    // Seconds since the epoch of windows.
    const auto second_of = [&layout](uint64 tick) {
        return FloorDivide(layout.TickStart(tick) - randflake::kWindowEpochMs,
                           randflake::kSecondMs);
    };
    const int64 now = second_of(static_cast<uint64>(last.now));

    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("cannot generate identifiers during recovery"),
                        errhint("Generate them on the primary server.")));

    switch (last.outcome) {
        case Outcome::kClockBeforeEpoch:
        case Outcome::kClockAfterEnd:
            report_clock_out_of_range(layout, last);
            break;
        case Outcome::kExhausted:
            report_exhausted(layout);
            break;
        case Outcome::kClockBehind: {
            const int64 used = second_of(layout.Unpack(last.previous).timestamp);
            report_clock_behind(now, Max(used, now + 1), "the last identifier");
            break;
        }
        case Outcome::kBeforeWindow: {
            if (shared->leased)
                report_no_lease(now);
            const int64 first = second_of(layout.FirstTick(last.window.start));
            report_clock_behind(now, Max(first, now + 1), "the window for identifiers");
            break;
        }
        case Outcome::kNotInLayout:
            report_without_window();
            break;
        case Outcome::kWindowClosed:
        case Outcome::kNoWord:
        case Outcome::kWindowEnded:
            // A lease is of no use while the state on disk keeps it from being used.
            if (shared->leased && window_report().problem != WindowProblem::kFileFailed &&
                window_report().problem != WindowProblem::kSecrets)
                report_no_lease(now);
            report_no_window(now);
            break;
        case Outcome::kReserved:
            break;
    }
    pg_unreachable();
}
