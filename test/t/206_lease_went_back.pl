# Sets rows and sequences of a coordinator back in every way of a restore, and starts it after it
# was failed back, reset or killed. It must grant nothing until all leases that it lacks have ended.
use Docs;
use Randflake;
use RandflakeHistory qw(crash_backend);

read_document('docs/troubleshooting.md', 'test/t/206_lease_went_back.pl');
my $node = PostgreSQL::Test::Cluster->new('coordinator');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "log_statement = none\nrestart_after_crash = on\n");
$node->start;
my $tables = join ', ', map { "public.randflake_lease$_" } '', '_pool', '_hold', '_chunk', '_role';
my $acquire = q{SELECT lease_id FROM randflake_lease_acquire('x', gen_random_uuid(), 1, 3600, repeat('a', 16))};
my $configure = 'SELECT randflake_lease_configure';

sub grants($test_name, $at = $node) {
    my $error = error_of($at, $acquire);
    is($error->{text}, '', "$test_name: it grants");
}

# Leases last an hour, so the wait does too.
sub holds_off($test_name, $at = $node) {
    error_is($at, $acquire, '55000', { message => qr/^no lease may begin before/ }, "$test_name: it grants nothing");
    is($at->sql(q{SELECT state, grants_from > now() + interval '3590 s' FROM randflake_pool}), 'holding off|t', '  for an hour');
}

sub make_anew {
    $node->sql(<<"SQL");
DROP EXTENSION IF EXISTS randflake_coordinator;
CREATE EXTENSION randflake_coordinator;
$configure(0, 2048, max_duration => 3600, max_clock_skew => 0, never_leased => true, secrets => repeat('a', 16));
SQL
    await($node, q{SELECT state = 'open' FROM randflake_pool}, 'it does not open');
}

# --- rows ----------------------------------------------------------------------------------------
sub dump_of { return (run_command([ 'pg_dump', '--data-only', '-d', $node->connstr('postgres') ]))[0] }
my ($delete, $off, $on) = map { my $sql = $_; join ' ', map { sprintf "$sql;", $_ } split /, /, $tables }
  'DELETE FROM %s', 'ALTER TABLE %s DISABLE TRIGGER ALL', 'ALTER TABLE %s ENABLE TRIGGER ALL';
my $replica = 'SET session_replication_role = replica;';
my $restore = 'RESTORE';    # stands for the dump's text
my %ways = (
    'TRUNCATE and the data' => "TRUNCATE $tables; $restore",
    'TRUNCATE alone' => 'TRUNCATE randflake_lease',
    'DELETE and COPY' => "$delete $restore",
    'DELETE and COPY as a replica' => "$replica $delete $restore",
    'TRUNCATE and the data as a replica' => "$replica TRUNCATE $tables; $restore",
    'the leases alone' => 'CREATE TEMP TABLE old AS TABLE older; DELETE FROM randflake_lease; INSERT INTO randflake_lease OVERRIDING SYSTEM VALUE TABLE old',
    'the pool alone' => 'CREATE TEMP TABLE old AS TABLE randflake_lease_pool; DELETE FROM randflake_lease_pool; INSERT INTO randflake_lease_pool TABLE old',
    map { ("a refresh of its sequences, called: $_" => "SELECT setval('randflake_lease_takeover', 3758096384000001, $_)") } 'true', 'false');
for my $way (sort keys %ways) {
    make_anew();
    $node->sql("$acquire; DROP TABLE IF EXISTS older; CREATE TABLE older AS TABLE randflake_lease");
    my $dump = dump_of();
    $node->sql($acquire);
    $node->sql($ways{$way} =~ s/$restore/$dump/r);
    holds_off($way);
    holds_off("$way, asked again");
    $node->sql("$configure()");
    holds_off("$way, after a change of the pool");
    error_is($node, "$configure(nothing_lost => true)", '55000', { message => qr/did not take over by a start or/ }, '  and this was no start');
}

make_anew();
$node->sql('DELETE FROM randflake_lease_pool');
error_is($node, $acquire, '55000', { message => qr/^no lease may begin before/ }, 'the pool is gone: it grants nothing');

make_anew();
$node->sql($acquire);
my $dump = dump_of();
$node->sql($acquire);
$node->sql("$off $delete $dump $on");
holds_off('without triggers');
like(slurp_file($node->logfile), qr/LOG:  triggers of the coordinator's tables were changed/, '  the log says why');
$node->sql("$configure()");
is($node->sql('SELECT randflake_lease_guarded(NULL)'), 't', '  a change of the pool restores the triggers');
holds_off('without triggers, after a change of the pool');

make_anew();
$node->sql("$acquire; $acquire; SELECT randflake_lease_release(1, incarnation, NULL) FROM randflake_lease WHERE lease_id = 1");
$node->sql("$_; $configure(max_nodes_per_role => 1000)") for 'VACUUM FULL', 'VACUUM FREEZE', 'SELECT randflake_lease_purge()', "$configure(closed => NULL)",
  'ALTER TABLE randflake_lease CLUSTER ON randflake_lease_pkey; CLUSTER randflake_lease';
$node->sql(q{UPDATE randflake_lease_pool SET max_nodes_per_role = 999; DELETE FROM randflake_lease WHERE upper(span) <= extract(epoch FROM now())});
grants('vacuums, purges and changes by the owner');

# Numbers that went back repeat none, and no call fails.
my $newest = $node->sql('SELECT max(lease_id) FROM randflake_lease');
$node->sql(q{SELECT setval('randflake_lease_lease_id_seq', 1, false)});
is($node->sql($acquire), $newest + 1, 'numbers of leases that are set back go on after the newest');

# --- starts --------------------------------------------------------------------------------------
sub nothing_lost($test_name, $at = $node) {
    $at->sql("$configure(nothing_lost => true)");
    await($at, q{SELECT state = 'open' FROM randflake_pool}, 'it does not open');
    grants("$test_name, nothing was lost", $at);
}

make_anew();
my $incarnation = '00000000-0000-0000-0000-000000000001';
my $known = $node->sql($acquire =~ s/gen_random_uuid\(\)/'$incarnation'/r);
sub renews($test_name) {
    is($node->sql("SELECT lease_end > 0 FROM randflake_lease_renew($known, '$incarnation', extract(epoch FROM now())::bigint + 3000, 3600, repeat('a', 16))"), 't', "$test_name: it renews");
}
crash_backend($node);
grants('a session crashed');

for my $mode ('fast', 'immediate') {
    $node->stop($mode);
    $node->start;
    holds_off("a start after a stop ($mode)");
    renews("a start after a stop ($mode)");
    nothing_lost("a start after a stop ($mode)");

    # A standby is promoted and leases. Then the primary starts as it was left.
    my $standby = standby_of($node, "standby_$mode");
    $node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
    $node->stop($mode);
    $standby->promote;
    holds_off("promoted ($mode)", $standby);
    nothing_lost("promoted ($mode)", $standby);
    $standby->stop;
    $node->start;
    holds_off("failed back as it was left ($mode)");
    nothing_lost("  which is the operator's word ($mode)");
}
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($node, 'standby_fast');
$copy->start;
holds_off('a copy', $copy);
error_is($copy, "$configure(nothing_lost => true)", '55000', { message => qr/did not take over by a start or/ }, '  which is no start of the former server');
$copy->stop;
$node->stop('immediate');
system_or_bail('pg_resetwal', '-f', '-D', $node->data_dir);
$node->start;
holds_off('after pg_resetwal -f');

# An unused coordinator may have been used at a promoted standby.
$node->sql('DROP EXTENSION randflake_coordinator; CREATE EXTENSION randflake_coordinator');
$node->sql(q{SELECT pg_sleep_until(date_trunc('second', now()) + interval '1 second')}); # times are whole seconds
$node->restart;
my $second = $node->sql('SELECT floor(extract(epoch FROM now()))');
error_is($node, $acquire, '55000', { message => qr/^no lease may begin before/ }, 'unused before a start: it grants nothing');
cmp_ok($node->sql('SELECT last_value >> 31 FROM randflake_lease_takeover'), '>=', $second, '  which counts from the first request');

# --- a clock that was ahead ----------------------------------------------------------------------
make_anew();
$node->stop;
start_under_clock($node);
clock_offset($node, 7200);
holds_off('a takeover two hours ahead');
clock_offset($node, 0);
is($node->sql(q{SELECT grants_from > now() + interval '9000 s' FROM randflake_pool}), 't', 'the clock is right again: it would wait for three hours');
$node->sql(block('lower'));
ok($node->poll_query_until('postgres', q{SELECT state = 'open' FROM randflake_pool}), '  and the statement ends it');
grants('the mark was lowered');
$node->sql("$configure()");
grants('the mark was lowered, after a change of the pool');
$node->stop;
every_block_was_used();
done_testing();
