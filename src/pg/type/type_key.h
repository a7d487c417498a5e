// Binds a database to the secrets that encrypt its values of type randflake.

#pragma once

#include "pg/base/pg.h"

#include "core/type/type_binding.h"
#include "pg/memory/require.h"
#include "pg/memory/shmem.h"
#include "pg/secret/secret.h"
#include "pg/server/decode_horizon.h"

// With as many secrets as type_certain_secrets, this session may make, read in and show raw numbers
// below this one without another look. 0: it must look. See type_key.cpp.
extern uint64 type_certain_end;
extern int type_certain_secrets;

// Returns true if a use of the type may proceed. Adds the entries that it needs, or raises an
// ERROR. Returns false for an identifier of no secret, or of a time that no server can have
// reached: the caller raises that error. `raw` counts only for uses of one value.
bool check_type(Oid function, const randflake::SecretRing& ring, randflake::TypeUse use,
                uint64 raw);

static inline randflake::SecretRing type_secrets() {
    if (unlikely(shared == nullptr || secret_ring().count() == 0))
        require_secret();
    return secret_ring();
}

// Checks a use of one value, which `ring` encrypts or has decrypted.
static inline bool check_type_value(FunctionCallInfo fcinfo, const randflake::SecretRing& ring,
                                    randflake::TypeUse use, uint64 raw) {
    return (likely(raw < type_certain_end) && likely(ring.count() == type_certain_secrets) &&
            randflake::kRandflake.Before(randflake::kRandflake.Unpack(raw).timestamp,
                                         secrets_decode_horizon())) ||
           check_type(fcinfo->flinfo->fn_oid, ring, use, raw);
}
