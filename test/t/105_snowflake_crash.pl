# Crashes, stops and restarts under load, as 100_crash.pl has them, for Snowflake identifiers: none
# leaves the server twice, and the written end covers them too. Randflake identifiers are made
# meanwhile, from the same window.

use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my $secret = random_secret();
my $node = start_server(
    'main',
    settings => { node_id => 40, node_count => 2, secret => $secret, max_wait => '300s' },
    conf => "restart_after_crash = on\nlog_statement = none\n");
my $history = RandflakeHistory->new($secret, snowflake => 1);

# What ends an era: no backend is left, and the server does not run or has recovered.
my @ways = (
    [ 'backend killed', sub { crash_backend($node, (client_backends($node))[0]) } ],
    [ 'postmaster killed', sub { crash_server($node) } ],
    [ 'fast stop', sub { $node->stop('fast') } ],
    [ 'immediate stop', sub { $node->stop('immediate') } ]);

my $end = 0;    # written by the era before
for my $round (1 .. $ENV{RANDFLAKE_ROUNDS} // 8) {
    my ($way, $stop) = @{ $ways[ $round % @ways ] };
    my @clients = $history->start_clients($node, qw(single copy rollback copy));
    wait_until_received(@clients);
    $node->safe_psql('postgres', 'SELECT count(*) FROM randflake_generate(1000)');
    sleep rand 1.5;
    $stop->();
    my $era = $history->add_era(finish_clients(@clients));
    my $name = "round $round, $way";
    ok($era->{first} >= $end, "$name: the era starts at the end before, or later")
      or diag("end $end, first second $era->{first}");
    $end = written_end($node);
    ok($era->{last} < $end, "$name: it stays before the written end")
      or diag("last second $era->{last}, end $end");
    like($era->{nodes}, qr/^40( 41)?$/, "$name: node ids");
    $node->start if !$node->{_pid};
}

# After a clean stop a server may start in the very next second, so its exact end must count these
# identifiers: with no Randflake identifier made, nothing else shows them.
for my $round (1 .. 4) {
    my $era = $history->add_era(($history->generate($node, 1000))[0]);
    ok($era->{first} >= $end, "stop $round: starts at the end before, or later");
    $node->stop('fast');
    $end = written_end($node);
    ok($era->{last} < $end, "stop $round: the exact end is after the last identifier")
      or diag("last second $era->{last}, end $end");
    cmp_ok($end, '<=', int(time - 1730000000) + 1, "stop $round: and no later than it must be");
    $node->start;
}

# One backend sleeps through several windows, and finds that its time is over.
my @clients = $history->start_clients($node, 'stream');
wait_until_received(@clients);
my ($sleeper) = client_backends($node);
kill 'STOP', $sleeper or die "could not stop $sleeper: $!";
$history->add_era(finish_clients($history->start_clients($node, 'reconnect')));
sleep 5;
kill 'CONT', $sleeper or die "could not continue $sleeper: $!";
wait_until_received(@clients);
$history->add_era(end_clients($node, @clients));

$history->no_duplicates('crashes and stops');
$node->stop;
done_testing();
