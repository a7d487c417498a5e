// What the coordinator's SQL functions need from C. Works without preloading.

#include "pg/file_identity.h"
#include "pg/sql_function.h"

SQL_FUNCTION(randflake_coordinator_identity) {
    if (RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("cannot lease node ids during recovery"),
                        errhint("Lease them from the primary server.")));
    // Two files that every data directory has and that the server never replaces. One never
    // changes, so it tells a time even where the file system knows only that of the last change.
    // The other changes all the time, so that no restore into the same directory leaves it alone.
    randflake::FileIdentity identity;
    randflake::FileIdentity control;
    FileFailure failure = file_identity("PG_VERSION", &identity);
    if (failure.error == 0)
        failure = file_identity("global/pg_control", &control);
    if (failure.error != 0) {
        errno = failure.error;
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not %s file \"%s\": %m", failure.action, failure.path)));
    }
    PG_RETURN_TEXT_P(cstring_to_text(psprintf(
        "%016llx/%u/%llx.%llx.%llx.%llx/%u", static_cast<unsigned long long>(GetSystemIdentifier()),
        GetWALInsertionTimeLine(), static_cast<unsigned long long>(identity.inode),
        static_cast<unsigned long long>(identity.device),
        static_cast<unsigned long long>(identity.birth_nanoseconds),
        static_cast<unsigned long long>(control.inode), MyDatabaseId)));
}
