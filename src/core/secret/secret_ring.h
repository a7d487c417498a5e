// Lets an operator change the secret. Each secret takes effect after the one before it. Identifiers
// of different secrets differ, and each decodes to its number. No identifier shows which secret
// made it.
//
// The secrets are generations 0 .. n - 1 of a ring. A generation owns the raw numbers of all
// seconds from its own `from` to the next generation's `from`. There is one exception: the lowest
// number of each second stands for the second itself (layout.h), and belongs to the first
// generation. No server issues these lowest numbers. But users can compute the identifiers of these
// numbers even for future seconds, and a new generation must not change these identifiers.
//
//   claim     generation j claims an identifier if key j decrypts it to a number that j owns
//   encrypt   the owner's key encrypts a number; if an earlier generation claims the result, every
//             server skips the number
//   decode    the first generation that claims an identifier decrypts it
//
// The generation that owns an issued number claims the number's identifier, and no generation
// before it does. So the identifier decodes to its number, and two numbers never share an
// identifier. If earlier generations own n seconds, servers skip on average at most n / 2^30 of a
// generation's numbers (see ShareLeft). At its time `from`, a new generation takes over the numbers
// of the generation before it. If no server has issued any of these numbers, all issued identifiers
// keep their meaning.
//
// A related method, cycle walking (Black and Rogaway, "Ciphers with Arbitrary Finite Domains",
// CT-RSA 2002), encrypts a result again if the result lies outside the domain. The ring skips the
// number instead, because the walk could end at a number of another generation.

#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/assert.h"
#include "core/identifier/cipher.h"
#include "core/identifier/cipher_batch.h"
#include "core/identifier/feistel.h"
#include "core/identifier/layout.h"

namespace randflake {

// The size of shared memory and of the state on disk grows with this number.
inline constexpr int kMaxGenerations = 16;

// Refers to generations in the caller's memory. The caller may append to them. Cipher::from is a
// generation's first second, 0 for generation 0. It increases with each generation. Cipher::Encrypt
// and Decrypt are inverse bijections of the layout's numbers. The ticks of the layout are seconds.
template <typename Cipher> class Ring {
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
        while (generation > 0 && second < generations_[generation].from) generation--;
        return generation;
    }

    [[gnu::always_inline]] constexpr int OwnerOf(const Layout& layout,
                                                 uint64_t raw) const noexcept {
        RANDFLAKE_ASSERT(count_ >= 1);
        if (count_ == 1) return 0;
        const Fields fields = layout.Unpack(raw);
        return layout.StandsForSecond(fields)
                   ? 0
                   : GenerationAt({static_cast<int64_t>(fields.timestamp)});
    }

    // Returns true if these consecutive numbers certainly have the same owner.
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
            if (OwnerOf(layout, generations_[earlier].Decrypt(id)) == earlier) return true;
        return false;
    }

    // Returns the share of the numbers of `second` that servers use on average. A generation that
    // owns 1 % of all seconds claims 1 % of all identifiers, because a cipher spreads them evenly.
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

    // The compiler inlines Encrypt() and Decrypt(). With one generation, they run only the cipher.

    // Returns false if servers skip the number. *id is then unusable.
    [[gnu::always_inline]] constexpr bool Encrypt(const Layout& layout, uint64_t raw,
                                                  uint64_t* id) const noexcept {
        const int owner = OwnerOf(layout, raw);
        *id = generations_[owner].Encrypt(raw);
        RANDFLAKE_ASSERT(generations_[owner].Decrypt(*id) == raw);
        return owner == 0 || !ClaimedBefore(layout, owner, *id);
    }

    // Returns false and leaves *raw unchanged if no generation claims `id`: no server made it.
    [[gnu::always_inline]] constexpr bool Decrypt(const Layout& layout, uint64_t id,
                                                  uint64_t* raw) const noexcept {
        if (count_ != 1) return DecryptOfSeveral(layout, id, raw);
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

// Reserves numbers, then reads the ring, then calls `use` with both. The server adds a generation
// before it records a window for the generation's numbers. So the ring contains the owner of the
// numbers. A ring that is read before the reservation may lack the owner.
template <typename Reserve, typename ReadRing, typename Use>
[[gnu::always_inline]] inline auto UseReserved(Reserve&& reserve, ReadRing&& read_ring, Use&& use) {
    const auto reservation = reserve();
    const auto ring = read_ring();
    return use(reservation, ring);
}

// Sets ids[i] to the identifier of the raw number first + i, for i in 0 .. count - 1, where 1 <=
// count <= kBatchLength. Bit i of the result is 1 if servers skip the number first + i. All numbers
// must have the same owner. The call may overwrite all of `ids`.
uint64_t EncryptNumbers(const SecretRing& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept;
uint64_t EncryptNumbers(const SecretRing53& ring, const VectorPath& path, uint64_t first, int count,
                        uint64_t ids[kBatchLength]) noexcept;
static_assert(kBatchLength == 64);

// Moves each ids[i] whose bit in `skipped` is 0 to the front, in order. Returns their count.
int DropSkipped(uint64_t skipped, int count, uint64_t ids[kBatchLength]) noexcept;

}  // namespace randflake
