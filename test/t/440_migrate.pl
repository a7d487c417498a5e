# Moves a schema that has every kind of dependent object. Moves it to each type of key, in one
# transaction and in online steps while programs write. All rows and objects except the keys must
# stay the same. The test kills each step once, and undoes moves after various steps.
use feature 'state';
use Docs;
use JSON::PP qw(decode_json);
use Randflake;

read_document('docs/migrating.md', 'test/t/440_migrate.pl');
$RandflakeSessions::keep = 1;
my $node = start_server('main', settings => { node_id => 1, secret => random_secret(), max_wait => '1h' },
    extensions => [], conf => "wal_level = logical\ndeadlock_timeout = 1min\njit = off\n");
my $script = 'migrate/randflake_migrate.sql';
my $schema = q{"od'd ""x"""};
my $tool = 'randflake_migrate';

sub sql { my ($db, $sql) = @_; return $node->safe_psql($db, "SET search_path = $schema, public, randflake; $sql"); }

# Runs statements in a session, and repeats them after a lock timeout. Returns the last error.
sub run($db, @statements) {
    for (1 .. 100) {
        my ($status, $out, $text) = $node->psql($db, "@statements", on_error_stop => 1);
        return $status ? $text : '' if $text !~ /statement timeout|lock timeout/;
    }
    return 'lock timeout';
}

sub rows_of { my ($db, $query) = @_; return @{ decode_json(sql($db, "SELECT coalesce(json_agg(x), '[]') FROM ($query) AS x")) }; }
sub left { my ($db, $all) = @_; return map { $_->{todo} } rows_of($db, "SELECT * FROM $tool.todo(1, " . ($all ? 'true' : 'false') . ')'); }

# --- a schema ----------------------------------------------------------------------------------
$node->sql('CREATE DATABASE base');
$node->sql('CREATE ROLE reader');
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
CREATE INDEX line_other ON line (n) WHERE customer <> "order";
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
CREATE TABLE event (id integer GENERATED BY DEFAULT AS IDENTITY, customer integer, day date, note text, PRIMARY KEY (id, day),
    CHECK (id IS NOT NULL), FOREIGN KEY (customer) REFERENCES "Cust;omer" ON UPDATE CASCADE ON DELETE CASCADE) PARTITION BY RANGE (day);
CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE event_2 (note text, gone integer, day date NOT NULL, customer integer NOT NULL, id integer NOT NULL,
    CONSTRAINT its_own CHECK (id <> customer), CONSTRAINT event_id_check CHECK (id IS NOT NULL));
ALTER TABLE event_2 DROP gone;
ALTER TABLE event ATTACH PARTITION event_2 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE event_3 PARTITION OF event DEFAULT PARTITION BY RANGE (day);
CREATE TABLE event_3x PARTITION OF event_3 DEFAULT;
CREATE INDEX event_customer ON event (customer, day);
CREATE INDEX ON event_1 (lower(note), customer) WHERE id IS NOT NULL;
ALTER TABLE event_1 ADD CONSTRAINT twice FOREIGN KEY (customer) REFERENCES "Cust;omer" ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED, REPLICA IDENTITY USING INDEX event_1_pkey, CLUSTER ON event_1_pkey;
ALTER INDEX event_1_customer_day_idx RENAME TO january;
ALTER INDEX event_3x_pkey RENAME TO rest;
COMMENT ON CONSTRAINT rest ON event_3x IS 'of the rest';
ALTER TABLE event ALTER id SET STATISTICS 77;
ALTER TABLE event_2 ALTER id SET STATISTICS 78;
COMMENT ON COLUMN event_1.customer IS 'of January';
COMMENT ON CONSTRAINT event_pkey ON event IS 'with the day';
COMMENT ON INDEX january IS 'of January';
GRANT SELECT (customer) ON event_2 TO reader;
CREATE VIEW of_january AS SELECT id FROM event_1;
INSERT INTO "Cust;omer" (name, boss) SELECT 'c' || n, nullif(n / 3, 0) FROM generate_series(1, 300) AS n;
INSERT INTO orders (customer, total) SELECT 1 + n % 300, n FROM generate_series(1, 2000) AS n;
INSERT INTO line SELECT id, nullif(customer, 7), n, 'item ' || n || ' of ' || total FROM orders, generate_series(1, 2) AS n;
INSERT INTO card SELECT "I d", 'card ' || name FROM "Cust;omer" WHERE "I d" % 2 = 0;
INSERT INTO stamp SELECT customer, date '2026-01-01' + customer FROM card, generate_series(1, 3);
INSERT INTO event (customer, day, note) SELECT n + 1, date '2026-01-01' + n % 99, 'event ' || n FROM generate_series(1, 200) AS n;
INSERT INTO event SELECT id, customer, day + 1, 'the same number' FROM event WHERE id < 3;
REFRESH MATERIALIZED VIEW per_customer;
SQL
my $orders = q{'"od''d ""x""".orders'};

sub install($db) {
    command_ok([ 'psql', '-X', '-q', '-1', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($db), '-f', $script ], "$db: the script is installed");
}

$node->sql('CREATE DATABASE installed TEMPLATE base');
install('installed');

sub copy($db) {
    $node->sql("CREATE DATABASE $db TEMPLATE installed");
    return $db;
}

sub content($db) {
    return sql($db, <<'SQL');
SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM (
    SELECT 'c', c.name, coalesce(b.name, ''), c.hue::text FROM "Cust;omer" AS c LEFT JOIN "Cust;omer" AS b ON b."I d" = c.boss
  UNION ALL SELECT 'o', total::text, c.name, changed::text FROM orders AS o JOIN "Cust;omer" AS c ON c."I d" = o.customer
  UNION ALL SELECT 'l', item, total::text, n || coalesce(c.name, '') FROM line AS l JOIN orders AS o ON o.id = l."order"
            LEFT JOIN "Cust;omer" AS c ON c."I d" = l.customer
  UNION ALL SELECT 'k', number, c.name, '' FROM card AS k JOIN "Cust;omer" AS c ON c."I d" = k.customer
  UNION ALL SELECT 's', at::text, number, '' FROM stamp AS s JOIN card AS k ON k.customer = s.card
  UNION ALL SELECT 'e', to_char(day, 'MMDD'), note, name FROM event LEFT JOIN "Cust;omer" AS c ON c."I d" = customer
) AS x (kind, a, b, c) WHERE b NOT LIKE 'load%' AND a NOT LIKE 'load%'
SQL
}

# Returns the schema as pg_dump prints it, sorted. Optionally omits key types and their defaults.
sub dump_of($db, $without_keys = undef) {
    my ($out, $err) = run_command([ 'pg_dump', '-s', '-N', $tool, '-N', 'randflake', '-d', $node->connstr($db) ]);
    $out =~ s/^(?:--.*|\\.*|SET .*|SELECT pg_catalog.*|)\n//mg;
    # From PostgreSQL 18 on, ALTER COLUMN TYPE names a partition's constraint like the table's.
    $out =~ s/ CONSTRAINT event_id_not_null(?= NOT NULL)//g;
    if ($without_keys) {
        $out =~ s/^CREATE SEQUENCE .*?;\n//msg;
        $out =~ s/^ALTER (?:SEQUENCE [^\n]*|TABLE [^\n]*_seq"? OWNER [^\n]*);\n//mg;
        $out =~ s/^ALTER TABLE [^\n]* ADD GENERATED .*?\);\n//msg;
        $out =~ s/^ALTER TABLE [^\n]* SET DEFAULT nextval.*\n//mg;
        $out =~ s/ DEFAULT randflake\.randflake(?:53)?_(?:generate|next)\(\)//g;
        $out =~ s/OPERATOR\(randflake\.(\S+)\)/$1/g;
        $out =~ s/\b(?:integer|bigint|randflake\.randflake)\b/key/g;
        $out =~ s/,$//mg;
        $out =~ s/(?:ADD TABLE ONLY \S+ \S+orders \(|\(dependencies\) ON )\K[\w, ]+/join ', ', sort split m{, | (?=FROM)}, $&/ge;
    }
    return join "\n", sort split /\n/, $out;
}

sub differing($dump, $other) {
    my %count;
    $count{$_}++ for split /\n/, $dump;
    $count{$_}-- for split /\n/, $other;
    return join "\n", map { ($count{$_} > 0 ? '+' : '-') . $_ } sort grep { $count{$_} } keys %count;
}

my ($content, $dump, $dump_without_keys) = (content('base'), dump_of('base'), dump_of('base', 1));

# Checks that keys have this type, that all else is unchanged, and that new rows get keys.
sub same_but_for_keys($db, $type, $name) {
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
INSERT INTO line ("order", customer, n, item) SELECT o.id, o.customer, n, 'load' FROM orders AS o JOIN "Cust;omer" ON "I d" = customer, generate_series(1, 2) AS n WHERE name = 'load new';
SELECT o.id::text !~ '^\d{1,7}$', (SELECT count(*) FROM line WHERE "order" = o.id AND line.customer = "I d"), EXISTS (SELECT FROM "Cust;omer" WHERE "I d" = o.customer)
FROM orders AS o JOIN "Cust;omer" ON "I d" = customer WHERE name = 'load new';
SQL
}

# --- the plan ----------------------------------------------------------------------------------
copy('plan');
my @plan = rows_of('plan', "SELECT * FROM $tool.plan()");
sub planned { my ($what) = @_; return [ sort map { $_->{object} =~ s/"od'd ""x"""\.//gr } grep { $_->{what} eq $what } @plan ]; }
is_deeply(planned('blocker'), [], 'plan: nothing is in the way');
is_deeply(planned('moves'),
    [ '"Cust;omer"."I d"', '"Cust;omer".boss', 'card.customer', 'event.customer', 'event.id', 'line."order"', 'line.customer', 'orders.customer', 'orders.id', 'stamp.card' ],
    '  keys, and what refers to them through each other');
is_deeply(planned('made again'), [
        'default value for big.name', 'function last_order()', 'function of_big(big)', 'index per_customer_key',
        'materialized view per_customer', 'policy own on stamp', 'publication relation orders in publication everything',
        'rule no_total on orders',
        (map { "table constraint $_" } '"boss\'s" on "Cust;omer"', 'card_customer_fkey on card', 'event_customer_fkey on event', 'line_order_fkey on line', 'of on orders',
            'pair on line', 'stamp_card_fkey on stamp', 'twice on event_1'), 'trigger big_insert on big', 'trigger changes on orders', 'view big', 'view bigger', 'view of_january' ],
    '  what is made again');
ok(@{ planned('application') } > 9, '  and the losses of programs');
is(differing(dump_of('plan'), $dump), '', '  it changes nothing');

sql('plan', <<'SQL');
CREATE DOMAIN number AS integer;
CREATE TABLE hub (id serial PRIMARY KEY, twice integer GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE spoke (id number PRIMARY KEY REFERENCES hub, hub_id integer DEFAULT 1 REFERENCES hub);
CREATE TABLE wheel (id serial PRIMARY KEY REFERENCES hub, EXCLUDE (id WITH =), hub_id integer, thing_id text, thing_type text);
CREATE TABLE by_id (id serial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE by_rest (hub_id integer REFERENCES hub) PARTITION BY LIST ((hub_id % 4));
CREATE TABLE by_day (day date, hub_id integer REFERENCES hub) PARTITION BY RANGE (day);
CREATE TABLE by_both (a integer, b integer, hub_id integer, day date) PARTITION BY LIST (hub_id);
ALTER TABLE by_both DROP a, DROP b;
ALTER TABLE by_day ATTACH PARTITION by_both DEFAULT;
CREATE TABLE by_event (event_id integer, day date, CONSTRAINT by_event FOREIGN KEY (event_id, day) REFERENCES event);
CREATE TABLE of_rows (r hub);
CREATE FUNCTION find_hub(n integer) RETURNS integer LANGUAGE sql AS 'SELECT id FROM hub WHERE id = n';
SQL
@plan = grep { $_->{object} =~ /hub|spoke|wheel|by_|of_rows/ } rows_of('plan', "SELECT * FROM $tool.plan()");
is_deeply(planned('blocker'), [ 'by_day.hub_id', 'by_event on by_event', 'by_id.id', 'by_rest.hub_id', 'default value for hub.twice', 'spoke.hub_id', 'spoke.id', 'table column of_rows.r', 'wheel.id', 'wheel.id', 'wheel_id_excl on wheel' ],
    'plan: blockers') or diag(explain(\@plan));
is_deeply(planned('look'), [ 'column wheel.hub_id', 'column wheel.thing_id', 'function find_hub(integer)' ], '  and possible problems');
error_is($node, "SELECT $tool.transaction('\"od''d \"\"x\"\"\".spoke')", '55000', { message => qr/cannot be moved yet/, detail => qr/is the partition key/ },
    '  a group with blockers is refused', database => 'plan');
run('plan', $_->{remedy} =~ s/--.*//sr) for grep { $_->{what} eq 'blocker' && $_->{remedy} =~ /^ALTER/ } @plan;
sql('plan', 'DROP TABLE of_rows');
@plan = grep { $_->{object} =~ /hub|spoke|wheel|by_/ } rows_of('plan', "SELECT * FROM $tool.plan()");
is_deeply([ grep { !/by_/ } @{ planned('blocker') } ], [ 'spoke.hub_id', 'wheel_id_excl on wheel' ], '  their SQL removes them')
  or diag(explain(\@plan));

my ($with) = $dump =~ /^(ALTER PUBLICATION .* WHERE .*)$/m;
my $without = $with =~ s/ WHERE .*/;/r;

# --- at once -----------------------------------------------------------------------------------
my $old_keys = q{SELECT count(*) FROM orders WHERE total > 0 AND id::text ~ '^\d{1,4}$'};
for my $way ([qw(bigint all bigint)], [qw(bigint new bigint)], [qw(53 all bigint)], [qw(randflake all randflake)]) {
    my ($target, $rows, $type) = @$way;
    my $db = copy("at_once_${target}_$rows");
    if ($target eq 'randflake') {
        my ($blocker) = grep { $_->{what} eq 'blocker' && $_->{object} =~ /publication/ } rows_of($db, "SELECT * FROM $tool.plan('randflake')");
        is(run($db, $blocker->{remedy}), '', 'a publication with WHERE is in the way of the type');
    }
    my @statements = map { $_->{transaction} } rows_of($db, "SELECT * FROM $tool.transaction($orders, '$target', '$rows')");
    isnt(run($db, map { /^COMMIT/ ? 'SELECT 1 / 0;' : $_ } @statements), '', "$target, $rows rows: a transaction that fails");
    is(differing(dump_of($db), $dump), $target eq 'randflake' ? "-$with\n+$without" : '', '  changes nothing');
    is(run($db, @statements), '', "$target, $rows rows: the transaction");
    same_but_for_keys($db, $type, '  afterwards');
    is(sql($db, $old_keys), $rows eq 'new' ? 2000 : 0, '  old keys');
    is(sql($db, q{SELECT count(*) FROM orders WHERE id::bigint NOT BETWEEN 0 AND (1::bigint << 53) - 1}), 0, '  all of 53 bits') if $target eq '53';
    error_is($node, "SELECT $tool.transaction($orders, 'bigint')", '42704', { message => qr/no generated key/ }, '  it is moved', database => $db);
}
sql('at_once_53_all', 'TRUNCATE orders CASCADE; ALTER TABLE orders ALTER id DROP DEFAULT, ALTER id ADD GENERATED BY DEFAULT AS IDENTITY');
error_is($node, "SELECT $tool.transaction($orders, '53')", '42P07', { message => qr/has the numbers of an earlier move$/, hint => qr/rename/ },
    'the numbers of an earlier move are not lost', database => 'at_once_53_all');
run('at_once_bigint_all', "ALTER PUBLICATION everything SET TABLE $schema.orders (id, total, customer), $schema.card");
is(run('at_once_bigint_all', map { $_->{transaction} } rows_of('at_once_bigint_all', "SELECT * FROM $tool.transaction($orders, 'randflake')")), '',
    'identifiers move on to the type');
same_but_for_keys('at_once_bigint_all', 'randflake', '  afterwards');
is( sql('at_once_bigint_all', qq{SELECT count(*) FROM orders JOIN $tool."""od'd """"x"""""".orders.id" ON new = id::bigint WHERE total > 0}), 2000, '  and stay the same');
error_is($node, "SELECT $tool.transaction($orders, 'float')", '22023', { message => qr/unknown target/ }, 'an unknown target', database => 'plan');

# --- online steps ------------------------------------------------------------------------------
# The program adds a customer with orders, and sometimes inserts the orders first. Then it changes
# the customer's key, moves the orders to another customer, and deletes some rows.
my $program = $node->basedir . '/program.sql';
append_to_file($program, <<"SQL");
\\set k random(-2000000000, -1000)
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
\\if :k % 8 = 0
INSERT INTO orders (customer, total) VALUES (:k, :k);
INSERT INTO "Cust;omer" ("I d", name) VALUES (:k, 'load ' || :k);
\\else
INSERT INTO "Cust;omer" ("I d", name) VALUES (:k, 'load ' || :k);
INSERT INTO orders (customer, total) VALUES (:k, :k);
\\endif
INSERT INTO line ("order", customer, n, item) SELECT id, customer, 1, 'load' FROM orders WHERE customer = :k;
INSERT INTO card (customer, number) VALUES (:k, 'load ' || :k);
INSERT INTO stamp (card, at) VALUES (:k, '2027-01-01');
INSERT INTO event (customer, day, note) VALUES (:k, date '2026-01-01' + :k % 40, 'load ' || :k);
INSERT INTO "Cust;omer" (name, boss) VALUES ('load child of ' || :k, :k) RETURNING "I d" AS child \\gset
INSERT INTO orders (customer, total) VALUES (:child, :k - 1);
UPDATE orders SET customer = :child WHERE customer = :k;
UPDATE "Cust;omer" SET "I d" = 1 - :k WHERE "I d" = :k;
UPDATE event SET day = day + 31 WHERE note = 'load ' || :k;
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
    my $enough = sql($db, $written) + 3;
    my $go_on = wait_until { $programs->pump_nb if $programs->pumpable; $errors =~ /abort/ || sql($db, $written) >= $enough };
    die "the programs do not write: $errors" if !$go_on || $errors =~ /abort/;
}

sub stop_programs {
    ok($programs->pumpable, 'the programs still run');
    $programs->kill_kill;
    is(join("\n", $errors =~ /^(.*(?:ERROR|abort|FATAL).*)$/mg), '', '  none of their statements failed');
    is( sql($db, q{SELECT count(*) FROM orders JOIN "Cust;omer" ON "I d" = customer WHERE total < -1000}
              . q{ AND name NOT IN ('load child of ' || total, 'load child of ' || total + 1, 'load ' || total)}),
        0, '  and their rows belong together');
    is(sql($db, q{SELECT count(*) FROM event LEFT JOIN "Cust;omer" ON "I d" = customer WHERE note LIKE 'load%' AND name IS DISTINCT FROM note}), 0,
        '  those of partitions too');
}

# Rolls back, or fails and names tables with stronger locks.
my $stronger_locks = q{DO $$ DECLARE locked text := (SELECT string_agg(c.relname, ', ') FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.mode = 'AccessExclusiveLock' AND c.relkind IN ('r', 'p')); BEGIN IF locked <> '' THEN RAISE 'locked: %', locked; END IF; END $$; ROLLBACK;};
sub kill_within($statement) {
    my $others = q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()};
    if ($statement =~ /done\(1, (\d+)\).*^COMMIT;\z/ms) {
        my $n = $1;
        # A stronger lock than the first one could deadlock with a program.
        is(run($db, $statement =~ s/^COMMIT;\z/$stronger_locks/mr), '', "no stronger lock: step $n") if $statement =~ /IN SHARE ROW EXCLUSIVE/;
        isnt(run($db, $statement =~ s/^COMMIT;\z/SELECT pg_terminate_backend(pg_backend_pid()); COMMIT;/mr), '', "killed: step $n");
    } elsif ($statement =~ /^CALL.*fill\(1, (\d+)/) {
        my $n = $1;
        sql($db, "UPDATE $tool.move SET pages = 1, pause = '1h'");
        my $session = start_session($node, "\\c $db", $statement);
        $node->poll_query_until($db, "SELECT page > 0 FROM $tool.step WHERE n = $n") or give_up("step $n does not begin");
        $node->poll_query_until($db, "$others AND query LIKE 'CALL%'");
        isnt((finish_session($session))[1], '', "killed: step $n");
        sql($db, "UPDATE $tool.move SET pages = 7, pause = '0'");
    } elsif ($statement =~ /^CREATE .*? CONCURRENTLY .*? ON (.*?) USING/) {
        my $open = start_session($node, "\\c $db", "BEGIN; LOCK TABLE $1 IN ROW EXCLUSIVE MODE; SELECT pg_advisory_lock(1), pg_sleep(3600)");
        $node->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND granted}) or give_up('no open transaction');
        my $session = start_session($node, "\\c $db", $statement);
        $node->poll_query_until($db, "$others AND query LIKE 'CREATE%CONCURRENTLY%' AND wait_event_type = 'Lock'") or give_up('no index is built');
        isnt((finish_session($session))[1], '', 'killed: an index');
        $node->poll_query_until($db, "$others AND query LIKE '%pg_advisory_lock(1)%'");
        finish_session($open);
    } else {
        die "not a statement of the steps: $statement";
    }
}

# Runs the remaining steps, as psql's \gexec would. `count` limits the number of steps. `kill` kills
# each step once and runs it again. `load` checks that programs keep working. `all` includes step 8.
sub run_steps(%options) {
    my @steps = map { $_->{n} } rows_of($db, "SELECT n FROM $tool.step WHERE done IS NULL AND step < " . ($options{all} ? 9 : 8) . ' ORDER BY n');
    splice @steps, $options{count} if $options{count} && $options{count} < @steps;
    my @left = left($db, 1);
    for my $n (@steps) {
        if ($options{kill}) {
            run($db, shift @left) if $left[0] =~ /begin\(1, /;  # an index
            kill_within($left[0]);
            @left = left($db, 1) if $left[0] !~ /^BEGIN;/; # a killed transaction changes nothing
        }
        my $statement;
        do {
            $statement = shift @left;
            my $error = run($db, $statement);
            die "step $n: $error" if $error;
        } until $statement =~ /^(?:BEGIN;|CALL |SELECT \S*\.done\()/;
        let_them_write() if $options{load};
    }
    is(sql($db, "SELECT count(*) FROM $tool.step WHERE done IS NULL AND n <= $steps[-1]"), 0, scalar(@steps) . ' steps were run');
}

sub start {
    ($db, my $arguments) = @_;
    copy($db);
    run($db, "ALTER PUBLICATION everything SET TABLE $schema.orders (id, total, customer), $schema.card") if $arguments =~ /'randflake'/;
    my $before = $arguments =~ /'randflake'/ ? dump_of($db) : $dump;
    sql($db, "SELECT $tool.start($orders$arguments); UPDATE $tool.move SET pages = 3");
    is(differing(dump_of($db), $before), '', "$db: start() changes nothing");
    return $before;
}

start('online', '');
error_is($node, "SELECT $tool.start($orders)", '55006', { message => qr/is being moved already/ }, '  nor does it begin twice', database => $db);
start_programs();
let_them_write();
run_steps(kill => 1, load => 1);
ok(sql($db, q{SELECT count(*) FROM orders WHERE old_id IS NULL OR total > 0 AND old_id NOT BETWEEN 1 AND 2000}) == 0, 'old keys stay for a while');
run_steps(all => 1, kill => 1, load => 1);
stop_programs();
same_but_for_keys($db, 'bigint', 'online');
error_is($node, "SELECT $tool.undo(1)", '55000', { message => qr/cannot be undone/ }, '  there is no way back', database => $db);

# Runs a step out of order. Then creates objects that the plan does not know.
start('online_new', ", 'bigint', 'new'");
my @statements = left($db);
like(run($db, $statements[2]), qr/step 3 of move 1 is not the next one/, 'steps are in order');
run_steps(count => sql($db, "SELECT min(n) - 1 FROM $tool.step WHERE step = 7"));
sql($db, 'CREATE VIEW later AS SELECT id FROM orders');
my ($swap) = grep { /RENAME COLUMN/ } @statements;
like(run($db, $swap), qr/what hangs on the tables has changed/, 'a view that the plan did not know is not left behind');
sql($db, 'CREATE INDEX later_index ON orders (id); CREATE TABLE later_table ("order" bigint CONSTRAINT later_key REFERENCES orders)');
like(run($db, $swap), qr/$_ was made since move 1 began/, "  nor is $_") && sql($db, $_ =~ /^i/ ? 'DROP INDEX later_index' : 'DROP TABLE later_table')
  for 'foreign key later_key .*', 'index .*later_index';
run_steps(all => 1);
is(sql($db, 'SELECT count(*) FROM later JOIN orders USING (id)'), 2000, '  and moves once it is known');

sql($db, 'DROP VIEW later');
same_but_for_keys($db, 'bigint', $db);
is(sql($db, $old_keys), 2000, '  old keys');
start('online_type', ", 'randflake'");
run_steps(all => 1);
same_but_for_keys($db, 'randflake', $db);
is(sql($db, $old_keys), 0, '  old keys');

# --- the way back ------------------------------------------------------------------------------
for my $count (0, 2, 14, 40, 1000, 1001) {
    my $before = start("back_$count", $count == 1001 ? ", 'randflake'" : '');
    run_steps(count => $count) if $count;
    my $state = sql($db, "SELECT state FROM $tool.move");
    is($state, $count < 1000 ? 'moving' : 'swapped', "  $count steps");
    if ($state eq 'swapped') {
        start_programs() if $count == 1000;
        let_them_write() if $count == 1000;
        sql($db, q{INSERT INTO "Cust;omer" (name, boss) SELECT 'load x', "I d" FROM "Cust;omer" WHERE name = 'c1'});
    }
    sql($db, "SELECT $tool.undo(1)");
    stop_programs() if $count == 1000;
    run_steps(all => 1, kill => $count == 1000);
    is(differing(dump_of($db), $before), '', '  undone: the schema is as before');
    is(content($db), $content, '  and so are rows');
    is(sql($db, "SELECT state FROM $tool.move"), 'undone', '  it knows');
    is( sql($db, q{INSERT INTO "Cust;omer" (name) VALUES ('load last'); SELECT count(*) FROM "Cust;omer" WHERE name ~ '^load (x|last)' AND "I d" BETWEEN 301 AND 1000000}
              . q{ AND (name = 'load last' OR boss = (SELECT "I d" FROM "Cust;omer" WHERE name = 'c1'))}),
        $state eq 'swapped' ? 2 : 1, '  rows get numbers again, and those that were inserted meanwhile have one');
}

$node->safe_psql('online', "DROP SCHEMA $tool CASCADE");
same_but_for_keys('online', 'bigint', 'without the tool');

# --- Django ------------------------------------------------------------------------------------
my $django = $node->basedir . '/django_recipe.py';
append_to_file($django, <<'PYTHON');
import sys
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": sys.argv[2], "PORT": sys.argv[3], "NAME": "django"}},
    INSTALLED_APPS=["django.contrib." + name for name in ("auth", "contenttypes", "sessions", "admin", "sites")],
    SECRET_KEY="x", SITE_ID=1, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
django.setup()
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
if sys.argv[1] == "first":
    call_command("migrate", verbosity=0)
for n in range(5):
    user = User.objects.create_user(f"{sys.argv[1]} {n}")
    group = Group.objects.create(name=f"{sys.argv[1]} {n}")
    user.groups.add(group)
    group.permissions.add(*Permission.objects.order_by("codename")[:n])
    LogEntry.objects.log_action(user.pk, ContentType.objects.get_for_model(User).pk, user.pk, str(user), 1)
print([(u.username, [g.name for g in u.groups.all()], sorted(p.codename for p in Permission.objects.filter(group__user=u)),
        u.logentry_set.get().content_type.model) for u in User.objects.filter(username__startswith="first").order_by("username")])
PYTHON
SKIP: {
    skip 'python3-django and python3-psycopg2 are not installed', 1 if system('/usr/bin/python3 -c "import django, psycopg2" 2>/dev/null');
    $node->sql('CREATE DATABASE django');
    $node->safe_psql('django', 'CREATE EXTENSION randflake');
    my @program = ('/usr/bin/python3', $django);
    my ($first) = run_command([ @program, 'first', $node->host, $node->port ]);
    like($first, qr/'first 4', \['first 4'\], \['add_\w+', /, 'Django: its program runs');
    install('django');
    my $online = 0;
    for my $group (split /\n/, $node->safe_psql('django', "SELECT DISTINCT grp FROM $tool.plan() WHERE what = 'moves' AND grp IS NOT NULL ORDER BY 1")) {
        my $sql = $online++ ? "SELECT $tool.todo($tool.start('$group'), true)" : "SELECT $tool.transaction('$group')";
        is($node->psql('django', "$sql \\gexec", on_error_stop => 1), 0, "  the group of $group moves");
    }
    my ($again) = run_command([ @program, 'again', $node->host, $node->port ]);
    is($again, $first, '  Django finds its rows, and makes others');
    is($node->safe_psql('django', 'SELECT count(*), count(*) FILTER (WHERE id BETWEEN 0 AND 1000) FROM auth_user'), '10|0', '  with new keys');
}

# --- docs/migrating.md -------------------------------------------------------------------------
# Reads each step's locks on both tables from the page, as "step|orders|order_line".
my %documented;
for my $line (grep { /^\| \d \|/ && !/\| (?:fill|indexes)/ } split /\n/, slurp_file('docs/migrating.md')) {
    my ($step, undef, @locks) = map { s/^\s+|\s+$//gr } (split /\|/, $line)[ 1 .. 4 ];
    $documented{ join '|', $step, map { /^`(.+)`/ ? $1 : '' } @locks } = 1;
}
my @by_strength = ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock',
    'ExclusiveLock', 'AccessExclusiveLock');

sub locks_of($step, $statement) {
    my $query = q{SELECT 'lock ' || relation::regclass || ' ' || mode FROM pg_locks WHERE granted AND pid = pg_backend_pid()};
    my (undef, $out) = $node->psql($db, $statement =~ s/^COMMIT;\z/$query; ROLLBACK;/mr, on_error_stop => 1);
    return join '|', $step, map {
        my %held = map { $_ => 1 } $out =~ /^lock public\.$_ (\w+)$/mg;
        my ($strongest) = grep { $held{$_} } reverse @by_strength;
        ($strongest // '') =~ s/Lock$//r =~ s/(?<=[a-z])(?=[A-Z])/ /gr =~ tr/a-z/A-Z/r
    } qw(orders order_line);
}

sub shell($name) {
    local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);
    command_ok([ 'sh', '-ec', block($name) ], "the page: $name");
}

sub shop {
    $db = 'shop';
    $node->sql("DROP DATABASE IF EXISTS $db");
    $node->sql("CREATE DATABASE $db");
    $node->safe_psql($db, 'CREATE EXTENSION randflake_type CASCADE');
    $node->safe_psql($db, block('example'));
    $node->safe_psql($db, q{INSERT INTO orders (customer) SELECT 'customer ' || n FROM generate_series(1, 500) AS n;}
          . q{INSERT INTO order_line SELECT id, 'item of ' || customer FROM orders});
    shell('install');
}

sub check_shop($name) {
    is( $node->safe_psql($db, q{SELECT count(*), count(*) FILTER (WHERE item = 'item of ' || customer), bool_and(id::text !~ '^\d{1,4}$') FROM order_items}),
        '500|500|t', "the page: $name");
}

shop();
like($node->safe_psql($db, block('plan')), qr/^orders\|moves\|public\.order_line\.order_id\|.*integer to bigint/m, 'the page: the plan');
# The move must not call mallory's functions, which have the names of randflake's functions.
my $traps = join '', map { "CREATE SCHEMA $_ AUTHORIZATION mallory; SET ROLE mallory;"
      . " CREATE FUNCTION $_.randflake_generate() RETURNS bigint LANGUAGE sql RETURN 1;"
      . " CREATE FUNCTION $_.randflake_unmask(bigint, text) RETURNS bigint LANGUAGE sql RETURN 1; RESET ROLE;" } qw(a_trap randflake);
$node->safe_psql($db, "CREATE ROLE mallory; $traps");
my $masks = $node->safe_psql($db, block('masks'));
unlike($masks . $node->safe_psql($db, "SELECT $tool.transaction('orders')"), qr/a_trap|randflake\.randflake_/, '  nobody else\'s functions');
$node->sql('CREATE DATABASE bare');
$node->safe_psql('bare', "$traps BEGIN; " . slurp_file($script) . 'COMMIT');
error_is($node, "SELECT $tool.plan()", '42883', { hint => qr/CREATE EXTENSION/ }, '  also where there are no others', database => 'bare');
$node->safe_psql('bare', 'ALTER FUNCTION randflake.randflake_generate() OWNER TO CURRENT_USER');
is($node->safe_psql('bare', "SELECT generator FROM $tool.target('bigint')"), 'randflake.randflake_generate()', '  but the owner\'s, of the managed edition');
$node->safe_psql($db, "CREATE SCHEMA api; $masks");
is( $node->safe_psql($db, q{SELECT o.customer, o.id = randflake_mask(7, 'public.orders') FROM api.orders(randflake_mask(7, 'public.orders')) AS o}),
    'customer 7|t', '  masks instead');
$node->safe_psql($db, 'DROP SCHEMA api CASCADE');
shell('at_once');
check_shop('at once');
is($node->safe_psql($db, q{SELECT currval(pg_get_serial_sequence('orders', 'id')) IS NULL}), 't', '  programs lose currval()');
$node->safe_psql($db, "INSERT INTO orders (customer) VALUES ('customer 501'); BEGIN; "
      . 'ALTER TABLE order_line DROP CONSTRAINT order_line_order_id_fkey; ' . block('old_numbers')
      . 'UPDATE order_line SET order_id = number FROM numbers WHERE numbers.id = order_id;'
      . 'UPDATE orders SET id = number FROM numbers WHERE numbers.id = orders.id; COMMIT');
is($node->safe_psql($db, q{SELECT count(*) FILTER (WHERE customer = 'customer ' || id), max(id) FROM orders}), '501|501',
    '  rows get their old numbers back, and a new one the next');
is($node->safe_psql($db, q{SELECT count(*) FROM order_line WHERE item = 'item of customer ' || order_id}), 500, '  references too');
error_is($node, q{INSERT INTO orders (customer) VALUES ('x'); SELECT lastval()}, '55000', { message => qr/lastval/ }, '  and lastval()', database => $db);

shop();
$node->safe_psql($db, 'CREATE TABLE migrations (name text)');
is($node->safe_psql($db, 'BEGIN; ' . block('in_a_migration') . q{; INSERT INTO migrations VALUES ('move') RETURNING name; COMMIT}), 'move',
    'the page: in a migration, which goes on with its own tables');
check_shop('in a migration');

shop();
$node->safe_psql($db, block('start'));
$node->safe_psql($db, block('pace'));
my %seen;
while (my ($step) = rows_of($db, "SELECT n, step, sql FROM $tool.step WHERE done IS NULL AND step < 8 ORDER BY n LIMIT 1")) {
    $seen{ locks_of($step->{step}, $step->{sql}) } = 1 if $step->{sql} =~ /^BEGIN/;
    run_steps(count => 1);
}
$seen{ locks_of(8, (left($db, 1))[0]) } = 1;
is_deeply([ sort keys %seen ], [ sort keys %documented ], 'locks are as documented');
check_shop('by steps');
is( $node->safe_psql($db, q{INSERT INTO orders (customer) VALUES ('x'); SELECT lastval() = old_id FROM orders WHERE customer = 'x'}),
    't', '  lastval() gives the old number until step 8');
$node->safe_psql($db, block('undo'));
run_steps(all => 1);
is($node->safe_psql($db, 'SELECT min(id), max(id), count(*) FROM order_items'), '1|500|500', '  and back');

shop();
$node->safe_psql($db, block('start'));
shell('run');
shell('clean_up');
check_shop('all steps');
$node->stop;
every_block_was_used();
done_testing();
