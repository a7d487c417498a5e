// Compares a database's entries with the server's ring. Determines which entries a session must add
// before it uses the type.

#include "core/type/type_binding.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "core/base/assert.h"

namespace randflake {

namespace {
// Returns the first second of generation i, or kNoSecond if the ring lacks the generation.
Second FromOf(const SecretRecords& ring, int i) noexcept {
    RANDFLAKE_ASSERT(i >= 0);
    return i < static_cast<int>(ring.count) ? ring.records[i].from : kNoSecond;
}

// `ring` lacks an entry that begins at `from`. Another ring has this entry. Of `ring`'s first
// `bound` generations, the other ring also has those that begin before `from`. Returns the first
// second in which the two rings can differ.
Second DiffersFrom(const SecretRecords& ring, int bound, Second from) noexcept {
    RANDFLAKE_ASSERT(bound >= 1 && bound <= static_cast<int>(ring.count));
    int before = bound;
    while (before > 0 && ring.records[before - 1].from >= from) before--;
    return before == 0 ? Second{0} : std::min(from, FromOf(ring, before));
}
}  // namespace

bool ParseKeyEntry(const char* text, size_t length, SecretRecord* record) noexcept {
    constexpr size_t kDigits = kFingerprintText;
    if (length < kDigits) return false;
    uint64_t fingerprint = 0;
    char formatted[kDigits + 1];
    (void)std::from_chars(text, text + kDigits, fingerprint, 16);
    FormatFingerprint(fingerprint, formatted);
    if (std::memcmp(formatted, text, kDigits) != 0) return false;
    if (length == kDigits) {
        *record = {fingerprint, {0}};
        return true;
    }
    // The Unix second of every identifier has ten digits.
    if (length != kDigits + 1 + 10 || text[kDigits] != '@') return false;
    UnixSecond unix_second{0};
    const char* const end = text + length;
    const auto [read_to, error] = std::from_chars(text + kDigits + 1, end, unix_second.count);
    if (read_to != end || error != std::errc{}) return false;
    const Second second = FromUnix(unix_second);
    if (second <= Second{0} || second >= kNoSecond) return false;
    *record = {fingerprint, second};
    return true;
}

void KeyRows::Add(const SecretRecords& ring, const char* text, size_t length) noexcept {
    RANDFLAKE_ASSERT(ring.count <= kMaxGenerations && other_count <= kMaxGenerations);
    any = true;
    SecretRecord record;
    if (!ParseKeyEntry(text, length, &record)) {
        unreadable = true;
        return;
    }
    for (uint32_t i = 0; i < ring.count; i++)
        if (ring.records[i].fingerprint == record.fingerprint &&
            (ring.records[i].from == record.from || record.from == Second{0})) {
            found |= uint32_t{1} << i;
            return;
        }
    if (HasOther(record)) return;
    if (other_count == kMaxGenerations)
        unreadable = true;
    else
        others[other_count++] = record;
}

bool KeyRows::HasOther(const SecretRecord& record) const noexcept {
    return std::find(others, others + other_count, record) != others + other_count;
}

TypeBinding CompareKeys(const SecretRecords& ring, const KeyRows& keys,
                        const KeyRows* checks) noexcept {
    TypeBinding binding{keys.any, static_cast<int>(std::bit_width(keys.found)),
                        KeyDifference::kNone, kNoSecond};
    RANDFLAKE_ASSERT(binding.bound <= static_cast<int>(ring.count));
    RANDFLAKE_ASSERT(keys.any || (keys.found == 0 && keys.other_count == 0));
    if (!keys.any) return binding;
    bool unchecked = false;
    if (checks != nullptr) {
        // A first secret needs no check entry, because the keys alone show whether it is right.
        unchecked = (keys.found & ~uint32_t{1} & ~checks->found) != 0;
        for (int i = 0; i < keys.other_count; i++)
            unchecked |= keys.others[i].from > Second{0} && !checks->HasOther(keys.others[i]);
    }
    if (binding.bound == 0 || keys.unreadable) {
        binding.differs_from = {0};
    } else {
        for (int i = 0; i < keys.other_count; i++)
            binding.differs_from = std::min(binding.differs_from,
                                            DiffersFrom(ring, binding.bound, keys.others[i].from));
    }
    if (binding.differs_from < kNoSecond) binding.difference = KeyDifference::kOther;
    if (unchecked) {
        // The server does not know the second from which the restored values may be wrong.
        binding.differs_from = {0};
        if (keys.other_count == 0 && !keys.unreadable)
            binding.difference = KeyDifference::kUnchecked;
    }
    return binding;
}

BoundValue BoundValueOf(const SecretRing& ring, uint64_t raw) noexcept {
    const int owner = ring.OwnerOf(kRandflake, raw);
    RANDFLAKE_ASSERT(owner >= 0 && owner < ring.count());
    const Fields fields = kRandflake.Unpack(raw);
    return {owner,
            kRandflake.StandsForSecond(fields) ? Second{0} : kRandflake.SecondOf(fields.timestamp)};
}

BindingStep PlanBinding(const TypeBinding& binding, const SecretRecords& ring, TypeUse use,
                        const BoundValue& value, const TypePlace& place) noexcept {
    RANDFLAKE_ASSERT(binding.bound <= static_cast<int>(ring.count));
    const Second differs_from = binding.differs_from;
    switch (use) {
        case TypeUse::kNoValue:
            return differs_from < kNoSecond           ? BindingStep::kDiffers
                   : place.decode_horizon < kNoSecond ? BindingStep::kLacksSecret
                                                      : BindingStep::kGo;
        case TypeUse::kBuildIndex:
            return differs_from < kNoSecond ? BindingStep::kDiffers : BindingStep::kGo;
        case TypeUse::kSort:
            return differs_from == Second{0} ? BindingStep::kDiffers : BindingStep::kGo;
        case TypeUse::kMake:
        case TypeUse::kInput:
        case TypeUse::kOutput: break;
    }
    RANDFLAKE_ASSERT(value.generation >= 0 && value.generation < static_cast<int>(ring.count));
    if (value.second >= differs_from) return BindingStep::kDiffers;
    if (value.second >= place.decode_horizon) return BindingStep::kLacksSecret;
    if (value.generation < binding.bound) return BindingStep::kGo;
    if (use == TypeUse::kOutput)
        return place.decoding || place.worker ? BindingStep::kGo : BindingStep::kMissing;
    if (use == TypeUse::kInput && ring.records[value.generation].from > place.latest)
        return BindingStep::kNotMade;
    if (binding.any) {
        if (place.stores_nothing || place.decoding) return BindingStep::kGo;
        return place.parallel ? BindingStep::kParallel : BindingStep::kAdd;
    }
    if (place.stores_nothing || place.decoding || place.parallel || !place.may_bind_first)
        return BindingStep::kUnbound;
    return !place.locked  ? BindingStep::kLock
           : place.former ? BindingStep::kFormer
                          : BindingStep::kAdd;
}

Second CertainEnd(const TypeBinding& binding, const SecretRecords& ring) noexcept {
    RANDFLAKE_ASSERT(binding.bound <= static_cast<int>(ring.count));
    if (binding.bound == 0) return {0};
    return std::min(binding.differs_from, FromOf(ring, binding.bound));
}

}  // namespace randflake
