// Reads randflake.snowflake_layout, and raises errors for malformed layouts.

#include "pg/identifier/snowflake_layout.h"

#include "core/identifier/layout_text.h"
#include "pg/identifier/text.h"

using namespace randflake;

char* setting_snowflake_layout;
Layout snowflake_layout = kNamedLayouts[0].layout;

void snowflake_layout_define_setting() {
    DefineCustomStringVariable(
        "randflake.snowflake_layout", "Bit layout of the identifiers of snowflake_generate().",
        "A name listed by snowflake_layouts(), or a description such as \"time=41:1ms, "
        "node=10, sequence=12, epoch=2024-01-01\".",
        &setting_snowflake_layout, kNamedLayouts[0].name, PGC_POSTMASTER, 0, nullptr, nullptr,
        nullptr);
}

Layout parse_layout(const char* text, size_t length, const char* message, int elevel) {
    Assert(elevel >= ERROR);
    const LayoutResult result = ParseLayout(text, length);
    if (result.error != LayoutError::kNone)
        ereport(elevel,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("%s: \"%s\"", message, quoted(text, length)),
                 result.length == 0 ? errdetail("%s.", LayoutErrorText(result.error))
                                    : errdetail("%s, not \"%s\".", LayoutErrorText(result.error),
                                                quoted(text + result.position, result.length)),
                 errhint("A layout is \"twitter\", \"discord\", \"instagram\", \"sonyflake\" or "
                         "\"baidu\", or a description such as \"time=41:1ms, node=10, "
                         "sequence=12, epoch=2024-01-01\".")));
    return result.layout;
}

void snowflake_layout_load() {
    Assert(process_shared_preload_libraries_in_progress);
    snowflake_layout =
        parse_layout(setting_snowflake_layout, strlen(setting_snowflake_layout),
                     "invalid value for parameter \"randflake.snowflake_layout\"", FATAL);
}
