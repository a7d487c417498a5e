// The templates take the vector width in bytes. VECTOR_PATH instantiates them per instruction set.

#include "core/identifier/cipher_batch.h"

#include <utility>

#include "core/identifier/feistel_batch.h"

#ifdef __aarch64__
#include <arm_neon.h>
#endif

namespace randflake {
namespace {

using feistel_batch::Lanes;
template <int Bytes> using Words = typename Lanes<uint16_t, Bytes>::Type;

// Holds Bytes / 2 blocks. Each vector contains one word of one branch (cipher.cpp), for all blocks.
template <int Bytes> struct Blocks {
    static constexpr int kCount = Bytes / 2;
    Words<Bytes> left_x, left_y, right_x, right_y;
};

template <int Bits, typename V> ALWAYS_INLINE void RotateLeft(V& v) {
    v = v << Bits | v >> (16 - Bits);
}

#if defined(__x86_64__) && !defined(__clang__)
// An AVX-512 VBMI2 instruction shifts a pair of words. If both words are the same, the instruction
// rotates the word. Clang generates this instruction by itself. GCC does not generate this
// instruction, and cannot inline the intrinsic into templates that lack the instruction's target.
template <int Bits> ALWAYS_INLINE void RotateLeft(Words<64>& v) {
    asm("vpshldw %2, %1, %1, %0" : "=v"(v) : "v"(v), "i"(Bits));
}
#endif

#ifdef __aarch64__
// The second shift inserts its bits into the result of the first shift, which saves an OR.
template <int Bits> ALWAYS_INLINE void RotateLeft(Words<16>& v) {
    if constexpr (Bits == 8)
        v = reinterpret_cast<Words<16>>(vrev16q_u8(reinterpret_cast<uint8x16_t>(v)));
    else
        v = vsriq_n_u16(v << Bits, v, 16 - Bits);
}
#endif

// In each lane, exchanges the upper half of `low` with the lower half of `high`.
template <typename Number, int Bytes>
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): low and high, as the operation has it
ALWAYS_INLINE void SwapHalves(Words<Bytes>& low, Words<Bytes>& high) {
    using Numbers = typename Lanes<Number, Bytes>::Type;
    constexpr int kHalf = 4 * sizeof(Number);
    constexpr Number kLower = static_cast<Number>(~Number{0}) >> kHalf;
    const auto a = reinterpret_cast<Numbers>(low), b = reinterpret_cast<Numbers>(high);
    low = reinterpret_cast<Words<Bytes>>((a & kLower) | b << kHalf);
    high = reinterpret_cast<Words<Bytes>>(a >> kHalf | (b & ~kLower));
}

#ifdef __aarch64__
template <> ALWAYS_INLINE void SwapHalves<uint64_t, 16>(Words<16>& low, Words<16>& high) {
    const auto a = reinterpret_cast<uint32x4_t>(low), b = reinterpret_cast<uint32x4_t>(high);
    low = reinterpret_cast<Words<16>>(vtrn1q_u32(a, b));
    high = reinterpret_cast<Words<16>>(vtrn2q_u32(a, b));
}

template <> ALWAYS_INLINE void SwapHalves<uint32_t, 16>(Words<16>& low, Words<16>& high) {
    const Words<16> a = low;
    low = vtrn1q_u16(a, high);
    high = vtrn2q_u16(a, high);
}
#endif

// Converts four vectors of 64-bit numbers to one vector for each 16-bit word, or back. In each
// 64-bit lane, transposes the 4 x 4 words of the four numbers. Words stay in their lane, so the
// transposition needs no shuffles and works in either byte order.
template <int Bytes> ALWAYS_INLINE void Transpose(Blocks<Bytes>& b) {
    SwapHalves<uint64_t, Bytes>(b.left_x, b.right_x);
    SwapHalves<uint64_t, Bytes>(b.left_y, b.right_y);
    SwapHalves<uint32_t, Bytes>(b.left_x, b.left_y);
    SwapHalves<uint32_t, Bytes>(b.right_x, b.right_y);
}

template <int Bytes> ALWAYS_INLINE void SwapBytes(Blocks<Bytes>& b) {
    RotateLeft<8>(b.left_x);
    RotateLeft<8>(b.left_y);
    RotateLeft<8>(b.right_x);
    RotateLeft<8>(b.right_y);
}

// Uses memcpy, because the arrays are aligned for uint64_t and not for vectors.
template <int Bytes> ALWAYS_INLINE void Load(const uint64_t* numbers, Blocks<Bytes>& b) {
    constexpr int kPerVector = Bytes / sizeof *numbers;
    __builtin_memcpy(&b.left_x, numbers, Bytes);
    __builtin_memcpy(&b.left_y, numbers + kPerVector, Bytes);
    __builtin_memcpy(&b.right_x, numbers + 2 * kPerVector, Bytes);
    __builtin_memcpy(&b.right_y, numbers + 3 * kPerVector, Bytes);
    Transpose(b);
    SwapBytes(b);
}

template <int Bytes> ALWAYS_INLINE void Store(Blocks<Bytes>& b, uint64_t* numbers) {
    constexpr int kPerVector = Bytes / sizeof *numbers;
    SwapBytes(b);
    Transpose(b);
    __builtin_memcpy(numbers, &b.left_x, Bytes);
    __builtin_memcpy(numbers + kPerVector, &b.left_y, Bytes);
    __builtin_memcpy(numbers + 2 * kPerVector, &b.right_x, Bytes);
    __builtin_memcpy(numbers + 3 * kPerVector, &b.right_y, Bytes);
}

// In each lane, adds `carry` to the lowest word of `base`. Returns `sum` and the new `carry`.
template <typename V> ALWAYS_INLINE void AddWord(uint64_t base, V& carry, V& sum) {
    const V addend = V{} + static_cast<uint16_t>(base);
    sum = addend + carry;
    carry = reinterpret_cast<V>(sum < addend) & 1;
}

// Sets `b` to the numbers first + offset, first + offset + 1, ...
template <int Bytes>
ALWAYS_INLINE void LoadConsecutive(uint64_t first, int offset, Blocks<Bytes>& b) {
    constexpr uint64_t kPerVector = Bytes / sizeof(uint64_t);
    constexpr uint64_t kOnes = 0x0001'0001'0001'0001, kIndices = 0x0003'0002'0001'0000;
    typename Lanes<uint64_t, Bytes>::Type lanes;
    for (uint64_t i = 0; i < kPerVector; i++) lanes[i] = kOnes * i + kIndices * kPerVector;

    Words<Bytes> carry = reinterpret_cast<Words<Bytes>>(lanes) + static_cast<uint16_t>(offset);
    AddWord(first, carry, b.left_x);
    AddWord(first >> 16, carry, b.left_y);
    AddWord(first >> 32, carry, b.right_x);
    AddWord(first >> 48, carry, b.right_y);
    SwapBytes(b);
}

template <typename V>
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): both halves of a branch, as everywhere here
ALWAYS_INLINE void AddKey(V& x, V& y, const uint16_t* subkey) {
    x ^= subkey[0];
    y ^= subkey[1];
}

template <typename V> ALWAYS_INLINE void Round(V& x, V& y, const uint16_t* subkey) {
    AddKey(x, y, subkey);
    RotateLeft<9>(x);
    x += y;
    RotateLeft<2>(y);
    y ^= x;
}

template <typename V> ALWAYS_INLINE void InverseRound(V& x, V& y, const uint16_t* subkey) {
    y ^= x;
    RotateLeft<14>(y);
    x -= y;
    RotateLeft<7>(x);
    AddKey(x, y, subkey);
}

template <int Bytes> ALWAYS_INLINE void Whiten(Blocks<Bytes>& b, const KeySchedule& schedule) {
    const uint16_t* whitening = schedule.subkeys[kSubkeyGroups - 1];
    AddKey(b.left_x, b.left_y, whitening);
    AddKey(b.right_x, b.right_y, whitening + 2);
}

// Applies the linear layer, like MixInto in cipher.cpp.
template <int Bytes> ALWAYS_INLINE void Mix(Blocks<Bytes>& b) {
    Words<Bytes> t = b.left_x ^ b.left_y;
    RotateLeft<8>(t);
    b.right_x ^= b.left_x ^ t;
    b.right_y ^= b.left_y ^ t;
}

template <int Bytes> ALWAYS_INLINE void Swap(Blocks<Bytes>& b) {
    b = {b.right_x, b.right_y, b.left_x, b.left_y};
}

// The steps are those of Encrypt and Decrypt in cipher.cpp. One call interleaves the rounds of
// several Blocks to give the processor independent work. `Group` contains their indices.
template <int Bytes, int... Group>
ALWAYS_INLINE void EncryptGroups(const KeySchedule& schedule, Blocks<Bytes>* blocks,
                                 std::integer_sequence<int, Group...>) {
    for (int step = 0; step < kSteps; step++) {
        const uint16_t* left = schedule.subkeys[kBranches * step];
        const uint16_t* right = schedule.subkeys[kBranches * step + 1];
#pragma GCC unroll 3
        for (int round = 0; round < kRoundsPerStep; round++) {
            (Round(blocks[Group].left_x, blocks[Group].left_y, left + 2 * round), ...);
            (Round(blocks[Group].right_x, blocks[Group].right_y, right + 2 * round), ...);
        }
        (Mix(blocks[Group]), ...);
        (Swap(blocks[Group]), ...);
    }
    (Whiten(blocks[Group], schedule), ...);
}

template <int Bytes, int... Group>
ALWAYS_INLINE void DecryptGroups(const KeySchedule& schedule, Blocks<Bytes>* blocks,
                                 std::integer_sequence<int, Group...>) {
    (Whiten(blocks[Group], schedule), ...);
    for (int step = kSteps - 1; step >= 0; step--) {
        const uint16_t* left = schedule.subkeys[kBranches * step];
        const uint16_t* right = schedule.subkeys[kBranches * step + 1];
        (Swap(blocks[Group]), ...);
        (Mix(blocks[Group]), ...);
#pragma GCC unroll 3
        for (int round = kRoundsPerStep - 1; round >= 0; round--) {
            (InverseRound(blocks[Group].left_x, blocks[Group].left_y, left + 2 * round), ...);
            (InverseRound(blocks[Group].right_x, blocks[Group].right_y, right + 2 * round), ...);
        }
    }
}

// One call processes this many Blocks. More Blocks would not fit in the registers.
#ifdef __aarch64__
constexpr int kGroups = 4;
#else
constexpr int kGroups = 2;
#endif

template <int Bytes, int... Group>
ALWAYS_INLINE void EncryptVectors(const KeySchedule& schedule, uint64_t first, uint64_t* ids,
                                  std::integer_sequence<int, Group...> groups) {
    constexpr int kCount = Blocks<Bytes>::kCount;
    for (int i = 0; i < kBatchLength; i += kGroups * kCount) {
        Blocks<Bytes> blocks[kGroups];
        (LoadConsecutive(first, i + Group * kCount, blocks[Group]), ...);
        EncryptGroups(schedule, blocks, groups);
        (Store(blocks[Group], ids + i + Group * kCount), ...);
    }
}

template <int Bytes, int... Group>
ALWAYS_INLINE void DecryptVectors(const KeySchedule& schedule, const uint64_t* ids, uint64_t* raw,
                                  std::integer_sequence<int, Group...> groups) {
    constexpr int kCount = Blocks<Bytes>::kCount;
    for (int i = 0; i < kBatchLength; i += kGroups * kCount) {
        Blocks<Bytes> blocks[kGroups];
        (Load(ids + i + Group * kCount, blocks[Group]), ...);
        DecryptGroups(schedule, blocks, groups);
        (Store(blocks[Group], raw + i + Group * kCount), ...);
    }
}

#define VECTOR_PATH(BITS, TARGET)                                                                 \
    TARGET void Encrypt##BITS(const KeySchedule& schedule, uint64_t first,                        \
                              uint64_t* ids) noexcept {                                           \
        EncryptVectors<BITS / 8>(schedule, first, ids,                                            \
                                 std::make_integer_sequence<int, kGroups>{});                     \
    }                                                                                             \
    TARGET void Decrypt##BITS(const KeySchedule& schedule, const uint64_t* ids,                   \
                              uint64_t* raw) noexcept {                                           \
        DecryptVectors<BITS / 8>(schedule, ids, raw, std::make_integer_sequence<int, kGroups>{}); \
    }                                                                                             \
    TARGET void Permute##BITS(const SipKey& key, const uint64_t* numbers,                         \
                              uint64_t* permuted) noexcept {                                      \
        feistel_batch::Permute<BITS / 8, false>(key, numbers, permuted,                           \
                                                std::make_integer_sequence<int, kGroups>{});      \
    }                                                                                             \
    TARGET void Unpermute##BITS(const SipKey& key, const uint64_t* numbers,                       \
                                uint64_t* permuted) noexcept {                                    \
        feistel_batch::Permute<BITS / 8, true>(key, numbers, permuted,                            \
                                               std::make_integer_sequence<int, kGroups>{});       \
    }

// Vectors of 128 bits are SSE2 on x86-64 and NEON on aarch64, which all these processors have.
VECTOR_PATH(128, )
#ifdef __x86_64__
VECTOR_PATH(256, __attribute__((target("avx2"))))
VECTOR_PATH(512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2"))))
#endif

void EncryptPlain(const KeySchedule& schedule, uint64_t first, uint64_t* ids) noexcept {
    for (int i = 0; i < kBatchLength; i++)
        ids[i] = Encrypt(schedule, first + static_cast<uint64_t>(i));
}

void DecryptPlain(const KeySchedule& schedule, const uint64_t* ids, uint64_t* raw) noexcept {
    for (int i = 0; i < kBatchLength; i++) raw[i] = Decrypt(schedule, ids[i]);
}

void PermutePlain(const SipKey& key, const uint64_t* numbers, uint64_t* permuted) noexcept {
    for (int i = 0; i < kBatchLength; i++) permuted[i] = Feistel53::Permute(key, numbers[i]);
}

void UnpermutePlain(const SipKey& key, const uint64_t* numbers, uint64_t* permuted) noexcept {
    for (int i = 0; i < kBatchLength; i++) permuted[i] = Feistel53::Unpermute(key, numbers[i]);
}

}  // namespace

VectorPaths ListVectorPaths() noexcept {
#ifdef __x86_64__
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi2");
    return {4,
            {{"avx512", Encrypt512, Decrypt512, Permute512, Unpermute512, avx512},
             {"avx2", Encrypt256, Decrypt256, Permute256, Unpermute256, avx2},
             {"baseline", Encrypt128, Decrypt128, Permute128, Unpermute128, true},
             {"plain", EncryptPlain, DecryptPlain, PermutePlain, UnpermutePlain, true}}};
#else
    return {2,
            {{"baseline", Encrypt128, Decrypt128, Permute128, Unpermute128, true},
             {"plain", EncryptPlain, DecryptPlain, PermutePlain, UnpermutePlain, true}}};
#endif
}

}  // namespace randflake
