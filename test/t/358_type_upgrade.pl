# pg_upgrade to a new server with the same secret: definitions come before data and key, so nothing of
# the type may depend on them; and nothing may be lost.

use Randflake;

my %settings = (node_id => 1, secret => random_secret(), max_wait => '1h');
my $old = start_server('old', extensions => ['randflake_type'], settings => {%settings});
$old->safe_psql('postgres', <<'SQL');
CREATE TABLE made (id randflake PRIMARY KEY DEFAULT randflake_next(), others randflake[], n integer);
INSERT INTO made (n) SELECT n FROM generate_series(1, 1000) AS n;
UPDATE made SET others = ARRAY[id, NULL];
CREATE INDEX ON made USING hash (id);
CREATE INDEX ON made USING brin (id);
CREATE TABLE parts (LIKE made) PARTITION BY RANGE (id);
CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (randflake_lower('2026-01-01'));
CREATE TABLE parts_new PARTITION OF parts FOR VALUES FROM (randflake_lower('2026-01-01')) TO (MAXVALUE);
INSERT INTO parts TABLE made;
CREATE VIEW recent AS SELECT * FROM made WHERE id >= randflake_lower('2025-06-01');
SQL
my $content = <<'SQL';
SELECT md5(string_agg(format('%s %s %s', id, others, n), ',' ORDER BY id)) FROM made
UNION ALL SELECT md5(string_agg(format('%s %s', id, tableoid::regclass), ',' ORDER BY id)) FROM parts
UNION ALL SELECT count(*)::text FROM recent
UNION ALL TABLE randflake_key
SQL
my $expected = $old->safe_psql('postgres', $content);

# One that the type was made in before the server had its secret
$old->safe_psql('postgres', 'CREATE DATABASE unbound');
$old->safe_psql('unbound', <<'SQL');
CREATE EXTENSION randflake_type CASCADE;
DELETE FROM randflake_key;
DELETE FROM randflake_key_check;
SQL
$old->stop;

my $new = new_server('new', settings => {%settings});
my $bindir = $new->config_data('--bindir');
my $work = PostgreSQL::Test::Utils::tempdir();
chdir $work or die "could not enter $work: $!";
command_ok(
    [
        'pg_upgrade', '--no-sync', '-b', $bindir, '-B', $bindir,
        '-d', $old->data_dir, '-D', $new->data_dir, '-p', $old->port, '-P', $new->port,
        '-s', $new->host
    ],
    'pg_upgrade');
$new->start;
# The bounds of partitions were read meanwhile.
is($new->safe_psql('postgres', q{SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'randflake_key'}), 0,
    '  binds nothing before the files are there');
is($new->safe_psql('postgres', $content), $expected, '  loses nothing');
$new->safe_psql('postgres', 'INSERT INTO made (n) VALUES (1001)');
is($new->safe_psql('postgres',
        'SET enable_seqscan = off; SELECT n FROM made WHERE id > (SELECT id FROM made WHERE n = 1000) ORDER BY id'),
    1001, '  and time goes on');

my $keys = 'SELECT (SELECT count(*) FROM randflake_key), (SELECT count(*) FROM randflake_key_check)';
is($new->safe_psql('unbound', $keys), '0|0', 'an unbound database stays so');
$new->safe_psql('unbound', 'SELECT randflake_next()');
is($new->safe_psql('unbound', $keys), '1|1', '  until it is used');

$new->stop;
done_testing();
