# What a slot has used outlives the backend that used it: connections that make one identifier each
# get the slots of those that left a moment before.

use Randflake;

my $node = start_server(
    'main',
    settings => { node_id => 131070, node_count => 2, secret => random_secret(), max_wait => '1h' });
$node->safe_psql('postgres',
    'CREATE TABLE made (id bigint DEFAULT randflake_generate(), n integer)');

my $script = $node->basedir . '/connect.sql';
append_to_file($script, 'INSERT INTO made DEFAULT VALUES;');

# 200 connections one after the other, 200 in eights, each for a single transaction
for my $clients (1, 8) {
    $node->command_ok(
        [
            'pgbench', '-n', '-C', '-f', $script, '-c', $clients, '-t', 200 / $clients,
            $node->connstr('postgres')
        ],
        "200 connections, $clients at a time");
}
all_distinct($node, 'SELECT id FROM made', 400, 'short connections: nothing twice');

# Connections that last for a few transactions, some of which fail
my $mixed = $node->basedir . '/mixed.sql';
append_to_file($mixed, <<'SQL');
INSERT INTO made SELECT randflake_generate(), 1 FROM generate_series(1, 10);
BEGIN;
INSERT INTO made SELECT randflake_generate(), 2 FROM generate_series(1, 10);
ROLLBACK;
INSERT INTO made SELECT * FROM randflake_generate(10);
SQL
$node->command_ok(
    [ 'pgbench', '-n', '-f', $mixed, '-c', 8, '-t', 50, $node->connstr('postgres') ],
    '8 connections that last');
all_distinct($node, 'SELECT id FROM made', 400 + 8 * 50 * 20, 'mixed with longer ones: nothing twice');
is(fields_of($node, 'SELECT id FROM made')->{nodes}, '131070 131071', 'both node ids were in use');

$node->stop;
done_testing();
