// The state on disk as src/pg/window.cpp keeps it: what is read and written, and in which order.
// What follows from it, the core decides. Each function names its original.

#ifndef RANDFLAKE_UNIT_WINDOW_KEEPER_H
#define RANDFLAKE_UNIT_WINDOW_KEEPER_H

#include <algorithm>

#include "core/generator.h"
#include "data_directory.h"
#include "lease_cluster.h"

namespace randflake::simulation {

// The code under test. Broken variants, which derive from it, take its place.
struct ShippedState {
    static constexpr bool kWritesFirst = true;      // the end, before the window is moved
    static constexpr bool kAnnouncesLeases = true;  // the end, before a lease is opened or extended
    static constexpr bool kRefusesSecrets = true;   // a start that the state refuses opens nothing
    static constexpr bool kLocksReload = true;      // windows stay while secrets are added
    static constexpr bool kWritesSecrets = true;    // also those that were added since the start

    static void Announce(WindowState* state, const NodeRange& nodes, const Window& window) {
        state->Announce(nodes, window);
    }
    static void TakeBack(WindowState* state, uint32_t end) { state->TakeBack(end); }
    static void SetTime(const Moment& started, const Moment& now, bool may_be_promoted,
                        Start* start) {
        randflake::SetTime(started, now, may_be_promoted, start);
    }
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        return randflake::PlanStart(error, found, start);
    }
    static ReloadPlan PlanReload(const Reload& reload, const WindowState* state) {
        return randflake::PlanReload(reload, state);
    }
    static bool MayOpen(uint32_t opens_at, int64_t opens_at_ms, int64_t second, int64_t uptime_ms) {
        return randflake::MayOpen(opens_at, opens_at_ms, second, uptime_ms);
    }
    static uint32_t LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                                 uint32_t held_off) {
        return randflake::LeaseOpensAt(error, state, nodes, held_off);
    }
};

// Whatever writes may fail, and then leaves everything as it was.
template <typename State>
class WindowKeeper {
public:
    explicit WindowKeeper(Random* random) : random_(random) {}

    // window_init_shared(): a postmaster starts; then, and after a crash of a backend, shared
    // memory is made.
    void StartPostmaster(const Machine& machine, int64_t true_ms, int64_t skew_ms) {
        started_ = machine.At(true_ms);
        const auto skew = static_cast<uint32_t>(skew_ms);
        skew_ = {skew, skew};
        present_skew_ms_ = skew;
        began_in_recovery_ = false;
    }
    void InitShared(const DataDirectory& directory) {
        began_in_recovery_ |= directory.recovers;
        loaded_ = refused_ = false;
    }

    // window_note_skew()
    void NoteSkew(int64_t skew_ms) {
        const auto skew = static_cast<uint32_t>(skew_ms);
        skew_ = skew_.With({skew, skew});
        present_skew_ms_ = skew;
    }

    bool loaded() const { return loaded_; }
    size_t refused_starts() const { return refused_starts_; }
    // The first second that was never announced; 0 while that is not known.
    uint32_t LastEnd() const { return loaded_ ? state_.LastEnd() : 0; }
    bool proven() const { return proven_; }
    // follow_skew(), before a window opens.
    void FollowSkew() {
        start_.skew = start_.skew.With(skew_);
        const StartPlan plan = State::PlanStart(found_, found_state_, start_);
        proven_ = plan.proven;
        opens_at_ = plan.opens_at;
        opens_at_ms_ = plan.opens_at_ms;
        held_off_ = plan.held_off;
    }
    // At this second of the wall clock.
    bool MayOpen(int64_t now, int64_t uptime_ms) const {
        return State::MayOpen(opens_at_, opens_at_ms_, now, uptime_ms);
    }
    uint32_t LeaseOpensAt(const NodeRange& nodes) const {
        return State::LeaseOpensAt(found_, state_, nodes, held_off_);
    }

    // load_state(), with window_file_read() and run_marker_write(), for a server with these
    // secrets. `birth` is of a file that has to be made.
    bool Load(const NodeRange& nodes, const SecretRecords& secrets, DataDirectory* directory,
              Machine* machine, int64_t birth, int64_t true_ms) {
        WindowState found{};
        StateError error = StateError::kNone;
        const bool identity_made = !directory->identity;
        if (identity_made)
            directory->identity = FileIdentity{static_cast<uint64_t>(birth % kInodes), 0, birth};
        if (!directory->window)
            error = identity_made ? StateError::kMissing : StateError::kLost;
        else
            error = DecodeWindowState(directory->window->data(), directory->window->size(), &found);
        if (Fails())
            return false;

        Start start{};
        start.origin = {directory->system_identifier, directory->timeline, *directory->identity};
        start.secrets = secrets;
        start.nodes = nodes;
        start.boot[0] = start.boot[1] = machine->boot();
        start.last_run = machine->MarkedRun(start.origin);
        State::SetTime(started_, machine->At(true_ms), began_in_recovery_, &start);
        start.skew = skew_;
        const StartPlan plan = State::PlanStart(error, found, start);
        if (plan.secrets == SecretsChange::kRefused && State::kRefusesSecrets) {
            refused_starts_ += !refused_;
            refused_ = true;
            return false;
        }
        run_ = static_cast<uint64_t>(random_->Between(1, INT64_MAX - 1));
        // Where the mark cannot be written, the former one must go.
        if (!Fails())
            machine->MarkRun(start.origin, run_);
        else if (!Fails())
            machine->ForgetRun(start.origin);
        else
            return false;
        found_ = error;
        found_state_ = found;
        start_ = start;
        state_ = plan.state;
        FollowSkew();
        loaded_ = true;
        return true;
    }

    // The decision of randflake_reload_secret(), once the state is loaded if it must be, and what
    // becomes of the state when the secrets are added.
    ReloadPlan PlanReload(const Reload& reload) const {
        return State::PlanReload(reload, loaded_ ? &state_ : nullptr);
    }
    void TakeSecrets(const SecretRecords& secrets) {
        if (loaded_ && State::kWritesSecrets)
            state_.secrets = secrets;
    }

    // announce(), window_take_back_lease()
    bool Announce(const NodeRange& nodes, const Window& window, DataDirectory* directory) {
        WindowState next = state_;
        State::Announce(&next, nodes, window);
        if (!Write(next, directory))
            return false;
        state_ = next;
        return true;
    }
    void TakeBack(uint32_t end, DataDirectory* directory) {
        WindowState next = state_;
        State::TakeBack(&next, end);
        if (Write(next, directory))
            state_ = next;
    }

    // window_write_clean_end()
    void WriteCleanEnd(uint32_t end, DataDirectory* directory, const Machine& machine,
                       int64_t true_ms) {
        State::TakeBack(&state_, end);
        const Moment now = machine.At(true_ms);
        state_.stop = {run_, {machine.boot(), machine.boot()}, now.at_ms, now.clock_ms};
        (void)Write(state_, directory, true);
    }

    size_t failed_writes() const { return failed_writes_; }

private:
    // Few, so that they are given again.
    static constexpr int64_t kInodes = 3;

    bool Fails() { return random_->OneIn(30); }

    bool Write(WindowState state, DataDirectory* directory, bool at_stop = false) {
        if (Fails()) {
            failed_writes_++;
            return false;
        }
        state.skew = skew_;
        if (at_stop)
            state.skew.smallest_ms = present_skew_ms_;
        EncodeWindowState(state, directory->window.emplace().data());
        return true;
    }

    Random* const random_;
    SkewRange skew_{};  // since the start
    uint32_t present_skew_ms_ = 0;
    Moment started_{};
    bool began_in_recovery_ = false;

    bool loaded_ = false;  // the following counts
    StateError found_ = StateError::kNone;
    WindowState found_state_{};
    Start start_{};
    WindowState state_{};
    bool proven_ = false;
    uint32_t opens_at_ = 0, held_off_ = 0;
    int64_t opens_at_ms_ = 0;
    uint64_t run_ = 0;

    bool refused_ = false;
    size_t failed_writes_ = 0, refused_starts_ = 0;
};

}  // namespace randflake::simulation

#endif
