// The order in which a load gets the identifiers of a run.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace randflake {

// Neighbors of a long run come in mixed order, by groups of this length.
inline constexpr size_t kGroupLength = 1024;
inline constexpr size_t kShortestMixedRun = 16 * kGroupLength;

// Sorts `count` identifiers in the order that they have in SQL, as signed bigint: by one byte after
// another, from the lowest to the highest. Radix sort takes the same time for all identifiers of a
// given number. `scratch` is an array of as many elements, which the call overwrites.
inline void SortSigned(uint64_t* ids, size_t count, uint64_t* scratch) noexcept {
    constexpr int kBytes = 8, kValues = 256;
    constexpr uint64_t kSign = uint64_t{1} << 63;
    const auto byte_of = [](uint64_t id, int i) { return (id ^ kSign) >> 8 * i & (kValues - 1); };

    size_t places[kBytes][kValues] = {};
    for (size_t k = 0; k < count; k++)
        for (int i = 0; i < kBytes; i++) places[i][byte_of(ids[k], i)]++;

    uint64_t *from = ids, *to = scratch;
    for (int i = 0; i < kBytes; i++) {
        size_t* place = places[i];
        if (count == 0 || place[byte_of(ids[0], i)] == count)
            continue;  // all identifiers have the same byte, as 53-bit ones do
        for (size_t before = 0, value = 0; value < kValues; value++) {
            const size_t of_value = place[value];
            place[value] = before;
            before += of_value;
        }
        for (size_t k = 0; k < count; k++) to[place[byte_of(from[k], i)]++] = from[k];
        uint64_t* const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != ids) memcpy(ids, from, count * sizeof *ids);
}

// Mixes the groups of a long run of sorted identifiers. PostgreSQL splits a full page of a B-tree
// in the middle, and ascending identifiers would leave each left half as it is (1.43 times
// bigserial's index after five loads). Mixed ones come back to the pages of their group, which the
// processor's cache still has, and fill them (1.3 times). `scratch` is as above.
inline void MixGroups(uint64_t* ids, size_t count, uint64_t* scratch) noexcept {
    // An odd step reaches each place of a group once. This one is near the golden ratio's part of a
    // group, so that the next places are always far from the last ones.
    constexpr size_t kStep = 633;
    static_assert(kStep % 2 == 1 && (kGroupLength & (kGroupLength - 1)) == 0);
    if (count < kShortestMixedRun) return;
    for (size_t from = 0; from + kGroupLength <= count; from += kGroupLength) {
        memcpy(scratch, ids + from, kGroupLength * sizeof *ids);
        for (size_t k = 0; k < kGroupLength; k++) ids[from + k] = scratch[k * kStep % kGroupLength];
    }
}

}  // namespace randflake
