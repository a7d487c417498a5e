// ParseSecretFile must accept only valid rings. The fuzzer also writes the ring into a new file,
// with times formatted by the C library. From this file, ParseSecretFile must return the same ring.
// An error must name the first wrong line. The fuzzer tries the input as a file, and as the time at
// which a file's second secret begins.

#include "core/identifier/layout.h"
#include "core/secret/secret_file.h"
#include "fuzz.h"

namespace randflake {
namespace {

constexpr char kFirst[] = "00112233445566778899aabbccddeeff";
constexpr char kSecond[] = "0F1e2d3c4b5a69788796a5b4c3d2e1f0";

// Copies the text into memory of exactly its size, so that the sanitizer detects reads beyond it.
SecretFileResult Parse(const std::string& text, SecretList* list) {
    const std::vector<char> copy(text.begin(), text.end());
    const SecretFileResult result = ParseSecretFile(copy.data(), copy.size(), list);
    Check(SecretFileErrorText(result.error)[0] != '\0');
    return result;
}

bool Same(const SecretList& a, const SecretList& b) {
    if (a.count != b.count) return false;
    for (int i = 0; i < a.count; i++)
        if (!(a.secrets[i] == b.secrets[i])) return false;
    return true;
}

std::string Written(const SecretList& list) {
    std::string text;
    for (int i = 0; i < list.count; i++) {
        for (const uint8_t byte : list.secrets[i].key.bytes)
            for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
        if (i > 0) {
            const time_t at = ToUnix(list.secrets[i].from).count;
            struct tm date;
            char instant[32];
            Check(gmtime_r(&at, &date) != nullptr &&
                  strftime(instant, sizeof instant, "%Y-%m-%dT%H:%M:%SZ", &date) > 0);
            text += std::string(" from ") + instant;
        }
        text += '\n';
    }
    return text;
}

void CheckAccepted(const SecretList& list) {
    Check(list.count >= 1 && list.count <= kMaxGenerations && list.secrets[0].from == Second{});
    for (int i = 1; i < list.count; i++) {
        Check(list.secrets[i].from > list.secrets[i - 1].from && list.secrets[i].from < kNoSecond);
        for (int j = 0; j < i; j++) Check(list.secrets[i].key != list.secrets[j].key);
    }
    SecretList again;
    Check(Parse(Written(list), &again).error == SecretFileError::kNone && Same(again, list));
}

// Checks that all lines before the wrong one are valid, and that the lines after it do not matter.
void CheckRefused(const std::string& text, const SecretFileResult& result) {
    if (result.error == SecretFileError::kEmpty) {
        Check(result.line == 0);
        return;
    }
    Check(result.line >= 1);
    size_t begin = 0;
    for (int line = 1; line < result.line; line++) {
        begin = text.find('\n', begin) + 1;
        Check(begin != 0);
    }
    Check(begin < text.size());
    SecretList list;
    const SecretFileError before = Parse(text.substr(0, begin), &list).error;
    Check(before == SecretFileError::kNone || before == SecretFileError::kEmpty);
    const SecretFileResult alone = Parse(text.substr(0, text.find('\n', begin)), &list);
    Check(alone.error == result.error && alone.line == result.line);
}

void CheckText(const std::string& text) {
    SecretList list;
    const SecretFileResult result = Parse(text, &list);
    if (result.error == SecretFileError::kNone)
        CheckAccepted(list);
    else
        CheckRefused(text, result);

    SecretList commented;
    const SecretFileResult below = Parse("# " + std::string(kFirst) + "\n\r\n" + text, &commented);
    Check(below.error == result.error && (result.line == 0 || below.line == result.line + 2));
    Check(result.error != SecretFileError::kNone || Same(commented, list));
}

}  // namespace

void Fuzz(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    CheckText(text);
    CheckText(std::string(kFirst) + "\n" + kSecond + " from " + text);
}

}  // namespace randflake
