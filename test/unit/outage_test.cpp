// A session asks for an identifier every 10 ms. Measures how long the session waits for a number
// after a server fails. kBounds limits the extra wait with leased node ids, compared with static
// node ids. If a bound names a mutant, a run with this mutant must exceed the bound.

#include "simulated_server.h"

namespace randflake::simulation {
namespace {

constexpr Layout kLayout{kWindowEpochMs, 9, 3, 8};
constexpr int64_t kLease = 20, kSkewMs = 2000, kTickMs = 10;

enum Coordinators { kPresent, kAway, kHangs, kFull };  // kFull grants one lease at a time
enum Event { kSessionCrash, kServerCrash, kFastRestart, kReboot, kCoordinatorRestart };

class Outage {
public:
    Outage(bool leases, Mutant mutant, int64_t first_ms, bool bounded)
        : true_ms_(kWindowEpochMs + first_ms) {
        if (bounded) pool_.Configure(1, true_ms_ / 1000 - 50, {.max_nodes_per_role = 2});
        machine_.Boot(1, true_ms_ - 100000);
        server_.emplace(kLayout, kLayout, false, mutant, 0, kSkewMs, &true_ms_, &births_, &ledger_,
                        &events_, &random_);
        server_->BeCalm();
        server_->MoveTo(&machine_);
        server_->LookBy([](PoolLook*) {});
        settings_ = {leases, {0, leases ? 2u : 1u}};
        server_->Start(settings_, FirstSecret(1));
    }

    // Returns the longest wait for a number after the event, with the coordinator in this state.
    int64_t GapMs(Event event, Coordinators coordinator, int times, int64_t idle_ms) {
        RunFor(8000);
        RunFor(idle_ms, true);
        coordinator_ = coordinator;
        longest_ms_ = 0;
        for (int i = 0; i < times; i++) {
            Happen(event);
            RunFor(event == kReboot ? 25000 : 6000);
        }
        if (event == kCoordinatorRestart) {
            coordinator_ = kPresent;
            RunFor(6000);
        }
        return longest_ms_;
    }
    std::string violation() const { return ledger_.violation(); }

private:
    bool reachable() const { return coordinator_ == kPresent || coordinator_ == kFull; }
    void Happen(Event event) {
        server_->set_reaches_coordinator(reachable());
        if (event == kSessionCrash) {
            server_->CrashMemory(false);
        } else if (event == kFastRestart) {
            if (settings_.leases && coordinator_ == kHangs) true_ms_ += kProbeTimeout.count;
            server_->Stop();
            while (server_->running()) server_->StepStop();
        } else if (event == kServerCrash || event == kReboot) {
            server_->Crash();
        }
        Answer released;
        for (const Request& request : server_->TakeDone().releases) Execute(request, &released);
        if (event == kReboot) machine_.Boot(2, true_ms_);
        if (!server_->running()) server_->Start(settings_, FirstSecret(1));
        due_ms_ = 0;
    }

    void RunFor(int64_t ms, bool idle = false) {
        for (const int64_t until = true_ms_ + ms; true_ms_ < until; true_ms_ += kTickMs) {
            if (settings_.leases) Work();
            server_->StepLooker();
            const size_t before = events_.numbers;
            if (!idle) server_->Call();
            longest_ms_ = std::max(longest_ms_, true_ms_ - last_ms_);
            if (idle || events_.numbers > before) last_ms_ = true_ms_;
        }
    }
    void Finish() {
        while (!server_->worker_idle()) server_->StepWorker();
    }
    // Runs the lease worker, and answers its request as the coordinator would.
    void Work() {
        const LeaseHolder& holder = server_->memory().holder;
        if (server_->waits()) {
            if (coordinator_ == kHangs && true_ms_ < asked_ms_ + 3000) return;
            Answer answer;
            if (reachable()) Execute(request_, &answer);
            server_->BeginHear(answer);
            Finish();
            due_ms_ = holder.NextRequestAt(kLease, random_.Between(0, 1000), {true_ms_}).count;
        } else if (true_ms_ >= due_ms_) {
            server_->BeginAsk(kLease, 0);
            Finish();
            asked_ms_ = true_ms_;
        } else {
            server_->BeginFollow();
            Finish();
        }
        SimulatedServer::Done done = server_->TakeDone();
        if (done.request) request_ = *done.request;
    }
    void Execute(const Request& request, Answer* answer) {
        answer->clear = answer->row =
            simulation::Execute(request, 1, true_ms_ / 1000, &pool_, &answer->grant);
        answer->refused = !answer->clear;
    }

    int64_t true_ms_, births_ = 0, due_ms_ = 0, asked_ms_ = 0, last_ms_ = 0, longest_ms_ = 0;
    Coordinators coordinator_ = kPresent;
    Random random_{1};
    Events events_;
    Ledger ledger_{kLayout, kLayout, &events_};
    Machine machine_{true};
    Coordinator pool_{kLayout, {0, 8, 60, 2}, {}, 1, true_ms_ / 1000 - 100};
    Settings settings_;
    Request request_{};
    std::optional<SimulatedServer> server_;
};

struct Bound {
    const char* name;
    Event event;
    Coordinators coordinator;
    int times;
    int64_t idle_ms, beyond_ms;  // beyond_ms: more than the static server
    Mutant broken;
};

// If the lease worker or a session is killed, the postmaster ends all sessions.
const Bound kBounds[] = {
    {"session or worker killed", kSessionCrash, kPresent, 1, 0, 1000, kRecordsAnyEnd},
    {"  coordinator away", kSessionCrash, kAway, 1, 0, 1000, kResumesNothing},
    {"  coordinator hangs", kSessionCrash, kHangs, 1, 0, 1000, kResumesNothing},
    {"postmaster killed", kServerCrash, kPresent, 1, 0, 1000, kRecordsAnyEnd},
    {"  coordinator away", kServerCrash, kAway, 1, 0, 1000, kResumesInOnePostmasterOnly},
    {"  ten times, bounds used up", kServerCrash, kFull, 10, 0, 1000, kResumesOnce},
    {"  after three idle leases", kServerCrash, kAway, 1, 60000, 1000, kWritesNoRenewals},
    {"fast restart, coordinator away", kFastRestart, kAway, 1, 0, 1000, kStrikesUnheard},
    {"  coordinator hangs", kFastRestart, kHangs, 1, 0, 1000, kStrikesUnheard},
    {"coordinator restarted", kCoordinatorRestart, kAway, 1, 0, 0, kExtendsWhenAnswered},
    {"reboot", kReboot, kPresent, 1, 0, 1000, kNothing},
    {"  bounds used up: to the end of the lost lease", kReboot, kFull, 1, 0, kLease * 1000,
     kNothing},
};

TEST(Outage, NoLongerThanOfAStaticServer) {
    for (const Bound& bound : kBounds) {
        const auto longest = [&](bool leases, Mutant mutant) {
            int64_t gap_ms = 0;
            for (int64_t first_ms = 60000; first_ms < 70000; first_ms += 330) {
                Outage outage(leases, mutant, first_ms, bound.coordinator == kFull);
                gap_ms = std::max(gap_ms, outage.GapMs(bound.event, bound.coordinator, bound.times,
                                                       bound.idle_ms));
                EXPECT_TRUE(mutant != kNothing || outage.violation().empty())
                    << bound.name << ": " << outage.violation();
            }
            return gap_ms;
        };
        const int64_t own = longest(false, kNothing), leased = longest(true, kNothing);
        const int64_t broken = longest(true, bound.broken);
        std::cout << "  " << bound.name << ": " << own << " ms with static node ids, " << leased
                  << " ms leased, " << broken << " ms broken\n";
        EXPECT_LE(leased, own + bound.beyond_ms) << bound.name;
        EXPECT_TRUE(bound.broken == kNothing || broken > own + bound.beyond_ms)
            << bound.name << " without its rule";
    }
}

}  // namespace
}  // namespace randflake::simulation
