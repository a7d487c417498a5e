// The bit layout of a raw identifier: timestamp | node id | sequence, from the top bit down.
//
// A layout is data: every function takes it as an argument, and with a constexpr layout the
// compiler folds it away. Tests explore the generator at reduced widths through the same code.
//
// Raw numbers are unsigned 64-bit everywhere. From 2041 on the top bit of the timestamp is set, so
// a signed intermediate would go negative.

#ifndef RANDFLAKE_CORE_LAYOUT_H
#define RANDFLAKE_CORE_LAYOUT_H

#include <cstdint>

namespace randflake {

struct Fields {
    uint64_t timestamp;  // seconds since the layout's epoch
    uint64_t node_id;
    uint64_t sequence;

    friend constexpr bool operator==(const Fields&, const Fields&) = default;
};

struct Layout {
    int64_t epoch;  // Unix seconds of timestamp 0
    int timestamp_bits;
    int node_bits;
    int sequence_bits;

    constexpr uint64_t max_timestamp() const { return (uint64_t{1} << timestamp_bits) - 1; }
    constexpr uint64_t max_node_id() const { return (uint64_t{1} << node_bits) - 1; }
    constexpr uint64_t max_sequence() const { return (uint64_t{1} << sequence_bits) - 1; }

    constexpr bool Fits(const Fields& fields) const noexcept {
        return fields.timestamp <= max_timestamp() && fields.node_id <= max_node_id() &&
               fields.sequence <= max_sequence();
    }

    // Range-checks, then packs. False, with *raw untouched, when a field does not fit.
    constexpr bool Pack(const Fields& fields, uint64_t* raw) const noexcept {
        if (!Fits(fields))
            return false;
        *raw = fields.timestamp << (node_bits + sequence_bits) | fields.node_id << sequence_bits |
               fields.sequence;
        return true;
    }

    constexpr Fields Unpack(uint64_t raw) const noexcept {
        return {raw >> (node_bits + sequence_bits) & max_timestamp(),
                raw >> sequence_bits & max_node_id(), raw & max_sequence()};
    }
};

// Randflake: 30 + 17 + 17 bits; seconds since 2024-10-27 03:33:20 UTC, through 2058-11-05 17:10:23.
// Source: the constants of the reference implementation, gosuda/randflake.
inline constexpr Layout kRandflake{1730000000, 30, 17, 17};

}  // namespace randflake

#endif
