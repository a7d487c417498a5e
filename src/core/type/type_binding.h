// Decides whether a database's values of type randflake belong to the server's secrets, and what
// the server must do before it uses a value.
//
// A value depends on its own and all earlier generations (secret_ring.h). So a database needs an
// entry for each generation up to the generation of its newest value. The entries are in two
// tables, which have no order and may repeat an entry:
//
//   keys     the generations that values may have. Before a session makes a value or takes one as
//            input, it adds the entries of the value's generation and of earlier generations.
//   checks   the same entries. A restore loads both tables. If a server lacks an entry's secret,
//            its table of keys accepts the entry, and its table of checks refuses the entry.
//
// An entry that the ring lacks belongs to another ring. The two rings are equal up to some second,
// and decode identifiers of earlier seconds in the same way. So the server accepts only values of
// these seconds. The lowest number of a second stands for the second itself, and always belongs to
// the first generation.
//
// If an identifier's generation starts after the latest time that a clock within the tolerated
// difference can show, no server can have made the identifier. So the server refuses it as input.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/identifier/layout.h"
#include "core/secret/secret_records.h"
#include "core/secret/secret_ring.h"

namespace randflake {

// Reads an entry: 16 hexadecimal digits of the fingerprint. The entry of each secret except the
// first also has "@" and the Unix second at which the secret begins. Returns false for other texts.
bool ParseKeyEntry(const char* text, size_t length, SecretRecord* record) noexcept;

// Compares the rows of one table with a ring.
struct KeyRows {
    bool any;
    uint32_t found;   // bit i: the rows have generation i of the ring
    bool unreadable;  // some row is no entry, or `others` is too short
    int other_count;  // entries that the ring lacks, each once
    SecretRecord others[kMaxGenerations];

    // Adds a row. A database's owner can insert rows with any text. A row may omit the time of its
    // secret, because the fingerprint identifies the time too.
    void Add(const SecretRecords& ring, const char* text, size_t length) noexcept;

    bool HasOther(const SecretRecord& record) const noexcept;
};

enum class KeyDifference : uint8_t {
    kNone,
    kOther,      // the keys have an entry that the ring lacks, or an unreadable row
    kUnchecked,  // the checks refused an entry of the keys, so earlier input may have wrong values
};

struct TypeBinding {
    bool any;   // the tables have entries
    int bound;  // how many of the ring's first generations have entries
    KeyDifference difference;
    Second differs_from;  // first second in which tables and ring differ, or kNoSecond
};

// If `checks` is null, compares only the keys.
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
    bool former;            // if `locked`: the checks have entries that the ring lacks
    Second latest;          // the present second by the fastest clock of any server
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
    kFormer,       // like kUnbound, but the checks have entries of a dump or a former binding
    kMissing,      // this use cannot add the missing entry of the value's generation
    kParallel,     // like kMissing, in a parallel operation
    kNotMade,      // no server can have made the value yet
};

struct BoundValue {
    int generation;
    Second second;  // 0 for values that stand for a second
};

BoundValue BoundValueOf(const SecretRing& ring, uint64_t raw) noexcept;

// Returns the next step of a session that uses the type. For a whole column, ignores `value`.
BindingStep PlanBinding(const TypeBinding& binding, const SecretRecords& ring, TypeUse use,
                        const BoundValue& value, const TypePlace& place) noexcept;

// While the ring and the tables stay unchanged, a session can use all values whose seconds are
// before the returned second without reading the tables again.
Second CertainEnd(const TypeBinding& binding, const SecretRecords& ring) noexcept;

}  // namespace randflake
