// Who may make a value of the type randflake from something else: from an identifier or a time, by
// input, a cast or randflake_lower().
//
// PostgreSQL shows node trees to every role, and a constant in them is the stored number: second,
// node id and sequence. A role that may have any identifier made into a constant can therefore read
// all of them. Names and schemas do not stop it: a protocol message names a type by its oid, and
// the row type of a table, %TYPE or COALESCE(id, '...') name none. So the makers themselves look
// for USAGE on the type, which PostgreSQL looks for only when something is declared.
//
// The role counts that PostgreSQL checks privileges of at that moment: in a SECURITY DEFINER
// function, its owner. A session remembers the last role that it found to have the privilege, until
// something changes that the privilege can follow from.

#include "pg/base/compat.h"
#include "pg/type/type.h"

Oid type_maker = InvalidOid;

static uint64 changes;

// PostgreSQL 19 has a type for the number of a cache.
template <typename Cache>
static void forget_maker(Datum, Cache, uint32) {
    type_maker = InvalidOid;
    changes++;
}

pg_noinline void check_type_usage(Oid maker) {
    static bool watching;
    if (!watching) {
        // The type's grants; roles; memberships, that of a database's owner in pg_database_owner
        // too.
        static constexpr decltype(TYPEOID) kCaches[] = {TYPEOID, AUTHOID, AUTHMEMROLEMEM,
                                                        DATABASEOID};
        for (const auto cache : kCaches)
            CacheRegisterSyscacheCallback(cache, forget_maker, Datum{0});
        watching = true;
    }
    const uint64 changes_before = changes;
    const Oid type = get_func_rettype(maker);
    const Oid role = GetUserId();
    if (!may_use_type(type)) {
        const char* name = format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY);
        const char* role_name = GetUserNameFromId(role, false);
        ereport(
            ERROR,
            (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for type %s", name),
             errdetail("Role \"%s\" needs USAGE on the type to make a value of it from an "
                       "identifier or a time.",
                       role_name),
             errhint("Let the owner of the type run GRANT USAGE ON TYPE %s TO %s.", name,
                     quote_identifier(role_name))));
    }
    // What changed during the look may not have been seen by it.
    if (changes == changes_before)
        type_maker = role;
}
