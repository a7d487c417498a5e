// Why there is no identifier: every error of a call that cannot generate, with its remedy.

#include "pg/generate.h"

#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/window.h"

using randflake::kRandflake;
using randflake::Outcome;
using randflake::Run;

static void require_preload() {
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
    if (setting_node_id < 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("no node id is configured"),
                        errhint("Set \"randflake.node_id\" to a number that no other server uses "
                                "and restart the server.")));
}

// An instant as people read it, in the session's time zone; palloc'd.
static const char* second_text(int64 second) {
    return timestamptz_to_str(timestamp_of_second(second));
}

static void report_clock_out_of_range(const Run& last) {
    const bool early = last.outcome == Outcome::kClockBeforeEpoch;
    const char* now = pstrdup(second_text(last.now));
    const char* limit = second_text(early ? 0 : static_cast<int64>(kRandflake.max_timestamp()));
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
             early ? errmsg("the clock is before the first second of an identifier")
                   : errmsg("the clock is after the last second of an identifier"),
             errdetail("The clock shows %s; identifiers hold %s %s.", now,
                       early ? "times from" : "times through", limit),
             errhint("Set the server's clock.")));
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
            ereport(ERROR,
                    (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                     errmsg("every identifier of this second is used"),
                     errdetail("%u node ids give %u identifiers a second; waited %d ms.",
                               shared->slot_count,
                               static_cast<uint32>(kRandflake.max_sequence() + 1),
                               setting_max_wait),
                     errhint("Raise \"randflake.node_count\" or \"randflake.max_wait\".")));
            break;
        case Outcome::kClockBehind: {
            const auto used = static_cast<int64>(kRandflake.Unpack(last.first).timestamp);
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("the clock is %lld seconds behind the last identifier",
                            static_cast<long long>(used - last.now)),
                     errdetail("Identifiers were issued up to %s.", second_text(used)),
                     errhint("Set the server's clock, wait for it to catch up, or restart with a "
                             "\"randflake.node_id\" that was never used.")));
            break;
        }
        default:
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("the window for identifiers is not open"),
                            errdetail("It may open at %s; waited %d ms.",
                                      second_text(window_opens_at()), setting_max_wait),
                            errhint("Try again later, or raise \"randflake.max_wait\".")));
    }
    pg_unreachable();
}
