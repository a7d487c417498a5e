# Snowflake identifiers to and from generators of others, for several epochs: two packages of Node.js
# make some that snowflake_decode takes apart, and one takes apart what snowflake_generate() makes.
#
# Skipped where the packages are not installed: npm ci, in test/js.

use IPC::Run ();
use Randflake;

plan skip_all => 'npm ci was not run in test/js' if !-d 'test/js/node_modules/@sapphire/snowflake';
plan skip_all => 'node is not installed' if !eval { IPC::Run::run([qw(node --version)], '>', \my $version) };

# The program's lines.
sub node_program {
    my (@arguments) = @_;
    IPC::Run::run([ 'node', 'test/js/snowflake.mjs', @arguments ], '>', \my $output)
      or die 'the program failed';
    chomp $output;
    return $output;
}

my $node = new_server('main', settings => { node_id => 295, node_count => 2, max_wait => '1min' });
for my $epoch (1288834974657, 1420070400000, 1577836800000) {
    my $layout = "time=41:1ms, node=10, sequence=12, epoch=$epoch";
    configure($node, node_id => 295, node_count => 2, snowflake_layout => $layout, max_wait => '1min');
    $node->start;
    $node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS randflake');

    # What is inside the identifiers, in the program's form.
    my $decode = "SELECT id, (extract(epoch FROM generated_at) * 1000)::bigint AS milliseconds,"
      . " node_id, sequence FROM";
    my $shown = sub {
        my ($query) = @_;
        my $lines = $node->safe_psql('postgres', $query);
        return $lines =~ tr/|/ /r;
    };

    my $theirs = node_program($epoch, 'generate');
    my @ids = $theirs =~ /^(\d+)/mg;
    is(scalar @ids, 104, "epoch $epoch: they make some");
    is(scalar(() = $theirs =~ / 295 /g), 100, "epoch $epoch: with the node id asked for");
    is($shown->("$decode unnest('{" . join(',', @ids) . "}'::bigint[]) WITH ORDINALITY AS i (id, n),"
              . " snowflake_decode(id, '$layout') ORDER BY n"),
        $theirs, "epoch $epoch: we decode theirs");

    $node->safe_psql('postgres',
        'DROP TABLE IF EXISTS made; CREATE TABLE made AS SELECT snowflake_generate() AS id FROM generate_series(1, 500)');
    my $ours = $shown->("$decode made, snowflake_decode(id) ORDER BY id");
    is(node_program($epoch, 'decode', $ours =~ /^(\d+)/mg), $ours, "epoch $epoch: they decode ours");
    $node->stop;
}
done_testing();
