// Checks the simulation's invariants against all grants and all used numbers. A server that creates
// its shared memory anew counts as another server. The invariants are:
// - At any time, a second of a node id belongs to at most one grant. Another grant may get the
//   second only after the first grant has given it back.
// - A leasing server uses only its own grants. No server uses another running server's grant.
// - No two servers use the same second of a node id, and no number is reserved twice.
// - If secrets change, no identifier is issued twice, and each identifier decodes to its number.
// - No server takes a lease that, by the server's own clock, ends later than requested.

#pragma once

#include "core/lease/lease.h"
#include "events.h"
#include "printers.h"
#include "toy_ring.h"

namespace randflake::simulation {

// Returns the layout of the second set of slots. This layout holds only half of the node ids.
inline Layout NarrowOf(const Layout& numbers) {
    return {.epoch = numbers.epoch,
            .timestamp_bits = numbers.timestamp_bits,
            .node_bits = numbers.node_bits - 1,
            .sequence_bits = numbers.sequence_bits,
            .unit = numbers.unit};
}

class Ledger {
public:
    // Leases have the layout `layout`, with ticks of one second. Numbers have the layout `numbers`.
    Ledger(const Layout& layout, const Layout& numbers, Events* events)
        : events_(events),
          layout_(layout),
          numbers_layout_(numbers),
          narrow_layout_(NarrowOf(numbers)),
          seconds_((layout.max_node_id() + 1) * (layout.max_timestamp() + 1)),
          last_uses_(layout.max_node_id() + 1),
          used_(uint64_t{1} << numbers.bits()),
          used_narrow_(uint64_t{1} << narrow_layout_.bits()) {}

    // Registers a start of the server with this name. A name is a number from 0 to 31.
    uint32_t NewServer(int64_t name) {
        starts_.push_back({name, true});
        return static_cast<uint32_t>(starts_.size());
    }
    void Gone(uint32_t server) { starts_[server - 1].runs = false; }

    int Grant(uint32_t server) {
        given_.push_back({server, starts_[server - 1].name});
        return static_cast<int>(given_.size());
    }

    // Returns the grant with this incarnation. If the grant is 0, the caller sets it to a new one.
    int& GrantOf(const Incarnation& incarnation) {
        return grants_[{incarnation.words[0], incarnation.words[1]}];
    }
    // Returns the name of the server to which the coordinator granted this incarnation's lease.
    int64_t GrantedTo(const Incarnation& incarnation) {
        const int grant = GrantOf(incarnation);
        return grant == 0 ? -1 : Of(grant).name;
    }
    // Records that the grant's server has started again, and that the server resumes the grant.
    void Resume(int grant, uint32_t server) {
        if (grant == 0) {
            Fail() << "a lease is resumed that nobody was granted";
            return;
        }
        uint32_t& holder = Of(grant).holder;
        if (holder != server && starts_[holder - 1].runs)
            Fail() << "a lease is resumed while another server has it";
        holder = server;
        MayLose(grant, false);
    }

    // Notes whether a server may lose a grant. After MayLoseAll(), it may lose all its grants.
    void MayLose(int grant, bool may) {
        if (grant != 0) Of(grant).may_lose = may;
    }
    void MayLoseAll(int64_t name) {
        for (Given& given : given_) given.may_lose |= starts_[given.holder - 1].name == name;
    }
    // Returns whether this second of a node id is really free for a server: no other server has
    // used the second, and no other running server has a grant of it. If `leases` is true, this
    // server's present run or one of its ended runs must also have a grant of the second.
    bool CouldUse(uint32_t server, bool leases, uint64_t node, int64_t second, int* grant) {
        const Second* found = Find(node, second);
        if (found == nullptr || (found->user != 0 && found->user != server)) return false;
        *grant = found->owner;
        if (*grant == 0) return !leases;
        const ServerStart& holder = starts_[Of(*grant).holder - 1];
        return (Of(*grant).holder == server || !holder.runs) &&
               (!leases || holder.name == starts_[server - 1].name);
    }
    bool may_lose(int grant) { return Of(grant).may_lose; }
    void MayBeLeasedTo(int64_t end) { last_claimed_ = std::max(last_claimed_, end); }
    int64_t last_claimed() const { return last_claimed_; }

    // Notes a second that a server's clock has shown. latest() returns the latest such second.
    void Showed(randflake::Second second) { latest_ = std::max(latest_, second); }
    randflake::Second latest() const { return latest_; }

    // Records that the grant has these node ids in the seconds [start, end).
    void Claim(int grant, int64_t first_node, int64_t nodes, int64_t start, int64_t end) {
        MayBeLeasedTo(end);
        ForEach(first_node, nodes, start, end, [&](int64_t node, int64_t second, Second& found) {
            if (found.owner != 0 && found.owner != grant)
                Fail() << "node id " << node << ", second " << second << " is granted twice";
            found.owner = grant;
        });
    }

    void TooLong(int64_t end) { Fail() << "a lease to " << end << " is longer than asked for"; }

    void Violated(const std::string& what) { Fail() << what; }

    // Gives the grant's seconds from `start` to `end` back to the coordinator.
    void GiveBack(int grant, int64_t first_node, int64_t nodes, int64_t start, int64_t end) {
        ForEach(first_node, nodes, start, end, [&](int64_t, int64_t, Second& found) {
            if (found.owner == grant) found.owner = 0;
        });
    }

    // Checks a holder's claim that these seconds of its lease are unused.
    void Unused(int64_t first_node, int64_t nodes, int64_t start, int64_t end) {
        ForEach(first_node, nodes, start, end, [&](int64_t node, int64_t second, Second& found) {
            if (found.user != 0)
                Fail() << "node id " << node << ", second " << second
                       << " is given back though it was used";
        });
    }

    void Use(uint32_t server, bool leases, uint64_t raw) {
        UseOf(numbers_layout_, &used_, server, leases, raw);
        events_->numbers++;
        CountHandover(server, leases, &last_uses_[numbers_layout_.Unpack(raw).node_id]);
    }
    void UseNarrow(uint32_t server, bool leases, uint64_t raw) {
        UseOf(narrow_layout_, &used_narrow_, server, leases, raw);
        events_->narrow_numbers++;
    }

    void Issue(uint64_t raw, uint64_t id) {
        ids_.resize(used_.size());
        if (ids_[id] != 0)
            Fail() << "identifier " << id << " is issued for "
                   << Text(numbers_layout_.Unpack(ids_[id] - 1)) << " and "
                   << Text(numbers_layout_.Unpack(raw));
        ids_[id] = raw + 1;
        events_->issued++;
    }

    // Checks that a server with all secrets decodes every issued identifier to its number.
    void DecodeAll(const ToyRing& ring) {
        for (uint64_t id = 0; id < ids_.size(); id++) {
            if (ids_[id] == 0) continue;
            const uint64_t made_from = ids_[id] - 1;
            uint64_t raw = 0;
            if (!ring.All().Decrypt(numbers_layout_, id, &raw))
                Fail() << "identifier " << id << " of " << Text(numbers_layout_.Unpack(made_from))
                       << " does not decode";
            else if (raw != made_from)
                Fail() << "identifier " << id << " of " << Text(numbers_layout_.Unpack(made_from))
                       << " decodes to " << Text(numbers_layout_.Unpack(raw));
        }
    }

    std::string violation() const {
        const std::string all = violations_.str();
        return all.substr(0, all.find('\n'));
    }
    bool fine() const { return fine_; }

private:
    struct Second {
        int owner = 0;      // the grant that has it, 0 for none
        uint32_t user = 0;  // the server that used it, 0 for none
    };

    struct Given {
        uint32_t holder;
        int64_t name;  // of the server to which the coordinator granted it
        bool may_lose = false;
    };
    Given& Of(int grant) { return given_[static_cast<size_t>(grant) - 1]; }

    struct ServerStart {
        int64_t name;
        bool runs;
    };

    struct LastUse {
        int64_t name = -1;
        bool leases = false;
        uint32_t names = 0;  // a bit for each user's name
    };

    std::ostream& Fail() {
        violations_ << (fine_ ? "" : "\n");
        fine_ = false;
        return violations_;
    }

    static std::string Text(const Fields& fields) { return "number " + FieldsText(fields); }

    void UseOf(const Layout& layout, std::vector<bool>* all_used, uint32_t server, bool leases,
               uint64_t raw) {
        const Fields fields = layout.Unpack(raw);
        // A tick may touch several seconds, and the server must be allowed to use each of them.
        const int64_t begins =
            layout.epoch - kWindowEpochMs + static_cast<int64_t>(fields.timestamp) * layout.unit;
        const int64_t last = FloorDivide(begins + layout.unit - 1, kSecondMs);
        for (int64_t second = FloorDivide(begins, kSecondMs); second <= last; second++)
            if (const char* wrong = UseSecond(server, leases, fields.node_id, second))
                Fail() << Text(fields) << wrong;
        auto used = (*all_used)[raw];
        if (used) Fail() << Text(fields) << " is reserved twice";
        used = true;
    }

    // Returns null if the layout lacks this node id or second.
    Second* Find(uint64_t node, int64_t second) {
        if (node > layout_.max_node_id() || second < 0 ||
            static_cast<uint64_t>(second) > layout_.max_timestamp())
            return nullptr;
        return &seconds_[node * (layout_.max_timestamp() + 1) + static_cast<uint64_t>(second)];
    }

    template <typename Do>
    void ForEach(int64_t first_node, int64_t nodes, int64_t start, int64_t end, Do&& act) {
        for (int64_t node = first_node; node < first_node + nodes; node++)
            for (int64_t second = start; second < end; second++) {
                Second* found = Find(static_cast<uint64_t>(node), second);
                if (found == nullptr)
                    Fail() << "node id " << node << ", second " << second << " does not exist";
                else
                    act(node, second, *found);
            }
    }

    // Returns what is wrong with a use of this second, or null if nothing is wrong.
    const char* UseSecond(uint32_t server, bool leases, uint64_t node, int64_t second) {
        Second* found = Find(node, second);
        if (found == nullptr) return " is in a second that does not exist";
        const uint32_t holder = found->owner == 0 ? 0 : Of(found->owner).holder;
        if (leases && holder != server) return " is outside the leases of its server";
        if (!leases && holder != 0 && starts_[holder - 1].runs)
            return " is in a lease of another server";
        if (found->user != 0 && found->user != server)
            return " is in a second that another server has used";
        found->user = server;
        return nullptr;
    }

    void CountHandover(uint32_t server, bool leases, LastUse* last) {
        const int64_t name = starts_[server - 1].name;
        const uint32_t bit = uint32_t{1} << name;
        if (last->names != 0 && last->name != name) {
            events_->taken_over++;
            events_->failed_back += (last->names & bit) != 0;
        }
        if (last->names != 0 && last->leases != leases)
            (leases ? events_->static_to_leased : events_->leased_to_static)++;
        *last = {name, leases, last->names | bit};
    }

    Events* const events_;
    const Layout layout_;
    const Layout numbers_layout_;
    const Layout narrow_layout_;
    std::vector<Second> seconds_;
    std::vector<LastUse> last_uses_;  // per node id
    std::vector<bool> used_;          // per number
    std::vector<bool> used_narrow_;
    std::vector<uint64_t> ids_;  // per identifier, the number + 1 that it was issued for
    std::vector<Given> given_;   // per grant
    int64_t last_claimed_ = 0;   // no coordinator has leased this second or a later one
    randflake::Second latest_{};
    std::map<std::array<uint64_t, 2>, int> grants_;
    std::vector<ServerStart> starts_;
    std::ostringstream violations_;
    bool fine_ = true;
};

}  // namespace randflake::simulation
