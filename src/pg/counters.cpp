#include "pg/counters.h"

#include "pg/shmem.h"

using randflake::Fields;
using randflake::kRandflake;
using randflake::Run;
using randflake::Window;

// Numbers reserved in the second of a slot's word; none where the word only marks a window's start.
static uint64 reserved_in_second(uint64 word, Window window) {
    const Fields fields = kRandflake.Unpack(word);
    return fields.timestamp >= window.start && !window.closed() ? fields.sequence + 1 : 0;
}

// The clock as last seen, and how often it stepped back. A process that was held up after it read
// the clock is no step: only a word that was read before the clock and shows a later second is.
static void note_clock(const Run& run) {
    std::atomic<int64>& latest = shared->counters.latest_second;
    int64 seen = latest.load(std::memory_order_relaxed);
    if (likely(seen == run.now))
        return;
    const bool stepped_back =
        run.now < static_cast<int64>(kRandflake.Unpack(run.previous).timestamp);
    if (run.now < seen && !stepped_back)
        return;
    if (latest.compare_exchange_strong(seen, run.now) && run.now < seen)
        shared->counters.clock_steps_back.fetch_add(1, std::memory_order_relaxed);
}

void count_run(Slot& slot, const Run& run) {
    const uint64 sequence = kRandflake.Unpack(run.first).sequence;
    if (sequence == 0)
        slot.finished.fetch_add(reserved_in_second(run.previous, run.window),
                                std::memory_order_relaxed);
    if (sequence + run.count > kRandflake.max_sequence())
        shared->counters.slots_exhausted.fetch_add(1, std::memory_order_relaxed);
    note_clock(run);
}

void count_window_closed(Window old) {
    for (uint32 i = 0; i < shared->slot_count; i++) {
        Slot& slot = shared->slots[i];
        slot.finished.fetch_add(reserved_in_second(slot.word.load(), old),
                                std::memory_order_relaxed);
    }
}

void count_wait(int64 milliseconds) {
    shared->counters.wait_milliseconds.fetch_add(static_cast<uint64>(milliseconds),
                                                 std::memory_order_relaxed);
}

uint64 count_of_slot(const Slot& slot) {
    const Window window = Window::FromWord(shared->window.load());
    return slot.finished.load(std::memory_order_relaxed) +
           reserved_in_second(slot.word.load(std::memory_order_relaxed), window);
}

void counters_reset() {
    Counters& counters = shared->counters;
    counters.waits = 0;
    counters.wait_milliseconds = 0;
    counters.slots_exhausted = 0;
    counters.clock_steps_back = 0;
    counters.window_extensions = 0;
    counters.reset_at = GetCurrentTimestamp();
    // What the word shows of its second counts as negative, so that the sum starts at zero.
    for (uint32 i = 0; i < shared->slot_count; i++)
        shared->slots[i].finished.fetch_sub(count_of_slot(shared->slots[i]));
}
