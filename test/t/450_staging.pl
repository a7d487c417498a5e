# Follows docs/staging.md: makes a staging copy, changes key types, and removes the extensions.
use Docs;
use Randflake;
use RandflakeInstallation;

read_document('docs/staging.md', 'test/t/450_staging.pl');
my $tables = <<'SQL';
CREATE TABLE customer (id bigint PRIMARY KEY DEFAULT randflake_generate(), name text);
CREATE TABLE purchase (id randflake PRIMARY KEY DEFAULT randflake_next(), n integer,
                       customer_id bigint REFERENCES customer);
CREATE TABLE line (purchase_id randflake REFERENCES purchase, item text);
INSERT INTO customer SELECT randflake_encode(timestamptz '2026-01-01' + n * interval '1h', 1, 0), n
    FROM generate_series(1, 50) AS n;
INSERT INTO purchase (n, customer_id) SELECT row_number() OVER (), id FROM customer, generate_series(1, 3);
INSERT INTO line SELECT id, n::text FROM purchase;
CREATE INDEX hash ON line USING hash (purchase_id);
SQL

# Joins the rows by their references, and selects a hash of all columns except the keys.
my $joined = <<'SQL';
SELECT md5(string_agg(concat_ws(' ', name, n, item), ',' ORDER BY n))
FROM customer JOIN purchase ON customer_id = customer.id JOIN line ON purchase_id = purchase.id
SQL
my $order = 'SELECT string_agg(n::text, \',\' ORDER BY id) FROM purchase';

my ($prefix) = private_installation();
my %settings = (node_id => 1, secret => random_secret(), max_wait => '1h');
my $node = start_server('main', install_path => $prefix, extensions => ['randflake_type'], settings => \%settings);
$node->sql($tables);
my @rows = map { $node->sql($_) } $joined, $order;

# --- staging --------------------------------------------------------------------------------------
my $dump = tempdir() . '/dump';
$node->command_ok([ 'pg_dump', '-p', $node->port, '-h', $node->host, '-f', $dump, 'postgres' ], 'production is dumped');
$node->sql('CREATE DATABASE staging');
$node->safe_psql('staging', slurp_file($dump));
my $shown = 'SELECT string_agg(id::text, \',\' ORDER BY n) FROM purchase';
my $before = $node->safe_psql('staging', $shown);
configure($node, %settings, secret => random_secret());
$node->restart;
my (undef, undef, $errors) = $node->psql('staging', 'TABLE purchase');
like($errors, qr/belong to another secret/, 'under another secret values of the type are refused');
$node->safe_psql('staging', block('rebind'));
is_deeply([ map { $node->safe_psql('staging', $_) } $joined, $order ], \@rows, '  and bound to it, rows are unchanged');
isnt($node->safe_psql('staging', $shown), $before, '  with other identifiers');
is($node->safe_psql('staging', "SELECT count(*) FROM purchase WHERE id::text = ANY (string_to_array('$before', ','))"),
    0, '  none of which is one of before');
is($node->safe_psql('staging', 'SET enable_seqscan = off; SELECT count(*) FROM purchase WHERE (SELECT count(*) FROM line WHERE purchase_id = purchase.id) = 1'),
    150, '  which the hash index finds');
$node->command_ok([ 'pg_dump', '-p', $node->port, '-h', $node->host, '-f', $dump, 'staging' ], '  and can be dumped');
$node->sql('CREATE DATABASE developer');
$node->safe_psql('developer', slurp_file($dump));
is_deeply([ map { $node->safe_psql('developer', $_) } $joined, $order ], \@rows, '  and restored');

# --- back -----------------------------------------------------------------------------------------
$node->safe_psql('staging', 'TRUNCATE customer CASCADE');
$node->safe_psql('staging', $tables =~ s/CREATE.*?;\n//gsr);
$node->safe_psql('staging', q{INSERT INTO customer VALUES (100, 'kept')});
like($node->safe_psql('staging', block('defaults')), qr/^customer\|\S*randflake_generate\(\)\npurchase\|\S*randflake_next\(\)$/,
    'what has to go back');
@rows = map { $node->safe_psql('staging', $_) } $joined, $order;
$node->sql('CREATE DATABASE uuid TEMPLATE staging');
$node->safe_psql('staging', block('times'));
for my $way (qw(identity uuid)) {
    my $database = $way eq 'uuid' ? 'uuid' : 'staging';
    $node->safe_psql($database, block($way));
    $node->safe_psql($database, "INSERT INTO customer (name) VALUES ('last')");
    is_deeply([ map { $node->safe_psql($database, $_) } $joined, $order ], \@rows, "back to $way: rows are what they were");
    like($node->safe_psql($database, "SELECT id FROM customer WHERE name = 'last'"),
        $way eq 'uuid' ? qr/^[0-9a-f]{8}-/ : qr/^151$/, '  and new rows get such a key');
    isnt($node->psql($database, 'INSERT INTO purchase (customer_id) SELECT id FROM customer WHERE false; DELETE FROM customer'),
        0, '  and the reference holds');
}
is($node->safe_psql('staging', <<'SQL'), 50, 'times are kept, and small numbers are in their order');
SELECT count(*) FROM customer
WHERE name = (id - 100)::text AND created_at = timestamptz '2026-01-01' + (id - 100) * interval '1h'
SQL

is($node->safe_psql('staging', q{SELECT id FROM customer WHERE name = 'kept'}), 100, '  and a small one is kept');

# --- removal --------------------------------------------------------------------------------------
my $drop = 'DROP EXTENSION randflake_type, randflake';
(undef, undef, $errors) = $node->psql('developer', $drop);
like($errors, qr/cannot drop/, 'extensions in use are not dropped');
like($errors, qr/\Q$_\E/, "  and the error lists $_")
  for 'default value for column id of table customer', 'column purchase_id of table line';
unlink "$prefix/lib/randflake.so" or die "no library in $prefix";
sub only_bigint_can_be_read {
    is($node->safe_psql('developer', 'SELECT count(name) FROM customer WHERE id <> 0'), 50,
        'without the file of the library a bigint can be read');
    for my $statement ('INSERT INTO customer (name) VALUES (1)', 'SELECT id FROM purchase') {
        (undef, undef, $errors) = $node->psql('developer', $statement);
        like($errors, qr/could not (?:access file "\$libdir\/|load library ")randflake"/, "  and not so: $statement");
    }
}
only_bigint_can_be_read();
$node->stop;
refuses_to_start($node, \%settings, qr/FATAL:  could not load library "randflake"/, 'and the server does not start again');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
only_bigint_can_be_read();
$node->safe_psql('developer', 'ALTER TABLE customer ALTER id DROP DEFAULT; DROP TABLE line; ALTER TABLE purchase DROP id');
$node->safe_psql('developer', $drop);
is($node->safe_psql('developer', 'SELECT count(*) FROM pg_extension'), 1, 'the extensions can be dropped without it');
$node->stop;
every_block_was_used();
done_testing();
