#include "core/lease/lease_answer.h"
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
    return {Kind::kRow, static_cast<int>(fields.size()), fields.data(), {}, {}, {}, {}};
}

AnswerPart Of(Kind kind) { return {kind, 0, {}, {}, {}, {}, {}}; }

AnswerPart Error(const char* sqlstate, const char* column = nullptr,
                 const char* constraint = nullptr, const char* message = "because") {
    return {Kind::kError, 0, {}, message, sqlstate, constraint, column};
}

LeaseAnswer Judge(const AnswerShape& shape, const std::vector<AnswerPart>& parts,
                  bool idle = true) {
    LeaseAnswer answer(shape);
    for (const AnswerPart& part : parts)
        if (!answer.Take(part)) break;
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
    const std::vector<AnswerField> good = Fields("1", "2", nullptr);
    std::vector<AnswerField> longer = good, binary = good, wider = good, with_nul = good;
    longer.push_back(good[0]);
    binary[0].binary = true;
    wider[1].type = AnswerType::kInt8;
    with_nul[0] = {AnswerType::kInt8, false, false, "1\0", 2};
    for (const auto& fields : {longer, binary, wider, with_nul}) expect_none(fields);
    expect_none(Fields(nullptr, "2", nullptr));
    expect_none(Fields("1", nullptr, nullptr));
    for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "leak", "9223372036854775808",
                             "-9223372036854775809"})
        expect_none(Fields(text, "2", nullptr));
    expect_none(Fields("1", "2147483648", nullptr));
    expect_none(Fields("1", "-2147483649", nullptr));
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
    using enum AnswerVerdict;
    constexpr const char *kNone = nullptr, *kSoon = "1730000005";
    const struct {
        const char *sqlstate, *column, *constraint;
        AnswerVerdict verdict;
        bool refused;
        int64_t not_before = 0, differs_from = 0;
    } cases[] = {
        {"55000", kNone, kNone, kRefused, true},
        {"55000", kSoon, kNone, kRefused, true, kEpoch + 5},
        {"55000", "2803741824", kNone, kRefused, true, 2803741824},
        {"53400", kSoon, kNone, kRefused, true, kEpoch + 5},
        {"53400", kNone, kNone, kError, false},
        {"57P03", kSoon, kNone, kError, false},
        {"55000", kSoon, "secrets", kSecrets, true, 0, 5},
        {"57P03", kSoon, "secrets", kSecrets, false, 0, 5},
        {nullptr, kNone, kNone, kBroken, false},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(testing::PrintToString(c.sqlstate) + testing::PrintToString(c.column));
        const LeaseAnswer answer = Judge(kLease, {Error(c.sqlstate, c.column, c.constraint)});
        EXPECT_EQ(answer.verdict(), c.verdict);
        EXPECT_EQ(answer.refused(), c.refused);
        EXPECT_EQ(answer.not_before(), c.not_before);
        EXPECT_EQ(answer.tells_of_secrets(), c.differs_from != 0);
        EXPECT_EQ(answer.differs_from(), c.differs_from);
    }
    EXPECT_EQ(Judge(kLease, {Error("55000", nullptr, nullptr, nullptr)}).verdict(), kBroken);
    for (const char* text : {"", "0", "leak", " 1790000000", "1730000000", "2803741825"})
        EXPECT_EQ(Judge(kLease, {Error("55000", text)}).not_before(), 0) << text;
    for (const char* column : {kNone, "", "leak", "1730000000", "2803741824"}) {
        const LeaseAnswer answer = Judge(kLease, {Error("55000", column, "secrets")});
        EXPECT_EQ(answer.verdict(), kSecrets);
        EXPECT_FALSE(answer.tells_of_secrets()) << "it does not say";
    }
}

}  // namespace
}  // namespace randflake
