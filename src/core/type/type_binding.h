// To which secrets the values of the type in a database belong, and what a use of the type needs.
//
// A value depends on its own generation and on earlier ones, never on later ones (secret_ring.h).
// So a database needs the entries of the generations up to the newest that a value in it has. Two
// tables hold entries, in any number and order:
//
//   keys     the generations that values may have. Making and input see to it that the entry of a
//            value's generation, and those of the earlier ones, are there before the value can be.
//   checks   the same entries. A restore brings both; where the server lacks the secret, the entry
//            is kept in the keys and refused here.
//
// A ring and an entry that it lacks differ from some second on. An identifier that the ring reads
// as an earlier second means the same to the server that added the entry: the generations of those
// seconds are the same, and no identifier of a later one is claimed by them. So earlier values are
// read, and the rest is refused. Values that stand for a second belong to the first generation.
//
// The clock binds nothing. It refuses, as input, identifiers of a generation that cannot have begun
// anywhere: a user has made them up.

#ifndef RANDFLAKE_CORE_TYPE_TYPE_BINDING_H
#define RANDFLAKE_CORE_TYPE_TYPE_BINDING_H

#include <cstddef>
#include <cstdint>

#include "core/identifier/layout.h"
#include "core/secret/secret_ring.h"
#include "core/window/window_state.h"

namespace randflake {

// An entry as text: 16 hexadecimal digits of the fingerprint; from the second secret on, "@" and
// the Unix second from which on it is in use. False, with *record untouched, if it is none.
bool ParseKeyEntry(const char* text, size_t length, SecretRecord* record) noexcept;

// The rows of one of the tables, compared with a ring.
struct KeyRows {
    bool any;
    uint32_t found;   // bit i: generation i of the ring is there
    bool unreadable;  // there is one that is no entry, or there are too many others
    int other_count;  // entries that the ring lacks, each once
    SecretRecord others[kMaxGenerations];

    // Adds a row. A database's owner can insert any text. A fingerprint covers its time, so it may
    // come without.
    void Add(const SecretRecords& ring, const char* text, size_t length) noexcept;

    bool HasOther(const SecretRecord& record) const noexcept;
};

enum class KeyDifference : uint8_t {
    kNone,
    kOther,      // the keys have an entry that the ring lacks
    kUnchecked,  // an entry of the keys was refused by the checks: what came before it was read
                 // without its secret, and stays wrong
};

// What the tables say to a server.
struct TypeBinding {
    bool any;   // there are entries
    int bound;  // generations of the ring that are there, from the first one on
    KeyDifference difference;
    Second differs_from;  // first second about which table and ring differ, or kNoSecond
};

// `checks` is null where only the keys may be read.
TypeBinding CompareKeys(const SecretRecords& ring, const KeyRows& keys,
                        const KeyRows* checks) noexcept;

// What is done with a value, or with values.
enum class TypeUse : uint8_t {
    kMake,
    kInput,    // casts to the type included
    kNoValue,  // the input of an identifier that the ring reads as made by no secret
    kOutput,   // casts from the type included
    kSort,
    kBuildIndex,
};

// Where it is done.
struct TypePlace {
    bool decoding;        // under the historic snapshot of logical decoding
    bool worker;          // in a parallel worker
    bool parallel;        // in a parallel operation, which cannot write: of the leader or a worker
    bool stores_nothing;  // on a standby, or in a read-only transaction
    bool may_bind_first;  // the role may bind a database that has no entry
    bool locked;          // both tables are, against others that add entries
    bool former;          // while locked: the checks have entries that the ring lacks
    Second latest;        // of the latest clock that a server may have
    Second decode_horizon;  // from this second on the server knows that it lacks a secret
};

enum class BindingStep : uint8_t {
    kGo,
    kAdd,   // the entries of the generations up to the value's, to both tables; then ask again
    kLock,  // both tables; then read them and ask again

    // Errors
    kDiffers,      // table and ring differ about the value; see TypeBinding.difference
    kLacksSecret,  // the server knows that it lacks a secret that the value may have
    kUnbound,      // the database has no entry, and none can be added here
    kFormer,       // it has none, and what a dump or a former binding has left is in the checks
    kMissing,      // the entry of the value's generation is missing, and this use adds none
    kParallel,     // the same, and a parallel operation cannot add it
    kNotMade,      // no server can have made it yet
};

struct BoundValue {
    int generation;
    Second second;  // 0 of values that stand for a second: they belong to the first generation
};

BoundValue BoundValueOf(const SecretRing& ring, uint64_t raw) noexcept;

// Of the uses that concern no single value, `value` is not looked at.
BindingStep PlanBinding(const TypeBinding& binding, const SecretRecords& ring, TypeUse use,
                        const BoundValue& value, const TypePlace& place) noexcept;

// Every value of a second before this one can be made, read in and shown without a further look,
// for as long as ring and tables stay.
Second CertainEnd(const TypeBinding& binding, const SecretRecords& ring) noexcept;

}  // namespace randflake

#endif
