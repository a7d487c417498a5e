// Secrets that follow each other in time, so that a secret can be changed: no identifier of one
// equals an identifier of another, and each decodes to what it was made from, without a mark in the
// identifier and without a table.
//
// The secrets are generations 0 .. n - 1 of a ring. Each raw number is owned by one generation:
// that in whose interval of seconds, [its `from`, the next one's `from`), the number's second lies.
// The numbers that stand for a second itself, the lowest of each (layout.h), are owned by the first
// generation whatever their second. No server issues them, but every user can name them, also those
// of seconds to come, and their identifiers must not change when a generation is added.
//
//   claim     generation j claims an identifier that decrypts, under key j, to a number of j
//   encrypt   under the owner's key; if an earlier generation claims the result, the number
//             is skipped: no server ever uses it
//   decode    the first generation that claims the identifier made it
//
// An issued identifier is claimed by its owner and by no earlier generation, so it decodes to its
// number. Two numbers with one identifier would both be that one number. The share of
// numbers that is skipped is the earlier generations' seconds / 2^30.
//
// A new generation takes numbers away from the last one alone, and only those from its `from` on.
// So if none of those was issued before, everything above holds for the grown ring as well, and
// identifiers that were issued keep their meaning.
//
// This is related to cycle walking (Black and Rogaway, "Ciphers with Arbitrary Finite Domains",
// CT-RSA 2002), which encrypts again what falls outside of a domain. Here the number is left out
// instead, because there are enough of them and the walk would end in another generation's.

#ifndef RANDFLAKE_CORE_SECRET_SECRET_RING_H
#define RANDFLAKE_CORE_SECRET_SECRET_RING_H

#include <cstdint>
#include <type_traits>

#include "core/base/assert.h"
#include "core/identifier/cipher.h"
#include "core/identifier/cipher_batch.h"
#include "core/identifier/feistel.h"
#include "core/identifier/layout.h"

namespace randflake {

// A ring costs what it has, not what it may have: only the state on disk and shared memory grow
// with this.
inline constexpr int kMaxGenerations = 16;

// A view of generations that lie elsewhere and to which later ones may be added. Cipher has the
// first second `from`, 0 in the first generation and increasing, and Encrypt and Decrypt, inverse
// bijections of the layout's numbers. The layout's ticks are the seconds of `from`.
template <typename Cipher>
class Ring {
public:
    constexpr Ring(const Cipher* generations, int count) noexcept
        : generations_(generations), count_(count) {
        RANDFLAKE_ASSERT(count >= 0 && count <= kMaxGenerations);
    }

    constexpr int count() const noexcept { return count_; }
    constexpr const Cipher& operator[](int generation) const noexcept {
        RANDFLAKE_ASSERT(generation >= 0 && generation < count_);
        return generations_[generation];
    }

    // The generation whose interval this second lies in.
    constexpr int GenerationAt(Second second) const noexcept {
        int generation = count_ - 1;
        while (generation > 0 && second < generations_[generation].from)
            generation--;
        return generation;
    }

    [[gnu::always_inline]] constexpr int OwnerOf(const Layout& layout,
                                                 uint64_t raw) const noexcept {
        RANDFLAKE_ASSERT(count_ >= 1);
        if (count_ == 1)
            return 0;
        const Fields fields = layout.Unpack(raw);
        return layout.StandsForSecond(fields)
                   ? 0
                   : GenerationAt({static_cast<int64_t>(fields.timestamp)});
    }

    // Whether these consecutive numbers certainly have one owner.
    constexpr bool HasOneOwner(const Layout& layout, uint64_t first, int count) const noexcept {
        RANDFLAKE_ASSERT(count >= 1);
        const Fields fields = layout.Unpack(first);
        const uint64_t last = first + static_cast<uint64_t>(count) - 1;
        return count_ == 1 || (!layout.StandsForSecond(fields) &&
                               layout.Unpack(last).timestamp == fields.timestamp);
    }

    // Whether one of the generations before this one claims the identifier.
    constexpr bool ClaimedBefore(const Layout& layout, int generation, uint64_t id) const noexcept {
        RANDFLAKE_ASSERT(generation < count_);
        for (int earlier = 0; earlier < generation; earlier++)
            if (OwnerOf(layout, generations_[earlier].Decrypt(id)) == earlier)
                return true;
        return false;
    }

    // The share of this second's numbers that is not skipped, as is to be expected of a cipher:
    // what an earlier generation claims of the identifiers is its share of the seconds.
    constexpr double ShareLeft(const Layout& layout, Second second) const noexcept {
        const auto seconds = static_cast<double>(layout.max_timestamp() + 1);
        double left = 1;
        for (int generation = GenerationAt(second); generation > 0; generation--)
            left *=
                1 - static_cast<double>(
                        (generations_[generation].from - generations_[generation - 1].from).count) /
                        seconds;
        RANDFLAKE_ASSERT(left > 0 && left <= 1);
        return left;
    }

    // The next two are inlined as far as a ring of one goes, which is the cipher alone.

    // False if the number is skipped; then *id is not to be used.
    [[gnu::always_inline]] constexpr bool Encrypt(const Layout& layout, uint64_t raw,
                                                  uint64_t* id) const noexcept {
        const int owner = OwnerOf(layout, raw);
        *id = generations_[owner].Encrypt(raw);
        RANDFLAKE_ASSERT(generations_[owner].Decrypt(*id) == raw);
        return owner == 0 || !ClaimedBefore(layout, owner, *id);
    }

    // False, with *raw untouched, if no generation claims the identifier: no server made it.
    [[gnu::always_inline]] constexpr bool Decrypt(const Layout& layout, uint64_t id,
                                                  uint64_t* raw) const noexcept {
        if (count_ != 1)
            return DecryptOfSeveral(layout, id, raw);
        *raw = generations_[0].Decrypt(id);
        return true;
    }

private:
    constexpr bool DecryptOfSeveral(const Layout& layout, uint64_t id,
                                    uint64_t* raw) const noexcept {
        for (int generation = 0; generation < count_; generation++) {
            const uint64_t decrypted = generations_[generation].Decrypt(id);
            if (OwnerOf(layout, decrypted) == generation) {
                *raw = decrypted;
                return true;
            }
        }
        return false;
    }

    const Cipher* generations_;
    int count_;
};

struct Generation {
    Second from;
    KeySchedule schedule;

    uint64_t Encrypt(uint64_t raw) const noexcept { return randflake::Encrypt(schedule, raw); }
    uint64_t Decrypt(uint64_t id) const noexcept { return randflake::Decrypt(schedule, id); }
};

using SecretRing = Ring<Generation>;

// The same of 53-bit identifiers (kRandflake53), under keys that are derived from the secrets.
struct Generation53 {
    Second from;
    SipKey key;

    uint64_t Encrypt(uint64_t raw) const noexcept { return Feistel53::Permute(key, raw); }
    uint64_t Decrypt(uint64_t id) const noexcept { return Feistel53::Unpermute(key, id); }
};

using SecretRing53 = Ring<Generation53>;
static_assert(kRandflake53.bits() == Feistel53::kBits);

static_assert(std::is_trivially_copyable_v<Generation>);
static_assert(std::is_trivially_copyable_v<SecretRing>);

// What `use` makes of reserved numbers and of the ring that there is once they are reserved. The
// order matters: a generation that owns one of them was added before their window was announced, so
// it is in a ring that is read after the window, and may lack in one that was read before.
template <typename Reserve, typename ReadRing, typename Use>
[[gnu::always_inline]] inline auto UseReserved(Reserve&& reserve, ReadRing&& read_ring, Use&& use) {
    const auto reservation = reserve();
    const auto ring = read_ring();
    return use(reservation, ring);
}

// ids[i] is the identifier of the raw number first + i, for i in 0 .. count - 1, unless bit i of
// the result says that the number is skipped. The numbers have one owner, and 1 <= count <=
// kBatchLength. All of `ids` may be overwritten.
uint64_t EncryptNumbers(const SecretRing& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept;
uint64_t EncryptNumbers(const SecretRing53& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept;
static_assert(kBatchLength == 64);

// Moves the identifiers of numbers that are not skipped together, in their order; returns how many.
int DropSkipped(uint64_t skipped, int count, uint64_t ids[kBatchLength]) noexcept;

}  // namespace randflake

#endif
