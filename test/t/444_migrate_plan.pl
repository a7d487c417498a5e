# Checks that the migration's plan finds every column that may refer to a key, and every object that
# stops a move. A blocker stops the move until its printed statement has run.
use JSON::PP qw(decode_json);
use Randflake;

$RandflakeSessions::keep = 1;
my $node = start_server('main', settings => { node_id => 1, secret => random_secret(), max_wait => '1h' }, extensions => [],
    conf => "max_locks_per_transaction = 64\njit = off\n");
my $tool = 'randflake_migrate';
my $script = slurp_file('migrate/randflake_migrate.sql');
$node->sql("CREATE SCHEMA randflake; CREATE EXTENSION randflake_type SCHEMA randflake CASCADE; BEGIN; $script COMMIT");

sub rows_of { my ($query) = @_; return @{ decode_json($node->sql("SELECT coalesce(json_agg(x), '[]') FROM ($query) AS x")) }; }

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
$node->stop;
done_testing();
