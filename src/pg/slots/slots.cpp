// Makes the slots, and updates and reads the counters.

#include "pg/slots/slots.h"

#include "pg/base/shared_memory.h"
#include "pg/settings/settings.h"

using namespace randflake;

SharedSlots* shared_slots;

static uint32 count_slots() {
    const auto node_ids = static_cast<uint32>(setting_node_count);
    return 2 * node_ids + kRandflake53.Slots(node_ids);
}

static Size slots_size() {
    return add_size(offsetof(SharedSlots, slots), mul_size(count_slots(), sizeof(Slot)));
}

static void slots_attach(void* memory, bool made) {
    shared_slots = made ? new (memory) SharedSlots{} : static_cast<SharedSlots*>(memory);
    if (!made) return;
    shared_slots->slot_count = setting_node_count;
    for (uint32 i = 0; i < count_slots(); i++) new (&shared_slots->slots[i]) Slot{};
    counters_reset();
}

const SharedPart slots_part{slots_size, slots_attach};

// Returns how many numbers of the word's tick are reserved; 0 if the word only starts a window.
static inline uint64 reserved_in_tick(const Layout& layout, uint64_t word, Window window) {
    const Fields fields = layout.Unpack(word);
    const bool none =
        word == kEmptySlot || window.closed() || layout.Before(fields.timestamp, window.start);
    return none ? 0 : fields.sequence + 1 - layout.FirstSequence(fields.node_id);
}

// Records the clock's latest time, and counts how often the clock steps back. If a process pauses
// after reading the clock, other processes may record later times, even if the clock never steps
// back. But the process read the slot's word before it read the clock. So if the word has a later
// tick than the clock, the clock stepped back.
static inline void record_clock(const Layout& layout, std::atomic<int64>& latest,
                                const Reservation& reservation) {
    int64 seen = latest.load(std::memory_order_relaxed);
    if (likely(seen == reservation.now.count)) return;
    const bool stepped_back =
        reservation.now.count < static_cast<int64>(layout.Unpack(reservation.previous).timestamp);
    if (reservation.now.count < seen && !stepped_back) return;
    if (latest.compare_exchange_strong(seen, reservation.now.count) && reservation.now.count < seen)
        shared_slots->counters.clock_steps_back.fetch_add(1, std::memory_order_relaxed);
}

[[gnu::always_inline]] static inline void count(const Layout& layout, std::atomic<int64>& latest,
                                                Slot& slot, const Reservation& reservation) {
    Assert(reservation.outcome == Outcome::kReserved);
    const auto [tick, node_id, sequence] = layout.Unpack(reservation.first);
    if (sequence == layout.FirstSequence(node_id))
        slot.finished.fetch_add(reserved_in_tick(layout, reservation.previous, reservation.window),
                                std::memory_order_relaxed);
    if (sequence + reservation.count > layout.max_sequence())
        shared_slots->counters.slots_exhausted.fetch_add(1, std::memory_order_relaxed);
    record_clock(layout, latest, reservation);
}

void count_reservation(Slot& slot, const Reservation& reservation) {
    count(kRandflake, shared_slots->counters.latest_second, slot, reservation);
}

void count_snowflake_reservation(Slot& slot, const Reservation& reservation) {
    count(snowflake_layout, shared_slots->counters.latest_tick, slot, reservation);
}

void count_53_reservation(Slot& slot, const Reservation& reservation) {
    count(kRandflake53, shared_slots->counters.latest_second, slot, reservation);
}

template <typename Use> static void for_all_slots(Use&& use) {
    for (uint32 i = 0; i < shared_slots->slot_count; i++) {
        use(kRandflake, randflake_slot(i));
        use(snowflake_layout, snowflake_slot(i));
    }
    for (uint32 i = 0; i < kRandflake53.Slots(shared_slots->slot_count); i++)
        use(kRandflake53, randflake53_slot(i));
}

void count_window_closed(Window old) {
    for_all_slots([old](const Layout& layout, Slot& slot) {
        slot.finished.fetch_add(reserved_in_tick(layout, slot.word.load(), old),
                                std::memory_order_relaxed);
    });
}

void count_wait(int64 microseconds) {
    Assert(microseconds >= 0);
    shared_slots->counters.wait_microseconds.fetch_add(static_cast<uint64>(microseconds),
                                                       std::memory_order_relaxed);
}

static uint64 count_of(const Layout& layout, const Slot& slot) {
    const Window window = Window::FromWord(shared_slots->window.load());
    return slot.finished.load(std::memory_order_relaxed) +
           reserved_in_tick(layout, slot.word.load(std::memory_order_relaxed), window);
}

uint64 count_of_slot(const Slot& slot) { return count_of(kRandflake, slot); }

uint64 count_of_all_slots() {
    uint64 sum = 0;
    for_all_slots(
        [&sum](const Layout& layout, const Slot& slot) { sum += count_of(layout, slot); });
    return sum;
}

void counters_reset() {
    Counters& counters = shared_slots->counters;
    counters.waits = 0;
    counters.wait_microseconds = 0;
    counters.slots_exhausted = 0;
    counters.clock_steps_back = 0;
    counters.window_extensions = 0;
    counters.reset_at = GetCurrentTimestamp();
    // Also subtracts the numbers used in the current tick, so that the slots' sum starts at zero.
    for_all_slots(
        [](const Layout& layout, Slot& slot) { slot.finished.fetch_sub(count_of(layout, slot)); });
}
