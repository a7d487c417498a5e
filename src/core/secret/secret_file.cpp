// Parses a file of secrets line by line, up to the first wrong line.

#include "core/secret/secret_file.h"

#include "core/base/assert.h"
#include "core/base/date_text.h"
#include "core/identifier/layout.h"

namespace randflake {
namespace {

constexpr size_t kSecretDigits = 2 * kKeyBytes;

bool TakeBlanks(TextLeft* text) {
    const char* before = text->at;
    while (text->Take(' ') || text->Take('\t')) {
    }
    return text->at != before;
}

// Reads Z, or a sign and then hh, hhmm or hh:mm. The result is in seconds east of Greenwich.
bool TakeOffset(TextLeft* text, int* offset) {
    *offset = 0;
    if (text->Take('Z') || text->Take('z')) return true;
    const bool west = text->Take('-');
    if (!west && !text->Take('+')) return false;
    int hours = 0, minutes = 0;
    if (!text->TakeNumber(2, &hours)) return false;
    if ((text->Take(':') || !text->empty()) && !text->TakeNumber(2, &minutes)) return false;
    if (hours > 23 || minutes > 59) return false;
    *offset = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
    return true;
}

// Reads a time that takes up the rest of the line.
SecretFileError ParseInstant(TextLeft text, Second* second) {
    std::chrono::sys_days date;
    TimeOfDay time;
    int offset;
    if (!TakeDate(&text, &date) || !(text.Take('T') || text.Take('t') || text.Take(' ')) ||
        !TakeTimeOfDay(&text, &time) || !time.has_seconds || !TakeOffset(&text, &offset) ||
        !text.empty())
        return SecretFileError::kMalformedTime;
    if (!time.on_second) return SecretFileError::kNotOnFullSecond;

    const UnixSecond instant{std::chrono::seconds(date.time_since_epoch()).count() + time.seconds -
                             offset};
    if (instant <= kWindowEpoch || instant >= ToUnix(kNoSecond))
        return SecretFileError::kTimeOutOfRange;
    *second = FromUnix(instant);
    RANDFLAKE_ASSERT(*second > Second{0} && *second < kNoSecond);
    return SecretFileError::kNone;
}

bool TakeWord(TextLeft* text, const char* word) {
    for (; *word != '\0'; word++)
        if (!text->Take(*word)) return false;
    return true;
}

// Parses a line that has no white space at its end and is neither blank nor a comment.
SecretFileError ParseLine(TextLeft line, const SecretList& before, Secret* secret) {
    RANDFLAKE_ASSERT(!line.empty() && before.count <= kMaxGenerations);
    if (before.count == kMaxGenerations) return SecretFileError::kTooMany;
    if (line.length() < kSecretDigits || !ParseKey(line.at, kSecretDigits, &secret->key))
        return SecretFileError::kNotASecret;
    line.at += kSecretDigits;
    secret->from = {};
    if (!line.empty() && !TakeBlanks(&line)) return SecretFileError::kNotASecret;
    if (before.count == 0)
        return line.empty() ? SecretFileError::kNone : SecretFileError::kTimeOfFirst;
    if (!TakeWord(&line, "from") || !TakeBlanks(&line)) return SecretFileError::kNoTime;
    if (const SecretFileError error = ParseInstant(line, &secret->from);
        error != SecretFileError::kNone)
        return error;
    if (secret->from <= before.secrets[before.count - 1].from)
        return SecretFileError::kTimeNotIncreasing;
    for (int i = 0; i < before.count; i++)
        if (before.secrets[i].key == secret->key) return SecretFileError::kRepeated;
    return SecretFileError::kNone;
}

}  // namespace

SecretFileResult ParseSecretFile(const char* text, size_t length, SecretList* list) noexcept {
    *list = SecretList{};
    const char* const end = text + length;
    int number = 0;
    for (const char* at = text; at != end;) {
        number++;
        TextLeft line{at, at};
        while (line.end != end && *line.end != '\n') line.end++;
        at = line.end == end ? end : line.end + 1;
        while (!line.empty() &&
               (line.end[-1] == ' ' || line.end[-1] == '\t' || line.end[-1] == '\r'))
            line.end--;
        if (line.empty() || *line.at == '#') continue;
        const SecretFileError error = ParseLine(line, *list, &list->secrets[list->count]);
        if (error != SecretFileError::kNone) return {error, number};
        list->count++;
    }
    RANDFLAKE_ASSERT(list->secrets[0].from == Second{0});
    return {list->count == 0 ? SecretFileError::kEmpty : SecretFileError::kNone, 0};
}

const char* SecretFileErrorText(SecretFileError error) noexcept {
    // In the order of SecretFileError.
    static constexpr const char* kTexts[] = {
        "There is no error.",
        "The file must hold a secret.",
        "A secret is exactly 32 hexadecimal digits.",
        "The first secret has no time.",
        "After the first, a secret is followed by \"from\" and a time.",
        "A time is written as in 2027-01-01T00:00:00Z, with its offset from UTC.",
        "A time must be a full second.",
        "A time must be one that identifiers can hold.",
        "A time must be later than that of the secret before.",
        "No secret may come twice.",
        "There may be at most 16 secrets.",
    };
    static_assert(std::size(kTexts) == static_cast<size_t>(SecretFileError::kTooMany) + 1);
    RANDFLAKE_ASSERT(static_cast<size_t>(error) < std::size(kTexts));
    return kTexts[static_cast<size_t>(error)];
}

}  // namespace randflake
