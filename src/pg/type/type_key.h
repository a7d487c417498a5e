// Which secrets the values of type randflake in a database belong to.

#ifndef RANDFLAKE_PG_TYPE_TYPE_KEY_H
#define RANDFLAKE_PG_TYPE_TYPE_KEY_H

#include "pg/base/pg.h"

#include "core/type/type_binding.h"
#include "pg/memory/require.h"
#include "pg/memory/shmem.h"
#include "pg/secret/secret.h"
#include "pg/server/decode_horizon.h"

// Raw numbers below this one may be made, read in and shown in this session without a further look,
// with as many secrets as this; 0 when nothing is certain. See type_key.cpp.
extern uint64 type_certain_end;
extern int type_certain_secrets;

// Whether a use of the type may go on; sees to it that what it needs is there, or raises an ERROR.
// False for an identifier that cannot have been made yet, and for one of no secret: the error is
// the caller's. `raw` counts where the use is of one value.
bool check_type(Oid function, const randflake::SecretRing& ring, randflake::TypeUse use,
                uint64 raw);

// The server's secrets, at least one, or an ERROR.
static inline randflake::SecretRing type_secrets() {
    if (unlikely(shared == nullptr || secret_ring().count() == 0))
        require_secret();
    return secret_ring();
}

// The same for one value; the ring is that which encrypts or has decrypted it.
static inline bool check_type_value(FunctionCallInfo fcinfo, const randflake::SecretRing& ring,
                                    randflake::TypeUse use, uint64 raw) {
    return (likely(raw < type_certain_end) && likely(ring.count() == type_certain_secrets) &&
            randflake::kRandflake.Before(randflake::kRandflake.Unpack(raw).timestamp,
                                         secrets_decode_horizon())) ||
           check_type(fcinfo->flinfo->fn_oid, ring, use, raw);
}

#endif
