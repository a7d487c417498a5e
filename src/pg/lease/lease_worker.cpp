// Runs the lease worker, which maintains this server's leases of node ids. Its decisions come from
// core/lease/lease_holder.h and core/server/server.h. At shutdown it seals the window, and gives
// its leases back if the coordinator answers.

#include "pg/base/clock.h"
#include "pg/base/compat.h"
#include "pg/base/timestamp.h"
#include "pg/base/worker.h"
#include "pg/lease/lease_client.h"
#include "pg/lease/lease_look.h"
#include "pg/secret/secret.h"
#include "pg/server/environment.h"
#include "pg/settings/settings.h"

using namespace randflake;

extern "C" {
[[noreturn]] PGDLLEXPORT void randflake_lease_main(Datum argument);
}

static char logged_error[sizeof LeaseReport::error];

// Copies the leases under the window lock, because a session may open the next lease.
static LeaseHolder leases() { return server.Leases(); }

void lease_register_workers() {
    if (setting_coordinator[0] == '\0') return look_register_worker();
    // A standby starts the worker only at its promotion.
    BackgroundWorker worker =
        background_worker("randflake_lease_main", "randflake lease worker", 1);
    RegisterBackgroundWorker(&worker);
}

// Shows the problem in views, and logs the message if it is new. An empty message means no problem.
static void record(LeaseProblem problem, const char* message, UnixSecond not_before = {}) {
    const Lease open = leases().open();
    const LeaseProblem before = lease_report().problem;
    lease_record_problem(problem, message, not_before);
    if (strcmp(message, logged_error) == 0) return;
    strlcpy(logged_error, message, sizeof logged_error);
    // Does not log every change of the clocks' difference.
    if (problem == LeaseProblem::kClocks && before == problem) return;
    if (message[0] == '\0')
        ereport(LOG, (errmsg("leasing node ids works again")));
    else if (open.id != 0 && wall_clock_second() < open.end)
        ereport(LOG, (errmsg("%s", message),
                      errdetail("Identifiers continue until the lease ends, at %s.",
                                second_text(open.end))));
    else
        ereport(LOG,
                (errmsg("%s", message), errdetail("This server cannot generate identifiers.")));
}

static void record_problem(LeaseProblem problem, const char* what, const char* why,
                           UnixSecond not_before = {}) {
    char message[sizeof logged_error];
    snprintf(message, sizeof message, "%s: %s", what, why);
    record(problem, message, not_before);
}

// Records a failure, unless the request was abandoned for a shutdown or a reload.
static void record_failure(LeaseProblem problem, const char* what, const char* why,
                           UnixSecond not_before = {}) {
    if (ShutdownRequestPending || ConfigReloadPending) return;
    record_problem(problem, what, why, not_before);
}

// Records a success. Ignores kNothing, which says that new secrets made the answer void.
static void record_success(LeaseOutcome outcome, const CoordinatorClock& clock) {
    if (outcome == LeaseOutcome::kNothing) return;
    lease_record_clock(clock);
    const Lease granted = leases().newest();
    shared_slots->counters.window_extensions.fetch_add(1, std::memory_order_relaxed);
    if (outcome == LeaseOutcome::kGood) return record(LeaseProblem::kNone, "");
    char message[sizeof logged_error];
    const char* by = lease_clock_text(lease_report());
    snprintf(message, sizeof message, "lease %lld, from %s to %s, %s by this server's clock%s%s",
             static_cast<long long>(granted.id), second_text(granted.start),
             second_text(granted.end),
             outcome == LeaseOutcome::kOver       ? "has ended"
             : outcome == LeaseOutcome::kNotBegun ? "has not begun"
                                                  : "ends too late",
             by != nullptr ? ", which is " : "", by != nullptr ? by : "");
    record(LeaseProblem::kClocks, message);
}

// Clears the problem kClocks if the clock no longer prevents the use of the lease.
static void watch_clock() {
    const Lease held = leases().newest();
    const Second now = wall_clock_second();
    if (held.id != 0 && now >= held.start && now < held.end && !lease_clock_wrong(lease_report()))
        record(LeaseProblem::kNone, "");
}

static pg_uuid_t uuid_of(const Incarnation& incarnation) {
    pg_uuid_t uuid;
    static_assert(sizeof uuid == sizeof incarnation);
    memcpy(&uuid, &incarnation, sizeof uuid);
    return uuid;
}

static constexpr char kNotLeased[] = "could not lease node ids";
static constexpr char kNotRenewed[] = "could not renew the lease of node ids";

static void release_lease(const LeaseRelease& release, SteadyMs give_up_at_ms) {
    const Lease& held = release.lease;
    if (held.id == 0) return;
    const LeaseResult result =
        lease_client_release(held.id, uuid_of(held.incarnation), release.last_used,
                             (give_up_at_ms - steady_clock()).count);
    if (result.problem == LeaseProblem::kNone) return;
    ereport(LOG, (errmsg("could not give lease %lld of node ids back: %s",
                         static_cast<long long>(held.id), result.error),
                  errdetail("It ends at %s.", second_text(held.end))));
}

static void record_too_long(const char* what, const char* answer, Second end) {
    record_problem(LeaseProblem::kUnusable, what,
                   psprintf("the coordinator %s %s, but %d seconds were asked for at %s by this "
                            "server's clock",
                            answer, second_text(end), setting_lease_duration,
                            second_text(wall_clock_second())));
}

static void acquire(const LeaseQuestion& asked) {
    const LeaseResult result =
        lease_client_acquire(uuid_of(asked.request.incarnation), setting_node_count,
                             setting_lease_duration, asked.secrets);
    LeaseRelease declined{};
    const LeaseOutcome outcome = server.Answered(result.reply, &declined);
    if (result.problem != LeaseProblem::kNone)
        return record_failure(result.problem, kNotLeased, result.error, result.not_before);
    if (outcome == LeaseOutcome::kUnusable)
        return record_problem(LeaseProblem::kUnusable, kNotLeased,
                              "the coordinator granted a lease that makes no sense");
    if (declined.lease.id == 0) return record_success(outcome, result.clock);
    release_lease(declined, steady_clock() + kReleaseTimeout);
    record_too_long(kNotLeased, "granted a lease to", declined.lease.end);
}

// Returns false if the server needs a new lease instead of a renewal.
static bool renew(const LeaseQuestion& asked) {
    const LeaseRequest& request = asked.request;
    const LeaseResult result =
        lease_client_renew(request.lease_id, uuid_of(request.incarnation), request.expected_end,
                           setting_lease_duration, asked.secrets);
    const LeaseOutcome outcome = server.Answered(result.reply);
    if (result.reply.kind == LeaseReply::Kind::kRefused)
        ereport(LOG, (errmsg("the coordinator does not renew lease %lld of node ids: %s",
                             static_cast<long long>(request.lease_id), result.error)));
    else if (result.problem != LeaseProblem::kNone)
        record_failure(result.problem, kNotRenewed, result.error);
    else if (outcome == LeaseOutcome::kTooLong)
        record_too_long(kNotRenewed, "renewed it to",
                        EndOfUnix(kRandflake, result.reply.renewed_to));
    else
        record_success(outcome, result.clock);
    return outcome != LeaseOutcome::kReplace;
}

static void record_not_asked(LeaseProblem problem, const char* why) {
    (void)server.Answered({});
    record_failure(problem, kNotLeased, why);
}

static void renew_or_acquire() {
    if (setting_coordinator[0] == '\0')
        return record_not_asked(LeaseProblem::kSettings, "\"randflake.coordinator\" is empty");
    if (secret_ring().count() == 0)
        return record_not_asked(LeaseProblem::kSettings, "no secret is configured");
    for (bool again = true; again;) {
        Incarnation fresh;
        if (!pg_strong_random(&fresh, sizeof fresh))
            return record_not_asked(LeaseProblem::kNotAsked, "could not generate a random number");
        const LeaseQuestion asked = server.Ask(fresh);
        if (asked.request.kind == LeaseRequest::Kind::kNone)
            return record_not_asked(LeaseProblem::kNotAsked,
                                    "the state of its windows could not be read");
        const bool renews = asked.request.kind == LeaseRequest::Kind::kRenew;
        again = renews && !renew(asked);
        if (!renews) acquire(asked);
    }
}

static void release_all() {
    const Lease held = leases().newest();
    const bool answers = held.id != 0 && lease_client_probe(kProbeTimeout.count);
    const LeaseReleases releases = server.Seal(answers);
    if (held.id != 0 && releases.open.lease.id == 0 && releases.next.lease.id == 0)
        ereport(LOG, (errmsg("lease %lld of node ids is not given back",
                             static_cast<long long>(held.id)),
                      errhint("This server goes on with it if it starts again before %s and proves "
                              "that no other server has it.",
                              second_text(held.end))));
    const SteadyMs give_up_at_ms = steady_clock() + kReleaseTimeout;
    release_lease(releases.open, give_up_at_ms);
    release_lease(releases.next, give_up_at_ms);
}

// Gives back the next lease, whose node ids this server used while its clock was ahead.
static void give_used_back(Second used_until) {
    const Lease next = leases().next();
    char why[128];
    snprintf(why, sizeof why, "this server used node ids %lld to %lld itself, up to %s",
             static_cast<long long>(next.nodes.first),
             static_cast<long long>(next.nodes.first + shared_slots->slot_count - 1),
             second_text(used_until));
    release_lease(server.DropNext(), steady_clock() + kReleaseTimeout);
    (void)server.Answered({});
    record_problem(LeaseProblem::kUsed, "could not use the lease of node ids", why);
}

// Opens the next lease if it is due. Returns true if it drops the lease instead.
static bool open_or_drop_next() {
    static int64 opened_id;  // id of the last lease that was logged
    Second used_until;
    if (server.OpenLease(&used_until) == LeaseOpening::kUsed) {
        give_used_back(used_until);
        return true;
    }
    const Lease opened = lease_report().open;
    if (opened.id == opened_id) return false;
    opened_id = opened.id;
    if (opened.id == 0) return false;
    // Clears the reported problem, unless this server's clock is already past the lease's end.
    if (wall_clock_second() < opened.end) record(LeaseProblem::kNone, "");
    ereport(LOG, (errmsg("leased node ids %lld to %lld from the coordinator",
                         static_cast<long long>(opened.nodes.first),
                         static_cast<long long>(opened.nodes.first + shared_slots->slot_count - 1)),
                  errdetail("Lease %lld, from %s.", static_cast<long long>(opened.id),
                            second_text(opened.start))));
    return false;
}

static SteadyMs next_request_at_ms() {
    return leases().NextRequestAt(setting_lease_duration, pg_prng_uint64(&pg_global_prng_state),
                                  steady_clock());
}

// The worker sleeps at most this long while the clock prevents the use of a lease.
static constexpr Ms kClockInterval = 500;

void randflake_lease_main(Datum) {
    // The worker has no query to cancel. Avoids pqsignal(), whose type changed in PostgreSQL 19.
    signal(SIGINT, SIG_IGN);
    worker_start();
    CurrentResourceOwner = ResourceOwnerCreate(nullptr, "randflake lease worker");
    MemoryContext per_action =
        AllocSetContextCreate(TopMemoryContext, "randflake lease worker", ALLOCSET_SMALL_SIZES);

    lease_worker_started();
    SteadyMs request_at_ms = steady_clock();
    while (!ShutdownRequestPending) {
        CHECK_FOR_INTERRUPTS();  // answers barriers of other backends
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
            request_at_ms = steady_clock();
        }
        // Reports new secrets to the coordinator at once, so that problems appear early.
        if (steady_clock() >= request_at_ms ||
            shared_server->memory.named_secrets != static_cast<uint32>(secret_ring().count())) {
            MemoryContextSwitchTo(per_action);
            renew_or_acquire();
            MemoryContextReset(per_action);
            request_at_ms = next_request_at_ms();
        }
        if (open_or_drop_next()) request_at_ms = next_request_at_ms();
        const SteadyMs now_ms = steady_clock();
        Ms sleep = leases().WakeAt(request_at_ms, now_ms) - now_ms;
        const bool clocks_differ = lease_report().problem == LeaseProblem::kClocks;
        if (clocks_differ) {
            watch_clock();
            sleep = Min(sleep, kClockInterval);
        }
        worker_sleep(static_cast<long>(Max(sleep.count, 1)), wait_event(kLeaseWaitEvent));
    }
    MemoryContextSwitchTo(per_action);
    release_all();
    // With status 0, the postmaster would not restart a worker that pg_terminate_backend() ended.
    proc_exit(1);
}
