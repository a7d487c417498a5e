// Judges an answer of the coordinator: a grant, a refusal, or neither.
//
// An answer is a grant only if the coordinator reported, in the expected form, that it committed:
//
//   - Every request is one statement, followed by the end of the exchange. A coordinator sends
//     the row, commits, and then reports that it is ready, without waiting for the holder. So the
//     row counts only after that report. A report of an open transaction means no commit.
//   - A broken connection, an error, or an answer of any other shape is no grant.
//   - An answer with a warning is no grant. After a cancelled wait for a synchronous standby, a
//     coordinator commits locally and warns. A failover may lose this commit.
//
// An error is a refusal if it has a refusal's SQLSTATE. Other errors do not affect the lease.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/lease/lease.h"

namespace randflake {

inline constexpr int kMaxAnswerColumns = 7;

enum class AnswerType : uint8_t { kInt4, kInt8, kVoid, kOther };

struct AnswerShape {
    int columns;
    AnswerType types[kMaxAnswerColumns];
    // The last column is the first second of a coordinator's secret that the holder lacks, or null.
    bool tells_of_secrets;
};

struct AnswerField {
    AnswerType type;
    bool binary;
    bool null;
    const char* text;  // `length` arbitrary bytes
    size_t length;
};

// One of the successive results.
struct AnswerPart {
    enum class Kind : uint8_t {
        kRow,
        kRowsEnd,  // the statement is complete, and had rows
        kError,
        kOther,  // a command without rows, COPY, a second statement
        kNone    // there are no more results
    };

    Kind kind;

    // Of kRow. If there are more than kMaxAnswerColumns fields, only their number counts.
    int field_count;
    const AnswerField* fields;

    // Of kError: fields of PostgreSQL's protocol, null if missing.
    const char* message;
    const char* sqlstate;
    const char* constraint;
    const char* column;
};

enum class AnswerVerdict : uint8_t {
    kGood,          // one row, as expected, and committed
    kRefused,       // the coordinator refuses
    kSecrets,       // the coordinator disagrees about the secrets; see refused()
    kError,         // an error that does not affect the lease
    kBroken,        // the connection failed
    kNotOneRow,     // not exactly one row
    kNotExpected,   // a row of another shape or with impossible values
    kNotCommitted,  // the coordinator left a transaction open
};

class LeaseAnswer {
public:
    explicit LeaseAnswer(const AnswerShape& shape) noexcept : shape_(shape) {
        RANDFLAKE_ASSERT(shape.columns >= 1 && shape.columns <= kMaxAnswerColumns);
    }

    // Takes the next result. Returns true if it expects another; else only End changes the verdict.
    bool Take(const AnswerPart& part) noexcept;
    // Call after good results; `idle`: the coordinator is in no transaction.
    void End(bool idle) noexcept;

    AnswerVerdict verdict() const noexcept { return verdict_; }

    // Returns whether the coordinator refuses; only with a verdict other than kGood.
    bool refused() const noexcept { return refused_; }
    // Returns the second before which the coordinator grants nothing; 0: unknown.
    UnixSecond not_before() const noexcept { return not_before_; }

    // Only with kGood: a value within the range of its type, 0 for kVoid.
    int64_t value(int column) const noexcept {
        RANDFLAKE_ASSERT(verdict_ == AnswerVerdict::kGood);
        RANDFLAKE_ASSERT(column >= 0 && column < shape_.columns);
        return values_[column];
    }

    // Returns whether the answer tells of secrets. Returns a lacking secret's first second, or 0.
    bool tells_of_secrets() const noexcept { return tells_; }
    Second differs_from() const noexcept { return differs_from_; }

private:
    bool Fail(AnswerVerdict verdict) noexcept;
    bool ReadRow(const AnswerPart& part) noexcept;
    void ReadError(const AnswerPart& part) noexcept;

    AnswerShape shape_;
    AnswerVerdict verdict_ = AnswerVerdict::kBroken;
    int parts_ = 0;
    bool refused_ = false;
    bool tells_ = false;
    Second differs_from_{};
    UnixSecond not_before_{};
    int64_t values_[kMaxAnswerColumns] = {};
};

}  // namespace randflake
