// Which secret the values of type randflake belong to.
//
// A value is stored as the raw number, and goes in and out encrypted. So the secret is part of the
// data's meaning: text read under another one becomes another raw number, in another place of the
// order. The table randflake_key, which pg_dump takes along, holds the fingerprint of the secret
// that the database was bound to, and nothing of the type works unless all of its rows are this
// server's.
//
// A dump that is restored under another secret brings a second, different row, which stays beside
// this server's. Rows of other tables may have been restored before it. They become unreadable when
// it arrives, and their indexes cannot be built.
//
// The row must be kept, so the INSERT that brings it succeeds. A second table, randflake_key_check,
// makes the restore fail in whatever order it loads tables. The dump carries the fingerprint there
// too, and a constraint refuses it. No option of a restore disables that constraint.
//
// The extension may be created before the server has a secret. A database without any fingerprint
// is bound by the first use of a role that may execute randflake_bind_secret(). A restore may load
// rows of other tables first, which binds the database to this server's secret; the dump's
// fingerprint then is the second row, as above. The dump's fingerprint may also be in
// randflake_key_check already. So nothing is bound while that table has another fingerprint than
// the server's, and both tables are locked meanwhile against transactions that bring one.
//
// The table is read like a catalog, so that output works where there is no ordinary snapshot. The
// table is declared a user catalog table, so the historic snapshot of logical decoding sees it.

#include "pg/type_key.h"

#include "pg/compat.h"
#include "pg/require.h"
#include "pg/secret.h"
#include "pg/shmem.h"
#include "pg/sql_function.h"

static constexpr char kKeyTable[] = "randflake_key";
static constexpr char kCheckTable[] = "randflake_key_check";
static constexpr char kBindFunction[] = "randflake_bind_secret";
static constexpr AttrNumber kFingerprintColumn = 1;

// True once all rows were found to be this server's, until one changes.
bool type_key_checked;

// Each backend derives it once more: the server's crypto library does not work in the postmaster.
randflake::SipKey type_hash_key;

static Oid key_table = InvalidOid;
static uint64 key_table_changes;

static void on_relation_change(Datum, Oid relation) {
    if (relation == InvalidOid || relation == key_table) {
        type_key_checked = false;
        key_table_changes++;
    }
}

// The rows of a table, compared with one fingerprint.
namespace {
struct Rows {
    bool same;          // one is the same
    const char* other;  // the different ones, separated by commas; null when there is none
};
}  // namespace

static bool no_rows(const Rows& rows) {
    return !rows.same && rows.other == nullptr;
}

static Rows read_rows(Oid table, const char* fingerprint) {
    Rows rows{};
    Relation relation = table_open(table, AccessShareLock);
    SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        bool null;
        const Datum value =
            heap_getattr(tuple, kFingerprintColumn, RelationGetDescr(relation), &null);
        const char* found = null ? "" : TextDatumGetCString(value);
        if (strcmp(found, fingerprint) == 0)
            rows.same = true;
        else
            rows.other = rows.other == nullptr ? found : psprintf("%s, %s", rows.other, found);
    }
    systable_endscan(scan);
    table_close(relation, AccessShareLock);
    return rows;
}

// The extension's objects share a schema, which is that of the function called.
static Oid find_table(const char* name, Oid function) {
    const Oid table = get_relname_relid(name, get_func_namespace(function));
    if (!OidIsValid(table))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_TABLE),
                 errmsg("table \"%s\" of extension \"randflake_type\" does not exist", name)));
    return table;
}

// A function of the extension without arguments.
static Oid find_function(const char* name, Oid schema) {
    oidvector* no_arguments = buildoidvector(nullptr, 0);
    const Oid function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                                         PointerGetDatum(no_arguments), ObjectIdGetDatum(schema));
    if (!OidIsValid(function))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_FUNCTION),
                 errmsg("function \"%s\" of extension \"randflake_type\" does not exist", name)));
    return function;
}

static const char* server_fingerprint() {
    require_secret();
    return secret_fingerprint_text(shared->key);
}

// Why this command cannot bind the type, as a sentence; null when it can.
static const char* binding_obstacle(Oid bind_function) {
    if (RecoveryInProgress())
        return "A standby cannot bind it.";
    if (HistoricSnapshotActive())
        return "Logical decoding cannot bind it.";
    if (XactReadOnly)
        return "A read-only transaction cannot bind it.";
    if (IsInParallelMode())
        return "A parallel operation cannot bind it.";
    if (!may_execute(bind_function))
        return psprintf("Role \"%s\" may not bind it.", GetUserNameFromId(GetUserId(), false));
    return nullptr;
}

[[noreturn]] static void report_unbound(const char* detail, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the type randflake is not bound to a secret in this database"),
                    errdetail_internal("%s", detail), errhint("%s", hint)));
}

// Binds a database that has no fingerprint yet, or raises an ERROR. Another transaction may have
// brought a fingerprint meanwhile, so the caller looks again.
static void bind_at_first_use(Oid function, const char* fingerprint) {
    const Oid check_table = find_table(kCheckTable, function);
    const Oid bind_function = find_function(kBindFunction, get_func_namespace(function));
    const char* obstacle = binding_obstacle(bind_function);
    if (obstacle != nullptr)
        report_unbound(obstacle,
                       RecoveryInProgress()
                           ? "Let a superuser run randflake_bind_secret() on the primary server."
                           : "Let a superuser run randflake_bind_secret() once.");
    LockRelationOid(key_table, ShareRowExclusiveLock);
    LockRelationOid(check_table, ShareRowExclusiveLock);
    if (!no_rows(read_rows(key_table, fingerprint)))
        return;
    const Rows former = read_rows(check_table, fingerprint);
    if (former.other != nullptr)
        report_unbound(psprintf("The table \"%s\" has key fingerprint %s, this server has %s.",
                                kCheckTable, former.other, fingerprint),
                       "Restore dumps with that fingerprint on a server that has their secret. If "
                       "none is to come, let a superuser run randflake_bind_secret() once.");
    OidFunctionCall0(bind_function);
    CommandCounterIncrement();
}

pg_noinline void check_type_key(Oid function) {
    static bool watching;

    const char* fingerprint = server_fingerprint();
    type_hash_key = secret_hash_key(shared->key);
    // pg_upgrade restores definitions first; the table's rows follow with the data files.
    if (IsBinaryUpgrade)
        return;
    if (!watching) {
        CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
        watching = true;
    }
    key_table = find_table(kKeyTable, function);
    if (no_rows(read_rows(key_table, fingerprint)))
        bind_at_first_use(function, fingerprint);
    const uint64 changes = key_table_changes;
    const Rows rows = read_rows(key_table, fingerprint);
    if (rows.other != nullptr)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("values of type randflake in this database belong to another secret"),
             errdetail("The database has key fingerprint %s%s%s, this server has %s.", rows.other,
                       rows.same ? " beside " : "", rows.same ? fingerprint : "", fingerprint),
             rows.same
                 ? errhint("A dump was restored that was made under the other secret. Restore "
                           "it into a new database, on a server that has that secret.")
                 : errhint("Set \"randflake.secret_file\" (or \"randflake.secret\") to the "
                           "secret with that fingerprint and restart the server.")));
    if (!rows.same)
        elog(ERROR, "table \"%s\" has no fingerprint after one was written", kKeyTable);
    // The snapshot of the scan may not have seen a change that came in between.
    type_key_checked = changes == key_table_changes;
}

static bool created_unbound;

// CREATE EXTENSION keeps notices of its script from the client, so this one comes at commit.
static void notice_created_unbound(XactEvent event, void*) {
    if (created_unbound && event == XACT_EVENT_PRE_COMMIT &&
        OidIsValid(get_extension_oid("randflake_type", true)))
        ereport(
            NOTICE,
            (errmsg("the type randflake is not bound to a secret yet"),
             errdetail("This server has no secret."),
             errhint("Set \"shared_preload_libraries\" and \"randflake.secret_file\", and "
                     "restart the server. The first use of the type by a superuser binds it.")));
    created_unbound = false;
}

// Called once, by the extension's script: binds the type if the server has a secret.
SQL_FUNCTION(randflake_type_created) {
    static bool watching;

    if (shared != nullptr && shared->has_key) {
        OidFunctionCall0(find_function(kBindFunction, get_func_namespace(fcinfo->flinfo->fn_oid)));
        PG_RETURN_VOID();
    }
    if (!watching) {
        RegisterXactCallback(notice_created_unbound, nullptr);
        watching = true;
    }
    created_unbound = true;
    PG_RETURN_VOID();
}

// Fingerprint of this server's secret.
SQL_FUNCTION(randflake_key_fingerprint) {
    PG_RETURN_TEXT_P(cstring_to_text(server_fingerprint()));
}

// Fires before a row of one of the two tables is inserted, and before a row of the key table is
// updated or deleted. An inserted row that exists already is skipped: a dump brings the row that
// CREATE EXTENSION has made. A different one stays in the key table, see above.
SQL_FUNCTION(randflake_key_guard) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"%s\" was not called by trigger manager",
                               "randflake_key_guard")));
    const auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    const Oid table = RelationGetRelid(trigger->tg_relation);
    const Oid function = fcinfo->flinfo->fn_oid;
    // A role that may execute this can make it a trigger of any table.
    if ((table != find_table(kKeyTable, function) && table != find_table(kCheckTable, function)) ||
        !TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"%s\" must be fired BEFORE ROW on table \"%s\" or \"%s\"",
                               "randflake_key_guard", kKeyTable, kCheckTable)));
    if (!TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) {
        CacheInvalidateRelcacheByRelid(table);
        return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple
                                                                          : trigger->tg_trigtuple);
    }

    bool null;
    const Datum value = heap_getattr(trigger->tg_trigtuple, kFingerprintColumn,
                                     RelationGetDescr(trigger->tg_relation), &null);
    const char* fingerprint = null ? "" : TextDatumGetCString(value);
    if (read_rows(table, fingerprint).same)
        return Datum{0};  // skips the row
    CacheInvalidateRelcacheByRelid(table);
    return PointerGetDatum(trigger->tg_trigtuple);
}

// The constraint of randflake_key_check. True, or an ERROR if the database is bound to another
// secret than the one with this fingerprint, or to several.
SQL_FUNCTION(randflake_key_matches) {
    const char* fingerprint = text_to_cstring(PG_GETARG_TEXT_PP(0));
    const Rows rows = read_rows(find_table(kKeyTable, fcinfo->flinfo->fn_oid), fingerprint);
    if (rows.other != nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("this data was dumped under another secret: values of type randflake "
                        "cannot be used in this database"),
                 errdetail("The data has key fingerprint %s, the database has %s.", fingerprint,
                           rows.other),
                 errhint("Restore into a new database, on a server that has the data's secret.")));
    PG_RETURN_BOOL(true);
}

// B-tree sort support: that of bigint, after the check, so that no index is built over values that
// were restored under another secret.
SQL_FUNCTION(randflake_sortsupport) {
    require_type_key(fcinfo);
    return btint8sortsupport(fcinfo);
}
