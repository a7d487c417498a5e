// Checks at compile time which types satisfy the concept Environment.

#include "core/server/server.h"
#include "test.h"

namespace randflake {
namespace {

// Has only the members of UnlockedEnvironment. If Server calls any other member, compilation fails.
struct UnlockedArchetype {
    using Decisions = randflake::Decisions;

    ServerMemory<LeaseHolder>& memory() { return memory_; }
    std::atomic<uint64_t>& window() { return words_[0]; }
    template <typename Use> void WithSlots(Use&& use) {
        use(SlotSet{kRandflake, [this](uint32_t) -> std::atomic<uint64_t>& { return words_[1]; }});
    }
    Moment Present() { return {}; }
    Ms SkewMs() { return 0; }
    SkewRange Skew() { return {}; }
    bool WriteState(const WindowState&) { return true; }
    bool SetMarker(const Origin&, uint64_t*) { return true; }
    void LockMarker() {}
    uint64_t RandomRun() { return 1; }
    bool Locked() { return true; }
    bool NoChildrenLeft() { return true; }

private:
    ServerMemory<LeaseHolder> memory_{};
    std::atomic<uint64_t> words_[2]{};
};
static_assert(UnlockedEnvironment<UnlockedArchetype> && !Environment<UnlockedArchetype>);

// Adds the members of Environment that UnlockedEnvironment lacks.
struct Archetype : UnlockedArchetype {
    struct SecretList {};

    const Layout& layout() { return kRandflake; }
    void Lock() {}
    bool TryLock() { return true; }
    void Unlock() {}
    void Wake() {}
    Second Now() { return {1000}; }
    SteadyMs Steady() { return {}; }
    LeaseTerms Terms() { return {}; }
    bool Generates() { return true; }
    bool ReadState(WindowState*, StateError*, Origin*) { return false; }
    uint64_t ReadMarker(const Origin&) { return 0; }
    bool PeekAtState(WindowState*, StateError*) { return false; }
    SecretRecords Secrets() { return {}; }
    uint32_t SecretCount() { return 0; }
    void AddSecrets(const SecretList&) {}
    Second DecodeHorizon() { return {}; }
    void SetDecodeHorizon(Second) {}
    void Look() {}
    void Report(const WindowTrouble&) {}
    void LogStart(const StartPlan&, const WindowState&, StateError) {}
    void LogRange(uint32_t, Second) {}
    void ShowRanges(uint32_t, const Second (&)[kMaxRanges]) {}
    void Closing(const Window&) {}
    void ShowLeases(const LeaseHolder&) {}
};
static_assert(Environment<Archetype> && DecidesAsShipped<Archetype>);

// These members share names with functions of Decisions. Server must call Decisions' functions.
struct Shadows : Archetype {
    void SetTime(auto&&...) = delete;
    void ChangeWindow(auto&&...) = delete;
    void SealWindow(auto&&...) = delete;
};

struct OtherTime : Archetype {
    struct Decisions : randflake::Decisions {
        using randflake::Decisions::Decisions;
        static void SetTime(auto&&...) {}
    };
};
struct OtherWindow : Archetype {
    struct Decisions : randflake::Decisions {
        using randflake::Decisions::Decisions;
        static bool ChangeWindow(auto&&...) { return true; }
        static Second SealWindow(auto&&...) { return kNotUsed; }
    };
};
static_assert(!DecidesAsShipped<OtherTime> && !DecidesAsShipped<OtherWindow>);

}  // namespace

template class Server<Archetype>;
template class Server<Shadows>;

TEST(Static, AServerNeedsNoMoreThanTheConceptsName) {
    UnlockedArchetype unlocked;
    Server<UnlockedArchetype> postmaster(unlocked);
    PostmasterMemory memory{};
    postmaster.MakeMemory(false, {{1, 1}, 1}, {1, 2}, false, &memory);
    postmaster.Stop({1, 2});
    EXPECT_TRUE(memory.started);

    Archetype environment;
    Server<Archetype> server(environment);
    EXPECT_TRUE(server.AddSecrets({}, Archetype::SecretList{}).state_known);
}

}  // namespace randflake
