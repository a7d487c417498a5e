// Describes the bits of a family of identifiers: time, node id and sequence number. The time counts
// ticks of a unit since an epoch.
//
// A layout is data: functions take it as an argument, and the compiler optimizes a constexpr layout
// away. Tests run the same code with narrower fields.
//
// A number has two forms. In every layout the raw number has time, node id and sequence, from the
// top bit down. So numbers of one tick and node id are consecutive, and the generator counts in raw
// numbers. In the identifier, each field has the position that the layout defines. For Randflake,
// that identifier is the raw number, which the cipher then encrypts.
//
// A second consists of whole ticks: the unit divides a second, and every second begins with a tick.
// So each tick lies in one second of a window.
//
// Raw numbers are unsigned 64-bit numbers everywhere, because a Randflake timestamp sets the top
// bit from 2041 on.

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

// A layout has at most 64 bits. A second consists of whole ticks. The end of the last tick, in
// milliseconds, fits in a signed 64-bit number.
struct Layout {
    int64_t epoch;  // Unix milliseconds at which tick 0 begins
    int timestamp_bits;
    int node_bits;
    int sequence_bits;         // at least 1
    int64_t unit = kSecondMs;  // milliseconds a tick

    // These are the positions of the fields in an identifier.
    int timestamp_shift = node_bits + sequence_bits;
    int node_shift = sequence_bits;
    int sequence_shift = 0;

    // If true, the lowest number of each second stands for the second itself; see kRandflake.
    bool lowest_stands_for_second = false;

    constexpr bool tiles_seconds() const { return kSecondMs % unit == 0 && epoch % unit == 0; }

    constexpr int bits() const { return timestamp_bits + node_bits + sequence_bits; }
    constexpr bool HasBits(uint64_t number) const { return bits() == 64 || number >> bits() == 0; }
    constexpr uint64_t max_timestamp() const { return (uint64_t{1} << timestamp_bits) - 1; }
    constexpr uint64_t max_node_id() const { return (uint64_t{1} << node_bits) - 1; }
    constexpr uint64_t max_sequence() const { return (uint64_t{1} << sequence_bits) - 1; }

    // Returns the number of slots that a server with `node_ids` node ids has for this layout. A
    // node id that does not fit in the layout has no slot.
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

    // Returns false and leaves *raw untouched if a field does not fit.
    constexpr bool Pack(const Fields& fields, uint64_t* raw) const noexcept {
        if (!Fits(fields))
            return false;
        *raw = fields.timestamp << (node_bits + sequence_bits) | fields.node_id << sequence_bits |
               fields.sequence;
        RANDFLAKE_ASSERT(Unpack(*raw) == fields);
        return true;
    }

    constexpr Fields Unpack(uint64_t raw) const noexcept {
        return {raw >> (node_bits + sequence_bits) & max_timestamp(),
                raw >> sequence_bits & max_node_id(), raw & max_sequence()};
    }

    // Returns the identifier of a raw number. The next raw number of the same tick and node id has
    // an identifier that is 2^sequence_shift larger.
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

    // Returns the tick of an instant: negative before the epoch, above max_timestamp() after the
    // end.
    constexpr Tick TickAt(WallMs instant) const noexcept {
        const int64_t since = instant.count - epoch;
        return {unit == 1 ? since : FloorDivide(since, unit)};
    }

    // Returns whether a tick lies in an earlier second than this one. Needs no division.
    constexpr bool Before(uint64_t tick, Second second) const noexcept {
        return TickStart(tick) < StartOf(second);
    }

    // Returns the first tick of a window's second, or 0 if the second is not after the epoch.
    constexpr uint64_t FirstTick(Second second) const noexcept {
        const int64_t since = StartOf(second).count - epoch;
        return since <= 0 ? 0 : static_cast<uint64_t>(since / unit);
    }

    // Returns the window's second that contains a tick. It is negative before the windows' epoch.
    constexpr Second SecondOf(uint64_t tick) const noexcept {
        return randflake::SecondOf(TickStart(tick));
    }

    friend constexpr bool operator==(const Layout&, const Layout&) = default;
};

// Returns the first second that a layout of seconds since the windows' epoch cannot hold.
constexpr Second SecondsEnd(const Layout& layout) noexcept {
    RANDFLAKE_ASSERT(layout.unit == kSecondMs && layout.epoch == kWindowEpochMs);
    return {static_cast<int64_t>(layout.max_timestamp()) + 1};
}

// Randflake has 30 bits of time, 17 of node id and 17 of sequence. Its seconds are from 2024-10-27
// 03:33:20 UTC to 2058-11-05 17:10:23. The constants are those of the reference implementation,
// gosuda/randflake. The lowest number of each second stands for the second itself, in searches and
// as the bound of a partition. There every user can see its identifier, so no server issues it.
inline constexpr Layout kRandflake{
    .epoch = kWindowEpochMs,
    .timestamp_bits = 30,
    .node_bits = 17,
    .sequence_bits = 17,
    .lowest_stands_for_second = true,
};

// This layout has Randflake's seconds and 53 bits, which a JavaScript number can hold. No number
// stands for a second.
inline constexpr Layout kRandflake53{
    .epoch = kWindowEpochMs,
    .timestamp_bits = 30,
    .node_bits = 8,
    .sequence_bits = 15,
};

// This second is later than every second of an identifier.
inline constexpr Second kNoSecond = SecondsEnd(kRandflake);

}  // namespace randflake
