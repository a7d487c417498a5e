// Judges an answer of the coordinator: a grant, a refusal, or neither.
//
// An answer is a grant only if it has the expected form and shows that the coordinator committed:
//
//   - Each request is one statement. Without waiting for the holder, the coordinator sends the row,
//     commits, and then reports that it is ready. So the row counts only after this report. If the
//     report shows an open transaction, there was no commit.
//   - A broken connection, an error, or an answer of another form is no grant.
//   - An answer with a warning is no grant. When somebody cancels the wait for a synchronous
//     standby, the coordinator commits locally and warns. A failover may lose such a commit.
//
// An error is a refusal if it has the SQLSTATE of refusals. Other errors do not affect the lease.

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
    // If true, the last column contains the start time of the holder's first missing secret, or
    // null if no secret is missing.
    bool tells_of_secrets;
};

struct AnswerField {
    AnswerType type;
    bool binary;
    bool null;
    const char* text;  // `length` arbitrary bytes
    size_t length;
};

struct AnswerPart {
    enum class Kind : uint8_t {
        kRow,
        kRowsEnd,  // the statement is complete, and had rows
        kError,
        kOther,  // a command without rows, COPY, a second statement
        kNone    // there are no more results
    };

    Kind kind;

    // Valid for kRow. With more than kMaxAnswerColumns fields, LeaseAnswer ignores `fields`.
    int field_count;
    const AnswerField* fields;

    // For kError, these are fields of the error in PostgreSQL's protocol. A missing field is null.
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

    // Takes the next part. Returns true if another part must follow.
    bool Take(const AnswerPart& part) noexcept;
    // Call this after the last part. `idle` is true if the coordinator is in no transaction.
    void End(bool idle) noexcept;

    AnswerVerdict verdict() const noexcept { return verdict_; }

    // Returns whether the coordinator refuses. Do not call this after kGood.
    bool refused() const noexcept { return refused_; }
    // Returns the second before which the coordinator grants nothing, or 0 if it is unknown.
    UnixSecond not_before() const noexcept { return not_before_; }

    // Returns the column's value in its type's range, or 0 for kVoid. Call this only after kGood.
    int64_t value(int column) const noexcept {
        RANDFLAKE_ASSERT(verdict_ == AnswerVerdict::kGood);
        RANDFLAKE_ASSERT(column >= 0 && column < shape_.columns);
        return values_[column];
    }

    // tells_of_secrets() is true if the answer compares the secrets. differs_from() is the second
    // at which the holder's first missing secret begins, or 0 if none is missing.
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
