// Encodes the state that a server keeps about its windows, and makes the decisions that depend on
// it.
//
// For each range of node ids the state has a second ("written end") before which this data
// directory may have issued identifiers. The server writes the state before it uses the window that
// the state announces. So this data directory never issues an identifier under these node ids at or
// beyond the written end, even if the server crashes.
//
// Since then, other servers may have issued identifiers under the same node ids: a copy of the
// directory, a server promoted in place of this one, a server configured with these node ids, or
// this directory before somebody rolled its disk back. The state cannot know of those servers. But
// each of them stopped before this server started, and all clocks differ by less than the tolerated
// difference. So a start holds off for this difference, unless the state proves that no other
// server ran in between; see PlanStart.

#pragma once

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

// The static node ids of a server form consecutive ranges of one size. ChooseRange chooses the
// range to use.
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
    // Returns the index of this range, or `count` if there is no such range.
    constexpr uint32_t IndexOf(const NodeRange& nodes) const {
        uint32_t i = 0;
        while (i < count && At(i) != nodes)
            i++;
        return i;
    }
};

struct WrittenEnd {
    NodeRange nodes;
    Second end;  // the first second that no window has announced

    friend constexpr bool operator==(const WrittenEnd&, const WrittenEnd&) = default;
};

// Identifies a file: a copy has another inode, or an inode made at another instant. A restart of
// the machine can change device numbers, so they count only without birth times.
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

// Holds what other servers may know of a secret: its fingerprint (pg/secret/secret.h) and its first
// second, which is 0 for the first secret.
struct SecretRecord {
    uint64_t fingerprint;
    Second from;

    friend constexpr bool operator==(const SecretRecord&, const SecretRecord&) = default;
};

// Lists the records of a ring, oldest first.
struct SecretRecords {
    uint32_t count;  // 0 without a secret
    SecretRecord records[kMaxGenerations];
};

// Write fingerprints as text for people, coordinators and databases: 16 lower-case hexadecimal
// digits each. Blanks separate the secrets of a ring. The second and later secrets also have "@"
// and the Unix second at which they begin. The functions write a terminator and return the length.
inline constexpr size_t kFingerprintText = 16;
inline constexpr size_t kMaxFingerprintsText =
    kMaxGenerations * (kFingerprintText + 1) + (kMaxGenerations - 1) * 11;
size_t FormatFingerprint(uint64_t fingerprint, char buffer[kFingerprintText + 1]) noexcept;
size_t FormatFingerprints(const SecretRecords& records, char buffer[kMaxFingerprintsText]) noexcept;

enum class SecretsChange : uint8_t {
    kNone,     // does not affect issued identifiers
    kOther,    // all secrets differ: issued identifiers no longer decode
    kRefused,  // would change the meaning of issued identifiers
};

// Decides what happens to identifiers of the seconds before `end`, issued under the ring `before`,
// if the server continues under the ring `after`. Up to `end` both rings must be the same. Later
// generations may be added, removed or moved. A server that never changed its secret may get an
// entirely different one.
SecretsChange CompareSecrets(const SecretRecords& before, const SecretRecords& after,
                             Second end) noexcept;

// Returns the second from which the ring `after` lacks a secret, or 0 if it lacks none. The ring
// `before` lacked a secret from the second `differs_from` on. If the two rings differ from that
// second on, returns 0: only a coordinator knows whether the new secret is the right one.
Second DiffersFrom(Second differs_from, const SecretRecords& before,
                   const SecretRecords& after) noexcept;

// Returns whether a server that lacks a secret from the second `decode_horizon` on certainly reads
// this number correctly. Numbers that stand for seconds belong to the first secret.
constexpr bool CertainlyRead(const Layout& layout, uint64_t raw, Second decode_horizon) noexcept {
    RANDFLAKE_ASSERT(decode_horizon >= Second{0});
    const Fields fields = layout.Unpack(raw);
    return layout.Before(fields.timestamp, decode_horizon) || layout.StandsForSecond(fields);
}

// Describes the request to continue a running server under the ring `after` instead of `before`.
struct Reload {
    SecretRecords before;  // none: the server lost its secrets in a crash
    SecretRecords after;
    bool issues;        // the server issues identifiers, or would if a session asked
    bool leased;        // under leased node ids
    Second leases_end;  // the last end of its leases, if `leased`

    // These are the latest time that this server's clock has shown, and the tolerated difference of
    // clocks.
    WallMs wall_ms;
    Ms skew;

    // Returns whether the state on disk must show that no server has used the new secrets.
    constexpr bool NeedsState() const {
        return issues && before.count > 0 && after.count > before.count;
    }
};

enum class ReloadError : uint8_t {
    kNone,
    kNotGrown,  // a server may add secrets only after the last one
    kTooEarly,  // an added secret owns a second that may have identifiers
    kRefused,   // the server made identifiers under other secrets; see CompareSecrets
};

struct ReloadPlan {
    ReloadError error;
    uint32_t secret;  // with kNotGrown and kTooEarly: the secret's index in `after`
    Second earliest;  // with kTooEarly: the first possible second
};

// The smallest and the largest tolerated difference of clocks, a setting that can change while a
// server runs.
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

// The written end is this far ahead of the clock's second. A crash wastes at most these seconds.
// The server extends the window in the window's last second, so it writes every two seconds.
inline constexpr Seconds kWindowSeconds = 3;

// A state remembers this number of ranges of node ids, the current one first. If a data directory
// uses more, the last two ranges that are not configured become one range that covers both.
inline constexpr uint32_t kMaxWrittenEnds = 16;
static_assert(kMaxWrittenEnds >= kMaxRanges + 2);

// Describes a clean stop of a server with static node ids.
struct Stop {
    // This combines the machine's boot, from which uptime counts, with the location of the last
    // checkpoint. Every run of PostgreSQL moves that location, even without this library. 0 means
    // unknown.
    uint64_t boot[2];
    UptimeMs uptime_ms;
    WallMs wall_ms;
    NodeRange nodes;  // all configured node ids; none: the state records no stop

    friend constexpr bool operator==(const Stop&, const Stop&) = default;
};

// Describes an attempt to write the state. A run lasts as long as its shared memory. It numbers its
// attempts upwards from a random number. Failed attempts count too, because their writes may become
// visible later. When the state is durable, and before anything relies on it, the server writes the
// number to the marker. While the marker shows `mark` or still `follows`, everything in use relies
// on this state or an earlier one.
struct WriteRecord {
    uint64_t mark;     // the attempt's number; 0: the state counts as missing
    uint64_t follows;  // the marker's former value, or 0

    uint64_t postmaster;  // the random number of this run's postmaster
    uint64_t boot[2];     // the machine's boot; 0: the postmaster lacked the directory's lock
    UptimeMs uptime_ms;   // at the attempt

    friend constexpr bool operator==(const WriteRecord&, const WriteRecord&) = default;
};

// Reads the marker of a directory (pg/window/run_marker.h): 8 bytes with the number of the last
// write, in the machine's byte order because the marker stays on the machine. Returns 0 if it is
// malformed.
inline constexpr size_t kRunMarkerBytes = 8;
uint64_t ParseRunMarker(const uint8_t* bytes, size_t length) noexcept;

// The holder chooses a random number for each acquisition. Only the holder of a lease knows both
// this number and the lease's id.
struct Incarnation {
    uint64_t words[2];

    friend constexpr bool operator==(const Incarnation&, const Incarnation&) = default;
};

// The holder keeps its leases in this form, in memory and on disk; see core/lease/lease_holder.h.
struct Lease {
    int64_t id;  // 0: no lease
    Incarnation incarnation;
    NodeRange nodes;
    Second start;
    Second end;    // exclusive
    bool refused;  // the coordinator no longer renews it

    // The holder asked the coordinator at `asked_at_ms`. A lease that started at this moment would
    // end at `lasts_until_ms`. The lease may start later, so it ends at that time or later by every
    // clock.
    SteadyMs asked_at_ms;
    SteadyMs lasts_until_ms;

    friend constexpr bool operator==(const Lease&, const Lease&) = default;

    // Returns the time from the last grant or renewal to the lease's end.
    constexpr Ms length() const noexcept {
        RANDFLAKE_ASSERT(lasts_until_ms >= asked_at_ms);
        return lasts_until_ms - asked_at_ms;
    }
};

// A holder has at most the lease whose node ids are in use, and the next lease.
inline constexpr uint32_t kMaxLeases = 2;

// Parses the boot id of Linux: a lower-case UUID and a line break. Returns zeros if it is
// malformed.
inline constexpr size_t kBootIdText = 37;
void ParseBootId(const char* text, size_t length, uint64_t boot[2]) noexcept;

struct WindowState {
    Origin origin;
    SecretRecords secrets;  // the secrets of the server that wrote this
    // A coordinator said that this server lacks a secret from this second on. 0: it lacks none. See
    // DiffersFrom.
    Second differs_from;
    SkewRange skew;  // since the start of the server that wrote this; after a stop,
                     // skew.smallest_ms is the value at the stop
    Stop stop;       // if there is one, ends[0] is exact
    WriteRecord write;
    // The run that wrote this state was granted these leases, or resumed them. Up to the end of
    // each lease, `secrets` are the secrets of its grant.
    Lease leases[kMaxLeases];
    // The hold-off of this directory's last unproven start ended before this second. Other servers
    // may have used the same node ids in earlier seconds.
    Second floor;
    // A start found at this second that this directory is a copy. The value stays until the
    // operator acknowledges the copy. A start in a further copy sets it again. 0 means that there
    // is no such copy.
    Second copied_at;
    uint32_t end_count;
    WrittenEnd ends[kMaxWrittenEnds];

    // Returns the first second that this state allows for all of these node ids.
    Second EndFor(const NodeRange& nodes) const noexcept;

    // Returns the first second at which a window of these static node ids may open.
    Second OpensAt(const NodeRange& nodes) const noexcept;

    // Returns the first second after all identifiers of this state, under any node ids.
    Second LastEnd() const noexcept;
    Second LeasesEnd() const noexcept;

    // Puts the end of the window into ends[0]. Call this and write the state before you open a
    // window of these node ids, or move its end. A new window begins at or after every end written
    // for its node ids. `configured` are the server's ranges, whose ends never merge.
    void Announce(const NodeRange& nodes, const Window& window,
                  const NodeRanges& configured = {}) noexcept;

    // Records that others may have used these node ids before `end`.
    void UsedByOthers(const NodeRange& nodes, Second end, const NodeRanges& configured) noexcept;

    // Call this and write the state after the last announced window, if nothing was or will be used
    // in it from `end` on (0: nothing at all). Takes back only the announcement of this window.
    void TakeBack(Second end) noexcept;

    // Only TakeBack lowers an end, and never below the end that was written when the window opened.
    // These two fields belong to the last announced window, whose end is ends[0]. They exist only
    // in memory, so a state read from disk takes nothing back.
    Second announced_start{};  // 0: no announcement, or the server took it back
    Second end_before{};       // the written end of its node ids when the window opened

    // Returns the index of the end for these node ids. Makes room for it if it is new.
    uint32_t PlaceOf(const NodeRange& nodes, const NodeRanges& configured) noexcept;
};

// The file has a head, secrets, leases, written ends and a checksum. Unused bytes are zero.
inline constexpr size_t kWindowStateHeadBytes = 164;
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

// Returns the text for messages: English without a final period.
const char* StateErrorText(StateError error) noexcept;

// The bytes are little-endian. The last four are the CRC-32C (RFC 3720, appendix B.4) of all
// others.
void EncodeWindowState(const WindowState& state, uint8_t bytes[kWindowStateBytes]) noexcept;
StateError DecodeWindowState(const uint8_t* bytes, size_t length, WindowState* state) noexcept;

// Names what a start found on disk, for the log; see PlanStart.
enum class Finding : uint8_t {
    kOwn,            // the state of this directory
    kFirstUse,       // no server has made identifiers in the directory
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
    NodeRange nodes;            // all configured node ids; none if the server leases
    uint32_t leased_nodes = 0;  // number of node ids that it leases; 0: none

    // True after a crash that ended shared memory, when the same postmaster runs the directory
    // again.
    bool after_crash_restart = false;

    // `boot` is as in Stop. The hold-off counts from this uptime and wall clock; see SetTime.
    uint64_t boot[2];
    UptimeMs uptime_ms;
    WallMs wall_ms;

    uint64_t marked;  // the mark of the last write in this boot; 0: unknown
    SkewRange skew;   // tolerated difference of clocks since the start of the server

    // These fields are as in WriteRecord. `now_ms` is the present uptime.
    uint64_t postmaster = 0;
    uint64_t machine_boot[2] = {};
    UptimeMs now_ms{};
    bool locked = false;  // the postmaster has the directory's lock, and no earlier run is alive
};

// Sets the moment from which the hold-off counts: the server's start. If the server may have been
// promoted since, it is the present, because another server ran until the promotion. If the wall
// clock was set back since the start, wall_ms is the present.
void SetTime(const Moment& started, const Moment& now, bool may_be_promoted, Start* start) noexcept;

struct StartPlan {
    Finding finding;
    bool proven;  // no other server has used the node ids since the stop
    SecretsChange secrets;
    UptimeMs opens_at_ms;   // windows may open after this uptime; see MayOpen
    Second held_off_until;  // the first second after the hold-off, proven or not
    WindowState state;      // the server continues from this state, which has no stop
};

// Returns the new copied_at (see WindowState) if a start in the directory `own` finds the state
// `found` at the second `now`.
Second CopiedAt(const WindowState& found, const Origin& own, Second now) noexcept;

// Decides when a server with static node ids may open windows after a start. `found` is valid only
// if `error` is kNone.
//
// A window opens at or after the written end of each of its node ids. It also opens only when the
// tolerated difference has passed since the start, both by the wall clock and by the uptime. So it
// opens after all seconds that other servers used, and the proof below holds whatever the wall
// clock does.
//
// If the clock is right at the start, the hold-off ends after all seconds that other servers used.
// The operator may set the clock back afterwards. So every later window begins at or after the end
// of the hold-off, until a start of another postmaster holds off by its clock.
//
// The server need not wait if a proof shows that no other server has used the node ids since its
// own stop. Every other server holds off from its own start, which came after that stop. So no
// other server has issued anything if less than the tolerated difference passed from the stop to
// this start. The proof requires a stop of this directory, this boot and all of these node ids.
// This stop is the last write of all. If a later write exists, the disk was rolled back to this
// stop, and another run may have opened a window. The proof also requires that PostgreSQL has not
// run here since the stop, because a coordinator in it may have leased unused node ids. Both clocks
// must agree, because the uptime of a virtual machine does not count while its host pauses it.
//
// Other servers hold off by their own tolerated difference, which may have changed. The proof uses
// the smallest of this server's values in the stopped run and since this start, and the hold-off
// uses the largest.
//
// No window may open while the plan refuses the secrets.
StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) noexcept;

// Returns whether a start outside recovery resumes a lease of the state on disk. It then uses the
// lease from the written end of its node ids on. docs/design.md, "Resuming a lease", gives the
// reasons.
bool Resumes(const WindowState& found, const Start& start, const Lease& lease) noexcept;

// Returns whether a window may open at this second and uptime; see OpensAt and StartPlan.
constexpr bool MayOpen(Second opens_at, UptimeMs opens_at_ms, Second second,
                       UptimeMs uptime_ms) noexcept {
    return second >= opens_at && uptime_ms > opens_at_ms;
}

// Returns the index of the range that was used last, or 0 if the state contains none of the ranges.
uint32_t LastRange(const WindowState& state, const NodeRanges& ranges) noexcept;

// Chooses the range to use from the second `now` on in place of `in_use`, whose words and written
// end are ahead of the clock. Returns the lowest unused range that may open a window now, or else
// the range that was used longest ago, or else `ranges.count`. `earliest` has the first second at
// which the slots allow a window of each range (generator.h).
uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                     const Second (&earliest)[kMaxRanges], Second now) noexcept;

// Returns the first second at which a leasing server may open a window of these node ids. The lease
// excludes other servers. But this directory may have used them as static node ids, under a clock
// that was ahead.
Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                    Second held_off_until) noexcept;

// Decides whether a running server may add secrets. `state` is null if it is not known. The caller
// must not open or extend a window until the server has added the secrets.
//
// An added secret must not affect existing identifiers. So it must begin at or after every written
// end, because of this server's identifiers. Because of other servers' identifiers, it must begin
// after the present + skew, or if node ids are leased, at or after the last lease's end. For later
// seconds, the coordinator leases only to holders with the secret. So a leasing server that stopped
// because it lacks a secret may still get this secret late.
ReloadPlan PlanReload(const Reload& reload, const WindowState* state) noexcept;

}  // namespace randflake
