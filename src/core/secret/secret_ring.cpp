#include "core/secret/secret_ring.h"

#include <bit>

namespace randflake {
namespace {

// Which of kRunLength numbers a generation before the last one owns, as bits. OwnerOf for each of
// them would cost more than to decrypt them.
uint64_t OwnedBy(const SecretRing& ring, int generation, const uint64_t raw[kRunLength]) {
    constexpr int kShift = kRandflake.node_bits + kRandflake.sequence_bits;
    constexpr uint64_t kBelowSecond = (uint64_t{1} << kShift) - 1;
    const uint64_t from = kRandflake.FirstTick(ring[generation].from) << kShift;
    const uint64_t size = (kRandflake.FirstTick(ring[generation + 1].from) << kShift) - from;
    uint64_t owned = 0, stand_for_seconds = 0;
    for (int i = 0; i < kRunLength; i++) {
        owned |= uint64_t{raw[i] - from < size} << i;
        stand_for_seconds |= uint64_t{(raw[i] & kBelowSecond) == 0} << i;
    }
    return generation == 0 ? owned | stand_for_seconds : owned & ~stand_for_seconds;
}

}  // namespace

uint64_t EncryptNumbers(const SecretRing& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kRunLength]) noexcept {
    if (count == 1)
        return ring.Encrypt(kRandflake, first, ids) ? 0 : 1;

    const int owner = ring.OwnerOf(kRandflake, first);
    path.encrypt(ring[owner].schedule, first, ids);
    uint64_t skipped = 0;
    for (int earlier = 0; earlier < owner; earlier++) {
        uint64_t raw[kRunLength];
        path.decrypt(ring[earlier].schedule, ids, raw);
        skipped |= OwnedBy(ring, earlier, raw);
    }
    return skipped & ~uint64_t{0} >> (kRunLength - count);
}

int DropSkipped(uint64_t skipped, int count, uint64_t ids[kRunLength]) noexcept {
    if (skipped == 0)
        return count;
    int kept = std::countr_zero(skipped);
    for (uint64_t left = skipped; left != 0;) {
        const int after = std::countr_zero(left) + 1;
        left &= left - 1;
        const int end = left == 0 ? count : std::countr_zero(left);
        for (int i = after; i < end; i++)
            ids[kept++] = ids[i];
    }
    return kept;
}

}  // namespace randflake
