// Encrypts and decrypts kBatchLength numbers at once in the lanes of vector registers, with SPARX
// and with the permutation of feistel.h.
//
// SPARX works on 16-bit words, so a register holds one word of many blocks and each operation of
// the cipher becomes one vector operation. One source is compiled for several widths, and the
// server chooses one at its start. All widths give the bits of the scalar functions.

#pragma once

#include "core/identifier/cipher.h"
#include "core/identifier/siphash.h"

namespace randflake {

inline constexpr int kBatchLength = 64;

// ids[i] = Encrypt(schedule, first + i) for i in 0 .. kBatchLength - 1; the addition wraps.
using EncryptBatch = void (*)(const KeySchedule& schedule, uint64_t first,
                              uint64_t ids[kBatchLength]) noexcept;

// raw[i] = Decrypt(schedule, ids[i]) for i in 0 .. kBatchLength - 1, any ids; both may be one
// array.
using DecryptMany = void (*)(const KeySchedule& schedule, const uint64_t ids[kBatchLength],
                             uint64_t raw[kBatchLength]) noexcept;

// permuted[i] = Feistel53::Permute(key, numbers[i]), or Unpermute; both may be the same array.
using PermuteMany = void (*)(const SipKey& key, const uint64_t numbers[kBatchLength],
                             uint64_t permuted[kBatchLength]) noexcept;

struct VectorPath {
    const char* name;
    EncryptBatch encrypt;
    DecryptMany decrypt;
    PermuteMany permute;
    PermuteMany unpermute;
    bool supported;  // by this processor
};

// The widest path comes first. The last path is plain code that runs anywhere.
inline constexpr int kMaxVectorPaths = 4;
struct VectorPaths {
    int count;
    VectorPath paths[kMaxVectorPaths];
};
VectorPaths ListVectorPaths() noexcept;

}  // namespace randflake
