// A simulation of leases: servers, a coordinator, and a network between them, in an order that a
// seed decides.
//
// Anything can happen at any time. Clocks of servers and of the coordinator are wrong and step.
// Servers crash, stop cleanly, lose their worker; they and single calls of their backends stand
// still for long, between any two shared operations. Requests and answers are late or lost; a
// request may arrive when nobody waits for it any more. A commit is unclear: the connection breaks
// after the row arrived, or the server warns, and the transaction is committed or is not. The
// coordinator is stopped; a replica that missed transactions or an old copy takes over
// (lease_cluster.h). Old leases are purged, the pool changes.
//
// What must hold: lease_ledger.h.

#ifndef RANDFLAKE_UNIT_LEASE_SIMULATION_H
#define RANDFLAKE_UNIT_LEASE_SIMULATION_H

#include <ostream>
#include <string>
#include <vector>

#include "lease_server.h"

namespace randflake::simulation {

struct Scenario {
    Layout layout;            // of seconds: what leases are made of
    Layout numbers = layout;  // what servers make of them
    CoordinatorRules rules{};
    int servers = 3;
    int steps = 4000;
    std::ostream* trace = nullptr;  // gets a line for everything that happens beside reservations
};

struct Findings {
    std::string violation;  // empty, or the first one
    int step = 0;           // at which it was found

    // What was seen on the way: a simulation in which nothing happens finds no violation either.
    size_t numbers = 0;
    size_t granted = 0, renewed = 0, refused = 0, released = 0;
    size_t unclear = 0;  // answers that are no grant although the coordinator made one
    size_t failovers = 0, lost_transactions = 0;
    size_t reserved_during_change = 0, lost_swaps = 0;

    Findings& operator+=(const Findings& other) {
        numbers += other.numbers;
        granted += other.granted;
        renewed += other.renewed;
        refused += other.refused;
        released += other.released;
        unclear += other.unclear;
        failovers += other.failovers;
        lost_transactions += other.lost_transactions;
        reserved_during_change += other.reserved_during_change;
        lost_swaps += other.lost_swaps;
        return *this;
    }
    friend std::ostream& operator<<(std::ostream& out, const Findings& f) {
        return out << f.numbers << " numbers, " << f.granted << " grants, " << f.renewed
                   << " renewals, " << f.refused << " refusals, " << f.released << " releases, "
                   << f.unclear << " unclear answers, " << f.failovers << " failovers with "
                   << f.lost_transactions << " transactions lost, " << f.reserved_during_change
                   << " reserved during a change, " << f.lost_swaps << " lost swaps";
    }
};

template <typename Holder = ShippedHolder>
class Simulation {
public:
    Simulation(const Scenario& scenario, uint64_t seed)
        : scenario_(scenario),
          random_(seed),
          pool_{0, static_cast<int64_t>(scenario.layout.max_node_id()) + 1, random_.Between(2, 8),
                random_.Between(0, 3)},
          ledger_(scenario.layout, scenario.numbers),
          cluster_(Coordinator(scenario.layout, pool_, scenario.rules, Cluster::kFirst, kKeep),
                   pool_.max_clock_skew, &random_) {
        // From schedules in which all is well for long to those in which nothing is.
        coordinator_trouble_ = int64_t{20} << random_.Between(0, 5);
        server_trouble_ = int64_t{20} << random_.Between(0, 5);
        cluster_.SetTime(kWindowEpochSeconds + kFirstSecond);
        for (int i = 0; i < scenario.servers; i++) {
            servers_.emplace_back(scenario.layout, scenario.numbers, &ledger_, &random_);
            asked_.push_back(0);
        }
    }

    Findings Run() {
        for (findings_.step = 0; findings_.step < scenario_.steps; findings_.step++) {
            Step();
            if (!ledger_.fine())
                break;
        }
        findings_.violation = ledger_.violation();
        findings_.numbers = ledger_.numbers();
        findings_.lost_transactions = cluster_.lost_transactions();
        for (const auto& server : servers_) {
            findings_.reserved_during_change += server.reserved_during_change();
            findings_.lost_swaps += server.lost_swaps();
        }
        return findings_;
    }

private:
    // The first second of all, so that clocks can be a little behind.
    static constexpr int64_t kFirstSecond = 60;
    static constexpr int64_t kNobody = -1;
    // A coordinator's day, at this scale.
    static constexpr int64_t kKeep = 60;

    struct Message {
        int64_t server;  // that waits for the answer, if it still does
        uint64_t ticket;
        Request request;
        bool answered = false;
        Answer answer{};
    };

    void Step() {
        const auto i = static_cast<size_t>(random_.Between(0, scenario_.servers - 1));
        Server<Holder>& server = servers_[i];
        if (random_.OneIn(50))
            cluster_.Advance();
        else if (random_.OneIn(coordinator_trouble_))
            HappenToCoordinator();
        else if (random_.OneIn(server_trouble_))
            HappenToServer(&server);
        else if (random_.OneIn(5))
            StepNetwork();
        else if (server.PausedNow())
            return;
        else if (random_.OneIn(4))
            StepWorker(i);
        else
            server.StepBackend(cluster_.true_now());
    }

    void StepWorker(size_t i) {
        Server<Holder>& server = servers_[i];
        if (server.changes_window()) {
            for (const Request& release : server.StepChange())
                Send(kNobody, release);
        } else if (!server.waits()) {
            server.OpenNext(cluster_.true_now());
            if (!server.changes_window() && random_.OneIn(3))
                Send(static_cast<int64_t>(i),
                     server.Ask(random_.Between(1, 10), cluster_.true_now()));
        } else if (random_.OneIn(20)) {
            server.Hear(Answer{}, cluster_.true_now());  // too late, or connection lost
        }
    }

    // A line to be completed. The stream that is nowhere takes nothing.
    std::ostream& Trace() {
        std::ostream& out = scenario_.trace != nullptr ? *scenario_.trace : nowhere_;
        return out << "step " << findings_.step << ", second "
                   << cluster_.true_now() - kWindowEpochSeconds << ", coordinator's "
                   << cluster_.now() - kWindowEpochSeconds << ": ";
    }

    // --- requests and answers

    void Send(int64_t server, const Request& request) {
        const uint64_t ticket = ++tickets_;
        if (server != kNobody)
            asked_[static_cast<size_t>(server)] = ticket;
        messages_.push_back({server, ticket, request});
        Trace() << "request " << ticket << " of server " << server << ": " << request << '\n';
    }

    void StepNetwork() {
        if (messages_.empty())
            return;
        const auto which =
            static_cast<size_t>(random_.Between(0, static_cast<int64_t>(messages_.size()) - 1));
        Message& message = messages_[which];
        if (!random_.OneIn(12)) {  // else it is lost
            if (!message.answered && cluster_.up()) {
                message.answer = Execute(message.request);
                message.answered = true;
                Trace() << "request " << message.ticket << " at the coordinator: " << message.answer
                        << '\n';
                return;
            }
            if (message.server != kNobody) {
                const auto i = static_cast<size_t>(message.server);
                if (servers_[i].waits() && asked_[i] == message.ticket) {
                    servers_[i].Hear(message.answer, cluster_.true_now());
                    Trace() << "answer " << message.ticket << " arrives\n";
                }
            }
        }
        messages_.erase(messages_.begin() + static_cast<ptrdiff_t>(which));
    }

    Answer Execute(const Request& request) {
        const bool clear = !random_.OneIn(6);
        const bool commit = clear || random_.OneIn(2);
        Answer answer;
        const bool done = cluster_.Transact(commit, [&](Coordinator& coordinator) {
            return Execute(&coordinator, request, &answer.grant);
        });
        answer.row = done;
        answer.clear = done && clear;
        answer.refused = !done && clear;
        findings_.refused += answer.refused;
        findings_.unclear += done && !clear;
        return answer;
    }

    bool Execute(Coordinator* coordinator, const Request& request, LeaseGrant* grant) {
        const uint64_t identity = cluster_.identity();
        const int64_t now = cluster_.now();
        if (request.kind == Request::kAcquire) {
            const auto granted = coordinator->Acquire(identity, now, request.incarnation,
                                                      request.nodes, request.duration);
            findings_.granted += granted.has_value();
            *grant = granted.value_or(LeaseGrant{});
            return granted.has_value();
        }
        if (request.kind == Request::kRenew) {
            const auto end =
                coordinator->Renew(identity, now, request.lease_id, request.incarnation,
                                   request.second, request.duration);
            findings_.renewed += end.has_value();
            grant->end = end.value_or(0);
            return end.has_value();
        }
        const bool released = coordinator->Release(identity, now, request.lease_id,
                                                   request.incarnation, request.second);
        findings_.released += released;
        return released;
    }

    // --- what goes wrong

    // Seconds.
    int64_t WrongBy() {
        const int64_t most = random_.OneIn(3) ? 0 : random_.OneIn(2) ? 3 : 25;
        return random_.Between(-most, most);
    }

    void HappenToServer(Server<Holder>* server) {
        const int64_t chance = random_.Between(0, 9);
        if (chance < 2)
            server->StepClock(WrongBy());
        else if (chance < 4)
            server->Pause(random_.Between(1, 300));
        else if (chance < 5)
            server->Crash();
        else if (chance < 6 && !server->waits() && !server->changes_window())
            server->Seal();
    }

    void HappenToCoordinator() {
        const int64_t chance = random_.Between(0, 39);
        if (chance < 3) {
            cluster_.StepClock(WrongBy());
        } else if (chance < 6) {
            cluster_.FailOver();
            Trace() << "failover\n";
            findings_.failovers++;
        } else if (chance < 8) {
            cluster_.TakeBackup();
        } else if (chance < 10 || !cluster_.up()) {
            cluster_.StopOrStart();
        } else if (chance < 13) {
            Manage([&](Coordinator& coordinator) {
                (void)coordinator.Purge(cluster_.identity(), cluster_.now(),
                                        random_.Between(0, 5) * 1000);
            });
        } else if (chance < 14) {
            Manage([&](Coordinator& coordinator) {
                const int64_t first = random_.OneIn(2) ? 0 : 1;
                coordinator.Configure(
                    cluster_.identity(), cluster_.now(),
                    {.first_node_id = first, .node_count = pool_.node_count - first});
            });
        }
    }

    template <typename Act>
    void Manage(Act&& act) {
        cluster_.Transact(true, [&](Coordinator& coordinator) {
            act(coordinator);
            return true;
        });
    }

    const Scenario scenario_;
    Random random_;
    const Coordinator::Pool pool_;
    Ledger ledger_;
    Cluster cluster_;
    std::vector<Server<Holder>> servers_;
    int64_t coordinator_trouble_, server_trouble_;  // one in so many steps
    std::vector<uint64_t> asked_;                   // per server, what it waits for
    std::vector<Message> messages_;
    uint64_t tickets_ = 0;
    Findings findings_;
    std::ostream nowhere_{nullptr};
};

}  // namespace randflake::simulation

#endif
