# More sessions than node ids, making more than the node ids can give: slots fill up, sessions move
# on to the next one, then wait for the next second. Nothing comes twice.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use Test::More;

my ($sessions, $each) = (8, 400_000);
my $node = start_server(
    'main',
    settings => { node_id => 1000, node_count => 4, secret => random_secret(), max_wait => '1h' },
    conf => "fsync = off\nmax_wal_size = 1GB\n");

my $began = time;
my $query = join ' UNION ALL ', map { "SELECT id FROM made_$_" } 1 .. $sessions;

# Whether some second had all of its numbers reserved, for which a session must have waited. A
# machine that is busy with other things may need another round.
my $full = <<"SQL";
SELECT count(*) > 0 FROM (
    SELECT (d).generated_at FROM (SELECT randflake_decode(id) AS d FROM ($query) AS made) AS decoded
    WHERE (d).sequence = 131071
    GROUP BY (d).generated_at HAVING count(DISTINCT (d).node_id) = 4) AS full_seconds
SQL
my $was_full = 'f';
for my $round (1 .. 5) {
    $node->safe_psql('postgres', "DROP TABLE IF EXISTS made_$_") for 1 .. $sessions;
    my @sessions = map {
        start_session($node,
            "CREATE UNLOGGED TABLE made_$_ AS"
              . " SELECT randflake_generate() AS id FROM generate_series(1, $each)")
    } 1 .. $sessions;
    is((finish_session($_))[1], '', "round $round: a session makes $each") for @sessions;
    $was_full = $node->safe_psql('postgres', $full);
    last if $was_full eq 't';
}
is($was_full, 't', 'in some second, every number of every node id was reserved');

my $fields = fields_of($node, $query);
is($fields->{count}, $sessions * $each, 'every call has returned an identifier');
is($fields->{distinct}, $sessions * $each, 'nothing twice');
is($fields->{nodes}, '1000 1001 1002 1003', 'all node ids were in use, and no other');
is("$fields->{min_sequence} $fields->{max_sequence}", '0 131071', 'sequences from first to last');
# The server's clock is coarse and may trail by a tick.
cmp_ok($fields->{first_second}, '>=', $began - 1, 'no second before the beginning');
cmp_ok($fields->{last_second}, '<=', time, 'no second after the end');

$node->stop;
done_testing();
