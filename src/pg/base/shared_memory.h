// Lists the parts of the library's shared memory. Each subject owns a part: the struct, its size
// and its initialization. What protects a field stands beside the field.
//
// Nothing in shared memory points into the memory of a process or into the library. With
// EXEC_BACKEND, the library's address differs among processes.

#pragma once

#include "pg/base/pg.h"

#include <new>

struct SharedPart {
    Size (*size)();

    // Each process that maps the memory calls this. If `made`, this process has just created the
    // memory, all bytes are zero, and no other process uses it yet.
    void (*attach)(void* memory, bool made);
};

// Describes a part that is one T. In each process, `pointer` points to the part. If this server has
// not preloaded the library, the pointer is null. `init` initializes the part, whose bytes are
// zero. Headers declare the pointers hidden, so that code reads one without loading its address.
template <typename T, T*& pointer, void (*init)()>
inline constexpr SharedPart kSharedPart{[]() -> Size { return sizeof(T); },
                                        [](void* memory, bool made) {
                                            pointer =
                                                made ? new (memory) T{} : static_cast<T*>(memory);
                                            if (made) init();
                                        }};

// The postmaster initializes the parts in this order. Each part may use those before it.
extern const SharedPart secret_part;
extern const SharedPart settings_part;
extern const SharedPart slots_part;
extern const SharedPart server_part;
extern const SharedPart window_report_part;
extern const SharedPart lease_part;
extern const SharedPart look_part;
extern const SharedPart rival_part;

// Requests memory for all parts, and the one named lock.
void shared_memory_request();

// Maps the memory. Returns whether this call created the memory.
bool shared_memory_attach();

// Returns the named lock.
LWLock* shared_memory_lock();

// A value in shared memory that has its own spinlock, which is a leaf: a process holds the spinlock
// for a few instructions, takes no other lock meanwhile, and raises no error.
template <typename T> struct Guarded {
    slock_t mutex;
    T value;  // direct use only by the one process that writes a field

    void Init() { SpinLockInit(&mutex); }
    T Copy() {
        SpinLockAcquire(&mutex);
        const T copy = value;
        SpinLockRelease(&mutex);
        return copy;
    }
    template <typename Change> void Update(Change&& change) {
        SpinLockAcquire(&mutex);
        change(&value);
        SpinLockRelease(&mutex);
    }
};
