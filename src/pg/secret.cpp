// The secret passes through three places, and its text is kept in none of them:
//
//   the setting   The check hook parses the value, hands the key on in the hook's `extra`, and
//                 replaces the text by asterisks. So SHOW, pg_settings (reset_val included),
//                 current_setting and messages that quote settings have asterisks to show.
//   the file      Read once at server start; the buffer is wiped.
//   the key       A static variable of the postmaster, from where shared memory gets the schedule.
//
// A malformed secret must not be quoted either, and must stop the server, while a check hook that
// returns false makes the server quote the value or merely warn. So the hook accepts every value
// and secret_load complains.

#include "pg/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pg/compat.h"
#include "pg/shmem.h"

namespace {
enum class SecretState : uint8_t { kUnset, kMalformed, kValid };

struct Secret {
    SecretState state;
    randflake::Key key;
};
}  // namespace

static constexpr size_t kSecretDigits = 2 * randflake::kKeyBytes;
static constexpr char kMask[] = "********";

static char* setting_secret;
static char* setting_secret_file;
static Secret secret;

static bool check_secret(char** new_value, void** extra, GucSource) {
    char* text = *new_value;
    if (text[0] == '\0')
        return true;

    auto* parsed = static_cast<Secret*>(setting_alloc(sizeof(Secret)));
    char* mask = setting_strdup(kMask);
    if (parsed == nullptr || mask == nullptr) {
        setting_free(parsed);
        setting_free(mask);
        return false;
    }
    const size_t length = strlen(text);
    parsed->state = randflake::ParseKey(text, length, &parsed->key) ? SecretState::kValid
                                                                    : SecretState::kMalformed;
    explicit_bzero(text, length);
    setting_free(text);
    *new_value = mask;
    *extra = parsed;
    return true;
}

static void assign_secret(const char*, void* extra) {
    if (extra != nullptr)
        secret = *static_cast<Secret*>(extra);
}

void secret_define_settings() {
    DefineCustomStringVariable(
        "randflake.secret", "Secret key of the identifiers, 32 hexadecimal digits.",
        "Shown masked. Prefer \"randflake.secret_file\": configuration files end up in backups.",
        &setting_secret, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, check_secret,
        assign_secret, nullptr);
    DefineCustomStringVariable(
        "randflake.secret_file", "File that holds the secret key of the identifiers.",
        "32 hexadecimal digits; readable by the server's user alone. Relative to the data "
        "directory.",
        &setting_secret_file, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY, nullptr, nullptr, nullptr);
}

static void fail_malformed(const char* setting) {
    ereport(
        FATAL,
        (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
         errmsg("\"%s\" does not hold a valid secret", setting),
         errdetail("A secret is exactly %d hexadecimal digits.", static_cast<int>(kSecretDigits)),
         errhint("Make one with: openssl rand -hex %d", static_cast<int>(randflake::kKeyBytes))));
}

// The rules of the server's own TLS key: a regular file, owned by the server's user with no access
// for others, or by root with at most read access for the group.
static void check_secret_file_permissions(int fd, const char* path) {
    struct stat status;
    if (fstat(fd, &status) != 0)
        ereport(FATAL,
                (errcode_for_file_access(), errmsg("could not stat secret file \"%s\": %m", path),
                 errdetail("It is named by \"randflake.secret_file\".")));
    if (!S_ISREG(status.st_mode))
        ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                        errmsg("secret file \"%s\" is not a regular file", path),
                        errdetail("It is named by \"randflake.secret_file\".")));
    if (status.st_uid != geteuid() && status.st_uid != 0)
        ereport(FATAL,
                (errcode(ERRCODE_CONFIG_FILE_ERROR),
                 errmsg("secret file \"%s\" must be owned by the server's user or root", path),
                 errdetail("It is named by \"randflake.secret_file\".")));
    const mode_t forbidden =
        status.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IWGRP | S_IXGRP | S_IRWXO;
    if ((status.st_mode & forbidden) != 0)
        ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                        errmsg("secret file \"%s\" has group or world access", path),
                        errdetail("The file named by \"randflake.secret_file\" must have "
                                  "permissions u=rw (0600) or less if owned by the server's user, "
                                  "or permissions u=rw,g=r (0640) or less if owned by root.")));
}

static void read_secret_file(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        ereport(FATAL,
                (errcode_for_file_access(), errmsg("could not open secret file \"%s\": %m", path),
                 errdetail("It is named by \"randflake.secret_file\".")));
    check_secret_file_permissions(fd, path);

    // Room for the digits and for white space at the end. A file that fills it is too long.
    char text[kSecretDigits + 32];
    ssize_t length = 0;
    while (length < static_cast<ssize_t>(sizeof text)) {
        const ssize_t got = read(fd, text + length, sizeof text - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            ereport(FATAL, (errcode_for_file_access(),
                            errmsg("could not read secret file \"%s\": %m", path),
                            errdetail("It is named by \"randflake.secret_file\".")));
        if (got == 0)
            break;
        length += got;
    }
    close(fd);
    const bool too_long = length == static_cast<ssize_t>(sizeof text);
    static constexpr char kWhiteSpace[] = {' ', '\t', '\r', '\n'};
    while (length > 0 && memchr(kWhiteSpace, text[length - 1], sizeof kWhiteSpace) != nullptr)
        length--;
    secret.state = !too_long && randflake::ParseKey(text, length, &secret.key)
                       ? SecretState::kValid
                       : SecretState::kMalformed;
    explicit_bzero(text, sizeof text);
}

void secret_load() {
    // Other processes than the postmaster get the key schedule through shared memory.
    if (IsUnderPostmaster)
        return;
    if (secret.state != SecretState::kUnset && setting_secret_file[0] != '\0')
        ereport(FATAL, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("both \"randflake.secret\" and \"randflake.secret_file\" are set"),
                        errhint("Remove \"randflake.secret\".")));
    if (secret.state == SecretState::kMalformed)
        fail_malformed("randflake.secret");
    if (setting_secret_file[0] != '\0') {
        read_secret_file(setting_secret_file);
        if (secret.state == SecretState::kMalformed)
            fail_malformed("randflake.secret_file");
    }
}

// HMAC-SHA-256 of a fixed text under the secret.
static void hmac_of_text(const randflake::Key& key, const char* text,
                         uint8 (&digest)[PG_SHA256_DIGEST_LENGTH]) {
    pg_hmac_ctx* context = pg_hmac_create(PG_SHA256);
    if (context == nullptr || pg_hmac_init(context, key.bytes, sizeof key.bytes) < 0 ||
        pg_hmac_update(context, reinterpret_cast<const uint8*>(text), strlen(text)) < 0 ||
        pg_hmac_final(context, digest, sizeof digest) < 0)
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("could not compute HMAC-SHA-256 of the secret")));
    pg_hmac_free(context);
}

uint64 secret_fingerprint(const randflake::Key& key) {
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    hmac_of_text(key, "randflake key check", digest);
    uint64 check;
    memcpy(&check, digest, sizeof check);
    return pg_ntoh64(check);
}

randflake::SipKey secret_hash_key(const randflake::Key& key) {
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    hmac_of_text(key, "randflake type hash", digest);
    return randflake::SipKey::FromBytes(digest);
}

const char* secret_fingerprint_text(const randflake::Key& key) {
    return psprintf("%016llx", static_cast<unsigned long long>(secret_fingerprint(key)));
}

void secret_init_shared() {
    shared->has_key = secret.state == SecretState::kValid;
    if (!shared->has_key)
        return;
    shared->key = secret.key;
    shared->key_schedule = randflake::ExpandKey(secret.key);
}
