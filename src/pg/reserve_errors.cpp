// Why there is no identifier: every error of a call that waited in vain, with its remedy.

#include "pg/reserve_errors.h"

#include "pg/require.h"
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

// The clock shows less than what identifiers were issued for, or what was announced on disk.
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

// What keeps the worker from a lease, in a sentence for everybody: no word of the coordinator's.
static const char* lease_problem_text(const LeaseControl& control) {
    const char* since = pstrdup(timestamptz_to_str(control.problem_since));
    switch (control.problem) {
        case LeaseProblem::kNone:
            break;
        case LeaseProblem::kSettings:
            return psprintf("The settings have not allowed to ask the coordinator since %s.",
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

// There is no lease, or the clock is outside of it.
static void report_no_lease(int64 clock) {
    const LeaseControl control = lease_control();
    const LeaseHolder& holder = control.holder;
    const Lease& lease = clock >= holder.open().end ? holder.newest() : holder.open();
    const char* now = second_text(clock);
    const char* problem = lease_problem_text(control);
    if (lease.id == 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("this server has no lease of node ids"), errdetail("%s", problem),
                        errhint("The view \"randflake_status\" and the server log have the error "
                                "in full.")));
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
             errhint("Look at the coordinator, and compare its clock with this server's. The "
                     "view \"randflake_status\" and the server log have the error in "
                     "full.")));
}

// The window is closed or ended, and was not moved on within randflake.max_wait.
static void report_no_window(int64 now) {
    const WindowReport report = window_report();
    switch (report.problem) {
        case WindowProblem::kNotYet: {
            // What a crash or a hold-off can cost; more means that the clock was set.
            const int64 usual = kWindowSeconds + setting_max_clock_skew / 1000 + 1;
            if (report.opens_at - now > usual)
                report_clock_behind(now, report.opens_at, "the end of the last window");
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("the window for identifiers is not open yet"),
                            errdetail("It opens at %s; waited %d ms.", second_text(report.opens_at),
                                      setting_max_wait),
                            errhint("Try again then, or raise \"randflake.max_wait\".")));
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
        case WindowProblem::kWriting:
        case WindowProblem::kNone:
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("the window for identifiers is not open"),
                            errdetail("Another session is writing its new end; waited %d ms.",
                                      setting_max_wait),
                            errhint("Look at the latency of the data directory's disk, or raise "
                                    "\"randflake.max_wait\".")));
            break;
    }
}

// Every number of this second, or shorter tick, is used.
static void report_exhausted(const Layout& layout) {
    const auto numbers = static_cast<uint32>(layout.max_sequence() + 1);
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             layout.unit == randflake::kSecondMs ? errmsg("every identifier of this second is used")
                                                 : errmsg("every identifier of this time is used"),
             layout.unit == randflake::kSecondMs
                 ? errdetail("%u node ids give %u identifiers a second each; waited %d ms.",
                             shared->slot_count, numbers, setting_max_wait)
                 : errdetail("%u node ids give %u identifiers in %lld ms each; waited %d ms.",
                             shared->slot_count, numbers, static_cast<long long>(layout.unit),
                             setting_max_wait),
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
            if (shared->leased)
                report_no_lease(now);
            report_no_window(now);
            break;
        case Outcome::kReserved:
            break;
    }
    pg_unreachable();
}
