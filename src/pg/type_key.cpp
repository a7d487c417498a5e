// Which secret the values of type randflake belong to.
//
// A value is stored as the raw number, and goes in and out encrypted. So the secret is part of the
// data's meaning: text read under another one becomes another raw number, in another place of the
// order. The table randflake_key, which pg_dump takes along, holds the fingerprint of the secret
// that the database was bound to, and nothing of the type works unless all of its rows are this
// server's.
//
// All of them: a dump restored under another secret brings a second, different row. It stays,
// beside the one of this server. The rows of other tables may have been restored before it; when it
// arrives they become unreadable, and their indexes cannot be built.
//
// Because it stays, the statement that brings it succeeds. That a restore fails, whatever the order
// in which it loads tables, is the task of a second table, randflake_key_check: the dump carries
// the fingerprint there too, and a constraint, which no option of a restore disables, refuses it.
//
// The table is read like a catalog, so that output works where there is no ordinary snapshot: the
// historic snapshot of logical decoding sees it because it is declared a user catalog table.

#include "pg/type_key.h"

#include "pg/compat.h"
#include "pg/require.h"
#include "pg/secret.h"
#include "pg/shmem.h"
#include "pg/sql_function.h"

static constexpr char kKeyTable[] = "randflake_key";
static constexpr char kCheckTable[] = "randflake_key_check";
static constexpr AttrNumber kFingerprintColumn = 1;

// True once all rows were found to be this server's, until one changes.
bool type_key_checked;

static Oid key_table = InvalidOid;
static uint64 key_table_changes;

static void on_relation_change(Datum, Oid relation) {
    if (relation == InvalidOid || relation == key_table) {
        type_key_checked = false;
        key_table_changes++;
    }
}

// What the rows of the table say, compared with one fingerprint.
namespace {
struct Rows {
    bool same;          // one is the same
    const char* other;  // the different ones, separated by commas; null when there is none
};
}  // namespace

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
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("table \"%s\" of the extension is missing", name)));
    return table;
}

static const char* server_fingerprint() {
    require_secret();
    return secret_fingerprint_text(shared->key);
}

pg_noinline void check_type_key(Oid function) {
    static bool watching;

    const char* fingerprint = server_fingerprint();
    // pg_upgrade restores definitions first; the table's rows follow with the data files.
    if (IsBinaryUpgrade)
        return;
    if (!watching) {
        CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
        watching = true;
    }
    key_table = find_table(kKeyTable, function);
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
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the type randflake is not bound to a secret in this database"),
                 errdetail("The server had no secret when the extension was created or updated."),
                 errhint("Let a superuser run randflake_bind_secret() once.")));
    // A change may have come in between, unseen by the snapshot of the scan.
    type_key_checked = changes == key_table_changes;
}

// Fingerprint of this server's secret.
SQL_FUNCTION(randflake_key_fingerprint) {
    PG_RETURN_TEXT_P(cstring_to_text(server_fingerprint()));
}

// Before a row of one of the two tables is inserted, or one of the key table is updated or deleted.
// An inserted row that is there already is skipped: a dump brings the row that CREATE EXTENSION has
// made. One that differs stays in the key table, see above.
SQL_FUNCTION(randflake_key_guard) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"%s\" was not called by trigger manager",
                               "randflake_key_guard")));
    const auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    const Oid table = RelationGetRelid(trigger->tg_relation);
    const Oid function = fcinfo->flinfo->fn_oid;
    // Whoever may execute this may make it a trigger of anything.
    if ((table != find_table(kKeyTable, function) && table != find_table(kCheckTable, function)) ||
        !TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("this trigger function is for rows of the tables \"%s\" and \"%s\" "
                               "alone, before they change",
                               kKeyTable, kCheckTable)));
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

// True; ERROR if the database is bound to another secret than the one with this fingerprint, or to
// several. The constraint of randflake_key_check.
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
