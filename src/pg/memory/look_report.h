// Reports the look for coordinators that leased this server's static node ids.
// core/lease/pool_look.h explains when and why the server looks.

#pragma once

#include "pg/base/pg.h"

#include "core/lease/pool_look.h"

// This report is in shared memory. A spinlock of its own, a leaf, protects it. Zero: no look yet.
struct LookReport {
    slock_t mutex;
    int launcher;                     // its pid; 0: none
    randflake::SteadyMs start_at_ms;  // the next launcher may start then

    // Workers in databases answer the launcher's last question only.
    uint32 question;
    bool answered;
    randflake::Second free_at[randflake::kMaxRanges];

    // Messages name the database whose coordinator's leases of each range end last, the database of
    // the last failed look, and its failure.
    Oid coordinator[randflake::kMaxRanges];
    Oid database;
    uint32 failed;  // its question
    bool no_worker;
    char failure[200];  // empty: none failed
};

void look_init_report();

// Returns a copy of the report; do not use its mutex.
LookReport look_report();

// Starts a look unless another one runs. Any process may call it.
void look_start();

// --- for the launcher and its workers

// Records a failure, or none with an empty text, unless a later question exists.
void look_record_failure(uint32 question, const char* failure, Oid database,
                         bool no_worker = false);

// Returns false, recorded as a failure, if no worker is free. The caller may wait with `handle`.
bool look_start_worker(const char* function, Oid database, uint32 question,
                       BackgroundWorkerHandle** handle);
