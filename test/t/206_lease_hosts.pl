# Two hosts in "randflake.coordinator", of which one is a standby that answers. Servers must find
# the primary in either order, after a switchover and back, whatever target_session_attrs accepts.
use Randflake;
use RandflakeLease;

$RandflakeLease::duration = 20;
my $fleet = new_fleet();
my $primary = start_coordinator($fleet, 'first');
my $standby = standby_of($primary, 'second');

# Each server has its own order of hosts and its own value.
my @holders;
for my $order ([ $primary, $standby ], [ $standby, $primary ]) {
    my $hosts = sprintf 'dbname=postgres host=%s port=%s', join(',', map { $_->host } @$order), join(',', map { $_->port } @$order);
    for my $value (undef, 'any', 'read-write') {
        my $name = $order->[0]->name . '_' . ($value // 'default');
        push @holders, start_holder($fleet, $name, $hosts . ($value ? " target_session_attrs=$value" : ''), max_wait => '1min');
        pass("$name: leases");
    }
}
my $leases = join ',', map { status_of($_, 'lease_id') } @holders;

for my $what ('a switchover', 'the switch back') {
    $primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
    $primary->stop;
    $standby->promote;
    my $began = $standby->sql('SELECT clock_timestamp()');
    # The former primary comes back as a standby, and answers from now on.
    $primary->enable_streaming($standby);
    $primary->start;
    ($primary, $standby) = ($standby, $primary);
    for my $holder (@holders) {
        my $renewed = sprintf "FROM randflake_lease WHERE holder = '%s' AND renewed_at > '$began'", $holder->name;
        ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 $renewed"), "$what: " . $holder->name . ' renews');
    }
    is(join(',', map { status_of($_, 'lease_id') } @holders), $leases, "$what: every lease is the one from before");
}
like(slurp_file($_->logfile), qr/cannot lease node ids during recovery|read-only transaction/, $_->name . ': a standby answered')
  for grep { $_->name =~ /any/ } @holders;
unlike(slurp_file($_->logfile), qr/during recovery|read-only transaction/, $_->name . ': no standby was asked')
  for grep { $_->name !~ /any/ } @holders;
$_->stop for @holders, $standby, $primary;
done_testing();
