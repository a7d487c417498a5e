# Checks that a leasing role cannot affect other roles' leases or exceed its own limits.
use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep time);

my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator', conf => "max_prepared_transactions = 2\n");
$coordinator->sql(
    'CREATE ROLE leaseholder; CREATE ROLE first LOGIN IN ROLE leaseholder; CREATE ROLE second LOGIN IN ROLE leaseholder');
let_lease($coordinator, 'leaseholder');
my @holders = map { start_holder($fleet, "holder$_", $coordinator->connstr('postgres') . ' user=first') } 1, 2;
is( $coordinator->sql('SELECT string_agg(role, $$ $$), count(DISTINCT first_node_id) FROM randflake_leases'),
    'first first|2', 'two servers lease under one role');

my $lock = $coordinator->background_psql('postgres');
$lock->query_safe('BEGIN; LOCK TABLE randflake_lease_pool IN EXCLUSIVE MODE');
$_->reload for @holders;
my $requests = q{FROM pg_stat_activity WHERE application_name = 'randflake' AND state = 'active'};
# Waits until each holder has sent a request. On a slow machine, earlier requests may still run.
await($coordinator, "SELECT count(*) >= 2 $requests", 'nobody asks');
my $seen = $coordinator->sql("SELECT DISTINCT query $requests", user => 'first');
is($seen, 'SELECT lease_end, clock_ms, differs_from FROM randflake_lease_renew($1, $2, $3, $4, $5)',
    'a role sees the statements of its sessions');
my @incarnations = split /\n/, $coordinator->sql('SELECT incarnation FROM randflake_lease');
my $activity = $coordinator->sql('SELECT pg_stat_activity::text FROM pg_stat_activity');
is(scalar(grep { index($activity, $_) >= 0 } @incarnations), 0, '  and nothing shows an incarnation');
$lock->query_safe('ROLLBACK');
$lock->quit;
wait_for_status($_, 'lease_error IS NULL') for @holders;

my ($lease, $incarnation, $end) = split /\|/, $coordinator->sql(<<'SQL');
SELECT lease_id, incarnation, upper(span) - 1 FROM randflake_lease WHERE holder = 'holder1' ORDER BY lease_id DESC LIMIT 1
SQL
my $not_yours = qr/^lease $lease does not exist or is not this holder's$/;
for my $case ([ 'another role with the incarnation', 'second', "'$incarnation'" ],
    [ 'another role without it', 'second', 'gen_random_uuid()' ],
    [ 'the role without the incarnation', 'first', 'gen_random_uuid()' ]) {
    my ($name, $role, $uuid) = @$case;
    for my $request (
        [ renews => "SELECT randflake_lease_renew($lease, $uuid, $end, 4, '0123456789abcdef')" ],
        [ 'renews as a role that both are members of' =>
            "SET ROLE leaseholder; SELECT randflake_lease_renew($lease, $uuid, $end, 4, '0123456789abcdef')" ],
        [ releases => "SELECT randflake_lease_release($lease, $uuid, $end)" ],
        [ 'releases it as unused' => "SELECT randflake_lease_release($lease, $uuid, NULL)" ]) {
        my ($what, $call) = @$request;
        error_is($coordinator, $call, '55000', { message => $not_yours }, "$name $what: refused", user => $role);
    }
}
is($coordinator->sql("SELECT released_at IS NULL FROM randflake_lease WHERE lease_id = $lease"),
    't', 'the lease is its holder\'s');

$coordinator->sql('SELECT randflake_lease_configure(max_nodes_per_role => 2)');
my $fingerprint = $coordinator->sql('SELECT secrets FROM randflake_pool');
my $acquire = sub ($role, $nodes) {
    return error_of($coordinator,
        "SELECT randflake_lease_acquire('x', gen_random_uuid(), $nodes, 4, '$fingerprint')", user => $role);
};
my $error = $acquire->('first', 1);
is($error->{sqlstate}, '53400', 'a role whose servers have all that it may have: refused');
my ($free_at) = $error->{text} =~ /^COLUMN NAME:  (\d+)$/m;
cmp_ok(abs(($free_at // 0) - time), '<=', 6, '  and when its first lease ends');
is($acquire->('second', 2)->{text}, '', '  and another role leases');

# --- open transactions ---------------------------------------------------------------------------
# A role can keep a transaction open despite all limits. Other roles must not wait for it to end.
$_->stop for @holders;
$coordinator->sql('SELECT randflake_lease_configure(0, 8, max_duration => 20, max_nodes_per_role => 1000)');
$coordinator->sql('SELECT pg_sleep_until(to_timestamp(high_water)) FROM randflake_lease_pool');
# From here on, the test deletes leases in force, and sets the clock.
$coordinator->sql(q{CREATE OR REPLACE FUNCTION randflake_lease_lost() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; DELETE FROM randflake_lease});
my $uuid = '00000000-0000-0000-0000-000000000003';
my $leases = "SELECT first_node_id FROM randflake_lease_acquire('x', '$uuid', 1, 20, '$fingerprint')";
sub as_role($role) { return $coordinator->background_psql('postgres', extra_params => [ '-U', $role ]) }
my ($open, $mine) = (as_role('second'), as_role('first'));
# The granted node ids depend on the lease's id, and this id depends on earlier requests.
my @leased = split /\n/, $open->query_safe("BEGIN; $leases; $leases");
push @leased, $mine->query_safe($leases);
is(scalar(keys %{ { map { $_ => 1 } grep { /^[0-7]$/ } @leased } }), 3,
    'a transaction leases and stays open, and another role leases node ids of its own');
my ($first_lease) = $mine->query_safe("SELECT lease_id FROM randflake_lease_acquire('x', '$uuid', 1, 20, '$fingerprint')");
for my $statement ("SELECT lease_end > 0 FROM randflake_lease_renew($first_lease, '$uuid', extract(epoch FROM now())::bigint + 1, 4, '$fingerprint')",
    "SELECT randflake_lease_release($first_lease, '$uuid', NULL) IS NOT NULL") {
    is($mine->query_safe($statement), 't', '  and ' . ($statement =~ /lease_(renew|release)/)[0] . 's');
}
await($coordinator, "SELECT clock_timestamp() > ends_at FROM randflake_leases WHERE lease_id = $first_lease", 'what was released is not free');
$mine->query_safe($leases) for 1 .. 5;
error_is($coordinator, $leases, '53400', { detail => qr/^Others are being leased at this moment\.$/ },
    '  no others: refused', user => 'first');
my $again = $open->query_safe("ROLLBACK; $leases");
ok(scalar(grep { $_ eq $again } @leased[ 0, 1 ]), 'rolled back: they can be leased');

# A holder renews a lease that has ended, while another role asks for the lease's node id.
$coordinator->sql('DELETE FROM randflake_lease; SELECT randflake_lease_configure(0, 1)');
my $ended = $open->query_safe("SELECT lease_id FROM randflake_lease_acquire('x', '$uuid', 1, 1, '$fingerprint')");
sub renewal { return "SELECT randflake_lease_renew($ended, '$uuid', extract(epoch FROM clock_timestamp())::bigint + 1, 4, '$fingerprint')" }
$coordinator->poll_query_until('postgres', 'SELECT clock_timestamp() > max(ends_at) FROM randflake_leases');
$open->query_safe('BEGIN; ' . renewal());
is($acquire->('first', 1)->{sqlstate}, '53400', 'a lease that has ended is being renewed: its node id is not granted');
$open->query_safe('ROLLBACK');
$mine->query_safe("BEGIN; $leases");
error_is($coordinator, renewal(), '55P03', {}, 'it is being granted: the renewal does not wait, and is not refused for good',
    user => 'second');
$mine->query_safe('COMMIT');
error_is($coordinator, renewal(), '55000', {}, '  but then it is', user => 'second');

# A grant pauses between reading an ended lease and locking it. During the pause, the holder renews
# the lease. Then a role that may have only one grant asks for two at once.
$coordinator->sql('DELETE FROM randflake_lease; SELECT randflake_lease_configure(0, 1, max_grants_per_role => 1)');
my ($take, $clock) = map { $coordinator->sql("SELECT pg_get_functiondef('randflake_lease_$_'::regproc)") } qw(take clock);
my $second = $coordinator->sql('SELECT randflake_lease_clock(NULL) + 100');
sub clock_shows { $coordinator->sql($clock =~ s/floor\(.*\)/$_[0]/r) }
sub grant_waits {
    my $grant = start_session($coordinator, 'SET SESSION AUTHORIZATION second', $leases);
    await($coordinator, 'SELECT count(*) = 1 FROM pg_locks WHERE NOT granted', 'no grant waits');
    return $grant;
}
clock_shows($second);
$ended = $mine->query_safe("SELECT lease_id FROM randflake_lease_acquire('x', '$uuid', 1, 1, '$fingerprint')");
clock_shows($second + 1);
$coordinator->sql('UPDATE randflake_lease SET collected = true; UPDATE randflake_lease_chunk SET free = repeat(\'1\', length(free))::varbit');
$coordinator->sql($take =~ s/(?=places := ARRAY)/PERFORM pg_advisory_xact_lock(1); /r);
my $gate = $coordinator->background_psql('postgres');
$gate->query_safe('SELECT pg_advisory_lock(1)');
my $pending = grant_waits();
is($mine->query_safe("SELECT lease_end - $second FROM randflake_lease_renew($ended, '$uuid', $second + 1, 1, '$fingerprint')"), 1, 'a lease is renewed while it is to be replaced');
$gate->quit;
like((finish_session($pending))[1], qr/ERROR:  53400: no node id is free/, '  and then is not');
$coordinator->sql($take);
clock_shows($second + 200);
$open->query_safe("BEGIN; $leases");
$pending = grant_waits();
$open->query_safe('COMMIT');
like((finish_session($pending))[1], qr/ERROR:  53400: role "second" may be granted at most 1 /, 'a role waits for its own grants');
$coordinator->sql($clock);

$coordinator->sql('DELETE FROM randflake_lease; SELECT randflake_lease_configure(0, 131072)');
$coordinator->sql('SELECT pg_sleep_until(to_timestamp(high_water)) FROM randflake_lease_pool');

# --- prepared transactions -----------------------------------------------------------------------
$coordinator->sql('SELECT randflake_lease_configure(max_grants_per_role => 60000)');
is(error_of($coordinator, "BEGIN; $leases; PREPARE TRANSACTION 'leased'", user => 'second')->{sqlstate},
    '0A000', 'a transaction that leased cannot be prepared');
is($coordinator->sql("BEGIN; SELECT 1; PREPARE TRANSACTION 'other'; ROLLBACK PREPARED 'other'"), 1, '  others can');
# --- pool changes --------------------------------------------------------------------------------
my $young_began = time;
$open->query_safe("BEGIN; SAVEPOINT s; $leases; RELEASE s");
my $configure = start_session($coordinator, 'SELECT randflake_lease_configure(max_duration => 5)');
await($coordinator, <<'SQL', 'nobody waits');
SELECT count(*) = 1 FROM pg_locks WHERE relation = 'randflake_lease_pool'::regclass AND NOT granted
SQL
like($mine->query_safe($leases), qr/^\d+$/, 'the pool is to be changed, and a transaction stays open: another role leases');
is((finish_session($configure))[1], '', '  and the change is made');
cmp_ok(time - $young_began, '>=', 19, '  after 20 s') or diag('too early');
is( $coordinator->sql(q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'second'}),
    0, '  when that session has ended');
$open->{run}->kill_kill;

# The sessions take turns: each session ends its transaction within 20 seconds and begins another.
my ($turn, $over) = map { tempdir_short() . "/$_" } 'turn.sql', 'over';
append_to_file($turn, "SELECT lease_id FROM randflake_lease_acquire('x', '$uuid', 1, 60, '$fingerprint') \\gset\n"
      . "BEGIN; SAVEPOINT s; SELECT randflake_lease_release(:lease_id, '$uuid', NULL); RELEASE s; SELECT pg_sleep(4 + 8 * random()); COMMIT;\n");
my @turns = map { IPC::Run::start([ 'sh', '-c', 'while [ ! -e "$1" ]; do psql -XAtq -d "$2" -f "$3"; sleep 0.02; done',
            'sh', $over, $coordinator->connstr('postgres') . ' user=second', $turn ],
        '<', '/dev/null', '>', '/dev/null', '2>', '/dev/null', IPC::Run::timeout(2 * $PostgreSQL::Test::Utils::timeout_default)) } 1 .. 16;
my $held = q{SELECT count(*) >= 4 FROM pg_locks WHERE relation = 'randflake_lease_pool'::regclass AND mode = 'RowShareLock' AND granted};
await($coordinator, $held, 'nobody takes turns');
my ($renewed) = $mine->query_safe("SELECT lease_id FROM randflake_lease_acquire('x', '$uuid', 1, 60, '$fingerprint')");
$configure = start_session($coordinator, 'SELECT randflake_lease_configure(max_grants_per_role => 59999)');
my ($longest, $answers) = (0, 0);
my $give_up_at = time + $PostgreSQL::Test::Utils::timeout_default;
while (time < $give_up_at && $coordinator->sql('SELECT max_grants_per_role FROM randflake_pool') != 59999) {
    my $asked = time;
    my (undef, $last) = $coordinator->psql('postgres', <<"SQL", extra_params => [ '-U', 'first' ]);
SELECT lease_end FROM randflake_lease_renew($renewed, '$uuid', (SELECT extract(epoch FROM now())::bigint + 2), 60, '$fingerprint')
SQL
    $answers += $last ne '';
    $longest = time - $asked if time - $asked > $longest;
}
is((finish_session($configure))[1], '', 'sessions that take turns, with savepoints: the change is made');
note(sprintf 'the longest of %d renewals by another role took %.1f s', $answers, $longest);
cmp_ok($answers, '>', 5, '  others renew meanwhile');
await($coordinator, $held, 'nobody takes turns any more');
pass('  and those that take turns go on afterwards');
append_to_file($over, '');
$coordinator->poll_query_until('postgres', q{SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_stat_activity WHERE usename = 'second'});
$_->finish for @turns;
$mine->quit;

# --- hostile role --------------------------------------------------------------------------------
# All these attacks run at once, and the default isolation level differs from PostgreSQL's own
# default. The server must keep its lease. RANDFLAKE_SECONDS sets the duration of the attacks.
my $seconds = $ENV{RANDFLAKE_SECONDS} // 10;
$coordinator->sql(<<'SQL');
ALTER ROLE first SET default_transaction_isolation = 'serializable';
ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read';
ALTER ROLE second SET default_transaction_isolation = 'read committed';
SELECT randflake_lease_configure(0, 64, max_nodes_per_role => 8);
SQL
my $victim = start_holder($fleet, 'victim', $coordinator->connstr('postgres') . ' user=first');
my $victims = status_of($victim, 'lease_id');
load_on($fleet, $victim);
my $offset = -s $victim->logfile;
my $before = status_of($victim, 'window_extensions');
my $try = "DO \$\$ BEGIN PERFORM randflake_lease_acquire('x', gen_random_uuid(), %s, 4, '%s');"
  . ' EXCEPTION WHEN OTHERS THEN NULL; END $$;';
my $grant = sprintf $try, 1, $fingerprint;
my %attacks = ('keeps a transaction open' => "BEGIN; $grant SELECT pg_sleep(9.5); ROLLBACK;",
    'keeps another one open' => "BEGIN; $grant SELECT pg_sleep(9.5); ROLLBACK;",
    'rolls back' => "BEGIN; $grant ROLLBACK;", 'is refused' => sprintf($try, 0, $fingerprint),
    'names another secret' => sprintf($try, 1, 'f' x 16),
    'is cancelled' => "SET statement_timeout = 3; $grant", 'fills what it may have' => $grant,
    'keeps a cursor open' => "BEGIN; $grant DECLARE c CURSOR FOR SELECT FROM pg_class; FETCH c; SELECT pg_sleep(5); COMMIT;",
    'keeps a snapshot' => "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT pg_sleep(5); COMMIT;");
my @attackers = map {
    my $file = tempdir_short() . '/attack.sql';
    append_to_file($file, "$attacks{$_}\n" x 20_000);
    IPC::Run::start([ 'psql', '-XAtq', '-d', $coordinator->connstr('postgres') . ' user=second application_name=attack' ],
        '<', $file, '>', '/dev/null', '2>', '/dev/null', IPC::Run::timeout($seconds + 3 * $PostgreSQL::Test::Utils::timeout_default))
} sort keys %attacks;
sleep $seconds;
wait_for_status($victim, "window_extensions > $before + 1");
$coordinator->sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'attack'});
$_->finish for @attackers;
end_load($fleet, $victim);
is(status_of($victim, 'lease_id'), $victims, 'all attacks at once: the lease goes on');
unlike(slurp_file($victim->logfile, $offset), qr/could not (?:renew|lease)|no lease of node ids|lease of node ids has ended/,
    '  every renewal of it was answered');
all_is_well($fleet, $coordinator, 'all attacks at once', leased => 0);
$_->stop for $victim, $coordinator;
done_testing();
