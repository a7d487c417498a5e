// Judges an answer part by part, as libpq returns it. The first wrong part decides the verdict.

#include "core/lease/lease_answer.h"

#include <charconv>
#include <cstring>

namespace randflake {
namespace {

// The coordinator's functions refuse a request with the error object_not_in_prerequisite_state.
// Other errors, such as those of a standby or a full disk, do not affect the lease.
constexpr char kRefusal[] = "55000";
// If the coordinator disagrees about the secrets, its error has this constraint name.
constexpr char kAboutSecrets[] = "secrets";
// configuration_limit_exceeded means that no node id is free. The error says when one will be free.
constexpr char kNoneFree[] = "53400";

// Reads a number that consists of digits only.
bool ReadInteger(const char* text, size_t length, int64_t* value) {
    const auto [read_to, error] = std::from_chars(text, text + length, *value);
    return read_to == text + length && error == std::errc{};
}

// Reads a Unix second and converts it to the server's seconds. Returns 0 if `text` is null or not
// a number, or if the result is not in 1 .. latest.
Second ReadSecond(const char* text, Second latest) {
    UnixSecond second{};
    const bool valid = text != nullptr && ReadInteger(text, std::strlen(text), &second.count) &&
                       second > kWindowEpoch && second <= ToUnix(latest);
    return valid ? FromUnix(second) : Second{0};
}

bool Is(const char* text, const char* expected) {
    return text != nullptr && std::strcmp(text, expected) == 0;
}

}  // namespace

bool LeaseAnswer::Fail(AnswerVerdict verdict) noexcept {
    RANDFLAKE_ASSERT(verdict != AnswerVerdict::kGood);
    verdict_ = verdict;
    return false;
}

bool LeaseAnswer::ReadRow(const AnswerPart& part) noexcept {
    if (part.field_count != shape_.columns) return false;
    for (int i = 0; i < shape_.columns; i++) {
        const AnswerField& field = part.fields[i];
        RANDFLAKE_ASSERT(field.null || field.text != nullptr);
        int64_t& value = values_[i];
        if (field.type != shape_.types[i] || field.binary) return false;
        const bool of_secrets = shape_.tells_of_secrets && i == shape_.columns - 1;
        if (field.null && of_secrets) continue;
        if (field.null) return false;
        if (field.type == AnswerType::kVoid) {
            if (field.length != 0) return false;
            continue;
        }
        if (!ReadInteger(field.text, field.length, &value) ||
            (field.type == AnswerType::kInt4 && (value < INT32_MIN || value > INT32_MAX)))
            return false;
        if (of_secrets) {
            const UnixSecond lacks_from{value};
            if (lacks_from <= kWindowEpoch || lacks_from >= ToUnix(SecondsEnd(kRandflake)))
                return false;
            differs_from_ = FromUnix(lacks_from);
        }
    }
    return true;
}

// The column field of an error is a Unix second. In an error about secrets, it is the second from
// which the holder lacks a secret. In a refusal, it is the second before which the coordinator
// grants nothing.
void LeaseAnswer::ReadError(const AnswerPart& part) noexcept {
    if (part.message == nullptr || part.sqlstate == nullptr) return;
    const Second latest = SecondsEnd(kRandflake);
    refused_ = Is(part.sqlstate, kRefusal);
    if (Is(part.constraint, kAboutSecrets)) {
        differs_from_ = ReadSecond(part.column, latest - 1);
        tells_ = differs_from_ != Second{0};
        verdict_ = AnswerVerdict::kSecrets;
        return;
    }
    if (refused_ || Is(part.sqlstate, kNoneFree))
        if (const Second second = ReadSecond(part.column, latest); second != Second{0})
            not_before_ = ToUnix(second);
    // PostgreSQL itself also raises kNoneFree, but never with a column field.
    refused_ |= not_before_ != UnixSecond{0};
    verdict_ = refused_ ? AnswerVerdict::kRefused : AnswerVerdict::kError;
}

bool LeaseAnswer::Take(const AnswerPart& part) noexcept {
    static constexpr AnswerPart::Kind kExpected[] = {
        AnswerPart::Kind::kRow, AnswerPart::Kind::kRowsEnd, AnswerPart::Kind::kNone};
    if (part.kind == AnswerPart::Kind::kError) {
        ReadError(part);
        return false;
    }
    if (parts_ == 3 || part.kind != kExpected[parts_]) return Fail(AnswerVerdict::kNotOneRow);
    if (parts_ == 0 && !ReadRow(part)) return Fail(AnswerVerdict::kNotExpected);
    return ++parts_ < 3;
}

void LeaseAnswer::End(bool idle) noexcept {
    if (parts_ < 3) return;
    verdict_ = idle ? AnswerVerdict::kGood : AnswerVerdict::kNotCommitted;
    RANDFLAKE_ASSERT(!refused_);
    tells_ = idle && shape_.tells_of_secrets;
}

}  // namespace randflake
