// Searches states breadth-first. Finds each state once, with a shortest path from the first state.

#pragma once

#include "test.h"

namespace randflake::explorer {

template <typename State> class Search {
    static_assert(std::has_unique_object_representations_v<State>, "states are compared as bytes");

public:
    void Visit(const State& state) {
        Arrival& arrival = arrivals_[steps_++ % arrivals_.size()];
        Add(arrival);
        arrival = {{state, current_}, HashOf(state), true};
        if (!places_.empty()) __builtin_prefetch(&places_[arrival.hash & (places_.size() - 1)]);
        // The place of the arrival from half a ring ago is in the cache. Prefetches the node at
        // this place.
        const Arrival& half = arrivals_[(steps_ + arrivals_.size() / 2) % arrivals_.size()];
        if (half.waits) {
            const uint64_t place =
                places_.empty() ? kFree : places_[half.hash & (places_.size() - 1)];
            if (place != kFree) __builtin_prefetch(&nodes_[static_cast<uint32_t>(place) - 1]);
        }
    }

    // Makes the next unexplored state the current state. Returns false if there is none.
    bool Next(State* state) {
        if (next_ == nodes_.size())
            for (size_t i = 0; i < arrivals_.size(); i++)
                Add(arrivals_[(steps_ + i) % arrivals_.size()]);
        if (next_ == nodes_.size()) return false;
        current_ = next_++;
        *state = nodes_[current_].state;
        return true;
    }

    std::vector<State> History() const {
        std::vector<State> history;
        for (uint32_t i = current_; i != 0; i = nodes_[i].parent)
            history.push_back(nodes_[i].state);
        history.push_back(nodes_[0].state);
        std::reverse(history.begin(), history.end());
        return history;
    }

    // These counts are final once Next has returned false.
    size_t states() const { return nodes_.size(); }
    size_t steps() const { return steps_; }

private:
    struct Node {
        State state;
        uint32_t parent;
    };

    // A visited state that is not yet looked up in the table. Memory is the bottleneck, so the
    // search prefetches the table's places and nodes for the last 16 arrivals.
    struct Arrival {
        Node node;
        uint64_t hash;
        bool waits;
    };

    void Add(Arrival& arrival) {
        if (!arrival.waits) return;
        arrival.waits = false;
        if (nodes_.size() * 2 >= places_.size()) Grow();
        uint64_t& place = PlaceOf(arrival.hash, arrival.node.state);
        if (place == kFree) {
            place = Place(arrival.hash, nodes_.size());
            nodes_.push_back(arrival.node);
        }
    }

    // A place is the upper half of the state's hash, followed by the node's number plus 1.
    static uint64_t Place(uint64_t hash, size_t node) { return hash >> 32 << 32 | (node + 1); }
    static constexpr uint64_t kFree = 0;

    static uint64_t HashOf(const State& state) {
        return std::hash<std::string_view>{}(
            {reinterpret_cast<const char*>(&state), sizeof(State)});
    }

    // Returns the place that holds the state, or a free place for it.
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

    std::array<Arrival, 16> arrivals_{};  // a ring; the next entry is the oldest
    std::vector<Node> nodes_;
    std::vector<uint64_t> places_;  // their count is a power of two
    uint32_t current_ = 0, next_ = 0;
    size_t steps_ = 0;
};

}  // namespace randflake::explorer
