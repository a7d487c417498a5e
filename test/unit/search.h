// Breadth-first search through states that are plain bytes. Every state is found once, by a
// shortest way, and the search can tell that way.

#ifndef RANDFLAKE_UNIT_SEARCH_H
#define RANDFLAKE_UNIT_SEARCH_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace randflake::explorer {

template <typename State>
class Search {
    static_assert(std::has_unique_object_representations_v<State>, "states are compared as bytes");

public:
    // Adds a state that is one step from the current one, or the first of all.
    void Visit(const State& state) {
        steps_++;
        nodes_.push_back({state, current_});
        if (!known_.insert(static_cast<uint32_t>(nodes_.size() - 1)).second)
            nodes_.pop_back();
    }

    // The next state whose steps are to be visited becomes the current one. False at the end.
    bool Next(State* state) {
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

    size_t states() const { return nodes_.size(); }
    size_t steps() const { return steps_; }

private:
    struct Node {
        State state;
        uint32_t parent;
    };
    struct Hash {
        const std::vector<Node>& nodes;
        size_t operator()(uint32_t i) const {
            return std::hash<std::string_view>{}(
                {reinterpret_cast<const char*>(&nodes[i].state), sizeof(State)});
        }
    };
    struct Same {
        const std::vector<Node>& nodes;
        bool operator()(uint32_t a, uint32_t b) const {
            return std::memcmp(&nodes[a].state, &nodes[b].state, sizeof(State)) == 0;
        }
    };

    std::vector<Node> nodes_;
    std::unordered_set<uint32_t, Hash, Same> known_{1024, Hash{nodes_}, Same{nodes_}};
    uint32_t current_ = 0, next_ = 0;
    size_t steps_ = 0;
};

}  // namespace randflake::explorer

#endif
