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

using randflake::Reload;
using randflake::ReloadError;
using randflake::ReloadPlan;
using randflake::SecretList;
using randflake::SecretRecords;
using randflake::SecretRing;

static void require_accepted(const ReloadPlan& plan, const Reload& reload, uint32 written_end) {
    const uint32 number = plan.secret + 1;
    switch (plan.error) {
        case ReloadError::kNone:
            return;
        case ReloadError::kNotGrown:
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("secrets can only be added after the last one"),
                     plan.secret >= reload.after.count
                         ? errdetail("This server has %u secrets, \"randflake.secret_file\" "
                                     "holds %u.",
                                     reload.before.count, reload.after.count)
                         : errdetail("Secret %u of \"randflake.secret_file\", or its time, is "
                                     "another one than this server has.",
                                     number),
                     errhint("Put the former lines back, and the new secret below them. One that "
                             "has not begun yet can be changed with a restart of the server.")));
            break;
        case ReloadError::kTooEarly:
            ereport(
                ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("secret %u of \"randflake.secret_file\" begins too early", number),
                 errdetail("It begins at %s. Identifiers of that time may have been made "
                           "already; the earliest possible time is %s.",
                           second_text(reload.after.records[plan.secret].from),
                           second_text(plan.earliest)),
                 errhint("Let it begin later, on every server. Allow for the time that it takes "
                         "to reach them all.")));
            break;
        case ReloadError::kRefused:
            raise_error(secrets_refused_error(written_end));
    }
}

// Whether the server makes identifiers, or would if it were asked.
static bool generates() {
    return !RecoveryInProgress() && (setting_node_id >= 0 || shared->leased);
}

// Returns how many secrets the server has now.
SQL_FUNCTION(randflake_reload_secret) {
    require_preload();
    const SecretList list = secret_read_again();
    Reload reload{};
    reload.after = secret_records(list);
    reload.leased = shared->leased;
    WindowControl* control = &shared->window_control;

    // Under this lock no window is opened or extended, see window.cpp.
    LWLockAcquire(shared->window_lock, LW_EXCLUSIVE);
    const int before = secret_ring().count();
    reload.before = secret_records();
    reload.issues = generates();
    reload.clock_ms = precise_milliseconds();
    reload.skew_ms = setting_max_clock_skew;
    // What has made nothing since its start may take what has begun elsewhere: a standby, and a
    // server whose secrets were lost in a crash. The state on disk is asked before their
    // first window opens.
    if (reload.NeedsState() && !window_load_state())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("could not find out which identifiers were made before"),
                        errdetail("The server log has the reason.")));
    // What the lease worker hears from here on counts only if it named the added secrets.
    LWLockAcquire(shared->lease_lock, LW_SHARED);
    reload.leases_end = shared->lease_control.holder.LastEnd();
    require_accepted(PlanReload(reload, control->loaded ? &control->state : nullptr), reload,
                     control->state.LastEnd());
    secret_add_shared(list);
    window_take_secrets(reload.after);
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
