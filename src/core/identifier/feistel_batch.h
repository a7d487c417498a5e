// Computes Feistel53 for kBatchLength numbers at once, with the steps of feistel.h and siphash.h.
// Only cipher_batch.cpp includes this file.

#pragma once

#include <type_traits>
#include <utility>

#include "core/identifier/cipher_batch.h"
#include "core/identifier/feistel.h"

namespace randflake::feistel_batch {

template <typename Lane, int Bytes> struct Lanes {
    typedef Lane Type __attribute__((vector_size(Bytes)));
};
template <int Bytes> using Numbers = typename Lanes<uint64_t, Bytes>::Type;

#define ALWAYS_INLINE [[gnu::always_inline]] inline

template <int Bits, typename V> ALWAYS_INLINE void RotateLeft(V& v) {
    v = v << Bits | v >> (64 - Bits);
}

#if defined(__x86_64__) && !defined(__clang__)
// GCC does not generate this AVX-512 instruction by itself.
template <int Bits> ALWAYS_INLINE void RotateLeft(Numbers<64>& v) {
    asm("vprolq %2, %1, %0" : "=v"(v) : "v"(v), "i"(Bits));
}

// Rotates each number by shuffling its parts, in one or two instructions instead of three.
template <int Bits, int Bytes> ALWAYS_INLINE void Shuffle(Numbers<Bytes>& v) {
    using Part = std::conditional_t<Bits == 32, uint32_t, uint16_t>;
    using Parts = typename Lanes<Part, Bytes>::Type;
    constexpr Part kPerNumber = 64 / Bits;
    Parts order;
    for (Part i = 0; i < Bytes * 8 / Bits; i++)
        order[i] = i / kPerNumber * kPerNumber + (i + kPerNumber - 1) % kPerNumber;
    v = reinterpret_cast<Numbers<Bytes>>(__builtin_shuffle(reinterpret_cast<Parts>(v), order));
}
template <> ALWAYS_INLINE void RotateLeft<32>(Numbers<32>& v) { Shuffle<32, 32>(v); }
template <> ALWAYS_INLINE void RotateLeft<16>(Numbers<32>& v) { Shuffle<16, 32>(v); }
template <> ALWAYS_INLINE void RotateLeft<32>(Numbers<16>& v) { Shuffle<32, 16>(v); }
template <> ALWAYS_INLINE void RotateLeft<16>(Numbers<16>& v) { Shuffle<16, 16>(v); }
#endif

template <int Bytes> struct State { Numbers<Bytes> v0, v1, v2, v3; };

template <int Bytes> ALWAYS_INLINE void SipRound(State<Bytes>& s) {
    s.v0 += s.v1;
    s.v2 += s.v3;
    RotateLeft<13>(s.v1);
    RotateLeft<16>(s.v3);
    s.v1 ^= s.v0;
    s.v3 ^= s.v2;
    RotateLeft<32>(s.v0);
    s.v2 += s.v1;
    s.v0 += s.v3;
    RotateLeft<17>(s.v1);
    RotateLeft<21>(s.v3);
    s.v1 ^= s.v2;
    s.v3 ^= s.v0;
    RotateLeft<32>(s.v2);
}

// Sets `s` to the state in which the message's rounds begin. The message is one word.
template <int Bytes>
ALWAYS_INLINE void Begin(const siphash::State& begin, const Numbers<Bytes>& message,
                         State<Bytes>& s) {
    s.v0 = Numbers<Bytes>{} + begin.v0;
    s.v1 = Numbers<Bytes>{} + begin.v1;
    s.v2 = Numbers<Bytes>{} + begin.v2;
    s.v3 = message ^ begin.v3;
}

// SipHash ends a message with a word that contains the message's length, here 8 bytes.
inline constexpr uint64_t kLengthWord = uint64_t{8} << 56;

// One call interleaves several vectors, as in cipher_batch.cpp. `Group` contains their indices.
template <int Bytes, int... Group>
ALWAYS_INLINE void Round(const siphash::State& begin, uint64_t round, const Numbers<Bytes>* from,
                         Numbers<Bytes>* to, uint64_t mask, std::integer_sequence<int, Group...>) {
    State<Bytes> s[sizeof...(Group)]{};
    (Begin<Bytes>(begin, from[Group] | round << 32, s[Group]), ...);
#pragma GCC unroll 8
    for (int i = 0; i < siphash::kRoundsPerWord; i++) (SipRound(s[Group]), ...);
    ((s[Group].v0 ^= from[Group] | round << 32, s[Group].v3 ^= kLengthWord), ...);
#pragma GCC unroll 8
    for (int i = 0; i < siphash::kRoundsPerWord; i++) (SipRound(s[Group]), ...);
    ((s[Group].v0 ^= kLengthWord, s[Group].v2 ^= 0xff), ...);
#pragma GCC unroll 8
    for (int i = 0; i < siphash::kFinalRounds; i++) (SipRound(s[Group]), ...);
    ((to[Group] ^= (s[Group].v0 ^ s[Group].v1 ^ s[Group].v2 ^ s[Group].v3) & mask), ...);
}

template <int Bytes, bool kInverse, int... Group>
ALWAYS_INLINE void Permute(const SipKey& key, const uint64_t* numbers, uint64_t* permuted,
                           std::integer_sequence<int, Group...> groups) {
    constexpr int kCount = Bytes / 8, kTogether = kCount * sizeof...(Group);
    const siphash::State begin = siphash::Begin(key);
    for (int i = 0; i < kBatchLength; i += kTogether) {
        Numbers<Bytes> left[sizeof...(Group)], right[sizeof...(Group)];
        (__builtin_memcpy(&right[Group], numbers + i + Group * kCount, Bytes), ...);
        ((left[Group] = right[Group] >> 27, right[Group] &= Feistel53::kRightMask), ...);
        for (int j = 0; j < kFeistelRounds; j += 2) {
            const auto even = static_cast<uint64_t>(kInverse ? kFeistelRounds - 2 - j : j);
            if (kInverse) Round<Bytes>(begin, even + 1, left, right, Feistel53::kRightMask, groups);
            Round<Bytes>(begin, even, right, left, Feistel53::kLeftMask, groups);
            if (!kInverse)
                Round<Bytes>(begin, even + 1, left, right, Feistel53::kRightMask, groups);
        }
        ((right[Group] |= left[Group] << 27), ...);
        (__builtin_memcpy(permuted + i + Group * kCount, &right[Group], Bytes), ...);
    }
}

}  // namespace randflake::feistel_batch
