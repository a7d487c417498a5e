// Shows and logs what prevents the server from opening or extending the window.

#include "pg/server/window_report.h"

#include "pg/base/clock.h"
#include "pg/base/shared_memory.h"
#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"
#include "pg/server/require.h"
#include "pg/settings/settings.h"
#include "pg/window/window_file.h"

using namespace randflake;

// The server logs failed attempts at most once per this interval.
static constexpr Ms kLogInterval = 10000;

namespace {
struct SharedReport {
    Guarded<WindowReport> report;
    SteadyMs next_log_at_ms;  // window lock
};
}  // namespace

static SharedReport* shared_report;

static void init_report() { shared_report->report.Init(); }

const SharedPart window_report_part = kSharedPart<SharedReport, shared_report, init_report>;

WindowReport window_report() { return shared_report->report.Copy(); }

static void publish(const WindowTrouble& trouble, const FileFailure& failure) {
    Assert(window_lock_held());
    shared_report->report.Update([&](WindowReport* report) {
        report->trouble = trouble;
        report->hold_off_ms = shared_server->memory.start.skew.largest_ms;
        report->failure = failure;
    });
}

static bool due_to_log() {
    Assert(window_lock_held());
    const SteadyMs now = steady_clock();
    if (now < shared_report->next_log_at_ms) return false;
    shared_report->next_log_at_ms = now + kLogInterval;
    return true;
}

void window_log_failure(const FileFailure& failure) {
    static constexpr char kDetail[] =
        "The window for identifiers cannot be extended until this works.";
    if (failure.error == kNotRegular) {
        ereport(LOG, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                      errmsg("\"%s\" is not a regular file", failure.path), errdetail(kDetail),
                      errhint("Move it away.")));
        return;
    }
    errno = failure.error;
    ereport(LOG, (errcode_for_file_access(),
                  errmsg("could not %s file \"%s\": %m", failure.action, failure.path),
                  errdetail(kDetail), errhint("Let the server's user read and write it.")));
}

void window_record_failure(const FileFailure& failure) {
    publish({WindowProblem::kFileFailed, {}, 0}, failure);
    if (due_to_log()) window_log_failure(failure);
}

ErrorText secrets_refused_error(Second written_end) {
    return {
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "this server's secrets are not those that it had before",
        psprintf("Identifiers up to %s may have been made under other secrets or times.",
                 second_text(written_end)),
        "In \"randflake.secret_file\", put back every secret that was in use, with its time, let a "
        "new one begin at that time or later, and restart the server."};
}

void ServerEnvironment::Report(const WindowTrouble& trouble) {
    publish(trouble, {});
    if (trouble.problem != WindowProblem::kSecrets || !due_to_log()) return;
    const ErrorText error = secrets_refused_error(trouble.second);
    ereport(LOG, (errmsg("%s", error.message), errdetail("%s", error.detail),
                  errhint("%s", error.hint)));
}

void ServerEnvironment::LogRange(uint32 before, Second now) {
    Assert(window_lock_held());
    const NodeRange from = shared_server->memory.ranges.At(before);
    const NodeRange to = shared_server->memory.ranges.At(shared_server->memory.range);
    ereport(LOG, (errmsg("the clock was set back: identifiers have node ids %u to %u from now on",
                         to.first, to.first + to.count - 1),
                  errdetail("The clock shows %s, behind identifiers with node ids %u to %u.",
                            second_text(now), from.first, from.first + from.count - 1)));
}

void ServerEnvironment::ShowRanges(uint32 range, const Second (&opens_at)[kMaxRanges]) {
    Assert(window_lock_held());
    Assert(range < Max(shared_server->memory.ranges.count, 1));
    shared_report->report.Update([&](WindowReport* report) {
        report->range = range;
        memcpy(report->opens_at, opens_at, sizeof opens_at);
    });
}

// Returns whether the state belongs to another server, or to this server before its promotion.
static bool of_another(Finding finding) {
    return finding == Finding::kOtherSystem || finding == Finding::kOtherTimeline ||
           finding == Finding::kCopied;
}

// Returns whether the original of a copy with this state can use node ids of this server.
static bool shares_node_ids(const NodeRange& original) {
    return shared_server->memory.leased || setting_node_id < 0 ||
           original.Overlaps(shared_server->memory.ranges.All());
}

static void log_copy(const StartPlan& plan, const char* message, const char* detail) {
    const bool shares = shares_node_ids(plan.state.original);
    ereport(shares ? WARNING : LOG,
            (errmsg("%s", message), errdetail("%s", detail),
             errhint("%s", shares ? "Make sure that the server it came from does not generate with "
                                    "the node ids of this one. Then let a superuser run "
                                    "randflake_acknowledge_copy()."
                                  : "The server it came from had other node ids than this one, so "
                                    "the two repeat no identifier.")));
}

static void log_start(const StartPlan& plan, const WindowState& found, StateError error) {
    switch (plan.finding) {
        case Finding::kOwn:
        case Finding::kFirstUse: break;
        case Finding::kUnreadable:
            ereport(
                WARNING,
                (errcode(ERRCODE_DATA_CORRUPTED),
                 errmsg("the window file of randflake cannot be used: %s", StateErrorText(error)),
                 errdetail("The server generates nothing for "
                           "\"randflake.max_clock_skew\" after its start or promotion."),
                 errhint("Make sure that the clock is right: identifiers may have been issued "
                         "under these node ids up to now.")));
            break;
        case Finding::kOtherSystem:
            log_copy(
                plan, "the window file of randflake was written by another database system",
                psprintf("It has system identifier %llu, this server %llu.",
                         static_cast<unsigned long long>(found.origin.system_identifier),
                         static_cast<unsigned long long>(plan.state.origin.system_identifier)));
            break;
        case Finding::kCopied:
            log_copy(plan, "the window file of randflake was copied from another data directory",
                     "This happens after a base backup, a clone or pg_rewind.");
            break;
        case Finding::kOtherTimeline:
            ereport(WARNING,
                    (errmsg("the window file of randflake was written on another timeline"),
                     errdetail("It was written on timeline %u, this server is on timeline %u.",
                               found.origin.timeline, plan.state.origin.timeline),
                     errhint("Make sure that the former primary server does not generate with the "
                             "node ids of this one.")));
            break;
    }
    for (uint32 i = 0; i < kMaxLeases; i++) {
        const bool goes_on = plan.state.leases[i].id != 0;
        if (goes_on || (error == StateError::kNone && found.leases[i].id != 0))
            ereport(LOG, (errmsg(goes_on ? "this server goes on with lease %lld of node ids"
                                         : "this server does not go on with lease %lld of node ids",
                                 static_cast<long long>(found.leases[i].id)),
                          errdetail("It ends at %s.", second_text(found.leases[i].end)),
                          errhint(goes_on ? "The server renews it when the coordinator answers."
                                          : "That takes a proof that no other server has it, as "
                                            "many node ids, and the same secrets. The server asks "
                                            "the coordinator for another lease.")));
    }
    if (plan.secrets == SecretsChange::kOther)
        ereport(LOG, (errmsg("the secret of randflake has changed"),
                      errdetail("Identifiers made under the former secret no longer decode."),
                      errhint("If that was not intended, set the former one and restart the "
                              "server.")));
}

void ServerEnvironment::LogStart(const StartPlan& plan, const WindowState& found,
                                 StateError error) {
    Assert(window_lock_held());
    const Second copied_at = plan.state.copied_at;
    const bool is_copy = copied_at != Second{0};
    const bool shares = is_copy && shares_node_ids(plan.state.original);
    const TimestampTz found_at = shares                                 ? timestamp_of(copied_at)
                                 : !is_copy && of_another(plan.finding) ? GetCurrentTimestamp()
                                                                        : 0;
    shared_report->report.Update([&](WindowReport* report) {
        report->started = true;
        report->copy = shares;
        report->copy_found_at = found_at;
        report->original = plan.finding == Finding::kCopied ? found.origin : Origin{};
    });
    log_start(plan, found, error);
    ClaimNodes();
}

bool window_acknowledge_copy() {
    if (!server.AcknowledgeCopy()) return false;
    shared_report->report.Update([](WindowReport* report) {
        report->copy = false;
        report->copy_found_at = 0;
    });
    return true;
}

bool window_of_copy(TimestampTz* found_at, Origin* original) {
    const WindowReport report = window_report();
    Origin nowhere{};
    original = original != nullptr ? original : &nowhere;
    *original = report.original;
    *found_at = report.copy_found_at;
    if (report.started) return report.copy;
    WindowState found;
    StateError error;
    Origin own{GetSystemIdentifier(), 0, {}};
    if (window_file_peek(&found, &error).error != 0 || error != StateError::kNone) return false;
    // Without an identity file, the directory counts as a copy. The next start makes a new file.
    const int failed = window_file_identity(&own.identity).error;
    const Second copied_at = CopiedAt(found, own, Second{});
    if (copied_at == Second{0} || !shares_node_ids(OriginalNodes(found, own))) return false;
    if (copied_at == found.copied_at)
        *found_at = timestamp_of(copied_at);
    else
        *original = found.origin;
    return failed == 0 || failed == ENOENT;
}

SQL_FUNCTION(randflake_acknowledge_copy) {
    require_preload();
    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("cannot acknowledge a copy during recovery"),
                        errhint("Run randflake_acknowledge_copy() again once this server was "
                                "promoted.")));
    if (!window_acknowledge_copy())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("could not write down that the copy was acknowledged"),
                        errdetail("The server log has the reason."),
                        errhint("Run randflake_acknowledge_copy() again when the data directory "
                                "can be written.")));
    PG_RETURN_VOID();
}
