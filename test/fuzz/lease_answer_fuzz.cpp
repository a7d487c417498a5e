// The input selects parts of a coordinator's answer. LeaseAnswer must accept an answer if and only
// if one row of the expected types arrives, no row follows, and the connection is then idle.

#include "core/lease/lease_answer.h"
#include "fuzz.h"

namespace randflake {
namespace {

using Kind = AnswerPart::Kind;

constexpr AnswerShape kShapes[] = {
    {7,
     {AnswerType::kInt8, AnswerType::kInt4, AnswerType::kInt4, AnswerType::kInt8, AnswerType::kInt8,
      AnswerType::kInt8, AnswerType::kInt8},
     true},
    {3, {AnswerType::kInt8, AnswerType::kInt8, AnswerType::kInt8}, true},
    {1, {AnswerType::kVoid}, false}};

// Copies up to 31 bytes and a NUL into memory that has room for exactly these bytes.
struct Text {
    explicit Text(Input* input) {
        const auto head = input->Take<uint8_t>();
        null = head >= 0xe0;
        bytes = std::vector<char>(head % 32 + size_t{1});
        for (size_t i = 0; i < size(); i++) bytes[i] = static_cast<char>(input->Take<uint8_t>());
    }
    size_t size() const { return bytes.size() - 1; }
    const char* c_str() const { return null ? nullptr : bytes.data(); }

    bool null;
    std::vector<char> bytes;
};

// Parses with the C library to check LeaseAnswer, which uses std::from_chars.
bool IsNumber(const AnswerField& field, int64_t* value) {
    const std::string text(field.text, field.length);
    char* end;
    errno = 0;
    *value = strtoll(text.c_str(), &end, 10);
    const size_t digits = text.size() > 0 && text[0] == '-' ? 1 : 0;
    return errno == 0 && text.size() > digits && text[digits] >= '0' && text[digits] <= '9' &&
           end == text.c_str() + text.size();
}

bool Expected(const AnswerShape& shape, int count, const AnswerField* fields) {
    if (count != shape.columns) return false;
    for (int i = 0; i < count; i++) {
        const AnswerField& field = fields[i];
        const bool of_secrets = shape.tells_of_secrets && i == count - 1;
        int64_t value;
        if (field.type != shape.types[i] || field.binary || (field.null && !of_secrets))
            return false;
        if (field.type == AnswerType::kVoid ? field.length != 0
                                            : !field.null && !IsNumber(field, &value))
            return false;
        if (field.type == AnswerType::kInt4 && (value < INT32_MIN || value > INT32_MAX))
            return false;
        if (of_secrets && !field.null &&
            (value <= kWindowEpoch.count || value >= ToUnix(kNoSecond).count))
            return false;
    }
    return true;
}

void CheckSaid(const LeaseAnswer& answer) {
    Check(answer.differs_from() < kNoSecond);
    const bool said = answer.not_before() != UnixSecond{};
    Check(!said ||
          (answer.not_before() > kWindowEpoch && answer.not_before() <= ToUnix(kNoSecond)));
    const bool good = answer.verdict() == AnswerVerdict::kGood;
    Check(!good || (!answer.refused() && !said));
    Check(!answer.refused() || answer.verdict() == AnswerVerdict::kRefused ||
          answer.verdict() == AnswerVerdict::kSecrets);
    Check(!answer.tells_of_secrets() || good || answer.verdict() == AnswerVerdict::kSecrets);
}

}  // namespace

void Fuzz(const uint8_t* data, size_t size) {
    Input input(data, size);
    const AnswerShape& shape = kShapes[input.Take<uint8_t>() % 3];
    const bool idle = input.Take<uint8_t>() % 2 != 0;
    LeaseAnswer answer(shape);
    bool may_be_good = true;
    int taken = 0;
    for (bool more = true; more && taken < 5; taken++) {
        AnswerPart part{};
        part.kind = static_cast<Kind>(input.Take<uint8_t>() % 5);
        constexpr Kind kGood[] = {Kind::kRow, Kind::kRowsEnd, Kind::kNone};
        may_be_good &= taken < 3 && part.kind == kGood[taken < 3 ? taken : 0];
        if (part.kind == Kind::kRow) {
            part.field_count = input.Take<uint8_t>() % 9;
            const int count =
                part.field_count < kMaxAnswerColumns ? part.field_count : kMaxAnswerColumns;
            std::vector<AnswerField> fields(static_cast<size_t>(count));
            std::vector<Text> texts;
            for (int i = 0; i < count; i++) {
                const auto kind = input.Take<uint8_t>();
                const Text& text = texts.emplace_back(&input);
                // The field gets its expected type for seven of every eight values of `kind`.
                const AnswerType type = i < shape.columns && kind % 8 != 0
                                            ? shape.types[i]
                                            : static_cast<AnswerType>(kind / 8 % 4);
                fields[static_cast<size_t>(i)] = {type, kind >= 0xf0, text.null, text.bytes.data(),
                                                  text.size()};
            }
            part.fields = fields.data();
            may_be_good &= Expected(shape, part.field_count, fields.data());
            more = answer.Take(part);
        } else {
            const Text message(&input), sqlstate(&input), constraint(&input), column(&input);
            const bool usual = input.Take<uint8_t>() % 2 != 0;
            if (part.kind == Kind::kError) {
                part.message = message.c_str();
                part.sqlstate = usual ? "55000" : sqlstate.c_str();
                part.constraint =
                    usual && constraint.size() % 2 != 0 ? "secrets" : constraint.c_str();
                part.column = column.c_str();
            }
            more = answer.Take(part);
        }
        if (more) Check(answer.verdict() == AnswerVerdict::kBroken);
    }
    answer.End(idle);
    Check((answer.verdict() == AnswerVerdict::kGood) == (may_be_good && taken == 3 && idle));
    CheckSaid(answer);
}

}  // namespace randflake
