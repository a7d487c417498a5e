# Crashes a session and the postmaster, and restarts the server, while the coordinator is stopped or
# cannot grant another lease. Checks that the server keeps its lease. Also checks that no server
# resumes a lease in these cases: after a disk rollback, without the marker, in a hard-linked copy
# beside the original, or with another number of node ids.
#
# RANDFLAKE_ROUNDS sets how many sessions the test kills in a row. The following command measures
# the times in the table of docs/leases.md, with leases of 60 seconds. A session makes an identifier
# every 10 ms, and the test prints the longest time without an identifier.
#
#   RANDFLAKE_GAPS=60 PROVE_FLAGS=-v scripts/tempcheck.sh tap 207_lease_outlives
use Randflake;
use RandflakeHistory;
use RandflakeLease;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my $measured = $ENV{RANDFLAKE_GAPS};
$RandflakeLease::duration = $measured // 3600;
my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');
sub configure_pool { $coordinator->sql("SELECT randflake_lease_configure($_[0])") }
my %ways = (
    'a session is killed' => sub { crash_backend($_[0]) },
    'the lease worker is killed' => sub { crash_backend($_[0], lease_worker_of($_[0])) },
    'the postmaster is killed' => sub { crash_server($_[0]); $_[0]->start },
    'an immediate restart' => sub { $_[0]->stop('immediate'); $_[0]->start },
    'a fast restart' => sub { $_[0]->restart });

# Causes the event, and returns the longest time without an identifier in the next ten seconds.
sub longest_gap($node, $what) {
    wait_for_lease($node);
    my $file = tempdir_short() . '/calls';
    my $calls = fork // die;
    if (!$calls) {
        setpgrp;
        exec 'sh', '-c', <<'END', $node->connstr('postgres'), $file;
while :; do
    printf '%s\n' 'SET randflake.max_wait = 1;' \
        'SELECT extract(epoch FROM clock_timestamp()) FROM randflake_generate() \watch 0.01' |
        psql -XAtq -d "$0" >>"$1" 2>/dev/null
done
END
    }
    wait_until { -s $file };
    sleep 1;
    my ($before, $longest) = (time, 0);
    $what->($node);
    sleep 1 while time < $before + 10;
    kill 'KILL', -$calls;
    waitpid $calls, 0;
    for my $at (grep({ /^\d+\.\d+$/ && $_ > $before } split /\n/, slurp_file($file)), time) {
        $longest = $at - $before if $at - $before > $longest;
        $before = $at;
    }
    return $longest < 9 ? sprintf '%.1f', $longest : 'none';
}

if ($measured) {
    my $leased = start_holder($fleet, 'leased', $coordinator);
    my $own = new_static($fleet, 'own', 131000);
    $own->start;
    $own->sql('DROP EXTENSION randflake_coordinator');    # a copied coordinator, which the server would search
    my $postmaster = postmaster_of($coordinator);
    my @coordinators = (
        [ present => sub { }, sub { } ],
        [ away => sub { $coordinator->stop('immediate') }, sub { $coordinator->start } ],
        [ hangs => sub { kill 'STOP', $postmaster }, sub { kill 'CONT', $postmaster } ]);
    for my $event (sort keys %ways) {
        my @gaps;
        for (@coordinators) {
            my ($name, $leaves, $returns) = @$_;
            wait_for_lease($leased);
            $leaves->();
            push @gaps, "$name " . longest_gap($leased, $ways{$event});
            $returns->();
            $postmaster = postmaster_of($coordinator);
        }
        push @gaps, 'its own ' . longest_gap($own, $ways{$event}) if $event !~ /worker/;
        note "$event: ", join ', ', @gaps;
    }
    pass('measured');
    done_testing();
    exit;
}

# The role may have two node ids at a time, so the coordinator cannot grant it a second lease.
configure_pool('max_nodes_per_role => 2, max_grants_per_role => 1000');
my $holder = start_holder($fleet, 'holder', $coordinator, node_count => 2);
sub lease_of { return status_of($_[0], 'lease_id') }
my $lease = lease_of($holder);

sub goes_on($test_name) {
    wait_for_lease($holder);
    is(lease_of($holder), $lease, "$test_name: identifiers under the same lease");
}

sub goes_on_after($test_name, $what) {
    load_on($fleet, $holder);
    my $log = -s $holder->logfile;
    $what->($holder);
    goes_on($test_name);
    end_load($fleet, $holder);
    log_has($holder, qr/LOG:  this server goes on with lease $lease of node ids/, '  and the log says so', $log);
}
goes_on_after("with the coordinator, $_", $ways{$_}) for grep { !/fast/ } sort keys %ways;
$coordinator->stop('immediate');
goes_on_after("without the coordinator, $_", $ways{$_}) for sort keys %ways;
log_has($holder, qr/LOG:  lease $lease of node ids is not given back/, 'a stop keeps what it cannot give back');

for (1 .. 3) {
    $holder->stop(qw(fast immediate)[$_ % 2]);
    $holder->start;
}
goes_on('restarts without a call');

load_on($fleet, $holder);
for (1 .. $ENV{RANDFLAKE_ROUNDS} // 4) {
    crash_backend($holder);
    wait_for_lease($holder);
    end_load($fleet, $holder);
    load_on($fleet, $holder, 1);
}
goes_on('sessions are killed in a row');
end_load($fleet, $holder);

$coordinator->start;
$coordinator->sql('SELECT randflake_lease_configure(nothing_lost => true)');
$holder->stop('immediate');
my $since = $coordinator->sql('SELECT clock_timestamp()');    # the end, a whole second, may be the same
$holder->start;
await($coordinator, "SELECT renewed_at > '$since' FROM randflake_leases WHERE lease_id = $lease", 'the lease is not renewed');
goes_on('renewed at once');

my $stopped = postmaster_of($coordinator);
kill 'STOP', $stopped or die;
$holder->reload;
my $worker = lease_worker_of($holder);
my $asking;
wait_until { ($asking) = `ps -ww -o pid=,args= --ppid $worker` =~ /^\s*(\d+).*asking the coordinator/m } or give_up('it asks nothing');
my $log = -s $holder->logfile;
my $locks = sub { grep { (readlink // '') =~ m{/dev/shm/randflake\.} } glob "/proc/$_[0]/fd/*" };
is(scalar $locks->($worker), 1, 'a child of the postmaster has the lock');
wait_until { !$locks->($asking) };
ok(readlink "/proc/$asking/exe", '  but not the process that asks the coordinator, which still runs');
kill 'KILL', $worker;
wait_until_gone($asking);
pass('the process that asks ends with the lease worker');
$holder->wait_for_log(qr/reinitializing.*database system is ready to accept connections/s, $log);
goes_on('while the coordinator hangs');
kill 'CONT', $stopped or die;

configure_pool('max_nodes_per_role => 1000');

sub does_not_go_on($test_name, $what, %settings) {
    load_on($fleet, $holder);
    wait_for_lease($holder);
    $holder->stop('immediate');
    end_load($fleet, $holder);
    $what->();
    my $before = $lease;
    configure($holder, leasing($fleet, $coordinator, node_count => 2, %settings));
    $log = -s $holder->logfile;
    $holder->start;
    wait_for_lease($holder);
    $lease = lease_of($holder);
    isnt($lease, $before, "$test_name: under another lease");
    log_has($holder, qr/LOG:  this server does not go on with lease $before of node ids/, '  and the log says so', $log);
    is($coordinator->sql("SELECT state FROM randflake_leases WHERE lease_id = $before"), 'active', '  which nobody gives back');
}

does_not_go_on('without the marker', sub { unlink run_marker_path($holder) or die });
does_not_go_on('with another marker', sub {
    open my $out, '>:raw', run_marker_path($holder) or die;
    print $out pack 'Q<', 4711;
    close $out;
});
does_not_go_on('with another number of node ids', sub { }, node_count => 1);
does_not_go_on('with as many as before', sub { });
my $snapshot = window_bytes($holder);
sleep 3;
does_not_go_on('on a disk that was set back within the run', sub { write_window_bytes($holder, $snapshot) });

wait_for_lease($holder);
$holder->sql('DROP EXTENSION randflake_coordinator');    # a copied coordinator, which the server would search
$holder->stop('immediate');
configure($holder, secret => $fleet->{secret}, node_id => 131000);
$holder->start;
wait_for_lease($holder);
$holder->stop('immediate');
configure($holder, leasing($fleet, $coordinator, node_count => 2));
$holder->start;
wait_for_lease($holder);
isnt(lease_of($holder), $lease, 'after a time with node ids of its own: under another lease');
$lease = lease_of($holder);

# The standby has a copy of the primary's lease. The standby's postmaster has acquired no lease.
my $standby = standby_of($holder, 'standby', start => 0);
configure($standby, leasing($fleet, $coordinator, node_count => 2));
$standby->start;
crash_backend($standby);
$standby->promote;
load_on($fleet, $standby);
wait_for_lease($standby);
isnt(lease_of($standby), $lease, 'promoted after a crash, in one postmaster: under another lease');
end_load($fleet, $standby);
$standby->stop;

# A standby that was made before its primary had leases has no file `identity`.
my $early = standby_of($holder, 'early', backup => 'standby', start => 0);
system_or_bail('rm', '-r', $early->data_dir . '/randflake');
configure($early, leasing($fleet, $coordinator, node_count => 2));
$early->start;
$early->promote;
wait_for_lease($early);
my $own = lease_of($early);
crash_server($early);
$early->start;
wait_for_lease($early);
is(lease_of($early), $own, 'a promoted standby goes on after the first crash of its postmaster');
$early->stop;

# A program that a session started keeps the logger alive, and with it the lock.
my $logging = start_holder($fleet, 'logging', $coordinator, conf => "logging_collector = on\n");
my $pid_of = tempdir_short() . '/pid';
$logging->sql("COPY (SELECT WHERE false) TO PROGRAM 'sleep 1000 >/dev/null & echo \$! >$pid_of'");
my ($program) = split /\n/, slurp_file($pid_of);
sub lock_problem { return status_of($logging, q{coalesce(substring(problem, 'Could not lock.*'), 'none')}) }
is(lock_problem(), 'none', 'a server with its lock has no problem');
$logging->stop('immediate');
$logging->start;
wait_for_lease($logging);    # without a lease, this is the problem
like(lock_problem(), qr{^Could not lock "/dev/shm/randflake\.\w+": another process holds it\.$}, 'a lock that a former postmaster left is named');
kill 'KILL', $program or die;
$logging->restart;
wait_for_lease($logging);
is(lock_problem(), 'none', '  until the process has ended and the server starts again');
$logging->stop;

# An orphan of the killed postmaster holds the lock, and may continue with the lease. To let
# PostgreSQL start, the test removes postmaster.pid and the shared memory that it names.
my $written = tempdir_short() . '/orphan';
my $session = start_session($holder, <<"SQL");
COPY (SELECT $fleet->{generate} FROM generate_series(1, 300) AS i
      WHERE (SELECT count(*) FROM generate_series(i, i + 100000)) > 0) TO '$written'
SQL
push @{ $fleet->{files} }, [ 'holder', $written ];
my $orphan = wait_until { $holder->sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT%FROM generate_series(1, 300)%' AND pid <> pg_backend_pid()") } or give_up("not seen in time");
kill 'STOP', $orphan or die;
my @others = grep { $_ != $orphan } RandflakeHistory::kill_postmaster($holder);
wait_until_gone(@others);
my $pid_file = $holder->data_dir . '/postmaster.pid';
my (undef, $memory) = split ' ', (split /\n/, slurp_file($pid_file))[6];
unlink $pid_file or die;
shmctl $memory, 0, 0 or die "could not remove shared memory: $!";    # IPC_RMID
$holder->start;
load_on($fleet, $holder);
wait_for_lease($holder);
isnt(lease_of($holder), $lease, 'beside an orphan of a killed postmaster: under another lease');
kill 'CONT', $orphan;
wait_until_gone($orphan);
$holder->stop('immediate');
end_load($fleet, $holder);
$holder->start;
wait_for_lease($holder);
$lease = lease_of($holder);

# A hard-linked copy has the server's identity, marker and state, but not the marker's lock.
my $beside = new_holder($fleet, 'beside', $coordinator, node_count => 2);
wait_for_lease($holder);
my $directory = $beside->data_dir;
system_or_bail('rm', '-r', "$directory/randflake") if -e "$directory/randflake";
system_or_bail('cp', '-al', $holder->data_dir . '/randflake', "$directory/randflake");
$beside->start;
load_on($fleet, $_) for $holder, $beside;
wait_for_lease($beside);
isnt(lease_of($beside), $lease, 'a hard-linked copy beside the server has another lease');
wait_for_lease($holder);
is(lease_of($holder), $lease, '  and the server its own');
end_load($fleet, $_) for $holder, $beside;

$beside->stop;
gave_back($coordinator, $beside, 1, 'a stop with the coordinator gives the lease back');
$holder->stop;
gave_back($coordinator, $holder, $lease, 'so does that of the original');
my $given_back = $lease;
$holder->start;
wait_for_lease($holder);
isnt(lease_of($holder), $given_back, '  and the next start leases anew');
$holder->stop;
all_is_well($fleet, $coordinator, 'crashes and restarts');
done_testing();
