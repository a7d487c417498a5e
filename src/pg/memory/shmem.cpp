// Requests one block of shared memory and one named lock, and maps the block.

#include "pg/memory/shmem.h"

#include <new>

#include "pg/memory/settings.h"

static constexpr char kName[] = "randflake";

SharedState* shared;

static uint32 count_slots() {
    const auto node_ids = static_cast<uint32>(setting_node_count);
    return 2 * node_ids + randflake::kRandflake53.Slots(node_ids);
}

static Size shared_size() {
    return add_size(offsetof(SharedState, slots), mul_size(count_slots(), sizeof(Slot)));
}

void shmem_request() {
    RequestAddinShmemSpace(shared_size());
    RequestNamedLWLockTranche(kName, 1);
}

bool shmem_attach() {
    bool found;
    shared = static_cast<SharedState*>(ShmemInitStruct(kName, shared_size(), &found));
    if (found)
        return false;
    new (shared) SharedState{};
    shared->slot_count = setting_node_count;
    for (uint32 i = 0; i < count_slots(); i++)
        new (&shared->slots[i]) Slot{};
    shared->window_lock = &GetNamedLWLockTranche(kName)->lock;
    ConditionVariableInit(&shared->window_changed);
    return true;
}
