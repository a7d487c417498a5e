# Moves tables of a hostile role with migrate/randflake_migrate.sql, as a superuser. The tables'
# names contain SQL injections, and the role's code runs wherever PostgreSQL can call it. Checks
# that this code never runs as another role, and that a move drops only its own objects. After each
# statement of a move, programs swap the keys of pairs of rows. Joins must return the same rows as
# in a copy that has not moved.
use Randflake;

$RandflakeSessions::keep = 1;
my $node = start_server('main', settings => { node_id => 1, secret => random_secret(), max_wait => '1h' },
    extensions => [], conf => "jit = off\n");
my ($script, $tool) = ('migrate/randflake_migrate.sql', 'randflake_migrate');
my $db;

sub database {
    ($db) = @_;
    $node->sql("CREATE DATABASE $db");
    $node->safe_psql($db, 'CREATE EXTENSION randflake');
    command_ok([ 'psql', '-X', '-q', '-1', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($db), '-f', $script ], "$db: the script is installed");
}

sub sql { my ($sql) = @_; return $node->safe_psql($db, $sql); }
sub statements { my ($call) = @_; return split /\0/, sql("SELECT string_agg(s, chr(1) ORDER BY n) FROM $tool.$call WITH ORDINALITY AS t (s, n)") =~ tr/\1/\0/r; }

sub run {
    for my $statement (@_) {
        my ($status, $text, $left) = (1, '', 100);
        ($status, undef, $text) = $node->psql($db, $statement, on_error_stop => 1) while $status && $left-- && ($left == 99 || $text =~ /statement timeout|lock timeout/);
        return $text if $status;
    }
    return '';
}

# --- attacks -----------------------------------------------------------------------------------
$node->sql('CREATE ROLE mallory LOGIN; CREATE ROLE other LOGIN');

# Runs SQL as $role, so that the planner does not call functions of indexes as a superuser.
sub as_role($role, $sql) {
    my ($status, $out, $text) = $node->psql($db, "SET search_path = lows; $sql", on_error_stop => 1, extra_params => [ '-U', $role ]);
    die $text if $status;
    return $out;
}
sub as_mallory { return as_role('mallory', @_); }
sub ident { my ($name) = @_; return '"' . $name =~ s/"/""/gr . '"'; }
sub literal { my ($text) = @_; return "'" . $text =~ s/'/''/gr . "'"; }
my @attacks = ('$f$;ALTER ROLE mallory SUPERUSER;--', q{"';ALTER ROLE mallory SUPERUSER;--}, '%s %1$I %', "\n\\! id\n--", ' WHERE ' . "$tool.unchanged(",
    "\x{c3}\x{bc}" x 28 . 'x');
my ($count, %name) = (0);

# Returns a name that contains an attack. The same word always gets the same name.
sub name { my ($word) = @_; return $name{$word} //= ident(sprintf '%.3s%02d%s', $word, ++$count, $attacks[ $count % @attacks ]); }

sub attacked {
    database($_[0]);
    $node->safe_psql($db, 'CREATE SCHEMA lows AUTHORIZATION mallory');
    as_mallory(<<'SQL');
CREATE TABLE witness (place text, name text);
GRANT INSERT ON witness TO PUBLIC;
CREATE FUNCTION spy(place text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    attack text;
BEGIN
    FOREACH attack IN ARRAY ARRAY['RESET ROLE', 'RESET SESSION AUTHORIZATION', 'ALTER ROLE mallory SUPERUSER', 'SET search_path = lows'] LOOP
        BEGIN EXECUTE attack; EXCEPTION WHEN OTHERS THEN NULL; END;
    END LOOP;
    INSERT INTO lows.witness VALUES (place, current_user);
    RETURN true;
END $$;
CREATE FUNCTION sure(place text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lows.spy(place)';
CREATE FUNCTION less(integer, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT lows.spy($2)';
CREATE OPERATOR <~ (FUNCTION = less, LEFTARG = integer, RIGHTARG = text);
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM lows.spy('trigger'); RETURN NEW; END $$;
CREATE DOMAIN spied AS integer CHECK (lows.sure('literal'));
CREATE TYPE pair AS (a spied);
CREATE TYPE kind AS ENUM ('k');
CREATE FUNCTION kind_number(kind) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN lows.spy('cast') THEN 1 END $$;
CREATE CAST (kind AS integer) WITH FUNCTION kind_number(kind) AS IMPLICIT;
SQL
    %name = ();
    $count++;  # so that each kind of name gets each attack
    my ($t, $c, $id, $ref, $domain) = map { name($_) } qw(table child id reference domain);
    as_mallory(<<"SQL");
CREATE DOMAIN $domain AS integer CHECK (lows.sure('domain'));
CREATE TABLE $t ($id serial PRIMARY KEY, n integer, k integer DEFAULT 1, twice boolean GENERATED ALWAYS AS (lows.sure('generated')) STORED,
    CONSTRAINT @{[name('check')]} CHECK ($id <> 0 AND sure('check')), CHECK (n <~ 'operator'), UNIQUE (k, $id));
CREATE TABLE $c ($id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, $ref integer, d $domain, k kind DEFAULT 'k',
    CONSTRAINT @{[name('key')]} FOREIGN KEY (k, $ref) REFERENCES $t (k, $id), CONSTRAINT @{[name('single')]} FOREIGN KEY ($ref) REFERENCES $t);
CREATE INDEX @{[name('index')]} ON $t ($id, sure('index')) WHERE sure('index');
CREATE STATISTICS @{[name('statistics')]} ON $id, (sure('statistics')) FROM $t;
CREATE FUNCTION @{[name('function')]}() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT max($id) FROM $t WHERE ('(1)'::pair).a = 1; END;
CREATE VIEW @{[name('view')]} AS SELECT t.$id, spy('view') AS s, ('(1)'::pair).a FROM $t AS t JOIN $c AS c ON c.$ref = t.$id;
CREATE MATERIALIZED VIEW @{[name('matview')]} AS SELECT *, spy('matview') AS more FROM @{[name('view')]};
CREATE RULE @{[name('rule')]} AS ON DELETE TO $t WHERE old.$id = -1 AND ('(1)'::pair).a = 1 AND spy('rule') DO INSTEAD NOTHING;
CREATE TRIGGER @{[name('trigger')]} BEFORE UPDATE ON $t FOR EACH ROW EXECUTE FUNCTION on_row();
CREATE TRIGGER @{[name('when')]} BEFORE UPDATE ON $c FOR EACH ROW WHEN (NEW.$ref > 0 AND ('(1)'::pair).a = 1) EXECUTE FUNCTION on_row();
ALTER TABLE $t ENABLE ALWAYS TRIGGER @{[name('trigger')]}, ENABLE ROW LEVEL SECURITY;
CREATE POLICY @{[name('policy')]} ON $t USING ($id <> 0 AND spy('policy') AND ('(1)'::pair).a = 1);
INSERT INTO $t (n) SELECT n FROM generate_series(1, 300) AS n;
INSERT INTO $c ($ref, d) SELECT $id, 1 FROM $t;
REFRESH MATERIALIZED VIEW @{[name('matview')]};
TRUNCATE witness;
SQL
    sql("GRANT USAGE, CREATE ON SCHEMA lows TO other; GRANT SELECT ON lows.$t TO other; CREATE VIEW lows.theirs AS SELECT $id FROM lows.$t;"
          . ' ALTER VIEW lows.theirs OWNER TO other');
    return ("lows.$t", "lows.$c");
}

# Checks that mallory's code ran at all of these places, and never as another role.
sub unharmed($way, @places) {
    is(sql('SELECT rolsuper FROM pg_roles WHERE rolname = ' . q{'mallory'}), 'f', "$way: mallory has no more rights");
    is(sql(q{SELECT DISTINCT place, name FROM lows.witness WHERE name <> 'mallory'}), '', '  her code ran as no other role');
    my %seen = map { $_ => 1 } split /\n/, sql('SELECT DISTINCT place FROM lows.witness');
    is(join(' ', grep { !$seen{$_} } @places), '', '  and it did run');
    is(sql(qq{SELECT count(*) FROM pg_proc WHERE pronamespace = '$tool'::regnamespace AND prosecdef AND proowner <> 'mallory'::regrole AND proname <> 'judge'}), 0,
        '  functions that run as their owner are hers');
    is(sql("SELECT bool_or(has_function_privilege('mallory', oid, 'EXECUTE')) FROM pg_proc WHERE proname IN ('judge', 'randflake_decode', 'randflake53_decode')"), 'f',
        '  she can call nothing that tells identifiers from numbers');
}

# Puts a view with mallory's code in the place of a table while a function runs.
sub replaced($table, $what) {
    as_mallory("ALTER TABLE $table RENAME TO hidden; CREATE VIEW $table AS SELECT *, spy('place') FROM hidden");
    my $error = $what->();
    as_mallory("DROP VIEW $table; ALTER TABLE hidden RENAME TO " . $table =~ s/^lows\.//r);
    return $error;
}

for my $way ('transaction', 'steps', 'back before step 7', 'back after it') {
    my ($t, $c) = attacked($way =~ tr/ 7/_/r);
    my ($id, $ref) = (name('id'), name('reference'));
    my $content = "SELECT string_agg(concat_ws(' ', t.n, t.k, t.twice, c.d), ',' ORDER BY t.n) FROM $t AS t JOIN $c AS c ON c.$ref = t.$id";
    my $before = as_mallory("$content; TRUNCATE witness");
    is(sql("SELECT string_agg(object || ': ' || note, ', ') FROM $tool.plan() WHERE what = 'blocker'"), '', "$way: the plan has no blockers");
    is(sql('SELECT DISTINCT place, name FROM lows.witness'), '', '  and runs nothing');
    my $one = $way eq 'transaction';
    sql("SELECT $tool.start(@{[literal($t)]}); UPDATE $tool.move SET pages = 1") if !$one;
    my @steps = $one ? join("\n", statements("transaction(@{[literal($t)]})")) : statements('todo(1)');
    for my $n (0 .. ($way =~ /before/ ? 14 : $#steps)) {
        like(replaced($t, sub { run($steps[$n]) }), qr/is not the one/, "$way: a view in the table's place before statement $n")
          if $steps[$n] !~ /^(?:CREATE|SELECT)/ && $n % 3 == 0;
        is(run($steps[$n]), '', "$way: statement $n") or last;
    }
    if ($way eq 'steps') {
        as_mallory("GRANT USAGE ON SCHEMA lows TO other; GRANT ALL ON $c TO other");
        replaced($t, sub { as_role('other', "INSERT INTO $c ($ref, d) SELECT $ref, 1 FROM $c LIMIT 1") });
        is(sql(q{SELECT string_agg(DISTINCT place, ' ') FROM lows.witness WHERE name = 'other' OR place = 'place'}), 'domain',
            '  who writes to a table asks no view in the place of another one');
        as_mallory("DELETE FROM $c WHERE ctid = (SELECT max(ctid) FROM $c); DELETE FROM witness WHERE name = 'other'");
    }
    sql("SELECT $tool.undo(1)") if $way =~ /back/;
    is(run(statements('todo(1, true)')), '', "$way: the rest") if !$one;
    unharmed($way, $one ? qw(check matview literal cast) : $way =~ /before/ ? 'trigger' : qw(check trigger index matview literal operator));
    is(as_mallory($content), $before, '  joins are the same');
}

# Code that PostgreSQL defers to the end of the transaction would run as the superuser.
my ($t) = attacked('deferred');
as_mallory('CREATE CONSTRAINT TRIGGER late AFTER INSERT ON witness DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION on_row()');
like(run(join "\n", statements('transaction(' . literal($t) . ')')), qr/cannot fire deferred trigger/, 'a deferred trigger does not wait');
unharmed('deferred');

# --- names -------------------------------------------------------------------------------------
database('names');
my $long = 'inventory_production_schedule_assignment_history';
my @long = map { 'n' x 61 . $_ } qw(a b);
sql(<<"SQL");
CREATE TABLE customer (id serial PRIMARY KEY, new_id bigint, name text);
INSERT INTO customer (new_id, name) VALUES (7, 'theirs');
CREATE TABLE ord (v serial PRIMARY KEY, note text);
CREATE INDEX ord_v ON ord (v, note);
CREATE INDEX new_ord_v ON ord (note);
CREATE TABLE zebra (id serial PRIMARY KEY);
INSERT INTO zebra DEFAULT VALUES;
CREATE TABLE production (production_order_id serial PRIMARY KEY);
CREATE TABLE $long (production_order_id integer REFERENCES production, production_line_id integer REFERENCES production);
CREATE TABLE $long[0] (id serial PRIMARY KEY);
CREATE TABLE $long[1] (id serial PRIMARY KEY, "@{[ 'ü' x 30 ]}" integer REFERENCES $long[0], "@{[ 'ü' x 31 ]}" integer REFERENCES $long[0]);
INSERT INTO $long[0] SELECT FROM generate_series(1, 9);
INSERT INTO $long[1] ("@{[ 'ü' x 30 ]}") SELECT id FROM $long[0];
SQL
is(sql("SELECT object FROM $tool.plan() WHERE what = 'blocker'"), 'public.customer.new_id', 'a name that is taken is in the way');
error_is($node, "SELECT $tool.start('customer')", '55000', { detail => qr/customer\.new_id/ }, '  of steps', database => $db);
is(run(statements(q{todo(randflake_migrate.start('ord'), true)})), '', 'an index of others that has a name which looks like ours');
is(sql(q{SELECT count(*) FROM pg_class WHERE relname IN ('new_ord_v', 'ord_v')}), 2, '  stays');
my $move = sql("SELECT $tool.start('zebra')");
my @names = statements("todo($move, true)");
is(run(@names[ 0, 1 ]), '', 'after some steps');
sql("ALTER TABLE zebra DROP new_id, ADD new_id integer DEFAULT 7");
like(run($names[2], $names[3], $names[4]), qr/column new_id of table public\.zebra is not what move $move left there/, '  a column that another one has replaced is noticed');
sql("SELECT $tool.undo($move)");
is(run(statements("todo($move, true)")), '', '  and undo() goes back');
is(sql('SELECT new_id FROM zebra'), 7, '  without it');
sql('ALTER TABLE zebra DROP new_id');
$move = sql("SELECT $tool.start('zebra')");
@names = statements("todo($move, true)");
my ($index) = map { /(randflake_\d+_\d+)/ } grep { /^CREATE/ } @names;
run(@names[ 0, 1 ]);
sql("CREATE INDEX $index ON ord (note)");
error_is($node, "SELECT $tool.todo($move)", '42P07', { message => qr/public\.$index is not the index of step/ }, 'an index of others that has the name of ours', database => $db);
like(run($names[2]), qr/is not/, '  is noticed');
sql("DROP INDEX $index");
sql('ALTER TABLE zebra DISABLE TRIGGER USER, ENABLE TRIGGER USER');
like(run($names[2], $names[3], $names[4]), qr/trigger zzz_randflake_\S+ of table public\.zebra is not what/, '  a trigger that was off for a while is noticed');
sql(q{DO $$ BEGIN EXECUTE (SELECT format('ALTER TABLE zebra ENABLE ALWAYS TRIGGER %I', tgname) FROM pg_trigger WHERE tgrelid = 'zebra'::regclass); END $$});
is(run(grep { /^CREATE|begin/ } statements("todo($move)")), '', '  and when both are gone the steps go on');
is(scalar(grep { /^(?:DROP INDEX|CREATE)/ } statements("todo($move)")), 0, '  and an existing index is neither dropped nor rebuilt');
is(run(statements("todo($move, true)")), '', '  to their end');
sql('CREATE TABLE whole (id serial PRIMARY KEY); CREATE TABLE half (id serial PRIMARY KEY, whole integer REFERENCES whole)');
$move = sql("SELECT $tool.start('whole')");
run((statements("todo($move)"))[ 0 .. 2 ]);
sql('ALTER TABLE whole RENAME TO all_of_it');
like(run((statements("todo($move)"))[0]), qr/table public\.whole is not the one/, 'a table that has another name is noticed');
sql('ALTER TABLE all_of_it RENAME TO whole; DROP TABLE half');
like(run((statements("todo($move)"))[0]), qr/public\.half/, '  and one that is gone');
sql("SELECT $tool.undo($move)");
is(run(statements("todo($move)")), '', '  and undo() goes back without it');
is(run(statements(qq{todo($tool.start('production'), true)})), '', 'names that are equal in their first 50 characters');
for my $way (qq{todo($tool.start('$long[0]', rows => 'new'), true)}, qq{transaction('$long[0]')}) {
    sql("ALTER TABLE $_ ALTER id DROP DEFAULT, ALTER id ADD GENERATED BY DEFAULT AS IDENTITY") for $way =~ /^tran/ ? @long : ();
    is(run($way =~ /^tran/ ? join("\n", statements($way)) : statements($way)), '', "names of 62 bytes: $way");
    is(sql("SELECT count(*) FROM $long[0] AS a JOIN $long[1] AS b ON b.\"@{[ 'ü' x 30 ]}\" = a.id"), 9, '  joins are the same');
}

# --- the shadow column -------------------------------------------------------------------------
my $programs = <<'SQL';
CREATE PROCEDURE exchange(a text, b text) LANGUAGE plpgsql AS $$
DECLARE
    na bigint := (SELECT id FROM parent WHERE label = a);
    nb bigint := (SELECT id FROM parent WHERE label = b);
    other bigint := (SELECT min(id) - 1 FROM parent);
BEGIN
    UPDATE parent SET id = other WHERE label = a;
    UPDATE parent SET id = na WHERE label = b;
    UPDATE parent SET id = nb WHERE id = other;
END $$;
CREATE PROCEDURE again(a text, b text) LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    DELETE FROM parent WHERE label = a RETURNING id INTO n;
    INSERT INTO parent (id, label) VALUES (n, b);
    INSERT INTO child (parent, label) VALUES (n, b);
    UPDATE parent SET id = (SELECT min(id) - 1 FROM parent) WHERE label = b;
    INSERT INTO parent (id, label) VALUES (n, a);
END $$;
CREATE PROCEDURE anew() LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMP TABLE p ON COMMIT DROP AS SELECT id, label FROM parent;
    CREATE TEMP TABLE c ON COMMIT DROP AS SELECT parent, label FROM child;
    CREATE TEMP TABLE l ON COMMIT DROP AS SELECT parent, at, label FROM log;
    TRUNCATE parent CASCADE;
    INSERT INTO log (parent, at, label) SELECT parent, at, label FROM l;
    INSERT INTO child (parent, label) SELECT parent, label FROM c;
    INSERT INTO parent (id, label) SELECT id, label FROM p;
END $$;
CREATE PROCEDURE partition(n integer) LANGUAGE plpgsql AS $$  -- a new one, made or attached, takes rows; an older one goes
BEGIN
    IF n % 2 = 0 THEN
        EXECUTE format('CREATE TABLE log_%s PARTITION OF log FOR VALUES IN (%1$s)', n);
    ELSE
        EXECUTE format('CREATE TABLE log_%s (LIKE log INCLUDING ALL EXCLUDING IDENTITY)', n);
        EXECUTE format('ALTER TABLE log ATTACH PARTITION log_%s FOR VALUES IN (%1$s)', n);
    END IF;
    UPDATE log SET at = n WHERE label ~ '[3-6]$';
    INSERT INTO log (parent, at, label) SELECT parent, n, 'n' || n FROM log WHERE label = 'p9';
    UPDATE log SET at = 1 WHERE at = n AND label ~ '4$';
    IF n > 13 THEN
        UPDATE log SET at = n - 1 WHERE at = n - 3;
        IF n % 3 = 0 THEN
            EXECUTE format('ALTER TABLE log DETACH PARTITION log_%s', n - 3);
        END IF;
        EXECUTE format('DROP TABLE log_%s', n - 3);
    END IF;
END $$;
SQL

sub joins {
    return sql(q{SELECT string_agg(concat_ws(' ', p.label, c.label, f.label), ',' ORDER BY p.label, c.label, f.label)}
          . q{ FROM parent AS p FULL JOIN child AS c ON c.parent = p.id FULL JOIN follower AS f ON f.parent = p.id;}
          . q{ SELECT string_agg(concat_ws(' ', p.label, l.label, l.at), ',' ORDER BY p.label, l.label, l.at) FROM parent AS p FULL JOIN log AS l ON l.parent = p.id});
}
for (qw(still moved)) {
    database($_);
    sql(<<"SQL");
CREATE TABLE parent (id serial PRIMARY KEY, label text UNIQUE);
CREATE TABLE child (id serial PRIMARY KEY, parent integer NOT NULL REFERENCES parent DEFERRABLE INITIALLY DEFERRED, label text);
CREATE TABLE follower (parent bigint REFERENCES parent ON UPDATE CASCADE ON DELETE SET NULL, label text);
CREATE TABLE log (id integer GENERATED BY DEFAULT AS IDENTITY, parent integer REFERENCES parent DEFERRABLE INITIALLY DEFERRED, at integer, label text,
    PRIMARY KEY (at, id)) PARTITION BY LIST (at);
CREATE INDEX ON log (parent);
CREATE TABLE log_1 (label text, at integer NOT NULL, id integer NOT NULL, parent integer);
ALTER TABLE log ATTACH PARTITION log_1 FOR VALUES IN (1);
CREATE TABLE log_2 PARTITION OF log FOR VALUES IN (2);
INSERT INTO parent (label) SELECT 'p' || n FROM generate_series(1, 40) AS n;
INSERT INTO child (parent, label) SELECT id, label FROM parent;
INSERT INTO follower SELECT id, label FROM parent;
INSERT INTO log (parent, at, label) SELECT id, 1 + id % 2, label FROM parent;
$programs
SQL
}
sql("SELECT $tool.start('parent'); UPDATE $tool.move SET pages = 1");
my ($partition, $built) = (10);
for my $direction ('there', 'and back') {
    sql("SELECT $tool.undo(1)") if $direction ne 'there';
    my $todo = 'todo(1' . ($direction eq 'there' ? ')' : ', true)');
    my @steps = statements($todo);
    for (my $n = -1; $n < @steps; $n++) {
        if ($n >= 0 && $steps[$n] =~ /RENAME COLUMN/) {
            like(run($steps[$n]), qr/has changed/, "$direction: partitions that came are noticed");
            ($steps[$n]) = grep { /RENAME COLUMN/ } statements($todo);
            $built = sql("SELECT array_agg(object) FROM $tool.step WHERE rel::text = 'log_1' AND object IS NOT NULL");
        }
        # A transaction refers to a missing key, which another transaction then inserts.
        if ($direction eq 'there' && $n >= 0 && $steps[$n] =~ /ALTER TABLE public\.(child|log|log_1) ADD CONSTRAINT \S+ FOREIGN KEY/) {
            my ($number, $at) = (1000000 + $n, $1 eq 'log' ? $partition - 1 : 1);
            my $row = $1 eq 'child' ? "INSERT INTO child (parent, label) VALUES ($number, 'early');" : "INSERT INTO log (parent, at, label) VALUES ($number, $at, 'early');";
            my $session = start_session($node, '\c moved', "BEGIN; $row DO 'BEGIN WHILE NOT EXISTS (SELECT FROM parent WHERE id = $number) LOOP PERFORM pg_sleep(0.01); END LOOP; END'; COMMIT");
            wait_until { sql(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = 'moved'}) };
            like(run(q{BEGIN; ALTER TABLE follower DISABLE TRIGGER USER; INSERT INTO follower SELECT max(id), 'x' FROM parent}),
                qr/violates check constraint "randflake_1_/, 'no row is without a shadow');
            my $parent = "INSERT INTO parent (id, label) VALUES ($number, 'late $n');";
            sql($parent);
            is((finish_session($session))[1], '', "a row of $1 that comes before what it refers to");
            $db = 'still';
            sql("BEGIN; $parent $row COMMIT");
            $db = 'moved';
        }
        my ($k, $l) = map { 'p' . (7 + (7 * $n + $_) % 30) } 0, 3;
        is(run($steps[$n]), '', "$direction: statement $n") or last if $n >= 0;
        for (qw(still moved)) {
            $db = $_;
            # Like an apply worker, the last call fires ALWAYS triggers, but checks no foreign keys.
            sql("CALL exchange('$k', '$l'); BEGIN ISOLATION LEVEL REPEATABLE READ; CALL exchange('$l', 'p5'); SAVEPOINT s; CALL exchange('$k', '$l');"
                  . " ROLLBACK TO s; CALL exchange('$k', 'p4'); COMMIT; CALL again('$l', 'new $direction $n');" . ($n % 9 == 4 ? ' CALL anew();' : '')
                  . "CALL partition($partition); SET session_replication_role = replica; CALL again('p6', 'applied $direction $n')");
            sql('UPDATE log SET at = 1 WHERE at = 2; DROP TABLE log_2') if $partition == 31;  # its indexes are built
        }
        # Reads the statements again if one of the remaining statements names a dropped partition.
        my $gone = sprintf 'log_(?:%s%d)\\b', ($partition >= 31 ? '2|' : ''), $partition++ - 3;
        splice @steps, $n + 1, @steps, statements($todo) if grep { /$gone/ && !/RENAME COLUMN/ } @steps[ $n + 1 .. $#steps ];
        is(sql("SELECT count(*) FROM pg_inherits WHERE inhrelid = ANY ('$built')") . sql("SELECT count(*) FROM pg_constraint WHERE conparentid <> 0 AND oid = ANY ('$built')"), 21,
            "$direction: the table takes the two indexes and the foreign key of its partition")
          if $n >= 0 && $steps[$n] =~ /RENAME COLUMN/;
        my $moved = joins();
        $db = 'still';
        is($moved, joins(), "$direction: joins are the same after statement $n");
        $db = 'moved';
    }
}
is(sql("SELECT state FROM $tool.move"), 'undone', 'there and back');
$node->stop;
done_testing();
