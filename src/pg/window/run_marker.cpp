// The marker of a data directory is a POSIX shared memory object, named by a hash of the
// directory's identity. It survives a stop of the server, but not a reboot. It must be on a tmpfs,
// because a disk could be rolled back with the directory. The marker may be invisible in a new
// container. A server that starts without a marker waits for randflake.max_clock_skew or gets a new
// lease. Other users can create a FIFO or link of this name, so opening the marker must not block
// or follow links.

#include "pg/window/run_marker.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/window/window_codec.h"

using randflake::Origin;

namespace {
struct MarkerName {
    char path[40];
    const char* object() const { return path + strlen("/dev/shm"); }  // for shm_open
};
}  // namespace

// The locked marker, whose descriptor children inherit.
static int held = -1;
static MarkerName held_name;

static MarkerName marker_name(const Origin& origin) {
    MarkerName name;
    snprintf(name.path, sizeof name.path, "/dev/shm/randflake.%016llx",
             static_cast<unsigned long long>(directory_number(origin)));
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
    if (fd < 0) return;
    const ssize_t length = read(fd, text, sizeof text);
    close(fd);
    if (length > 0) randflake::ParseBootId(text, static_cast<size_t>(length), boot);
}

static uint64 read_number(int fd) {
    uint8 bytes[randflake::kRunMarkerBytes + 1];  // one more byte than valid objects
    const ssize_t length = is_marker(fd) ? pread(fd, bytes, sizeof bytes, 0) : 0;
    return length > 0 ? randflake::ParseRunMarker(bytes, static_cast<size_t>(length)) : 0;
}

uint64 run_marker_read(const Origin& origin) {
    const int fd = shm_open(marker_name(origin).object(), O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return 0;
    const uint64 number = read_number(fd);
    close(fd);
    return number;
}

// Opens the marker for writing, or makes it. Returns -1 and the failure in errno.
static int open_marker(const MarkerName& name) {
    const int fd = shm_open(name.object(), O_RDWR | O_CREAT | O_NONBLOCK, S_IRUSR | S_IWUSR);
    if (fd < 0 || is_marker(fd)) return fd;
    close(fd);
    errno = kNotOwn;
    return -1;
}

FileFailure run_marker_write(const Origin& origin, uint64* number) {
    Assert(*number != 0 && held < 0);
    const MarkerName name = marker_name(origin);
    const int fd = open_marker(name);
    if (fd >= 0) {
        const bool written = pwrite(fd, number, sizeof *number, 0) == sizeof *number;
        close(fd);
        if (written) return FileFailure{};
    }
    // This run can continue without a marker, but an earlier run's marker must not remain.
    *number = 0;
    if (shm_unlink(name.object()) == 0 || run_marker_read(origin) == 0) return FileFailure{};
    return file_failed("unlink", name.path);
}

// Waits up to a second, because after a postmaster's end, its children, such as the logger, may
// hold the lock for a moment.
static bool lock(int fd) {
    for (int tries = 100; flock(fd, LOCK_EX | LOCK_NB) != 0; tries--) {
        if (errno == EWOULDBLOCK && tries == 0) errno = kLocked;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        pg_usleep(10000);
    }
    errno = kNotOwn;
    return is_marker(fd);  // unless it was removed meanwhile
}

FileFailure run_marker_lock(const Origin& origin) {
    Assert(!IsUnderPostmaster);
    if (held >= 0) return FileFailure{};
    const MarkerName name = marker_name(origin);
    int fd = open_marker(name);
    if (fd < 0 && shm_unlink(name.object()) == 0) fd = open_marker(name);
    if (fd < 0) return file_failed("open", name.path);
    if (!lock(fd)) {
        const FileFailure failure = file_failed("lock", name.path);
        close(fd);
        return failure;
    }
    ReserveExternalFD();
    held = fd;
    held_name = name;
    return FileFailure{};
}

void run_marker_leave() {
    Assert(IsUnderPostmaster);
    if (held >= 0) close(held);
    held = -1;
}

static bool holds_marker(const Origin& origin) {
    return held >= 0 && strcmp(marker_name(origin).path, held_name.path) == 0;
}

uint64 held_marker_read(const Origin& origin) {
    return holds_marker(origin) ? read_number(held) : 0;
}

FileFailure held_marker_write(const Origin& origin, uint64* number) {
    Assert(*number != 0);
    const bool holds = holds_marker(origin);
    if (holds && pwrite(held, number, sizeof *number, 0) == sizeof *number) return FileFailure{};
    *number = 0;
    return !holds || ftruncate(held, 0) == 0 ? FileFailure{} : file_failed("write", held_name.path);
}
