// The cipher uses no tables and does not branch on the key or the number.

#include "core/identifier/cipher.h"

#include <charconv>
#include <utility>

#include "core/base/assert.h"

namespace randflake {
namespace {

// The paper calls each 32-bit half of the block a branch. A branch consists of two 16-bit words.
struct Branch {
    uint16_t x, y;
};

constexpr uint16_t RotateLeft(uint16_t value, int bits) {
    return static_cast<uint16_t>(value << bits | value >> (16 - bits));
}

// Computes the paper's round function SPECKEY without the key addition.
constexpr void Round(Branch& b) {
    b.x = static_cast<uint16_t>(RotateLeft(b.x, 9) + b.y);
    b.y = static_cast<uint16_t>(RotateLeft(b.y, 2) ^ b.x);
}

constexpr void InverseRound(Branch& b) {
    b.y = RotateLeft(static_cast<uint16_t>(b.y ^ b.x), 14);
    b.x = RotateLeft(static_cast<uint16_t>(b.x - b.y), 7);
}

constexpr void AddKey(Branch& b, const uint16_t* subkey) {
    b.x ^= subkey[0];
    b.y ^= subkey[1];
}

// The linear layer XORs a function of the left branch into the right branch.
constexpr void MixInto(const Branch& left, Branch& right) {
    const uint16_t t = RotateLeft(static_cast<uint16_t>(left.x ^ left.y), 8);
    right.x = static_cast<uint16_t>(right.x ^ left.x ^ t);
    right.y = static_cast<uint16_t>(right.y ^ left.y ^ t);
}

// Word i of a number consists of its bytes 2i and 2i + 1, swapped.
constexpr Branch LoadBranch(uint64_t number, int index) {
    const auto half = static_cast<uint32_t>(number >> (32 * index));
    return {RotateLeft(static_cast<uint16_t>(half), 8),
            RotateLeft(static_cast<uint16_t>(half >> 16), 8)};
}

constexpr uint64_t Store(const Branch& left, const Branch& right) {
    return uint64_t{RotateLeft(left.x, 8)} | uint64_t{RotateLeft(left.y, 8)} << 16 |
           uint64_t{RotateLeft(right.x, 8)} << 32 | uint64_t{RotateLeft(right.y, 8)} << 48;
}

}  // namespace

KeySchedule ExpandKey(const Key& key) noexcept {
    uint16_t k[8];
    for (int i = 0; i < 8; i++)
        k[i] = static_cast<uint16_t>(key.bytes[2 * i] << 8 | key.bytes[2 * i + 1]);

    KeySchedule schedule{};
    for (int group = 0; group < kSubkeyGroups; group++) {
        for (int i = 0; i < 2 * kRoundsPerStep; i++) schedule.subkeys[group][i] = k[i];

        // Applies the key permutation of figure 6 of the paper.
        Branch first{k[0], k[1]};
        Round(first);
        k[0] = first.x;
        k[1] = first.y;
        k[2] = static_cast<uint16_t>(k[2] + first.x);
        k[3] = static_cast<uint16_t>(k[3] + first.y);
        k[7] = static_cast<uint16_t>(k[7] + group + 1);
        const Branch last{k[6], k[7]};
        for (int i = 7; i >= 2; i--) k[i] = k[i - 2];
        k[0] = last.x;
        k[1] = last.y;
    }
    return schedule;
}

uint64_t Encrypt(const KeySchedule& schedule, uint64_t raw) noexcept {
    Branch left = LoadBranch(raw, 0), right = LoadBranch(raw, 1);
    // Each operation depends on the one before. Unrolling removes the loop counter from this chain.
#pragma GCC unroll 8
    for (int step = 0; step < kSteps; step++) {
        const uint16_t* left_keys = schedule.subkeys[kBranches * step];
        const uint16_t* right_keys = schedule.subkeys[kBranches * step + 1];
#pragma GCC unroll 3
        for (int round = 0; round < kRoundsPerStep; round++) {
            AddKey(left, left_keys + 2 * round);
            Round(left);
            AddKey(right, right_keys + 2 * round);
            Round(right);
        }
        MixInto(left, right);
        std::swap(left, right);
    }
    const uint16_t* whitening = schedule.subkeys[kSubkeyGroups - 1];
    AddKey(left, whitening);
    AddKey(right, whitening + 2);
    RANDFLAKE_ASSERT(Decrypt(schedule, Store(left, right)) == raw);
    return Store(left, right);
}

uint64_t Decrypt(const KeySchedule& schedule, uint64_t id) noexcept {
    Branch left = LoadBranch(id, 0), right = LoadBranch(id, 1);
    const uint16_t* whitening = schedule.subkeys[kSubkeyGroups - 1];
    AddKey(left, whitening);
    AddKey(right, whitening + 2);
#pragma GCC unroll 8
    for (int step = kSteps - 1; step >= 0; step--) {
        const uint16_t* left_keys = schedule.subkeys[kBranches * step];
        const uint16_t* right_keys = schedule.subkeys[kBranches * step + 1];
        std::swap(left, right);
        MixInto(left, right);
#pragma GCC unroll 3
        for (int round = kRoundsPerStep - 1; round >= 0; round--) {
            InverseRound(left);
            AddKey(left, left_keys + 2 * round);
            InverseRound(right);
            AddKey(right, right_keys + 2 * round);
        }
    }
    return Store(left, right);
}

bool ParseKey(const char* text, size_t length, Key* key) noexcept {
    if (length != 2 * kKeyBytes) return false;
    Key parsed;
    for (uint8_t& byte : parsed.bytes) {
        const auto [read_to, error] = std::from_chars(text, text + 2, byte, 16);
        if (error != std::errc{} || read_to != text + 2) return false;
        text += 2;
    }
    *key = parsed;
    return true;
}

}  // namespace randflake
