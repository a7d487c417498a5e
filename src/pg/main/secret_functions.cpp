// Defines the SQL functions that show the fingerprints of this server's secrets and add secrets.

#include "pg/base/clock.h"
#include "pg/base/sql_function.h"
#include "pg/base/timestamp.h"
#include "pg/lease/lease_report.h"
#include "pg/secret/secret.h"
#include "pg/server/require.h"
#include "pg/server/window_report.h"

using namespace randflake;

static void require_accepted(const ReloadPlan& plan, const Reload& reload, Second written_end) {
    const uint32 number = plan.secret + 1;
    switch (plan.error) {
        case ReloadError::kNone: return;
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
        case ReloadError::kRefused: raise_error(secrets_refused_error(written_end));
    }
}

SQL_FUNCTION(randflake_reload_secret) {
    require_preload();
    const SecretList list = secret_read_again();
    const ReloadResult result = server.AddSecrets(secret_records(list), list);
    if (!result.state_known)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("could not find out which identifiers were made before"),
                        errdetail("The server log has the reason."),
                        errhint("Run randflake_reload_secret() again once the data directory can "
                                "be read and written.")));
    require_accepted(result.plan, result.reload, result.written_end);
    lease_wake_worker();

    if (static_cast<uint32>(list.count) > result.reload.before.count)
        ereport(LOG, (errmsg("randflake has %d secrets", list.count),
                      list.count > 1 ? errdetail("The last one begins at %s.",
                                                 second_text(list.secrets[list.count - 1].from))
                                     : 0));
    PG_RETURN_INT32(list.count);
}

// Returns SETOF (generation integer, fingerprint text, valid_from timestamptz, state text)
SQL_FUNCTION(randflake_secrets) {
    require_preload();
    InitMaterializedSRF(fcinfo, 0);
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    const SecretRecords records = secret_records();
    const SecretRing ring = secret_ring();
    const int current = ring.GenerationAt(wall_clock_second());
    for (int i = 0; i < static_cast<int>(records.count); i++) {
        Datum values[] = {Int32GetDatum(i + 1),
                          CStringGetTextDatum(secret_fingerprint_text(records.records[i])),
                          TimestampTzGetDatum(timestamp_of(records.records[i].from)),
                          CStringGetTextDatum(i < current    ? "past"
                                              : i == current ? "current"
                                                             : "future")};
        bool nulls[] = {false, false, i == 0, false};
        require_columns(result->setDesc, lengthof(values));
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return Datum{0};
}
