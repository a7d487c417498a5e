// Encodes and decodes the state. Plans starts and reloads, and chooses ranges of node ids.

#include "core/window/window_state.h"

#include <array>
#include <cstring>
#include <utility>

#include "core/base/assert.h"
#include "core/identifier/layout.h"

namespace randflake {
namespace {

constexpr char kMagic[8] = {'r', 'a', 'n', 'd', 'f', 'l', 'k', 'w'};
constexpr uint32_t kVersion = 6;

constexpr uint32_t kMaxNodeCount = static_cast<uint32_t>(kRandflake.max_node_id()) + 1;
constexpr Second kMaxEnd = SecondsEnd(kRandflake);

template <typename T>
constexpr T Min(T a, T b) {
    return a < b ? a : b;
}

template <typename T>
constexpr T Max(T a, T b) {
    return a > b ? a : b;
}

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
    for (size_t i = 0; i < length; i++)
        crc = crc >> 8 ^ kCrcOfByte[(crc ^ bytes[i]) & 0xff];
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
        RANDFLAKE_ASSERT(second >= Second{0} && second <= kMaxEnd);
        Put(static_cast<uint64_t>(second.count), 4);
    }

private:
    void Put(uint64_t value, int length) {
        for (int i = 0; i < length; i++)
            *at_++ = static_cast<uint8_t>(value >> 8 * i);
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
        for (int i = 0; i < length; i++)
            value |= uint64_t{*at_++} << 8 * i;
        return value;
    }

    const uint8_t* at_;
    bool valid_ = true;
};

// Visits the fields between the version and the checksum in their order on disk.
template <typename Visitor, typename State>
void VisitFields(Visitor* visitor, State& state) {
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
    visitor->Word(state.write.mark);
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

constexpr bool IsValid(const SecretRecords& secrets) {
    for (uint32_t i = 0; i < kMaxGenerations; i++) {
        const SecretRecord& record = secrets.records[i];
        if (i >= secrets.count ? record != SecretRecord{}
            : i == 0           ? record.from != Second{0}
                     : record.from <= secrets.records[i - 1].from || record.from >= kMaxEnd)
            return false;
    }
    return secrets.count <= kMaxGenerations;
}

// Returns whether the seconds of the secrets increase. Ignores the unused records.
[[maybe_unused]] constexpr bool InOrder(SecretRecords secrets) {
    for (uint32_t i = secrets.count; i < kMaxGenerations; i++)
        secrets.records[i] = {};
    return IsValid(secrets);
}

constexpr bool IsValid(const SkewRange& skew) {
    return skew.smallest_ms <= skew.largest_ms && skew.largest_ms <= kMaxSkewMs;
}

constexpr bool IsValid(const NodeRange& nodes) {
    return nodes.count >= 1 && nodes.count <= kMaxNodeCount &&
           nodes.first <= kMaxNodeCount - nodes.count;
}

constexpr bool IsValid(const Lease& lease) {
    return lease.id > 0 && IsValid(lease.nodes) && lease.start >= Second{1} &&
           lease.start < lease.end && lease.end <= kMaxEnd;
}

constexpr bool IsValid(const WrittenEnd& written) {
    return IsValid(written.nodes) && written.end <= kMaxEnd;
}

// Returns the smallest range that covers both ranges, with the later of the two written ends.
constexpr WrittenEnd Merge(const WrittenEnd& a, const WrittenEnd& b) {
    const uint32_t first = a.nodes.first < b.nodes.first ? a.nodes.first : b.nodes.first;
    const uint32_t after = Max(a.nodes.first + a.nodes.count, b.nodes.first + b.nodes.count);
    const WrittenEnd both{{first, after - first}, Max(a.end, b.end)};
    RANDFLAKE_ASSERT(both.nodes.Covers(a.nodes) && both.nodes.Covers(b.nodes));
    return both;
}

}  // namespace

Second WindowState::EndFor(const NodeRange& nodes) const noexcept {
    RANDFLAKE_ASSERT(IsValid(nodes) && end_count <= kMaxWrittenEnds);
    Second end{0};
    for (uint32_t i = 0; i < end_count; i++)
        if (ends[i].nodes.Overlaps(nodes))
            end = Max(end, ends[i].end);
    return end;
}

Second WindowState::OpensAt(const NodeRange& nodes) const noexcept {
    return Max(EndFor(nodes), floor);
}

Second WindowState::LastEnd() const noexcept {
    Second last{0};
    for (uint32_t i = 0; i < end_count; i++)
        last = Max(last, ends[i].end);
    return last;
}

Second WindowState::LeasesEnd() const noexcept {
    return Max(leases[0].end, leases[1].end);
}

uint32_t WindowState::PlaceOf(const NodeRange& nodes, const NodeRanges& configured) noexcept {
    uint32_t at = 0;
    while (at < end_count && ends[at].nodes != nodes)
        at++;
    if (at == end_count) {
        if (end_count == kMaxWrittenEnds) {
            const auto last_other = [&](uint32_t before) {
                while (configured.IndexOf(ends[--before].nodes) < configured.count) {
                }
                return before;
            };
            at = last_other(kMaxWrittenEnds);
            WrittenEnd& stays = ends[last_other(at)];
            stays = Merge(stays, ends[at]);
        } else {
            end_count++;
        }
    }
    return at;
}

void WindowState::UsedByOthers(const NodeRange& nodes, Second end,
                               const NodeRanges& configured) noexcept {
    if (end > EndFor(nodes))
        ends[PlaceOf(nodes, configured)] = {nodes, end};
    RANDFLAKE_ASSERT(EndFor(nodes) >= end);
}

void WindowState::Announce(const NodeRange& nodes, const Window& window,
                           const NodeRanges& configured) noexcept {
    const Second before = EndFor(nodes);
    if (announced_start != window.start || ends[0].nodes != nodes) {
        RANDFLAKE_ASSERT(window.start >= before);
        announced_start = window.start;
        end_before = before;
    }
    RANDFLAKE_ASSERT(window.start < window.end && window.end <= kMaxEnd);
    const WrittenEnd announced{nodes, Max(window.end, before)};
    for (uint32_t at = PlaceOf(nodes, configured); at > 0; at--)
        ends[at] = ends[at - 1];
    ends[0] = announced;
    RANDFLAKE_ASSERT(EndFor(nodes) >= before && EndFor(nodes) >= window.end);
}

void WindowState::TakeBack(Second end) noexcept {
    if (announced_start == Second{0})
        return;
    RANDFLAKE_ASSERT(end_count >= 1);
    ends[0].end = Min(ends[0].end, Max(end, end_before));
    announced_start = {0};
    RANDFLAKE_ASSERT(EndFor(ends[0].nodes) >= end_before);
}

size_t FormatFingerprint(uint64_t fingerprint, char buffer[kFingerprintText + 1]) noexcept {
    for (size_t i = kFingerprintText; i-- > 0; fingerprint >>= 4)
        buffer[i] = "0123456789abcdef"[fingerprint & 15];
    buffer[kFingerprintText] = '\0';
    return kFingerprintText;
}

size_t FormatFingerprints(const SecretRecords& records,
                          char buffer[kMaxFingerprintsText]) noexcept {
    constexpr size_t kSecondDigits = 10;  // the Unix second of every identifier has ten digits
    size_t length = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < records.count; i++) {
        if (i > 0)
            buffer[length++] = ' ';
        length += FormatFingerprint(records.records[i].fingerprint, buffer + length);
        if (i == 0)
            continue;
        buffer[length++] = '@';
        int64_t second = ToUnix(records.records[i].from).count;
        for (size_t digit = kSecondDigits; digit-- > 0; second /= 10)
            buffer[length + digit] = static_cast<char>('0' + second % 10);
        length += kSecondDigits;
        buffer[length] = '\0';
    }
    RANDFLAKE_ASSERT(length < kMaxFingerprintsText);
    return length;
}

uint64_t ParseRunMarker(const uint8_t* bytes, size_t length) noexcept {
    uint64_t run = 0;
    if (length == kRunMarkerBytes)
        std::memcpy(&run, bytes, sizeof run);
    return run;
}

void ParseBootId(const char* text, size_t length, uint64_t boot[2]) noexcept {
    boot[0] = boot[1] = 0;
    if (length != kBootIdText || text[kBootIdText - 1] != '\n')
        return;
    uint64_t parsed[2] = {};
    int digits = 0;
    for (size_t i = 0; i < kBootIdText - 1; i++) {
        const char c = text[i];
        const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (hyphen && c == '-')
            continue;
        const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (hyphen || value < 0)
            return;
        parsed[digits / 16] = parsed[digits / 16] << 4 | static_cast<uint64_t>(value);
        digits++;
    }
    RANDFLAKE_ASSERT(digits == 32);
    boot[0] = parsed[0];
    boot[1] = parsed[1];
}

const char* StateErrorText(StateError error) noexcept {
    switch (error) {
        case StateError::kNone:
            return "no error";
        case StateError::kMissing:
            return "the file does not exist";
        case StateError::kLost:
            return "the file is missing beside its identity file";
        case StateError::kWrongLength:
            return "the file has the wrong length";
        case StateError::kWrongMagic:
            return "the file does not begin as a window file does";
        case StateError::kWrongVersion:
            return "the file has an unknown format version";
        case StateError::kWrongChecksum:
            return "the checksum does not match";
        case StateError::kWrongContent:
            return "the content is impossible";
    }
    return "unknown error";
}

void EncodeWindowState(const WindowState& state, uint8_t bytes[kWindowStateBytes]) noexcept {
    // Unused fields are zero on disk.
    WindowState used = state;
    for (uint32_t i = state.secrets.count; i < kMaxGenerations; i++)
        used.secrets.records[i] = {};
    for (uint32_t i = state.end_count; i < kMaxWrittenEnds; i++)
        used.ends[i] = {};
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
    if (length != kWindowStateBytes)
        return StateError::kWrongLength;
    if (std::memcmp(bytes, kMagic, sizeof kMagic) != 0)
        return StateError::kWrongMagic;
    Reader reader(bytes + sizeof kMagic);
    uint32_t version, checksum;
    reader.Half(version);
    if (version != kVersion)
        return StateError::kWrongVersion;
    Reader(bytes + length - 4).Half(checksum);
    if (checksum != Crc32c(bytes, length - 4))
        return StateError::kWrongChecksum;

    WindowState read{};
    VisitFields(&reader, read);
    RANDFLAKE_ASSERT(reader.at() == bytes + length - 4);
    if (read.end_count > kMaxWrittenEnds || read.differs_from >= kMaxEnd || read.floor > kMaxEnd ||
        read.copied_at > kMaxEnd || !reader.valid() || !IsValid(read.secrets) ||
        !IsValid(read.skew) || (read.stop.nodes != NodeRange{} && !IsValid(read.stop.nodes)))
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

namespace {

Finding Compare(const Origin& found, const Origin& own) {
    if (found.system_identifier != own.system_identifier)
        return Finding::kOtherSystem;
    if (found.identity != own.identity)
        return Finding::kCopied;
    return found.timeline != own.timeline ? Finding::kOtherTimeline : Finding::kOwn;
}

bool Proven(const WindowState& found, const Start& start, const SkewRange& skew) {
    RANDFLAKE_ASSERT(IsValid(skew));
    const Stop& stop = found.stop;
    const bool same_boot = stop.boot[0] == start.boot[0] && stop.boot[1] == start.boot[1] &&
                           (stop.boot[0] != 0 || stop.boot[1] != 0);
    const auto passed = [&skew](auto from, decltype(from) to) {
        const uint64_t elapsed =
            static_cast<uint64_t>(to.count) - static_cast<uint64_t>(from.count);
        return to < from || elapsed >= skew.smallest_ms;
    };
    return found.write.mark != 0 && found.write.mark == start.marked && same_boot &&
           !passed(stop.uptime_ms, start.uptime_ms) && !passed(stop.wall_ms, start.wall_ms) &&
           start.nodes.count > 0 && stop.nodes.Covers(start.nodes);
}

}  // namespace

static Second SecondAfter(WallMs instant) {
    return Min(Max(SecondOf(instant) + 1, Second{0}), kMaxEnd);
}

Second CopiedAt(const WindowState& found, const Origin& own, Second now) noexcept {
    const Finding finding = Compare(found.origin, own);
    return finding == Finding::kCopied || finding == Finding::kOtherSystem
               ? Min(Max(now, Second{1}), kMaxEnd)
               : found.copied_at;
}

NodeRange OriginalNodes(const WindowState& found, const Origin& own) noexcept {
    const Finding finding = Compare(found.origin, own);
    NodeRange all = found.original;
    if (finding != Finding::kCopied && finding != Finding::kOtherSystem)
        return all;
    const auto add = [&all](const NodeRange& nodes) {
        const uint32_t first = all.count == 0 ? nodes.first : Min(all.first, nodes.first);
        const uint32_t after = Max(all.first + all.count, nodes.first + nodes.count);
        if (nodes.count > 0)
            all = {first, after - first};
    };
    add(found.configured);
    for (uint32_t i = 0; i < found.end_count; i++)
        add(found.ends[i].nodes);
    return all;
}

SecretsChange CompareSecrets(const SecretRecords& before, const SecretRecords& after,
                             Second end) noexcept {
    RANDFLAKE_ASSERT(InOrder(before) && InOrder(after));
    if (before.count == 0 || after.count == 0)
        return SecretsChange::kNone;
    // Returns the number of secrets that begin before `end`. The first secret always counts.
    const auto begun = [end](const SecretRecords& secrets) {
        uint32_t count = 1;
        while (count < secrets.count && secrets.records[count].from < end)
            count++;
        return count;
    };
    const uint32_t count = begun(before);
    bool same = count == begun(after);
    for (uint32_t i = 0; same && i < count; i++)
        same = before.records[i] == after.records[i];
    if (same)
        return SecretsChange::kNone;
    if (before.count > 1)
        return SecretsChange::kRefused;
    for (uint32_t i = 0; i < after.count; i++)
        if (after.records[i].fingerprint == before.records[0].fingerprint)
            return SecretsChange::kRefused;
    return SecretsChange::kOther;
}

Second DiffersFrom(Second differs_from, const SecretRecords& before,
                   const SecretRecords& after) noexcept {
    RANDFLAKE_ASSERT(differs_from >= Second{0} && differs_from < kMaxEnd);
    const auto beginning = [differs_from](const SecretRecords& secrets) {
        for (uint32_t i = 1; i < secrets.count; i++)
            if (secrets.records[i].from == differs_from)
                return secrets.records[i];
        return SecretRecord{};
    };
    const SecretRecord has = beginning(after);
    return has == SecretRecord{} || has == beginning(before) ? differs_from : Second{0};
}

ReloadPlan PlanReload(const Reload& reload, const WindowState* state) noexcept {
    RANDFLAKE_ASSERT(InOrder(reload.after));
    const SecretRecords& before = reload.before;
    const SecretRecords& after = reload.after;
    for (uint32_t i = 0; i < before.count; i++)
        if (i >= after.count || after.records[i] != before.records[i])
            return {ReloadError::kNotGrown, i, {}};
    const Second end = state != nullptr ? state->LastEnd() : Second{0};
    if (reload.NeedsState()) {
        const Second others =
            reload.leased ? reload.leases_end : SecondAfter(reload.wall_ms + reload.skew);
        const Second earliest = Max(Max(end, others), Second{1});
        for (uint32_t i = before.count; i < after.count; i++)
            if (after.records[i].from < earliest)
                return {ReloadError::kTooEarly, i, earliest};
    }
    // The coordinator granted the resumed leases under the state's secrets.
    if (state != nullptr && CompareSecrets(state->secrets, after, Max(end, reload.leases_end)) ==
                                SecretsChange::kRefused)
        return {ReloadError::kRefused, 0, {}};
    return {ReloadError::kNone, 0, {}};
}

void SetTime(const Moment& started, const Moment& now, bool may_be_promoted,
             Start* start) noexcept {
    RANDFLAKE_ASSERT(now.uptime_ms >= started.uptime_ms);
    const bool set_right = now.wall_ms < started.wall_ms;
    start->uptime_ms = may_be_promoted ? now.uptime_ms : started.uptime_ms;
    start->wall_ms = may_be_promoted || set_right ? now.wall_ms : started.wall_ms;
}

StartPlan PlanStart(StateError error, const WindowState& found, const Start& start) noexcept {
    RANDFLAKE_ASSERT(IsValid(start.skew) && InOrder(start.secrets));
    StartPlan plan{};
    SkewRange skew = start.skew;
    if (error == StateError::kNone) {
        skew = skew.With(found.skew);
        plan.state = found;
        plan.state.copied_at = CopiedAt(found, start.origin, SecondOf(start.wall_ms));
        plan.state.original = OriginalNodes(found, start.origin);
        plan.finding = Compare(found.origin, start.origin);
        plan.proven = plan.finding == Finding::kOwn && Proven(found, start, skew);
        plan.secrets = CompareSecrets(found.secrets, start.secrets, found.LastEnd());
    } else {
        plan.finding = error == StateError::kMissing ? Finding::kFirstUse : Finding::kUnreadable;
    }
    plan.state.origin = start.origin;
    plan.state.configured = start.nodes;
    // If a server starts without a secret, its state keeps the secrets that are on disk.
    if (start.secrets.count > 0) {
        plan.state.differs_from =
            DiffersFrom(plan.state.differs_from, plan.state.secrets, start.secrets);
        plan.state.secrets = start.secrets;
    }
    plan.state.stop = Stop{};
    plan.state.leases[0] = plan.state.leases[1] = {};
    plan.held_off_until = SecondAfter(start.wall_ms + skew.largest_ms);
    if (!plan.proven)
        plan.state.floor = start.after_crash_restart && plan.finding == Finding::kOwn
                               ? Max(plan.state.floor, plan.held_off_until)
                               : plan.held_off_until;
    RANDFLAKE_ASSERT(plan.state.floor <= kMaxEnd && plan.state.copied_at <= kMaxEnd);
    plan.opens_at_ms = plan.proven ? UptimeMs{0} : start.uptime_ms + skew.largest_ms;
    return plan;
}

bool Resumes(const WindowState& found, const Start& start, const Lease& lease) noexcept {
    RANDFLAKE_ASSERT(start.now_ms >= start.uptime_ms);
    const WriteRecord& write = found.write;
    const bool same_postmaster = write.postmaster != 0 && write.postmaster == start.postmaster;
    const bool same_boot = write.boot[0] == start.machine_boot[0] &&
                           write.boot[1] == start.machine_boot[1] &&
                           (write.boot[0] != 0 || write.boot[1] != 0);
    const bool marked = start.marked != 0 && write.mark != 0 &&
                        (start.marked == write.mark || start.marked == write.follows);
    const bool last_write = marked || (start.marked == 0 && same_postmaster);
    const bool own_run = same_postmaster || (same_boot && write.uptime_ms <= start.now_ms);
    return lease.id != 0 && lease.nodes.count == start.leased_nodes && last_write && own_run &&
           Compare(found.origin, start.origin) == Finding::kOwn &&
           CompareSecrets(found.secrets, start.secrets, lease.end) == SecretsChange::kNone;
}

uint32_t LastRange(const WindowState& state, const NodeRanges& ranges) noexcept {
    for (uint32_t i = 0; i < state.end_count; i++)
        if (const uint32_t range = ranges.IndexOf(state.ends[i].nodes); range < ranges.count)
            return range;
    return 0;
}

uint32_t ChooseRange(const WindowState& state, const NodeRanges& ranges, uint32_t in_use,
                     const Second (&earliest)[kMaxRanges], Second now) noexcept {
    RANDFLAKE_ASSERT(in_use < ranges.count);
    uint32_t chosen = ranges.count;
    uint32_t used_before = 0;  // the number of ranges used since the chosen range
    for (uint32_t i = 0; i < ranges.count; i++) {
        const NodeRange nodes = ranges.At(i);
        if (i == in_use || now < Max(state.OpensAt(nodes), earliest[i]))
            continue;
        uint32_t at = 0;
        while (at < state.end_count && state.ends[at].nodes != nodes)
            at++;
        if (at == state.end_count)
            return i;
        if (chosen == ranges.count || at > used_before) {
            chosen = i;
            used_before = at;
        }
    }
    return chosen;
}

Second LeaseOpensAt(StateError error, const WindowState& state, const NodeRange& nodes,
                    Second held_off_until) noexcept {
    RANDFLAKE_ASSERT(held_off_until >= Second{0});
    const bool unknown = error != StateError::kNone && error != StateError::kMissing;
    return Min(Max(state.EndFor(nodes), unknown ? held_off_until : Second{0}), kMaxEnd);
}

}  // namespace randflake
