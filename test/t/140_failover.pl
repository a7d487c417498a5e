# Promotes servers, switches over, recovers to a point in time, and runs pg_rewind. All servers have
# the same node ids. Checks that a standby decodes but issues none, and that the new primary holds
# off, warns, and repeats no identifier of another server, even if it never reached the new primary.
use Docs;
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

read_document('docs/operations.md', 'test/t/140_failover.pl');
my $epoch = 1730000000;
my $skew = 0.5;
my $secret = random_secret();
my %settings = (secret => $secret, node_id => 70, max_wait => '60s', max_clock_skew => $skew * 1000);
my $history = RandflakeHistory->new($secret);

sub start_primary($name, %init) {
    my $node = new_server(
        $name,
        settings => \%settings,
        conf => "log_statement = none\nwal_keep_size = '512MB'\nwal_log_hints = on\nshared_buffers = '32MB'\n",
        init => [ allows_streaming => 1, %init ]);
    $node->start;
    $node->sql('CREATE EXTENSION randflake; CREATE TABLE stored (id bigint PRIMARY KEY DEFAULT randflake_generate())');
    return $node;
}

# Like a client, stores identifiers in a table. Returns the era of these identifiers.
sub store($node, $count) {
    my $file = tempdir_short() . '/stored';
    append_to_file($file, $node->sql(
        "INSERT INTO stored SELECT randflake_generate() FROM generate_series(1, $count) RETURNING id")
          . "\n");
    return $history->add_era($file);
}

sub use_until_crash($node) {
    my @clients = $history->start_clients($node, qw(single copy rollback));
    wait_until_received(@clients);
    sleep 1;
    crash_server($node);
    return $history->add_era(finish_clients(@clients));
}

sub write_file($path, $content) {
    unlink $path;
    append_to_file($path, $content);
}

sub messages_since($node, $position) {
    return [ slurp_file($node->logfile, $position) =~ /WARNING:  (.*randflake.*)/g ];
}

sub takes_over($node, $test_name, @warnings) {
    my $called = time;
    my $position = $node->{log_start} // 0;
    my $era = store($node, 1000);
    is_deeply(messages_since($node, $position), \@warnings, "$test_name: warns");
    cmp_ok($era->{first} + $epoch, '>', $called + $skew - 0.02, "$test_name: holds off");
    $node->{log_start} = -s $node->logfile;
}

my $copied = 'the window file of randflake was copied from another data directory';
my $other_timeline = 'the window file of randflake was written on another timeline';

# --- a late standby ------------------------------------------------------------------------------
# Enables checksums explicitly, because their default differs between versions.
my @checksums = (extra => ['--data-checksums']);

my $a = start_primary('a', @checksums);
store($a, 1000);
my $b = standby_of($a, 'b');
# This table slows down the checkpoint after the promotion, because the checkpoint must write it.
$a->sql('CREATE TABLE ballast AS SELECT generate_series(1, 100000) AS n');
$a->wait_for_catchup($b);

my $copy = slurp_file(window_path($b));
for my $max_wait (0, '1h') {
    for my $sql (
        'SELECT randflake_generate()', 'SELECT randflake_generate_text()', 'SELECT * FROM randflake_generate(10)',
        'SELECT randflake_generate() FROM stored') {
        error_is($b, "SET randflake.max_wait = '$max_wait'; $sql", '25006',
            { message => qr/^cannot generate identifiers during recovery$/, hint => qr/^Generate them on the primary server\.$/ },
            "standby, max_wait $max_wait: $sql fails", problem => 1);
    }
}
error_is($b, 'SELECT randflake_acknowledge_copy()', '25006',
    { message => qr/^cannot acknowledge a copy during recovery$/, hint => qr/promoted/ }, 'standby: no copy is acknowledged');
error_is($b, 'INSERT INTO stored DEFAULT VALUES', '25006', {}, 'standby: INSERT with a default fails');
is(slurp_file(window_path($b)), $copy, 'standby: touches no state');

my $decoded = q{SELECT md5(string_agg(concat_ws(' ', id, extract(epoch FROM generated_at), node_id,
                sequence, randflake_encode(generated_at, node_id, sequence) = id), ',' ORDER BY id))
                FROM stored, randflake_decode(id)};
is($b->sql($decoded), $a->sql($decoded), 'standby: decodes as the primary does');
is( $b->sql('SELECT count(*) FROM stored WHERE randflake_from_text(randflake_to_text(id)) = id'
          . ' AND randflake_shard(id, 1) = 0'),
    1000, 'standby: text and shards work');

$b->sql(q{ALTER SYSTEM SET primary_conninfo = ''});
$b->reload;
await($b, 'SELECT count(*) = 0 FROM pg_stat_wal_receiver', 'the standby still receives');
store($a, 1000);
use_until_crash($a);
$b->promote;
takes_over($b, 'promotion', $copied);
is($b->sql('SELECT count(*) FROM stored'), 2000, 'promotion: the new primary does not know all that the former issued');
is(read_window($b)->{timeline}, 2, 'promotion: the timeline is in the window file');

# --- pg_rewind -----------------------------------------------------------------------------------
my $configuration = slurp_file($a->data_dir . '/postgresql.conf');
my $identity = (stat $a->data_dir . '/randflake/identity')[1];
my ($data_dir, $host, $port) = ($a->data_dir, $b->host, $b->port);
my $commands = block('rewind');
is($commands =~ s/-h primary/-h $host -p $port/g, 1, 'pg_rewind: a checkpoint of the new primary');
is($commands =~ s/host=primary/host=$host port=$port/g, 1, '  then');
is($commands =~ s{/srv/former}{$data_dir}g, 1, '  the former one');
command_ok([ 'sh', '-euc', $commands ], 'pg_rewind');
is((stat $a->data_dir . '/randflake/identity')[1], $identity, 'pg_rewind: keeps the identity file');
is(slurp_file(window_path($a)), slurp_file(window_path($b)), 'pg_rewind: brings a window file');
write_file($a->data_dir . '/postgresql.conf', $configuration);
write_file($a->data_dir . '/postgresql.auto.conf', '');
$a->enable_streaming($b);
$a->{log_start} = -s $a->logfile;
$a->start;
store($b, 1000);
my @clients = $history->start_clients($b, qw(single copy rollback));
wait_until_received(@clients);
$history->add_era(end_clients($b, @clients));
$b->wait_for_catchup($a);
$b->stop;
$a->promote;
takes_over($a, 'pg_rewind and promotion', $copied);

# --- switchover ----------------------------------------------------------------------------------
write_file($b->data_dir . '/postgresql.auto.conf', '');
$b->enable_streaming($a);
$b->{log_start} = -s $b->logfile;
$b->start;
store($a, 1000);
$a->wait_for_catchup($b);
$a->stop;
$b->promote;
takes_over($b, 'switchover', $other_timeline);
like(slurp_file($b->logfile), qr/DETAIL:  It was written on timeline 2, this server is on timeline 4\./,
    'switchover: the timelines are named');
$b->restart;
$b->{log_start} = -s $b->logfile;
store($b, 1000);
is_deeply(messages_since($b, $b->{log_start}), [], 'switchover, next start: does not warn');
$b->stop;

# --- point-in-time recovery ----------------------------------------------------------------------
my $e = start_primary('e', has_archiving => 1);
store($e, 1000);
$e->backup('base');
store($e, 1000);
$e->sql(q{SELECT pg_create_restore_point('here')});
store($e, 1000);
my $segment = $e->sql('SELECT pg_walfile_name(pg_current_wal_lsn())');
$e->sql('SELECT pg_switch_wal()');
await($e, "SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver", 'nothing is archived');
use_until_crash($e);
my $f = PostgreSQL::Test::Cluster->new('f');
$f->init_from_backup($e, 'base', has_restoring => 1, standby => 0);
$f->append_conf('postgresql.conf', "recovery_target_name = 'here'\nrecovery_target_action = 'promote'\n");
$f->start;
await($f, 'SELECT NOT pg_is_in_recovery()', 'recovery does not end');
is($f->sql('SELECT count(*) FROM stored'), 2000, 'point-in-time recovery: back in time');
sleep $skew + 1;    # A hold-off from the end of recovery would be over.
takes_over($f, 'point-in-time recovery', $copied);
$f->stop;

every_block_was_used();
$history->no_duplicates('failover');
done_testing();
