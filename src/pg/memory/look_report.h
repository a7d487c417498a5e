// What is shown of the look for coordinators that have leased this server's own static node ids,
// and its start; core/lease/pool_look.h says when and why.

#ifndef RANDFLAKE_PG_MEMORY_LOOK_REPORT_H
#define RANDFLAKE_PG_MEMORY_LOOK_REPORT_H

#include "pg/base/pg.h"

#include "core/lease/pool_look.h"

// In shared memory, protected by its own spinlock, a leaf. What is zero was not looked at.
struct LookReport {
    slock_t mutex;
    int launcher;                     // its pid; 0: none
    randflake::SteadyMs start_at_ms;  // no other one is started before

    // The worker in a database answers the launcher's last question.
    uint32 question;
    bool answered;
    randflake::Second free_at[randflake::kMaxRanges];

    // For messages: the databases whose coordinators have leased each range for longest; and the
    // one in which the last look failed, and why.
    Oid coordinator[randflake::kMaxRanges];
    Oid database;
    uint32 failed;  // the question
    bool no_worker;
    char failure[200];  // empty: it did not
};

void look_init_report();

// A copy of the report; its mutex means nothing.
LookReport look_report();

// Starts the look unless it is under way. Any process may.
void look_start();

// --- for the launcher and its workers

// For this question; an empty text: nothing failed. Of another question than the last one, it comes
// too late.
void look_record_failure(uint32 question, const char* failure, Oid database,
                         bool no_worker = false);

// False if no worker is free, which was noted. With a handle the caller hears of its end.
bool look_start_worker(const char* function, Oid database, uint32 question,
                       BackgroundWorkerHandle** handle);

#endif
