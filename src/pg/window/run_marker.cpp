// The marker of a data directory is a POSIX shared memory object, named by a hash of the
// directory's identity. It survives a stop of the server, but not a reboot. It must be on a tmpfs,
// because a disk could be rolled back with the directory. The marker may be invisible in a new
// container. A server that starts without a marker waits for randflake.max_clock_skew or gets a new
// lease. Other users can create a FIFO or link of this name, so opening the marker must not block
// or follow links.

#include "pg/window/run_marker.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

using randflake::Origin;

namespace {
struct MarkerName {
    char text[32];
};
}  // namespace

// Computes the 64-bit FNV-1a hash (Fowler, Noll, Vo) of the directory's identity.
static MarkerName marker_name(const Origin& origin) {
    const uint64 parts[] = {origin.system_identifier, origin.identity.inode, origin.identity.device,
                            static_cast<uint64>(origin.identity.birth_nanoseconds)};
    uint64 hash = UINT64CONST(0xcbf29ce484222325);
    for (const uint64 part : parts)
        for (int shift = 0; shift < 64; shift += 8)
            hash = (hash ^ (part >> shift & 0xff)) * UINT64CONST(0x100000001b3);
    MarkerName name;
    snprintf(name.text, sizeof name.text, "/randflake.%016llx",
             static_cast<unsigned long long>(hash));
    return name;
}

// Another user may have made a hard link with this name to a file of the server's user.
bool is_own_file(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           status.st_nlink == 1;
}

static bool is_marker(int fd) {
    struct statfs system;
    return is_own_file(fd) && fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

void read_boot_id(uint64 boot[2]) {
    boot[0] = boot[1] = 0;
    char text[randflake::kBootIdText + 1];  // one more byte than valid texts
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t length = read(fd, text, sizeof text);
    close(fd);
    if (length > 0)
        randflake::ParseBootId(text, static_cast<size_t>(length), boot);
}

uint64 run_marker_read(const Origin& origin) {
    const int fd = shm_open(marker_name(origin).text, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    uint8 bytes[randflake::kRunMarkerBytes + 1];  // one more byte than valid objects
    const ssize_t length = is_marker(fd) ? read(fd, bytes, sizeof bytes) : 0;
    close(fd);
    return length > 0 ? randflake::ParseRunMarker(bytes, static_cast<size_t>(length)) : 0;
}

FileFailure run_marker_write(const Origin& origin, uint64* mark) {
    const MarkerName name = marker_name(origin);
    const int fd = shm_open(name.text, O_WRONLY | O_CREAT | O_NONBLOCK, S_IRUSR | S_IWUSR);
    if (fd >= 0) {
        const bool written = is_marker(fd) && pwrite(fd, mark, sizeof *mark, 0) == sizeof *mark;
        close(fd);
        if (written)
            return FileFailure{};
    }
    // This run can continue without a marker, but an earlier run's marker must not remain.
    *mark = 0;
    if (shm_unlink(name.text) == 0 || run_marker_read(origin) == 0)
        return FileFailure{};
    return file_failed("unlink", name.text);
}
