// Defines the protocol of a server: the order in which its processes read and write files, lock,
// decide and publish. Every process of a server runs this code. The simulation runs the same code
// in another environment. Environment, below, lists the calls of an environment.
//
// Callers:
//
//   any session        Extend; AddSecrets, DecodeHorizon, AcknowledgeCopy
//   the lease worker   Ask, Answered; OpenLease, DropNext, Seal
//   a worker           Looked, once after a start
//   the postmaster     MakeMemory; Stop, at its exit, when all its children are gone
//
// There is one lock, the window lock. A process must have it to
//
//   - open, extend and seal the window, and change leases,
//   - read and write the state on disk, and change ServerMemory,
//   - add secrets.
//
// A write contains the whole state. Nothing relies on the state before the write has moved the
// marker. The postmaster cannot take locks, and its calls need none. The words of the slots, the
// word of the window and the number of secrets are atomic, so processes read them without the lock.
// Processes without the lock read a copy of the leases (ShowLeases).
//
//   Load, once           read the state, decide (PlanStart, Resumes), keep state and leases
//   Extend, OpenLease    write window and leases, publish them; under another range of static node
//                        ids: seal the window, write both ends, publish the other range's window
//   Answered, DropNext   write the leases, publish them
//   AddSecrets           decide (PlanReload), publish the secrets
//   Looked               publish when the leases end that this server's coordinators granted
//   Seal                 seal the window and forget the leases; write the exact end, and the leases
//                        unless the worker gives them back
//   Stop                 write the exact end
//
// A process sees an added secret if it reserves a number in a second that was announced after the
// addition: AddSecrets publishes the ring before it releases the lock, a later holder of the lock
// publishes the window, and the process reads the ring after it has reserved the number.

#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <type_traits>

#include "core/base/assert.h"
#include "core/lease/lease_holder.h"
#include "core/window/generator.h"
#include "core/window/window_state.h"

namespace randflake {

// If the wall clock jumps ahead of the clock that never steps by more than this, the server waits
// for the operator, because it could not take back a window in the far future.
inline constexpr Seconds kMaxClockJump = 86400;

// After a failed write or read, the next attempt to extend the window follows after this delay.
inline constexpr Ms kRetryInterval = 200;

// Says why the last attempt to open or extend the window failed.
enum class WindowProblem : uint8_t {
    kNone,
    kWriting,      // a process is writing the new end
    kNotYet,       // the window may not open before `second`
    kClockJumped,  // the clock has jumped `jump` seconds ahead
    kFileFailed,   // the environment has reported a failure
    kSecrets,  // the state on disk refuses this server's secrets; `second` is the state's last end
    kNoRange,  // the clock is behind, and no range of node ids may open before `second`
    kNotLooked,  // a coordinator in a database of this server may have leased its node ids
    kLeased,     // such a coordinator may have leased them up to `second`
};
struct WindowTrouble {
    WindowProblem problem;
    Second second;
    Seconds jump;
};

enum class LeaseOpening : uint8_t {
    kOpened,  // the next lease is the open one now
    kNotYet,  // there is no next lease, its time has not come, or the disk failed
    kUsed,    // this server itself used the lease's node ids, up to `used_until` or later
};

// Collects the decisions of the core outside Server. An environment names this type or another one,
// and Server creates an object of the named type. In the simulation, each other type breaks one
// rule.
struct Decisions {
    using Holder = LeaseHolder;

    explicit constexpr Decisions(const auto&) {}

    template <typename... Args>
    static void SetTime(Args... args) {
        randflake::SetTime(args...);
    }
    static StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) {
        return randflake::PlanStart(error, found, start);
    }
    static bool Resumes(const WindowState& found, const Start& start, const Lease& lease) {
        return randflake::Resumes(found, start, lease);
    }
    static Second OpensAt(const WindowState& state, const NodeRange& nodes) {
        return state.OpensAt(nodes);
    }
    static uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                                const Second (&earliest)[kMaxRanges], Second now) {
        return randflake::ChooseRange(state, ranges, in_use, earliest, now);
    }
    static Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                               Second held_off_until) {
        return randflake::LeaseOpensAt(error, state, nodes, held_off_until);
    }
    static ReloadPlan PlanReload(const Reload& reload, const WindowState* state) {
        return randflake::PlanReload(reload, state);
    }
    static void TakeBack(WindowState* state, Second end) { state->TakeBack(end); }
    template <typename AtomicWord, typename... Sets>
    static bool ChangeWindow(uint32_t slots, uint64_t first_node, AtomicWord& window, Window next,
                             const Sets&... sets) {
        return randflake::ChangeWindow(slots, first_node, window, next, sets...);
    }
    template <typename AtomicWord, typename... Sets>
    static Second SealWindow(uint32_t slots, AtomicWord& window, const Sets&... sets) {
        return randflake::SealWindow(slots, window, sets...);
    }
};

template <typename Env>
concept DecidesAsShipped = std::same_as<typename Env::Decisions, Decisions>;
template <typename Env>
using HolderOf = typename std::remove_reference_t<typename Env::Decisions>::Holder;

// The postmaster's memory outlasts shared memory. After a crash of a backend, the server must still
// refuse a clock that has jumped, which only a restart makes it accept. It must also remember a
// promotion.
struct PostmasterMemory {
    uint64_t machine_boot[2];  // see WriteRecord; set before the first MakeMemory
    bool started;
    Moment started_at;
    bool began_in_recovery;    // the server may have been promoted since
    bool after_crash_restart;  // a crash ended the former shared memory
    uint64_t number;           // WriteRecord::postmaster; 0: none
    bool locked;               // the postmaster has the directory's lock; see Resumes
};

// The shared memory of a server, except slots and window. If all bytes are zero, the server knows
// nothing.
template <typename Holder>
struct ServerMemory {
    // MakeMemory writes these fields, and processes read them without the lock.
    bool leased;
    NodeRanges ranges;  // only the count if node ids are leased
    uint64_t boot[2];   // see Stop::boot
    PostmasterMemory postmaster;

    // The window lock protects all further fields.
    bool loaded;        // the server has read the state, so the next fields are valid
    WindowState state;  // the next write adds its announcement to this state
    uint64_t run;       // number of the last attempt to write; see WriteRecord
    uint64_t marked;    // the marker's value, unless another process moved the marker
    bool dirty;         // the disk lacks state.differs_from

    // What the start found on disk, and when a window of static node ids may open; see PlanStart.
    StateError found;
    WindowState found_state;
    Start start;
    UptimeMs opens_at_ms;
    Second held_off_until;

    // The range of static node ids in use, and for each range the first second at which the slots
    // allow a window. While a window is open, the word of the window has this second for the range
    // in use.
    uint32_t range;
    Second earliest[kMaxRanges];

    // After an unproven start the server opens no window of static node ids until a worker has
    // looked into this server's databases. The worker finds when the leases of each range end:
    // `free_at` (core/lease/pool_look.h).
    bool proven;
    bool looked;
    Second free_at[kMaxRanges];

    SteadyMs retry_at_ms;  // the server extends no window before this

    Holder holder;           // the window lies in its open lease
    bool keeps_leases;       // the worker left the leases in the state when it ended
    uint32_t named_secrets;  // number of secrets in the last request
};

struct LeaseQuestion {
    LeaseRequest request;
    SecretRecords secrets;
};

struct ReloadResult {
    bool state_known;  // false: the server could not read the state and decided nothing
    ReloadPlan plan;   // if it has no error, the server added the secrets
    Reload reload;
    Second written_end;  // the last end in the state
};

// Lists the calls of an environment. In PostgreSQL, an error may leave the calls marked with * by a
// jump, which releases the lock. Then all changes since the last change of ServerMemory are lost.
// Such a jump is always safe. Nothing here is virtual, allocates or has destructors.

// The postmaster's calls, without the lock.
template <typename Env>
concept UnlockedEnvironment = requires(Env& env, const WindowState& state, uint64_t* mark) {
    typename Env::Decisions;
    { env.memory() } -> std::same_as<ServerMemory<HolderOf<Env>>&>;
    { env.window().load() } -> std::same_as<uint64_t>;
    // Calls its argument with a SlotSet for each layout of numbers.
    env.WithSlots([](const auto&... sets) { (sets.layout.Slots(sets.slot(0).load() != 0), ...); });
    { env.Present() } -> std::same_as<Moment>;
    // Return the tolerated difference of clocks: the present value, and the range since the
    // postmaster's start.
    { env.SkewMs() } -> std::same_as<Ms>;
    { env.Skew() } -> std::same_as<SkewRange>;
    // * Reports a failure and then returns false.
    { env.WriteState(state) } -> std::same_as<bool>;
    // * Moves the marker to *mark. If that fails, removes the marker and sets *mark to 0. Returns
    // false if the marker may still show another mark.
    { env.Mark(state.origin, mark) } -> std::same_as<bool>;
    // Takes the directory's lock unless a process other than this postmaster and its children has
    // it. If the argument is true, creates the locked file if it is missing.
    { env.LockDirectory(true) } -> std::same_as<bool>;
    { env.RandomRun() } -> std::same_as<uint64_t>;  // *, never 0
    // Return whether this process holds the lock, and whether it is the postmaster and has no
    // children.
    { env.Locked() } -> std::same_as<bool>;
    { env.NoChildrenLeft() } -> std::same_as<bool>;
};

// These are the further calls of the other processes.
template <typename Env>
concept Environment = UnlockedEnvironment<Env> &&
    requires(Env& env, const WindowState& state, WindowState* read, StateError* error,
             Origin* origin, const Second (&opens_at)[kMaxRanges], const StartPlan& plan,
             const HolderOf<Env>& holder, const typename Env::SecretList& list) {
    // Returns the layout of seconds that windows use.
    { env.layout() } -> std::convertible_to<const Layout&>;
    env.Lock();                               // *
    { env.TryLock() } -> std::same_as<bool>;  // *
    env.Unlock();
    env.Wake();  // wakes sessions that wait for the window
    { env.Now() } -> std::same_as<Second>;
    { env.Steady() } -> std::same_as<SteadyMs>;
    { env.Terms() } -> std::same_as<LeaseTerms>;  // duration and skew of leases
    { env.Generates() } -> std::same_as<bool>;    // out of recovery, and with node ids

    // * These report a failure and then return false.
    { env.ReadState(read, error, origin) } -> std::same_as<bool>;
    { env.Marked(*origin) } -> std::same_as<uint64_t>;  // *
    // Like ReadState, but creates no files.
    { env.LookAtState(read, error) } -> std::same_as<bool>;

    { env.Secrets() } -> std::same_as<SecretRecords>;  // *
    { env.SecretCount() } -> std::same_as<uint32_t>;
    env.AddSecrets(list);
    // Return and set, in shared memory, the second up to which this server decodes correctly for
    // certain. 0 means unknown.
    { env.DecodeHorizon() } -> std::same_as<Second>;
    env.SetDecodeHorizon(Second{});

    env.Look();  // causes a call of Looked, soon

    // For messages
    env.Report(WindowTrouble{});           // * why there is no window
    env.LogStart(plan, state, *error);     // *
    env.LogRange(uint32_t{}, Second{});    // * this range is no longer in use
    env.ShowRanges(uint32_t{}, opens_at);  // the range in use, and when each may open
    env.Closing(Window{});                 // before the slots' words are lost
    env.ShowLeases(holder);
};

template <typename Env>
class Server {
    using Holder = HolderOf<Env>;
    using Memory = ServerMemory<Holder>;
    static_assert(std::is_trivially_copyable_v<Memory> && std::is_trivially_destructible_v<Memory>);

public:
    explicit constexpr Server(Env& env) : env_(env) {}

    // --- the postmaster

    // Initializes new memory. `boot` is as in Stop. Takes the lock before the first child exists;
    // all children inherit the lock.
    void MakeMemory(bool leased, const NodeRanges& ranges, const uint64_t (&boot)[2],
                    bool in_recovery, PostmasterMemory* postmaster) {
        RANDFLAKE_ASSERT(CurrentWindow() == Window{});
        postmaster->after_crash_restart = postmaster->started;
        if (!postmaster->started) {
            postmaster->started = true;
            postmaster->started_at = env_.Present();
            postmaster->number = env_.RandomRun();
        }
        postmaster->began_in_recovery |= in_recovery;
        if (leased && !postmaster->locked)
            postmaster->locked = env_.LockDirectory(!in_recovery);
        memory() = {};
        memory().leased = leased;
        memory().ranges = ranges;
        memory().boot[0] = boot[0];
        memory().boot[1] = boot[1];
        memory().postmaster = *postmaster;
    }

    // Writes the exact end of the window of static node ids at a clean stop, after the exit of all
    // children. The next start finds the same `boot` if nothing changes in between.
    void Stop(const uint64_t (&boot)[2]) {
        RANDFLAKE_ASSERT(env_.NoChildrenLeft());
        const Window window = CurrentWindow();
        if (memory().leased || window.closed())
            return;
        const Second last = LastUsed(window);
        RANDFLAKE_ASSERT(memory().loaded && last < window.end);
        const Moment now = env_.Present();
        WindowState state = memory().state;
        decide().TakeBack(&state, last + 1);
        RANDFLAKE_ASSERT(state.EndFor(memory().ranges.At(memory().range)) > last);
        state.stop = {{boot[0], boot[1]}, now.uptime_ms, now.wall_ms, memory().ranges.All()};
        // Earlier tolerances do not affect the proof, because other servers hold off from a start
        // after this stop.
        state.skew = env_.Skew();
        state.skew.smallest_ms = static_cast<uint32_t>(env_.SkewMs().count);
        (void)WriteAndMark(&state);
    }

    // --- sessions

    // If the clock requires it and no other process does so: opens the window, moves its end, or
    // continues under the next lease or another range of static node ids. Returns true if any
    // process has changed the window, so that the caller can try again. Call this only outside
    // recovery.
    bool Extend() {
        if (!env_.TryLock())
            return false;
        Second used_until;
        const bool changed = !memory().leased
                                 ? ExtendLocked()
                                 : ExtendLease() || OpenNext(&used_until) == LeaseOpening::kOpened;
        env_.Unlock();
        return changed;
    }

    // Adds the new secrets of `list`, whose records are `after`, if PlanReload allows it.
    ReloadResult AddSecrets(const SecretRecords& after, const auto& list) {
        ReloadResult result{};
        Reload& reload = result.reload;
        env_.Lock();
        reload.before = env_.Secrets();
        reload.after = after;
        reload.issues = env_.Generates();
        reload.leased = memory().leased;
        // A clock that was set back does not show how far other servers' clocks are ahead.
        const Moment now = env_.Present();
        reload.wall_ms = std::max(now.wall_ms, UnsetWall(now));
        reload.skew = env_.SkewMs();
        // A standby, or a server that lost its secrets, may add a secret that other servers already
        // use, because it has generated nothing since its start. It checks the state before its
        // first window opens.
        result.state_known = !reload.NeedsState() || EnsureLoaded();
        // The state on disk may have leases, too.
        reload.leases_end = Later(memory().holder.LastEnd(), memory().state.LeasesEnd());
        if (result.state_known) {
            const bool loaded = memory().loaded;
            result.plan = decide().PlanReload(reload, loaded ? &memory().state : nullptr);
            result.written_end = memory().state.LastEnd();
            if (result.plan.error == ReloadError::kNone) {
                RANDFLAKE_ASSERT(env_.Locked());
                RANDFLAKE_ASSERT(!reload.NeedsState() ||
                                 after.records[reload.before.count].from >= result.written_end);
                env_.AddSecrets(list);
                RANDFLAKE_ASSERT(env_.SecretCount() == after.count);
                WindowState& state = memory().state;
                if (loaded) {
                    state.differs_from = DiffersFrom(state.differs_from, state.secrets, after);
                    state.secrets = after;
                }
                env_.SetDecodeHorizon(loaded ? HorizonOf(state.differs_from) : Second{});
            }
        }
        env_.Unlock();
        return result;
    }

    // Returns the first second whose identifiers this server may misread, because it lacks a secret
    // of a coordinator. Returns 0 if the server could not read the state.
    Second DecodeHorizon() {
        env_.Lock();
        LookUpDecodeHorizon();
        const Second second = env_.DecodeHorizon();
        env_.Unlock();
        return second;
    }

    // Records that the operator knows that this directory is a copy. Returns false if the write
    // fails.
    bool AcknowledgeCopy() {
        env_.Lock();
        bool done = EnsureLoaded();
        if (done && memory().state.copied_at != Second{0}) {
            WindowState next = memory().state;
            next.copied_at = {};
            done = Write(next);
        }
        env_.Unlock();
        return done;
    }

    // --- the worker that looks

    // Records that coordinators in this server's databases may have leased each range up to
    // `free_at`. The state keeps this second as a written end, so that it counts even after a
    // proven start. The server has read the state, because it did so before it asked the worker to
    // look.
    void Looked(const Second (&free_at)[kMaxRanges]) {
        env_.Lock();
        RANDFLAKE_ASSERT(env_.Locked() && memory().loaded && !memory().leased);
        for (uint32_t i = 0; i < memory().ranges.count; i++) {
            memory().free_at[i] = free_at[i];
            memory().state.UsedByOthers(memory().ranges.At(i), free_at[i], memory().ranges);
        }
        memory().looked = memory().loaded;
        ShowRanges();
        env_.Unlock();
    }

    // --- the lease worker

    // Returns the next request to the coordinator, or none while the server cannot read the state,
    // because the state may have leases. `fresh` is a new random number.
    LeaseQuestion Ask(const Incarnation& fresh) {
        LeaseQuestion question{};
        env_.Lock();
        const bool loaded = EnsureLoaded();
        if (loaded && memory().keeps_leases) {
            memory().keeps_leases = false;
            memory().holder.Resume(memory().state.leases);
            env_.ShowLeases(memory().holder);
        }
        if (loaded)
            UpdateLeaseAndWindow([&](Holder* holder, Window*) {
                question.secrets = env_.Secrets();
                question.request = holder->renews() ? holder->Renew(env_.Steady())
                                                    : holder->Acquire(fresh, env_.Steady());
                memory().named_secrets = question.secrets.count;
                return true;
            });
        env_.Unlock();
        return question;
    }

    // Handles the answer to the last request. If a session has added a secret since the request,
    // only a refusal counts, because a lease without this secret may end after the secret's first
    // second. Sets `declined` to a lease that the worker must give back.
    LeaseOutcome Answered(const LeaseReply& reply, LeaseRelease* declined = nullptr) {
        LeaseOutcome outcome{};
        env_.Lock();
        const bool current = env_.SecretCount() == memory().named_secrets;
        if (current && reply.tells_of_secrets)
            RecordDifference(reply.differs_from);
        UpdateLeaseAndWindow([&](Holder* holder, Window*) {
            outcome =
                Hear(current || reply.kind == LeaseReply::Kind::kRefused ? reply : LeaseReply{},
                     holder, declined);
            return true;
        });
        env_.Unlock();
        return outcome;
    }

    // Opens the next lease at its time unless a session has opened it.
    LeaseOpening OpenLease(Second* used_until) {
        env_.Lock();
        const LeaseOpening opening = OpenNext(used_until);
        env_.Unlock();
        return opening;
    }

    // Returns the next lease, to be given back as used. The lease stays, and the result is empty,
    // if a session has just opened it or if the server cannot write the state.
    LeaseRelease DropNext() {
        LeaseRelease release{};
        env_.Lock();
        if (memory().holder.next().id != 0 &&
            !UpdateLeaseAndWindow<true>([&](Holder* holder, Window*) {
                release = holder->DropNext();
                return true;
            }))
            release = {};
        env_.Unlock();
        return release;
    }

    // Returns a copy, so that the worker can decide without the lock.
    Holder Leases() {
        env_.Lock();
        const Holder copy = memory().holder;
        env_.Unlock();
        return copy;
    }

    // Seals the window and forgets the leases. Returns the leases with the last second in which
    // this server used each. The state keeps the leases unless the worker gives them back, and the
    // worker gives back no lease that the state may keep.
    LeaseReleases Seal(bool gives_back) {
        env_.Lock();
        const bool was_open = !CurrentWindow().closed();
        const Second last = SealSlots();
        WindowState next = memory().state;
        memory().holder.Write(next.leases);
        LeaseReleases releases = memory().holder.Sealed(last);
        RANDFLAKE_ASSERT(memory().holder.newest().id == 0);
        env_.ShowLeases(memory().holder);
        bool struck = false;
        if (releases.open.lease.id != 0 || releases.next.lease.id != 0) {
            if (was_open)
                decide().TakeBack(&next, last + 1);
            if (gives_back)
                memory().holder.Write(next.leases);
            memory().keeps_leases = true;
            struck = Write(next) && gives_back;
            memory().keeps_leases = !struck;
        }
        // Earlier use of the node ids by this data directory counts too.
        for (LeaseRelease* release : {&releases.open, &releases.next})
            if (!struck)
                *release = {};
            else if (release->lease.id != 0)
                release->UsedUntil(OpensAt(release->lease));
        env_.Unlock();
        return releases;
    }

private:
    template <typename T>
    static constexpr T Later(T a, T b) {
        return a > b ? a : b;
    }
    template <typename T>
    static constexpr T Earlier(T a, T b) {
        return a < b ? a : b;
    }

    decltype(auto) decide() { return static_cast<typename Env::Decisions>(env_); }
    Memory& memory() { return env_.memory(); }
    Window CurrentWindow() { return Window::FromWord(env_.window().load()); }
    uint32_t Slots() { return memory().ranges.first.count; }

    // Returns the last second of the open window in which a number is reserved, or the second
    // before the window.
    Second LastUsed(const Window& window) {
        RANDFLAKE_ASSERT(env_.Locked() || env_.NoChildrenLeft());
        Second last = window.start - 1;
        const auto look_at = [&](const auto& set) {
            for (uint32_t i = 0; i < set.layout.Slots(Slots()); i++)
                last = Later(last, LastSecondUsed(set.layout, set.slot(i).load(), window));
        };
        env_.WithSlots([&](const auto&... sets) { (look_at(sets), ...); });
        return last;
    }

    // Closes the window. Returns the last second used in it, or kNotUsed.
    Second SealSlots() {
        env_.Closing(CurrentWindow());
        Second last = kNotUsed;
        env_.WithSlots([&](const auto&... sets) {
            last = decide().SealWindow(Slots(), env_.window(), sets...);
        });
        RANDFLAKE_ASSERT(env_.Locked() && CurrentWindow().closed());
        RANDFLAKE_ASSERT(CurrentWindow().earliest() > last);
        return last;
    }

    Second OpensAt(const Lease& lease) {
        RANDFLAKE_ASSERT(env_.Locked());
        FollowSkew();
        return decide().LeaseOpensAt(memory().found, memory().state, lease.nodes,
                                     memory().held_off_until);
    }

    // A server that does not generate has no state, so this creates no files.
    void LookUpDecodeHorizon() {
        RANDFLAKE_ASSERT(env_.Locked());
        if (env_.DecodeHorizon() != Second{})
            return;
        WindowState found{};
        StateError error = StateError::kNone;
        if (memory().loaded)
            env_.SetDecodeHorizon(HorizonOf(memory().state.differs_from));
        else if (env_.LookAtState(&found, &error))
            env_.SetDecodeHorizon(
                HorizonOf(error == StateError::kNone
                              ? DiffersFrom(found.differs_from, found.secrets, env_.Secrets())
                              : Second{}));
    }

    void RecordDifference(Second differs_from) {
        RANDFLAKE_ASSERT(env_.Locked() && differs_from < kNoSecond);
        LookUpDecodeHorizon();
        const bool changed = env_.DecodeHorizon() != HorizonOf(differs_from);
        env_.SetDecodeHorizon(HorizonOf(differs_from));
        if (changed)
            (void)EnsureLoaded();
        const WindowState& state = memory().state;
        if (memory().loaded && (memory().dirty || state.differs_from != differs_from)) {
            WindowState next = state;
            next.differs_from = differs_from;
            (void)Write(next);
        }
    }

    LeaseOutcome Hear(const LeaseReply& reply, Holder* holder, LeaseRelease* declined) {
        if (reply.kind == LeaseReply::Kind::kNone)
            return holder->Unanswered();
        if (reply.kind == LeaseReply::Kind::kRefused)
            return holder->Refused();
        if (reply.kind == LeaseReply::Kind::kRenewed)
            return holder->Renewed(env_.layout(), reply.renewed_to, env_.Terms(), env_.Now());
        const LeaseOutcome outcome =
            holder->Granted(env_.layout(), Slots(), reply.grant, env_.Terms(), env_.Now());
        if (outcome == LeaseOutcome::kTooLong)
            *declined = holder->Declined(env_.layout(), reply.grant);
        return outcome;
    }

    // Returns the next end of a lease's window: as far ahead of the clock as with static node ids,
    // but at most LatestEnd. Returns 0 if the end may not move, right after a failure or while the
    // server cannot read the state.
    Second LeaseStep() {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        if (env_.Steady() < memory().retry_at_ms || !EnsureLoaded())
            return {};
        const Second now = env_.Now();
        const bool in_time = now >= Second{0} && now < SecondsEnd(env_.layout());
        return in_time ? Earlier(now + kWindowSeconds, LatestEnd(now, env_.Terms())) : Second{};
    }

    // Moves the window's end within the open lease, or opens the window of a resumed lease.
    bool ExtendLease() {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        const Window window = CurrentWindow();
        const Lease& open = memory().holder.open();
        // Another process has moved the end, or the clock has stepped back.
        if (!window.closed() && env_.Now() + 1 < window.end)
            return true;
        const Second step = open.id != 0 && env_.Now() < open.end ? LeaseStep() : Second{};
        if (step == Second{})
            return false;
        Window moved = memory().holder.Extended(window, step);
        if (window.closed()) {
            const Second now = env_.Now();
            const Second earliest = Later(window.earliest(), OpensAt(open));
            moved = memory().holder.Reopened(earliest, now, Later(step, now + 1));
            if (moved.closed() && now < earliest && earliest < open.end)
                env_.Report({WindowProblem::kNotYet, earliest, 0});
            if (moved.closed())
                return false;
        }
        return moved != window && UpdateLeaseAndWindow([&](Holder*, Window* next) {
                   *next = moved;
                   return true;
               });
    }

    // Opens the window of the next lease when the open lease has ended. The window starts after all
    // seconds that this data directory has announced for these node ids.
    LeaseOpening OpenNext(Second* used_until) {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        const Holder& held = memory().holder;
        if (held.next().id == 0)
            return LeaseOpening::kNotYet;
        const Second step = LeaseStep();
        if (step == Second{})
            return LeaseOpening::kNotYet;
        const Window before = CurrentWindow();
        *used_until = OpensAt(held.next());
        if (held.NextUsed(before, *used_until))
            return LeaseOpening::kUsed;
        const Second now = env_.Now();
        const Second over =
            Later(before.earliest(), Earlier(held.open().end, LatestEnd(now, env_.Terms())));
        const bool opened = UpdateLeaseAndWindow([&](Holder* holder, Window* window) {
            *window = holder->OpenNext(Later(over, *used_until), now, Later(step, now + 1));
            return !window->closed();
        });
        return opened ? LeaseOpening::kOpened : LeaseOpening::kNotYet;
    }

    static constexpr Second HorizonOf(Second differs_from) {
        return differs_from != Second{} ? differs_from : kNoSecond;
    }

    bool BackOff() {
        RANDFLAKE_ASSERT(env_.Locked());
        memory().retry_at_ms = env_.Steady() + kRetryInterval;
        return false;
    }

    bool ExtendLocked() {
        RANDFLAKE_ASSERT(env_.Locked() && !memory().leased);
        const Second now = env_.Now();
        const Window window = CurrentWindow();
        const Second limit = SecondsEnd(env_.layout());
        if (now < Second{0} || now >= limit)
            return false;
        // Another process has moved the end, or the clock has stepped back.
        if (!window.closed() && now + 1 < window.end)
            return memory().ranges.count == 1 || LeaveRange(window, now);
        const Second end = Earlier(now + kWindowSeconds, limit);
        if (!window.closed() && end <= window.end)
            return false;
        if (env_.Steady() < memory().retry_at_ms)
            return false;
        if (const Seconds jump = ClockJump(now); jump > kMaxClockJump) {
            env_.Report({WindowProblem::kClockJumped, {}, jump});
            return false;
        }
        if (!EnsureLoaded())
            return false;
        if (window.closed())
            return OpenSomeRange(now);
        const NodeRange nodes = memory().ranges.At(memory().range);
        const Window next{window.start, end};
        WindowState state = memory().state;
        state.Announce(nodes, next, memory().ranges);
        if (!Write(state))
            return false;
        Publish(nodes, next);
        env_.Wake();
        return true;
    }

    Second RangeOpensAt(uint32_t range) {
        RANDFLAKE_ASSERT(env_.Locked());
        return Later(decide().OpensAt(memory().state, memory().ranges.At(range)),
                     memory().earliest[range]);
    }

    void ShowRanges() {
        RANDFLAKE_ASSERT(env_.Locked());
        Second opens_at[kMaxRanges]{};
        for (uint32_t i = 0; i < memory().ranges.count; i++)
            opens_at[i] = RangeOpensAt(i);
        env_.ShowRanges(memory().range, opens_at);
    }

    // Returns the range to use when the present range is too far ahead of the clock. Returns the
    // number of ranges if no range may open.
    uint32_t AnotherRange(Second now) {
        RANDFLAKE_ASSERT(env_.Locked());
        const uint32_t none = memory().ranges.count;
        const uint32_t range = decide().ChooseRange(memory().state, memory().ranges, memory().range,
                                                    memory().earliest, now);
        if (range != none && MayOpen({}, memory().opens_at_ms, now, env_.Present().uptime_ms))
            return range;
        Second first = kNoSecond;
        for (uint32_t i = 0; i < none; i++)
            first = Earlier(first, RangeOpensAt(i));
        env_.Report({WindowProblem::kNoRange, Later(first, now + 1), 0});
        (void)BackOff();
        return none;
    }

    // Opens a window of the range used last if there is no window. If the clock is so far behind
    // the written end of this range that it must have been set back, opens another range.
    bool OpenSomeRange(Second now) {
        RANDFLAKE_ASSERT(env_.Locked() && CurrentWindow().closed());
        FollowSkew();
        uint32_t range = memory().range;
        const bool looked = memory().proven || memory().looked;
        if (!looked)
            env_.Look();  // while the hold-off lasts
        const Second opens_at = RangeOpensAt(range);
        if (!MayOpen(opens_at, memory().opens_at_ms, now, env_.Present().uptime_ms)) {
            const Ms behind = InMs(opens_at - now - kWindowSeconds);
            const bool leased = now < memory().free_at[range];
            if (leased || memory().ranges.count == 1 || behind <= env_.SkewMs()) {
                env_.Report({leased ? WindowProblem::kLeased : WindowProblem::kNotYet,
                             Later(opens_at, now + 1), 0});
                return false;
            }
            if (looked)
                range = AnotherRange(now);
            if (range == memory().ranges.count)
                return false;
        }
        if (!looked) {
            env_.Report({WindowProblem::kNotLooked, {}, 0});
            return false;
        }
        return OpenRange(range, now, memory().state);
    }

    // If a window is open and its end is not near: continues under another range if the clock is
    // behind the last used second by more than the tolerance. Returns false if the attempt failed.
    bool LeaveRange(const Window& window, Second now) {
        RANDFLAKE_ASSERT(env_.Locked() && window == CurrentWindow() && !window.closed());
        if (env_.Steady() < memory().retry_at_ms)
            return false;
        const Second last = LastUsed(window);
        if (InMs(last - now) <= env_.SkewMs())
            return true;
        const uint32_t range = AnotherRange(now);
        if (range == memory().ranges.count)
            return false;
        // The window is closed from here on. If the write fails or does not return, the end of the
        // former window stays announced on disk.
        const Second sealed = SealSlots();
        memory().earliest[memory().range] = CurrentWindow().earliest();
        WindowState next = memory().state;
        decide().TakeBack(&next, sealed + 1);
        return OpenRange(range, now, next);
    }

    // Opens a window of this range; `next` is the known state of all ranges.
    bool OpenRange(uint32_t range, Second now, WindowState next) {
        RANDFLAKE_ASSERT(env_.Locked());
        const NodeRange nodes = memory().ranges.At(range);
        const Window window{now, Earlier(now + kWindowSeconds, SecondsEnd(env_.layout()))};
        RANDFLAKE_ASSERT(CurrentWindow().closed() && now >= memory().earliest[range]);
        RANDFLAKE_ASSERT(memory().proven || memory().looked);
        next.Announce(nodes, window, memory().ranges);
        if (!Write(next))
            return false;
        const uint32_t before = memory().range;
        memory().range = range;
        env_.window().store(Window::ClosedUntil(memory().earliest[range]).ToWord(),
                            std::memory_order_release);
        Publish(nodes, window);
        env_.Wake();
        ShowRanges();
        if (range != before)
            env_.LogRange(before, now);
        return true;
    }

    // Returns the time that the wall clock would show if nobody had set it since the postmaster's
    // start.
    WallMs UnsetWall(const Moment& now) {
        const Moment& started = memory().postmaster.started_at;
        return started.wall_ms + (now.uptime_ms - started.uptime_ms);
    }

    Seconds ClockJump(Second now) { return now - SecondOf(UnsetWall(env_.Present())); }

    // Reads the state from disk, once after a start. Returns false if the server cannot read the
    // state, or if the state refuses the secrets.
    bool EnsureLoaded() {
        RANDFLAKE_ASSERT(env_.Locked());
        if (memory().loaded)
            return true;
        WindowState found{};
        StateError error = StateError::kNone;
        Start start{};
        if (!env_.ReadState(&found, &error, &start.origin))
            return BackOff();
        const PostmasterMemory& postmaster = memory().postmaster;
        start.secrets = env_.Secrets();
        if (memory().leased)
            start.leased_nodes = Slots();
        else
            start.nodes = memory().ranges.All();
        start.after_crash_restart = postmaster.after_crash_restart;
        start.boot[0] = memory().boot[0];
        start.boot[1] = memory().boot[1];
        std::ranges::copy(postmaster.machine_boot, start.machine_boot);
        start.postmaster = postmaster.number;
        start.locked = postmaster.locked;
        start.marked = env_.Marked(start.origin);
        decide().SetTime(postmaster.started_at, env_.Present(), postmaster.began_in_recovery,
                         &start);
        start.now_ms = env_.Present().uptime_ms;
        start.skew = env_.Skew();
        StartPlan plan = decide().PlanStart(error, found, start);
        if (plan.secrets == SecretsChange::kRefused) {
            env_.Report({WindowProblem::kSecrets, found.LastEnd(), 0});
            return BackOff();
        }
        RANDFLAKE_ASSERT(plan.proven || plan.state.floor >= plan.held_off_until);
        // The next write omits the leases that this start does not resume, because the directory
        // may be a copy whose original has them.
        for (uint32_t i = 0; i < kMaxLeases; i++)
            if (error == StateError::kNone && env_.Generates() &&
                decide().Resumes(found, start, found.leases[i]))
                plan.state.leases[i] = found.leases[i];
        const uint64_t run = env_.RandomRun();
        RANDFLAKE_ASSERT(run != 0);
        memory().found = error;
        memory().found_state = found;
        memory().start = start;
        memory().state = plan.state;
        // A coordinator's report from before this read is newer than the state.
        if (const Second known = env_.DecodeHorizon(); known != Second{})
            memory().state.differs_from = known != kNoSecond ? known : Second{};
        memory().dirty = memory().state.differs_from != plan.state.differs_from;
        memory().range = LastRange(plan.state, memory().ranges);
        TakeTimes(plan);
        memory().run = run;
        memory().marked = start.marked;
        memory().holder.Resume(plan.state.leases);
        memory().loaded = true;
        if (memory().leased)
            env_.ShowLeases(memory().holder);
        env_.SetDecodeHorizon(HorizonOf(memory().state.differs_from));
        env_.LogStart(plan, found, error);
        return true;
    }

    void TakeTimes(const StartPlan& plan) {
        RANDFLAKE_ASSERT(env_.Locked());
        memory().proven = plan.proven;
        memory().opens_at_ms = plan.opens_at_ms;
        memory().held_off_until = plan.held_off_until;
        memory().state.floor = Later(memory().state.floor, plan.state.floor);
        ShowRanges();
    }

    // The tolerated difference of clocks may have changed since the server read the state. A change
    // before the first window counts like a change before the start.
    void FollowSkew() {
        RANDFLAKE_ASSERT(env_.Locked() && memory().loaded);
        const SkewRange skew = memory().start.skew.With(env_.Skew());
        if (skew == memory().start.skew)
            return;
        memory().start.skew = skew;
        const StartPlan plan =
            decide().PlanStart(memory().found, memory().found_state, memory().start);
        RANDFLAKE_ASSERT(plan.held_off_until >= memory().held_off_until);
        TakeTimes(plan);
    }

    // The only function that writes the state. The state becomes durable, then the marker shows the
    // state, and then processes may rely on it.
    bool WriteAndMark(WindowState* next) {
        RANDFLAKE_ASSERT(env_.Locked() || env_.NoChildrenLeft());
        RANDFLAKE_ASSERT(memory().loaded);
        next->write = {++memory().run,
                       memory().marked,
                       memory().postmaster.number,
                       {},
                       env_.Present().uptime_ms};
        // By the lock, another postmaster sees whether processes of this one still run.
        if (memory().postmaster.locked)
            std::ranges::copy(memory().postmaster.machine_boot, next->write.boot);
        uint64_t mark = next->write.mark;
        if (!env_.WriteState(*next) || !env_.Mark(next->origin, &mark))
            return false;
        RANDFLAKE_ASSERT(mark == next->write.mark || mark == 0);
        memory().marked = mark;
        return true;
    }

    bool Write(WindowState next) {
        RANDFLAKE_ASSERT(env_.Locked());
        next.skew = env_.Skew();
        env_.Report({WindowProblem::kWriting, {}, 0});
        if (!WriteAndMark(&next))
            return BackOff();
        memory().state = next;
        memory().dirty = false;
        env_.Report({WindowProblem::kNone, {}, 0});
        return true;
    }

    // The only function that begins or extends a window. The window's end is already on disk.
    void Publish(const NodeRange& nodes, const Window& next) {
        const Window before = CurrentWindow();
        const bool opens = before.closed() || next.start != before.start;
        RANDFLAKE_ASSERT(env_.Locked() && !next.closed());
        RANDFLAKE_ASSERT(next.end <= memory().state.EndFor(nodes));
        RANDFLAKE_ASSERT(next.start == memory().state.announced_start);
        // `marked` is 0 if the environment could not move the marker, and removed it.
        RANDFLAKE_ASSERT(memory().marked == memory().state.write.mark || memory().marked == 0);
        RANDFLAKE_ASSERT(opens ? next.start >= before.earliest() : next.end >= before.end);
        if (opens) {
            env_.Closing(before);
            [[maybe_unused]] bool opened = false;
            env_.WithSlots([&](const auto&... sets) {
                opened = decide().ChangeWindow(Slots(), nodes.first, env_.window(), next, sets...);
            });
            RANDFLAKE_ASSERT(opened);
        } else {
            env_.window().store(next.ToWord(), std::memory_order_release);
        }
    }

    // The only function that changes leases. `change(&holder, &window)` changes copies, and returns
    // whether to keep them. The server writes the result at once. A changed window, its leases, and
    // removals by `kStrikes` take effect only after a successful write. After a failed write, other
    // changes stay in memory for the next write, and no window relies on them before. Returns false
    // if nothing changed.
    template <bool kStrikes = false, typename Act>
    bool UpdateLeaseAndWindow(Act&& change) {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        Holder holder = memory().holder;
        const Window before = CurrentWindow();
        Window window = before;
        if (!change(&holder, &window))
            return false;
        const bool moved = window != before;
        WindowState next = memory().state;
        holder.Write(next.leases);
        if (moved)
            next.Announce(holder.open().nodes, window, memory().ranges);
        const bool changed = moved || !std::ranges::equal(next.leases, memory().state.leases);
        if (changed && !Write(next) && (moved || kStrikes))
            return false;
        if (moved)
            Publish(holder.open().nodes, window);
        // An open lease never gets shorter, and the window stays within its lease.
        RANDFLAKE_ASSERT(holder.open().id != memory().holder.open().id ||
                         holder.open().end >= memory().holder.open().end);
        RANDFLAKE_ASSERT(window.closed() || window.end <= holder.open().end);
        memory().holder = holder;
        env_.ShowLeases(holder);
        if (changed)
            env_.Wake();
        return true;
    }

    Env& env_;
};

}  // namespace randflake
