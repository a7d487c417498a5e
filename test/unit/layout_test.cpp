#include "core/identifier/layout_text.h"
#include "printers.h"

namespace randflake {
namespace {

std::vector<uint64_t> Edges(uint64_t max) { return {0, 1, max / 2, max / 2 + 1, max - 1, max}; }

TEST(Layout, PackRefusesWhatDoesNotFit) {
    // These values exceed the maximum by 1 or by 2^32, or are -1 as an unsigned number.
    for (const uint64_t over : {uint64_t{1}, uint64_t{1} << 32, UINT64_MAX}) {
        const auto beyond = [over](uint64_t max) { return over == UINT64_MAX ? over : max + over; };
        for (const Fields& fields : {Fields{beyond(kRandflake.max_timestamp()), 0, 0},
                                     Fields{0, beyond(kRandflake.max_node_id()), 0},
                                     Fields{0, 0, beyond(kRandflake.max_sequence())}}) {
            constexpr uint64_t kUntouched = 0x0123456789abcdef;
            uint64_t raw = kUntouched;
            EXPECT_FALSE(kRandflake.Fits(fields)) << testing::PrintToString(fields);
            EXPECT_FALSE(kRandflake.Pack(fields, &raw)) << testing::PrintToString(fields);
            EXPECT_EQ(raw, kUntouched);
        }
    }
}

TEST(Layout, EveryNamedLayoutRoundTripsAtItsEdges) {
    for (const NamedLayout& named : kNamedLayouts) {
        const Layout& layout = named.layout;
        EXPECT_EQ(layout.bits(), 63) << named.name;
        EXPECT_TRUE(layout.time_first()) << named.name;
        uint64_t last_id = 0;
        for (const uint64_t timestamp : Edges(layout.max_timestamp()))
            for (const uint64_t node_id : Edges(layout.max_node_id()))
                for (const uint64_t sequence : Edges(layout.max_sequence())) {
                    const Fields fields{timestamp, node_id, sequence};
                    last_id = layout.ToId(Packed(layout, fields));
                    EXPECT_LE(last_id, uint64_t{INT64_MAX}) << named.name;
                    EXPECT_EQ(layout.FieldsOfId(last_id), fields) << named.name;
                }
        EXPECT_EQ(last_id, uint64_t{INT64_MAX}) << named.name;
        for (const uint64_t timestamp : Edges(layout.max_timestamp())) {
            const WallMs begins = layout.TickStart(timestamp);
            EXPECT_EQ(layout.TickAt(begins), static_cast<int64_t>(timestamp));
            EXPECT_EQ(layout.TickAt(begins + layout.unit - 1), static_cast<int64_t>(timestamp));
            EXPECT_EQ(layout.TickAt(begins - 1), static_cast<int64_t>(timestamp) - 1);
        }
    }
}

TEST(Layout, TicksThatDoNotTileSeconds) {
    EXPECT_TRUE((Layout{0, 20, 1, 1, 250}.tiles_seconds()));
    EXPECT_TRUE((Layout{1288834974657, 20, 1, 1, 1}.tiles_seconds()));
    EXPECT_FALSE((Layout{0, 20, 1, 1, 7}.tiles_seconds()));
    EXPECT_FALSE((Layout{0, 20, 1, 1, 2000}.tiles_seconds()));
    EXPECT_FALSE((Layout{1, 20, 1, 1, 10}.tiles_seconds()));
    EXPECT_FALSE((Layout{500, 20, 1, 1, 1000}.tiles_seconds()));
}

TEST(Layout, TicksOfAWindow) {
    for (const int64_t unit : {1, 8, 125, 500, 1000})
        for (const int64_t ticks : {0, 1, -1, 657, -2500, 4000}) {
            const Layout layout{kWindowEpochMs + ticks * unit, 20, 1, 1, unit};
            ASSERT_TRUE(layout.tiles_seconds());
            for (uint32_t second = 0; second < 8; second++) {
                const int64_t instant = kWindowEpochMs + second * kSecondMs;
                for (uint64_t tick = 0; tick < 12000; tick++) {
                    const int64_t begins = layout.epoch + static_cast<int64_t>(tick) * unit;
                    ASSERT_EQ(layout.Before(tick, {second}), begins < instant);
                    ASSERT_EQ(layout.Before(tick, {second}), begins + unit <= instant);
                    if (begins >= instant && begins - unit < instant) {
                        ASSERT_EQ(layout.FirstTick({second}), begins < layout.epoch ? 0 : tick);
                    }
                    const int64_t lies_in = StartOf(layout.SecondOf(tick)).count;
                    ASSERT_LE(lies_in, begins);
                    ASSERT_GE(lies_in + kSecondMs, begins + unit);
                }
            }
        }
}

// True if the compiler refuses conversions, subtractions and comparisons between A and B.
template <typename A, typename B>
constexpr bool kApart =
    !std::is_constructible_v<A, B> && !std::is_constructible_v<B, A> &&
    !std::is_invocable_v<std::minus<>, A, B> && !std::is_invocable_v<std::less<>, A, B>;
static_assert(kApart<Second, UnixSecond> && kApart<Second, WallMs> && kApart<WallMs, UptimeMs> &&
              kApart<WallMs, SteadyMs> && kApart<UptimeMs, SteadyMs> && kApart<Tick, Second> &&
              kApart<SteadyUs, SteadyMs>);
static_assert(kApart<Seconds, Ms> && kApart<Ms, Us> && !std::is_convertible_v<Ms, int64_t>);
static_assert(std::is_same_v<decltype(Second{} - Second{}), Seconds> &&
              std::is_same_v<decltype(WallMs{} - WallMs{}), Ms>);
static_assert(std::is_invocable_v<std::plus<>, Second, Seconds> &&
              !std::is_invocable_v<std::plus<>, Second, Ms> &&
              !std::is_invocable_v<std::minus<>, SteadyMs, Us> &&
              !std::is_invocable_v<std::plus<>, Second, Second> &&
              !std::is_invocable_v<std::plus<>, Tick, Seconds>);
static_assert(!std::is_convertible_v<int64_t, Second> && !std::is_convertible_v<Second, int64_t>);

TEST(Time, Conversions) {
    EXPECT_EQ(ToUnix({1}), 1730000001);
    EXPECT_EQ(FromUnix({1730000001}), 1);
    EXPECT_EQ(StartOf({-2}), 1729999998000);
    for (const int64_t second : {-1730000000, -1, 0, 1, 1 << 30}) {
        EXPECT_EQ(FromUnix(ToUnix({second})), second);
        EXPECT_EQ(SecondOf(StartOf({second})), second);
        EXPECT_EQ(SecondOf(StartOf({second}) + 999), second);
        EXPECT_EQ(SecondOf(StartOf({second}) - 1), second - 1);
    }
}

LayoutResult Parse(const std::string& text) { return ParseLayout(text.data(), text.size()); }

std::string Format(const Layout& layout) {
    char buffer[kMaxLayoutText];
    std::memset(buffer, 'x', sizeof buffer);
    FormatLayout(layout, buffer);
    return buffer;
}

Layout Parsed(const std::string& text) {
    const LayoutResult result = Parse(text);
    EXPECT_EQ(result.error, LayoutError::kNone) << text << ": " << LayoutErrorText(result.error);
    return result.layout;
}

std::string WithEpoch(const std::string& epoch) {
    return "time=41:1ms, node=10, sequence=12, epoch=" + epoch;
}

TEST(LayoutText, NamesAndTheirDescriptions) {
    const char* expected[] = {
        "time=41:1ms, node=10, sequence=12, epoch=2010-11-04 01:42:54.657",
        "time=41:1ms, node=10, sequence=12, epoch=2015-01-01",
        "time=40:1ms, node=13, sequence=10, epoch=2011-08-24 21:07:01.721",
        "time=39:10ms, sequence=8, node=16, epoch=2014-09-01",
        "time=28:1s, node=22, sequence=13, epoch=2016-05-19 16:00:00",
    };
    int i = 0;
    for (const NamedLayout& named : kNamedLayouts) {
        EXPECT_EQ(Format(Parsed(named.name)), expected[i]);
        EXPECT_EQ(Format(Parsed(expected[i])), expected[i]);
        EXPECT_EQ(Parsed(expected[i]).epoch, named.layout.epoch);
        EXPECT_EQ(Parsed(std::string("  ") + named.name + "\n").bits(), 63);
        i++;
    }
}

TEST(LayoutText, Description) {
    const Layout layout = Parsed("time=38:1ms, node=15, sequence=10, epoch=2017-12-21");
    EXPECT_EQ(layout.epoch, 1513814400000);
    EXPECT_EQ(layout.unit, 1);
    EXPECT_EQ(layout.timestamp_bits, 38);
    EXPECT_EQ(layout.node_bits, 15);
    EXPECT_EQ(layout.sequence_bits, 10);
    EXPECT_EQ(layout.timestamp_shift, 25);
    EXPECT_EQ(layout.node_shift, 10);
    EXPECT_EQ(layout.sequence_shift, 0);
    EXPECT_TRUE(layout.time_first());
    EXPECT_EQ(Format(Parsed("epoch = 2017-12-21 ,\ttime= 38 : 1ms,node =15,sequence=10")),
              Format(layout));
    EXPECT_EQ(Format(Parsed("time=38:1ms,node=15,sequence=10,epoch=1513814400000")),
              Format(layout));
}

// An identifier has its fields in the same order as the layout's text.
TEST(LayoutText, EveryOrder) {
    const char* fields[] = {"time=30:1s", "node=17", "sequence=10"};
    for (const auto& [a, b, c] :
         {std::array{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
        const std::string text = std::string(fields[a]) + ", " + fields[b] + ", " + fields[c] +
                                 ", epoch=2020-02-29 23:59:59";
        const Layout layout = Parsed(text);
        EXPECT_EQ(Format(layout), text);
        EXPECT_EQ(layout.time_first(), a == 0);
        const Fields last{layout.max_timestamp(), layout.max_node_id(), layout.max_sequence()};
        for (const Fields& edge : {last, Fields{last.timestamp, 0, 0}, Fields{0, last.node_id, 0},
                                   Fields{0, 0, last.sequence}, Fields{1, 1, 1}})
            EXPECT_EQ(layout.FieldsOfId(layout.ToId(Packed(layout, edge))), edge) << text;
        const uint64_t raw = Packed(layout, {5, 6, 7});
        EXPECT_EQ(layout.ToId(raw + 1) - layout.ToId(raw), uint64_t{1} << layout.sequence_shift);
        EXPECT_EQ(layout.ToId(Packed(layout, last)), (uint64_t{1} << layout.bits()) - 1);
    }
}

TEST(LayoutText, Epochs) {
    EXPECT_EQ(Parsed(WithEpoch("1970-01-01")).epoch, 0);
    EXPECT_EQ(Parsed(WithEpoch("0")).epoch, 0);
    EXPECT_EQ(Parsed(WithEpoch("1288834974657")).epoch, 1288834974657);
    for (const char* same :
         {"2010-11-04 01:42:54.657", "2010-11-04T01:42:54.657Z", "2010-11-04T01:42:54.657"})
        EXPECT_EQ(Parsed(WithEpoch(same)).epoch, 1288834974657) << same;
    EXPECT_EQ(Parsed(WithEpoch("2010-11-04Z")).epoch, Parsed(WithEpoch("2010-11-04 00:00")).epoch);
    EXPECT_EQ(Parsed(WithEpoch("2010-11-04 00:00:00.5")).epoch % 1000, 500);
    EXPECT_EQ(Parsed(WithEpoch("2010-11-04 00:00:00.05")).epoch % 1000, 50);
    EXPECT_EQ(Format(Parsed("time=41:1ms, node=10, sequence=12, epoch=253402300800000")),
              WithEpoch("253402300800000"));  // the year 10000
    // <chrono> cannot represent the year of this epoch.
    EXPECT_EQ(Format(Parsed("time=3:1s, node=0, sequence=3, epoch=983555550055000")),
              "time=3:1s, node=0, sequence=3, epoch=983555550055000");
    EXPECT_EQ(Format(Parsed("time=3:1ms, node=0, sequence=3, epoch=253402300799999")),
              "time=3:1ms, node=0, sequence=3, epoch=9999-12-31 23:59:59.999");
}

TEST(LayoutText, Edges) {
    EXPECT_EQ(Parsed("time=53:1ms, node=0, sequence=10, epoch=0").bits(), 63);
    EXPECT_EQ(Parsed("time=1:1s, node=31, sequence=31, epoch=0").bits(), 63);
    EXPECT_EQ(Format(Parsed("sequence=1, node=0, time=10:1000ms, epoch=0")),
              "sequence=1, node=0, time=10:1s, epoch=1970-01-01");
}

struct Malformed {
    std::string text;
    LayoutError error;
    std::string part{};  // the wrong part
};

TEST(LayoutText, MalformedInEveryWay) {
    using enum LayoutError;
    std::vector<Malformed> cases{
        {"", kEmpty},
        {" \t\n", kEmpty},
        {"twiter", kUnknownName},
        {"Twitter", kUnknownName},
        {"twitter2", kUnknownName},
        {"twitte", kUnknownName},
        {"41/10/12", kUnknownName},
        {"time=41:1ms, node, sequence=12, epoch=0", kNotAField, "node"},
        {"time=41:1ms, node=10, sequence=12, epoch=0,", kNotAField, ""},
        {"time=41:1ms,, node=10, sequence=12, epoch=0", kNotAField, ""},
        {"twitter, epoch=0", kNotAField, "twitter"},
        {"time=41:1ms, worker=10, sequence=12, epoch=0", kUnknownField, "worker=10"},
        {"=1", kUnknownField, "=1"},
        {"Time=41:1ms, node=10, sequence=12, epoch=0", kUnknownField, "Time=41:1ms"},
        {"time=41:1ms, node=5, node=5, sequence=12, epoch=0", kRepeatedField, "node=5"},
        {"epoch=0, epoch=0", kRepeatedField, "epoch=0"},
        {"time=41:1ms, node=10, sequence=12", kMissingField},
        {"node=10, sequence=12, epoch=0", kMissingField},
        {"time=41:1ms, sequence=12, epoch=0", kMissingField},
        {"time=41:1ms, node=10, epoch=0", kMissingField},
        {"time=39:10ms, node=10, sequence=12, epoch=2024-01-01 00:00:00.005", kEpochNotOnTick},
        {"time=30:1s, node=10, sequence=12, epoch=500", kEpochNotOnTick},
        {"time=10:1ms, node=32, sequence=12, epoch=0", kFieldTooWide, "node=32"},
        {"time=10:1ms, node=10, sequence=32, epoch=0", kFieldTooWide, "sequence=32"},
        {"time=42:1ms, node=10, sequence=12, epoch=0", kTooManyBits},
        {"time=999:1ms, node=10, sequence=12, epoch=0", kTooManyBits},
        {"time=54:1ms, node=1, sequence=1, epoch=0", kTooLong},
        {"time=45:1s, node=1, sequence=1, epoch=0", kTooLong},
        {"time=62:1ms, node=0, sequence=1, epoch=0", kTooLong},
    };
    // Each value makes one field of a description wrong.
    const struct {
        LayoutError error;
        const char* field;
        std::vector<const char*> values;
    } fields[] = {
        {kBadWidth, "node", {"", "ten", "-1", "10 bits", "10:1ms", "4294967306"}},
        {kBadWidth, "time", {":1ms"}},
        {kBadUnit, "time", {"41", "41:", "41:1", "41:ms", "41:1us", "41:1ms:2", "41:1.5ms"}},
        {kUnitNotInSecond, "time", {"41:0ms", "41:7ms", "30:2s", "41:2000ms"}},
        {kNoBits, "time", {"0:1ms"}},
        {kNoBits, "sequence", {"0"}},
        {kBadEpoch, "epoch", {"", "yesterday", "-1", "1969-12-31", "1000000000000000"}},
        {kBadEpoch, "epoch", {"2021-02-29", "2021-13-01", "2021-1-1", "2021-01-01 12:00+01"}},
        {kBadEpoch, "epoch", {"2021-01-01 24:00", "2021-01-01 12:60", "2021-01-01 12"}},
        {kBadEpoch, "epoch", {"2021-01-01 12:00:00.1234"}},
    };
    for (const auto& wrong : fields)
        for (const char* value : wrong.values) {
            std::string text = "time=41:1ms, node=10, sequence=12, epoch=0";
            const size_t at = text.find(wrong.field);
            const std::string part = std::string(wrong.field) + '=' + value;
            text.replace(at, std::min(text.find(',', at), text.size()) - at, part);
            cases.push_back({text, wrong.error, part});
        }
    for (const auto& [text, error, part] : cases) {
        const LayoutResult result = Parse(text);
        EXPECT_EQ(result.error, error) << text << ": " << LayoutErrorText(result.error);
        EXPECT_EQ(text.substr(std::min(result.position, text.size()), result.length), part) << text;
        EXPECT_STRNE(LayoutErrorText(result.error), LayoutErrorText(kNone));
    }
}

TEST(LayoutText, EveryErrorHasItsOwnWords) {
    for (int i = 0; i <= static_cast<int>(LayoutError::kTooLong); i++)
        for (int j = 0; j < i; j++)
            EXPECT_STRNE(LayoutErrorText(static_cast<LayoutError>(i)),
                         LayoutErrorText(static_cast<LayoutError>(j)));
}

}  // namespace
}  // namespace randflake
