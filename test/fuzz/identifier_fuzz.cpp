// From an identifier to its fields and back, under any key and layout, one at a time and as runs,
// and its shard.

#include "core/identifier/cipher.h"
#include "core/identifier/cipher_batch.h"
#include "core/identifier/layout.h"
#include "core/identifier/shard.h"

#include "fuzz.h"

namespace randflake {
namespace {

// Bit widths that add up to 64, none of them zero.
Layout AnyLayout(Input* input) {
    const int timestamp_bits = 1 + input->Take<uint8_t>() % 62;
    const int node_bits = 1 + input->Take<uint8_t>() % (63 - timestamp_bits);
    return {0, timestamp_bits, node_bits, 64 - timestamp_bits - node_bits};
}

void CheckFields(const Layout& layout, uint64_t raw, const Fields& any) {
    uint64_t packed = 0;
    const Fields fields = layout.Unpack(raw);
    Check(layout.Fits(fields) && layout.Pack(fields, &packed) && packed == raw);

    const uint64_t untouched = packed;
    if (layout.Pack(any, &packed))
        Check(layout.Fits(any) && layout.Unpack(packed) == any);
    else
        Check(!layout.Fits(any) && packed == untouched);
}

void CheckBatches(const KeySchedule& schedule, uint64_t first) {
    static const VectorPaths list = ListVectorPaths();
    for (int i = 0; i < list.count; i++) {
        if (!list.paths[i].supported)
            continue;
        uint64_t ids[kBatchLength];
        list.paths[i].encrypt(schedule, first, ids);
        for (int n = 0; n < kBatchLength; n++)
            Check(ids[n] == Encrypt(schedule, first + static_cast<uint64_t>(n)));
        list.paths[i].decrypt(schedule, ids, ids);
        for (int n = 0; n < kBatchLength; n++)
            Check(ids[n] == first + static_cast<uint64_t>(n));
    }
}

void CheckShard(int64_t id, int32_t shards) {
    const int32_t shard = ShardOf(id, shards);
    Check(shard >= 0 && shard < shards);
    Check(ShardLower(shard, shards) <= id && id <= ShardUpper(shard, shards));
}

}  // namespace
}  // namespace randflake

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace randflake;
    Input input(data, size);
    const KeySchedule schedule = ExpandKey(input.Take<Key>());
    const auto id = input.Take<uint64_t>();
    const auto shards = static_cast<int32_t>(input.Take<uint32_t>() & INT32_MAX);
    const Layout layout = AnyLayout(&input);
    const auto fields = input.Take<Fields>();

    const uint64_t raw = Decrypt(schedule, id);
    Check(Encrypt(schedule, raw) == id);
    Check(Decrypt(schedule, Encrypt(schedule, id)) == id);
    CheckFields(kRandflake, raw, fields);
    CheckFields(layout, raw, fields);
    CheckBatches(schedule, raw);
    CheckShard(static_cast<int64_t>(id), shards == 0 ? 1 : shards);

    Key key{};
    const bool parsed = ParseKey(reinterpret_cast<const char*>(data), size, &key);
    Check(!parsed || size == 2 * kKeyBytes);
    return 0;
}
