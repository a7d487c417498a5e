// A server in the simulation of leases: shared memory, backends that reserve numbers, the lease
// worker. The generator and the holder of leases are the shipped code; what is left of
// lease_worker.cpp and lease.cpp is who calls them. Calls advance one shared operation at a time
// (replay.h), so that a server can be paused at any point.

#ifndef RANDFLAKE_UNIT_LEASE_SERVER_H
#define RANDFLAKE_UNIT_LEASE_SERVER_H

#include <array>
#include <ostream>

#include "core/lease_holder.h"
#include "lease_cluster.h"
#include "lease_ledger.h"
#include "replay.h"

namespace randflake::simulation {

using Packed = explorer::Packing<uint64_t, 64>;
using Replay = explorer::BasicReplay<Packed>;
using Trail = explorer::BasicTrail<Packed>;
using Cell = explorer::BasicCell<Replay>;

// The code under test. Broken variants, which derive from it, take its place.
struct ShippedHolder : LeaseHolder {
    static constexpr bool kUnclearIsNoGrant = true;
    static constexpr bool kFreshIncarnation = true;

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
};

struct Request {
    enum Kind { kAcquire, kRenew, kRelease };

    Kind kind;
    int64_t lease_id;
    Incarnation incarnation;
    int64_t second;  // Unix: of kRenew the known end, of kRelease the last used, both inclusive
    int64_t nodes;
    int64_t duration;

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

template <typename Holder>
class Server {
public:
    static constexpr uint32_t kSlots = 2;
    static constexpr int kBackends = 3;

    // Leases are of seconds, as `layout` holds them; numbers of any layout.
    Server(const Layout& layout, const Layout& numbers, Ledger* ledger, Random* random)
        : layout_(layout), numbers_(numbers), ledger_(ledger), random_(random) {
        Start();
    }

    // Shared memory and processes are gone: what was paused never goes on.
    void Crash() {
        holder_.Forget();
        Start();
    }

    void StepClock(int64_t offset) { clock_offset_ = offset; }
    void Pause(int64_t steps) { paused_ = steps; }
    bool PausedNow() { return paused_ > 0 && paused_-- > 0; }

    // Every start of shared memory is another server.
    uint32_t number() const { return number_; }
    bool waits() const { return holder_.awaits() != LeaseRequest::Kind::kNone; }
    bool changes_window() const { return change_ != Change::kNone; }
    size_t reserved_during_change() const { return reserved_during_change_; }
    size_t lost_swaps() const { return lost_swaps_; }

    // --- the generating backends

    void StepBackend(int64_t true_now) {
        Call& call = backends_[static_cast<size_t>(random_->Between(0, kBackends - 1))];
        if (call.paused > 0) {
            call.paused--;
            return;
        }
        if (!call.busy)
            call = {true,
                    static_cast<int>(random_->Between(0, kSlots - 1)),
                    static_cast<uint32_t>(random_->Between(1, 3)),
                    0,
                    {}};
        else if (random_->OneIn(30))
            call.paused = random_->Between(1, 300);
        Run run{};
        Replay replay(cells_.data(), &call.trail, static_cast<int>(Tick(true_now)));
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
            ledger_->Use(number_, run.first + i);
        reserved_during_change_ += run.count > 0 && changes_window();
    }

    // --- the lease worker, which does one thing at a time

    // What it asks next, for a lease of that duration.
    Request Ask(int64_t duration, int64_t true_now) {
        const int64_t now_ms = true_now * 1000;
        if (holder_.renews()) {
            const LeaseRequest asked = holder_.Renew(now_ms);
            return {Request::kRenew,    asked.lease_id, asked.incarnation,
                    asked.expected_end, kSlots,         duration};
        }
        const LeaseRequest asked = holder_.Acquire(
            Holder::kFreshIncarnation ? Incarnation{{number_, ++acquisitions_}} : Incarnation{},
            now_ms);
        return {Request::kAcquire, 0, asked.incarnation, 0, kSlots, duration};
    }

    void Hear(const Answer& answer, int64_t true_now) {
        const bool granted = answer.clear || (answer.row && !Holder::kUnclearIsNoGrant);
        if (granted && holder_.awaits() == LeaseRequest::Kind::kRenew)
            Renewed(answer.grant.end, Clock(true_now));
        else if (granted)
            Granted(answer.grant, Clock(true_now));
        else if (answer.refused)
            (void)holder_.Refused();
        else
            (void)holder_.Unanswered();
        cells_[kWindow] = Packed::Compact(holder_.Extended(CurrentWindow()).ToWord());
    }

    // Opens the next lease if it is time.
    void OpenNext(int64_t true_now) {
        opening_ = holder_.OpenNext(CurrentWindow().end, Clock(true_now));
        if (opening_.closed())
            return;
        open_grant_ = next_grant_;
        change_ = Change::kOpen;
        change_trail_ = {};
    }

    void Seal() {
        change_ = Change::kSeal;
        change_trail_ = {};
    }

    // One step of what OpenNext or Seal began. What there is to give back in the end.
    std::vector<Request> StepChange() {
        int64_t last = -1;
        Replay replay(cells_.data(), &change_trail_, 0);
        const bool returned = replay.Step([&] {
            Cell slots[kSlots] = {{&replay, 0}, {&replay, 1}};
            const auto slot = [&slots](uint32_t i) -> Cell& { return slots[i]; };
            Cell window(&replay, kWindow);
            if (change_ == Change::kSeal)
                last = Holder::SealWindow(numbers_, slot, kSlots, window);
            else
                Holder::ChangeWindow(numbers_, slot, kSlots,
                                     static_cast<uint64_t>(holder_.open().first_node_id), window,
                                     opening_);
        });
        if (!returned)
            return {};
        std::vector<Request> releases;
        if (change_ == Change::kSeal) {
            const LeaseReleases sealed = holder_.Sealed(last);
            GiveBack(sealed.open, open_grant_, last, &releases);
            GiveBack(sealed.next, next_grant_, -1, &releases);
        }
        change_ = Change::kNone;
        return releases;
    }

private:
    struct Call {
        bool busy = false;
        int slot = 0;
        uint32_t wanted = 0;
        int64_t paused = 0;  // steps
        Trail trail;
    };
    enum class Change { kNone, kOpen, kSeal };
    static constexpr int kWindow = kSlots;

    void Start() {
        static_assert(kNoWindow == 0);
        number_ = ledger_->NewServer();
        cells_ = {};
        backends_ = {};
        change_ = Change::kNone;
        paused_ = 0;
    }

    int64_t Clock(int64_t true_now) const { return true_now + clock_offset_ - kWindowEpochSeconds; }
    // Some instant of the clock's second, in ticks of the numbers.
    int64_t Tick(int64_t true_now) {
        const int64_t fraction =
            numbers_.unit == kSecondMs ? 0 : random_->Between(0, kSecondMs - 1);
        return numbers_.TickAt(kWindowEpochMs + Clock(true_now) * kSecondMs + fraction);
    }
    Window CurrentWindow() const { return Window::FromWord(Packed::Widen(cells_[kWindow])); }
    void Granted(const LeaseGrant& grant, int64_t now) {
        if (holder_.Granted(layout_, kSlots, grant, now) == LeaseNews::kUnusable)
            return;
        const Lease& next = holder_.next();
        next_grant_ = ledger_->Grant(number_);
        ledger_->Claim(next_grant_, next.first_node_id, kSlots, next.start, next.end);
    }

    void Renewed(int64_t last_unix_second, int64_t now) {
        const int64_t known_end = holder_.newest().end;
        (void)holder_.Renewed(layout_, last_unix_second, now);
        const Lease& held = holder_.newest();
        ledger_->Claim(held.id == holder_.next().id ? next_grant_ : open_grant_, held.first_node_id,
                       kSlots, known_end, held.end);
    }

    // The ledger knows what was used; the coordinator hears what the holder says.
    void GiveBack(const LeaseRelease& release, int grant, int64_t last,
                  std::vector<Request>* releases) {
        const Lease& held = release.lease;
        if (held.id == 0)
            return;
        ledger_->GiveBack(grant, held.first_node_id, kSlots, last >= 0 ? last + 1 : held.start,
                          held.end);
        releases->push_back(
            {Request::kRelease, held.id, held.incarnation, release.last_used, kSlots, 0});
    }

    const Layout layout_;
    const Layout numbers_;
    Ledger* const ledger_;
    Random* const random_;
    uint32_t number_ = 0;
    int64_t clock_offset_ = 0;
    int64_t paused_ = 0;
    std::array<Packed::Value, kSlots + 1> cells_{};  // the slots' words; last, the window
    std::array<Call, kBackends> backends_{};
    Holder holder_{};
    int open_grant_ = 0, next_grant_ = 0;  // in the ledger
    Window opening_{0, 0};
    Change change_ = Change::kNone;
    Trail change_trail_;
    uint64_t acquisitions_ = 0;
    size_t reserved_during_change_ = 0, lost_swaps_ = 0;
};

}  // namespace randflake::simulation

#endif
