// Implements one environment for the postmaster, and another for all other processes.

#include "pg/server/environment.h"

#include <signal.h>
#include <sys/stat.h>

#include "pg/base/clock.h"
#include "pg/memory/settings.h"
#include "pg/memory/window_report.h"
#include "pg/secret/secret.h"
#include "pg/server/node_claim.h"
#include "pg/window/run_marker.h"
#include "pg/window/window_file.h"

using namespace randflake;

using Environment = ServerEnvironment;

void Environment::Lock() {
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
}
bool Environment::TryLock() {
    return LWLockConditionalAcquire(shared->window_lock, LW_EXCLUSIVE);
}
void Environment::Unlock() {
    LWLockRelease(shared->window_lock);
}
bool Environment::Locked() {
    return window_lock_held();
}
void Environment::Wake() {
    if (!shared->memory.leased)
        shared->counters.window_extensions.fetch_add(1, std::memory_order_relaxed);
    ConditionVariableBroadcast(&shared->window_changed);
}

Second Environment::Now() {
    return wall_clock_second();
}
Moment Environment::Present() {
    return {uptime_clock(), precise_wall_clock()};
}
SteadyMs Environment::Steady() {
    return steady_clock();
}
Ms Environment::SkewMs() {
    return setting_max_clock_skew;
}
// The result includes this process's max_clock_skew, which may not be in shared memory yet.
SkewRange Environment::Skew() {
    const uint64 word = shared->skew.load(std::memory_order_acquire);
    const auto own = static_cast<uint32>(setting_max_clock_skew);
    return SkewRange{static_cast<uint32>(word >> 32), static_cast<uint32>(word)}.With({own, own});
}
LeaseTerms Environment::Terms() {
    return {setting_lease_duration, setting_max_clock_skew};
}
bool Environment::Generates() {
    return !RecoveryInProgress() && (setting_node_id >= 0 || shared->memory.leased);
}

static bool done(const FileFailure& failure) {
    if (failure.error != 0)
        window_record_failure(failure);
    return failure.error == 0;
}

bool Environment::ReadState(WindowState* state, StateError* error, Origin* origin) {
    origin->system_identifier = GetSystemIdentifier();
    origin->timeline = GetWALInsertionTimeLine();
    return done(window_file_read(state, error, &origin->identity));
}

FileFailure server_look_failure;

bool Environment::LookAtState(WindowState* state, StateError* error) {
    server_look_failure = window_file_look(state, error);
    return server_look_failure.error == 0;
}
bool Environment::WriteState(const WindowState& state) {
    return done(window_file_write(state));
}
uint64 Environment::Marked(const Origin& origin) {
    return memory().leased ? held_marker_read(origin) : run_marker_read(origin);
}
bool Environment::Mark(const Origin& origin, uint64* mark) {
    return done(memory().leased ? held_marker_write(origin, mark) : run_marker_write(origin, mark));
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

SecretRecords Environment::Secrets() {
    return secret_records();
}
uint32 Environment::SecretCount() {
    return static_cast<uint32>(secret_ring().count());
}
void Environment::AddSecrets(const SecretList& list) {
    Assert(window_lock_held());
    secret_add_shared(list);
}
Second Environment::DecodeHorizon() {
    return {shared->decode_horizon.load(std::memory_order_relaxed)};
}
void Environment::SetDecodeHorizon(Second second) {
    Assert(window_lock_held());
    shared->decode_horizon.store(second.count, std::memory_order_relaxed);
}

void Environment::Report(const WindowTrouble& trouble) {
    window_record_trouble(trouble);
}
void Environment::LogStart(const StartPlan& plan, const WindowState& found, StateError error) {
    window_record_start(plan, found, error);
    node_claim_take();
}
void Environment::LogRange(uint32 before, Second now) {
    window_log_range(shared->memory.ranges, before, shared->memory.range, now);
}
void Environment::ShowRanges(uint32 range, const Second (&opens_at)[kMaxRanges]) {
    window_show_ranges(range, opens_at);
}
void Environment::Closing(const Window& window) {
    count_window_closed(window);
}
void Environment::ShowLeases(const Holder& holder) {
    lease_show(holder);
}

template class randflake::Server<ServerEnvironment>;

static ServerEnvironment environment;
constinit Server<ServerEnvironment> server{environment};

static FileFailure lock_failure;  // the reason why this postmaster lacks the marker's lock

namespace {
// The postmaster has no PGPROC and can take no lock, so its code must not call the functions below.
struct PostmasterEnvironment : ServerEnvironment {
    static void Lock() = delete;
    static bool TryLock() = delete;
    static void Unlock() = delete;

    static bool NoChildrenLeft() {
        if (IsUnderPostmaster)
            return false;
        for (uint32 i = 0; i < ProcGlobal->allProcCount; i++) {
            const int pid = ProcGlobal->allProcs[i].procLatch.owner_pid;
            if (pid != 0 && pid != MyProcPid && kill(pid, 0) == 0)
                return false;
        }
        return true;
    }
    static bool Logged(const FileFailure& failure) {
        if (failure.error != 0)
            window_log_failure(failure);
        return failure.error == 0;
    }
    static bool WriteState(const WindowState& state) { return Logged(window_file_write(state)); }
    static bool Mark(const Origin& origin, uint64* mark) {
        return Logged(run_marker_write(origin, mark));
    }
    static void LockMarker() {
        Origin origin{GetSystemIdentifier(), 0, {}};
        lock_failure = window_file_make(&origin.identity);
        if (lock_failure.error == 0)
            lock_failure = run_marker_lock(origin);
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

void server_init_shared() {
    static PostmasterMemory memory;
    skew_init_shared();
    static uint64_t boot_at_start[2];
    static TransactionId first_xid;
    if (!memory.started) {
        read_boot_id(memory.machine_boot);
        memcpy(boot_at_start, memory.machine_boot, sizeof boot_at_start);
        first_xid = mix_in_checkpoint(boot_at_start);
    }
    shared->first_xid = first_xid;
    const bool leased = setting_coordinator[0] != '\0';
    const NodeRanges ranges{{leased ? 0 : static_cast<uint32_t>(setting_node_id),
                             static_cast<uint32_t>(setting_node_count)},
                            leased ? 0 : 1 + static_cast<uint32_t>(setting_spare_ranges)};
    postmaster.MakeMemory(leased, ranges, boot_at_start, begins_in_recovery(), &memory);
    window_init_report();
    lease_init_report();
    if (leased)
        lease_report_unlocked(lock_failure);
    look_init_report();
    node_claim_open();
}

void server_stop() {
    uint64_t boot[2];
    read_boot_id(boot);
    (void)mix_in_checkpoint(boot);
    postmaster.Stop(boot);
}
