// What messages and views show of the leases of a server whose node ids come from a coordinator.

#ifndef RANDFLAKE_PG_MEMORY_LEASE_REPORT_H
#define RANDFLAKE_PG_MEMORY_LEASE_REPORT_H

#include "pg/base/pg.h"

#include "core/lease/lease_holder.h"

// Shown while the worker waits, for the coordinator or for the next renewal.
inline constexpr char kLeaseWaitEvent[] = "RandflakeLease";

// Why the worker's last attempt gave no lease that can be used now. Every caller of
// randflake_generate() may know this much; the text beside it is for pg_monitor and the log,
// because it names hosts and quotes the coordinator.
enum class LeaseProblem : uint8_t {
    kNone,
    kSettings,  // no secret, or no valid connection string
    kNotAsked,  // this server had no means to ask
    kNoAnswer,  // no connection, or none that lasted to the answer
    kRefused,   // the coordinator refuses
    kSecrets,   // it does, or does not renew, because it does not agree about the secrets
    kUnusable,  // it answered something else
    kClocks,    // it granted a time that this server's clock keeps it from using
    kUsed,      // it granted node ids that this server used itself, up to a later second
};

// What is shown of the leases. In shared memory, protected by its own spinlock, so that neither
// messages nor the worker's notes ever wait for a disk.
struct LeaseReport {
    slock_t mutex;
    randflake::Lease open, next;  // of ServerMemory's holder

    LeaseProblem problem;
    TimestampTz problem_since;  // when the attempts began to end like this
    TimestampTz error_at;       // 0: nothing is wrong
    randflake::UnixSecond
        not_before;   // second before which the coordinator grants none; 0: unknown
    char error[512];  // printable UTF-8
    randflake::CoordinatorClock clock;  // when it last granted or renewed

    const randflake::Lease& newest() const { return next.id != 0 ? next : open; }
};

void lease_init_report();

// A copy of the report, for messages and views; its mutex means nothing.
LeaseReport lease_report();

// Lets the worker look around at once; after secrets were added.
void lease_wake_worker();

// Shows these leases from now on.
void lease_show(const randflake::LeaseHolder& holder);

// The seconds in which identifiers are made as long as sessions extend the window, which is in
// force: those of the open lease, as far as this server's clock allows.
randflake::Window lease_window(const LeaseReport& report, const randflake::Window& window);

// Whether this server's clock and the coordinator's differ by more than is tolerated, for certain.
bool lease_clock_wrong(const LeaseReport& report);

// By how much and in which direction, at present; null if they do not. palloc'd.
const char* lease_clock_text(const LeaseReport& report);

void lease_record_clock(const randflake::CoordinatorClock& clock);

// For the worker: what is wrong; an empty message: nothing.
void lease_record_problem(LeaseProblem problem, const char* message,
                          randflake::UnixSecond not_before);

#endif
