// Prints traces of requests and the model's answers (lease_coordinator.h).
// test/t/230_lease_model.pl sends the same requests to the extension's functions.
//
//   lease_trace FIRST_SEED LAST_SEED STEPS    one trace for each seed
//   lease_trace orders                        every sequence of three changes of a pool
//
// `orders` uses seeds from 1000 on, one for each possible first change. Each line is a step:
//
//   seed  step  identity  clock  operation  committed  arguments  answer  SQLSTATE
//
// Times are Unix seconds. Arguments are a text array, and the answer, after the arrow, is a bigint
// array. Missing values are null. "lacking from" is the start of a secret that the holder lacks.
//
//   create                                                       a new extension
//   serve          first node id, node ids of the server itself
//   acquire        incarnation, node ids, duration, chain, role  -> the row of the grant
//   renew          lease, incarnation, expected end, duration, role, chain  -> last, lacking from
//   release        lease, incarnation, last used, role
//   purge          milliseconds to keep                          -> number of leases
//   configure      arguments of randflake_lease_configure        -> when node ids become free
//   mark                                                         -> the second of the first grant
//   add_secret     fingerprint, first second
//   remove_secret  fingerprint
//   save, restore  place of a state: a replica that missed the rest, or an old copy
//   dump           place of a state that a dump restores into a new extension
//
// If the coordinator refuses a call because of the holder's secrets, it answers with the first
// second of the missing secret. Many clocks and arguments differ from a rule's limit by one second.

#include "lease_cluster.h"

namespace randflake::simulation {
namespace {

using Value = std::optional<int64_t>;
using Answer = std::optional<std::vector<Value>>;
const Answer kNoAnswer;  // g++ 14 takes a temporary default argument for uninitialized

struct Argument {
    Argument(const Value& value) : text(value ? std::to_string(*value) : "NULL") {}
    Argument(int64_t value) : text(std::to_string(value)) {}
    Argument(const std::string& words) : text('"' + words + '"') {}

    std::string text;
};

std::string ArrayText(const std::vector<Argument>& values) {
    std::string text = "{";
    for (const Argument& value : values) text += (text.size() > 1 ? "," : "") + value.text;
    return text + "}";
}

std::string ChainText(const SecretRecords& chain) {
    char text[kMaxFingerprintsText];
    return {text, FormatFingerprints(chain, text)};
}

// These chains are malformed. The first eight texts are malformed fingerprints as well.
constexpr const char* kMalformed[] = {
    "",
    "0",
    "000000000000000A",
    "00000000000000001",
    " 0000000000000001",
    "0000000000000001 ",
    "000000000000000g",
    "0000000000000001@1790000000",
    "0000000000000001  0000000000000002@1790000000",
    "0000000000000001 0000000000000002",
    "0000000000000001 0000000000000002@",
    "0000000000000001 0000000000000002@ 1790000000",
    "0000000000000001 0000000000000002@17900000000",
    "0000000000000001 0000000000000002@-790000000",
    "0000000000000001,0000000000000002@1790000000",
    "0000000000000001 0000000000000002@1790000000 0000000000000003@1790000000",
    "0000000000000001 0000000000000002@1790000001 0000000000000003@1790000000",
    "0000000000000001 0000000000000002@0790000000",
    "0000000000000001 0000000000000002@1790000001 0000000000000003@1790000002 "
    "0000000000000004@1790000003 0000000000000005@1790000004 0000000000000006@1790000005 "
    "0000000000000007@1790000006 0000000000000008@1790000007 0000000000000009@1790000008 "
    "000000000000000a@1790000009 000000000000000b@1790000010 000000000000000c@1790000011 "
    "000000000000000d@1790000012 000000000000000e@1790000013 000000000000000f@1790000014 "
    "0000000000000010@1790000015 0000000000000011@1790000016",
};
constexpr int64_t kMalformedFingerprints = 8, kAllMalformed = std::size(kMalformed);

const char* SqlState(Refusal refusal) {
    static constexpr const char* kStates[] = {"00000", "55000", "53400", "22008",
                                              "22023", "23P01", "57P03"};
    return kStates[static_cast<int>(refusal)];
}

class Trace {
public:
    Trace(uint64_t seed, int steps) : seed_(seed), steps_(steps), random_(seed) {
        // Traces differ in how many of their steps cause trouble.
        trouble_ = int64_t{4} << random_.Between(0, 4);
        now_ = Usual();
        model_ = Made();
    }

    void Write() {
        Put("create", true, {});
        // One trace in four sets `never_leased`. Of the others, three quarters first let time pass.
        if (random_.OneIn(4)) {
            now_ -= static_cast<int64_t>(seed_ % 3);
            Configure({.max_clock_skew = random_.Between(0, 3), .never_leased = true});
        } else if (!random_.OneIn(4))
            now_ += random_.Between(0, 100);
        if (random_.OneIn(4)) TakeOver(random_.OneIn(2));
        ConfigurePool();
        while (step_ < steps_) Step();
    }

    // Writes every sequence of three changes that begins with `first`, each in a new pool.
    void WriteOrders(int first) {
        commits_ = true;
        for (int order = 0; order < kChanges * kChanges; order++) {
            now_ = Usual();
            TakeOver(false);
            model_ = Made();
            Put("create", true, {});
            Configure(
                {.first_node_id = 1, .node_count = 4, .max_duration = 60, .max_clock_skew = 6});
            // In half of the pools, the hold-off after the pool's creation has ended.
            now_ += first % 2 == 0 ? 100 : 10;
            for (const int change : {first, order / kChanges, order % kChanges}) {
                Change(change);
                Mark();
            }
        }
    }
    static constexpr int kChanges = 13;

private:
    void Change(int change) {
        const Coordinator::Change changes[] = {{.max_duration = 70},
                                               {.max_duration = 5},
                                               {.max_clock_skew = 9},
                                               {.max_clock_skew = 1},
                                               {.node_count = model_.pool().node_count + 1},
                                               {.closed = true},
                                               {.closed = false},
                                               {.never_leased = true},
                                               {.nothing_lost = true}};
        now_ += change == 11 ? 121 : change == 12 ? 21 : 1;
        if (change == 1) Configure({.max_duration = 90});
        if (change < 9)
            Configure(changes[change]);
        else if (change < 11)
            TakeOver(change == 9);
        else
            change == 11 ? Acquire() : Purge();
    }

    // The sequence randflake_lease_takeover has too few bits for this time.
    static constexpr int64_t kFarOff = int64_t{1} << 33;
    static constexpr int kPlaces = 3;

    // Describes a lease as its holder knows it. The grant's transaction may be rolled back.
    struct Held {
        int64_t lease_id;
        uint64_t incarnation;
        int64_t start, last;
        int64_t role;
        SecretRecords chain;
    };

    int64_t Pick(const std::vector<int64_t>& from) { return random_.Pick(from); }

    static int64_t Usual() { return kEpoch + 50000000; }

    void Step() {
        MoveClock();
        if (random_.OneIn(30))
            Mark();
        else if (random_.OneIn(trouble_ * 2))
            ChangePlace();
        else if (random_.OneIn(trouble_ * 8))
            Serve();
        else if (random_.OneIn(trouble_))
            random_.OneIn(2) ? Purge() : ConfigureSomething();
        else if (random_.OneIn(12))
            random_.OneIn(3) ? RemoveSecret() : AddSecret();
        else if (held_.empty() || random_.OneIn(3))
            Acquire();
        else if (random_.OneIn(4))
            Release();
        else
            Renew();
    }

    void MoveClock() {
        if (random_.OneIn(40 * trouble_))
            now_ = Pick({0, kEpoch, model_.CalendarEnd() - 10, model_.CalendarEnd(), kFarOff});
        else if (now_ < Usual() / 2 || now_ >= model_.CalendarEnd() - 20 ? random_.OneIn(8) : false)
            now_ = Usual() + random_.Between(0, 100);
        else if (model_.high_water() > now_ && random_.OneIn(8))
            now_ = model_.high_water() - random_.Between(0, model_.pool().max_clock_skew + 1);
        else if (random_.OneIn(2 + trouble_ / 2))
            now_ = Edge();
        else if (random_.OneIn(trouble_))
            now_ += random_.Between(-30, 30);
        else
            now_ += random_.Between(0, 3);
        now_ = std::max(now_, int64_t{0});
    }

    // Returns a second at which a rule changes the answer, or an adjacent second.
    int64_t Edge() {
        const auto& pool = model_.pool();
        std::vector<int64_t> edges{now_, now_ + pool.max_clock_skew, model_.high_water()};
        if (model_.chain().count > 1) edges.push_back(FromOfLast());
        if (!model_.leases().empty()) {
            const auto& lease = random_.Pick(model_.leases());
            for (const int64_t edge :
                 {lease.end, lease.end - pool.max_clock_skew,
                  lease.end - pool.max_duration - pool.max_clock_skew, lease.start})
                edges.push_back(edge);
        }
        const int64_t edge = Pick(edges) + random_.Between(-1, 1);
        return edge > Usual() / 2 ? edge : now_;
    }

    // From here on, another coordinator grants leases: a standby that may lack the last
    // transactions, an old copy of the data directory, or a restored dump.
    void ChangePlace() {
        const size_t place = random_.Index(kPlaces);
        const std::vector<Argument> argument{static_cast<int64_t>(place)};
        if (!places_[place] || random_.OneIn(3)) {
            places_[place] = model_;
            return Put("save", true, argument);
        }
        if (random_.OneIn(5))
            identity_ = former_[random_.Index(std::min(former_.size(), size_t{3}))];
        else
            TakeOver(random_.OneIn(2));
        model_.Started(Started());
        if (random_.OneIn(4)) return;
        model_ = *places_[place];
        model_.Serve(served_);  // the server's configuration
        model_.Started(Started());
        const bool dump = random_.OneIn(3);
        if (dump) model_.Made(identity_, now_);
        Put(dump ? "dump" : "restore", true, argument);
    }

    // Changes the identity to that of another data directory, of a promoted standby, or of the next
    // start of the same server.
    void TakeOver(bool promoted) {
        if (promoted && promotions_++ % 3 == 0) {
            identity_ = Coordinator::WithoutStart(identity_) | starts_.size() << 24;
            starts_.push_back(now_);
        } else {
            identity_ = promoted ? identity_ + 1 : ++systems_ * kSystem;
            identity_ = (identity_ & ~kDirectories) | ++directories_ << 16;
        }
        former_.push_back(identity_);
        model_.Started(Started());
    }
    int64_t Started() const { return starts_[(identity_ & kStarts) >> 24]; }

    void Serve() {
        const auto& pool = model_.pool();
        const int64_t first =
            std::min(random_.Between(pool.first_node_id, pool.first_node_id + 4), int64_t{131071});
        const int64_t count =
            random_.OneIn(2) ? 0 : std::min(random_.Between(1, 3), int64_t{131072} - first);
        served_ = {first, count};
        model_.Serve(served_);
        Put("serve", true, {first, count});
    }

    // Runs act() in a holder's transaction. `act` returns the answer, or none if the call fails.
    template <typename Act>
    bool Call(const char* operation, const std::vector<Argument>& arguments, Act&& act,
              const SecretRecords* chain = nullptr) {
        const bool commit = commits_ || !random_.OneIn(10);
        const Coordinator before = model_;
        Answer answer = act();
        const bool done = answer.has_value();
        if (!done && chain != nullptr && model_.about_secrets())
            answer = {{model_.LacksFrom(*chain)}};
        if (!done || !commit) model_.RollBackTo(before);
        Put(operation, commit, arguments, answer, model_.refusal());
        return done;
    }
    static Answer Done(bool done) { return done ? Answer{std::in_place} : std::nullopt; }
    static Answer Row(const Value& value) { return value ? Answer{{value}} : std::nullopt; }

    int64_t Duration() {
        if (random_.OneIn(30)) return random_.OneIn(2) ? 0 : INT32_MAX;
        return random_.Between(1, 2 * model_.pool().max_duration);
    }

    void Acquire() {
        const int64_t nodes =
            random_.OneIn(30)
                ? Pick({0, 131072, 131073, model_.pool().node_count, model_.pool().node_count + 1})
            : model_.pool().node_count > 14 ? Pick({1, 2, 4, 5, 8, 15})
                                            : random_.Between(1, 3);
        const int64_t duration = Duration();
        const uint64_t incarnation = ++incarnations_;
        const SecretRecords chain = SomeChain();
        const int64_t role = random_.Between(1, 2);
        Call(
            "acquire", {static_cast<int64_t>(incarnation), nodes, duration, TextOf(chain), role},
            [&]() -> Answer {
                const auto grant = model_.Acquire(identity_, now_, {{0, incarnation}}, nodes,
                                                  duration, chain, role);
                if (!grant) return {};
                held_.push_back({grant->lease_id, incarnation, grant->start.count, grant->end.count,
                                 role, chain});
                if (held_.size() > 12) held_.erase(held_.begin());
                return {{grant->lease_id, grant->first_node_id, grant->node_count,
                         grant->start.count, grant->end.count, model_.LacksFrom(chain)}};
            },
            &chain);
    }

    uint64_t Asking(const Held& held) {
        return random_.OneIn(20) ? ++incarnations_ : held.incarnation;
    }
    int64_t AskingRole(const Held& held) { return random_.OneIn(20) ? 3 - held.role : held.role; }
    void MaybeForget(size_t holder) {
        if (!random_.OneIn(3)) held_.erase(held_.begin() + static_cast<ptrdiff_t>(holder));
    }

    const Coordinator::Lease* Known(const Held& held) const {
        for (const auto& lease : model_.leases())
            if (lease.lease_id == held.lease_id) return &lease;
        return nullptr;
    }

    void Renew() {
        const size_t holder = random_.Index(held_.size());
        Held& held = held_[holder];
        const uint64_t incarnation = Asking(held);
        const int64_t duration = Duration();
        int64_t expected_end = held.last;
        if (random_.OneIn(3)) {
            const auto& pool = model_.pool();
            const auto* known = Known(held);
            const int64_t end = known != nullptr ? known->end : held.last + 1;
            // If the mark is ahead by at most the tolerated difference, the end is near the mark.
            const bool near_mark =
                model_.high_water() > now_ && model_.high_water() <= now_ + pool.max_clock_skew + 1;
            expected_end =
                (near_mark ? model_.high_water() - 1
                           : Pick({end - 1, FromOfLast(), now_, now_ + pool.max_clock_skew,
                                   now_ + pool.max_clock_skew, end + pool.max_duration,
                                   now_ + pool.max_duration,
                                   now_ + pool.max_duration + pool.max_clock_skew})) +
                random_.Between(-1, 1);
        }
        const int64_t role = AskingRole(held);
        // Chooses the chain in the coordinator's table, the holder's last chain, or a random chain.
        const auto* last_known = Known(held);
        const bool again = random_.OneIn(3);
        const SecretRecords other = random_.OneIn(2) ? held.chain : SomeChain();
        const SecretRecords chain = !again                  ? other
                                    : last_known != nullptr ? last_known->chain
                                                            : held.chain;
        const bool done = Call(
            "renew",
            {held.lease_id, static_cast<int64_t>(incarnation), expected_end, duration, role,
             again ? ChainText(chain) : TextOf(chain)},
            [&]() -> Answer {
                const auto last = model_.Renew(identity_, now_, held.lease_id, {{0, incarnation}},
                                               expected_end, duration, chain, role);
                if (!last) return {};
                held.last = *last;
                return {{last, model_.LacksFrom(chain)}};
            },
            &chain);
        if (!done) MaybeForget(holder);
    }

    void Release() {
        const size_t holder = random_.Index(held_.size());
        const Held& held = held_[holder];
        const uint64_t incarnation = Asking(held);
        Value last_used;
        if (!random_.OneIn(10))
            last_used = Pick({held.start - 1, held.start, now_, held.last, held.last + 1,
                              random_.Between(held.start - 1, held.last)});
        const int64_t role = AskingRole(held);
        Call("release", {held.lease_id, static_cast<int64_t>(incarnation), last_used, role}, [&] {
            return Done(model_.Release(identity_, now_, held.lease_id, {{0, incarnation}},
                                       last_used, role));
        });
        MaybeForget(holder);
    }

    void Purge() {
        int64_t keep_ms = random_.Between(-1, 20) * 1000 + random_.Between(0, 1) * 500;
        if (!model_.leases().empty() && random_.OneIn(2))
            keep_ms = std::max(now_ - Edge(), int64_t{0}) * 1000 - random_.Between(0, 1) * 500;
        Call("purge", {keep_ms}, [&] { return Row(model_.Purge(identity_, now_, keep_ms)); });
    }

    int64_t FromOfLast() const {
        const SecretRecords& chain = model_.chain();
        return ToUnix(chain.count > 1 ? chain.records[chain.count - 1].from : Second{}).count;
    }

    std::string TextOf(const SecretRecords& chain) {
        return chain.count > 0 ? ChainText(chain)
                               : kMalformed[random_.Between(0, kAllMalformed - 1)];
    }

    // Returns a new fingerprint or, in one of twenty cases, a fingerprint from 1 to 3.
    uint64_t SomeFingerprint() {
        return static_cast<uint64_t>(random_.OneIn(20) ? random_.Between(1, 3) : ++fingerprints_);
    }

    void Append(int64_t from, SecretRecords* chain, bool fresh = false) {
        const Second second = FromUnix({from});
        if (chain->count < kMaxGenerations && second > chain->records[chain->count - 1].from &&
            second < kNoSecond)
            chain->records[chain->count++] = {
                fresh ? static_cast<uint64_t>(++fingerprints_) : SomeFingerprint(), second};
    }

    // Chooses a secret's first second near a limit that the rules about secrets set.
    int64_t SomeFrom() {
        const auto& pool = model_.pool();
        return Pick({now_, now_ + pool.max_duration, now_ + random_.Between(1, 40), FromOfLast(),
                     model_.EarliestOfSecret(now_), Edge()}) +
               random_.Between(-1, 1);
    }

    // Returns the coordinator's chain, or sometimes a shorter, longer, different or empty chain.
    SecretRecords SomeChain() {
        SecretRecords chain = model_.chain();
        if (random_.OneIn(40)) return {};
        if (chain.count == 0 || random_.OneIn(8 * trouble_))
            chain = FirstSecret(random_.OneIn(8) ? 2 : 1);
        if (chain.count > 1 && random_.OneIn(5))
            chain.count = static_cast<uint32_t>(random_.Between(1, chain.count));
        if (random_.OneIn(8)) {
            Append(SomeFrom(), &chain);
            if (random_.OneIn(3)) Append(SomeFrom(), &chain);
        } else if (chain.count > 1 && random_.OneIn(12)) {
            SecretRecord& last = chain.records[chain.count - 1];
            if (random_.OneIn(2))
                last.from = last.from + 1;
            else
                last.fingerprint = SomeFingerprint();
        }
        return chain;
    }

    std::pair<std::optional<uint64_t>, std::string> AsArgument(uint64_t fingerprint) {
        if (random_.OneIn(20))
            return {std::nullopt, kMalformed[random_.Between(0, kMalformedFingerprints - 1)]};
        return {fingerprint, ChainText({1, {{fingerprint, {}}}})};
    }

    void AddSecret() {
        const SecretRecords& known = model_.chain();
        uint64_t fingerprint = SomeFingerprint();
        int64_t from = SomeFrom();
        if (random_.OneIn(2)) from = model_.EarliestOfSecret(now_) + random_.Between(0, 5);
        if (random_.OneIn(20))
            from = Pick({kEpoch, kEpoch + 1, model_.CalendarEnd() - 1, model_.CalendarEnd()});
        if (known.count > 0 && random_.OneIn(8)) {
            const SecretRecord& record = known.records[random_.Between(0, known.count - 1)];
            fingerprint = record.fingerprint;
            if (!random_.OneIn(3)) from = ToUnix(record.from).count;
        }
        const auto [argument, text] = AsArgument(fingerprint);
        Call("add_secret", {text, from}, [&, named = argument] {
            return Done(model_.AddSecret(identity_, now_, named, from));
        });
    }

    void RemoveSecret() {
        const SecretRecords& known = model_.chain();
        uint64_t fingerprint = 1;
        if (known.count > 0)
            fingerprint = known
                              .records[random_.OneIn(5) ? random_.Between(0, known.count - 1)
                                                        : known.count - 1]
                              .fingerprint;
        const auto [argument, text] = AsArgument(fingerprint);
        Call("remove_secret", {text},
             [&, named = argument] { return Done(model_.RemoveSecret(identity_, now_, named)); });
    }

    void Configure(const Coordinator::Change& change) {
        Call("configure",
             {change.first_node_id, change.node_count, change.max_duration, change.max_clock_skew,
              Value(change.closed), int64_t{change.never_leased}, int64_t{change.forget_key},
              change.max_nodes_per_role,
              change.chain ? Argument(TextOf(*change.chain)) : Argument(Value()),
              change.max_grants_per_role, int64_t{change.nothing_lost}},
             [&] { return Row(model_.Configure(identity_, now_, change)); });
    }

    // Configures a pool that is soon exhausted. Some pools end at the layout's last node id.
    void ConfigurePool() {
        const int64_t count = random_.OneIn(4) ? random_.Between(15, 40) : random_.Between(2, 9);
        const int64_t first = Pick({0, random_.Between(1, 20), 131072 - count});
        Configure({.first_node_id = first,
                   .node_count = count,
                   .max_duration = random_.Between(2, 20),
                   .max_clock_skew = random_.Between(0, 5)});
    }

    void ConfigureSomething() {
        const auto& pool = model_.pool();
        Coordinator::Change change;
        if (model_.pool().closed && random_.OneIn(2))
            return Configure(
                {.max_duration = random_.OneIn(2) ? pool.max_duration : random_.Between(1, 25),
                 .closed = false});
        change.nothing_lost = random_.OneIn(5);
        switch (random_.Between(0, 9)) {
            case 0: return ConfigurePool();
            case 1: change.first_node_id = pool.first_node_id + random_.Between(-1, 1); break;
            case 2: change.node_count = pool.node_count + random_.Between(-2, 2); break;
            case 3:
                change.max_duration =
                    random_.OneIn(6) ? Pick({0, 86400, 86401}) : random_.Between(1, 25);
                break;
            case 4:
                change.max_clock_skew =
                    random_.OneIn(6) ? Pick({-1, 3600, 3601}) : random_.Between(0, 6);
                break;
            case 5:
                change.closed = random_.OneIn(3);
                if (random_.OneIn(2)) change.max_duration = random_.Between(1, pool.max_duration);
                if (random_.OneIn(2))
                    change.max_clock_skew = random_.Between(0, pool.max_clock_skew);
                break;
            case 6: change.never_leased = true; break;
            case 7:
                change.max_nodes_per_role = random_.OneIn(6)
                                                ? Pick({0, 131073})
                                                : Pick({131072, 131072, random_.Between(1, 8)});
                change.max_grants_per_role = random_.OneIn(6)
                                                 ? Pick({0, 60001})
                                                 : Pick({60000, 60000, random_.Between(1, 4)});
                break;
            case 8:
                change.forget_key = random_.OneIn(4);
                change.chain = SomeChain();
                // Fills the chain with past secrets, up to the limit or to one below it.
                if (change.chain->count > 0 && random_.OneIn(3)) {
                    for (int64_t i = kMaxGenerations; i > 0; i--)
                        Append(now_ - i, &*change.chain, i > 8);
                    change.chain->count -= change.chain->count > 1 && fingerprints_ % 2 == 0;
                }
                break;
            default: change.forget_key = true;
        }
        Configure(change);
    }

    void Mark() {
        Call("mark", {}, [&] { return Row(model_.Mark(identity_, now_)); });
    }

    void Put(const char* operation, bool commit, const std::vector<Argument>& arguments,
             const Answer& answer = kNoAnswer, Refusal refusal = Refusal::kNone) {
        std::cout << seed_ << '\t' << step_++ << '\t' << identity_ / kSystem << '/'
                  << identity_ % (1 << 16) << '/' << (identity_ & kDirectories & ~kStarts) << '@'
                  << Started() << '.' << (identity_ & kStarts) << "/1/1\t" << now_ << '\t'
                  << operation << '\t' << (commit ? 't' : 'f') << '\t' << ArrayText(arguments)
                  << '\t' << (answer ? ArrayText({answer->begin(), answer->end()}) : "\\N") << '\t'
                  << SqlState(refusal) << '\n';
    }

    const uint64_t seed_;
    const int steps_;
    Random random_;
    int64_t trouble_;
    int step_ = 0;
    bool commits_ = false;  // whether every transaction commits
    int64_t now_ = 0;
    static constexpr uint64_t kSystem = uint64_t{1} << 32, kDirectories = 0xffff0000,
                              kStarts = Coordinator::kStarts;
    uint64_t identity_ = kSystem;
    uint64_t directories_ = 0, systems_ = 1, promotions_ = 0;
    std::vector<int64_t> starts_{0};  // the seconds of starts
    std::vector<uint64_t> former_{kSystem};
    uint64_t incarnations_ = 0;
    int64_t fingerprints_ = 15;
    std::vector<Held> held_;
    Coordinator Made() const {
        Coordinator made{kRandflake, {0, 131072, 60, 2}, {}, identity_, now_};
        made.Started(Started());
        return made;
    }
    Coordinator model_{Made()};
    Coordinator::Nodes served_{0, 0};
    std::array<std::optional<Coordinator>, kPlaces> places_;
};

}  // namespace
}  // namespace randflake::simulation

int main(int count, char** arguments) {
    using randflake::simulation::Trace;
    if (count == 2 && std::string(arguments[1]) == "orders") {
        for (int first = 0; first < Trace::kChanges; first++)
            Trace(1000 + static_cast<uint64_t>(first), 0).WriteOrders(first);
        return 0;
    }
    if (count != 4) {
        std::cerr << "usage: " << arguments[0] << " FIRST_SEED LAST_SEED STEPS, or orders\n";
        return 2;
    }
    const uint64_t last = std::strtoull(arguments[2], nullptr, 10);
    for (uint64_t seed = std::strtoull(arguments[1], nullptr, 10); seed <= last; seed++)
        Trace(seed, std::atoi(arguments[3])).Write();
    return 0;
}
