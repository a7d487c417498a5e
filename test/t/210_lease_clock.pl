# Clocks that are stepped by an hour, or out of all range: the coordinator's, and a holder's. They
# decide whether there are identifiers, never whether these are unique.

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

# Not by the clients, which may be in a sleep that the step made an hour long.
sub ids_go_on {
    my ($node, $test_name) = @_;
    wait_for_lease($node);
    pass($test_name);
}

sub generate_fails {
    my ($node, $patterns, $test_name) = @_;
    error_is($node, q{SET randflake.max_wait = '10ms'; SELECT randflake_generate()}, '55000',
        $patterns, $test_name, problem => 1);
}

# --- the coordinator's -------------------------------------------------------------------------

# Ahead: every lease has ended for it, and the next ones begin in an hour. They are not taken.
my $behind = q{lease_error ~ 'granted a lease from .*, but this server''s clock is behind'};
my $clocks = qr/The clocks of this server and of the coordinator have differed/;
clock_offset($coordinator, 3600);
wait_for_status($steady, $behind);
pass('coordinator an hour ahead: the clocks differ, says randflake_status');
log_has($steady, qr/LOG: .*but this server's clock is behind, at /, 'and the log');
wait_for_status($steady, 'window_end <= clock_timestamp()');
generate_fails($steady,
    { message => qr/lease of node ids has ended/, detail => $clocks, hint => qr/Compare the clocks/ },
    'coordinator an hour ahead: identifiers end with the lease');
my $newcomer = new_holder($fleet, 'newcomer', $coordinator);
$newcomer->start;
wait_for_status($newcomer, $behind);
generate_fails($newcomer, { message => qr/this server has no lease/, detail => $clocks, hint => qr/Compare the clocks/ },
    'coordinator an hour ahead: a new holder waits');

# Set back: leases are taken again.
clock_offset($coordinator, 0);
ids_go_on($_, 'coordinator set back: identifiers go on') for $steady, $stepped;
wait_for_lease($newcomer);
load_on($fleet, $newcomer);
ids_go_on($newcomer, 'coordinator set back: the new holder generates');

# Behind: no lease is renewed that ends later than it would grant, nor granted before it was made.
clock_offset($coordinator, -3600);
wait_for_status($_, q{lease_error ~ 'no lease may begin before'}) for $steady, $newcomer;
pass('coordinator an hour behind: leases end, says randflake_status');
wait_for_status($newcomer, 'window_end <= clock_timestamp()');
generate_fails($newcomer,
    {
        message => qr/lease of node ids has ended/, detail => qr/It ended at .*, the clock shows/,
        hint => qr/compare its clock/ }, 'coordinator an hour behind: no identifiers from then on');
clock_offset($coordinator, 0);
ids_go_on($_, 'coordinator set forward: identifiers go on') for $steady, $stepped, $newcomer;

# --- outside of what identifiers can hold ------------------------------------------------------

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

# --- a holder's --------------------------------------------------------------------------------

clock_offset($stepped, 3600);
wait_for_status($stepped, q{lease_error ~ 'has ended by this server''s clock'});
pass('holder an hour ahead: the lease has ended, says randflake_status');
generate_fails($stepped, { message => qr/lease of node ids has ended/, hint => qr/clock/ },
    'holder an hour ahead: no identifiers');
clock_offset($stepped, 0);
ids_go_on($stepped, 'holder set back: identifiers go on');

clock_offset($stepped, -3600);
error_is($stepped,
    q{SET randflake.max_wait = '10ms'; SELECT count(*) FROM randflake_generate(131072)}, '55000',
    {
        message => qr/clock is 3\d\d\d seconds behind the last identifier/,
        hint => qr/restart the server: it leases other node ids/ },
    'holder an hour behind: no identifiers when its second is used up', problem => 1);
end_load($fleet, $stepped);
$stepped->stop;
$coordinator->stop;
start_under_clock($stepped);
start_under_clock($coordinator);
wait_for_status($stepped, $behind);
generate_fails($stepped, { message => qr/this server has no lease/, detail => $clocks, hint => qr/Compare the clocks/ },
    'holder an hour behind: takes no lease');
clock_offset($stepped, 0);
wait_for_lease($stepped);
load_on($fleet, $stepped);
ids_go_on($stepped, 'holder set forward: identifiers go on');

end_load($fleet, $_) for $steady, $stepped, $newcomer;
all_is_well($fleet, $coordinator, 'clocks');
$_->stop for $steady, $stepped, $newcomer, $coordinator;
done_testing();
