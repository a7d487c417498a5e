// Calls Reserve in real threads on real atomics, and checks that Reserve returns every number of a
// window exactly once. Run this test under the thread sanitizer too.

#include "core/generator/generator.h"
#include "printers.h"

namespace randflake {
namespace {

using AtomicWord = std::atomic<uint64_t>;

constexpr int kThreads = 4;

// Yields to another thread in one of 16 calls. Reserve reads the clock between its load and its
// compare-and-swap. So if the clock calls Dawdle, races occur on any machine.
void Dawdle(std::mt19937& random) {
    if (random() % 16 == 0) std::this_thread::yield();
}

// All threads reserve in one slot until they have used every number of `seconds` seconds. The clock
// advances when a second is used up, and sometimes steps back.
void UseUpSeconds(const Layout& layout, uint32_t most_wanted, int64_t seconds) {
    constexpr uint64_t kNode = 1;
    const Window window_used{1, static_cast<uint32_t>(seconds) + 1};
    uint64_t before = 0;
    ASSERT_TRUE(WordBefore(layout, window_used, kNode, &before));
    AtomicWord slot{before}, window{window_used.ToWord()};
    std::atomic<int64_t> now{1};

    std::array<std::vector<Reservation>, kThreads> of_threads;
    const auto use_up = [&](int thread) {
        std::mt19937 random(static_cast<unsigned>(thread));
        const auto clock = [&] {
            Dawdle(random);
            return Tick{now.load(std::memory_order_relaxed) - (random() % 8 == 0 ? 1 : 0)};
        };
        for (;;) {
            const Reservation reservation =
                Reserve(layout, slot, window, 1 + random() % most_wanted, clock);
            if (reservation.outcome == Outcome::kReserved) {
                of_threads[thread].push_back(reservation);
            } else if (reservation.outcome == Outcome::kExhausted) {
                int64_t used_up = reservation.now.count;
                now.compare_exchange_strong(used_up, used_up + 1);
            } else if (reservation.outcome == Outcome::kWindowEnded) {
                return;
            } else if (reservation.outcome != Outcome::kClockBehind) {
                ADD_FAILURE() << "outcome " << static_cast<int>(reservation.outcome);
                return;
            }
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; i++) threads.emplace_back(use_up, i);
    for (std::thread& thread : threads) thread.join();

    std::vector<Reservation> all;
    for (const auto& some : of_threads) all.insert(all.end(), some.begin(), some.end());
    std::ranges::sort(all, {}, &Reservation::first);
    uint64_t count = 0, free = 0;
    for (const Reservation& reservation : all) {
        ASSERT_GE(reservation.first, free) << "a number twice";
        free = reservation.first + reservation.count;
        const Fields fields = layout.Unpack(reservation.first);
        ASSERT_EQ(fields.node_id, kNode);
        ASSERT_GE(fields.timestamp, window_used.start);
        ASSERT_LT(fields.timestamp, window_used.end);
        count += reservation.count;
    }
    EXPECT_EQ(count, static_cast<uint64_t>(seconds) *
                         (layout.max_sequence() + 1 - layout.FirstSequence(kNode)));
}

TEST(Concurrency, ManyThreadsUseUpOneSlot) { UseUpSeconds(kRandflake, 32, 50); }

TEST(Concurrency, ManyThreadsUseUpShortSeconds) {
    UseUpSeconds({kWindowEpochMs, 30, 17, 2}, 3, 50000);
}

}  // namespace
}  // namespace randflake
