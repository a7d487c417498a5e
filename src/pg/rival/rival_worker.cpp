// Runs the rival worker. When the server is not in recovery, the worker searches twice a minute for
// other running servers that use this server's static node ids, and reports them. The worker asks
// the coordinator in "randflake.registry", to which other servers announce their node ids. It also
// asks the server in "primary_conninfo", which may be a former primary, or a standby that was
// promoted beside this server. The address in primary_conninfo may also lead to this server itself,
// so the worker ignores any server on this server's timeline. So it misses a standby whose
// promotion began a timeline with the same number as this server's.
//
// If the server in primary_conninfo is the original of this data directory, and now a standby on
// this server's timeline, then this copy has replaced its original. So the worker acknowledges the
// copy. Only the setting randflake.directory of the asked server proves that it is the original.

#include "pg/rival/rival.h"

#include "pg/base/compat.h"
#include "pg/base/shared_memory.h"
#include "pg/base/worker.h"
#include "pg/lease/lease_client.h"
#include "pg/secret/secret.h"
#include "pg/server/window_report.h"
#include "pg/settings/settings.h"
#include "pg/window/window_file.h"

using randflake::NodeRange;

extern "C" {
[[noreturn]] PGDLLEXPORT void randflake_rival_main(Datum argument);
}

static constexpr long kIntervalMs = 30000;

static constexpr char kUpstream[] =
    "\"primary_conninfo\" names the other server, which is not in recovery.";
static constexpr char kInRegistry[] =
    "A role has announced the other server to the coordinator of \"randflake.registry\". Before "
    "you believe it, see who in the table \"randflake_lease_announcement\" there.";
static constexpr char kLeased[] = "The coordinator of \"randflake.registry\" has leased them.";

static RivalReport* shared_rivals;

const SharedPart rival_part = kSharedPart<RivalReport, shared_rivals, node_claim_open>;

// postgres_exporter.yml does not count this as a problem, because both servers make identifiers.
ErrorText rival_error() {
    const char* detail = node_claim_rival();
    if (detail == nullptr)
        detail = shared_rivals->is_upstream   ? kUpstream
                 : shared_rivals->in_registry ? kInRegistry
                 : shared_rivals->leased      ? kLeased
                                              : nullptr;
    if (detail == nullptr) return {};
    return {0, kRivalRuns, psprintf("%s %s", detail, kRivalRemedy), nullptr};
}

void rival_register_worker() {
    if (setting_node_id < 0 || (PrimaryConnInfo[0] == '\0' && setting_registry[0] == '\0')) return;
    BackgroundWorker worker =
        background_worker("randflake_rival_main", "randflake rival worker", 10);
    RegisterBackgroundWorker(&worker);
}

static void record(std::atomic<bool>* shown, bool found, const char* detail) {
    if (shown->exchange(found) != found && found)
        ereport(WARNING,
                (errmsg("%s", kRivalRuns), errdetail("%s", detail), errhint("%s", kRivalRemedy)));
}

static const char* show_directory() {
    static char text[24];
    randflake::Origin own{GetSystemIdentifier(), 0, {}};
    const bool known = window_file_identity(&own.identity).error == 0;
    snprintf(text, sizeof text, UINT64_FORMAT, known ? directory_number(own) : 0);
    return text;
}

void rival_define_setting() {
    static char* unused;
    DefineCustomStringVariable(
        "randflake.directory", "Number of the data directory.",
        "Differs between a directory and its copies. 0 before its first use.", &unused, "",
        PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr, nullptr, show_directory);
}

// What the server in "primary_conninfo" answered, of this system and of another timeline or this.
using Answer = int64[randflake::kMaxAnswerColumns];
static bool is_of_system(const Answer& values) {
    return static_cast<uint64>(values[kSystem]) == GetSystemIdentifier();
}
static bool is_on_timeline(const Answer& values) {
    return values[kTimeline] == GetWALInsertionTimeLine();
}

static void acknowledge_if_original_follows(const Answer& values) {
    TimestampTz found_at;
    randflake::Origin original;
    if (values[kInRecovery] != 0 && is_of_system(values) && is_on_timeline(values) &&
        window_of_copy(&found_at, &original) && original.system_identifier != 0 &&
        static_cast<uint64>(values[kDirectory]) == directory_number(original) &&
        window_acknowledge_copy())
        ereport(LOG, (errmsg("the original of this data directory follows this server"),
                      errdetail("So the copy has replaced it, and the two repeat no identifier.")));
}

// Returns whether the server in "primary_conninfo" may generate with node ids of this server.
static bool is_rival(const Answer& values) {
    if (values[kInRecovery] != 0 || !is_of_system(values) || is_on_timeline(values) ||
        values[kNodeId] < 0 || values[kNodeId] > PG_INT32_MAX)
        return false;
    // The numbers are unsigned, so that no value from the other server can overflow the arithmetic.
    const auto number = [&values](WhichServer which) { return static_cast<uint32>(values[which]); };
    const NodeRange nodes{number(kNodeId), number(kNodeCount) * (1 + number(kSpareRanges))};
    return shared_server->memory.ranges.All().Overlaps(nodes);
}

// Returns an identity of this data directory. Only a copy of the whole disk has the same identity.
static const char* origin_text() {
    randflake::FileIdentity identity{};
    (void)window_file_identity(&identity);
    return psprintf("%llu/%llu/%llu/%lld", static_cast<unsigned long long>(GetSystemIdentifier()),
                    static_cast<unsigned long long>(identity.inode),
                    static_cast<unsigned long long>(identity.device),
                    static_cast<long long>(identity.birth_nanoseconds));
}

static void announce() {
    static char logged_error[sizeof LeaseResult::error];
    RivalReport& report = *shared_rivals;
    LeaseResult result{};
    if (setting_registry[0] != '\0' && secret_ring().count() > 0) {
        const pg_uuid_t none{};
        if (memcmp(&report.server, &none, sizeof none) == 0 &&
            !pg_strong_random(&report.server, sizeof report.server))
            return;
        result = lease_client_announce(report.server, origin_text(), !report.announced);
        report.announced = report.announced || result.problem == LeaseProblem::kNone;
    }
    if (result.problem == LeaseProblem::kNone) {
        record(&report.in_registry, result.values[0] > 0, kInRegistry);
        record(&report.leased, result.values[1] > 0, kLeased);
    }
    if (strcmp(result.error, logged_error) != 0 && result.error[0] != '\0')
        ereport(LOG, (errmsg("could not announce node ids: %s", result.error)));
    strlcpy(logged_error, result.error, sizeof logged_error);
}

void randflake_rival_main(Datum) {
    Assert(!shared_server->memory.leased);
    worker_start();
    CurrentResourceOwner = ResourceOwnerCreate(nullptr, "randflake rival worker");
    MemoryContext per_question =
        AllocSetContextCreate(TopMemoryContext, "randflake rival worker", ALLOCSET_SMALL_SIZES);
    MemoryContextSwitchTo(per_question);
    while (!ShutdownRequestPending) {
        CHECK_FOR_INTERRUPTS();
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
        }
        LeaseResult upstream{};
        if (PrimaryConnInfo[0] != '\0') upstream = lease_client_upstream();
        const bool answered = PrimaryConnInfo[0] != '\0' && upstream.problem == LeaseProblem::kNone;
        record(&shared_rivals->is_upstream, answered && is_rival(upstream.values), kUpstream);
        if (answered) acknowledge_if_original_follows(upstream.values);
        announce();
        MemoryContextReset(per_question);
        worker_sleep(kIntervalMs, wait_event("RandflakeRival"));
    }
    // With status 0, the postmaster would not restart a worker that pg_terminate_backend() ended.
    proc_exit(1);
}
