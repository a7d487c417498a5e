// A background process that finds a former primary which still generates with the node ids of this
// server, or a standby that was promoted beside it: whenever this server is out of recovery, it
// asks the server that "primary_conninfo" names, twice a minute.
//
// That may be this server itself, by way of an address that moves with the primary. Two servers of
// one system that are out of recovery are on different timelines, unless two standbys were promoted
// at once; so one of the same timeline is taken for this server.

#include "pg/lease/upstream.h"

#include "pg/base/clock.h"
#include "pg/base/compat.h"
#include "pg/lease/lease_client.h"
#include "pg/memory/settings.h"
#include "pg/memory/shmem.h"

using randflake::NodeRange;

extern "C" {
[[noreturn]] PGDLLEXPORT void randflake_upstream_main(Datum argument);
}

static constexpr long kIntervalMs = 30000;

void upstream_register_worker() {
    BackgroundWorker worker{};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = 10;
    strlcpy(worker.bgw_library_name, "randflake", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, "randflake_upstream_main", sizeof worker.bgw_function_name);
    strlcpy(worker.bgw_name, "randflake upstream worker", sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, "randflake upstream worker", sizeof worker.bgw_type);
    RegisterBackgroundWorker(&worker);
}

// It generates, or may at any moment, with node ids of this server.
static bool upstream_is_rival() {
    int64 values[randflake::kMaxAnswerColumns] = {};
    if (PrimaryConnInfo[0] == '\0' || !lease_client_upstream(values) || values[kInRecovery] != 0 ||
        static_cast<uint64>(values[kSystem]) != GetSystemIdentifier() ||
        values[kTimeline] == GetWALInsertionTimeLine() || values[kNodeId] < 0 ||
        values[kNodeId] > PG_INT32_MAX)
        return false;
    const NodeRange nodes{static_cast<uint32>(values[kNodeId]),
                          static_cast<uint32>(values[kNodeCount] * (1 + values[kSpareRanges]))};
    return shared->memory.ranges.All().Overlaps(nodes);
}

void randflake_upstream_main(Datum) {
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    CurrentResourceOwner = ResourceOwnerCreate(nullptr, "randflake upstream worker");
    MemoryContext per_question =
        AllocSetContextCreate(TopMemoryContext, "randflake upstream worker", ALLOCSET_SMALL_SIZES);
    MemoryContextSwitchTo(per_question);
    while (!ShutdownRequestPending) {
        CHECK_FOR_INTERRUPTS();
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
        }
        const bool rival = upstream_is_rival();
        if (shared->upstream_is_rival.exchange(rival) != rival && rival)
            ereport(
                WARNING,
                (errmsg("another server runs with node ids of this one"),
                 errdetail("\"primary_conninfo\" names the other server, which is not in recovery. "
                           "Both make the same identifiers."),
                 errhint("Stop one of the two, and give it other node ids.")));
        MemoryContextReset(per_question);
        if (!ConfigReloadPending)
            (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kIntervalMs,
                            wait_event("RandflakeUpstream"));
        ResetLatch(MyLatch);
    }
    // Status 1, so that a worker that was merely terminated is started again.
    proc_exit(1);
}
