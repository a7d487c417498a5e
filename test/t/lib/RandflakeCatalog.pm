# Compares the definition, comment and privileges of every object in two databases.

package RandflakeCatalog;

use Exporter 'import';
use Randflake;

our @EXPORT = qw(definitions_of same_definitions comparisons);

# Returns a hash from each object of a database to its definition. Dumps the schema in pg_upgrade's
# mode, which includes members of extensions. Needs a server that no other test uses.
sub definitions_of($node, $database) {
    my $file = $node->basedir . "/definitions_of_$database";
    $node->command_ok([ 'pg_dump', '--binary-upgrade', '--schema-only', '-f', $file, $node->connstr($database) ],
        "the objects of $database");
    my $dump = slurp_file($file);

    # Oids and transaction ids differ from database to database.
    $dump =~ s/^-- For binary upgrade, .*\n//mg;
    $dump =~ s/^SELECT pg_catalog\.binary_upgrade_[^;]*;\n//mg;
    $dump =~ s/^UPDATE pg_catalog\.pg_class\nSET relfrozenxid [^;]*;\n//mg;
    my %definitions;
    for my $entry (split /^--\n(?=-- Name: )/m, $dump) {
        my ($object, $text) = $entry =~ /\A-- Name: (.*)\n--\n(.*)\z/s or next;
        next if $object =~ /; Type: SEQUENCE SET;/;    # data
        $definitions{$object} .= $text =~ s/^--.*\n|^\\(?:un)?restrict .*\n|^\n//mgr;
    }
    # Adds properties that a dump's statements do not show.
    $definitions{$_->[0]} = $node->safe_psql($database, $_->[1])
      for [ 'tables with data of their own', <<'SQL' ], [ 'privileges that extensions gave', <<'SQL' ];
SELECT extname, config::regclass, condition
FROM pg_extension, unnest(extconfig, extcondition) AS u (config, condition)
ORDER BY 1, config::regclass::text
SQL
SELECT pg_describe_object(classoid, objoid, objsubid), initprivs::text
FROM pg_init_privs LEFT JOIN pg_class c ON classoid = 'pg_class'::regclass AND c.oid = objoid
WHERE privtype = 'e'
  -- Those of every table need not be there, and pg_upgrade leaves them away.
  AND initprivs IS DISTINCT FROM
      acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)
ORDER BY 1, 2
SQL
    return \%definitions;
}

# Returns the objects whose definitions differ between two hashes.
sub differences($left, $right) {
    my %objects = (%$left, %$right);
    return grep { ($left->{$_} // '') ne ($right->{$_} // '') } sort keys %objects;
}

sub same_definitions($got, $expected, $test_name) {
    my @different = differences($got, $expected);
    is(scalar @different, 0, $test_name);
    for my $object (@different) {
        my ($left, $right) = map { $_->{$object} // 'nothing' } $got, $expected;
        diag("$object: got: $left\nexpected: $right");
    }
}

# Returns SQL that compares values of the type in each kind of object and expression. pg_dump prints
# some of these expressions without an operator's schema, and restores with an empty search_path.
sub comparisons {
    return <<'SQL';
CREATE TABLE pair (
    a randflake NOT NULL DEFAULT randflake_next(), b randflake, one boolean DEFAULT (NULLIF(randflake_next(), randflake_next()) IS NULL),
    other randflake GENERATED ALWAYS AS (NULLIF(a, b)) STORED, CHECK (a IS DISTINCT FROM b), EXCLUDE (a WITH =, NULLIF(b, a) WITH =));
INSERT INTO pair (b) SELECT nullif(randflake_next(), NULL) FROM generate_series(1, 10);
CREATE TABLE pair_log (a randflake PRIMARY KEY, n integer);
CREATE INDEX pair_index ON pair (NULLIF(b, a)) WHERE a IS NOT DISTINCT FROM b;
CREATE STATISTICS pair_statistics ON (CASE a WHEN b THEN 1 ELSE 2 END), (a < b) FROM pair;
CREATE VIEW pair_nullif AS SELECT NULLIF(a, b) AS c FROM pair;
CREATE VIEW pair_case AS SELECT CASE a WHEN b THEN 1 ELSE 2 END AS c FROM pair;
CREATE VIEW pair_using AS SELECT * FROM pair JOIN pair_log USING (a);
CREATE VIEW pair_natural AS SELECT * FROM pair NATURAL LEFT JOIN pair_log;
CREATE VIEW pair_orders AS SELECT a FROM pair WHERE a < b OR a >= ALL (SELECT a FROM pair_log) OR a IN (b, other) OR (a, b) IS DISTINCT FROM (b, a)
    ORDER BY a USING >;
CREATE MATERIALIZED VIEW pair_distinct AS SELECT a IS DISTINCT FROM b AS c FROM pair;
CREATE RULE pair_rule AS ON UPDATE TO pair WHERE old.a IS DISTINCT FROM new.a DO INSTEAD NOTHING;
CREATE POLICY pair_policy ON pair USING (a IS NOT DISTINCT FROM b) WITH CHECK (NULLIF(a, b) IS NOT NULL);
CREATE TRIGGER pair_trigger BEFORE UPDATE ON pair FOR EACH ROW WHEN (old.b IS DISTINCT FROM new.b)
    EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE FUNCTION pair_function(x randflake, y randflake DEFAULT NULLIF(randflake_next(), randflake_next())) RETURNS boolean
    LANGUAGE sql BEGIN ATOMIC SELECT x IS NOT DISTINCT FROM y; END;
CREATE DOMAIN pair_domain AS randflake CHECK (NULLIF(VALUE, VALUE) IS NULL);
SQL
}

1;
