// The leases in shared memory, and what becomes of the window when they change.

#include "pg/lease.h"

#include "pg/clock.h"
#include "pg/shmem.h"
#include "pg/window.h"

using randflake::Lease;
using randflake::LeaseHolder;
using randflake::LeaseRelease;
using randflake::LeaseReleases;
using randflake::NodeRange;
using randflake::Window;

LeaseControl lease_control() {
    LWLockAcquire(shared->lease_lock, LW_SHARED);
    const LeaseControl copy = shared->lease_control;
    LWLockRelease(shared->lease_lock);
    return copy;
}

void lease_wake_worker() {
    PGPROC* worker = BackendPidGetProc(shared->lease_worker_pid);
    if (worker != nullptr)
        SetLatch(&worker->procLatch);
}

bool lease_take_over(const LeaseControl& control, int named_secrets) {
    LWLockAcquire(shared->lease_lock, LW_EXCLUSIVE);
    const bool all_named = secret_ring().count() == named_secrets;
    if (all_named)
        shared->lease_control.holder = control.holder;
    LWLockRelease(shared->lease_lock);
    return all_named;
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

static NodeRange nodes_of(const Lease& lease) {
    return {static_cast<uint32_t>(lease.first_node_id), shared->slot_count};
}

bool lease_publish(LeaseControl* control) {
    const Lease& open = control->holder.open();
    const auto end = static_cast<uint32>(open.end);
    const bool announced =
        open.id == 0 || end <= control->announced_end ||
        window_announce_lease(nodes_of(open), Window{current_window().start, end});
    if (announced && open.id != 0)
        control->announced_end = end;
    publish(*control, [&] {
        Window window = control->holder.Extended(current_window());
        if (open.id != 0)
            window.end = Min(window.end, control->announced_end);
        shared->window.store(window.ToWord(), std::memory_order_release);
    });
    return announced;
}

LeaseOpening lease_open_next(LeaseControl* control, uint32* used_until) {
    const Lease& next = control->holder.next();
    if (next.id == 0 || !window_lease_opens_at(nodes_of(next), used_until))
        return LeaseOpening::kNotYet;
    const Window before = current_window();
    if (control->holder.NextUsed(before, *used_until))
        return LeaseOpening::kUsed;
    LeaseHolder holder = control->holder;
    const Window opened = holder.OpenNext(Max(before.end, *used_until), wall_clock_seconds());
    if (opened.closed() || !window_announce_lease(nodes_of(next), opened))
        return LeaseOpening::kNotYet;
    control->holder = holder;
    control->announced_end = opened.end;
    publish(*control, [&] {
        count_window_closed(before);
        change_window(holder.open().first_node_id, opened);
    });
    return LeaseOpening::kOpened;
}

LeaseReleases lease_seal(LeaseControl* control) {
    LeaseReleases releases{};
    int64 last = -1;
    publish(*control, [&] {
        count_window_closed(current_window());
        last = with_slot_sets([](const auto&... sets) {
            return SealWindow(shared->slot_count, shared->window, sets...);
        });
        releases = control->holder.Sealed(last);
    });
    if (releases.open.lease.id != 0)
        window_take_back_lease(static_cast<uint32>(last + 1));
    // What this data directory used before counts as used, too, and all if that is not known.
    for (LeaseRelease* release : {&releases.open, &releases.next}) {
        uint32 used_until = UINT32_MAX;
        if (release->lease.id != 0) {
            (void)window_lease_opens_at(nodes_of(release->lease), &used_until);
            release->UsedUntil(used_until);
        }
    }
    return releases;
}
