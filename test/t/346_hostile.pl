# Calls every function of the extensions with absurd arguments, in unusual places of statements, and
# in sessions that the test cancels or that time out. Checks that the server survives, that its
# memory does not grow, and that no output contains the secret. RANDFLAKE_ROUNDS sets how many calls
# of a function the test picks.
use HostileCalls;
use Randflake;

my $calls = $ENV{RANDFLAKE_ROUNDS} // 3;
my $secret = random_secret();
my $node = start_server('main', extensions => [qw(randflake_type randflake_coordinator)],
    settings => { node_id => 1, node_count => 64, secret => $secret, max_wait => '1s' },
    conf => "log_error_verbosity = verbose\nmax_prepared_transactions = 10\n");
my $postmaster = postmaster_of($node);
my $everything = '';    # all output to any role

$node->sql(<<'SQL' . hostile_schema());
CREATE ROLE ordinary LOGIN;
CREATE ROLE granted LOGIN IN ROLE pg_monitor;
GRANT CREATE ON DATABASE postgres TO ordinary, granted;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO granted;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO granted;
SQL
my @users = qw(ordinary granted);
my @functions = split /\n/, $node->sql('SELECT oid::regprocedure FROM hostile.functions ORDER BY 1');
cmp_ok(scalar @functions, '>', 20, scalar @functions . ' functions');

# Runs statements as a user. Returns the output with the errors. An error does not end the session.
sub seen_by($user, $sql, $database = undef) {
    my ($status, $out, $err) = $node->psql($database // 'postgres', $sql, on_error_stop => 0,
        timeout => $PostgreSQL::Test::Utils::timeout_default,
        extra_params => [ '-U', $user, '-v', 'VERBOSITY=verbose' ]);
    is($status, 0, "$user keeps the connection") or diag(substr "$sql\n$err", 0, 3000);
    $everything .= "$out\n$err\n";
    return ($out, $err);
}

# --- arguments and places ------------------------------------------------------------------------
for my $user (@users) {
    my ($out, $err) = seen_by($user, "SELECT * FROM hostile.call_all($calls)");
    note("$user: SQLSTATE and number of calls\n$out");
    unlike($out, qr/^XX/m, "$user: no internal error");
    like($out, qr/^ok\|/m, "$user: some calls succeed");
    like($out, qr/^42501\|/m, "$user: some are denied");    # the coordinator's internal functions
    ($out, $err) = seen_by($user, "SELECT * FROM hostile.define_all($calls)");
    note("$user: what may be made of functions\n$out");
    unlike($out, qr/^\w+\|XX/m, "$user: definitions that use functions");
    ($out, $err) = seen_by($user, "SELECT * FROM hostile.messages WHERE length(message) > 1000");
    is($out, '', "$user: no message is long");
    seen_by($user, 'SELECT * FROM hostile.messages; DROP TABLE hostile.messages');
}

my ($none, $refusal) = seen_by('ordinary', q{SELECT randflake_from_text(repeat('0', 1 << 28))});
like($refusal, qr/ERROR:\s+22P02: .{1,200}$/m, 'a text of 256 MB is refused in few words');

# No role can pass an argument of the type "internal".
for my $user (@users, 'postgres') {
    for my $function ('randflake_rows_support', 'randflake_copy_support', 'randflake_next_support',
        'randflake_cast_support') {
        for my $argument ('NULL', "''", 'NULL::internal', "'1'::cstring", '0') {
            my ($out, $err) = seen_by($user, "SELECT $function($argument)");
            like($err, qr/ERROR:/, "$user: $function($argument)");
        }
    }
}
my ($out, $err) = seen_by('ordinary', join ";\n", map {
    my $count = $_;
    map { "EXPLAIN SELECT * FROM $_($count)" } 'randflake_generate', 'randflake_shard_ranges'
} '-2147483648', '2147483647', 'NULL', '(SELECT 1)', 'random()::integer', "(NULL::text)::integer");
unlike($err, qr/ERROR/, 'row estimates');

$node->sql(q{CREATE DATABASE bytes ENCODING SQL_ASCII TEMPLATE template0 LOCALE 'C'});
$node->safe_psql('bytes', 'CREATE EXTENSION randflake');
($out, $err) = seen_by('ordinary', <<'SQL', 'bytes');
SET client_encoding = SQL_ASCII;
SELECT randflake_from_text(E'\xe2\x82');
SELECT randflake_from_text(E'\xff');
SELECT randflake_from_text(E'0\xf0');
SELECT randflake_from_text(repeat(E'\xf0', 10000));
SQL
is(() = $err =~ /ERROR:\s+22P02/g, 4, 'bytes that are no characters are refused');

# --- settings ------------------------------------------------------------------------------------
my $may_set = $node->sql(
    q{SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE name ~ '^randflake\.' AND context = 'user'});
for my $user (@users) {
    ($out, $err) = seen_by($user, 'SELECT * FROM hostile.set_all()');
    is($out, $may_set, "$user: may set $may_set alone");
    ($out, $err) = seen_by($user, q{SET randflake.anything = 1; SET randflake = 1; ALTER SYSTEM SET randflake.max_wait = 0});
    is(() = $err =~ /ERROR/g, 3, "$user: nor invent or save settings");
    for my $wait ('0', '1', '2147483647ms') {
        ($out, $err) = seen_by($user, "SET randflake.max_wait = '$wait'; SELECT count(*) FROM randflake_generate(1000)");
        like($out . $err, qr/^1000$|ERROR:\s+(?:53400|55000)/, "$user: max_wait = $wait");
    }
}

# --- cursors and subtransactions -----------------------------------------------------------------
for my $user (@users) {
    ($out, $err) = seen_by($user, statements_of_a_session());
    unlike($err, qr/ERROR:\s+(?:XX|57P)/, "$user: cursors, subtransactions, prepared statements");
    is(() = $out =~ /^done$/mg, 1, "  all of them");
}

# --- cancellation and timeouts -------------------------------------------------------------------
my $endless = 'SET statement_timeout = 300; SET randflake.max_wait = 2147483647';
for my $sql ('SELECT count(*) FROM randflake_generate(2147483647)',
    'SELECT count(*) FROM (SELECT randflake_generate(2147483647)) AS ids',
    'SELECT count(*) FROM randflake_shard_ranges(2147483647)',
    'SELECT count(*) FROM (SELECT randflake_shard_ranges(2147483647)) AS ranges',
    'SELECT count(randflake_generate()) FROM (SELECT generate_series(1, 2000000000)) AS n',
    'DO $$ BEGIN LOOP BEGIN PERFORM randflake_generate(); EXCEPTION WHEN raise_exception THEN END; END LOOP; END $$') {
    ($out, $err) = seen_by('ordinary', "$endless; $sql");
    like($err, qr/ERROR:\s+57014/, "times out: $sql");
}

my @sessions = map {
    start_session($node, '\set ON_ERROR_STOP 0', 'SET ROLE ' . $users[ $_ % 2 ],
        "SET statement_timeout = '" . (0, 700)[ $_ / 2 ] . "'", 'SET randflake.max_wait = 500',
        ("SELECT * FROM hostile.call_all(2)", 'SELECT count(*) FROM randflake_generate(400000)') x 3)
} 0 .. 3;
my $cancelled = 0;
while (grep { $_->{handle}->pumpable } @sessions) {
    $_->{handle}->pump_nb for grep { $_->{handle}->pumpable } @sessions;
    $cancelled += $node->sql(<<'SQL');
SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND state = 'active' AND query ~ 'hostile|randflake' AND random() < 0.1
SQL
}
for my $session (@sessions) {
    ($out, $err) = finish_session($session);
    unlike($err, qr/ERROR:\s+(?:XX|57P)/, 'a session among others, cancelled and timed out');
    $everything .= "$out\n$err\n";
}
note("$cancelled cancels");
cmp_ok($cancelled, '>', 0, 'some were cancelled');

# --- memory --------------------------------------------------------------------------------------
($out, $err) = seen_by('postgres', memory_of_loops());
note("bytes left in memory contexts and in the process; calls, function, call\n$out$err");
my @grown = grep { /^(-?\d+)\|(-?\d+)\|/ && ($1 > 100_000 || $2 > 1 << 17) } split /\n/, $out;
is_deeply(\@grown, [], 'memory stays flat');
my %measured = map { (split /\|/)[3] => 1 } split /\n/, $out;
my ($triggers) = $node->sql(q{SELECT count(*) FROM hostile.functions WHERE prorettype = 'trigger'::regtype});
is(keys(%measured) + $triggers, scalar @functions, '  for every function');

# --- afterwards ----------------------------------------------------------------------------------
is(postmaster_of($node), $postmaster, 'the server has stayed up');
all_distinct($node, 'SELECT randflake_generate() FROM generate_series(1, 10000)', 10000, '  and makes identifiers');
$node->stop;
my $log = slurp_file($node->logfile);
is(join("\n", $log =~ /.*(?:terminated by signal|PANIC|TRAP|Sanitizer|reinitializing).*/g), '',
    '  no process has crashed');
no_secret_in($everything, $secret, 'no role saw the secret');
no_secret_in($log, $secret, '  nor has the log');
done_testing();
