// Implements the environment of core/server/server.h with PostgreSQL's locks, files and memory.

#pragma once

#include "pg/base/pg.h"

#include "core/secret/secret_file.h"
#include "core/server/server.h"
#include "pg/memory/shmem.h"

// randflake::Environment in core/server/server.h documents these calls.
struct ServerEnvironment {
    using Decisions = randflake::Decisions;
    using Holder = Decisions::Holder;
    using SecretList = randflake::SecretList;

    static const randflake::Layout& layout() { return randflake::kRandflake; }
    static randflake::ServerMemory<Holder>& memory() { return shared->memory; }
    static AtomicWord& window() { return shared->window; }
    template <typename Use>
    static void WithSlots(Use&& use) {
        with_slot_sets(use);
    }

    static void Lock();
    static bool TryLock();
    static void Unlock();
    static bool Locked();
    static bool NoChildrenLeft() { return false; }  // only for the postmaster
    static void Wake();

    static randflake::Second Now();
    static randflake::Moment Present();
    static randflake::SteadyMs Steady();
    static randflake::Ms SkewMs();
    static randflake::SkewRange Skew();
    static randflake::LeaseTerms Terms();
    static bool Generates();

    static bool ReadState(randflake::WindowState* state, randflake::StateError* error,
                          randflake::Origin* origin);
    static bool LookAtState(randflake::WindowState* state, randflake::StateError* error);
    static bool WriteState(const randflake::WindowState& state);
    static uint64 Marked(const randflake::Origin& origin);
    static bool Mark(const randflake::Origin& origin, uint64* mark);
    static void LockMarker() {}  // only for the postmaster
    static uint64 RandomRun();

    static randflake::SecretRecords Secrets();
    static uint32 SecretCount();
    static void AddSecrets(const randflake::SecretList& list);
    static randflake::Second DecodeHorizon();
    static void SetDecodeHorizon(randflake::Second second);

    static void Look() { look_start(); }
    static void Report(const randflake::WindowTrouble& trouble);
    static void LogStart(const randflake::StartPlan& plan, const randflake::WindowState& found,
                         randflake::StateError error);
    static void LogRange(uint32 before, randflake::Second now);
    static void ShowRanges(uint32 range,
                           const randflake::Second (&opens_at)[randflake::kMaxRanges]);
    static void Closing(const randflake::Window& window);
    static void ShowLeases(const Holder& holder);
};

static_assert(randflake::Environment<ServerEnvironment>);
static_assert(randflake::DecidesAsShipped<ServerEnvironment>);

extern template class randflake::Server<ServerEnvironment>;

// Every process except the postmaster uses this.
extern randflake::Server<ServerEnvironment> server;

// LookAtState stores its failure here. Each process has its own variable.
extern FileFailure server_look_failure;

// The postmaster calls server_init_shared after making the memory, and server_stop at a clean exit.
void server_init_shared();
void server_stop();
