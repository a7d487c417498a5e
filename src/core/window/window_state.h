// A server keeps the state of its windows on disk. The code here encodes and interprets this state.
//
// For each range of node ids, the state contains a time in seconds, called the written end. Every
// identifier that the server has issued under these node ids has an earlier second. This holds even
// after a crash, because the server writes a window's end before it uses the window.
//
// Other servers may have issued identifiers under the same node ids: a copy of the directory, a
// promoted server, a server configured with these node ids, or this directory before its disk was
// rolled back. The state does not show this. But the operator guarantees that each of these servers
// stopped before this server started, and that all clocks differ by less than the tolerated
// difference. So after a start, the server waits for the tolerated difference before it opens a
// window. This wait is the hold-off. The server skips it if the state proves that no other server
// ran since the last stop (PlanStart).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"
#include "core/secret/secret_ring.h"
#include "core/window/generator.h"

namespace randflake {

struct NodeRange {
    uint32_t first;
    uint32_t count;

    constexpr bool Overlaps(const NodeRange& other) const {
        return first < uint64_t{other.first} + other.count && other.first < uint64_t{first} + count;
    }
    constexpr bool Covers(const NodeRange& other) const {
        return first <= other.first && other.count <= count &&
               other.first - first <= count - other.count;
    }
    friend constexpr bool operator==(const NodeRange&, const NodeRange&) = default;
};

// Static node ids form consecutive ranges of equal size. The server uses one range at a time.
inline constexpr uint32_t kMaxRanges = 8;
struct NodeRanges {
    NodeRange first;
    uint32_t count;  // 0: node ids are leased

    constexpr NodeRange At(uint32_t i) const {
        RANDFLAKE_ASSERT(i < count && count <= kMaxRanges);
        return {first.first + i * first.count, first.count};
    }
    constexpr NodeRange All() const {
        RANDFLAKE_ASSERT(count >= 1 && count <= kMaxRanges);
        return {first.first, count * first.count};
    }
    // Returns the range's index, or `count` if there is no such range.
    constexpr uint32_t IndexOf(const NodeRange& nodes) const {
        uint32_t i = 0;
        while (i < count && At(i) != nodes)
            i++;
        return i;
    }
};

struct WrittenEnd {
    NodeRange nodes;
    Second end;  // the first second not announced

    friend constexpr bool operator==(const WrittenEnd&, const WrittenEnd&) = default;
};

// Distinguishes a file from its copies: a copy has another inode or birth time. A restart of the
// machine can change device numbers, so these matter only on file systems without birth times.
struct FileIdentity {
    uint64_t inode;
    uint64_t device;            // 0 if the file system has birth times
    int64_t birth_nanoseconds;  // since 1970; the file's last change if there are no birth times

    friend constexpr bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct Origin {
    uint64_t system_identifier;
    uint32_t timeline;
    FileIdentity identity;

    friend constexpr bool operator==(const Origin&, const Origin&) = default;
};

// Other servers may see these parts of a secret. The fingerprint is defined in pg/secret/secret.h.
struct SecretRecord {
    uint64_t fingerprint;
    Second from;  // the secret's first second; 0 for the first secret

    friend constexpr bool operator==(const SecretRecord&, const SecretRecord&) = default;
};

struct SecretRecords {  // of a ring, oldest first
    uint32_t count;     // 0 without a secret
    SecretRecord records[kMaxGenerations];

    friend constexpr bool operator==(const SecretRecords& a, const SecretRecords& b) {
        return a.count == b.count && std::equal(a.records, a.records + a.count, b.records);
    }
};

// These functions write fingerprints as NUL-terminated text and return its length. A fingerprint
// has 16 lower-case hexadecimal digits. In the text of a ring, blanks separate the secrets. Each
// secret except the first is followed by "@" and the Unix second at which it begins.
inline constexpr size_t kFingerprintText = 16;
inline constexpr size_t kMaxFingerprintsText =
    kMaxGenerations * (kFingerprintText + 1) + (kMaxGenerations - 1) * 11;
size_t FormatFingerprint(uint64_t fingerprint, char buffer[kFingerprintText + 1]) noexcept;
size_t FormatFingerprints(const SecretRecords& records, char buffer[kMaxFingerprintsText]) noexcept;

enum class SecretsChange : uint8_t {
    kNone,     // does not affect issued identifiers
    kOther,    // entirely other secrets: issued identifiers no longer decode
    kRefused,  // would change the meaning of issued identifiers
};

// Decides whether the ring `after` may replace the ring `before`. Identifiers of seconds before
// `end` may exist. The secrets of these seconds must stay the same, and later secrets may change.
// But if `before` has only one secret, a ring without this secret may replace `before`.
SecretsChange CompareSecrets(const SecretRecords& before, const SecretRecords& after,
                             Second end) noexcept;

// From `differs_from` on, the ring `before` lacked a secret. Returns 0 if `after` has a new secret
// that begins at `differs_from`, and `differs_from` otherwise. Only a coordinator knows whether
// this secret was the missing one.
Second DiffersFrom(Second differs_from, const SecretRecords& before,
                   const SecretRecords& after) noexcept;

// From `decode_horizon` on, a server may lack secrets that are in use. Returns whether the decoded
// number `raw` is certainly right. A number that stands for a whole second is always right, because
// the first secret encrypts all such numbers.
constexpr bool CertainlyRead(const Layout& layout, uint64_t raw, Second decode_horizon) noexcept {
    RANDFLAKE_ASSERT(decode_horizon >= Second{0});
    const Fields fields = layout.Unpack(raw);
    return layout.Before(fields.timestamp, decode_horizon) || layout.StandsForSecond(fields);
}

// Describes a request to replace the ring `before` of a running server by the ring `after`.
struct Reload {
    SecretRecords before;  // none if the server lost its secrets in a crash
    SecretRecords after;
    bool issues;        // whether the server makes identifiers, or would on request
    bool leased;        // under leased node ids
    Second leases_end;  // under leased node ids: the last end of the server's leases

    WallMs wall_ms;  // the latest time that this server's clock has shown
    Ms skew;         // the tolerated difference of clocks

    constexpr bool NeedsState() const {
        return issues && before.count > 0 && after.count > before.count;
    }
};

enum class ReloadError : uint8_t {
    kNone,
    kNotGrown,  // `after` does not begin with all secrets of `before`
    kTooEarly,  // an added secret begins before seconds that may have identifiers
    kRefused,   // the server made identifiers under other secrets; see CompareSecrets
};

struct ReloadPlan {
    ReloadError error;
    uint32_t secret;  // with kNotGrown and kTooEarly: the secret's index in `after`
    Second earliest;  // with kTooEarly: the first possible second
};

// The tolerated difference of clocks is a setting. SkewRange holds its least and greatest values.
inline constexpr uint32_t kMaxSkewMs = 86400 * 1000;
struct SkewRange {
    uint32_t smallest_ms, largest_ms;

    constexpr SkewRange With(const SkewRange& other) const {
        RANDFLAKE_ASSERT(other.smallest_ms <= other.largest_ms && other.largest_ms <= kMaxSkewMs);
        return {smallest_ms < other.smallest_ms ? smallest_ms : other.smallest_ms,
                largest_ms > other.largest_ms ? largest_ms : other.largest_ms};
    }
    friend constexpr bool operator==(const SkewRange&, const SkewRange&) = default;
};

// A window ends at most this far ahead of the clock, so a crash makes at most this many seconds
// unusable. The server extends a window in its last second, so it writes every two seconds.
inline constexpr Seconds kWindowSeconds = 3;

// A state has the written ends of up to this many ranges. The range in use comes first. If a
// directory has used more ranges than this, the last two unconfigured ranges merge into one.
inline constexpr uint32_t kMaxWrittenEnds = 16;
static_assert(kMaxWrittenEnds >= kMaxRanges + 2);

// Describes a clean stop of a server with static node ids.
struct Stop {
    // Combines the machine's boot id with the last checkpoint's position. Every run of PostgreSQL
    // in the directory changes this position, even a run without this library. 0: unknown.
    uint64_t boot[2];
    UptimeMs uptime_ms;
    WallMs wall_ms;
    NodeRange nodes;  // all configured node ids; none if the state has no stop

    friend constexpr bool operator==(const Stop&, const Stop&) = default;
};

// Describes one attempt to write the state. A run lasts as long as its shared memory. The number of
// the run's first attempt is random, and each further attempt has the next number. Failed attempts
// count, because their state may appear on disk later. The server writes `mark` to the marker after
// the state is durable and before anything relies on it. While the marker contains `mark` or
// `follows`, no process relies on a state later than this one.
struct WriteRecord {
    uint64_t mark;     // this attempt's number; 0 if there is none
    uint64_t follows;  // the marker's former value; 0 if there is none

    uint64_t postmaster;  // the random number of this run's postmaster
    uint64_t boot[2];     // of the machine; 0: unknown
    UptimeMs uptime_ms;   // at the attempt

    friend constexpr bool operator==(const WriteRecord&, const WriteRecord&) = default;
};

// The marker of a directory (pg/window/run_marker.h) contains the `mark` of the last write, in the
// machine's byte order. ParseRunMarker returns 0 for a malformed marker.
inline constexpr size_t kRunMarkerBytes = 8;
uint64_t ParseRunMarker(const uint8_t* bytes, size_t length) noexcept;

// The holder draws a new random number for each acquisition. Only the holder of a lease knows both
// this number and the lease's id.
struct Incarnation {
    uint64_t words[2];

    friend constexpr bool operator==(const Incarnation&, const Incarnation&) = default;
};

// The holder of a lease keeps it in this form in memory and on disk; see core/lease/lease_holder.h.
struct Lease {
    int64_t id;  // 0: no lease
    Incarnation incarnation;
    NodeRange nodes;
    Second start;
    Second end;    // exclusive
    bool refused;  // the coordinator no longer renews it

    // The lease ends at `lasts_until_ms`, or later if the lease started after the holder's request.
    SteadyMs asked_at_ms;
    SteadyMs lasts_until_ms;

    friend constexpr bool operator==(const Lease&, const Lease&) = default;

    // Returns the time from the last acquisition or renewal to the lease's end.
    constexpr Ms length() const noexcept {
        RANDFLAKE_ASSERT(lasts_until_ms >= asked_at_ms);
        return lasts_until_ms - asked_at_ms;
    }
};

// A holder has up to two leases: the open lease, whose node ids are in use, and the next lease.
inline constexpr uint32_t kMaxLeases = 2;

// Parses Linux's boot id: a lower-case UUID and a line break. Any other text sets `boot` to zeros.
inline constexpr size_t kBootIdText = 37;
void ParseBootId(const char* text, size_t length, uint64_t boot[2]) noexcept;

struct WindowState {
    Origin origin;
    SecretRecords secrets;  // of the server that wrote this state
    // 0, or the start of a secret that this server lacks, as a coordinator reported.
    Second differs_from;
    // The smallest and the largest difference tolerated since the start of the server that wrote
    // this state. If the state records a stop, `smallest_ms` is the value at the stop.
    SkewRange skew;
    Stop stop;  // of the server that wrote ends[0], which is then exact
    WriteRecord write;
    // The run that wrote this state acquired or resumed these leases. When the coordinator granted
    // a lease, the coordinator had those `secrets` that begin before the lease ends.
    Lease leases[kMaxLeases];
    // The hold-off of this directory's last start without a proof ended at this second. Other
    // servers may have used this server's node ids in earlier seconds.
    Second floor;
    // 0, or the second at which a starting server found that this directory is a copy. The operator
    // resets it by acknowledging the copy. A server that starts in another copy sets it again.
    Second copied_at;
    NodeRange original;    // if copied_at is not 0, covers all node ids that the original had
    NodeRange configured;  // all static node ids of the server that wrote this state
    uint32_t end_count;
    WrittenEnd ends[kMaxWrittenEnds];

    friend constexpr bool operator==(const WindowState&, const WindowState&) = default;

    // Returns the latest of the written ends of these node ids.
    Second EndFor(const NodeRange& nodes) const noexcept;

    // Returns the first second at which a window of these static node ids may open.
    Second OpensAt(const NodeRange& nodes) const noexcept;

    // Returns the latest written end of all node ids.
    Second LastEnd() const noexcept;
    Second LeasesEnd() const noexcept;

    // Sets ends[0] to the window's end. The caller writes the state before it opens these node ids'
    // window or moves the window's end. A new window must not begin before a written end of its
    // node ids. `configured` contains the server's configured ranges. Their ends never merge.
    void Announce(const NodeRange& nodes, const Window& window,
                  const NodeRanges& configured = {}) noexcept;

    // Records that other servers may have used these node ids before `end`.
    void UsedByOthers(const NodeRange& nodes, Second end, const NodeRanges& configured) noexcept;

    // Lowers the end of the last announced window to `end`, but not below `end_before`. Only this
    // function lowers an end. The window must be sealed, and the server must have used no number of
    // the window from `end` on. If `end` is 0, the server has used no number of the window.
    void TakeBack(Second end) noexcept;

    // These fields describe the last announced window, whose end is ends[0]. They exist only in
    // memory, so TakeBack has no effect on a state read from disk.
    Second announced_start{};  // 0 after TakeBack, or without an announced window
    Second end_before{};       // the written end of its node ids when the window opened

    // Returns the index of these node ids in `ends`. Makes room for them if they are new.
    uint32_t PlaceOf(const NodeRange& nodes, const NodeRanges& configured) noexcept;
};

// The file contains a header, leases, secrets, written ends and a checksum. Unused bytes are zero.
inline constexpr size_t kWindowStateHeadBytes = 180;
inline constexpr size_t kWrittenLeaseBytes = 60;
inline constexpr size_t kWindowStateBytes = kWindowStateHeadBytes +
                                            kMaxLeases * kWrittenLeaseBytes + 12 * kMaxGenerations +
                                            12 * kMaxWrittenEnds + 4;

enum class StateError : uint8_t {
    kNone,
    kMissing,      // no file, and no sign of an earlier file
    kLost,         // no file, but a sign of an earlier file
    kWrongLength,  // truncated or too long
    kWrongMagic,
    kWrongVersion,
    kWrongChecksum,
    kWrongContent,  // the checksum is right, the content impossible
};

// Returns an English text without a final period.
const char* StateErrorText(StateError error) noexcept;

// Numbers are little-endian. A CRC-32C (RFC 3720, appendix B.4) of all other bytes comes last.
void EncodeWindowState(const WindowState& state, uint8_t bytes[kWindowStateBytes]) noexcept;
StateError DecodeWindowState(const uint8_t* bytes, size_t length, WindowState* state) noexcept;

// When the server starts, it logs what it finds on disk.
enum class Finding : uint8_t {
    kOwn,            // this directory's own state
    kFirstUse,       // no server ever used the directory for identifiers
    kUnreadable,     // corrupt, truncated or lost
    kOtherSystem,    // another system identifier
    kOtherTimeline,  // promotion or point-in-time recovery
    kCopied,         // the directory or the file is a copy
};

struct Moment {
    UptimeMs uptime_ms;
    WallMs wall_ms;
};

struct Start {
    Origin origin;
    SecretRecords secrets;
    NodeRange nodes;            // all configured node ids; none if node ids are leased
    uint32_t leased_nodes = 0;  // how many node ids the server leases

    // A crash destroyed shared memory, and the same postmaster restarts the server.
    bool after_crash_restart = false;

    uint64_t boot[2];    // as in Stop
    UptimeMs uptime_ms;  // the moment from which the hold-off counts; see SetTime
    WallMs wall_ms;

    // The mark of the last write in this boot; 0 if unknown. With leased node ids, it is known only
    // under the marker's lock, so no process of another run of this directory, its hard-linked
    // copies and its snapshots lives.
    uint64_t marked;
    SkewRange skew;  // tolerated difference of clocks, from the start of the server on

    uint64_t postmaster = 0;        // as in WriteRecord
    uint64_t machine_boot[2] = {};  // as WriteRecord::boot
    UptimeMs now_ms{};
};

// Sets the moment from which the hold-off counts. This is the server's start, unless the server may
// have been promoted since. Another server ran until the promotion, so the hold-off then counts
// from the present. If the wall clock now shows an earlier time than at the start, sets
// start->wall_ms to the present time. This is safe, because other servers stopped before the start.
void SetTime(const Moment& started, const Moment& now, bool may_be_promoted, Start* start) noexcept;

struct StartPlan {
    Finding finding;
    bool proven;  // no other server has used the node ids since the stop
    SecretsChange secrets;
    UptimeMs opens_at_ms;   // windows may open after this uptime
    Second held_off_until;  // the first second after the hold-off, proven or not
    WindowState state;      // the server continues from this state
};

// The caller is a server that starts at `now` in the directory `own` and reads the state `found`.
// Returns the `copied_at` of the state that the server then writes.
Second CopiedAt(const WindowState& found, const Origin& own, Second now) noexcept;
// Returns the `original` of this state. An original can also use those of its configured node ids
// that it has not used before.
NodeRange OriginalNodes(const WindowState& found, const Origin& own) noexcept;

// Decides when a server with static node ids may open windows after a start. A window opens at or
// after the written ends of its node ids, and after the hold-off. No window may open while the plan
// refuses the secrets. `found` is valid only if `error` is kNone.
//
// Without a proof, the hold-off ends when, since the start, the wall clock and the uptime have both
// advanced by the tolerated difference. The wall clock's advance ensures that the hold-off ends
// later than every second that other servers used. Other servers' proofs rely on the length of the
// hold-off. The uptime ensures this length even if the clock is set. Until another postmaster
// starts, no window begins before the hold-off's end, even if the clock is set back (`floor`).
//
// A proof shows that no other server has used the node ids since this server's stop. Every other
// server with these node ids starts after this stop, and then holds off. So if less time than the
// tolerated difference of clocks has passed since the stop, no other server has issued anything.
// The proof requires:
//
// - The server's last stop used this data directory, and the machine has not rebooted since. At
//   this stop, its node ids included those configured now.
// - No write of the state followed the stop. If the marker shows a later write, the disk was rolled
//   back to this stop, and another run may have opened a window.
// - PostgreSQL has not run in this directory since the stop. Otherwise a coordinator in one of its
//   databases could have leased the node ids.
// - Wall clock and uptime both show that less time than the tolerated difference has passed since
//   the stop. The uptime alone is not enough, because it omits pauses of a virtual machine.
//
// The tolerated difference can change. The proof uses the smallest value since the stop, including
// the value at the stop. The hold-off uses the largest value in the stopped run and this run.
StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) noexcept;

// Returns whether a server that starts outside recovery resumes this lease, which is in the state
// on disk. docs/design.md, "Resuming a lease", gives the reasons.
bool Resumes(const WindowState& found, const Start& start, const Lease& lease) noexcept;

// Returns whether a window may open at this second and uptime. See StartPlan for `opens_at_ms`.
constexpr bool MayOpen(Second opens_at, UptimeMs opens_at_ms, Second second,
                       UptimeMs uptime_ms) noexcept {
    return second >= opens_at && uptime_ms > opens_at_ms;
}

// Returns the index of the range used last, or 0 if the state has none of the ranges.
uint32_t LastRange(const WindowState& state, const NodeRanges& ranges) noexcept;

// Chooses another range for the time `now`, because the range `in_use` is ahead of the clock. Of
// the ranges that may open a window now, returns the lowest unused range, or else the least
// recently used range. Returns `ranges.count` if no range may open. For each range, `earliest`
// contains the first second at which the slots allow a window (generator.h).
uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                     const Second (&earliest)[kMaxRanges], Second now) noexcept;

// Returns the first second at which a window may open under a lease's node ids. No other server
// uses them. But this server may have used them as static node ids while its clock was ahead.
Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                    Second held_off_until) noexcept;

// Decides whether a running server may add secrets. `state` is null while the server has not read
// the state. The caller must not open or extend a window until it has added the secrets.
//
// A new secret must not affect existing identifiers. So it begins at or after the latest written
// end of this server, and after all seconds that other servers may have used. With static node ids,
// the secret begins later than the present plus the tolerated difference. With leased node ids, it
// begins at or after the end of this server's last lease, because the coordinator grants no seconds
// from the secret's time on to a holder without this secret. So if a lease ended because the server
// lacked a secret, the server can add this secret.
ReloadPlan PlanReload(const Reload& reload, const WindowState* state) noexcept;

}  // namespace randflake
