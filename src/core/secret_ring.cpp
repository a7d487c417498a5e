#include "core/secret_ring.h"

namespace randflake {

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
        for (int i = 0; i < count; i++)
            skipped |= uint64_t{ring.OwnerOf(kRandflake, raw[i]) == earlier} << i;
    }
    return skipped;
}

int DropSkipped(uint64_t skipped, int count, uint64_t ids[kRunLength]) noexcept {
    if (skipped == 0)
        return count;
    int kept = 0;
    for (int i = 0; i < count; i++) {
        ids[kept] = ids[i];
        kept += (skipped >> i & 1) == 0 ? 1 : 0;
    }
    return kept;
}

}  // namespace randflake
