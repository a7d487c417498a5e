// Reads dates and times of day in ISO notation.

#pragma once

#include <chrono>
#include <cstddef>

#include "core/base/assert.h"

namespace randflake {

// Holds the unread rest of a text. Its functions read from the front.
struct TextLeft {
    const char* at = nullptr;
    const char* end = nullptr;

    bool empty() const { return at == end; }
    size_t length() const { return static_cast<size_t>(end - at); }

    bool Take(char wanted) {
        if (empty() || *at != wanted) return false;
        at++;
        return true;
    }

    bool TakeNumber(int digits, int* number) {
        RANDFLAKE_ASSERT(digits >= 1 && digits <= 9);
        int value = 0;
        for (int i = 0; i < digits; i++) {
            if (empty() || *at < '0' || *at > '9') return false;
            value = value * 10 + (*at++ - '0');
        }
        *number = value;
        return true;
    }
};

// Parses a date yyyy-mm-dd of the Gregorian calendar, in the year 1 or later.
inline bool TakeDate(TextLeft* text, std::chrono::sys_days* date) {
    int year, month, day;
    if (!text->TakeNumber(4, &year) || !text->Take('-') || !text->TakeNumber(2, &month) ||
        !text->Take('-') || !text->TakeNumber(2, &day))
        return false;
    const std::chrono::year_month_day taken{std::chrono::year(year),
                                            std::chrono::month(static_cast<unsigned>(month)),
                                            std::chrono::day(static_cast<unsigned>(day))};
    *date = taken;
    return year >= 1 && taken.ok();
}

struct TimeOfDay {
    int seconds;
    bool has_seconds;     // the text contains seconds
    int fraction_digits;  // the number of digits after the point
    int fraction_ms;      // from the first three digits
    bool on_second;       // all digits of the fraction are zero
};

// Takes hh:mm[:ss[.fraction]].
inline bool TakeTimeOfDay(TextLeft* text, TimeOfDay* time) {
    int hour, minute, second = 0;
    if (!text->TakeNumber(2, &hour) || !text->Take(':') || !text->TakeNumber(2, &minute))
        return false;
    *time = {0, text->Take(':'), 0, 0, true};
    if (time->has_seconds && !text->TakeNumber(2, &second)) return false;
    if (time->has_seconds && text->Take('.')) {
        int unit_ms = 100;
        for (int digit; text->TakeNumber(1, &digit); unit_ms /= 10) {
            time->fraction_digits++;
            time->fraction_ms += digit * unit_ms;
            time->on_second &= digit == 0;
        }
        if (time->fraction_digits == 0) return false;
    }
    time->seconds = (hour * 60 + minute) * 60 + second;
    return hour < 24 && minute < 60 && second < 60;
}

}  // namespace randflake
