// Checks the reference implementation's vectors in cipher, layout and text, in both directions.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/identifier/cipher.h"
#include "core/identifier/id_text.h"
#include "core/identifier/layout.h"
#include "printers.h"

namespace randflake {
namespace {

const nlohmann::json& Vectors() {
    static const nlohmann::json vectors = [] {
        std::ifstream file(REFERENCE_VECTORS);
        EXPECT_TRUE(file.is_open()) << REFERENCE_VECTORS;
        return nlohmann::json::parse(file);
    }();
    return vectors;
}

KeySchedule ScheduleOf(const nlohmann::json& vector) {
    const auto secret = vector.at("secret").get<std::string>();
    Key key{};
    EXPECT_TRUE(ParseKey(secret.data(), secret.size(), &key)) << secret;
    return ExpandKey(key);
}

Fields FieldsOf(const nlohmann::json& vector) {
    return {vector.at("timestamp").get<uint64_t>() -
                static_cast<uint64_t>(kRandflake.epoch / kSecondMs),
            vector.at("node_id").get<uint64_t>(), vector.at("sequence").get<uint64_t>()};
}

// The file writes 64-bit numbers as strings, and encrypted numbers with a sign.
uint64_t RawOf(const nlohmann::json& vector) {
    return std::stoull(vector.at("raw_id").get<std::string>());
}

uint64_t IdOf(const nlohmann::json& vector) {
    return static_cast<uint64_t>(std::stoll(vector.at("encrypted_id").get<std::string>()));
}

TEST(Vectors, AreAllThere) {
    EXPECT_EQ(Vectors().size(), 16u);
}

TEST(Vectors, FieldsPackToTheNumberAndBack) {
    for (const auto& vector : Vectors()) {
        SCOPED_TRACE(vector.dump());
        uint64_t raw = 0;
        EXPECT_TRUE(kRandflake.Pack(FieldsOf(vector), &raw));
        EXPECT_EQ(raw, RawOf(vector));
        EXPECT_EQ(kRandflake.Unpack(RawOf(vector)), FieldsOf(vector));
    }
}

TEST(Vectors, TheNumberEncryptsToTheIdAndBack) {
    for (const auto& vector : Vectors()) {
        SCOPED_TRACE(vector.dump());
        const KeySchedule schedule = ScheduleOf(vector);
        EXPECT_EQ(Encrypt(schedule, RawOf(vector)), IdOf(vector));
        EXPECT_EQ(Decrypt(schedule, IdOf(vector)), RawOf(vector));
    }
}

TEST(Vectors, TheIdIsWrittenAsTheTextAndReadBack) {
    for (const auto& vector : Vectors()) {
        SCOPED_TRACE(vector.dump());
        const auto text = vector.at("encoded_id").get<std::string>();
        char buffer[kMaxTextLength];
        EXPECT_EQ(std::string(buffer, FormatText(IdOf(vector), buffer)), text);
        const TextResult result = ParseText(text.data(), text.size());
        EXPECT_EQ(result.error, TextError::kNone);
        EXPECT_EQ(result.id, IdOf(vector));
    }
}

}  // namespace
}  // namespace randflake
