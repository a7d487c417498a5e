// Sends one request to the coordinator over libpq. core/lease/lease_answer.h judges the answer.

#include "pg/lease/lease_request.h"

#include <libpq-fe.h>
#include <sys/socket.h>

#include "pg/base/clock.h"

using namespace randflake;

// A coordinator should send no notices. After more than this many notices, the process disconnects.
static constexpr int kMaxNotices = 100;

static PGconn* connection;
static int notices;
static bool warned;

static void fail(CoordinatorAnswer* answer, LeaseProblem problem, const char* text) {
    const char* password = PQpass(connection);
    answer->problem = problem;
    // The coordinator's message may quote the password.
    if (password != nullptr && password[0] != '\0' && strstr(text, password) != nullptr)
        text = "the message of the coordinator is withheld, because it contains the password";
    strlcpy(answer->text, text, sizeof answer->text);
}

static void on_notice(void* answer, const PGresult* result) {
    const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (severity != nullptr && strcmp(severity, "WARNING") == 0) {
        warned = true;
        fail(static_cast<CoordinatorAnswer*>(answer), LeaseProblem::kUnusable,
             message != nullptr ? message : "the coordinator sent a warning");
    }
    // Ends the connection, because libpq would otherwise read an endless sequence of notices.
    if (++notices > kMaxNotices) shutdown(PQsocket(connection), SHUT_RDWR);
}

static AnswerType type_of(Oid type) {
    return type == INT4OID   ? AnswerType::kInt4
           : type == INT8OID ? AnswerType::kInt8
           : type == VOIDOID ? AnswerType::kVoid
                             : AnswerType::kOther;
}

// Converts a part of the answer. If the part is a row, stores its fields in `fields`.
static AnswerPart part_of(const PGresult* result, AnswerField (&fields)[kMaxAnswerColumns]) {
    AnswerPart part{};
    switch (result == nullptr ? PGRES_EMPTY_QUERY : PQresultStatus(result)) {
        case PGRES_SINGLE_TUPLE:
            part.kind = AnswerPart::Kind::kRow;
            part.field_count = PQnfields(result);
            part.fields = fields;
            for (int i = 0; i < Min(part.field_count, kMaxAnswerColumns); i++)
                fields[i] = {type_of(PQftype(result, i)), PQfformat(result, i) != 0,
                             PQgetisnull(result, 0, i) != 0, PQgetvalue(result, 0, i),
                             static_cast<size_t>(PQgetlength(result, 0, i))};
            return part;
        case PGRES_TUPLES_OK: part.kind = AnswerPart::Kind::kRowsEnd; return part;
        case PGRES_FATAL_ERROR:
        case PGRES_BAD_RESPONSE:
            part.kind = AnswerPart::Kind::kError;
            part.message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
            part.sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
            part.constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
            part.column = PQresultErrorField(result, PG_DIAG_COLUMN_NAME);
            return part;
        default:
            part.kind = result == nullptr ? AnswerPart::Kind::kNone : AnswerPart::Kind::kOther;
            return part;
    }
}

// Records why the request failed, if it failed. `part` is the last part of the answer.
static void fail_with(const LeaseAnswer& judged, const AnswerPart& part,
                      CoordinatorAnswer* answer) {
    answer->refused = judged.refused();
    answer->not_before = judged.not_before();
    answer->read_only = part.sqlstate != nullptr && strcmp(part.sqlstate, "25006") == 0;
    if (notices > kMaxNotices && part.kind != AnswerPart::Kind::kRow)
        return fail(answer, LeaseProblem::kUnusable, "the coordinator sent too many messages");
    const char* said = part.message != nullptr ? part.message : "";
    switch (judged.verdict()) {
        case AnswerVerdict::kRefused: return fail(answer, LeaseProblem::kRefused, said);
        case AnswerVerdict::kSecrets: return fail(answer, LeaseProblem::kSecrets, said);
        case AnswerVerdict::kError: return fail(answer, LeaseProblem::kUnusable, said);
        case AnswerVerdict::kBroken:
            return fail(answer, LeaseProblem::kNoAnswer, PQerrorMessage(connection));
        case AnswerVerdict::kNotOneRow:
            return fail(answer, LeaseProblem::kUnusable,
                        "the coordinator sent something else than one row");
        case AnswerVerdict::kNotExpected:
            return fail(answer, LeaseProblem::kUnusable,
                        "the coordinator sent a row that is no lease of node ids");
        case AnswerVerdict::kNotCommitted:
            return fail(answer, LeaseProblem::kUnusable,
                        "the coordinator has not committed what it answered");
        case AnswerVerdict::kGood: break;
    }
    if (!warned) answer->problem = LeaseProblem::kNone;
}

// Reads row by row, so that the process never stores more than two rows.
static void ask(const CoordinatorRequest& request, CoordinatorAnswer* answer) {
    answer->asked_at = uptime_clock();
    if (PQsendQueryParams(connection, request.statement, request.parameters,
                          request.parameter_types, request.parameter_values, nullptr, nullptr,
                          0) == 0 ||
        PQsetSingleRowMode(connection) == 0)
        return fail(answer, LeaseProblem::kNoAnswer, PQerrorMessage(connection));
    LeaseAnswer judged(request.shape);
    AnswerField fields[kMaxAnswerColumns];
    AnswerPart part = part_of(PQgetResult(connection), fields);
    answer->answered_at = uptime_clock();
    while (judged.Take(part)) part = part_of(PQgetResult(connection), fields);
    judged.End(PQtransactionStatus(connection) == PQTRANS_IDLE);
    const bool good = judged.verdict() == AnswerVerdict::kGood;
    for (int i = 0; good && i < request.shape.columns; i++) answer->values[i] = judged.value(i);
    answer->tells_of_secrets = judged.tells_of_secrets();
    answer->differs_from = judged.differs_from();
    fail_with(judged, part, answer);
}

// Runs a command, and reads a number from its only row. Returns false if it got no number.
static bool number_of(const char* command, int column, int64* value) {
    PGresult* result = PQexec(connection, command);
    const bool good = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
                      PQnfields(result) > column;
    if (good) *value = static_cast<int64>(strtoull(PQgetvalue(result, 0, column), nullptr, 10));
    PQclear(result);
    return good;
}

static void ask_which_server(CoordinatorAnswer* answer) {
    const char* standby = PQparameterStatus(connection, "in_hot_standby");
    answer->values[kInRecovery] = standby == nullptr || strcmp(standby, "off") != 0;
    if (number_of(kWhichServer, 0, &answer->values[kSystem]) &&
        number_of(kWhichServer, 1, &answer->values[kTimeline]) &&
        number_of("SHOW randflake.directory", 0, &answer->values[kDirectory]) &&
        number_of("SHOW randflake.node_id", 0, &answer->values[kNodeId]) &&
        number_of("SHOW randflake.node_count", 0, &answer->values[kNodeCount]) &&
        number_of("SHOW randflake.spare_node_ranges", 0, &answer->values[kSpareRanges]))
        answer->problem = LeaseProblem::kNone;
}

void lease_request(const char* const* keywords, const char* const* values,
                   const CoordinatorRequest& request, CoordinatorAnswer* answer) {
    connection = PQconnectdbParams(keywords, values, 1);
    if (PQstatus(connection) != CONNECTION_OK) {
        fail(answer, LeaseProblem::kNoAnswer,
             connection != nullptr ? PQerrorMessage(connection) : "out of memory");
    } else {
        // Sets the receiver only now, because earlier warnings do not concern the request.
        PQsetNoticeReceiver(connection, on_notice, answer);
        if (request.statement == kWhichServer)
            ask_which_server(answer);
        else
            ask(request, answer);
    }
    PQfinish(connection);
}
