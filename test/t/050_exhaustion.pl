# More sessions than node ids ask for more identifiers than the node ids have: slots fill up,
# sessions move to the next one, then wait for the next second. Nothing comes twice.

use Randflake;
use Time::HiRes qw(time);

my $in_a_second = 4 * 131072;
my ($sessions, $each) = (6, $in_a_second + 100);    # so that all must wait, whichever is served first
my $node = new_server(
    'main',
    settings => { node_id => 1000, node_count => 4, secret => random_secret(), max_wait => '1h' },
    conf => "fsync = off\nmax_wal_size = 1GB\n");
start_under_clock($node);
$node->safe_psql('postgres', 'CREATE EXTENSION randflake; SELECT randflake_generate()');

# The clock stands still until every number of the second is reserved, on any machine, and then goes
# on.
my $second = 10 + int time;
clock_stands_at($node, $second);
my @sessions = map {
    start_session($node,
        "CREATE UNLOGGED TABLE made_$_ AS"
          . " SELECT randflake_generate() AS id FROM generate_series(1, $each)")
} 1 .. $sessions;
wait_until_waiting($node, $sessions);
my $went_on_at = time;
clock_runs_from($node, $second + 1);
is((finish_session($_))[1], '', "a session makes $each") for @sessions;
my $last = $second + 1 + time - $went_on_at;

my $query = join ' UNION ALL ', map { "SELECT id FROM made_$_" } 1 .. $sessions;
is($node->safe_psql('postgres', <<"SQL"), $in_a_second, 'every number of the second leaves the server');
SELECT count(*) FROM ($query) AS made, randflake_decode(id)
WHERE extract(epoch FROM generated_at) = $second
SQL
my $fields = fields_of($node, $query);
is($fields->{count}, $sessions * $each, 'every call has returned an identifier');
is($fields->{distinct}, $sessions * $each, 'nothing twice');
is($fields->{nodes}, '1000 1001 1002 1003', 'all node ids were in use, and no other');
is("$fields->{min_sequence} $fields->{max_sequence}", '0 131071', 'sequences from first to last');
is($fields->{first_second}, $second, 'no second before the beginning');
cmp_ok($fields->{last_second}, '<=', $last, 'no second after the end');

$node->stop;
done_testing();
