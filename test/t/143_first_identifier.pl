# How long the first identifier takes after each kind of start, as a client sees it that connects
# when the server accepts connections. The times are printed; what is checked leaves room for a busy
# machine. That a quick restart does not wait at all is shown in 142_handover.pl.
#
# RANDFLAKE_ROUNDS sets how often each is measured; the middle and the longest time are printed.

use List::Util qw(max);
use Randflake;
use RandflakeHandover;
use RandflakeHistory;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{RANDFLAKE_ROUNDS} // 2;
my $skew = 2;        # the default
my $longest = 30;    # 3 s, and what a busy machine takes
my $secret = random_secret();
my %settings = (secret => $secret, node_id => 0, max_wait => '60s');
my $node = new_server('main', settings => \%settings,
    init => [ allows_streaming => 1 ],
    conf => "restart_after_crash = on\nlog_statement = none\n");
my $other = new_server('other', settings => \%settings, init => [ allows_streaming => 1 ],
    conf => "log_statement = none\n");

# The time of a connection and the first call in it
sub first_identifier {
    my ($server) = @_;
    my $began = time;
    $server->safe_psql('postgres', 'SELECT randflake_generate()');
    return time - $began;
}

my %seconds;    # of a first identifier, by the kind of start
my @kinds;

# `start` leaves a server that accepts connections and was not asked for an identifier yet.
sub measure {
    my ($kind, $start) = @_;
    push @kinds, $kind;
    for my $round (1 .. $rounds) {
        my $server = $start->();
        push @{ $seconds{$kind} }, first_identifier($server);
    }
    cmp_ok(max(@{ $seconds{$kind} }), '<', $longest, "$kind: it does not take long");
}

sub restarted {
    my ($mode, $pause, %changed) = @_;
    $node->stop($mode);
    sleep $pause;
    configure($node, %settings, %changed);
    $node->start;
    return $node;
}

# Identifiers are made up to here, so that the window is in use.
sub in_use {
    $node->safe_psql('postgres', 'SELECT randflake_generate()');
}

$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION randflake');
in_use();

measure('quick restart, after a fast stop',
    sub { in_use(); return restarted('fast', 0) });
measure('quick restart, after an immediate stop',
    sub { in_use(); return restarted('immediate', 0) });
measure('restart after a longer pause', sub { in_use(); return restarted('fast', $skew + 1) });
measure('crash of a session',
    sub { in_use(); crash_backend($node); return $node });
measure(
    'crash of the server',
    sub {
        in_use();
        crash_server($node);
        $node->start;
        return $node;
    });
my $node_id = 10;
measure('other node ids', sub { in_use(); return restarted('fast', 0, node_id => $node_id++) });

# The other server is a standby of the first, or a copy from a backup of it.
sub take_over {
    my ($prepare) = @_;
    $node->start if !$node->{_pid};
    in_use();
    $node->stop;
    $other->stop if $other->{_pid};
    copy_directory($node, $other);
    return $prepare->();
}

measure(
    'promotion',
    sub {
        take_over(
            sub {
                make_standby($other);
                $other->start;
                $node->start;
                in_use();
                $node->stop('immediate');
                $other->promote;
                return $other;
            });
    });
measure('restore from a copy', sub { take_over(sub { $other->start; return $other }) });

for my $kind (@kinds) {
    my @sorted = sort { $a <=> $b } @{ $seconds{$kind} };
    note(sprintf '%-40s %.2f s, at most %.2f s', $kind, $sorted[ $#sorted / 2 ], $sorted[-1]);
}
$_->stop for grep { $_->{_pid} } $node, $other;
done_testing();
