// Encrypts and decrypts batches under a ring. Finds the owners of a whole batch in one pass.

#include "core/secret/secret_ring.h"

#include <bit>

namespace randflake {
namespace {

void EncryptBatch(const VectorPath& path, const Generation& generation, uint64_t first,
                  uint64_t ids[kBatchLength]) {
    path.encrypt(generation.schedule, first, ids);
}
void DecryptBatch(const VectorPath& path, const Generation& generation,
                  const uint64_t ids[kBatchLength], uint64_t raw[kBatchLength]) {
    path.decrypt(generation.schedule, ids, raw);
}
void EncryptBatch(const VectorPath& path, const Generation53& generation, uint64_t first,
                  uint64_t ids[kBatchLength]) {
    for (int i = 0; i < kBatchLength; i++) ids[i] = first + static_cast<uint64_t>(i);
    path.permute(generation.key, ids, ids);
}
void DecryptBatch(const VectorPath& path, const Generation53& generation,
                  const uint64_t ids[kBatchLength], uint64_t raw[kBatchLength]) {
    path.unpermute(generation.key, ids, raw);
}

// Sets bit i if `generation` owns raw[i]. `generation` must not be the last generation. Calling
// OwnerOf for each number would take longer than the decryption.
template <const Layout& kLayout, typename Cipher>
uint64_t OwnedBy(const Ring<Cipher>& ring, int generation, const uint64_t raw[kBatchLength]) {
    RANDFLAKE_ASSERT(generation < ring.count() - 1);
    constexpr int kShift = kLayout.node_bits + kLayout.sequence_bits;
    constexpr uint64_t kBelowSecond = (uint64_t{1} << kShift) - 1;
    const uint64_t from = kLayout.FirstTick(ring[generation].from) << kShift;
    const uint64_t size = (kLayout.FirstTick(ring[generation + 1].from) << kShift) - from;
    uint64_t owned = 0, stand_for_seconds = 0;
    for (int i = 0; i < kBatchLength; i++) {
        owned |= uint64_t{raw[i] - from < size} << i;
        if constexpr (kLayout.lowest_stands_for_second)
            stand_for_seconds |= uint64_t{(raw[i] & kBelowSecond) == 0} << i;
    }
    return generation == 0 ? owned | stand_for_seconds : owned & ~stand_for_seconds;
}

template <const Layout& kLayout, typename Cipher>
uint64_t EncryptNumbersOf(const Ring<Cipher>& ring, const VectorPath& path, uint64_t first,
                          int count, uint64_t ids[kBatchLength]) {
    RANDFLAKE_ASSERT(count >= 1 && count <= kBatchLength);
    RANDFLAKE_ASSERT(ring.HasOneOwner(kLayout, first, count));
    if (count == 1) return ring.Encrypt(kLayout, first, ids) ? 0 : 1;

    const int owner = ring.OwnerOf(kLayout, first);
    EncryptBatch(path, ring[owner], first, ids);
    RANDFLAKE_ASSERT(ids[0] == ring[owner].Encrypt(first));
    RANDFLAKE_ASSERT(ids[count - 1] ==
                     ring[owner].Encrypt(first + static_cast<uint64_t>(count - 1)));
    uint64_t skipped = 0;
    for (int earlier = 0; earlier < owner; earlier++) {
        uint64_t raw[kBatchLength];
        DecryptBatch(path, ring[earlier], ids, raw);
        skipped |= OwnedBy<kLayout>(ring, earlier, raw);
    }
    return skipped & ~uint64_t{0} >> (kBatchLength - count);
}

}  // namespace

uint64_t EncryptNumbers(const SecretRing& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept {
    return EncryptNumbersOf<kRandflake>(ring, path, first, count, ids);
}

uint64_t EncryptNumbers(const SecretRing53& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept {
    return EncryptNumbersOf<kRandflake53>(ring, path, first, count, ids);
}

int DropSkipped(uint64_t skipped, int count, uint64_t ids[kBatchLength]) noexcept {
    RANDFLAKE_ASSERT(count >= 1 && count <= kBatchLength);
    RANDFLAKE_ASSERT(std::countl_zero(skipped) >= kBatchLength - count);
    if (skipped == 0) return count;
    int kept = std::countr_zero(skipped);
    for (uint64_t left = skipped; left != 0;) {
        const int after = std::countr_zero(left) + 1;
        left &= left - 1;
        const int end = left == 0 ? count : std::countr_zero(left);
        for (int i = after; i < end; i++) ids[kept++] = ids[i];
    }
    RANDFLAKE_ASSERT(kept + std::popcount(skipped) == count);
    return kept;
}

}  // namespace randflake
