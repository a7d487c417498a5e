// Reserves numbers in the chosen slot, or in the next slot that is not used up. Waits if all slots
// are used up. Each family of numbers has its own slots and layout.

#include "pg/generator/reserve.h"

#include "pg/base/clock.h"
#include "pg/base/compat.h"
#include "pg/server/environment.h"
#include "pg/server/require.h"
#include "pg/settings/settings.h"

using namespace randflake;

namespace {
struct RandflakeNumbers {
    static constexpr const Layout& layout() { return kRandflake; }
    static Slot& slot(uint32 i) { return randflake_slot(i); }
    static Tick Now() { return {wall_clock_second().count}; }
    static constexpr auto Count = count_reservation;
    static bool IsPermanent(Outcome) { return false; }
};

struct SnowflakeNumbers {
    static const Layout& layout() { return snowflake_layout; }
    static Slot& slot(uint32 i) { return snowflake_slot(i); }
    static Tick Now() { return snowflake_layout.TickAt(precise_wall_clock()); }
    static constexpr auto Count = count_snowflake_reservation;

    // Waiting does not help if the layout cannot hold the clock's time or the node ids.
    static bool IsPermanent(Outcome outcome) {
        return outcome == Outcome::kClockBeforeEpoch || outcome == Outcome::kClockAfterEnd ||
               outcome == Outcome::kNotInLayout;
    }
};

struct Numbers53 : RandflakeNumbers {
    static constexpr const Layout& layout() { return kRandflake53; }
    static Slot& slot(uint32 i) { return randflake53_slot(i); }
    static constexpr auto Count = count_53_reservation;
    static bool IsPermanent(Outcome outcome) { return outcome == Outcome::kNotInLayout; }
};
}  // namespace

// Returns the largest node id that this server may ever use. With leases this can be any node id.
static uint64 last_node_id() {
    if (shared_server->memory.leased) return UINT64_MAX;
    const NodeRange all = shared_server->memory.ranges.All();
    return uint64{all.first} + all.count - 1;
}

// Tries the slots in turn, beginning with the chosen slot. A fast backend uses up dozens of slots
// in a tick, so the cursor skips used-up slots for the rest of the tick. When all slots are used
// up, further calls in this tick try only the last slot. With kLowest, a backend's numbers must
// rise. So if the clock ticks during the scan, the call drops its number and scans again.
template <typename Numbers> static Reservation try_slots(SlotChoice choice, uint32 wanted) {
    struct Cursor {
        Tick tick;
        uint32 skip;  // how many slots from the chosen one on are used up in this tick
    };
    static Cursor cursors[2];  // indexed by SlotChoice

    Cursor& cursor = cursors[static_cast<int>(choice)];
    if (const Tick now = Numbers::Now(); now.count != cursor.tick.count) cursor = {now, 0};
    const uint32 first = choice == SlotChoice::kOwn ? static_cast<uint32>(backend_number()) : 0;
    const uint32 slots = Numbers::layout().Slots(shared_slots->slot_count);
    for (;;) {
        Slot& slot = Numbers::slot((first + cursor.skip) % slots);
        Reservation reservation = Reserve(Numbers::layout(), slot.word, shared_slots->window,
                                          wanted, [] { return Numbers::Now(); });
        if (reservation.outcome == Outcome::kReserved) Numbers::Count(slot, reservation);
        if (reservation.outcome == Outcome::kNoWord &&
            LayoutLacksWindow(Numbers::layout(), last_node_id(), slot.word, shared_slots->window))
            reservation.outcome = Outcome::kNotInLayout;
        // All slots share a window and a clock, so another slot helps only if this one is used up.
        const bool used_up = reservation.outcome == Outcome::kExhausted ||
                             reservation.outcome == Outcome::kClockBehind;
        if (used_up && cursor.skip + 1 < slots)
            cursor.skip++;
        else if (reservation.outcome == Outcome::kReserved && choice == SlotChoice::kLowest &&
                 cursor.skip > 0 && reservation.now.count != cursor.tick.count)
            cursor = {reservation.now, 0};
        else
            return reservation;
    }
}

// Returns whether the clock is too far behind and the server has another range of node ids.
static inline bool range_due(const Layout& layout, const Reservation& reservation) {
    return shared_server->memory.ranges.count > 1 &&
           ClockIsBehind(layout, reservation, setting_max_clock_skew);
}

// Extends the window or changes its node ids if necessary. Returns whether to try again.
static bool window_moved(const Layout& layout, const Reservation& reservation) {
    if (reservation.outcome == Outcome::kNoWord) return true;
    const bool due = reservation.outcome == Outcome::kWindowClosed ||
                     reservation.outcome == Outcome::kWindowEnded || range_due(layout, reservation);
    return due && !RecoveryInProgress() && server.Extend();
}

// Tries the slots. If the window has moved, tries them again and returns only the second result.
template <typename Numbers> static Reservation attempt(SlotChoice choice, uint32 wanted) {
    Reservation reservation = try_slots<Numbers>(choice, wanted);
    if (window_moved(Numbers::layout(), reservation))
        reservation = try_slots<Numbers>(choice, wanted);
    else if (reservation.outcome == Outcome::kReserved && NearsEnd(Numbers::layout(), reservation))
        server.Extend();
    return reservation;
}

// For ticks up to this length, calls use pg_usleep, because a latch waits for whole milliseconds.
static constexpr int64 kShortWait = 20;  // milliseconds

// Waits up to `most` milliseconds for the next tick, a change of the window or an interrupt. The
// first ConditionVariableTimedSleep only registers this process and returns. The caller then tries
// again before it sleeps, so it misses no change of the window.
static void wait_for_tick(const Layout& layout, const Reservation& reservation, int64 most,
                          uint32 event) {
    Assert(InterruptHoldoffCount == 0);
    const WallMs now = precise_wall_clock();
    const int64 left =
        layout.unit - (now - layout.TickStart(static_cast<uint64_t>(reservation.now.count))).count;
    if (reservation.outcome != Outcome::kExhausted || layout.unit > kShortWait) {
        const int64 next = layout.unit == kSecondMs ? milliseconds_to_next_second()
                                                    : Min(Max(left, 1), layout.unit);
        ConditionVariableTimedSleep(&shared_server->window_changed,
                                    static_cast<long>(Min(most, next)), event);
        return;
    }
    CHECK_FOR_INTERRUPTS();
    if (left <= 0 || left > layout.unit) return;
    struct timespec clock;
    clock_gettime(CLOCK_REALTIME, &clock);
    pgstat_report_wait_start(event);
    pg_usleep(static_cast<long>(left * 1000 - clock.tv_nsec / 1000 % 1000));
    pgstat_report_wait_end();
}

static uint32 generate_event() {
    static uint32 event;
    if (event == 0) event = wait_event("RandflakeGenerate");
    return event;
}

template <typename Numbers>
static pg_noinline Reservation wait_for_numbers(SlotChoice choice, uint32 wanted) {
    const uint32 event = generate_event();
    const SteadyUs started_at = steady_microseconds();
    const SteadyUs give_up_at = started_at + int64{setting_max_wait} * 1000;
    shared_slots->counters.waits.fetch_add(1, std::memory_order_relaxed);
    for (;;) {
        const Reservation reservation = attempt<Numbers>(choice, wanted);
        log_exhausted(Numbers::layout(), reservation);
        const SteadyUs now = steady_microseconds();
        const bool reserved = reservation.outcome == Outcome::kReserved;
        if (reserved || now >= give_up_at || RecoveryInProgress() ||
            Numbers::IsPermanent(reservation.outcome)) {
            ConditionVariableCancelSleep();
            count_wait((now - started_at).count);
            if (!reserved) raise_unavailable(Numbers::layout(), reservation);
            return reservation;
        }
        wait_for_tick(Numbers::layout(), reservation, ((give_up_at - now).count + 999) / 1000,
                      event);
    }
}

template <typename Numbers> static Reservation reserve(SlotChoice choice, uint32 wanted) {
    const Reservation reservation = attempt<Numbers>(choice, wanted);
    if (likely(reservation.outcome == Outcome::kReserved)) return reservation;
    return wait_for_numbers<Numbers>(choice, wanted);
}

Reservation reserve_numbers(SlotChoice choice, uint32 wanted) {
    Assert(missing_setting() == nullptr);
    return reserve<RandflakeNumbers>(choice, wanted);
}

Reservation reserve_snowflake(uint32 wanted) {
    Assert(has_node_id());
    return reserve<SnowflakeNumbers>(SlotChoice::kLowest, wanted);
}

Reservation reserve_53(uint32 wanted) {
    Assert(missing_setting() == nullptr);
    return reserve<Numbers53>(SlotChoice::kOwn, wanted);
}

template <typename Numbers> static Reservation reserve_long(uint32* visited, uint32 wanted) {
    const uint32 slots = Numbers::layout().Slots(shared_slots->slot_count);
    Reservation reservation{};
    reservation.outcome = Outcome::kExhausted;
    while (*visited < slots) {
        const uint32 own = static_cast<uint32>(backend_number()) % slots;
        Slot& slot = Numbers::slot((own + (*visited)++) % slots);
        reservation = Reserve(
            Numbers::layout(), slot.word, shared_slots->window, wanted,
            [] { return Numbers::Now(); }, Share::kLongRun);
        if (reservation.outcome == Outcome::kReserved) {
            Numbers::Count(slot, reservation);
            if (NearsEnd(Numbers::layout(), reservation)) server.Extend();
            return reservation;
        }
        if (reservation.outcome != Outcome::kExhausted) return reservation;
    }
    return reservation;
}

Reservation reserve_long_run(uint32* visited, uint32 wanted) {
    return reserve_long<RandflakeNumbers>(visited, wanted);
}

Reservation reserve_long_run_53(uint32* visited, uint32 wanted) {
    return reserve_long<Numbers53>(visited, wanted);
}

void wait_for_second_after(Second second) {
    Assert(InterruptHoldoffCount == 0);
    const SteadyUs started_at = steady_microseconds();
    const SteadyUs give_up_at = started_at + int64{setting_max_wait} * 1000;
    SteadyUs now = started_at;
    shared_slots->counters.waits.fetch_add(1, std::memory_order_relaxed);
    while (wall_clock_second() == second && now < give_up_at) {
        const long left = static_cast<long>(((give_up_at - now).count + 999) / 1000);
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                        Min(left, milliseconds_to_next_second()), generate_event());
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
        now = steady_microseconds();
    }
    count_wait((now - started_at).count);
}
