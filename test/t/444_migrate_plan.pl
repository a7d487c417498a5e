# Checks that the migration's plan finds every column that may refer to a key, and every object that
# stops a move. A blocker stops the move until its printed statement has run. Checks that a move
# never takes a number for an identifier, nor an identifier for a number of a sequence, whatever
# fills a key; and what a move does to triggers' functions and to defaults.
use JSON::PP qw(decode_json);
use Randflake;

$RandflakeSessions::keep = 1;
my $node = start_server('main', settings => { node_id => 1, secret => random_secret(), max_wait => '1h' }, extensions => [],
    conf => "max_locks_per_transaction = 64\njit = off\n");
my $tool = 'randflake_migrate';
my $script = slurp_file('migrate/randflake_migrate.sql');
my $db = 'postgres';
$node->sql("CREATE SCHEMA randflake; CREATE EXTENSION randflake_type SCHEMA randflake CASCADE; BEGIN; $script COMMIT");
$node->sql('CREATE DATABASE filled TEMPLATE postgres');

sub sql { my ($sql) = @_; return $node->safe_psql($db, "SET search_path = public, randflake; $sql"); }
sub rows_of { my ($query) = @_; return @{ decode_json(sql("SELECT coalesce(json_agg(x), '[]') FROM ($query) AS x")) }; }

# --- possible references -----------------------------------------------------------------------
$node->sql(<<'SQL');
CREATE SCHEMA shop;
SET search_path = shop;
CREATE TABLE store (id serial PRIMARY KEY, manager_staff_id integer);
CREATE TABLE staff (id serial PRIMARY KEY, store_id integer REFERENCES store);
CREATE TABLE categories (id bigserial PRIMARY KEY, "parentCategoryId" smallint);
CREATE TABLE customer (customer_no serial PRIMARY KEY);
CREATE TABLE box (item_ids integer[], boxes bigint, category_id bigint, box_id text);
CREATE TABLE box_log (old_ids text[], root_id integer, category bigint, categories text, staff_ids varchar[], customer_no integer, at bigint, thing_id integer, thing_type text);
CREATE TABLE boxes (id serial PRIMARY KEY);
CREATE DOMAIN number AS integer;
CREATE TABLE items (id serial PRIMARY KEY, box_id number);
INSERT INTO items VALUES (1), (2), (3);
INSERT INTO box (item_ids, box_id) VALUES ('{3,1,77}', NULL), ('{}', '7');
INSERT INTO boxes VALUES (7);
SQL

sub columns(@arguments) {
    return { map { $_->{object} =~ s/^column shop\.//r => join ' ', $_->{grp} // 'none', $_->{note} =~ /reference to shop\.(\w+)/, $_->{note} =~ /: (.*)/ }
            grep { $_->{what} eq 'look' && $_->{object} =~ /^column/ } rows_of("SELECT * FROM $tool.plan(" . join(', ', map { "'$_'" } @arguments) . ')') };
}
my ($joins, $over) = ('its old numbers join nothing', 'new keys overflow its 32 bits');
is_deeply(columns('bigint', 'all'), {
        'store.manager_staff_id' => "shop.store staff $over, and $joins",
        'categories."parentCategoryId"' => "shop.categories categories new keys overflow its 16 bits, and $joins",
        'box.item_ids' => "shop.items items $over, and $joins",
        (map { $_ => "shop.boxes boxes $joins" } qw(box.boxes box.box_id)),
        (map { $_ => "shop.categories categories $joins" } qw(box.category_id box_log.category)),
        'box_log.old_ids' => "none $joins",
        'box_log.root_id' => "none $over, and $joins",
        'box_log.staff_ids' => "shop.store staff $joins",
        'box_log.customer_no' => "shop.customer customer $over, and $joins",
        'box_log.thing_id' => "none $over, and $joins",
        'items.box_id' => "shop.boxes boxes $over, and $joins",
    }, 'columns that may refer to a key: by role, plural, array, text, domain, in every style; and the rest of those that end in _id');
my %new = %{ columns('bigint', 'new') };
is(join(' ', sort keys %new), 'box.item_ids box_log.customer_no box_log.root_id box_log.thing_id categories."parentCategoryId" items.box_id store.manager_staff_id',
    '  where old rows keep their numbers, those that new keys overflow');
is(join(' ', grep { !/overflow/ || /join/ } values %new), '', '  of which the plan says so');
is(scalar(grep { /join nothing without a cast/ } values %{ columns('randflake', 'new') }), 13, '  and the type joins none');
is($node->sql("SET search_path = shop; SELECT count(*) > 1 FROM $tool.plan() WHERE grp = 'items'"), 't', '  a group is known by the name of its table');

my %remedy = map { $_->{object} => $_->{remedy} } rows_of("SELECT object, remedy FROM $tool.plan() WHERE what = 'look'");
is($node->sql("BEGIN; $remedy{'column shop.store.manager_staff_id'} SELECT count(*) FROM $tool.plan() WHERE object LIKE '%manager_staff_id' AND what = 'moves'; ROLLBACK"),
    1, '  a foreign key makes it move');
my $move = "DO \$\$ DECLARE s text; BEGIN FOREACH s IN ARRAY ARRAY(SELECT $tool.transaction(%s, '%s')) LOOP IF s NOT IN ('BEGIN;', 'COMMIT;') THEN EXECUTE s; END IF; END LOOP; END \$\$;";
is($node->sql('BEGIN; ' . sprintf("$move $move", "'shop.items'", 'bigint', "'shop.boxes'", 'bigint')
          . $remedy{'column shop.box.item_ids'} . $remedy{'column shop.box.box_id'}
          . q{SELECT item_ids = (SELECT array_agg(new ORDER BY old DESC) || 77::bigint FROM randflake_migrate."shop.items.id" WHERE old IN (1, 3)) FROM shop.box WHERE box_id IS NULL;}
          . 'SELECT count(*) FROM shop.box JOIN shop.boxes ON box_id = id::text; ROLLBACK'), "t\n1", '  arrays and text follow by the statement that the plan prints');

# --- blockers ----------------------------------------------------------------------------------
my $any = $node->sql("SELECT pg_get_functiondef('$tool.group_of'::regproc)") =~ s/blockers IS NOT NULL/false/r;
my $table = 'CREATE TABLE t (id serial PRIMARY KEY, parent integer REFERENCES t, big bigint, n integer); INSERT INTO t (id, big) VALUES (11, 1), (12, 2);';

sub checked($target, $object, $blocked = undef) {
    my $statements = "$table $object;";
    my @plan = split /\n/, $node->sql("BEGIN; $statements SELECT object || ' ' || note FROM $tool.plan('$target') WHERE grp = 't' AND what = 'blocker' AND note NOT LIKE 'online:%'; ROLLBACK");
    like("@plan", $blocked ? qr/$blocked/ : qr/^$/, "$target: $object");
    my ($status, undef, $error) = $node->psql('postgres', "BEGIN; $statements $any; " . sprintf($move, "'t'", $target) . 'ROLLBACK', on_error_stop => 1);
    is($status, $blocked ? 3 : 0, $blocked ? '  which stops it' : "  does not stop it: $error");
    return if !$blocked;
    my $remove = "DO \$\$ BEGIN EXECUTE (SELECT string_agg(remedy, E'\\n') FROM $tool.plan('$target') WHERE grp = 't' AND what = 'blocker' AND note NOT LIKE 'online:%'); END \$\$;";
    ($status, undef, $error) = $node->psql('postgres', "BEGIN; $statements $remove " . sprintf($move, "'t'", $target) . 'ROLLBACK', on_error_stop => 1);
    is($status, 0, "  and goes: $error");
}

for my $case (
    [ 'CREATE INDEX i ON t USING brin (id int4_minmax_multi_ops)', qr/public\.i .*int4_minmax_multi_ops of its brin index/ ],
    [ 'CREATE INDEX i ON t (n int4_ops, id)' ],
    [ 'CREATE INDEX i ON t USING hash (id)' ],
    [ 'CREATE INDEX i ON t (abs(parent))', qr/index public\.i .*: abs\(integer\)/ ],
    [ 'CREATE INDEX i ON t ((id::text))', qr/index public\.i .*a cast in an index/ ],
    [ 'CREATE INDEX i ON t (n) WHERE id > 7', qr/index public\.i .*> with integer/ ],
    [ 'CREATE INDEX i ON t (n) WHERE id <> parent AND parent IS NOT NULL' ],
    [ 'CREATE UNIQUE INDEX i ON t (n, coalesce(parent, -1))', qr/index public\.i .*coalesce with a number/ ],
    [ 'ALTER TABLE t ADD CONSTRAINT c CHECK (id <> n)', qr/constraint c on public\.t .*<> with integer/ ],
    [ 'ALTER TABLE t ADD CONSTRAINT c CHECK (big IS DISTINCT FROM id)', qr/constraint c on public\.t .*= with bigint/ ],
    [ 'ALTER TABLE t ADD CONSTRAINT c CHECK (id NOT IN (7, 8))', qr/constraint c on public\.t .*<> with integer/ ],
    [ 'ALTER TABLE t ADD CONSTRAINT c CHECK (parent <> id AND num_nonnulls(id, parent) > 0 AND id::bigint IS NOT NULL)' ],
    [ 'ALTER TABLE t ADD CONSTRAINT c EXCLUDE (parent WITH =)' ],
    [ 'CREATE POLICY p ON t USING (id > 5)', qr/policy p on public\.t .*> with integer/ ],
    [ 'CREATE VIEW v AS SELECT id, n FROM t WHERE 5 < id', qr/view public\.v .*< with integer/ ],
    [ 'CREATE VIEW v AS SELECT a.id % 2 AS odd FROM t AS a JOIN t AS b ON b.parent = a.id', qr/view public\.v .*% with integer/ ],
    [ 'CREATE VIEW v AS SELECT sum(id) AS s FROM t', qr/view public\.v .*sum\(integer\)/ ],
    [ 'CREATE VIEW v AS SELECT max(id) AS s, count(id) AS n, id = ANY (array_agg(parent)) AS x FROM t GROUP BY id' ],
    [ 'CREATE TABLE o (a text, b text, t integer); CREATE VIEW v AS SELECT o.a FROM t JOIN o ON o.t = t.id', qr/view public\.v .*= with integer/ ],
    [ 'CREATE TABLE o (a text, b text, i integer); CREATE VIEW v AS SELECT s.k FROM (SELECT o.a, o.b, t.id AS k FROM t, o WHERE o.i = 3) AS s JOIN t ON t.id = s.k' ],
    [ 'CREATE VIEW v AS SELECT * FROM (SELECT n, id FROM t UNION ALL SELECT max(id::text)::integer, NULL FROM t) AS s', qr/view public\.v .*UNION with what is no key/ ],
    [ 'CREATE VIEW v AS SELECT n, id FROM t UNION (SELECT 1, parent FROM t EXCEPT SELECT n, id FROM t)' ],
    [ 'CREATE RULE r AS ON UPDATE TO t WHERE new.id < 3 DO INSTEAD NOTHING', qr/rule r on public\.t .*< with integer/ ],
    [ 'CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW WHEN (new.id > old.n) EXECUTE FUNCTION suppress_redundant_updates_trigger()', qr/trigger g on public\.t .*> with integer/ ],
    [ 'CREATE FUNCTION f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT n FROM t WHERE id = 9; END', qr/function public\.f\(\) .*= with integer/ ],
) {
    checked('randflake', @$case);
}
checked('bigint', 'CREATE INDEX i ON t USING brin (id int4_minmax_multi_ops)', qr/int4_minmax_multi_ops of its brin index/);
checked('bigint', 'ALTER TABLE t ADD CONSTRAINT c CHECK (id BETWEEN 0 AND 100)', qr/constraint c on public\.t .*compares a key with a constant/);
checked('bigint', 'CREATE VIEW v AS SELECT id FROM t WHERE abs(id) % 2 = 0');

# Half of all new keys are negative, so comparisons of keys with constants change their meaning. The
# plan must name these comparisons, but they do not stop the move.
my $compare = <<'SQL';
CREATE VIEW v AS SELECT id FROM t WHERE id > 0; CREATE VIEW w AS SELECT id FROM t WHERE n > 0 AND id IS NOT NULL; CREATE POLICY p ON t USING (parent IN (1, 2));
CREATE RULE r AS ON DELETE TO t WHERE 5 >= old.id DO INSTEAD NOTHING; CREATE INDEX i ON t (n) WHERE id > 7; ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0);
SQL
my $looked = "SELECT string_agg(object || ' ' || note, ', ' ORDER BY object) FROM $tool.plan('%s', '%s') WHERE grp = 't' AND what = 'look'; ROLLBACK";
my $half = ' compares a key with a constant: half of all new keys are negative';
is($node->sql("BEGIN; $table $compare" . sprintf($looked, 'bigint', 'all')),
    "index public.i$half, policy p on public.t$half, rule r on public.t$half, view public.v$half", 'comparisons with constants are named');
is($node->sql("BEGIN; " . ($table =~ s/serial/bigserial/r =~ s/integer/bigint/gr) . $compare . sprintf($looked, 'bigint', 'new')),
    "index public.i$half, policy p on public.t$half, rule r on public.t$half, table constraint c on public.t$half, view public.v$half", '  also where only a default changes');
like($node->sql("BEGIN; $table $compare" . sprintf($looked, '53', 'all')), qr/view public\.v .*no order/, '  also with 53 bits');

like($node->sql("BEGIN; CREATE TABLE many (id serial, at integer, PRIMARY KEY (at, id)) PARTITION BY LIST (at);"
          . " SELECT format('CREATE TABLE many_%s PARTITION OF many FOR VALUES IN (%1\$s)', n) FROM generate_series(1, 150) AS n \\gexec\n"
          . "SELECT remedy FROM $tool.plan() WHERE grp = 'many' AND what = 'look'; ROLLBACK"),
    qr/^ALTER SYSTEM SET max_locks_per_transaction = \d+;/, 'many tables need many locks');

# --- statistics targets ------------------------------------------------------------------------
my $told = q{SELECT string_agg(concat_ws(' ', attname, attstattarget, array_to_string(array_remove(attoptions, (SELECT o FROM unnest(attoptions) AS o WHERE o LIKE 'pg\_attver%')), ' ')), ', ' ORDER BY attname)}
  . q{ FROM pg_attribute WHERE attrelid = 't'::regclass AND attname IN ('id', 'parent') UNION ALL SELECT stxname || ' ' || stxstattarget FROM pg_statistic_ext WHERE stxname = 's'};
$node->sql("$table ALTER TABLE t ALTER id SET STATISTICS 333, ALTER parent SET (n_distinct = -0.25, n_distinct_inherited = 44);"
      . 'CREATE STATISTICS s (dependencies) ON id, n FROM t; ALTER STATISTICS s SET STATISTICS 77');
my $before = $node->sql($told);
like($before, qr/id 333 ?, parent .*n_distinct=-0\.25 n_distinct_inherited=44\ns 77$/, 'ANALYZE has a statistics target');
is($node->sql('BEGIN; ' . sprintf($move, "'t'", 'bigint') . "$told; ROLLBACK"), $before, '  which is kept at once');
for my $way ("start('t')", 'undo(1)') {
    $node->sql("SELECT $tool.$way");
    is($node->psql('postgres', "SELECT $tool.todo(1) \\gexec", on_error_stop => 1), 0, "  $way");
    is($node->sql($told), $before, '  keeps it');
}

# Runs the statements that a query returns. Returns the first error.
sub run($query) {
    my ($status, undef, $error) = $node->psql($db, "SET search_path = public, randflake; $query \\gexec", on_error_stop => 1);
    return $status ? $error : '';
}

# --- what a column holds, each target, and rows --------------------------------------------------
$db = 'filled';
my %holds = (
    nothing => '', numbers => 'generate_series(1, 50) AS n', identifiers => 'randflake_generate(50) AS n', of_53_bits => 'randflake53_generate(50) AS n',
    snowflakes => '(SELECT snowflake_generate() AS n FROM generate_series(1, 50)) AS x', masks => q{generate_series(1, 50) AS i, randflake_mask(i, 'x') AS n},
    mixed => '(SELECT generate_series(1, 50) AS n UNION SELECT randflake_generate()) AS x', mixed_53 => '(SELECT generate_series(1, 50) AS n UNION SELECT randflake53_generate()) AS x',
    of_other_node => q{generate_series(1, 50) AS i, randflake_encode(now() - interval '1 day', 77, i) AS n},
);
my %filled = (
    identity => 'GENERATED BY DEFAULT AS IDENTITY', always => 'GENERATED ALWAYS AS IDENTITY', serial => q{DEFAULT nextval('s')}, more => q{DEFAULT nextval('s') * 2},
    ours => 'DEFAULT randflake_generate()', ours_53 => 'DEFAULT randflake53_generate()', kept => q{DEFAULT setval('s', randflake53_generate())},
);
# What stops the move of a sequence's key, and of one that has our default, to the type.
my %stops = (
    identifiers => [1, 0], numbers => [0, 1], nothing => [0, 0],
    map { $_ => [1, 1] } qw(of_53_bits mixed mixed_53 of_other_node snowflakes masks)
);
sql("CREATE SEQUENCE s; SELECT setval('s', 1000); CREATE TABLE held (kind text, n bigint)");
sql("INSERT INTO held SELECT '$_', n FROM $holds{$_}") for grep { $holds{$_} } sort keys %holds;

sub filled($table, $filled, $holds) {
    sql("CREATE TABLE $table (id bigint PRIMARY KEY $filled{$filled}); INSERT INTO $table OVERRIDING SYSTEM VALUE SELECT n FROM held WHERE kind = '$holds'");
}
for my $filled (sort keys %filled) {
    filled("t_${filled}_$_", $filled, $_) for sort keys %holds;
}
for my $way (map { my $target = $_; map { [ $target, $_ ] } qw(all new) } qw(bigint 53 randflake)) {
    my ($target, $rows) = @$way;
    my %got = map { $_->{object} => $_->{found} }
      rows_of("SELECT object, string_agg(DISTINCT what, ' ' ORDER BY what) AS found FROM $tool.plan('$target', '$rows') WHERE what IN ('blocker', 'moves', 'stays') AND note NOT LIKE 'online:%' GROUP BY 1");
    my %expected;
    for my $filled (keys %filled) {
        for my $holds (keys %holds) {
            my $ours = $filled eq 'ours' ? 1 : 0;
            my $stays = $filled =~ /53|kept/ || $ours && $target ne 'randflake';
            my $stopped = $ours ? $stops{$holds}[1] : $rows eq 'all' ? $stops{$holds}[0] : $target eq 'randflake';
            $expected{"public.t_${filled}_$holds.id"} = $stays ? 'stays' : $stopped ? 'blocker moves' : 'moves';
        }
    }
    is_deeply(\%got, \%expected, "plan: $target, $rows");
}

# What the plan prints separates them.
my $blockers = "FROM $tool.plan('randflake') WHERE what = 'blocker' AND object ~ '_(ours|serial|identity|always)_(mixed|of|id|snow|masks)'";
is(run("SELECT remedy $blockers"), '', "the remedies, $_") for 'first of other servers', 'then the rest';
is(sql("SELECT string_agg(object, ' ') $blockers"), '', '  remove the blockers');
sql("DELETE FROM $tool.node; SELECT setval('s', 1000); DROP TABLE " . join ', ', map { my $filled = $_; map { "t_${filled}_$_" } keys %holds } keys %filled);

# Masks have random node ids, of which some come twice, and those of 53 bits many times.
my $masks = q{m FROM generate_series(1, 20000) AS i, randflake_mask(i, 'x' || k) AS m};
for my $case ([ $masks, '' ], [ "$masks WHERE (randflake_decode(m)).generated_at > now() + interval '1 day'", '' ], [ "n FROM held WHERE kind = 'of_other_node'", '77' ],
    [ "randflake53_encode(now() - interval '1 day', 78 + i % 2, i) FROM generate_series(1, 50) AS i", '78, 79' ]) {
    my ($numbers, $nodes) = @$case;
    is(sql("SELECT string_agg(DISTINCT nodes, ';') FROM generate_series(1, 8) AS k, $tool.doubt('held', 'n', ARRAY(SELECT $numbers), true) WHERE note IS NOT NULL"), $nodes, "node ids of other servers: $numbers");
}

# The plan's sample may miss what the step itself finds. So here the plan knows no values.
my $sample = sql("SELECT pg_get_functiondef('$tool.sample'::regproc)");
my $blind = $sample =~ s/\bAS \$function\$.*/AS 'BEGIN RETURN NULL; END'/sr;
for my $case ([ 'serial', 0, 'bigint' ], [ 'ours', 1, 'randflake' ]) {
    my ($filled, $kind, $target) = @$case;
    for my $holds (sort keys %holds) {
        for my $way ('transaction', $holds =~ /identifiers|mixed$|masks/ ? 'steps' : ()) {
            sql(qq{DROP TABLE IF EXISTS copy, $tool."public.copy.id"});
            filled('copy', $filled, $holds);
            sql($blind);
            my $error = run("SELECT $tool." . ($way eq 'transaction' ? "transaction('copy', '$target')" : "todo($tool.start('copy', '$target'), true)"));
            sql($sample);
            my $what = "$way: a key of $filled with $holds to $target";
            if ($stops{$holds}[$kind]) {
                like($error, qr/column id of table public\.copy holds (?:numbers that are no identifiers|numbers that its sequence has not made)|cannot assign the number \d+ to an identifier/, "$what stops");
            } else {
                is($error, '', "$what moves");
                is(sql("SELECT count(*) FROM copy JOIN held ON n = id::bigint"), 50, '  and stays the same') if $kind && $holds eq 'identifiers';
            }
            if ($way eq 'steps') {
                sql("SELECT $tool.undo(id) FROM $tool.move WHERE state = 'moving'");
                run("SELECT $tool.todo(id, true) FROM $tool.move WHERE state = 'moving'");
            }
        }
    }
}

# The owner of a table runs the query that looks at its values, but can decode none.
sql('CREATE ROLE owner; GRANT USAGE ON SCHEMA randflake TO owner');
for my $holds ('identifiers', 'masks') {
    filled("owned_$holds", 'ours', $holds);
    sql("ALTER TABLE owned_$holds OWNER TO owner");
    my $look = "FROM $tool.plan('randflake') WHERE what IN ('look', 'blocker') AND object LIKE '%public.owned_$holds.id'";
    is(sql("SELECT remedy $look"), "ANALYZE public.owned_$holds;", "of another owner's table, the plan knows no value");
    sql("ANALYZE owned_$holds");
    is(sql("SELECT what $look"), $holds eq 'masks' ? 'blocker' : '', '  but statistics');
    sql($blind);
    my $error = run("SELECT $tool.transaction('owned_$holds', 'randflake')");
    sql($sample);
    like($error, $holds eq 'masks' ? qr/holds numbers that are no identifiers/ : qr/^$/, '  and the move looks at each');
}
is(sql("SELECT bool_or(has_function_privilege('owner', oid, 'EXECUTE')) FROM pg_proc WHERE proname IN ('judge', 'randflake_decode')"), 'f',
    '  the owner can call nothing that tells identifiers from numbers');

# While programs write, they may insert a small number.
sql("CREATE TABLE w (id bigint PRIMARY KEY DEFAULT randflake_generate()); INSERT INTO w SELECT FROM generate_series(1, 9)");
my $online = sql("SELECT $tool.start('w', 'randflake')");
sql(sql("SELECT sql FROM $tool.step WHERE move = $online AND n = 1"));
error_is($node, 'INSERT INTO w VALUES (5)', '22023', { message => qr/5/ }, 'a small number that is inserted meanwhile is refused', database => $db);
is(sql('INSERT INTO w DEFAULT VALUES; SELECT count(*) FROM w'), 10, '  and identifiers are not');
sql("SELECT $tool.undo($online)");
is(run("SELECT $tool.todo($online, true)"), '', '  it goes back');

# --- every way in which a key can be filled -------------------------------------------------------
sql(<<'SQL');
CREATE SCHEMA f;
SET search_path = f, randflake;
CREATE FUNCTION ts_id(name text) RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('public.s') $$;
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := nextval('public.s'); RETURN NEW; END $$;
CREATE DOMAIN number AS integer;
CREATE TABLE by_program (id bigint PRIMARY KEY);
CREATE TABLE by_small_program (id smallint PRIMARY KEY);
CREATE TABLE by_domain (id number PRIMARY KEY);
CREATE TABLE by_function (id bigint PRIMARY KEY DEFAULT ts_id('status'));
CREATE TABLE by_snowflake (id bigint PRIMARY KEY DEFAULT snowflake_generate());
CREATE TABLE by_trigger (id bigint PRIMARY KEY);
CREATE TRIGGER filling BEFORE INSERT ON by_trigger FOR EACH ROW EXECUTE FUNCTION fill();
CREATE TABLE generated (n integer, id integer GENERATED ALWAYS AS (n * 2) STORED PRIMARY KEY);
CREATE TABLE child (id bigint PRIMARY KEY REFERENCES by_program);
CREATE TABLE parted (id bigint, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
CREATE TABLE several (a integer DEFAULT 7, b integer, PRIMARY KEY (a, b));
CREATE TABLE moved (id serial PRIMARY KEY);
CREATE TABLE moved_too (id integer PRIMARY KEY REFERENCES moved);
CREATE TABLE plain (id bigint);
CREATE TABLE inheriting (PRIMARY KEY (id)) INHERITS (plain);
CREATE TABLE text_key (id text PRIMARY KEY);
SQL
my %note = map { $_->{object} =~ s/^f\.//r => $_ } rows_of("SELECT object, note, remedy FROM $tool.plan() WHERE what = 'stays' AND object LIKE 'f.%'");
my $none = 'has no default: programs fill it';
is_deeply({ map { $_ => $note{$_}{note} } keys %note }, {
        (map { $_ => $none } qw(by_program.id by_small_program.id by_domain.id)),
        'by_function.id' => q{its default is no sequence: f.ts_id('status'::text)}, 'by_snowflake.id' => 'has Snowflake identifiers',
        'by_trigger.id' => "$none, or the triggers filling", 'generated.id' => 'is a generated column', 'inheriting.id' => 'its column is inherited', 'child.id' => 'refers to f.by_program, which stays',
        'several.a' => 'its default is no sequence: 7', map { $_ => 'is part of a key that programs fill' } qw(several.b parted.id),
    }, 'each integer primary key that does not move is named') or diag(explain(\%note));
is(run("SELECT remedy FROM $tool.plan() WHERE object LIKE 'f.%' AND what = 'stays' AND remedy <> ''"), '', '  the remedies');
is(sql("SELECT string_agg(object, ' ') FROM $tool.plan() WHERE object LIKE 'f.%' AND what = 'stays' AND remedy <> ''"), '', '  make them move');

# --- functions of triggers, and defaults --------------------------------------------------------
sql(<<'SQL');
CREATE SCHEMA g;
SET search_path = g;
CREATE TABLE town (id serial PRIMARY KEY, name text);
CREATE TABLE house (id serial PRIMARY KEY, town_id integer NOT NULL DEFAULT 0 REFERENCES town, seen integer);
CREATE TABLE log (n bigint);
INSERT INTO town VALUES (0, 'nowhere'), (1, 'here');
INSERT INTO house (town_id) VALUES (0), (1);
CREATE FUNCTION deep(v integer) RETURNS void LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CREATE FUNCTION narrow() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE v integer; BEGIN v := NEW.id; RETURN NEW; END $$;
CREATE FUNCTION casts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM NEW.id::int4; RETURN NEW; END $$;
CREATE FUNCTION digits() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE v numeric (10, 0); BEGIN v := NEW.id; RETURN NEW; END $$;
CREATE FUNCTION letters() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM NEW.id::character varying(12); RETURN NEW; END $$;
CREATE FUNCTION floats() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM NEW.id::double precision; RETURN NEW; END $$;
CREATE FUNCTION calls() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM g.deep (NEW.id); RETURN NEW; END $$;
CREATE FUNCTION wide() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE x g.log.n%TYPE; y varchar(20); BEGIN x := NEW.id; y := x::numeric(19); INSERT INTO g.log VALUES (x); RETURN NEW; END $$;
CREATE FUNCTION unused() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE v integer; BEGIN v := NEW.id; RETURN NEW; END $$;
CREATE TRIGGER w BEFORE INSERT ON house FOR EACH ROW EXECUTE FUNCTION wide();
SQL
my $functions = "SELECT string_agg(DISTINCT object COLLATE \"C\", ', ' ORDER BY object COLLATE \"C\") FROM $tool.plan('53') WHERE grp = 'g.town' AND what = 'look' AND object LIKE 'function%'";
is(sql($functions), '', 'a trigger whose function is wide enough');
sql("CREATE TRIGGER $_ BEFORE INSERT ON g.house FOR EACH ROW EXECUTE FUNCTION g.$_()") for qw(narrow casts digits letters floats calls);
is(sql($functions), join(', ', map { "function g.$_" } qw(casts() deep(integer) digits() floats() letters() narrow())),
    '  and those that are too narrow: a variable, a cast, a parameter of what they call');
sql("DROP TRIGGER $_ ON g.house") for qw(narrow casts digits letters floats calls);
sql('CREATE OR REPLACE FUNCTION g.wide() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE x bigint; BEGIN x := NEW.id; INSERT INTO g.log VALUES (x); RETURN NEW; END $$');
is(sql($functions), '', '  bigint is wide enough for a number');
is(sql($functions =~ s/'53'/'randflake'/r), 'function g.wide()', '  and not for the type');

for my $target (qw(bigint randflake)) {
    for my $rows ($target eq 'bigint' ? qw(new all) : 'all') {
        sql(qq{DROP TABLE IF EXISTS $tool."h.town.id", $tool."h.house.id"; } . 'DROP SCHEMA IF EXISTS h CASCADE; CREATE SCHEMA h; CREATE TABLE h.town (LIKE g.town INCLUDING ALL); CREATE TABLE h.house (LIKE g.house INCLUDING ALL);'
              . q{ALTER TABLE h.house ADD FOREIGN KEY (town_id) REFERENCES h.town; CREATE SEQUENCE h.t; CREATE SEQUENCE h.h;}
              . q{ALTER TABLE h.town ALTER id SET DEFAULT nextval('h.t'); ALTER TABLE h.house ALTER id SET DEFAULT nextval('h.h'); INSERT INTO h.town SELECT * FROM g.town;}
              . 'CREATE TRIGGER w BEFORE INSERT ON h.house FOR EACH ROW EXECUTE FUNCTION g.wide()');
        my $session = $node->background_psql($db);
        $session->query_safe('INSERT INTO h.house (town_id) VALUES (1)') for 1 .. 2;
        is(sql("SELECT string_agg(note || ': ' || remedy, ', ') FROM $tool.plan('$target', '$rows') WHERE grp = 'h.town' AND what = 'blocker'"),
            'online: has the default 0, a key of h.town: transaction()', "$target, $rows: a default that is a key");
        is(run("SELECT $tool.transaction('h.house', '$target', '$rows')"), '', '  moves at once');
        is(sql("INSERT INTO h.house DEFAULT VALUES RETURNING (SELECT name FROM h.town AS t WHERE t.id = town_id)"), 'nowhere', '  and is the same row\'s');
        $session->query_safe('INSERT INTO h.house DEFAULT VALUES');
        pass('  an open session goes on');
        $session->quit;
    }
}
sql('DELETE FROM g.house; DELETE FROM g.town WHERE id = 0');
like(run("SELECT $tool.transaction('g.house')"), qr/the default of column town_id of table g\.house, 0, is no key/, 'a default that is no key is an error');
is(sql("SELECT count(*) FROM $tool.plan() WHERE object = 'g.house.town_id' AND what = 'moves'"), 1, '  and changes nothing');
$node->stop;
done_testing();
