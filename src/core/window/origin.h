// Distinguishes the state of a data directory from the states of its copies.

#pragma once

#include <cstdint>

namespace randflake {

// Distinguishes a file from its copies: a copy has another inode or birth time. A restart of the
// machine can change device numbers, so these matter only on file systems without birth times.
struct FileIdentity {
    uint64_t inode;
    uint64_t device;            // 0 if the file system has birth times
    int64_t birth_nanoseconds;  // since 1970; the file's last change if there are no birth times

    friend constexpr bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct Origin {
    uint64_t system_identifier;
    uint32_t timeline;
    FileIdentity identity;

    friend constexpr bool operator==(const Origin&, const Origin&) = default;
};

}  // namespace randflake
