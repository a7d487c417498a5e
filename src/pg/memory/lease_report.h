// Reports leases to messages and views, in a server that leases its node ids.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/lease_holder.h"

// The worker's wait event while it waits for the coordinator or the next renewal.
inline constexpr char kLeaseWaitEvent[] = "RandflakeLease";

// Says why the worker's last attempt gave no usable lease. Every caller may see this reason. The
// text beside it names hosts and quotes the coordinator: only pg_monitor and the log get that.
enum class LeaseProblem : uint8_t {
    kNone,
    kSettings,  // no secret, or no valid connection string
    kNotAsked,  // this server could not ask
    kNoAnswer,  // no connection, or the connection ended before the answer
    kRefused,   // the coordinator refuses
    kSecrets,   // the coordinator refuses or does not renew, because secrets differ
    kUnusable,  // this server does not understand the answer
    kClocks,    // this server's clock is outside the granted time
    kUsed,      // this server itself used the node ids up to a later second
};

// This report is in shared memory. A spinlock of its own protects it: neither messages nor the
// worker wait for a disk.
struct LeaseReport {
    slock_t mutex;
    randflake::Lease open, next;  // of ServerMemory's holder

    LeaseProblem problem;
    TimestampTz problem_since;  // when attempts began to fail like this
    TimestampTz error_at;       // 0: none
    randflake::UnixSecond
        not_before;   // second before which the coordinator grants none; 0: unknown
    char error[512];  // printable UTF-8
    randflake::CoordinatorClock clock;  // at the coordinator's last grant or renewal

    const randflake::Lease& newest() const { return next.id != 0 ? next : open; }
};

void lease_init_report();

// Returns a copy of the report, for messages and views; do not use its mutex.
LeaseReport lease_report();

// Wakes the worker after an addition of secrets.
void lease_wake_worker();

void lease_show(const randflake::LeaseHolder& holder);

// Returns the seconds in which the server can make identifiers while sessions extend the window in
// force: those of the open lease, as far as this server's clock allows.
randflake::Window lease_window(const LeaseReport& report, const randflake::Window& window);

// Returns whether this server's and the coordinator's clock certainly differ intolerably.
bool lease_clock_wrong(const LeaseReport& report);

// Returns by how much and in which direction the clocks differ; null if tolerable; palloc'd.
const char* lease_clock_text(const LeaseReport& report);

void lease_record_clock(const randflake::CoordinatorClock& clock);

// For the worker: records its problem; an empty message means none.
void lease_record_problem(LeaseProblem problem, const char* message,
                          randflake::UnixSecond not_before);
