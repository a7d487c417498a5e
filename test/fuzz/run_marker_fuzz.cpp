// What proves a restart beside the window file: the marker of the last run, and the boot as the
// machine tells it. Nothing but the exact form is taken for one.

#include <cstdio>
#include <initializer_list>

#include "core/window/window_state.h"

#include "fuzz.h"

namespace randflake {
namespace {

void CheckMarker(const uint8_t* bytes, size_t size) {
    const uint64_t run = ParseRunMarker(bytes, size);
    Check(size == sizeof run ? memcmp(&run, bytes, sizeof run) == 0 : run == 0);
}

void CheckBootId(const char* text, size_t size) {
    uint64_t boot[2] = {1, 1};
    ParseBootId(text, size, boot);
    if (boot[0] == 0 && boot[1] == 0)
        return;
    char written[64];
    const int length = snprintf(written, sizeof written, "%08llx-%04llx-%04llx-%04llx-%012llx\n",
                                static_cast<unsigned long long>(boot[0] >> 32),
                                static_cast<unsigned long long>(boot[0] >> 16 & 0xffff),
                                static_cast<unsigned long long>(boot[0] & 0xffff),
                                static_cast<unsigned long long>(boot[1] >> 48),
                                static_cast<unsigned long long>(boot[1] & 0xffffffffffff));
    Check(static_cast<size_t>(length) == size && memcmp(text, written, size) == 0);
}

}  // namespace
}  // namespace randflake

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace randflake;
    auto* copy = static_cast<uint8_t*>(malloc(size));
    if (size > 0)
        memcpy(copy, data, size);
    CheckMarker(copy, size);
    CheckBootId(reinterpret_cast<const char*>(copy), size);
    free(copy);

    // Each boot has a text.
    Input input(data, size);
    const auto high = input.Take<uint64_t>();
    const auto low = input.Take<uint64_t>();
    char text[64];
    const int length =
        snprintf(text, sizeof text, "%016llx%016llx\n", static_cast<unsigned long long>(high),
                 static_cast<unsigned long long>(low));
    Check(length == 33);
    for (const size_t at : {8u, 13u, 18u, 23u}) {
        memmove(text + at + 1, text + at, kBootIdText - 1 - at);
        text[at] = '-';
    }
    uint64_t boot[2];
    ParseBootId(text, kBootIdText, boot);
    Check(boot[0] == high && boot[1] == low);
    return 0;
}
