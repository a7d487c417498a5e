// Describes the server's leases, as messages and views show them.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/lease_holder.h"
#include "pg/base/error_text.h"
#include "pg/window/file_identity.h"

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
    slock_t mutex;
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

void lease_init_report();

// Records and logs why this postmaster lacks the marker's lock; see lease_unlocked.
void lease_report_unlocked(const FileFailure& failure);
// Returns the problem that a later postmaster will not resume this server's leases, or none.
ErrorText lease_unlocked();

// Returns a copy of the report. Do not use the copy's mutex.
LeaseReport lease_report();

// Wakes the worker after secrets were added.
void lease_wake_worker();

void lease_show(const randflake::LeaseHolder& holder);

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
