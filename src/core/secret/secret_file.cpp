#include "core/secret/secret_file.h"

#include "core/identifier/layout.h"

namespace randflake {
namespace {

constexpr size_t kSecretDigits = 2 * kKeyBytes;
constexpr int64_t kSecondsPerDay = 86400;

// What is left of a line.
struct Text {
    const char* at;
    const char* end;

    bool empty() const { return at == end; }
    size_t length() const { return static_cast<size_t>(end - at); }

    bool Take(char wanted) {
        if (empty() || *at != wanted)
            return false;
        at++;
        return true;
    }

    // Exactly so many decimal digits.
    bool TakeNumber(int digits, int* number) {
        int value = 0;
        for (int i = 0; i < digits; i++) {
            if (empty() || *at < '0' || *at > '9')
                return false;
            value = value * 10 + (*at++ - '0');
        }
        *number = value;
        return true;
    }

    // At least one.
    bool TakeBlanks() {
        const char* before = at;
        while (!empty() && (*at == ' ' || *at == '\t'))
            at++;
        return at != before;
    }
};

constexpr bool IsLeapYear(int year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

constexpr int DaysOfMonth(int year, int month) {
    constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && IsLeapYear(year) ? 29 : kDays[month - 1];
}

// Days from 1970-01-01 on, of the Gregorian calendar.
constexpr int64_t DaysOfDate(int year, int month, int day) {
    constexpr auto before = [](int y) {  // days of the years 1 .. y - 1
        return int64_t{365} * (y - 1) + (y - 1) / 4 - (y - 1) / 100 + (y - 1) / 400;
    };
    int64_t days = before(year) - before(1970);
    for (int m = 1; m < month; m++)
        days += DaysOfMonth(year, m);
    return days + day - 1;
}
static_assert(DaysOfDate(1970, 1, 1) == 0);
static_assert(DaysOfDate(2024, 10, 27) == kWindowEpoch.count / kSecondsPerDay);

// Z, +hh, +hhmm or +hh:mm, or the same with a minus sign; in seconds east of Greenwich.
bool TakeOffset(Text* text, int* offset) {
    *offset = 0;
    if (text->Take('Z') || text->Take('z'))
        return true;
    const bool west = text->Take('-');
    if (!west && !text->Take('+'))
        return false;
    int hours = 0, minutes = 0;
    if (!text->TakeNumber(2, &hours))
        return false;
    if ((text->Take(':') || !text->empty()) && !text->TakeNumber(2, &minutes))
        return false;
    if (hours > 23 || minutes > 59)
        return false;
    *offset = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
    return true;
}

// An instant to the end of the line.
SecretFileError ParseInstant(Text text, Second* second) {
    int year, month, day, hour, minute, second_of_minute, offset;
    if (!text.TakeNumber(4, &year) || !text.Take('-') || !text.TakeNumber(2, &month) ||
        !text.Take('-') || !text.TakeNumber(2, &day) ||
        !(text.Take('T') || text.Take('t') || text.Take(' ')) || !text.TakeNumber(2, &hour) ||
        !text.Take(':') || !text.TakeNumber(2, &minute) || !text.Take(':') ||
        !text.TakeNumber(2, &second_of_minute))
        return SecretFileError::kMalformedTime;
    bool on_second = true;
    if (text.Take('.')) {
        int digit;
        if (!text.TakeNumber(1, &digit))
            return SecretFileError::kMalformedTime;
        do
            on_second &= digit == 0;
        while (text.TakeNumber(1, &digit));
    }
    if (!TakeOffset(&text, &offset) || !text.empty())
        return SecretFileError::kMalformedTime;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > DaysOfMonth(year, month) ||
        hour > 23 || minute > 59 || second_of_minute > 59)
        return SecretFileError::kMalformedTime;
    if (!on_second)
        return SecretFileError::kNotOnFullSecond;

    const UnixSecond instant{DaysOfDate(year, month, day) * kSecondsPerDay + hour * 3600 +
                             minute * 60 + second_of_minute - offset};
    if (instant <= kWindowEpoch || instant >= ToUnix(SecondsEnd(kRandflake)))
        return SecretFileError::kTimeOutOfRange;
    *second = FromUnix(instant);
    return SecretFileError::kNone;
}

bool TakeWord(Text* text, const char* word) {
    for (; *word != '\0'; word++)
        if (!text->Take(*word))
            return false;
    return true;
}

// A line that is neither blank nor a comment, without white space at its end.
SecretFileError ParseLine(Text line, const SecretList& before, Secret* secret) {
    if (before.count == kMaxGenerations)
        return SecretFileError::kTooMany;
    if (line.length() < kSecretDigits || !ParseKey(line.at, kSecretDigits, &secret->key))
        return SecretFileError::kNotASecret;
    line.at += kSecretDigits;
    secret->from = {};
    if (!line.empty() && !line.TakeBlanks())
        return SecretFileError::kNotASecret;
    if (before.count == 0)
        return line.empty() ? SecretFileError::kNone : SecretFileError::kTimeOfFirst;
    if (!TakeWord(&line, "from") || !line.TakeBlanks())
        return SecretFileError::kNoTime;
    if (const SecretFileError error = ParseInstant(line, &secret->from);
        error != SecretFileError::kNone)
        return error;
    if (secret->from <= before.secrets[before.count - 1].from)
        return SecretFileError::kTimeNotIncreasing;
    for (int i = 0; i < before.count; i++)
        if (before.secrets[i].key == secret->key)
            return SecretFileError::kRepeated;
    return SecretFileError::kNone;
}

}  // namespace

SecretFileResult ParseSecretFile(const char* text, size_t length, SecretList* list) noexcept {
    *list = SecretList{};
    const char* const end = text + length;
    int number = 0;
    for (const char* at = text; at != end;) {
        number++;
        Text line{at, at};
        while (line.end != end && *line.end != '\n')
            line.end++;
        at = line.end == end ? end : line.end + 1;
        while (!line.empty() &&
               (line.end[-1] == ' ' || line.end[-1] == '\t' || line.end[-1] == '\r'))
            line.end--;
        if (line.empty() || *line.at == '#')
            continue;
        const SecretFileError error = ParseLine(line, *list, &list->secrets[list->count]);
        if (error != SecretFileError::kNone)
            return {error, number};
        list->count++;
    }
    return {list->count == 0 ? SecretFileError::kEmpty : SecretFileError::kNone, 0};
}

const char* SecretFileErrorText(SecretFileError error) noexcept {
    switch (error) {
        case SecretFileError::kNone:
            break;
        case SecretFileError::kEmpty:
            return "The file must hold a secret.";
        case SecretFileError::kNotASecret:
            return "A secret is exactly 32 hexadecimal digits.";
        case SecretFileError::kTimeOfFirst:
            return "The first secret has no time.";
        case SecretFileError::kNoTime:
            return "After the first, a secret is followed by \"from\" and a time.";
        case SecretFileError::kMalformedTime:
            return "A time is written as in 2027-01-01T00:00:00Z, with its offset from UTC.";
        case SecretFileError::kNotOnFullSecond:
            return "A time must be a full second.";
        case SecretFileError::kTimeOutOfRange:
            return "A time must be one that identifiers can hold.";
        case SecretFileError::kTimeNotIncreasing:
            return "A time must be later than that of the secret before.";
        case SecretFileError::kRepeated:
            return "No secret may come twice.";
        case SecretFileError::kTooMany:
            return "There may be at most 16 secrets.";
    }
    return "There is no error.";
}

}  // namespace randflake
