// SQL functions of the text form. They need no secret and no shared memory.

#include "core/text.h"

#include "pg/sql.h"

using randflake::TextError;
using randflake::TextResult;

text* text_of_id(uint64 id) {
    char buffer[randflake::kMaxTextLength];
    const size_t length = randflake::FormatText(id, buffer);
    return cstring_to_text_with_len(buffer, static_cast<int>(length));
}

// Bytes of a malformed text form that a message quotes.
static constexpr int kMaxQuoted = 64;

[[noreturn]] static void report_malformed(const text* input, const TextResult& result) {
    const char* data = VARDATA_ANY(input);
    const auto length = static_cast<int>(VARSIZE_ANY_EXHDR(input));
    // No more of it than helps: it may be a gigabyte, which would go to the log as well.
    const int shown = pg_mbcliplen(data, length, kMaxQuoted);
    const char* quoted = psprintf("%.*s%s", shown, data, shown < length ? "..." : "");
    switch (result.error) {
        case TextError::kEmpty:
            ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                            errmsg("invalid text form of an identifier: \"%s\"", quoted),
                            errdetail("It is empty.")));
        case TextError::kTooLong:
            ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                            errmsg("invalid text form of an identifier: \"%s\"", quoted),
                            errdetail("It has %d characters; at most %d are possible.", length,
                                      static_cast<int>(randflake::kMaxTextLength))));
        case TextError::kOutOfRange:
            ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                            errmsg("invalid text form of an identifier: \"%s\"", quoted),
                            errdetail("It exceeds 64 bits.")));
        default: {
            const char* bad = data + result.position;
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                     errmsg("invalid text form of an identifier: \"%s\"", quoted),
                     errdetail("Character \"%.*s\" is not a digit of base32hex (0-9, a-v).",
                               Min(pg_mblen(bad), static_cast<int>(data + length - bad)), bad)));
        }
    }
    pg_unreachable();
}

SQL_FUNCTION(randflake_to_text) {
    PG_RETURN_TEXT_P(text_of_id(static_cast<uint64>(PG_GETARG_INT64(0))));
}

SQL_FUNCTION(randflake_from_text) {
    const text* input = PG_GETARG_TEXT_PP(0);
    const TextResult result = randflake::ParseText(VARDATA_ANY(input), VARSIZE_ANY_EXHDR(input));
    if (result.error != TextError::kNone)
        report_malformed(input, result);
    PG_RETURN_INT64(static_cast<int64>(result.id));
}
