// Models the extension script's functions randflake_lease_*, statement by statement, on plain data.
// Both lease_trace.cpp and the simulation of fleets use this model. test/t/230_lease_model.pl
// checks that the functions give the model's answers.

#pragma once

#include "core/lease/lease.h"
#include "core/lease/pool_look.h"
#include "core/secret/secret_records.h"
#include "standard.h"

namespace randflake::simulation {

constexpr int64_t kEpoch = kWindowEpoch.count;

// Returns a chain of one secret. A chain lists secrets, each with the second from which it is used.
constexpr SecretRecords FirstSecret(uint64_t fingerprint) { return {1, {{fingerprint, {}}}}; }

// Returns whether the chain is valid. An empty chain stands for any malformed text.
inline bool IsChain(const SecretRecords& chain) {
    for (uint32_t i = 1; i < chain.count; i++)
        if (chain.records[i].from <= chain.records[i - 1].from ||
            chain.records[i].from >= kNoSecond)
            return false;
    return chain.count > 0;
}

// Returns how many secrets at the start of the two chains are equal.
inline uint32_t Agreed(const SecretRecords& a, const SecretRecords& b) {
    uint32_t agreed = 0;
    while (agreed < std::min(a.count, b.count) && a.records[agreed] == b.records[agreed]) agreed++;
    return agreed;
}

// fleet_mutants_test.cpp switches off one rule at a time, to show that the coordinator needs it.
struct CoordinatorRules {
    bool wait_for_mark = true;          // grants wait until the clock reaches the mark
    bool start_from_mark = true;        // no lease starts below the high-water mark
    bool purge_raises_mark = true;      // beyond the leases that the purge deletes
    bool knows_where_made = true;       // the first grant may have had a predecessor
    bool creation_counts = true;        // a new coordinator may have a predecessor
    bool hold_off = true;               // another coordinator granted last: raise the mark ...
    bool hold_off_for_skew = true;      // ... by the difference of clocks too ...
    bool hold_off_for_renewals = true;  // ... and by what a renewal may add
    bool longest_lease = true;          // no lease ends later than max_duration from now
    bool bounded_renewal = true;        // no renewal ends later than the bound
    bool renew_before_end = true;       // no renewal after the end that the holder knows ...
    bool renew_margin = true;           // ... even by a differing clock, right after a takeover
    bool renew_keeps_end = true;        // a renewal never shortens the lease
    bool renew_unless_followed = true;  // no renewal once a later lease has had its node ids
    bool own_incarnation = true;        // renewals and releases name the incarnation
    bool own_role = true;               // they also come from the role of the grant
    bool exclusion = true;              // the constraint on the table
    bool own_nodes = true;              // never leases node ids of the coordinator's server
    bool added_nodes_wait = true;       // node ids that come into the pool may have been static
    bool reopening_waits = true;        // another coordinator may have leased while closed
    bool raises_holds = true;           // greater settings extend waits that still last
    bool closed_counts = true;          // also settings in force while the pool was closed
    bool lost_nothing_once = true;      // the operator's word ends a wait for one takeover ...
    bool lost_nothing_ends = true;      // ... and for no later takeover ...
    bool lost_nothing_clocks = true;    // ... except for the difference of clocks
    bool promoted_once = true;          // ... and only after a single promotion
    bool never_leased_keeps = true;     // never_leased keeps the wait for added node ids
    bool stops_grants = true;           // leases end at the first differing secret ...
    bool stops_renewals = true;         // ... and so do renewals
    bool stops_at_missing = true;       // a secret that the holder lacks counts as differing ...
    bool stops_at_unknown = true;       // ... and so does a secret that the coordinator lacks
    bool secrets_after_leases = true;   // secrets change only after the ends of known leases ...
    bool secrets_after_mark = true;     // ... and of unknown leases
};

enum class Refusal : uint8_t {
    kNone,
    kState,     // object_not_in_prerequisite_state
    kLimit,     // configuration_limit_exceeded
    kClock,     // datetime_field_overflow
    kArgument,  // invalid_parameter_value
    kOverlap,   // exclusion_violation
    kClosed     // cannot_connect_now
};

class Coordinator {
public:
    struct Nodes {
        int64_t first_node_id, node_count;

        bool Covers(const Nodes& other) const {
            return first_node_id <= other.first_node_id &&
                   other.first_node_id + other.node_count <= first_node_id + node_count;
        }
        bool Overlaps(const Nodes& other) const {
            return first_node_id < other.first_node_id + other.node_count &&
                   other.first_node_id < first_node_id + node_count;
        }
    };

    struct Lease : Nodes {
        int64_t lease_id;
        int64_t role;
        Incarnation incarnation;
        int64_t start, end;                       // Unix seconds, half-open
        int64_t granted_at, renewed_at = kNever;  // by the coordinator's clock
        bool released = false;
        SecretRecords chain{};  // last named by the holder
    };

    // The number of node ids in Randflake's own layout. The simulation may use a smaller layout.
    static constexpr int64_t kMostPerRole = 131072;
    static constexpr int64_t kMostGrants = 60000;

    struct Pool : Nodes {
        int64_t max_duration, max_clock_skew;
        bool closed = false;
        int64_t max_nodes_per_role = kMostPerRole;
        int64_t max_grants_per_role = kMostGrants;
    };

    // A setting without a new value stays unchanged. If only first_node_id changes, the last node
    // id stays.
    struct Change {
        std::optional<int64_t> first_node_id{}, node_count{}, max_duration{}, max_clock_skew{};
        std::optional<bool> closed{};
        bool never_leased = false;
        bool forget_key = false;
        std::optional<int64_t> max_nodes_per_role{};
        std::optional<SecretRecords> chain{};
        std::optional<int64_t> max_grants_per_role{};
        bool nothing_lost = false;
    };

    // Describes an event after which the coordinator waits before it grants leases.
    struct Hold {
        enum class Cause : uint8_t { kTakeover, kPromotion, kAdded, kReopened, kPurge } cause;
        int64_t since;  // kForEver while the pool is closed
        int64_t longest, widest;
    };

    Coordinator(const Layout& layout, const Pool& pool, const CoordinatorRules& rules,
                uint64_t identity, int64_t now)
        : layout_(layout), rules_(rules), pool_(pool) {
        Made(identity, now);
        if (pool.closed)
            HoldOff(Hold::Cause::kReopened, kForEver, pool.max_duration, pool.max_clock_skew);
    }

    // The lowest bits of an identity are its timeline, and these are the starts of its server.
    static constexpr uint64_t kStarts = 0xff000000;
    static constexpr uint64_t WithoutStart(uint64_t identity) { return identity & ~kStarts; }

    // Returns whether `identity` is a promoted standby of `former`, with the same system identifier
    // and the next timeline, or its next start.
    bool Promoted(uint64_t former, uint64_t identity) const {
        return former != kNone && former >> 32 == identity >> 32 &&
               (rules_.promoted_once
                    ? static_cast<uint16_t>(former + 1) == static_cast<uint16_t>(identity) ||
                          (former != identity && WithoutStart(former) == WithoutStart(identity))
                    : former < identity);
    }

    // Rolls back a refused or failed transaction. Sequences keep their values, as in PostgreSQL.
    void RollBackTo(const Coordinator& before) {
        const Coordinator after = *this;
        *this = before;
        takeover_identity_ = after.takeover_identity_;
        takeover_ = after.takeover_;
        taken_over_ = after.taken_over_;
        next_id_ = after.next_id_;
        refusal_ = after.refusal_;
        about_secrets_ = after.about_secrets_;
    }

    // Creates the extension, or restores a dump of it on another server. A dump contains tables and
    // lease ids, but neither the takeover's time nor the counts of grants per role.
    void Made(uint64_t identity, int64_t now) {
        grants_.clear();
        takeover_identity_ = identity;
        takeover_ = std::min(now, CalendarEnd());
        taken_over_ = false;
    }

    // Adds to `look` what the coordinator's own server has found in the coordinator's tables.
    void LookedAt(uint64_t identity, int64_t now, PoolLook* look) const {
        PoolSeen seen{};
        seen.configured = identity_ != kNone;
        seen.same = WithoutStart(identity_) == WithoutStart(identity) && !TakenOverSince();
        seen.noted_here = WithoutStart(takeover_identity_) == WithoutStart(identity);
        seen.called = taken_over_;
        seen.noted = {takeover_};
        seen.high_water = {high_water_};
        seen.max_duration = pool_.max_duration;
        seen.max_clock_skew = pool_.max_clock_skew;
        seen.nodes = {static_cast<uint32_t>(pool_.first_node_id),
                      static_cast<uint32_t>(pool_.node_count)};
        for (const Lease& lease : leases_) {
            look->AddLease({static_cast<uint32_t>(lease.first_node_id),
                            static_cast<uint32_t>(lease.node_count)},
                           UnixSecond{lease.end});
            seen.last_grant = {
                std::max({seen.last_grant.count, lease.granted_at, lease.renewed_at})};
        }
        look->AddPool(seen, UnixSecond{now});
    }

    void Serve(const Nodes& nodes) { static_ = nodes; }
    void Started(int64_t now) { started_ = now; }

    Refusal refusal() const { return refusal_; }
    bool about_secrets() const { return about_secrets_; }

    std::optional<LeaseGrant> Acquire(uint64_t identity, int64_t now,
                                      const Incarnation& incarnation, int64_t nodes,
                                      int64_t duration, const SecretRecords& chain, int64_t role) {
        refusal_ = Refusal::kNone;
        if (nodes < 1 || nodes > NodeIds() || duration < 1 || !IsChain(chain))
            return Refuse(Refusal::kArgument);
        if (chain_.count == 0) {
            LockPool(identity, now);
            chain_ = chain;
        }
        const int64_t mark = SharePool(identity, now);
        if (pool_.closed) return Refuse(Refusal::kClosed);
        if (Agreed(chain, chain_) == 0) return RefuseSecrets(Refusal::kState);
        if (now <= kEpoch || now >= CalendarEnd()) return Refuse(Refusal::kClock);
        const int64_t stops_at = rules_.stops_grants ? StopsAt(chain) : kForEver;
        if (now >= stops_at) return RefuseSecrets(Refusal::kState);
        if (now < mark && rules_.start_from_mark && rules_.wait_for_mark)
            return Refuse(Refusal::kState);
        auto& [minute, grants] = grants_[role];
        const int64_t granted = minute == now / 60 ? grants : 0;
        if (granted >= pool_.max_grants_per_role) return Refuse(Refusal::kLimit);
        if (pool_.max_grants_per_role < kMostGrants) grants_[role] = {now / 60, granted + 1};
        int64_t had = 0;
        for (const Lease& lease : leases_)
            if (lease.role == role && lease.start <= now && now < lease.end)
                had += lease.node_count;
        if (pool_.max_nodes_per_role < kMostPerRole && had + nodes > pool_.max_nodes_per_role)
            return Refuse(Refusal::kLimit);
        const int64_t number = next_id_++;
        const int64_t first = FindNodes(nodes, now);
        if (first < 0) return Refuse(Refusal::kLimit);
        const int64_t start = rules_.start_from_mark ? std::max(now, mark) : now;
        int64_t end = std::min(start + duration, CalendarEnd());
        if (rules_.longest_lease) end = std::min(end, now + pool_.max_duration);
        end = std::min(end, stops_at);
        if (end <= start) return Refuse(Refusal::kState);
        Lease lease{{first, nodes}, number, role, incarnation, start, end, now};
        lease.chain = chain;
        if (Overlaps(lease)) return Refuse(Refusal::kOverlap);
        std::erase_if(leases_, [&](const Lease& former) { return lease.Covers(former); });
        leases_.push_back(lease);
        return LeaseGrant{lease.lease_id, first, nodes, start, end - 1};
    }

    // Returns the last second of the renewed lease, or nothing if the coordinator refuses.
    std::optional<int64_t> Renew(uint64_t identity, int64_t now, int64_t lease_id,
                                 const Incarnation& incarnation, int64_t expected_end,
                                 int64_t duration, const SecretRecords& chain, int64_t role) {
        refusal_ = Refusal::kNone;
        if (duration < 1 || !IsChain(chain) || expected_end < kEpoch ||
            expected_end >= kSqlCalendarEnd)
            return Refuse(Refusal::kArgument);
        const int64_t mark = SharePool(identity, now);
        if (pool_.closed) return Refuse(Refusal::kClosed);
        Lease* lease = Find(lease_id, incarnation, role);
        if (lease == nullptr || lease->released) return Refuse(Refusal::kState);
        if (chain_.count > 0 && Agreed(chain, chain_) == 0) return RefuseSecrets(Refusal::kState);
        if (!pool_.Covers(*lease) || IsStatic(*lease)) return Refuse(Refusal::kState);
        const int64_t latest =
            rules_.bounded_renewal
                ? std::min(now + pool_.max_duration + pool_.max_clock_skew, CalendarEnd())
                : CalendarEnd();
        if (std::max(expected_end + 1, lease->end) > latest) return Refuse(Refusal::kState);
        const int64_t margin = rules_.renew_margin ? pool_.max_clock_skew : 0;
        if (expected_end < now + margin && (expected_end < now || expected_end < mark - 1) &&
            rules_.renew_before_end)
            return Refuse(Refusal::kState);
        // A later lease of any of these node ids shows that this lease has ended.
        if (rules_.renew_unless_followed && std::ranges::any_of(leases_, [&](const Lease& later) {
                return later.lease_id > lease_id && later.Overlaps(*lease);
            }))
            return Refuse(Refusal::kState);
        // A holder that lacks a secret keeps the lease until its end, and can load the secret.
        const int64_t stops_at = rules_.stops_renewals ? StopsAt(chain) : kForEver;
        if (lease->end >= stops_at) return RefuseSecrets(Refusal::kClosed);
        Lease renewed = *lease;
        renewed.end = now + std::min(duration, pool_.max_duration);
        if (rules_.renew_keeps_end)
            renewed.end = std::max({expected_end + 1, lease->end, renewed.end});
        renewed.end = std::min({renewed.end, latest, stops_at});
        renewed.renewed_at = now;
        renewed.chain = chain;
        if (renewed.end <= renewed.start || Overlaps(renewed)) return Refuse(Refusal::kState);
        *lease = renewed;
        return renewed.end - 1;
    }

    // If `last_used` is empty, the holder used nothing. The lease then covers only its first
    // second.
    bool Release(uint64_t identity, int64_t now, int64_t lease_id, const Incarnation& incarnation,
                 std::optional<int64_t> last_used, int64_t role = 1) {
        refusal_ = Refusal::kNone;
        (void)SharePool(identity, now);
        Lease* lease = Find(lease_id, incarnation, role);
        if (lease == nullptr) return Refused(Refusal::kState);
        if (lease->released) return true;
        lease->end =
            std::min(std::max(last_used.value_or(lease->start), lease->start), lease->end - 1) + 1;
        lease->released = true;
        return true;
    }

    std::optional<int64_t> Purge(uint64_t identity, int64_t now, int64_t keep_ms) {
        refusal_ = Refusal::kNone;
        if (keep_ms < 0) return Refuse(Refusal::kArgument);
        LockPool(identity, now);
        const int64_t keep = (keep_ms + 999) / 1000;
        const size_t before = leases_.size();
        for (size_t i = leases_.size(); i-- > 0;) {
            if (leases_[i].end > now - keep) continue;
            if (rules_.purge_raises_mark) HoldOff(Hold::Cause::kPurge, leases_[i].end - 1, 0, 0);
            leases_.erase(leases_.begin() + static_cast<ptrdiff_t>(i));
        }
        high_water_ = std::max(high_water_, Until());
        return static_cast<int64_t>(before - leases_.size());
    }

    // Returns the time at which the node ids that leave the pool become free; 0 if they are free.
    std::optional<int64_t> Configure(uint64_t identity, int64_t now, const Change& change) {
        refusal_ = Refusal::kNone;
        const bool made = identity_ == kNone;
        LockPool(identity, now);
        Pool pool = pool_;
        pool.first_node_id = change.first_node_id.value_or(pool.first_node_id);
        pool.node_count =
            change.node_count.value_or(pool_.first_node_id + pool_.node_count - pool.first_node_id);
        pool.max_duration = change.max_duration.value_or(pool.max_duration);
        pool.max_clock_skew = change.max_clock_skew.value_or(pool.max_clock_skew);
        pool.closed = change.closed.value_or(pool.closed);
        pool.max_nodes_per_role = change.max_nodes_per_role.value_or(pool.max_nodes_per_role);
        pool.max_grants_per_role = change.max_grants_per_role.value_or(pool.max_grants_per_role);
        if (pool.first_node_id < 0 || pool.first_node_id >= NodeIds() || pool.node_count < 1 ||
            pool.node_count > NodeIds() - pool.first_node_id || pool.max_duration < 1 ||
            pool.max_duration > 86400 || pool.max_clock_skew < 0 || pool.max_clock_skew > 3600 ||
            pool.max_nodes_per_role < 1 || pool.max_nodes_per_role > kMostPerRole ||
            pool.max_grants_per_role < 1 || pool.max_grants_per_role > kMostGrants ||
            (change.chain && (!IsChain(*change.chain) || change.forget_key)))
            return Refuse(Refusal::kArgument);
        if (change.never_leased && next_id_ != 1) return Refuse(Refusal::kState);
        if (change.nothing_lost && std::none_of(holds_.begin(), holds_.end(), [](const Hold& h) {
                return h.cause == Hold::Cause::kPromotion;
            }))
            return Refuse(Refusal::kState);

        if (!pool_.closed && pool.closed)
            HoldOff(Hold::Cause::kReopened, kForEver, pool_.max_duration, pool_.max_clock_skew);
        if (pool_.closed && !pool.closed)
            for (Hold& hold : holds_)
                if (hold.since == kForEver)
                    hold = rules_.closed_counts
                               ? Hold{hold.cause, now, hold.longest, hold.widest}
                               : Hold{hold.cause, now, pool_.max_duration, pool_.max_clock_skew};
        if (!pool_.Covers(pool) && rules_.added_nodes_wait)
            HoldOff(Hold::Cause::kAdded, now, 0, pool_.max_clock_skew);
        for (Hold& hold : holds_) {
            if (hold.cause == Hold::Cause::kPurge || UntilOf(hold) <= now || !rules_.raises_holds)
                continue;
            hold.longest = hold.longest > 0 ? std::max(hold.longest, pool.max_duration) : 0;
            hold.widest = std::max(hold.widest, pool.max_clock_skew);
        }
        if (change.nothing_lost && !rules_.lost_nothing_clocks)
            std::erase_if(holds_, [](const Hold& h) { return h.cause == Hold::Cause::kPromotion; });
        if (change.never_leased && !rules_.never_leased_keeps)
            std::erase_if(holds_, [](const Hold& h) { return h.cause == Hold::Cause::kAdded; });
        for (Hold& hold : holds_) {
            if (hold.longest == 0 || hold.since == kForEver ||
                !(change.never_leased ||
                  (change.nothing_lost &&
                   (hold.cause == Hold::Cause::kPromotion || !rules_.lost_nothing_once))))
                continue;
            hold = {hold.cause, std::min(hold.since, now), 0,
                    made ? pool.max_clock_skew : hold.widest};
        }

        said_ |= change.nothing_lost;

        int64_t free_at = 0;
        if (pool.closed || pool.node_count < NodeIds()) {
            for (const Hold& hold : holds_)
                if (hold.longest > 0 && hold.since != kForEver)
                    free_at = std::max(free_at, UntilOf(hold));
            for (const Lease& lease : leases_)
                if (pool.closed || !pool.Covers(lease)) free_at = std::max(free_at, lease.end);
        }
        high_water_ = Until();
        pool_ = pool;
        chain_ = change.forget_key ? SecretRecords{} : change.chain.value_or(chain_);
        return free_at > now ? free_at : 0;
    }

    // Adds a secret that begins at Unix second `from`. An empty `fingerprint` stands for bad text.
    bool AddSecret(uint64_t identity, int64_t now, std::optional<uint64_t> fingerprint,
                   int64_t from) {
        refusal_ = Refusal::kNone;
        if (!fingerprint || from <= kEpoch || from >= kSqlCalendarEnd)
            return Refused(Refusal::kArgument);
        LockPool(identity, now);
        if (chain_.count == 0) return Refused(Refusal::kState);
        const Second second = FromUnix({from});
        for (uint32_t i = 0; i < chain_.count; i++)
            if (chain_.records[i].fingerprint == *fingerprint)
                return chain_.records[i].from == second || Refused(Refusal::kState);
        if (chain_.count == kMaxGenerations || second <= chain_.records[chain_.count - 1].from ||
            from < EarliestOfSecret(now))
            return Refused(Refusal::kState);
        chain_.records[chain_.count++] = {*fingerprint, second};
        return true;
    }

    bool RemoveSecret(uint64_t identity, int64_t now, std::optional<uint64_t> fingerprint) {
        refusal_ = Refusal::kNone;
        LockPool(identity, now);
        if (chain_.count < 2 || chain_.records[chain_.count - 1].fingerprint != fingerprint ||
            FromOf(chain_, chain_.count - 1) < EarliestOfSecret(now))
            return Refused(Refusal::kState);
        chain_.count--;
        return true;
    }

    // Returns the first second that no lease can reach. Secrets may change from that second on.
    int64_t EarliestOfSecret(int64_t now) const {
        int64_t earliest = 0;
        if (rules_.secrets_after_mark)
            earliest =
                std::max(high_water_, now + pool_.max_duration + 2 * pool_.max_clock_skew + 1);
        if (rules_.secrets_after_leases)
            for (const Lease& lease : leases_) earliest = std::max(earliest, lease.end);
        return earliest;
    }

    // Returns the Unix second from which the holder's secrets differ from the coordinator's
    // secrets. No lease to this holder may reach that second.
    int64_t StopsAt(const SecretRecords& chain) const {
        const uint32_t agreed = Agreed(chain, chain_);
        const int64_t missing = rules_.stops_at_missing ? FromOf(chain_, agreed) : kForEver;
        const int64_t unknown = rules_.stops_at_unknown ? FromOf(chain, agreed) : kForEver;
        return chain_.count == 0 ? kForEver : std::min(missing, unknown);
    }

    // Returns the Unix second at which this chain's first missing secret begins.
    std::optional<int64_t> LacksFrom(const SecretRecords& chain) const {
        const uint32_t agreed = Agreed(chain, chain_);
        if (agreed == 0 || agreed == chain_.count) return std::nullopt;
        return FromOf(chain_, agreed);
    }

    const Pool& pool() const { return pool_; }
    const SecretRecords& chain() const { return chain_; }
    const std::vector<Lease>& leases() const { return leases_; }
    // Returns the mark: the coordinator grants nothing before this second. 0 means an unused pool.
    int64_t Mark(uint64_t identity, int64_t now) {
        refusal_ = Refusal::kNone;
        return identity_ == kNone ? 0 : SharePool(identity, now);
    }
    // Returns the mark. It includes a takeover's hold-off even before the pool's row does.
    int64_t high_water() const {
        const bool noted = identity_ != kNone && identity_ != takeover_identity_ && taken_over_;
        return noted ? std::max(high_water_, UntilOf(HeldOff())) : high_water_;
    }
    int64_t CalendarEnd() const { return ToUnix(SecondsEnd(layout_)).count; }

private:
    static constexpr uint64_t kNone = 0;
    static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
    static constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();
    // The SQL functions use this limit, even if the simulation uses a smaller layout.
    static constexpr int64_t kSqlCalendarEnd = ToUnix(kNoSecond).count;

    std::nullopt_t Refuse(Refusal refusal, bool about_secrets = false) {
        refusal_ = refusal;
        about_secrets_ = about_secrets;
        return std::nullopt;
    }
    std::nullopt_t RefuseSecrets(Refusal refusal) { return Refuse(refusal, true); }
    bool Refused(Refusal refusal) {
        refusal_ = refusal;
        return false;
    }

    // Returns the Unix second at which records[count] begins, or kForEver if the chain is shorter.
    static int64_t FromOf(const SecretRecords& chain, uint32_t count) {
        return count < chain.count ? ToUnix(chain.records[count].from).count : kForEver;
    }

    int64_t NodeIds() const { return static_cast<int64_t>(layout_.max_node_id()) + 1; }

    int64_t UntilOf(const Hold& hold) const {
        if (hold.since == kForEver) return kForEver;
        const int skews = hold.longest == 0 || hold.cause == Hold::Cause::kReopened
                              ? (hold.longest > 0) + 1
                              : rules_.hold_off_for_skew + rules_.hold_off_for_renewals;
        return hold.since + hold.longest + skews * hold.widest + 1;
    }
    // Returns the second at which all waits end. A wait for a closed pool has no end yet.
    int64_t Until() const {
        int64_t until = 0;
        for (const Hold& hold : holds_)
            if (hold.since != kForEver &&
                (hold.cause != Hold::Cause::kReopened || rules_.reopening_waits))
                until = std::max(until, UntilOf(hold));
        return until;
    }
    void HoldOff(Hold::Cause cause, int64_t since, int64_t longest, int64_t widest) {
        std::erase_if(holds_, [&](const Hold& former) {
            return former.cause == cause && former.since <= since && since != kForEver &&
                   former.longest <= longest && former.widest <= widest;
        });
        holds_.push_back({cause, since, longest, widest});
    }

    Hold HeldOff() const {
        return {Hold::Cause::kTakeover, takeover_, pool_.max_duration, pool_.max_clock_skew};
    }

    // Models randflake_lease_share_pool. Returns the mark. With `make`, may change an unused pool.
    int64_t SharePool(uint64_t identity, int64_t now, bool make = false) {
        const bool first = identity_ == kNone;
        if ((first && !make) || (identity_ == identity && NotedHere(identity) && !TakenOverSince()))
            return high_water_;
        const bool here = NotedHere(identity) || (first && !rules_.knows_where_made);
        if (!here || (!taken_over_ && !first)) {
            int64_t since = std::max(now, started_);
            for (const Lease& lease : leases_)
                since = std::max({since, lease.granted_at, lease.renewed_at});
            takeover_ = std::min(since, CalendarEnd());
            takeover_identity_ = identity;
            taken_over_ = true;
        }
        return HoldsOff() ? std::max(high_water_, UntilOf(HeldOff())) : high_water_;
    }
    // Returns whether a takeover was noted since the pool's last change.
    bool TakenOverSince() const { return noted_ != Noted(); }
    std::optional<std::pair<int64_t, uint64_t>> Noted() const {
        if (!taken_over_) return std::nullopt;
        return std::pair{takeover_, takeover_identity_};
    }
    // Models randflake_lease_noted_here.
    bool NotedHere(uint64_t identity) const {
        return WithoutStart(takeover_identity_) == WithoutStart(identity) && takeover_ >= started_;
    }
    bool HoldsOff() const { return rules_.hold_off && (taken_over_ || rules_.creation_counts); }

    // Models randflake_lease_lock_pool.
    void LockPool(uint64_t identity, int64_t now) {
        const int64_t mark = SharePool(identity, now, true);
        if (identity == identity_ && !TakenOverSince()) return;
        noted_ = Noted();
        if (rules_.lost_nothing_once)
            for (Hold& hold : holds_)
                if (hold.cause == Hold::Cause::kPromotion) hold.cause = Hold::Cause::kTakeover;
        Hold hold = HeldOff();
        if (Promoted(identity_, identity)) hold.cause = Hold::Cause::kPromotion;
        if (said_ && !rules_.lost_nothing_ends) hold.longest = 0;
        if (HoldsOff()) HoldOff(hold.cause, hold.since, hold.longest, hold.widest);
        high_water_ = mark;
        identity_ = identity;
    }

    Lease* Find(int64_t lease_id, const Incarnation& incarnation, int64_t role) {
        for (Lease& lease : leases_)
            if (lease.lease_id == lease_id && (lease.role == role || !rules_.own_role) &&
                (lease.incarnation == incarnation || !rules_.own_incarnation))
                return &lease;
        return nullptr;
    }

    bool Overlaps(const Lease& with) const {
        return rules_.exclusion && std::any_of(leases_.begin(), leases_.end(), [&](const Lease& l) {
                   return l.lease_id != with.lease_id && l.Overlaps(with) && l.start < with.end &&
                          with.start < l.end;
               });
    }

    bool IsStatic(const Nodes& nodes) const {
        return rules_.own_nodes && static_.node_count > 0 && static_.Overlaps(nodes);
    }

    // Returns the first node id of a free range, or -1. The SQL function may choose a different
    // free range (test/t/232_lease_pool.pl), but no rule depends on the choice.
    int64_t FindNodes(int64_t count, int64_t now) const {
        for (Nodes nodes{pool_.first_node_id, count}; pool_.Covers(nodes); nodes.first_node_id++)
            if (!IsStatic(nodes) && std::ranges::none_of(leases_, [&](const Lease& lease) {
                    return lease.Overlaps(nodes) && lease.end > now;
                }))
                return nodes.first_node_id;
        return -1;
    }

    Layout layout_;
    CoordinatorRules rules_;
    Pool pool_;
    std::vector<Lease> leases_;
    int64_t next_id_ = 1;
    int64_t high_water_ = 0;
    std::vector<Hold> holds_;
    bool said_ = false;          // the operator said that nothing was lost
    SecretRecords chain_{};      // empty at first
    uint64_t identity_ = kNone;  // of the coordinator that changed the pool last
    std::map<int64_t, std::pair<int64_t, int64_t>> grants_;  // by role: minute, grants in it
    Nodes static_{0, 0};                                     // of the server itself
    // Models the table randflake_lease_takeover: the time of the creation or of the last takeover.
    int64_t takeover_ = 0;
    uint64_t takeover_identity_ = kNone;
    bool taken_over_ = false;
    std::optional<std::pair<int64_t, uint64_t>> noted_;  // that the pool's last change knew
    int64_t started_ = 0;                                // when the server started
    Refusal refusal_ = Refusal::kNone;
    bool about_secrets_ = false;
};

}  // namespace randflake::simulation
