# Moves one range of node ids between data directories under load, in random ways, and checks that
# no identifier comes twice. Servers stop, crash, restart, fail over and fail back without
# pg_rewind. Copies, disk rollbacks, parts of the range and differing clocks vary each step.
#
# RANDFLAKE_SECONDS sets the duration; `make soak` sets a long duration. RANDFLAKE_SEED repeats the
# choices, but their times vary.

use List::Util qw(shuffle);
use Randflake;
use RandflakeHandover;
use RandflakeHistory;
use Time::HiRes qw(sleep time);

my $until = time + ($ENV{RANDFLAKE_SECONDS} // 60);
my $seed = srand($ENV{RANDFLAKE_SEED} // int time);
note("RANDFLAKE_SEED=$seed");

# Clocks differ by up to 1.9 s, even between the starts of one directory.
my $most_ahead = 0.95;
my %settings = (secret => random_secret(), max_clock_skew => '2s', max_wait => '60s');
my $history = RandflakeHistory->new($settings{secret});
my @servers = map {
    new_server($_,
        init => [ allows_streaming => 1 ],
        conf => "restart_after_crash = on\nlog_statement = none\n",
        settings => { %settings, node_id => 40 })
} qw(a b c);

my @ranges = ([ 40, 3 ], [ 40, 1 ], [ 41, 2 ], [ 41, 1 ], [ 40, 3 ]);

sub start_somehow {
    my ($server) = @_;
    my ($node_id, $node_count) = @{ $ranges[ rand @ranges ] };
    configure($server, %settings, node_id => $node_id, node_count => $node_count);
    set_ahead($server, $most_ahead * (2 * rand() - 1));
    start_under_clock($server);
}

my %ends = (
    'fast stop' => sub { $_[0]->stop('fast') },
    'immediate stop' => sub { $_[0]->stop('immediate') },
    'crash' => sub { crash_server($_[0]) },
    'crash of a session, then a stop' => sub { crash_backend($_[0]); $_[0]->stop('fast') },
    'crash of a session, then a crash' => sub { crash_backend($_[0]); crash_server($_[0]) });

my ($current) = @servers;    # stopped
my @files;
my %snapshots = map { $_->name => [] } @servers;

sub use_until {
    my ($server, $end) = @_;
    my @clients = $history->start_clients($server, qw(single copy rollback copy));
    wait_until_received(@clients);
    sleep rand 1;
    push @{ $snapshots{ $server->name } }, snapshot($server);
    $end->($server);
    push @files, finish_clients(@clients);
}

sub another_server { return (shuffle grep { $_ != $current } @servers)[0] }

# Each function moves the node ids to the next server, and ends with a running server.
my %handovers = (
    'restart' => sub { start_somehow($current) },
    'rollback of the disk' => sub {
        my @known = @{ $snapshots{ $current->name } };
        roll_back($current, $known[ rand @known ]);
        start_somehow($current);
    },
    'a directory as it was left' => sub {
        $current = another_server();
        start_somehow($current);
    },
    'copy' => sub {
        my $copy = another_server();
        copy_directory($current, $copy);
        $snapshots{ $copy->name } = [ snapshot($copy) ];
        $current = $copy;
        start_somehow($current);
    },
    'promotion' => sub {
        my $standby = another_server();
        copy_directory($current, $standby);
        $snapshots{ $standby->name } = [ snapshot($standby) ];
        make_standby($standby);
        start_somehow($_) for $standby, $current;
        use_until($current, $ends{ (shuffle 'fast stop', 'immediate stop', 'crash')[0] });
        $standby->promote;
        $current = $standby;
    });

# --- load -----------------------------------------------------------------------------------------

# Starts the first server. All other servers begin as copies of it.
start_somehow($current);
$current->safe_psql('postgres', 'CREATE EXTENSION randflake');
use_until($current, $ends{'fast stop'});
for my $server (grep { $_ != $current } @servers) {
    copy_directory($current, $server);
    $snapshots{ $server->name } = [ snapshot($server) ];
}

my (@due, %count);
while (time < $until || @due) {
    @due = shuffle sort keys %handovers if !@due;
    my $handover = shift @due;
    my $end = (shuffle sort keys %ends)[0];
    note("$handover; $end");
    $count{$handover}++;
    $count{$end}++;
    $handovers{$handover}->();
    use_until($current, $ends{$end});
    # Decodes between handovers, because decoding takes time.
    $history->add_era(splice @files) if @files > 60;
}
$history->add_era(@files);
note(sprintf '%5d  %s', $count{$_}, $_) for sort keys %count;
$history->no_duplicates('handovers');
done_testing();
