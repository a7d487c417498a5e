// Which secrets the values of type randflake in a database belong to.

#ifndef RANDFLAKE_PG_TYPE_KEY_H
#define RANDFLAKE_PG_TYPE_KEY_H

#include "pg/pg.h"

#include "core/siphash.h"
#include "pg/shmem.h"

// To how many secrets this backend has found the database bound, if to all of the server's; else 0.
// See type_key.cpp.
extern int type_key_secrets;
void check_type_key(Oid function);

// The key of the type's hash, derived from the server's first secret; after require_type_key.
extern randflake::SipKey type_hash_key;

// Raises an ERROR unless the server has a secret and the database is bound to it, and to those that
// followed. Each function that encrypts, decrypts or hashes for the type begins with this.
static inline void require_type_key(FunctionCallInfo fcinfo) {
    if (unlikely(type_key_secrets == 0 || type_key_secrets != secret_ring().count()))
        check_type_key(fcinfo->flinfo->fn_oid);
}

#endif
