// A layout defines the bits of a family of identifiers: time, node id and sequence number. The time
// counts ticks since an epoch. Layouts are data, so tests run the same code with narrower fields.
// The compiler folds a constexpr layout away.
//
// A number has two forms. The raw number is always time | node id | sequence from the top bit down.
// So the raw numbers of one tick and node id are consecutive, and the generator counts in raw
// numbers. The identifier has each field at the position that the layout defines.
//
// Each second begins with a tick and has a whole number of ticks. So no tick spans two seconds.
//
// From 2041 on, a Randflake timestamp sets the highest of the 64 bits, so raw numbers are unsigned.

#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/base/time.h"

namespace randflake {

struct Fields {
    uint64_t timestamp;  // ticks since the layout's epoch
    uint64_t node_id;
    uint64_t sequence;

    friend constexpr bool operator==(const Fields&, const Fields&) = default;
};

// The fields have at most 64 bits in total. The end of the last tick fits in an int64_t.
struct Layout {
    int64_t epoch;  // Unix milliseconds at which tick 0 begins
    int timestamp_bits;
    int node_bits;
    int sequence_bits;         // at least 1
    int64_t unit = kSecondMs;  // milliseconds a tick

    // The position of each field's lowest bit in an identifier.
    int timestamp_shift = node_bits + sequence_bits;
    int node_shift = sequence_bits;
    int sequence_shift = 0;

    // If true, the lowest number of a second represents the second itself, and no server issues it.
    bool lowest_stands_for_second = false;

    constexpr bool tiles_seconds() const { return kSecondMs % unit == 0 && epoch % unit == 0; }

    constexpr int bits() const { return timestamp_bits + node_bits + sequence_bits; }
    constexpr bool HasBits(uint64_t number) const { return bits() == 64 || number >> bits() == 0; }
    constexpr uint64_t max_timestamp() const { return (uint64_t{1} << timestamp_bits) - 1; }
    constexpr uint64_t max_node_id() const { return (uint64_t{1} << node_bits) - 1; }
    constexpr uint64_t max_sequence() const { return (uint64_t{1} << sequence_bits) - 1; }

    // Returns the number of slots that a server with `node_ids` node ids has for this layout.
    constexpr uint32_t Slots(uint32_t node_ids) const noexcept {
        return node_ids <= max_node_id() ? node_ids : static_cast<uint32_t>(max_node_id() + 1);
    }

    constexpr bool StandsForSecond(const Fields& fields) const noexcept {
        return lowest_stands_for_second && fields.node_id == 0 && fields.sequence == 0;
    }

    // Returns the first sequence number that a server issues under a node id in each tick.
    constexpr uint64_t FirstSequence(uint64_t node_id) const noexcept {
        RANDFLAKE_ASSERT(node_id <= max_node_id());
        return StandsForSecond({0, node_id, 0}) ? 1 : 0;
    }

    constexpr bool Fits(const Fields& fields) const noexcept {
        return fields.timestamp <= max_timestamp() && fields.node_id <= max_node_id() &&
               fields.sequence <= max_sequence();
    }

    // Returns false, with *raw untouched, if a field does not fit.
    constexpr bool Pack(const Fields& fields, uint64_t* raw) const noexcept {
        if (!Fits(fields)) return false;
        *raw = fields.timestamp << (node_bits + sequence_bits) | fields.node_id << sequence_bits |
               fields.sequence;
        RANDFLAKE_ASSERT(Unpack(*raw) == fields);
        return true;
    }

    constexpr Fields Unpack(uint64_t raw) const noexcept {
        return {raw >> (node_bits + sequence_bits) & max_timestamp(),
                raw >> sequence_bits & max_node_id(), raw & max_sequence()};
    }

    // Returns an identifier. Within a tick and node id, identifiers increase by 2^sequence_shift.
    constexpr uint64_t ToId(uint64_t raw) const noexcept {
        RANDFLAKE_ASSERT(HasBits(raw));
        const Fields fields = Unpack(raw);
        return fields.timestamp << timestamp_shift | fields.node_id << node_shift |
               fields.sequence << sequence_shift;
    }

    constexpr Fields FieldsOfId(uint64_t id) const noexcept {
        RANDFLAKE_ASSERT(HasBits(id));
        return {id >> timestamp_shift & max_timestamp(), id >> node_shift & max_node_id(),
                id >> sequence_shift & max_sequence()};
    }

    // Returns whether identifiers sort by time.
    constexpr bool time_first() const { return timestamp_shift == node_bits + sequence_bits; }

    constexpr WallMs TickStart(uint64_t tick) const noexcept {
        return {epoch + static_cast<int64_t>(tick) * unit};
    }

    // Returns an instant's tick, which is negative before the epoch and can exceed max_timestamp().
    constexpr Tick TickAt(WallMs instant) const noexcept {
        const int64_t since = instant.count - epoch;
        return {unit == 1 ? since : FloorDivide(since, unit)};
    }

    // Returns whether a tick is before this second. Needs no division.
    constexpr bool Before(uint64_t tick, Second second) const noexcept {
        return TickStart(tick) < StartOf(second);
    }

    // Returns the first tick of a second. Returns 0 if the second begins before the epoch.
    constexpr uint64_t FirstTick(Second second) const noexcept {
        const int64_t since = StartOf(second).count - epoch;
        return since <= 0 ? 0 : static_cast<uint64_t>(since / unit);
    }

    // Returns the second that contains a tick. It is negative for ticks before kWindowEpoch.
    constexpr Second SecondOf(uint64_t tick) const noexcept {
        return randflake::SecondOf(TickStart(tick));
    }

    friend constexpr bool operator==(const Layout&, const Layout&) = default;
};

// Returns the first second that a layout cannot hold. The layout counts seconds since kWindowEpoch.
constexpr Second SecondsEnd(const Layout& layout) noexcept {
    RANDFLAKE_ASSERT(layout.unit == kSecondMs && layout.epoch == kWindowEpochMs);
    return {static_cast<int64_t>(layout.max_timestamp()) + 1};
}

// The constants equal those of the reference implementation, gosuda/randflake. The seconds run from
// 2024-10-27 03:33:20 UTC to 2058-11-05 17:10:23. In searches and partition bounds, the lowest
// number of a second represents the second itself.
inline constexpr Layout kRandflake{
    .epoch = kWindowEpochMs,
    .timestamp_bits = 30,
    .node_bits = 17,
    .sequence_bits = 17,
    .lowest_stands_for_second = true,
};

// A JavaScript number holds 53 bits. This layout has the same seconds as kRandflake.
inline constexpr Layout kRandflake53{
    .epoch = kWindowEpochMs,
    .timestamp_bits = 30,
    .node_bits = 8,
    .sequence_bits = 15,
};

// This second is later than the second of every identifier.
inline constexpr Second kNoSecond = SecondsEnd(kRandflake);

}  // namespace randflake
