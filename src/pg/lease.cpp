// The leases in shared memory, and what becomes of the window when they change.

#include "pg/lease.h"

#include "pg/clock.h"
#include "pg/shmem.h"
#include "pg/window.h"

using randflake::LeaseReleases;
using randflake::Window;

LeaseControl lease_control() {
    LWLockAcquire(shared->lease_lock, LW_SHARED);
    const LeaseControl copy = shared->lease_control;
    LWLockRelease(shared->lease_lock);
    return copy;
}

static Window current_window() {
    return Window::FromWord(shared->window.load());
}

// The window and the lease change together, so that a worker that dies in between leaves no lease
// with another one's window. Nothing here can fail half-way.
template <typename Change>
static void publish(const LeaseControl& control, Change&& change) {
    LWLockAcquire(shared->lease_lock, LW_EXCLUSIVE);
    change();
    shared->lease_control = control;
    LWLockRelease(shared->lease_lock);
    ConditionVariableBroadcast(&shared->window_changed);
}

void lease_publish(const LeaseControl& control) {
    publish(control, [&] {
        shared->window.store(control.holder.Extended(current_window()).ToWord(),
                             std::memory_order_release);
    });
}

bool lease_open_next(LeaseControl* control) {
    const Window before = current_window();
    const Window opened = control->holder.OpenNext(before.end, wall_clock_seconds());
    if (opened.closed())
        return false;
    publish(*control, [&] {
        count_window_closed(before);
        change_window(control->holder.open().first_node_id, opened);
    });
    return true;
}

LeaseReleases lease_seal(LeaseControl* control) {
    LeaseReleases releases{};
    publish(*control, [&] {
        count_window_closed(current_window());
        releases = control->holder.Sealed(with_slot_sets([](const auto&... sets) {
            return SealWindow(shared->slot_count, shared->window, sets...);
        }));
    });
    return releases;
}
