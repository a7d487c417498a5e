// What a server with a static node range remembers about its windows, as bytes and as a decision.
//
// The state says up to which second ("written end") identifiers may have been issued under which
// node ids. It is written before the window it announces is used, so whatever happens to the
// server, nothing at or beyond the written end was ever issued, and a server that starts there
// repeats nothing. That holds only for the data directory that wrote it: every field beside the
// ends serves to notice that this is another one.

#ifndef RANDFLAKE_CORE_WINDOW_STATE_H
#define RANDFLAKE_CORE_WINDOW_STATE_H

#include <cstddef>
#include <cstdint>

namespace randflake {

struct NodeRange {
    uint32_t first;
    uint32_t count;

    constexpr bool Overlaps(const NodeRange& other) const {
        return first < other.first + other.count && other.first < first + count;
    }
    friend constexpr bool operator==(const NodeRange&, const NodeRange&) = default;
};

// Seconds since the epoch; the end is the first second not announced.
struct WrittenEnd {
    NodeRange nodes;
    uint32_t end;

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
    uint64_t fingerprint;  // of the secret, see secret.cpp; 0 without one
    FileIdentity identity;

    friend constexpr bool operator==(const Origin&, const Origin&) = default;
};

// Node ranges a data directory has used, the current one first. When more were used than there is
// room for, the last two become one that covers both.
inline constexpr uint32_t kMaxWrittenEnds = 16;

struct WindowState {
    Origin origin;
    bool clean;  // written by a clean stop: the end is exact
    uint32_t end_count;
    WrittenEnd ends[kMaxWrittenEnds];

    // The first second that this state allows for these node ids.
    uint32_t EndFor(const NodeRange& nodes) const noexcept;

    // Records `end` for `nodes` in first place. Every other range keeps what was written for it.
    void SetEnd(const NodeRange& nodes, uint32_t end) noexcept;
};

inline constexpr size_t kWindowStateBytes = 72 + 12 * kMaxWrittenEnds + 4;

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

struct StartPlan {
    Finding finding;
    uint32_t opens_at;  // the window may open at this second, not before
    bool other_key;     // written under another secret
    WindowState state;  // what to go on from: origin and ends; nothing announced yet
};

// Decides from where a server starts.
//
//   error, found   what is on disk (`found` counts with error kNone only)
//   origin, nodes  this server
//   started_at     second at which it started
//   held_off       first second beyond the clock plus the tolerated clock difference
//   skew           tolerated clock difference, seconds, rounded up
//
// Own state resumes at the written end, or, for node ids it does not know, at the second after the
// server's start. State of another server or directory, or none that can be read, holds off: beyond
// the clock and the written end, because node ids it does not know may have been used since it was
// copied. First use holds off too: the directory may be a copy of one that was not used yet. On
// timeline 1 nothing was ever promoted, so there the time since the server's start counts, unless
// the clock was set back since.
StartPlan PlanStart(StateError error, const WindowState& found, const Origin& origin,
                    const NodeRange& nodes, uint32_t started_at, uint32_t held_off,
                    uint32_t skew) noexcept;

}  // namespace randflake

#endif
