// Declares the library's shared memory.
//
// Protection:
//   slots[i].word, window   atomics; protocol in core/generation/generator.h
//   window_lock             see core/server/server.h; the only lock held during file operations, or
//                           for longer than a few instructions
//   memory                  window_lock; see ServerMemory
//   window_report           its own spinlock, a leaf
//   lease_report, look      each its own spinlock, a leaf
//   next_window_log_at_ms   window_lock
//   window_changed          broadcast after every change of the window
//   skew                    atomic; only the postmaster writes it
//   counters                atomics
//   lease_worker_pid        atomic; may be stale, or the pid of another process
//   rivals                  see RivalReport
//   decode_horizon          atomic; written under window_lock
//   secrets                 window_lock to add a secret; secrets below the atomic count need no
//                           lock, because they never change
//   other fields            written once, when shared memory is made; needs no lock
//
// Nothing here points into the memory of a process or into the library. With EXEC_BACKEND, the
// library's address differs among processes. A slot's word outlives the backends that use the slot.

#pragma once

#include "pg/base/pg.h"

#include <atomic>

#include "core/generation/generator.h"
#include "core/identifier/cipher.h"
#include "core/secret/secret_ring.h"
#include "pg/identifier/snowflake_layout.h"
#include "pg/memory/counters.h"
#include "pg/memory/lease_report.h"
#include "pg/memory/look_report.h"
#include "pg/memory/rival_report.h"
#include "pg/memory/window_report.h"

using AtomicWord = std::atomic<uint64_t>;
static_assert(AtomicWord::is_always_lock_free);

// Each slot has its own cache line, so that backends in different slots do not slow each other
// down. 64 bytes is the line size of x86-64 and most ARM processors.
struct alignas(64) Slot {
    AtomicWord word;
    AtomicWord finished;  // how many numbers were reserved before the word's second
};

// The oldest secret is the first.
struct SharedSecrets {
    std::atomic<int> count;  // 0: no secret is configured
    randflake::Generation generations[randflake::kMaxGenerations];
    randflake::Key keys[randflake::kMaxGenerations];
};

struct SharedState {
    SharedSecrets secrets;
    std::atomic<int64> decode_horizon;  // see secrets_read_decode_horizon(); 0: unknown
    uint32 slot_count;

    LWLock* window_lock;
    randflake::ServerMemory<randflake::LeaseHolder> memory;
    WindowReport window_report;
    randflake::SteadyMs next_window_log_at_ms;
    LeaseReport lease_report;
    LookReport look;
    FileFailure lock_failure;  // see lease_unlocked()
    TransactionId first_xid;   // of this run's start; invalid if the last run ended uncleanly
    std::atomic<int> lease_worker_pid;
    RivalReport rivals;
    ConditionVariable window_changed;
    AtomicWord skew;  // a SkewRange: smallest << 32 | largest

    Counters counters;

    alignas(64) AtomicWord window;
    // Randflake and Snowflake have slot_count slots each, and 53-bit numbers have up to 256.
    Slot slots[FLEXIBLE_ARRAY_MEMBER];
};

// This pointer is null in a server that has not preloaded the library.
extern SharedState* shared;

static inline bool window_lock_held() {
    return LWLockHeldByMeInMode(shared->window_lock, LW_EXCLUSIVE);
}

static inline Slot& randflake_slot(uint32 i) {
    return shared->slots[i];
}
static inline Slot& snowflake_slot(uint32 i) {
    return shared->slots[shared->slot_count + i];
}
static inline Slot& randflake53_slot(uint32 i) {
    return shared->slots[2 * shared->slot_count + i];
}

// Returns the server's secrets. Callers reserve numbers first, then read the ring; see UseReserved.
static inline randflake::SecretRing secret_ring() {
    return {shared->secrets.generations, shared->secrets.count.load(std::memory_order_acquire)};
}

// Calls `use` with the slots of all families, which share the window.
template <typename Use>
static inline auto with_slot_sets(Use&& use) {
    return use(randflake::SlotSet{randflake::kRandflake,
                                  [](uint32_t i) -> AtomicWord& { return randflake_slot(i).word; }},
               randflake::SlotSet{snowflake_layout,
                                  [](uint32_t i) -> AtomicWord& { return snowflake_slot(i).word; }},
               randflake::SlotSet{randflake::kRandflake53, [](uint32_t i) -> AtomicWord& {
                                      return randflake53_slot(i).word;
                                  }});
}

void shmem_request();

// Maps the memory. If this call creates the memory, it initializes slots and locks, zeroes all
// other fields, and returns true. The caller must hold AddinShmemInitLock, and fills the zeroed
// fields after the call.
bool shmem_attach();
