// Runs a call of the shipped code step by step. Each step is one operation on shared memory.
//
// A call in progress is represented by the list of values it has seen: results of loads, stores and
// compare-and-swaps, and clock readings. To take the next step, the explorer runs the call again
// from its start. The call gets the values in the list, and then performs one new operation on the
// shared cells. A longjmp stops the call before its next operation. This is safe because no object
// on the core's stack needs destruction.
//
// A clock reading is not a separate step, because the clock may show any time at any moment.

#pragma once

#include "test.h"

namespace randflake::explorer {

// Values have only 16 bits, because there are millions of states. Words and seconds fit in 8 bits.
using Value = uint16_t;

inline Value Compact(uint64_t wide) {
    const uint64_t high = wide >> 32, low = wide & UINT32_MAX;
    if (high > UINT8_MAX || low > UINT8_MAX)
        throw std::logic_error("a value is too large for its cell");
    return static_cast<Value>(high << 8 | low);
}
inline uint64_t Widen(Value value) { return uint64_t{value} >> 8 << 32 | (value & UINT8_MAX); }

struct Trail {
    static constexpr size_t kCapacity = 8;

    uint16_t size = 0;
    std::array<Value, kCapacity> values{};

    void Append(Value value) {
        if (size == kCapacity) throw std::logic_error("a call sees too much");
        values[size++] = value;
    }
    auto operator<=>(const Trail&) const = default;
};

enum class OperationKind : uint8_t { kNone, kReadClock, kLoad, kStore, kSwap };

struct Operation {
    OperationKind kind = OperationKind::kNone;
    int cell = -1;
    Value before = 0, after = 0;
    bool changes = false;  // a store, or a successful compare-and-swap
};

class Replay {
public:
    // Performs the step's operation on *cells, and appends to *trail the value that the call sees.
    Replay(Value* cells, Trail* trail, int clock)
        : cells_(cells), trail_(trail), known_(trail->size), clock_(clock) {}

    // Runs `call` until it has done its next operation. Returns whether the call ended.
    template <typename Call> bool Step(Call&& call) {
        if (setjmp(before_) != 0) return false;
        call();
        return true;
    }

    template <typename Call> static Operation First(Call&& call) {
        Trail nothing_seen;
        Replay replay(nullptr, &nothing_seen, 0);
        replay.performed_.kind = OperationKind::kReadClock;  // the call performs no other operation
        replay.Step([&] { call(&replay); });
        return replay.upcoming_;
    }

    // performed() is the step's operation. upcoming() is the call's next operation.
    const Operation& performed() const { return performed_; }
    const Operation& upcoming() const { return upcoming_; }
    bool read_clock() const { return read_clock_; }

    uint64_t Load(int cell) {
        return Widen(Perform(OperationKind::kLoad, cell, 0, nullptr).before);
    }

    uint64_t Store(int cell, uint64_t value) {
        return Widen(Perform(OperationKind::kStore, cell, Compact(value), nullptr).before);
    }

    bool Swap(int cell, uint64_t* expected, uint64_t desired) {
        const Value wanted = Compact(*expected);
        const Operation swap = Perform(OperationKind::kSwap, cell, Compact(desired), &wanted);
        *expected = Widen(swap.before);
        return swap.before == wanted;
    }

    int64_t ReadClock() {
        if (position_ < known_) return static_cast<int16_t>(trail_->values[position_++]);
        StopIfDone({OperationKind::kReadClock, -1});
        read_clock_ = true;
        trail_->Append(static_cast<Value>(clock_));
        position_++;
        known_++;
        return clock_;
    }

private:
    void StopIfDone(const Operation& next) {
        if (performed_.kind == OperationKind::kNone) return;
        upcoming_ = next;
        longjmp(before_, 1);
    }

    Operation Perform(OperationKind kind, int cell, Value value, const Value* expected) {
        if (position_ < known_) return {kind, cell, trail_->values[position_++], value};
        StopIfDone({kind, cell, expected != nullptr ? *expected : Value{0}, value});
        performed_ = {kind, cell, cells_[cell], cells_[cell]};
        performed_.changes = kind == OperationKind::kStore ||
                             (expected != nullptr && *expected == performed_.before);
        if (performed_.changes) performed_.after = cells_[cell] = value;
        trail_->Append(performed_.before);
        return performed_;
    }

    std::jmp_buf before_;
    Value* cells_;
    Trail* trail_;
    size_t known_;         // values in the trail before this step
    size_t position_ = 0;  // values that the call has replayed
    int clock_;
    bool read_clock_ = false;
    Operation performed_, upcoming_;
};

// Replaces std::atomic<uint64_t>. Operations are never reordered, so memory orders go untested.
class Cell {
public:
    Cell(Replay* replay, int index) : replay_(replay), index_(index) {}

    uint64_t load(std::memory_order = std::memory_order_seq_cst) const {
        return replay_->Load(index_);
    }
    void store(uint64_t value, std::memory_order = std::memory_order_seq_cst) {
        replay_->Store(index_, value);
    }
    uint64_t exchange(uint64_t value, std::memory_order = std::memory_order_seq_cst) {
        return replay_->Store(index_, value);
    }
    bool compare_exchange_strong(uint64_t& expected, uint64_t desired,
                                 std::memory_order = std::memory_order_seq_cst,
                                 std::memory_order = std::memory_order_seq_cst) {
        return replay_->Swap(index_, &expected, desired);
    }

private:
    Replay* replay_;
    int index_;
};

}  // namespace randflake::explorer
