// Binds a database to the secrets of its values of type randflake. A value is stored as the raw
// number. Under another secret, the same text would become another number. So the table
// randflake_key, which pg_dump includes, has an entry for each secret that values in the database
// may have. PlanBinding (core/type/type_binding.h) decides which entries a use of the type needs.
//
// If a dump was made under another secret, its restore adds that secret's entry to randflake_key,
// beside this server's entry. While the entry is there, no session can read values of the type. The
// dump also has the entry in another table, randflake_key_check, whose constraint refuses it. So
// the restore fails. Values already restored are wrong, even if the operator adds the secret later.
// They stay unusable, because randflake_key_check lacks the entry. If the server has that secret
// during the restore, a trigger copies the entry to randflake_key_check.
//
// CREATE EXTENSION does not bind the database if the server has no secret. In this case, a session
// that makes or inputs a value binds the database. The role needs EXECUTE on
// randflake_bind_secret(), and randflake_key_check must have no entry of another secret. Before the
// session checks randflake_key_check, it locks that table and randflake_key against new entries.
//
// In a bound database, any role may make or input a value under any secret after the first one. The
// role's transaction adds the secret's entry if it does not see this entry. So the tables may have
// an entry twice, but no dump has a value without its entry. Standbys and read-only transactions
// store no value, so they need no entry. Parallel operations cannot add one, and raise an ERROR.
//
// Scans read randflake_key with a catalog snapshot, so the type's output needs no ordinary
// snapshot. Logical decoding can read randflake_key, a user catalog table, but not
// randflake_key_check.

#include "pg/type/type_key.h"

#include "pg/base/clock.h"
#include "pg/base/compat.h"
#include "pg/base/sql_function.h"
#include "pg/base/table_scan.h"
#include "pg/base/timestamp.h"
#include "pg/identifier/text.h"
#include "pg/server/require.h"
#include "pg/settings/settings.h"

using namespace randflake;

static constexpr char kKeyTable[] = "randflake_key";
static constexpr char kCheckTable[] = "randflake_key_check";
static constexpr char kBindFunction[] = "randflake_bind_secret";
static constexpr AttrNumber kEntryColumn = 1;

uint64 type_certain_end;
int type_certain_secrets;

static Oid key_table = InvalidOid;
static uint64 key_table_changes;

namespace {
// Keeps what this backend last read in the tables, until a table changes.
struct Known {
    uint32 secrets;  // how many secrets the server had at that time; 0: nothing is known
    TypeBinding binding;
};
}  // namespace

// `known_in_history` is for historic snapshots, `known_now` for all other snapshots.
static Known known_now;
static Known known_in_history;

static void forget() {
    known_now.secrets = known_in_history.secrets = 0;
    type_certain_end = 0;
}

static void on_relation_change(Datum, Oid relation) {
    if (relation == InvalidOid || relation == key_table) {
        forget();
        key_table_changes++;
    }
}

static const SecretRecords& records_of(const SecretRing& ring) {
    static SecretRecords records;
    if (static_cast<int>(records.count) < ring.count()) records = secret_records();
    records.count = static_cast<uint32>(ring.count());
    return records;
}

static const char* list_of(const char* list, const char* further) {
    return list == nullptr ? further : psprintf("%s, %s", list, further);
}

// Returns the fingerprints of the secrets in the bit mask `which`; null if the mask is empty.
static const char* fingerprints_of(const SecretRecords& records, uint32 which) {
    const char* list = nullptr;
    for (uint32 i = 0; i < records.count; i++)
        if ((which >> i & 1) != 0)
            list = list_of(list, secret_fingerprint_text(records.records[i]));
    return list;
}

static const char* all_fingerprints_of(const SecretRecords& records) {
    return fingerprints_of(records, ~uint32{0});
}

template <typename Use> static void for_each_entry(Oid table, Use&& use) {
    for_each_row(table, [&use](HeapTuple row, TupleDesc columns) {
        bool null;
        const Datum value = heap_getattr(row, kEntryColumn, columns, &null);
        char* entry = null ? pstrdup("") : TextDatumGetCString(value);
        use(static_cast<const char*>(entry), strlen(entry));
        pfree(entry);
    });
}

static KeyRows read_rows(Oid table, const SecretRecords& records) {
    KeyRows rows{};
    for_each_entry(table,
                   [&](const char* text, size_t length) { rows.Add(records, text, length); });
    return rows;
}

static bool has_row(Oid table, const char* entry) {
    bool found = false;
    for_each_entry(table, [&](const char* text, size_t) { found |= strcmp(text, entry) == 0; });
    return found;
}

static bool is_own(const SecretRecords& records, const char* text, size_t length) {
    KeyRows row{};
    row.Add(records, text, length);
    return row.found != 0;
}

static bool has_secret() { return is_preloaded() && secret_ring().count() > 0; }

static const char* shown_entry(const char* text, size_t length) {
    SecretRecord record;
    return ParseKeyEntry(text, length, &record) ? secret_fingerprint_text(record)
                                                : quoted(text, length);
}

// Returns the fingerprints that are in a table but not in `records`; null if none. The list ends
// after kListedBytes, because a database's owner can insert any number of texts.
static const char* other_fingerprints(Oid table, const SecretRecords& records) {
    constexpr size_t kListedBytes = 256;
    const char* list = nullptr;
    for_each_entry(table, [&](const char* text, size_t length) {
        if (is_own(records, text, length) || (list != nullptr && strlen(list) >= kListedBytes))
            return;
        const char* shown = shown_entry(text, length);
        if (list == nullptr || strstr(list, shown) == nullptr) list = list_of(list, shown);
    });
    return list;
}

// Inserts without SQL, because the role may lack the INSERT privilege.
static void add_row(Oid table, const char* entry) {
    Assert(IsTransactionState() && !IsInParallelMode() && !RecoveryInProgress());
    Relation relation = table_open(table, RowExclusiveLock);
    const TupleDesc row = RelationGetDescr(relation);
    auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * static_cast<size_t>(row->natts)));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * static_cast<size_t>(row->natts)));
    memset(nulls, true, sizeof(bool) * static_cast<size_t>(row->natts));
    values[kEntryColumn - 1] = CStringGetTextDatum(entry);
    nulls[kEntryColumn - 1] = false;
    simple_heap_insert(relation, heap_form_tuple(row, values, nulls));
    CacheInvalidateRelcacheByRelid(table);
    table_close(relation, RowExclusiveLock);
}

static Oid find_table(const char* name, Oid function) {
    Assert(IsTransactionState());
    const Oid table = get_relname_relid(name, get_func_namespace(function));
    if (!OidIsValid(table))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_TABLE),
                 errmsg("table \"%s\" of extension \"randflake_type\" does not exist", name)));
    return table;
}

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

static bool may_bind_first(Oid function) {
    return may_execute(find_function(kBindFunction, get_func_namespace(function)));
}

static const char* binding_obstacle(TypeUse use) {
    if (use == TypeUse::kOutput) return "Only values that are made or read in bind it.";
    if (RecoveryInProgress()) return "A standby cannot bind it.";
    if (XactReadOnly) return "A read-only transaction cannot bind it.";
    if (IsInParallelMode()) return "A parallel operation cannot bind it.";
    return psprintf("Role \"%s\" may not bind it.", GetUserNameFromId(GetUserId(), false));
}

static const char* bind_hint() {
    return RecoveryInProgress()
               ? "Let a superuser run randflake_bind_secret() on the primary server."
               : "Let a superuser run randflake_bind_secret() once.";
}

[[noreturn]] static void raise_unbound(const char* detail, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the type randflake is not bound to a secret in this database"),
                    errdetail_internal("%s", detail), errhint("%s", hint)));
}

[[noreturn]] static void raise_former(Oid function, const SecretRecords& records) {
    raise_unbound(
        psprintf("The table \"%s\" has key fingerprint %s, this server has %s.", kCheckTable,
                 other_fingerprints(find_table(kCheckTable, function), records),
                 all_fingerprints_of(records)),
        "Restore dumps with that fingerprint on a server that has their secret. If you "
        "expect none, let a superuser run randflake_bind_secret() once.");
}

[[noreturn]] static void raise_missing(const SecretRecord& record, bool parallel) {
    const char* fingerprint = secret_fingerprint_text(record);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("a value of type randflake belongs to a secret that this database is not bound "
                "to"),
         parallel ? errdetail("A parallel operation cannot add key fingerprint %s.", fingerprint)
                  : errdetail("Key fingerprint %s is not in the table \"%s\". The session that "
                              "made the value or read it in has not committed it there.",
                              fingerprint, kKeyTable),
         errhint("%s", bind_hint())));
}

[[noreturn]] static void raise_other_secret(const TypeBinding& binding,
                                            const SecretRecords& records) {
    const KeyRows rows = read_rows(key_table, records);
    // If no entry is foreign, then one is missing, and `found` names the entries in the table.
    const char* found = other_fingerprints(key_table, records);
    const char* beside = fingerprints_of(records, rows.found);
    if (found == nullptr) {
        found = beside;
        beside = nullptr;
    }
    Assert(found != nullptr);
    const bool in_part = binding.differs_from > Second{0};
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("values of type randflake in this database belong to another secret"),
             errdetail("The database has key fingerprint %s%s%s, this server has %s.%s", found,
                       beside != nullptr ? " beside " : "", beside != nullptr ? beside : "",
                       all_fingerprints_of(records),
                       in_part ? psprintf(" They differ from %s on; earlier values can be read.",
                                          second_text(binding.differs_from))
                               : ""),
             beside == nullptr
                 ? errhint("Set \"randflake.secret_file\" (or \"randflake.secret\") to the "
                           "secret with that fingerprint and restart the server.")
             : in_part
                 ? errhint("Put the secret with that fingerprint, and its time, into "
                           "\"randflake.secret_file\". If you need none of its values, delete "
                           "them and its rows in the table \"%s\".",
                           kKeyTable)
                 : errhint("A dump made under the other secret was restored, or this "
                           "server lacks a secret that follows its own. Add that one to "
                           "\"randflake.secret_file\", or restore the dump into a new database, on "
                           "a server that has its secret.")));
}

[[noreturn]] static void raise_unchecked(Oid function, const SecretRecords& records) {
    const KeyRows keys = read_rows(key_table, records);
    const KeyRows checks = read_rows(find_table(kCheckTable, function), records);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("values of type randflake in this database were restored under other secrets"),
             errdetail("When the dump was restored, this server lacked the secret with key "
                       "fingerprint %s, and did not understand the values.",
                       fingerprints_of(records, keys.found & ~checks.found & ~uint32{1})),
             errhint("Restore the dump again, into a new database.")));
}

// Compares the tables with these secrets. With `decoding`, reads only randflake_key.
static TypeBinding read_binding(Oid function, const SecretRecords& records, bool decoding) {
    Assert(decoding == HistoricSnapshotActive());
    const uint64 changes = key_table_changes;
    const KeyRows keys = read_rows(key_table, records);
    // randflake_key_check matters only if randflake_key has an entry besides the first secret's.
    const bool further = (keys.found & ~uint32{1}) != 0 || keys.other_count > 0;
    KeyRows checks{};
    if (further && !decoding) checks = read_rows(find_table(kCheckTable, function), records);
    const TypeBinding binding =
        CompareKeys(records, keys, further && !decoding ? &checks : nullptr);
    // Does not cache the result if a table changed during the scan.
    if (changes != key_table_changes) return binding;
    (decoding ? known_in_history : known_now) = {records.count, binding};
    if (!decoding) {
        const Second end = CertainEnd(binding, records);
        uint64 raw;
        if (!kRandflake.Pack({kRandflake.FirstTick(end), 0, 0}, &raw)) raw = PG_UINT64_MAX;
        type_certain_end = raw;
        type_certain_secrets = static_cast<int>(records.count);
    }
    return binding;
}

namespace {
struct GenerationRange {
    int first;
    int end;
};
}  // namespace

static void add_entries(Oid function, const SecretRecords& records, GenerationRange added) {
    Assert(added.first < added.end && added.end <= static_cast<int>(records.count));
    const Oid check_table = find_table(kCheckTable, function);
    for (int i = added.first; i < added.end; i++) {
        const char* entry = secret_entry_text(records.records[i]);
        add_row(key_table, entry);
        // A restored dump may have inserted the row.
        if (!has_row(check_table, entry)) add_row(check_table, entry);
    }
    CommandCounterIncrement();
}

// Returns the latest second that the clock of any other server may show at this time.
static Second latest_clock() {
    return Min(wall_clock_second() + setting_max_clock_skew / kSecondMs + 1, kNoSecond);
}

static TypePlace this_place() {
    TypePlace place{};
    place.decoding = HistoricSnapshotActive();
    place.worker = IsParallelWorker();
    place.parallel = IsInParallelMode();
    place.stores_nothing = XactReadOnly || RecoveryInProgress();
    place.latest = latest_clock();
    place.decode_horizon = secrets_decode_horizon();
    return place;
}

static void prepare(Oid function) {
    static bool watching;

    if (!watching) {
        CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
        watching = true;
    }
    // The table's Oid changes if a user drops the extension and creates it again.
    if (known_now.secrets == 0 && known_in_history.secrets == 0 && !IsBinaryUpgrade)
        key_table = find_table(kKeyTable, function);
}

// Raises this step's error. Returns false if the caller has its own error for the step.
static bool report(BindingStep step, const TypeBinding& binding, const SecretRecords& records,
                   TypeUse use, int generation, Oid function) {
    switch (step) {
        case BindingStep::kGo:
        case BindingStep::kAdd:
        case BindingStep::kLock:
            elog(ERROR, "table \"%s\" has no fingerprint after one was written", kKeyTable);
        case BindingStep::kDiffers:
            if (binding.difference == KeyDifference::kUnchecked) raise_unchecked(function, records);
            raise_other_secret(binding, records);
        case BindingStep::kLacksSecret: raise_secret_lacking();
        case BindingStep::kUnbound: raise_unbound(binding_obstacle(use), bind_hint());
        case BindingStep::kFormer: raise_former(function, records);
        case BindingStep::kMissing:
            if (!binding.any) raise_unbound(binding_obstacle(use), bind_hint());
            raise_missing(records.records[generation], false);
        case BindingStep::kParallel: raise_missing(records.records[generation], true);
        case BindingStep::kNotMade: break;
    }
    return false;
}

pg_noinline bool check_type(Oid function, const SecretRing& ring, TypeUse use, uint64 raw) {
    Assert(ring.count() > 0);
    prepare(function);
    // pg_upgrade creates the tables without rows, and later adds the data files with their rows.
    if (IsBinaryUpgrade) return use != TypeUse::kNoValue;
    const SecretRecords& records = records_of(ring);
    const BoundValue value = BoundValueOf(ring, raw);
    TypePlace place = this_place();
    const Known& known = place.decoding ? known_in_history : known_now;
    // This process may not know an entry that was committed after it last read the binding. So the
    // loop reads the tables again before it refuses the use, locks the tables or adds entries.
    for (int reads = 0;;) {
        Assert(reads < 8);
        const bool reading = known.secrets != records.count;
        reads += reading ? 1 : 0;
        const TypeBinding binding =
            reading ? read_binding(function, records, place.decoding) : known.binding;
        place.may_bind_first = !binding.any && may_bind_first(function);
        const BindingStep step = PlanBinding(binding, records, use, value, place);
        if (step == BindingStep::kGo) return use != TypeUse::kNoValue;
        if (!reading) {
            forget();
        } else if (step == BindingStep::kLock) {
            LockRelationOid(key_table, ShareRowExclusiveLock);
            LockRelationOid(find_table(kCheckTable, function), ShareRowExclusiveLock);
            const KeyRows checks = read_rows(find_table(kCheckTable, function), records);
            place.former = checks.other_count > 0 || checks.unreadable;
            place.locked = true;
            forget();
        } else if (step == BindingStep::kAdd && reads < 4) {
            add_entries(function, records, {binding.bound, value.generation + 1});
            forget();
        } else {
            return report(step, binding, records, use, value.generation, function);
        }
    }
}

static bool created_unbound;

// CREATE EXTENSION hides notices of its script, so this notice waits for the commit.
static void notice_created_unbound(XactEvent event, void*) {
    if (created_unbound && event == XACT_EVENT_PRE_COMMIT &&
        OidIsValid(get_extension_oid("randflake_type", true)))
        ereport(NOTICE,
                (errmsg("the type randflake is not bound to a secret yet"),
                 errdetail("This server has no secret."),
                 errhint("Set \"shared_preload_libraries\" and \"randflake.secret_file\", and "
                         "restart the server. The first value that a superuser makes binds it.")));
    created_unbound = false;
}

SQL_FUNCTION(randflake_type_created) {
    static bool watching;

    if (is_preloaded() && secret_ring().count() > 0) {
        const Oid function = fcinfo->flinfo->fn_oid;
        key_table = find_table(kKeyTable, function);
        add_entries(function, secret_records(), {0, 1});
        PG_RETURN_VOID();
    }
    if (!watching) {
        RegisterXactCallback(notice_created_unbound, nullptr);
        watching = true;
    }
    created_unbound = true;
    PG_RETURN_VOID();
}

// Returns the entries of all secrets that have begun, oldest first. Later secrets may still change.
SQL_FUNCTION(randflake_key_fingerprints) {
    require_secret();
    const SecretRing ring = secret_ring();
    const SecretRecords& records = records_of(ring);
    const int count = ring.GenerationAt(latest_clock()) + 1;
    Datum texts[kMaxGenerations];
    for (int i = 0; i < count; i++)
        texts[i] = CStringGetTextDatum(secret_entry_text(records.records[i]));
    PG_RETURN_ARRAYTYPE_P(construct_array(texts, count, TEXTOID, -1, false, TYPALIGN_INT));
}

// This trigger runs before each change of randflake_key or randflake_key_check. It skips the
// insertion of an existing row, because a restore inserts the row of CREATE EXTENSION a second
// time. If the server has the secret of a new row of randflake_key, the trigger copies the row to
// randflake_key_check.
SQL_FUNCTION(randflake_key_guard) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"%s\" was not called by trigger manager",
                               "randflake_key_guard")));
    const auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    const Oid table = RelationGetRelid(trigger->tg_relation);
    const Oid function = fcinfo->flinfo->fn_oid;
    // A role with EXECUTE on this function can attach it to any table as a trigger.
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
    const Datum value = heap_getattr(trigger->tg_trigtuple, kEntryColumn,
                                     RelationGetDescr(trigger->tg_relation), &null);
    const char* entry = null ? "" : TextDatumGetCString(value);
    if (has_row(table, entry)) return Datum{0};  // skips the row
    const Oid check_table = find_table(kCheckTable, function);
    if (table != check_table && has_secret() &&
        is_own(records_of(secret_ring()), entry, strlen(entry)) && !has_row(check_table, entry))
        add_row(check_table, entry);
    CacheInvalidateRelcacheByRelid(table);
    return PointerGetDatum(trigger->tg_trigtuple);
}

// The constraint of randflake_key_check calls this function for each entry. On a server that has
// the entry's secret, raises an ERROR if randflake_key has an entry whose secret the server lacks.
// On a server with other secrets, raises an ERROR if randflake_key has an entry other than this
// one. On a server without a secret, raises an ERROR if randflake_key has another entry and lacks
// this one.
SQL_FUNCTION(randflake_key_matches) {
    const char* entry = text_to_cstring(PG_GETARG_TEXT_PP(0));
    const size_t length = strlen(entry);
    const Oid table = find_table(kKeyTable, fcinfo->flinfo->fn_oid);
    SecretRecords expected{};
    if (has_secret() && is_own(records_of(secret_ring()), entry, length))
        expected = records_of(secret_ring());
    else if (ParseKeyEntry(entry, length, &expected.records[0]))
        expected.count = 1;
    const KeyRows rows = read_rows(table, expected);
    const bool others = rows.other_count > 0 || rows.unreadable;
    if (others && (has_secret() || rows.found == 0))
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("this data was dumped under another secret: values of type randflake "
                        "cannot be used in this database"),
                 errdetail("The data has key fingerprint %s, the database has %s.",
                           shown_entry(entry, length), other_fingerprints(table, expected)),
                 errhint("Restore into a new database, on a server that has the data's secret.")));
    PG_RETURN_BOOL(true);
}

// Sorts like bigint. Raises an ERROR if the server cannot read the values.
SQL_FUNCTION(randflake_sortsupport) {
    (void)check_type(fcinfo->flinfo->fn_oid, type_secrets(), TypeUse::kSort, 0);
    return btint8sortsupport(fcinfo);
}

// Equal values have the same bytes. Refuses to build an index over values of another secret.
SQL_FUNCTION(randflake_equalimage) {
    (void)check_type(fcinfo->flinfo->fn_oid, type_secrets(), TypeUse::kBuildIndex, 0);
    PG_RETURN_BOOL(true);
}
