# migrate/randflake_migrate.sql: a schema with every kind of thing that hangs on a key, and names that need quotes, moves to each
# target at once and by online steps. It is the same afterwards, row for row and object for object, but for its keys. Programs write
# all the time; each step is killed before it is run; the way back is taken from every step.

use feature 'state';
use JSON::PP qw(decode_json);
use Randflake;

my $node = start_server('main', settings => { node_id => 1, secret => random_secret(), max_wait => '1h' },
    extensions => [], conf => "wal_level = logical\ndeadlock_timeout = 10s\n");
my $script = 'migrate/randflake_migrate.sql';
my $schema = q{"od'd ""x"""};
my $tool = 'randflake_migrate';

sub sql { my ($db, $sql) = @_; return $node->safe_psql($db, "SET search_path = $schema, public, randflake; $sql"); }

# Runs statements in a session; again while lock_timeout strikes. Returns its error.
sub run {
    my ($db, @statements) = @_;
    for (1 .. 100) {
        my ($status, $out, $text) = $node->psql($db, "@statements", on_error_stop => 1);
        return $status ? $text : '' if $text !~ /statement timeout|lock timeout/;
    }
    return 'lock timeout';
}

sub rows_of { my ($db, $query) = @_; return @{ decode_json(sql($db, "SELECT coalesce(json_agg(x), '[]') FROM ($query) AS x")) }; }
sub todo { my ($db, $all) = @_; return map { $_->{todo} } rows_of($db, "SELECT * FROM $tool.todo(1, " . ($all ? 'true' : 'false') . ')'); }

# --- a schema ----------------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE base');
$node->safe_psql('postgres', 'CREATE ROLE reader');
$node->safe_psql('base', 'CREATE SCHEMA randflake; CREATE EXTENSION randflake_type SCHEMA randflake CASCADE');
$node->safe_psql('base', <<"SQL");
CREATE SCHEMA $schema;
SET search_path = $schema, public;
CREATE TABLE "Cust;omer" (
    "I d" serial PRIMARY KEY, name text NOT NULL UNIQUE,
    boss integer CONSTRAINT "boss's" REFERENCES "Cust;omer" ON UPDATE CASCADE ON DELETE SET NULL, hue integer DEFAULT 7);
COMMENT ON COLUMN "Cust;omer"."I d" IS 'it''s the key';
COMMENT ON CONSTRAINT "boss's" ON "Cust;omer" IS 'a tree';
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY, customer integer NOT NULL, total numeric NOT NULL DEFAULT 0,
    changed integer NOT NULL DEFAULT 0, PRIMARY KEY (id), UNIQUE (customer, id));
ALTER TABLE orders ADD CONSTRAINT "of" FOREIGN KEY (customer) REFERENCES "Cust;omer"
    ON UPDATE CASCADE ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
CREATE TABLE line (
    "order" bigint NOT NULL REFERENCES orders ON DELETE CASCADE, customer integer, n smallint NOT NULL, item text,
    PRIMARY KEY ("order", n));
ALTER TABLE line ADD CONSTRAINT pair FOREIGN KEY (customer, "order") REFERENCES orders (customer, id)
    ON UPDATE CASCADE ON DELETE CASCADE DEFERRABLE;
CREATE TABLE card (customer integer PRIMARY KEY REFERENCES "Cust;omer" ON UPDATE CASCADE ON DELETE CASCADE, number text UNIQUE);
CREATE TABLE stamp (card integer NOT NULL REFERENCES card ON UPDATE CASCADE ON DELETE CASCADE, at date NOT NULL);
CREATE INDEX ON stamp (card, at DESC NULLS LAST) INCLUDE (at);
CREATE INDEX orders_big ON orders (total, customer) WHERE customer IS NOT NULL AND total > 1;
CREATE UNIQUE INDEX ON "Cust;omer" (lower(name), "I d");
COMMENT ON INDEX orders_big IS 'the big ones';
CREATE STATISTICS related (dependencies) ON customer, total FROM orders;
CREATE VIEW big WITH (security_barrier) AS SELECT o.id, o.customer, c.name
    FROM orders AS o JOIN "Cust;omer" AS c ON c."I d" = o.customer WHERE total > 5;
CREATE VIEW bigger AS SELECT id, name FROM big WHERE id IS NOT NULL;
GRANT SELECT ON big TO reader WITH GRANT OPTION;
GRANT SELECT (id) ON bigger TO reader;
GRANT UPDATE (customer) ON orders TO reader;
COMMENT ON VIEW bigger IS 'over big';
COMMENT ON COLUMN bigger.id IS 'the order';
ALTER VIEW big ALTER COLUMN name SET DEFAULT 'none';
CREATE FUNCTION on_big() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER big_insert INSTEAD OF INSERT ON big FOR EACH ROW EXECUTE FUNCTION on_big();
CREATE MATERIALIZED VIEW per_customer AS SELECT customer, count(*) AS n FROM orders GROUP BY 1;
CREATE UNIQUE INDEX per_customer_key ON per_customer (customer);
CREATE RULE no_total AS ON DELETE TO orders WHERE old.customer IS NULL DO INSTEAD NOTHING;
CREATE FUNCTION count_changes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.changed := NEW.changed + 1; RETURN NEW; END';
CREATE TRIGGER changes BEFORE UPDATE OF customer ON orders FOR EACH ROW
    WHEN (NEW.customer IS DISTINCT FROM OLD.customer) EXECUTE FUNCTION count_changes();
CREATE TRIGGER any_change BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION count_changes();
ALTER TABLE orders DISABLE TRIGGER changes;
ALTER TABLE stamp ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON stamp AS RESTRICTIVE FOR UPDATE TO reader USING (card IS NOT NULL) WITH CHECK (card IS NOT NULL);
CREATE FUNCTION last_order() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT id::text FROM orders ORDER BY total DESC LIMIT 1; END;
CREATE FUNCTION of_big(b big) RETURNS text LANGUAGE sql AS 'SELECT b.id::text';
REVOKE EXECUTE ON FUNCTION last_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION last_order TO reader;
CREATE PUBLICATION everything FOR TABLE orders (id, total, customer) WHERE (id IS NOT NULL), TABLE card;
CREATE UNIQUE INDEX line_identity ON line ("order", n);
ALTER TABLE line REPLICA IDENTITY USING INDEX line_identity, CLUSTER ON line_pkey;
CREATE TABLE event (id integer GENERATED BY DEFAULT AS IDENTITY, day date, note text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE VIEW january AS SELECT id FROM event_1;
INSERT INTO "Cust;omer" (name, boss) SELECT 'c' || n, nullif(n / 3, 0) FROM generate_series(1, 300) AS n;
INSERT INTO orders (customer, total) SELECT 1 + n % 300, n FROM generate_series(1, 2000) AS n;
INSERT INTO line SELECT id, nullif(customer, 7), n, 'item ' || n || ' of ' || total FROM orders, generate_series(1, 2) AS n;
INSERT INTO card SELECT "I d", 'card ' || name FROM "Cust;omer" WHERE "I d" % 2 = 0;
INSERT INTO stamp SELECT customer, date '2026-01-01' + customer FROM card, generate_series(1, 3);
INSERT INTO event (day, note) SELECT date '2026-01-01' + n % 59, 'event ' || n FROM generate_series(1, 200) AS n;
REFRESH MATERIALIZED VIEW per_customer;
SQL
my ($orders, $event) = map { qq{'"od''d ""x""".$_'} } qw(orders event);

# A copy of it, with the tool.
sub copy {
    my ($db, $base) = @_;
    $node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE " . ($base // 'base'));
    command_ok([ 'psql', '-X', '-q', '-1', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($db), '-f', $script ],
        "$db: the script is installed");
    return $db;
}

# Rows that were there from the beginning, by what is no key.
sub content {
    my ($db) = @_;
    return sql($db, <<'SQL');
SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM (
    SELECT 'c', c.name, coalesce(b.name, ''), c.hue::text FROM "Cust;omer" AS c LEFT JOIN "Cust;omer" AS b ON b."I d" = c.boss
  UNION ALL SELECT 'o', total::text, c.name, changed::text FROM orders AS o JOIN "Cust;omer" AS c ON c."I d" = o.customer
  UNION ALL SELECT 'l', item, total::text, n || coalesce(c.name, '') FROM line AS l JOIN orders AS o ON o.id = l."order"
            LEFT JOIN "Cust;omer" AS c ON c."I d" = l.customer
  UNION ALL SELECT 'k', number, c.name, '' FROM card AS k JOIN "Cust;omer" AS c ON c."I d" = k.customer
  UNION ALL SELECT 's', at::text, number, '' FROM stamp AS s JOIN card AS k ON k.customer = s.card
  UNION ALL SELECT 'e', day::text, note, '' FROM event
) AS x (kind, a, b, c) WHERE b NOT LIKE 'load%' AND a NOT LIKE 'load%'
SQL
}

# The schema, as pg_dump shows it. Without keys: the types of numbers, and what makes them, left out, and in no order.
sub dump_of {
    my ($db, $without_keys) = @_;
    my ($out, $err) = run_command([ 'pg_dump', '-s', '-N', $tool, '-N', 'randflake', '-d', $node->connstr($db) ]);
    $out =~ s/^(?:--.*|\\.*|SET .*|SELECT pg_catalog.*|)\n//mg;
    if ($without_keys) {
        $out =~ s/^CREATE SEQUENCE .*?;\n//msg;
        $out =~ s/^ALTER (?:SEQUENCE [^\n]*|TABLE [^\n]*_seq"? OWNER [^\n]*);\n//mg;
        $out =~ s/^ALTER TABLE [^\n]* ADD GENERATED .*?\);\n//msg;
        $out =~ s/^ALTER TABLE [^\n]* SET DEFAULT nextval.*\n//mg;
        $out =~ s/ DEFAULT randflake\.randflake(?:53)?_(?:generate|next)\(\)//g;
        $out =~ s/OPERATOR\(randflake\.(.)\)/$1/g;
        $out =~ s/\b(?:integer|bigint|randflake\.randflake)\b/key/g;
        $out =~ s/,$//mg;
        $out =~ s/(ADD TABLE ONLY \S+ \S+orders) \((.*?)\)/"$1 (" . join(', ', sort split m{, }, $2) . ')'/e;
    }
    return join "\n", sort split /\n/, $out;
}

# Lines that only one of two dumps has.
sub differing {
    my ($dump, $other) = @_;
    my %count;
    $count{$_}++ for split /\n/, $dump;
    $count{$_}-- for split /\n/, $other;
    return join "\n", map { ($count{$_} > 0 ? '+' : '-') . $_ } sort grep { $count{$_} } keys %count;
}

my ($content, $dump, $dump_without_keys) = (content('base'), dump_of('base'), dump_of('base', 1));

# The database holds what it held, under keys of this type, and goes on.
sub same_but_for_keys {
    my ($db, $type, $name) = @_;
    is(content($db), $content, "$name: rows are the same");
    my $expected = $dump_without_keys;
    $expected =~ s/ WHERE \(\(id IS NOT NULL\)\)// if $type =~ /randflake/;
    is(differing(dump_of($db, 1), $expected), '', '  and so is the schema');
    is( sql($db, q{SELECT string_agg(DISTINCT format_type(atttypid, NULL), ' ') FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid}
              . q{ WHERE attname IN ('I d', 'id', 'order', 'customer', 'boss', 'card') AND relkind IN ('r', 'p', 'v', 'm')}
              . q{ AND relnamespace = '"od''d ""x"""'::regnamespace}), $type, "  all keys have the type $type");
    is( sql($db, 'SELECT count(*) FROM "Cust;omer" AS c LEFT JOIN per_customer AS p ON p.customer = c."I d"'
              . q{ WHERE n IS DISTINCT FROM (SELECT nullif(count(*), 0) FROM orders WHERE customer = c."I d") AND name NOT LIKE 'load%'}),
        0, '  the materialized view too');
    state $count = 0;
    $count++;
    is(sql($db, <<'SQL' =~ s/load new/load new $count/gr), 't|2|t', '  and new rows get keys');
INSERT INTO "Cust;omer" (name) VALUES ('load new');
INSERT INTO orders (customer, total) SELECT "I d", -1 FROM "Cust;omer" WHERE name = 'load new';
INSERT INTO line SELECT o.id, o.customer, n, 'load' FROM orders AS o JOIN "Cust;omer" ON "I d" = customer, generate_series(1, 2) AS n WHERE name = 'load new';
SELECT o.id::text !~ '^\d{1,7}$', (SELECT count(*) FROM line WHERE "order" = o.id AND line.customer = "I d"), EXISTS (SELECT FROM "Cust;omer" WHERE "I d" = o.customer)
FROM orders AS o JOIN "Cust;omer" ON "I d" = customer WHERE name = 'load new';
SQL
}

# --- the plan ----------------------------------------------------------------------------------

copy('plan');
my @plan = rows_of('plan', "SELECT * FROM $tool.plan()");
sub planned { my ($what) = @_; return [ sort map { $_->{object} =~ s/"od'd ""x"""\.//gr } grep { $_->{what} eq $what } @plan ]; }
is_deeply(planned('blocker'), [ 'event', ], 'plan: partitions are in the way of online steps alone');
is_deeply(planned('moves'),
    [ '"Cust;omer"."I d"', '"Cust;omer".boss', 'card.customer', 'event.id', 'line."order"', 'line.customer', 'orders.customer', 'orders.id', 'stamp.card' ],
    '  keys, and what refers to them through each other');
is_deeply(planned('made again'), [
        'default value for big.name', 'function last_order()', 'function of_big(big)', 'index per_customer_key',
        'materialized view per_customer', 'policy own on stamp', 'publication relation orders in publication everything',
        'rule no_total on orders',
        (map { "table constraint $_" } '"boss\'s" on "Cust;omer"', 'card_customer_fkey on card', 'line_order_fkey on line', 'of on orders',
            'pair on line', 'stamp_card_fkey on stamp'), 'trigger big_insert on big', 'trigger changes on orders', 'view big', 'view bigger', 'view january' ],
    '  what is made again');
ok(@{ planned('application') } > 9, '  and what programs lose');
is(differing(dump_of('plan'), $dump), '', '  it changes nothing');

# What is in the way, and goes by the SQL that the plan prints
sql('plan', <<'SQL');
CREATE DOMAIN number AS integer;
CREATE TABLE hub (id serial PRIMARY KEY, twice integer GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE spoke (id number PRIMARY KEY REFERENCES hub, hub_id integer DEFAULT 1 REFERENCES hub);
CREATE TABLE wheel (id serial PRIMARY KEY REFERENCES hub, EXCLUDE (id WITH =), hub_id integer);
CREATE TABLE by_id (id serial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE of_rows (r hub);
CREATE FUNCTION find_hub(n integer) RETURNS integer LANGUAGE sql AS 'SELECT id FROM hub WHERE id = n';
SQL
@plan = grep { $_->{object} =~ /hub|spoke|wheel|by_id|of_rows/ } rows_of('plan', "SELECT * FROM $tool.plan()");
is_deeply(planned('blocker'), [ 'by_id.id', 'default value for hub.twice', 'spoke.hub_id', 'spoke.id', 'table column of_rows.r', 'wheel.id', 'wheel.id', 'wheel_id_excl on wheel' ],
    'plan: blockers') or diag(explain(\@plan));
is_deeply(planned('look'), [ 'column wheel.hub_id', 'function find_hub(integer)' ], '  and what may need a look');
error_is($node, "SELECT $tool.transaction('\"od''d \"\"x\"\"\".spoke')", '55000', { message => qr/cannot be moved yet/, detail => qr/has the domain|default of its own|row type/ },
    '  a group with blockers is refused', database => 'plan');
for my $entry (grep { $_->{what} eq 'blocker' && $_->{remedy} =~ /^ALTER/ } @plan) {
    run('plan', $entry->{remedy} =~ s/--.*//sr);
}
sql('plan', 'DROP TABLE of_rows');
@plan = grep { $_->{object} =~ /hub|spoke|wheel|by_id/ } rows_of('plan', "SELECT * FROM $tool.plan()");
is_deeply([ grep { !/by_id/ } @{ planned('blocker') } ], ['wheel_id_excl on wheel'], '  their SQL removes them')
  or diag(explain(\@plan));

my ($with) = $dump =~ /^(ALTER PUBLICATION .* WHERE .*)$/m;
my $without = $with =~ s/ WHERE .*/;/r;

# --- at once -----------------------------------------------------------------------------------

for my $way ([qw(bigint all bigint)], [qw(bigint new bigint)], [qw(53 all bigint)], [qw(randflake all randflake)]) {
    my ($target, $rows, $type) = @$way;
    my $db = copy("at_once_${target}_$rows");
    if ($target eq 'randflake') {
        my ($blocker) = grep { $_->{what} eq 'blocker' && $_->{object} =~ /publication/ } rows_of($db, "SELECT * FROM $tool.plan('randflake')");
        is(run($db, $blocker->{remedy}), '', 'a publication with WHERE is in the way of the type');
    }
    for my $table ($orders, $event) {
        my @statements = map { $_->{transaction} } rows_of($db, "SELECT * FROM $tool.transaction($table, '$target', '$rows')");
        isnt(run($db, map { /^COMMIT/ ? 'SELECT 1 / 0;' : $_ } @statements), '', "$target, $rows rows: a transaction that fails") if $table eq $orders;
        is(differing(dump_of($db), $dump), $target eq 'randflake' ? "-$with\n+$without" : '', '  changes nothing') if $table eq $orders;
        is(run($db, @statements), '', "$target, $rows rows: the transaction");
    }
    same_but_for_keys($db, $type, '  afterwards');
    is(sql($db, q{SELECT count(*) FROM orders WHERE total > 0 AND id::text ~ '^\d{1,4}$'}), $rows eq 'new' ? 2000 : 0, '  old keys');
    is(sql($db, q{SELECT count(*) FROM orders WHERE id::bigint NOT BETWEEN 0 AND (1::bigint << 53) - 1}), 0, '  all of 53 bits') if $target eq '53';
    error_is($node, "SELECT $tool.transaction($orders, 'bigint')", '42704', { message => qr/no generated key/ }, '  it is moved', database => $db);
}
run('at_once_bigint_all', "ALTER PUBLICATION everything SET TABLE $schema.orders (id, total, customer), $schema.card");
is(run('at_once_bigint_all', map { $_->{transaction} } rows_of('at_once_bigint_all', "SELECT * FROM $tool.transaction($orders, 'randflake')")), '',
    'identifiers move on to the type');
same_but_for_keys('at_once_bigint_all', 'bigint randflake', '  afterwards');
is( sql('at_once_bigint_all', qq{SELECT count(*) FROM orders JOIN $tool."""od'd """"x"""""".orders.id" ON new = id::bigint WHERE total > 0}), 2000, '  and stay the same');
error_is($node, "SELECT $tool.transaction($orders, 'float')", '22023', { message => qr/unknown target/ }, 'an unknown target', database => 'plan');

# --- online steps, with programs ---------------------------------------------------------------

# A customer with orders, the first of which comes before it; then its key changes, it is moved, and some are removed.
my $program = $node->basedir . '/program.sql';
append_to_file($program, <<"SQL");
\\set k random(-2000000000, -1000)
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO orders (customer, total) VALUES (:k, :k);
INSERT INTO "Cust;omer" ("I d", name) VALUES (:k, 'load ' || :k);
INSERT INTO line ("order", customer, n, item) SELECT id, customer, 1, 'load' FROM orders WHERE customer = :k;
INSERT INTO card (customer, number) VALUES (:k, 'load ' || :k);
INSERT INTO stamp (card, at) VALUES (:k, '2027-01-01');
INSERT INTO "Cust;omer" (name, boss) VALUES ('load child of ' || :k, :k) RETURNING "I d" AS child \\gset
INSERT INTO orders (customer, total) VALUES (:child, :k - 1);
UPDATE orders SET customer = :child WHERE customer = :k;
UPDATE "Cust;omer" SET "I d" = 1 - :k WHERE "I d" = :k;
COMMIT;
SELECT count(*) FROM bigger WHERE id < 0;
DELETE FROM "Cust;omer" WHERE name = 'load ' || :k AND :k % 2 = 0;
DELETE FROM orders WHERE total = :k - 1;
SQL
my ($programs, $errors, $db);

sub start_programs {
    $errors = '';
    local $ENV{PGOPTIONS} = q{-c search_path="od'd\\ ""x"""};
    $programs = IPC::Run::start([ 'pgbench', '-n', '-f', $program, '-c', 3, '-R', 30, '-T', 3600, $node->connstr($db) ],
        '<', '/dev/null', '>&', \$errors);
}

sub let_them_write {
    my $written = q{SELECT count(*) FROM "Cust;omer" WHERE name LIKE 'load child%'};
    my $enough = sql($db, $written) + 5;
    wait_until { $programs->pump_nb if $programs->pumpable; $errors =~ /abort/ || sql($db, $written) >= $enough };
    die "the programs do not write: $errors" if $errors =~ /abort/;
}

sub stop_programs {
    ok($programs->pumpable, 'the programs still run');
    $programs->kill_kill;
    is(join("\n", $errors =~ /^(.*(?:ERROR|abort|FATAL).*)$/mg), '', '  none of their statements failed');
    is( sql($db, q{SELECT count(*) FROM orders JOIN "Cust;omer" ON "I d" = customer WHERE total < -1000}
              . q{ AND name NOT IN ('load child of ' || total, 'load child of ' || total + 1, 'load ' || total)}),
        0, '  and their rows belong together');
}

sub in_background {
    my ($statement) = @_;
    my $session = { out => '', err => '' };
    $session->{handle} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($db), '-c', $statement ],
        '<', '/dev/null', '>', \$session->{out}, '2>', \$session->{err}, IPC::Run::timeout(3 * $PostgreSQL::Test::Utils::timeout_default));
    return $session;
}

# Kills a statement of the steps before it is done.
sub kill_within {
    my ($statement) = @_;
    my $others = q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()};
    if ($statement =~ /done\(1, (\d+)\).*^COMMIT;\z/ms) {
        my $n = $1;
        isnt(run($db, $statement =~ s/^COMMIT;\z/SELECT pg_terminate_backend(pg_backend_pid()); COMMIT;/mr), '', "killed: step $n");
    } elsif ($statement =~ /^CALL.*fill\(1, (\d+)/) {
        my $n = $1;
        sql($db, "UPDATE $tool.move SET pages = 1, pause = '1h'");
        my $session = in_background($statement);
        $node->poll_query_until($db, "SELECT page > 0 FROM $tool.step WHERE n = $n") or die "step $n does not begin";
        $node->poll_query_until($db, "$others AND query LIKE 'CALL%'");
        isnt((finish_session($session))[1], '', "killed: step $n");
        sql($db, "UPDATE $tool.move SET pages = 7, pause = '0'");
    } elsif ($statement =~ /^CREATE .*? CONCURRENTLY .*? ON (.*?) USING/) {
        my $open = in_background("BEGIN; LOCK TABLE $1 IN ROW EXCLUSIVE MODE; SELECT pg_advisory_lock(1), pg_sleep(3600)");
        $node->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND granted}) or die 'no open transaction';
        my $session = in_background($statement);
        $node->poll_query_until($db, "$others AND query LIKE 'CREATE%CONCURRENTLY%' AND wait_event_type = 'Lock'") or die 'no index is built';
        isnt((finish_session($session))[1], '', 'killed: an index');
        $node->poll_query_until($db, "$others AND query LIKE '%pg_advisory_lock(1)%'");
        finish_session($open);
    } else {
        die "not a statement of the steps: $statement";
    }
}

# Runs the steps that are left, or the first of them, as psql's \gexec does. Options: count, kill, load (programs must
# go on after each), all (step 8 too).
sub run_steps {
    my (%options) = @_;
    for (1 .. $options{count} // 1000) {
        my ($n) = sql($db, "SELECT min(n) FROM $tool.step WHERE done IS NULL AND (step < 8 OR " . ($options{all} ? 'true' : 'false') . ')');
        return if !$n;
        if ($options{kill}) {
            kill_within((todo($db, 1))[0]);
            let_them_write() if $options{load};
        }
        for my $statement (todo($db, 1)) {
            is(my $error = run($db, $statement), '', "step $n") or diag($statement);
            die if $error;
            last if sql($db, "SELECT done IS NOT NULL FROM $tool.step WHERE n = $n") eq 't';
        }
        let_them_write() if $options{load};
    }
}

$db = copy('online');
sql($db, "SELECT $tool.start($orders)");
is(differing(dump_of($db), $dump), '', 'online: start() changes nothing');
start_programs();
let_them_write();
run_steps(kill => 1, load => 1);
stop_programs();
$node->stop;
done_testing();
