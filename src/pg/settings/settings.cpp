// Defines randflake.coordinator, randflake.registry and the numeric settings.

#include "pg/settings/settings.h"

#include "core/identifier/layout.h"
#include "core/window/window_state.h"
#include "pg/base/compat.h"
#include "pg/base/shared_memory.h"
#include "pg/identifier/load.h"
#include "pg/identifier/snowflake_layout.h"
#include "pg/identifier/vector_path.h"

using randflake::SkewRange;

int setting_node_id;
int setting_node_count;
int setting_spare_ranges;
int setting_max_wait;
int setting_max_clock_skew;
int setting_lease_duration;
char* setting_coordinator;
char* setting_registry;

static constexpr int kMaxNodeId = randflake::kRandflake.max_node_id();

static constexpr char kNodeId[] = "randflake.node_id";

// A reload accepts both settings, because only a start decides whether node ids are leased.
static constexpr ErrorText kTwoSources = {
    ERRCODE_INVALID_PARAMETER_VALUE,
    "both \"randflake.node_id\" and \"randflake.coordinator\" are set",
    "Node ids are either chosen by hand or leased.", "Remove one of them."};

// A reload calls this once for each of the two settings. Only the postmaster warns. It warns again
// only after an operator has unset one of the two.
static void warn_of_next_start(bool has_node_id, const char* coordinator) {
    static bool warned;
    if (IsUnderPostmaster || process_shared_preload_libraries_in_progress) return;
    const bool fails = has_node_id && coordinator[0] != '\0';
    if (fails && !warned)
        ereport(WARNING, (errcode(kTwoSources.sqlstate),
                          errmsg("the next start of the server will fail: %s", kTwoSources.message),
                          errdetail("%s", kTwoSources.detail), errhint("%s", kTwoSources.hint)));
    warned = fails;
}

// Returns whether the server is likely to have a node id after its next start. If a changed node id
// awaits a restart, its value is unknown. The function then assumes that a server without a node id
// gets one at the restart, and that a server with a node id loses it.
static bool has_node_id_at_next_start() {
    return (setting_node_id >= 0) != setting_awaits_start(kNodeId);
}

const ErrorText* next_start_error() {
    return has_node_id_at_next_start() && setting_coordinator[0] != '\0' ? &kTwoSources : nullptr;
}

static bool check_node_id(int* new_value, void**, GucSource) {
    warn_of_next_start(*new_value >= 0, setting_coordinator);
    return true;
}

static void assign_coordinator(const char* new_value, void*) {
    warn_of_next_start(has_node_id_at_next_start(), new_value);
}

namespace {
struct IntSetting {
    const char* name;
    int* variable;
    int boot_value;
    int min, max;
    GucContext context;
    int flags;
    const char* description;
    const char* long_description;
    GucIntCheckHook check = nullptr;
    GucIntAssignHook assign = nullptr;
};
}  // namespace

// Only the postmaster uses this variable. At a reload, it reads settings before its children do.
static SkewRange skew_since_start{randflake::kMaxSkewMs, 0};  // empty

// A SkewRange: smallest << 32 | largest.
static std::atomic<uint64>* shared_skew;

static void widen_skew(int value) {
    Assert(!IsUnderPostmaster);
    const auto skew = static_cast<uint32>(value);
    skew_since_start = skew_since_start.With({skew, skew});
    shared_skew->store(uint64{skew_since_start.smallest_ms} << 32 | skew_since_start.largest_ms,
                       std::memory_order_release);
}

static void assign_max_clock_skew(int new_value, void*) {
    if (!IsUnderPostmaster && shared_skew != nullptr) widen_skew(new_value);
}

SkewRange setting_skew_range() {
    const uint64 word = shared_skew->load(std::memory_order_acquire);
    const auto own = static_cast<uint32>(setting_max_clock_skew);
    return SkewRange{static_cast<uint32>(word >> 32), static_cast<uint32>(word)}.With({own, own});
}

static void skew_init() { widen_skew(setting_max_clock_skew); }

const SharedPart settings_part = kSharedPart<std::atomic<uint64>, shared_skew, skew_init>;

static const IntSetting int_settings[] = {
    {kNodeId, &setting_node_id, -1, -1, kMaxNodeId, PGC_POSTMASTER, 0,
     "First node id of this server.",
     "No two live servers with the same secret may share a node id. -1 leaves it unset.",
     check_node_id},
    {"randflake.node_count", &setting_node_count, 1, 1, kMaxNodeId + 1, PGC_POSTMASTER, 0,
     "How many consecutive node ids this server uses.",
     "Each node id gives 131072 identifiers a second, node id 0 one less."},
    {"randflake.spare_node_ranges", &setting_spare_ranges, 0, 0, randflake::kMaxRanges - 1,
     PGC_POSTMASTER, 0, "How many further ranges of node ids this server has.",
     "Each has as many node ids as \"randflake.node_count\" and follows the one before. When the "
     "clock was set back, the server goes on under another range. Without effect where node ids "
     "are leased."},
    {"randflake.max_wait", &setting_max_wait, 5000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS,
     "Longest wait for a free identifier before an error.", "Zero fails at once."},
    {"randflake.max_clock_skew", &setting_max_clock_skew, 2000, 0, randflake::kMaxSkewMs,
     PGC_SIGHUP, GUC_UNIT_MS, "How far the clocks of two servers may differ.",
     "With static node ids a server generates nothing for this long after its start, unless it was "
     "stopped cleanly less than this long ago. Servers that share node ids have the same value.",
     nullptr, assign_max_clock_skew},
    {"randflake.lease_duration", &setting_lease_duration, 60, 1, SECS_PER_DAY, PGC_SIGHUP,
     GUC_UNIT_S, "How long node ids are leased for.",
     "Renewed at two fifths of it, so the coordinator may be away for half of it."},
};

// Rejects an invalid value. DefineCustomIntVariable would only warn, and use the default.
static void require_valid(const IntSetting& setting) {
    const char* text = GetConfigOption(setting.name, true, false);
    if (text == nullptr) return;
    int value;
    const char* hint = nullptr;
    if (!parse_int(text, &value, setting.flags, &hint))
        ereport(FATAL, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("invalid value for parameter \"%s\": \"%s\"", setting.name, text),
                        hint ? errhint("%s", _(hint)) : 0));
    if (value < setting.min || value > setting.max)
        ereport(FATAL, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%d is outside the valid range for parameter \"%s\" (%d .. %d)",
                               value, setting.name, setting.min, setting.max)));
}

void settings_define() {
    Assert(process_shared_preload_libraries_in_progress);
    for (const IntSetting& setting : int_settings) {
        require_valid(setting);
        DefineCustomIntVariable(setting.name, setting.description, setting.long_description,
                                setting.variable, setting.boot_value, setting.min, setting.max,
                                setting.context, setting.flags, setting.check, setting.assign,
                                nullptr);
    }
    DefineCustomStringVariable(
        "randflake.coordinator", "Connection string of the database that leases node ids.",
        "Empty: this server uses the node ids of \"randflake.node_id\".", &setting_coordinator, "",
        PGC_SIGHUP, GUC_SUPERUSER_ONLY, nullptr, assign_coordinator, nullptr);
    DefineCustomStringVariable(
        "randflake.registry",
        "Connection string of the coordinator to which this server announces its static node ids.",
        "It finds servers with the same ones. Empty: announces nothing.", &setting_registry, "",
        PGC_SIGHUP, GUC_SUPERUSER_ONLY, nullptr, nullptr, nullptr);
    snowflake_layout_define_setting();
    vector_path_define_setting();
    load_define_setting();
}

void settings_check() {
    if (setting_node_id >= 0 &&
        setting_node_count > (kMaxNodeId + 1 - setting_node_id) / (1 + setting_spare_ranges))
        ereport(FATAL,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("\"randflake.node_id\" and \"randflake.node_count\" reach beyond "
                        "node id %d",
                        kMaxNodeId),
                 setting_spare_ranges == 0
                     ? errdetail("Node id %d and a count of %d would end at %d.", setting_node_id,
                                 setting_node_count, setting_node_id + setting_node_count - 1)
                     : errdetail("Node id %d and a count of %d in %d ranges would end at "
                                 "%d.",
                                 setting_node_id, setting_node_count, 1 + setting_spare_ranges,
                                 setting_node_id + static_node_count() - 1),
                 errhint("Lower \"randflake.node_id\", \"randflake.node_count\" or "
                         "\"randflake.spare_node_ranges\".")));
    if (setting_node_id >= 0 && setting_coordinator[0] != '\0')
        ereport(FATAL, (errcode(kTwoSources.sqlstate), errmsg("%s", kTwoSources.message),
                        errdetail("%s", kTwoSources.detail), errhint("%s", kTwoSources.hint)));
    vector_path_choose();
    snowflake_layout_load();
    if (setting_node_id >= 0 && setting_spare_ranges > 0) {
        const auto limit = static_cast<int64>(snowflake_layout.max_node_id());
        const int last = setting_node_id + static_node_count() - 1;
        if (setting_node_id + setting_node_count - 1 <= limit && last > limit)
            ereport(WARNING,
                    (errmsg("not all spare ranges of node ids fit in the layout of Snowflake "
                            "identifiers"),
                     errdetail("The ranges reach to node id %d, the layout to %lld. Under a range "
                               "that does not fit, snowflake_generate() fails.",
                               last, static_cast<long long>(limit)),
                     errhint("Lower \"randflake.node_id\" or \"randflake.spare_node_ranges\", or "
                             "set \"randflake.snowflake_layout\" to a layout with more node "
                             "ids.")));
    }
}
