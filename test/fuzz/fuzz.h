#pragma once

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace randflake {

// Each target defines this function.
void Fuzz(const uint8_t* data, size_t size);

inline void Check(bool holds) {
    if (!holds) abort();
}

// Take() returns the next number of the input, and uses zeros for bytes after the input's end.
class Input {
public:
    Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

    template <typename Number> Number Take() {
        Number value{};
        const size_t length = size_ < sizeof value ? size_ : sizeof value;
        if (length > 0) memcpy(&value, data_, length);
        data_ += length;
        size_ -= length;
        return value;
    }

    const uint8_t* rest() const { return data_; }
    size_t rest_size() const { return size_; }

private:
    const uint8_t* data_;
    size_t size_;
};

}  // namespace randflake

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    randflake::Fuzz(data, size);
    return 0;
}
