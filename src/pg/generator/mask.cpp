// Defines randflake_mask and randflake_unmask. Each label has its own permutation
// (core/identifier/feistel.h), whose key comes from the first secret. A session caches 64 keys.

#include "core/identifier/feistel.h"
#include "pg/base/sql_function.h"
#include "pg/identifier/text.h"
#include "pg/secret/secret.h"
#include "pg/server/require.h"

using namespace randflake;

namespace {
struct CachedKey {
    size_t length;  // of the label; 0: this entry is free
    char label[kMaxLabelBytes];
    SipKey key;
};
}  // namespace

// The cache takes 18 kB. The hash of a label selects the set that may hold its key.
static constexpr uint32 kSets = 16;
static constexpr uint32 kKeysOfSet = 4;
static CachedKey cached[kSets][kKeysOfSet];
static uint32 replaced[kSets];  // how many keys of each set were replaced so far
static const CachedKey* latest = &cached[0][0];

static const char* label_hint() {
    return "Use a fixed text that names what the numbers identify, as \"customer\".";
}

// With encoding SQL_ASCII, a label must be ASCII, because the label's encoding is unknown.
static bool is_text(const char* utf8, int length) {
    if (GetDatabaseEncoding() != PG_SQL_ASCII) return pg_verify_mbstr(PG_UTF8, utf8, length, true);
    for (int i = 0; i < length; i++)
        if (IS_HIGHBIT_SET(utf8[i])) return false;
    return true;
}

// Converts the label to UTF-8, so that it means the same in databases of all encodings. A label of
// more than 3 * kMaxLabelBytes bytes would be too long in UTF-8 too, so it need not be converted.
static SipKey derive_key(const char* label, size_t length) {
    const bool convertible = length <= 3 * kMaxLabelBytes && GetDatabaseEncoding() != PG_SQL_ASCII;
    const char* utf8 = label;
    size_t bytes = length;
    if (convertible) {
        utf8 = pg_server_to_any(label, static_cast<int>(length), PG_UTF8);
        bytes = utf8 == label ? length : strlen(utf8);
    }
    if (bytes == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("label of a mask is empty"), errhint("%s", label_hint())));
    if (bytes > kMaxLabelBytes)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("label of a mask is too long: \"%s\"", quoted(label, length)),
                        errdetail("It may have at most %d bytes in UTF-8.",
                                  static_cast<int>(kMaxLabelBytes)),
                        errhint("%s", label_hint())));
    if (!is_text(utf8, static_cast<int>(bytes)))
        ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
                        errmsg("label of a mask is not valid text"),
                        errdetail("It must be UTF-8, and ASCII in a database with the encoding "
                                  "SQL_ASCII."),
                        errhint("%s", label_hint())));
    return secret_permutation_key(0, "randflake mask", reinterpret_cast<const uint8*>(utf8), bytes);
}

static pg_noinline SipKey find_key(const char* label, size_t length) {
    if (length == 0 || length > kMaxLabelBytes) return derive_key(label, length);
    const uint32 set =
        hash_bytes(reinterpret_cast<const unsigned char*>(label), static_cast<int>(length)) % kSets;
    for (const CachedKey& known : cached[set])
        if (known.length == length && memcmp(known.label, label, length) == 0) {
            latest = &known;
            return known.key;
        }
    const SipKey key = derive_key(label, length);
    CachedKey& entry = cached[set][replaced[set]++ % kKeysOfSet];
    entry.length = length;
    memcpy(entry.label, label, length);
    entry.key = key;
    latest = &entry;
    return key;
}

static SipKey key_of_label(const text* label) {
    require_secret();
    const char* data = VARDATA_ANY(label);
    const size_t length = VARSIZE_ANY_EXHDR(label);
    if (likely(length != 0 && latest->length == length && memcmp(latest->label, data, length) == 0))
        return latest->key;
    return find_key(data, length);
}

static uint64 require_in_range(int64 number, const char* what, const char* hint) {
    if (number < 0 || static_cast<uint64>(number) > kMaxFeistel53)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s %lld is out of range", what, static_cast<long long>(number)),
                        errdetail("It must be from 0 to %llu.",
                                  static_cast<unsigned long long>(kMaxFeistel53)),
                        errhint("%s", hint)));
    return static_cast<uint64>(number);
}

SQL_FUNCTION(randflake_mask) {
    const SipKey key = key_of_label(PG_GETARG_TEXT_PP(1));
    const uint64 number = require_in_range(
        PG_GETARG_INT64(0), "number to mask",
        "Masks are for keys that count up. Identifiers that are random already need none.");
    PG_RETURN_INT64(static_cast<int64>(Feistel53::Permute(key, number)));
}

SQL_FUNCTION(randflake_unmask) {
    const SipKey key = key_of_label(PG_GETARG_TEXT_PP(1));
    const uint64 mask =
        require_in_range(PG_GETARG_INT64(0), "mask",
                         "No number has this mask: answer as for a row that does not exist.");
    PG_RETURN_INT64(static_cast<int64>(Feistel53::Unpermute(key, mask)));
}
