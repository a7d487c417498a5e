// Breadth-first search through states that are plain bytes. Every state is found once, by a
// shortest way, and the search can tell that way.

#ifndef RANDFLAKE_UNIT_EXPLORER_SEARCH_H
#define RANDFLAKE_UNIT_EXPLORER_SEARCH_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

namespace randflake::explorer {

template <typename State>
class Search {
    static_assert(std::has_unique_object_representations_v<State>, "states are compared as bytes");

public:
    // Adds a state that is one step from the current one, or the first of all.
    void Visit(const State& state) {
        Arrival& arrival = arrivals_[steps_++ % arrivals_.size()];
        Add(arrival);
        arrival = {{state, current_}, HashOf(state), true};
        if (!places_.empty())
            __builtin_prefetch(&places_[arrival.hash & (places_.size() - 1)]);
        // Half of the others have come since this one, and its place has come from memory too.
        const Arrival& half = arrivals_[(steps_ + arrivals_.size() / 2) % arrivals_.size()];
        if (half.waits) {
            const uint64_t place =
                places_.empty() ? kFree : places_[half.hash & (places_.size() - 1)];
            if (place != kFree)
                __builtin_prefetch(&nodes_[static_cast<uint32_t>(place) - 1]);
        }
    }

    // The next state whose steps are to be visited becomes the current one. False at the end.
    bool Next(State* state) {
        if (next_ == nodes_.size())
            for (size_t i = 0; i < arrivals_.size(); i++)
                Add(arrivals_[(steps_ + i) % arrivals_.size()]);
        if (next_ == nodes_.size())
            return false;
        current_ = next_++;
        *state = nodes_[current_].state;
        return true;
    }

    // The way from the first state to the current one.
    std::vector<State> History() const {
        std::vector<State> history;
        for (uint32_t i = current_; i != 0; i = nodes_[i].parent)
            history.push_back(nodes_[i].state);
        history.push_back(nodes_[0].state);
        std::reverse(history.begin(), history.end());
        return history;
    }

    // Once Next has said false
    size_t states() const { return nodes_.size(); }
    size_t steps() const { return steps_; }

private:
    struct Node {
        State state;
        uint32_t parent;
    };

    // A state that was visited and is not yet looked for: memory takes longer than all else, so the
    // last ones are on their way from there together.
    struct Arrival {
        Node node;
        uint64_t hash;
        bool waits;
    };

    void Add(Arrival& arrival) {
        if (!arrival.waits)
            return;
        arrival.waits = false;
        if (nodes_.size() * 2 >= places_.size())
            Grow();
        uint64_t& place = PlaceOf(arrival.hash, arrival.node.state);
        if (place == kFree) {
            place = Place(arrival.hash, nodes_.size());
            nodes_.push_back(arrival.node);
        }
    }

    // Of a node: the upper half of its state's hash, and its number. Half of the steps' time was
    // std::unordered_set's way to the state.
    static uint64_t Place(uint64_t hash, size_t node) { return hash >> 32 << 32 | (node + 1); }
    static constexpr uint64_t kFree = 0;

    static uint64_t HashOf(const State& state) {
        return std::hash<std::string_view>{}(
            {reinterpret_cast<const char*>(&state), sizeof(State)});
    }

    // The place of a state, or the free one where it belongs.
    uint64_t& PlaceOf(uint64_t hash, const State& state) {
        for (size_t i = hash;; i++) {
            uint64_t& place = places_[i & (places_.size() - 1)];
            if (place == kFree || (place >> 32 == hash >> 32 &&
                                   std::memcmp(&nodes_[static_cast<uint32_t>(place) - 1].state,
                                               &state, sizeof(State)) == 0))
                return place;
        }
    }

    void Grow() {
        places_.assign(std::max<size_t>(1024, 4 * places_.size()), kFree);
        for (size_t node = 0; node < nodes_.size(); node++) {
            const uint64_t hash = HashOf(nodes_[node].state);
            PlaceOf(hash, nodes_[node].state) = Place(hash, node);
        }
    }

    std::array<Arrival, 16> arrivals_{};  // in a ring; the next one to take is the oldest
    std::vector<Node> nodes_;
    std::vector<uint64_t> places_;  // a power of two of them
    uint32_t current_ = 0, next_ = 0;
    size_t steps_ = 0;
};

}  // namespace randflake::explorer

#endif
