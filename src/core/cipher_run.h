// Encryption of a run: kRunLength consecutive numbers at once, in the lanes of vector registers.
//
// SPARX works on 16-bit words, so a register holds one word of many blocks and every operation of
// the cipher becomes one vector operation. The same source is compiled for several widths; which
// one runs is chosen when the program runs. All give the bits of Encrypt.

#ifndef RANDFLAKE_CORE_CIPHER_RUN_H
#define RANDFLAKE_CORE_CIPHER_RUN_H

#include "core/cipher.h"

namespace randflake {

inline constexpr int kRunLength = 64;

// ids[i] = Encrypt(schedule, first + i) for i in 0 .. kRunLength - 1; the addition wraps.
using EncryptRun = void (*)(const KeySchedule& schedule, uint64_t first,
                            uint64_t ids[kRunLength]) noexcept;

struct VectorPath {
    const char* name;
    EncryptRun encrypt;
    bool supported;  // by this processor
};

// Widest first; the last one is plain code that runs anywhere.
inline constexpr int kMaxVectorPaths = 4;
struct VectorPaths {
    int count;
    VectorPath paths[kMaxVectorPaths];
};
VectorPaths ListVectorPaths() noexcept;

}  // namespace randflake

#endif
