// Each server claims its node ids in a shared memory file named after the first secret's
// fingerprint. A claim is a shared lock, so it never fails. The locks belong to the open file (OFD
// locks of Linux), which all processes of a server inherit, so they end with the last process.
//
// A claim locks a range of bytes in a file that has 2^23 bytes for each node id. No process writes
// these bytes. The range begins in the first node id's bytes, at the offset of the postmaster's
// pid. So a conflicting lock reveals the pid of its owner.

#include "pg/rival/rival.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pg/secret/secret.h"
#include "pg/server/environment.h"
#include "pg/settings/settings.h"
#include "pg/window/run_marker.h"

// Pids are below 2^22 (PID_MAX_LIMIT of Linux).
static constexpr int kPidBits = 22;
static constexpr int kNodeBits = kPidBits + 1;

static constexpr char kUnseen[] =
    "a second server of this machine with the same node ids would go unnoticed";

static int claims = -1;    // the file's descriptor, which children inherit
static char failure[160];  // why there is no claim; empty: there is one, or none is needed

static void fail(const char* text, const char* name) {
    snprintf(failure, sizeof failure, text, name, strerror(errno));
    ereport(WARNING, (errmsg("%s", kUnseen), errdetail("%s", failure),
                      errhint("Make sure that the server's user may write in /dev/shm, and that no "
                              "other user owns this object. Then restart the server.")));
}

void node_claim_open() {
    if (claims >= 0 || setting_node_id < 0 || secret_ring().count() == 0) return;
    Assert(!IsUnderPostmaster && CurrentResourceOwner == nullptr);
    // Hashing needs a resource owner, which the postmaster lacks.
    CurrentResourceOwner = ResourceOwnerCreate(nullptr, "randflake fingerprint");
    char name[40];
    snprintf(name, sizeof name, "/randflake-nodes.%s",
             secret_fingerprint_text(secret_records().records[0]));
    ResourceOwnerDelete(CurrentResourceOwner);
    CurrentResourceOwner = nullptr;
    const int fd = shm_open(name, O_RDWR | O_CREAT | O_NONBLOCK, S_IRUSR | S_IWUSR);
    if (fd < 0) return fail("Could not open shared memory object \"%s\": %s.", name);
    if (!is_own_file(fd)) {
        close(fd);
        return fail("Shared memory object \"%s\" is not a regular file of this server's user.",
                    name);
    }
    ReserveExternalFD();
    claims = fd;
    failure[0] = '\0';
}

static struct flock all_nodes(short type) {
    const pid_t pid = IsUnderPostmaster ? PostmasterPid : MyProcPid;
    const int64 first = int64{setting_node_id} << kNodeBits;
    const int64 after = (int64{setting_node_id} + static_node_count()) << kNodeBits;
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = first + (pid & ((1 << kPidBits) - 1));
    lock.l_len = after - lock.l_start;
    return lock;
}

ErrorText rival_unseen_error() {
    return failure[0] != '\0' ? ErrorText{0, kUnseen, failure, nullptr} : ErrorText{};
}

const char* node_claim_rival() {
    struct flock lock = all_nodes(F_WRLCK);
    if (claims >= 0 && fcntl(claims, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        return psprintf("The postmaster of the other server is process %d of this machine.",
                        static_cast<int>(lock.l_start & ((1 << kPidBits) - 1)));
    return nullptr;
}

void ServerEnvironment::ClaimNodes() {
    struct flock lock = all_nodes(F_RDLCK);
    if (claims < 0 || fcntl(claims, F_OFD_SETLK, &lock) != 0) return;
    if (const char* rival = node_claim_rival(); rival != nullptr)
        ereport(WARNING,
                (errmsg("%s", kRivalRuns), errdetail("%s", rival), errhint("%s", kRivalRemedy)));
}
