# Statements sent without psql (RandflakeSessions) give the output of psql.

use Randflake;

my $node = start_server('main');
$node->safe_psql('postgres', 'CREATE ROLE other LOGIN');

# Compares status, output and errors of psql and the module, except the line of an error.
sub is_alike {
    my ($sql, %options) = @_;
    my @expected = $RandflakeSessions::program->($node, 'postgres', $sql, %options);
    my @got = $node->psql('postgres', $sql, %options);
    s/^psql:(<stdin>:\d+:)? ?//mg for $expected[2], $got[2];
    is_deeply(\@got, \@expected, $sql =~ s/\s+/ /gr);
}

is_alike("SELECT $_, NULL, 1") for 'true', '0.1::float8 + 0.2::float8', "'-infinity'::float8", "'NaN'::float8", '1e-300::float8',
    '1e16::float8', '0.1::float4', '1.50', q{'\x00ff'::bytea}, '-9223372036854775808', 'ARRAY[true, NULL]', q{ARRAY['a,b', 'c']},
    "'ab'::char(4)", "'é €'", "row(1, true, 'x')", "B'101'", "timestamptz '2001-02-03 04:05:06.7+00'";
is_alike('SELECT');
is_alike("SELECT n, n || ' \"' FROM generate_series(1, 3) AS n; SELECT ';' AS \"a;b\"; -- ; none\nSELECT 2 /* ; */ WHERE false;");
is_alike("DO \$\$ BEGIN RAISE WARNING 'a;b' USING DETAIL = 'd'; RAISE NOTICE 'n'; END \$\$; SELECT 1");
is_alike('CREATE TABLE t (a int); CREATE RULE r AS ON DELETE TO t DO ALSO (SELECT 1; SELECT 2); DROP TABLE t');
for my $sql ('SELECT 1; SELECT 1 / 0; SELECT 2', "SELECT 1;\nSELEC 2", 'BEGIN; SELECT 1 / 0; SELECT 2; ROLLBACK; SELECT 3') {
    is_alike($sql, on_error_stop => $_) for 0, 1;
    is_alike($sql, extra_params => [ '-v', "VERBOSITY=$_" ]) for qw(verbose sqlstate);
}
is_alike('SELECT current_user, 1', extra_params => [ '-U', 'other' ]);
is_alike('SELECT 1', extra_params => [ '-U', 'nobody' ]);
is_alike('SELECT 1 AS a \gset' . "\n" . 'SELECT :a + 1');

my $timed_out;
$node->psql('postgres', 'SELECT pg_sleep(60)', timeout => 1, timed_out => \$timed_out);
ok($timed_out, 'a statement that takes too long');
isnt($node->safe_psql('postgres', 'SELECT pg_backend_pid()'), $node->safe_psql('postgres', 'SELECT pg_backend_pid()'),
    'each call is a session of its own');
$node->stop;
done_testing();
