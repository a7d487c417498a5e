// Hides the differences among PostgreSQL 15 to 19. No other file of src/pg tests PG_VERSION_NUM.

#pragma once

#include "pg/base/pg.h"

#if PG_VERSION_NUM < 150000
#error "randflake needs PostgreSQL 15 or newer"
#elif PG_VERSION_NUM >= 200000
#pragma message "randflake is tested with PostgreSQL 15 to 19; this one is newer"
#endif

// Since PostgreSQL 18 the magic block has a name and a version. pg_get_loaded_modules() shows both.
#if PG_VERSION_NUM >= 180000
#define RANDFLAKE_MODULE_MAGIC \
    PG_MODULE_MAGIC_EXT(.name = "randflake", .version = RANDFLAKE_VERSION)
#else
#define RANDFLAKE_MODULE_MAGIC PG_MODULE_MAGIC
#endif

// Returns a small number that no other live process has.
static inline int backend_number() {
    Assert(MyProc != nullptr);
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyProc->pgprocno;
#endif
}

// Allocates memory for a setting's value, which PostgreSQL can free. Returns null on failure.
static inline void* setting_alloc(size_t size) {
#if PG_VERSION_NUM >= 160000
    return guc_malloc(LOG, size);
#else
    return malloc(size);
#endif
}

static inline char* setting_strdup(const char* text) {
#if PG_VERSION_NUM >= 160000
    return guc_strdup(LOG, text);
#else
    return strdup(text);
#endif
}

static inline void setting_free(void* pointer) {
#if PG_VERSION_NUM >= 160000
    guc_free(pointer);
#else
    free(pointer);
#endif
}

// Returns true if a reload changed this setting, but the change needs a restart to take effect.
static inline bool setting_awaits_start(const char* name) {
    const struct config_generic* setting = nullptr;
#if PG_VERSION_NUM >= 160000
    setting = find_option(name, false, true, 0);
#else
    for (int i = 0; setting == nullptr && i < GetNumConfigOptions(); i++)
        if (strcmp(get_guc_variables()[i]->name, name) == 0) setting = get_guc_variables()[i];
#endif
    return setting != nullptr && (setting->status & GUC_PENDING_RESTART) != 0;
}

// PostgreSQL 18 removed the last argument of ExecutorRun, which says whether a portal runs once.
#if PG_VERSION_NUM >= 180000
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count
#define RUN_ARGUMENTS query, direction, count
#else
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define RUN_ARGUMENTS query, direction, count, once
#endif

// Raises an error. But since PostgreSQL 16, a caller can collect errors in `context`. Then this
// macro saves the error there and returns.
#if PG_VERSION_NUM >= 160000
#define soft_ereport(context, ...) errsave(context, __VA_ARGS__)
#else
#define soft_ereport(context, ...)   \
    do {                             \
        (void)(context);             \
        ereport(ERROR, __VA_ARGS__); \
    } while (0)
#endif

static inline bool may_execute(Oid function) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#else
    return pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

static inline bool may_use_type(Oid type) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(TypeRelationId, type, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
#else
    return pg_type_aclcheck(type, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
#endif
}

// Returns the wait event that pg_stat_activity shows. Before PostgreSQL 17 its name is "Extension".
static inline uint32 wait_event(const char* name) {
#if PG_VERSION_NUM >= 170000
    return WaitEventExtensionNew(name);
#else
    (void)name;
    return PG_WAIT_EXTENSION;
#endif
}
