// Permutes the 53-bit numbers, which a JavaScript number holds exactly.
//
// The permutation is a Feistel network of ten rounds over a left half of 26 and a right half of 27
// bits. Its round function is SipHash-2-4. Sources:
//
//   Luby, Rackoff, "How to Construct Pseudorandom Permutations from Pseudorandom Functions",
//     SIAM Journal on Computing 17, 1988
//   Domains of any size: Black, Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002
//   10 rounds: Patarin, "Security of Random Feistel Schemes with 5 or More Rounds", CRYPTO 2004
//
// In each round, SipHash hashes the round's number and one of the two halves. Without the round's
// number, all even rounds would be the same function, and so would all odd rounds. Slide attacks
// exploit such a repetition.

#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/identifier/siphash.h"

namespace randflake {

inline constexpr int kFeistelRounds = 10;  // even

// Tests use narrower halves to enumerate small domains.
template <int LeftBits, int RightBits> struct Feistel {
    static_assert(LeftBits >= 1 && LeftBits <= 32 && RightBits >= 1 && RightBits <= 32);
    static constexpr uint64_t kLeftMask = (uint64_t{1} << LeftBits) - 1;
    static constexpr uint64_t kRightMask = (uint64_t{1} << RightBits) - 1;
    static constexpr int kBits = LeftBits + RightBits;
    static constexpr uint64_t kMax = ~uint64_t{0} >> (64 - kBits);

    // Takes and returns a number of kBits bits.
    static constexpr uint64_t Permute(const SipKey& key, uint64_t number) noexcept {
        RANDFLAKE_ASSERT(number <= kMax);
        uint64_t left = number >> RightBits, right = number & kRightMask;
        for (uint64_t round = 0; round < kFeistelRounds; round += 2) {
            left ^= Value(key, round, right) & kLeftMask;
            right ^= Value(key, round + 1, left) & kRightMask;
        }
        return left << RightBits | right;
    }

    // Inverts Permute: runs the same rounds in reverse order. Each round is its own inverse.
    static constexpr uint64_t Unpermute(const SipKey& key, uint64_t number) noexcept {
        RANDFLAKE_ASSERT(number <= kMax);
        uint64_t left = number >> RightBits, right = number & kRightMask;
        for (uint64_t round = kFeistelRounds; round > 0; round -= 2) {
            right ^= Value(key, round - 1, left) & kRightMask;
            left ^= Value(key, round - 2, right) & kLeftMask;
        }
        return left << RightBits | right;
    }

private:
    static constexpr uint64_t Value(const SipKey& key, uint64_t round, uint64_t half) noexcept {
        RANDFLAKE_ASSERT(round < kFeistelRounds && half >> 32 == 0);
        const uint64_t message = round << 32 | half;
        return SipHash(key, &message, 1);
    }
};

using Feistel53 = Feistel<26, 27>;

inline constexpr uint64_t kMaxFeistel53 = Feistel53::kMax;

}  // namespace randflake
