// Implements the environment of core/server/server.h with PostgreSQL's locks, files and memory.

#pragma once

#include "pg/base/pg.h"

#include "core/server/server.h"
#include "pg/base/clock.h"
#include "pg/secret/secret.h"
#include "pg/settings/settings.h"
#include "pg/slots/slots.h"
#include "pg/window/file_identity.h"

struct SharedServer {
    // See core/server/server.h. A process holds no other lock during file operations, or for longer
    // than a few instructions.
    LWLock* window_lock;
    randflake::ServerMemory<randflake::LeaseHolder> memory;  // see ServerMemory
    TransactionId first_xid;  // of this run's start; invalid if the last run ended uncleanly; fixed
    ConditionVariable window_changed;  // broadcast after every change of the window
};

// This pointer is null in a server that has not preloaded the library.
[[gnu::visibility("hidden")]] extern SharedServer* shared_server;

static inline bool window_lock_held() {
    return LWLockHeldByMeInMode(shared_server->window_lock, LW_EXCLUSIVE);
}

// randflake::Environment in core/server/server.h documents these calls. The files that report
// windows, leases, searches and rivals define the calls that concern them.
struct ServerEnvironment {
    using Decisions = randflake::Decisions;
    using Holder = Decisions::Holder;
    using SecretList = randflake::SecretList;

    static const randflake::Layout& layout() { return randflake::kRandflake; }
    static randflake::ServerMemory<Holder>& memory() { return shared_server->memory; }
    static AtomicWord& window() { return shared_slots->window; }
    template <typename Use> static void WithSlots(Use&& use) { with_slot_sets(use); }

    static void Lock() {
        Assert(!window_lock_held() && MyProc != nullptr);
        LWLockAcquire(shared_server->window_lock, LW_EXCLUSIVE);
    }
    static bool TryLock() {
        Assert(!window_lock_held());
        return LWLockConditionalAcquire(shared_server->window_lock, LW_EXCLUSIVE);
    }
    static void Unlock() { LWLockRelease(shared_server->window_lock); }
    static bool Locked() { return window_lock_held(); }
    static bool NoChildrenLeft() { return false; }  // only for the postmaster
    static void Wake();

    static randflake::Second Now() { return wall_clock_second(); }
    static randflake::Moment Present() { return {uptime_clock(), precise_wall_clock()}; }
    static randflake::SteadyMs Steady() { return steady_clock(); }
    static randflake::Ms SkewMs() { return setting_max_clock_skew; }
    static randflake::SkewRange Skew() { return setting_skew_range(); }
    static randflake::LeaseTerms Terms() {
        return {setting_lease_duration, setting_max_clock_skew};
    }
    static bool Generates() {
        return !RecoveryInProgress() && (setting_node_id >= 0 || memory().leased);
    }

    static bool ReadState(randflake::WindowState* state, randflake::StateError* error,
                          randflake::Origin* origin);
    static bool PeekAtState(randflake::WindowState* state, randflake::StateError* error);
    static bool WriteState(const randflake::WindowState& state);
    static uint64 ReadMarker(const randflake::Origin& origin);
    static bool SetMarker(const randflake::Origin& origin, uint64* number);
    static void LockMarker() {}  // only for the postmaster
    static uint64 RandomRun();

    static randflake::SecretRecords Secrets() { return secret_records(); }
    static uint32 SecretCount() { return static_cast<uint32>(secret_ring().count()); }
    static void AddSecrets(const randflake::SecretList& list);
    static randflake::Second DecodeHorizon() {
        return {shared_secrets->decode_horizon.load(std::memory_order_relaxed)};
    }
    static void SetDecodeHorizon(randflake::Second second);

    static void Look();
    static void Report(const randflake::WindowTrouble& trouble);
    static void LogStart(const randflake::StartPlan& plan, const randflake::WindowState& found,
                         randflake::StateError error);
    static void LogRange(uint32 before, randflake::Second now);
    static void ShowRanges(uint32 range,
                           const randflake::Second (&opens_at)[randflake::kMaxRanges]);
    static void Closing(const randflake::Window& window) {
        Assert(window_lock_held());
        count_window_closed(window);
    }
    static void ShowLeases(const Holder& holder);
    static void ClaimNodes();  // of LogStart
};

static_assert(randflake::Environment<ServerEnvironment>);
static_assert(randflake::DecidesAsShipped<ServerEnvironment>);

extern template class randflake::Server<ServerEnvironment>;

// Every process except the postmaster uses this.
extern randflake::Server<ServerEnvironment> server;

// PeekAtState stores its failure here. Each process has its own variable.
extern FileFailure server_peek_failure;

// The reason why this postmaster lacks the marker's lock.
extern FileFailure server_lock_failure;
