// Tests cipher, layout and text against the reference implementation's vectors, in both directions.

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

// The file's strings contain 64-bit numbers: raw numbers are unsigned, encrypted numbers signed.
TEST(Vectors, BothDirections) {
    std::ifstream file(REFERENCE_VECTORS);
    ASSERT_TRUE(file.is_open()) << REFERENCE_VECTORS;
    const auto vectors = nlohmann::json::parse(file);
    EXPECT_EQ(vectors.size(), 16u);
    for (const auto& vector : vectors) {
        SCOPED_TRACE(vector.dump());
        const auto text_of = [&](const char* field) { return vector.at(field).get<std::string>(); };
        const auto number_of = [&](const char* field) { return vector.at(field).get<uint64_t>(); };
        const uint64_t raw = std::stoull(text_of("raw_id"));
        const auto id = static_cast<uint64_t>(std::stoll(text_of("encrypted_id")));
        const std::string text = text_of("encoded_id"), secret = text_of("secret");

        const auto epoch = static_cast<uint64_t>(kRandflake.epoch / kSecondMs);
        const Fields fields{number_of("timestamp") - epoch, number_of("node_id"),
                            number_of("sequence")};
        uint64_t packed = 0;
        EXPECT_TRUE(kRandflake.Pack(fields, &packed));
        EXPECT_EQ(packed, raw);
        EXPECT_EQ(kRandflake.Unpack(raw), fields);

        Key key{};
        EXPECT_TRUE(ParseKey(secret.data(), secret.size(), &key));
        EXPECT_EQ(Encrypt(ExpandKey(key), raw), id);
        EXPECT_EQ(Decrypt(ExpandKey(key), id), raw);

        char buffer[kMaxTextLength];
        EXPECT_EQ(std::string(buffer, FormatText(id, buffer)), text);
        const TextResult read = ParseText(text.data(), text.size());
        EXPECT_EQ(read.error, TextError::kNone);
        EXPECT_EQ(read.id, id);
    }
}

}  // namespace
}  // namespace randflake
