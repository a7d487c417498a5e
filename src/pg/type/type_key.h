// Binds a database to the secrets that encrypt its values of type randflake.

#pragma once

#include "pg/base/pg.h"

#include "core/type/type_binding.h"
#include "pg/secret/secret.h"
#include "pg/server/decode_horizon.h"
#include "pg/server/require.h"

// While type_certain_secrets equals the number of the server's secrets, this session may use raw
// numbers below type_certain_end without reading the tables. If type_certain_end is 0, the session
// must always read the tables.
extern uint64 type_certain_end;
extern int type_certain_secrets;

// Adds the entries for this use, and returns true. Returns false if no secret decrypts the
// identifier or no server has reached the identifier's second. Raises an ERROR to refuse the use.
bool check_type(Oid function, const randflake::SecretRing& ring, randflake::TypeUse use,
                uint64 raw);

static inline randflake::SecretRing type_secrets() {
    if (unlikely(shared_secrets == nullptr || secret_ring().count() == 0)) require_secret();
    return secret_ring();
}

// Checks a use of one value. `ring` is the ring that encrypts or decrypts the value.
static inline bool check_type_value(FunctionCallInfo fcinfo, const randflake::SecretRing& ring,
                                    randflake::TypeUse use, uint64 raw) {
    return (likely(raw < type_certain_end) && likely(ring.count() == type_certain_secrets) &&
            randflake::kRandflake.Before(randflake::kRandflake.Unpack(raw).timestamp,
                                         secrets_decode_horizon())) ||
           check_type(fcinfo->flinfo->fn_oid, ring, use, raw);
}
