# Crashes, stops and restarts the server under load. Checks that the server repeats no identifier.
# After a crash, the server must start at the window's written end. After a clean stop, it must
# start right after the last used second.
#
# RANDFLAKE_ROUNDS sets the number of rounds (`make soak` uses a large number).
use feature 'state';
use List::Util qw(max);
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{RANDFLAKE_ROUNDS} // 8;
my $epoch = 1730000000;

# Four clients share two node ids, and use up the sequence numbers of each second, beginning with 0.
# A server that entered a second twice would repeat identifiers.
my $secret = random_secret();
my $node = start_server('main', settings => { node_id => 40, node_count => 2, secret => $secret, max_wait => '300s' },
    conf => "restart_after_crash = on\nlog_statement = none\n");
my $history = RandflakeHistory->new($secret);
my @kinds = qw(single copy rollback copy);

sub clock { return time - $epoch }

# Each function ends all backends, and with them an era. It leaves the server stopped or recovered.
my %ways = (
    'backend killed' => { crash => 1, stop => sub { crash_backend($node, (client_backends($node))[0]) } },
    'postmaster killed' => { crash => 1, stop => sub { crash_server($node) } },
    'immediate stop' => { stop => sub { $node->stop('immediate') } },
    'fast stop' => { stop => sub { $node->stop('fast') } },
    'restart within a second' =>
      { early => 1, stop => sub { $node->stop('fast') } });
my @ways = sort keys %ways;

my %wait;           # the longest wait for each way
my $same_second = 0;

sub start_era($before) {
    my $started = time;
    my @clients = $history->start_clients($node, @kinds);
    wait_until_received(@clients);
    $wait{$before} = max($wait{$before} // 0, time - $started);
    return @clients;
}

my @eras;

sub check_eras {
    state $end = 0;    # written by the era before
    while (my $over = shift @eras) {
        my ($name, $until, $window) = @$over{qw(name until window)};
        my $era = $history->add_era(@{ $over->{files} });
        my $next_end = $window->{ends}[0][2];
        cmp_ok($era->{first}, '>=', $end, "$name: the era starts at the end before, or later");
        cmp_ok($era->{last}, '<', $next_end, "$name: it stays before the written end");
        cmp_ok($era->{last}, '<=', $until, "$name: no second of the future");
        like($era->{nodes}, qr/^40 41$/, "$name: node ids");
        ok(($window->{stop_nodes} != 0) != !!$over->{crash}, "$name: a stop is recorded exactly when nothing crashed");
        my $ahead = $over->{crash} ? 3 : 1;
        cmp_ok($next_end, '<=', int($until) + $ahead, "$name: the end is $ahead s ahead at most");
        $end = $next_end;
    }
}

my @clients = start_era('first use');

for my $round (1 .. $rounds) {
    my $way = $ways[ $round % @ways ];
    my %over = (name => "round $round, $way", crash => $ways{$way}{crash});

    # The random sleep makes some rounds end while the server extends its window. A server that
    # stops near the beginning of a second may start again in the same second.
    sleep rand 1.5;
    sleep 1 - (time - int time) if $ways{$way}{early};
    my $from = clock();
    $ways{$way}{stop}->();
    $over{files} = [ finish_clients(@clients) ];
    $over{until} = clock();
    $over{window} = read_window($node);
    push @eras, \%over;
    check_eras() if $round % 25 == 0;

    $node->start if !$node->{_pid};
    $same_second++ if int clock() == int $from;
    @clients = start_era($way);
}
my @files = end_clients($node, @clients);
check_eras();
$history->add_era(@files);
note(sprintf 'longest wait for the first identifiers after %s: %.2f s', $_, $wait{$_}) for sort keys %wait;
note("$same_second of $rounds rounds started again in the second in which they began to stop");

# After a clean stop, the server may start in the very next second. The test starts it at once,
# because a later start would not show whether the window on disk covers Snowflake identifiers.
$node->stop('fast');
my $end = written_end($node);

sub starts_at_end($test_name) {
    my $era = $history->add_era(($history->generate($node, 1000))[0]);
    cmp_ok($era->{first}, '>=', $end, $test_name);
    return $era;
}
for my $round (1 .. 4) {
    $node->start;
    my $era = starts_at_end("stop $round: starts at the end before, or later");
    $node->stop('fast');
    $end = written_end($node);
    cmp_ok($era->{last}, '<', $end, "stop $round: the exact end is after the last identifier");
    cmp_ok($end, '<=', int(clock()) + 1, "stop $round: and no later than it must be");
}
$node->start;

# Starts these clients, and pauses one of their backends. Returns it, and those that go on.
sub pause_one(@kinds) {
    @clients = $history->start_clients($node, @kinds);
    wait_until_received(@clients);
    my ($sleeper, @others) = client_backends($node);
    kill 'STOP', $sleeper or die "could not stop $sleeper: $!";
    return ($sleeper, @others);
}

# The paused backend goes on when its second and window have ended.
my ($sleeper) = pause_one('stream');
my $started = time;
my $era = $history->add_era(finish_clients($history->start_clients($node, ('reconnect') x 4)));
note(sprintf '%d connections in %.1f s', $era->{count}, time - $started);
is($era->{count}, 4000, 'short connections: an identifier from each');
sleep 7 - (time - $started) if time - $started < 7;
kill 'CONT', $sleeper or die "could not continue $sleeper: $!";
wait_until_received(@clients);
$history->add_era(end_clients($node, @clients));

($sleeper, my $victim) = pause_one(@kinds);
crash_backend($node, $victim);
ok(!kill('CONT', $sleeper), 'stopped backend: gone after the restart');
$end = written_end($node);
$history->add_era(finish_clients(@clients));
starts_at_end('stopped backend: the restart starts at the written end');

# A stopped backend outlives its postmaster. It may generate, because no server starts beside it.
($sleeper) = pause_one('stream');
my @children = kill_postmaster($node);
my $log_start = -s $node->logfile;
ok(!$node->start(fail_ok => 1), 'orphan: the server does not start while it is there');
like(slurp_file($node->logfile, $log_start), qr/pre-existing shared memory block/, 'orphan: for its sake');
kill 'CONT', $sleeper or die "could not continue $sleeper: $!";
$clients[0]{seen} = -s $clients[0]{received};
wait_until_received(@clients);
kill 'KILL', $sleeper;  # unless it has noticed, as it does while it waits for its client
$history->add_era(finish_clients(@clients));
$end = written_end($node);
wait_until_gone(@children);
$node->start;
starts_at_end('orphan: the next server starts at the written end');

$history->no_duplicates('crashes and stops');
$node->stop;
done_testing();
