#include <gtest/gtest.h>

#include <functional>
#include <type_traits>
#include <vector>

#include "core/identifier/layout_text.h"
#include "printers.h"

namespace randflake {
namespace {

constexpr uint64_t kUntouched = 0x0123456789abcdef;

uint64_t Packed(const Layout& layout, const Fields& fields) {
    uint64_t raw = kUntouched;
    EXPECT_TRUE(layout.Pack(fields, &raw)) << testing::PrintToString(fields);
    return raw;
}

std::vector<uint64_t> Edges(uint64_t max) {
    return {0, 1, max / 2, max / 2 + 1, max - 1, max};
}

TEST(Layout, PackRefusesWhatDoesNotFit) {
    // These values exceed the maximum by 1 or by 2^32, or are -1 as an unsigned number.
    for (const uint64_t over : {uint64_t{1}, uint64_t{1} << 32, UINT64_MAX}) {
        const auto beyond = [over](uint64_t max) { return over == UINT64_MAX ? over : max + over; };
        for (const Fields& fields : {Fields{beyond(kRandflake.max_timestamp()), 0, 0},
                                     Fields{0, beyond(kRandflake.max_node_id()), 0},
                                     Fields{0, 0, beyond(kRandflake.max_sequence())}}) {
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

}  // namespace
}  // namespace randflake
