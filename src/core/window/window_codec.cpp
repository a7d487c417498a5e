// Reads and writes the fields of the window file in their order on disk.

#include "core/window/window_codec.h"

#include <array>
#include <cstring>
#include <utility>

namespace randflake {
namespace {

constexpr char kMagic[8] = {'r', 'a', 'n', 'd', 'f', 'l', 'k', 'w'};
constexpr uint32_t kVersion = 6;

// Contains the CRC-32C of each byte, with the reflected polynomial of RFC 3720, section 12.1.
constexpr auto kCrcOfByte = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; byte++) {
        table[byte] = byte;
        for (int bit = 0; bit < 8; bit++)
            table[byte] = table[byte] >> 1 ^ (table[byte] & 1 ? 0x82f63b78u : 0);
    }
    return table;
}();

uint32_t Crc32c(const uint8_t* bytes, size_t length) {
    uint32_t crc = ~uint32_t{0};
    for (size_t i = 0; i < length; i++) crc = crc >> 8 ^ kCrcOfByte[(crc ^ bytes[i]) & 0xff];
    return ~crc;
}

// Writer and Reader visit fields of 8 and 4 bytes, the least significant byte first.
class Writer {
public:
    explicit Writer(uint8_t* bytes) : at_(bytes) {}
    const uint8_t* at() const { return at_; }

    void Word(uint64_t value) { Put(value, 8); }
    void Word(int64_t value) { Put(static_cast<uint64_t>(value), 8); }
    void Half(uint32_t value) { Put(value, 4); }
    void Half(bool value) { Put(value, 4); }
    void Half(Second second) {
        RANDFLAKE_ASSERT(second >= Second{0} && second <= kNoSecond);
        Put(static_cast<uint64_t>(second.count), 4);
    }

private:
    void Put(uint64_t value, int length) {
        for (int i = 0; i < length; i++) *at_++ = static_cast<uint8_t>(value >> 8 * i);
    }

    uint8_t* at_;
};

class Reader {
public:
    explicit Reader(const uint8_t* bytes) : at_(bytes) {}
    const uint8_t* at() const { return at_; }

    void Word(uint64_t& value) { value = Get(8); }
    void Word(int64_t& value) { value = static_cast<int64_t>(Get(8)); }
    void Half(uint32_t& value) { value = static_cast<uint32_t>(Get(4)); }
    void Half(Second& second) { second = {static_cast<int64_t>(Get(4))}; }
    void Half(bool& value) {
        const uint64_t read = Get(4);
        value = read == 1;
        valid_ = valid_ && read <= 1;
    }
    bool valid() const { return valid_; }

private:
    uint64_t Get(int length) {
        uint64_t value = 0;
        for (int i = 0; i < length; i++) value |= uint64_t{*at_++} << 8 * i;
        return value;
    }

    const uint8_t* at_;
    bool valid_ = true;
};

// Visits the fields between the version and the checksum in their order on disk.
template <typename Visitor, typename State> void VisitFields(Visitor* visitor, State& state) {
    visitor->Half(state.end_count);
    visitor->Word(state.origin.system_identifier);
    visitor->Half(state.origin.timeline);
    visitor->Half(state.secrets.count);
    visitor->Half(state.differs_from);
    visitor->Half(state.skew.smallest_ms);
    visitor->Half(state.skew.largest_ms);
    visitor->Word(state.origin.identity.inode);
    visitor->Word(state.origin.identity.device);
    visitor->Word(state.origin.identity.birth_nanoseconds);
    visitor->Word(state.stop.boot[0]);
    visitor->Word(state.stop.boot[1]);
    visitor->Word(state.stop.uptime_ms.count);
    visitor->Word(state.stop.wall_ms.count);
    visitor->Half(state.stop.nodes.first);
    visitor->Half(state.stop.nodes.count);
    visitor->Half(state.floor);
    visitor->Half(state.copied_at);
    for (auto* nodes : {&state.original, &state.configured}) {
        visitor->Half(nodes->first);
        visitor->Half(nodes->count);
    }
    visitor->Word(state.write.number);
    visitor->Word(state.write.follows);
    visitor->Word(state.write.postmaster);
    visitor->Word(state.write.boot[0]);
    visitor->Word(state.write.boot[1]);
    visitor->Word(state.write.uptime_ms.count);
    for (auto& lease : state.leases) {
        visitor->Word(lease.id);
        visitor->Word(lease.incarnation.words[0]);
        visitor->Word(lease.incarnation.words[1]);
        visitor->Half(lease.nodes.first);
        visitor->Half(lease.nodes.count);
        visitor->Half(lease.start);
        visitor->Half(lease.end);
        visitor->Half(lease.refused);
        visitor->Word(lease.asked_at_ms.count);
        visitor->Word(lease.lasts_until_ms.count);
    }
    for (auto& record : state.secrets.records) {
        visitor->Word(record.fingerprint);
        visitor->Half(record.from);
    }
    for (auto& written : state.ends) {
        visitor->Half(written.nodes.first);
        visitor->Half(written.nodes.count);
        visitor->Half(written.end);
    }
}

constexpr bool IsValid(const Lease& lease) {
    return lease.id > 0 && IsValid(lease.nodes) && lease.start >= Second{1} &&
           lease.start < lease.end && lease.end <= kNoSecond;
}

constexpr bool IsValid(const WrittenEnd& written) {
    return IsValid(written.nodes) && written.end <= kNoSecond;
}

}  // namespace

uint64_t ParseRunMarker(const uint8_t* bytes, size_t length) noexcept {
    uint64_t run = 0;
    if (length == kRunMarkerBytes) std::memcpy(&run, bytes, sizeof run);
    return run;
}

void ParseBootId(const char* text, size_t length, uint64_t boot[2]) noexcept {
    boot[0] = boot[1] = 0;
    if (length != kBootIdText || text[kBootIdText - 1] != '\n') return;
    uint64_t parsed[2] = {};
    int digits = 0;
    for (size_t i = 0; i < kBootIdText - 1; i++) {
        const char c = text[i];
        const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (hyphen && c == '-') continue;
        const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (hyphen || value < 0) return;
        parsed[digits / 16] = parsed[digits / 16] << 4 | static_cast<uint64_t>(value);
        digits++;
    }
    RANDFLAKE_ASSERT(digits == 32);
    boot[0] = parsed[0];
    boot[1] = parsed[1];
}

const char* StateErrorText(StateError error) noexcept {
    // In the order of StateError.
    static constexpr const char* kTexts[] = {
        "no error",
        "the file does not exist",
        "the file is missing beside its identity file",
        "the file has the wrong length",
        "the file does not begin as a window file does",
        "the file has an unknown format version",
        "the checksum does not match",
        "the content is impossible",
    };
    static_assert(std::size(kTexts) == static_cast<size_t>(StateError::kWrongContent) + 1);
    RANDFLAKE_ASSERT(static_cast<size_t>(error) < std::size(kTexts));
    return kTexts[static_cast<size_t>(error)];
}

void EncodeWindowState(const WindowState& state, uint8_t bytes[kWindowStateBytes]) noexcept {
    // Unused fields are zero on disk.
    WindowState used = state;
    for (uint32_t i = state.secrets.count; i < kMaxGenerations; i++) used.secrets.records[i] = {};
    for (uint32_t i = state.end_count; i < kMaxWrittenEnds; i++) used.ends[i] = {};
    std::memcpy(bytes, kMagic, sizeof kMagic);
    Writer writer(bytes + sizeof kMagic);
    writer.Half(kVersion);
    VisitFields(&writer, std::as_const(used));
    writer.Half(Crc32c(bytes, kWindowStateBytes - 4));
    RANDFLAKE_ASSERT(writer.at() == bytes + kWindowStateBytes);
    [[maybe_unused]] WindowState again;
    RANDFLAKE_ASSERT(DecodeWindowState(bytes, kWindowStateBytes, &again) == StateError::kNone);
}

StateError DecodeWindowState(const uint8_t* bytes, size_t length, WindowState* state) noexcept {
    if (length != kWindowStateBytes) return StateError::kWrongLength;
    if (std::memcmp(bytes, kMagic, sizeof kMagic) != 0) return StateError::kWrongMagic;
    Reader reader(bytes + sizeof kMagic);
    uint32_t version, checksum;
    reader.Half(version);
    if (version != kVersion) return StateError::kWrongVersion;
    Reader(bytes + length - 4).Half(checksum);
    if (checksum != Crc32c(bytes, length - 4)) return StateError::kWrongChecksum;

    WindowState read{};
    VisitFields(&reader, read);
    RANDFLAKE_ASSERT(reader.at() == bytes + length - 4);
    if (read.end_count > kMaxWrittenEnds || read.differs_from >= kNoSecond ||
        read.floor > kNoSecond || read.copied_at > kNoSecond || !reader.valid() ||
        !IsValid(read.secrets) || !IsValid(read.skew) ||
        (read.stop.nodes != NodeRange{} && !IsValid(read.stop.nodes)))
        return StateError::kWrongContent;
    for (const Lease& lease : read.leases)
        if (lease != Lease{} && (!IsValid(lease) || read.secrets.count == 0))
            return StateError::kWrongContent;
    for (uint32_t i = 0; i < kMaxWrittenEnds; i++)
        if (i < read.end_count ? !IsValid(read.ends[i]) : read.ends[i] != WrittenEnd{})
            return StateError::kWrongContent;
    *state = read;
    return StateError::kNone;
}

}  // namespace randflake
