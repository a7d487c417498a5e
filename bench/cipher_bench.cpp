// The cipher alone, without a server: nanoseconds per identifier.

#include <benchmark/benchmark.h>

#include <string>

#include "core/identifier/cipher.h"
#include "core/identifier/cipher_batch.h"
#include "core/identifier/feistel.h"

using namespace randflake;

namespace {

const Key key{{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
               0xee, 0xff}};
constexpr uint64_t kFirst = uint64_t{65000000} << 34;

// The latency: each number depends on the one before, so nothing overlaps.
template <uint64_t (*Crypt)(const KeySchedule&, uint64_t) noexcept>
void Dependent(benchmark::State& state) {
    const KeySchedule schedule = ExpandKey(key);
    uint64_t number = kFirst;
    for (auto _ : state)
        benchmark::DoNotOptimize(number = Crypt(schedule, number));
    state.SetItemsProcessed(state.iterations());
}

// Numbers that follow each other: the processor may overlap them.
template <uint64_t (*Crypt)(const KeySchedule&, uint64_t) noexcept>
void Independent(benchmark::State& state) {
    const KeySchedule schedule = ExpandKey(key);
    uint64_t number = kFirst;
    for (auto _ : state)
        benchmark::DoNotOptimize(Crypt(schedule, number++));
    state.SetItemsProcessed(state.iterations());
}

void Run(benchmark::State& state, EncryptBatch encrypt) {
    const KeySchedule schedule = ExpandKey(key);
    uint64_t ids[kBatchLength];
    uint64_t first = kFirst;
    for (auto _ : state) {
        encrypt(schedule, first, ids);
        benchmark::DoNotOptimize(ids);
        first += kBatchLength;
    }
    state.SetItemsProcessed(state.iterations() * kBatchLength);
}

void Many(benchmark::State& state, EncryptBatch encrypt, DecryptMany decrypt) {
    const KeySchedule schedule = ExpandKey(key);
    uint64_t ids[kBatchLength], raw[kBatchLength];
    encrypt(schedule, kFirst, ids);
    for (auto _ : state) {
        decrypt(schedule, ids, raw);
        benchmark::DoNotOptimize(raw);
    }
    state.SetItemsProcessed(state.iterations() * kBatchLength);
}

void PermuteOne(benchmark::State& state) {
    const SipKey sip_key = SipKey::FromBytes(key.bytes);
    uint64_t number = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(Feistel53::Permute(sip_key, number++));
    state.SetItemsProcessed(state.iterations());
}

void PermuteBatch(benchmark::State& state, PermuteMany permute) {
    const SipKey sip_key = SipKey::FromBytes(key.bytes);
    uint64_t numbers[kBatchLength], permuted[kBatchLength];
    for (uint64_t i = 0; i < kBatchLength; i++)
        numbers[i] = i;
    for (auto _ : state) {
        permute(sip_key, numbers, permuted);
        benchmark::DoNotOptimize(permuted);
    }
    state.SetItemsProcessed(state.iterations() * kBatchLength);
}

void Schedule(benchmark::State& state) {
    Key changing = key;
    for (auto _ : state) {
        changing.bytes[0]++;
        benchmark::DoNotOptimize(ExpandKey(changing));
    }
    state.SetItemsProcessed(state.iterations());
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::RegisterBenchmark("encrypt one", Independent<Encrypt>);
    benchmark::RegisterBenchmark("decrypt one", Independent<Decrypt>);
    benchmark::RegisterBenchmark("encrypt one (latency)", Dependent<Encrypt>);
    benchmark::RegisterBenchmark("decrypt one (latency)", Dependent<Decrypt>);
    const VectorPaths paths = ListVectorPaths();
    for (int i = 0; i < paths.count; i++) {
        const VectorPath& path = paths.paths[i];
        if (!path.supported)
            continue;
        benchmark::RegisterBenchmark((std::string("encrypt a run: ") + path.name).c_str(), Run,
                                     path.encrypt);
        benchmark::RegisterBenchmark((std::string("decrypt many: ") + path.name).c_str(), Many,
                                     path.encrypt, path.decrypt);
        benchmark::RegisterBenchmark((std::string("permute a run: ") + path.name).c_str(),
                                     PermuteBatch, path.permute);
    }
    benchmark::RegisterBenchmark("permute one", PermuteOne);
    benchmark::RegisterBenchmark("key schedule", Schedule);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
