// Secrets pass through three places, none of which keeps their text:
//   the setting   The check hook parses the value, passes the key on in the hook's `extra`, and
//                 replaces the text by asterisks. So SHOW, pg_settings and messages show asterisks.
//   the file      The server reads it at its start and in randflake_reload_secret(), and wipes the
//                 buffer.
//   the keys      The postmaster copies them from a static variable to shared memory. After a crash
//                 of a backend, it saves added secrets before it recreates shared memory.
//
// A malformed secret must stop the server's start, and no message may quote it. If a check hook
// returns false, the server quotes the value or only warns. So the hook accepts every value, and
// secret_load raises the error.

#include "pg/secret/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pg/base/compat.h"
#include "pg/base/shared_memory.h"

using namespace randflake;

namespace {
enum class SecretState : uint8_t { kUnset, kMalformed, kValid };

struct SettingSecret {
    SecretState state;
    Key key;
};
}  // namespace

static constexpr char kMask[] = "********";

// A valid secret file has at most this size, including comments.
static constexpr size_t kMaxFileBytes = 8192;

static char* setting_secret;
static char* setting_secret_file;
static SettingSecret secret;
static SecretList secrets;

static bool check_secret(char** new_value, void** extra, GucSource) {
    char* text = *new_value;
    if (text[0] == '\0') return true;

    auto* parsed = static_cast<SettingSecret*>(setting_alloc(sizeof(SettingSecret)));
    char* mask = setting_strdup(kMask);
    if (parsed == nullptr || mask == nullptr) {
        setting_free(parsed);
        setting_free(mask);
        return false;
    }
    const size_t length = strlen(text);
    parsed->state =
        ParseKey(text, length, &parsed->key) ? SecretState::kValid : SecretState::kMalformed;
    explicit_bzero(text, length);
    setting_free(text);
    *new_value = mask;
    *extra = parsed;
    return true;
}

static void assign_secret(const char*, void* extra) {
    if (extra != nullptr) secret = *static_cast<SettingSecret*>(extra);
}

void secret_define_settings() {
    DefineCustomStringVariable(
        "randflake.secret", "Secret key of the identifiers, 32 hexadecimal digits.",
        "Shown masked. Prefer \"randflake.secret_file\": configuration files end up in backups.",
        &setting_secret, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, check_secret,
        assign_secret, nullptr);
    DefineCustomStringVariable(
        "randflake.secret_file", "File that holds the secret keys of the identifiers.",
        "32 hexadecimal digits; in further lines the same, \"from\" and a time. Readable by the "
        "server's user alone. Relative to the data directory.",
        &setting_secret_file, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY, nullptr, nullptr, nullptr);
}

static int malformed_hint() {
    return errhint("Make one with: openssl rand -hex %d", static_cast<int>(kKeyBytes));
}

// The caller wipes the text and closes the file before a call that may raise an error.

static int file_detail() { return errdetail("\"randflake.secret_file\" names it."); }

// The hint does not suggest a new secret, because that would not decode existing identifiers.
static int file_hint() {
    return errhint(
        "Put the file of this server's secrets there, readable by the server's user, or "
        "correct \"randflake.secret_file\"; a relative path begins in the data "
        "directory.");
}

// Applies PostgreSQL's rules for TLS keys. The file must give other users no access. If root owns
// the file, the file's group may read it.
static void check_permissions(const struct stat& status, const char* path, int level) {
    if (!S_ISREG(status.st_mode))
        ereport(level, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                        errmsg("secret file \"%s\" is not a regular file", path), file_detail(),
                        file_hint()));
    if (status.st_uid != geteuid() && status.st_uid != 0) {
        ereport(level,
                (errcode(ERRCODE_CONFIG_FILE_ERROR),
                 errmsg("secret file \"%s\" must be owned by the server's user or root", path),
                 file_detail(), errhint("Give it to one of them with chown.")));
    }
    const mode_t forbidden =
        status.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IWGRP | S_IXGRP | S_IRWXO;
    if ((status.st_mode & forbidden) != 0)
        ereport(level, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                        errmsg("secret file \"%s\" has group or world access", path),
                        errdetail("The file named by \"randflake.secret_file\" must have "
                                  "permissions u=rw (0600) or less if owned by the server's user, "
                                  "or permissions u=rw,g=r (0640) or less if owned by root."),
                        errhint("Run: chmod %s \"%s\"",
                                status.st_uid == 0 && geteuid() != 0 ? "0640" : "0600", path)));
}

// Returns how many of `size` bytes it read. On a failure, returns a negative number and sets errno.
static ssize_t read_bytes(int fd, char* bytes, size_t size) {
    size_t length = 0;
    while (length < size) {
        const ssize_t got = read(fd, bytes + length, size - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return got;
        if (got == 0) break;
        length += static_cast<size_t>(got);
    }
    return static_cast<ssize_t>(length);
}

static void check_content(const SecretFileResult& result, bool too_long, int level) {
    if (!too_long && result.error == SecretFileError::kNone) return;
    const char* why = SecretFileErrorText(result.error);
    const bool no_secret =
        result.error == SecretFileError::kEmpty || result.error == SecretFileError::kNotASecret;
    ereport(level, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("\"%s\" does not hold a valid secret", "randflake.secret_file"),
                    too_long          ? errdetail("The file is longer than %d bytes.",
                                                  static_cast<int>(kMaxFileBytes))
                    : result.line > 0 ? errdetail("Line %d is wrong. %s", result.line, why)
                                      : errdetail("%s", why),
                    no_secret ? malformed_hint()
                              : errhint("Correct the file, but keep the lines that "
                                        "were in use.")));
}

static SecretList read_secret_file(const char* path, int level) {
    Assert(level >= ERROR);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        ereport(level,
                (errcode_for_file_access(), errmsg("could not open secret file \"%s\": %m", path),
                 file_detail(), file_hint()));
    struct stat status;
    char text[kMaxFileBytes + 1];  // a file that fills it is too long
    const bool found = fstat(fd, &status) == 0;
    const ssize_t length = found && S_ISREG(status.st_mode) ? read_bytes(fd, text, sizeof text) : 0;
    const int error = errno;
    close(fd);
    const bool too_long = length > static_cast<ssize_t>(kMaxFileBytes);
    SecretList list{};
    SecretFileResult result{};
    if (found && length >= 0 && !too_long)
        result = ParseSecretFile(text, static_cast<size_t>(length), &list);
    explicit_bzero(text, sizeof text);
    if (result.error != SecretFileError::kNone) explicit_bzero(&list, sizeof list);

    if (!found || length < 0) {
        errno = error;
        ereport(level,
                (errcode_for_file_access(),
                 errmsg("could not %s secret file \"%s\": %m", found ? "read" : "stat", path),
                 file_detail(), file_hint()));
    }
    check_permissions(status, path, level);
    check_content(result, too_long, level);
    return list;
}

void secret_load() {
    // Processes other than the postmaster get the secrets from shared memory.
    if (IsUnderPostmaster) return;
    Assert(process_shared_preload_libraries_in_progress);
    if (secret.state != SecretState::kUnset && setting_secret_file[0] != '\0')
        ereport(FATAL, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("both \"randflake.secret\" and \"randflake.secret_file\" are set"),
                        errhint("Remove \"randflake.secret\".")));
    if (secret.state == SecretState::kMalformed)
        ereport(FATAL, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("\"%s\" does not hold a valid secret", "randflake.secret"),
                        errdetail("%s", SecretFileErrorText(SecretFileError::kNotASecret)),
                        malformed_hint()));
    if (setting_secret_file[0] != '\0')
        secrets = read_secret_file(setting_secret_file, FATAL);
    else if (secret.state == SecretState::kValid)
        secrets = {1, {{secret.key, {}}}};
}

SecretList secret_read_again() {
    if (setting_secret_file[0] == '\0')
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("\"randflake.secret_file\" is not set"),
             errhint("Put the secret that is in \"randflake.secret\" into a file, name the file "
                     "in \"randflake.secret_file\" and restart the server.")));
    return read_secret_file(setting_secret_file, ERROR);
}

static void hmac_of_text(const Key& key, const char* text, const uint8* more, size_t more_length,
                         uint8 (&digest)[PG_SHA256_DIGEST_LENGTH]) {
    Assert(CurrentResourceOwner != nullptr);
    pg_hmac_ctx* context = pg_hmac_create(PG_SHA256);
    if (context == nullptr || pg_hmac_init(context, key.bytes, sizeof key.bytes) < 0 ||
        pg_hmac_update(context, reinterpret_cast<const uint8*>(text), strlen(text)) < 0 ||
        pg_hmac_update(context, more, more_length) < 0 ||
        pg_hmac_final(context, digest, sizeof digest) < 0)
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("could not compute HMAC-SHA-256 of the secret")));
    pg_hmac_free(context);
}

SecretRecords secret_records(const SecretList& list) {
    SecretRecords records{};
    uint64 fingerprint = 0;  // in network byte order
    for (int i = 0; i < list.count; i++) {
        const uint32 from = pg_hton32(static_cast<uint32>(list.secrets[i].from.count));
        uint8 place[sizeof fingerprint + sizeof from];
        memcpy(place, &fingerprint, sizeof fingerprint);
        memcpy(place + sizeof fingerprint, &from, sizeof from);
        uint8 digest[PG_SHA256_DIGEST_LENGTH];
        hmac_of_text(list.secrets[i].key, "randflake key check", place, i == 0 ? 0 : sizeof place,
                     digest);
        memcpy(&fingerprint, digest, sizeof fingerprint);
        records.records[i] = {pg_ntoh64(fingerprint), list.secrets[i].from};
    }
    records.count = static_cast<uint32>(list.count);
    return records;
}

SecretRecords secret_records() {
    const SecretRing ring = secret_ring();
    SecretList list{};
    for (int i = 0; i < ring.count(); i++)
        list.secrets[i] = {shared_secrets->keys[i], ring[i].from};
    list.count = ring.count();
    return secret_records(list);
}

const char* secret_fingerprint_text(const SecretRecord& record) {
    auto* text = static_cast<char*>(palloc(kFingerprintText + 1));
    FormatFingerprint(record.fingerprint, text);
    return text;
}

const char* secret_entry_text(const SecretRecord& record) {
    const char* fingerprint = secret_fingerprint_text(record);
    return record.from == Second{0}
               ? fingerprint
               : psprintf("%s@" INT64_FORMAT, fingerprint, ToUnix(record.from).count);
}

const char* secret_fingerprints_text(const SecretRecords& records) {
    auto* text = static_cast<char*>(palloc(kMaxFingerprintsText));
    FormatFingerprints(records, text);
    return text;
}

SipKey secret_permutation_key(int generation, const char* use, const uint8* label, size_t length) {
    uint8 more[1 + kMaxLabelBytes] = {};
    Assert(length <= kMaxLabelBytes);
    Assert(generation >= 0 && generation < shared_secrets->count);
    memcpy(more + 1, label, length);
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    hmac_of_text(shared_secrets->keys[generation], use, more, 1 + length, digest);
    return SipKey::FromBytes(digest);
}

SecretRing53 secret_ring53() {
    static Generation53 generations[kMaxGenerations];
    static int derived;
    static constexpr uint8 kNoLabel[1] = {};
    const SecretRing ring = secret_ring();
    for (; derived < ring.count(); derived++)
        generations[derived] = {ring[derived].from,
                                secret_permutation_key(derived, "randflake 53", kNoLabel, 0)};
    return {generations, ring.count()};
}

void secret_add_shared(const SecretList& list) {
    SharedSecrets& to = *shared_secrets;
    Assert(list.count <= kMaxGenerations && list.count >= to.count);
    for (int i = to.count.load(std::memory_order_relaxed); i < list.count; i++) {
        to.keys[i] = list.secrets[i].key;
        to.generations[i] = {list.secrets[i].from, ExpandKey(list.secrets[i].key)};
    }
    to.count.store(list.count, std::memory_order_release);
}

static void secret_init() { secret_add_shared(secrets); }

SharedSecrets* shared_secrets;
const SharedPart secret_part = kSharedPart<SharedSecrets, shared_secrets, secret_init>;

// A crash may have damaged shared memory. Each key must still match its schedule.
static bool is_intact(const SharedSecrets& from, int count) {
    if (count < secrets.count || count > kMaxGenerations) return false;
    for (int i = 0; i < count; i++) {
        const Generation& generation = from.generations[i];
        const KeySchedule schedule = ExpandKey(from.keys[i]);
        if (memcmp(&schedule, &generation.schedule, sizeof schedule) != 0 ||
            (i < secrets.count && (from.keys[i] != secrets.secrets[i].key ||
                                   generation.from != secrets.secrets[i].from)) ||
            (i > 0 && generation.from <= from.generations[i - 1].from))
            return false;
    }
    return true;
}

void secret_keep_added() {
    Assert(!IsUnderPostmaster);
    const SharedSecrets& from = *shared_secrets;
    const int count = from.count.load(std::memory_order_relaxed);
    if (!is_intact(from, count)) {
        secrets.count = 0;
        ereport(LOG, (errmsg("randflake goes on without a secret"),
                      errhint("Let a superuser run randflake_reload_secret().")));
        return;
    }
    for (int i = secrets.count; i < count; i++)
        secrets.secrets[i] = {from.keys[i], from.generations[i].from};
    secrets.count = count;
}
