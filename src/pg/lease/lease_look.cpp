// Looks for coordinators that have leased this server's static node ids. A process can connect to
// only one database, so a launcher starts a worker in each database, one after the other. The
// launcher repeats the search every second until all workers have succeeded. Until then the server
// does not use these node ids.
//
// Other sessions can use up the slots of background workers, for any time. So the launcher is a
// worker that the postmaster has registered before it had sessions, and whose slot the launcher
// keeps. If no slot is free for another worker, the launcher exits, and in its next life looks into
// the database itself. The life after that goes on with the next database.
//
// Workers run as superusers, even in databases of other owners. So they read tables from storage,
// because SQL could run code of users. They read only the extension's tables. Only a superuser can
// create these. A worker waits only for ACCESS EXCLUSIVE locks of other sessions, and for at most
// kLockTimeout. So the launcher need not end a worker with SIGTERM, which would log a FATAL error.

#include "pg/lease/lease_look.h"

#include <initializer_list>
#include <utility>

#include "core/lease/pool_look.h"
#include "pg/base/compat.h"
#include "pg/base/shared_memory.h"
#include "pg/base/table_scan.h"
#include "pg/base/timestamp.h"
#include "pg/base/worker.h"
#include "pg/server/environment.h"
#include "pg/settings/settings.h"

using namespace randflake;

extern "C" {
[[noreturn]] PGDLLEXPORT void randflake_look_main(Datum argument);
[[noreturn]] PGDLLEXPORT void randflake_look_at_database_main(Datum database);
}

// The postmaster restarts a worker that exits with this status, and keeps its slot.
static constexpr int kRestarts = 1;

static constexpr Ms kAgain = 1000;
static constexpr char kLockTimeout[] = "3s";

namespace {
// Reports the look in shared memory. It is zero before the first look.
struct LookReport {
    Latch* launcher;  // null: the launcher has not started
    bool wanted;      // a process waits for a look

    // The launcher gives each question a number. Workers answer only the newest question.
    uint32 question;
    bool answered;
    Second free_at[kMaxRanges];

    // Only the launcher reads and writes these fields. They outlive the launcher's process.
    Oid asked;        // the database of the newest question, until its answer was read; 0: none
    bool own_turn;    // the next process of the launcher answers the question itself
    Oid last_looked;  // this look knows all databases up to this one
    Second all_free_at[kMaxRanges];
    Oid latest[kMaxRanges];  // becomes `coordinator`

    // Messages name these databases. coordinator[i] is the database whose lease of range i ends
    // last. The last search that failed was in `database`.
    Oid coordinator[kMaxRanges];
    Oid database;
    uint32 failed;      // the number of the failed question
    char failure[200];  // empty: no failure
    bool to_log;        // the failure differs from the one before
};

struct Extension {
    Oid oid;
    Oid schema;
    bool made_since;  // created since the start of this server
};

struct Bounds {
    int64 lower;
    int64 after;
};

class Rows {
public:
    Rows(const Extension& extension, const char* name, char kind) : name_(name) {
        const Oid table = get_relname_relid(name, extension.schema);
        if (!OidIsValid(table) ||
            getExtensionOfObject(RelationRelationId, table) != extension.oid ||
            get_rel_relkind(table) != kind)
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                            errmsg("extension \"randflake_coordinator\" has no \"%s\"", name)));
        relation_ = relation_open(table, AccessShareLock);
        scan_ = systable_beginscan(relation_, InvalidOid, false, nullptr, 0, nullptr);
    }
    bool Next() { return HeapTupleIsValid(row_ = systable_getnext(scan_)); }
    void End() {
        systable_endscan(scan_);
        relation_close(relation_, AccessShareLock);
    }
    Oid table() const { return RelationGetRelid(relation_); }

    Datum Column(const char* name, Oid type, bool* null = nullptr) const {
        const AttrNumber column = get_attnum(table(), name);
        const bool there = column > 0 && get_atttype(table(), column) == type;
        bool is_null = true;
        const Datum value =
            there ? heap_getattr(row_, column, RelationGetDescr(relation_), &is_null) : 0;
        if (!there || (is_null && null == nullptr))
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                            errmsg("table \"%s\" has no \"%s\"", name_, name)));
        if (null != nullptr) *null = is_null;
        return value;
    }
    int64 Long(const char* name) const { return DatumGetInt64(Column(name, INT8OID)); }
    int64 Int(const char* name) const { return DatumGetInt32(Column(name, INT4OID)); }

    // Returns a half-open range. A range without bounds extends from 0 to the limit of its type.
    Bounds Range(const char* name, Oid type) const {
        const bool is_long = type == INT8RANGEOID;
        RangeBound from, to;
        bool empty;
        range_deserialize(lookup_type_cache(type, TYPECACHE_RANGE_INFO),
                          DatumGetRangeTypeP(Column(name, type)), &from, &to, &empty);
        const auto value = [is_long](const RangeBound& bound) {
            return is_long ? DatumGetInt64(bound.val) : int64{DatumGetInt32(bound.val)};
        };
        const int64 most = is_long ? PG_INT64_MAX / 2 : PG_INT32_MAX;
        return {from.infinite || empty ? 0 : value(from), empty         ? 0
                                                          : to.infinite ? most
                                                                        : value(to)};
    }
    NodeRange Nodes() const {
        const Bounds nodes = Range("nodes", INT4RANGEOID);
        return {static_cast<uint32>(nodes.lower), static_cast<uint32>(nodes.after - nodes.lower)};
    }

private:
    const char* const name_;
    Relation relation_;
    SysScanDesc scan_;
    HeapTuple row_ = nullptr;
};
}  // namespace

static Guarded<LookReport>* shared_look;

static void init_look() { shared_look->Init(); }

const SharedPart look_part = kSharedPart<Guarded<LookReport>, shared_look, init_look>;

// Reads and writes the launcher's own fields.
static LookReport* report() {
    Assert(strcmp(MyBgworkerEntry->bgw_function_name, "randflake_look_main") == 0);
    return &shared_look->value;
}

static Extension find_extension() {
    Extension found{};
    for_each_row(ExtensionRelationId, [&found](HeapTuple row, TupleDesc) {
        const auto* form = reinterpret_cast<Form_pg_extension>(GETSTRUCT(row));
        if (strcmp(NameStr(form->extname), "randflake_coordinator") == 0)
            found = {form->oid, form->extnamespace,
                     TransactionIdIsValid(shared_server->first_xid) &&
                         !HeapTupleHeaderXminFrozen(row->t_data) &&
                         TransactionIdFollowsOrEquals(HeapTupleHeaderGetRawXmin(row->t_data),
                                                      shared_server->first_xid)};
    });
    return found;
}

static UnixSecond second_after(TimestampTz instant) {
    return {instant / USECS_PER_SEC + kPostgresEpoch.count / 1000 + 1};
}

static void look_at_leases(const Extension& extension, PoolLook* look, Oid* table,
                           UnixSecond* last_grant) {
    Rows leases(extension, "randflake_lease", RELKIND_RELATION);
    *table = leases.table();
    while (leases.Next()) {
        look->AddLease(leases.Nodes(), UnixSecond{leases.Range("span", INT8RANGEOID).after});
        for (const char* column : {"granted_at", "renewed_at"}) {
            bool null = true;
            const Datum instant = leases.Column(column, TIMESTAMPTZOID, &null);
            if (!null) *last_grant = Max(*last_grant, second_after(DatumGetTimestampTz(instant)));
        }
    }
    leases.End();
}

// Removes the server's start, between "@" and "/", from an identity. A start is a takeover for
// grants, but does not keep the server's own node ids closed.
static const char* without_start(char* identity) {
    char* const start = strchr(identity, '@');
    const char* const after = start == nullptr ? nullptr : strchr(start, '/');
    if (after != nullptr) memmove(start, after, strlen(after) + 1);
    return identity;
}

// Reads the pool as the SQL functions randflake_lease_identity, _identity_hash and _share_pool do.
static void look_at_pool(const Extension& extension, PoolLook* look) {
    // These values apply if the pool's table has no row.
    PoolSeen seen{};
    seen.made_since = extension.made_since;
    seen.max_duration = 60;
    seen.max_clock_skew = 2;
    seen.nodes = {0, 131072};
    Oid lease_table;
    look_at_leases(extension, look, &lease_table, &seen.last_grant);
    const char* identity = without_start(psprintf("%s/%u", coordinator_identity(), lease_table));

    Rows takeover(extension, "randflake_lease_takeover", RELKIND_SEQUENCE);
    if (!takeover.Next())
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("\"%s\" is empty", "randflake_lease_takeover")));
    const int64 noted = takeover.Long("last_value");
    seen.called = DatumGetBool(takeover.Column("is_called", BOOLOID));
    takeover.End();
    const int64 hash = DatumGetInt64(DirectFunctionCall2Coll(
        hashtextextended, C_COLLATION_OID, CStringGetTextDatum(identity), Int64GetDatum(0)));
    seen.noted_here = ((noted - hash) & ((INT64CONST(1) << 31) - 1)) == 0;
    seen.noted = {noted >> 31};

    Rows pool(extension, "randflake_lease_pool", RELKIND_RELATION);
    if (pool.Next()) {
        seen.configured = true;
        seen.nodes = pool.Nodes();
        seen.max_duration = pool.Int("max_duration");
        seen.max_clock_skew = pool.Int("max_clock_skew");
        seen.high_water = {pool.Long("high_water")};
        bool null = true;
        const Datum takeover = pool.Column("takeover", INT8OID, &null);
        char* const by = TextDatumGetCString(pool.Column("coordinator", TEXTOID));
        seen.same = strcmp(without_start(by), identity) == 0 && null != seen.called &&
                    (null || DatumGetInt64(takeover) == noted);
    }
    pool.End();
    look->AddPool(seen, ToUnix(wall_clock_second()));
}

// This function is not inlined, so its variables are not in the function that contains PG_TRY.
static pg_noinline void look_at_database(PoolLook* look) {
    StartTransactionCommand();
    const Extension extension = find_extension();
    if (OidIsValid(extension.oid)) look_at_pool(extension, look);
    CommitTransactionCommand();
}

// Records the failure of this question (an empty text for success), unless a later question exists.
static void record_failure(uint32 question, const char* failure, Oid database) {
    shared_look->Update([=](LookReport* report) {
        if (question != report->question) return;
        report->to_log = database != report->database || strcmp(failure, report->failure) != 0;
        report->database = database;
        report->failed = question;
        strlcpy(report->failure, failure, sizeof report->failure);
    });
}

// Looks into this database, records the answer to this question, and exits with this status.
[[noreturn]] static void answer(Oid database, uint32 question, int status) {
    // These values override the settings of the database.
    for (const auto& [name, value] :
         {std::pair{"lock_timeout", kLockTimeout}, std::pair{"transaction_timeout", "0"},
          std::pair{"default_transaction_isolation", "read committed"},
          std::pair{"default_transaction_deferrable", "off"}})
        if (GetConfigOption(name, true, false) != nullptr)
            SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
    BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
    PoolLook look{shared_server->memory.ranges, {}};
    PG_TRY();
    { look_at_database(&look); }
    PG_CATCH();
    {
        MemoryContextSwitchTo(TopMemoryContext);
        ErrorData* error = CopyErrorData();
        FlushErrorState();
        for (char* at = error->message; *at != '\0'; at++)
            if (IS_HIGHBIT_SET(*at)) *at = '?';
        record_failure(question, error->message, database);
        proc_exit(status);
    }
    PG_END_TRY();
    shared_look->Update([&look, question](LookReport* report) {
        if (question == report->question) {
            memcpy(report->free_at, look.free_at, sizeof look.free_at);
            report->answered = true;
        }
    });
    proc_exit(status);
}

void randflake_look_at_database_main(Datum database) {
    uint32 question;
    memcpy(&question, MyBgworkerEntry->bgw_extra, sizeof question);
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    BackgroundWorkerUnblockSignals();
    answer(DatumGetObjectId(database), question, 0);
}

namespace {
struct Database {
    Oid oid;
    NameData name;
};
}  // namespace

static int by_oid(const ListCell* one, const ListCell* other) {
    const Oid a = static_cast<Database*>(lfirst(one))->oid;
    const Oid b = static_cast<Database*>(lfirst(other))->oid;
    return a < b ? -1 : a > b;
}

// Lists databases in the order of their oids. Omits databases that are being dropped, because
// nothing can connect to them.
static List* list_databases(MemoryContext context) {
    List* databases = NIL;
    StartTransactionCommand();
    for_each_row(DatabaseRelationId, [&databases, context](HeapTuple row, TupleDesc) {
        const auto* form = reinterpret_cast<Form_pg_database>(GETSTRUCT(row));
        if (form->datconnlimit == -2) return;
        MemoryContext before = MemoryContextSwitchTo(context);
        auto* database = static_cast<Database*>(palloc(sizeof(Database)));
        *database = {form->oid, form->datname};
        databases = lappend(databases, database);
        MemoryContextSwitchTo(before);
    });
    CommitTransactionCommand();
    list_sort(databases, by_oid);
    return databases;
}

static bool exists(Oid oid, MemoryContext context) {
    ListCell* cell;
    foreach (cell, list_databases(context))
        if (static_cast<Database*>(lfirst(cell))->oid == oid) return true;
    return false;
}

// Waits until this time has passed (negative: forever) or a worker ends. Exits if the server stops.
static void pause_for(long milliseconds) {
    Assert(InterruptHoldoffCount == 0);
    (void)WaitLatch(MyLatch,
                    WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (milliseconds >= 0 ? WL_TIMEOUT : 0),
                    milliseconds, wait_event("RandflakeLook"));
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    if (ShutdownRequestPending) proc_exit(kRestarts);
}

// Starts a worker that answers the newest question in this database.
static void start_worker(Oid database) {
    const uint32 question = report()->question;
    BackgroundWorker worker =
        background_worker("randflake_look_at_database_main", "randflake look", BGW_NEVER_RESTART);
    worker.bgw_notify_pid = MyProcPid;
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    memcpy(worker.bgw_extra, &question, sizeof question);
    BackgroundWorkerHandle* handle;
    if (!RegisterDynamicBackgroundWorker(&worker, &handle)) {
        report()->own_turn = true;
        proc_exit(kRestarts);
    }
    for (pid_t pid; GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED;) pause_for(-1);
}

// Returns whether the report has the answer for this database. If not, the report may contain a
// failure. A former life of this launcher may have asked and looked.
static bool ask(Oid database) {
    const bool asked = report()->asked == database;
    shared_look->Update([=](LookReport* report) {
        if (!asked) {
            report->question++;
            report->answered = false;
        }
        report->asked = database;
    });
    const uint32 question = report()->question;
    if (!asked) start_worker(database);
    report()->asked = InvalidOid;
    const LookReport after = shared_look->Copy();
    if (!after.answered && after.failed != question)
        record_failure(question, "it cannot be connected to, see the server log", database);
    return after.answered;
}

static void log_failure(const char* database) {
    const LookReport now = shared_look->Copy();
    if (!now.to_log) return;
    ereport(
        WARNING,
        (errmsg("could not look for a coordinator in database \"%s\": %s", database, now.failure),
         errdetail("It may have leased node ids of this server, which stay closed until then."),
         errhint("The server looks again every second.")));
}

// Adds the answer for this database to what is known.
static void add_answer(const Database& database) {
    const LookReport answer = shared_look->Copy();
    for (uint32 i = 0; i < kMaxRanges; i++) {
        if (answer.free_at[i] <= answer.all_free_at[i]) continue;
        report()->all_free_at[i] = answer.free_at[i];
        report()->latest[i] = database.oid;
        const NodeRange nodes = shared_server->memory.ranges.At(i);
        if (answer.free_at[i] > wall_clock_second())
            ereport(LOG, (errmsg("node ids %u to %u may be leased to another server", nodes.first,
                                 nodes.first + nodes.count - 1),
                          errdetail("The coordinator in database \"%s\" may have leased them "
                                    "until %s.",
                                    NameStr(database.name), second_text(answer.free_at[i]))));
    }
    report()->last_looked = database.oid;
}

// Forgets what earlier looks have found.
static void begin_look() {
    memset(report()->all_free_at, 0, sizeof report()->all_free_at);
    memset(report()->latest, 0, sizeof report()->latest);
    report()->asked = report()->last_looked = InvalidOid;
}

// Goes on behind the last database that a former life of this launcher has looked into.
static bool look_at_all(MemoryContext context) {
    const SteadyMs began = steady_clock();
    List* databases = list_databases(context);
    ListCell* cell;
    foreach (cell, databases) {
        const auto* database = static_cast<Database*>(lfirst(cell));
        if (database->oid <= report()->last_looked) continue;
        if (ask(database->oid)) {
            add_answer(*database);
        } else if (exists(database->oid, context)) {
            log_failure(NameStr(database->name));
            return false;
        }
    }
    record_failure(shared_look->Copy().question, "", InvalidOid);
    shared_look->Update([](LookReport* report) {
        memcpy(report->coordinator, report->latest, sizeof report->coordinator);
    });
    server.Looked(report()->all_free_at);
    ConditionVariableBroadcast(&shared_server->window_changed);
    elog(DEBUG1, "looked for coordinators in %d databases in %lld ms", list_length(databases),
         static_cast<long long>((steady_clock() - began).count));
    return true;
}

void look_register_worker() {
    if (setting_node_id < 0) return;
    BackgroundWorker worker = background_worker("randflake_look_main", "randflake look", 0);
    RegisterBackgroundWorker(&worker);
}

void randflake_look_main(Datum) {
    Assert(!shared_server->memory.leased);
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    BackgroundWorkerUnblockSignals();
    if (report()->own_turn) {
        report()->own_turn = false;
        Assert(OidIsValid(report()->asked));
        answer(report()->asked, report()->question, kRestarts);
    }
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    MemoryContext context =
        AllocSetContextCreate(TopMemoryContext, "randflake look", ALLOCSET_SMALL_SIZES);
    shared_look->Update([](LookReport* report) { report->launcher = MyLatch; });
    for (;;) {
        while (!shared_look->Copy().wanted) pause_for(-1);
        while (!look_at_all(context)) {
            begin_look();
            pause_for(kAgain.count);
            MemoryContextReset(context);
        }
        begin_look();
        shared_look->Update([](LookReport* report) { report->wanted = false; });
        MemoryContextReset(context);
    }
}

void ServerEnvironment::Look() {
    Latch* launcher = nullptr;
    shared_look->Update([&launcher](LookReport* report) {
        launcher = report->wanted ? nullptr : report->launcher;
        report->wanted = true;
    });
    if (launcher != nullptr) SetLatch(launcher);
}

ErrorText not_looked_error() {
    const LookReport look = shared_look->Copy();
    const char* database = OidIsValid(look.database) ? get_database_name(look.database) : nullptr;
    return {
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "it is not known yet whether a coordinator has leased node ids of this server",
        look.launcher == nullptr  ? "The worker that looks for one has not started."
        : look.failure[0] == '\0' ? "The server is looking into its databases for one."
        : database == nullptr
            ? psprintf("The server could not look into its databases for one: %s.", look.failure)
            : psprintf("The server could not look into database \"%s\" for one: %s.", database,
                       look.failure),
        !IsUnderPostmaster
            ? "Single-user mode has no workers: start the server with its postmaster."
        : look.launcher == nullptr
            ? "If it does not start in a moment, raise \"max_worker_processes\" and restart the "
              "server."
        : look.failure[0] != '\0'
            ? "The server looks again every second. Let it read the database and the tables of "
              "its extension \"randflake_coordinator\"."
            : "Try again in a moment, or raise \"randflake.max_wait\"."};
}

ErrorText leased_error(uint32 range, Second until) {
    const Oid oid = shared_look->Copy().coordinator[range];
    const char* database = OidIsValid(oid) ? get_database_name(oid) : nullptr;
    const NodeRange nodes = shared_server->memory.ranges.At(range);
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            psprintf("node ids %u to %u may be leased to another server", nodes.first,
                     nodes.first + nodes.count - 1),
            psprintf("The coordinator in database \"%s\" may have leased them until %s.",
                     database != nullptr ? database : "", second_text(until)),
            "Try again at that time, or set \"randflake.node_id\" to node ids that no other server "
            "uses and that are not in the coordinator's pool, and restart the server."};
}
