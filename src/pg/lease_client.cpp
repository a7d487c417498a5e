// A grant counts only when the coordinator said that it is committed:
//
//   - Every request is one statement in the simple query protocol, so that the server commits
//     before it reports completion, and no transaction waits for this process.
//   - A broken connection, a timeout or an error is no grant.
//   - A warning is no grant either: a cancelled wait for a synchronous standby commits locally,
//     warns, and may be lost in a failover.

#include "pg/lease_client.h"

#include <libpq-fe.h>

#include "pg/clock.h"
#include "pg/compat.h"
#include "pg/lease.h"
#include "pg/settings.h"

// object_not_in_prerequisite_state: what the coordinator's functions raise to refuse. Any other
// error is the lack of an answer: a standby, a cancelled query, a full disk.
static constexpr char kRefusal[] = "55000";

static PGconn* connection;
static bool warned;   // during the current request
static bool refused;  // the last failure was a refusal
static char error[256];
static uint32 first_host;  // which of the connection string's hosts is tried first

static bool fail(const char* message) {
    strlcpy(error, message, sizeof error);
    // libpq breaks its messages into lines.
    for (char* at = error; *at != '\0'; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    for (char* end = error + strlen(error); end > error && end[-1] == ' '; end--)
        end[-1] = '\0';
    return false;
}

static bool fail_and_disconnect(const char* message) {
    fail(message);
    lease_client_disconnect();
    return false;
}

bool lease_client_refused() {
    return refused;
}

const char* lease_client_error() {
    return error;
}

void lease_client_disconnect() {
    if (connection != nullptr)
        PQfinish(connection);
    connection = nullptr;
}

static void on_notice(void*, const PGresult* result) {
    const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != nullptr && strcmp(severity, "WARNING") == 0) {
        warned = true;
        fail(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    }
}

// Waits for the socket. False at the deadline or when the worker has other things to do.
static bool wait_for_socket(int events, int64 deadline, bool interruptible) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        if (interruptible && (ShutdownRequestPending || ConfigReloadPending))
            return fail("interrupted by a shutdown or a reload of the settings");
        const int64 left = deadline - steady_milliseconds();
        if (left <= 0) {
            // A host that hangs must not keep the others from being asked.
            first_host++;
            return fail("the coordinator did not answer in time");
        }
        const int happened = WaitLatchOrSocket(
            MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_TIMEOUT | events, PQsocket(connection),
            static_cast<long>(left), wait_event(kLeaseWaitEvent));
        if ((happened & WL_LATCH_SET) != 0)
            ResetLatch(MyLatch);
        if ((happened & events) != 0)
            return true;
    }
}

// A comma-separated list, beginning with another of its items. Null for null; palloc'd.
static char* rotated(const char* list, uint32 first) {
    if (list == nullptr)
        return nullptr;
    uint32 items = 1;
    for (const char* at = list; *at != '\0'; at++)
        items += *at == ',';
    const char* head = list;
    for (uint32 skip = first % items; skip > 0; skip--)
        head = strchr(head, ',') + 1;
    if (head == list)
        return pstrdup(list);
    return psprintf("%s,%.*s", head, static_cast<int>(head - list) - 1, list);
}

// Starts to connect, with the hosts of the connection string in turn. A host that cannot be reached
// is given up after a few seconds and the next one tried; the library's own connect_timeout does
// not apply to connections that do not block. Parameters before the connection string are defaults,
// those after it have the last word.
static PGconn* start_connection() {
    char* message = nullptr;
    PQconninfoOption* options = PQconninfoParse(setting_coordinator, &message);
    if (options == nullptr) {
        fail(message != nullptr ? message : "out of memory");
        PQfreemem(message);
        return nullptr;
    }
    const char* host = nullptr;
    const char* hostaddr = nullptr;
    const char* port = nullptr;
    for (const PQconninfoOption* option = options; option->keyword != nullptr; option++) {
        if (strcmp(option->keyword, "host") == 0)
            host = rotated(option->val, first_host);
        else if (strcmp(option->keyword, "hostaddr") == 0)
            hostaddr = rotated(option->val, first_host);
        else if (strcmp(option->keyword, "port") == 0)
            port = rotated(option->val, first_host);
    }
    PQconninfoFree(options);

    const char* const names[] = {"fallback_application_name",
                                 "tcp_user_timeout",
                                 "dbname",
                                 "host",
                                 "hostaddr",
                                 "port",
                                 nullptr};
    const char* const values[] = {"randflake", "3000", setting_coordinator, host, hostaddr,
                                  port,        nullptr};
    PGconn* started = PQconnectStartParams(names, values, 1);
    if (started == nullptr)
        fail("out of memory");
    return started;
}

static bool connect(int64 deadline, bool interruptible) {
    connection = start_connection();
    if (connection == nullptr)
        return false;
    if (PQstatus(connection) == CONNECTION_BAD)
        return fail_and_disconnect(PQerrorMessage(connection));

    PQsetNoticeReceiver(connection, on_notice, nullptr);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
        const int events =
            state == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;
        if (!wait_for_socket(events, deadline, interruptible)) {
            lease_client_disconnect();
            return false;
        }
        state = PQconnectPoll(connection);
        if (state == PGRES_POLLING_FAILED)
            return fail_and_disconnect(PQerrorMessage(connection));
    }
    if (PQsetnonblocking(connection, 1) != 0)
        return fail_and_disconnect(PQerrorMessage(connection));
    return true;
}

// Runs one statement that returns one row; the caller frees the result. Null on any failure.
static PGresult* request(const char* statement, int64 timeout, bool interruptible) {
    const int64 deadline = steady_milliseconds() + timeout;
    refused = false;
    if (connection == nullptr && !connect(deadline, interruptible))
        return nullptr;
    warned = false;  // what the server warned of while connecting says nothing about the request
    if (PQsendQuery(connection, statement) == 0) {
        fail_and_disconnect(PQerrorMessage(connection));
        return nullptr;
    }
    while (PQflush(connection) == 1)
        if (!wait_for_socket(WL_SOCKET_WRITEABLE, deadline, interruptible)) {
            lease_client_disconnect();
            return nullptr;
        }

    PGresult* last = nullptr;
    for (;;) {
        while (PQisBusy(connection)) {
            if (!wait_for_socket(WL_SOCKET_READABLE, deadline, interruptible)) {
                PQclear(last);
                lease_client_disconnect();
                return nullptr;
            }
            if (PQconsumeInput(connection) == 0) {
                PQclear(last);
                fail_and_disconnect(PQerrorMessage(connection));
                return nullptr;
            }
        }
        PGresult* result = PQgetResult(connection);
        if (result == nullptr)
            break;
        PQclear(last);
        last = result;
    }

    if (PQresultStatus(last) != PGRES_TUPLES_OK || PQntuples(last) != 1) {
        const char* message = PQresultErrorField(last, PG_DIAG_MESSAGE_PRIMARY);
        const char* sqlstate = PQresultErrorField(last, PG_DIAG_SQLSTATE);
        refused = sqlstate != nullptr && strcmp(sqlstate, kRefusal) == 0;
        fail(message != nullptr ? message : PQerrorMessage(connection));
    } else if (!warned) {
        return last;
    }
    PQclear(last);
    if (PQstatus(connection) != CONNECTION_OK || warned)
        lease_client_disconnect();
    return nullptr;
}

static int64 integer_field(const PGresult* result, int column) {
    return strtoll(PQgetvalue(result, 0, column), nullptr, 10);
}

static const char* uuid_text(const pg_uuid_t& uuid) {
    return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&uuid)));
}

bool lease_client_acquire(const char* holder, const pg_uuid_t& incarnation, int node_count,
                          int duration, uint64 key_fingerprint, randflake::LeaseGrant* grant) {
    char statement[512];
    snprintf(statement, sizeof statement,
             "SELECT lease_id, first_node_id, node_count, lease_start, lease_end "
             "FROM randflake_lease_acquire(%s, '%s', %d, %d, '%016llx')",
             quote_literal_cstr(holder), uuid_text(incarnation), node_count, duration,
             static_cast<unsigned long long>(key_fingerprint));
    PGresult* result = request(statement, kLeaseClientTimeoutMs, true);
    if (result == nullptr)
        return false;
    *grant = {integer_field(result, 0), integer_field(result, 1), integer_field(result, 2),
              integer_field(result, 3), integer_field(result, 4)};
    PQclear(result);
    return true;
}

bool lease_client_renew(int64 lease_id, const pg_uuid_t& incarnation, int64 expected_end,
                        int duration, int64* end) {
    char statement[512];
    snprintf(statement, sizeof statement,
             "SELECT randflake_lease_renew(" INT64_FORMAT ", '%s', " INT64_FORMAT ", %d)", lease_id,
             uuid_text(incarnation), expected_end, duration);
    PGresult* result = request(statement, kLeaseClientTimeoutMs, true);
    if (result == nullptr)
        return false;
    *end = integer_field(result, 0);
    PQclear(result);
    return true;
}

bool lease_client_release(int64 lease_id, const pg_uuid_t& incarnation, int64 last_used,
                          int64 timeout) {
    char statement[512];
    snprintf(statement, sizeof statement,
             "SELECT randflake_lease_release(" INT64_FORMAT ", '%s', " INT64_FORMAT ")", lease_id,
             uuid_text(incarnation), last_used);
    PGresult* result = request(statement, timeout, false);
    PQclear(result);
    return result != nullptr;
}
