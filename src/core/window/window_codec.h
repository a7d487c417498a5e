// Encodes and decodes the files that keep the state of windows: the window file and the marker.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/window/window_state.h"

namespace randflake {

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

// The marker of a directory (pg/window/run_marker.h) contains the `number` of the last write, in
// the machine's byte order. ParseRunMarker returns 0 for a malformed marker.
inline constexpr size_t kRunMarkerBytes = 8;
uint64_t ParseRunMarker(const uint8_t* bytes, size_t length) noexcept;

// Parses Linux's boot id: a lower-case UUID and a line break. Any other text sets `boot` to zeros.
inline constexpr size_t kBootIdText = 37;
void ParseBootId(const char* text, size_t length, uint64_t boot[2]) noexcept;

}  // namespace randflake
