// Defines the coordinator's C functions, which work without preloading the library.

#include "pg/base/sql_function.h"
#include "pg/lease/lease_look.h"
#include "pg/server/require.h"
#include "pg/settings/settings.h"
#include "pg/window/file_identity.h"

// True if this transaction asked for the identity. Each transaction that changes leases does.
static bool leased;

// Refuses PREPARE TRANSACTION, because the prepared transaction would keep the pool locked.
static void at_end_of_transaction(XactEvent event, void*) {
    if (event == XACT_EVENT_PRE_PREPARE && leased)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot PREPARE a transaction that has leased node ids"),
                        errhint("Lease them in a transaction of their own.")));
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT) leased = false;
}

SQL_FUNCTION(randflake_coordinator_identity) {
    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("cannot lease node ids during recovery"),
                        errhint("Lease them from the primary server.")));
    static bool registered;
    if (!registered) RegisterXactCallback(at_end_of_transaction, nullptr);
    registered = true;
    leased = true;
    PG_RETURN_TEXT_P(cstring_to_text(coordinator_identity()));
}

char* coordinator_identity() {
    Assert(!RecoveryInProgress() && OidIsValid(MyDatabaseId));
    // The server never replaces pg_control or touches PG_VERSION. A restore into the same directory
    // replaces pg_control, unless it overwrites files in place. File systems reuse inode numbers,
    // so the identity contains creation times or, if there are none, PG_VERSION's last change.
    randflake::FileIdentity identity{};
    randflake::FileIdentity control{};
    FileFailure failure = file_identity("PG_VERSION", &identity);
    if (failure.error == 0) failure = file_identity("global/pg_control", &control);
    if (failure.error != 0) raise_file_failure(failure, nullptr, "Let the server's user read it.");
    const bool has_birth = control.device == 0;
    // A standby may have been promoted, and may have granted leases, since this server's last stop.
    return psprintf("%016llx/%u/%llx.%llx.%llx.%llx.%llx@%llx.%x/%u",
                    static_cast<unsigned long long>(GetSystemIdentifier()),
                    GetWALInsertionTimeLine(), static_cast<unsigned long long>(identity.inode),
                    static_cast<unsigned long long>(identity.device),
                    static_cast<unsigned long long>(identity.birth_nanoseconds),
                    static_cast<unsigned long long>(control.inode),
                    static_cast<unsigned long long>(has_birth ? control.birth_nanoseconds : 0),
                    static_cast<unsigned long long>(PgStartTime), PostmasterPid, MyDatabaseId);
}

// Returns (first_node_id integer, node_count integer); nulls without static node ids.
SQL_FUNCTION(randflake_coordinator_static_nodes) {
    const bool none = !is_preloaded() || setting_node_id < 0;
    Datum values[] = {Int32GetDatum(setting_node_id), Int32GetDatum(static_node_count())};
    bool nulls[] = {none, none};
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(
        result_row(fcinfo, lengthof(values), CurrentMemoryContext), values, nulls)));
}
