// Encrypts and decrypts kBatchLength numbers at once in the lanes of vector registers, with SPARX
// and with the permutation of feistel.h.
//
// SPARX works on 16-bit words. A register holds the same word of many blocks, so each operation of
// the cipher becomes one vector operation. The compiler builds one source for several widths, and
// the server chooses a width when it starts. All widths give the same results as the scalar
// functions.

#pragma once

#include "core/identifier/cipher.h"
#include "core/identifier/siphash.h"

namespace randflake {

inline constexpr int kBatchLength = 64;

// Sets ids[i] = Encrypt(schedule, first + i) for i in 0 .. kBatchLength - 1. The addition wraps.
using EncryptBatch = void (*)(const KeySchedule& schedule, uint64_t first,
                              uint64_t ids[kBatchLength]) noexcept;

// Sets raw[i] = Decrypt(schedule, ids[i]) for i in 0 .. kBatchLength - 1. `raw` may be `ids`.
using DecryptMany = void (*)(const KeySchedule& schedule, const uint64_t ids[kBatchLength],
                             uint64_t raw[kBatchLength]) noexcept;

// Sets permuted[i] = Feistel53::Permute(key, numbers[i]), or Unpermute. `permuted` may be
// `numbers`.
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
