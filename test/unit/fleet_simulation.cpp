#include "fleet_simulation.h"

#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <set>
#include <vector>

#include "simulated_server.h"

namespace randflake {

static std::ostream& operator<<(std::ostream& out, const NodeRange& nodes) {
    return out << nodes.first << " to " << nodes.first + nodes.count - 1;
}

namespace simulation {
namespace {

class Simulation {
public:
    Simulation(const Scenario& scenario, uint64_t seed)
        : scenario_(scenario),
          random_(seed),
          node_ids_(static_cast<int64_t>(scenario.layout.max_node_id()) + 1),
          max_duration_(scenario.longest_lease.value_or(random_.Between(2, 8))),
          max_clock_skew_(
              scenario.tolerated_skew.value_or(random_.Between(clocks_agree() ? 1 : 0, 3))),
          skew_ms_(max_clock_skew_ * 1000 - (clocks_agree() ? random_.Between(0, 500) : 0)),
          ledger_(scenario.layout, scenario.numbers, &findings_),
          free_at_(static_cast<size_t>(node_ids_)) {
        ChooseHowMuch();
        MakeMachines();
        MakeSites();
        MakeServers();
    }

    Findings Run() {
        for (findings_.step = 0; findings_.step < scenario_.steps; findings_.step++) {
            Step();
            if (!ledger_.fine()) break;
        }
        if (scenario_.rotates) ledger_.DecodeAll(ToyRing(scenario_.numbers, agreed_));
        findings_.violation = ledger_.violation();
        for (const Site& site : sites_)
            findings_.lost_transactions += site.cluster.lost_transactions();
        return findings_;
    }

private:
    static constexpr int64_t kNobody = -1;
    static constexpr uint32_t kLeasedNodes = 2;

    // A site has one coordinator. The operator lets this coordinator lease the node ids in `pool`.
    struct Site {
        Cluster cluster;
        std::optional<NodeRange> pool;  // empty: the pool is closed
        int64_t host = kNobody;         // the server that the coordinator runs in, if simulated
    };

    // Belongs to one server.
    struct Own {
        DataDirectory snapshot;
        bool rolls_back = false;  // soon, to the snapshot
        uint64_t asked = 0;       // the ticket of its last request
        size_t site = 0;          // the site that it asks
    };

    struct Message {
        int64_t server;  // waits for the answer, or has stopped waiting
        uint64_t ticket;
        size_t site;
        Request request;
        bool answered = false;
        Answer answer{};
    };

    bool clocks_agree() const {
        return scenario_.fleet == Fleet::kEverything || scenario_.fleet == Fleet::kTwoNodeIds;
    }
    bool has_static() const { return scenario_.fleet != Fleet::kLeases; }

    // Chooses how often things go wrong. The frequencies differ greatly between schedules.
    void ChooseHowMuch() {
        coordinator_trouble_ = int64_t{20} << random_.Between(0, 5);
        server_trouble_ = int64_t{20} << random_.Between(0, 5);
        longest_advance_ms_ = int64_t{2000} >> random_.Between(0, has_static() ? 3 : 2);
        leases_one_in_ = random_.Between(2, 4);
        if (scenario_.rotates) secrets_one_in_ = int64_t{20} << random_.Between(0, 2);
        static_nodes_ = SomeNodes(1, node_ids_);
        restless_clocks_ = has_static() && random_.OneIn(2);
        if (scenario_.fleet == Fleet::kTwoNodeIds) {
            static_nodes_ = SomeNodes(2, 2);
            leases_one_in_ = 1000;
            server_trouble_ = int64_t{80}
                              << (scenario_.changes_settings ? random_.Between(0, 2) : 0);
            longest_advance_ms_ = 500;
        } else if (clocks_agree() && random_.OneIn(2)) {
            static_nodes_ = SomeNodes(1, 2);
            if (random_.OneIn(2)) leases_one_in_ = 1000;
            server_trouble_ = int64_t{20} << random_.Between(0, 2);
        } else if (scenario_.fleet == Fleet::kOneDirectory && random_.OneIn(2)) {
            // The server's static node ids fill the coordinator's whole pool.
            static_nodes_ = SomeNodes(kLeasedNodes, kLeasedNodes);
            server_trouble_ = int64_t{80} << random_.Between(0, 3);
        }
        set_back_far_ = scenario_.set_back_far && has_static() &&
                        (scenario_.only_handovers || random_.OneIn(2));
        skew_stays_ = scenario_.skew_stays || (scenario_.changes_settings && random_.OneIn(2));
        coordinator_trouble_ = scenario_.coordinator_trouble.value_or(coordinator_trouble_);
        server_trouble_ = scenario_.server_trouble.value_or(server_trouble_);
    }

    void MakeMachines() {
        for (int i = 0; i < 3; i++) {
            machines_.emplace_back(i != 2);
            machines_.back().Boot(++boots_, true_ms_ - random_.Between(0, 100000));
            machines_.back().StepClock(clocks_agree() ? WrongByMs() : 0);
        }
    }

    void MakeSites() {
        const bool hosts = scenario_.only_handovers && random_.OneIn(3);
        const int64_t made = UnixNow() - random_.Between(0, 20);
        const int count = scenario_.fleet == Fleet::kEverything ? 2 : 1;
        for (int i = 0; i < count; i++) {
            NodeRange nodes{0, static_cast<uint32_t>(node_ids_)};
            if (hosts ||
                (scenario_.fleet == Fleet::kOneDirectory && static_nodes_.count == kLeasedNodes))
                nodes = static_nodes_;
            else if (has_static())
                nodes = {static_cast<uint32_t>(random_.Between(0, node_ids_ - 4)),
                         static_cast<uint32_t>(random_.Between(kLeasedNodes, 4))};
            const bool closed = i > 0 || (scenario_.only_handovers && !hosts);
            const Coordinator::Pool pool{nodes.first, nodes.count, max_duration_, max_clock_skew_,
                                         closed};
            const uint64_t identity = ++identities_;
            sites_.push_back(
                {Cluster({scenario_.layout, pool, scenario_.rules, identity, made}, identity,
                         max_clock_skew_, scenario_.identity_has_birth, &true_ms_, &random_),
                 closed ? std::nullopt : std::optional(nodes)});
            if (clocks_agree()) sites_.back().cluster.StepClock(WrongByMs());
            if (scenario_.rotates) Configure(&sites_.back(), Coordinator::Change{.chain = agreed_});
        }
        if (hosts || (scenario_.fleet == Fleet::kEverything && random_.OneIn(3)))
            sites_[0].host = 0;
    }

    void MakeServers() {
        const int count = scenario_.fleet == Fleet::kOneDirectory ? 1 : 3;
        for (int i = 0; i < count; i++) {
            servers_.emplace_back(scenario_.layout, scenario_.numbers, scenario_.rotates,
                                  scenario_.mutant, i, skew_ms_, &true_ms_, &births_, &ledger_,
                                  &findings_, &random_);
            SimulatedServer& server = servers_.back();
            server.directory().system_identifier = static_cast<uint64_t>(i) + 1;
            server.MoveTo(&machines_[static_cast<size_t>(i % 2)]);
            server.LookBy([this, i](PoolLook* look) {
                for (const Site& site : sites_)
                    if (site.host == i) site.cluster.LookedAt(look);
            });
            own_.push_back({server.directory()});
        }
        for (SimulatedServer& server : servers_) Start(&server);
    }

    void Step() {
        SimulatedServer& server = random_.Pick(servers_);
        if (scenario_.rotates) StopInTime();
        if (scenario_.rotates && random_.OneIn(secrets_one_in_))
            HappenToSecrets();
        else if (random_.OneIn(50))
            true_ms_ += random_.Between(0, findings_.step < still_until_ ? 0 : longest_advance_ms_);
        else if (random_.OneIn(coordinator_trouble_))
            HappenToCoordinator(&random_.Pick(sites_));
        else if (random_.OneIn(server_trouble_))
            HappenToServer(&server);
        else if (set_back_far_ && server.may_leave() &&
                 random_.OneIn(scenario_.only_handovers ? 10 : 60))
            StepClock(server.machine());
        else if (random_.OneIn(5))
            StepNetwork();
        else if (!server.running())
            StepStopped(&server);
        else if (server.PausedNow() || server.in_recovery())
            return;
        else if (random_.OneIn(server.settings().leases ? 2 : 4))
            StepOthers(&server);
        else
            server.StepBackend();
        TakeDone(&server);
        FailWrites(&server);
    }

    // After a failed write, the server crashes in half of the cases, at a random later step. It
    // then restarts from a copy of its data directory that was made right after the failed write.
    void FailWrites(SimulatedServer* server) {
        if (scenario_.fleet != Fleet::kLeases) return;
        Own& own = OwnOf(*server);
        if (server->TakeFailedWrite()) {
            own.snapshot = server->directory();
            own.rolls_back = random_.OneIn(2);
        } else if (own.rolls_back && server->running() && random_.OneIn(60)) {
            own.rolls_back = false;
            Crash(server);
            RollBack(server);
            Start(server);
        }
    }

    void StepOthers(SimulatedServer* server) {
        if (server->stopping())
            server->StepStop();
        else if (!server->settings().leases || random_.OneIn(server->reloads() ? 2 : 3))
            server->StepSession();
        else
            StepWorker(server);
    }

    void StepWorker(SimulatedServer* server) {
        if (server->worker_idle() && server->waits()) {
            if (!random_.OneIn(20)) return;
            server->BeginHear(Answer{});  // too late, or connection lost
        } else if (server->worker_idle()) {
            if (random_.OneIn(3) && server->has_secrets())
                BeginAsk(server);
            else
                server->BeginFollow();
        }
        server->StepWorker();
    }

    void TakeDone(SimulatedServer* server) {
        const SimulatedServer::Done done = server->TakeDone();
        for (const Request& release : done.releases) Send(kNobody, OwnOf(*server).site, release);
        if (done.request) Send(server->role(), OwnOf(*server).site, *done.request);
        // Here the reload has failed. For StopInTime(), records when the last secret begins.
        if (done.reload && scenario_.rotates) times_.insert(LastFrom(server->file()));
    }

    // Counts an event and traces it.
    std::ostream& Happened(size_t Events::*event, const SimulatedServer* server = nullptr) {
        (findings_.*event)++;
        return server != nullptr ? Trace(*server) : Trace();
    }
    std::ostream& Trace() {
        if (scenario_.trace == nullptr) return no_trace_;
        *scenario_.trace << "step " << findings_.step << ", ms " << true_ms_ - kWindowEpochMs;
        for (const Site& site : sites_)
            *scenario_.trace << ", coordinator's second " << site.cluster.now() - kEpoch;
        return *scenario_.trace << ": ";
    }
    std::ostream& Trace(const SimulatedServer& server) {
        return Trace() << "server " << server.role() << ' ';
    }

    SimulatedServer& ServerOf(int64_t role) { return servers_[static_cast<size_t>(role)]; }
    Own& OwnOf(const SimulatedServer& server) { return own_[static_cast<size_t>(server.role())]; }

    void Send(int64_t server, size_t site, const Request& request) {
        const uint64_t ticket = ++tickets_;
        if (server != kNobody) OwnOf(ServerOf(server)).asked = ticket;
        messages_.push_back({server, ticket, site, request});
        Trace() << "request " << ticket << " of server " << server << " for coordinator " << site
                << ": " << request << '\n';
    }

    void BeginAsk(SimulatedServer* server) {
        const Cluster& cluster = sites_[OwnOf(*server).site].cluster;
        int64_t alleged = 0;
        if (cluster.knows_all() && random_.OneIn(3))
            alleged = cluster.now() + max_duration_ + max_clock_skew_ +
                      random_.Between(-2, random_.OneIn(2) ? 0 : 20);
        server->BeginAsk(random_.Between(1, 10), alleged);
    }

    // Lets a server ask to release another server's lease. The coordinator must refuse it.
    void Meddle(const SimulatedServer& server) {
        const SimulatedServer& other = random_.Pick(servers_);
        const Lease& lease = other.open_lease();
        // `other` may be a hard-linked copy that has resumed this server's lease.
        if (lease.id == 0 || server.role() == other.role() ||
            server.role() == ledger_.GrantedTo(lease.incarnation))
            return;
        Send(kNobody, OwnOf(other).site,
             {Request::kRelease, lease.id, lease.incarnation, ToUnix(lease.start - 1), kLeasedNodes,
              0, server.role()});
        findings_.meddlings++;
    }

    bool Up(const Site& site) const {
        return site.cluster.up() &&
               (site.host == kNobody || servers_[static_cast<size_t>(site.host)].generates());
    }

    void StepNetwork() {
        if (messages_.empty()) return;
        const size_t which = random_.Index(messages_.size());
        Message& message = messages_[which];
        if (!random_.OneIn(12)) {  // otherwise the message is lost
            if (!message.answered && Up(sites_[message.site])) {
                message.answer = Execute(&sites_[message.site].cluster, message.request);
                message.answered = true;
                Trace() << "request " << message.ticket << " at the coordinator: " << message.answer
                        << '\n';
                return;
            }
            if (message.server != kNobody) {
                SimulatedServer& server = ServerOf(message.server);
                if (server.generates() && server.waits() && server.worker_idle() &&
                    OwnOf(server).asked == message.ticket) {
                    server.BeginHear(message.answer);
                    Trace() << "answer " << message.ticket << " arrives\n";
                }
            }
        }
        messages_.erase(messages_.begin() + static_cast<ptrdiff_t>(which));
    }

    Answer Execute(Cluster* cluster, Request request) {
        const bool clear = !random_.OneIn(6);
        const bool commit = clear || random_.OneIn(2);
        // After a failover, a coordinator must accept the lease end that a holder names. So holders
        // name false ends only to a coordinator that knows every lease.
        if (cluster->knows_all())
            request.second.count = std::max(request.second.count, request.alleged_end);
        const bool acquires = request.kind == Request::kAcquire;
        const int64_t now = cluster->now();
        Answer answer;
        answer.row = cluster->Transact(commit, [&](Coordinator& coordinator) {
            const bool done =
                simulation::Execute(request, cluster->identity(), now, &coordinator, &answer.grant);
            if (request.kind == Request::kRelease) {
                findings_.released += done;
                return done;
            }
            (acquires ? findings_.granted : findings_.renewed) += done;
            const int64_t stops_at = coordinator.StopsAt(request.secrets);
            (acquires ? findings_.bounded_leases : findings_.bounded_renewals) +=
                done && answer.grant.end.count + 1 == stops_at;
            findings_.told_to_stop +=
                !done && now >= stops_at && coordinator.refusal() != Refusal::kArgument;
            return done;
        });
        answer.clear = answer.row && clear;
        answer.refused =
            !answer.row && clear && cluster->coordinator().refusal() != Refusal::kClosed;
        findings_.refused += answer.refused;
        findings_.unclear += answer.row && !clear;
        return answer;
    }

    static SecretRecords Cut(SecretRecords secrets, uint32_t count) {
        secrets.count = std::min(secrets.count, count);
        return secrets;
    }
    static SecretRecords Grown(SecretRecords secrets, const std::optional<SecretRecord>& by) {
        if (by && secrets.count < kMaxGenerations && by->from > LastFrom(secrets))
            secrets.records[secrets.count++] = *by;
        return secrets;
    }
    static SecretRecords UpTo(SecretRecords secrets, Second second) {
        while (secrets.count > 1 && secrets.records[secrets.count - 1].from > second)
            secrets.count--;
        return secrets;
    }

    // Returns a secret that begins at a second from `from - before` to `from + later`.
    SecretRecord SomeSecret(Second from, int64_t before, int64_t later) {
        const Second second = std::clamp(from + random_.Between(-before, later), Second{1},
                                         SecondsEnd(scenario_.layout) - 1);
        return {++fingerprints_, second};
    }

    // Returns whether a static server may have recorded or used this second. If so, the server can
    // no longer get a secret that begins at this second.
    bool TooLateFor(Second from) const {
        return has_static() && FromUnix({UnixNow()}) + max_clock_skew_ + kWindowSeconds + 3 >= from;
    }

    // Returns a static server's correct file: the agreed secrets, and often the planned secret.
    SecretRecords GoodFile() {
        return planned_ && !TooLateFor(planned_->from) && !random_.OneIn(3)
                   ? Grown(agreed_, planned_)
                   : agreed_;
    }

    // Returns a file for a leasing server. The file may lack secrets, or have wrong secrets.
    SecretRecords AnyFile(const SimulatedServer& server) {
        const int64_t chance = random_.Between(0, 14);
        SecretRecords file = GoodFile();
        if (chance < 2)
            file = Cut(file, static_cast<uint32_t>(random_.Between(1, file.count)));
        else if (chance < 4)
            file = Grown(server.has_secrets() ? server.secrets() : file,
                         SomeSecret(server.LastEnd(), 1, 4));
        else if (chance < 5)
            file = Grown(Cut(file, static_cast<uint32_t>(random_.Between(1, file.count))),
                         SomeSecret(server.LastEnd(), 3, 12));
        return file;
    }

    // Returns a file with which a server must refuse to start. The file lacks or replaces a secret
    // that the server has used. If the server has used only the first secret, returns the correct
    // file.
    SecretRecords WrongFile(const SimulatedServer& server) {
        WindowState state{};
        if (server.directory().Read(&state) == StateError::kNone)
            for (uint32_t i = 1; i < agreed_.count; i++)
                if (agreed_.records[i].from < state.LastEnd())
                    return random_.OneIn(2)
                               ? Cut(agreed_, i)
                               : Grown(Cut(agreed_, i), SomeSecret(agreed_.records[i].from, 1, 1));
        return agreed_;
    }

    void HappenToSecrets() {
        const int64_t chance = random_.Between(0, 9);
        if (chance < 1 && !planned_)
            Plan();
        else if (chance < 2 && planned_)
            AddSecret();
        else if (chance < 3 && random_.OneIn(2))
            Withdraw();
        else
            ReloadSecrets(&random_.Pick(servers_));
    }

    // Acts at all coordinators, or at none if one of them would refuse. Returns whether it did.
    template <typename Act> bool DoEverywhere(Act&& act) {
        for (const Site& site : sites_) {
            Coordinator tried = site.cluster.coordinator();
            if (!act(tried, site.cluster)) return false;
        }
        for (Site& site : sites_) {
            Manage(&site, [&](Coordinator& coordinator) {
                return act(coordinator, site.cluster) ? std::optional<int64_t>(0) : std::nullopt;
            });
            if (!scenario_.operation.adds_everywhere) break;
        }
        return true;
    }

    void Plan() {
        if (agreed_.count == kMaxGenerations) return;
        int64_t from = UnixNow() + max_clock_skew_ + kWindowSeconds.count + 4;
        for (const Site& site : sites_)
            from = std::max(from, site.cluster.coordinator().EarliestOfSecret(site.cluster.now()));
        const SecretRecord planned = SomeSecret(FromUnix({from}), 1, 12);
        if (Grown(agreed_, planned).count == agreed_.count || TooLateFor(planned.from)) return;
        planned_ = planned;
        times_.insert(planned.from);
        Trace() << "secret " << planned.fingerprint << " from " << planned.from.count
                << " is planned\n";
    }

    void AddSecret() {
        const auto add = [&](Coordinator& coordinator, const Cluster& cluster) {
            return coordinator.AddSecret(cluster.identity(), cluster.now(), planned_->fingerprint,
                                         ToUnix(planned_->from).count);
        };
        if (TooLateFor(planned_->from) || !DoEverywhere(add)) {
            Happened(&Events::not_added) << "secret " << planned_->fingerprint << " is not added\n";
        } else {
            agreed_ = Grown(agreed_, planned_);
            Happened(&Events::added) << "secret " << planned_->fingerprint << " is added\n";
        }
        planned_.reset();
    }

    void Withdraw() {
        const SecretRecord& last = agreed_.records[agreed_.count - 1];
        const auto remove = [&](Coordinator& coordinator, const Cluster& cluster) {
            return coordinator.RemoveSecret(cluster.identity(), cluster.now(), last.fingerprint);
        };
        if (agreed_.count == 1 || planned_ || TooLateFor(last.from) || !DoEverywhere(remove))
            return;
        agreed_.count--;
        Happened(&Events::withdrawn) << "secret " << last.fingerprint << " is withdrawn\n";
    }

    void ReloadSecrets(SimulatedServer* server) {
        if (!server->running()) return;
        const bool leases = server->settings().leases;
        SecretRecords file = leases ? AnyFile(*server) : GoodFile();
        if (!leases && !server->has_secrets() && random_.OneIn(4)) {
            file = WrongFile(*server);
        } else if (!leases && server->has_secrets() && !server->in_recovery() &&
                   !IsSetBack(*server->machine()) && random_.OneIn(4)) {
            // The server must refuse a secret that begins in the past, even if its clock steps.
            const Second reached = SecondOf(WallMs{true_ms_ + skew_ms_});
            file = Grown(server->secrets(),
                         SomeSecret(std::max(reached, server->LastEnd() - 1), 3, 0));
        }
        server->ReloadSecrets(file);
        Trace(*server) << "reloads " << file.count << " secrets, the last from "
                       << LastFrom(file).count << '\n';
    }

    // Before a secret begins, stops the static servers that disagree about that secret.
    void StopInTime() {
        if (planned_ && TooLateFor(planned_->from)) planned_.reset();
        while (!times_.empty() && TooLateFor(*times_.begin())) {
            const Second from = times_.extract(times_.begin()).value();
            const SecretRecords right = UpTo(agreed_, from);
            for (SimulatedServer& server : servers_)
                if (server.running() && !server.settings().leases &&
                    (server.has_secrets() || server.reloads()) &&
                    scenario_.operation.stops_in_time &&
                    !server.AllSecrets([&](const SecretRecords& secrets) {
                        return Same(UpTo(secrets, from), right);
                    })) {
                    Crash(&server);
                    findings_.stopped_in_time++;
                }
        }
    }

    static Second LastFrom(const SecretRecords& secrets) {
        return secrets.records[secrets.count - 1].from;
    }
    static bool Same(const SecretRecords& a, const SecretRecords& b) {
        return a.count == b.count && Agreed(a, b) == a.count;
    }

    int64_t UnixNow() const { return true_ms_ / 1000; }

    int64_t WrongByMs() {
        if (clocks_agree()) {
            // The clocks of a fleet differ from each other by less than skew_ms_ at all times.
            if (!scenario_.operation.clocks_agree) return random_.Between(0, 2 * skew_ms_);
            return random_.OneIn(2)   ? random_.Between(0, skew_ms_ - 1)
                   : random_.OneIn(2) ? 0
                                      : skew_ms_ - 1;
        }
        const int64_t most = random_.OneIn(3) ? 0 : random_.OneIn(2) ? 3 : 25;
        return random_.Between(-most, most) * 1000;
    }

    // Returns the Unix second on the clock of an operator who waits until node ids become free.
    int64_t OperatorNow(const Site& site) {
        return clocks_agree() ? FloorDivide(true_ms_ + WrongByMs(), 1000) : site.cluster.now();
    }

    template <typename Predicate> static bool All(const NodeRange& nodes, Predicate&& holds) {
        for (uint32_t node = nodes.first; node < nodes.first + nodes.count; node++)
            if (!holds(node)) return false;
        return true;
    }

    // Returns whether a running server other than `except` uses some of these node ids statically.
    bool UsedStatically(const NodeRange& nodes, int64_t except) const {
        for (const SimulatedServer& server : servers_)
            if (server.role() != except && server.generates() && !server.settings().leases &&
                server.settings().nodes.Overlaps(nodes))
                return true;
        return false;
    }

    bool Pooled(const NodeRange& nodes, const Site* except) const {
        for (const Site& site : sites_)
            if (&site != except && site.pool && site.pool->Overlaps(nodes)) return true;
        return false;
    }

    bool Free(const NodeRange& nodes, const Site& site) {
        return !scenario_.operation.waits_until_free ||
               All(nodes, [&](uint32_t node) { return free_at_[node] <= OperatorNow(site); });
    }

    bool MayUse(const NodeRange& nodes, const SimulatedServer& server) {
        // The fleet's only data directory records all used seconds, even those of current leases.
        if (scenario_.fleet == Fleet::kOneDirectory) return true;
        const Site& own = sites_[0];
        if (UsedStatically(nodes, server.role()) || !Free(nodes, own)) return false;
        // The coordinator's own server looks into the coordinator's pool, so the operator need not.
        return !Pooled(nodes, own.host == server.role() ? &own : nullptr);
    }

    // Returns whether a server may change its node ids. If a server gives up node ids that its own
    // coordinator's pool contains, the coordinator may lease these node ids at once.
    bool MayGiveUp(const Settings& before, const Settings& after,
                   const SimulatedServer& server) const {
        if (before.leases || (!after.leases && after.nodes.Covers(before.nodes)) ||
            !scenario_.operation.takes_own_nodes_out)
            return true;
        for (const Site& site : sites_)
            if (site.host == server.role() && site.pool && site.pool->Overlaps(before.nodes))
                return false;
        return true;
    }

    bool MayLease(const NodeRange& nodes, const Site& site) {
        return !UsedStatically(nodes, site.host) && !Pooled(nodes, &site);
    }

    NodeRange SomeNodes(int64_t least, int64_t most) {
        const int64_t count = random_.Between(least, most);
        return {static_cast<uint32_t>(random_.Between(0, node_ids_ - count)),
                static_cast<uint32_t>(count)};
    }

    NodeRange EnoughToLease(NodeRange nodes) const {
        nodes.count = std::max(nodes.count, kLeasedNodes);
        nodes.first = std::min(nodes.first, static_cast<uint32_t>(node_ids_) - nodes.count);
        return nodes;
    }

    NodeRange SomePool() {
        if (!has_static()) return {0, static_cast<uint32_t>(node_ids_)};
        return random_.OneIn(2) ? EnoughToLease(static_nodes_) : SomeNodes(kLeasedNodes, 4);
    }

    Settings SomeStaticNodes() {
        int64_t count =
            random_.Between(1, std::min<int64_t>(SimulatedServer::kMaxSlots, static_nodes_.count));
        if (set_back_far_ && random_.OneIn(2)) count = 1;
        const int64_t ranges =
            set_back_far_ ? random_.Between(1, std::min<int64_t>(4, static_nodes_.count / count))
                          : 1;
        count *= ranges;
        return {false,
                {static_nodes_.first +
                     static_cast<uint32_t>(random_.Between(0, static_nodes_.count - count)),
                 static_cast<uint32_t>(count)},
                static_cast<uint32_t>(ranges)};
    }

    void StopOthers(const NodeRange& nodes, const SimulatedServer& server) {
        for (SimulatedServer& other : servers_)
            if (&other != &server && other.generates() && !other.settings().leases &&
                other.settings().nodes.Overlaps(nodes) && other.may_stop())
                Stop(&other);
    }

    // Returns other settings for a stopped server, often with the same first node id.
    Settings Changed(const Settings& before) {
        Settings after = SomeStaticNodes();
        const uint32_t count = before.nodes.count / before.ranges;
        if (before.leases || !static_nodes_.Covers(before.nodes) || random_.OneIn(3)) return after;
        const uint32_t room = static_nodes_.first + static_nodes_.count - before.nodes.first;
        after.ranges =
            static_cast<uint32_t>(random_.Between(1, std::min<int64_t>(4, room / count)));
        after.nodes = {before.nodes.first, count * after.ranges};
        return after;
    }

    void Start(SimulatedServer* server, bool changes = false) {
        const Settings before = server->settings();
        const bool first = server->number() == 0;
        Settings settings{true, {0, random_.OneIn(4) ? 1 : kLeasedNodes}};
        if (changes || (has_static() && !random_.OneIn(leases_one_in_))) {
            const int64_t chance = random_.Between(0, 4);
            settings = changes                        ? Changed(before)
                       : chance < 2 && !before.leases ? before
                       : chance < 4                   ? random_.Pick(servers_).last_settings()
                                                      : SomeStaticNodes();
            settings.leases = false;
            if (changes && !server->in_recovery()) StopOthers(settings.nodes, *server);
            if (!server->in_recovery() && !MayUse(settings.nodes, *server)) return;
        }
        if (!first) {
            if (!MayGiveUp(before, settings, *server)) return;
            findings_.changed_nodes +=
                !settings.leases && !before.leases && settings.nodes != before.nodes;
            findings_.quick_changes += changes && settings.nodes != before.nodes;
            findings_.to_leases += settings.leases && !before.leases;
            findings_.to_static += !settings.leases && before.leases;
        }
        StartWith(settings, server);
    }

    void StartWith(const Settings& settings, SimulatedServer* server) {
        SetRight(server->machine());
        server->Start(settings, !scenario_.rotates                            ? agreed_
                                : settings.leases                             ? AnyFile(*server)
                                : random_.OneIn(scenario_.wrong_files_one_in) ? WrongFile(*server)
                                                                              : GoodFile());
        Serve(*server);
        Trace(*server) << "starts in recovery " << server->in_recovery() << " leases "
                       << settings.leases << " nodes " << settings.nodes << " in "
                       << settings.ranges << " clock " << server->machine()->offset_ms() << '\n';
    }

    void Promote(SimulatedServer* server) {
        if (!server->settings().leases && !MayUse(server->settings().nodes, *server)) return;
        SetRight(server->machine());
        server->Promote();
        Happened(&Events::promotions, server) << "is promoted\n";
    }

    bool IsHost(const SimulatedServer& server) const { return sites_[0].host == server.role(); }

    void Serve(const SimulatedServer& server) {
        const Settings& settings = server.settings();
        for (Site& site : sites_)
            if (site.host == server.role())
                site.cluster.Serve(
                    {settings.nodes.first, settings.leases ? 0 : settings.nodes.count});
    }

    // In a fleet, only a clock that was set back far has a negative offset.
    static bool IsSetBack(const Machine& machine) { return machine.offset_ms() < 0; }
    void SetRight(Machine* machine) {
        if (clocks_agree() && IsSetBack(*machine)) StepClock(machine, false);
    }
    bool MaySetBack(const Machine& machine) const {
        for (const SimulatedServer& server : servers_)
            if (server.machine() == &machine && server.running() &&
                (IsHost(server) ||
                 !(server.in_recovery() || server.settings().leases || server.has_opened())))
                return false;
        return has_static();
    }
    // Returns by how much to set a clock back. The clock then usually shows a used second.
    int64_t FarMs(const Machine& machine) {
        for (SimulatedServer& server : servers_) {
            const int64_t room_ms = (server.Now() - server.floor()).count * 1000;
            if (server.machine() == &machine && server.running() && server.has_opened() &&
                room_ms > server.SkewMs().count && !random_.OneIn(3))
                return random_.Between(server.SkewMs().count, room_ms);
        }
        return random_.Between(max_clock_skew_, scenario_.only_handovers ? 10 : 40) * 1000;
    }

    void StepClock(Machine* machine, bool may_set_back = true) {
        findings_.clock_steps++;
        machine->StepClock(WrongByMs());
        if (may_set_back && set_back_far_ && MaySetBack(*machine) && random_.OneIn(2)) {
            machine->StepClock(machine->offset_ms() - FarMs(*machine));
            findings_.set_back++;
        }
        for (Site& site : sites_)
            if (site.host != kNobody && ServerOf(site.host).machine() == machine)
                site.cluster.StepClock(machine->offset_ms());
    }

    // Sets the tolerated difference of clocks for all servers. The new value is at least skew_ms_,
    // which exceeds the actual differences.
    void SetSkew() {
        const int64_t skew_ms = skew_ms_ * (random_.OneIn(2) ? 1 : random_.Between(2, 10));
        for (SimulatedServer& server : servers_) server.SetSkew(skew_ms);
        Happened(&Events::skew_changes) << "clocks may differ by " << skew_ms << " ms\n";
    }

    // All servers stop. At once, one server starts with all static node ids, or two share them. If
    // a pool is open, the others lease.
    void HandOver(size_t first) {
        for (SimulatedServer& server : servers_)
            if (server.may_stop()) Stop(&server);
        const auto shares = static_cast<uint32_t>(random_.Between(1, 2));
        const uint32_t count = static_nodes_.count / shares;
        for (uint32_t i = 0; i < servers_.size(); i++) {
            SimulatedServer& server = servers_[(first + i) % servers_.size()];
            const bool leases = i >= shares;
            const Settings settings{
                leases, {leases ? 0 : static_nodes_.first + i * count, count}, leases ? 1 : count};
            if (!server.running() && MayGiveUp(server.settings(), settings, server) &&
                (leases ? sites_[0].pool.has_value() : MayUse(settings.nodes, server)))
                StartWith(settings, &server);
        }
    }

    void HappenToServer(SimulatedServer* server) {
        const int64_t chance = random_.Between(restless_clocks_ ? -8 : 0, 19);
        if (chance < 4) {
            StepClock(server->machine());
            Trace(*server) << "clock " << server->machine()->offset_ms() << '\n';
        } else if (scenario_.only_handovers) {
            HandOver(random_.OneIn(2) ? 0 : static_cast<size_t>(server->role()));
        } else if (chance < 5 && server->running()) {
            OwnOf(*server).snapshot = server->directory();
            Trace(*server) << "snapshot\n";
        } else if (chance < 6 && random_.OneIn(3)) {
            Boot(server->machine());
        } else if (chance < 7) {
            Meddle(*server);
        } else if (chance < 8) {
            if (sites_.size() == 1) {
                if (scenario_.changes_settings && !skew_stays_ && has_static()) SetSkew();
                return;
            }
            OwnOf(*server).site = random_.Index(sites_.size());
            if (server->waits() && server->worker_idle()) server->BeginHear(Answer{});
            findings_.moved_holders++;
        } else if (!server->running()) {
            if (random_.OneIn(3))
                HappenToDirectory(server);
            else
                Start(server);
        } else if (server->in_recovery()) {
            if (random_.OneIn(3))
                Crash(server);
            else
                Promote(server);
        } else if (chance < 11) {
            server->Pause(random_.Between(1, 300));
            findings_.pauses++;
        } else if (chance < 13) {
            Happened(&Events::lost_memories, server) << "loses its shared memory\n";
            const bool loses_secrets = scenario_.rotates && random_.OneIn(4);
            server->CrashMemory(loses_secrets);
            findings_.lost_secrets += loses_secrets;
        } else if (chance < 14) {
            Crash(server);
        } else if (server->settings().leases && server->may_seal() && random_.OneIn(3)) {
            Happened(&Events::lost_workers, server) << "loses its lease worker\n";
            server->Seal();
        } else if (server->may_stop()) {
            Stop(server);
            if (clocks_agree() && !skew_stays_ && random_.OneIn(3)) SetSkew();
            if (scenario_.changes_settings && has_static() && !server->running() &&
                random_.OneIn(2))
                Start(server, true);
            else if (random_.OneIn(3))
                OwnOf(*server).snapshot = server->directory();
            else if (clocks_agree() && !server->running() && !IsHost(*server) && random_.OneIn(3))
                RollBack(server);
        }
    }

    void Stop(SimulatedServer* server) {
        Happened(&Events::stops, server) << "stops\n";
        server->Stop();
        still_until_ = findings_.step + scenario_.still_steps;
    }

    void Crash(SimulatedServer* server) {
        Happened(&Events::crashes, server) << "crashes\n";
        server->Crash();
        still_until_ = findings_.step + scenario_.still_steps;
    }

    void Boot(Machine* machine) {
        for (SimulatedServer& server : servers_)
            if (server.running() && server.machine() == machine) server.Crash();
        machine->Boot(++boots_, true_ms_);
        Happened(&Events::boots) << "a machine boots\n";
    }

    void StepStopped(SimulatedServer* server) {
        if (scenario_.only_handovers) return;
        if (random_.OneIn(10))
            Start(server);
        else if (random_.OneIn(25))
            HappenToDirectory(server);
    }

    void HappenToDirectory(SimulatedServer* server) {
        DataDirectory& directory = server->directory();
        const int64_t chance = random_.Between(0, 14);
        if (chance >= 7 && !IsHost(*server) && scenario_.fleet != Fleet::kOneDirectory)
            ledger_.MayLoseAll(server->role());
        if (chance < 1) {
            server->machine()->ForgetAll();
        } else if (chance < 2) {
            directory.recovers = !directory.recovers;
        } else if (chance < 3) {
            OwnOf(*server).snapshot = directory;
            Trace(*server) << "snapshot\n";
        } else if (IsHost(*server)) {
            return;  // lease_cluster.h handles a coordinator's directory
        } else if (chance < 5) {
            server->MoveTo(&random_.Pick(machines_));
            Happened(&Events::moved_disks, server)
                << "moves to a machine with clock " << server->machine()->offset_ms() << '\n';
        } else if (scenario_.fleet == Fleet::kOneDirectory) {
            return;
        } else if (chance < 7) {
            RollBack(server);
        } else if (chance < 11) {
            const SimulatedServer& from = random_.Pick(servers_);
            directory = random_.OneIn(4) ? OwnOf(from).snapshot : from.directory();
            if (directory.identity) directory.identity->birth_nanoseconds = ++births_;
            directory.recovers = random_.OneIn(2);
            findings_.copies++;
            OwnOf(*server).snapshot = directory;
            Trace(*server) << "becomes a copy of server " << from.role() << '\n';
        } else if (chance < 12) {
            const DataDirectory& source = random_.Pick(servers_).directory();
            if (source.system_identifier != directory.system_identifier) return;
            directory.window = source.window;  // as pg_rewind does
            directory.largest_skew_ms = source.largest_skew_ms;
            directory.timeline = source.timeline;
            Happened(&Events::rewinds, server) << "is rewound\n";
        } else if (chance < 14) {
            const SimulatedServer& source = random_.Pick(servers_);
            server->MoveTo(source.machine());
            directory = source.directory();
            Happened(&Events::twins, server)
                << "becomes a hard-linked copy or a snapshot of server " << source.role() << '\n';
        } else {
            Damage(&directory);
            Trace(*server) << "disk is damaged\n";
        }
    }

    void RollBack(SimulatedServer* server) {
        server->directory() = OwnOf(*server).snapshot;
        ledger_.MayLoseAll(server->role());
        Happened(&Events::rollbacks, server) << "disk is rolled back\n";
    }

    void Damage(DataDirectory* directory) {
        findings_.damages++;
        const int64_t chance = random_.Between(0, 2);
        if (chance == 0 && directory->window) {
            random_.Pick(*directory->window) ^= 1;
        } else {
            directory->window.reset();
            if (chance == 1) directory->identity.reset();
        }
    }

    void HappenToCoordinator(Site* site) {
        Cluster& cluster = site->cluster;
        const int64_t chance = random_.Between(0, 39);
        if (scenario_.only_failovers) {
            if (random_.OneIn(3))
                cluster.TakeBackup();
            else
                FailOver(site);
        } else if (scenario_.only_pool_changes) {
            if (cluster.up() && site->pool) ChangePool(site);
        } else if (chance < 3) {
            if (site->host == kNobody) {
                cluster.StepClock(WrongByMs());
                findings_.clock_steps++;
            }
        } else if (chance < 6) {
            FailOver(site);
        } else if (chance < 8) {
            cluster.TakeBackup();
        } else if (chance < 10 || !cluster.up()) {
            cluster.StopOrStart();
        } else if (chance < 13) {
            Manage(site, [&](Coordinator& coordinator) {
                return coordinator.Purge(cluster.identity(), cluster.now(),
                                         random_.Between(0, 5) * 1000);
            });
        } else if (chance < 16 && site->pool) {
            ChangePool(site);
        } else if (chance < 18) {
            CloseOrOpen(site);
        } else if (chance < 19) {
            MakeAnew(site);
        } else if (chance < 20) {
            Move(site);
        }
    }

    template <typename Act> int64_t Manage(Site* site, Act&& act) {
        std::optional<int64_t> result;
        site->cluster.Transact(true, [&](Coordinator& coordinator) {
            result = act(coordinator);
            return result.has_value();
        });
        return result.value_or(0);
    }

    int64_t Configure(Site* site, Coordinator::Change change) {
        if (scenario_.rotates && scenario_.operation.sets_secrets_again) change.chain = agreed_;
        return Manage(site, [&](Coordinator& coordinator) {
            return coordinator.Configure(site->cluster.identity(), site->cluster.now(), change);
        });
    }

    void Configure(Site* site, const std::optional<NodeRange>& pool, bool never_leased = false) {
        Coordinator::Change change{.never_leased = never_leased};
        change.closed = !pool.has_value();
        if (pool) {
            change.first_node_id = pool->first;
            change.node_count = pool->count;
        }
        const int64_t free_at = Configure(site, change);
        for (int64_t i = 0; i < node_ids_; i++) {
            const NodeRange node{static_cast<uint32_t>(i), 1};
            if (site->pool && site->pool->Covers(node) && !(pool && pool->Covers(node)))
                free_at_[static_cast<size_t>(i)] = free_at;
        }
        site->pool = pool;
        if (pool) last_open_ = site - sites_.data();
        Trace() << "coordinator " << site - sites_.data() << " pool " << pool.value_or(NodeRange{})
                << ", the rest free at " << free_at - kEpoch << '\n';
    }

    void FailOver(Site* site) {
        if (site->host != kNobody) {
            SimulatedServer& server = ServerOf(site->host);
            if (server.running()) Crash(&server);
            site->host = kNobody;
        }
        std::optional<int64_t> offset_ms;
        if (clocks_agree())
            offset_ms = WrongByMs();
        else if (random_.OneIn(2))
            offset_ms = random_.Between(-max_clock_skew_, 2 * max_clock_skew_) * 1000;
        findings_.restores +=
            site->cluster.FailOver(++identities_, offset_ms, scenario_.loses_nothing);
        Happened(&Events::failovers) << "failover of coordinator " << site - sites_.data() << '\n';
        if (has_static() && scenario_.operation.configures_again)
            Configure(site, site->pool);
        else if (scenario_.rotates)
            Configure(site, Coordinator::Change{});
        if (scenario_.loses_nothing && random_.OneIn(2) &&
            (site->cluster.missed_nothing() || !scenario_.operation.says_what_is)) {
            Configure(site, Coordinator::Change{.nothing_lost = true});
            findings_.nothing_lost++;
        }
    }

    void ChangePool(Site* site) {
        NodeRange pool = *site->pool;
        if (!has_static()) {
            const uint32_t first = random_.OneIn(2) ? 0 : 1;
            pool = {first, static_cast<uint32_t>(node_ids_) - first};
        } else if (pool.count > kLeasedNodes && random_.OneIn(2)) {
            pool.count -= 1;
            pool.first += random_.OneIn(2);
        } else {
            pool = random_.OneIn(2) ? GivenUp(*site) : SomePool();
            if (!MayLease(pool, *site) || !All(pool, [&](uint32_t node) {
                    return site->pool->Covers({node, 1}) || Free({node, 1}, *site);
                }))
                return;
        }
        Configure(site, pool);
        findings_.pool_changes++;
    }

    // Returns the latest node ids of a random server. If they are static, stops the server.
    NodeRange GivenUp(const Site& site) {
        SimulatedServer& server = random_.Pick(servers_);
        if (server.generates() && !server.settings().leases && site.host != server.role()) {
            if (server.may_stop())
                Stop(&server);
            else
                Crash(&server);
        }
        return EnoughToLease(server.last_settings().nodes);
    }

    // Closes an open pool, or opens a closed pool. Opening makes the coordinator hold off grants.
    void CloseOrOpen(Site* site) {
        if (site->pool) {
            Configure(site, std::nullopt);
            findings_.closings++;
            return;
        }
        const NodeRange nodes = SomePool();
        if (!MayLease(nodes, *site)) return;
        Configure(site, nodes);
        findings_.openings++;
    }

    void MakeAnew(Site* site) {
        const bool lost = site->pool.has_value();
        const NodeRange nodes = lost ? *site->pool : SomePool();
        const bool in_place = site - sites_.data() == last_open_;
        if (!MayLease(nodes, *site) || (in_place && !scenario_.made_in_place)) return;
        // A coordinator on a server with static node ids is dropped only after its leases end.
        if (site->host != kNobody &&
            std::any_of(site->cluster.coordinator().leases().begin(),
                        site->cluster.coordinator().leases().end(),
                        [&](const auto& lease) { return lease.end > site->cluster.now(); }))
            return;
        site->cluster.Replace(++identities_, [&](int64_t now) {
            return Coordinator(scenario_.layout,
                               {nodes.first, nodes.count, max_duration_, max_clock_skew_},
                               scenario_.rules, identities_, now - TooEarly());
        });
        const bool never_leased = clocks_agree() && !lost && Free(nodes, *site);
        Configure(site, nodes, never_leased);
        ServeHost(*site);
        Happened(&Events::fresh) << "coordinator " << site - sites_.data()
                                 << " is new, never leased " << never_leased << '\n';
    }

    int64_t TooEarly() { return scenario_.operation.closes_first ? 0 : random_.Between(0, 30); }

    void ServeHost(const Site& site) {
        if (site.host != kNobody) Serve(ServerOf(site.host));
    }

    // If the other site's pool is closed, dumps the coordinator and restores the dump at that site.
    void Move(Site* from) {
        if (sites_.size() < 2 || !from->pool) return;
        Site* to = from == &sites_[0] ? &sites_[1] : &sites_[0];
        if (to->pool) return;
        const NodeRange nodes = *from->pool;
        Configure(from, std::nullopt);
        to->cluster.Replace(++identities_, [&](int64_t now) {
            Coordinator dump = from->cluster.coordinator();
            dump.Made(identities_, now - TooEarly());
            dump.Serve({0, 0});
            return dump;
        });
        ServeHost(*to);
        if (UsedStatically(nodes, to->host))
            return;  // at the former site, this server could use them
        Configure(to, nodes);
        Happened(&Events::moved_coordinators)
            << "coordinator moved to " << to - sites_.data() << '\n';
    }

    const Scenario scenario_;
    Random random_;
    const int64_t node_ids_, max_duration_, max_clock_skew_, skew_ms_;
    int64_t true_ms_ = kWindowEpochMs + 60000;  // clocks can be behind, and after second 0
    Ledger ledger_;
    std::vector<Machine> machines_;
    std::vector<Site> sites_;
    std::deque<SimulatedServer> servers_;
    std::vector<Own> own_;          // per server
    NodeRange static_nodes_;        // node ids for static use
    std::vector<int64_t> free_at_;  // per node id, when its leases end, in Unix seconds
    int64_t coordinator_trouble_, server_trouble_;  // happens in one of so many steps
    int64_t longest_advance_ms_;                    // of the true time, in one step
    int still_until_ = 0;                           // a step
    bool restless_clocks_;
    bool skew_stays_ = false;
    bool set_back_far_ = false;   // clocks; servers then have several ranges of node ids
    int64_t leases_one_in_;       // beside static node ids, one start in so many leases
    int64_t secrets_one_in_ = 0;  // one step in so many changes secrets
    // agreed_ contains the secrets of the coordinators. times_ contains the first seconds of
    // secrets that StopInTime() has yet to handle.
    SecretRecords agreed_ = FirstSecret(1);
    std::optional<SecretRecord> planned_{};
    std::set<Second> times_;
    uint64_t fingerprints_ = 1;
    ptrdiff_t last_open_ = 0;  // the site whose pool was open last
    std::vector<Message> messages_;
    uint64_t tickets_ = 0, boots_ = 0, identities_ = 0;
    int64_t births_ = 0;
    Findings findings_;
    std::ostream no_trace_{nullptr};
};

}  // namespace

Findings Simulate(const Scenario& scenario, uint64_t seed) {
    Scenario told = scenario;
    for (Layout* layout : {&told.layout, &told.numbers})
        layout->lowest_stands_for_second = told.rotates;
    return Simulation(told, seed).Run();
}

std::vector<uint64_t> RecordedSeeds(const std::string& name) {
    std::vector<uint64_t> seeds;
    std::ifstream file(FLEET_SEEDS);
    uint64_t seed = 0;
    for (std::string of; file >> of >> seed;)
        if (of == name) seeds.push_back(seed);
    return seeds;
}

void RecordSeed(const std::string& name, uint64_t seed) {
    std::ofstream(FLEET_SEEDS, std::ios::app) << name << ' ' << seed << '\n';
}

}  // namespace simulation
}  // namespace randflake
