// Reports how the server looks for coordinators that have leased its static node ids.
// core/lease/pool_look.h explains when and why it looks for them.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/pool_look.h"

// This report is in shared memory, under its own spinlock. It is zero before the first look.
struct LookReport {
    slock_t mutex;
    Latch* launcher;  // null: the launcher has not started
    bool wanted;      // a process waits for a look

    // The launcher gives each question a number. Workers answer only the newest question.
    uint32 question;
    bool answered;
    randflake::Second free_at[randflake::kMaxRanges];

    // Only the launcher reads and writes these fields. They outlive the launcher's process.
    Oid asked;        // the database of the newest question, until its answer was read; 0: none
    bool own_turn;    // the next process of the launcher answers the question itself
    Oid last_looked;  // this look knows all databases up to this one
    randflake::Second all_free_at[randflake::kMaxRanges];
    Oid latest[randflake::kMaxRanges];  // becomes `coordinator`

    // Messages name these databases. coordinator[i] is the database whose lease of range i ends
    // last. The last search that failed was in `database`.
    Oid coordinator[randflake::kMaxRanges];
    Oid database;
    uint32 failed;      // the number of the failed question
    char failure[200];  // empty: no failure
    bool to_log;        // the failure differs from the one before
};

void look_init_report();

// Returns a copy of the report. Do not use the copy's mutex.
LookReport look_report();

// Asks the launcher for a look. Any process may call it.
void look_start();

// Records the failure of this question (an empty text for success), unless a later question exists.
void look_record_failure(uint32 question, const char* failure, Oid database);
