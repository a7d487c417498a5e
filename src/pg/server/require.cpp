// Defines the errors that calls, views and the log show if the server lacks a setting.

#include "pg/server/require.h"

#include "core/identifier/layout_text.h"
#include "pg/identifier/snowflake_layout.h"
#include "pg/secret/secret.h"
#include "pg/server/environment.h"
#include "pg/settings/settings.h"

using randflake::kRandflake53;

bool is_preloaded() { return shared_secrets != nullptr; }

void require_preload() {
    if (!is_preloaded())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("randflake must be loaded via \"shared_preload_libraries\""),
                        errdetail("Identifiers need shared memory, which is reserved when the "
                                  "server starts."),
                        errhint("Add \"randflake\" to \"shared_preload_libraries\" and restart "
                                "the server.")));
}

static constexpr ErrorText kNoSecret = {
    ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "no secret is configured", nullptr,
    "Set \"randflake.secret_file\" (or \"randflake.secret\") and restart the server."};

static constexpr ErrorText kNoNodeId = {
    ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "no node id is configured", nullptr,
    "Set \"randflake.node_id\" to a node id that no other server uses, or set "
    "\"randflake.coordinator\", and restart the server."};

bool has_node_id() { return setting_node_id >= 0 || shared_server->memory.leased; }

void require_secret() {
    require_preload();
    if (secret_ring().count() == 0) raise_error(kNoSecret);
}

static void require_node_id() {
    if (!has_node_id()) raise_error(kNoNodeId);
}

const ErrorText* missing_setting() {
    return secret_ring().count() == 0 ? &kNoSecret : !has_node_id() ? &kNoNodeId : nullptr;
}

void require_generator() {
    require_secret();
    require_node_id();
}

// A negative `first_node_id` means that it is unknown, because the server has no lease yet.
static ErrorText nodes53_error(int64 first_node_id) {
    const char* nodes =
        first_node_id < 0
            ? psprintf("%u node ids", shared_slots->slot_count)
            : psprintf("node ids %lld to %lld", static_cast<long long>(first_node_id),
                       static_cast<long long>(first_node_id + shared_slots->slot_count - 1));
    return {
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        psprintf("%s do not fit in 53-bit identifiers", nodes),
        psprintf("They have %d bits for node ids, which are from 0 to %llu.",
                 kRandflake53.node_bits,
                 static_cast<unsigned long long>(kRandflake53.max_node_id())),
        shared_server->memory.leased
            ? "Lease from a coordinator whose pool has no other node ids, or lower "
              "\"randflake.node_count\"."
            : "Choose other node ids in \"randflake.node_id\" and \"randflake.node_count\", and "
              "restart the server."};
}

static bool fit53(int64 first_node_id) {
    return Max(first_node_id, 0) + shared_slots->slot_count - 1 <=
           static_cast<int64>(kRandflake53.max_node_id());
}

void require_nodes53(int64 first_node_id) {
    if (!fit53(first_node_id)) raise_error(nodes53_error(first_node_id));
}

void require_generator53() {
    require_generator();
    require_nodes53(shared_server->memory.leased ? -1 : setting_node_id);
}

void log_requirements() {
    Assert(is_preloaded() && !IsUnderPostmaster);
    const int64 first_node_id = shared_server->memory.leased ? -1 : setting_node_id;
    if (const ErrorText* missing = missing_setting()) {
        ereport(LOG, (errmsg("randflake cannot generate identifiers: %s", missing->message),
                      errhint("%s", missing->hint)));
        return;
    }
    if (fit53(first_node_id)) {
        const int64 last = int64{setting_node_id} + static_node_count() - shared_slots->slot_count;
        if (!shared_server->memory.leased && !fit53(last))
            ereport(LOG, (errmsg("not all spare ranges of node ids fit in 53-bit identifiers"),
                          errhint("Lower \"randflake.node_id\" or "
                                  "\"randflake.spare_node_ranges\".")));
        return;
    }
    const ErrorText error = nodes53_error(first_node_id);
    ereport(LOG, (errmsg("randflake cannot generate 53-bit identifiers: %s", error.message),
                  errdetail("%s", error.detail), errhint("%s", error.hint)));
}

// Returns the names of the layouts that can hold this node id, for a hint; palloc'd.
static const char* layouts_that_hold(int64 node_id) {
    StringInfoData names;
    initStringInfo(&names);
    for (const randflake::NamedLayout& named : randflake::kNamedLayouts)
        if (node_id <= static_cast<int64>(named.layout.max_node_id()))
            appendStringInfo(&names, "%s\"%s\" up to %llu", names.len > 0 ? ", " : "", named.name,
                             static_cast<unsigned long long>(named.layout.max_node_id()));
    return names.data;
}

void require_snowflake_nodes(int64 first_node_id) {
    Assert(first_node_id >= 0);
    const int64 last = first_node_id + shared_slots->slot_count - 1;
    const auto limit = static_cast<int64>(snowflake_layout.max_node_id());
    if (last <= limit) return;
    const char* others = layouts_that_hold(last);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("node ids %lld to %lld do not fit in layout \"%s\"",
                static_cast<long long>(first_node_id), static_cast<long long>(last),
                setting_snowflake_layout),
         errdetail("The layout has %d bits for node ids, which are from 0 to %lld.",
                   snowflake_layout.node_bits, static_cast<long long>(limit)),
         others[0] != '\0'
             ? errhint("Choose other node ids, or set \"randflake.snowflake_layout\" to one of the "
                       "layouts that hold them: %s.",
                       others)
             : errhint("Choose other node ids, or describe a layout with more bits for them in "
                       "\"randflake.snowflake_layout\".")));
}

void require_snowflake() {
    require_preload();
    require_node_id();
    if (!shared_server->memory.leased) require_snowflake_nodes(setting_node_id);
}
