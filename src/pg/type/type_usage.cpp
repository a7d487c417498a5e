// Checks that a role may make a value of the type randflake from an identifier or a time: by input,
// a cast or randflake_lower().
//
// PostgreSQL shows node trees to every role, and a constant in them is the stored number: second,
// node id and sequence. A role that can turn any identifier into a constant can therefore read all
// three. The role needs no name or schema of the type. A protocol message names a type by its oid;
// the row type of a table, %TYPE or COALESCE(id, '...') name no type. PostgreSQL checks USAGE on
// the type only in declarations, so the functions that make values check it themselves.
//
// The checked role is the one whose privileges PostgreSQL checks at that moment: in a SECURITY
// DEFINER function, its owner. A session remembers the last role with the privilege until something
// changes on which the privilege depends.

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
        // These caches show the type's grants, roles, memberships and the database's owner.
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
    // The check may have missed a change that came in between.
    if (changes == changes_before)
        type_maker = role;
}
