// Where numbers come from: the slot of the caller's choice, else the next one with room, else a
// wait.

#include "pg/generate.h"

#include "pg/clock.h"
#include "pg/compat.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/window.h"

using randflake::Outcome;
using randflake::Run;

// Tries every slot once, from the chosen one on. Backends have their own at different places, so
// with at least as many node ids as backends none shares one. Slots found used up are not looked at
// again in the same second: a fast backend uses up dozens.
static Run try_slots(SlotChoice choice, uint32 wanted) {
    static int64 second;
    static uint32 used_up_from[2];  // for each choice: this many from the first, in that second
    if (const int64 now = wall_clock_seconds(); now != second) {
        second = now;
        used_up_from[0] = used_up_from[1] = 0;
    }

    const uint32 first = choice == SlotChoice::kOwn ? static_cast<uint32>(backend_number()) : 0;
    uint32& used_up = used_up_from[static_cast<int>(choice)];
    Run run;
    for (uint32 tried = 0; tried < shared->slot_count; tried++) {
        Slot& slot = shared->slots[(first + used_up) % shared->slot_count];
        run = Reserve(randflake::kRandflake, slot.word, shared->window, wanted, wall_clock_seconds);
        if (run.outcome == Outcome::kReserved)
            count_run(slot, run);
        // Only a used-up slot sends us to the next one; the window and the clock are the same
        // there.
        if (run.outcome != Outcome::kExhausted && run.outcome != Outcome::kClockBehind)
            break;
        used_up++;
    }
    return run;
}

static bool needs_window(const Run& run) {
    return run.outcome == Outcome::kWindowClosed || run.outcome == Outcome::kWindowEnded;
}

// One attempt, moving the window on where that is due.
static Run attempt(SlotChoice choice, uint32 wanted) {
    Run run = try_slots(choice, wanted);
    if (needs_window(run)) {
        if (!RecoveryInProgress() && window_extend())
            run = try_slots(choice, wanted);
    } else if (run.outcome == Outcome::kReserved && window_near_end(run)) {
        window_extend();
    }
    return run;
}

// The slow path, out of line: attempts until the first success or the end of the wait.
static pg_noinline Run wait_for_numbers(SlotChoice choice, uint32 wanted) {
    static uint32 event;
    if (event == 0)
        event = wait_event("RandflakeGenerate");

    const int64 started_at = steady_milliseconds();
    const int64 give_up_at = started_at + setting_max_wait;
    shared->counters.waits.fetch_add(1, std::memory_order_relaxed);
    for (;;) {
        // The first sleep only registers for the broadcast and returns at once, so a change of the
        // window between an attempt and the sleep is not missed.
        const Run run = attempt(choice, wanted);
        const int64 now = steady_milliseconds();
        if (run.outcome == Outcome::kReserved) {
            ConditionVariableCancelSleep();
            count_wait(now - started_at);
            return run;
        }
        const int64 left = give_up_at - now;
        if (left <= 0 || RecoveryInProgress()) {
            ConditionVariableCancelSleep();
            count_wait(now - started_at);
            report_unavailable(run);
        }
        ConditionVariableTimedSleep(&shared->window_changed,
                                    Min(left, int64{milliseconds_to_next_second()}), event);
    }
}

Run reserve_numbers(SlotChoice choice, uint32 wanted) {
    const Run run = attempt(choice, wanted);
    if (likely(run.outcome == Outcome::kReserved))
        return run;
    return wait_for_numbers(choice, wanted);
}
