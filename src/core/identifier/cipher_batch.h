// Applies SPARX and the permutation of feistel.h to kBatchLength numbers at once.
//
// SPARX works on 16-bit words. A vector register holds the same word of many blocks, so each
// operation of the cipher becomes one vector operation. The compiler builds the code for several
// register widths, and the server chooses one when it starts. All widths give the same results.

#pragma once

#include "core/identifier/cipher.h"
#include "core/identifier/siphash.h"

namespace randflake {

inline constexpr int kBatchLength = 64;

// Sets ids[i] = Encrypt(schedule, first + i) for each i. The addition wraps.
using EncryptBatch = void (*)(const KeySchedule& schedule, uint64_t first,
                              uint64_t ids[kBatchLength]) noexcept;

// Sets raw[i] = Decrypt(schedule, ids[i]) for each i. `ids` and `raw` may be the same array.
using DecryptMany = void (*)(const KeySchedule& schedule, const uint64_t ids[kBatchLength],
                             uint64_t raw[kBatchLength]) noexcept;

// Applies Feistel53::Permute or Unpermute: sets permuted[i] to the result for numbers[i]. `numbers`
// and `permuted` may be the same array.
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

// The widest path comes first. The last path uses no vectors and runs on every processor.
inline constexpr int kMaxVectorPaths = 4;
struct VectorPaths {
    int count;
    VectorPath paths[kMaxVectorPaths];
};
VectorPaths ListVectorPaths() noexcept;

}  // namespace randflake
