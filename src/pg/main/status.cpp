// Defines the functions of the status views. They never block a backend that makes identifiers.

#include "pg/base/clock.h"
#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"
#include "pg/generator/reserve.h"
#include "pg/identifier/vector_path.h"
#include "pg/lease/lease_report.h"
#include "pg/secret/secret.h"
#include "pg/server/require.h"
#include "pg/server/window_report.h"

using namespace randflake;

namespace {
struct Row {
    Datum values[32];
    bool nulls[32];
    int count;

    void Add(Datum value) { AddUnless(false, value); }
    void AddUnless(bool null, Datum value) {
        Assert(count < static_cast<int>(lengthof(values)));
        values[count] = value;
        nulls[count++] = null;
    }
};
}  // namespace

static Datum counter_datum(uint64 value) { return Int64GetDatum(static_cast<int64>(value)); }

static Datum second_datum(Second second) { return TimestampTzGetDatum(timestamp_of(second)); }

static Datum interval_datum(int64 milliseconds) {
    auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
    interval->time = milliseconds * 1000;
    return IntervalPGetDatum(interval);
}

// Returns how many identifiers per second the server can make. Skipped numbers do not count.
static int64 ids_per_second() {
    const Second now = wall_clock_second();
    const auto numbers =
        static_cast<double>(shared_slots->slot_count * (kRandflake.max_sequence() + uint64{1}));
    return static_cast<int64>(numbers * secret_ring().ShareLeft(kRandflake, now));
}

static const char* current_fingerprint() {
    const int current = secret_ring().GenerationAt(wall_clock_second());
    return secret_fingerprint_text(secret_records().records[current]);
}

// Converts UTF-8 text to a datum. In encodings other than UTF-8, replaces non-ASCII bytes with "?".
static Datum lease_error_datum(char* text) {
    if (GetDatabaseEncoding() != PG_UTF8)
        for (char* at = text; *at != '\0'; at++)
            if (IS_HIGHBIT_SET(*at)) *at = '?';
    return CStringGetTextDatum(text);
}

// Returns how many other ranges of node ids the server could change to at this time.
static int32 spare_ranges_left(const WindowReport& report) {
    const Second now = wall_clock_second();
    int32 left = 0;
    for (uint32 i = 0; i < shared_server->memory.ranges.count; i++)
        left += i != report.range && report.opens_at[i] <= now;
    return left;
}

SQL_FUNCTION(randflake_status) {
    require_preload();
    const Counters& counters = shared_slots->counters;
    LeaseReport lease = lease_report();
    const Window window = lease_window(lease, Window::FromWord(shared_slots->window.load()));
    const Lease& open = lease.open;
    const bool has_secret = secret_ring().count() > 0;
    const int64 lease_id = open.id != 0 ? open.id : lease.next.id;
    const WindowReport report = window_report();
    TimestampTz copy_found_at;
    (void)window_of_copy(&copy_found_at);
    const int64 first_node = shared_server->memory.leased ? (open.id != 0 ? open.nodes.first : -1)
                             : !has_node_id()
                                 ? -1
                                 : int64{shared_server->memory.ranges.At(report.range).first};

    Row row{};
    const char* problem = generator_problem();
    row.Add(CStringGetTextDatum(shared_server->memory.leased ? "leased" : "static"));
    row.AddUnless(problem == nullptr, problem == nullptr ? 0 : CStringGetTextDatum(problem));
    row.AddUnless(first_node < 0, Int32GetDatum(static_cast<int32>(first_node)));
    row.Add(Int32GetDatum(static_cast<int32>(shared_slots->slot_count)));
    row.Add(Int64GetDatum(ids_per_second()));
    row.AddUnless(window.closed(), second_datum(window.start));
    row.AddUnless(window.closed(), second_datum(window.end));
    row.AddUnless(!has_secret, has_secret ? CStringGetTextDatum(current_fingerprint()) : 0);
    row.Add(counter_datum(count_of_all_slots()));
    row.Add(counter_datum(counters.waits));
    row.Add(counter_datum(counters.wait_microseconds / 1000));
    row.Add(counter_datum(counters.slots_exhausted));
    row.Add(counter_datum(counters.clock_steps_back));
    row.Add(counter_datum(counters.window_extensions));
    row.Add(TimestampTzGetDatum(counters.reset_at));
    row.AddUnless(lease_id == 0, Int64GetDatum(lease_id));
    row.AddUnless(open.id == 0, interval_datum(open.length().count));
    row.AddUnless(lease.error_at == 0, lease_error_datum(lease.error));
    row.AddUnless(lease.error_at == 0, TimestampTzGetDatum(lease.error_at));
    row.AddUnless(copy_found_at == 0, TimestampTzGetDatum(copy_found_at));
    row.Add(CStringGetTextDatum(vector_path_name()));
    row.AddUnless(shared_server->memory.leased, Int32GetDatum(static_cast<int32>(report.range)));
    row.AddUnless(shared_server->memory.leased, Int32GetDatum(spare_ranges_left(report)));
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(
        result_row(fcinfo, row.count, CurrentMemoryContext), row.values, row.nulls)));
}

// Returns SETOF (node_id integer, last_second timestamptz, sequence integer, ids_issued bigint)
SQL_FUNCTION(randflake_slots) {
    require_preload();
    InitMaterializedSRF(fcinfo, 0);
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    const Window window = Window::FromWord(shared_slots->window.load());
    if (window.closed()) return Datum{0};
    for (uint32 i = 0; i < shared_slots->slot_count; i++) {
        const Slot& slot = randflake_slot(i);
        const Fields fields = kRandflake.Unpack(slot.word.load());
        const bool unused = kRandflake.Before(fields.timestamp, window.start);
        Row row{};
        row.Add(Int32GetDatum(static_cast<int32>(fields.node_id)));
        row.AddUnless(unused, second_datum(kRandflake.SecondOf(fields.timestamp)));
        row.AddUnless(unused, Int32GetDatum(static_cast<int32>(fields.sequence)));
        row.Add(counter_datum(count_of_slot(slot)));
        require_columns(result->setDesc, row.count);
        tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
    }
    return Datum{0};
}

SQL_FUNCTION(randflake_status_reset) {
    require_preload();
    counters_reset();
    PG_RETURN_VOID();
}
