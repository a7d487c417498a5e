# Compares the definition, comment and privileges of every object in two databases.

package RandflakeCatalog;

use Exporter 'import';
use Randflake;

our @EXPORT = qw(definitions_of same_definitions);

# Returns a hash from each object of a database to its definition. Dumps the schema in pg_upgrade's
# mode, which includes members of extensions. Needs a server that no other test uses.
sub definitions_of {
    my ($node, $database) = @_;
    my $file = $node->basedir . "/definitions_of_$database";
    $node->command_ok(
        [ 'pg_dump', '--binary-upgrade', '--schema-only', '-f', $file, $node->connstr($database) ],
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
sub differences {
    my ($left, $right) = @_;
    my %objects = (%$left, %$right);
    return grep { ($left->{$_} // '') ne ($right->{$_} // '') } sort keys %objects;
}

sub same_definitions {
    my ($got, $expected, $test_name) = @_;
    my @different = differences($got, $expected);
    is(scalar @different, 0, $test_name);
    for my $object (@different) {
        my ($left, $right) = map { $_->{$object} // 'nothing' } $got, $expected;
        diag("$object: got: $left\nexpected: $right");
    }
}

1;
