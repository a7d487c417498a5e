# Changes the secret of servers that lease node ids. A server with the new secret continues. A
# server without this secret stops when the secret begins, and resumes without a restart once it has
# the secret. If the coordinator lacks the secret, all servers stop until it knows the secret.
use Docs;
use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep);

read_document('docs/rotation.md', 'test/t/384_rotation_leases.pl');
my @secrets = map { random_secret() } 1 .. 5;
# No call is allowed to fail here, so leases are long enough for renewals on a busy machine.
$RandflakeLease::duration = 10;
my $fleet = new_fleet();
$fleet->{clock} = $fleet->{template};    # all servers share one clock

# The coordinator makes no identifiers, but needs all secrets to decode every server's identifiers.
my $coordinator = start_coordinator($fleet, 'coordinator', secrets => [ $secrets[0] ]);
sub holder($name, @file) { return start_holder($fleet, $name, $coordinator, secrets => \@file) }

sub now {
    return $coordinator->sql('SELECT floor(extract(epoch FROM clock_timestamp()))::bigint');
}

my $latest = 'SELECT fingerprint FROM randflake_secrets ORDER BY generation DESC LIMIT 1';

sub coordinator_shows($node, $condition, $test_name) {
    ok($coordinator->poll_query_until('postgres', <<"SQL"), $test_name);
SELECT count(*) > 0 FROM randflake_leases WHERE state = 'active' AND holder = '@{[ $node->name ]}' AND $condition
SQL
}

my ($first, $second) = map { holder($_, $secrets[0]) } qw(first second);

# --- the change -----------------------------------------------------------------------------------
my $from = now() + 600;
my @ring = ($secrets[0], $from => $secrets[1]);
is(reload_secrets($first, @ring), 2, 'one server has a second secret');
my $fingerprint = $first->sql($latest);
coordinator_shows($first, "secrets LIKE '% $fingerprint@%' AND stops_at = to_timestamp($from)",
    '  and names it to a coordinator that does not know it yet');
my $call = $first->sql(block('call'));
is($call, "SELECT randflake_lease_add_secret('$fingerprint', '" . utc($from) . q{');}, '  the call for the owner');
$coordinator->sql($call);
coordinator_shows($first, 'stops_at IS NULL', '  after which it goes on');
is($coordinator->sql(block('stops')) =~ s/\|[^|]*$//r,
    'second|' . $second->sql($latest), '  and the other one is shown');
is($coordinator->sql('SELECT stops_at FROM randflake_leases WHERE holder = $$second$$ LIMIT 1'),
    $coordinator->sql("SELECT to_timestamp($from)"), '  with the time');
is(reload_secrets($coordinator, @ring), 2, 'the coordinator decodes');

clock_runs_from($fleet->{clock}, $from - 15);
wait_for_open_window($_) for $first, $second;
load_on($fleet, $_) for $first, $second;
wait_for_status($second, "window_end = to_timestamp($from) AND lease_error IS NOT NULL");
cmp_ok(now(), '<', $from, 'before the time, the other server knows');
like(status_of($second, 'problem'), qr/^identifiers end at .*: The coordinator has not agreed about this server's secrets since .*\.$/,
    '  and says so');
my $lacks = qr/: the holder lacks the secret that is in use from .* on$/m;
like(status_of($second, 'lease_error'), qr/^could not renew the lease of node ids$lacks/, '  in the words of the coordinator for monitors');

$coordinator->poll_query_until('postgres', "SELECT clock_timestamp() >= to_timestamp($from + 4)");
error_is($second, 'SET randflake.max_wait = 0; SELECT randflake_generate()', '55000',
    {
        message => qr/^the lease of node ids has ended$/,
        detail => qr/^It ended at .*, the clock shows .*\. The coordinator has not agreed about this server's secrets since .*\.$/,
        hint => qr/"randflake\.secret_file".*randflake_reload_secret\(\)/ },
    'after it, the other server stops', problem => 1);
like(status_of($second, 'lease_error'), qr/^could not lease node ids$lacks/, '  and gets no lease');
log_has($second, qr/LOG: .*could not lease node ids$lacks/, '  which is in its log');
is(status_of($second, "window_end = to_timestamp($from)"), 't', '  its window ends with the former secret');
wait_for_open_window($first);

# --- the late server ------------------------------------------------------------------------------
my $back = now();
is(reload_secrets($second, @ring), 2, 'the other server reads the file afterwards');
wait_for_open_window($second);
wait_for_status($second, 'problem IS NULL AND lease_error IS NULL');
pass('  and goes on without a restart');
is($coordinator->sql(block('stops')), '', '  all agree');
sleep 3;
end_load($fleet, $_) for $first, $second;

# Returns how many identifiers the server's clients received for each second.
sub seconds_of($name) {
    my $copies = join '', map { "\\copy load FROM '$_->[1]'\n" } grep { $_->[0] eq $name } @{ $fleet->{files} };
    return map { [ split /\|/ ] } split /\n/, $coordinator->sql(<<"SQL");
CREATE TEMP TABLE load (id bigint);
$copies
SELECT extract(epoch FROM randflake_generated_at(id))::bigint AS second, count(*) FROM load GROUP BY 1 ORDER BY 1
SQL
}
my @seconds = map { $_->[0] } seconds_of('first');
is_deeply(\@seconds, [ $seconds[0] .. $seconds[-1] ], 'the first server made identifiers in every second');
cmp_ok($seconds[-1] - $from, '>=', 6, '  also after the time');
is(join('', map { slurp_file("$_->[1].err") =~ /^.*ERROR.*$/mg } grep { $_->[0] eq 'first' } @{ $fleet->{files} }),
    '', '  and no call failed');
@seconds = map { $_->[0] } seconds_of('second');
is(scalar(grep { $_ >= $from && $_ < $back } @seconds), 0, 'the second made none while it lacked the secret');
is(scalar(grep { $_ == $from - 1 } @seconds), 1, '  but up to its time');
cmp_ok($seconds[-1], '>', $back, '  and after it had it');
all_is_well($fleet, $coordinator, 'both');

# --- an uninformed coordinator --------------------------------------------------------------------
my $third = holder('third', @ring);
my @fleet_of_three = ($first, $second, $third);
my $untold = now() + 600;
push @ring, $untold => $secrets[2];
is(reload_secrets($_, @ring), 3, $_->name . ' has a third secret') for @fleet_of_three;
clock_runs_from($fleet->{clock}, $untold - 8);
wait_for_status($_, "window_end = to_timestamp($untold)") for @fleet_of_three;
pass('the coordinator lacks the secret: all stop');
is($coordinator->sql(block('reached')), $coordinator->sql("SELECT to_timestamp($untold)"),
    '  and no lease goes beyond the time');
$coordinator->sql($first->sql(block('configure')));
wait_for_open_window($_) for @fleet_of_three;
pass('  told afterwards, all go on');
is(reload_secrets($coordinator, @ring), 3, 'the coordinator decodes');

# --- a withdrawn secret ---------------------------------------------------------------------------
$coordinator->sql('SELECT randflake_lease_configure(max_duration => 600)');
configure($first, coordinator => $coordinator->connstr('postgres'), secret_file => secret_path($first), lease_duration => '10min', max_wait => '2min');
$first->reload;
wait_for_status($first, q{window_end > now() + interval '9 min'});
is(reload_secrets($first, @ring, now() + 86400 => $secrets[3]), 4, 'a secret for tomorrow');
coordinator_shows($first, q{secrets LIKE '% } . $first->sql($latest) . q{@%'}, '  is named at once');
$coordinator->sql($first->sql(block('call')));
$fingerprint = $first->sql($latest);
$coordinator->sql(block('withdraw') =~ s/'[0-9a-f]{16}'/'$fingerprint'/r);
is($coordinator->sql("SELECT secrets ~ '$fingerprint' FROM randflake_pool"), 'f', '  and withdrawn');

load_on($fleet, $_) for @fleet_of_three;
sleep 2;
end_load($fleet, $_) for @fleet_of_three;
all_is_well($fleet, $coordinator, 'the fleet');
$_->stop for @fleet_of_three;

no_secret_in(join('', map { slurp_file($_->logfile) } @fleet_of_three, $coordinator), $_, 'no log has a secret') for @secrets;
every_block_was_used();
$coordinator->stop;
done_testing();
