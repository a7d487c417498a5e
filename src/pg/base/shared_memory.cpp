// Requests one block of shared memory and one named lock, and divides the block among the parts.

#include "pg/base/shared_memory.h"

static constexpr char kName[] = "randflake";

static const SharedPart* const parts[] = {
    &secret_part,        &settings_part, &slots_part, &server_part,
    &window_report_part, &lease_part,    &look_part,  &rival_part,
};

static Size total_size() {
    Size total = 0;
    for (const SharedPart* part : parts) total = add_size(total, CACHELINEALIGN(part->size()));
    return total;
}

void shared_memory_request() {
    RequestAddinShmemSpace(total_size());
    RequestNamedLWLockTranche(kName, 1);
}

bool shared_memory_attach() {
    Assert(LWLockHeldByMe(AddinShmemInitLock));
    bool found;
    auto* at = static_cast<char*>(ShmemInitStruct(kName, total_size(), &found));
    Assert(found == IsUnderPostmaster);
    for (const SharedPart* part : parts) {
        Assert(reinterpret_cast<uintptr_t>(at) % PG_CACHE_LINE_SIZE == 0);  // see Slot
        part->attach(at, !found);
        at += CACHELINEALIGN(part->size());
    }
    return !found;
}

LWLock* shared_memory_lock() { return &GetNamedLWLockTranche(kName)->lock; }
