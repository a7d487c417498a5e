// A permutation of the numbers of 53 bits, which are those that a JavaScript number holds exactly.
//
// A Feistel network of ten rounds over a left half of 26 and a right half of 27 bits, with
// SipHash-2-4 as round function. Sources: Luby, Rackoff, "How to Construct Pseudorandom
// Permutations from Pseudorandom Functions", SIAM Journal on Computing 17, 1988; for domains of any
// size Black, Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002; for the number of
// rounds Patarin, "Security of Random Feistel Schemes with 5 or More Rounds", CRYPTO 2004.
//
// A round has its number in the message, above the half that it reads. Without it, even rounds
// would be one function and odd ones another, and what slides through them is easy to find.

#ifndef RANDFLAKE_CORE_IDENTIFIER_FEISTEL_H
#define RANDFLAKE_CORE_IDENTIFIER_FEISTEL_H

#include <cstdint>

#include "core/identifier/siphash.h"

namespace randflake {

inline constexpr int kFeistelRounds = 10;

// Widths are arguments so that tests see every number of small ones.
template <int LeftBits, int RightBits>
struct Feistel {
    static_assert(LeftBits >= 1 && LeftBits <= 32 && RightBits >= 1 && RightBits <= 32);
    static constexpr uint64_t kLeftMask = (uint64_t{1} << LeftBits) - 1;
    static constexpr uint64_t kRightMask = (uint64_t{1} << RightBits) - 1;
    static constexpr int kBits = LeftBits + RightBits;

    // Of a number of kBits bits; the result is one, too.
    static constexpr uint64_t Permute(const SipKey& key, uint64_t number) noexcept {
        uint64_t left = number >> RightBits, right = number & kRightMask;
        for (uint64_t round = 0; round < kFeistelRounds; round++)
            Round(key, round, &left, &right);
        return left << RightBits | right;
    }

    // The inverse: a round undoes itself.
    static constexpr uint64_t Unpermute(const SipKey& key, uint64_t number) noexcept {
        uint64_t left = number >> RightBits, right = number & kRightMask;
        for (uint64_t round = kFeistelRounds; round-- > 0;)
            Round(key, round, &left, &right);
        return left << RightBits | right;
    }

private:
    static constexpr void Round(const SipKey& key, uint64_t round, uint64_t* left,
                                uint64_t* right) noexcept {
        const bool even = round % 2 == 0;
        const uint64_t message = round << 32 | (even ? *right : *left);
        const uint64_t value = SipHash(key, &message, 1);
        if (even)
            *left ^= value & kLeftMask;
        else
            *right ^= value & kRightMask;
    }
};

using Feistel53 = Feistel<26, 27>;

inline constexpr uint64_t kMaxFeistel53 = (uint64_t{1} << Feistel53::kBits) - 1;

}  // namespace randflake

#endif
