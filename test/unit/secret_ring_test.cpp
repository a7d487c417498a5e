// Tests rings of secrets. A small cipher allows checks of every number: numbers have different
// identifiers, each issued identifier decodes to its number, and no other identifier decodes.

#include "core/secret/secret_ring.h"
#include "printers.h"
#include "toy_ring.h"
#include "vector_paths.h"

namespace randflake {
namespace {

constexpr Layout kSmall{.epoch = kWindowEpochMs,
                        .timestamp_bits = 3,
                        .node_bits = 1,
                        .sequence_bits = 3,
                        .lowest_stands_for_second = true};
constexpr uint64_t kNumbers = uint64_t{1} << kSmall.bits();
constexpr uint64_t kSeconds = kSmall.max_timestamp() + 1;

using simulation::ToyCipher;
using simulation::ToyRing;

ToyRing SmallRing(const std::vector<uint32_t>& from, std::mt19937_64& random) {
    SecretRecords secrets{};
    for (const uint32_t second : from) secrets.records[secrets.count++] = {random(), {second}};
    return {kSmall, secrets};
}

std::optional<uint64_t> Encrypt(const Ring<ToyCipher>& ring, uint64_t raw) {
    uint64_t id;
    return ring.Encrypt(kSmall, raw, &id) ? std::optional(id) : std::nullopt;
}

std::optional<uint64_t> Decrypt(const Ring<ToyCipher>& ring, uint64_t id) {
    uint64_t raw;
    return ring.Decrypt(kSmall, id, &raw) ? std::optional(raw) : std::nullopt;
}

// Checks every number of a ring. Returns the first problem, or an empty text.
std::string ProblemOf(const ToyRing& generations) {
    const Ring<ToyCipher> ring = generations.All();
    std::map<uint64_t, uint64_t> made;  // identifier -> number
    for (uint64_t raw = 0; raw < kNumbers; raw++) {
        const std::optional<uint64_t> id = Encrypt(ring, raw);
        if (!id) continue;
        if (!made.emplace(*id, raw).second) return "two numbers have one identifier";
        if (Decrypt(ring, *id) != raw) return "an identifier does not decode to its number";
    }
    for (uint64_t id = 0; id < kNumbers; id++)
        if (!made.contains(id) && Decrypt(ring, id)) return "an identifier that none made decodes";
    // Without its last generations, the ring still gives the same identifiers to all numbers from
    // before them, and to the lowest number of every second.
    for (int count = 1; count < ring.count(); count++) {
        const Ring<ToyCipher> fewer = generations.First(count);
        for (uint64_t raw = 0; raw < kNumbers; raw++) {
            const Fields fields = kSmall.Unpack(raw);
            if (fields.timestamp >= ring[count].from &&
                (fields.node_id != 0 || fields.sequence != 0))
                continue;
            const std::optional<uint64_t> id = Encrypt(fewer, raw);
            if (id != Encrypt(ring, raw)) return "a further generation changes an identifier";
            if (id && Decrypt(ring, *id) != raw)
                return "a further generation changes what an identifier means";
        }
    }
    return "";
}

TEST(SecretRing, EveryNumberOfEverySmallRing) {
    std::mt19937_64 random(18);
    for (uint32_t choice = 1; choice < 1u << kSeconds; choice += 2) {
        std::vector<uint32_t> from;
        for (uint32_t second = 0; second < kSeconds; second++)
            if ((choice >> second & 1) != 0) from.push_back(second);
        for (int ciphers = 0; ciphers < 20; ciphers++)
            ASSERT_EQ(ProblemOf(SmallRing(from, random)), "") << testing::PrintToString(from);
    }
}

TEST(SecretRing, ShareThatIsLeft) {
    std::mt19937_64 random(7);
    Layout layout = kSmall;
    layout.lowest_stands_for_second = false;
    const std::vector<uint32_t> from{0, 2, 5};
    const std::map<uint64_t, double> shares{
        {0, 1}, {1, 1}, {2, 0.75}, {4, 0.75}, {5, 0.75 * 5 / 8}, {7, 0.75 * 5 / 8}};
    constexpr int kRings = 1000;
    for (const auto& [second, share] : shares) {
        int left = 0;
        for (int i = 0; i < kRings; i++) {
            const ToyRing generations = SmallRing(from, random);
            const Ring<ToyCipher> ring = generations.All();
            EXPECT_EQ(ring.ShareLeft(layout, {static_cast<int64_t>(second)}), share);
            for (uint64_t number = 0; number < kNumbers / kSeconds; number++) {
                uint64_t id;
                left += ring.Encrypt(layout, second * (kNumbers / kSeconds) + number, &id);
            }
        }
        const double expected = share * kRings * (kNumbers / kSeconds);
        EXPECT_NEAR(left, expected, expected / 20) << second;
    }
    const SecretRing none(nullptr, 0);
    EXPECT_EQ(none.ShareLeft(kRandflake, {5}), 1);
}

// While a call reserves a number, adds the secret that owns the number.
TEST(SecretRing, RingIsReadOnceNumbersAreReserved) {
    std::mt19937_64 random(8);
    const ToyRing generations = SmallRing({0, 4}, random);
    std::atomic<int> count{1};
    const uint64_t of_later = Packed(kSmall, {.timestamp = 4, .node_id = 1, .sequence = 1});
    const uint64_t raw = UseReserved(
        [&] {
            count.store(2, std::memory_order_release);
            return of_later;
        },
        [&] { return generations.First(count.load(std::memory_order_acquire)); },
        [](uint64_t reserved, const Ring<ToyCipher>& ring) {
            EXPECT_EQ(ring.count(), 2);
            EXPECT_EQ(ring.OwnerOf(kSmall, reserved), 1);
            return reserved;
        });
    EXPECT_EQ(raw, of_later);
}

TEST(SecretRing, OwnersAndIntervals) {
    std::mt19937_64 random(21);
    const ToyRing generations = SmallRing({0, 2, 5}, random);
    const Ring<ToyCipher> ring = generations.All();
    for (uint64_t second = 0; second < kSeconds; second++)
        for (uint64_t node = 0; node <= kSmall.max_node_id(); node++)
            for (uint64_t sequence = 0; sequence <= kSmall.max_sequence(); sequence++) {
                const uint64_t raw = Packed(kSmall, {second, node, sequence});
                const int owner = second < 2 ? 0 : second < 5 ? 1 : 2;
                EXPECT_EQ(ring.OwnerOf(kSmall, raw), node == 0 && sequence == 0 ? 0 : owner);
            }
    for (uint64_t first = 0; first < kNumbers; first++)
        for (int count = 1; count <= 20 && first + static_cast<uint64_t>(count) <= kNumbers;
             count++) {
            std::set<int> owners;
            for (int i = 0; i < count; i++)
                owners.insert(ring.OwnerOf(kSmall, first + static_cast<uint64_t>(i)));
            if (ring.HasOneOwner(kSmall, first, count)) {
                EXPECT_EQ(owners.size(), 1u) << first << ' ' << count;
            }
            EXPECT_TRUE(generations.First(1).HasOneOwner(kSmall, first, count));
        }
}

using SecretRingBatch = VectorPathTest;

std::vector<Generation> RandomRing(const std::vector<uint32_t>& from, std::mt19937_64& random) {
    std::vector<Generation> generations;
    for (const uint32_t second : from) generations.push_back({second, RandomSchedule(random)});
    return generations;
}

bool Skips(const SecretRing& ring, uint64_t raw) {
    uint64_t id;
    return !ring.Encrypt(kRandflake, raw, &id);
}

template <typename Ring>
void ExpectAsOneByOne(const VectorPath& path, const Layout& layout, const Ring& ring,
                      std::mt19937_64& random) {
    const uint64_t most = UINT64_MAX >> (64 - layout.bits());
    uint64_t skipped_ever = 0, kept_ever = 0;
    for (int i = 0; i < 300; i++) {
        const int count = i % 3 == 0 ? 1 : 1 + static_cast<int>(random() % kBatchLength);
        uint64_t first;
        do first = random() & most;
        while (!ring.HasOneOwner(layout, first, count));
        uint64_t ids[kBatchLength];
        const uint64_t skipped = EncryptNumbers(ring, path, first, count, ids);
        std::vector<uint64_t> kept;
        for (int n = 0; n < count; n++) {
            uint64_t id, raw;
            const bool used = ring.Encrypt(layout, first + static_cast<uint64_t>(n), &id);
            ASSERT_EQ((skipped >> n & 1) == 0, used) << path.name << ' ' << first << ' ' << n;
            if (!used) continue;
            ASSERT_EQ(ids[n], id);
            ASSERT_LE(id, most);
            kept.push_back(id);
            ASSERT_TRUE(ring.Decrypt(layout, id, &raw));
            ASSERT_EQ(raw, first + static_cast<uint64_t>(n));
        }
        ASSERT_EQ(skipped >> (count - 1) >> 1, 0u) << "bits of no number";
        ASSERT_EQ(DropSkipped(skipped, count, ids), static_cast<int>(kept.size()));
        ASSERT_TRUE(std::equal(kept.begin(), kept.end(), ids));
        skipped_ever += static_cast<uint64_t>(count) - kept.size();
        kept_ever += kept.size();
    }
    EXPECT_EQ(skipped_ever != 0, ring.count() > 1);
    EXPECT_GT(kept_ever, 0u);
}

// The first generations own most identifiers, so the ring skips many numbers of later generations.
constexpr uint32_t kFroms[] = {0, 1u << 28, 1u << 29, 3u << 28, (3u << 28) + 1};

TEST_P(SecretRingBatch, GivesWhatOneNumberAtATimeGives) {
    std::mt19937_64 random(64);
    const std::vector<Generation> keys = RandomRing({std::begin(kFroms), std::end(kFroms)}, random);
    for (int count = 1; count <= static_cast<int>(keys.size()); count++)
        ExpectAsOneByOne(path_, kRandflake, SecretRing(keys.data(), count), random);
}

TEST_P(SecretRingBatch, GivesWhatOneNumberAtATimeGivesOf53Bits) {
    std::mt19937_64 random(53);
    std::vector<Generation53> keys;
    for (const uint32_t from : kFroms) {
        keys.push_back({from, {random(), random()}});
        ExpectAsOneByOne(path_, kRandflake53,
                         SecretRing53(keys.data(), static_cast<int>(keys.size())), random);
    }
}

TEST_P(SecretRingBatch, SkipsWhatStandsForASecond) {
    std::mt19937_64 random(3);
    const std::vector<Generation> keys = RandomRing({0, 1000, 2000}, random);
    const SecretRing ring(keys.data(), 3);
    for (int i = 0; i < 200; i++) {
        const uint64_t stands = Packed(kRandflake, {3000 + random() % 1000000, 0, 0});
        const uint64_t taken = keys[2].Decrypt(keys[0].Encrypt(stands));
        if (ring.OwnerOf(kRandflake, taken) != 2 || !ring.HasOneOwner(kRandflake, taken - 5, 9))
            continue;
        uint64_t ids[kBatchLength], raw;
        EXPECT_EQ(EncryptNumbers(ring, path_, taken - 5, 9, ids) >> 5 & 1, 1u) << path_.name;
        EXPECT_TRUE(Skips(ring, taken));
        ASSERT_TRUE(ring.Decrypt(kRandflake, keys[0].Encrypt(stands), &raw));
        EXPECT_EQ(raw, stands);
        // The first generation always owns each second's lowest number.
        const uint64_t free = keys[2].Decrypt(keys[1].Encrypt(Packed(kRandflake, {1500, 0, 0})));
        if (ring.HasOneOwner(kRandflake, free, 2)) {
            EXPECT_EQ(EncryptNumbers(ring, path_, free, 2, ids) & 1, Skips(ring, free) ? 1u : 0u);
        }
    }
}

INSTANTIATE_ON_EVERY_PATH(SecretRingBatch);

}  // namespace
}  // namespace randflake
