# Starts a server that has static node ids, and whose coordinator may lease these node ids. First
# the server must search every database for coordinators, and wait until leases of its node ids end.
#
# RANDFLAKE_DATABASES sets the number of databases that the server searches (default: the usual
# three). The test prints how long the search takes after a start and after a promotion.
use Randflake;
use RandflakeHistory qw(crash_backend);
use RandflakeLease;
use Time::HiRes qw(sleep time);

$RandflakeLease::node_ids = 16;
my $fleet = new_fleet();

# With max_clock_skew = 0, a stop never counts as proof, and only the search delays the server.
my $own = new_static($fleet, 'own', 100, max_clock_skew => 0);
$own->append_conf('postgresql.conf', "log_min_messages = debug1\n");
$own->start;
my $secrets = status_of($own, 'key_fingerprint');

# Restarts the server with these settings. `forget` deletes the state, which may contain a larger
# skew than the settings.
sub restart_as($node, %settings) {
    $node->stop if $node->{_pid};
    system_or_bail('rm', '-r', $node->data_dir . '/randflake') if delete $settings{forget};
    configure($node, secret => $fleet->{secret}, max_clock_skew => 0, max_wait => '2min', %settings);
    $node->start;
}

sub make_pool($node, $database, $first, $count) {
    $node->safe_psql($database, 'DROP EXTENSION IF EXISTS randflake_coordinator; CREATE EXTENSION randflake_coordinator;'
          . " SELECT randflake_lease_configure($first, $count, max_duration => 3600, max_clock_skew => 0, never_leased => true)");
}

# Leases a node id of a new pool to another holder for an hour. Returns the node id.
sub lease($node, $database) {
    my $sql = "SELECT first_node_id FROM randflake_lease_acquire('somebody', gen_random_uuid(), 1, 3600, '$secrets')";
    my $node_id;
    wait_until {
        my ($status, $out) = $node->psql($database, $sql);
        $node_id = $out;
        $status == 0;
    };
    return $node_id;
}

sub end_leases($node, $database) {
    $node->safe_psql($database, q{UPDATE randflake_lease SET span = int8range(lower(span), greatest(lower(span), extract(epoch FROM now())::bigint) + 1)});
}

# With settings, these functions restart the server first.
sub is_closed($node, $patterns, $test_name, %settings) {
    restart_as($node, %settings) if %settings;
    my $error;
    my $fits = sub { !grep { $error->{$_} !~ $patterns->{$_} } keys %$patterns };
    for my $call ('randflake_generate()', 'snowflake_generate()', 'randflake53_generate()') {
        wait_until {
            $error = error_of($node, "SET randflake.max_wait = '200ms'; SELECT $call");
            $error->{text} !~ /ERROR/ || $fits->();
        };
        ok($error->{sqlstate} eq '55000' && $fits->(), "$test_name: $call is closed") or diag("got: $error->{text}");
    }
    is_problem($node, $error, $test_name);
}

sub leased($node_id, $database) {
    return { message => qr/^node ids $node_id to $node_id may be leased to another server$/,
        detail => qr/^The coordinator in database "$database" may have leased them until 20/, hint => qr/Try again at that time/ };
}

sub not_looked($database, $reason) {
    return { message => qr/^it is not known yet whether a coordinator has leased/,
        detail => qr/^The server could not look into database "$database" for one: $reason/, hint => qr/looks again every second/ };
}

sub is_open($node, $test_name, %settings) {
    my $max_wait = delete $settings{max_wait};
    restart_as($node, %settings) if %settings;
    my $error = error_of($node, ($max_wait ? "SET randflake.max_wait = '$max_wait'; " : '') . 'SELECT randflake_generate(), snowflake_generate(), randflake53_generate()');
    is($error->{sqlstate}, '', $test_name);
}

# --- one lease ------------------------------------------------------------------------------------
restart_as($own, node_id => 100);
make_pool($own, 'postgres', 0, 16);
is(lease($own, 'postgres'), 0, 'node id 0 is leased for an hour');
is_closed($own, leased(0, 'postgres'), 'a leased node id', node_id => 0);
end_leases($own, 'postgres');
is_open($own, 'it opens when the lease has ended', node_id => 0);
is_open($own, 'node ids of the pool that nobody has leased are open at once', node_id => 1);

# A coordinator that took over waits from its last renewal on, if that is later than the clock.
restart_as($own, node_id => 100);
make_pool($own, 'postgres', 0, 16);
lease($own, 'postgres');
$own->sql(q{UPDATE randflake_lease SET renewed_at = now() + interval '1 hour'; SELECT setval('randflake_lease_takeover', 1)});
is_closed($own, leased(5, 'postgres'), 'node ids of a pool that took over', node_id => 5);
my ($until) = error_of($own, "SET randflake.max_wait = '200ms'; SELECT randflake_generate()")->{detail} =~ /until (20.*)\.$/;
is($own->sql("SELECT '$until' > now() + interval '90 min'"), 't', '  until an hour after the last renewal');

# --- spare ranges ---------------------------------------------------------------------------------
restart_as($own, node_id => 100);
make_pool($own, 'postgres', 11, 5);
is(lease($own, 'postgres'), 11, 'node id 11 is leased');
$own->stop;
configure($own, secret => $fleet->{secret}, max_clock_skew => 0, node_id => 10, spare_node_ranges => 1);
start_under_clock($own);
is_open($own, 'a server whose spare range is leased generates under the first one');
# After a proven stop, the server keeps the result of its last search instead of searching again.
configure($own, secret => $fleet->{secret}, max_clock_skew => '1h', node_id => 10, spare_node_ranges => 1);
$own->reload;
$own->stop;
start_under_clock($own);
is_open($own, 'the next start is proven');
clock_offset($own, 7200);
is_open($own, 'it generates by a clock that is ahead');
clock_offset($own, 0);
my $behind = { text => '' };
$behind = error_of($own, 'SET randflake.max_wait = 0; SELECT count(randflake_generate()) FROM generate_series(1, 140000)')
  while $behind->{text} eq '';
like($behind->{message}, qr/^the clock is \d+ seconds behind/, 'a clock that is set back leaves no other range');
is(status_of($own, 'node_range'), 0, '... the spare one is not entered');
restart_as($own, node_id => 100, forget => 1);
end_leases($own, 'postgres');

# --- changing owners -----------------------------------------------------------------------------
# Each stop is shorter than max_clock_skew, so its length does not rule out a proof.
make_pool($own, 'postgres', 0, 16);
for my $preloads (1, 0) {
    end_leases($own, 'postgres');
    is_open($own, 'node id 2 is the server\'s own', node_id => 2, forget => !$preloads);
    configure($own, secret => $fleet->{secret}, max_clock_skew => '1h', node_id => 2);
    $own->reload;
    $own->restart;
    $own->sql('ALTER TABLE randflake_lease_pool RENAME TO away');
    is_open($own, 'a start that is proven waits for no look');
    $own->sql('ALTER TABLE away RENAME TO randflake_lease_pool');
    $own->stop;
    configure($own, secret => $fleet->{secret});
    $own->append_conf('postgresql.conf', $preloads ? '' : "shared_preload_libraries = ''\n");
    $own->start;
    $own->sql('SELECT randflake_lease_configure(nothing_lost => true)');
    my $leased = -1;
    $leased = lease($own, 'postgres') while $leased != 2;
    $own->append_conf('postgresql.conf', "shared_preload_libraries = 'randflake'\n");
    $own->stop($preloads ? 'fast' : 'immediate');    # which leaves the last checkpoint where it was
    is_closed($own, leased(2, 'postgres'), 'given up' . ($preloads ? '' : ' in a run without the library') . ', leased, own again', node_id => 2, max_clock_skew => '1h');
}
restart_as($own, node_id => 100, forget => 1);
end_leases($own, 'postgres');
$own->sql('DROP EXTENSION randflake_coordinator');

# --- hidden databases -----------------------------------------------------------------------------
$own->sql('CREATE ROLE stranger LOGIN');
$own->sql('CREATE DATABASE hidden');
make_pool($own, 'hidden', 0, 16);
is(lease($own, 'hidden'), 0, 'a coordinator in another database leases node id 0');
$own->sql("ALTER DATABASE hidden $_") for 'OWNER TO stranger', 'ALLOW_CONNECTIONS false', 'CONNECTION LIMIT 0',
  "SET search_path = public", 'SET default_transaction_isolation = serializable', 'SET default_transaction_read_only = on',
  'SET default_transaction_deferrable = on', 'SET lock_timeout = 1', 'SET statement_timeout = 1';
is_closed($own, leased(0, 'hidden'), 'leased in a database that allows no connections', node_id => 0);
$own->sql("ALTER DATABASE hidden $_") for 'ALLOW_CONNECTIONS true', 'CONNECTION LIMIT -1', 'RESET ALL',
  'SET lock_timeout = 0';
end_leases($own, 'hidden');

$own->safe_psql('hidden', 'ALTER TABLE randflake_lease RENAME TO away');
is_closed($own, not_looked('hidden', 'extension "randflake_coordinator" has no "randflake_lease"'), 'a table is missing', node_id => 0);
log_has($own, qr/WARNING:  could not look for a coordinator in database "hidden": extension/, 'so the log says');
$own->safe_psql('hidden', 'CREATE TABLE randflake_lease AS TABLE away');
is_closed($own, not_looked('hidden', 'extension "randflake_coordinator" has no "randflake_lease"'), 'another table of the name is none');
$own->safe_psql('hidden', 'DROP TABLE randflake_lease; ALTER TABLE away RENAME TO randflake_lease');
is_open($own, 'the look is repeated by itself');

restart_as($own, node_id => 0);
my ($in, $out) = ("BEGIN; LOCK TABLE randflake_lease_pool;\n\\echo locked\n", '');
my $locker = IPC::Run::start([ 'psql', '-XAtq', '-d', $own->connstr('hidden') ], '<', \$in, '>', \$out,
    IPC::Run::timeout(3 * $PostgreSQL::Test::Utils::timeout_default));
$locker->pump until $out =~ /locked/;
is_closed($own, not_looked('hidden', 'canceling statement due to lock timeout'), 'a table is locked');
$in .= "\\q\n";
$locker->finish;
is_open($own, 'it opens when the lock is gone');

$own->safe_psql('hidden', 'ALTER TABLE randflake_lease_pool DROP COLUMN high_water CASCADE');
is_open($own, 'the look is made once');
$own->append_conf('postgresql.conf', 'restart_after_crash = on');
$own->reload;
crash_backend($own);
is_closed($own, not_looked('hidden', 'table "randflake_lease_pool" has no "high_water"'), 'a crash of a session repeats it');
$own->sql('DROP DATABASE hidden');
is_open($own, 'a database that is gone keeps nothing closed');

# --- hostile roles --------------------------------------------------------------------------------
$own->sql('CREATE DATABASE theirs OWNER stranger');
$own->safe_psql('theirs', <<'SQL', extra_params => [ '-U', 'stranger' ]);
CREATE SCHEMA mine;
CREATE TABLE mine.randflake_lease_pool (nodes int4range, max_duration int, max_clock_skew int, high_water bigint, coordinator text);
INSERT INTO mine.randflake_lease_pool VALUES ('[0,131072)', 86400, 3600, 9999999999, 'me');
CREATE TABLE mine.randflake_lease (nodes int4range, span int8range, granted_at timestamptz, renewed_at timestamptz);
INSERT INTO mine.randflake_lease VALUES ('[0,131072)', '[0,)', now(), now());
CREATE SEQUENCE mine.randflake_lease_takeover;
CREATE FUNCTION mine.strcmp(text, text) RETURNS boolean LANGUAGE sql RETURN false;
ALTER DATABASE theirs SET search_path = mine;
SQL
is_open($own, 'a pool that is none keeps nothing closed', node_id => 0);
for my $configure ('SELECT', 'ALTER TABLE randflake_lease_pool ALTER max_duration SET DEFAULT 3600; SELECT randflake_lease_configure()') {
    restart_as($own, node_id => 0);
    $own->sql("DROP EXTENSION IF EXISTS randflake_coordinator; CREATE EXTENSION randflake_coordinator; $configure");
    is_open($own, 'a coordinator made since the start is not waited for', max_wait => '30s');
    is_closed($own, leased(0, 'postgres'), 'one made before it is, since it may have the place of another one', node_id => 0);
    my ($opens) = error_of($own, 'SET randflake.max_wait = 0; SELECT randflake_generate()')->{detail} =~ /until (.*)\.$/;
    my ($grants) = error_of($own, "SELECT randflake_lease_acquire('somebody', gen_random_uuid(), 1, 60, '$secrets')")->{message} =~ /before (.*)$/;
    # The coordinator also counts its start, which does not concern this server's node ids.
    ok($opens le $grants, 'at the latest until the second from which on it grants') or diag("$opens, $grants");
}
$own->sql('DROP EXTENSION randflake_coordinator');

$own->append_conf('postgresql.conf', 'max_worker_processes = 0');
restart_as($own, node_id => 1);
is_closed($own, { message => qr/^it is not known yet/, detail => qr/the worker that looks for one has not started/i, hint => qr/raise "max_worker_processes"/ },
    'no worker can be started');

# --- a full pool of workers -----------------------------------------------------------------------
# A role without rights occupies all slots of workers after a crash, before the first call.
$own->append_conf('postgresql.conf', 'max_worker_processes = 8');
restart_as($own, node_id => 1);
$own->safe_psql('theirs', 'CREATE TABLE mine.t WITH (parallel_workers = 7) AS SELECT generate_series(1, 100000)', extra_params => [ '-U', 'stranger' ]);

# Crashes the server, fills its slots for an hour, and returns the sessions that fill them.
sub fill_slots($node) {
    crash_backend($node);
    my @sessions = map { IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('theirs') . ' user=stranger', '-c',
        'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 7',
        '-c', 'SELECT count(pg_sleep(3600)) FROM mine.t' ], '<', '/dev/null', '&>', \my $out, IPC::Run::timeout(600)) } 1 .. 2;
    # One slot belongs to the launcher, and one to PostgreSQL's launcher of logical replication.
    await($node, q{SELECT count(*) = 6 FROM pg_stat_activity WHERE backend_type = 'parallel worker'}, 'the slots are not full');
    return @sessions;
}

sub free_slots($node, @sessions) {
    is($node->sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}), 6, '... and all slots are in use still');
    $node->sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'stranger'});
    $_->finish for @sessions;
}

my @sessions = fill_slots($own);
is_open($own, 'without a free slot, the launcher looks by itself');
my $databases = $own->sql('SELECT count(*) FROM pg_database');
my $lives = () = slurp_file($own->logfile) =~ /LOG:  background worker "randflake look" \(PID \d+\) exited with exit code 1/g;
cmp_ok($lives, '>=', 2 * $databases, "... in each of $databases databases");
free_slots($own, @sessions);
make_pool($own, 'postgres', 1, 4);
lease($own, 'postgres') for 2 .. 4;
restart_as($own, node_id => 2);
@sessions = fill_slots($own);
is_closed($own, leased(2, 'postgres'), 'without a free slot, a lease is found');
free_slots($own, @sessions);
end_leases($own, 'postgres');
$own->sql('ALTER TABLE randflake_lease RENAME TO away');
restart_as($own, node_id => 2);
@sessions = fill_slots($own);
is_closed($own, not_looked('postgres', 'extension "randflake_coordinator" has no "randflake_lease"'), 'without a free slot, a failure is shown');
$own->sql('ALTER TABLE away RENAME TO randflake_lease');
is_open($own, '... and the look is repeated');
free_slots($own, @sessions);
$own->sql('DROP DATABASE theirs');

# --- promotion and duration -----------------------------------------------------------------------
restart_as($own, node_id => 100);
make_pool($own, 'postgres', 0, 16);
my $count = $own->sql('SELECT count(*) FROM pg_database');
$own->sql("CREATE DATABASE more$_") for $count + 1 .. $ENV{RANDFLAKE_DATABASES} // 0;
sub time_of_look($node, $what) {
    my $offset = -s $node->logfile;
    is_open($node, "$what: it generates");
    my ($took) = slurp_file($node->logfile, $offset) =~ /DEBUG:  (looked for coordinators in .*)/;
    note "$what: $took";
}
restart_as($own, node_id => 101);
time_of_look($own, 'start');
$own->sql('SELECT randflake_lease_configure(nothing_lost => true)');
my %standby;
for my $name ('inside', 'outside') {
    my $standby = $standby{$name} = standby_of($own, $name, start => 0);
    restart_as($standby, node_id => $name eq 'inside' ? 0 : 101);
    $own->wait_for_catchup($standby, 'replay', $own->lsn('insert'));
}
$_->stop for values %standby;
is(lease($own, 'postgres'), 0, 'a lease that no standby has heard of');
$own->stop('immediate');
for (values %standby) { $_->start; $_->promote }
time_of_look($standby{outside}, 'promotion');
is_closed($standby{inside}, leased(0, 'postgres'), 'a standby that takes node ids of the pool');
$standby{inside}->sql('SELECT randflake_lease_configure(); UPDATE randflake_lease_pool SET high_water = 0');
end_leases($standby{inside}, 'postgres');
restart_as($standby{inside}, node_id => 0);
is_open($standby{inside}, 'an operator that knows better says so in the table');
$_->stop for values %standby;
done_testing();
