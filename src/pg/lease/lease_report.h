// Describes the server's leases, as messages and views show them.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/lease_holder.h"
#include "pg/base/error_text.h"

// The lease worker has this wait event while it waits for the coordinator or the next renewal.
inline constexpr char kLeaseWaitEvent[] = "RandflakeLease";

// Says why the worker's last attempt gave no usable lease. Every role may see this reason. Only
// pg_monitor and the log get LeaseReport::error, which names hosts and quotes the coordinator.
enum class LeaseProblem : uint8_t {
    kNone,
    kSettings,  // no secret, or no valid connection string
    kNotAsked,  // this server could not ask the coordinator
    kNoAnswer,  // no connection, or the connection ended before the answer
    kRefused,   // the coordinator refused
    kSecrets,   // the coordinator refuses or does not renew, because secrets differ
    kUnusable,  // the answer makes no sense to this server
    kClocks,    // this server's clock is outside the granted time
    kUsed,      // this server itself used the node ids until a later second
};

// This report is in shared memory. It has its own spinlock: readers must not wait for the window
// lock, whose holder may wait for the disk.
struct LeaseReport {
    randflake::Lease open, next;  // copies of the leases in ServerMemory

    LeaseProblem problem;
    TimestampTz problem_since;  // when attempts began to fail like this
    TimestampTz error_at;       // time of `error`; 0: no error
    randflake::UnixSecond
        not_before;   // the coordinator grants no lease before this second; 0: unknown
    char error[512];  // printable UTF-8
    randflake::CoordinatorClock clock;  // at the coordinator's last grant or renewal

    const randflake::Lease& newest() const { return next.id != 0 ? next : open; }
};

// Registers the lease worker, or for static node ids the launcher of the look for coordinators.
void lease_register_workers();

LeaseReport lease_report();

// Wakes the worker after secrets were added.
void lease_wake_worker();

// The worker calls this when it starts.
void lease_worker_started();

// Returns `window` with the latest end that the open lease and the clock let a session set.
randflake::Window lease_window(const LeaseReport& report, const randflake::Window& window);

// Returns true if the clocks of this server and the coordinator certainly differ too much.
bool lease_clock_wrong(const LeaseReport& report);

// Returns palloc'd text on how the clocks differ, or null if the difference is tolerable.
const char* lease_clock_text(const LeaseReport& report);

void lease_record_clock(const randflake::CoordinatorClock& clock);

// Records the worker's problem. An empty message means that there is none.
void lease_record_problem(LeaseProblem problem, const char* message,
                          randflake::UnixSecond not_before);

// Returns an empty text if this server's clock is near enough to the coordinator's. Otherwise
// returns the text `before`, followed by a sentence that states the difference.
const char* lease_wrong_clock(const LeaseReport& report, const char* before);

// Returns whether the open lease permits identifiers at this time.
bool lease_in_force(randflake::Second clock);

// Returns the error for a server with leased node ids that has no lease at this time.
ErrorText no_lease_error(randflake::Second clock);

// Returns a problem of the leases, or none. `in_force` is the window.
ErrorText lease_problem_error(randflake::Second now, const randflake::Window& in_force);
