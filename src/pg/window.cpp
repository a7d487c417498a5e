// The window is a few seconds long and is moved on by whichever backend comes within a second of
// its end, while the others go on. Its end is durable on disk before it is used (window_file.cpp),
// so after a crash the server starts at the written end and repeats nothing.
//
// The state on disk is read when the first identifier is asked for, not when the server starts: a
// standby reads it after its promotion, and a server that never generates never touches it.
//
// Protocol, under the window lock:
//   1. check that the clock has not jumped ahead
//   2. once: read the state, decide where to start (PlanStart), say so in the log, mark the run
//   3. write the new end; on failure the window keeps its old end
//   4. publish the window, wake those who wait for it
//
// Secrets are added under the same lock. So whoever reserves a number in a second that was
// announced later finds the added secret: the ring was published before the lock was released, the
// window after it was taken again, and the ring is read after the window.

#include "pg/window.h"

#include <sys/stat.h>

#include "pg/clock.h"
#include "pg/run_marker.h"
#include "pg/secret.h"
#include "pg/settings.h"
#include "pg/shmem.h"

using randflake::Finding;
using randflake::kRandflake;
using randflake::NodeRange;
using randflake::SecretRecords;
using randflake::SecretsChange;
using randflake::Start;
using randflake::StartPlan;
using randflake::StateError;
using randflake::Window;
using randflake::WindowState;

// The first second that no identifier can hold.
static constexpr int64 kLimit = static_cast<int64>(kRandflake.max_timestamp()) + 1;

// A forward jump of the wall clock, against the clock that never steps, beyond which the server
// waits for a person: windows far in the future cannot be taken back.
static constexpr int64 kMaxClockJumpSeconds = SECS_PER_DAY;

// After a failed write: when to try again, and how often to log.
static constexpr int64 kRetryIntervalMs = 200;
static constexpr int64 kLogIntervalMs = 10000;

static void publish_report(WindowProblem problem, int64 value = 0,
                           const FileFailure& failure = {}) {
    WindowReport* to = &shared->window_report;
    SpinLockAcquire(&to->mutex);
    to->problem = problem;
    to->opens_at = to->clock_jump = to->written_end = value;
    to->failure = failure;
    SpinLockRelease(&to->mutex);
}

static void publish_copy_found() {
    const TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&shared->window_report.mutex);
    shared->window_report.copy_found_at = now;
    SpinLockRelease(&shared->window_report.mutex);
}

WindowReport window_report() {
    SpinLockAcquire(&shared->window_report.mutex);
    const WindowReport copy = shared->window_report;
    SpinLockRelease(&shared->window_report.mutex);
    return copy;
}

static NodeRange node_range() {
    return {static_cast<uint32_t>(setting_node_id), static_cast<uint32_t>(setting_node_count)};
}

// The server is, or was, a standby or recovers from an archive: recovery may end with a promotion
// at any time after its start.
static bool begins_in_recovery() {
    struct stat status;
    return stat("standby.signal", &status) == 0 || stat("recovery.signal", &status) == 0;
}

void window_init_shared() {
    // Variables of the postmaster: they outlive shared memory, which is made anew when a backend
    // has crashed. That must not accept a clock that has jumped; only a restart does. Nor may it
    // forget that there was a promotion.
    static bool started, began_in_recovery;
    static int64 started_at_ms, started_at_uptime_ms;
    if (!started) {
        started_at_ms = precise_milliseconds();
        started_at_uptime_ms = uptime_milliseconds();
        started = true;
    }
    began_in_recovery |= begins_in_recovery();

    WindowControl* control = &shared->window_control;
    control->started_at_ms = started_at_ms;
    control->started_at_uptime_ms = started_at_uptime_ms;
    control->began_in_recovery = began_in_recovery;
    read_boot_id(control->boot);
    SpinLockInit(&shared->window_report.mutex);
}

// The state is that of another server, or of this one before it was promoted.
static bool of_another(Finding finding) {
    return finding == Finding::kOtherSystem || finding == Finding::kOtherTimeline ||
           finding == Finding::kCopied;
}

static void log_start(const StartPlan& plan, const WindowState& found, StateError error) {
    switch (plan.finding) {
        case Finding::kOwn:
        case Finding::kFirstUse:
            break;
        case Finding::kUnreadable:
            ereport(WARNING,
                    (errcode(ERRCODE_DATA_CORRUPTED),
                     errmsg("the window file of randflake cannot be used: %s",
                            randflake::StateErrorText(error)),
                     errdetail("The server generates nothing for "
                               "\"randflake.max_clock_skew\" after its start or promotion."),
                     errhint("Make sure that the clock is right: identifiers may have been issued "
                             "under these node ids up to now.")));
            break;
        case Finding::kOtherSystem:
            ereport(
                WARNING,
                (errmsg("the window file of randflake was written by another database system"),
                 errdetail("It has system identifier %llu, this server %llu.",
                           static_cast<unsigned long long>(found.origin.system_identifier),
                           static_cast<unsigned long long>(plan.state.origin.system_identifier)),
                 errhint("Make sure that no other server generates with the node ids of this "
                         "one.")));
            break;
        case Finding::kCopied:
            ereport(WARNING,
                    (errmsg("the window file of randflake was copied from another data directory"),
                     errdetail("This happens after a base backup, a clone or pg_rewind."),
                     errhint("Make sure that the server it came from does not generate with the "
                             "node ids of this one.")));
            break;
        case Finding::kOtherTimeline:
            ereport(WARNING,
                    (errmsg("the window file of randflake was written on another timeline"),
                     errdetail("It was written on timeline %u, this server is on timeline %u.",
                               found.origin.timeline, plan.state.origin.timeline),
                     errhint("Make sure that the former primary server does not generate with the "
                             "node ids of this one.")));
            break;
    }
    if (plan.secrets == SecretsChange::kOther)
        ereport(LOG, (errmsg("the secret of randflake has changed"),
                      errdetail("Identifiers made under the former secret no longer decode.")));
}

static void log_file_failure(const FileFailure& failure) {
    errno = failure.error;
    ereport(LOG, (errcode_for_file_access(),
                  errmsg("could not %s file \"%s\": %m", failure.action, failure.path),
                  errdetail("The window for identifiers cannot be extended until this works.")));
}

// Puts the next attempt off; true if the failure is to be logged.
static bool put_off(WindowControl* control) {
    const int64 now = steady_milliseconds();
    control->retry_at_ms = now + kRetryIntervalMs;
    if (now < control->next_log_at_ms)
        return false;
    control->next_log_at_ms = now + kLogIntervalMs;
    return true;
}

static void note_file_failure(WindowControl* control, const FileFailure& failure) {
    publish_report(WindowProblem::kFileFailed, 0, failure);
    if (put_off(control))
        log_file_failure(failure);
}

static void note_secrets_refused(WindowControl* control, uint32 written_end) {
    publish_report(WindowProblem::kSecrets, written_end);
    if (!put_off(control))
        return;
    const ErrorText error = secrets_refused_error(written_end);
    ereport(LOG, (errmsg("%s", error.message), errdetail("%s", error.detail),
                  errhint("%s", error.hint)));
}

static bool write_state(WindowControl* control, const WindowState& next) {
    publish_report(WindowProblem::kWriting);
    const FileFailure failure = window_file_write(next);
    if (failure.error != 0) {
        note_file_failure(control, failure);
        return false;
    }
    control->state = next;
    return true;
}

// Step 3.
static bool announce(WindowControl* control, const NodeRange& nodes, const Window& window) {
    WindowState next = control->state;
    next.Announce(nodes, window);
    return write_state(control, next);
}

static uint32 publish_certainty(uint32 differs_from) {
    const uint32 second = differs_from != 0 ? differs_from : UINT32_MAX;
    shared->certain_before.store(second, std::memory_order_relaxed);
    return second;
}

// Step 2. False when the state could not be read at all, refuses the secrets, or the run could not
// be marked.
static bool load_state(WindowControl* control) {
    WindowState found{};
    StateError error = StateError::kNone;
    Start start{};
    StartPlan plan{};
    FileFailure failure = window_file_read(&found, &error, &start.origin.identity);
    if (failure.error == 0) {
        start.origin.system_identifier = GetSystemIdentifier();
        start.origin.timeline = GetWALInsertionTimeLine();
        start.secrets = secret_records();
        start.nodes = node_range();
        start.boot[0] = control->boot[0];
        start.boot[1] = control->boot[1];
        start.last_run = run_marker_read(start.origin);
        SetTime({control->started_at_uptime_ms, control->started_at_ms},
                {uptime_milliseconds(), precise_milliseconds()}, control->began_in_recovery,
                setting_max_clock_skew, &start);
        plan = PlanStart(error, found, start);
        if (plan.secrets == SecretsChange::kRefused) {
            note_secrets_refused(control, found.LastEnd());
            return false;
        }
        do {
            if (!pg_strong_random(&control->run, sizeof control->run))
                ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                                errmsg("could not generate a random number")));
        } while (control->run == 0);
        failure = run_marker_write(start.origin, control->run);
    }
    if (failure.error != 0) {
        note_file_failure(control, failure);
        return false;
    }

    control->found = error;
    control->state = plan.state;
    control->opens_at = plan.opens_at;
    control->opens_at_ms = plan.opens_at_ms;
    control->held_off = start.held_off;
    control->loaded = true;
    publish_certainty(plan.state.differs_from);
    if (of_another(plan.finding))
        publish_copy_found();
    log_start(plan, found, error);
    return true;
}

// Step 1. By how many seconds the clock is ahead of where it should be.
static int64 clock_jump(const WindowControl* control, int64 now) {
    const int64 elapsed_ms = uptime_milliseconds() - control->started_at_uptime_ms;
    const int64 expected_ms = control->started_at_ms + elapsed_ms - randflake::kWindowEpochMs;
    return now - expected_ms / randflake::kSecondMs;
}

// All steps. True as window_extend.
static bool extend_locked(WindowControl* control) {
    const int64 now = wall_clock_seconds();
    const Window window = Window::FromWord(shared->window.load());
    if (now < 0 || now >= kLimit)
        return false;
    if (!window.closed() && now + 1 < window.end)
        return true;  // another backend has just moved the end
    const auto end = static_cast<uint32_t>(Min(now + randflake::kWindowSeconds, kLimit));
    if (!window.closed() && end <= window.end)
        return false;
    if (steady_milliseconds() < control->retry_at_ms)
        return false;

    if (const int64 jump = clock_jump(control, now); jump > kMaxClockJumpSeconds) {
        publish_report(WindowProblem::kClockJumped, jump);
        return false;
    }
    if (!control->loaded && !load_state(control))
        return false;
    if (!randflake::MayOpen(control->opens_at, control->opens_at_ms, now, uptime_milliseconds())) {
        publish_report(WindowProblem::kNotYet, Max(int64{control->opens_at}, now + 1));
        return false;
    }
    const Window next{window.closed() ? static_cast<uint32_t>(now) : window.start, end};
    if (!announce(control, node_range(), next))
        return false;
    publish_report(WindowProblem::kNone);
    shared->counters.window_extensions.fetch_add(1, std::memory_order_relaxed);
    if (window.closed())
        change_window(setting_node_id, next);
    else
        shared->window.store(next.ToWord(), std::memory_order_release);
    ConditionVariableBroadcast(&shared->window_changed);
    return true;
}

bool window_load_state() {
    WindowControl* control = &shared->window_control;
    return control->loaded || load_state(control);
}

void change_window(int64 first_node_id, randflake::Window next) {
    [[maybe_unused]] const bool opened = with_slot_sets([&](const auto&... sets) {
        return ChangeWindow(shared->slot_count, static_cast<uint64_t>(first_node_id),
                            shared->window, next, sets...);
    });
    Assert(opened);
}

bool window_extend() {
    if (shared->leased)
        return false;
    if (!LWLockConditionalAcquire(shared->window_lock, LW_EXCLUSIVE))
        return false;
    const bool changed = extend_locked(&shared->window_control);
    LWLockRelease(shared->window_lock);
    return changed;
}

bool window_lease_opens_at(const NodeRange& nodes, uint32* second) {
    WindowControl* control = &shared->window_control;
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
    const bool loaded = window_load_state();
    if (loaded)
        *second = LeaseOpensAt(control->found, control->state, nodes, control->held_off);
    LWLockRelease(shared->window_lock);
    return loaded;
}

bool window_announce_lease(const NodeRange& nodes, const Window& window) {
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
    const bool written = announce(&shared->window_control, nodes, window);
    if (written)
        publish_report(WindowProblem::kNone);
    LWLockRelease(shared->window_lock);
    return written;
}

void window_take_back_lease(uint32 end) {
    WindowControl* control = &shared->window_control;
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
    WindowState next = control->state;
    next.TakeBack(end);
    // It is no harm if this cannot be written: the file says more than was used.
    if (write_state(control, next))
        publish_report(WindowProblem::kNone);
    LWLockRelease(shared->window_lock);
}

void window_note_difference(uint32 differs_from, int named_secrets) {
    WindowControl* control = &shared->window_control;
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
    if (secret_ring().count() == named_secrets) {
        const bool loaded = window_load_state();
        publish_certainty(differs_from);
        if (loaded && control->state.differs_from != differs_from) {
            WindowState next = control->state;
            next.differs_from = differs_from;
            // A state without a range is none. This one says that nothing was announced.
            if (next.end_count == 0)
                next.end_count = 1, next.ends[0] = {{0, 1}, 0};
            if (write_state(control, next))
                publish_report(WindowProblem::kNone);
        }
    }
    LWLockRelease(shared->window_lock);
}

void window_take_secrets(const SecretRecords& secrets) {
    WindowControl* control = &shared->window_control;
    if (!control->loaded) {
        shared->certain_before.store(0, std::memory_order_relaxed);
        return;
    }
    control->state.differs_from =
        DiffersFrom(control->state.differs_from, control->state.secrets, secrets);
    control->state.secrets = secrets;
    publish_certainty(control->state.differs_from);
}

// Under the window lock, so that nothing that a coordinator has told meanwhile is overwritten.
uint32 secrets_read_certainty() {
    WindowControl* control = &shared->window_control;
    WindowState found{};
    StateError error = StateError::kNone;
    FileFailure failure{};
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
    uint32 second = shared->certain_before.load(std::memory_order_relaxed);
    if (second == 0 && control->loaded) {
        second = publish_certainty(control->state.differs_from);
    } else if (second == 0) {
        failure = window_file_look(&found, &error);
        if (failure.error == 0)
            second = publish_certainty(
                error == StateError::kNone
                    ? DiffersFrom(found.differs_from, found.secrets, secret_records())
                    : 0);
    }
    LWLockRelease(shared->window_lock);
    if (failure.error != 0) {
        errno = failure.error;
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not %s file \"%s\": %m", failure.action, failure.path),
                        errdetail("It says whether this server lacks a secret that is in use.")));
    }
    return second;
}

void window_write_clean_end() {
    WindowControl* control = &shared->window_control;
    const Window window = Window::FromWord(shared->window.load());
    if (shared->leased || window.closed())
        return;

    int64 last = 0;
    const auto look_at = [&](const auto& set) {
        for (uint32 i = 0; i < shared->slot_count; i++)
            last = Max(last, LastSecondUsed(set.layout, set.slot(i).load(), window));
    };
    with_slot_sets([&](const auto&... sets) { (look_at(sets), ...); });
    control->state.TakeBack(static_cast<uint32_t>(last + 1));
    control->state.stop = {control->run,
                           {control->boot[0], control->boot[1]},
                           uptime_milliseconds(),
                           precise_milliseconds()};
    const FileFailure failure = window_file_write(control->state);
    if (failure.error != 0)
        log_file_failure(failure);  // the postmaster takes no spinlocks
}
