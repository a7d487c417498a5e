// Reports how the server looks for coordinators that have leased its static node ids.
// core/lease/pool_look.h explains when and why it looks for them.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/pool_look.h"

// This report is in shared memory, under its own spinlock. It is zero before the first look.
struct LookReport {
    slock_t mutex;
    int launcher;                     // its pid; 0: none
    randflake::SteadyMs start_at_ms;  // the next launcher may start then

    // The launcher gives each question a number. Workers answer only the newest question.
    uint32 question;
    bool answered;
    randflake::Second free_at[randflake::kMaxRanges];

    // Messages name these databases. coordinator[i] is the database whose lease of range i ends
    // last. The last search that failed was in `database`.
    Oid coordinator[randflake::kMaxRanges];
    Oid database;
    uint32 failed;  // the number of the failed question
    bool no_worker;
    char failure[200];  // empty: no failure
};

void look_init_report();

// Returns a copy of the report. Do not use the copy's mutex.
LookReport look_report();

// Starts a look unless another one runs. Any process may call it.
void look_start();

// Records the failure of this question (an empty text for success), unless a later question exists.
void look_record_failure(uint32 question, const char* failure, Oid database,
                         bool no_worker = false);

// Returns false and records a failure if no worker is free. `handle` may be null.
bool look_start_worker(const char* function, Oid database, uint32 question,
                       BackgroundWorkerHandle** handle);
