// Explores all events that can happen to a server's slots. A layout's fields have up to four bits.
//
// Backends call Reserve with any slot and any count. Each clock reading may show any tick.
// Meanwhile the window's end may advance, ChangeWindow may replace the window and its node ids,
// SealWindow may end the window early, and the server may crash and lose its shared memory.
// ChangeWindow also gets requests that it must refuse. Calls interleave in every order, one shared
// operation at a time (explorer_replay.h). One layout uses the window, or two layouts share it.
//
// The explorer obeys the protocol's rules for callers: it changes or extends one window at a time,
// and gives each second of a node id to the slots at most once. In every state, it checks:
//   - Within a layout, Reserve never returns the same number twice.
//   - When a call moves a slot's word, the reserved numbers lie in the slot's window.
//   - A slot's word never decreases while its node id stays the same.

#pragma once

#include "core/generator/generator.h"
#include "explorer_replay.h"
#include "explorer_search.h"
#include "explorer_state.h"

namespace randflake::explorer {

struct Scenario {
    std::vector<Layout> layouts;  // of each set of slots
    int slots;                    // slots in each set
    int backends;
    int node_ids;          // windows use node ids below this; the layout may hold fewer
    uint32_t most_wanted;  // calls ask for 1 to this many numbers
    int seconds = 4;       // windows end by then; layouts may begin later or end earlier

    // If true, merges states whose calls continue in the same way. Two calls continue in the same
    // way if they are about to do the same compare-and-swap. A retry behaves like a first attempt,
    // because Reserve keeps nothing from a lost attempt. The test NothingMerged follows each call
    // until the call has lost its second swap.
    bool merge = true;

    // If true, each window is for one of several ranges of node ids. The server seals the window
    // before it enters another range, whose window may begin at an earlier second.
    bool ranges = false;
};

struct Findings {
    std::string violation;  // empty, or the violation and its history
    size_t states = 0;
    size_t steps = 0;

    // These fields measure coverage. A search that reached nothing would find no violation either.
    std::array<uint64_t, kMaxSets> reserved{};  // per set, a bit for each raw number
    uint32_t outcomes = 0;                      // a bit for each Outcome
    uint32_t largest_reservation = 0;
    bool lost_swap = false;
    bool reserved_during_change = false;
    bool refused_change = false;
    bool sealed = false;
};

struct ShippedCore {
    static Reservation Reserve(auto&&... args) { return randflake::Reserve(args...); }
    static bool ChangeWindow(auto&&... args) { return randflake::ChangeWindow(args...); }
    static Second SealWindow(auto&&... args) { return randflake::SealWindow(args...); }
    // Like Server::OpenRange, enters a range at the first second that the range's slots may use.
    static void EnterRange(Cell& window, Second earliest) {
        window.store(Window::ClosedUntil(earliest).ToWord());
    }
};

struct CellsFrom {
    Cell operator()(uint32_t i) const { return {replay, first + static_cast<int>(i)}; }

    Replay* replay;
    int first;
};

template <typename Core = ShippedCore> class Explorer {
public:
    explicit Explorer(const Scenario& scenario)
        : scenario_(scenario),
          seconds_(scenario.seconds),
          window_(scenario.slots * static_cast<int>(scenario.layouts.size())) {
        for (const Layout& layout : scenario.layouts)
            layout_of_.insert(layout_of_.end(), SlotCount(), layout);
        if (layout_of_.size() > kMaxSlots)
            throw std::logic_error("too many slots for the explorer");
    }

    Findings Explore() {
        State state;
        search_.Visit(state);
        while (findings_.violation.empty() && search_.Next(&state)) {
            StepBackends(state);
            StepWindow(state);
            ExtendWindow(state);
            Crash(state);
        }
        findings_.states = search_.states();
        findings_.steps = search_.steps();
        return findings_;
    }

private:
    void StepBackends(const State& state) {
        const int first = kMaxBackends - scenario_.backends;  // backends before it stay idle
        for (int i = first; i < kMaxBackends; i++) {
            const Call& call = state.backends[i];
            if (i > first && call == state.backends[i - 1]) continue;
            if (call.function == Function::kReserve) {
                StepReserve(state, i, call);
                continue;
            }
            for (int cell = 0; cell < window_; cell++)
                for (uint32_t wanted = 1; wanted <= scenario_.most_wanted; wanted++)
                    StepReserve(state, i, NewCall(Function::kReserve, cell, wanted));
        }
    }

    // Runs one step of a call to Reserve. If the step reads the clock, runs it once for each tick
    // that the clock may show.
    void StepReserve(const State& state, int backend, const Call& before) {
        bool reads = true;
        const int ticks = static_cast<int>(layout_of_[before.target].max_timestamp()) + 1;
        for (int clock = -1; reads && clock <= ticks; clock++) {
            State next = state;
            Call call = before;
            Replay replay(next.cells.data(), &call.trail, clock);
            Reservation reservation{};
            const bool returned = replay.Step([&] { reservation = CallReserve(&replay, call); });
            reads = replay.read_clock();

            CheckWrite(replay.performed(), next);
            if (returned) {
                CheckReservation(reservation, call, next);
                call = Call{};
            } else {
                Merge(replay, &call);
            }
            next.backends[backend] = call;
            VisitInOrder(next);
            if (returned && next.remembered == kNothing) {
                for (uint32_t i = 0; i < reservation.count; i++) {
                    next.remembered = Remembered(before.target, reservation.first + i);
                    VisitInOrder(next);
                }
            }
        }
    }

    Reservation CallReserve(Replay* replay, const Call& call) {
        Cell slot(replay, call.target);
        const Cell window(replay, window_);
        return Core::Reserve(layout_of_[call.target], slot, window, call.amount,
                             [replay] { return Tick{replay->ReadClock()}; });
    }

    // Returns a raw number in the low byte and the layout's index in the high byte.
    Value Remembered(int cell, uint64_t raw) const {
        return static_cast<Value>((cell / scenario_.slots) << 8 | Compact(raw));
    }

    void Merge(const Replay& replay, Call* call) {
        const Operation &performed = replay.performed(), &upcoming = replay.upcoming();
        if (upcoming.kind == OperationKind::kSwap && scenario_.merge) {
            const auto kind = std::tuple(call->target, call->amount, upcoming.cell, upcoming.before,
                                         upcoming.after);
            *call = representatives_.try_emplace(kind, *call).first->second;
        } else if (performed.kind == OperationKind::kSwap) {
            findings_.lost_swap = true;
            const Operation first =
                Replay::First([&](Replay* replay) { CallReserve(replay, *call); });
            if (upcoming.kind == first.kind && upcoming.cell == first.cell &&
                (scenario_.merge || call->losses++ == 1))
                *call = Call{};
        }
    }

    void StepWindow(const State& state) {
        if (state.change.function == Function::kChangeWindow)
            StepChange(state, state.change);
        else if (state.change.function == Function::kSealWindow)
            StepSeal(state, state.change);
        else
            BeginChangeOrSeal(state);
    }

    void BeginChangeOrSeal(const State& state) {
        const bool may_change = !scenario_.ranges || WindowOf(state).closed();
        for (int first = 0; may_change && first + scenario_.slots <= scenario_.node_ids;
             first += scenario_.ranges ? scenario_.slots : 1)
            for (int start = 1; start < seconds_; start++)
                if (NeverGiven(state, first, start))
                    StepChange(state, NewCall(Function::kChangeWindow, first, start));
        if (!WindowOf(state).closed()) StepSeal(state, NewCall(Function::kSealWindow));
    }

    bool NeverGiven(const State& state, int first_node, int start) {
        for (int i = 0; i < scenario_.slots; i++)
            if (state.given_until[first_node + i] > start) return false;
        return true;
    }

    void StepChange(const State& state, Call call) {
        State next = state;
        Replay replay(next.cells.data(), &call.trail, 0);
        bool changed = false;
        const bool returned = replay.Step([&] {
            Cell window(&replay, window_);
            if (scenario_.ranges) Core::EnterRange(window, {state.earliest[call.target]});
            WithSets(&replay, [&](const auto&... sets) {
                changed = Core::ChangeWindow(SlotCount(), call.target, window,
                                             Window{call.amount, call.amount + 1u}, sets...);
            });
        });

        const Operation& operation = replay.performed();
        CheckWrite(operation, next);
        if (operation.kind == OperationKind::kStore && operation.cell != window_)
            Give(&next, operation.cell,
                 {Byte(call.target + operation.cell % scenario_.slots), call.amount,
                  Byte(call.amount + 1)});
        if (returned) {
            if (changed == WindowOf(next).closed())
                Fail("ChangeWindow says one thing and does another", next);
            findings_.refused_change |= !changed;
            call = Call{};
        }
        next.change = call;
        search_.Visit(next);
    }

    void StepSeal(const State& state, Call call) {
        State next = state;
        Replay replay(next.cells.data(), &call.trail, 0);
        Second last{};
        const bool returned = replay.Step([&] {
            Cell window(&replay, window_);
            WithSets(&replay, [&](const auto&... sets) {
                last = Core::SealWindow(SlotCount(), window, sets...);
            });
        });
        if (returned) {
            if (!WindowOf(next).closed()) Fail("SealWindow leaves the window open", next);
            for (int i = 0; i < window_; i++) {
                const Span& span = state.spans[i];
                const int end = std::max(static_cast<int>(last.count) + 1, int{span.start});
                Give(&next, i, {span.node_id, span.start, Byte(end)});
            }
            next.earliest[state.spans[0].node_id] =
                Byte(static_cast<int>(WindowOf(next).end.count));
            findings_.sealed = true;
            call = Call{};
        }
        next.change = call;
        search_.Visit(next);
    }

    template <typename Use> void WithSets(Replay* replay, Use&& use) const {
        const auto set = [&](int i) {
            return SlotSet{scenario_.layouts[i], CellsFrom{replay, i * scenario_.slots}};
        };
        if (scenario_.layouts.size() == 1)
            use(set(0));
        else
            use(set(0), set(1));
    }

    uint32_t SlotCount() const { return static_cast<uint32_t>(scenario_.slots); }

    void Give(State* state, int slot, const Span& span) {
        state->spans[slot] = span;
        state->given_until[span.node_id] = span.end;
    }

    void ExtendWindow(const State& state) {
        Window window = WindowOf(state);
        if (state.change.function != Function::kNone || window.closed() ||
            window.end.count == seconds_)
            return;
        window.end = window.end + 1;
        State next = state;
        next.cells[window_] = Compact(window.ToWord());
        for (int i = 0; i < window_; i++)
            Give(&next, i,
                 {state.spans[i].node_id, state.spans[i].start,
                  Byte(static_cast<int>(window.end.count))});
        search_.Visit(next);
    }

    void Crash(const State& state) {
        State next;
        next.remembered = state.remembered;
        next.given_until = state.given_until;
        search_.Visit(next);
    }

    // Sorts the backends after one of them has changed, and visits the state.
    void VisitInOrder(State state) {
        for (int i = 1; i < kMaxBackends; i++)
            for (int j = i; j > 0 && state.backends[j] < state.backends[j - 1]; j--)
                std::swap(state.backends[j], state.backends[j - 1]);
        search_.Visit(state);
    }

    void CheckWrite(const Operation& operation, const State& next) {
        if (!operation.changes || operation.cell == window_ || operation.after == kEmptySlot)
            return;
        const Layout& layout = layout_of_[operation.cell];
        if (layout.Unpack(operation.before).node_id == layout.Unpack(operation.after).node_id &&
            operation.after < operation.before)
            Fail("a slot's word went back", next);
    }

    void CheckReservation(const Reservation& reservation, const Call& call, const State& next) {
        findings_.outcomes |= 1u << static_cast<int>(reservation.outcome);
        if (reservation.outcome != Outcome::kReserved) {
            if (reservation.count != 0) Fail("a refusal reserved numbers", next);
            return;
        }
        if (reservation.count < 1 || reservation.count > call.amount)
            Fail("a call reserved none or too many", next);
        findings_.largest_reservation = std::max(findings_.largest_reservation, reservation.count);
        findings_.reserved_during_change |= next.change.function != Function::kNone;

        const Span& span = next.spans[call.target];
        const Layout& layout = layout_of_[call.target];
        const auto instant = [](int second) { return kWindowEpochMs + second * kSecondMs; };
        for (uint64_t raw = reservation.first; raw < reservation.first + reservation.count; raw++) {
            const Fields fields = layout.Unpack(raw);
            const int64_t begins =
                layout.epoch + static_cast<int64_t>(fields.timestamp) * layout.unit;
            if (fields.node_id != span.node_id || begins < instant(span.start) ||
                begins + layout.unit > instant(span.end))
                Fail("number " + FieldsText(fields) + " is outside the window", next);
            if (Remembered(call.target, raw) == next.remembered)
                Fail("number " + FieldsText(fields) + " is reserved twice", next);
            findings_.reserved[call.target / scenario_.slots] |= uint64_t{1} << raw;
        }
    }

    // Keeps the first violation, followed by the states that lead to it, one per line.
    void Fail(const std::string& what, const State& last) {
        if (!findings_.violation.empty()) return;
        findings_.violation = what + "; the way there (tick/node id/sequence):\n";
        for (const State& state : search_.History())
            findings_.violation += StateText(layout_of_, state);
        findings_.violation += StateText(layout_of_, last);
    }

    Window WindowOf(const State& state) const {
        return Window::FromWord(Widen(state.cells[window_]));
    }

    const Scenario scenario_;
    const int seconds_;
    const int window_;               // the window's cell
    std::vector<Layout> layout_of_;  // the layout of each slot's cell
    Search<State> search_;
    std::map<std::tuple<uint8_t, uint8_t, int, Value, Value>, Call> representatives_;
    Findings findings_;
};

}  // namespace randflake::explorer
