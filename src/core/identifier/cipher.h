// Implements SPARX-64/128, the block cipher that turns a raw number into an identifier.
//
// Source: Dinu, Perrin, Udovenko, Velichkov, Großschädl, Biryukov, "Design Strategies for ARX with
// Provable Bounds: SPARX and LAX", ASIACRYPT 2016, section 4.
//
// The cipher reads a number's 8 little-endian bytes as four big-endian 16-bit words, and the key as
// eight such words. The reference implementation (gosuda/randflake) has the same byte order.

#pragma once

#include <cstddef>
#include <cstdint>

namespace randflake {

inline constexpr size_t kKeyBytes = 16;

struct Key {
    uint8_t bytes[kKeyBytes];

    friend constexpr bool operator==(const Key&, const Key&) = default;
};

inline constexpr int kSteps = 8;
inline constexpr int kRoundsPerStep = 3;
inline constexpr int kBranches = 2;
inline constexpr int kSubkeyGroups = kBranches * kSteps + 1;

struct KeySchedule {
    uint16_t subkeys[kSubkeyGroups][2 * kRoundsPerStep];
};

KeySchedule ExpandKey(const Key& key) noexcept;

uint64_t Encrypt(const KeySchedule& schedule, uint64_t raw) noexcept;
uint64_t Decrypt(const KeySchedule& schedule, uint64_t id) noexcept;

// Reads a key of 32 hexadecimal digits in upper or lower case. A failure leaves *key unchanged.
bool ParseKey(const char* text, size_t length, Key* key) noexcept;

}  // namespace randflake
