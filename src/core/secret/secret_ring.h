// Lets secrets follow each other in time, so that an operator can change the secret. Identifiers of
// two secrets never collide. Each identifier decodes to its number without mark or table.
//
// The secrets are generations 0 .. n - 1 of a ring. One generation owns each raw number: the one
// whose interval of seconds, [its `from`, the next one's `from`), contains the number's second. The
// first generation owns the numbers that stand for a second, the lowest of each second (layout.h).
// No server issues them. But every user can name such a number, even of a future second, and its
// identifier must survive a new generation.
//
//   claim     generation j claims an identifier that decrypts, under key j, to a number of j
//   encrypt   under the owner's key; if an earlier generation claims the result, every server skips
//             the number
//   decode    the first generation that claims the identifier made it
//
// The owner claims an issued identifier, and no earlier generation does. So the identifier decodes
// to its number, and two numbers never share an identifier. The share of skipped numbers is the
// earlier generations' seconds / 2^30.
//
// A new generation takes only numbers from its `from` on, and only from the last generation. If no
// server has issued any of these numbers, all of the above holds for the longer ring too. Issued
// identifiers keep their meaning.
//
// Related: cycle walking (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002)
// encrypts a result outside a domain again. The ring skips the number instead, because numbers
// abound and the walk would end in a number of another generation.

#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/assert.h"
#include "core/identifier/cipher.h"
#include "core/identifier/cipher_batch.h"
#include "core/identifier/feistel.h"
#include "core/identifier/layout.h"

namespace randflake {

// Only the state on disk and shared memory grow with this. The time that a ring costs depends on
// its actual generations.
inline constexpr int kMaxGenerations = 16;

// Views generations that the caller stores, and may append to. Cipher has `from`, its first second:
// 0 in the first generation, and increasing. Encrypt and Decrypt of Cipher are inverse bijections
// of the layout's numbers. The layout's ticks are seconds like `from`.
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

    // Returns true only if these consecutive numbers certainly have one owner.
    constexpr bool HasOneOwner(const Layout& layout, uint64_t first, int count) const noexcept {
        RANDFLAKE_ASSERT(count >= 1);
        const Fields fields = layout.Unpack(first);
        const uint64_t last = first + static_cast<uint64_t>(count) - 1;
        return count_ == 1 || (!layout.StandsForSecond(fields) &&
                               layout.Unpack(last).timestamp == fields.timestamp);
    }

    constexpr bool ClaimedBefore(const Layout& layout, int generation, uint64_t id) const noexcept {
        RANDFLAKE_ASSERT(generation < count_);
        for (int earlier = 0; earlier < generation; earlier++)
            if (OwnerOf(layout, generations_[earlier].Decrypt(id)) == earlier)
                return true;
        return false;
    }

    // Returns the expected share of this second's numbers that are not skipped. Ciphers spread
    // claims evenly, so a generation has equal shares of identifiers and seconds.
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

    // Encrypt and Decrypt inline the path of a ring with one generation, which is the cipher alone.

    // Returns false for a skipped number; *id is then unusable.
    [[gnu::always_inline]] constexpr bool Encrypt(const Layout& layout, uint64_t raw,
                                                  uint64_t* id) const noexcept {
        const int owner = OwnerOf(layout, raw);
        *id = generations_[owner].Encrypt(raw);
        RANDFLAKE_ASSERT(generations_[owner].Decrypt(*id) == raw);
        return owner == 0 || !ClaimedBefore(layout, owner, *id);
    }

    // Returns false, with *raw untouched, if no generation claims `id`: no server made it.
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

// Encrypts 53-bit identifiers (kRandflake53), under keys derived from the secrets.
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

// Calls `use` with reserved numbers and with the ring read after their reservation. The server adds
// a generation before it announces the window of the generation's numbers. So a ring read after the
// window contains the owner. A ring read before may lack the owner.
template <typename Reserve, typename ReadRing, typename Use>
[[gnu::always_inline]] inline auto UseReserved(Reserve&& reserve, ReadRing&& read_ring, Use&& use) {
    const auto reservation = reserve();
    const auto ring = read_ring();
    return use(reservation, ring);
}

// ids[i] is the identifier of the raw number first + i, for i in 0 .. count - 1, unless bit i of
// the result marks the number as skipped. The numbers have one owner; 1 <= count <= kBatchLength.
// May overwrite all of `ids`.
uint64_t EncryptNumbers(const SecretRing& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept;
uint64_t EncryptNumbers(const SecretRing53& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept;
static_assert(kBatchLength == 64);

// Moves the identifiers of unskipped numbers to the front in order; returns their count.
int DropSkipped(uint64_t skipped, int count, uint64_t ids[kBatchLength]) noexcept;

}  // namespace randflake
