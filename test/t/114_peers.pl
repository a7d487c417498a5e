# Sets the clock back between identifiers, by the steps of bench/peers.sh, and asks for more than a
# unit of time holds. No identifier repeats. bench/peers.sh gets the results in RANDFLAKE_PEERS.
use Randflake;

my @cases = ([ '5 ms', 0.005 ], [ '2 s', 2 ], [ '1 h', 3600 ], [ 'over the limit', 0, 50000 ]);
my $node = start_server('main', own_clock => 1);
my $ahead = 0;    # grows, so that no case uses the seconds of another

sub result_of {
    my ($function, $case, $step, $rows) = (@_, 10000)[0 .. 3];
    clock_offset($node, $ahead += 10);
    $node->sql('DROP TABLE IF EXISTS made; CREATE TABLE made (id bigint)');
    my $insert = "INSERT INTO made SELECT $function FROM generate_series(1, $rows)";
    my $waits = 'SELECT waits FROM randflake_status';
    my ($failed, $before) = (0, $node->sql("SELECT $function; $waits") =~ /(\d+)$/);
    for my $i (0 .. 9) {
        clock_offset($node, $ahead - $step) if $i == 6;
        $failed ||= error_of($node, $insert)->{sqlstate} ne '';
    }
    my $repeats = $node->sql('SELECT count(*) - count(DISTINCT id) FROM made');
    my $waited = $node->sql($waits) > $before;
    is($repeats, 0, "$function, $case: none twice");
    return $failed ? 'error' : $repeats . ($waited ? ', waits' : '');
}

for my $function (qw(randflake_generate() snowflake_generate())) {
    my $row = join ' | ', "| `$function`", map({ result_of($function, @$_) } @cases), 'need a node id each |';
    note($row);
    append_to_file($ENV{RANDFLAKE_PEERS}, "$row\n") if $ENV{RANDFLAKE_PEERS};
}
$node->stop;
done_testing();
