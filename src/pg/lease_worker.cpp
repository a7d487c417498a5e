// The lease worker: a background process that keeps this server's lease of node ids.
//
//   no lease       acquire one; wait for its start while an older one still has time
//   lease          renew it at half its time; refused: acquire another, the old one stays good
//                  until its end
//   no answer      try again, backing off; identifiers continue to the end of the lease
//   lease ended    the coordinator says so, not this server's clock: it refuses to renew
//   shutdown       seal the window, give the lease back with the last second used
//
// The window in shared memory is the lease: opened and closed by this process alone, extended when
// a renewal is certain. Whatever this process misses, no identifier leaves the lease.

#include "pg/lease.h"

#include "pg/clock.h"
#include "pg/compat.h"
#include "pg/coordinator.h"
#include "pg/secret.h"
#include "pg/settings.h"
#include "pg/shmem.h"

using randflake::kRandflake;
using randflake::Window;

extern "C" {
[[noreturn]] PGDLLEXPORT void randflake_lease_main(Datum argument);
}

// Milliseconds between attempts after a failure: doubled from the first to the last.
static constexpr int64 kFirstRetry = 250;
static constexpr int64 kLastRetry = 4000;

// How long a shutdown waits for the coordinator to take the lease back. Milliseconds.
static constexpr int64 kReleaseTimeout = 1000;

// This process's view; shared memory has the part that others may see.
static LeaseControl lease;
static int64 lease_asked_at;  // steady_milliseconds of the request that gave the current end
static LeaseGrant pending;    // granted, but starts later than the current one may be used
static bool has_pending;
static int64 retry_interval;
static char logged_error[sizeof lease.error];

void lease_init(LeaseControl* control) {
    *control = LeaseControl{};
    if (!pg_strong_random(&control->incarnation, sizeof control->incarnation))
        ereport(FATAL, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("could not generate a random incarnation number")));
}

LeaseControl lease_control() {
    LWLockAcquire(shared->lease_lock, LW_SHARED);
    const LeaseControl copy = shared->lease_control;
    LWLockRelease(shared->lease_lock);
    return copy;
}

void lease_register_worker() {
    BackgroundWorker worker{};
    // A connection to no database shows the worker in pg_stat_activity.
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    // A standby never leases: whatever it needs, it asks for once it is promoted.
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = 5;
    strlcpy(worker.bgw_library_name, "randflake", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, "randflake_lease_main", sizeof worker.bgw_function_name);
    strlcpy(worker.bgw_name, "randflake lease worker", sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, "randflake lease worker", sizeof worker.bgw_type);
    RegisterBackgroundWorker(&worker);
}

static AtomicWord& slot_word(uint32_t i) {
    return shared->slots[i].word;
}

static void publish_lease() {
    LWLockAcquire(shared->lease_lock, LW_EXCLUSIVE);
    shared->lease_control = lease;
    LWLockRelease(shared->lease_lock);
    ConditionVariableBroadcast(&shared->window_changed);
}

static bool lease_usable_now() {
    return lease.held && wall_clock_seconds() < lease.end;
}

// The message goes to the log when it is another one than last time, and to the status always.
static void note_failure(const char* what, const char* why) {
    snprintf(lease.error, sizeof lease.error, "%s: %s", what, why);
    lease.error_at = GetCurrentTimestamp();
    publish_lease();
    if (strcmp(lease.error, logged_error) != 0) {
        strlcpy(logged_error, lease.error, sizeof logged_error);
        ereport(LOG,
                (errmsg("%s", lease.error),
                 lease_usable_now() ? errdetail("Identifiers continue until the lease ends, at %s.",
                                                timestamptz_to_str(timestamp_of_second(lease.end)))
                                    : errdetail("This server cannot generate identifiers.")));
    }
    retry_interval = retry_interval == 0 ? kFirstRetry : Min(retry_interval * 2, kLastRetry);
}

static void note_success() {
    if (logged_error[0] != '\0')
        ereport(LOG, (errmsg("the coordinator answers again")));
    logged_error[0] = '\0';
    lease.error[0] = '\0';
    lease.error_at = 0;
    retry_interval = 0;
}

// Seconds since the epoch of a second the coordinator named; outside what identifiers can hold
// means that its clock is wrong, and becomes a window that never opens.
static int64 second_of_unix(int64 unix_seconds) {
    return Min(Max(unix_seconds - kRandflake.epoch, 0),
               static_cast<int64>(kRandflake.max_timestamp()) + 1);
}

// The rectangle is the coordinator's promise; this server only checks that it can be used.
static bool usable(const LeaseGrant& grant) {
    return grant.node_count == shared->slot_count && grant.first_node_id >= 0 &&
           grant.first_node_id + grant.node_count <=
               static_cast<int64>(kRandflake.max_node_id()) + 1 &&
           grant.start <= grant.end && second_of_unix(grant.start) >= 1;
}

static void open_lease(const LeaseGrant& grant) {
    lease.held = true;
    lease.lease_id = grant.lease_id;
    lease.first_node_id = grant.first_node_id;
    lease.start = second_of_unix(grant.start);
    lease.end = second_of_unix(grant.end + 1);
    has_pending = false;

    count_window_closed(Window::FromWord(shared->window.exchange(Window{0, 0}.ToWord())));
    ChangeWindow(kRandflake, slot_word, shared->slot_count,
                 static_cast<uint64_t>(lease.first_node_id), shared->window,
                 Window{static_cast<uint32_t>(lease.start), static_cast<uint32_t>(lease.end)});
    publish_lease();
    ereport(LOG, (errmsg("leased node ids %lld to %lld from the coordinator",
                         static_cast<long long>(lease.first_node_id),
                         static_cast<long long>(grant.first_node_id + grant.node_count - 1)),
                  errdetail("Lease %lld, from %s.", static_cast<long long>(lease.lease_id),
                            timestamptz_to_str(timestamp_of_second(lease.start)))));
}

static const char* holder_name() {
    static char name[NAMEDATALEN * 2];
    if (cluster_name[0] != '\0')
        return cluster_name;
    char host[NAMEDATALEN];
    if (gethostname(host, sizeof host) != 0)
        strlcpy(host, "unknown", sizeof host);
    host[sizeof host - 1] = '\0';
    snprintf(name, sizeof name, "%s:%d", host, PostPortNumber);
    return name;
}

static void acquire() {
    LeaseGrant grant;
    const int64 asked_at = steady_milliseconds();
    if (!coordinator_acquire(holder_name(), lease.incarnation, setting_node_count,
                             setting_lease_duration, secret_key_check(shared->key), &grant)) {
        note_failure("could not lease node ids", coordinator_error());
        return;
    }
    if (!usable(grant)) {
        note_failure("could not lease node ids",
                     "the coordinator granted a lease that makes no sense");
        return;
    }
    note_success();
    shared->counters.window_extensions.fetch_add(1, std::memory_order_relaxed);
    lease_asked_at = asked_at;
    if (grant.end - grant.start + 1 < setting_lease_duration)
        ereport(LOG, (errmsg("the coordinator leases node ids for %lld seconds instead of %d",
                             static_cast<long long>(grant.end - grant.start + 1),
                             setting_lease_duration)));
    if (lease_usable_now() && second_of_unix(grant.start) > wall_clock_seconds()) {
        pending = grant;
        has_pending = true;
        publish_lease();
        return;
    }
    open_lease(grant);
}

static void renew() {
    int64 end;
    const int64 asked_at = steady_milliseconds();
    if (!coordinator_renew(lease.lease_id, lease.incarnation, lease.end + kRandflake.epoch - 1,
                           setting_lease_duration, &end)) {
        note_failure("could not renew the lease of node ids", coordinator_error());
        // Refused means that this lease will not be renewed any more; it stays good to its end.
        if (coordinator_refused())
            acquire();
        return;
    }
    note_success();
    shared->counters.window_extensions.fetch_add(1, std::memory_order_relaxed);
    lease_asked_at = asked_at;
    lease.end = Max(lease.end, second_of_unix(end + 1));
    const Window window = Window::FromWord(shared->window.load());
    shared->window.store(Window{window.start, static_cast<uint32_t>(lease.end)}.ToWord(),
                         std::memory_order_release);
    publish_lease();
}

static int64 random_up_to(int64 max) {
    return static_cast<int64>(
        pg_prng_uint64_range(&pg_global_prng_state, 0, static_cast<uint64>(max)));
}

// Milliseconds until there is something to do, measured on the clock that never steps, so that a
// step of the wall clock neither delays a renewal nor hurries it.
static int64 time_to_next_action() {
    if (retry_interval != 0)
        // Up to a quarter less, so that the holders of a coordinator that comes back spread out.
        return retry_interval - random_up_to(retry_interval / 4);
    if (has_pending)
        return 100;
    const int64 half = Max(int64{setting_lease_duration} * 500, 500);
    const int64 jitter = random_up_to(half / 10);
    return Max(lease_asked_at + half - jitter - steady_milliseconds(), 0);
}

static void act() {
    if (setting_coordinator[0] == '\0') {
        note_failure("could not lease node ids", "\"randflake.coordinator\" is empty");
    } else if (has_pending) {
        if (!lease_usable_now() || second_of_unix(pending.start) <= wall_clock_seconds())
            open_lease(pending);
    } else if (lease.held) {
        renew();
    } else {
        acquire();
    }
}

static void release() {
    if (!lease.held)
        return;
    const int64 last = SealWindow(kRandflake, slot_word, shared->slot_count, shared->window);
    lease.held = false;
    publish_lease();
    if (!coordinator_release(
            lease.lease_id, lease.incarnation,
            last < 0 ? lease.start + kRandflake.epoch - 1 : last + kRandflake.epoch,
            kReleaseTimeout))
        ereport(LOG,
                (errmsg("could not give the lease of node ids back: %s", coordinator_error()),
                 errdetail("It ends at %s.", timestamptz_to_str(timestamp_of_second(lease.end)))));
}

void randflake_lease_main(Datum) {
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGINT, SIG_IGN);  // there is no query to cancel
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    CurrentResourceOwner = ResourceOwnerCreate(nullptr, "randflake lease worker");
    MemoryContext per_action =
        AllocSetContextCreate(TopMemoryContext, "randflake lease worker", ALLOCSET_SMALL_SIZES);

    // A worker that was restarted goes on with the lease of its predecessor.
    lease = lease_control();
    int64 next_action_at = steady_milliseconds();
    while (!ShutdownRequestPending) {
        CHECK_FOR_INTERRUPTS();  // what other backends wait for this one to notice
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
            coordinator_disconnect();
            next_action_at = steady_milliseconds();
        }
        if (steady_milliseconds() >= next_action_at) {
            MemoryContextSwitchTo(per_action);
            act();
            MemoryContextReset(per_action);
            next_action_at = steady_milliseconds() + time_to_next_action();
        }
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                        static_cast<long>(Max(next_action_at - steady_milliseconds(), 1)),
                        wait_event(kLeaseWaitEvent));
        ResetLatch(MyLatch);
    }
    MemoryContextSwitchTo(per_action);
    release();
    // Status 1, so that a worker that was merely terminated is started again.
    proc_exit(1);
}
