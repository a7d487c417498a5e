// The state and results of the look for coordinators that have leased this server's static node
// ids; core/lease/pool_look.h says when and why the server looks.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/pool_look.h"

// In shared memory, protected by its own spinlock, a leaf. Zero means not looked at.
struct LookReport {
    slock_t mutex;
    int launcher;                     // its pid; 0: none
    randflake::SteadyMs start_at_ms;  // the next one may start then

    // Workers in databases answer the launcher's last question only.
    uint32 question;
    bool answered;
    randflake::Second free_at[randflake::kMaxRanges];

    // For messages: the database whose coordinator has leased each range for longest; the database
    // of the last look that failed, and why.
    Oid coordinator[randflake::kMaxRanges];
    Oid database;
    uint32 failed;  // its question
    bool no_worker;
    char failure[200];  // empty: none failed
};

void look_init_report();

// A copy of the report; do not use its mutex.
LookReport look_report();

// Starts the look unless one is under way. Any process may call it.
void look_start();

// --- for the launcher and its workers

// Records a failure, or with an empty text none, unless the question is no longer the last one.
void look_record_failure(uint32 question, const char* failure, Oid database,
                         bool no_worker = false);

// False, recorded as a failure, if no worker is free. `handle` lets the caller wait for its end.
bool look_start_worker(const char* function, Oid database, uint32 question,
                       BackgroundWorkerHandle** handle);
