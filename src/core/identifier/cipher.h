// Declares SPARX-64/128, the block cipher that makes an identifier of a raw number.
//
// Source: Dinu, Perrin, Udovenko, Velichkov, Großschädl, Biryukov, "Design Strategies for ARX with
// Provable Bounds: SPARX and LAX", ASIACRYPT 2016, section 4: 8 steps of 3 SPECKEY rounds on two
// branches of 32 bits, a linear layer between steps, 17 groups of subkeys.
//
// The byte order follows the reference implementation, gosuda/randflake. The number's 8
// little-endian bytes make four big-endian 16-bit words. The key is eight such words.
//
// Encrypt and Decrypt are inverse bijections of the 64-bit numbers for every key.

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

// Reads a key from exactly 32 hexadecimal digits of either case. Returns false for any other text,
// and then leaves *key untouched.
bool ParseKey(const char* text, size_t length, Key* key) noexcept;

}  // namespace randflake
