// Tells whether this server lacks secrets that the coordinator has.

#pragma once

#include "pg/base/pg.h"

#include "pg/secret/secret.h"

// Returns the decode horizon: this server's secrets decode all identifiers made before this second.
// kNoSecond means that the server knows of no missing secret. Takes the window lock.
randflake::Second secrets_read_decode_horizon();
static inline randflake::Second secrets_decode_horizon() {
    const randflake::Second second{shared_secrets->decode_horizon.load(std::memory_order_relaxed)};
    return likely(second.count != 0) ? second : secrets_read_decode_horizon();
}

// require_certain raises an ERROR if the identifier may belong to a secret that this server lacks.
// `raw` is null if no secret of this server decrypts the identifier.
[[noreturn]] void raise_secret_lacking();
static inline void require_certain(const randflake::Layout& layout, const uint64_t* raw) {
    const randflake::Second before = secrets_decode_horizon();
    if (unlikely(before != randflake::kNoSecond) &&
        (raw == nullptr || !randflake::CertainlyRead(layout, *raw, before)))
        raise_secret_lacking();
}
