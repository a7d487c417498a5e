// A server in the simulation of leases: shared memory, backends that reserve numbers, the lease
// worker. The generator and the decisions about leases are the shipped code; what lease_worker.cpp
// and lease.cpp do with them is repeated here. Calls advance one shared operation at a time
// (replay.h), so that a server can be paused at any point.

#ifndef RANDFLAKE_UNIT_LEASE_SERVER_H
#define RANDFLAKE_UNIT_LEASE_SERVER_H

#include <array>
#include <ostream>

#include "lease_cluster.h"
#include "lease_ledger.h"
#include "replay.h"

namespace randflake::simulation {

using Packed = explorer::Packing<uint64_t, 64>;
using Replay = explorer::BasicReplay<Packed>;
using Trail = explorer::BasicTrail<Packed>;
using Cell = explorer::BasicCell<Replay>;

// The code under test. Broken variants take its place.
struct ShippedHolder {
    static constexpr bool kUnclearIsNoGrant = true;
    static constexpr bool kFreshIncarnation = true;
    static constexpr bool kForgetsAtCrash = true;

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
    static Window WindowOfLease(Window last, int64_t start, int64_t end, int64_t now) {
        return randflake::WindowOfLease(last, start, end, now);
    }
    static int64_t LastUsedUnix(int64_t start, int64_t sealed) {
        return randflake::LastUsedUnix(start, sealed);
    }
};

struct Request {
    enum Kind { kAcquire, kRenew, kRelease };

    Kind kind;
    int64_t lease_id;
    uint64_t incarnation;
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
        const Lease last = open_;
        Start();
        if (!Holder::kForgetsAtCrash)
            next_ = last;
    }

    void StepClock(int64_t offset) { clock_offset_ = offset; }
    void Pause(int64_t steps) { paused_ = steps; }
    bool PausedNow() { return paused_ > 0 && paused_-- > 0; }

    // Every start of shared memory is another server.
    uint32_t number() const { return number_; }
    bool waits() const { return waits_; }
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
    Request Ask(int64_t duration) {
        const Lease& held = Newest();
        waits_ = true;
        renews_ = held.id != 0 && !held.refused;
        if (renews_)
            return {Request::kRenew, held.id, held.incarnation, held.end + kWindowEpochSeconds - 1,
                    kSlots,          duration};
        incarnation_ = Holder::kFreshIncarnation ? uint64_t{number_} << 32 | ++acquisitions_ : 1;
        return {Request::kAcquire, 0, incarnation_, 0, kSlots, duration};
    }

    void Hear(const Answer& answer) {
        waits_ = false;
        const bool granted = answer.clear || (answer.row && !Holder::kUnclearIsNoGrant);
        if (!granted && answer.refused && renews_)
            Refused();
        else if (granted && renews_)
            Renewed(answer.grant.end);
        else if (granted && GrantUsable(layout_, answer.grant, kSlots))
            Granted(answer.grant);
    }

    // Opens the next lease if it is time.
    void OpenNext(int64_t true_now) {
        opening_ = Holder::WindowOfLease(CurrentWindow(), next_.start, next_.end, Clock(true_now));
        if (next_.id == 0 || opening_.closed())
            return;
        open_ = next_;
        next_ = Lease{};
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
                                     static_cast<uint64_t>(open_.first_node_id), window, opening_);
        });
        if (!returned)
            return {};
        std::vector<Request> releases;
        if (change_ == Change::kSeal) {
            GiveBack(open_, last, &releases);
            GiveBack(next_, -1, &releases);
            open_ = next_ = Lease{};
        }
        change_ = Change::kNone;
        return releases;
    }

private:
    struct Lease {
        int64_t id = 0;  // 0: none
        uint64_t incarnation = 0;
        int64_t first_node_id = 0;
        int64_t start = 0, end = 0;  // seconds since the epoch, half-open
        bool refused = false;
        int grant = 0;  // in the ledger
    };
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
        open_ = next_ = Lease{};
        change_ = Change::kNone;
        waits_ = false;
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
    Lease& Newest() { return next_.id != 0 ? next_ : open_; }

    void Granted(const LeaseGrant& grant) {
        next_ = {grant.lease_id,
                 incarnation_,
                 grant.first_node_id,
                 SecondOfUnix(layout_, grant.start),
                 SecondOfUnix(layout_, grant.end + 1),
                 false,
                 ledger_->Grant(number_)};
        ledger_->Claim(next_.grant, next_.first_node_id, kSlots, next_.start, next_.end);
    }

    void Renewed(int64_t last_unix_second) {
        Lease& held = Newest();
        const int64_t end = RenewedEnd(layout_, held.end, last_unix_second);
        ledger_->Claim(held.grant, held.first_node_id, kSlots, held.end, end);
        held.end = end;
        if (&held == &open_)
            cells_[kWindow] =
                Packed::Compact(Window{CurrentWindow().start, static_cast<uint32_t>(end)}.ToWord());
    }

    void Refused() {
        if (next_.id != 0)
            next_ = Lease{};
        else
            open_.refused = true;
    }

    void GiveBack(const Lease& held, int64_t last, std::vector<Request>* releases) {
        if (held.id == 0)
            return;
        ledger_->GiveBack(held.grant, held.first_node_id, kSlots, last >= 0 ? last + 1 : held.start,
                          held.end);
        releases->push_back({Request::kRelease, held.id, held.incarnation,
                             Holder::LastUsedUnix(held.start, last), kSlots, 0});
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
    Lease open_, next_;
    Window opening_{0, 0};
    Change change_ = Change::kNone;
    Trail change_trail_;
    bool waits_ = false;
    bool renews_ = false;  // else it acquires
    uint64_t incarnation_ = 0;
    uint64_t acquisitions_ = 0;
    size_t reserved_during_change_ = 0, lost_swaps_ = 0;
};

}  // namespace randflake::simulation

#endif
