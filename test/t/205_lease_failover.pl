# Fails over to a coordinator that missed the last grants, switches over to one that lost nothing,
# and runs a server as its own coordinator.
use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep time);

# Servers renew after two fifths of this duration, so renewals arrive in time on a busy machine.
$RandflakeLease::duration = 14;
my $hold_off = $RandflakeLease::duration + 2 * 1 + 1;

$RandflakeLease::node_ids = 16;
my $fleet = new_fleet();

# All servers share one clock. It stands still while the coordinator changes, so that no lease ends.
$fleet->{clock} = $fleet->{template};

# The first coordinator and its standby share one connection string, and never run at the same time.
my $first = start_coordinator($fleet, 'first');
my $second = standby_of($first, 'second', start => 0);
start_in_fleet($fleet, $second);
my $coordinators = sprintf "host=%s port=%s dbname=postgres target_session_attrs=read-write",
  join(',', map { $_->host } $first, $second), join(',', map { $_->port } $first, $second);

my @known = start_holder($fleet, 'known', $coordinators);
$first->wait_for_catchup($second, 'replay', $first->lsn('insert'));
$second->stop;
my @missed = map { start_holder($fleet, "missed$_", $coordinators) } 1, 2;
load_on($fleet, $_) for @known, @missed;
my $missed_node = status_of($missed[0], 'first_node_id');

# A statement stops in the middle of a sorted run, and goes on when its lease has ended.
my $turn = $missed[0]->background_psql('postgres');
$turn->query_safe('BEGIN; SELECT pg_advisory_xact_lock(1)');
my $load = do {
    local $ENV{PGOPTIONS} = '-c randflake.sort_loads=on';
    start_session($missed[0], 'SELECT randflake_generate() FROM generate_series(1, 3000) AS i WHERE i <> 2000 OR pg_advisory_xact_lock(1) IS NOT NULL');
};
await($missed[0], q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}, 'no load stops');

my $lease = status_of($known[0], 'lease_id');
my @workers = map { lease_worker_of($_) } @known, @missed;
kill 'STOP', @workers;
my $stands_at = time;
clock_stands_at($fleet->{clock}, $stands_at);
$first->stop('immediate');
start_in_fleet($fleet, $second);
$second->promote;
$second->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
kill 'CONT', $workers[0];
$known[0]->reload;    # so that it asks now
my $ends_at = int($stands_at) + $RandflakeLease::duration;
ok( $second->poll_query_until('postgres',
        "SELECT ends_at >= to_timestamp($ends_at) FROM randflake_leases WHERE lease_id = $lease"),
    'failover: a known lease is renewed');
clock_runs_from($fleet->{clock}, $stands_at);

# The new coordinator does not know every lease, so it grants node ids that are still in use. The
# new lease must not begin before all leases of the former coordinator have ended.
my $newcomer = start_holder($fleet, 'newcomer', $coordinators);
my $start = $second->sql(q{SELECT min(extract(epoch FROM starts_at)) FROM randflake_leases WHERE holder = 'newcomer'});
cmp_ok($start - int($stands_at), '>=', $hold_off, 'failover: a new lease waits for the lost ones');
load_on($fleet, $newcomer);
kill 'CONT', @workers;
is(status_of($newcomer, 'first_node_id'), $missed_node, 'failover: the node id of a lost lease is granted again');
$turn->quit;
my @sorted = split /\n/, (finish_session($load))[0];
is( $second->sql("SELECT randflake_generated_at($sorted[1999]) < to_timestamp($start), $sorted[1999] > $sorted[1998]"),
    't|t', 'failover: a run outlives its lease');
push @{ $fleet->{files} }, [ $missed[0]->name, tempdir_short() . '/sorted' ];
append_to_file($fleet->{files}[-1][1], join '', map { "$_\n" } @sorted);
wait_for_status($_, 'now() < window_end') for @missed;
is($second->sql('SELECT high_water > 0 FROM randflake_lease_pool'), 't', 'failover: the high-water mark is raised');
ok(slurp_file($second->logfile) =~ /node ids were leased by another coordinator before/,
    'failover: the coordinator says so in its log');
log_has($missed[0], qr/does not renew lease \d+ of node ids: lease \d+ does not exist/,
    'failover: a holder of a lost lease says so in its log');

end_load($fleet, $_) for @known, @missed, $newcomer;
all_is_well($fleet, $second, 'failover', leased => 0);
$_->stop for $newcomer, @known, @missed, $second;

# --- a switchover and back -----------------------------------------------------------------------
# Two hosts in "randflake.coordinator", of which one is a standby that answers. Servers must find
# the primary in either order, whatever target_session_attrs accepts.
delete $fleet->{clock};
$RandflakeLease::duration = 20;
my $acquire = q{randflake_lease_acquire('x', gen_random_uuid(), 1, 60,
    (SELECT secrets FROM randflake_lease_pool))};

sub granted($node) {
    my $lease;
    wait_until { $lease = ($node->psql('postgres', "SELECT lease_id FROM $acquire"))[1] };
    return $lease;
}

# The first request starts the takeover. Returns the seconds from this request to the first grant.
sub holds_off($node) {
    $node->psql('postgres', "SELECT $acquire");
    return $node->sql('SELECT coalesce(extract(epoch FROM grants_from - clock_timestamp())::bigint, 0) FROM randflake_pool');
}

my $nothing_lost = 'SELECT randflake_lease_configure(nothing_lost => true)';
my $not_promoted = { message => qr/^this coordinator did not take over by a start or a promotion of its server$/ };
my $primary = start_coordinator($fleet, 'primary');
$primary->sql('SELECT randflake_lease_configure(max_duration => 3600)');
my $heir = standby_of($primary, 'heir');

# Each server has its own order of hosts and its own value.
my @holders;
for my $order ([ $primary, $heir ], [ $heir, $primary ]) {
    my $hosts = sprintf 'dbname=postgres host=%s port=%s', join(',', map { $_->host } @$order), join(',', map { $_->port } @$order);
    for my $value (undef, 'any', 'read-write') {
        my $name = $order->[0]->name . '_' . ($value // 'default');
        push @holders, start_holder($fleet, $name, $hosts . ($value ? " target_session_attrs=$value" : ''), max_wait => '1min');
        pass("$name: leases");
    }
}
my $leases = join ',', map { status_of($_, 'lease_id') } @holders;
my $last = granted($primary);
error_is($primary, $nothing_lost, '55000', $not_promoted, 'nothing was lost: a primary was not promoted');
error_is($heir, $nothing_lost, '25006', { message => qr/during recovery|read-only/ }, '  nor was a standby');

for my $what ('a switchover', 'the switch back') {
    $primary->wait_for_catchup($heir, 'replay', $primary->lsn('insert'));
    $primary->stop;
    $heir->promote;
    my $began = $heir->sql('SELECT clock_timestamp()');
    # The former primary comes back as a standby, and answers from now on.
    $primary->enable_streaming($heir);
    $primary->start;
    ($primary, $heir) = ($heir, $primary);
    for my $holder (@holders) {
        my $renewed = sprintf "FROM randflake_lease WHERE holder = '%s' AND renewed_at > '$began'", $holder->name;
        ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 $renewed"), "$what: " . $holder->name . ' renews');
    }
    is(join(',', map { status_of($_, 'lease_id') } @holders), $leases, "$what: every lease is the one from before");
    cmp_ok(holds_off($primary), '>', 3000, "$what: the new primary holds off");
    $primary->sql($nothing_lost);
    cmp_ok(holds_off($primary), '<', 60, '  and no longer after the word that nothing was lost');
    cmp_ok(granted($primary), '>', $last, '  it leases');
    $primary->sql($nothing_lost);
    is(holds_off($primary), 0, '  told again, nothing changes');
}
like(slurp_file($_->logfile), qr/cannot lease node ids during recovery|read-only transaction/, $_->name . ': a standby answered')
  for grep { $_->name =~ /any/ } @holders;
unlike(slurp_file($_->logfile), qr/during recovery|read-only transaction/, $_->name . ': no standby was asked')
  for grep { $_->name !~ /any/ } @holders;
$_->stop for @holders, $heir, $primary;

# --- its own coordinator -------------------------------------------------------------------------
$RandflakeLease::duration = 4;
my $own = new_holder($fleet, 'own', 'dbname=none');
configure($own, leasing($fleet, $own));
$own->start;
make_coordinator($own);
wait_for_lease($own);
my $standby = standby_of($own, 'standby', start => 0);
configure($standby, leasing($fleet, $standby));
$standby->start;
$own->wait_for_catchup($standby, 'replay', $own->lsn('insert'));
error_is($standby, 'SELECT randflake_generate()', '25006', { message => qr/during recovery/ },
    'own coordinator: a standby generates nothing');
is(status_of($standby, 'lease_id IS NULL AND lease_error IS NULL'), 't', 'and does not ask');
error_is($standby, "SELECT * FROM $acquire", '25006', {}, 'a standby leases nothing');

load_on($fleet, $own);
$standby->promote;
wait_for_lease($standby);
load_on($fleet, $standby);
my @nodes = map { wait_for_lease($_) } $own, $standby;
isnt($nodes[0], $nodes[1], "own coordinator: a promoted standby has another node id (@nodes)");
sleep 2;
end_load($fleet, $_) for $own, $standby;
all_is_well($fleet, $standby, 'own coordinator', leased => 0);
$standby->stop('smart');
$own->stop('smart');
pass('own coordinator: the lease worker does not keep the server from a smart shutdown');
done_testing();
