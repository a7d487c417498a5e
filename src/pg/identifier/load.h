// Lets one statement get its identifiers in ascending runs (randflake.sort_loads). A statement
// that uses many identifiers reserves long runs of them, sorts each run, and hands it out (see
// core/identifier/run_order.h). Neighbors in the order then share a page of the key's index, so a
// load reads and writes each page once per run.
//
// A statement is an outermost run of the executor, or an outermost utility statement, with all that
// its functions and triggers execute. So nothing of a run can pass to another statement,
// transaction or fetch from a cursor: hooks drop the run and free its memory when the outermost
// call ends, with an error too. Calls outside, such as those of a deferred trigger's expression,
// never see a run.
//
// Runs hold numbers of one family. If a statement makes identifiers of two families, the other
// family has short batches while a run is left. docs/design.md, "Batches", has the bounds of a run,
// and the reason why its numbers stay the process's own.

#pragma once

#include "pg/base/pg.h"

#include "core/base/time.h"

// In this time, a run is handed out or dropped.
inline constexpr int64 kLongestHold = 60;  // seconds

struct Load {
    int depth;        // calls of the hooks that are not finished; 0 outside of statements
    uint64 used;      // identifiers that the statement used, of finished runs and batches
    void (*empty)();  // empties the array of the family whose run this is; null without a run
    randflake::Second reserved_at;
    uint64* ids;  // ids[next .. count - 1] are left; behind ids[capacity - 1] is the sort's scratch
    uint32 next, count;
    uint32 capacity;  // 0: no memory
};
extern Load load;

void load_define_setting();
void load_init();

// Bracket a call that may be a statement. load_leave takes the result of load_enter.
bool load_enter();
void load_leave(bool entered);

// Drops the run, and empties the array that got a part of it. If some of the run was left, the
// length of the next run depends on what was used of it.
void load_drop_run();

// Returns whether identifiers of the run may still be handed out.
bool load_run_lasts(randflake::Second now);

// Returns whether a family may have a run now. `empty` is the family's.
bool load_may_run(void (*empty)());

// Begins a run, and returns how many identifiers it may have. The caller writes up to 63 more.
uint32 load_begin_run(void (*empty)());

// Ends the preparation of a run: puts its `count` identifiers in order.
void load_sort(uint32 count);
