// Why there is no identifier: every error of a call that cannot generate, with its remedy.

#include "pg/generate.h"

#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/window.h"

using randflake::kRandflake;
using randflake::Outcome;
using randflake::Run;

void require_preload() {
    if (shared == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("randflake is not preloaded"),
                        errdetail("Identifiers need shared memory, which is reserved when the "
                                  "server starts."),
                        errhint("Add \"randflake\" to \"shared_preload_libraries\" and restart "
                                "the server.")));
}

void require_secret() {
    require_preload();
    if (!shared->has_key)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("no secret is configured"),
                        errhint("Set \"randflake.secret_file\" (or \"randflake.secret\") and "
                                "restart the server.")));
}

void require_generator() {
    require_secret();
    if (setting_node_id < 0 && !shared->leased)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("no node id is configured"),
                        errhint("Set \"randflake.node_id\" to a number that no other server uses, "
                                "or \"randflake.coordinator\", and restart the server.")));
}

// An instant as people read it, in the session's time zone; palloc'd.
static const char* second_text(int64 second) {
    return timestamptz_to_str(timestamp_of_second(second));
}

static void report_clock_out_of_range(const Run& last) {
    const bool early = last.outcome == Outcome::kClockBeforeEpoch;
    const char* now = pstrdup(second_text(last.now));
    const char* limit = second_text(early ? 0 : static_cast<int64>(kRandflake.max_timestamp()));
    ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
                    early ? errmsg("the clock is before the first second of an identifier")
                          : errmsg("the clock is after the last second of an identifier"),
                    errdetail("The clock shows %s; identifiers hold %s %s.", now,
                              early ? "times from" : "times through", limit),
                    errhint("Set the server's clock.")));
}

// The clock shows less than what identifiers were issued for, or what was announced on disk.
static void report_clock_behind(int64 now, int64 used, const char* what) {
    const char* now_text = pstrdup(second_text(now));
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

// There is no lease, or the clock is outside of it.
static void report_no_lease(const Run& last) {
    const LeaseControl control = lease_control();
    const Lease& lease =
        control.next.id != 0 && last.now >= control.open.end ? control.next : control.open;
    const char* now = pstrdup(second_text(last.now));
    if (lease.id == 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("this server has no lease of node ids"),
                 control.error[0] != '\0' ? errdetail("%s", control.error)
                                          : errdetail("The coordinator has not answered yet."),
                 errhint("Look at \"randflake.coordinator\" and at the server log.")));
    if (last.now < lease.start)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the lease of node ids has not begun"),
                 errdetail("It begins at %s, the clock shows %s.", second_text(lease.start), now),
                 errhint("Compare the clocks of this server and of the coordinator.")));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the lease of node ids has ended"),
                    errdetail("It ended at %s, the clock shows %s.%s%s", second_text(lease.end),
                              now, control.error[0] != '\0' ? " Last error: " : "", control.error),
                    errhint("Look at the coordinator, and compare its clock with this server's.")));
}

// The window is closed or ended, and was not moved on within randflake.max_wait.
static void report_no_window(const Run& last) {
    WindowControl control;
    if (!window_control(&control))
        control.problem = WindowProblem::kNone;
    switch (control.problem) {
        case WindowProblem::kNotYet: {
            // What a crash or a hold-off can cost; more means that the clock was set.
            const int64 usual = kWindowSeconds + setting_max_clock_skew / 1000 + 1;
            if (control.opens_at - last.now > usual)
                report_clock_behind(last.now, control.opens_at, "the end of the last window");
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("the window for identifiers is not open yet"),
                            errdetail("It opens at %s; waited %d ms.",
                                      second_text(control.opens_at), setting_max_wait),
                            errhint("Try again then, or raise \"randflake.max_wait\".")));
            break;
        }
        case WindowProblem::kClockJumped:
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("the clock has jumped %lld seconds ahead since the server started",
                            static_cast<long long>(control.clock_jump)),
                     errdetail("The clock shows %s.", second_text(last.now)),
                     errhint("Set the clock if it is wrong. If it is right, restart the server.")));
            break;
        case WindowProblem::kFileFailed:
            errno = control.failure.error;
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("could not extend the window for identifiers: %m"),
                            errdetail("Could not %s file \"%s\" in the data directory.",
                                      control.failure.action, control.failure.path),
                            errhint("Identifiers continue as soon as the file can be written.")));
            break;
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

void report_unavailable(const Run& last) {
    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("cannot generate identifiers during recovery"),
                        errhint("Generate them on the primary server.")));

    switch (last.outcome) {
        case Outcome::kClockBeforeEpoch:
        case Outcome::kClockAfterEnd:
            report_clock_out_of_range(last);
            break;
        case Outcome::kExhausted:
            ereport(
                ERROR,
                (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                 errmsg("every identifier of this second is used"),
                 errdetail("%u node ids give %u identifiers a second each; waited %d ms.",
                           shared->slot_count, static_cast<uint32>(kRandflake.max_sequence() + 1),
                           setting_max_wait),
                 errhint("Raise \"randflake.node_count\" or \"randflake.max_wait\".")));
            break;
        case Outcome::kClockBehind:
            report_clock_behind(last.now,
                                static_cast<int64>(kRandflake.Unpack(last.previous).timestamp),
                                "the last identifier");
            break;
        case Outcome::kBeforeWindow:
            if (shared->leased)
                report_no_lease(last);
            report_clock_behind(last.now, last.window.start, "the window for identifiers");
            break;
        case Outcome::kWindowClosed:
        case Outcome::kWindowEnded:
            if (shared->leased)
                report_no_lease(last);
            report_no_window(last);
            break;
        case Outcome::kReserved:
            break;
    }
    pg_unreachable();
}
