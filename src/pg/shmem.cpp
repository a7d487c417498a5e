#include "pg/shmem.h"

#include <new>

#include "pg/secret.h"
#include "pg/settings.h"

static constexpr char kName[] = "randflake";

SharedState* shared;

static Size shared_size() {
    return add_size(offsetof(SharedState, slots),
                    mul_size(mul_size(setting_node_count, 2), sizeof(Slot)));
}

void shmem_request() {
    RequestAddinShmemSpace(shared_size());
    RequestNamedLWLockTranche(kName, 2);
}

// Exit status 0 is a clean stop; a crash, of the server or of a backend, has another one.
static void on_exit(int status, Datum) {
    if (status == 0)
        window_write_clean_end();
}

void shmem_startup() {
    bool found;

    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    shared = static_cast<SharedState*>(ShmemInitStruct(kName, shared_size(), &found));
    if (!found) {
        const randflake::Key* key = secret_key();
        shared->has_key = key != nullptr;
        if (key != nullptr) {
            shared->key_schedule = randflake::ExpandKey(*key);
            shared->key = *key;
        }
        shared->slot_count = setting_node_count;
        LWLockPadded* locks = GetNamedLWLockTranche(kName);
        shared->window_lock = &locks[0].lock;
        shared->lease_lock = &locks[1].lock;
        shared->leased = setting_coordinator[0] != '\0';
        window_init(&shared->window_control);
        shared->lease_control = LeaseControl{};
        ConditionVariableInit(&shared->window_changed);
        new (&shared->counters) Counters{};
        new (&shared->window) AtomicWord(0);
        for (uint32 i = 0; i < 2 * shared->slot_count; i++)
            new (&shared->slots[i]) Slot{};
        counters_reset();
    }
    LWLockRelease(AddinShmemInitLock);

    // Exit callbacks of the postmaster run when all its children are gone, and before shared memory
    // is released. A restart after a crash of a backend passes here again.
    if (!IsUnderPostmaster)
        on_shmem_exit(on_exit, 0);
}
