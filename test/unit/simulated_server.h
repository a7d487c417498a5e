// Simulates a server: a data directory, shared memory, and processes that run the shipped code
// (core/server/server.h, core/generator/generator.h) in fibers. A process pauses before each
// access to the slots or the window, each lock and each disk write. Meanwhile other processes run,
// and the server may crash or be copied. Environment calls may fail or hang.
//
// The class also checks rules that a server can break without repeating a number: each used second
// is before the end on disk, and the server never gives a used second back. Windows of a node id
// follow each other in time, and none opens within the hold-off.

#pragma once

#include <array>
#include <functional>
#include <ostream>
#include <set>
#include <string>

#include "core/server/server.h"
#include "data_directory.h"
#include "fiber.h"
#include "lease_cluster.h"
#include "lease_ledger.h"
#include "mutants.h"

namespace randflake::simulation {

struct Request {
    enum Kind { kAcquire, kRenew, kRelease };

    Kind kind;
    int64_t lease_id;
    Incarnation incarnation;
    UnixSecond second;  // kRenew: the known end; kRelease: the last used; inclusive
    int64_t nodes;
    int64_t duration;
    int64_t role;
    int64_t alleged_end = 0;  // the end that a holder claims, later than it knows
    SecretRecords secrets{};  // for kAcquire and kRenew

    friend std::ostream& operator<<(std::ostream& out, const Request& r) {
        static constexpr const char* kNames[] = {"acquire", "renew", "release"};
        return out << kNames[r.kind] << " lease " << r.lease_id << " second " << r.second.count
                   << " duration " << r.duration;
    }
};

struct Answer {
    bool clear = false;    // the coordinator reported the commit, without a warning
    bool refused = false;  // the coordinator clearly refused
    bool row = false;      // the row arrived, whatever followed
    LeaseGrant grant{};    // after kAcquire; after kRenew, only its end

    friend std::ostream& operator<<(std::ostream& out, const Answer& a) {
        return out << (a.clear     ? "clear"
                       : a.row     ? "unclear"
                       : a.refused ? "refused"
                                   : "none")
                   << ", lease " << a.grant.lease_id << ", node id " << a.grant.first_node_id
                   << ", seconds " << a.grant.start.count << " to " << a.grant.end.count;
    }
};

// Runs the request at a coordinator. Returns whether it did it.
inline bool Execute(const Request& r, uint64_t identity, int64_t now, Coordinator* coordinator,
                    LeaseGrant* grant) {
    if (r.kind == Request::kRelease)
        return coordinator->Release(identity, now, r.lease_id, r.incarnation, r.second.count,
                                    r.role);
    std::optional<LeaseGrant> done;
    if (r.kind == Request::kAcquire)
        done = coordinator->Acquire(identity, now, r.incarnation, r.nodes, r.duration, r.secrets,
                                    r.role);
    else if (const auto end = coordinator->Renew(identity, now, r.lease_id, r.incarnation,
                                                 r.second.count, r.duration, r.secrets, r.role))
        done = LeaseGrant{0, 0, 0, {}, {*end}};
    *grant = done.value_or(LeaseGrant{});
    return done.has_value();
}

struct Settings {
    bool leases = false;
    NodeRange nodes{0, 1};  // a leasing server needs only the count
    uint32_t ranges = 1;    // the number of ranges, all of one size

    NodeRanges Ranges() const { return {{nodes.first, nodes.count / ranges}, leases ? 0 : ranges}; }
};

class SimulatedServer {
public:
    static constexpr uint32_t kMaxSlots = 3;

    // Windows have the layout `layout`, with ticks of one second, and numbers have the layout
    // `numbers`. No clock shows the true time `true_ms`. `issues` says whether sessions issue
    // identifiers.
    SimulatedServer(const Layout& layout, const Layout& numbers, bool issues, Mutant mutant,
                    int64_t role, int64_t skew_ms, const int64_t* true_ms, int64_t* births,
                    Ledger* ledger, Events* events, Random* random)
        : layout_(layout),
          numbers_(numbers),
          narrow_(NarrowOf(numbers)),
          issues_(issues),
          mutant_(mutant),
          checks_(mutant == kNothing || BreaksPromise(mutant)),
          role_(role),
          skew_ms_(skew_ms),
          true_ms_(true_ms),
          births_(births),
          ledger_(ledger),
          events_(events),
          random_(random),
          follows_(layout.max_node_id() + 1) {
        for (Process& process : processes_) process.server = this;
        for (Word& word : words_) word.server = this;
        for (Word& word : narrow_words_) word.server = this;
    }
    SimulatedServer(const SimulatedServer&) = delete;
    SimulatedServer& operator=(const SimulatedServer&) = delete;

    DataDirectory& directory() { return directory_; }
    const DataDirectory& directory() const { return directory_; }
    Machine* machine() const { return machine_; }
    void MoveTo(Machine* machine) { machine_ = machine; }
    // After BeCalm(), no operation fails at random and no process pauses at random. From then on,
    // set_reaches_coordinator() decides whether a stopping server reaches the coordinator.
    void BeCalm() { calm_ = true; }
    void set_reaches_coordinator(bool reaches) { reaches_coordinator_ = reaches; }
    void LookBy(std::function<void(PoolLook*)> looks) { looks_ = std::move(looks); }

    void Start(const Settings& settings, const SecretRecords& secrets) {
        settings_ = settings;
        SetSecrets(secrets);
        running_ = true;
        machine_->Unlock(role_);
        postmaster_ = {};
        held_ = nullptr;
        skew_ = Tolerated();
        InitShared();
    }

    void SetSkew(int64_t skew_ms) {
        skew_ms_ = skew_ms;
        if (running_) skew_ = skew_.With(Tolerated());
    }

    // After the crash of a backend, the postmaster ends all processes and resets shared memory.
    void CrashMemory(bool loses_secrets) {
        ledger_->Gone(number_);
        if (loses_secrets) SetSecrets({});
        InitShared();
    }

    void Crash() {
        ledger_->Gone(number_);
        machine_->Unlock(role_);
        KillAll();
        running_ = stopping_ = false;
    }

    bool may_stop() const { return running_ && !stopping_; }
    bool may_seal() const { return may_stop() && worker_idle() && !waits(); }

    // Stops cleanly. First the lease worker gives its leases back, and finally the postmaster ends.
    void Stop() {
        stopping_ = true;
        waits_ = false;
        if (!settings_.leases || directory_.recovers) StepStop();
    }

    void Seal() { Begin(Task::kSeal); }

    void Promote() {
        directory_.recovers = false;
        directory_.timeline++;
    }

    void Pause(int64_t steps) { paused_ = steps; }
    bool PausedNow() { return paused_ > 0 && paused_-- > 0; }

    bool running() const { return running_; }
    bool stopping() const { return stopping_; }
    bool in_recovery() const { return directory_.recovers; }
    bool generates() const { return running_ && !directory_.recovers; }
    const Settings& settings() const { return settings_; }
    const Settings& last_settings() const { return last_settings_; }
    // Returns whether static node ids have an open window. While a window is open, the server
    // cannot use seconds that other servers may have used, even if its clock is set back.
    bool has_opened() const {
        return !Window::FromWord(words_[kWindow].value).closed() && !settings_.leases;
    }
    int64_t role() const { return role_; }
    // Returns the server's number in the ledger. Each reset of shared memory gives a new number.
    uint32_t number() const { return number_; }
    const Lease& open_lease() const { return memory_.holder.open(); }
    bool waits() const { return waits_; }
    bool worker_idle() const { return !worker_.fiber.busy(); }

    bool has_secrets() const { return secrets_.count > 0; }
    const SecretRecords& secrets() const { return secrets_; }
    // Returns whether the server may change to another range of its node ids.
    bool may_leave() const { return running_ && has_opened() && settings_.ranges > 1; }
    Second floor() const { return memory_.state.floor; }
    // Returns the second after the last one that the server may have recorded or leased.
    Second LastEnd() const {
        return std::max(memory_.loaded ? memory_.state.LastEnd() : Second{},
                        memory_.holder.LastEnd());
    }
    bool reloads() const { return session_.task == Task::kReload && session_.fiber.busy(); }
    const SecretRecords& file() const { return file_; }
    // Returns whether `right` holds for the secrets and, during a reload, for the new file.
    template <typename Predicate> bool AllSecrets(Predicate&& right) const {
        const bool decided = reloads() && locked_by_ == &session_;
        return (decided || right(secrets_)) && (!reloads() || right(file_));
    }

    void ReloadSecrets(const SecretRecords& file) {
        if (!running_ || stopping_ || session_.fiber.busy()) return;
        file_ = file;
        Begin(Task::kReload);
        while (in_recovery() && reloads()) Resume(&session_);
    }

    void StepBackend() {
        if (has_secrets()) StepProcess(&processes_[random_->Index(kBackends)]);
    }

    void StepSession() {
        if (!session_.fiber.busy() && has_secrets() && !stopping_) Begin(Task::kExtend);
        StepProcess(&session_);
        StepProcess(&looker_);
    }

    // Performs one step of a clean stop. Only the lease worker and the lock's holder still run.
    void StepStop() {
        if (settings_.leases && !directory_.recovers && !sealed_) {
            if (worker_idle()) Seal();
            StepProcess(&worker_);
            if (!sealed_) return;
        }
        if (locked_by_ != nullptr) {
            StepProcess(locked_by_);
        } else {
            KillAll();
            Begin(Task::kStop);
            Finish(&postmaster_process_);
            Crash();
        }
    }

    void StepLooker() { Finish(&looker_); }
    void Call() {
        Begin(&processes_[0], Task::kGenerate);
        Finish(&processes_[0]);
    }
    void StepWorker() { StepProcess(&worker_); }
    void BeginFollow() { Begin(Task::kFollow); }
    void BeginAsk(int64_t duration, int64_t alleged_end) {
        asked_ = {duration, skew_ms_};
        alleged_end_ = alleged_end;
        Begin(Task::kAsk);
    }
    void BeginHear(const Answer& answer) {
        answer_ = answer;
        waits_ = false;
        Begin(Task::kHear);
    }

    // Lists the events since the last call of TakeDone(): a request that waits for an answer,
    // releases of leases, and whether a reload failed.
    struct Done {
        std::optional<Request> request;
        std::vector<Request> releases;
        bool reload = false;
    };
    bool TakeFailedWrite() { return std::exchange(failed_write_, false); }
    Done TakeDone() { return std::exchange(done_, {}); }

    class Word {
    public:
        uint64_t load(std::memory_order = std::memory_order_seq_cst) const {
            if (server->Reserves()) server->Step();
            return value;
        }
        void store(uint64_t next, std::memory_order = std::memory_order_seq_cst) {
            server->Step();
            if (this == &server->window())
                server->CheckWindow(Window::FromWord(value), Window::FromWord(next));
            value = next;
        }
        uint64_t exchange(uint64_t next, std::memory_order = std::memory_order_seq_cst) {
            server->Step();
            return std::exchange(value, next);
        }
        bool compare_exchange_strong(uint64_t& expected, uint64_t desired,
                                     std::memory_order = std::memory_order_seq_cst,
                                     std::memory_order = std::memory_order_seq_cst) {
            server->Step();
            const bool same = value == expected;
            server->events_->lost_swaps += !same;
            if (same)
                value = desired;
            else
                expected = value;
            return same;
        }

        SimulatedServer* server = nullptr;
        uint64_t value = 0;
    };
    using Holder = simulation::Holder;
    using Decisions = SimulatedServer&;
    using SecretList = SecretRecords;

    const Layout& layout() const { return layout_; }
    ServerMemory<Holder>& memory() { return memory_; }
    Word& window() { return words_[kWindow]; }
    template <typename Use> void WithSlots(Use&& use) {
        use(SlotSet{numbers_, [this](uint32_t i) -> Word& { return words_[i]; }},
            SlotSet{narrow_, [this](uint32_t i) -> Word& { return narrow_words_[i]; }});
    }

    void Lock() {
        Step();
        if (mutant_ == kReloadsWithoutTheLock && current_->task == Task::kReload) return;
        while (locked_by_ != nullptr) Step();
        locked_by_ = current_;
        RecordSkew();
        MayNotComeBack();
    }
    bool TryLock() {
        Step();
        if (locked_by_ != nullptr) return false;
        locked_by_ = current_;
        decided_by_ = current_;
        decided_at_ = Now();
        RecordSkew();
        return true;
    }
    void Unlock() {
        WriteLate();
        if (locked_by_ == current_) locked_by_ = nullptr;
    }
    bool Locked() const { return locked_by_ == current_; }
    bool NoChildrenLeft() const {
        for (const Process& process : processes_)
            if (process.fiber.busy() && &process != &postmaster_process_) return false;
        return true;
    }
    void Wake() {}

    Second Now() const { return SecondOf(Present().wall_ms); }
    Moment Present() const {
        Moment present = machine_->At(*true_ms_);
        if (std::exchange(skips_hold_off_, false)) present.uptime_ms = {INT64_MAX};
        ledger_->Showed(SecondOf(present.wall_ms));
        return present;
    }
    SteadyMs Steady() const { return {*true_ms_}; }
    Ms SkewMs() const { return skew_ms_; }
    SkewRange Skew() { return seen_skew_ = skew_; }
    LeaseTerms Terms() {
        latest_end_ = Now() + asked_.duration + FloorDivide(asked_.skew.count + 999, 1000) + 1;
        return asked_;
    }
    bool Generates() const { return !directory_.recovers; }

    bool ReadState(WindowState* state, StateError* error, Origin* origin) {
        Step();
        MayNotComeBack();
        const bool identity_made = MakeIdentity();
        *origin = {directory_.system_identifier, directory_.timeline, *directory_.identity};
        const bool lost = !directory_.window && !identity_made;
        *error = lost ? StateError::kLost : directory_.Read(state);
        if (*error == StateError::kNone && state->write.number == 0) *error = StateError::kMissing;
        found_skew_ms_ = *error == StateError::kNone ? directory_.largest_skew_ms : 0;
        return !Fails();
    }
    bool PeekAtState(WindowState* state, StateError* error) {
        Step();
        MayNotComeBack();
        *error = directory_.Read(state);
        return !Fails();
    }
    bool WriteState(const WindowState& state) {
        Step();
        MayNotComeBack();
        if (mutant_ == kRecordsNoLeases && settings_.leases) return true;
        if (mutant_ == kLeavesRangesUnwritten && !settings_.leases &&
            state.ends[0].nodes != settings_.Ranges().first)
            return true;
        WindowState written = state;
        if (mutant_ == kResumesOnce && resumed_by_ != nullptr)
            written.leases[0] = written.leases[1] = {};
        if (mutant_ == kWritesNoRenewals && current_->task == Task::kHear &&
            memory_.holder.open().id != 0)
            return true;
        if (mutant_ == kForgetsAddedSecrets) written.secrets = secrets_at_start_;
        if (mutant_ == kWritesNoSkew && current_ != &postmaster_process_)
            written.skew = memory_.found_state.skew;
        if (mutant_ == kStopsWithoutSkew && current_ == &postmaster_process_)
            written.skew.largest_ms = memory_.state.skew.largest_ms;
        if (mutant_ == kReleasesBeforeItStrikes && current_->task == Task::kSeal)
            std::ranges::copy(memory_.state.leases, written.leases);
        LoseStruck(state);
        if (current_->task == Task::kHear &&
            !std::ranges::equal(state.leases, memory_.state.leases)) {
            Holder holder;
            holder.Resume(state.leases);
            TellLedger(holder.newest());
        }
        MayLose(state.leases, true);  // until the marker shows the write
        const bool fails = Fails();
        if (fails && mutant_ == kCountsNoFailedWrites) memory_.run--;
        events_->failed_writes += fails;
        // After a failed write, the disk may have the old or the new state.
        if (mutant_ == kMovesTheWindowFirst && current_ != &postmaster_process_)
            late_ = written;
        else if (!fails || random_->OneIn(2))
            WriteNow(written);
        failed_write_ |= fails;
        loses_renewals_ |= fails;
        std::ranges::copy(state.leases, written_);
        return !fails;
    }
    uint64_t ReadMarker(const Origin& origin) const {
        return !settings_.leases || mutant_ == kResumesWithoutTheLock ? machine_->ReadMarker(origin)
               : machine_->HasName(held_)                             ? held_->number
                                                                      : 0;
    }
    bool SetMarker(const Origin& origin, uint64_t* number) {
        Step();
        MayNotComeBack();
        if (settings_.leases && held_ == nullptr && mutant_ != kMarksWithoutTheLock) {
            *number = 0;
            return true;
        }
        const uint64_t former = std::exchange(former_number_, *number);
        if (Fails()) {
            if (Fails()) return false;
            *number = 0;
        }
        const uint64_t marks = *number != 0 && mutant_ == kMarksTheWriteBefore ? former : *number;
        if (held_ != nullptr)
            held_->number = marks;
        else if (*number == 0)
            machine_->Forget(origin);
        else
            machine_->SetMarker(origin, marks);
        MayLose(written_, false);
        return true;
    }
    void LockMarker() {
        if (!directory_.identity && !directory_.window) directory_.Write({});
        MakeIdentity();
        held_ = machine_->Lock({directory_.system_identifier, 0, *directory_.identity}, role_);
    }
    uint64_t RandomRun() {
        MayNotComeBack();
        return static_cast<uint64_t>(random_->Between(1, INT64_MAX - 1));
    }

    SecretRecords Secrets() {
        MayNotComeBack();
        return secrets_;
    }
    uint32_t SecretCount() const {
        return mutant_ == kHearsOldAnswers ? memory_.named_secrets : secrets_.count;
    }
    void AddSecrets(const SecretRecords&) {
        const bool grown = file_.count > secrets_.count;
        events_->reloads += grown;
        events_->late_reloads += grown && file_.records[file_.count - 1].from <= Now();
        Step();
        SetSecrets(file_);
    }

    void Look() {
        if (mutant_ == kOpensWithoutTheLook)
            memory_.looked = true;
        else if (!looker_.fiber.busy())
            Begin(Task::kLook);
    }
    void Report(const WindowTrouble& trouble) {
        events_->refused_starts +=
            trouble.problem == WindowProblem::kSecrets && problem_ != trouble.problem;
        problem_ = trouble.problem;
    }
    void LogStart(const StartPlan& plan, const WindowState& found, StateError) {
        proven_ = plan.proven;
        for (uint32_t i = 0; i < kMaxLeases; i++) {
            const Lease &former = found.leases[i], &kept = plan.state.leases[i];
            if (kept.id != 0) {
                Resumed(kept);
            } else if (former.id != 0) {
                ledger_->MayLose(GrantOf(former), Required(CannotResume(found, former)));
                if (mutant_ == kReleasesWhatItDoesNotResume)
                    done_.releases.push_back(
                        ReleaseOf({former, ToUnix(found.EndFor(former.nodes) - 1)}));
            }
        }
        secrets_at_start_ = plan.state.secrets;
        MayNotComeBack();
    }
    void LogRange(uint32_t, Second) {
        events_->left_ranges++;
        MayNotComeBack();
    }
    void ShowRanges(uint32_t, const Second (&)[kMaxRanges]) {}
    void Closing(const Window&) {}
    void ShowLeases(const Holder& holder) {
        if (current_->task == Task::kHear) TellLedger(holder.newest());
    }
    Second DecodeHorizon() const { return decode_horizon_; }
    void SetDecodeHorizon(Second second) { decode_horizon_ = second; }
    void TakeBack(WindowState* state, Second end) {
        if (mutant_ == kForgetsWhereARangeWasLeft) memory_.earliest[memory_.range] = {};
        if (mutant_ == kTakesBackWhatAFormerWindowRecorded) state->end_before = {};
        state->TakeBack(mutant_ == kGivesAllBack ? Second{} : end);
    }

    void SetTime(const Moment& started, const Moment& now, bool may_be_promoted,
                 randflake::Start* start) const {
        randflake::SetTime(started, now, may_be_promoted && mutant_ != kHoldsOffFromTheServersStart,
                           start);
    }
    StartPlan PlanStart(StateError error, const WindowState& found,
                        const randflake::Start& start) const {
        randflake::Start planned = start;
        if (mutant_ == kProvesByTheFirstRange && !settings_.leases)
            planned.nodes = settings_.Ranges().first;
        StartPlan plan = PlanStartBroken(mutant_, error, found, planned);
        // After a change of the skew, the server makes its plan again. These mutants ignore the new
        // floor, or the new hold-off.
        if (memory_.loaded && mutant_ == kRaisesNoFloor) plan.state.floor = {};
        if (memory_.loaded &&
            mutant_ == (settings_.leases ? kKeepsTheHoldOffOfALease : kKeepsTheHoldOffOfTheStart)) {
            plan.opens_at_ms = memory_.opens_at_ms;
            plan.held_off_until = memory_.held_off_until;
            plan.state.floor = {};
        }
        return plan;
    }
    ReloadPlan PlanReload(Reload reload, const WindowState* state) const {
        if (mutant_ == kLooksAtLeasesFirst && resumed_by_ == current_) reload.leases_end = {};
        return PlanReloadBroken(mutant_, reload, state);
    }
    bool Resumes(const WindowState& found, const randflake::Start& start,
                 const Lease& lease) const {
        return ResumesBroken(mutant_, found, start, lease);
    }
    Second OpensAt(const WindowState& state, const NodeRange& nodes) const {
        return mutant_ == kOpensBelowTheWrittenEnd ? state.floor : state.OpensAt(nodes);
    }
    uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                         const Second (&earliest)[kMaxRanges], Second now) {
        WindowState known = state;
        if (mutant_ == kChoosesRangesInUse) known.end_count = 0;
        if (mutant_ == kForgetsTheFloor) known.floor = {};
        if (mutant_ == kChoosesByAnotherClock) now = std::max(now, SecondOf(WallMs{*true_ms_}));
        const uint32_t chosen = randflake::ChooseRange(known, ranges, in_use, earliest, now);
        known.floor = {};
        events_->floor_waits +=
            chosen == ranges.count &&
            randflake::ChooseRange(known, ranges, in_use, earliest, now) != chosen;
        if (chosen < ranges.count)
            events_->entered_again += state.EndFor(ranges.At(chosen)) > Second{};
        skips_hold_off_ = chosen < ranges.count && mutant_ == kEntersRangesDuringTheHoldOff;
        return chosen;
    }
    Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                        Second held_off_until) {
        return mutant_ == kOpensLeasesAnywhere ||
                       (mutant_ == kGivesBackWhatItUsedBefore && current_->task == Task::kSeal)
                   ? Second{}
                   : randflake::LeaseOpensAt(error, state, nodes, held_off_until);
    }
    template <typename... Sets>
    bool ChangeWindow(uint32_t slots, uint64_t first_node, Word& window, Window next,
                      const Sets&... sets) {
        CheckOpening(slots, first_node, next);
        changes_ = true;
        bool changed = true;
        if (mutant_ == kOpensFirst) {
            window.store(next.ToWord());
            const auto store = [&](const auto& set) {
                for (uint32_t i = 0; i < set.layout.Slots(slots); i++) {
                    uint64_t word = 0;
                    WordBefore(set.layout, next, first_node + i, &word);
                    set.slot(i).store(word);
                }
            };
            (store(sets), ...);
        } else {
            changed = randflake::ChangeWindow(slots, first_node, window, next, sets...);
        }
        changes_ = false;
        last_settings_ = settings_;
        if (settings_.leases) last_settings_.nodes = {static_cast<uint32_t>(first_node), slots};
        if (!settings_.leases) (proven_ ? events_->proven_starts : events_->held_off_starts)++;
        return changed;
    }
    template <typename... Sets>
    Second SealWindow(uint32_t slots, Word& window, const Sets&... sets) {
        changes_ = true;
        Second last = kNotUsed;
        const bool leaves = mutant_ == kLeavesRangesByClosing && !settings_.leases;
        if (mutant_ == kSealsByClosing || leaves) {
            const Window old = Window::FromWord(window.load());
            window.store(Window::ClosedUntil(old.end).ToWord());
            const auto look_at = [&](const auto& set) {
                for (uint32_t i = 0; i < set.layout.Slots(slots); i++)
                    last = std::max(last, LastSecondUsed(set.layout, set.slot(i).load(), old));
            };
            (look_at(sets), ...);
            if (leaves)
                window.store(Window::ClosedUntil(std::max(last, old.start - 1) + 2).ToWord());
            last = last >= old.start ? last : kNotUsed;
        } else {
            last = randflake::SealWindow(slots, window, sets...);
        }
        changes_ = false;
        last_used_ = last;
        return last;
    }

private:
    SkewRange Tolerated() const {
        const auto skew = static_cast<uint32_t>(skew_ms_);
        return {skew, skew};
    }

    enum class Task : uint8_t {
        kGenerate,  // backends
        kExtend,
        kReload,  // a session
        kAsk,
        kHear,
        kFollow,
        kSeal,  // the lease worker
        kLook,
        kStop,  // the postmaster
    };
    struct Process {
        void operator()() { server->Perform(this); }

        SimulatedServer* server = nullptr;
        Task task = Task::kGenerate;
        Fiber fiber{};
        int64_t paused = 0;        // steps until the process resumes
        int secrets_at_first = 0;  // secrets when a backend starts
    };
    static constexpr size_t kBackends = 3;
    static constexpr size_t kWindow = kMaxSlots;

    void InitShared() {
        static_assert(kEmptySlot == 0);
        KillAll();
        number_ = ledger_->NewServer(role_);
        for (Word& word : words_) word.value = 0;
        for (Word& word : narrow_words_) word.value = 0;
        const uint64_t boot[] = {machine_->boot(), machine_->boot()};
        std::ranges::copy(boot, postmaster_.machine_boot);
        core_.MakeMemory(settings_.leases, settings_.Ranges(), boot, directory_.recovers,
                         &postmaster_);
        memory_.holder.mutant = mutant_;
        resumed_by_ = nullptr;
        former_number_ = 0;
        std::fill(follows_.begin(), follows_.end(), Second{});
        skips_hold_off_ = false;
        problem_ = WindowProblem::kNone;
        decode_horizon_ = {};
        paused_ = 0;
        waits_ = stopping_ = sealed_ = false;
    }

    void KillAll() {
        if (reloads()) done_.reload = true;
        for (Process& process : processes_) {
            process.fiber.Abandon();
            process.paused = process.secrets_at_first = 0;
        }
        locked_by_ = nullptr;
        late_.reset();
        changes_ = false;
        waits_ = false;
    }

    Process& ProcessOf(Task task) {
        return task == Task::kStop                              ? postmaster_process_
               : task == Task::kLook                            ? looker_
               : task == Task::kExtend || task == Task::kReload ? session_
                                                                : worker_;
    }
    void Begin(Task task) { Begin(&ProcessOf(task), task); }
    void Begin(Process* process, Task task) {
        process->task = task;
        process->fiber.Start(process);
    }

    void StepProcess(Process* process) {
        const bool generates = process < &session_;
        if (process->paused > 0) {
            process->paused--;
            return;
        }
        // A process with the lock pauses only briefly, because all other processes wait.
        const bool long_pauses = generates && locked_by_ != process;
        if (!process->fiber.busy() && generates)
            Begin(process, Task::kGenerate);
        else if (process->fiber.busy() && !calm_ &&
                 random_->OneIn(!long_pauses ? 100
                                : issues_    ? 250
                                             : 30))
            process->paused = random_->Between(1, long_pauses ? 300 : 30);
        if (process->fiber.busy()) Resume(process);
    }

    void Finish(Process* process) {
        while (process->fiber.busy()) Resume(process);
    }
    void Resume(Process* process) {
        current_ = process;
        failing_ = this;
        assert_handler = [](const char* condition) { failing_->AssertionFailed(condition); };
        process->fiber.Resume();
        current_ = nullptr;
        if (!process->fiber.busy() && process->task == Task::kReload)
            done_.reload |= secrets_.count != file_.count;
    }

    // With a mutant, assertions do nothing: the ledger or the checks must find the violation.
    void AssertionFailed(const char* condition) {
        if (mutant_ != kNothing) return;
        ledger_->Violated(std::string("assertion failed: ") + condition);
        EndCurrent();
    }

    [[noreturn]] void EndCurrent() {
        if (locked_by_ == current_) locked_by_ = nullptr;
        late_.reset();
        changes_ = false;
        loses_renewals_ = true;
        current_->fiber.End();
    }

    // Lets other processes run. The postmaster does not pause, because it runs alone.
    void Step() {
        if (current_ != nullptr && current_ != &postmaster_process_) current_->fiber.Pause();
    }
    bool Fails() { return !calm_ && random_->OneIn(30); }
    void MayNotComeBack() {
        if (current_ == nullptr || current_ == &postmaster_process_ || calm_ ||
            !random_->OneIn(400))
            return;
        EndCurrent();
    }
    bool Reserves() const {
        return current_ != nullptr && current_->task == Task::kGenerate && locked_by_ != current_;
    }

    void Perform(Process* process) {
        switch (process->task) {
            case Task::kGenerate: return Generate(process);
            case Task::kExtend: (void)core_.Extend(); return;
            case Task::kReload: return Reload();
            case Task::kAsk: return Ask();
            case Task::kHear: return Hear();
            case Task::kFollow: return Follow();
            case Task::kSeal: return GiveUp();
            case Task::kLook: {
                PoolLook look{settings_.Ranges(), {}};
                looks_(&look);
                for (const Second until : look.free_at) ledger_->MayBeLeasedTo(until.count);
                return core_.Looked(look.free_at);
            }
            case Task::kStop: return core_.Stop({machine_->boot(), machine_->boot()});
        }
    }

    void Generate(Process* process, bool again = true) {
        if (again && !calm_ && random_->OneIn(8)) return ReserveNarrow();
        Word& slot = words_[random_->Index(static_cast<size_t>(slots()))];
        const auto wanted = static_cast<uint32_t>(random_->Between(1, 3));
        const int before = ring_.count();
        if (process->secrets_at_first == 0) process->secrets_at_first = before;
        int then = 0;
        const Reservation reservation = UseReserved(
            [&] {
                const Reservation reserved = Reserved(slot, wanted);
                then = ring_.count();
                return reserved;
            },
            [&] {
                if (issues_) Step();
                return mutant_ == kKeepsTheSessionsSecrets ? process->secrets_at_first
                       : mutant_ == kLooksBeforeItReserves ? before
                                                           : ring_.count();
            },
            [&](const Reservation& reserved, int secrets) {
                events_->reserved_then_added += reserved.count > 0 && then != ring_.count();
                if (issues_) Issue(reserved, secrets);
                return reserved;
            });
        if (ClockIsBehind(numbers_, reservation, SkewMs()) ||
            reservation.outcome == Outcome::kWindowClosed ||
            reservation.outcome == Outcome::kWindowEnded) {
            if (!calm_ && !random_->OneIn(8)) return;
            decided_by_ = nullptr;
            const bool moved = core_.Extend();
            Judge(slot);
            if (moved && again) Generate(process, false);
        } else if (reservation.outcome == Outcome::kReserved && NearsEnd(numbers_, reservation) &&
                   random_->OneIn(8)) {
            (void)core_.Extend();
        }
    }

    void ReserveNarrow() {
        Word& slot = narrow_words_[random_->Index(narrow_.Slots(static_cast<uint32_t>(slots())))];
        const Reservation reservation =
            randflake::Reserve(narrow_, slot, window(), 1, [this] { return NowTick(); });
        CheckReserved(narrow_, reservation);
        for (uint32_t i = 0; i < reservation.count; i++)
            ledger_->UseNarrow(number_, settings_.leases, reservation.first + i);
    }

    Reservation Reserved(Word& slot, uint32_t wanted) {
        const Reservation reservation = Reserve(slot, wanted);
        CheckReserved(numbers_, reservation);
        for (uint32_t i = 0; i < reservation.count; i++)
            ledger_->Use(number_, settings_.leases, reservation.first + i);
        if (!settings_.leases) events_->static_numbers += reservation.count;
        events_->reserved_during_change += reservation.count > 0 && changes_;
        return reservation;
    }

    Reservation Reserve(Word& slot, uint32_t wanted) {
        const auto clock = [this] { return NowTick(); };
        if (mutant_ != kPlainStore)
            return randflake::Reserve(numbers_, slot, window(), wanted, clock);
        const uint64_t word = slot.load();
        const Reservation reservation =
            NextReservation(numbers_, word, clock(), Window::FromWord(window().load()), wanted);
        if (reservation.outcome == Outcome::kReserved)
            slot.store(reservation.first + reservation.count - 1);
        return reservation;
    }

    // Issues an identifier for each reserved number that the ring does not skip. A session issues
    // the first identifier at once, and the others in later calls within the same second.
    void Issue(const Reservation& reservation, int count) {
        bool first = true;
        for (uint32_t next = 0; next < reservation.count; next++) {
            if (!first) {
                Step();
                if (reservation.now != NowTick()) return;
            }
            const uint64_t raw = reservation.first + next;
            const Ring<ToyCipher> ring = ring_.First(count);
            uint64_t id;
            if (!Encrypt(ring, raw, &id)) {
                events_->skipped++;
                continue;
            }
            first = false;
            events_->later_identifiers += ring.OwnerOf(numbers_, raw) > 0;
            events_->encrypted_then_added += count != ring_.count();
            ledger_->Issue(raw, id);
        }
    }

    bool Encrypt(const Ring<ToyCipher>& ring, uint64_t raw, uint64_t* id) const {
        const int owner =
            mutant_ == kEncryptsByTheClock ? ring.GenerationAt(Now()) : ring.OwnerOf(numbers_, raw);
        switch (mutant_) {
            case kSkipsNothing: *id = ring[owner].Encrypt(raw); return true;
            case kSkipsByTheNumbersInterval:
                *id = ring[owner].Encrypt(raw);
                for (int earlier = 0; earlier < owner; earlier++)
                    if (ring.OwnerOf(numbers_, ring[earlier].Decrypt(*id)) == owner) return false;
                return true;
            case kEncryptsByTheClock:
                *id = ring[owner].Encrypt(raw);
                return !ring.ClaimedBefore(numbers_, owner, *id);
            default: return ring.Encrypt(numbers_, raw, id);
        }
    }

    void Reload() {
        const ReloadResult result = core_.AddSecrets(file_, file_);
        events_->refused_reloads += !result.state_known || result.plan.error != ReloadError::kNone;
    }

    void Ask() {
        const LeaseQuestion question = core_.Ask(
            mutant_ == kSameIncarnation ? Incarnation{} : Incarnation{{number_, ++requests_}});
        const LeaseRequest& asked = question.request;
        if (asked.kind == LeaseRequest::Kind::kNone) return;
        const bool renews = asked.kind == LeaseRequest::Kind::kRenew;
        waits_ = true;
        done_.request = {renews ? Request::kRenew : Request::kAcquire,
                         asked.lease_id,
                         asked.incarnation,
                         asked.expected_end,
                         slots(),
                         asked_.duration.count,
                         role_,
                         renews ? alleged_end_ : 0,
                         question.secrets};
    }

    void Hear() {
        const bool granted = answer_.clear || (answer_.row && mutant_ == kTakesUnclearGrants);
        const bool renews = memory_.holder.awaits() == LeaseRequest::Kind::kRenew;
        LeaseReply reply{};
        reply.kind = granted && renews ? LeaseReply::Kind::kRenewed
                     : granted         ? LeaseReply::Kind::kGranted
                     : answer_.refused ? LeaseReply::Kind::kRefused
                                       : LeaseReply::Kind::kNone;
        reply.grant = answer_.grant;
        reply.renewed_to = answer_.grant.end;
        reply.tells_of_secrets = random_->OneIn(24);
        if (reply.tells_of_secrets) reply.differs_from = {random_->Between(0, 3)};
        heard_ = reply.kind;
        known_ = memory_.holder.newest();
        LeaseRelease declined{};
        const LeaseOutcome outcome = core_.Answered(reply, &declined);
        if (declined.lease.id != 0) done_.releases.push_back(ReleaseOf(declined));
        events_->kept_behind += outcome == LeaseOutcome::kBehind;
        events_->unheard_answers += granted && outcome == LeaseOutcome::kNothing;
    }

    void TellLedger(const Lease& held) {
        const bool other = held.id != known_.id || held.incarnation != known_.incarnation ||
                           held.asked_at_ms != known_.asked_at_ms || held.end != known_.end;
        if (!other) return;
        const LeaseReply::Kind heard = std::exchange(heard_, LeaseReply::Kind::kNone);
        if (heard == LeaseReply::Kind::kRenewed) Renewed(held);
        if (heard == LeaseReply::Kind::kGranted) Granted(held);
    }

    void Granted(const Lease& next) {
        if (next.end > latest_end_ && next.end - next.start > asked_.duration)
            ledger_->TooLong(next.end.count);
        GrantOf(next) = ledger_->Grant(number_);
        ledger_->Claim(GrantOf(next), next.nodes.first, slots(), next.start.count, next.end.count);
    }

    void Renewed(const Lease& held) {
        if (held.end > known_.end && held.end > latest_end_ &&
            held.lasts_until_ms >
                held.asked_at_ms + (asked_.duration.count + 1) * 1000 + asked_.skew)
            ledger_->TooLong(held.end.count);
        ledger_->Claim(GrantOf(held), held.nodes.first, slots(), known_.end.count, held.end.count);
    }

    // Checks that, by the server's own clock, no window ends later than the server requested.
    void CheckWindow(const Window& before, const Window& next) {
        if (settings_.leases && !next.closed() && next.end > before.end && next.end > latest_end_)
            ledger_->TooLong(next.end.count);
    }

    void Follow() {
        Second used_until;
        if (core_.OpenLease(&used_until) != LeaseOpening::kUsed) return;
        const LeaseRelease release = core_.DropNext();
        if (release.lease.id != 0) done_.releases.push_back(ReleaseOf(release));
    }

    // Ends the lease worker. Returns the server's unused seconds to the ledger. Sends the
    // coordinator the releases that the holder computes.
    void GiveUp() {
        if (!calm_) reaches_coordinator_ = !random_->OneIn(3);
        const LeaseReleases releases =
            core_.Seal(reaches_coordinator_ || mutant_ == kStrikesUnheard);
        for (const LeaseRelease& release : {releases.open, releases.next}) {
            const Lease& held = release.lease;
            if (held.id == 0) continue;
            const bool used = held.id == releases.open.lease.id && last_used_ != kNotUsed;
            ledger_->GiveBack(GrantOf(held), held.nodes.first, slots(),
                              (used ? last_used_ + 1 : held.start).count,
                              SecondsEnd(layout_).count);
            if (checks_)
                ledger_->Unused(held.nodes.first, slots(), (FromUnix(release.last_used) + 1).count,
                                held.end.count);
            done_.releases.push_back(ReleaseOf(release));
            // Server::Seal counts seconds before the written end as used. The mutant does not.
            if (mutant_ == kGivesAllBack) done_.releases.back().second = ToUnix(held.start - 1);
        }
        sealed_ = stopping_;
    }

    Request ReleaseOf(const LeaseRelease& release) const {
        return {Request::kRelease,
                release.lease.id,
                release.lease.incarnation,
                release.last_used,
                slots(),
                0,
                role_};
    }

    int& GrantOf(const Lease& lease) {
        const bool known = lease.incarnation != Incarnation{};
        return ledger_->GrantOf(known ? lease.incarnation : Incarnation{{number_, 0}});
    }
    void MayLose(const Lease (&leases)[kMaxLeases], bool may) {
        for (const Lease& lease : leases)
            if (lease.id != 0) ledger_->MayLose(GrantOf(lease), may);
    }
    // Notes which of the leases that the written state no longer contains the server may lose.
    void LoseStruck(const WindowState& written) {
        for (const Lease& lease : memory_.state.leases) {
            const auto same = [&](const Lease& kept) {
                return kept.incarnation == lease.incarnation && kept.id == lease.id;
            };
            if (lease.id == 0 || std::ranges::any_of(written.leases, same)) continue;
            const bool over = lease.end <= ledger_->latest() ||
                              randflake::LeaseOpensAt(memory_.found, written, lease.nodes,
                                                      memory_.held_off_until) >= lease.end ||
                              (current_->task == Task::kSeal && reaches_coordinator_);
            const bool refused =
                !over && current_->task == Task::kHear &&
                (lease.refused || answer_.refused || refused_.contains(GrantOf(lease)));
            if (over || refused) ledger_->MayLose(GrantOf(lease), true);
            if (refused) refused_.insert(GrantOf(lease));  // the write may fail, and the lease stay
        }
    }
    // Returns whether a start that finds this state on disk cannot resume this lease.
    bool CannotResume(const WindowState& found, const Lease& lease) const {
        const randflake::Start& start = memory_.start;
        const WriteRecord& write = found.write;
        if (!Generates() || found.origin != start.origin ||
            lease.nodes.count != start.leased_nodes || found.secrets.count == 0 ||
            CompareSecrets(found.secrets, start.secrets, lease.end) != SecretsChange::kNone ||
            (start.marker != 0 && start.marker != write.number && start.marker != write.follows))
            return true;
        if (write.postmaster == start.postmaster) return false;
        return machine_->boot() == 0 || (write.boot[0] != machine_->boot() && write.boot[0] != 0) ||
               held_ == nullptr || start.marker == 0;
    }
    void Resumed(const Lease& lease) {
        const int grant = GrantOf(lease);
        loses_renewals_ |= grant != 0 && ledger_->may_lose(grant);
        if (lease.incarnation != Incarnation{})
            ledger_->Resume(ledger_->GrantOf(lease.incarnation), number_);
        resumed_by_ = current_;
        events_->resumed++;
    }

    void WriteLate() {
        if (!late_) return;
        Step();
        WriteNow(*late_);
        late_.reset();
    }
    bool MakeIdentity() {
        if (directory_.identity) return false;
        ++*births_;
        // With three inode numbers, files soon reuse the numbers of deleted files.
        directory_.identity = FileIdentity{static_cast<uint64_t>(*births_ % 3), 0, *births_};
        return true;
    }
    void WriteNow(const WindowState& state) {
        directory_.Write(state);
        directory_.largest_skew_ms = seen_skew_.largest_ms;
    }

    bool Required(bool cause) {
        if (!cause && checks_)
            ledger_->Violated("a server refuses, or loses a lease, for no cause");
        return cause;
    }

    // Judges a session that has tried to get a window for this slot, and still gets no number: that
    // needs a cause. The judge knows all states, clocks and grants.
    void Judge(const Word& slot) {
        const Outcome outcome = NextReservation(numbers_, slot.value, NowTick(),
                                                Window::FromWord(words_[kWindow].value), 1)
                                    .outcome;
        if (checks_ && decided_by_ == current_ && decided_at_ == Now() &&
            outcome != Outcome::kReserved)
            Required(MustRefuse(outcome));
    }
    bool MustRefuse(Outcome outcome) {
        const Second now = Now();
        if (now < Second{0} || now >= SecondsEnd(layout_) || outcome == Outcome::kExhausted ||
            outcome == Outcome::kNoWord || outcome == Outcome::kClockBeforeEpoch ||
            outcome == Outcome::kClockAfterEnd)
            return true;
        const NodeRange all{0, static_cast<uint32_t>(layout_.max_node_id()) + 1};
        const NodeRange& nodes = settings_.leases ? all : settings_.nodes;
        for (uint32_t node = nodes.first; node < nodes.first + nodes.count; node++) {
            int grant = 0;
            if (!ledger_->CouldUse(number_, settings_.leases, node, now.count, &grant)) continue;
            if (!settings_.leases) return MustNotOpen(now, memory_.ranges.At(memory_.range));
            bool lost = !memory_.loaded || memory_.keeps_leases || ledger_->may_lose(grant);
            const Lease& open = memory_.holder.open();
            for (const Lease& lease : {open, memory_.holder.next()})
                if (lease.id != 0 && GrantOf(lease) == grant)
                    lost = now >= lease.end  ? loses_renewals_ || lost
                           : now >= open.end ? MustNotOpen(now, lease.nodes)
                                             : now < open.start || MustNotOpen(now, open.nodes);
            if (!lost) return false;
        }
        return true;
    }
    // Returns whether the server has a cause to open no window of the node ids `nodes` at `now`.
    bool MustNotOpen(Second now, const NodeRange& nodes) {
        const bool leases = settings_.leases;
        const Window window = Window::FromWord(words_[kWindow].value);
        if (problem_ == WindowProblem::kSecrets || Steady() < memory_.retry_at_ms ||
            (!window.closed() && now + 1 < window.end))
            return true;
        const bool held_off = leases ? UnknownState() : !memory_.proven;
        if ((!leases && now < memory_.state.floor) ||
            (held_off && !MayOpen(memory_.held_off_until, leases ? UptimeMs{} : memory_.opens_at_ms,
                                  now, Present().uptime_ms)))
            return true;
        Second first = std::max(memory_.state.EndFor(nodes), window.earliest());
        if (!leases) first = std::max(first, memory_.earliest[memory_.range]);
        // The end that is written ahead, a clock that was set back, or a look that is not done.
        if (now < first)
            return first - now <= kWindowSeconds || first <= ledger_->latest() + kWindowSeconds ||
                   (!leases && first <= Second{ledger_->last_claimed()});
        return !leases && !memory_.looked && !memory_.proven;
    }

    bool UnknownState() const {
        return memory_.found != StateError::kNone && memory_.found != StateError::kMissing;
    }

    void RecordSkew() {
        if (settings_.leases || Window::FromWord(words_[kWindow].value).closed())
            decided_skew_ = skew_;
    }

    void CheckOpening(uint32_t slots, uint64_t first_node, const Window& next) {
        if (!checks_) return;
        for (uint64_t node = first_node; node < first_node + slots; node++) {
            if (next.start < follows_[node])
                ledger_->Violated("windows of a node id do not follow each other in time");
            follows_[node] = next.start;
        }
        if (settings_.leases ? !UnknownState() : proven_) return;
        const int64_t skew_ms = std::max(decided_skew_.largest_ms, found_skew_ms_);
        if ((!settings_.leases && Present().uptime_ms <= memory_.start.uptime_ms + skew_ms) ||
            next.start <= SecondOf(memory_.start.wall_ms + skew_ms))
            ledger_->Violated("a window opens within the hold-off");
    }

    void CheckReserved(const Layout& layout, const Reservation& reservation) {
        if (!checks_ || reservation.count == 0) return;
        const Fields fields = layout.Unpack(reservation.first);
        const Second second = layout.SecondOf(fields.timestamp);
        follows_[fields.node_id] = std::max(follows_[fields.node_id], second + 1);
        WindowState state{};
        if (directory_.Read(&state) != StateError::kNone ||
            state.EndFor({static_cast<uint32_t>(fields.node_id), 1}) <= second)
            ledger_->Violated("a number lies beyond what the disk says");
    }

    int64_t slots() const { return settings_.nodes.count / settings_.ranges; }
    Tick NowTick() const { return numbers_.TickAt(Present().wall_ms); }

    void SetSecrets(const SecretRecords& secrets) {
        secrets_ = secrets;
        ring_ = ToyRing(numbers_, secrets);
    }

    const Layout layout_;
    const Layout numbers_;
    const Layout narrow_;
    const bool issues_;
    const Mutant mutant_;
    const bool checks_;   // checks promises
    const int64_t role_;  // its role at the coordinator
    int64_t skew_ms_;
    const int64_t* const true_ms_;
    int64_t* const births_;
    Ledger* const ledger_;
    Events* const events_;
    Random* const random_;
    static inline SimulatedServer* failing_ = nullptr;  // the running server

    Machine* machine_ = nullptr;
    DataDirectory directory_;

    // The postmaster.
    bool running_ = false, stopping_ = false, sealed_ = false;
    PostmasterMemory postmaster_{};
    OpenMarker held_;  // the locked marker
    std::function<void(PoolLook*)> looks_;
    SkewRange skew_{};       // since its start
    SkewRange seen_skew_{};  // known to its processes
    Settings settings_;
    int64_t paused_ = 0;
    Settings last_settings_;

    // Shared memory.
    randflake::Server<SimulatedServer> core_{*this};
    uint32_t number_ = 0;
    ServerMemory<Holder> memory_{};
    std::array<Word, kMaxSlots + 1> words_{};  // the slots; last, the window
    std::array<Word, kMaxSlots> narrow_words_{};
    SecretRecords secrets_{};
    ToyRing ring_;  // for secrets_
    SecretRecords secrets_at_start_{};
    WindowProblem problem_{};
    Second decode_horizon_{};
    bool proven_ = false;
    std::vector<Second> follows_;          // per node id, the first second of its next window
    SkewRange decided_skew_{};             // decides when the closed window may open
    uint32_t found_skew_ms_ = 0;           // the largest that the state's writer tolerated
    mutable bool skips_hold_off_ = false;  // at the next look at the uptime

    // Processes.
    std::array<Process, kBackends + 4> processes_{};
    Process &session_ = processes_[kBackends], &worker_ = processes_[kBackends + 1],
            &postmaster_process_ = processes_[kBackends + 2], &looker_ = processes_[kBackends + 3];
    Process* current_ = nullptr;
    Process* locked_by_ = nullptr;
    bool changes_ = false;             // a process changes the slots or the window
    Second last_used_ = kNotUsed;      // of the window that was sealed last
    std::optional<WindowState> late_;  // is written at the lock's release
    SecretRecords file_{};             // the reloaded file
    LeaseTerms asked_{1, 0};
    Second latest_end_{};  // the window's end at the last check
    int64_t alleged_end_ = 0;
    Answer answer_;
    bool waits_ = false;        // the lease worker waits for an answer
    LeaseReply::Kind heard_{};  // a reply that the ledger does not know yet
    Lease known_{};
    uint64_t requests_ = 0;
    uint64_t former_number_ = 0;
    bool failed_write_ = false;            // others could see the write
    Lease written_[kMaxLeases]{};          // the leases in the last write
    const Process* resumed_by_ = nullptr;  // resumed leases since the start
    const Process* decided_by_ = nullptr;  // decided last about the window
    Second decided_at_{};
    bool loses_renewals_ = false;  // some write failed, or some call never returned
    std::set<int> refused_;        // grants whose renewal the coordinator refused
    bool calm_ = false;
    bool reaches_coordinator_ = false;  // the worker, when it seals
    Done done_;
};
static_assert(Environment<SimulatedServer>);

}  // namespace randflake::simulation
