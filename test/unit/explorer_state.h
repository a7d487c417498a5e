// Describes a server's state: shared memory, calls in progress, and all seconds and numbers that
// the server ever got. A state is plain bytes, which the search compares and hashes.

#pragma once

#include "explorer_replay.h"
#include "printers.h"

namespace randflake::explorer {

constexpr int kMaxSets = 2;
constexpr int kMaxSlots = 2;  // slots of all sets together
constexpr int kMaxBackends = 3;
constexpr int kMaxNodeIds = 4;
constexpr Value kNothing = UINT16_MAX;

struct Span {
    uint8_t node_id, start, end;
};

enum class Function : uint8_t { kNone, kReserve, kChangeWindow, kSealWindow };

struct Call {
    Function function = Function::kNone;
    uint8_t target = 0;  // Reserve: the cell; ChangeWindow: the first node id
    uint8_t amount = 0;  // Reserve: the numbers wanted; ChangeWindow: the first second
    uint8_t losses = 0;  // compare-and-swaps lost, in a search that does not merge
    Trail trail;

    auto operator<=>(const Call&) const = default;
};

struct State {
    // Holds kNothing, or one reserved number with its layout's index in the high byte. For each
    // reserved number, at least one history remembers it, so the search finds each repetition.
    Value remembered = kNothing;
    std::array<Value, kMaxSlots + 1> cells{};        // the slots' words by set; then the window
    std::array<Span, kMaxSlots> spans{};             // the seconds from which each slot may reserve
    std::array<uint8_t, kMaxNodeIds> given_until{};  // per node id, the first second never given
    std::array<uint8_t, kMaxNodeIds> earliest{};     // by former range: where it may start again
    std::array<Call, kMaxBackends> backends{};       // sorted, because they are alike
    Call change;                                     // a change or seal of the window
};

inline uint8_t Byte(int value) { return static_cast<uint8_t>(value); }

inline Call NewCall(Function function, int target = 0, int amount = 0) {
    Call call;
    call.function = function;
    call.target = Byte(target);
    call.amount = Byte(amount);
    return call;
}

inline std::string CallText(const Call& call, const char* target, const char* amount) {
    std::ostringstream out;
    out << target << int{call.target} << amount << int{call.amount} << " saw" << std::hex;
    for (size_t i = 0; i < call.trail.size; i++) out << ' ' << call.trail.values[i];
    return out.str();
}

// Describes a state in one line. layout_of holds the layout of each slot's cell.
inline std::string StateText(const std::vector<Layout>& layout_of, const State& state) {
    const Window window = Window::FromWord(Widen(state.cells[layout_of.size()]));
    std::ostringstream out;
    out << "  window [" << window.start.count << ", " << window.end.count << ") words";
    for (size_t i = 0; i < layout_of.size(); i++)
        out << ' ' << FieldsText(layout_of[i].Unpack(Widen(state.cells[i])));
    for (const Call& call : state.backends)
        if (call.function != Function::kNone)
            out << "; reserve" << CallText(call, " in cell ", " wanting ");
    if (state.change.function == Function::kChangeWindow)
        out << "; change" << CallText(state.change, " to node ids from ", " and seconds from ");
    if (state.change.function == Function::kSealWindow)
        out << "; seal" << CallText(state.change, "", "");
    out << '\n';
    return out.str();
}

}  // namespace randflake::explorer
