// Makes the shipped Ring use a small cipher, so that identifiers fit in the tests' small layouts. A
// ring works with any bijection.

#pragma once

#include "core/secret/secret_records.h"
#include "test.h"

namespace randflake::simulation {

// Permutes the numbers that have `bits` bits. Each fingerprint gives a different permutation.
class ToyCipher {
public:
    ToyCipher() = default;
    ToyCipher(int bits, const SecretRecord& secret)
        : from(secret.from), mask_((uint64_t{1} << bits) - 1), half_((bits + 1) / 2) {
        uint64_t state = secret.fingerprint;
        for (Round& round : rounds_) {
            state = (state + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
            state ^= state >> 29;
            round = {state & mask_, state >> 32 | 1, 0};
            // Newton's iteration for the inverse doubles the number of correct bits in each step.
            round.inverse = round.factor;
            for (int i = 0; i < 5; i++) round.inverse *= 2 - round.factor * round.inverse;
        }
    }

    uint64_t Encrypt(uint64_t number) const noexcept {
        for (const Round& round : rounds_) {
            number = (number ^ round.key) * round.factor & mask_;
            number ^= number >> half_;
        }
        return number;
    }
    uint64_t Decrypt(uint64_t id) const noexcept {
        for (size_t i = rounds_.size(); i-- > 0;) {
            id ^= id >> half_;
            id = (id * rounds_[i].inverse & mask_) ^ rounds_[i].key;
        }
        return id;
    }

    Second from{};

private:
    struct Round {
        uint64_t key, factor, inverse;
    };

    uint64_t mask_ = 0;
    int half_ = 0;
    std::array<Round, 3> rounds_{};
};

class ToyRing {
public:
    ToyRing() = default;
    ToyRing(const Layout& layout, const SecretRecords& secrets)
        : count_(static_cast<int>(secrets.count)) {
        for (uint32_t i = 0; i < secrets.count; i++)
            ciphers_[i] = ToyCipher(layout.bits(), secrets.records[i]);
    }

    int count() const { return count_; }
    Ring<ToyCipher> First(int count) const { return {ciphers_.data(), count}; }
    Ring<ToyCipher> All() const { return First(count_); }

private:
    std::array<ToyCipher, kMaxGenerations> ciphers_{};
    int count_ = 0;
};

}  // namespace randflake::simulation
