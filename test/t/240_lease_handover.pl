# Replaces coordinators while clients keep all servers busy. Checks that no client receives an
# identifier twice. RANDFLAKE_ROUNDS sets the number of rounds (default: 1).
use Docs;
use Randflake;
use RandflakeLease;

read_document('docs/leases.md', 'test/t/240_lease_handover.pl');
my $rounds = $ENV{RANDFLAKE_ROUNDS} // 1;
my $fleet = new_fleet();
my ($coordinator, $other) = map { start_coordinator($fleet, $_) } qw(one two);
my @holders = map { start_holder($fleet, "holder$_", $coordinator) } 1, 2;

sub errors { return scalar map { slurp_file("$_->[1].err") =~ /ERROR/g } @{ $fleet->{files} } }

for my $round (1 .. $rounds) {
    $coordinator->sql(block('lengthen'));
    move_to($fleet, $_, $coordinator, lease_duration => '10min') for @holders;
    await($coordinator, <<'SQL', 'leases are not renewed');
SELECT count(*) = 2 FROM randflake_leases WHERE state = 'active' AND ends_at > clock_timestamp() + interval '500 s'
SQL
    load_on($fleet, $_) for @holders;
    my $errors = errors();
    my @leases = map { status_of($_, 'lease_id, first_node_id') } @holders;
    $coordinator->sql(block('close'));

    my $newcomer = new_holder($fleet, "late$round", $coordinator);
    $newcomer->start;
    wait_for_status($newcomer, q{lease_error ~ 'could not lease node ids: the pool of node ids is closed'});
    $_->reload for @holders;
    wait_for_status($_, q{lease_error ~ 'could not renew the lease of node ids: the pool of node ids is closed'})
      for @holders;
    is_deeply([ map { status_of($_, 'lease_id, first_node_id') } @holders ],
        \@leases, "round $round, closed: leases are kept");

    $other->sql("CREATE DATABASE moved$round TEMPLATE template0");
    my $to = $other->connstr("moved$round");
    {
        my $directory = $coordinator->basedir . "/dump$round";
        mkdir $directory or die "could not make $directory: $!";
        local @ENV{qw(OLD NEW)} = ($coordinator->connstr('postgres'), $to);
        system_or_bail('sh', '-ec', "cd $directory\n" . block('copy'));
    }
    is($other->safe_psql("moved$round", 'SELECT state FROM randflake_pool'), 'closed',
        "round $round, moved: the new coordinator is closed until it is opened");
    my $opened_at = $other->safe_psql("moved$round", block('open') . 'SELECT clock_timestamp();');
    move_to($fleet, $_, $to, lease_duration => '10min') for @holders, $newcomer;
    $other->poll_query_until("moved$round", "SELECT count(*) = 2 FROM randflake_leases WHERE renewed_at > '"
          . (split /\n/, $opened_at)[-1] . q{'}) or give_up('the new coordinator does not renew');
    wait_for_status($_, 'lease_error IS NULL') for @holders;
    is_deeply([ map { status_of($_, 'lease_id, first_node_id') } @holders ],
        \@leases, "round $round, moved: the new coordinator renews the leases");
    is(errors(), $errors, "round $round, moved: no call failed");

    wait_for_status($newcomer, q{lease_error ~ 'no lease may begin before'});
    my $mark = $other->safe_psql("moved$round",
        q{SELECT date_trunc('second', grants_from) FROM randflake_pool WHERE state = 'holding off'});
    error_is($newcomer, 'SET randflake.max_wait = 0; SELECT randflake_generate()', '55000',
        { message => qr/this server has no lease of node ids/,
          detail => qr/^The coordinator has refused since .*\. The coordinator grants none before \Q$mark\E\.$/ },
        "round $round, moved: a new holder is told until when it waits");
    end_load($fleet, $_) for @holders;
    $newcomer->stop;
    all_is_well($fleet, $other, "round $round, moved without a gap", leased => 0);
    $_->stop for @holders;
    make_coordinator($_) for $coordinator, $other;
    for my $holder (@holders) {
        $holder->start;
        move_to($fleet, $holder, $coordinator);
        wait_for_lease($holder);
    }
}

$_->stop for @holders;
every_block_was_used();
done_testing();
