// Runs the rival worker. When the server is not in recovery, the worker looks twice a minute for
// other running servers that use this server's static node ids, and reports them. The worker asks
// the coordinator in "randflake.registry", to which other servers announce their node ids. It also
// asks the server in "primary_conninfo", which may be a former primary, or a standby that was
// promoted beside this server. The address in primary_conninfo may also lead to this server itself,
// so the worker ignores any server on this server's timeline. So it misses a standby whose
// promotion began a timeline with the same number as this server's.

#include "pg/lease/rival_worker.h"

#include "pg/base/clock.h"
#include "pg/base/compat.h"
#include "pg/base/worker.h"
#include "pg/lease/lease_client.h"
#include "pg/memory/settings.h"
#include "pg/memory/shmem.h"
#include "pg/secret/secret.h"
#include "pg/window/window_file.h"

using randflake::NodeRange;

extern "C" {
[[noreturn]] PGDLLEXPORT void randflake_rival_main(Datum argument);
}

static constexpr long kIntervalMs = 30000;

void rival_register_worker() {
    if (setting_node_id < 0 || (PrimaryConnInfo[0] == '\0' && setting_registry[0] == '\0'))
        return;
    BackgroundWorker worker =
        background_worker("randflake_rival_main", "randflake rival worker", 10);
    RegisterBackgroundWorker(&worker);
}

static void record(std::atomic<bool>* shown, bool found, const char* detail) {
    if (shown->exchange(found) != found && found)
        ereport(WARNING,
                (errmsg("%s", kRivalRuns), errdetail("%s", detail), errhint("%s", kRivalRemedy)));
}

// Returns whether the server in "primary_conninfo" may generate with node ids of this server.
static bool upstream_is_rival() {
    int64 values[randflake::kMaxAnswerColumns] = {};
    if (PrimaryConnInfo[0] == '\0' || !lease_client_upstream(values) || values[kInRecovery] != 0 ||
        static_cast<uint64>(values[kSystem]) != GetSystemIdentifier() ||
        values[kTimeline] == GetWALInsertionTimeLine() || values[kNodeId] < 0 ||
        values[kNodeId] > PG_INT32_MAX)
        return false;
    // The numbers are unsigned, so that no value from the other server can overflow the arithmetic.
    const auto number = [&values](WhichServer which) { return static_cast<uint32>(values[which]); };
    const NodeRange nodes{number(kNodeId), number(kNodeCount) * (1 + number(kSpareRanges))};
    return shared->memory.ranges.All().Overlaps(nodes);
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
    RivalReport& report = shared->rivals;
    Announced known{};
    LeaseResult result{};
    if (setting_registry[0] != '\0' && secret_ring().count() > 0) {
        const pg_uuid_t none{};
        if (memcmp(&report.server, &none, sizeof none) == 0 &&
            !pg_strong_random(&report.server, sizeof report.server))
            return;
        result = lease_client_announce(report.server, origin_text(), !report.announced, &known);
        report.announced = report.announced || result.problem == LeaseProblem::kNone;
    }
    if (result.problem == LeaseProblem::kNone) {
        record(&report.in_registry, known.servers > 0, kRivalInRegistry);
        record(&report.leased, known.leases > 0, kRivalLeased);
    }
    if (strcmp(result.error, logged_error) != 0 && result.error[0] != '\0')
        ereport(LOG, (errmsg("could not announce node ids: %s", result.error)));
    strlcpy(logged_error, result.error, sizeof logged_error);
}

void randflake_rival_main(Datum) {
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
        record(&shared->rivals.is_upstream, upstream_is_rival(), kRivalUpstream);
        announce();
        MemoryContextReset(per_question);
        worker_sleep(kIntervalMs, wait_event("RandflakeRival"));
    }
    // With status 0, the postmaster would not restart a worker that pg_terminate_backend() ended.
    proc_exit(1);
}
