# Checks that running servers with the same node ids and secret detect each other: on one machine,
# after a promotion, and through a common coordinator. All these servers must keep generating.
use Randflake;
use RandflakeHistory qw(crash_backend);

my $secret = random_secret();
my $message = 'another server runs with node ids of this one';
my $both = 'Both make the same identifiers. Stop one, and start it again only as a standby or with node ids that no other server uses.';

sub problem_of { return status_of($_[0], 'problem') }
sub generate { return $_[0]->sql(q{SET randflake.max_wait = '1h'; SELECT randflake_generate()}) }
sub start_as($node, %settings) {
    configure($node, secret => $secret, %settings);
    $node->start;
    generate($node);
}
sub by_machine { return "$message: The postmaster of the other server is process $_[0] of this machine. $both" }
my $by_upstream = qq{$message: "primary_conninfo" names the other server, which is not in recovery. $both};

# --- on one machine ------------------------------------------------------------------------------
my $one = start_server('one', settings => { node_id => 100, node_count => 4, secret => $secret });
my $two = start_server('two', init => [ extra => ['--locale=C'] ], settings => { node_id => 103, secret => $secret });
is(problem_of($_), '', $_->name . ': none before the first identifier') for $one, $two;
generate($one);
is(problem_of($one), '', 'one generates alone');
is(problem_of($two), by_machine(postmaster_of($one)), '  and the other one knows before it makes any');
my $position = -s $two->logfile;
generate($two);
is(problem_of($one), by_machine(postmaster_of($two)), 'when both generate, one knows');
is(problem_of($two), by_machine(postmaster_of($one)), '  and so does the other');
like(slurp_file($two->logfile, $position),
    qr/WARNING:  $message\n.*DETAIL:  The postmaster of the other server is process @{[ postmaster_of($one) ]} of this machine/,
    '  and logs it');
generate($two);

# The postmaster makes new shared memory after a crash. Server one must still detect server two.
$two->append_conf('postgresql.conf', 'restart_after_crash = on');
$two->reload;
crash_backend($two);
is(problem_of($one), by_machine(postmaster_of($two)), 'after a crash of a backend, one still knows');
$two->stop('immediate');
ok($one->poll_query_until('postgres', 'SELECT problem IS NULL FROM randflake_status'), 'without the other, none, however it ended');

for my $other ([ 'other node ids', node_id => 104 ], [ 'another secret', secret => random_secret() ]) {
    my ($what, %settings) = @$other;
    start_as($two, node_id => 103, %settings);
    is(join('', map { problem_of($_) } $one, $two), '', "none with $what");
    $two->stop;
}
start_as($two, node_id => 96, spare_node_ranges => 4);
is(problem_of($one), by_machine(postmaster_of($two)), 'spare ranges count');
$two->stop;

# --- a machine that hides them -------------------------------------------------------------------
# Servers that cannot claim their node ids generate, and say that they find no other server.
my $watch = tempdir();
for ([ owner => 1, 'Shared memory object "\S+" is not a regular file of this server\'s user\.' ],
    map { [ open => $_->[0], qq{Could not open shared memory object "\\S+": $_->[1]\\.} ] }
    [ 28, 'No space left on device' ], [ 30, 'Read-only file system' ], [ 13, 'Permission denied' ]) {
    my ($operation, $error, $why) = @$_;
    my $fault = "$watch/fault.$operation.claims";
    append_to_file($fault, $error);
    my $from = -s $two->logfile;
    {
        local ($ENV{RANDFLAKE_WATCH}, $ENV{LD_PRELOAD}) = ($watch, preload_library('watch_files.c'));
        $two->start;
    }
    generate($two);
    like(problem_of($two), qr/^a second server of this machine with the same node ids would go unnoticed: $why$/, "$operation fails ($error): a server that generates says so");
    like(slurp_file($two->logfile, $from), qr/WARNING:  a second server of this machine .* unnoticed\n.*DETAIL:  $why\n.*HINT:  .*\/dev\/shm/, '  and logs it');
    is(problem_of($one), '', '  and the other one sees nothing');
    unlink $fault;
    crash_backend($two);
    generate($two);
    is(problem_of($two), by_machine(postmaster_of($one)), '  until it claims them at a restart');
    $two->stop;
}

# --- a former primary ----------------------------------------------------------------------------
# Removes this machine's file of claims, so that running servers no longer see each other.
sub leave_machine($node) {
    my $fingerprint = $node->sql('SELECT key_fingerprint FROM randflake_status');
    unlink "/dev/shm/randflake-nodes.$fingerprint" or die "no file of claims: $!";
}

$one->stop;
my $primary = start_server('primary',
    init => [ allows_streaming => 1 ],
    settings => { node_id => 5, secret => $secret },
    conf => "log_replication_commands = on\n");
$primary->sql('CREATE TABLE made (id bigint PRIMARY KEY DEFAULT randflake_generate());'
      . q{SET randflake.max_wait = '1h'; INSERT INTO made SELECT FROM generate_series(1, 1000)});
leave_machine($primary);
my $standby = standby_of($primary, 'standby');
is(problem_of($primary), '', 'a standby is no rival of its primary');

my $session = start_session($standby,
    q{SET randflake.max_wait = '1h'},
    q{DO $$ BEGIN
        LOOP
            BEGIN
                PERFORM randflake_generate();
                EXIT;
            EXCEPTION WHEN read_only_sql_transaction THEN PERFORM pg_sleep(0.1);
            END;
        END LOOP;
      END $$},
    'INSERT INTO made DEFAULT VALUES');
await($standby, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^DO' AND wait_event = 'PgSleep'}, 'no session is refused');
$standby->promote;
is((finish_session($session))[1], '', 'promoted: a session that was refused goes on');
$standby->sql(q{SET randflake.max_wait = '1h'; INSERT INTO made SELECT FROM generate_series(1, 1000)});
all_distinct($standby, 'SELECT id FROM made', 2001, '  and makes nothing twice');
log_has($standby, qr/WARNING:  $message\n.*DETAIL:  "primary_conninfo" names the other server, which is not in recovery/,
    'one that is promoted logs that its primary runs');
generate($standby);
is(problem_of($standby), $by_upstream, '  and shows it');

# Reloads the server twice, and waits each time until its worker has asked the server in
# primary_conninfo. When the worker asks the second time, it has handled the first answer.
sub asks($server, $asked) {
    $server->append_conf('postgresql.conf', "primary_conninfo = '" . $asked->connstr . "'");
    for (1, 2) {
        my $from = -s $asked->logfile;
        $server->reload;
        log_has($asked, qr/received replication command: SHOW randflake.spare_node_ranges/, $asked->name . ' is asked', $from);
    }
}
asks($standby, $primary);
is(status_of($standby, 'copy_found_at IS NOT NULL'), 't', '  and stays a copy beside its original');
$standby->sql('SELECT randflake_acknowledge_copy()');

sub upstream_is($answers, $problem, $test_name) {
    asks($standby, $answers);
    is(problem_of($standby), $problem, "$test_name " . ($problem ? 'and is a rival' : 'and is no rival'));
}
my $follower = standby_of($primary, 'follower', backup => 'standby');
configure($two, node_id => 5, secret => random_secret());
$two->append_conf('postgresql.conf', "log_replication_commands = on\nwal_level = replica\nmax_wal_senders = 2");
$two->start;
upstream_is($follower, '', 'a standby');
upstream_is($standby, '', 'the server itself');
upstream_is($two, '', 'a server of another system');
upstream_is($primary, $by_upstream, 'the former primary');
$primary->stop;
$standby->reload;
ok($standby->poll_query_until('postgres', 'SELECT problem IS NULL FROM randflake_status'), 'once that is stopped, none');
configure($primary, node_id => 4, node_count => 2, secret => $secret);
$primary->start;
upstream_is($primary, $by_upstream, 'the former primary with more node ids');
configure($primary, node_id => 6, secret => $secret);
$primary->restart;
upstream_is($primary, '', 'the former primary with other node ids');
$_->stop for $follower, $two, $primary, $standby;

# --- copies, and what became of their original ----------------------------------------------------
my $is_copy = q{coalesce(problem ~ '^this data directory is a copy', false), copy_found_at IS NOT NULL};
my $alpha = start_server('alpha', init => [ allows_streaming => 1 ], settings => { node_id => 20, spare_node_ranges => 3, secret => $secret },
    conf => "log_replication_commands = on\n");
generate($alpha);
my ($beta, $other) = map { standby_of($alpha, $_, start => 0) } qw(beta other);
my $gamma = PostgreSQL::Test::Cluster->new('gamma');
$gamma->init_from_backup($alpha, 'beta');

# A copy with other node ids than its original repeats nothing. It does not forget those.
configure($gamma, node_id => 24, secret => $secret);
for my $start (1, 2) {
    $gamma->start;
    is(status_of($gamma, $is_copy), 'f|f', "a copy with other node ids, start $start: no problem");
    generate($gamma);
    is(status_of($gamma, $is_copy), 'f|f', '  nor after the first identifier');
    $gamma->stop;
}
like(slurp_file($gamma->logfile), qr/LOG:  the window file of randflake was copied from another.*\n.*\n.*HINT:  The server it came from had other node ids/, '  which the log says');
configure($gamma, node_id => 23, secret => $secret);
$gamma->start;
is(status_of($gamma, 'copy_found_at IS NOT NULL'), 't', '  under a spare node id of the original, it is one');
$gamma->stop;

# A promoted standby is a copy until its original follows it.
$beta->start;
$other->start;
leave_machine($alpha);
$alpha->stop;
$beta->promote;
generate($beta);
is(status_of($beta, $is_copy), 't|t', 'a promoted standby is a copy while its original is away');
$other->append_conf('postgresql.conf', "primary_conninfo = '" . $beta->connstr . " application_name=other'");
$other->reload;
$beta->wait_for_catchup($other, 'replay', $beta->lsn('insert'));
asks($beta, $other);
is(status_of($beta, $is_copy), 't|t', '  while another standby of its timeline follows it');
$alpha->set_standby_mode;
$alpha->start;
asks($beta, $alpha);
is(status_of($beta, $is_copy), 't|t', '  while its original is a standby on another timeline');
$alpha->append_conf('postgresql.conf', "primary_conninfo = '" . $beta->connstr . " application_name=alpha'");
$alpha->reload;
$beta->wait_for_catchup($alpha, 'replay', $beta->lsn('insert'));
asks($beta, $alpha);
ok($beta->poll_query_until('postgres', "SELECT $is_copy FROM randflake_status", 'f|f'), '  and no longer when its original follows it');
log_has($beta, qr/LOG:  the original of this data directory follows this server/, '  which it logs');
$beta->restart;
generate($beta);
is(status_of($beta, $is_copy), 'f|f', '  also after a restart');
$_->stop for $alpha, $other, $beta;

# --- a common coordinator ------------------------------------------------------------------------
my $coordinator = start_server('coordinator', extensions => ['randflake_coordinator'],
    settings => { node_id => 1, secret => $secret });
my $announce = 'randflake_lease_announce(text, uuid, text, integer, integer, text, boolean)';
$coordinator->sql(<<"SQL");
CREATE ROLE announcer LOGIN; CREATE ROLE other LOGIN; GRANT EXECUTE ON FUNCTION $announce TO announcer, other;
SQL
my $announced = q{A role has announced the other server to the coordinator of "randflake.registry". Before you believe it, see who in the table "randflake_lease_announcement" there.};
my $in_registry = qq{$message: $announced $both};
my $leased = qq{$message: The coordinator of "randflake.registry" has leased them. $both};
my $registry = $coordinator->connstr('postgres');
my %static = (secret => $secret, registry => "$registry user=announcer");

# Reloads the server, so that it announces itself at once. Otherwise, this may take 30 seconds.
sub announces($node, $problem, $test_name) {
    my $before = $coordinator->sql('SELECT clock_timestamp()');
    $node->reload;
    my $holder = $node->name;
    await($coordinator, <<"SQL", "$holder is not heard of");
SELECT count(*) = 1 FROM randflake_lease_announcement WHERE announced_at > '$before' AND holder = '$holder'
SQL
    ok($node->poll_query_until('postgres', q{SELECT coalesce(problem, '') FROM randflake_status}, $problem), $test_name)
      or diag(problem_of($node));
}
configure($two, %static, node_id => 208, node_count => 8);
$two->start;
leave_machine($two);
start_as($one, %static, node_id => 200, node_count => 8);
announces($one, '', 'a server announces its node ids');
announces($two, '', '  and another one others');
$one->stop;
$coordinator->sql(q{DELETE FROM randflake_lease_announcement WHERE holder = 'one'});
configure($one, %static, node_id => 200, node_count => 9, registry => "$registry user=other");
$one->start;
announces($one, $in_registry, 'one finds another, which has announced by another role');
announces($two, $in_registry, '  and is found by it');
like(slurp_file($two->logfile), qr/WARNING:  $message\n.*DETAIL:  \Q$announced/, '  which logs it');

# Changes the origin in the server's row, as if another server of this name had announced itself.
$coordinator->sql(q{UPDATE randflake_lease_announcement SET origin = 'same' WHERE holder = 'two'});
$two->stop('immediate');
$two->start;
announces($two, $in_registry, 'one that starts again still knows');
my $rows = q{SELECT string_agg(holder || ' ' || nodes, ', ' ORDER BY holder) FROM randflake_lease_announcement};
is($coordinator->sql($rows), 'one [200,209), two [208,216), two [208,216)',
    'two of one name and two origins are two servers');
$coordinator->sql(q{DELETE FROM randflake_lease_announcement WHERE origin = 'same'});
$two->restart;
announces($two, $in_registry, 'one that starts again still knows');
is($coordinator->sql($rows), 'one [200,209), two [208,216)', '  and is none beside itself');
my $fingerprint = $two->sql('SELECT key_fingerprint FROM randflake_status');
my ($table, $change) = ('randflake_lease_announcement', 'UPDATE randflake_lease_announcement SET');
$one->stop('immediate');    # which leaves its row
for (
    [ "$change fingerprint = 'f' WHERE holder = 'one'", '', 'one with another secret is no rival' ],
    [ "$change fingerprint = (SELECT fingerprint FROM $table WHERE holder = 'two')", $in_registry, '  unlike one with the same' ],
    [ "DELETE FROM $table WHERE holder = 'one'", '', 'alone again' ],
    [ "INSERT INTO $table SELECT role, gen_random_uuid(), 'twin', origin, nodes, fingerprint, clock_timestamp() FROM $table",
        $in_registry, 'a copy of the disk is found' ],
    [ "$change announced_at = announced_at - interval '90 s' WHERE holder = 'twin'", '',
        'one that was not heard of for 90 seconds is none' ],
    [ 'SELECT randflake_lease_configure(first_node_id => 215, node_count => 1, never_leased => true);'
          . "SELECT randflake_lease_acquire('leaser', gen_random_uuid(), 1, 60, '$fingerprint')",
        $leased, 'a lease of a node id is found, too' ]) {
    my ($sql, $problem, $test_name) = @$_;
    $coordinator->sql($sql);
    announces($two, $problem, $test_name);
}

my $took;
for (1 .. 3) {
    my $hung = postmaster_of($coordinator);
    kill 'STOP', $hung;
    $two->restart;
    wait_until { `ps -ww -eo args=` =~ /^\S+ two: randflake rival worker asking the coordinator/m } or give_up('it asks nothing');
    await($two, q{SELECT wait_event IS NOT NULL FROM pg_stat_activity WHERE backend_type = 'randflake rival worker'}, "not seen in time");
    my $began = time;
    $two->stop;
    $took = time - $began;
    kill 'CONT', $hung;
    $two->start;
    last if $took < 15;
}
cmp_ok($took, '<', 15, 'a registry that hangs does not delay a stop');
announces($two, $leased, '  and answers later');

$coordinator->stop;
$two->reload;
log_has($two, qr/LOG:  could not announce node ids: /, 'a coordinator that is away is logged');
is(problem_of($two), $leased, '  and takes back nothing');
configure($two, %static, registry => 'host=a nonsense', node_id => 208, node_count => 8);
$two->reload;
log_has($two, qr/LOG:  could not announce node ids: "randflake.registry" is not a valid connection string$/m,
    'as is a connection string that is none');
$two->stop;

$coordinator->start;
my $uuid = '00000000-0000-0000-0000-000000000001';
for (
    [ '22004', "NULL, '$uuid', 'o', 1, 1, 'f', true", qr/must not be null/ ],
    [ '22023', "'h', '$uuid', 'o', 131071, 2, 'f', true", qr/are not within 0 to 131071/ ],
    [ '22023', "'h', '$uuid', 'o', 2147483647, 2147483647, 'f', true", qr/are not within 0 to 131071/ ],
    [ '23514', "repeat('h', 257), '$uuid', 'o', 1, 1, 'f', true", qr/violates check constraint/ ]) {
    my ($sqlstate, $arguments, $expected) = @$_;
    error_is($coordinator, "SELECT randflake_lease_announce($arguments)", $sqlstate, { message => $expected }, "announces ($arguments)",
        user => 'announcer');
}
$coordinator->sql(<<'SQL');
INSERT INTO randflake_lease_announcement SELECT 'announcer', gen_random_uuid(), 'h', 'o', '[1,1]', 'f', clock_timestamp() FROM generate_series(1, 10000)
SQL
error_is($coordinator, "SELECT randflake_lease_announce('h', '$uuid', 'o', 1, 1, 'f', false)", '53400',
    { message => qr/has announced 10000 servers/, hint => qr/role of its own/ }, 'a role announces no more than 10,000', user => 'announcer');
is($coordinator->sql("SELECT randflake_lease_announce('h', '$uuid', 'p', 1, 1, 'f', true)", user => 'other'),
    '(10000,0)', '  which keeps no other role from it');
$coordinator->stop;

done_testing;
