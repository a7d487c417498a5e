// Which secret the values of type randflake in a database belong to.

#ifndef RANDFLAKE_PG_TYPE_KEY_H
#define RANDFLAKE_PG_TYPE_KEY_H

#include "pg/pg.h"

#include "core/siphash.h"

// Whether this backend has found the database bound to the server's secret; see type_key.cpp.
extern bool type_key_checked;
void check_type_key(Oid function);

// The key of the type's hash, derived from the server's secret; after require_type_key.
extern randflake::SipKey type_hash_key;

// Raises an ERROR unless the server has a secret and the database is bound to it. Each function
// that encrypts, decrypts or hashes for the type begins with this.
static inline void require_type_key(FunctionCallInfo fcinfo) {
    if (unlikely(!type_key_checked))
        check_type_key(fcinfo->flinfo->fn_oid);
}

#endif
