// Defines the SQL functions about Snowflake identifiers and their layouts.

#include "core/identifier/layout_text.h"

#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"
#include "pg/identifier/snowflake_layout.h"
#include "pg/identifier/text.h"
#include "pg/server/require.h"

using namespace randflake;

namespace {
struct CallSite {
    Layout layout;
    const char* name;  // the text of the layout argument
    int length;        // of the name; -1: no layout yet
    TupleDesc row;
};
static_assert(std::is_trivially_destructible_v<CallSite>);
}  // namespace

static CallSite* call_site(FunctionCallInfo fcinfo) {
    FmgrInfo* info = fcinfo->flinfo;
    if (unlikely(info->fn_extra == nullptr)) {
        auto* site =
            static_cast<CallSite*>(MemoryContextAllocZero(info->fn_mcxt, sizeof(CallSite)));
        site->length = -1;
        info->fn_extra = site;
    }
    return static_cast<CallSite*>(info->fn_extra);
}

static const char* quoted_name(const CallSite& site) {
    return quoted(site.name, static_cast<size_t>(site.length));
}

// Returns the layout in this argument, or the server's layout if the argument is missing.
static const CallSite& site_with_layout(FunctionCallInfo fcinfo, int argument) {
    CallSite* site = call_site(fcinfo);
    if (PG_NARGS() <= argument) {
        require_preload();
        site->layout = snowflake_layout;
        site->name = setting_snowflake_layout;
        site->length = static_cast<int>(strlen(site->name));
        return *site;
    }
    const text* told = PG_GETARG_TEXT_PP(argument);
    const char* data = VARDATA_ANY(told);
    const auto length = static_cast<int>(VARSIZE_ANY_EXHDR(told));
    if (unlikely(site->length != length || memcmp(site->name, data, length) != 0)) {
        const Layout layout =
            parse_layout(data, static_cast<size_t>(length), "invalid layout of identifiers", ERROR);
        site->length = -1;
        auto* name = static_cast<char*>(MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, length));
        memcpy(name, data, length);
        site->layout = layout;
        site->name = name;
        site->length = length;
    }
    return *site;
}

static TupleDesc decoded_row(FunctionCallInfo fcinfo, int columns) {
    CallSite* site = call_site(fcinfo);
    if (unlikely(site->row == nullptr))
        site->row = result_row(fcinfo, columns, fcinfo->flinfo->fn_mcxt);
    return site->row;
}

SQL_FUNCTION(snowflake_decode) {
    const auto id = static_cast<uint64>(PG_GETARG_INT64(0));
    const CallSite& site = site_with_layout(fcinfo, 1);
    const Layout& layout = site.layout;
    if (id >> layout.bits() != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("%lld is not an identifier of layout \"%s\"", static_cast<long long>(id),
                        quoted_name(site)),
                 errdetail("Its identifiers are from 0 to %llu.",
                           static_cast<unsigned long long>((uint64{1} << layout.bits()) - 1))));
    const Fields fields = layout.FieldsOfId(id);
    Datum values[] = {TimestampTzGetDatum(timestamp_of(layout.TickStart(fields.timestamp))),
                      Int32GetDatum(static_cast<int32>(fields.node_id)),
                      Int32GetDatum(static_cast<int32>(fields.sequence))};
    bool nulls[] = {false, false, false};
    PG_RETURN_DATUM(
        HeapTupleGetDatum(heap_form_tuple(decoded_row(fcinfo, lengthof(values)), values, nulls)));
}

SQL_FUNCTION(snowflake_lower) {
    const TimestampTz time = PG_GETARG_TIMESTAMPTZ(0);
    const CallSite& site = site_with_layout(fcinfo, 1);
    const Layout& layout = site.layout;
    if (!layout.time_first())
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("identifiers of layout \"%s\" are not in the order of time",
                               quoted_name(site)),
                        errdetail("Time is not their first field.")));
    const TimestampTz first = timestamp_of(layout.TickStart(0));
    const TimestampTz end = timestamp_of(layout.TickStart(layout.max_timestamp() + 1));
    if (time < first || time >= end) {
        const char* lower = pstrdup(timestamptz_to_str(first));
        ereport(ERROR,
                (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
                 errmsg("timestamp out of range for layout \"%s\"", quoted_name(site)),
                 errdetail("It must be from %s to before %s.", lower, timestamptz_to_str(end))));
    }
    uint64 raw;
    const auto tick = static_cast<uint64>((time - first) / (layout.unit * 1000));
    if (!layout.Pack({tick, 0, 0}, &raw)) elog(ERROR, "time of an identifier does not fit");
    PG_RETURN_INT64(static_cast<int64>(layout.ToId(raw)));
}

static constexpr int kLayoutColumns = 11;

static void put_layout(const ReturnSetInfo* result, const char* name, const Layout& layout,
                       bool current) {
    char description[kMaxLayoutText];
    FormatLayout(layout, description);
    auto* unit = static_cast<Interval*>(palloc0(sizeof(Interval)));
    unit->time = layout.unit * 1000;
    const uint64 sequences = layout.max_sequence() + 1;
    Datum values[kLayoutColumns] = {
        name == nullptr ? 0 : CStringGetTextDatum(name),
        CStringGetTextDatum(description),
        TimestampTzGetDatum(timestamp_of(layout.TickStart(0))),
        PointerGetDatum(unit),
        Int32GetDatum(layout.timestamp_bits),
        Int32GetDatum(layout.node_bits),
        Int32GetDatum(layout.sequence_bits),
        Int64GetDatum(static_cast<int64>(sequences) * 1000 / layout.unit),
        Int64GetDatum(static_cast<int64>(layout.max_node_id() + 1)),
        TimestampTzGetDatum(timestamp_of(layout.TickStart(layout.max_timestamp()))),
        BoolGetDatum(current)};
    bool nulls[kLayoutColumns] = {name == nullptr};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

// Returns the named layouts, and also the server's layout if it has no name.
SQL_FUNCTION(snowflake_layouts) {
    InitMaterializedSRF(fcinfo, 0);
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    require_columns(result->setDesc, kLayoutColumns);
    bool named_one = !is_preloaded();
    for (const NamedLayout& named : kNamedLayouts) {
        const bool current = is_preloaded() && named.layout == snowflake_layout;
        named_one |= current;
        put_layout(result, named.name, named.layout, current);
    }
    if (!named_one) put_layout(result, nullptr, snowflake_layout, true);
    return Datum{0};
}
