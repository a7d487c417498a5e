// Defines the protocol of a server: the order in which its processes read and write files, lock,
// decide and publish. Every process of a server runs this code and passes its Environment (below).
// The simulation passes another environment. The processes call these functions:
//
//   any session        Extend; AddSecrets, DecodeHorizon, AcknowledgeCopy
//   the lease worker   Ask, Answered; OpenLease, DropNext, Seal
//   a worker           Looked, once after a start
//   the postmaster     MakeMemory; Stop, at its exit, when all its children are gone
//
// The only lock is the window lock. A process holds it to open, extend or seal the window, to
// change leases, to read or write the state on disk, to change ServerMemory, and to add secrets.
// The postmaster takes no lock, because it calls MakeMemory and Stop while it has no children.
// Processes read the slots' words, the window's word and the number of secrets without the lock,
// because all of them are atomic. Processes read a copy of the leases (ShowLeases).
//
// Each write stores the whole state, then the marker. Only then may a process rely on this state.
//
//   EnsureLoaded, once   read the state, decide (PlanStart, Resumes), keep state and leases
//   Extend, OpenLease    write window and leases, publish them; under another range of static node
//                        ids: seal the window, write both ends, publish the other range's window
//   Answered, DropNext   write the leases, publish them
//   AddSecrets           decide (PlanReload), publish the secrets
//   Looked               publish the ends of leases that coordinators on this server granted
//   Seal                 seal the window and forget the leases; write the exact end, and the leases
//                        unless the worker gives them back
//   Stop                 write the exact end
//
// AddSecrets publishes the new ring while it holds the lock, so the ring is visible before any
// later window opens. A process reads the ring after it reserves a number. So it encrypts the
// numbers of later windows under the new ring.

#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <type_traits>

#include "core/base/assert.h"
#include "core/generator/generator.h"
#include "core/lease/lease_holder.h"
#include "core/window/reload_plan.h"
#include "core/window/resumption.h"
#include "core/window/start_plan.h"

namespace randflake {

// Limits forward jumps of the clock since the postmaster's start. After a longer jump, the server
// opens no window and waits for the operator, because a window makes earlier seconds unusable.
inline constexpr Seconds kMaxClockJump = 86400;

// After a failed write or read, the server waits this long before it tries again.
inline constexpr Ms kRetryInterval = 200;

// States why the last attempt to open or extend the window failed.
enum class WindowProblem : uint8_t {
    kNone,
    kWriting,      // a process is writing the new end
    kNotYet,       // the window may not open before `second`
    kClockJumped,  // the clock has jumped `jump` seconds ahead
    kFileFailed,   // reported by the environment
    kSecrets,      // the state refuses the secrets; `second` is the state's last written end
    kNoRange,      // the clock is behind, and no range of node ids may open before `second`
    kNotLooked,    // no worker has checked whether a coordinator here leased the node ids
    kLeased,       // a coordinator here has, or may have, leased the node ids until `second`
};
struct WindowTrouble {
    WindowProblem problem;
    Second second;
    Seconds jump;
};

enum class LeaseOpening : uint8_t {
    kOpened,  // the next lease became the open lease
    kNotYet,  // there is no next lease, it is early, or the disk failed
    kUsed,    // this server itself used the lease's node ids until `used_until` or later
};

// Server makes its decisions through Env::Decisions. Environments of the simulation use other
// types, each of which breaks one rule.
struct Decisions {
    using Holder = LeaseHolder;

    explicit constexpr Decisions(const auto&) {}

    static constexpr auto& SetTime = randflake::SetTime;
    static constexpr auto& PlanStart = randflake::PlanStart;
    static constexpr auto& Resumes = randflake::Resumes;
    static constexpr auto& ChooseRange = randflake::ChooseRange;
    static constexpr auto& LeaseOpensAt = randflake::LeaseOpensAt;
    static constexpr auto& PlanReload = randflake::PlanReload;
    static Second OpensAt(const WindowState& state, const NodeRange& nodes) {
        return state.OpensAt(nodes);
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

// The postmaster keeps these fields when a backend's crash destroys shared memory. So the server
// still knows of a promotion, and still uses `started_at` to measure jumps of the clock.
struct PostmasterMemory {
    uint64_t machine_boot[2];  // see WriteRecord; set before the first MakeMemory
    bool started;
    Moment started_at;
    bool began_in_recovery;    // so the server may have been promoted since
    bool after_crash_restart;  // shared memory was lost in a crash
    uint64_t number;           // random; 0: none
};

// Defines the shared memory of a server, apart from slots and window. Its bytes are zero at first.
template <typename Holder> struct ServerMemory {
    // MakeMemory writes these fields. Processes read them without the lock.
    bool leased;
    NodeRanges ranges;  // if leased, only first.count is set: the number of node ids
    uint64_t boot[2];   // see Stop::boot
    PostmasterMemory postmaster;

    // The window lock protects all fields below.
    bool loaded;        // the server has read the state on disk; the next fields are valid
    WindowState state;  // the next write starts from this state
    uint64_t run;       // the number of the last attempt to write; see WriteRecord
    uint64_t marker;    // the marker's value, unless a process outside this server moved it
    bool dirty;         // state.differs_from is not on disk yet

    // These are PlanStart's arguments at this start, and two of PlanStart's results.
    StateError found;
    WindowState found_state;
    Start start;
    UptimeMs opens_at_ms;
    Second held_off_until;

    // `range` is the index of the range in use. earliest[i] is the first second at which the slots
    // let a window of range i start. While the window of a range is open, Window::earliest()
    // applies instead.
    uint32_t range;
    Second earliest[kMaxRanges];

    // After an unproven start, no window of static node ids opens before a worker has looked for
    // coordinators in this server's databases. The worker sets free_at[i] to the second at which
    // the last lease of range i ends (core/lease/pool_look.h).
    bool proven;
    bool looked;
    Second free_at[kMaxRanges];

    SteadyMs retry_at_ms;  // the server extends no window before this time

    Holder holder;           // the window belongs to its open lease
    bool keeps_leases;       // the lease worker has ended, but the state on disk has its leases
    uint32_t named_secrets;  // the number of secrets in the last request
};

struct LeaseQuestion {
    LeaseRequest request;
    SecretRecords secrets;
};

struct ReloadResult {
    bool state_known;  // false if the server could not read the state, and decided nothing
    ReloadPlan plan;   // if it has no error, the server added the secrets
    Reload reload;
    Second written_end;  // the state's last written end
};

// A call with * may raise an error. The error leaves this code by longjmp and releases the
// lock. So before each such call, ServerMemory is consistent, and no live object has a destructor.

// The postmaster makes no other calls than these.
template <typename Env>
concept UnlockedEnvironment = requires(Env& env, const WindowState& state, uint64_t* number) {
    typename Env::Decisions;
    { env.memory() } -> std::same_as<ServerMemory<HolderOf<Env>>&>;
    { env.window().load() } -> std::same_as<uint64_t>;
    // Calls its argument with the SlotSets of all layouts.
    env.WithSlots([](const auto&... sets) { (sets.layout.Slots(sets.slot(0).load() != 0), ...); });
    { env.Present() } -> std::same_as<Moment>;
    // Return the tolerated difference of clocks, and its least and greatest value since the start.
    { env.SkewMs() } -> std::same_as<Ms>;
    { env.Skew() } -> std::same_as<SkewRange>;
    // * If the write fails, reports this and returns false.
    { env.WriteState(state) } -> std::same_as<bool>;
    // * Writes *number to the marker. If the write fails, removes the marker and sets *number to 0.
    // Returns false if the removal fails too. With leased node ids but without the marker's lock,
    // the environment never touches the marker: SetMarker sets *number to 0, and ReadMarker returns
    // 0.
    { env.SetMarker(state.origin, number) } -> std::same_as<bool>;
    // Locks the directory's marker, and creates missing files. Does nothing if this postmaster has
    // the lock, or if processes of another one have it.
    env.LockMarker();
    { env.RandomRun() } -> std::same_as<uint64_t>;  // *, never 0
    // Return whether this process holds the window lock, and whether it has no children left.
    { env.Locked() } -> std::same_as<bool>;
    { env.NoChildrenLeft() } -> std::same_as<bool>;
};

// The postmaster makes none of these calls.
template <typename Env>
concept Environment = UnlockedEnvironment<Env> &&
    requires(Env& env, const WindowState& state, WindowState* read, StateError* error,
             Origin* origin, const Second (&opens_at)[kMaxRanges], const StartPlan& plan,
             const HolderOf<Env>& holder, const typename Env::SecretList& list) {
    // Returns a layout whose tick is one second, which is the unit of windows.
    { env.layout() } -> std::convertible_to<const Layout&>;
    env.Lock();                               // *
    { env.TryLock() } -> std::same_as<bool>;  // *
    env.Unlock();
    env.Wake();  // wakes sessions that wait for the window
    { env.Now() } -> std::same_as<Second>;
    { env.Steady() } -> std::same_as<SteadyMs>;
    { env.Terms() } -> std::same_as<LeaseTerms>;  // duration and skew of leases
    { env.Generates() } -> std::same_as<bool>;    // out of recovery, and with node ids

    // * If a read fails, ReadState reports the failure and returns false.
    { env.ReadState(read, error, origin) } -> std::same_as<bool>;
    { env.ReadMarker(*origin) } -> std::same_as<uint64_t>;  // *
    // Reads the state without creating files.
    { env.PeekAtState(read, error) } -> std::same_as<bool>;

    { env.Secrets() } -> std::same_as<SecretRecords>;  // *
    { env.SecretCount() } -> std::same_as<uint32_t>;
    env.AddSecrets(list);
    // Returns the first second whose identifiers this server may misread. 0 means unknown.
    { env.DecodeHorizon() } -> std::same_as<Second>;
    env.SetDecodeHorizon(Second{});

    env.Look();  // starts a worker that looks for leases and then calls Looked

    // These calls feed the log, errors and views.
    env.Report(WindowTrouble{});           // * why there is no window
    env.LogStart(plan, state, *error);     // *
    env.LogRange(uint32_t{}, Second{});    // * this range is no longer in use
    env.ShowRanges(uint32_t{}, opens_at);  // the range in use, and when each may open
    env.Closing(Window{});                 // before the slots' words are lost
    env.ShowLeases(holder);
};

template <typename Env> class Server {
    using Holder = HolderOf<Env>;
    using Memory = ServerMemory<Holder>;
    static_assert(std::is_trivially_copyable_v<Memory> && std::is_trivially_destructible_v<Memory>);

public:
    explicit constexpr Server(Env& env) : env_(env) {}

    // --- the postmaster

    // Initializes new memory. For `boot`, see Stop::boot. If the node ids are leased, the
    // postmaster locks the marker before it has a child, so that all children inherit the lock.
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
        if (leased) env_.LockMarker();
        memory() = {};
        memory().leased = leased;
        memory().ranges = ranges;
        memory().boot[0] = boot[0];
        memory().boot[1] = boot[1];
        memory().postmaster = *postmaster;
    }

    // Writes the exact end of a window of static node ids at a clean stop, when no children are
    // left. The next start finds the same `boot` unless PostgreSQL has run since this stop.
    void Stop(const uint64_t (&boot)[2]) {
        RANDFLAKE_ASSERT(env_.NoChildrenLeft());
        const Window window = CurrentWindow();
        if (memory().leased || window.closed()) return;
        const Second last = LastUsed(window);
        RANDFLAKE_ASSERT(memory().loaded && last < window.end);
        const Moment now = env_.Present();
        WindowState state = memory().state;
        decide().TakeBack(&state, last + 1);
        RANDFLAKE_ASSERT(state.EndFor(memory().ranges.At(memory().range)) > last);
        state.stop = {{boot[0], boot[1]}, now.uptime_ms, now.wall_ms, memory().ranges.All()};
        // If another server starts after this stop, it holds off for a tolerance in force at this
        // stop or later. So the proof ignores the tolerances that were set earlier in this run.
        state.skew = env_.Skew();
        state.skew.smallest_ms = static_cast<uint32_t>(env_.SkewMs().count);
        (void)WriteWithMarker(&state);
    }

    // --- sessions

    // Opens the window, moves its end, or continues under the next lease or another static range,
    // as the clock requires. Does nothing while another process has the lock. Returns true if any
    // process changed the window. The caller then tries again. Must not run in recovery.
    bool Extend() {
        if (!env_.TryLock()) return false;
        Second used_until;
        const bool changed = !memory().leased
                                 ? ExtendLocked()
                                 : ExtendLease() || OpenNext(&used_until) == LeaseOpening::kOpened;
        env_.Unlock();
        return changed;
    }

    // Adds the new secrets of `list` if PlanReload allows it. `after` has the records of `list`.
    ReloadResult AddSecrets(const SecretRecords& after, const auto& list) {
        ReloadResult result{};
        Reload& reload = result.reload;
        env_.Lock();
        reload.before = env_.Secrets();
        reload.after = after;
        reload.issues = env_.Generates();
        reload.leased = memory().leased;
        // If this server's clock was set back, other servers' clocks may still be ahead of it.
        const Moment now = env_.Present();
        reload.wall_ms = std::max(now.wall_ms, UnsetWall(now));
        reload.skew = env_.SkewMs();
        // A standby, or a server that lost its secrets, needs no state to add a secret. It has
        // issued nothing since its start, and checks the state before its first window opens.
        result.state_known = !reload.NeedsState() || EnsureLoaded();
        // The holder may have leases, and the state on disk may have other leases.
        reload.leases_end = std::max(memory().holder.LastEnd(), memory().state.LeasesEnd());
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

    // If a coordinator has reported that this server lacks a secret, returns the first second whose
    // identifiers the server may misread. Returns 0 if this is unknown.
    Second DecodeHorizon() {
        env_.Lock();
        FindDecodeHorizon();
        const Second second = env_.DecodeHorizon();
        env_.Unlock();
        return second;
    }

    // Records that the operator knows that this directory is a copy. Returns false on failure.
    bool AcknowledgeCopy() {
        env_.Lock();
        bool done = EnsureLoaded();
        if (done && memory().state.copied_at != Second{0}) {
            WindowState next = memory().state;
            next.copied_at = {};
            next.original = {};
            done = Write(next);
        }
        env_.Unlock();
        return done;
    }

    // --- the worker that looks

    // Coordinators in this server's databases may have leased range i until free_at[i]. The state
    // keeps this second as a written end, so every later start, even a proven start, waits for it.
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

    // Returns the next request to the coordinator. Returns no request if the server cannot read the
    // state, which may contain leases. The caller draws `fresh` at random for each call.
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
    // accepts only a refusal, because a granted lease may end after the secret begins. If the lease
    // is too long, stores it in `declined`, and the worker gives it back.
    LeaseOutcome Answered(const LeaseReply& reply, LeaseRelease* declined = nullptr) {
        LeaseOutcome outcome{};
        env_.Lock();
        const bool current = env_.SecretCount() == memory().named_secrets;
        if (current && reply.tells_of_secrets) RecordDifference(reply.differs_from);
        UpdateLeaseAndWindow([&](Holder* holder, Window*) {
            outcome =
                Hear(current || reply.kind == LeaseReply::Kind::kRefused ? reply : LeaseReply{},
                     holder, declined);
            return true;
        });
        env_.Unlock();
        return outcome;
    }

    // Opens the next lease's window if this window may open now and no session has opened it yet.
    LeaseOpening OpenLease(Second* used_until) {
        env_.Lock();
        const LeaseOpening opening = OpenNext(used_until);
        env_.Unlock();
        return opening;
    }

    // Removes the next lease, and returns it for the worker to give back. Returns none, and keeps
    // the lease, if a session has opened the lease or if the write fails.
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

    // Copies the leases, so that the worker can use the copy without the lock.
    Holder Leases() {
        env_.Lock();
        const Holder copy = memory().holder;
        env_.Unlock();
        return copy;
    }

    // Seals the window and forgets the leases. The state on disk keeps the leases unless
    // `gives_back` is true. Returns the leases that the worker may give back, each with the second
    // until which the server has used it. Returns none if the leases may still be on disk.
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
            if (was_open) decide().TakeBack(&next, last + 1);
            if (gives_back) memory().holder.Write(next.leases);
            memory().keeps_leases = true;
            struck = Write(next) && gives_back;
            memory().keeps_leases = !struck;
        }
        // A lease counts as used until the written end of its node ids.
        for (LeaseRelease* release : {&releases.open, &releases.next})
            if (!struck)
                *release = {};
            else if (release->lease.id != 0)
                release->UsedUntil(OpensAt(release->lease));
        env_.Unlock();
        return releases;
    }

private:
    decltype(auto) decide() { return static_cast<typename Env::Decisions>(env_); }
    Memory& memory() { return env_.memory(); }
    Window CurrentWindow() { return Window::FromWord(env_.window().load()); }
    uint32_t Slots() { return memory().ranges.first.count; }

    // Returns the last second, in the open window, in which a process reserved a number. If there
    // is none, returns the second before the window.
    Second LastUsed(const Window& window) {
        RANDFLAKE_ASSERT(env_.Locked() || env_.NoChildrenLeft());
        Second last = window.start - 1;
        const auto visit = [&](const auto& set) {
            for (uint32_t i = 0; i < set.layout.Slots(Slots()); i++)
                last = std::max(last, LastSecondUsed(set.layout, set.slot(i).load(), window));
        };
        env_.WithSlots([&](const auto&... sets) { (visit(sets), ...); });
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

    // Creates no state on disk, because a server that does not generate needs none.
    void FindDecodeHorizon() {
        RANDFLAKE_ASSERT(env_.Locked());
        if (env_.DecodeHorizon() != Second{}) return;
        WindowState found{};
        StateError error = StateError::kNone;
        if (memory().loaded)
            env_.SetDecodeHorizon(HorizonOf(memory().state.differs_from));
        else if (env_.PeekAtState(&found, &error))
            env_.SetDecodeHorizon(
                HorizonOf(error == StateError::kNone
                              ? DiffersFrom(found.differs_from, found.secrets, env_.Secrets())
                              : Second{}));
    }

    void RecordDifference(Second differs_from) {
        RANDFLAKE_ASSERT(env_.Locked() && differs_from < kNoSecond);
        FindDecodeHorizon();
        const bool changed = env_.DecodeHorizon() != HorizonOf(differs_from);
        env_.SetDecodeHorizon(HorizonOf(differs_from));
        if (changed) (void)EnsureLoaded();
        const WindowState& state = memory().state;
        if (memory().loaded && (memory().dirty || state.differs_from != differs_from)) {
            WindowState next = state;
            next.differs_from = differs_from;
            (void)Write(next);
        }
    }

    LeaseOutcome Hear(const LeaseReply& reply, Holder* holder, LeaseRelease* declined) {
        if (reply.kind == LeaseReply::Kind::kNone) return holder->Unanswered();
        if (reply.kind == LeaseReply::Kind::kRefused) return holder->Refused();
        if (reply.kind == LeaseReply::Kind::kRenewed)
            return holder->Renewed(env_.layout(), reply.renewed_to, env_.Terms(), env_.Now());
        const LeaseOutcome outcome =
            holder->Granted(env_.layout(), Slots(), reply.grant, env_.Terms(), env_.Now());
        if (outcome == LeaseOutcome::kTooLong)
            *declined = holder->Declined(env_.layout(), reply.grant);
        return outcome;
    }

    // Returns the next end of a lease's window: kWindowSeconds ahead of the clock, but at most
    // LatestEnd. Returns 0 right after a failure, or if the server cannot read the state.
    Second LeaseStep() {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        if (env_.Steady() < memory().retry_at_ms || !EnsureLoaded()) return {};
        const Second now = env_.Now();
        const bool in_time = now >= Second{0} && now < SecondsEnd(env_.layout());
        return in_time ? std::min(now + kWindowSeconds, LatestEnd(now, env_.Terms())) : Second{};
    }

    // Moves the window's end within the open lease. Opens the window if the lease was resumed.
    bool ExtendLease() {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        const Window window = CurrentWindow();
        const Lease& open = memory().holder.open();
        // Another process has moved the end, or the clock was set back.
        if (!window.closed() && env_.Now() + 1 < window.end) return true;
        const Second step = open.id != 0 && env_.Now() < open.end ? LeaseStep() : Second{};
        if (step == Second{}) return false;
        Window moved = memory().holder.Extended(window, step);
        if (window.closed()) {
            const Second now = env_.Now();
            const Second earliest = std::max(window.earliest(), OpensAt(open));
            moved = memory().holder.Reopened(earliest, now, std::max(step, now + 1));
            if (moved.closed() && now < earliest && earliest < open.end)
                env_.Report({WindowProblem::kNotYet, earliest, 0});
            if (moved.closed()) return false;
        }
        return moved != window && UpdateLeaseAndWindow([&](Holder*, Window* next) {
                   *next = moved;
                   return true;
               });
    }

    // After the end of the open lease, opens the window of the next lease. The window starts no
    // earlier than the written ends of the next lease's node ids.
    LeaseOpening OpenNext(Second* used_until) {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        const Holder& held = memory().holder;
        if (held.next().id == 0) return LeaseOpening::kNotYet;
        const Second step = LeaseStep();
        if (step == Second{}) return LeaseOpening::kNotYet;
        const Window before = CurrentWindow();
        *used_until = OpensAt(held.next());
        if (held.NextUsed(before, *used_until)) return LeaseOpening::kUsed;
        const Second now = env_.Now();
        const Second over =
            std::max(before.earliest(), std::min(held.open().end, LatestEnd(now, env_.Terms())));
        const bool opened = UpdateLeaseAndWindow([&](Holder* holder, Window* window) {
            *window = holder->OpenNext(std::max(over, *used_until), now, std::max(step, now + 1));
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
        if (now < Second{0} || now >= limit) return false;
        // Another process has moved the end, or the clock was set back.
        if (!window.closed() && now + 1 < window.end)
            return memory().ranges.count == 1 || LeaveRange(window, now);
        const Second end = std::min(now + kWindowSeconds, limit);
        if (!window.closed() && end <= window.end) return false;
        if (env_.Steady() < memory().retry_at_ms) return false;
        if (const Seconds jump = ClockJump(now); jump > kMaxClockJump) {
            env_.Report({WindowProblem::kClockJumped, {}, jump});
            return false;
        }
        if (!EnsureLoaded()) return false;
        if (window.closed()) return OpenSomeRange(now);
        const NodeRange nodes = memory().ranges.At(memory().range);
        const Window next{window.start, end};
        WindowState state = memory().state;
        state.Record(nodes, next, memory().ranges);
        if (!Write(state)) return false;
        Publish(nodes, next);
        env_.Wake();
        return true;
    }

    Second RangeOpensAt(uint32_t range) {
        RANDFLAKE_ASSERT(env_.Locked());
        return std::max(decide().OpensAt(memory().state, memory().ranges.At(range)),
                        memory().earliest[range]);
    }

    void ShowRanges() {
        RANDFLAKE_ASSERT(env_.Locked());
        Second opens_at[kMaxRanges]{};
        for (uint32_t i = 0; i < memory().ranges.count; i++) opens_at[i] = RangeOpensAt(i);
        env_.ShowRanges(memory().range, opens_at);
    }

    // Chooses a range to replace the range in use, which is too far ahead of the clock. Returns the
    // number of ranges if no range may open.
    uint32_t AnotherRange(Second now) {
        RANDFLAKE_ASSERT(env_.Locked());
        const uint32_t none = memory().ranges.count;
        const uint32_t range = decide().ChooseRange(memory().state, memory().ranges, memory().range,
                                                    memory().earliest, now);
        if (range != none && MayOpen({}, memory().opens_at_ms, now, env_.Present().uptime_ms))
            return range;
        Second first = kNoSecond;
        for (uint32_t i = 0; i < none; i++) first = std::min(first, RangeOpensAt(i));
        env_.Report({WindowProblem::kNoRange, std::max(first, now + 1), 0});
        (void)BackOff();
        return none;
    }

    // Opens a window of the range used last. Uses another range if this range's end on disk is so
    // far ahead of the clock that the clock must have been set back.
    bool OpenSomeRange(Second now) {
        RANDFLAKE_ASSERT(env_.Locked() && CurrentWindow().closed());
        FollowSkew();
        uint32_t range = memory().range;
        const bool looked = memory().proven || memory().looked;
        if (!looked) env_.Look();  // during the hold-off
        const Second opens_at = RangeOpensAt(range);
        if (!MayOpen(opens_at, memory().opens_at_ms, now, env_.Present().uptime_ms)) {
            const Ms behind = InMs(opens_at - now - kWindowSeconds);
            const bool leased = now < memory().free_at[range];
            if (leased || memory().ranges.count == 1 || behind <= env_.SkewMs()) {
                env_.Report({leased ? WindowProblem::kLeased : WindowProblem::kNotYet,
                             std::max(opens_at, now + 1), 0});
                return false;
            }
            if (looked) range = AnotherRange(now);
            if (range == memory().ranges.count) return false;
        }
        if (!looked) {
            env_.Report({WindowProblem::kNotLooked, {}, 0});
            return false;
        }
        return OpenRange(range, now, memory().state);
    }

    // Continues under another range if the clock is behind the last used second by more than the
    // tolerance. The window must be open and end after `now` + 1. Returns false on failure.
    bool LeaveRange(const Window& window, Second now) {
        RANDFLAKE_ASSERT(env_.Locked() && window == CurrentWindow() && !window.closed());
        if (env_.Steady() < memory().retry_at_ms) return false;
        const Second last = LastUsed(window);
        if (InMs(last - now) <= env_.SkewMs()) return true;
        const uint32_t range = AnotherRange(now);
        if (range == memory().ranges.count) return false;
        // From here on, no window is open. If OpenRange fails or raises an error, the disk still
        // has the end of the sealed window.
        const Second sealed = SealSlots();
        memory().earliest[memory().range] = CurrentWindow().earliest();
        WindowState next = memory().state;
        decide().TakeBack(&next, sealed + 1);
        return OpenRange(range, now, next);
    }

    // Opens a window of this range. Adds the window to the state `next`, and writes `next`.
    bool OpenRange(uint32_t range, Second now, WindowState next) {
        RANDFLAKE_ASSERT(env_.Locked());
        const NodeRange nodes = memory().ranges.At(range);
        const Window window{now, std::min(now + kWindowSeconds, SecondsEnd(env_.layout()))};
        RANDFLAKE_ASSERT(CurrentWindow().closed() && now >= memory().earliest[range]);
        RANDFLAKE_ASSERT(memory().proven || memory().looked);
        next.Record(nodes, window, memory().ranges);
        if (!Write(next)) return false;
        const uint32_t before = memory().range;
        memory().range = range;
        env_.window().store(Window::ClosedUntil(memory().earliest[range]).ToWord(),
                            std::memory_order_release);
        Publish(nodes, window);
        env_.Wake();
        ShowRanges();
        if (range != before) env_.LogRange(before, now);
        return true;
    }

    // Returns what the wall clock would show if it had not been set since the postmaster's start.
    WallMs UnsetWall(const Moment& now) {
        const Moment& started = memory().postmaster.started_at;
        return started.wall_ms + (now.uptime_ms - started.uptime_ms);
    }

    Seconds ClockJump(Second now) { return now - SecondOf(UnsetWall(env_.Present())); }

    // Reads the state on disk once after a start. Returns false if the server cannot read the
    // state, or if the secrets do not fit the state.
    bool EnsureLoaded() {
        RANDFLAKE_ASSERT(env_.Locked());
        if (memory().loaded) return true;
        WindowState found{};
        StateError error = StateError::kNone;
        Start start{};
        if (!env_.ReadState(&found, &error, &start.origin)) return BackOff();
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
        start.marker = env_.ReadMarker(start.origin);
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
        // The state keeps only the leases that the server resumes at this start. If this directory
        // is a copy, the server in the original directory may still use the other leases.
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
        // If a coordinator has reported a horizon, the report is newer than this state.
        if (const Second known = env_.DecodeHorizon(); known != Second{})
            memory().state.differs_from = known != kNoSecond ? known : Second{};
        memory().dirty = memory().state.differs_from != plan.state.differs_from;
        memory().range = LastRange(plan.state, memory().ranges);
        TakeTimes(plan);
        memory().run = run;
        memory().marker = start.marker;
        memory().holder.Resume(plan.state.leases);
        memory().loaded = true;
        if (memory().leased) env_.ShowLeases(memory().holder);
        env_.SetDecodeHorizon(HorizonOf(memory().state.differs_from));
        env_.LogStart(plan, found, error);
        return true;
    }

    void TakeTimes(const StartPlan& plan) {
        RANDFLAKE_ASSERT(env_.Locked());
        memory().proven = plan.proven;
        memory().opens_at_ms = plan.opens_at_ms;
        memory().held_off_until = plan.held_off_until;
        memory().state.floor = std::max(memory().state.floor, plan.state.floor);
        ShowRanges();
    }

    // Plans the start again if the tolerated difference of clocks has changed since the server read
    // the state. The new plan uses the smallest and the largest difference tolerated so far.
    void FollowSkew() {
        RANDFLAKE_ASSERT(env_.Locked() && memory().loaded);
        const SkewRange skew = memory().start.skew.With(env_.Skew());
        if (skew == memory().start.skew) return;
        memory().start.skew = skew;
        const StartPlan plan =
            decide().PlanStart(memory().found, memory().found_state, memory().start);
        RANDFLAKE_ASSERT(plan.held_off_until >= memory().held_off_until);
        TakeTimes(plan);
    }

    // Only this function writes the state. First the state becomes durable, then the marker gets
    // the state's number, and then processes may rely on the state.
    bool WriteWithMarker(WindowState* next) {
        RANDFLAKE_ASSERT(env_.Locked() || env_.NoChildrenLeft());
        RANDFLAKE_ASSERT(memory().loaded);
        next->write = {++memory().run,
                       memory().marker,
                       memory().postmaster.number,
                       {},
                       env_.Present().uptime_ms};
        std::ranges::copy(memory().postmaster.machine_boot, next->write.boot);
        uint64_t number = next->write.number;
        if (!env_.WriteState(*next) || !env_.SetMarker(next->origin, &number)) return false;
        RANDFLAKE_ASSERT(number == next->write.number || number == 0);
        memory().marker = number;
        return true;
    }

    bool Write(WindowState next) {
        RANDFLAKE_ASSERT(env_.Locked());
        next.skew = env_.Skew();
        env_.Report({WindowProblem::kWriting, {}, 0});
        if (!WriteWithMarker(&next)) return BackOff();
        memory().state = next;
        memory().dirty = false;
        env_.Report({WindowProblem::kNone, {}, 0});
        return true;
    }

    // Only this function opens or extends a window. The window's end is already on disk.
    void Publish(const NodeRange& nodes, const Window& next) {
        const Window before = CurrentWindow();
        const bool opens = before.closed() || next.start != before.start;
        RANDFLAKE_ASSERT(env_.Locked() && !next.closed());
        RANDFLAKE_ASSERT(next.end <= memory().state.EndFor(nodes));
        RANDFLAKE_ASSERT(next.start == memory().state.recorded_start);
        // `marker` is 0 if the marker could not be written and was removed.
        RANDFLAKE_ASSERT(memory().marker == memory().state.write.number || memory().marker == 0);
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

    // Only this function changes leases. `change(&holder, &window)` changes copies, and returns
    // whether to keep them. The server then writes the leases. If the write fails, a change of the
    // window or a removal of a lease (`kStrikes`) has no effect. Other changes then stay in memory,
    // and no window relies on them before the next write. Returns false if there was no effect.
    template <bool kStrikes = false, typename Act> bool UpdateLeaseAndWindow(Act&& change) {
        RANDFLAKE_ASSERT(env_.Locked() && memory().leased);
        Holder holder = memory().holder;
        const Window before = CurrentWindow();
        Window window = before;
        if (!change(&holder, &window)) return false;
        const bool moved = window != before;
        WindowState next = memory().state;
        holder.Write(next.leases);
        if (moved) next.Record(holder.open().nodes, window, memory().ranges);
        const bool changed = moved || !std::ranges::equal(next.leases, memory().state.leases);
        if (changed && !Write(next) && (moved || kStrikes)) return false;
        if (moved) Publish(holder.open().nodes, window);
        // An open lease never ends earlier than promised, and the window stays within its lease.
        RANDFLAKE_ASSERT(holder.open().id != memory().holder.open().id ||
                         holder.open().end >= memory().holder.open().end);
        RANDFLAKE_ASSERT(window.closed() || window.end <= holder.open().end);
        memory().holder = holder;
        env_.ShowLeases(holder);
        if (changed) env_.Wake();
        return true;
    }

    Env& env_;
};

}  // namespace randflake
