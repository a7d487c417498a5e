// Parses a description piece by piece. An error reports the position of the invalid piece.

#include "core/identifier/layout_text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/date_text.h"

namespace randflake {
namespace {

// Holds a part of the text, without blanks at its ends. Each function removes what it reads.
struct Piece : TextLeft {
    explicit Piece(const TextLeft& text) : TextLeft(text) { Trim(); }

    bool Is(const char* word) const {
        return length() == std::strlen(word) && std::memcmp(at, word, length()) == 0;
    }
    bool Contains(char c) const { return std::memchr(at, c, length()) != nullptr; }

    // Removes and returns the part before the first `separator`, or the whole text if it has none.
    Piece CutAt(char separator) {
        const void* found = std::memchr(at, separator, length());
        const char* middle = found == nullptr ? end : static_cast<const char*>(found);
        const Piece part(TextLeft{at, middle});
        at = found == nullptr ? end : middle + 1;
        Trim();
        return part;
    }

    // Reads a number of 1 to `most` digits.
    bool TakeUpTo(int most, int64_t* number) {
        const auto [after, error] = std::from_chars(at, end, *number);
        if (error != std::errc{} || *at == '-' || after - at > most) return false;
        at = after;
        return true;
    }

    bool IsNumber(int most, int64_t* number) { return TakeUpTo(most, number) && empty(); }

private:
    static bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
    void Trim() {
        while (at < end && IsBlank(*at)) at++;
        while (end > at && IsBlank(end[-1])) end--;
    }
};

using std::chrono::milliseconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

// A later epoch has a year of more than four digits, or a year that <chrono> cannot represent, so
// it is written as a number.
constexpr sys_days kLastDate = std::chrono::year(9999) / 12 / 31;

// Reads [T]hh:mm[:ss[.fff]] as milliseconds of the day.
bool TakeMsOfDay(Piece* text, int64_t* of_day) {
    TimeOfDay time;
    if ((!text->Take('T') && !text->Take(' ')) || !TakeTimeOfDay(text, &time) ||
        time.fraction_digits > 3)
        return false;
    *of_day = time.seconds * kSecondMs + time.fraction_ms;
    return true;
}

// Refuses an epoch before 1970. No known generator has such an epoch.
bool ParseEpoch(Piece text, int64_t* epoch) {
    if (Piece number = text; number.IsNumber(15, epoch)) return true;
    sys_days date;
    int64_t of_day = 0;
    if (!TakeDate(&text, &date) || date < sys_days{}) return false;
    if (!text.empty() && !text.Is("Z") && !TakeMsOfDay(&text, &of_day)) return false;
    (void)text.Take('Z');
    *epoch = milliseconds(date.time_since_epoch()).count() + of_day;
    return text.empty();
}

LayoutError ParseUnit(Piece text, int64_t* unit) {
    if (!text.TakeUpTo(9, unit)) return LayoutError::kBadUnit;
    if (text = Piece(text); text.Is("s"))
        *unit *= kSecondMs;
    else if (!text.Is("ms"))
        return LayoutError::kBadUnit;
    return *unit >= 1 && kSecondMs % *unit == 0 ? LayoutError::kNone
                                                : LayoutError::kUnitNotInSecond;
}

enum Part { kTime, kNode, kSequence, kEpoch, kParts };
constexpr const char* kPartNames[] = {"time", "node", "sequence", "epoch"};

struct Description {
    bool given[kParts]{};
    Part order[kParts]{};  // as given
    int count = 0;
    int64_t bits[kParts]{};
    int64_t unit = 0;
    int64_t epoch = 0;
};

LayoutError ParseValue(Part part, Piece value, Description* description) {
    if (part == kEpoch)
        return ParseEpoch(value, &description->epoch) ? LayoutError::kNone : LayoutError::kBadEpoch;
    int64_t& bits = description->bits[part];
    const bool has_unit = value.Contains(':');
    if (!value.CutAt(':').IsNumber(3, &bits)) return LayoutError::kBadWidth;
    if (part == kTime) {
        if (!has_unit) return LayoutError::kBadUnit;
        if (const LayoutError error = ParseUnit(value, &description->unit);
            error != LayoutError::kNone)
            return error;
    } else if (has_unit) {
        return LayoutError::kBadWidth;
    } else if (bits > kMaxFieldBits) {
        return LayoutError::kFieldTooWide;
    }
    return bits < 1 && part != kNode ? LayoutError::kNoBits : LayoutError::kNone;
}

LayoutError ParseField(Piece field, Description* description) {
    if (!field.Contains('=')) return LayoutError::kNotAField;
    const Piece name = field.CutAt('=');
    int part = 0;
    while (part < kParts && !name.Is(kPartNames[part])) part++;
    if (part == kParts) return LayoutError::kUnknownField;
    if (description->given[part]) return LayoutError::kRepeatedField;
    description->given[part] = true;
    description->order[description->count++] = static_cast<Part>(part);
    return ParseValue(static_cast<Part>(part), field, description);
}

LayoutError Assemble(const Description& description, Layout* layout) {
    if (description.count != kParts) return LayoutError::kMissingField;
    RANDFLAKE_ASSERT(description.unit >= 1 && kSecondMs % description.unit == 0);
    int shifts[kParts] = {};
    int64_t below = 0;
    for (int i = kParts - 1; i >= 0; i--) {
        const Part part = description.order[i];
        shifts[part] = static_cast<int>(below);
        below += description.bits[part];
    }
    if (below > kMaxLayoutBits) return LayoutError::kTooManyBits;
    if (description.epoch % description.unit != 0) return LayoutError::kEpochNotOnTick;
    const int64_t ticks = int64_t{1} << description.bits[kTime];
    if (ticks > (kMaxLayoutEndMs - description.epoch) / description.unit)
        return LayoutError::kTooLong;
    *layout = {description.epoch,
               static_cast<int>(description.bits[kTime]),
               static_cast<int>(description.bits[kNode]),
               static_cast<int>(description.bits[kSequence]),
               description.unit,
               shifts[kTime],
               shifts[kNode],
               shifts[kSequence]};
    RANDFLAKE_ASSERT(layout->tiles_seconds() && layout->bits() <= kMaxLayoutBits);
    RANDFLAKE_ASSERT(layout->sequence_bits >= 1 && layout->sequence_bits <= kMaxFieldBits);
    return LayoutError::kNone;
}

}  // namespace

const char* LayoutErrorText(LayoutError error) noexcept {
    // In the order of LayoutError.
    static constexpr const char* kTexts[] = {
        "There is no error",
        "It is empty",
        "It is neither the name of a layout nor a description of one",
        "A field of a description has a name, an equals sign and a value",
        "The fields are time, node, sequence and epoch",
        "A field may be given once only",
        "Each of time, node, sequence and epoch must be given",
        "A width is a number of bits",
        "The width of time is followed by a colon and a unit in ms or s, as in 41:1ms",
        "The unit of time must divide one second, as 1 ms, 10 ms or 1 s does",
        "The epoch must be a multiple of the unit of time",
        "Time and sequence must have at least 1 bit each",
        "Node id and sequence may have at most 31 bits each",
        "Time, node id and sequence may have at most 63 bits together",
        ("The epoch is a date from 1970 on, a timestamp in UTC or a number of Unix "
         "milliseconds"),
        "Its last time would be after the year 294276",
    };
    static_assert(std::size(kTexts) == static_cast<size_t>(LayoutError::kTooLong) + 1);
    RANDFLAKE_ASSERT(static_cast<size_t>(error) < std::size(kTexts));
    return kTexts[static_cast<size_t>(error)];
}

LayoutResult ParseLayout(const char* text, size_t length) noexcept {
    Piece rest(TextLeft{text, text + length});
    LayoutResult result{LayoutError::kNone, kRandflake, 0, 0};
    if (rest.empty()) {
        result.error = LayoutError::kEmpty;
        return result;
    }
    for (const NamedLayout& named : kNamedLayouts)
        if (rest.Is(named.name)) {
            result.layout = named.layout;
            return result;
        }
    if (!rest.Contains('=')) {
        result.error = LayoutError::kUnknownName;
        return result;
    }

    Description description;
    for (bool more = true; more && result.error == LayoutError::kNone;) {
        more = rest.Contains(',');
        const Piece field = rest.CutAt(',');
        result.error = ParseField(field, &description);
        result.position = static_cast<size_t>(field.at - text);
        result.length = field.length();
    }
    if (result.error == LayoutError::kNone) {
        result.length = 0;
        result.error = Assemble(description, &result.layout);
    }
    return result;
}

void FormatLayout(const Layout& layout, char buffer[kMaxLayoutText]) noexcept {
    // Orders the fields from the top bit down. If shifts are equal, a field without bits is last.
    struct Entry {
        int shift, bits;
        const char* name;
    } entries[] = {{layout.timestamp_shift, layout.timestamp_bits, "time"},
                   {layout.node_shift, layout.node_bits, "node"},
                   {layout.sequence_shift, layout.sequence_bits, "sequence"}};
    const auto above = [](const Entry& a, const Entry& b) {
        return a.shift != b.shift ? a.shift > b.shift : a.bits > b.bits;
    };
    std::ranges::sort(entries, above);

    size_t used = 0;
    const auto append = [&](const char* format, auto... values) {
        used += static_cast<size_t>(
            std::snprintf(buffer + used, kMaxLayoutText - used, format, values...));
    };
    for (const Entry& entry : entries) {
        append("%s%s=%d", used > 0 ? ", " : "", entry.name, entry.bits);
        if (entry.name[0] == 't' && layout.unit % kSecondMs == 0)
            append(":%llds", static_cast<long long>(layout.unit / kSecondMs));
        else if (entry.name[0] == 't')
            append(":%lldms", static_cast<long long>(layout.unit));
    }

    const int64_t day = FloorDivide(layout.epoch, 24 * 3600 * kSecondMs);
    if (day > kLastDate.time_since_epoch().count()) {
        append(", epoch=%lld", static_cast<long long>(layout.epoch));
        return;
    }
    const auto of_day = static_cast<int>(layout.epoch - day * 24 * 3600 * kSecondMs);
    const year_month_day date{sys_days(std::chrono::days(static_cast<int>(day)))};
    append(", epoch=%04d-%02u-%02u", static_cast<int>(date.year()),
           static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
    if (of_day != 0)
        append(" %02d:%02d:%02d", of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60);
    if (of_day % 1000 != 0) append(".%03d", of_day % 1000);
    RANDFLAKE_ASSERT(used < kMaxLayoutText && ParseLayout(buffer, used).layout == layout);
}

}  // namespace randflake
