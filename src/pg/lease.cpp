// The lease in shared memory, and what becomes of the window when it changes.

#include "pg/lease.h"

#include "core/lease.h"
#include "pg/clock.h"
#include "pg/shmem.h"
#include "pg/window.h"

using randflake::Window;

LeaseControl lease_control() {
    LWLockAcquire(shared->lease_lock, LW_SHARED);
    const LeaseControl copy = shared->lease_control;
    LWLockRelease(shared->lease_lock);
    return copy;
}

// The window and the lease change together, so that a worker that dies in between leaves no lease
// with another one's window. Nothing here can fail half-way.
template <typename Change>
static void publish(const LeaseControl& control, Change&& change_window) {
    LWLockAcquire(shared->lease_lock, LW_EXCLUSIVE);
    change_window();
    shared->lease_control = control;
    LWLockRelease(shared->lease_lock);
    ConditionVariableBroadcast(&shared->window_changed);
}

void lease_publish(const LeaseControl& control) {
    publish(control, [] {});
}

void lease_extend(const LeaseControl& control) {
    publish(control, [&] {
        const Window window = Window::FromWord(shared->window.load());
        shared->window.store(Window{window.start, static_cast<uint32_t>(control.open.end)}.ToWord(),
                             std::memory_order_release);
    });
}

bool lease_open_next(LeaseControl* control) {
    const Lease& next = control->next;
    const Window window = WindowOfLease(Window::FromWord(shared->window.load()), next.start,
                                        next.end, wall_clock_seconds());
    if (next.id == 0 || window.closed())
        return false;
    control->open = next;
    control->next = Lease{};
    publish(*control, [&] {
        count_window_closed(Window::FromWord(shared->window.load()));
        change_window(control->open.first_node_id, window);
    });
    return true;
}

int64 lease_seal(LeaseControl* control) {
    int64 last = -1;
    control->open = control->next = Lease{};
    publish(*control, [&] {
        count_window_closed(Window::FromWord(shared->window.load()));
        last = with_slot_sets([](const auto&... sets) {
            return SealWindow(shared->slot_count, shared->window, sets...);
        });
    });
    return last;
}
