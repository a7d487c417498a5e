// A server in the simulation: data directory, shared memory, backends that reserve numbers and move
// a static window on, the lease worker. The generator, the decisions about the state on disk and
// the holder of leases are the shipped code; what is left of lease_worker.cpp, lease.cpp and
// window.cpp is who calls them. Calls advance one shared operation at a time (replay.h), and every
// write to the disk is a step, so that a server can be paused, crash or be copied at any point.

#ifndef RANDFLAKE_UNIT_LEASE_SERVER_H
#define RANDFLAKE_UNIT_LEASE_SERVER_H

#include <array>
#include <ostream>

#include "core/lease_holder.h"
#include "lease_cluster.h"
#include "lease_ledger.h"
#include "replay.h"
#include "window_keeper.h"

namespace randflake::simulation {

using Packed = explorer::Packing<uint64_t, 64>;
using Replay = explorer::BasicReplay<Packed>;
using Trail = explorer::BasicTrail<Packed>;
using Cell = explorer::BasicCell<Replay>;

// The code under test. Broken variants, which derive from it, take its place.
struct ShippedHolder : LeaseHolder {
    static constexpr bool kUnclearIsNoGrant = true;
    static constexpr bool kFreshIncarnation = true;
    // An answer counts only if no secret was added since the request: lease_take_over().
    static constexpr bool kAnswersKnowSecrets = true;

    // Shared memory is made anew after a crash.
    void Forget() { static_cast<LeaseHolder&>(*this) = {}; }

    static Run Reserve(const Layout& layout, Cell& slot, const Cell& window, uint32_t wanted,
                       auto clock) {
        return randflake::Reserve(layout, slot, window, wanted, clock);
    }
    static bool ChangeWindow(const Layout& layout, auto slot, uint32_t slots, uint64_t first_node,
                             Cell& window, Window next) {
        return randflake::ChangeWindow(slots, first_node, window, next, SlotSet{layout, slot});
    }
    static int64_t SealWindow(const Layout& layout, auto slot, uint32_t slots, Cell& window) {
        return randflake::SealWindow(slots, window, SlotSet{layout, slot});
    }

    // How many secrets a session uses for what it has reserved: those that there were when it
    // began, when it began to reserve, and when it has reserved.
    static int Secrets(int, int, int present) { return present; }
    // False if the number is skipped. `second` is the clock's.
    static bool Encrypt(const Ring<ToyCipher>& ring, const Layout& layout, uint64_t raw, int64_t,
                        uint64_t* id) {
        return ring.Encrypt(layout, raw, id);
    }
};

struct Request {
    enum Kind { kAcquire, kRenew, kRelease };

    Kind kind;
    int64_t lease_id;
    Incarnation incarnation;
    int64_t second;  // Unix: of kRenew the known end, of kRelease the last used, both inclusive
    int64_t nodes;
    int64_t duration;
    int64_t role;
    int64_t alleged_end = 0;  // of a holder that says it knows of a later end than it does
    SecretRecords secrets{};  // of kAcquire and kRenew

    friend std::ostream& operator<<(std::ostream& out, const Request& r) {
        static constexpr const char* kNames[] = {"acquire", "renew", "release"};
        return out << kNames[r.kind] << " lease " << r.lease_id << " second " << r.second
                   << " duration " << r.duration;
    }
};

struct Answer {
    bool clear = false;    // the coordinator said that it is committed, without a warning
    bool refused = false;  // clearly
    bool row = false;      // the row arrived, whatever came after
    LeaseGrant grant{};    // of kAcquire; of kRenew, only the end

    friend std::ostream& operator<<(std::ostream& out, const Answer& a) {
        return out << (a.clear     ? "clear"
                       : a.row     ? "unclear"
                       : a.refused ? "refused"
                                   : "none")
                   << ", lease " << a.grant.lease_id << ", node id " << a.grant.first_node_id
                   << ", seconds " << a.grant.start << " to " << a.grant.end;
    }
};

// What a server uses node ids by.
struct Settings {
    bool leases = false;
    NodeRange nodes{0, 1};  // of a server that leases, only the count matters
};

// What happened around secrets, in all starts of a server.
struct SecretEvents {
    size_t reloads = 0, late_reloads = 0;  // that added secrets, that had begun by its clock
    size_t refused_reloads = 0;
    size_t unheard_answers = 0;       // because a secret was added since the request
    size_t later_identifiers = 0;     // issued under another secret than the first
    size_t skipped = 0;               // numbers
    size_t reserved_then_added = 0;   // runs that were encrypted after a secret was added
    size_t encrypted_then_added = 0;  // identifiers that were issued after one was added
};

template <typename Holder, typename State>
class Server {
public:
    static constexpr uint32_t kMaxSlots = 3;
    static constexpr int kBackends = 3;

    // Windows are of seconds, as `layout` holds them; numbers of any layout. `true_ms` is the time
    // that no clock shows.
    // With `issues`, what is reserved is also encrypted and issued.
    Server(const Layout& layout, const Layout& numbers, bool issues, int64_t role, int64_t skew_ms,
           const int64_t* true_ms, Ledger* ledger, Random* random)
        : layout_(layout),
          numbers_(numbers),
          issues_(issues),
          role_(role),
          skew_ms_(skew_ms),
          true_ms_(true_ms),
          ledger_(ledger),
          random_(random),
          keeper_(random) {}

    DataDirectory& directory() { return directory_; }
    const DataDirectory& directory() const { return directory_; }
    Machine* machine() { return machine_; }
    void MoveTo(Machine* machine) { machine_ = machine; }

    // --- from start to stop

    void Start(const Settings& settings, const SecretRecords& secrets) {
        settings_ = settings;
        SetSecrets(secrets);
        running_ = true;
        keeper_.StartPostmaster(*machine_, *true_ms_, skew_ms_);
        InitShared();
    }

    // The setting has another value; a server that does not run finds it at its start.
    void SetSkew(int64_t skew_ms) {
        skew_ms_ = skew_ms;
        if (running_)
            keeper_.NoteSkew(skew_ms);
    }

    // A backend crashed: shared memory and processes are gone, the postmaster is not. What was
    // paused never goes on. The secrets are kept, unless the memory was damaged.
    void CrashMemory(bool loses_secrets) {
        ledger_->Gone(number_);
        if (loses_secrets)
            SetSecrets({});
        InitShared();
    }

    void Crash() {
        ledger_->Gone(number_);
        running_ = stopping_ = false;
    }

    bool may_stop() const { return running_ && !stopping_ && change_ == Change::kNone; }

    bool may_seal() const { return may_stop() && !waits() && !reloads(); }

    // --- secrets

    // Without any, it makes nothing and leases nothing.
    bool has_secrets() const { return secrets_.count > 0; }
    const SecretRecords& secrets() const { return secrets_; }
    // Those that it will have when a reload is over.
    const SecretRecords& secrets_to_be() const { return reloading_ ? *reloading_ : secrets_; }
    const SecretEvents& secret_events() const { return secret_events_; }
    size_t refused_starts() const { return keeper_.refused_starts(); }
    // The first second that it may not have announced or leased.
    uint32_t LastEnd() const {
        return std::max(keeper_.LastEnd(), static_cast<uint32_t>(holder_.LastEnd()));
    }
    bool reloads() const { return reloading_.has_value(); }
    // It has the window lock and the leases'.
    bool LockedOut() const { return reloads() && State::kLocksReload; }

    // randflake_reload_secret(), as far as its decision. It takes no locks while a window changes.
    void ReloadSecrets(const SecretRecords& file, int64_t birth) {
        if (!running_ || stopping_ || changes_window() || reloads())
            return;
        randflake::Reload reload{};
        reload.before = secrets_;
        reload.after = file;
        reload.issues = !directory_.recovers;
        reload.leased = settings_.leases;
        reload.leases_end = holder_.LastEnd();
        reload.clock_ms = machine_->At(*true_ms_).clock_ms;
        reload.skew_ms = skew_ms_;
        if ((reload.NeedsState() && !Loaded(birth)) ||
            keeper_.PlanReload(reload).error != ReloadError::kNone)
            secret_events_.refused_reloads++;
        else
            reloading_ = file;
    }

    // The rest of it. The locks are held from one to the other.
    void FinishReload() {
        secret_events_.reloads += reloading_->count > secrets_.count;
        secret_events_.late_reloads +=
            reloading_->count > secrets_.count &&
            int64_t{reloading_->records[reloading_->count - 1].from} <= Clock();
        keeper_.TakeSecrets(*reloading_);
        SetSecrets(*reloading_);
        reloading_.reset();
    }

    // Cleanly: the lease worker gives its leases back first; the postmaster comes last. Nobody
    // takes part in a change of the window then.
    void Stop() {
        stopping_ = true;
        reloading_.reset();
        if (settings_.leases && !directory_.recovers) {
            (void)holder_.Unanswered();
            Seal();
        } else {
            Halt();
        }
    }

    void Promote() {
        directory_.recovers = false;
        directory_.timeline++;
    }

    void Pause(int64_t steps) { paused_ = steps; }
    bool PausedNow() { return paused_ > 0 && paused_-- > 0; }

    bool running() const { return running_; }
    bool in_recovery() const { return directory_.recovers; }
    bool generates() const { return running_ && !directory_.recovers; }
    const Settings& settings() const { return settings_; }
    // The node ids of the last window.
    NodeRange last_nodes() const { return last_nodes_; }
    int64_t role() const { return role_; }
    // Every start of shared memory is another server.
    uint32_t number() const { return number_; }
    const Lease& open_lease() const { return holder_.open(); }
    bool waits() const { return holder_.awaits() != LeaseRequest::Kind::kNone; }
    bool changes_window() const { return change_ != Change::kNone; }
    size_t reserved_during_change() const { return reserved_during_change_; }
    size_t lost_swaps() const { return lost_swaps_; }
    size_t static_numbers() const { return static_numbers_; }
    size_t proven_starts() const { return proven_starts_; }
    size_t held_off_starts() const { return held_off_starts_; }
    size_t failed_writes() const { return keeper_.failed_writes(); }
    size_t declined_leases() const { return declined_leases_; }

    // --- the generating backends

    void StepBackend() {
        if (!has_secrets())
            return;
        Call& call = backends_[static_cast<size_t>(random_->Between(0, kBackends - 1))];
        if (call.paused > 0) {
            call.paused--;
            return;
        }
        if (call.run.count > 0)
            return Issue(&call);
        if (!call.busy) {
            call.busy = true;
            call.slot = static_cast<int>(random_->Between(0, slots() - 1));
            call.wanted = static_cast<uint32_t>(random_->Between(1, 3));
            call.trail = {};
            call.secrets_before = ring_.count();
            if (call.secrets_at_first == 0)
                call.secrets_at_first = ring_.count();
        } else if (random_->OneIn(30)) {
            call.paused = random_->Between(1, 300);
        }
        Run run{};
        Replay replay(cells_.data(), &call.trail, static_cast<int>(Tick()));
        call.busy = !replay.Step([&] {
            Cell slot(&replay, call.slot);
            const Cell window(&replay, kWindow);
            run = Holder::Reserve(numbers_, slot, window, call.wanted,
                                  [&] { return replay.ReadClock(); });
        });
        const auto& performed = replay.performed();
        lost_swaps_ += performed.kind == explorer::OperationKind::kSwap && !performed.changes;
        if (call.busy)
            return;
        for (uint32_t i = 0; i < run.count; i++)
            ledger_->Use(number_, settings_.leases, run.first + i);
        if (!settings_.leases)
            static_numbers_ += run.count;
        if (issues_)
            call.run = run;
        call.secrets_reserved = ring_.count();
        reserved_during_change_ += run.count > 0 && changes_window();
    }

    // --- the static window, which any backend moves on, one at a time: extend_locked()

    void ExtendWindow(int64_t birth) {
        const int64_t now = Clock();
        const Window window = CurrentWindow();
        const int64_t limit = SecondsEnd(layout_);
        if (now < 0 || now >= limit || (!window.closed() && now + 1 < window.end))
            return;
        const auto end = static_cast<uint32_t>(std::min(now + kWindowSeconds, limit));
        if (!window.closed() && end <= window.end)
            return;
        if (!has_secrets() || LockedOut() || !Loaded(birth))
            return;
        if (window.closed())
            keeper_.FollowSkew();
        if (!keeper_.MayOpen(now, machine_->At(*true_ms_).at_ms))
            return;
        opening_ = {window.closed() ? static_cast<uint32_t>(now) : window.start, end};
        if (window.closed())
            (keeper_.proven() ? proven_starts_ : held_off_starts_)++;
        change_ = State::kWritesFirst ? Change::kWrite : FirstMove();
        change_trail_ = {};
    }

    // --- the lease worker, which does one thing at a time

    // What it asks next, for a lease of that duration.
    Request Ask(int64_t duration, int64_t alleged_end) {
        asked_secrets_ = secrets_.count;
        asked_ = {duration, skew_ms_};
        if (holder_.renews()) {
            const LeaseRequest asked = holder_.Renew(*true_ms_);
            return {Request::kRenew,
                    asked.lease_id,
                    asked.incarnation,
                    asked.expected_end,
                    slots(),
                    duration,
                    role_,
                    alleged_end,
                    secrets_};
        }
        const LeaseRequest asked = holder_.Acquire(
            Holder::kFreshIncarnation ? Incarnation{{number_, ++acquisitions_}} : Incarnation{},
            *true_ms_);
        return {Request::kAcquire, 0, asked.incarnation, 0, slots(), duration, role_, 0, secrets_};
    }

    // Another coordinator is asked from now on.
    void Reload() {
        if (waits())
            (void)holder_.Unanswered();
    }

    // What there is to give back.
    std::vector<Request> Hear(const Answer& answer) {
        bool granted = answer.clear || (answer.row && !Holder::kUnclearIsNoGrant);
        if (granted && asked_secrets_ != secrets_.count && Holder::kAnswersKnowSecrets) {
            granted = false;
            secret_events_.unheard_answers++;
        }
        if (granted && holder_.awaits() == LeaseRequest::Kind::kRenew)
            Renewed(answer.grant.end, Clock());
        else if (granted)
            return Granted(answer.grant, Clock());
        else if (answer.refused)
            (void)holder_.Refused();
        else
            (void)holder_.Unanswered();
        return {};
    }

    // lease_publish() and lease_open_next(): moves the end of the window if the open lease was
    // renewed, else opens the next lease if it is time. What there is to give back.
    std::vector<Request> FollowLeases(int64_t birth) {
        if (LockedOut() || !Loaded(birth))
            return {};
        const Window window = CurrentWindow();
        if (const Window extended = holder_.Extended(window); extended != window) {
            if (Announce(holder_.open().first_node_id, extended))
                cells_[kWindow] = Packed::Compact(extended.ToWord());
            return {};
        }
        const Lease& next = holder_.next();
        keeper_.FollowSkew();
        const uint32_t used_until = keeper_.LeaseOpensAt(LeasedNodes(next.first_node_id));
        if (holder_.NextUsed(window, used_until))
            return {ReleaseOf(holder_.DropNext())};
        Holder ahead = holder_;
        const Window opening = ahead.OpenNext(std::max(window.end, used_until), Clock());
        if (opening.closed() || !Announce(next.first_node_id, opening))
            return {};
        holder_ = ahead;
        opening_ = opening;
        open_grant_ = next_grant_;
        change_ = Change::kOpen;
        change_trail_ = {};
        return {};
    }

    void Seal() {
        change_ = Change::kSeal;
        change_trail_ = {};
    }

    // One step of a change of the window. What there is to give back in the end.
    std::vector<Request> StepChange() {
        if (change_ == Change::kWrite) {
            change_ =
                !keeper_.Announce(settings_.nodes, opening_, &directory_) || !State::kWritesFirst
                    ? Change::kNone
                    : FirstMove();
            return {};
        }
        if (change_ == Change::kExtend) {
            cells_[kWindow] = Packed::Compact(opening_.ToWord());
            Changed();
            return {};
        }
        int64_t last = -1;
        Replay replay(cells_.data(), &change_trail_, 0);
        const bool returned = replay.Step([&] {
            Cell slots[kMaxSlots] = {{&replay, 0}, {&replay, 1}, {&replay, 2}};
            const auto slot = [&slots](uint32_t i) -> Cell& { return slots[i]; };
            Cell window(&replay, kWindow);
            if (change_ == Change::kSeal)
                last = Holder::SealWindow(numbers_, slot, settings_.nodes.count, window);
            else
                Holder::ChangeWindow(numbers_, slot, settings_.nodes.count, FirstNode(), window,
                                     opening_);
        });
        if (!returned)
            return {};
        if (change_ == Change::kOpen) {
            Changed();
            return {};
        }
        return Sealed(last);
    }

private:
    struct Call {
        bool busy = false;
        int slot = 0;
        uint32_t wanted = 0;
        int64_t paused = 0;  // steps
        Trail trail;

        // Of a server whose secrets change: what is left of a run, and how many secrets there were.
        Run run{};
        uint32_t next = 0;
        int secrets_at_first = 0, secrets_before = 0, secrets_reserved = 0, secrets_used = 0;
    };
    // Of a window: write its end, move its end, open it; seal it.
    enum class Change { kNone, kWrite, kExtend, kOpen, kSeal };
    static constexpr int kWindow = kMaxSlots;

    void InitShared() {
        static_assert(kNoWindow == 0);
        number_ = ledger_->NewServer(role_);
        keeper_.InitShared(directory_);
        holder_.Forget();
        cells_ = {};
        backends_ = {};
        reloading_.reset();
        change_ = Change::kNone;
        paused_ = 0;
        stopping_ = false;
    }

    // No process is left but the postmaster: window_write_clean_end().
    void Halt() {
        const Window window = CurrentWindow();
        if (!settings_.leases && !window.closed()) {
            int64_t last = 0;
            for (int64_t i = 0; i < slots(); i++)
                last = std::max(
                    last, LastSecondUsed(numbers_, Packed::Widen(cells_[static_cast<size_t>(i)]),
                                         window));
            keeper_.WriteCleanEnd(static_cast<uint32_t>(last + 1), &directory_, *machine_,
                                  *true_ms_);
        }
        Crash();
    }

    int64_t slots() const { return settings_.nodes.count; }
    int64_t ClockMs() const { return machine_->At(*true_ms_).clock_ms - kWindowEpochMs; }
    int64_t Clock() const { return FloorDivide(ClockMs(), kSecondMs); }
    int64_t Tick() const { return numbers_.TickAt(kWindowEpochMs + ClockMs()); }
    Window CurrentWindow() const { return Window::FromWord(Packed::Widen(cells_[kWindow])); }
    NodeRange LeasedNodes(int64_t first) const {
        return {static_cast<uint32_t>(first), settings_.nodes.count};
    }
    uint64_t FirstNode() const {
        return settings_.leases ? static_cast<uint64_t>(holder_.open().first_node_id)
                                : settings_.nodes.first;
    }

    bool Loaded(int64_t birth) {
        return keeper_.loaded() ||
               keeper_.Load(settings_.nodes, secrets_, &directory_, machine_, birth, *true_ms_);
    }

    void SetSecrets(const SecretRecords& secrets) {
        secrets_ = secrets;
        ring_ = ToyRing(numbers_, secrets);
    }
    // Next step of a session that has reserved numbers: it encrypts them and returns the first
    // identifier, then one with each call in the same second.
    void Issue(Call* call) {
        if (random_->OneIn(30)) {
            call->paused = random_->Between(1, 300);
            return;
        }
        if (call->next == 0) {
            call->secrets_used =
                Holder::Secrets(call->secrets_at_first, call->secrets_before, ring_.count());
            secret_events_.reserved_then_added += call->secrets_reserved != ring_.count();
        } else if (call->run.now != Tick()) {
            call->run = {};
            call->next = 0;
            return;
        }
        bool issued = false;
        while (!issued && call->next < call->run.count) {
            const uint64_t raw = call->run.first + call->next;
            const Ring<ToyCipher> ring = ring_.First(call->secrets_used);
            uint64_t id;
            issued = Holder::Encrypt(ring, numbers_, raw, Clock(), &id);
            secret_events_.skipped += !issued;
            secret_events_.later_identifiers += issued && ring.OwnerOf(numbers_, raw) > 0;
            secret_events_.encrypted_then_added += issued && call->secrets_used != ring_.count();
            if (issued)
                ledger_->Issue(raw, id);
            call->next++;
        }
        if (call->next == call->run.count) {
            call->run = {};
            call->next = 0;
        }
    }

    bool Announce(int64_t first_node, const Window& window) {
        return !State::kAnnouncesLeases ||
               keeper_.Announce(LeasedNodes(first_node), window, &directory_);
    }

    Change FirstMove() const { return CurrentWindow().closed() ? Change::kOpen : Change::kExtend; }

    void Changed() {
        last_nodes_ = {static_cast<uint32_t>(FirstNode()), settings_.nodes.count};
        change_ = State::kWritesFirst || settings_.leases ? Change::kNone : Change::kWrite;
    }

    std::vector<Request> Granted(const LeaseGrant& grant, int64_t now) {
        const LeaseNews news = holder_.Granted(layout_, settings_.nodes.count, grant, asked_, now);
        if (news == LeaseNews::kUnusable)
            return {};
        if (news == LeaseNews::kTooLong || news == LeaseNews::kBehind) {
            declined_leases_++;
            return {ReleaseOf(holder_.Declined(layout_, grant))};
        }
        const Lease& next = holder_.next();
        if (next.end > EndAskedFor(now))
            ledger_->TooLong(next.end);
        next_grant_ = ledger_->Grant(number_);
        ledger_->Claim(next_grant_, next.first_node_id, slots(), next.start, next.end);
        return {};
    }

    // No lease that this server takes may end later, whatever coordinators and clocks say.
    int64_t EndAskedFor(int64_t now) const {
        return now + asked_.duration + FloorDivide(skew_ms_ + 999, 1000) + 1;
    }

    void Renewed(int64_t last_unix_second, int64_t now) {
        const int64_t known_end = holder_.newest().end;
        const LeaseNews news = holder_.Renewed(layout_, last_unix_second, asked_, now);
        declined_leases_ += news == LeaseNews::kTooLong || news == LeaseNews::kBehind;
        const Lease& held = holder_.newest();
        if (held.end > known_end && held.end > EndAskedFor(now))
            ledger_->TooLong(held.end);
        ledger_->Claim(held.id == holder_.next().id ? next_grant_ : open_grant_, held.first_node_id,
                       slots(), known_end, held.end);
    }

    // lease_seal(): the window was sealed, and `last` is the last second used. The end on disk
    // becomes exact, and the leases are given back.
    std::vector<Request> Sealed(int64_t last) {
        LeaseReleases sealed = holder_.Sealed(last);
        if (sealed.open.lease.id != 0)
            keeper_.TakeBack(static_cast<uint32_t>(last + 1), &directory_);
        for (LeaseRelease* release : {&sealed.open, &sealed.next})
            if (release->lease.id != 0)
                release->UsedUntil(keeper_.loaded() ? keeper_.LeaseOpensAt(
                                                          LeasedNodes(release->lease.first_node_id))
                                                    : release->lease.end);
        std::vector<Request> releases;
        if (sealed.open.lease.id != 0) {
            GiveBack(sealed.open.lease, open_grant_, last);
            releases.push_back(ReleaseOf(sealed.open));
        }
        if (sealed.next.lease.id != 0) {
            GiveBack(sealed.next.lease, next_grant_, -1);
            releases.push_back(ReleaseOf(sealed.next));
        }
        change_ = Change::kNone;
        if (stopping_)
            Halt();
        return releases;
    }

    // The ledger knows what was used; the coordinator hears what the holder says.
    void GiveBack(const Lease& held, int grant, int64_t last) {
        ledger_->GiveBack(grant, held.first_node_id, slots(), last >= 0 ? last + 1 : held.start,
                          held.end);
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

    const Layout layout_;
    const Layout numbers_;
    const bool issues_;
    const int64_t role_;  // by which the coordinator knows it
    int64_t skew_ms_;     // the setting
    const int64_t* const true_ms_;
    Ledger* const ledger_;
    Random* const random_;

    Machine* machine_ = nullptr;
    DataDirectory directory_;

    // The postmaster.
    bool running_ = false, stopping_ = false;
    Settings settings_;
    int64_t paused_ = 0;
    NodeRange last_nodes_{0, 1};

    // Shared memory, and the processes.
    uint32_t number_ = 0;
    WindowKeeper<State> keeper_;
    std::array<Packed::Value, kMaxSlots + 1> cells_{};  // the slots' words; last, the window
    std::array<Call, kBackends> backends_{};
    Holder holder_{};
    int open_grant_ = 0, next_grant_ = 0;  // in the ledger
    Window opening_{0, 0};
    Change change_ = Change::kNone;
    Trail change_trail_;
    uint64_t acquisitions_ = 0;
    uint32_t asked_secrets_ = 0;              // how many the last request named
    LeaseTerms asked_{};                      // in it
    std::optional<SecretRecords> reloading_;  // decided, but not added yet

    SecretRecords secrets_{};
    ToyRing ring_;  // of these
    SecretEvents secret_events_;

    size_t reserved_during_change_ = 0, lost_swaps_ = 0, static_numbers_ = 0;
    size_t proven_starts_ = 0, held_off_starts_ = 0;
    size_t declined_leases_ = 0;
};

}  // namespace randflake::simulation

#endif
