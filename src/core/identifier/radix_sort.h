// Sorts identifiers in the order that they have in SQL, as signed bigint. Radix sort takes the same
// time for all identifiers of a given number, and needs a second array instead of comparisons.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace randflake {

// Sorts `count` identifiers by one byte after another, from the lowest to the highest. `scratch` is
// an array of as many elements, which the call overwrites.
inline void SortSigned(uint64_t* ids, size_t count, uint64_t* scratch) noexcept {
    constexpr int kBytes = 8, kValues = 256;
    constexpr uint64_t kSign = uint64_t{1} << 63;
    const auto byte_of = [](uint64_t id, int i) { return (id ^ kSign) >> 8 * i & (kValues - 1); };

    size_t places[kBytes][kValues] = {};
    for (size_t k = 0; k < count; k++)
        for (int i = 0; i < kBytes; i++)
            places[i][byte_of(ids[k], i)]++;

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
        for (size_t k = 0; k < count; k++)
            to[place[byte_of(from[k], i)]++] = from[k];
        uint64_t* const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != ids)
        memcpy(ids, from, count * sizeof *ids);
}

}  // namespace randflake
