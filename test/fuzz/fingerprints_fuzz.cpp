// The text in which a server names its secrets to a coordinator, and a database its fingerprints:
// it has the form that the coordinator's functions ask for, and says what it was made from. The
// input is the records.

#include <cstdio>
#include <string>

#include "core/identifier/layout.h"
#include "core/window/window_state.h"

#include "fuzz.h"

namespace randflake {
namespace {

// As in randflake_lease_require_fingerprints: ^[0-9a-f]{16}( [0-9a-f]{16}@[1-9][0-9]{9}){0,15}$
bool IsDigits(const std::string& text, size_t at, size_t count, const char* digits) {
    return text.find_first_not_of(digits, at) >= at + count && at + count <= text.size();
}

bool HasForm(const std::string& text) {
    constexpr char kHex[] = "0123456789abcdef";
    constexpr size_t kFurther = 28;
    if (text.size() < 16 || (text.size() - 16) % kFurther != 0 ||
        (text.size() - 16) / kFurther >= kMaxGenerations || !IsDigits(text, 0, 16, kHex))
        return false;
    for (size_t at = 16; at < text.size(); at += kFurther)
        if (text[at] != ' ' || !IsDigits(text, at + 1, 16, kHex) || text[at + 17] != '@' ||
            text[at + 18] == '0' || !IsDigits(text, at + 18, 10, "0123456789"))
            return false;
    return true;
}

}  // namespace
}  // namespace randflake

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace randflake;
    Input input(data, size);
    SecretRecords records{};
    records.count = 1 + input.Take<uint8_t>() % kMaxGenerations;
    for (uint32_t i = 0; i < records.count; i++)
        records.records[i] = {input.Take<uint64_t>(),
                              i == 0 ? 0
                                     : input.Take<uint32_t>() %
                                           (static_cast<uint32_t>(kRandflake.max_timestamp()) + 1)};

    auto* buffer = static_cast<char*>(malloc(kMaxFingerprintsText));
    const size_t length = FormatFingerprints(records, buffer);
    const std::string text(buffer);
    free(buffer);
    Check(text.size() == length && HasForm(text));

    size_t at = 0;
    for (uint32_t i = 0; i < records.count; i++) {
        const SecretRecord& record = records.records[i];
        if (i > 0)
            at++;
        Check(std::stoull(text.substr(at, 16), nullptr, 16) == record.fingerprint);
        at += 16;
        if (i == 0)
            continue;
        Check(text[at] == '@' && std::stoll(text.substr(at + 1, 10)) == ToUnix(record.from).count);
        at += 11;
    }
    Check(at == text.size());
    return 0;
}
