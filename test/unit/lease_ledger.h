// Who was granted what, and which numbers were used: what the simulation of leases is judged by.
// Every node id and second belongs to at most one grant, ever; every number of a server that leases
// lies in a grant of that server, every other one in no grant of a server that runs. No two servers
// use the same second of a node id, and every number is reserved once.

#ifndef RANDFLAKE_UNIT_LEASE_LEDGER_H
#define RANDFLAKE_UNIT_LEASE_LEDGER_H

#include <sstream>
#include <string>
#include <vector>

#include "core/layout.h"

namespace randflake::simulation {

class Ledger {
public:
    // Leases are of seconds, as `layout` holds them; numbers of any layout.
    Ledger(const Layout& layout, const Layout& numbers)
        : layout_(layout),
          numbers_layout_(numbers),
          owner_((layout.max_node_id() + 1) * (layout.max_timestamp() + 1)),
          user_(owner_.size()),
          used_(uint64_t{1} << numbers.bits()) {}

    uint32_t NewServer() {
        runs_.push_back(true);
        return static_cast<uint32_t>(runs_.size());
    }
    // It is gone for good; what it did not use of its grants, it never will.
    void Gone(uint32_t server) { runs_[server - 1] = false; }

    // A new grant of that server.
    int Grant(uint32_t server) {
        holders_.push_back(server);
        return static_cast<int>(holders_.size());
    }

    // The grant has these node ids in the seconds [start, end).
    void Claim(int grant, int64_t first_node, int64_t nodes, int64_t start, int64_t end) {
        ForEach(first_node, nodes, start, end, [&](int64_t node, int64_t second, int& owner) {
            if (owner != 0 && owner != grant)
                Fail() << "node id " << node << ", second " << second << " is granted twice";
            owner = grant;
        });
    }

    // The grant gives back what it has of these seconds.
    void GiveBack(int grant, int64_t first_node, int64_t nodes, int64_t start, int64_t end) {
        ForEach(first_node, nodes, start, end, [&](int64_t, int64_t, int& owner) {
            if (owner == grant)
                owner = 0;
        });
    }

    void Use(uint32_t server, bool leases, uint64_t raw) {
        const Fields fields = numbers_layout_.Unpack(raw);
        // Every millisecond of the tick must be the server's.
        const int64_t begins = numbers_layout_.epoch - kWindowEpochMs +
                               static_cast<int64_t>(fields.timestamp) * numbers_layout_.unit;
        for (int64_t at = begins; at < begins + numbers_layout_.unit; at++) {
            const size_t cell =
                at < 0 ? 0 : Cell(fields.node_id, static_cast<uint64_t>(at / kSecondMs));
            const int grant = at < 0 ? 0 : owner_[cell];
            const uint32_t holder = grant == 0 ? 0 : holders_[static_cast<size_t>(grant) - 1];
            if (leases && holder != server) {
                Fail() << Text(fields) << " is outside the leases of its server";
                break;
            }
            if (!leases && holder != 0 && runs_[holder - 1]) {
                Fail() << Text(fields) << " is in a lease of another server";
                break;
            }
            if (user_[cell] != 0 && user_[cell] != server) {
                Fail() << Text(fields) << " is in a second that another server has used";
                break;
            }
            user_[cell] = server;
        }
        auto used = used_[raw];
        if (used)
            Fail() << Text(fields) << " is reserved twice";
        used = true;
        numbers_++;
    }

    // Empty while all is well; the first violation counts.
    std::string violation() const {
        const std::string all = violations_.str();
        return all.substr(0, all.find('\n'));
    }
    bool fine() { return violations_.tellp() == 0; }
    size_t numbers() const { return numbers_; }

private:
    std::ostream& Fail() { return violations_ << (violations_.tellp() == 0 ? "" : "\n"); }

    static std::string Text(const Fields& fields) {
        std::ostringstream out;
        out << "number " << fields.timestamp << '/' << fields.node_id << '/' << fields.sequence;
        return out.str();
    }

    size_t Cell(uint64_t node, uint64_t second) const {
        return node * (layout_.max_timestamp() + 1) + second;
    }

    template <typename Do>
    void ForEach(int64_t first_node, int64_t nodes, int64_t start, int64_t end, Do&& act) {
        for (int64_t node = first_node; node < first_node + nodes; node++)
            for (int64_t second = start; second < end; second++)
                act(node, second,
                    owner_[Cell(static_cast<uint64_t>(node), static_cast<uint64_t>(second))]);
    }

    const Layout layout_;
    const Layout numbers_layout_;
    std::vector<int> owner_;      // the grant that has a node id and second, 0 for none
    std::vector<uint32_t> user_;  // the server that used a node id and second, 0 for none
    std::vector<bool> used_;      // per number
    std::vector<uint32_t> holders_;
    std::vector<bool> runs_;  // per server
    std::ostringstream violations_;
    size_t numbers_ = 0;
};

}  // namespace randflake::simulation

#endif
