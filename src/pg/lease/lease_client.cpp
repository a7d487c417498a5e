// Uses a separate process for each request to the coordinator. libpq may wait uninterruptibly, and
// the coordinator's messages determine how much memory and time libpq takes.
//   time     the worker kills the process at the deadline, a shutdown or a reload
//   memory   on Linux the kernel limits the process to kMemory more than at its start
//   crashes  the process detaches from shared memory, so its crash does not restart the server
// The process writes its answer to a pipe in one call. If a part is missing, the request fails.

#include "pg/lease/lease_client.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <initializer_list>
#include <type_traits>

#include <libpq-fe.h>

#include "pg/base/clock.h"
#include "pg/base/compat.h"
#include "pg/lease/lease_request.h"
#include "pg/secret/secret.h"
#include "pg/server/environment.h"
#include "pg/settings/settings.h"
#include "pg/window/run_marker.h"

using namespace randflake;

static_assert(std::is_trivially_copyable_v<CoordinatorAnswer>);
static_assert(sizeof(CoordinatorAnswer) <= _POSIX_PIPE_BUF,
              "writes to a pipe are not torn up to here");

// This limit has room for the root certificates that libpq loads. An answer needs less than 1 kB.
static constexpr rlim_t kMemory = 32 << 20;

// libpq tries each host for this many seconds, unless the connection string sets connect_timeout.
static constexpr char kConnectTimeout[] = "3";

// A standby answers, but cannot lease. libpq leaves it for the next host, unless the connection
// string sets target_session_attrs.
static constexpr char kTargetSessionAttrs[] = "read-write";

// These settings override the settings of role and database. Requests need this isolation level.
// The timeout frees the connections of abandoned requests.
static constexpr char kSessionOptions[] =
    "-c default_transaction_isolation=read\\ committed -c statement_timeout=10s";

static pid_t asking;       // pid of the process that asks; 0: none
static bool timed_out;     // a request timed out, and since then none was answered
static uint32 first_host;  // index of the first host to try

static bool is_printable(const char* character, int bytes) {
    const auto first = static_cast<unsigned char>(character[0]);
    const auto second = static_cast<unsigned char>(character[1]);
    return bytes == 1 ? first >= ' ' && first != 0x7f : first != 0xc2 || second >= 0xa0;
}

// Copies as much of `text` as fits, and replaces unprintable bytes.
static LeaseResult failed(LeaseProblem problem, const char* text) {
    Assert(problem != LeaseProblem::kNone);
    LeaseResult result{};
    result.problem = problem;
    size_t length = 0;
    for (size_t left = strlen(text); left > 0;) {
        const int bytes = pg_encoding_verifymbchar(PG_UTF8, text, static_cast<int>(left));
        const bool printable = bytes > 0 && is_printable(text, bytes);
        const size_t taken = printable ? static_cast<size_t>(bytes) : 1;
        if (length + taken >= sizeof result.error) break;
        memcpy(result.error + length, text, taken);
        if (!printable) result.error[length] = *text == '\n' || *text == '\t' ? ' ' : '?';
        length += taken;
        text += taken;
        left -= taken;
    }
    while (length > 0 && result.error[length - 1] == ' ') length--;
    result.error[length] = '\0';
    return result;
}

namespace {
struct Parameter {
    const char* keyword;
    const char* value;
};
struct Parameters {
    const char* keywords[10];
    const char* values[10];
    int count;

    void Add(const Parameter& parameter) {
        Assert(count < static_cast<int>(lengthof(keywords)));
        keywords[count] = parameter.keyword;
        values[count++] = parameter.value;
    }
};
}  // namespace

// Rotates a comma-separated list so that it begins with item `first`; palloc'd.
static char* rotated(const char* list, uint32 first) {
    uint32 items = 1;
    for (const char* at = list; *at != '\0'; at++) items += *at == ',';
    const char* head = list;
    for (uint32 skip = first % items; skip > 0; skip--) head = strchr(head, ',') + 1;
    if (head == list) return pstrdup(list);
    return psprintf("%s,%.*s", head, static_cast<int>(head - list) - 1, list);
}

// Returns false if the connection string is invalid. The string overrides earlier parameters, and
// later parameters override it. Messages quote neither the string nor libpq's error, because both
// can show a password: if a URI's password contains / or @, libpq reads part of it as port or host.
static bool parse_coordinator(const char* coordinator, Parameters* parameters) {
    parameters->Add({"fallback_application_name", "randflake"});
    parameters->Add({"connect_timeout", kConnectTimeout});
    parameters->Add({"target_session_attrs", kTargetSessionAttrs});
    parameters->Add({"dbname", coordinator});
    parameters->Add({"client_encoding", "UTF8"});

    char* message = nullptr;
    PQconninfoOption* options = PQconninfoParse(coordinator, &message);
    PQfreemem(message);
    bool valid = options != nullptr;
    const char* session_options = kSessionOptions;
    for (const PQconninfoOption* option = options; valid && option->keyword != nullptr; option++) {
        const char* value = option->val;
        if (value == nullptr) continue;
        if (strcmp(option->keyword, "host") == 0) {
            valid = strchr(value, '@') == nullptr;
            parameters->Add({"host", rotated(value, first_host)});
        } else if (strcmp(option->keyword, "hostaddr") == 0) {
            parameters->Add({"hostaddr", rotated(value, first_host)});
        } else if (strcmp(option->keyword, "options") == 0) {
            session_options = psprintf("%s %s", value, kSessionOptions);
        } else if (strcmp(option->keyword, "port") == 0) {
            valid = strspn(value, "0123456789,") == strlen(value);
            parameters->Add({"port", rotated(value, first_host)});
        }
    }
    PQconninfoFree(options);
    parameters->Add({"options", session_options});
    parameters->Add({nullptr, nullptr});
    return valid;
}

// Returns parameters for the upstream server: the one that this server follows or followed.
static void parse_upstream(Parameters* parameters) {
    for (const Parameter& parameter :
         {Parameter{"connect_timeout", kConnectTimeout}, Parameter{"dbname", PrimaryConnInfo},
          Parameter{"replication", "true"}, Parameter{"application_name", "randflake"},
          Parameter{nullptr, nullptr}})
        parameters->Add(parameter);
}

[[noreturn]] static void leave(int) { _exit(1); }

// After this call the process must not use the server's shared memory, error handling or log.
static void let_go_of_server(int64 timeout, pid_t worker) {
    // The process ends when the worker ends, at an immediate shutdown, or when the alarm fires. The
    // process ignores SIGTERM, because a shutdown may send another SIGTERM while the worker gives
    // leases back.
    for (const int number : {SIGHUP, SIGQUIT, SIGALRM}) signal(number, leave);
    for (const int number : {SIGTERM, SIGUSR1, SIGUSR2, SIGURG}) signal(number, SIG_IGN);
    alarm(static_cast<unsigned>(Max(timeout, 0) / 1000 + 2));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != worker) _exit(1);
    run_marker_leave();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);

    on_exit_reset();
    PGSharedMemoryDetach();
    MyProc = nullptr;
    MyBEEntry = nullptr;
    // While libpq connects, it prints the coordinator's notices to stderr.
    if (const int null = open("/dev/null", O_RDWR); null >= 0) dup2(null, STDERR_FILENO);
}

// The sixth number of /proc/self/statm is the private writable memory, which RLIMIT_DATA limits.
static void limit_memory() {
    char line[256];
    FILE* file = fopen("/proc/self/statm", "r");
    if (file == nullptr || fgets(line, sizeof line, file) == nullptr) return;
    rlim_t pages = 0;
    char* at = line;
    for (int number = 1; number <= 6; number++) pages = strtoul(at, &at, 10);
    struct rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur =
        Min(pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kMemory, limit.rlim_max);
    setrlimit(RLIMIT_DATA, &limit);
}

[[noreturn]] static void ask(pid_t worker, const Parameters& parameters,
                             const CoordinatorRequest& request, int64 timeout, int pipe_end) {
    let_go_of_server(timeout, worker);
    limit_memory();
    CoordinatorAnswer answer{};
    answer.problem = LeaseProblem::kNoAnswer;
    lease_request(parameters.keywords, parameters.values, request, &answer);
    const bool written = write(pipe_end, &answer, sizeof answer) == sizeof answer;
    exit(written ? 0 : 1);
}

static void end_asking(int, Datum) {
    if (asking == 0) return;
    kill(asking, SIGKILL);
    while (waitpid(asking, nullptr, 0) < 0 && errno == EINTR) {
    }
    asking = 0;
}

// Returns the read end of the pipe. After a failure, returns a negative number and sets errno.
static int start_asking(const Parameters& parameters, const CoordinatorRequest& request,
                        int64 timeout) {
    Assert(asking == 0);
    int ends[2];
    if (pipe(ends) != 0) return -1;
    set_ps_display(request.statement == kWhichServer ? "asking the upstream server"
                                                     : "asking the coordinator");
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        ask(MyProcPid, parameters, request, timeout, ends[1]);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    set_ps_display("");
    close(ends[1]);
    if (pid > 0) {
        asking = pid;
        return ends[0];
    }
    const int fork_error = errno;
    close(ends[0]);
    errno = fork_error;
    return -1;
}

// Returns a failure at the deadline or, if `interruptible`, at a shutdown or a reload.
static LeaseResult wait_for_answer(int pipe_end, SteadyMs deadline, bool interruptible) {
    Assert(InterruptHoldoffCount == 0);
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        if (interruptible && (ShutdownRequestPending || ConfigReloadPending)) {
            timed_out = false;
            return failed(LeaseProblem::kNotAsked,
                          "interrupted by a shutdown or a reload of the settings");
        }
        const int64 left = (deadline - steady_clock()).count;
        if (left <= 0) {
            // The next request tries another host first, because this host may hang.
            first_host++;
            timed_out = true;
            return failed(LeaseProblem::kNoAnswer, "the coordinator did not answer in time");
        }
        const int happened = WaitLatchOrSocket(
            MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_TIMEOUT | WL_SOCKET_READABLE, pipe_end,
            static_cast<long>(left), wait_event(kLeaseWaitEvent));
        if ((happened & WL_LATCH_SET) != 0) ResetLatch(MyLatch);
        if ((happened & WL_SOCKET_READABLE) != 0) return {};
    }
}

// The coordinator read its clock during the round trip, so the result is wrong by at most half of
// the trip. Ignores times after the year 9999.
static CoordinatorClock clock_of(const CoordinatorAnswer& answer, int64 shown_ms) {
    static constexpr int64 kYear10000Ms = INT64CONST(253402300800000);
    if (shown_ms < 0 || shown_ms >= kYear10000Ms) return {};
    const Ms round_trip = answer.answered_at - answer.asked_at;
    Assert(round_trip >= Ms{0});
    // Adds 1 ms to the error, because both servers read their clocks in whole milliseconds.
    return {answer.asked_at + round_trip / 2, {shown_ms}, (round_trip + 1) / 2 + 1};
}

// Sends a request. `clock_column` is the column of the answer with the coordinator's clock, if any.
// If the request succeeds, sets the reply's kind to `kind`. If `kind` is kNone, shutdowns and
// reloads do not end the wait.
static LeaseResult ask_coordinator(const CoordinatorRequest& request, int64 timeout,
                                   LeaseReply::Kind kind, int clock_column = -1) {
    Assert(MyBackendType == B_BG_WORKER && CurrentMemoryContext != TopMemoryContext);
    Assert(clock_column < request.shape.columns);
    static bool ends_with_worker;
    if (!ends_with_worker) before_shmem_exit(end_asking, 0);
    ends_with_worker = true;

    const SteadyMs deadline = steady_clock() + timeout;
    Parameters parameters{};
    if (request.statement == kWhichServer)
        parse_upstream(&parameters);
    else if (!parse_coordinator(
                 shared_server->memory.leased ? setting_coordinator : setting_registry,
                 &parameters))
        return failed(LeaseProblem::kSettings,
                      psprintf("\"randflake.%s\" is not a valid connection string",
                               shared_server->memory.leased ? "coordinator" : "registry"));
    const int pipe_end = start_asking(parameters, request, timeout);
    if (pipe_end < 0)
        return failed(LeaseProblem::kNotAsked,
                      psprintf("could not start a process: %s", strerror(errno)));
    CoordinatorAnswer answer{};
    LeaseResult result = wait_for_answer(pipe_end, deadline, kind != LeaseReply::Kind::kNone);
    const bool waited = result.problem == LeaseProblem::kNone;
    const bool complete = waited && read(pipe_end, &answer, sizeof answer) == sizeof answer;
    close(pipe_end);
    end_asking(0, 0);
    if (!waited) return result;
    if (!complete)
        return failed(LeaseProblem::kNoAnswer,
                      "the process that asked has ended without an answer");
    if (answer.problem == LeaseProblem::kNone) {
        timed_out = false;
        result.reply.kind = kind;
        memcpy(result.values, answer.values, sizeof answer.values);
        if (clock_column >= 0) result.clock = clock_of(answer, answer.values[clock_column]);
    } else {
        answer.text[sizeof answer.text - 1] = '\0';
        const char* text = answer.text[0] != '\0' ? answer.text : "the library gave no reason";
        first_host += answer.read_only;  // the next request tries another host first
        // If an earlier request timed out and this request got no answer, names both failures.
        timed_out = timed_out && answer.problem == LeaseProblem::kNoAnswer;
        if (timed_out)
            text = psprintf("the coordinator did not answer in time, and then: %s", text);
        result = failed(answer.problem, text);
        result.reply.kind = answer.refused ? LeaseReply::Kind::kRefused : LeaseReply::Kind::kNone;
        result.not_before = answer.not_before;
    }
    result.reply.tells_of_secrets = answer.tells_of_secrets;
    result.reply.differs_from = answer.differs_from;
    return result;
}

static const char* uuid_text(const pg_uuid_t& uuid) {
    return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&uuid)));
}

static const char* holder_name() {
    static char name[NAMEDATALEN * 2];
    if (cluster_name[0] != '\0') return cluster_name;
    char host[NAMEDATALEN];
    if (gethostname(host, sizeof host) != 0) strlcpy(host, "unknown", sizeof host);
    host[sizeof host - 1] = '\0';
    snprintf(name, sizeof name, "%s:%d", host, PostPortNumber);
    return name;
}

LeaseResult lease_client_acquire(const pg_uuid_t& incarnation, int node_count, int duration,
                                 const SecretRecords& secrets) {
    Assert(secrets.count > 0);
    const CoordinatorRequest request{
        "SELECT lease_id, first_node_id, node_count, lease_start, lease_end, clock_ms, "
        "differs_from "
        "FROM randflake_lease_acquire($1, $2, $3, $4, $5)",
        5,
        {TEXTOID, UUIDOID, INT4OID, INT4OID, TEXTOID},
        {holder_name(), uuid_text(incarnation), psprintf("%d", node_count),
         psprintf("%d", duration), secret_fingerprints_text(secrets)},
        {7,
         {AnswerType::kInt8, AnswerType::kInt4, AnswerType::kInt4, AnswerType::kInt8,
          AnswerType::kInt8, AnswerType::kInt8, AnswerType::kInt8},
         true}};
    LeaseResult result =
        ask_coordinator(request, kLeaseClientTimeout.count, LeaseReply::Kind::kGranted, 5);
    const int64(&row)[kMaxAnswerColumns] = result.values;
    result.reply.grant = {row[0], row[1], row[2], {row[3]}, {row[4]}};
    return result;
}

LeaseResult lease_client_renew(int64 lease_id, const pg_uuid_t& incarnation,
                               UnixSecond expected_end, int duration,
                               const SecretRecords& secrets) {
    const CoordinatorRequest request{
        "SELECT lease_end, clock_ms, differs_from "
        "FROM randflake_lease_renew($1, $2, $3, $4, $5)",
        5,
        {INT8OID, UUIDOID, INT8OID, INT4OID, TEXTOID},
        {psprintf(INT64_FORMAT, lease_id), uuid_text(incarnation),
         psprintf(INT64_FORMAT, expected_end.count), psprintf("%d", duration),
         secret_fingerprints_text(secrets)},
        {3, {AnswerType::kInt8, AnswerType::kInt8, AnswerType::kInt8}, true}};
    LeaseResult result =
        ask_coordinator(request, kLeaseClientTimeout.count, LeaseReply::Kind::kRenewed, 1);
    result.reply.renewed_to = {result.values[0]};
    return result;
}

bool lease_client_probe(int64 timeout) {
    const CoordinatorRequest request{"SELECT 1", 0, {}, {}, {1, {AnswerType::kInt4}, false}};
    return ask_coordinator(request, timeout, LeaseReply::Kind::kNone).problem ==
           LeaseProblem::kNone;
}

LeaseResult lease_client_release(int64 lease_id, const pg_uuid_t& incarnation, UnixSecond last_used,
                                 int64 timeout) {
    const CoordinatorRequest request{"SELECT randflake_lease_release($1, $2, $3)",
                                     3,
                                     {INT8OID, UUIDOID, INT8OID},
                                     {psprintf(INT64_FORMAT, lease_id), uuid_text(incarnation),
                                      psprintf(INT64_FORMAT, last_used.count)},
                                     {1, {AnswerType::kVoid}, false}};
    return ask_coordinator(request, timeout, LeaseReply::Kind::kNone);
}

LeaseResult lease_client_upstream() {
    Assert(PrimaryConnInfo[0] != '\0');  // libpq would ask a server of its defaults
    const CoordinatorRequest request{kWhichServer, 0, {}, {}, {}};
    return ask_coordinator(request, kLeaseClientTimeout.count, LeaseReply::Kind::kGranted);
}

LeaseResult lease_client_announce(const pg_uuid_t& server, const char* origin, bool starts) {
    Assert(setting_node_id >= 0 && secret_ring().count() > 0);
    const CoordinatorRequest request{
        "SELECT servers, leases FROM randflake_lease_announce($1, $2, $3, $4, $5, $6, $7)",
        7,
        {TEXTOID, UUIDOID, TEXTOID, INT4OID, INT4OID, TEXTOID, BOOLOID},
        {holder_name(), uuid_text(server), origin, psprintf("%d", setting_node_id),
         psprintf("%d", static_node_count()), secret_fingerprint_text(secret_records().records[0]),
         starts ? "true" : "false"},
        {2, {AnswerType::kInt8, AnswerType::kInt8}, false}};
    return ask_coordinator(request, kLeaseClientTimeout.count, LeaseReply::Kind::kGranted);
}
