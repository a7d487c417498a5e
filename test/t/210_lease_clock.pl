# Moves the clock of the coordinator or of a holder by an hour, or to a time out of range. Checks
# which servers generate under these clocks, and that identifiers stay unique.
use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep time);

my $fleet = new_fleet();

my $coordinator = start_coordinator($fleet, 'coordinator', start => 0);
start_under_clock($coordinator);
make_coordinator($coordinator);
my $steady = start_holder($fleet, 'steady', $coordinator);
my $stepped = new_holder($fleet, 'stepped', $coordinator);
start_under_clock($stepped);
wait_for_lease($stepped);
load_on($fleet, $_) for $steady, $stepped;

# Waits for a lease, not for identifiers, because clients may sleep for an hour after a clock step.
sub ids_go_on($node, $test_name) {
    wait_for_lease($node);
    pass($test_name);
}

sub generate_fails($node, $patterns, $test_name) {
    error_is($node, q{SET randflake.max_wait = '10ms'; SELECT randflake_generate()}, '55000',
        $patterns, $test_name, problem => 1);
}

# A coordinator whose clock is an hour ahead treats all leases as expired, and the next leases it
# grants begin in an hour. Holders generate until their own leases end.
my $behind = q{lease_error ~ 'ends too late by this server''s clock, which is 3[56]\d\d\.\d{3} seconds behind the coordinator''s'};
my $clocks = qr/This server's clock is 3[56]\d\d\.\d{3} seconds behind the coordinator's, give or take \d+ ms\./;
my $not_begun = { message => qr/lease of node ids has not begun/, detail => $clocks, hint => qr/Set the clock that is wrong/ };
clock_offset($coordinator, 3600);
wait_for_status($steady, $behind);
pass('coordinator an hour ahead: the clocks differ, says randflake_status');
log_has($steady, qr/LOG: .*ends too late by this server's clock, which is /, 'and the log');
wait_for_closed_window($steady);
generate_fails($steady, $not_begun, 'coordinator an hour ahead: identifiers end with the lease');
my $newcomer = new_holder($fleet, 'newcomer', $coordinator);
$newcomer->start;
wait_for_status($newcomer, $behind);
generate_fails($newcomer, $not_begun, 'coordinator an hour ahead: a new holder waits');

clock_offset($coordinator, 0);
ids_go_on($_, 'coordinator set back: identifiers go on') for $steady, $stepped;
wait_for_lease($newcomer);
load_on($fleet, $newcomer);
ids_go_on($newcomer, 'coordinator set back: the new holder generates');

# If a coordinator's clock is behind, the coordinator does not renew a lease whose end is later than
# a new lease's end. No lease begins before the creation of the extension.
clock_offset($coordinator, -3600);
wait_for_status($_, q{lease_error ~ 'no lease may begin before'}) for $steady, $newcomer;
pass('coordinator an hour behind: leases end, says randflake_status');
wait_for_closed_window($newcomer);
generate_fails($newcomer, { message => qr/lease of node ids has ended/, detail => qr/It ended at .*, the clock shows/,
    hint => qr/clock/ }, 'coordinator an hour behind: no identifiers from then on');
clock_offset($coordinator, 0);
ids_go_on($_, 'coordinator set forward: identifiers go on') for $steady, $stepped, $newcomer;

end_load($fleet, $newcomer);
$newcomer->stop;
for my $case ([ 1577836800, 'before the first second' ], [ 2840140800, 'after the last second' ]) {
    my ($unix, $what) = @$case;
    clock_offset($coordinator, $unix - time);
    $newcomer->start;
    wait_for_status($newcomer, "lease_error ~ 'could not lease node ids: .*clock is $what'");
    pass("coordinator $what: randflake_status says so");
    $newcomer->stop;
}
clock_offset($coordinator, 0);
$newcomer->start;
wait_for_lease($newcomer);
load_on($fleet, $newcomer);

sub lease_id { return status_of($stepped, 'lease_id') }

# Corrects the clock. The server keeps its lease, unless a slow machine renews it too late.
sub goes_on($lease, $test_name) {
    clock_offset($stepped, 0);
    my $now = time;
    $stepped->sql(q{SET randflake.max_wait = '60s'; SELECT randflake_generate()});
    note(sprintf '%s after %.2f s, lease %d, before: %d', $test_name, time - $now, lease_id(), $lease);
    pass($test_name);
    wait_for_status($stepped, 'lease_error IS NULL AND problem IS NULL');
}

my $lease = lease_id();
clock_offset($stepped, 3600);
wait_for_status($stepped, q{lease_error ~ 'has ended by this server''s clock, which is 3[56].* seconds ahead of the'});
pass('holder an hour ahead: the lease has ended, says randflake_status');
generate_fails($stepped,
    { message => qr/lease of node ids has ended/, detail => qr/This server's clock is 3[56].* seconds ahead of /, hint => qr/clock/ },
    'holder an hour ahead: no identifiers');
sleep $RandflakeLease::duration + 2;    # longer than a lease
goes_on($lease, 'holder set back: identifiers go on');

clock_offset($stepped, -3600);
error_is($stepped, q{SET randflake.max_wait = '10ms'; SELECT count(*) FROM randflake_generate(131072)}, '55000',
    { message => qr/clock is 3\d\d\d seconds behind the last identifier/, detail => $clocks,
      hint => qr/restart the server: it leases other node ids/ },
    'holder an hour behind: no identifiers when its second is used up', problem => 1);
wait_for_status($stepped, $behind);
sleep $RandflakeLease::duration + 2;
goes_on($lease, 'holder set forward: identifiers go on');
clock_offset($stepped, -3600);
end_load($fleet, $stepped);
$stepped->stop;
$coordinator->stop;
start_under_clock($stepped);
start_under_clock($coordinator);
# It granted leases an hour ahead, so its start would wait until then. The operator lowers the mark.
$coordinator->sql('SELECT randflake_lease_configure(); DELETE FROM randflake_lease_hold;'
      . ' UPDATE randflake_lease_pool SET high_water = extract(epoch FROM now())::bigint');
wait_for_status($stepped, $behind);
generate_fails($stepped, $not_begun, 'holder an hour behind: keeps its lease for later');
goes_on(lease_id(), 'holder that started behind, set forward: identifiers go on');
load_on($fleet, $stepped);
ids_go_on($stepped, 'and go on');

end_load($fleet, $_) for $steady, $stepped, $newcomer;
all_is_well($fleet, $coordinator, 'clocks');
$_->stop for $steady, $stepped, $newcomer, $coordinator;
done_testing();
