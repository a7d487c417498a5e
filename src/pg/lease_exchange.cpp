// A grant counts only when the coordinator said, in the expected form, that it is committed:
//
//   - Every request is one statement, followed by the end of the exchange. The server sends the
//     row, commits, and then reports that it is ready; no transaction waits for this process. So
//     the row counts only after that report. A server that reports an open transaction has not
//     committed.
//   - A broken connection, an error, or an answer of any other shape is no grant.
//   - A warning is no grant either: a cancelled wait for a synchronous standby commits locally,
//     warns, and may be lost in a failover.

#include "pg/lease_exchange.h"

#include <charconv>

#include <libpq-fe.h>
#include <sys/socket.h>

using randflake::kRandflake;
using randflake::kWindowEpochSeconds;
using randflake::SecondsEnd;

// object_not_in_prerequisite_state: what the coordinator's functions raise to refuse. Any other
// error says nothing about the lease: a standby, a cancelled query, a full disk.
static constexpr char kRefusal[] = "55000";
// What it names in the field for a constraint when it does not agree about the secrets.
static constexpr char kAboutSecrets[] = "key_fingerprint";
// configuration_limit_exceeded: no node id is free, with the time at which one will be.
static constexpr char kNoneFree[] = "53400";

// A request for a lease causes none.
static constexpr int kMaxNotices = 100;

// There is one exchange in the life of a process.
static PGconn* connection;
static int notices;
static bool warned;

static void fail(ExchangeAnswer* answer, LeaseProblem problem, const char* text) {
    const char* password = PQpass(connection);
    answer->problem = problem;
    // The coordinator may know the password and quote it.
    if (password != nullptr && password[0] != '\0' && strstr(text, password) != nullptr)
        text = "the message of the coordinator is withheld, because it contains the password";
    strlcpy(answer->text, text, sizeof answer->text);
}

static void on_notice(void* answer, const PGresult* result) {
    const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (severity != nullptr && strcmp(severity, "WARNING") == 0) {
        warned = true;
        fail(static_cast<ExchangeAnswer*>(answer), LeaseProblem::kUnusable,
             message != nullptr ? message : "the coordinator sent a warning");
    }
    // The library goes on reading as long as notices come.
    if (++notices > kMaxNotices)
        shutdown(PQsocket(connection), SHUT_RDWR);
}

// Digits and nothing else, within the range of the type. A null has no digits.
static bool read_integer(const PGresult* row, int column, Oid type, int64* value) {
    const char* text = PQgetvalue(row, 0, column);
    const char* end = text + PQgetlength(row, 0, column);
    if (type == VOIDOID) {
        *value = 0;
        return text == end;
    }
    const auto [read_to, error] = std::from_chars(text, end, *value);
    return read_to == end && error == std::errc{} &&
           (type == INT8OID || (*value >= PG_INT32_MIN && *value <= PG_INT32_MAX));
}

static bool read_row(const PGresult* row, const ExchangeRequest& request, int64* values) {
    if (PQnfields(row) != request.columns)
        return false;
    for (int i = 0; i < request.columns; i++)
        if (PQftype(row, i) != request.types[i] || PQfformat(row, i) != 0 ||
            !read_integer(row, i, request.types[i], &values[i]))
            return false;
    return true;
}

// The coordinator says until when it grants nothing, as a Unix second in the field for the name of
// a column, which reaches a client as it is, in every language.
static int64 not_before(const PGresult* refusal) {
    const char* text = PQresultErrorField(refusal, PG_DIAG_COLUMN_NAME);
    if (text == nullptr)
        return 0;
    int64 second = 0;
    const char* end = text + strlen(text);
    const auto [read_to, error] = std::from_chars(text, end, second);
    const bool valid = read_to == end && error == std::errc{} && second > kWindowEpochSeconds &&
                       second <= kWindowEpochSeconds + SecondsEnd(kRandflake);
    return valid ? second : 0;
}

// The result is no row where one was due, or no end where that was due.
static void fail_with(const PGresult* result, ExchangeAnswer* answer) {
    const ExecStatusType status = PQresultStatus(result);
    if (notices > kMaxNotices)
        return fail(answer, LeaseProblem::kUnusable, "the coordinator sent too many messages");
    if (result == nullptr || (status != PGRES_FATAL_ERROR && status != PGRES_BAD_RESPONSE))
        return fail(answer, LeaseProblem::kUnusable,
                    "the coordinator sent something else than one row");
    const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char* sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (message == nullptr || sqlstate == nullptr)
        return fail(answer, LeaseProblem::kNoAnswer, PQerrorMessage(connection));
    answer->refused = strcmp(sqlstate, kRefusal) == 0;
    if (answer->refused || strcmp(sqlstate, kNoneFree) == 0)
        answer->not_before = not_before(result);
    // PostgreSQL has other reasons for that SQLSTATE, and never this field beside it.
    answer->refused |= answer->not_before != 0;
    const char* concerned = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
    fail(answer,
         concerned != nullptr && strcmp(concerned, kAboutSecrets) == 0 ? LeaseProblem::kSecrets
         : answer->refused                                             ? LeaseProblem::kRefused
                                                                       : LeaseProblem::kUnusable,
         message);
}

// One row at a time, so that no more than two are ever held.
static void ask(const ExchangeRequest& request, ExchangeAnswer* answer) {
    if (PQsendQueryParams(connection, request.statement, request.parameters,
                          request.parameter_types, request.parameter_values, nullptr, nullptr,
                          0) == 0 ||
        PQsetSingleRowMode(connection) == 0)
        return fail(answer, LeaseProblem::kNoAnswer, PQerrorMessage(connection));
    const PGresult* row = PQgetResult(connection);
    if (PQresultStatus(row) != PGRES_SINGLE_TUPLE)
        return fail_with(row, answer);
    if (!read_row(row, request, answer->values))
        return fail(answer, LeaseProblem::kUnusable,
                    "the coordinator sent a row that is no lease of node ids");
    const PGresult* end = PQgetResult(connection);
    if (PQresultStatus(end) != PGRES_TUPLES_OK)
        return fail_with(end, answer);
    const PGresult* more = PQgetResult(connection);
    if (more != nullptr)
        return fail_with(more, answer);
    if (PQtransactionStatus(connection) != PQTRANS_IDLE)
        return fail(answer, LeaseProblem::kUnusable,
                    "the coordinator has not committed what it answered");
    if (!warned)
        answer->problem = LeaseProblem::kNone;
}

void lease_exchange(const char* const* keywords, const char* const* values,
                    const ExchangeRequest& request, ExchangeAnswer* answer) {
    connection = PQconnectdbParams(keywords, values, 1);
    if (PQstatus(connection) != CONNECTION_OK) {
        fail(answer, LeaseProblem::kNoAnswer,
             connection != nullptr ? PQerrorMessage(connection) : "out of memory");
    } else {
        // What the server warns of while connecting says nothing about the request.
        PQsetNoticeReceiver(connection, on_notice, answer);
        ask(request, answer);
    }
    // Says good-bye, so that the coordinator is not left with a connection that broke.
    PQfinish(connection);
}
