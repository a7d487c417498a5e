// SipHash-2-4 is a pseudorandom function: without the key, its values look random.
//
// Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012. The messages here
// consist of whole 8-byte words. As in the paper, words are little-endian.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace randflake {

inline constexpr size_t kSipKeyBytes = 16;

struct SipKey {
    uint64_t k0;
    uint64_t k1;

    static constexpr SipKey FromBytes(const uint8_t* bytes) noexcept {
        SipKey key{};
        for (size_t i = 0; i < kSipKeyBytes; i++)
            (i < 8 ? key.k0 : key.k1) |= uint64_t{bytes[i]} << i % 8 * 8;
        return key;
    }
};

namespace siphash {

inline constexpr int kRoundsPerWord = 2;
inline constexpr int kFinalRounds = 4;

struct State {
    uint64_t v0, v1, v2, v3;

    constexpr void Rounds(int count) noexcept {
        for (int i = 0; i < count; i++) {
            v0 += v1;
            v2 += v3;
            v1 = std::rotl(v1, 13) ^ v0;
            v3 = std::rotl(v3, 16) ^ v2;
            v0 = std::rotl(v0, 32);
            v2 += v1;
            v0 += v3;
            v1 = std::rotl(v1, 17) ^ v2;
            v3 = std::rotl(v3, 21) ^ v0;
            v2 = std::rotl(v2, 32);
        }
    }

    constexpr void Absorb(uint64_t word) noexcept {
        v3 ^= word;
        Rounds(kRoundsPerWord);
        v0 ^= word;
    }
};

constexpr State Begin(const SipKey& key) noexcept {
    return {key.k0 ^ 0x736f6d6570736575, key.k1 ^ 0x646f72616e646f6d, key.k0 ^ 0x6c7967656e657261,
            key.k1 ^ 0x7465646279746573};
}

}  // namespace siphash

constexpr uint64_t SipHash(const SipKey& key, const uint64_t* words, size_t count) noexcept {
    siphash::State state = siphash::Begin(key);
    for (size_t i = 0; i < count; i++) state.Absorb(words[i]);
    // SipHash appends a word whose highest byte is the message's length in bytes, modulo 256.
    state.Absorb(uint64_t{count * sizeof *words} << 56);
    state.v2 ^= 0xff;
    state.Rounds(siphash::kFinalRounds);
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace randflake
