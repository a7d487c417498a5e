// Defines the SQL functions for the text form. They need no secret and no shared memory.

#include "pg/identifier/text.h"

#include "core/identifier/id_text.h"
#include "pg/base/compat.h"
#include "pg/base/sql_function.h"

using namespace randflake;

const char* quoted(const char* data, size_t length) {
    constexpr int kMaxBytes = 128;
    const auto bytes = static_cast<int>(length);
    const int shown = pg_mbcliplen(data, bytes, kMaxBytes);
    return psprintf("%.*s%s", shown, data, shown < bytes ? "..." : "");
}

text* text_of_id(uint64 id) {
    char buffer[kMaxTextLength];
    const size_t length = FormatText(id, buffer);
    return cstring_to_text_with_len(buffer, static_cast<int>(length));
}

char* type_text_of_id(uint64 id) {
    auto* buffer = static_cast<char*>(palloc(kMaxTextLength + 1));
    buffer[FormatTypeText(id, buffer)] = '\0';
    return buffer;
}

static const char* text_error_detail(const char* data, int length, const TextResult& result) {
    switch (result.error) {
        case TextError::kEmpty: return "It is empty.";
        case TextError::kTooLong:
            return psprintf("It has %d characters; at most %d are possible.", length,
                            static_cast<int>(kMaxTextLength));
        case TextError::kOutOfRange: return "It exceeds 64 bits.";
        case TextError::kDecimal: return "It is a decimal number; the text form is base 32.";
        default: {
            Assert(result.position < static_cast<size_t>(length));
            const char* bad = data + result.position;
            return psprintf("Character \"%.*s\" is not a digit of base32hex (0-9, a-v).",
                            Min(pg_mblen(bad), static_cast<int>(data + length - bad)), bad);
        }
    }
}

bool id_of_type_text(const char* input, Node* context, uint64* id) {
    const size_t length = strlen(input);
    const TextResult result = ParseTypeText(input, length);
    if (result.error != TextError::kNone) {
        soft_ereport(context,
                     (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                      errmsg("invalid text form of an identifier: \"%s\"", quoted(input, length)),
                      errdetail("%s", text_error_detail(input, static_cast<int>(length), result)),
                      IsBigint(input, length)
                          ? errhint("Cast a number through bigint: '%s'::bigint::randflake.", input)
                          : 0));
        return false;
    }
    *id = result.id;
    return true;
}

SQL_FUNCTION(randflake_to_text) {
    PG_RETURN_TEXT_P(text_of_id(static_cast<uint64>(PG_GETARG_INT64(0))));
}

// Parses the part of `data` after the prefix, from `digits` on. Errors quote all of `data`.
static uint64 id_of_digits(const char* data, int length, const char* digits) {
    const auto count = static_cast<int>(data + length - digits);
    const TextResult result = ParseText(digits, static_cast<size_t>(count));
    if (result.error != TextError::kNone)
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("invalid text form of an identifier: \"%s\"",
                               quoted(data, static_cast<size_t>(length))),
                        errdetail("%s", text_error_detail(digits, count, result))));
    return result.id;
}

SQL_FUNCTION(randflake_from_text) {
    const text* input = PG_GETARG_TEXT_PP(0);
    const char* data = VARDATA_ANY(input);
    const auto length = static_cast<int>(VARSIZE_ANY_EXHDR(input));
    PG_RETURN_INT64(static_cast<int64>(id_of_digits(data, length, data)));
}

static void require_prefix(const char* data, size_t length) {
    if (!IsPrefix(data, length))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("invalid prefix of identifiers: \"%s\"", quoted(data, length)),
                        errdetail("A prefix has 1 to %d characters, a to z and _, and begins and "
                                  "ends with a letter.",
                                  static_cast<int>(kMaxPrefixLength))));
}

text* prefixed_text_of_id(uint64 id, const text* prefix) {
    char buffer[kMaxPrefixLength + 1 + kMaxTextLength];
    const size_t length = VARSIZE_ANY_EXHDR(prefix);
    require_prefix(VARDATA_ANY(prefix), length);
    memcpy(buffer, VARDATA_ANY(prefix), length);
    buffer[length] = '_';
    const size_t digits = FormatText(id, buffer + length + 1);
    return cstring_to_text_with_len(buffer, static_cast<int>(length + 1 + digits));
}

SQL_FUNCTION(randflake_to_prefixed_text) {
    PG_RETURN_TEXT_P(
        prefixed_text_of_id(static_cast<uint64>(PG_GETARG_INT64(0)), PG_GETARG_TEXT_PP(1)));
}

SQL_FUNCTION(randflake_from_prefixed_text) {
    const text* input = PG_GETARG_TEXT_PP(0);
    const text* expected = PG_GETARG_TEXT_PP(1);
    const char* data = VARDATA_ANY(input);
    const size_t length = VARSIZE_ANY_EXHDR(input);
    const size_t prefix = VARSIZE_ANY_EXHDR(expected);
    require_prefix(VARDATA_ANY(expected), prefix);
    if (PrefixLength(data, length) != prefix || memcmp(data, VARDATA_ANY(expected), prefix) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                 errmsg("text form of an identifier does not have the prefix \"%.*s\": \"%s\"",
                        static_cast<int>(prefix), VARDATA_ANY(expected), quoted(data, length)),
                 errdetail("It must begin with \"%.*s_\".", static_cast<int>(prefix),
                           VARDATA_ANY(expected))));
    PG_RETURN_INT64(
        static_cast<int64>(id_of_digits(data, static_cast<int>(length), data + prefix + 1)));
}
