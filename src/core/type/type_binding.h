// Decides to which secrets a database's values of the type belong, and what a use needs.
//
// A value depends on its own generation and on earlier ones, never on later ones (secret_ring.h).
// So a database needs the entries of all generations up to that of its newest value. Two tables
// hold entries, in any number and order:
//
//   keys     the generations that values may have. Before a session makes or reads in a value, it
//            adds the entries of the value's generation and of the earlier ones.
//   checks   the same entries. A restore loads both tables. A server without the secret keeps the
//            entry in the keys and refuses it in the checks.
//
// A ring and an entry that it lacks differ from a second on. Before that second, ring and entry
// have the same generations. So an identifier that the ring reads as an earlier second means the
// same to the server that added the entry, and that server reads no later identifier as this
// second. So earlier values stay readable, and the server refuses the rest. Values that stand for a
// second belong to the first generation.
//
// The clock binds nothing. By the clock, the server refuses input of identifiers whose generation
// cannot have begun on any server: a user made them up.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/identifier/layout.h"
#include "core/secret/secret_ring.h"
#include "core/window/window_state.h"

namespace randflake {

// Reads an entry: 16 hexadecimal digits of the fingerprint. From the second secret on, "@" and the
// Unix second at which it begins follow. False leaves *record untouched.
bool ParseKeyEntry(const char* text, size_t length, SecretRecord* record) noexcept;

// Compares the rows of one table with a ring.
struct KeyRows {
    bool any;
    uint32_t found;   // bit i: the rows have generation i of the ring
    bool unreadable;  // some row is not an entry, or too many rows are others
    int other_count;  // entries that the ring lacks, each once
    SecretRecord others[kMaxGenerations];

    // Adds a row of arbitrary text, which a database's owner can insert. The text may lack the
    // time, since the fingerprint covers it.
    void Add(const SecretRecords& ring, const char* text, size_t length) noexcept;

    bool HasOther(const SecretRecord& record) const noexcept;
};

enum class KeyDifference : uint8_t {
    kNone,
    kOther,      // the keys have an entry that the ring lacks
    kUnchecked,  // the checks refused an entry of the keys: earlier input was read without its
                 // secret and stays wrong
};

struct TypeBinding {
    bool any;   // the tables have entries
    int bound;  // leading generations of the ring that have entries
    KeyDifference difference;
    Second differs_from;  // first second in which tables and ring differ, or kNoSecond
};

// `checks` is null where only the keys are readable.
TypeBinding CompareKeys(const SecretRecords& ring, const KeyRows& keys,
                        const KeyRows* checks) noexcept;

enum class TypeUse : uint8_t {
    kMake,
    kInput,    // casts to the type included
    kNoValue,  // input of an identifier that none of the ring's secrets made
    kOutput,   // casts from the type included
    kSort,
    kBuildIndex,
};

struct TypePlace {
    bool decoding;          // under the historic snapshot of logical decoding
    bool worker;            // in a parallel worker
    bool parallel;          // leader or worker of a parallel operation, which cannot write
    bool stores_nothing;    // on a standby, or in a read-only transaction
    bool may_bind_first;    // the role may bind a database that has no entry
    bool locked;            // this session has locked both tables against new entries
    bool former;            // with `locked`: the checks have entries that the ring lacks
    Second latest;          // by the latest clock that any server may have
    Second decode_horizon;  // the server knows that it lacks a secret from this second on
};

enum class BindingStep : uint8_t {
    kGo,
    kAdd,   // add entries up to the value's generation to both tables; ask again
    kLock,  // lock and read both tables; ask again

    // Errors
    kDiffers,      // see TypeBinding.difference
    kLacksSecret,  // the server knows that it may lack the value's secret
    kUnbound,      // the database has no entry, and this use cannot add an entry
    kFormer,       // the same, and the checks have entries of a dump or a former binding
    kMissing,      // this use cannot add the missing entry of the value's generation
    kParallel,     // the same, in a parallel operation
    kNotMade,      // no server can have made the value yet
};

struct BoundValue {
    int generation;
    Second second;  // 0 for values that stand for a second
};

BoundValue BoundValueOf(const SecretRing& ring, uint64_t raw) noexcept;

// Ignores `value` for uses that concern no single value.
BindingStep PlanBinding(const TypeBinding& binding, const SecretRecords& ring, TypeUse use,
                        const BoundValue& value, const TypePlace& place) noexcept;

// While ring and tables stay unchanged, a session may make, read in and show values of every second
// before this one without another look.
Second CertainEnd(const TypeBinding& binding, const SecretRecords& ring) noexcept;

}  // namespace randflake
