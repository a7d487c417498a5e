// Tracks statements, and owns the memory of their runs; see load.h.

#include "pg/identifier/load.h"

#include "core/identifier/cipher_batch.h"
#include "core/identifier/run_order.h"
#include "pg/base/clock.h"
#include "pg/base/compat.h"

using randflake::kBatchLength;

Load load;
static bool setting_sort_loads;
static MemoryContext memory;

static ExecutorRun_hook_type previous_run;
static ExecutorFinish_hook_type previous_finish;

// A longer run gains nothing that can be measured, and sorting it takes a tenth of a second.
static constexpr uint64 kLongestRun = 1 << 22;

// A run is as long as what the statement has used. From kLoad identifiers on it is kGrowth times as
// long, because each run of a load reads the whole index.
static constexpr uint64 kLoad = 4096;
static constexpr uint64 kGrowth = 7;

// Part of work_mem that the run leaves to the headers of its memory.
static constexpr uint64 kHeaders = 2048;

static void free_run() {
    load.capacity = 0;
    if (memory != nullptr) MemoryContextDelete(memory);
    memory = nullptr;
}

void load_drop_run() {
    Assert(load.next <= load.count);
    if (load.empty != nullptr) load.empty();
    if (load.next < load.count) load.used = load.next;
    load.empty = nullptr;
    load.next = load.count = 0;
}

static void forget_statement() {
    load_drop_run();
    load.used = 0;
    free_run();
}

bool load_enter() {
    Assert(load.depth > 0 || (load.empty == nullptr && load.used == 0));
    if (likely(!setting_sort_loads && load.depth == 0)) return false;
    load.depth++;
    return true;
}

void load_leave(bool entered) {
    Assert(!entered || load.depth > 0);
    if (entered && --load.depth == 0) forget_statement();
}

template <typename Call> static void as_statement(Call&& call) {
    if (!load_enter()) {
        call();
        return;
    }
    PG_TRY();
    { call(); }
    PG_FINALLY();
    { load_leave(true); }
    PG_END_TRY();
}

static void on_run(RUN_PARAMETERS) {
    as_statement(
        [&] { (previous_run != nullptr ? previous_run : standard_ExecutorRun)(RUN_ARGUMENTS); });
}

// AFTER triggers run here.
static void on_finish(QueryDesc* query) {
    as_statement(
        [&] { (previous_finish != nullptr ? previous_finish : standard_ExecutorFinish)(query); });
}

// An error that a function catches may have come from the middle of a reservation or a sort. The
// statement starts again with short runs, or a loop of errors would drop a long run for each.
static void on_subtransaction(SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
    if (event == SUBXACT_EVENT_ABORT_SUB && load.depth > 0) forget_statement();
}

void load_define_setting() {
    // DefineCustomBoolVariable would only warn of an invalid value, and use the default.
    const char* text = GetConfigOption("randflake.sort_loads", true, false);
    if (bool value; text != nullptr && !parse_bool(text, &value))
        ereport(FATAL,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("invalid value for parameter \"randflake.sort_loads\": \"%s\"", text),
                 errhint("Set it to on or off.")));
    DefineCustomBoolVariable(
        "randflake.sort_loads",
        "Gives a statement that makes many identifiers these in ascending stretches.",
        "Stretches of 16,384 or more ascend by mixed groups of 1,024. The statement loads faster "
        "into an index. Its identifiers then show the order of its rows.",
        &setting_sort_loads, false, PGC_USERSET, 0, nullptr, nullptr, nullptr);
}

void load_init() {
    previous_run = ExecutorRun_hook;
    ExecutorRun_hook = on_run;
    previous_finish = ExecutorFinish_hook;
    ExecutorFinish_hook = on_finish;
    RegisterSubXactCallback(on_subtransaction, nullptr);
}

bool load_run_lasts(randflake::Second now) {
    return setting_sort_loads && now >= load.reserved_at && now - load.reserved_at <= kLongestHold;
}

bool load_may_run(void (*empty)()) {
    return setting_sort_loads && load.used >= kBatchLength &&
           (load.empty == nullptr || load.empty == empty);
}

uint32 load_begin_run(void (*empty)()) {
    Assert(load.depth > 0 && load_may_run(empty));
    const uint64 allowed = (static_cast<uint64>(work_mem) * 1024 - kHeaders) / (2 * sizeof(uint64));
    const uint64 longest = Min(allowed, kLongestRun);
    load.used += load.count;  // of the last run, if it is used up
    const uint64 wanted = Min(load.used < kLoad ? load.used : load.used * kGrowth, longest);
    load_drop_run();
    if (load.capacity < wanted || load.capacity > longest) {
        free_run();
        memory = AllocSetContextCreate(TopMemoryContext, "randflake load", ALLOCSET_SMALL_SIZES);
        load.ids = static_cast<uint64*>(MemoryContextAlloc(memory, wanted * 2 * sizeof(uint64)));
        load.capacity = static_cast<uint32>(wanted);
    }
    load.empty = empty;
    load.reserved_at = wall_clock_second();
    return static_cast<uint32>(wanted);
}

void load_sort(uint32 count) {
    Assert(load.depth > 0 && count < load.capacity + kBatchLength);
    randflake::SortSigned(load.ids, count, load.ids + load.capacity);
    randflake::MixGroups(load.ids, count, load.ids + load.capacity);
    load.count = count;
}
