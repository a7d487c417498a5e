// Raises an error unless the current role may make values of the type randflake. A role makes them
// by input, a cast or randflake_lower().
//
// Every role can read PostgreSQL's node trees. A constant in a node tree reveals the stored number.
// So a role can decode an identifier if it can store the identifier as a constant of the type.
// PostgreSQL checks USAGE only where a statement names the type. An expression like COALESCE(id,
// '...') makes a value without naming the type, so the functions that make values check USAGE.
//
// The checked role is the current role. In a SECURITY DEFINER function, it is the function's owner.
// A session remembers the last role that had USAGE, and forgets this role when privileges may have
// changed.

#include "pg/base/compat.h"
#include "pg/type/type.h"

Oid type_maker = InvalidOid;

static uint64 changes;

// This is a template, because PostgreSQL 19 changes the type of cache numbers.
template <typename Cache> static void forget_maker(Datum, Cache, uint32) {
    type_maker = InvalidOid;
    changes++;
}

pg_noinline void check_type_usage(Oid maker) {
    Assert(IsTransactionState() && OidIsValid(maker));
    static bool watching;
    if (!watching) {
        // USAGE depends on grants, roles, memberships, and the database's owner.
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
    // Remembers the role only if nothing changed during the check.
    if (changes == changes_before) type_maker = role;
}
