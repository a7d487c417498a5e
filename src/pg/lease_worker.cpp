// The lease worker: a background process that keeps this server's lease of node ids.
//
//   no lease       acquire one
//   lease          renew it at half its time
//   refused        acquire another; the old one stays good until its end, then the new one opens
//   no answer      try again, backing off; identifiers continue to the end of the lease
//   shutdown       seal the window, give the lease back with the last second used
//
// That a lease has ended, the coordinator says, not this server's clock: it refuses to renew. The
// window in shared memory is the lease (lease.h): opened and closed by this process alone, extended
// when a renewal is certain. Whatever this process misses, no identifier leaves the lease.

#include "pg/clock.h"
#include "pg/compat.h"
#include "pg/lease_client.h"
#include "pg/lease.h"
#include "pg/secret.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/timestamp.h"

using randflake::kRandflake;
using randflake::LeaseGrant;

extern "C" {
[[noreturn]] PGDLLEXPORT void randflake_lease_main(Datum argument);
}

// Milliseconds between attempts after a failure: doubled from the first to the last.
static constexpr int64 kFirstRetry = 250;
static constexpr int64 kLastRetry = 4000;

// The shortest time from one renewal to the next. Milliseconds.
static constexpr int64 kShortestHalf = 500;

// How often to look whether the next lease may be opened. Milliseconds.
static constexpr int64 kOpenInterval = 100;

// How long a shutdown waits for the coordinator to take the leases back. Milliseconds.
static constexpr int64 kReleaseTimeout = 1000;

// This process's view; shared memory has a copy.
static LeaseControl lease;
static int64 retry_interval;
static char logged_error[sizeof lease.error];

void lease_register_worker() {
    BackgroundWorker worker{};
    // A connection to no database shows the worker in pg_stat_activity.
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    // A standby never leases: whatever it needs, it asks for once it is promoted.
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = 1;
    strlcpy(worker.bgw_library_name, "randflake", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, "randflake_lease_main", sizeof worker.bgw_function_name);
    strlcpy(worker.bgw_name, "randflake lease worker", sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, "randflake lease worker", sizeof worker.bgw_type);
    RegisterBackgroundWorker(&worker);
}

// The one to renew.
static Lease* newest() {
    return lease.next.id != 0 ? &lease.next : &lease.open;
}

// --- what is wrong ---------------------------------------------------------------------------

// To the log when it is another message than last time, to the status always. Empty: nothing.
static void note(LeaseProblem problem, const char* message) {
    if (message != lease.error)
        strlcpy(lease.error, message, sizeof lease.error);
    lease.error_at = message[0] == '\0' ? 0 : GetCurrentTimestamp();
    if (problem != lease.problem)
        lease.problem_since = lease.error_at;
    lease.problem = problem;
    lease_publish(lease);
    if (strcmp(lease.error, logged_error) == 0)
        return;
    strlcpy(logged_error, lease.error, sizeof logged_error);
    if (lease.error[0] == '\0')
        ereport(LOG, (errmsg("leasing node ids works again")));
    else if (lease.open.id != 0 && wall_clock_seconds() < lease.open.end)
        ereport(LOG, (errmsg("%s", lease.error),
                      errdetail("Identifiers continue until the lease ends, at %s.",
                                second_text(lease.open.end))));
    else
        ereport(LOG,
                (errmsg("%s", lease.error), errdetail("This server cannot generate identifiers.")));
}

// A request that was given up because the worker has other things to do has not failed.
static void note_failure(LeaseProblem problem, const char* what, const char* why) {
    if (ShutdownRequestPending || ConfigReloadPending)
        return;
    snprintf(lease.error, sizeof lease.error, "%s: %s", what, why);
    note(problem, lease.error);
    retry_interval = retry_interval == 0 ? kFirstRetry : Min(retry_interval * 2, kLastRetry);
}

// The coordinator did what it was asked. What it gave may be of no use while the clocks disagree.
static void note_success() {
    const Lease& granted = *newest();
    const int64 now = wall_clock_seconds();
    retry_interval = 0;
    shared->counters.window_extensions.fetch_add(1, std::memory_order_relaxed);
    char message[sizeof lease.error] = "";
    if (now >= granted.end)
        snprintf(message, sizeof message,
                 "lease %lld has ended by this server's clock, but not by the coordinator's",
                 static_cast<long long>(granted.id));
    else if (now < granted.start)
        snprintf(message, sizeof message, "lease %lld begins at %s",
                 static_cast<long long>(granted.id), second_text(granted.start));
    note(message[0] == '\0' ? LeaseProblem::kNone : LeaseProblem::kClocks, message);
}

// --- requests --------------------------------------------------------------------------------

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
    static constexpr char kWhat[] = "could not lease node ids";
    LeaseGrant grant;
    pg_uuid_t incarnation;
    const int64 asked_at = steady_milliseconds();
    // Without a secret there would be a fingerprint too, that of no secret.
    if (!shared->has_key)
        return note_failure(LeaseProblem::kSettings, kWhat, "no secret is configured");
    if (!pg_strong_random(&incarnation, sizeof incarnation))
        return note_failure(LeaseProblem::kNotAsked, kWhat, "could not generate a random number");
    if (!lease_client_acquire(holder_name(), incarnation, setting_node_count,
                              setting_lease_duration, secret_fingerprint(shared->key), &grant))
        return note_failure(lease_client_problem(), kWhat, lease_client_error());
    if (!GrantUsable(kRandflake, grant, shared->slot_count))
        return note_failure(LeaseProblem::kUnusable, kWhat,
                            "the coordinator granted a lease that makes no sense");
    lease.next = Lease{grant.lease_id,
                       incarnation,
                       grant.first_node_id,
                       SecondOfUnix(kRandflake, grant.start),
                       SecondOfUnix(kRandflake, grant.end + 1),
                       false,
                       asked_at,
                       asked_at + (grant.end + 1 - grant.start) * 1000};
    note_success();
}

static void renew(Lease* held) {
    int64 end;
    const int64 asked_at = steady_milliseconds();
    if (!lease_client_renew(held->id, held->incarnation,
                            held->end + randflake::kWindowEpochSeconds - 1, setting_lease_duration,
                            &end)) {
        if (lease_client_problem() != LeaseProblem::kRefused)
            return note_failure(lease_client_problem(), "could not renew the lease of node ids",
                                lease_client_error());
        ereport(LOG, (errmsg("the coordinator does not renew lease %lld of node ids: %s",
                             static_cast<long long>(held->id), lease_client_error())));
        // An open lease stays good until its end.
        if (held == &lease.open)
            lease.open.refused = true;
        else
            lease.next = Lease{};
        return acquire();
    }
    const int64 new_end = RenewedEnd(kRandflake, held->end, end);
    held->asked_at = asked_at;
    held->lasts_until += (new_end - held->end) * 1000;
    held->end = new_end;
    if (held == &lease.open)
        lease_extend(lease);
    note_success();
}

static void act() {
    Lease* held = newest();
    if (setting_coordinator[0] == '\0')
        note_failure(LeaseProblem::kSettings, "could not lease node ids",
                     "\"randflake.coordinator\" is empty");
    else if (held->id != 0 && !held->refused)
        renew(held);
    else
        acquire();
}

static void give_back(const Lease& held, int64 sealed, int64 give_up_at) {
    if (held.id == 0 ||
        lease_client_release(held.id, held.incarnation, randflake::LastUsedUnix(held.start, sealed),
                             give_up_at - steady_milliseconds()))
        return;
    ereport(LOG, (errmsg("could not give lease %lld of node ids back: %s",
                         static_cast<long long>(held.id), lease_client_error()),
                  errdetail("It ends at %s.", second_text(held.end))));
}

static void release() {
    const LeaseControl held = lease;
    const int64 last = lease_seal(&lease);
    const int64 give_up_at = steady_milliseconds() + kReleaseTimeout;
    give_back(held.open, last, give_up_at);
    give_back(held.next, -1, give_up_at);
}

// --- the loop --------------------------------------------------------------------------------

static int64 random_up_to(int64 max) {
    return static_cast<int64>(
        pg_prng_uint64_range(&pg_global_prng_state, 0, static_cast<uint64>(max)));
}

// When to ask the coordinator next, on the clock that never steps, so that a step of the wall clock
// neither delays a renewal nor hurries it.
static int64 next_request_at() {
    if (retry_interval != 0)
        // Up to a quarter less, so that the holders of a coordinator that comes back spread out.
        return steady_milliseconds() + retry_interval - random_up_to(retry_interval / 4);
    const Lease& held = *newest();
    const int64 half =
        Max(Min((held.lasts_until - held.asked_at) / 2, int64{setting_lease_duration} * 500),
            kShortestHalf);
    return held.asked_at + half - random_up_to(half / 10);
}

static void open_when_due() {
    if (!lease_open_next(&lease))
        return;
    note(LeaseProblem::kNone, "");
    const Lease& opened = lease.open;
    ereport(LOG, (errmsg("leased node ids %lld to %lld from the coordinator",
                         static_cast<long long>(opened.first_node_id),
                         static_cast<long long>(opened.first_node_id + shared->slot_count - 1)),
                  errdetail("Lease %lld, from %s.", static_cast<long long>(opened.id),
                            second_text(opened.start))));
}

void randflake_lease_main(Datum) {
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    // There is no query to cancel. Not pqsignal, whose type differs since PostgreSQL 19.
    signal(SIGINT, SIG_IGN);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    CurrentResourceOwner = ResourceOwnerCreate(nullptr, "randflake lease worker");
    MemoryContext per_action =
        AllocSetContextCreate(TopMemoryContext, "randflake lease worker", ALLOCSET_SMALL_SIZES);

    // A worker that was restarted goes on with the leases of its predecessor.
    lease = lease_control();
    int64 request_at = steady_milliseconds();
    while (!ShutdownRequestPending) {
        CHECK_FOR_INTERRUPTS();  // what other backends wait for this one to notice
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
            request_at = steady_milliseconds();
        }
        if (steady_milliseconds() >= request_at) {
            MemoryContextSwitchTo(per_action);
            act();
            MemoryContextReset(per_action);
            request_at = next_request_at();
        }
        open_when_due();
        const int64 wake_at = lease.next.id == 0
                                  ? request_at
                                  : Min(request_at, steady_milliseconds() + kOpenInterval);
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                        static_cast<long>(Max(wake_at - steady_milliseconds(), 1)),
                        wait_event(kLeaseWaitEvent));
        ResetLatch(MyLatch);
    }
    MemoryContextSwitchTo(per_action);
    release();
    // Status 1, so that a worker that was merely terminated is started again.
    proc_exit(1);
}
