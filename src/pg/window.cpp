// The window is a few seconds long and is moved on by whichever backend comes near its end. It
// lives in memory only: after a restart it opens at the second after the server's start, which no
// earlier incarnation can have used.

#include "pg/window.h"

#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/shmem.h"

// Seconds from the clock's second to the end of a new window.
static constexpr int64 kWindowSeconds = 3;

using randflake::kRandflake;
using randflake::Window;

int64 window_opens_at() {
    return shared->started_at + 1;
}

static bool extend_locked() {
    const int64 now = wall_clock_seconds();
    const Window window = Window::FromWord(shared->window.load());
    const int64 limit = static_cast<int64>(kRandflake.max_timestamp()) + 1;
    if (now < 0 || now >= limit)
        return false;

    const auto end = static_cast<uint32_t>(Min(now + kWindowSeconds, limit));
    if (!window.closed()) {
        if (now + 1 < window.end)
            return true;  // someone else has just moved the end
        if (end <= window.end)
            return false;
        shared->window.store(Window{window.start, end}.ToWord(), std::memory_order_release);
    } else {
        if (now < window_opens_at())
            return false;
        ChangeWindow(
            kRandflake, [](uint32_t i) -> AtomicWord& { return shared->slots[i].word; },
            shared->slot_count, setting_node_id, shared->window,
            Window{static_cast<uint32_t>(now), end});
    }
    ConditionVariableBroadcast(&shared->window_changed);
    return true;
}

bool window_extend() {
    if (!LWLockConditionalAcquire(shared->window_lock, LW_EXCLUSIVE))
        return false;
    const bool changed = extend_locked();
    LWLockRelease(shared->window_lock);
    return changed;
}
