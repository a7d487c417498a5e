#include "core/cipher_run.h"

#include <utility>

#define ALWAYS_INLINE [[gnu::always_inline]] static inline

namespace randflake {
namespace {

// Lanes of 16 bits; Bytes is the width of the target's registers.
template <int Bytes>
struct Vector {
    typedef uint16_t Type __attribute__((vector_size(Bytes)));
    static constexpr int kLanes = Bytes / 2;
};

template <int Bits, typename V>
ALWAYS_INLINE void RotateLeft(V& v) {
    v = v << Bits | v >> (16 - Bits);
}

#if defined(__x86_64__) && !defined(__clang__)
// AVX-512 VBMI2 shifts two words as one: with the same word twice, one instruction instead of
// three. Clang finds it; GCC does not, and its intrinsic cannot be inlined through functions
// without that target.
template <int Bits>
ALWAYS_INLINE void RotateLeft(Vector<64>::Type& v) {
    asm("vpshldw %2, %1, %1, %0" : "=v"(v) : "v"(v), "i"(Bits));
}
#endif

// One word each of Lanes blocks: the two branches of cipher.cpp, in vectors.
template <typename V>
struct Blocks {
    V left_x, left_y, right_x, right_y;
};

template <typename V>
ALWAYS_INLINE void Round(V& x, V& y, const uint16_t* subkey) {
    x ^= subkey[0];
    y ^= subkey[1];
    RotateLeft<9>(x);
    x += y;
    RotateLeft<2>(y);
    y ^= x;
}

// base + carry; the carry out of each lane replaces the carry in.
template <typename V>
ALWAYS_INLINE void AddWord(uint64_t base, V& carry, V& sum) {
    const V addend = V{} + static_cast<uint16_t>(base);
    sum = addend + carry;
    carry = reinterpret_cast<V>(sum < addend) & 1;
    RotateLeft<8>(sum);
}

// The words of first + 0, first + 1, ..., bytes swapped as the cipher reads them.
template <typename V>
ALWAYS_INLINE void LoadConsecutive(uint64_t first, const V& lane, Blocks<V>& b) {
    V carry = lane;
    AddWord(first, carry, b.left_x);
    AddWord(first >> 16, carry, b.left_y);
    AddWord(first >> 32, carry, b.right_x);
    AddWord(first >> 48, carry, b.right_y);
}

template <typename V>
ALWAYS_INLINE void StoreWord(const V& block_word, uint16_t whitening, uint16_t* out) {
    V word = block_word ^ whitening;
    RotateLeft<8>(word);
    *reinterpret_cast<V*>(out) = word;
}

template <typename V>
ALWAYS_INLINE void Store(const Blocks<V>& b, const uint16_t* whitening, uint16_t* out, int stride) {
    StoreWord(b.left_x, whitening[0], out);
    StoreWord(b.left_y, whitening[1], out + stride);
    StoreWord(b.right_x, whitening[2], out + 2 * stride);
    StoreWord(b.right_y, whitening[3], out + 3 * stride);
}

template <typename V>
ALWAYS_INLINE void MixAndSwap(Blocks<V>& b) {
    V mix = b.left_x ^ b.left_y;
    RotateLeft<8>(mix);
    const V x = b.right_x ^ b.left_x ^ mix, y = b.right_y ^ b.left_y ^ mix;
    b.right_x = b.left_x;
    b.right_y = b.left_y;
    b.left_x = x;
    b.left_y = y;
}

// Group... numbers the vectors that together hold a run. They are interleaved round by round, so
// that the processor always has independent work, and unrolled, so that all stay in registers. The
// steps are those of Encrypt in cipher.cpp.
template <int Bytes, int... Group>
ALWAYS_INLINE void EncryptGroups(const KeySchedule& schedule, uint64_t first, uint64_t* ids,
                                 std::integer_sequence<int, Group...>) {
    using V = typename Vector<Bytes>::Type;
    constexpr int kLanes = Vector<Bytes>::kLanes;
    constexpr int kNumbers = kLanes * static_cast<int>(sizeof...(Group));

    V lane;
    for (int i = 0; i < kLanes; i++)
        lane[i] = static_cast<uint16_t>(i);

    Blocks<V> blocks[sizeof...(Group)];
    (LoadConsecutive(first + static_cast<uint64_t>(Group * kLanes), lane, blocks[Group]), ...);

    for (int step = 0; step < kSteps; step++) {
        const uint16_t* left = schedule.subkeys[kBranches * step];
        const uint16_t* right = schedule.subkeys[kBranches * step + 1];
        (Round(blocks[Group].left_x, blocks[Group].left_y, left), ...);
        (Round(blocks[Group].right_x, blocks[Group].right_y, right), ...);
        (Round(blocks[Group].left_x, blocks[Group].left_y, left + 2), ...);
        (Round(blocks[Group].right_x, blocks[Group].right_y, right + 2), ...);
        (Round(blocks[Group].left_x, blocks[Group].left_y, left + 4), ...);
        (Round(blocks[Group].right_x, blocks[Group].right_y, right + 4), ...);
        (MixAndSwap(blocks[Group]), ...);
    }
    static_assert(kRoundsPerStep == 3);

    alignas(Bytes) uint16_t out[4][kNumbers];
    (Store(blocks[Group], schedule.subkeys[kSubkeyGroups - 1], out[0] + Group * kLanes, kNumbers),
     ...);
    for (int i = 0; i < kNumbers; i++)
        ids[i] = uint64_t{out[0][i]} | uint64_t{out[1][i]} << 16 | uint64_t{out[2][i]} << 32 |
                 uint64_t{out[3][i]} << 48;
}

void EncryptPlain(const KeySchedule& schedule, uint64_t first, uint64_t ids[kRunLength]) noexcept {
    for (int i = 0; i < kRunLength; i++)
        ids[i] = Encrypt(schedule, first + static_cast<uint64_t>(i));
}

// Two vectors of each word at a time: enough independent work, and all of it fits the registers.
template <int Bytes>
ALWAYS_INLINE void EncryptPairs(const KeySchedule& schedule, uint64_t first, uint64_t* ids) {
    for (int i = 0; i < kRunLength; i += Bytes)
        EncryptGroups<Bytes>(schedule, first + static_cast<uint64_t>(i), ids + i,
                             std::integer_sequence<int, 0, 1>{});
}

// 16 bytes: SSE2, which every x86-64 has, or NEON.
void Encrypt128(const KeySchedule& schedule, uint64_t first, uint64_t ids[kRunLength]) noexcept {
    EncryptPairs<16>(schedule, first, ids);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) void Encrypt256(const KeySchedule& schedule, uint64_t first,
                                                uint64_t ids[kRunLength]) noexcept {
    EncryptPairs<32>(schedule, first, ids);
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2"))) void Encrypt512(
    const KeySchedule& schedule, uint64_t first, uint64_t ids[kRunLength]) noexcept {
    EncryptPairs<64>(schedule, first, ids);
}
#endif

}  // namespace

VectorPaths ListVectorPaths() noexcept {
#ifdef __x86_64__
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi2");
    return {4,
            {{"avx512", Encrypt512, avx512},
             {"avx2", Encrypt256, avx2},
             {"baseline", Encrypt128, true},
             {"plain", EncryptPlain, true}}};
#else
    return {2, {{"baseline", Encrypt128, true}, {"plain", EncryptPlain, true}}};
#endif
}

}  // namespace randflake
