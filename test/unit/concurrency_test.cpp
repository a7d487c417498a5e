// Reserve, ChangeWindow and SealWindow on real atomics in real threads: no number twice, outside
// its window, or lost. Run it under the thread sanitizer too.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "core/window/generator.h"

#include "printers.h"

namespace randflake {
namespace {

using AtomicWord = std::atomic<uint64_t>;
using Reservations = std::vector<Reservation>;

constexpr int kThreads = 4;

// Sometimes lets another thread run. In the clock, which Reserve reads between load and
// compare-and-swap, and between stores of ChangeWindow, this causes races on any machine.
void Dawdle(std::mt19937& random) {
    if (random() % 16 == 0)
        std::this_thread::yield();
}

// Runs work(thread, &reservations) in all threads at once; returns all reservations in order.
template <typename Work>
Reservations RunThreads(Work&& work) {
    std::array<Reservations, kThreads> reservations;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back([&, i] { work(i, &reservations[i]); });
    for (std::thread& thread : threads)
        thread.join();

    Reservations all;
    for (const Reservations& some : reservations)
        all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end(),
              [](const Reservation& a, const Reservation& b) { return a.first < b.first; });
    return all;
}

void ExpectNoNumberTwice(const Reservations& reservations) {
    ASSERT_FALSE(reservations.empty());
    for (size_t i = 1; i < reservations.size(); i++)
        ASSERT_GE(reservations[i].first, reservations[i - 1].first + reservations[i - 1].count);
}

// One contended slot through many seconds, each used to its last number. The clock advances when a
// second is used up, and sometimes steps back.
void UseUpSeconds(const Layout& layout, uint32_t most_wanted, int64_t seconds) {
    constexpr uint64_t kNode = 1;
    const Window window_used{1, static_cast<uint32_t>(seconds) + 1};
    uint64_t before = 0;
    ASSERT_TRUE(WordBefore(layout, window_used, kNode, &before));
    AtomicWord slot{before}, window{window_used.ToWord()};
    std::atomic<int64_t> now{1};

    const Reservations reservations = RunThreads([&](int thread, Reservations* mine) {
        std::mt19937 random(static_cast<unsigned>(thread));
        const auto clock = [&] {
            Dawdle(random);
            return Tick{now.load(std::memory_order_relaxed) - (random() % 8 == 0 ? 1 : 0)};
        };
        for (;;) {
            const Reservation reservation =
                Reserve(layout, slot, window, 1 + random() % most_wanted, clock);
            if (reservation.outcome == Outcome::kReserved) {
                mine->push_back(reservation);
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
    });

    ExpectNoNumberTwice(reservations);
    uint64_t count = 0;
    for (const Reservation& reservation : reservations) {
        const Fields fields = layout.Unpack(reservation.first);
        ASSERT_EQ(fields.node_id, kNode);
        ASSERT_GE(fields.timestamp, window_used.start);
        ASSERT_LT(fields.timestamp, window_used.end);
        count += reservation.count;
    }
    EXPECT_EQ(count, static_cast<uint64_t>(seconds) *
                         (layout.max_sequence() + 1 - layout.FirstSequence(kNode)));
}

TEST(Concurrency, ManyThreadsUseUpOneSlot) {
    UseUpSeconds(kRandflake, 32, 50);
}

TEST(Concurrency, ManyThreadsUseUpShortSeconds) {
    UseUpSeconds({kWindowEpochMs, 30, 17, 2}, 3, 50000);
}

// A server of two slots whose window and node ids change constantly, and backends with slightly
// wrong clocks. Seals some windows and gives their unused rest back.
class ChangingServer {
public:
    explicit ChangingServer(const Layout& layout) : layout_(layout) {}

    Reservations Work(uint32_t most_wanted) {
        Reservations reservations;
        std::thread changer([this] { ChangeWindows(); });
        reservations = RunThreads([&](int thread, Reservations* mine) {
            std::mt19937 random(static_cast<unsigned>(thread));
            const auto clock = [&] {
                Dawdle(random);
                return Tick{now_.load(std::memory_order_relaxed)} +
                       (static_cast<int64_t>(random() % 5) - 2);
            };
            while (!done_.load(std::memory_order_acquire)) {
                const Reservation reservation = Reserve(layout_, slots_[random() % kSlots], window_,
                                                        1 + random() % most_wanted, clock);
                if (reservation.outcome == Outcome::kReserved) {
                    mine->push_back(reservation);
                    Show(layout_.Unpack(reservation.first).timestamp);
                } else {
                    std::this_thread::yield();
                }
            }
        });
        changer.join();
        return reservations;
    }

    // After Work: whether the server had this second for this node id.
    bool Had(const Fields& fields) const {
        if (fields.timestamp >= first_node_at_.size())
            return false;
        const uint64_t first = first_node_at_[fields.timestamp];
        return fields.node_id >= first && fields.node_id < first + kSlots;
    }

private:
    static constexpr uint32_t kSlots = 2;
    static constexpr uint64_t kNone = UINT64_MAX - kSlots;
    static constexpr int kChanges = 20000;

    void ChangeWindows() {
        std::mt19937 random(42);
        const auto slot_at = [&](uint32_t i) -> AtomicWord& {
            Dawdle(random);
            return slots_[i];
        };
        for (int i = 0; i < kChanges; i++) {
            // The same, overlapping and other node ids; sometimes a second is skipped.
            const uint64_t first_node = 1 + random() % 4;
            const int64_t earliest = Window::FromWord(window_.load()).earliest().count;
            const auto start = static_cast<uint32_t>(std::max(earliest, int64_t{1}) +
                                                     static_cast<int64_t>(random() % 2));
            uint32_t end = start + 1;
            Give(first_node, start, end);
            EXPECT_TRUE(ChangeWindow(kSlots, first_node, window_, Window{start, end},
                                     SlotSet{layout_, slot_at}));
            now_.store(start, std::memory_order_relaxed);
            for (uint32_t more = random() % 3; more > 0; more--) {
                Give(first_node, end, end + 1);
                window_.store(Window{start, ++end}.ToWord(), std::memory_order_release);
            }
            // Each window is used before the next.
            while (latest_.load(std::memory_order_relaxed) < start)
                std::this_thread::yield();
            if (random() % 4 == 0) {
                const int64_t last = SealWindow(kSlots, window_, SlotSet{layout_, slot_at}).count;
                EXPECT_GE(last, int64_t{start});
                first_node_at_.resize(static_cast<size_t>(last) + 1);
            }
        }
        done_.store(true, std::memory_order_release);
    }

    void Show(uint64_t second) {
        uint64_t latest = latest_.load(std::memory_order_relaxed);
        while (latest < second && !latest_.compare_exchange_weak(latest, second)) {
        }
    }

    void Give(uint64_t first_node, uint32_t start, uint32_t end) {
        first_node_at_.resize(start, kNone);
        first_node_at_.resize(end, first_node);
    }

    const Layout layout_;
    std::array<AtomicWord, kSlots> slots_{};
    AtomicWord window_{0};
    std::atomic<int64_t> now_{0};
    std::atomic<uint64_t> latest_{0};  // second of the latest reservation
    std::atomic<bool> done_{false};
    std::vector<uint64_t> first_node_at_;  // per second; only the changer writes it
};

void ReserveWhileWindowsChange(const Layout& layout, uint32_t most_wanted) {
    ChangingServer server(layout);
    const Reservations reservations = server.Work(most_wanted);
    ExpectNoNumberTwice(reservations);
    for (const Reservation& reservation : reservations) {
        const Fields first = layout.Unpack(reservation.first);
        ASSERT_TRUE(server.Had(first))
            << "second " << first.timestamp << " of node id " << first.node_id;
        ASSERT_LE(first.sequence + reservation.count - 1, layout.max_sequence());
    }
}

TEST(Concurrency, ThreadsReserveWhileWindowsChange) {
    ReserveWhileWindowsChange(kRandflake, 32);
}

TEST(Concurrency, ThreadsUseUpSlotsWhileWindowsChange) {
    ReserveWhileWindowsChange({kWindowEpochMs, 30, 17, 2}, 3);
}

}  // namespace
}  // namespace randflake
