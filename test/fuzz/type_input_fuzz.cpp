// What the type randflake takes as input, text and binary, under a ring of one to sixteen secrets:
// it is refused, or the value gives the same identifier back in both forms; and which decimal
// numbers are told to be cast through bigint.

#include <charconv>

#include "core/identifier/id_text.h"
#include "core/secret/secret_ring.h"

#include "fuzz.h"

namespace randflake {
namespace {

void CheckValue(const SecretRing& ring, uint64_t id) {
    uint64_t raw = 0;
    if (!ring.Decrypt(kRandflake, id, &raw)) {
        Check(ring.count() > 1 && raw == 0);
        return;
    }
    uint64_t again = 0;
    Check(ring.Encrypt(kRandflake, raw, &again) && again == id);

    char text[kMaxTextLength];
    const TextResult of_text = ParseTypeText(text, FormatTypeText(again, text));
    Check(of_text.error == TextError::kNone && of_text.id == id);
}

void CheckBinary(const SecretRing& ring, const uint8_t* bytes, size_t size) {
    uint64_t id = 0;
    Check(ParseBinary(bytes, size, &id) == (size == 8));
    if (size != 8)
        return;
    for (int i = 0; i < 8; i++)
        Check((id >> 8 * (7 - i) & 0xff) == bytes[i]);
    CheckValue(ring, id);
}

void CheckBigint(const char* text, size_t size) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text, text + size, number);
    const size_t digits = size > 0 && text[0] == '-' ? size - 1 : size;
    Check(IsBigint(text, size) == (error == std::errc{} && end == text + size && digits <= 19));
}

}  // namespace
}  // namespace randflake

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace randflake;
    Input input(data, size);
    Generation generations[kMaxGenerations];
    const int count = 1 + input.Take<uint8_t>() % kMaxGenerations;
    uint32_t from = 0;
    for (int i = 0; i < count; i++) {
        const Key key{{static_cast<uint8_t>(i + 1)}};
        generations[i] = {from, ExpandKey(key)};
        from += 1 + input.Take<uint32_t>() % (1u << 27);
    }
    const SecretRing ring(generations, count);

    // A copy of just this size, so that the sanitizer sees a look beyond it.
    const size_t length = input.rest_size();
    auto* copy = static_cast<uint8_t*>(malloc(length));
    if (length > 0)
        memcpy(copy, input.rest(), length);
    const char* text = reinterpret_cast<const char*>(copy);
    const TextResult result = ParseTypeText(text, length);
    if (result.error == TextError::kNone)
        CheckValue(ring, result.id);
    CheckBinary(ring, copy, length);
    CheckBigint(text, length);
    free(copy);
    return 0;
}
