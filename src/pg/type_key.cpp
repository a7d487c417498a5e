// Which secrets the values of type randflake belong to.
//
// A value is stored as the raw number, and goes in and out encrypted. So the secret is part of the
// data's meaning: text read under another one becomes another raw number, in another place of the
// order. The table randflake_key, which pg_dump takes along, holds the fingerprints of the secrets
// that the database was bound to, and nothing of the type works unless these are a beginning of the
// server's secrets.
//
// A dump that is restored under another secret brings a further, different row, which stays beside
// this server's. Rows of other tables may have been restored before it. They become unreadable when
// it arrives, and their indexes cannot be built.
//
// The row must be kept, so the INSERT that brings it succeeds. A second table, randflake_key_check,
// makes the restore fail in whatever order it loads tables. The dump carries the fingerprint there
// too, and a constraint refuses it. No option of a restore disables that constraint. If the server
// gets the missing secret afterwards, what was restored under the others stays wrong. Then the
// second table still lacks the fingerprint, and the database stays unusable.
//
// The extension may be created before the server has a secret. A database without any fingerprint
// is bound by the first use of a role that may execute randflake_bind_secret(). A restore may load
// rows of other tables first, which binds the database to this server's secret; the dump's
// fingerprint then is the further row, as above. The dump's fingerprint may also be in
// randflake_key_check already. So nothing is bound while that table has another fingerprint than
// the server's, and both tables are locked meanwhile against transactions that bring one.
//
// When another secret of the server's begins, every session adds its fingerprint at the next use of
// the type, whoever it is: the database is bound already, and this says no more than that. Nobody
// waits for anybody. A transaction that does not see the fingerprint yet adds it, so there may be
// several rows with the same one, and a transaction that stores a value of the secret has added the
// fingerprint or has seen it committed. So a dump never has the value without the fingerprint.
// Clocks of other servers, whose values may come in, differ by less than randflake.max_clock_skew,
// so sessions begin that much earlier. What cannot write goes on without, because it stores
// nothing. A parallel operation cannot write either, but its leader may store what it makes: it is
// refused.
//
// The table is read like a catalog, so that output works where there is no ordinary snapshot. The
// table is declared a user catalog table, so the historic snapshot of logical decoding sees it.

#include "pg/type_key.h"

#include "pg/clock.h"
#include "pg/compat.h"
#include "pg/require.h"
#include "pg/secret.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/sql_function.h"
#include "pg/text.h"

static constexpr char kKeyTable[] = "randflake_key";
static constexpr char kCheckTable[] = "randflake_key_check";
static constexpr char kBindFunction[] = "randflake_bind_secret";
static constexpr AttrNumber kFingerprintColumn = 1;

int type_key_secrets;

// Each backend derives it once more: the server's crypto library does not work in the postmaster.
randflake::SipKey type_hash_key;

static Oid key_table = InvalidOid;
static uint64 key_table_changes;

// The same when the database is bound to fewer than all: the server's number of secrets, 0 when not
// checked, and the second until which that is enough; after that, for what cannot write.
static int partial_secrets;
static int64 partial_until;

static void on_relation_change(Datum, Oid relation) {
    if (relation == InvalidOid || relation == key_table) {
        type_key_secrets = partial_secrets = 0;
        key_table_changes++;
    }
}

namespace {
// Of the server's secrets, oldest first.
struct Fingerprints {
    int count;
    const char* texts[randflake::kMaxGenerations];
    const char* all;  // separated by commas
};

// The rows of a table, compared with the server's fingerprints.
struct Rows {
    uint32 found;       // bit i: one is the i-th
    const char* other;  // different ones, separated by commas, for messages; null without any
};
}  // namespace

static const char* list_of(const char* list, const char* further) {
    return list == nullptr ? further : psprintf("%s, %s", list, further);
}

static Fingerprints server_fingerprints() {
    const randflake::SecretRecords records = secret_records();
    Fingerprints fingerprints{};
    fingerprints.count = static_cast<int>(records.count);
    for (int i = 0; i < fingerprints.count; i++) {
        fingerprints.texts[i] = secret_fingerprint_text(records.records[i]);
        fingerprints.all = list_of(fingerprints.all, fingerprints.texts[i]);
    }
    return fingerprints;
}

static bool no_rows(const Rows& rows) {
    return rows.found == 0 && rows.other == nullptr;
}

// How many of the server's secrets the rows are a beginning of; 0 when they are none.
static int beginning(const Rows& rows) {
    const int count = pg_popcount32(rows.found);
    return rows.other == nullptr && rows.found == (uint32{1} << count) - 1 ? count : 0;
}

// A database's owner can insert any text, and as many as there is space for: of the different ones
// it keeps a few, truncated, and each once.
static Rows read_rows(Oid table, const Fingerprints& fingerprints) {
    constexpr size_t kListedBytes = 256;
    Rows rows{};
    Relation relation = table_open(table, AccessShareLock);
    SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        bool null;
        const Datum value =
            heap_getattr(tuple, kFingerprintColumn, RelationGetDescr(relation), &null);
        char* found = null ? pstrdup("") : TextDatumGetCString(value);
        int i = 0;
        while (i < fingerprints.count && strcmp(found, fingerprints.texts[i]) != 0)
            i++;
        if (i < fingerprints.count) {
            rows.found |= uint32{1} << i;
        } else if (rows.other == nullptr || strlen(rows.other) < kListedBytes) {
            const char* shown = quoted(found, strlen(found));
            if (rows.other == nullptr || strstr(rows.other, shown) == nullptr)
                rows.other = list_of(rows.other, shown);
        }
        pfree(found);
    }
    systable_endscan(scan);
    table_close(relation, AccessShareLock);
    return rows;
}

// Not through SQL, for which the role may lack the privilege.
static void add_row(Oid table, const char* fingerprint) {
    Relation relation = table_open(table, RowExclusiveLock);
    const TupleDesc row = RelationGetDescr(relation);
    auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * static_cast<size_t>(row->natts)));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * static_cast<size_t>(row->natts)));
    memset(nulls, true, sizeof(bool) * static_cast<size_t>(row->natts));
    values[kFingerprintColumn - 1] = CStringGetTextDatum(fingerprint);
    nulls[kFingerprintColumn - 1] = false;
    simple_heap_insert(relation, heap_form_tuple(row, values, nulls));
    CacheInvalidateRelcacheByRelid(table);
    table_close(relation, RowExclusiveLock);
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
static void bind_at_first_use(Oid function, const Fingerprints& fingerprints) {
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
    if (!no_rows(read_rows(key_table, fingerprints)))
        return;
    const Rows former = read_rows(check_table, fingerprints);
    if (former.other != nullptr)
        report_unbound(psprintf("The table \"%s\" has key fingerprint %s, this server has %s.",
                                kCheckTable, former.other, fingerprints.all),
                       "Restore dumps with that fingerprint on a server that has their secret. If "
                       "none is to come, let a superuser run randflake_bind_secret() once.");
    OidFunctionCall0(bind_function);
    CommandCounterIncrement();
}

// The rows are no beginning of the server's secrets.
[[noreturn]] static void report_other_secret(const Rows& rows, const Fingerprints& fingerprints) {
    // Without one in the middle, the server's own are the wrong ones too.
    const char* found = rows.other;
    const char* beside = nullptr;
    for (int i = 0; i < fingerprints.count; i++)
        if ((rows.found >> i & 1) != 0)
            beside = list_of(beside, fingerprints.texts[i]);
    if (found == nullptr) {
        found = beside;
        beside = nullptr;
    }
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("values of type randflake in this database belong to another secret"),
             errdetail("The database has key fingerprint %s%s%s, this server has %s.", found,
                       beside != nullptr ? " beside " : "", beside != nullptr ? beside : "",
                       fingerprints.all),
             beside != nullptr
                 ? errhint("A dump was restored that was made under the other secret, or this "
                           "server lacks a secret that follows its own. Add that one to "
                           "\"randflake.secret_file\", or restore the dump into a new database, on "
                           "a server that has its secret.")
                 : errhint("Set \"randflake.secret_file\" (or \"randflake.secret\") to the "
                           "secret with that fingerprint and restart the server.")));
}

// A fingerprint that the second table refused came from a dump when the server lacked its secret.
static void require_checked(Oid function, const Fingerprints& fingerprints, const Rows& rows) {
    const uint32 later = rows.found & ~uint32{1};
    if (later == 0)
        return;
    const Rows checked = read_rows(find_table(kCheckTable, function), fingerprints);
    const uint32 refused = later & ~checked.found;
    if (refused == 0)
        return;
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("values of type randflake in this database were restored under other secrets"),
             errdetail("When the dump was restored, this server lacked the secret with key "
                       "fingerprint %s, and did not understand the values.",
                       fingerprints.texts[pg_rightmost_one_pos32(refused)]),
             errhint("Restore the dump again, into a new database.")));
}

// Whether what this operation makes is not stored.
static bool stores_nothing() {
    return XactReadOnly || RecoveryInProgress() || HistoricSnapshotActive();
}

// Adds the fingerprints of the secrets [bound, needed).
static void add_fingerprints(Oid function, const Fingerprints& fingerprints, int bound,
                             int needed) {
    const Oid check_table = find_table(kCheckTable, function);
    if (IsInParallelMode())
        report_unbound(psprintf("A parallel operation cannot add key fingerprint %s.",
                                fingerprints.texts[bound]),
                       "Let any other command use the type once.");
    for (int i = bound; i < needed; i++) {
        add_row(key_table, fingerprints.texts[i]);
        add_row(check_table, fingerprints.texts[i]);
    }
    CommandCounterIncrement();
}

// How many of the server's secrets are in use in this second.
static int secrets_in_use(int64 at) {
    return secret_ring().GenerationAt(static_cast<uint64>(Max(at, 0))) + 1;
}

// By the clock of any server whose values may come in.
static int64 latest_clock() {
    return wall_clock_seconds() + setting_max_clock_skew / randflake::kSecondMs + 1;
}

pg_noinline void check_type_key(Oid function) {
    static bool watching;

    require_secret();
    const randflake::SecretRing ring = secret_ring();
    if (partial_secrets == ring.count() &&
        (wall_clock_seconds() < partial_until || stores_nothing()))
        return;
    const Fingerprints fingerprints = server_fingerprints();
    type_hash_key = secret_hash_key();
    // pg_upgrade restores definitions first; the table's rows follow with the data files.
    if (IsBinaryUpgrade)
        return;
    if (!watching) {
        CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
        watching = true;
    }
    key_table = find_table(kKeyTable, function);
    if (no_rows(read_rows(key_table, fingerprints)))
        bind_at_first_use(function, fingerprints);
    const int64 clock = latest_clock();
    const int needed = secrets_in_use(clock);
    int bound = beginning(read_rows(key_table, fingerprints));
    if (bound > 0 && bound < needed && !stores_nothing())
        add_fingerprints(function, fingerprints, bound, needed);
    const uint64 changes = key_table_changes;
    const Rows rows = read_rows(key_table, fingerprints);
    if (no_rows(rows))
        elog(ERROR, "table \"%s\" has no fingerprint after one was written", kKeyTable);
    bound = beginning(rows);
    if (bound == 0)
        report_other_secret(rows, fingerprints);
    require_checked(function, fingerprints, rows);
    // The snapshot of the scan may not have seen a change that came in between.
    if (changes != key_table_changes)
        return;
    if (bound == fingerprints.count) {
        type_key_secrets = bound;
    } else {
        partial_secrets = fingerprints.count;
        partial_until = int64{ring[bound].from} - (clock - wall_clock_seconds());
    }
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

    if (shared != nullptr && secret_ring().count() > 0) {
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

// What binds a database to the secrets that are in use, oldest first. One that has not begun may
// still be changed.
SQL_FUNCTION(randflake_key_fingerprints) {
    require_secret();
    const Fingerprints fingerprints = server_fingerprints();
    const int count = secrets_in_use(latest_clock());
    Datum texts[randflake::kMaxGenerations];
    for (int i = 0; i < count; i++)
        texts[i] = CStringGetTextDatum(fingerprints.texts[i]);
    PG_RETURN_ARRAYTYPE_P(construct_array(texts, count, TEXTOID, -1, false, TYPALIGN_INT));
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
    const Fingerprints inserted{1, {null ? "" : TextDatumGetCString(value)}, nullptr};
    if (read_rows(table, inserted).found != 0)
        return Datum{0};  // skips the row
    CacheInvalidateRelcacheByRelid(table);
    return PointerGetDatum(trigger->tg_trigtuple);
}

// The constraint of randflake_key_check. True, or an ERROR if the database or the data with this
// fingerprint belongs to another secret than the server's. A server without a secret cannot tell
// which fingerprints follow each other: then one of the database's must be this one.
SQL_FUNCTION(randflake_key_matches) {
    const char* fingerprint = text_to_cstring(PG_GETARG_TEXT_PP(0));
    const Oid table = find_table(kKeyTable, fcinfo->flinfo->fn_oid);
    const Fingerprints inserted{1, {fingerprint}, fingerprint};
    const bool has_secret = shared != nullptr && secret_ring().count() > 0;
    const Fingerprints own = has_secret ? server_fingerprints() : inserted;
    bool known = false;
    for (int i = 0; i < own.count; i++)
        known |= strcmp(fingerprint, own.texts[i]) == 0;
    Rows rows = read_rows(table, known ? own : inserted);
    if (!has_secret && rows.found != 0)
        rows.other = nullptr;
    if (rows.other != nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("this data was dumped under another secret: values of type randflake "
                        "cannot be used in this database"),
                 errdetail("The data has key fingerprint %s, the database has %s.",
                           quoted(fingerprint, strlen(fingerprint)), rows.other),
                 errhint("Restore into a new database, on a server that has the data's secret.")));
    PG_RETURN_BOOL(true);
}

// B-tree sort support: that of bigint, after the check, so that no index is built over values that
// were restored under another secret.
SQL_FUNCTION(randflake_sortsupport) {
    require_type_key(fcinfo);
    return btint8sortsupport(fcinfo);
}
