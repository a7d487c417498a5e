# Moves node ids between servers by promotions, disk rollbacks, and shutdowns that leave no proof
# for the next start (see docs/design.md). Compares all servers' identifiers, even those of
# rolled-back transactions. The simulation of fleets tests a server's decisions. This file tests how
# a server learns the facts. RANDFLAKE_ROUNDS sets the number of rounds of each case.
use List::Util qw(max);
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{RANDFLAKE_ROUNDS} // 1;
my $skew = 2;
my $secret = random_secret();
my $history = RandflakeHistory->new($secret);

sub settings { return (secret => $secret, max_clock_skew => "${skew}s", max_wait => '60s', @_) }

# --- clocks ----------------------------------------------------------------------------------
# Each server's clock is $node->{clock_ahead} seconds ahead of the true time. Clocks can stand
# together, so that events happen within one second even on a slow machine.
sub set_ahead($node, $seconds) { clock_offset($node, $node->{clock_ahead} = $seconds) }
sub clocks_run(@nodes) { set_ahead($_, $_->{clock_ahead}) for @nodes }
sub clocks_stand(@nodes) { clocks_stand_from(time, @nodes) }
sub clocks_stand_from($time, @nodes) { clock_stands_at($_, $time + $_->{clock_ahead}) for @nodes }

# Stops all clocks in a second that is later than the true time and than the last call's second.
my $stood_at = 0;

sub clocks_stand_in_next_second(@nodes) {
    $stood_at = 1 + max($stood_at, time);
    clocks_stand_from($stood_at, @nodes);
}

my %conf = (init => [ allows_streaming => 1 ], conf => "log_statement = none\nrestart_after_crash = on\n");
my $a = new_server('a', %conf, settings => { settings(node_id => 0) });
my $b = new_server('b', %conf, settings => { settings(node_id => 1) });
for my $node ($a, $b) {
    set_ahead($node, 0);
    start_under_clock($node);
    $node->sql('CREATE EXTENSION randflake');
    $node->stop;
}

sub start_with($node, %settings) {
    configure($node, settings(%settings));
    start_under_clock($node);
}

# A clean stop counts as proof for a time of max_clock_skew. This value leaves time for a slow
# restart. Other servers keep the usual skew, so that they hold off only briefly.
my $long = '300s';

sub reload_with($node, %settings) {
    configure($node, settings(%settings));
    $node->reload;
    await($node, <<"SQL", 'the settings are not reloaded');
SELECT setting::integer = 1000 * extract(epoch FROM '$settings{max_clock_skew}'::interval)
FROM pg_settings WHERE name = 'randflake.max_clock_skew'
SQL
}

# Stops the server. Writes the usual skew into its window file to shorten the next hold-off.
sub forget_long($node) {
    $node->stop;
    write_window($node, { %{ read_window($node) }, smallest_skew_ms => 1000 * $skew, largest_skew_ms => 1000 * $skew });
}

my $next_node_id = 100;
sub fresh_node_id { return $next_node_id += 10 }

# Lets a session generate for about this many seconds after its first identifier. Returns how many
# it made. The script rolls back the transactions in which it makes two thirds of them.
sub collect($node, $seconds, $max_wait) {
    # Writes statements to a file, because psql would wait for the end of its standard input.
    my $statements = tempdir_short() . '/statements';
    append_to_file($statements, "CREATE TEMP TABLE kept (id bigint);\n" . <<'SQL' x (10 * $seconds));
BEGIN; COPY (SELECT randflake_generate() FROM generate_series(1, 20)) TO STDOUT; ROLLBACK;
INSERT INTO kept SELECT randflake_generate() FROM generate_series(1, 10) RETURNING id;
\! sleep 0.1
SQL
    my $file = receive($node, $max_wait, '-f', $statements);
    return -s $file ? $history->add_era($file)->{count} : 0;
}

sub is_open($node, $test_name) { ok(collect($node, 0.3, '100ms'), "$test_name: the window is open") }
sub is_closed($node, $test_name) { is(collect($node, 0.3, '100ms'), 0, "$test_name: the window is not open yet") }
sub generates($node, $seconds, $test_name) { ok(collect($node, $seconds, '60s'), "$test_name: generates") }

sub handover($case, $round) {
    for (1 .. $rounds) {
        set_ahead($_, 0) for $a, $b;
        $round->("$case, round $_", fresh_node_id(), $_);
        for my $node ($a, $b) {
            $node->stop if $node->{_pid};
            unlink $node->data_dir . '/standby.signal';
        }
    }
    $history->no_duplicates($case);
    $history->forget;
}

handover('quick restart', sub {
    my ($name, $node_id) = @_;
    my @all = (node_id => $node_id, node_count => 4);
    my @fewer = (node_id => $node_id + 1, node_count => 2);
    start_with($a, @all);
    generates($a, 0.2, $name);
    reload_with($a, @all, max_clock_skew => $long);
    $a->stop;
    clocks_stand_in_next_second($a);
    start_with($a, @all, max_clock_skew => $long);
    is_open($a, "$name, same node ids");
    $a->stop;
    clocks_stand_in_next_second($a);
    start_with($a, @fewer, max_clock_skew => $long);
    is_open($a, "$name, fewer node ids");
    forget_long($a);
});

handover('single-user mode', sub {
    my ($name, $node_id) = @_;
    start_with($a, node_id => $node_id);
    generates($a, 0.2, "$name, before");
    reload_with($a, node_id => $node_id, max_clock_skew => '299s');
    $a->stop;
    my $statements = "SELECT randflake_generate() AS id\n" x 50
      . "COPY (SELECT 'randflake.max_clock_skew = $long')"
      . " TO PROGRAM 'cat >>randflake.conf; kill -HUP \$PPID'\n"
      . "SHOW randflake.max_clock_skew\n";
    my $single = sub {
        my ($out, $error);
        IPC::Run::run([ 'postgres', '--single', '-D', $a->data_dir, 'postgres' ], '<', \$_[0], '>', \$out, '2>',
            \$error) or die 'single-user mode failed';
        return ($out, $error);
    };
    my ($out) = $single->($statements);
    my @ids = $out =~ /id = "(-?\d+)"/g;
    is(@ids, 50, "$name: generates");
    like($out, qr/max_clock_skew = "5min"/, "$name: reloads its settings");
    my $file = tempdir_short() . '/ids';
    append_to_file($file, join '', map { "$_\n" } @ids);
    $history->add_era($file);
    isnt(read_window($a)->{stop_nodes}, 0, "$name: the stop is recorded");
    clocks_stand_in_next_second($a);
    start_with($a, node_id => $node_id, max_clock_skew => $long);
    is_open($a, "$name, then a server");
    forget_long($a);
    configure($a, settings(node_id => fresh_node_id(), max_wait => '5s'));
    like(($single->("SELECT randflake_generate()\n"))[1], qr/HINT: +Single-user mode has no workers/,
        "$name, not proven: is closed");
});

handover('run not known', sub {
    my ($name, $node_id) = @_;
    start_with($a, node_id => $node_id);
    generates($a, 0.2, $name);
    clocks_stand($a);
    is_open($a, "$name, before");
    $a->stop;
    my $marker = run_marker_path($a);
    is((stat $marker)[7], 8, "$name: the run is marked");
    unlink $marker or die "could not remove $marker: $!";
    start_with($a, node_id => $node_id);
    is_closed($a, $name);
    clocks_run($a);
    generates($a, 0.2, "$name, then");
});

# After a crash, the last checkpoint is still that of the stop, and the state is not. pg_resetwal
# leaves the window file and the identity, but not the checkpoint.
for my $case ([ 'crash without node ids', sub { start_with($a); $a->stop('immediate') } ],
    [ 'pg_resetwal', sub { system_or_bail('pg_resetwal', '-f', $a->data_dir) } ]) {
    handover($case->[0], sub {
        my ($name, $node_id) = @_;
        start_with($a, node_id => $node_id);
        generates($a, 0.2, $name);
        reload_with($a, node_id => $node_id, max_clock_skew => $long);
        $a->stop;
        $case->[1]->();
        start_with($a, node_id => $node_id, max_clock_skew => $long);
        is_closed($a, $name);
        forget_long($a);
    });
}

# After a host has paused a virtual machine, only the wall clock shows how much time has passed.
handover('paused machine', sub {
    my ($name, $node_id) = @_;
    start_with($a, node_id => $node_id);
    generates($a, 0.2, $name);
    $a->stop;
    set_ahead($a, 600);
    clocks_stand($a);
    start_with($a, node_id => $node_id);
    is_closed($a, $name);
    clocks_run($a);
    generates($a, 0.2, "$name, then");
});

handover('promotion and a crash of a session', sub {
    my ($name, $node_id) = @_;
    start_with($a, node_id => $node_id);
    $a->stop;
    copy_directory($a, $b);
    append_to_file($b->data_dir . '/standby.signal', '');    # of no primary; promoted later
    start_under_clock($_) for $a, $b;
    generates($a, 0.2, "$name, former primary");
    sleep $skew;
    clocks_stand($a, $b);
    is_open($a, "$name, former primary");
    crash_server($a);
    $b->promote;
    crash_backend($b);
    is_closed($b, "$name, standby");
    clocks_run($a, $b);
    generates($b, 0.2, "$name, standby, then");
});

# The whole rollback takes less time than the tolerated difference of clocks.
handover('rollback to a stop', sub {
    my ($name, undef, $round) = @_;
    my @settings = (node_id => 4, max_clock_skew => '30s');
    start_with($a, @settings, max_clock_skew => 0);
    generates($a, 0.2, "$name, before");
    $a->stop;
    write_window($a, { %{ read_window($a) }, smallest_skew_ms => 30_000, largest_skew_ms => 30_000 });
    my $snapshot = window_bytes($a);
    # In every second round, the server cannot write the marker, so it removes the marker.
    chmod 0400, run_marker_path($a) if $round % 2 == 0;
    clocks_stand_in_next_second($a);
    start_with($a, @settings);
    is_open($a, "$name, snapshot");
    $a->stop;
    write_window_bytes($a, $snapshot);
    start_with($a, @settings);
    is_closed($a, $name);
});

# Lowers max_clock_skew before the first call or before the stop. The hold-off uses the largest
# value of max_clock_skew, and the proof of the stop uses the smallest.
handover('lowered in a handover', sub {
    my ($name, $node_id, $round) = @_;
    my @settings = (node_id => $node_id);
    my ($great, $small) = ('5s', '1ms');
    start_with($a, @settings, max_clock_skew => $great);
    generates($a, 0.3, "$name, before");
    reload_with($a, @settings, max_clock_skew => $small) if $round % 2;
    $a->stop;
    is_deeply([ @{ read_window($a) }{qw(smallest_skew_ms largest_skew_ms)} ],
        [ $round % 2 ? 1 : 5000, 5000 ], "$name: the state on disk has what it was");
    my $since = time;
    start_with($a, @settings, max_clock_skew => $great);
    reload_with($a, @settings, max_clock_skew => $small);
    generates($a, 0.3, $name);
    cmp_ok(time - $since, '>', 5, "$name: holds off");
});
done_testing();
