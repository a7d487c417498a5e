// What a server remembers about its windows, as bytes and as a decision.
//
// The state says up to which second ("written end") identifiers may have been issued under which
// node ids. It is written before the window that it announces is used. So nothing that this data
// directory issued under these node ids lies at or beyond the written end, whatever happens to the
// server.
//
// Others may have issued under the same node ids since: a copy of the directory, the server that
// was promoted in place of this one, one that took the node ids over by configuration, or this
// directory itself before its disk was rolled back. The state cannot know of them. But each of them
// stopped before this server started, and their clocks differ by less than the tolerated
// difference. So a start holds off that long, unless the state proves that no other server can have
// come in between; see PlanStart.

#ifndef RANDFLAKE_CORE_WINDOW_WINDOW_STATE_H
#define RANDFLAKE_CORE_WINDOW_WINDOW_STATE_H

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

// The static node ids of a server: ranges of one size that follow each other. One of them is in
// use; see ChooseRange.
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
    // The index of this range, `count` of any other.
    constexpr uint32_t IndexOf(const NodeRange& nodes) const {
        uint32_t i = 0;
        while (i < count && At(i) != nodes)
            i++;
        return i;
    }
};

struct WrittenEnd {
    NodeRange nodes;
    Second end;  // the first one not announced

    friend constexpr bool operator==(const WrittenEnd&, const WrittenEnd&) = default;
};

// What tells one file from a copy of it: no copy has the same inode made at the same instant. The
// device number counts only where the file system keeps no time of birth, because it can change
// when a machine starts again.
struct FileIdentity {
    uint64_t inode;
    uint64_t device;            // 0 with a time of birth
    int64_t birth_nanoseconds;  // since 1970; without a time of birth, that of the last change

    friend constexpr bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Whose state it is.
struct Origin {
    uint64_t system_identifier;
    uint32_t timeline;
    FileIdentity identity;

    friend constexpr bool operator==(const Origin&, const Origin&) = default;
};

// A secret, as others may know it: its fingerprint (pg/secret/secret.h) and the first second that
// is its own, 0 of the first secret.
struct SecretRecord {
    uint64_t fingerprint;
    Second from;

    friend constexpr bool operator==(const SecretRecord&, const SecretRecord&) = default;
};

// Those of a ring, oldest first.
struct SecretRecords {
    uint32_t count;  // 0 without a secret
    SecretRecord records[kMaxGenerations];
};

// Fingerprint and time in the text forms that people, coordinators and databases have: 16
// lower-case hexadecimal digits; those of a ring separated by blanks, from the second on each with
// "@" and the Unix second from which on it is in use. Terminated; the length is returned.
inline constexpr size_t kFingerprintText = 16;
inline constexpr size_t kMaxFingerprintsText =
    kMaxGenerations * (kFingerprintText + 1) + (kMaxGenerations - 1) * 11;
size_t FormatFingerprint(uint64_t fingerprint, char buffer[kFingerprintText + 1]) noexcept;
size_t FormatFingerprints(const SecretRecords& records, char buffer[kMaxFingerprintsText]) noexcept;

enum class SecretsChange : uint8_t {
    kNone,     // nothing that was issued is concerned
    kOther,    // other secrets altogether: what was issued no longer decodes
    kRefused,  // secrets that would give what was issued another meaning
};

// What it means that a server that may have issued identifiers of the seconds before `end` under
// the ring `before` goes on under the ring `after`. Below `end` the ring must stay as it is: a
// generation that begins later may come, go and be moved. Only a server that never changed its
// secret may get another one altogether.
SecretsChange CompareSecrets(const SecretRecords& before, const SecretRecords& after,
                             Second end) noexcept;

// What is left of the knowledge that the ring `before` lacked a secret from the second
// `differs_from` on, 0 for none, when the ring is `after`: 0 once it has got another secret from
// that second on than it had there. Whether that is the right one, a coordinator says.
Second DiffersFrom(Second differs_from, const SecretRecords& before,
                   const SecretRecords& after) noexcept;

// Whether a ring that lacks a secret from the second `decode_horizon` on reads this number as the
// whole ring does. The numbers that stand for seconds belong to the first secret.
constexpr bool CertainlyRead(const Layout& layout, uint64_t raw, Second decode_horizon) noexcept {
    RANDFLAKE_ASSERT(decode_horizon >= Second{0});
    const Fields fields = layout.Unpack(raw);
    return layout.Before(fields.timestamp, decode_horizon) || layout.StandsForSecond(fields);
}

// A server that runs is to go on under the ring `after` instead of `before`.
struct Reload {
    SecretRecords before;  // none: its secrets were lost in a crash
    SecretRecords after;
    bool issues;        // whether it makes identifiers, or would if it were asked
    bool leased;        // under leased node ids
    Second leases_end;  // with these, the last end of its leases

    // The latest that this server's clock shows or, unless it was set back, would show; and the
    // tolerated difference of clocks.
    WallMs wall_ms;
    Ms skew;

    // Whether the state on disk must be known: secrets are added that have not begun anywhere.
    constexpr bool NeedsState() const {
        return issues && before.count > 0 && after.count > before.count;
    }
};

enum class ReloadError : uint8_t {
    kNone,
    kNotGrown,  // secrets may be added behind the last one, and nothing else may change
    kTooEarly,  // an added one would own a second in which identifiers may have been made
    kRefused,   // it made identifiers under others; see CompareSecrets
};

struct ReloadPlan {
    ReloadError error;
    uint32_t secret;  // with kNotGrown and kTooEarly: which of `after`, counted from 0
    Second earliest;  // with kTooEarly: the first second that is possible
};

// The values that the tolerated difference of clocks has had, in milliseconds: they can be changed
// while a server runs.
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

// How far the written end is set ahead of the clock's second. A crash costs at most this much. The
// window is extended in its last second, so there is one write in two seconds.
inline constexpr Seconds kWindowSeconds = 3;

// Node ranges a data directory has used, the current one first. When more were used than there is
// room for, the last two that the server is not configured with become one that covers both.
inline constexpr uint32_t kMaxWrittenEnds = 16;
static_assert(kMaxWrittenEnds >= kMaxRanges + 2);

// A clean stop of a server with static node ids: when.
struct Stop {
    // The boot of the machine, with which its uptime begins, mixed with what every run of
    // PostgreSQL in the directory changes, also one without this library: the place of the last
    // checkpoint. 0: not known.
    uint64_t boot[2];
    UptimeMs uptime_ms;
    WallMs wall_ms;
    NodeRange nodes;  // all that the server was configured with; none: no stop is recorded

    friend constexpr bool operator==(const Stop&, const Stop&) = default;
};

// One attempt to write the state. A run is the life of one shared memory: it draws a random number
// and counts from there, failed attempts too, since what they wrote may be seen later. The number
// goes to the marker once the state is durable, and before anything rests on it. So while the
// marker shows `mark` or still `follows`, nothing that was used rests on a later state than this.
struct WriteRecord {
    uint64_t mark;     // 0: none; a state without says nothing, as if there were no file
    uint64_t follows;  // that the marker showed before; 0: there was none

    uint64_t postmaster;  // the random number of the one whose run this is
    uint64_t boot[2];     // of the machine; 0: its postmaster did not have the directory's lock
    UptimeMs uptime_ms;   // at the attempt

    friend constexpr bool operator==(const WriteRecord&, const WriteRecord&) = default;
};

// The marker of the last write in a directory (pg/window/run_marker.h): its number in 8 bytes, in
// the machine's order, since it never leaves the machine. 0 when it is no marker.
inline constexpr size_t kRunMarkerBytes = 8;
uint64_t ParseRunMarker(const uint8_t* bytes, size_t length) noexcept;

// A random number that its holder chooses for each acquisition. A request that names it with the id
// of the lease comes from the holder of that very lease.
struct Incarnation {
    uint64_t words[2];

    friend constexpr bool operator==(const Incarnation&, const Incarnation&) = default;
};

// As its holder keeps it, in memory and on disk; see core/lease/lease_holder.h.
struct Lease {
    int64_t id;  // 0: no lease
    Incarnation incarnation;
    NodeRange nodes;
    Second start;
    Second end;    // exclusive
    bool refused;  // the coordinator renews it no more

    // When the coordinator was asked, and when the lease ends if its start was then. It may start
    // later, so it never ends earlier, whatever the clocks show.
    SteadyMs asked_at_ms;
    SteadyMs lasts_until_ms;

    friend constexpr bool operator==(const Lease&, const Lease&) = default;

    // Of the last grant or renewal: how long it was then to its end.
    constexpr Ms length() const noexcept {
        RANDFLAKE_ASSERT(lasts_until_ms >= asked_at_ms);
        return lasts_until_ms - asked_at_ms;
    }
};

// The one whose node ids are in use, and the one that follows.
inline constexpr uint32_t kMaxLeases = 2;

// The boot as Linux tells it, a UUID in lower case and a line break. Zeros when it is none.
inline constexpr size_t kBootIdText = 37;
void ParseBootId(const char* text, size_t length, uint64_t boot[2]) noexcept;

struct WindowState {
    Origin origin;
    SecretRecords secrets;  // under which the server that wrote this issued
    // The first second of a secret that a coordinator said this server lacks, by those above; 0:
    // none. See DiffersFrom.
    Second differs_from;
    SkewRange skew;  // from the start of the server that wrote this; with a stop, the smallest is
                     // that then
    Stop stop;       // of the server that wrote ends[0]; then that end is exact
    WriteRecord write;
    // Of the run that wrote this, which took or resumed them. Up to the end of each, `secrets` are
    // those under which it was granted.
    Lease leases[kMaxLeases];
    // The first second after the hold-off of this directory's last start that was not proven.
    // Before it, others may have used any node ids that they had in common.
    Second floor;
    // When a start found that this directory is a copy. Stays until the operator acknowledges it;
    // a copy of this directory is found anew. 0: it is none, or it was acknowledged.
    Second copied_at;
    uint32_t end_count;
    WrittenEnd ends[kMaxWrittenEnds];

    // The first second that this state allows for all of these node ids.
    Second EndFor(const NodeRange& nodes) const noexcept;

    // The first second at which a window of these static node ids may open.
    Second OpensAt(const NodeRange& nodes) const noexcept;

    // The first second in which nothing was issued under any node ids.
    Second LastEnd() const noexcept;
    // The first second that none of the leases reaches.
    Second LeasesEnd() const noexcept;

    // To be written before the window of these node ids is opened, or its end moved: records the
    // end in first place. A window that opens begins at or beyond every end that was written for
    // its node ids. `configured` are the server's ranges, whose ends are never merged.
    void Announce(const NodeRange& nodes, const Window& window,
                  const NodeRanges& configured = {}) noexcept;

    // Records that others may have used these node ids before `end`.
    void UsedByOthers(const NodeRange& nodes, Second end, const NodeRanges& configured) noexcept;

    // To be written when the window that was announced last is over, and nothing was or will be
    // used in it from `end` on; 0: nothing at all. Takes back what was announced for this very
    // window. What was written before it opened stays.
    void TakeBack(Second end) noexcept;

    // No end for any node id ever falls but by TakeBack, and by that not below the one that was
    // written when the window opened. This is of the window announced last, which has ends[0]; not
    // on disk, so a state that was read takes nothing back.
    Second announced_start{};  // 0: there is none, or it was taken back
    Second end_before{};       // of its node ids, when it opened

    // Where the end of these node ids is; room is made for those that have none.
    uint32_t PlaceOf(const NodeRange& nodes, const NodeRanges& configured) noexcept;
};

// A head, the secrets, the written ends and a checksum. What is not used is zero.
inline constexpr size_t kWindowStateHeadBytes = 164;
inline constexpr size_t kWrittenLeaseBytes = 60;
inline constexpr size_t kWindowStateBytes = kWindowStateHeadBytes +
                                            kMaxLeases * kWrittenLeaseBytes + 12 * kMaxGenerations +
                                            12 * kMaxWrittenEnds + 4;

enum class StateError : uint8_t {
    kNone,
    kMissing,      // no file, and no sign that there ever was one
    kLost,         // no file, but a sign that there was one
    kWrongLength,  // truncated or too long
    kWrongMagic,
    kWrongVersion,
    kWrongChecksum,
    kWrongContent,  // checksum right, content impossible
};

// English for messages, without a full stop.
const char* StateErrorText(StateError error) noexcept;

// Little-endian bytes, the last four being the CRC-32C (RFC 3720, appendix B.4) of the others.
void EncodeWindowState(const WindowState& state, uint8_t bytes[kWindowStateBytes]) noexcept;
StateError DecodeWindowState(const uint8_t* bytes, size_t length, WindowState* state) noexcept;

// What was found on disk, in words for the log; see PlanStart.
enum class Finding : uint8_t {
    kOwn,            // this directory's own state
    kFirstUse,       // the directory was never used for identifiers
    kUnreadable,     // corrupt, truncated or lost
    kOtherSystem,    // another system identifier
    kOtherTimeline,  // promotion or point-in-time recovery
    kCopied,         // the directory or the file is a copy
};

// A moment by both clocks of Stop.
struct Moment {
    UptimeMs uptime_ms;
    WallMs wall_ms;
};

// A start of a server, as far as it matters here.
struct Start {
    Origin origin;
    SecretRecords secrets;
    NodeRange nodes;            // all that it is configured with; none where they are leased
    uint32_t leased_nodes = 0;  // how many it leases; 0: none

    // The same postmaster has run this directory before: its shared memory was lost in a crash.
    bool after_crash_restart = false;

    // As Stop has it; and the moment from which the hold-off counts, see SetTime.
    uint64_t boot[2];
    UptimeMs uptime_ms;
    WallMs wall_ms;

    uint64_t marked;  // by the last write in this directory in this boot; 0: not known
    SkewRange skew;   // tolerated difference of clocks, from the start of the server on

    // As WriteRecord has them; and the present.
    uint64_t postmaster = 0;
    uint64_t machine_boot[2] = {};
    UptimeMs now_ms{};
    bool locked =
        false;  // the postmaster has the lock of the directory, and none of its runs goes on
};

// Sets the moment from which the hold-off counts. That is the start of the server, or the present
// if the server may have been promoted since: until then another one ran. A wall clock that was
// ahead at the start and was set right since shows the present, too: others ended before the start.
void SetTime(const Moment& started, const Moment& now, bool may_be_promoted, Start* start) noexcept;

struct StartPlan {
    Finding finding;
    bool proven;  // no other server can have used the node ids since the stop
    SecretsChange secrets;
    UptimeMs opens_at_ms;   // windows may open after this uptime; see MayOpen
    Second held_off_until;  // the first second after the hold-off, proven or not
    WindowState state;      // what to go on from: origin, secrets, ends, floor; no stop recorded
};

// See WindowState::copied_at. `found` is on disk in the directory `own`; it is `now`.
Second CopiedAt(const WindowState& found, const Origin& own, Second now) noexcept;

// Decides from where a server with static node ids starts. `error` says what is wrong with the
// state on disk; `found` counts with kNone only.
//
// A window opens at or beyond the written end of each of its node ids, and when
// the tolerated difference has passed since the start by the wall clock, so that seconds used by
// others lie before it, and by the uptime, so that the proof below holds whatever the wall clock
// does.
//
// What others used lies before the hold-off of the start that followed them, by a clock that was
// right then. The clock may be set back afterwards. So that second stays as the floor of every
// window that opens later, until a start of another postmaster holds off by its clock.
//
// It need not wait if it is proven that no other server can have used the node ids since this one's
// own stop. Every other one holds off from a start of its own, which came after that stop. So none
// can have issued anything if less than the tolerated difference passed from the stop to this
// start. The stop must be of this directory, this boot and all of these node ids, and the last
// write of all: the disk may have been rolled back to it, and another run opened a window since.
// Nor may PostgreSQL have run here otherwise since: a coordinator may have leased the node ids
// meanwhile, which were not in use. Both clocks are asked, because the uptime of a virtual machine
// leaves out the time in which its host paused it.
//
// The tolerated difference may have been another one for the others, who hold off by theirs, and
// while they used their clocks. Of the values that this server had in the run that stopped and has
// had since its start, the proof goes by the smallest, and the hold-off by the largest.
//
// No window may open at all while the plan refuses the secrets.
StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) noexcept;

// Whether a start goes on with a lease that it found in the state on disk, at or beyond the written
// end of its node ids. Not in recovery. What each condition is for is in docs/design.md, "Who may
// go on with a lease".
bool Resumes(const WindowState& found, const Start& start, const Lease& lease) noexcept;

// Whether a window may open at this second and uptime; see WindowState::OpensAt and StartPlan.
constexpr bool MayOpen(Second opens_at, UptimeMs opens_at_ms, Second second,
                       UptimeMs uptime_ms) noexcept {
    return second >= opens_at && uptime_ms > opens_at_ms;
}

// The range that was in use last; the first one if none was.
uint32_t LastRange(const WindowState& state, const NodeRanges& ranges) noexcept;

// The range to go on under at the second `now` in place of the range `in_use`, whose words and
// written end are ahead of the clock: of those that may open a window now, the one that was used
// longest ago, the lowest one of those never used. Of each range, `earliest` is the first second
// that the slots allow for its next window (generator.h). `ranges.count` when there is none.
uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                     const Second (&earliest)[kMaxRanges], Second now) noexcept;

// PlanStart for a server that leases node ids: the first second at which a window of these may
// open. The lease says that no other server uses them; this directory itself may have used them as
// static ones, by a clock that was ahead.
Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                    Second held_off_until) noexcept;

// Decides whether a server that runs takes secrets; `state` is null while it is not known. The
// caller keeps windows from being opened and extended until the secrets are added.
//
// From when on an added secret may begin: always at or beyond every written end, so nothing that
// this server made is concerned; under static node ids, after the present + skew, so nothing that
// others made by their clocks; under leased ones, at or after the last lease end. There, the
// coordinator grants no second about whose secret it and the holder do not agree. So a server that
// stopped for that may get the secret late.
ReloadPlan PlanReload(const Reload& reload, const WindowState* state) noexcept;

}  // namespace randflake

#endif
