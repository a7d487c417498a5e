// Prints the core's types, and makes numbers and keys from readable values.

#pragma once

#include "core/generator/generator.h"
#include "core/identifier/cipher.h"
#include "core/identifier/layout.h"
#include "core/secret/secret_records.h"
#include "test.h"

namespace randflake {

template <typename Kind, typename Length>
std::ostream& operator<<(std::ostream& out, const Time<Kind, Length>& time) {
    return out << time.count;
}

template <typename Kind, typename Length>
constexpr bool operator==(const Time<Kind, Length>& time, int64_t number) {
    return time.count == number;
}
template <typename Kind, typename Length>
constexpr auto operator<=>(const Time<Kind, Length>& time, int64_t number) {
    return time.count <=> number;
}

// Returns the fields as text: timestamp, node id and sequence.
inline std::string FieldsText(const Fields& fields) {
    std::ostringstream out;
    out << fields.timestamp << '/' << fields.node_id << '/' << fields.sequence;
    return out.str();
}
inline void PrintTo(const Fields& fields, std::ostream* out) { *out << FieldsText(fields); }

inline uint64_t Packed(const Layout& layout, const Fields& fields) {
    uint64_t raw = 0;
    EXPECT_TRUE(layout.Pack(fields, &raw)) << FieldsText(fields);
    return raw;
}

inline Key KeyOf(const std::string& hex) {
    Key key{};
    EXPECT_TRUE(ParseKey(hex.data(), hex.size(), &key)) << hex;
    return key;
}

inline void PrintTo(const Window& window, std::ostream* out) {
    *out << "[" << window.start.count << ", " << window.end.count << ")";
}

inline void PrintTo(Outcome outcome, std::ostream* out) {
    static constexpr const char* kNames[] = {
        "reserved",      "exhausted", "clock behind",  "clock before epoch", "clock after end",
        "window closed", "no word",   "before window", "window ended",       "not in layout"};
    *out << kNames[static_cast<int>(outcome)];
}

// Parses a ring or a table's rows from a text such as "A B100 C200". Each letter is a fingerprint,
// and the number after it is the secret's first second.
inline std::vector<SecretRecord> Records(const std::string& text) {
    std::vector<SecretRecord> records;
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] == ' ') continue;
        SecretRecord record{static_cast<uint64_t>(text[i]), {}};
        for (; i + 1 < text.size() && text[i + 1] != ' '; i++)
            record.from = {10 * record.from.count + (text[i + 1] - '0')};
        records.push_back(record);
    }
    return records;
}

inline SecretRecords RingOf(const std::string& text) {
    SecretRecords ring{};
    for (const SecretRecord& record : Records(text)) ring.records[ring.count++] = record;
    return ring;
}

}  // namespace randflake
