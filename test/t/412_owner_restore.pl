# Dumps and restores a database as its ordinary owner, and dumps it as roles that may read tables.
# If the server has another secret, a restore fails and leaves no readable value of the type.
use Randflake;

my $dumps = tempdir();
my $secret = random_secret();
my $node = new_server('main', settings => { node_id => 1, secret => $secret, max_wait => '1h' });
my $other = new_server('other', settings => { node_id => 2, secret => random_secret(), max_wait => '1h' });
for ($node, $other) {
    $_->start;
    $_->sql('CREATE ROLE owner LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE deputy LOGIN');
}

sub create_database($server, $database, @extensions) {
    $server->sql("CREATE DATABASE $database OWNER owner TEMPLATE template0");
    $server->safe_psql($database, "CREATE EXTENSION $_ CASCADE") for @extensions;
    $server->safe_psql($database, 'GRANT CREATE ON SCHEMA public TO owner, deputy');
}

sub run_as($server, $role, $database, @command) {
    my ($out, $errors) = ('', '');
    my $good = IPC::Run::run([ @command, '-d', $server->connstr($database) . " user=$role" ],
        '<', '/dev/null', '>', \$out, '2>', \$errors);
    return ($good, $errors);
}

sub dumps_as($role, $database, @options) {
    my ($good, $errors) = run_as($node, $role, $database, 'pg_dump', @options);
    ok($good && $errors eq '', "$role dumps $database") or diag($errors);
}

# --- dumps -----------------------------------------------------------------------------------
create_database($node, 'numbers', 'randflake');
create_database($node, 'app', 'randflake_type');
create_database($node, 'ids', 'randflake_coordinator');
$node->safe_psql($_->[0], <<"SQL", extra_params => [ '-U', 'owner' ]) for [ 'numbers', 'bigint', 'generate' ], [ 'app', 'randflake', 'next' ];
CREATE TABLE before (id $_->[1] PRIMARY KEY DEFAULT randflake_$_->[2](), n integer);
CREATE TABLE zafter (id $_->[1] DEFAULT randflake_$_->[2](), others $_->[1]\[], n integer);
INSERT INTO before (n) SELECT generate_series(1, 1000);
INSERT INTO zafter (others, n) SELECT ARRAY[id], n FROM before;
CREATE INDEX ON zafter USING brin (id);
GRANT SELECT ON before, zafter TO reader;
SQL
for my $database ('numbers', 'app') {
    dumps_as($_, $database, '-Fc', '-f', "$dumps/$database.$_") for qw(owner reader);
    dumps_as('owner', $database, '--no-comments', '-f', "$dumps/$database.plain");
}
my $fingerprint = $node->safe_psql('app', 'TABLE randflake_key');
for my $table ('randflake_key', 'randflake_key_check') {
    like(slurp_file("$dumps/app.plain"), qr/^COPY public\.$table .*\n\Q$fingerprint\E$/m,
        "  with the fingerprint in $table");
}
unlike(slurp_file("$dumps/app.plain"), qr/TRIGGER randflake_key_guard/, '  and nothing else of the extension');
no_secret_in(slurp_file("$dumps/app.plain"), $secret, '  nor the secret');
my ($list) = run_command([ 'pg_restore', '--list', "$dumps/app.owner" ]);
my @keys = grep { / TABLE DATA \S+ randflake_key/ } split /\n/, $list;
my @rest = grep { !/ TABLE DATA \S+ randflake_key/ } split /\n/, $list;
is(@keys, 2, 'a dump has the fingerprint twice');
my %order = (last => [ @rest, @keys ], reversed => [ @rest, reverse @keys ], first => [ @keys, @rest ],
    around => [ $keys[0], @rest, $keys[1] ], around_reversed => [ $keys[1], @rest, $keys[0] ]);
append_to_file("$dumps/$_", join "\n", @{ $order{$_} }, '') for keys %order;

# An ordinary role cannot read leases, and therefore cannot dump them.
my ($good, $errors) = run_as($node, 'owner', 'ids', 'pg_dump', '-f', "$dumps/ids");
like($errors, qr/permission denied for (?:table|sequence) randflake_lease|sequence "randflake_lease\w*"; user may lack SELECT/,
    'the owner may not dump leases');
$node->safe_psql('ids', <<'SQL');
SELECT randflake_lease_configure(first_node_id => 77);
GRANT SELECT ON randflake_lease, randflake_lease_chunk, randflake_lease_hold, randflake_lease_pool, randflake_lease_lease_id_seq TO owner;
GRANT pg_read_all_data TO reader;
SQL
for my $role ('owner', 'reader') {
    unlink "$dumps/ids";
    dumps_as($role, 'ids', '-f', "$dumps/ids");
    like(slurp_file("$dumps/ids"), qr/^COPY public\.randflake_lease_pool .*\n\S+\t\[77,131072\)/m,
        '  with the grants that are documented');
}

# --- restores --------------------------------------------------------------------------------
my $databases = 0;

# Makes a database, runs `before` as a superuser, and restores a dump as the given role. Runs psql
# with the arguments in `plain`, or pg_restore with those in `custom`, and before it with `first`.
sub restore($server, $role, %options) {
    my $database = 'restored_' . ++$databases;
    create_database($server, $database, 'randflake_type');
    $server->safe_psql($database, $options{before}) if $options{before};
    my @pg_restore = ('pg_restore', '--no-comments', '--no-privileges', $role eq 'postgres' ? () : '--no-owner', "$dumps/app.owner");
    run_as($server, $role, $database, @pg_restore, @{ $options{first} }) if $options{first};
    my @command = $options{plain} ? ('psql', '-Xq', @{ $options{plain} }, '-f', "$dumps/app.plain") : (@pg_restore, @{ $options{custom} });
    return (run_as($server, $role, $database, @command), $database);
}

my $content = <<'SQL';
SELECT md5(string_agg(format('%s %s %s', id, id::bigint, n), ',' ORDER BY id)) FROM before
UNION ALL SELECT md5(string_agg(format('%s %s %s %s', id, id::bigint, others, n), ',' ORDER BY id)) FROM zafter
SQL
my $expected = $node->safe_psql('app', $content);
my $unbound = 'DELETE FROM randflake_key; DELETE FROM randflake_key_check';
my @data_later = (first => ['--schema-only'], custom => [ '--data-only', '--disable-triggers', "--use-list=$dumps/reversed" ]);
for my $case ([ 'owner', plain => [ '-v', 'ON_ERROR_STOP=1' ] ], [ 'owner', custom => ['--exit-on-error'] ],
    [ 'owner', custom => ['--jobs=2'] ], [ 'postgres', @data_later ],
    map { [ 'postgres', custom => ["--use-list=$dumps/$_"], before => $unbound ] } qw(last first around around_reversed)) {
    my ($role, @how) = @$case;
    my ($succeeded, $text, $database) = restore($node, $role, @how);
    ok($succeeded && $text eq '', "$role restores under the same secret: @{ $how[1] }") or diag($text);
    is($node->safe_psql($database, $content, extra_params => [ '-U', 'owner' ]), $expected, '  and nothing is lost');
    is($node->safe_psql($database, 'SELECT count(DISTINCT fingerprint) FROM randflake_key'), 1, '  with one fingerprint');
}

sub nothing_works($server, $database, $test_name) {
    my @works;
    for my $role ('owner', 'postgres') { for my $sql (
            'SELECT randflake_next()', q{SELECT 'a'::randflake}, 'SELECT 8::bigint::randflake',
            'INSERT INTO zafter DEFAULT VALUES', 'SELECT n FROM zafter ORDER BY id',
            'CREATE INDEX ON zafter (id)', 'SELECT min(id)::text FROM before', 'SELECT id FROM before',
            'SELECT id::bigint FROM zafter', 'SELECT array_agg(id) FROM before', 'COPY before TO STDOUT') {
            my ($status, $out, $text) = $server->psql($database, $sql,
                extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]);
            # The table is empty, so the statement read no value.
            next if $status == 0 && $out eq '' && $sql !~ /^INSERT|^CREATE/;
            push @works, "$role: $sql: $out$text" unless $status != 0 && $text =~ /ERROR:  55000: .*secret/;
        }
    }
    is_deeply(\@works, [], $test_name);
}

for my $case ([ 'as it comes', custom => [] ],
    [ 'the fingerprint last', custom => ["--use-list=$dumps/last"] ],
    [ 'and the other way round', custom => ["--use-list=$dumps/reversed"] ],
    [ 'in parallel', custom => ['--jobs=2'] ],
    [ 'in a plain dump', plain => [] ],
    [ 'by a superuser without triggers', @data_later ],
    [ 'that was not bound yet', custom => [], before => $unbound ],
    [ 'that was not bound yet, the fingerprint last', custom => ["--use-list=$dumps/last"], before => $unbound ]) {
    my ($name, @how) = @$case;
    my ($succeeded, $text, $database) = restore($other, $name =~ /superuser/ ? 'postgres' : 'owner', @how);
    ok($how[0] eq 'plain' || !$succeeded, "a restore fails under another secret: $name");
    like($text, qr/ERROR:  (?:this data was dumped under another secret|the type randflake is not bound|values of type randflake in this database belong to another secret)/,
        '  with the reason');
    nothing_works($other, $database, '  and nothing can be read or written');
}

(my $succeeded, $errors, my $database) = restore($other, 'deputy', custom => []);
ok(!$succeeded, 'the restore of another role fails');
like($errors, qr/ERROR:  permission denied for table randflake_key$/m, '  for the fingerprint');
my ($status) = $other->psql($database, "INSERT INTO randflake_key VALUES ('0123456789abcdef')",
    extra_params => [ '-U', 'reader' ]);
isnt($status, 0, '  which a role without grants cannot change');

# The owner may insert many long fingerprints. Messages and the memory of sessions must stay small.
create_database($other, 'filled', 'randflake_type');
$other->safe_psql('filled', <<'SQL', extra_params => [ '-U', 'owner' ]);
INSERT INTO randflake_key SELECT repeat(chr(96 + n), 1000000) FROM generate_series(1, 20) AS n;
INSERT INTO randflake_key SELECT to_char(n, 'FM0000000000000000') FROM generate_series(1, 300) AS n;
SQL
for my $sql ('SELECT randflake_next()', q{INSERT INTO randflake_key_check VALUES (repeat('z', 1000000))}) {
    my $error = error_of($other, $sql, database => 'filled', user => 'owner');
    is($error->{sqlstate}, '55000', "many fingerprints, and long ones: $sql") or diag(substr $error->{text}, 0, 500);
    like($error->{detail}, qr/key fingerprint .*\.\.\./, '  an error names some of them');
    cmp_ok(length $error->{text}, '<', 2000, '  and is short');
}
configure($node, node_id => 1, secret => random_secret(), max_wait => '1h');
$node->restart;
nothing_works($node, 'app', 'a server restarted with another secret reads nothing');
done_testing();
