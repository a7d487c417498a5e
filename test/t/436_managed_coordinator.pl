# Tests the coordinator that managed/coordinator.sql makes. Its owner is an ordinary role. Servers
# lease from the database `app`. In the database `hour`, leases and waits last an hour.
use Docs;
use Randflake;
use RandflakeLease;
use RandflakeManaged;

read_document('docs/managed.md', 'test/t/436_managed_coordinator.pl');
my $fleet = new_fleet();
my $first = managed_server('first', streaming => 1, conf => "max_prepared_transactions = 2\nlog_statement = none\n");
my $schema = 'randflake_coordinator';

# Sets default privileges that give other roles rights on new objects. Adds overloads that
# PostgreSQL prefers to the built-in functions.
my ($overloads) = slurp_file('sql/overloads.sql') =~ /^(DO \$\$.*?^END \$\$;)/ms;
$first->sql('CREATE ROLE mallory; CREATE ROLE server2 LOGIN; CREATE DATABASE hour OWNER owner; CREATE DATABASE restored OWNER owner');
for my $made ([ 'app', $RandflakeLease::duration, 1 ], [ 'hour', 3600, 2 ]) {
    my ($database, $duration, $skew) = @$made;
    $first->safe_psql($database, "CREATE SCHEMA overloads; $overloads GRANT ALL ON SCHEMA overloads TO PUBLIC; ALTER DATABASE $database SET search_path = overloads, pg_catalog, $schema");
    as_owner($first, "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO mallory, PUBLIC", $database) for qw(TABLES SEQUENCES FUNCTIONS TYPES SCHEMAS);
    local $ENV{DATABASE_URL} = $first->connstr($database) . ' user=owner';
    command_ok([ 'sh', '-c', block('install') =~ s/duration=60 -v skew=2/duration=$duration -v skew=$skew/r =~ s/-X/-Xqo \/dev\/null/r ], "$database: the owner makes a coordinator");
    as_owner($first, block('roles') =~ s/^CREATE ROLE .*\n/$database eq 'app' ? $& : ''/er, $database);
    as_owner($first, "GRANT USAGE ON SCHEMA $schema TO server2; GRANT EXECUTE ON FUNCTION $schema.randflake_lease_acquire TO server2; SELECT $schema.randflake_lease_configure(never_leased => true)", $database);
}

sub coordinator_at { return $_[0]->connstr('app') . " user=server1 options=-csearch_path=$schema" }
my $uuid = '00000000-0000-0000-0000-000000000001';
my $acquire = "SELECT lease_id FROM $schema.randflake_lease_acquire('x', '$uuid', 1, 3600, repeat('a', 16))";
my @as_server = (extra_params => [ '-U', 'server1' ]);

sub refused($node, $sql, $sqlstate, $message, $test_name, $database = undef) {
    error_is($node, $sql, $sqlstate, { message => $message }, $test_name, database => $database // 'hour', user => $sql =~ /acquire/ ? 'server1' : 'owner');
}

my $known = start_holder($fleet, 'known', coordinator_at($first));
for my $times ('duration=0', 'duration=86401', 'duration=1h', 'skew=3601', 'skew=-1') {
    command_checks_all([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', $times, '-d', $first->connstr('restored') . ' user=owner', '-f', 'managed/coordinator.sql' ],
        3, [], [qr/duration must be from 1 to 86400 seconds, and skew from 0 to 3600/], "no such times: $times");
}
is($first->safe_psql('restored', "SELECT to_regnamespace('$schema')"), '', '  and nothing is made');

# --- privileges ----------------------------------------------------------------------------------
is($first->safe_psql('hour', <<"SQL"), 'owner pg_monitor randflake_lease_stops_at server1 server2', 'nobody else has a privilege, and everybody one for a function that needs one');
SELECT string_agg(DISTINCT CASE grantee WHEN 0 THEN object ELSE grantee::regrole::text END COLLATE "C", ' ')
FROM (SELECT nspname, oid, nspacl FROM pg_namespace UNION ALL SELECT relname, relnamespace, relacl FROM pg_class
      UNION ALL SELECT proname, pronamespace, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc
      UNION ALL SELECT typname, typnamespace, coalesce(typacl, acldefault('T', typowner)) FROM pg_type WHERE typtype = 'e') AS objects (object, namespace, acl), aclexplode(acl)
WHERE namespace = '$schema'::regnamespace
SQL
is($first->safe_psql('hour', "SELECT count(*) FROM pg_proc WHERE pronamespace = '$schema'::regnamespace AND proname !~ '_(epoch|limit)\$' AND NOT coalesce(proconfig, '{}') OPERATOR(pg_catalog.\@>) '{\"search_path=pg_catalog, pg_temp\"}'"), 0, '  each function has its path');
$first->poll_query_until('hour', "SELECT state = 'open' FROM $schema.randflake_pool") or give_up('it does not open');
my $lease = $first->safe_psql('hour', "CREATE TEMP TABLE randflake_lease_pool (closed boolean); SET search_path = pg_temp, overloads; $acquire", @as_server);
sub is_renewed($node, $test_name) {
    is($node->safe_psql('hour', "SELECT lease_end >= extract(epoch FROM now()) FROM $schema.randflake_lease_renew($lease, '$uuid', extract(epoch FROM now())::bigint + 60, 3600, repeat('a', 16))", @as_server), 't', $test_name);
}
is_renewed($first, 'it leases and renews, whatever there is in the way of names');
refused($first, "BEGIN; $acquire; PREPARE TRANSACTION 'x'", '0A000', qr/^cannot PREPARE/, 'a transaction that leased cannot be prepared');
my $configure = "SELECT $schema.randflake_lease_configure";
$first->safe_psql('hour', "BEGIN; SAVEPOINT s; $acquire; ROLLBACK TO s; PREPARE TRANSACTION 'x'", @as_server);
as_owner($first, "SET statement_timeout = '60s'; $configure(max_grants_per_role => 776)", 'hour');
$first->safe_psql('hour', q{ROLLBACK PREPARED 'x'}, @as_server);
pass('  and one that leased in a savepoint that rolled back keeps nothing of the pool');
refused($first, "$configure(max_duration => 3599)", '22023', qr/^longest lease of this coordinator is 3600 seconds$/, 'leases cannot be shorter');
refused($first, "$configure(max_clock_skew => 1)", '22023', qr/^clock skew of this coordinator is 2 seconds$/, '  nor clocks closer');
refused($first, "UPDATE $schema.randflake_lease_pool SET $_", '23514', qr/_check/, "  by hand: $_") for 'max_duration = 1', 'max_clock_skew = 0';

# One session locks the pool in `app`, and another in `hour`. The owner may end only the first.
my %open = map { $_->[0] => $first->background_psql($_->[0], extra_params => [ '-U', $_->[1] ]) } [ 'app', 'server1' ], [ 'hour', 'server2' ];
my ($fingerprint) = split / /, $first->safe_psql('app', "SELECT secrets FROM $schema.randflake_pool");
$open{app}->query_safe('BEGIN; ' . $acquire =~ s/repeat\(.*?\)/'$fingerprint'/r);
$open{hour}->query_safe("BEGIN; $acquire");
my %change = map { $_ => start_session($first, "\\c $_ owner", "$configure(max_grants_per_role => 777)") } keys %open;
is((finish_session($change{app}))[1], '', 'the owner ends a session that keeps the pool, as a member of its role');
ok($first->poll_query_until('hour', "SELECT last_value > 0 FROM $schema.randflake_lease_change"), '  or waits for it');
$open{hour}->query_safe('COMMIT');
is((finish_session($change{hour}))[1], '', '  and changes the pool after its end');
$first->sql('GRANT pg_signal_backend TO owner');
$open{hour}->query_safe("BEGIN; $acquire");
my $superuser = $first->background_psql('hour');
$superuser->query_safe("BEGIN; LOCK TABLE $schema.randflake_lease_pool IN ROW SHARE MODE");
my $change = start_session($first, '\c hour owner', "$configure(max_grants_per_role => 778)");
ok($first->poll_query_until('hour', "SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'server2'"), '  or ends it, as a member of pg_signal_backend');
$superuser->query_safe('COMMIT');
is((finish_session($change))[1], '', '  and waits for a session of a superuser, which it may not end');
$superuser->quit;

# --- starts ------------------------------------------------------------------------------------
# Checks that the coordinator renews leases, but grants none until an hour after the first request.
sub holds_off($node, $test_name, $database = undef) {
    refused($node, $acquire, '55000', qr/^no lease may begin before/, "$test_name: nothing is granted", $database);
    is($node->safe_psql($database // 'hour', "SET search_path = pg_catalog; SELECT state, grants_from = to_timestamp((last_value >> 31) + 3600 + 2 * 2 + 1) FROM $schema.randflake_pool, $schema.randflake_lease_takeover"),
        'holding off|t', '  for an hour');
    is_renewed($node, '  and a lease is renewed') unless $database;
}

my $nothing_lost = "$configure(nothing_lost => true)";
sub nothing_lost($node) {
    as_owner($node, $nothing_lost, 'hour');
    ok($node->poll_query_until('hour', "SELECT state = 'open' FROM $schema.randflake_pool"), '  the owner says that nothing was lost: it opens');
    like($node->safe_psql('hour', $acquire, @as_server), qr/^\d+$/, '  and leases');
}

refused($first, $nothing_lost, '55000', qr/^this coordinator did not take over by a start or a promotion/, 'without a start nobody says that nothing was lost');
$first->stop('immediate');
$first->start;
holds_off($first, 'a crash');
nothing_lost($first);
$first->restart;
holds_off($first, 'a start after that');

# --- disk rollback -----------------------------------------------------------------------------
# A new server that asks at once must not get a node id of a lease that the rollback lost.
my @holders = ($known);
sub newcomer_waits($name, $node, $gone_at) {
    push @holders, start_holder($fleet, $name, coordinator_at($node));
    my $start = $node->safe_psql('app', "SELECT min(pg_catalog.lower(span)) FROM $schema.randflake_lease WHERE holder = '$name'");
    cmp_ok($start - $gone_at, '>=', $RandflakeLease::duration + 2 * 1 + 1, "  a new server waits for lost leases: $name");
    load_on($fleet, $holders[-1]);
}
my $gone_at = time;
$first->stop;
my $saved = $first->backup_dir . '/saved';
system_or_bail('cp', '-a', $first->data_dir, $saved);
$first->start;
load_on($fleet, $known);
newcomer_waits('lost', $first, $gone_at);
my $worker = lease_worker_of($holders[-1]);
kill 'STOP', $worker;
$gone_at = time;
$first->stop('immediate');
system_or_bail('rm', '-r', $first->data_dir);
system_or_bail('cp', '-a', $saved, $first->data_dir);
$first->start;
holds_off($first, 'the disk is put back within the timeline');
newcomer_waits('second', $first, $gone_at);
kill 'CONT', $worker;

nothing_lost($first);
$first->backup('base');
my ($standby, $copy) = map { PostgreSQL::Test::Cluster->new($_) } qw(standby copy);
$standby->init_from_backup($first, 'base', has_streaming => 1);
$copy->init_from_backup($first, 'base');
$_->start for $standby, $copy;
holds_off($copy, 'a copy beside it');
like($first->safe_psql('hour', $acquire, @as_server), qr/^\d+$/, '  which goes on');
as_owner($copy, "$configure(closed => true)", 'hour');
refused($copy, $acquire, '57P03', qr/closed/, '  until the owner closes one of them');
$copy->stop;

$first->wait_for_catchup($standby, 'replay', $first->lsn('insert'));
$gone_at = time;
$first->stop('immediate');
refused($standby, $acquire, '25006', qr/during recovery/, 'a standby leases nothing');
$standby->promote;
holds_off($standby, 'a promotion');
nothing_lost($standby);
move_to($fleet, $_, coordinator_at($standby)) for @holders;
newcomer_waits('third', $standby, $gone_at);
wait_for_open_window($_) for @holders;
end_load($fleet, $_) for @holders;
all_is_well($fleet, $known, 'all of it', leased => 0);
$_->stop for @holders;

as_owner($standby, "DELETE FROM $schema.randflake_lease WHERE lease_id = (SELECT max(lease_id) FROM $schema.randflake_lease)", 'hour');
holds_off($standby, 'a row that is lost', 'hour');

my ($from, $to) = map { $standby->connstr($_) . ' user=owner' } qw(hour restored);
command_ok([ 'sh', '-c', "pg_dump -n $schema '$from' | psql -Xqo /dev/null -v ON_ERROR_STOP=1 '$to'" ], 'the owner restores its dump');
is($standby->safe_psql('restored', $_), $standby->safe_psql('hour', $_), '  which has all of ' . (/FROM (\w+)/)[0])
  for map { "SELECT array_agg(t) FROM $schema.$_ AS t" } qw(randflake_lease randflake_lease_hold);
holds_off($standby, '  it', 'restored');
$standby->safe_psql('hour', 'REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC');
for my $start ('first', 'second') {
    $standby->restart;
    holds_off($standby, "$start start of a server that hides its number");
    refused($standby, $nothing_lost, '55000', qr/^this coordinator did not take over by a start/, '  nobody says that nothing was lost', $_) for qw(hour restored);
    as_owner($standby, "$configure(max_grants_per_role => 5)", 'hour');
}
every_block_was_used();
done_testing();
