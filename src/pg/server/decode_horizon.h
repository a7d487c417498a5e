// Answers whether this server lacks secrets, by a coordinator's word or the state on disk.

#pragma once

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/memory/shmem.h"

// This server's secrets decode all identifiers made before this second. kNoSecond: the server knows
// of no missing secret. The coordinator names the second, and the state on disk keeps it. For
// backends that do not hold the window lock.
randflake::Second secrets_read_decode_horizon();
static inline randflake::Second secrets_decode_horizon() {
    const randflake::Second second{shared->decode_horizon.load(std::memory_order_relaxed)};
    return likely(second.count != 0) ? second : secrets_read_decode_horizon();
}

// Raises the ERROR with the remedy: the server cannot be certain about an identifier of that second
// or later, or of no secret. `raw` is null in the latter case.
[[noreturn]] void raise_secret_lacking();
static inline void require_certain(const randflake::Layout& layout, const uint64_t* raw) {
    const randflake::Second before = secrets_decode_horizon();
    if (unlikely(before != randflake::kNoSecond) &&
        (raw == nullptr || !randflake::CertainlyRead(layout, *raw, before)))
        raise_secret_lacking();
}
