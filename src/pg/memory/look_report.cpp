// Processes hold the report's spinlock only while they copy the report from or to shared memory.

#include "pg/memory/look_report.h"

#include "pg/memory/shmem.h"

static LookReport* report() {
    return &shared->look;
}

void look_init_report() {
    SpinLockInit(&report()->mutex);
}

LookReport look_report() {
    SpinLockAcquire(&report()->mutex);
    const LookReport copy = *report();
    SpinLockRelease(&report()->mutex);
    return copy;
}

void look_record_failure(uint32 question, const char* failure, Oid database) {
    SpinLockAcquire(&report()->mutex);
    if (question == report()->question) {
        report()->to_log =
            database != report()->database || strcmp(failure, report()->failure) != 0;
        report()->database = database;
        report()->failed = question;
        strlcpy(report()->failure, failure, sizeof report()->failure);
    }
    SpinLockRelease(&report()->mutex);
}

void look_start() {
    SpinLockAcquire(&report()->mutex);
    Latch* launcher = report()->wanted ? nullptr : report()->launcher;
    report()->wanted = true;
    SpinLockRelease(&report()->mutex);
    if (launcher != nullptr)
        SetLatch(launcher);
}
