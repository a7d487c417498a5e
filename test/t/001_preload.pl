# Checks what works in a server that lacks the preloaded library, a node id or a secret.
use Docs;
use Randflake;

my $node = new_server('main', conf => "shared_preload_libraries = ''");
$node->start;
$node->sql('CREATE EXTENSION randflake_type CASCADE; CREATE EXTENSION randflake_coordinator');

my %generates = (
    'generate' => 'SELECT randflake_generate()',
    'generate_text' => 'SELECT randflake_generate_text()',
    'default' => 'CREATE TEMP TABLE t (id bigint DEFAULT randflake_generate());'
      . ' INSERT INTO t DEFAULT VALUES');
my %inspects = (
    'decode' => 'SELECT * FROM randflake_decode(1)',
    'generated_at' => 'SELECT randflake_generated_at(1)',
    'encode' => q{SELECT randflake_encode('2030-01-01', 1, 1)});

# These functions need no shared memory, so they must work even if the library is not preloaded.
my $pure = q{SELECT randflake_to_text(-1), randflake_from_text('v'), randflake_shard(-1, 4),
                    (SELECT count(*) FROM randflake_shard_ranges(4)),
                    randflake_generated_at(NULL) IS NULL};
my $pure_result = 'fvvvvvvvvvvvv|31|1|4|t';

for my $name (sort keys %generates, keys %inspects) {
    error_is($node, $generates{$name} // $inspects{$name}, '55000',
        { message => qr/must be loaded via "shared_preload_libraries"/, hint => qr/"shared_preload_libraries"/ },
        "not preloaded: $name fails");
}
is($node->sql($pure), $pure_result, 'not preloaded: text and shards work');
error_is($node, q{LOAD 'randflake'; SELECT randflake_generate()}, '55000',
    { message => qr/must be loaded via "shared_preload_libraries"/ }, 'not preloaded: loading it in a session does not help');

is($node->sql(<<'SQL'), '64|3|60|64|t', 'not preloaded: a coordinator leases');
SELECT randflake_lease_configure(first_node_id => 5, never_leased => true) IS NULL AS configured \gset
SELECT pg_sleep(extract(epoch FROM grants_from - clock_timestamp())) IS NULL AS waited FROM randflake_pool \gset
SELECT first_node_id, node_count, lease_end - lease_start + 1 AS seconds
FROM randflake_lease_acquire('x', '00000000-0000-0000-0000-000000000001', 3, 60, '0123456789abcdef') \gset
SELECT (randflake_lease_renew(lease_id, incarnation, upper(span) - 1, 60, '0123456789abcdef')).lease_end IS NOT NULL AS renewed FROM randflake_lease \gset
SELECT randflake_lease_release(lease_id, incarnation, lower(span)) IS NULL AS released FROM randflake_lease \gset
SELECT :first_node_id, :node_count, :seconds, first_node_id, :'renewed'::boolean FROM randflake_leases WHERE state = 'released'
SQL
error_is($node, $_, '55000', { message => qr/must be loaded via/, hint => qr/"shared_preload_libraries"/ },
    "not preloaded: $_ fails") for 'SELECT randflake_next()', q{SELECT 'a'::randflake};
is($node->sql(q{SELECT randflake_timestamp(randflake_lower('2030-01-01')) = '2030-01-01'}),
    't', 'not preloaded: times of the type work');

# From here on, the server preloads the library.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'randflake'");
my %lacks = (secret => '"randflake\.secret_file"', 'node id' => '"randflake\.node_id"');
for my $case (
    map({ [ secret => $_ ] } { node_id => 7 }, {}, { node_id => 7, secret => '', secret_file => '' }),
    map({ [ 'node id' => { secret => random_secret(), %$_ } ] } {}, { node_id => -1 }, { node_count => 4 })) {
    my ($lacking, $settings) = @$case;
    my $label = "no $lacking, " . join(' ', sort keys %$settings);
    $node->stop;
    configure($node, %$settings);
    $node->start;
    for my $name (sort keys %generates, $lacking eq 'secret' ? keys %inspects : ()) {
        error_is($node, $generates{$name} // $inspects{$name}, '55000',
            { message => qr/no $lacking/, hint => qr/$lacks{$lacking}/ }, "$label: $name fails", problem => 1);
    }
    ok($node->log_contains("LOG:  randflake cannot generate identifiers: no $lacking is configured"),
        "$label: the log tells at the start");
    is($node->sql($pure), $pure_result, "$label: text and shards work");
    next if $lacking eq 'secret';
    is( $node->sql(q{SELECT node_id, sequence FROM randflake_decode(randflake_encode('2030-01-01', 5, 6))}),
        '5|6', "$label: decode works");
}

$node->stop;
configure($node, secret => random_secret(), node_id => 7, max_wait => '1h');
$node->start;
my ($block) = grep { $_->{text} =~ /CREATE TABLE purchase/ } code_blocks('README.md');
is($node->sql($block->{text}) =~ s/\w{1,13}/id/gr, "id\nid\nid",
    'the type is bound by its first use, as README has it');

# The server logs a warning if its minor release is older than the minimum in docs/security.md.
my ($named) = slurp_file('docs/security.md') =~ /at least PostgreSQL ((?:\d+\.\d+(?:, | or )?)+)/;
my %least = $named =~ /(\d+)\.(\d+)/g;
my ($major, $minor) = $node->sql('SHOW server_version_num') =~ /^(\d\d)0*(\d+)$/;
is(join(' ', sort keys %least), '15 16 17 18', 'each major that had the fault is named');
is( $node->log_contains('WARNING:  this minor release of PostgreSQL lets roles forge identifiers') ? 1 : 0,
    $minor < ($least{$major} // 0) ? 1 : 0, "  the log warns, or not, of $major.$minor");

if ($node->pg_version >= 18) {
    is( $node->sql(<<'SQL'), 'randflake|t', 'the library reports its version');
SELECT l.module_name, l.version = e.default_version
FROM pg_get_loaded_modules() l JOIN pg_available_extensions e ON e.name = l.module_name
SQL
}
$node->stop;
done_testing();
