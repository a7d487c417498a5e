// The lease of a server whose node ids come from a coordinator: what the worker and the generating
// backends share.
//
// A server has up to two leases: the open one, whose node ids are in the slots and whose time is
// the window, and the next one, which waits until its time has come and that of the open one is
// over. Windows follow each other in time (core/generator.h), so a lease is never left before its
// end for another, whoever granted that: also another coordinator may name the same node ids.

#ifndef RANDFLAKE_PG_LEASE_H
#define RANDFLAKE_PG_LEASE_H

#include "pg/pg.h"

#include "core/generator.h"

// Shown while the worker waits, for the coordinator or for the next renewal.
inline constexpr char kLeaseWaitEvent[] = "RandflakeLease";

// Kept in shared memory alone, so that a lease is never resumed after a restart or in a copy of the
// data directory.
struct Lease {
    int64 id;               // 0: no lease
    pg_uuid_t incarnation;  // random; whoever accepts it with the id has granted this very lease
    int64 first_node_id;
    int64 start;   // seconds since the epoch
    int64 end;     // exclusive
    bool refused;  // the coordinator renews it no more

    // steady_milliseconds: when the coordinator was asked, and when the lease ends if its start was
    // then. It may start later, so it never ends earlier, whatever the clocks show.
    int64 asked_at;
    int64 lasts_until;
};

// Why the worker's last attempt gave no lease that can be used now. Every caller of
// randflake_generate() may know this much; the text beside it is for pg_monitor and the log,
// because it names hosts and quotes the coordinator.
enum class LeaseProblem : uint8_t {
    kNone,
    kSettings,  // no secret, or no valid connection string
    kNotAsked,  // this server had no means to ask
    kNoAnswer,  // no connection, or none that lasted to the answer
    kRefused,   // the coordinator refuses
    kUnusable,  // it answered something else
    kClocks,    // it granted a time that is not now by this server's clock
};

// In shared memory, protected by the lease lock.
struct LeaseControl {
    Lease open;
    Lease next;

    LeaseProblem problem;
    TimestampTz problem_since;  // when the attempts began to end like this
    TimestampTz error_at;       // 0: nothing is wrong
    char error[512];            // printable UTF-8
};

// Asks the server for the worker; while the library is preloaded.
void lease_register_worker();

// A consistent copy, for messages and views.
LeaseControl lease_control();

// For the worker alone, who keeps the copy that it hands over: publish it, together with the window
// where that changes.
void lease_publish(const LeaseControl& control);

// The open lease has a later end.
void lease_extend(const LeaseControl& control);

// Makes the next lease the open one, if it is time. Whether it was.
bool lease_open_next(LeaseControl* control);

// Forgets both leases. Gives the last second used of the open one, negative for none; nothing
// beyond it was or ever will be used.
int64 lease_seal(LeaseControl* control);

#endif
