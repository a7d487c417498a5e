# Uses static and leased node ids in one data directory, then a coordinator with static node ids.
# Checks that static and leased node ids repeat no identifiers of each other, even after a clock
# that was ahead. RANDFLAKE_ROUNDS sets the rounds (default: 1).

use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{RANDFLAKE_ROUNDS} // 1;
$RandflakeLease::node_ids = 16;
my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');

# The clock is briefly ahead by this many seconds.
my $ahead = 25;

# --- static and leased ---------------------------------------------------------------------------

for my $round (1 .. $rounds) {
    make_coordinator($coordinator, 60);
    my $server = new_static($fleet, "server$round", 0);
    start_under_clock($server);
    clock_offset($server, $ahead);
    $server->safe_psql('postgres', 'SELECT randflake_generate()');
    load_on($fleet, $server);
    sleep 2;
    end_load($fleet, $server);
    my $used_until = time + $ahead;
    clock_offset($server, 0);
    $server->stop;

    # Leases the same node id past the clock's lead. The lease opens where the static use ended.
    configure($server, leasing($fleet, $coordinator, lease_duration => 60));
    start_under_clock($server);
    is(wait_for_lease($server), 0, "round $round, static to leased: the same node id");
    cmp_ok(status_of($server, 'extract(epoch FROM window_start)'), '>=', int $used_until,
        "round $round, static to leased: its window opens where the former one ended");
    load_on($fleet, $server);
    sleep 4;

    # Sets the clock ahead within the lease, and returns to static node ids.
    clock_offset($server, 15);
    sleep 2;
    $used_until = time + 15;
    end_load($fleet, $server);
    clock_offset($server, 0);
    $server->stop;
    configure($server, secret => $fleet->{secret}, node_id => 0, max_wait => '2min');
    start_under_clock($server);
    ok($server->safe_psql('postgres', 'SELECT randflake_generate()'),
        "round $round, leased to static: it generates");
    cmp_ok(status_of($server, 'extract(epoch FROM window_start)'), '>=', int $used_until,
        "round $round, leased to static: its window opens where the former one ended");
    load_on($fleet, $server);
    sleep 3;
    end_load($fleet, $server);
    $server->stop;
    all_is_well($fleet, $coordinator, "round $round, static to leased to static", leased => 0);
}

# --- a short lease -------------------------------------------------------------------------------

for my $round (1 .. $rounds) {
    make_coordinator($coordinator);
    my $server = new_static($fleet, "short$round", 0);
    start_under_clock($server);
    clock_offset($server, 300);    # longer than a lease, even on a slow machine
    $server->safe_psql('postgres', 'SELECT randflake_generate()');
    load_on($fleet, $server);
    sleep 1;
    end_load($fleet, $server);
    clock_offset($server, 0);
    $server->stop;
    configure($server, leasing($fleet, $coordinator));
    start_under_clock($server);
    cmp_ok(wait_for_lease($server), '>', 0, "round $round, a shorter lease: other node ids");
    log_has($server, qr/could not use the lease of node ids: this server used node ids 0 to 0 itself, up to /,
        "round $round, a shorter lease: says the log");
    is( $coordinator->safe_psql('postgres',
            q{SELECT count(*) FROM randflake_leases WHERE state = 'released' AND first_node_id = 0}),
        1, "round $round, a shorter lease: it is given back as used");
    load_on($fleet, $server);
    sleep 2;
    end_load($fleet, $server);
    $server->stop;
    all_is_well($fleet, $coordinator, "round $round, a shorter lease", leased => 0);
}

# --- coordinator's node ids ----------------------------------------------------------------------

for my $round (1 .. $rounds) {
    my $own = new_static($fleet, "own$round", 0, node_count => 2);
    $own->start;
    make_coordinator($own);
    is( $own->safe_psql('postgres',
            'SELECT state, first_node_id, node_count, own_first_node_id, own_node_count FROM randflake_pool'),
        'holding off|0|16|0|2', "round $round, own node ids: the view shows them");
    load_on($fleet, $own);
    my $holder = start_holder($fleet, "holder$round", $own, node_count => 2);
    load_on($fleet, $holder);
    is(status_of($holder, 'first_node_id'), 2, "round $round, own node ids: others are leased");
    sleep 2;
    end_load($fleet, $_) for $own, $holder;
    all_is_well($fleet, $own, "round $round, own node ids", leased => 0);
    $_->stop for $holder, $own;
}

done_testing();
