// Implements one environment for the postmaster, and another for all other processes.

#include "pg/server/environment.h"

#include <signal.h>
#include <sys/stat.h>

#include "pg/base/shared_memory.h"
#include "pg/server/window_report.h"
#include "pg/window/run_marker.h"
#include "pg/window/window_file.h"

using namespace randflake;

using Environment = ServerEnvironment;

void Environment::Wake() {
    if (!shared_server->memory.leased)
        shared_slots->counters.window_extensions.fetch_add(1, std::memory_order_relaxed);
    ConditionVariableBroadcast(&shared_server->window_changed);
}

static bool done(const FileFailure& failure) {
    if (failure.error != 0) window_record_failure(failure);
    return failure.error == 0;
}

bool Environment::ReadState(WindowState* state, StateError* error, Origin* origin) {
    Assert(!RecoveryInProgress());
    origin->system_identifier = GetSystemIdentifier();
    origin->timeline = GetWALInsertionTimeLine();
    return done(window_file_read(state, error, &origin->identity));
}

FileFailure server_peek_failure;

bool Environment::PeekAtState(WindowState* state, StateError* error) {
    server_peek_failure = window_file_peek(state, error);
    return server_peek_failure.error == 0;
}
bool Environment::WriteState(const WindowState& state) {
    Assert(InterruptHoldoffCount == 1);  // so the window lock is the only lock
    return done(window_file_write(state));
}
uint64 Environment::ReadMarker(const Origin& origin) {
    return memory().leased ? held_marker_read(origin) : run_marker_read(origin);
}
bool Environment::SetMarker(const Origin& origin, uint64* number) {
    return done(memory().leased ? held_marker_write(origin, number)
                                : run_marker_write(origin, number));
}
uint64 Environment::RandomRun() {
    uint64 run;
    do {
        if (!pg_strong_random(&run, sizeof run))
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                            errmsg("could not generate a random number")));
    } while (run == 0);
    return run;
}

void Environment::AddSecrets(const SecretList& list) {
    Assert(window_lock_held());
    secret_add_shared(list);
}
void Environment::SetDecodeHorizon(Second second) {
    Assert(window_lock_held());
    shared_secrets->decode_horizon.store(second.count, std::memory_order_relaxed);
}

template class randflake::Server<ServerEnvironment>;

static ServerEnvironment environment;
constinit Server<ServerEnvironment> server{environment};

SharedServer* shared_server;
FileFailure server_lock_failure;

namespace {
// The postmaster has no PGPROC and can take no lock, so its code must not call the functions below.
struct PostmasterEnvironment : ServerEnvironment {
    static void Lock() = delete;
    static bool TryLock() = delete;
    static void Unlock() = delete;

    static bool NoChildrenLeft() {
        if (IsUnderPostmaster) return false;
        for (uint32 i = 0; i < ProcGlobal->allProcCount; i++) {
            const int pid = ProcGlobal->allProcs[i].procLatch.owner_pid;
            if (pid != 0 && pid != MyProcPid && kill(pid, 0) == 0) return false;
        }
        return true;
    }
    static bool Logged(const FileFailure& failure) {
        if (failure.error != 0) window_log_failure(failure);
        return failure.error == 0;
    }
    static bool WriteState(const WindowState& state) { return Logged(window_file_write(state)); }
    static bool SetMarker(const Origin& origin, uint64* number) {
        return Logged(run_marker_write(origin, number));
    }
    static void LockMarker() {
        Origin origin{GetSystemIdentifier(), 0, {}};
        server_lock_failure = window_file_make(&origin.identity);
        if (server_lock_failure.error == 0) server_lock_failure = run_marker_lock(origin);
    }
};
static_assert(UnlockedEnvironment<PostmasterEnvironment>);
static_assert(DecidesAsShipped<PostmasterEnvironment>);
}  // namespace

static PostmasterEnvironment postmaster_environment;
static constinit Server<PostmasterEnvironment> postmaster{postmaster_environment};

// Returns whether the server starts in a recovery that a promotion may end at any time.
static bool begins_in_recovery() {
    struct stat status;
    return stat("standby.signal", &status) == 0 || stat("recovery.signal", &status) == 0;
}

// Combines the machine's boot id with the position of the last checkpoint. Every run of PostgreSQL
// changes this position, even a run without this library. If the last run did not end cleanly, the
// boot id becomes 0 (unknown). Returns the first transaction id of the next run, or an invalid id.
static TransactionId mix_in_checkpoint(uint64_t (&boot)[2]) {
    bool intact;
    ControlFileData* control = get_controlfile(DataDir, &intact);
    const bool clean = intact && control->state == DB_SHUTDOWNED;
    const bool known = clean && (boot[0] != 0 || boot[1] != 0);
    boot[0] = known ? boot[0] ^ control->checkPoint : 0;
    boot[1] = known ? boot[1] : 0;
    const TransactionId next = XidFromFullTransactionId(control->checkPointCopy.nextXid);
    pfree(control);
    return clean ? next : InvalidTransactionId;
}

static void stop() {
    uint64_t boot[2];
    read_boot_id(boot);
    (void)mix_in_checkpoint(boot);
    postmaster.Stop(boot);
}

// The exit status is 0 only at a clean stop, not after a crash of the server or a backend.
static void on_exit(int status, Datum) {
    if (status == 0)
        stop();
    else
        secret_keep_added();
}

static void init_server() {
    Assert(!IsUnderPostmaster);
    static PostmasterMemory memory;
    static uint64_t boot_at_start[2];
    static TransactionId first_xid;
    static bool leased;
    if (!memory.started) {
        leased = setting_coordinator[0] != '\0';
        read_boot_id(memory.machine_boot);
        memcpy(boot_at_start, memory.machine_boot, sizeof boot_at_start);
        first_xid = mix_in_checkpoint(boot_at_start);
    }
    shared_server->window_lock = shared_memory_lock();
    ConditionVariableInit(&shared_server->window_changed);
    shared_server->first_xid = first_xid;
    const NodeRanges ranges{{leased ? 0 : static_cast<uint32_t>(setting_node_id),
                             static_cast<uint32_t>(setting_node_count)},
                            leased ? 0 : 1 + static_cast<uint32_t>(setting_spare_ranges)};
    postmaster.MakeMemory(leased, ranges, boot_at_start, begins_in_recovery(), &memory);
    // The postmaster calls on_exit after its children have exited, even after a crash of a backend.
    on_shmem_exit(on_exit, 0);
}

const SharedPart server_part = kSharedPart<SharedServer, shared_server, init_server>;
