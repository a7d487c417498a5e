// The leases of a server whose node ids come from a coordinator: what the worker and the generating
// backends share.

#ifndef RANDFLAKE_PG_LEASE_H
#define RANDFLAKE_PG_LEASE_H

#include "pg/pg.h"

#include "core/lease_holder.h"

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
    kClocks,    // it granted a time that is not now by this server's clock
    kUsed,      // it granted node ids that this server used itself, up to a later second
};

// In shared memory, protected by the lease lock. The window is that of the holder's open lease, as
// far as its end is on disk.
struct LeaseControl {
    randflake::LeaseHolder holder;
    uint32 announced_end;  // of the open lease

    LeaseProblem problem;
    TimestampTz problem_since;  // when the attempts began to end like this
    TimestampTz error_at;       // 0: nothing is wrong
    int64 not_before;           // Unix second before which the coordinator grants none; 0: unknown
    char error[512];            // printable UTF-8
};

// A consistent copy, for messages and views.
LeaseControl lease_control();

// Lets the worker look around at once; after secrets were added.
void lease_wake_worker();

// The rest is for the worker alone, who keeps the copy that it hands over.

// Takes over what an answer changed in the holder. False, with nothing taken over, if there are
// more secrets by now than the request named: the leases were granted by those alone, and may reach
// beyond the time of one that was added. Who adds secrets looks at the leases under the same lock.
bool lease_take_over(const LeaseControl& control, int named_secrets);

// Publishes it, with the end that the open lease has by now, once that is on disk. False if it
// could not be written there: then the window keeps its end.
bool lease_publish(LeaseControl* control);

enum class LeaseOpening : uint8_t {
    kOpened,  // the next lease is the open one now
    kNotYet,  // there is none, or it is not time, or the disk cannot be written
    kUsed,    // this server used its node ids itself, up to the second `used_until` or later
};

// Makes the next lease the open one, if it is time. Its window begins after everything that this
// data directory ever announced for its node ids.
LeaseOpening lease_open_next(LeaseControl* control, uint32* used_until);

// Seals the window and forgets the leases: no identifier beyond what is reported was or ever will
// be made under them.
randflake::LeaseReleases lease_seal(LeaseControl* control);

#endif
