// SQL functions of the secrets: what this server has, and taking more of them from the file while
// it runs. No secret leaves through them, only fingerprints.

#include "pg/clock.h"
#include "pg/require.h"
#include "pg/result_row.h"
#include "pg/secret.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/sql_function.h"
#include "pg/timestamp.h"
#include "pg/window.h"

using randflake::LeaseHolder;
using randflake::SecretList;
using randflake::SecretRecords;
using randflake::SecretRing;
using randflake::SecretsChange;

// Secrets may be added behind the last one, and nothing else may change: what was issued keeps its
// meaning.
static void require_grown(const SecretList& list) {
    const SecretRing ring = secret_ring();
    for (int i = 0; i < ring.count(); i++) {
        const bool missing = i >= list.count;
        if (missing || list.secrets[i].from != ring[i].from ||
            list.secrets[i].key != shared->secrets.keys[i])
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("secrets can only be added after the last one"),
                     missing ? errdetail("This server has %d secrets, \"randflake.secret_file\" "
                                         "holds %d.",
                                         ring.count(), list.count)
                             : errdetail("Secret %d of \"randflake.secret_file\", or its time, is "
                                         "another one than this server has.",
                                         i + 1),
                     errhint("Put the former lines back, and the new secret below them. One that "
                             "has not begun yet can be changed with a restart of the server.")));
    }
}

// The first second that may be an added secret's. Nobody has used it or anything later: this server
// by what it announced and leased; others by their clocks, or, where node ids are leased, by the
// coordinator, which lets nobody reach a second that not all know to be another secret's. So a
// server that has stopped there takes the secret of a time that has come, and goes on.
static uint32 earliest_of_secret(const WindowControl& control, const LeaseHolder& holder) {
    const int64 reached =
        precise_milliseconds() + setting_max_clock_skew - randflake::kWindowEpochMs;
    const int64 after = shared->leased ? Max(holder.open().end, holder.next().end)
                                       : reached / randflake::kSecondMs + 1;
    return static_cast<uint32>(Min(Max(Max(after, int64{1}), int64{control.state.LastEnd()}),
                                   SecondsEnd(randflake::kRandflake)));
}

static void require_not_early(const SecretList& list, uint32 earliest) {
    for (int i = secret_ring().count(); i < list.count; i++)
        if (list.secrets[i].from < earliest)
            ereport(
                ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("secret %d of \"randflake.secret_file\" begins too early", i + 1),
                 errdetail("It begins at %s. Identifiers of that time may have been made "
                           "already; the earliest possible time is %s.",
                           second_text(list.secrets[i].from), second_text(earliest)),
                 errhint("Let it begin later, on every server. Allow for the time that it takes "
                         "to reach them all.")));
}

// Whether the server makes identifiers, or would if it were asked.
static bool generates() {
    return !RecoveryInProgress() && (setting_node_id >= 0 || shared->leased);
}

// Returns how many secrets the server has now.
SQL_FUNCTION(randflake_reload_secret) {
    require_preload();
    const SecretList list = secret_read_again();
    const SecretRecords records = secret_records(list);
    WindowControl* control = &shared->window_control;

    // Under this lock no window is opened or extended, see window.cpp.
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
    const int before = secret_ring().count();
    require_grown(list);
    // What has made nothing since its start may take what has begun elsewhere: a standby, and a
    // server whose secrets were lost in a crash. The state on disk is asked before their
    // first window opens.
    const bool generated = list.count > before && before > 0 && generates();
    if (generated && !window_load_state())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("could not find out which identifiers were made before"),
                        errdetail("The server log has the reason.")));
    // What the lease worker hears from here on counts only if it named the added secrets.
    LWLockAcquire(shared->lease_lock, LW_SHARED);
    if (generated)
        require_not_early(list, earliest_of_secret(*control, shared->lease_control.holder));
    if (control->loaded) {
        const uint32 end = control->state.LastEnd();
        if (CompareSecrets(control->state.secrets, records, end) == SecretsChange::kRefused)
            raise_error(secrets_refused_error(end));
        control->state.secrets = records;
    }
    secret_add_shared(list);
    LWLockRelease(shared->lease_lock);
    LWLockRelease(shared->window_lock);
    lease_wake_worker();

    if (list.count > before)
        ereport(LOG, (errmsg("randflake has %d secrets", list.count),
                      list.count > 1 ? errdetail("The last one begins at %s.",
                                                 second_text(list.secrets[list.count - 1].from))
                                     : 0));
    PG_RETURN_INT32(list.count);
}

// SETOF (generation integer, fingerprint text, valid_from timestamptz, state text)
SQL_FUNCTION(randflake_secrets) {
    require_preload();
    InitMaterializedSRF(fcinfo, 0);
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    const SecretRecords records = secret_records();
    const SecretRing ring = secret_ring();
    const int current = ring.GenerationAt(static_cast<uint64>(Max(wall_clock_seconds(), 0)));
    for (int i = 0; i < static_cast<int>(records.count); i++) {
        Datum values[] = {
            Int32GetDatum(i + 1),
            PointerGetDatum(cstring_to_text(secret_fingerprint_text(records.records[i]))),
            TimestampTzGetDatum(timestamp_of_second(records.records[i].from)),
            PointerGetDatum(cstring_to_text(i < current    ? "past"
                                            : i == current ? "current"
                                                           : "future"))};
        bool nulls[] = {false, false, i == 0, false};
        require_columns(result->setDesc, lengthof(values));
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return Datum{0};
}

// Fingerprint of this server's first secret; up to version 1.0 of the extension randflake_type.
SQL_FUNCTION(randflake_key_fingerprint) {
    require_secret();
    PG_RETURN_TEXT_P(cstring_to_text(secret_fingerprint_text(secret_records().records[0])));
}
