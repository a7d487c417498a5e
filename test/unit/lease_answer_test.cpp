// What counts as an answer of the coordinator, and what does not.

#include "core/lease/lease_answer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "printers.h"

namespace randflake {
namespace {

using Kind = AnswerPart::Kind;

constexpr int64_t kEpoch = kWindowEpoch.count;
constexpr AnswerShape kLease{3, {AnswerType::kInt8, AnswerType::kInt4, AnswerType::kInt8}, true};
constexpr AnswerShape kVoid{1, {AnswerType::kVoid}, false};

AnswerField Field(AnswerType type, const char* text) {
    return {type, false, text == nullptr, text != nullptr ? text : "",
            text != nullptr ? std::strlen(text) : 0};
}

std::vector<AnswerField> Fields(const char* id, const char* node, const char* lacks) {
    return {Field(AnswerType::kInt8, id), Field(AnswerType::kInt4, node),
            Field(AnswerType::kInt8, lacks)};
}

AnswerPart Row(const std::vector<AnswerField>& fields) {
    AnswerPart part{};
    part.kind = Kind::kRow;
    part.field_count = static_cast<int>(fields.size());
    part.fields = fields.data();
    return part;
}

AnswerPart Of(Kind kind) {
    AnswerPart part{};
    part.kind = kind;
    return part;
}

AnswerPart Error(const char* sqlstate, const char* column = nullptr,
                 const char* constraint = nullptr, const char* message = "because") {
    AnswerPart part{};
    part.kind = Kind::kError;
    part.message = message;
    part.sqlstate = sqlstate;
    part.column = column;
    part.constraint = constraint;
    return part;
}

LeaseAnswer Judge(const AnswerShape& shape, const std::vector<AnswerPart>& parts,
                  bool idle = true) {
    LeaseAnswer answer(shape);
    for (const AnswerPart& part : parts)
        if (!answer.Take(part))
            break;
    answer.End(idle);
    return answer;
}

LeaseAnswer JudgeRow(const std::vector<AnswerField>& fields, bool idle = true) {
    return Judge(kLease, {Row(fields), Of(Kind::kRowsEnd), Of(Kind::kNone)}, idle);
}

TEST(LeaseAnswer, OneRowThatIsCommitted) {
    const LeaseAnswer answer = JudgeRow(Fields("-9223372036854775808", "2147483647", nullptr));
    EXPECT_EQ(answer.verdict(), AnswerVerdict::kGood);
    EXPECT_EQ(answer.value(0), INT64_MIN);
    EXPECT_EQ(answer.value(1), INT32_MAX);
    EXPECT_TRUE(answer.tells_of_secrets());
    EXPECT_EQ(answer.differs_from(), 0u);
    EXPECT_FALSE(answer.refused());
    EXPECT_EQ(answer.not_before(), 0);
    EXPECT_EQ(
        Judge(kVoid, {Row({Field(AnswerType::kVoid, "")}), Of(Kind::kRowsEnd), Of(Kind::kNone)})
            .verdict(),
        AnswerVerdict::kGood);
}

TEST(LeaseAnswer, FromWhenOnTheHolderLacksASecret) {
    const std::string second = std::to_string(kEpoch + 70);
    const LeaseAnswer answer = JudgeRow(Fields("1", "2", second.c_str()));
    EXPECT_EQ(answer.verdict(), AnswerVerdict::kGood);
    EXPECT_TRUE(answer.tells_of_secrets());
    EXPECT_EQ(answer.differs_from(), 70u);
    for (const int64_t wrong : {int64_t{0}, int64_t{-1}, kEpoch, kEpoch + (int64_t{1} << 30)}) {
        const std::string text = std::to_string(wrong);
        EXPECT_EQ(JudgeRow(Fields("1", "2", text.c_str())).verdict(), AnswerVerdict::kNotExpected);
    }
    const std::string last = std::to_string(kEpoch + (1 << 30) - 1);
    EXPECT_EQ(JudgeRow(Fields("1", "2", last.c_str())).differs_from(), (1u << 30) - 1);
}

TEST(LeaseAnswer, ARowOfAnotherShape) {
    const auto expect_none = [](std::vector<AnswerField> fields) {
        const LeaseAnswer answer = JudgeRow(fields);
        EXPECT_EQ(answer.verdict(), AnswerVerdict::kNotExpected);
        EXPECT_FALSE(answer.tells_of_secrets());
    };
    expect_none({});
    expect_none({Field(AnswerType::kInt8, "1")});
    std::vector<AnswerField> fields = Fields("1", "2", nullptr);
    fields.push_back(fields[0]);
    expect_none(fields);
    expect_none(Fields(nullptr, "2", nullptr));
    expect_none(Fields("1", nullptr, nullptr));
    for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "leak", "9223372036854775808",
                             "-9223372036854775809"})
        expect_none(Fields(text, "2", nullptr));
    expect_none(Fields("1", "2147483648", nullptr));
    expect_none(Fields("1", "-2147483649", nullptr));
    fields = Fields("1", "2", nullptr);
    fields[0].binary = true;
    expect_none(fields);
    fields = Fields("1", "2", nullptr);
    fields[1].type = AnswerType::kInt8;
    expect_none(fields);
    fields = Fields("1\0", "2", nullptr);
    fields[0].length = 2;
    expect_none(fields);
    EXPECT_EQ(Judge(kVoid, {Row({Field(AnswerType::kVoid, "x")})}).verdict(),
              AnswerVerdict::kNotExpected);
}

TEST(LeaseAnswer, SomethingElseThanOneRow) {
    const std::vector<AnswerField> fields = Fields("1", "2", nullptr);
    const AnswerPart row = Row(fields), end = Of(Kind::kRowsEnd), none = Of(Kind::kNone);
    const std::vector<std::vector<AnswerPart>> all{
        {none},          {end},           {Of(Kind::kOther)},
        {row, row},      {row, none},     {row, Of(Kind::kOther)},
        {row, end, row}, {row, end, end}, {row, end, Of(Kind::kOther)}};
    for (const auto& parts : all) {
        const LeaseAnswer answer = Judge(kLease, parts);
        EXPECT_EQ(answer.verdict(), AnswerVerdict::kNotOneRow);
        EXPECT_FALSE(answer.tells_of_secrets());
    }
}

TEST(LeaseAnswer, ARowThatIsNotCommitted) {
    const LeaseAnswer answer = JudgeRow(Fields("1", "2", nullptr), false);
    EXPECT_EQ(answer.verdict(), AnswerVerdict::kNotCommitted);
    EXPECT_FALSE(answer.tells_of_secrets());
    const std::vector<AnswerField> fields = Fields("1", "2", nullptr);
    EXPECT_EQ(Judge(kLease, {Row(fields), Error("40001")}).verdict(), AnswerVerdict::kError);
    EXPECT_EQ(Judge(kLease, {Row(fields), Of(Kind::kRowsEnd), Error("40001")}).verdict(),
              AnswerVerdict::kError);
    EXPECT_EQ(Judge(kLease, {Row(fields)}).verdict(), AnswerVerdict::kBroken) << "it broke off";
    EXPECT_EQ(Judge(kLease, {}).verdict(), AnswerVerdict::kBroken);
}

TEST(LeaseAnswer, Refusals) {
    EXPECT_TRUE(Judge(kLease, {Error("55000")}).refused());
    EXPECT_EQ(Judge(kLease, {Error("55000")}).verdict(), AnswerVerdict::kRefused);
    const std::string soon = std::to_string(kEpoch + 5);
    for (const char* state : {"55000", "53400"}) {
        const LeaseAnswer answer = Judge(kLease, {Error(state, soon.c_str())});
        EXPECT_EQ(answer.verdict(), AnswerVerdict::kRefused);
        EXPECT_TRUE(answer.refused());
        EXPECT_EQ(answer.not_before(), kEpoch + 5);
    }
    EXPECT_EQ(Judge(kLease, {Error("53400")}).verdict(), AnswerVerdict::kError);
    EXPECT_FALSE(Judge(kLease, {Error("53400")}).refused());
    const LeaseAnswer other = Judge(kLease, {Error("57P03", soon.c_str())});
    EXPECT_EQ(other.verdict(), AnswerVerdict::kError);
    EXPECT_FALSE(other.refused());
    EXPECT_EQ(other.not_before(), 0);
    for (const char* text : {"", "0", "leak", " 1790000000", "1730000000", "2803741825"})
        EXPECT_EQ(Judge(kLease, {Error("55000", text)}).not_before(), 0) << text;
    EXPECT_EQ(Judge(kLease, {Error("55000", "2803741824")}).not_before(), 2803741824);
    EXPECT_EQ(Judge(kLease, {Error(nullptr)}).verdict(), AnswerVerdict::kBroken);
    EXPECT_EQ(Judge(kLease, {Error("55000", nullptr, nullptr, nullptr)}).verdict(),
              AnswerVerdict::kBroken);
}

TEST(LeaseAnswer, RefusalsAboutSecrets) {
    const std::string from = std::to_string(kEpoch + 5);
    for (const char* state : {"55000", "57P03"}) {
        const LeaseAnswer answer = Judge(kLease, {Error(state, from.c_str(), "secrets")});
        EXPECT_EQ(answer.verdict(), AnswerVerdict::kSecrets);
        EXPECT_EQ(answer.refused(), std::string(state) == "55000");
        EXPECT_TRUE(answer.tells_of_secrets());
        EXPECT_EQ(answer.differs_from(), 5u);
        EXPECT_EQ(answer.not_before(), 0);
    }
    for (const char* column :
         {static_cast<const char*>(nullptr), "", "leak", "1730000000", "2803741824"}) {
        const LeaseAnswer answer = Judge(kLease, {Error("55000", column, "secrets")});
        EXPECT_EQ(answer.verdict(), AnswerVerdict::kSecrets);
        EXPECT_FALSE(answer.tells_of_secrets()) << "it does not say";
    }
}

}  // namespace
}  // namespace randflake
