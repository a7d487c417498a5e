# Runs the statements of the pages that need a later PostgreSQL: keys and foreign keys WITHOUT
# OVERLAPS of the type (18), and the text form by encode and decode (19). Before 19, functions with
# the definition of RFC 4648 replace both, so that each release checks the arithmetic.
use Docs;
use Randflake;

read_document('docs/type.md', 'test/t/358_later_releases.pl');
read_document('docs/reference.md', 'test/t/358_later_releases.pl');
my $node = start_server('main', extensions => ['randflake_type'],
    settings => { node_id => 1, secret => random_secret(), max_wait => '1h' });
my $major = $node->sql('SHOW server_version_num') / 10000;

# --- the text form -------------------------------------------------------------------------------
$node->sql(<<'SQL');
CREATE TABLE customer AS SELECT randflake_generate() AS id FROM generate_series(1, 10000)
    UNION VALUES (0::bigint), (1), (-1), (9223372036854775807), (-9223372036854775808);
CREATE TABLE customer_text AS SELECT randflake_to_text(id) AS text FROM customer;
SQL
my ($encode, $decode) = map { block($_) =~ /^SELECT (.*) FROM \w+;$/m } qw(encode decode);
if ($major < 19) {
    $node->sql(<<'SQL');
CREATE FUNCTION encode(bytes bytea, format text, OUT text) LANGUAGE sql AS $$
SELECT string_agg(substr('0123456789ABCDEFGHIJKLMNOPQRSTUV', n::int + 1, 1), '' ORDER BY i)
FROM generate_series(0, length(bytes) * 8 / 5 - 1) AS i,
LATERAL (SELECT sum(get_bit(bytes, (5 * i + j) / 8 * 8 + 7 - (5 * i + j) % 8) << (4 - j)) FROM generate_series(0, 4) AS j) AS d (n)
$$;
CREATE FUNCTION decode(digits text, format text) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE bytes bytea := decode(repeat('00', length(digits) * 5 / 8), 'hex'); n integer;
BEGIN
    FOR i IN 0 .. length(digits) * 5 - 1 LOOP
        n := strpos('0123456789ABCDEFGHIJKLMNOPQRSTUV', upper(substr(digits, i / 5 + 1, 1))) - 1;
        bytes := set_bit(bytes, i / 8 * 8 + 7 - i % 8, n >> (4 - i % 5) & 1);
    END LOOP;
    RETURN bytes;
END $$;
CREATE FUNCTION number(bytes bytea, OUT bigint) LANGUAGE sql AS $$SELECT ('x' || encode(bytes, 'hex'))::bit(64)::bigint$$;
SQL
    s/(encode|decode)\((?=.*'base32hex')/public.$1(/ for $encode, $decode;
    $decode =~ s/^(.*)::bigint$/public.number($1)/ if $major < 18;
    $decode =~ s/(substring.*)::bigint/public.number($1)/ if $major < 18;
}
is($node->sql("SELECT count(*), count(*) FILTER (WHERE $encode = randflake_to_text(id)) FROM customer WHERE id <> 0"),
    '10004|10004', "the page's expression writes the text form");
is($node->sql("SELECT count(*), count(*) FILTER (WHERE $decode = randflake_from_text(text)) FROM customer_text"),
    '10005|10005', '  and reads it');

# --- keys WITHOUT OVERLAPS -----------------------------------------------------------------------
SKIP: {
    my ($function, $periods) = map { block($_) } qw(function periods);
    skip 'keys WITHOUT OVERLAPS need PostgreSQL 18', 6 if $major < 18;
    my ($class) = slurp_file('docs/type.md') =~ /^(CREATE EXTENSION btree_gist;\nCREATE OPERATOR CLASS.*?;)$/ms;
    $node->sql($class);
    isnt($node->psql('postgres', $periods, on_error_stop => 1), 0, 'the class alone makes no key WITHOUT OVERLAPS');
    $node->sql("$function; DROP TABLE IF EXISTS price; $periods");
    pass('with one more function there is such a key, and a foreign key');
    $node->sql(q{INSERT INTO price (during) VALUES ('[2026-01-01, 2026-02-01)');
        INSERT INTO price SELECT id, '[2026-02-01, 2026-03-01)' FROM price;
        INSERT INTO offer SELECT id, '[2026-01-15, 2026-02-15)' FROM price LIMIT 1});
    error_is($node, q{INSERT INTO price SELECT id, '[2026-01-31, 2026-02-02)' FROM price LIMIT 1}, '23P01', {}, 'no overlap');
    error_is($node, q{INSERT INTO offer SELECT id, '[2026-02-15, 2026-03-15)' FROM price LIMIT 1}, '23503', {}, 'no reference beyond');
    error_is($node, q{INSERT INTO offer VALUES (randflake_next(), '[2026-01-15, 2026-01-16)')}, '23503', {}, 'nor to another key');
    error_is($node, q{DELETE FROM price WHERE during @> '2026-02-10'::date}, '23503', {}, 'and no deletion of a period in use');
}
$node->stop;
every_block_was_used();
done_testing();
