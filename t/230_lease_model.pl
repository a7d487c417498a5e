# The coordinator's functions against their model, test/unit/lease_coordinator.h, which the simulation
# of leases runs: thousands of steps at random, each answer compared. And again with one rule of the
# functions changed at a time: every such change must be found.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('coordinator');
$node->init;
$node->append_conf('postgresql.conf', "log_statement = none\nlog_min_messages = fatal\n");
$node->start;

# --- a coordinator whose clock and identity are the test's ---------------------------------------

# The clock stands in the middle of a second. It takes the place of PostgreSQL's own, for which the
# extension asks by name, before the extension is made: then it is in the defaults of columns too.
$node->safe_psql('postgres', <<'SQL');
ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO real_clock_timestamp;
CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT to_timestamp(current_setting('test.clock')::float8 + 0.4) $$;
SET test.clock = 0;
CREATE EXTENSION randflake;
CREATE OR REPLACE FUNCTION randflake_coordinator_identity() RETURNS text LANGUAGE sql VOLATILE
AS $$ SELECT current_setting('test.identity') $$;
SQL

# --- traces --------------------------------------------------------------------------------------

my $directory = PostgreSQL::Test::Utils::tempdir;
my $unit = "$FindBin::Bin/../test/unit";
PostgreSQL::Test::Utils::system_or_bail($ENV{CXX} // 'g++', '-std=c++20', '-O1',
    "-I$unit", "-I$FindBin::Bin/../src", '-o', "$directory/lease_trace", "$unit/lease_trace.cpp");
my ($traces, $steps) = (120, 200);
PostgreSQL::Test::Utils::system_or_bail('sh', '-c',
    "$directory/lease_trace 1 $traces $steps >$directory/traces");

$node->safe_psql('postgres', <<"SQL");
CREATE TABLE step (
    trace integer, step integer, identity text, clock bigint,
    operation text, committed boolean, arguments bigint[], answer bigint[], sqlstate text,
    PRIMARY KEY (trace, step)
);
COPY step FROM '$directory/traces';
VACUUM ANALYZE step;
SQL
is($node->safe_psql('postgres', 'SELECT count(*) FROM step'), $traces * $steps, 'traces');

# Everything happens in them, and often.
my %least = (
    'acquire|00000' => 1000, 'acquire|55000' => 500, 'acquire|53400' => 500,
    'acquire|22008' => 10, 'acquire|22023' => 50,
    'renew|00000' => 1000, 'renew|55000' => 500, 'renew|22023' => 50,
    'release|00000' => 500, 'release|55000' => 100,
    'purge|00000' => 200, 'purge|22023' => 20,
    'configure|00000' => 200, 'configure|22023' => 20,
    'save|00000' => 100, 'restore|00000' => 50, 'dump|00000' => 20);
my %seen = map { /(.*)\|(\d+)$/ } split /\n/, $node->safe_psql('postgres',
    'SELECT operation, sqlstate, count(*) FROM step GROUP BY 1, 2');
my @rare = grep { ($seen{$_} // 0) < $least{$_} } sort keys %least;
is("@rare", '', 'of every operation and outcome, enough steps')
  or diag(map { "$_: $seen{$_}\n" } sort keys %seen);

# --- replay --------------------------------------------------------------------------------------

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE saved (
    place bigint, pool randflake_lease_pool[], leases randflake_lease[],
    next_lease bigint, next_is_called boolean, takeover bigint
);

CREATE PROCEDURE make_anew() LANGUAGE sql AS $$
    DELETE FROM randflake_lease;
    DELETE FROM randflake_lease_pool;
    SELECT setval('randflake_lease_takeover',
                  randflake_lease_identity_hash(randflake_lease_identity()));
$$;

CREATE PROCEDURE save(to_place bigint) LANGUAGE sql AS $$
    DELETE FROM saved WHERE place = to_place;
    INSERT INTO saved
    SELECT to_place, (SELECT array_agg(p) FROM randflake_lease_pool p),
           (SELECT array_agg(l) FROM randflake_lease l), i.last_value, i.is_called, t.last_value
    FROM randflake_lease_lease_id_seq i, randflake_lease_takeover t;
$$;

CREATE PROCEDURE restore(from_place bigint) LANGUAGE sql AS $$
    CALL make_anew();
    INSERT INTO randflake_lease_pool
    SELECT p.* FROM saved, unnest(pool) AS p WHERE place = from_place;
    INSERT INTO randflake_lease OVERRIDING SYSTEM VALUE
    SELECT l.* FROM saved, unnest(leases) AS l WHERE place = from_place;
    SELECT setval('randflake_lease_lease_id_seq', next_lease, next_is_called)
    FROM saved WHERE place = from_place;
$$;

CREATE FUNCTION incarnation(number bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
AS $$ SELECT lpad(to_hex(number), 32, '0')::uuid $$;

-- The answer of one step
CREATE FUNCTION answer(s step) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    a CONSTANT bigint[] := s.arguments;
    got bigint[] := '{}';
BEGIN
    CASE s.operation
    WHEN 'acquire' THEN
        SELECT ARRAY[lease_id, first_node_id, node_count, lease_start, lease_end] INTO STRICT got
        FROM randflake_lease_acquire('x', incarnation(a[1]), a[2]::integer, a[3]::integer,
                                     lpad(to_hex(a[4]), 16, '0'));
    WHEN 'renew' THEN
        got := ARRAY[randflake_lease_renew(a[1], incarnation(a[2]), a[3], a[4]::integer)];
    WHEN 'release' THEN
        PERFORM randflake_lease_release(a[1], incarnation(a[2]), a[3]);
    WHEN 'purge' THEN
        got := ARRAY[randflake_lease_purge(a[1] * interval '1 millisecond')];
    WHEN 'configure' THEN
        PERFORM randflake_lease_configure(a[1]::integer, a[2]::integer, a[3]::integer,
                                          a[4]::integer, a[5] = 1);
    WHEN 'create' THEN
        CALL make_anew();
        PERFORM setval('randflake_lease_lease_id_seq', 1, false);
        DELETE FROM saved;
        got := NULL;
    WHEN 'save' THEN
        CALL save(a[1]);
        got := NULL;
    WHEN 'restore' THEN
        CALL restore(a[1]);
        PERFORM setval('randflake_lease_takeover', takeover) FROM saved WHERE place = a[1];
        got := NULL;
    WHEN 'dump' THEN
        CALL restore(a[1]);
        got := NULL;
    END CASE;
    RETURN got;
END $$;

-- Where the functions and the model differ first, and how
CREATE TABLE difference (trace integer, step integer, got bigint[], sqlstate text, message text);
CREATE PROCEDURE replay() LANGUAGE plpgsql AS $$
DECLARE
    s step;
    got bigint[];
    state text;
    message text;
BEGIN
    DELETE FROM difference;
    FOR s IN SELECT * FROM step ORDER BY trace, step LOOP
        IF s.operation = 'create' THEN
            COMMIT;
        END IF;
        PERFORM set_config('test.clock', s.clock::text, false),
                set_config('test.identity', s.identity, false);
        got := NULL;
        state := '00000';
        message := '';
        BEGIN
            got := answer(s);
            IF NOT s.committed THEN
                RAISE SQLSTATE 'RBACK';
            END IF;
        EXCEPTION
            WHEN SQLSTATE 'RBACK' THEN
                NULL;
            WHEN OTHERS THEN
                state := SQLSTATE;
                message := SQLERRM;
        END;
        IF got IS DISTINCT FROM s.answer OR state <> s.sqlstate THEN
            INSERT INTO difference VALUES (s.trace, s.step, got, state, message);
            RETURN;
        END IF;
    END LOOP;
END $$;
SQL

# The steps up to the first difference in the words of a failure; empty if there is none.
sub first_difference {
    $node->safe_psql('postgres', 'CALL replay()');
    return $node->safe_psql('postgres', <<'SQL');
SELECT format('trace %s, step %s: clock %s, %s, %s%s: got %s %s%s, expected %s %s',
              s.trace, s.step, s.clock, s.identity, s.operation, s.arguments,
              coalesce(d.got::text, 'nothing'), d.sqlstate, nullif(' (' || d.message || ')', ' ()'),
              coalesce(s.answer::text, 'nothing'), s.sqlstate)
FROM difference d JOIN step s USING (trace, step)
SQL
}

is(first_difference(), '', "the functions answer $traces traces as the model does");

done_testing();
