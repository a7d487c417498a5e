# Replaces coordinators while clients keep all servers busy. Checks that no client receives an
# identifier twice. RANDFLAKE_ROUNDS sets the number of rounds (default: 1).
use Docs;
use Randflake;
use RandflakeLease;
use Time::HiRes qw(sleep time);

read_document('docs/leases.md', 'test/t/240_lease_handover.pl');
my $rounds = $ENV{RANDFLAKE_ROUNDS} // 1;
my $fleet = new_fleet();
my ($coordinator, $other) = map { start_coordinator($fleet, $_) } qw(one two);
my @holders = map { start_holder($fleet, "holder$_", $coordinator) } 1, 2;

sub ends_after($node, $database, $seconds) {
    $node->poll_query_until($database, <<"SQL") or give_up('leases are not renewed');
SELECT count(*) = 2 FROM randflake_leases
WHERE state = 'active' AND ends_at > clock_timestamp() + interval '$seconds s'
SQL
}

sub errors { return scalar map { slurp_file("$_->[1].err") =~ /ERROR/g } @{ $fleet->{files} } }

for my $round (1 .. $rounds) {
    $coordinator->sql(block('lengthen'));
    move_to($fleet, $_, $coordinator, lease_duration => '10min') for @holders;
    ends_after($coordinator, 'postgres', 500);
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

# Restores every changed file before the leases end. pg_control must get its old inode number again.
# File systems reuse numbers, so the test creates files until one gets the old number.
for my $round (1 .. $rounds) {
    make_coordinator($coordinator, 20);
    my $data = $coordinator->data_dir;
    my $saved = $coordinator->basedir . "/saved$round";
    $coordinator->stop;
    system_or_bail('cp', '-a', $data, $saved);
    $coordinator->start;
    my $lost = new_holder($fleet, "lost$round", $coordinator, lease_duration => 20);
    $lost->start;
    wait_for_lease($lost);
    load_on($fleet, $lost);
    my $worker = lease_worker_of($lost);
    $lost->reload;    # so that it renews now
    my $renewed = status_of($lost, 'window_extensions');
    wait_for_status($lost, "window_extensions > $renewed");
    kill 'STOP', $worker;
    my $ends = $coordinator->sql('SELECT max(upper(span)) FROM randflake_lease');
    $coordinator->stop('immediate');
    my $inode = (stat "$data/global/pg_control")[1];
    system_or_bail('sh', '-c', "cd $data && find . -mindepth 1 -maxdepth 1 ! -name PG_VERSION ! -name global"
          . " -exec rm -r {} + && find global -type f ! -name pg_control -delete");
    my @made;
    do {
        push @made, "$data/global/made" . @made;
        unlink "$data/global/pg_control" if @made == 2000;
        append_to_file($made[-1], slurp_file("$saved/global/pg_control"));
    } until (stat $made[-1])[1] == $inode || @made == 20_000;
    note 'pg_control has ', (stat $made[-1])[1] == $inode ? 'the same' : 'another', ' inode number, of file ' . @made;
    chmod 0600, $made[-1];
    rename pop @made, "$data/global/pg_control" or die "could not rename: $!";
    unlink @made;
    system_or_bail('sh', '-c', "cd $saved && rm PG_VERSION global/pg_control && cp -a . $data");
    $coordinator->start;
    my $newcomer = start_holder($fleet, "restored$round", $coordinator);
    load_on($fleet, $newcomer);
    cmp_ok($coordinator->sql('SELECT min(lower(span)) FROM randflake_lease'), '>=', $ends,
        "round $round, restored in place: no lease begins before the lost ones end");
    sleep 2;
    end_load($fleet, $_) for $lost, $newcomer;
    kill 'CONT', $worker;
    $_->stop for $lost, $newcomer;
    all_is_well($fleet, $coordinator, "round $round, restored in place", leased => 0);
}
every_block_was_used();
done_testing();
