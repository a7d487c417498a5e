#include "pg/server/shmem.h"

#include <new>

#include "pg/server/settings.h"

static constexpr char kName[] = "randflake";

SharedState* shared;

static Size shared_size() {
    return add_size(offsetof(SharedState, slots),
                    mul_size(mul_size(setting_node_count, 2), sizeof(Slot)));
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
    for (uint32 i = 0; i < 2 * shared->slot_count; i++)
        new (&shared->slots[i]) Slot{};
    shared->window_lock = &GetNamedLWLockTranche(kName)->lock;
    ConditionVariableInit(&shared->window_changed);
    return true;
}
