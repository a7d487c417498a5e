// Tests what a session does before it uses the type, for different secrets in the database.

#include "core/type/type_binding.h"
#include "printers.h"

namespace randflake {
namespace {

std::string Entry(const SecretRecord& record) {
    char text[64];
    const auto fingerprint = static_cast<unsigned long long>(record.fingerprint);
    if (record.from == Second{})
        snprintf(text, sizeof text, "%016llx", fingerprint);
    else
        snprintf(text, sizeof text, "%016llx@%lld", fingerprint,
                 static_cast<long long>(ToUnix(record.from).count));
    return text;
}

KeyRows RowsOf(const SecretRecords& ring, const std::string& text) {
    KeyRows rows{};
    for (const SecretRecord& record : Records(text)) {
        const std::string entry = Entry(record);
        rows.Add(ring, entry.data(), entry.size());
    }
    return rows;
}

TEST(KeyEntry, IsReadStrictly) {
    SecretRecord record{1, 2};
    const auto reads = [&](const std::string& text) {
        return ParseKeyEntry(text.data(), text.size(), &record);
    };
    EXPECT_TRUE(reads("0123456789abcdef"));
    EXPECT_EQ(record, (SecretRecord{0x0123456789abcdef, 0}));
    EXPECT_TRUE(reads("fedcba9876543210@1730000001"));
    EXPECT_EQ(record, (SecretRecord{0xfedcba9876543210, 1}));
    EXPECT_TRUE(reads("fedcba9876543210@2803741823"));
    EXPECT_EQ(record.from, kNoSecond - 1);
    record = {1, 2};
    for (const char* text :
         {"", "0", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdeg", "0123456789abcdef ",
          "0123456789abcdef@", "0123456789abcdef@1730000000", "0123456789abcdef@2803741824",
          "0123456789abcdef@173000000", "0123456789abcdef@17300000010",
          "0123456789abcdef@+730000001", "0123456789abcdef#1730000001",
          "0123456789abcdef@1730000001 "})
        EXPECT_FALSE(reads(text)) << text;
    EXPECT_FALSE(reads(std::string("0123456789abcdef\0", 17)));
    EXPECT_EQ(record, (SecretRecord{1, 2}));
}

TEST(KeyRows, KeepsEachOtherOnceAndAFew) {
    const SecretRecords ring = RingOf("A B100");
    KeyRows rows = RowsOf(ring, "A A X50 X50 B100 B100 X50");
    EXPECT_TRUE(rows.any);
    EXPECT_EQ(rows.found, 3u);
    EXPECT_EQ(rows.other_count, 1);
    EXPECT_FALSE(rows.unreadable);
    for (uint64_t i = 0; i < kMaxGenerations; i++) {
        const std::string entry = Entry({1000 + i, 7});
        rows.Add(ring, entry.data(), entry.size());
    }
    EXPECT_EQ(rows.other_count, kMaxGenerations);
    EXPECT_TRUE(rows.unreadable);
    rows = {};
    rows.Add(ring, "another", 7);
    EXPECT_TRUE(rows.any && rows.unreadable);
    EXPECT_EQ(rows.found, 0u);
    EXPECT_EQ(RowsOf(ring, "A B").found, 3u);
    EXPECT_EQ(RowsOf(ring, "A1").other_count, 1);
    // Entries with the same fingerprint but different times are different entries.
    EXPECT_EQ(RowsOf(ring, "B101").other_count, 1);
}

TEST(CompareKeys, FindsTheFirstSecondOfADifference) {
    constexpr auto kNone = KeyDifference::kNone, kOther = KeyDifference::kOther,
                   kUnchecked = KeyDifference::kUnchecked;
    constexpr Second kNever = kNoSecond;
    static const struct {
        const char* what;
        const char *ring, *keys, *checks;  // without checks, only the keys may be read
        int bound;
        KeyDifference difference;
        Second differs_from;
    } cases[] = {
        {"unbound", "A", "", "", 0, kNone, kNever},
        {"unbound, whatever the checks have", "A", "", "X", 0, kNone, kNever},
        {"one secret", "A", "A", "A", 1, kNone, kNever},
        {"the first needs no check", "A", "A", "", 1, kNone, kNever},
        {"a line too many", "A B100 C200", "A", "A", 1, kNone, kNever},
        {"all", "A B100 C200", "A B100 C200", "A B100 C200", 3, kNone, kNever},
        {"several times, in any order", "A B100", "B100 A A B100", "B100 A", 2, kNone, kNever},
        {"a later one stands for those before", "A B100 C200", "C200", "C200", 3, kNone, kNever},
        {"another first secret", "A", "X", "X", 0, kOther, 0},
        {"beside the own one", "A", "A X", "A X", 1, kOther, 0},
        {"another first secret in the past", "A", "X", nullptr, 0, kOther, 0},
        {"withdrawn", "A", "A X100", "A X100", 1, kOther, 100},
        {"withdrawn, in the past", "A", "A X100", nullptr, 1, kOther, 100},
        {"withdrawn after one that stays", "A B100", "A B100 X200", "A B100 X200", 2, kOther, 200},
        {"moved to later", "A X200", "A X100", "A X100", 1, kOther, 100},
        {"moved to earlier", "A X50", "A X100", "A X100", 1, kOther, 50},
        {"replaced", "A B100", "A X100", "A X100", 1, kOther, 100},
        {"the later of two replaced", "A B100 C200", "A B100 X200", "A B100 X200", 2, kOther, 200},
        {"an earlier one put in", "A B50 C100", "A C200", "A C200", 1, kOther, 50},
        {"two withdrawn", "A", "A X200 Y100", "A X200 Y100", 1, kOther, 100},
        {"between two of the ring", "A B100 C200", "A B100 C200 X150", "A B100 C200 X150", 3,
         kOther, 150},
        {"nothing in common", "A B100", "X100", "X100", 0, kOther, 0},
        {"restored without its secret", "A", "A X100", "A", 1, kOther, 0},
        {"restored without its secret, in the past", "A", "A X100", nullptr, 1, kOther, 100},
        {"restored without a secret that came later", "A B100", "A B100", "A", 2, kUnchecked, 0},
        {"the same, in the past", "A B100", "A B100", nullptr, 2, kNone, kNever},
        {"the same, beside another", "A B100", "A B100 X200", "A X200", 2, kOther, 0},
    };
    for (const auto& c : cases) {
        const SecretRecords ring = RingOf(c.ring);
        const KeyRows checks = RowsOf(ring, c.checks != nullptr ? c.checks : "");
        const TypeBinding binding =
            CompareKeys(ring, RowsOf(ring, c.keys), c.checks != nullptr ? &checks : nullptr);
        EXPECT_EQ(binding.any, strlen(c.keys) > 0) << c.what;
        EXPECT_EQ(binding.bound, c.bound) << c.what;
        EXPECT_EQ(binding.difference, c.difference) << c.what;
        EXPECT_EQ(binding.differs_from, c.differs_from) << c.what;
    }
    const SecretRecords ring = RingOf("A B100");
    KeyRows rows = RowsOf(ring, "A");
    rows.Add(ring, "another", 7);
    EXPECT_EQ(CompareKeys(ring, rows, &rows).differs_from, 0u);
    EXPECT_EQ(CompareKeys(ring, rows, &rows).difference, KeyDifference::kOther);
}

TEST(CertainEnd, IsTheFirstSecondThatNeedsALook) {
    const SecretRecords ring = RingOf("A B100 C200");
    const auto end = [&](const char* keys) {
        const KeyRows rows = RowsOf(ring, keys);
        return CertainEnd(CompareKeys(ring, rows, &rows), ring);
    };
    EXPECT_EQ(end(""), 0u);
    EXPECT_EQ(end("X"), 0u);
    EXPECT_EQ(end("A"), 100u);
    EXPECT_EQ(end("A B100"), 200u);
    EXPECT_EQ(end("A B100 C200"), kNoSecond);
    EXPECT_EQ(end("A B100 C200 X150"), 150u);
    EXPECT_EQ(end("A X50"), 50u);
}

// The ring is "A B100 C200". If a value is the lowest number of a second, `second` is 0.
TEST(PlanBinding, EveryCase) {
    using enum BindingStep;
    enum : uint32_t {
        kDecoding = 1,
        kWorker = 2,
        kParallelMode = 4,
        kStoresNothing = 8,
        kMayBind = 16,
        kLocked = 32,
        kFormerChecks = 64,
        kInWorker = kWorker | kParallelMode,
    };
    constexpr auto kMake = TypeUse::kMake, kInput = TypeUse::kInput, kOutput = TypeUse::kOutput,
                   kSort = TypeUse::kSort, kBuild = TypeUse::kBuildIndex,
                   kNoValue = TypeUse::kNoValue;
    static const struct {
        const char* what;
        const char* keys;  // `checks` is the same
        TypeUse use;
        Second second;
        Second latest;
        uint32_t place;
        BindingStep step;
        Second decode_horizon = kNoSecond;
    } cases[] = {
        // In these cases, the database's table of secrets contains the value's secret.
        {"make", "A", kMake, 50, 60, 0, kGo},
        {"input", "A", kInput, 50, 60, 0, kGo},
        {"output", "A", kOutput, 50, 60, 0, kGo},
        {"no clock binds", "A", kOutput, 50, 5000, 0, kGo},
        {"nor by input of an earlier value", "A", kInput, 50, 5000, 0, kGo},
        {"of the second generation", "A B100", kOutput, 150, 150, 0, kGo},
        {"behind the clock", "A B100", kInput, 150, 50, 0, kGo},
        {"in a worker", "A B100", kInput, 150, 150, kInWorker, kGo},
        // In these cases, the table of secrets lacks the value's secret.
        {"making adds it", "A", kMake, 100, 100, 0, kAdd},
        {"also where the clock went back", "A", kMake, 100, 50, 0, kAdd},
        {"input adds it", "A", kInput, 100, 100, 0, kAdd},
        {"and that of a later one", "A", kInput, 250, 250, 0, kAdd},
        {"input of what is not made yet", "A", kInput, 100, 99, 0, kNotMade},
        {"of a generation between", "A", kInput, 250, 199, 0, kNotMade},
        {"a far second of one that has begun", "A", kInput, 150, 100, 0, kAdd},
        {"also where it stores nothing", "A", kInput, 100, 99, kStoresNothing, kNotMade},
        {"also in a worker", "A", kInput, 100, 99, kInWorker, kNotMade},
        {"input that stores nothing", "A", kInput, 100, 100, kStoresNothing, kGo},
        {"making that stores nothing", "A", kMake, 100, 100, kStoresNothing, kGo},
        {"the same in parallel", "A", kMake, 100, 100, kStoresNothing | kParallelMode, kGo},
        {"making in parallel", "A", kMake, 100, 100, kParallelMode, kParallel},
        {"input in a worker", "A", kInput, 100, 100, kInWorker, kParallel},
        {"output", "A", kOutput, 100, 100, 0, kMissing},
        {"output never writes", "A", kOutput, 100, 5000, kMayBind, kMissing},
        {"output that stores nothing", "A", kOutput, 100, 100, kStoresNothing, kMissing},
        {"output in parallel, of the leader", "A", kOutput, 100, 100, kParallelMode, kMissing},
        {"output in a worker", "A", kOutput, 100, 100, kInWorker, kGo},
        {"output in the past", "A", kOutput, 100, 100, kDecoding, kGo},
        {"input in the past", "A", kInput, 100, 100, kDecoding, kGo},
        // In these cases, the table of secrets is empty.
        {"first", "", kMake, 50, 60, kMayBind, kLock},
        {"first, locked", "", kMake, 50, 60, kMayBind | kLocked, kAdd},
        {"first input", "", kInput, 0, 60, kMayBind, kLock},
        {"first of the second", "", kInput, 150, 160, kMayBind | kLocked, kAdd},
        {"first, not made yet", "", kInput, 150, 60, kMayBind, kNotMade},
        {"beside a former one", "", kMake, 50, 60, kMayBind | kLocked | kFormerChecks, kFormer},
        {"by others", "", kMake, 50, 60, 0, kUnbound},
        {"on a standby", "", kInput, 50, 60, kMayBind | kStoresNothing, kUnbound},
        {"in parallel", "", kInput, 50, 60, kMayBind | kParallelMode, kUnbound},
        {"input in the past of it", "", kInput, 50, 60, kMayBind | kDecoding, kUnbound},
        {"output of it", "", kOutput, 50, 60, kMayBind, kMissing},
        {"output in the past of it", "", kOutput, 50, 60, kDecoding, kGo},
        {"output in a worker of it", "", kOutput, 50, 60, kInWorker, kGo},
        // The ring and the table differ from second 150 on.
        {"before it", "A B100 X150", kOutput, 149, 300, 0, kGo},
        {"made before it", "A B100 X150", kMake, 149, 149, 0, kGo},
        {"read in before it", "A B100 X150", kInput, 149, 300, 0, kGo},
        {"stands for a second", "A B100 X150", kInput, 0, 300, 0, kGo},
        {"shown after it", "A B100 X150", kOutput, 150, 300, 0, kDiffers},
        {"made after it", "A B100 X150", kMake, 150, 300, 0, kDiffers},
        {"read in after it", "A B100 X150", kInput, 300, 300, 0, kDiffers},
        {"in the past", "A B100 X150", kOutput, 150, 300, kDecoding, kDiffers},
        {"in a worker", "A B100 X150", kOutput, 150, 300, kInWorker, kDiffers},
        {"on a standby", "A B100 X150", kOutput, 150, 300, kStoresNothing, kDiffers},
        {"made by none", "A B100 X150", kNoValue, 0, 300, 0, kDiffers},
        {"sorted", "A B100 X150", kSort, 0, 300, 0, kGo},
        {"indexed", "A B100 X150", kBuild, 0, 300, 0, kDiffers},
        // The first secret in the table differs from the ring's first secret.
        {"shown", "X", kOutput, 50, 60, 0, kDiffers},
        {"stands for a second", "X", kOutput, 0, 60, 0, kDiffers},
        {"made", "A X", kMake, 50, 60, 0, kDiffers},
        {"sorted", "A X", kSort, 0, 60, 0, kDiffers},
        {"indexed", "A X", kBuild, 0, 60, 0, kDiffers},
        {"in the past", "X", kOutput, 50, 60, kDecoding, kDiffers},
        // Each use below reads a whole column.
        {"sorted, unbound", "", kSort, 0, 60, 0, kGo},
        {"indexed, unbound", "", kBuild, 0, 60, 0, kGo},
        {"indexed", "A B100", kBuild, 0, 60, 0, kGo},
        {"made by none", "A B100", kNoValue, 0, 60, 0, kGo},
        // The server knows that it lacks the secret that begins at second 120.
        {"before that", "A B100", kOutput, 119, 300, 0, kGo, 120},
        {"from then on", "A B100", kOutput, 120, 300, 0, kLacksSecret, 120},
        {"read in", "A B100", kInput, 120, 300, 0, kLacksSecret, 120},
        {"in the past", "A B100", kOutput, 120, 300, kDecoding, kLacksSecret, 120},
        {"the entry is missing, too", "A", kInput, 120, 300, 0, kLacksSecret, 120},
        {"stands for a second", "A B100", kInput, 0, 300, 0, kGo, 120},
        {"made by none", "A B100", kNoValue, 0, 300, 0, kLacksSecret, 120},
        {"the tables know of one before", "A B100 X110", kOutput, 115, 300, 0, kDiffers, 120},
        {"and of one after", "A B100 X150", kOutput, 130, 300, 0, kLacksSecret, 120},
        {"indexed", "A B100", kBuild, 0, 300, 0, kGo, 120},
    };
    const SecretRecords ring = RingOf("A B100 C200");
    for (const auto& c : cases) {
        const KeyRows rows = RowsOf(ring, c.keys);
        const bool decoding = (c.place & kDecoding) != 0;
        const TypeBinding binding = CompareKeys(ring, rows, decoding ? nullptr : &rows);
        const TypePlace place{.decoding = decoding,
                              .worker = (c.place & kWorker) != 0,
                              .parallel = (c.place & kParallelMode) != 0,
                              .stores_nothing = (c.place & kStoresNothing) != 0,
                              .may_bind_first = (c.place & kMayBind) != 0,
                              .locked = (c.place & kLocked) != 0,
                              .former = (c.place & kFormerChecks) != 0,
                              .latest = c.latest,
                              .decode_horizon = c.decode_horizon};
        const BoundValue value{c.second >= 200 ? 2 : c.second >= 100 ? 1 : 0, c.second};
        EXPECT_EQ(PlanBinding(binding, ring, c.use, value, place), c.step)
            << c.what << ", keys " << c.keys << ", second " << c.second;
    }
}

TEST(BoundValue, StandsForASecondUnderTheFirstGeneration) {
    const Generation generations[] = {{0, {}}, {100, {}}};
    const SecretRing ring{generations, 2};
    const struct {
        Fields fields;
        int generation;
        int64_t second;
    } cases[] = {
        {{99, 7, 0}, 0, 99}, {{100, 0, 1}, 1, 100}, {{100, 0, 0}, 0, 0}, {{100, 1, 0}, 1, 100}};
    for (const auto& c : cases) {
        const uint64_t raw = Packed(kRandflake, c.fields);
        const BoundValue value = BoundValueOf(ring, raw);
        EXPECT_EQ(value.generation, c.generation) << raw;
        EXPECT_EQ(value.second, c.second) << raw;
    }
}

}  // namespace
}  // namespace randflake
