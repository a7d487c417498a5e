// What a coordinator or the state on disk knows of secrets that this server lacks.

#ifndef RANDFLAKE_PG_SERVER_DECODE_HORIZON_H
#define RANDFLAKE_PG_SERVER_DECODE_HORIZON_H

#include "pg/base/pg.h"

#include "core/window/window_state.h"
#include "pg/memory/shmem.h"

// The second before which this server's ring reads everything as it was made; kNoSecond: it is not
// known to lack a secret. A coordinator tells, and the state on disk remembers. For backends, which
// may hold no lock of ours.
randflake::Second secrets_read_decode_horizon();
static inline randflake::Second secrets_decode_horizon() {
    const randflake::Second second{shared->decode_horizon.load(std::memory_order_relaxed)};
    return likely(second.count != 0) ? second : secrets_read_decode_horizon();
}

// What is read as a second at or beyond that one, or as made by no secret, may be something else:
// an ERROR with the remedy. `raw` is null for what no secret made.
[[noreturn]] void raise_secret_lacking();
static inline void require_certain(const randflake::Layout& layout, const uint64_t* raw) {
    const randflake::Second before = secrets_decode_horizon();
    if (unlikely(before != randflake::kNoSecond) &&
        (raw == nullptr || !randflake::CertainlyRead(layout, *raw, before)))
        raise_secret_lacking();
}

#endif
