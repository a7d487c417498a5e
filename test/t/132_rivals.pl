# Servers that run with the same node ids and the same secret find each other: on one machine, across a
# promotion, and by a coordinator that both know. None is kept from generating.

use Randflake;

my $secret = random_secret();
my $message = 'another server runs with node ids of this one';
my $both = 'Both make the same identifiers: stop one of the two, and give it other node ids.';

sub problem_of { return $_[0]->safe_psql('postgres', 'SELECT problem FROM randflake_status') }
sub generate { return $_[0]->safe_psql('postgres', q{SET randflake.max_wait = '1h'; SELECT randflake_generate()}) }
sub by_machine { return "$message: Its postmaster is process $_[0] of this machine. $both" }
my $by_upstream = qq{$message: "primary_conninfo" names it, and it is not in recovery. $both};

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

# A crash of a backend makes shared memory anew, but not the postmaster.
$two->append_conf('postgresql.conf', 'restart_after_crash = on');
$two->reload;
my $session = start_session($two, 'SELECT pg_sleep(600)');
my $pid = wait_until { $two->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'}) };
kill 'KILL', $pid;
eval { finish_session($session) };
wait_until { $two->psql('postgres', 'SELECT 1') == 0 };
is(problem_of($one), by_machine(postmaster_of($two)), 'after a crash of a backend, one still knows');
$two->stop('immediate');
is(problem_of($one), '', 'without the other, none, however it ended');

for my $other ([ 'other node ids', node_id => 104 ], [ 'another secret', secret => random_secret() ]) {
    my ($what, %settings) = @$other;
    configure($two, node_id => 103, secret => $secret, %settings);
    $two->start;
    generate($two);
    is(join('', map { problem_of($_) } $one, $two), '', "none with $what");
    $two->stop;
}
configure($two, node_id => 96, spare_node_ranges => 4, secret => $secret);
$two->start;
generate($two);
is(problem_of($one), by_machine(postmaster_of($two)), 'spare ranges count');
$two->stop;

# --- a former primary ----------------------------------------------------------------------------

# As if on another machine: the locks of the servers that run now are out of sight.
sub leave_machine { unlink glob '/dev/shm/randflake-nodes.*' or die 'no file of claims' }

sub has_logged {
    my ($node, $from, $pattern, $test_name) = @_;
    ok(wait_until { slurp_file($node->logfile, $from) =~ $pattern }, $test_name);
}

$one->stop;
my $primary = start_server('primary',
    init => [ allows_streaming => 1 ],
    settings => { node_id => 5, secret => $secret },
    conf => "log_replication_commands = on\n");
generate($primary);
leave_machine();
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
is(problem_of($primary), '', 'a standby is no rival of its primary');
$standby->promote;
has_logged($standby, 0, qr/WARNING:  $message\n.*DETAIL:  "primary_conninfo" names the other server, which is not in recovery/,
    'one that is promoted logs that its primary runs');
generate($standby);
is(problem_of($standby), $by_upstream, '  and shows it');

$standby->safe_psql('postgres', 'SELECT randflake_acknowledge_copy()');

# The worker asks at each reload, too. Its second question shows that the first answer counts.
sub upstream_is {
    my ($answers, $problem, $test_name) = @_;
    $standby->append_conf('postgresql.conf', "primary_conninfo = '" . $answers->connstr . "'");
    for (1, 2) {
        my $from = -s $answers->logfile;
        $standby->reload;
        has_logged($answers, $from, qr/received replication command: SHOW randflake.spare_node_ranges/, "$test_name is asked");
    }
    is(problem_of($standby), $problem, '  ' . ($problem ? 'and is a rival' : 'and is no rival'));
}
my $follower = PostgreSQL::Test::Cluster->new('follower');
$follower->init_from_backup($primary, 'backup', has_streaming => 1);
$follower->start;
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

done_testing;
