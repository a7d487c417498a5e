// If a fixture derives from VectorPathTest, its tests run on each vector path of this processor.

#pragma once

#include "core/identifier/cipher_batch.h"
#include "test.h"

namespace randflake {

inline KeySchedule RandomSchedule(std::mt19937_64& random) {
    Key key;
    for (uint8_t& byte : key.bytes) byte = static_cast<uint8_t>(random());
    return ExpandKey(key);
}

class VectorPathTest : public testing::TestWithParam<int> {
protected:
    void SetUp() override {
        path_ = ListVectorPaths().paths[GetParam()];
        if (!path_.supported) GTEST_SKIP() << path_.name << " is not supported by this processor";
    }

    VectorPath path_{};
    // These arrays make in_ and out_ as badly aligned as a uint64_t can be.
    alignas(64) uint64_t in_space_[1 + kBatchLength];
    alignas(64) uint64_t out_space_[1 + kBatchLength];
    uint64_t* const in_ = in_space_ + 1;
    uint64_t* const out_ = out_space_ + 1;
};

#define INSTANTIATE_ON_EVERY_PATH(Suite)                              \
    INSTANTIATE_TEST_SUITE_P(                                         \
        EveryPath, Suite, testing::Range(0, ListVectorPaths().count), \
        [](const auto& info) { return std::string(ListVectorPaths().paths[info.param].name); })

}  // namespace randflake
