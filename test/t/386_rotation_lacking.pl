# Runs a server that leases node ids and lacks a secret of the other servers. Once the coordinator
# reports the missing secret, the server refuses to decode identifiers that this secret may have
# made, because the result would be wrong. This refusal ends only when the operator adds the missing
# secret. A crash, a restart, static node ids or a restored base backup must not end it.
use Randflake;
use RandflakeHistory qw(crash_backend);
use RandflakeLease;

my @secrets = map { random_secret() } 1 .. 2;
my $fleet = new_fleet();
$fleet->{clock} = $fleet->{template};    # all servers share one clock
my $coordinator = start_coordinator($fleet, 'coordinator');

sub configure_server($node, %settings) {
    configure($node, secret_file => secret_path($node), max_wait => '2min', %settings);
}

my %leases = (coordinator => $coordinator->connstr('postgres'), lease_duration => $RandflakeLease::duration);

sub holder($name) {
    my $node = start_holder($fleet, $name, $coordinator, conf => "wal_level = replica\nmax_wal_senders = 4\n", secrets => [ $secrets[0] ]);
    $node->sql(
        'CREATE EXTENSION randflake_type; CREATE TABLE t (k randflake); INSERT INTO t VALUES (randflake_next())');
    return $node;
}

my ($maker, $lacking) = map { holder($_) } qw(maker lacking);
my $known = $lacking->sql('SELECT k FROM t');

# --- before the time ------------------------------------------------------------------------------
my $from = time + 600;
my @ring = ($secrets[0], $from => $secrets[1]);
# A user may send any number. Under the server's only secret, this number has the time $from.
my $future = $lacking->sql("SELECT randflake_encode(to_timestamp($from), 1, 1)");
my $bound = $lacking->sql("SELECT randflake_lower(to_timestamp($from))");
is($lacking->sql("SELECT randflake_generated_at($future) = to_timestamp($from)"), 't',
    'before it knows, a server reads what its secret says');

my $lacks = { message => qr/^this server lacks a secret that is in use$/,
    detail => qr/^The coordinator has one from .* on\. What this server reads as made then or later, or under no secret, may be something else\.$/,
    hint => qr/"randflake\.secret_file" and call randflake_reload_secret\(\), or restart/ };

sub knows($node, $test_name) {
    my $sql = "SELECT randflake_generated_at($future)";
    wait_until { error_of($node, $sql)->{message} =~ $lacks->{message} };
    error_is($node, $sql, '55000', $lacks, $test_name);
}

is(reload_secrets($maker, @ring), 2, 'another one has a second secret');
my ($fingerprint) = reverse fingerprints_of(@ring);
$coordinator->sql("SELECT randflake_lease_add_secret('$fingerprint', to_timestamp($from))");
knows($lacking, 'told by the coordinator: what it reads as that time is refused');
is($lacking->sql("SELECT now() < to_timestamp($from)"), 't', '  before the time');
is($lacking->sql('SELECT count(*) FROM t JOIN randflake_generate() AS g ON g IS NOT NULL'), 1,
    '  and it makes identifiers');
is($maker->sql("SELECT randflake_generated_at($future) IS DISTINCT FROM to_timestamp($from)"), 't',
    '  which is not what the others read');

# --- after it -------------------------------------------------------------------------------------
clock_runs_from($fleet->{clock}, $from + 1);
wait_for_open_window($maker);
my @ids = split /\n/, $maker->sql('SELECT randflake_generate(5)');
my @texts = map { $maker->sql("SELECT randflake_to_text($_)") } @ids;
my $made_at = $maker->sql("SELECT extract(epoch FROM randflake_generated_at($ids[0]))::bigint");
cmp_ok($made_at, '>=', $from, 'the other server makes identifiers of the second secret');

sub refuses($node, $test_name) {
    my $id = $ids[0];
    my @statements = ("SELECT randflake_decode($id)", "SELECT randflake_generated_at($id)",
        "SELECT '$texts[0]'::randflake", "SELECT ($id)::bigint::randflake", "SELECT k FROM t WHERE k = '$texts[0]'",
        "SELECT randflake_encode(to_timestamp($from), 1, 1)");
    error_is($node, $_, '55000', $lacks, "$test_name: $_") for @statements;
    is($node->sql('SELECT k FROM t'), $known, "$test_name: what it has is read");
    is($node->sql("SELECT randflake_generated_at(randflake_from_text('$known')) < now(), randflake_lower(to_timestamp($from))"),
        "t|$bound", "$test_name: and decoded, and bounds of later times are as they were");
    is($node->sql("SELECT k = '$known', k < '$bound' FROM t"), 't|t', "$test_name: and input");
}
refuses($lacking, 'the server that lacks it');
error_is($lacking, "INSERT INTO t SELECT id::randflake FROM unnest(ARRAY[@{[ join ',', @ids ]}]) AS id RETURNING k", '55000',
    $lacks, 'nothing is stored');
error_is($lacking, "CREATE VIEW v AS SELECT '$texts[0]'::randflake AS k", '55000', $lacks, 'nor made a constant');
is($lacking->sql('SELECT count(*) FROM t'), 1, 'nothing was stored');

# --- it is kept -----------------------------------------------------------------------------------
$coordinator->stop;
crash_backend($lacking);
refuses($lacking, 'after a crash of a session');

$lacking->stop('immediate');
start_in_fleet($fleet, $lacking);
refuses($lacking, 'after a crash, without the coordinator');

my $standby = standby_of($lacking, 'standby', start => 0);
$lacking->stop;
configure_server($lacking, node_id => 5);
start_in_fleet($fleet, $lacking);
refuses($lacking, 'with node ids of its own');
write_secrets($standby, $secrets[0]);
configure_server($standby, node_id => 6);
start_in_fleet($fleet, $standby);
refuses($standby, 'a base backup that is a standby');

# --- the added secret -----------------------------------------------------------------------------
# Checks that a server with the added secret decodes new identifiers like the server that made them.
sub reads($node, $test_name) {
    my $list = join ',', @ids;
    my $what = "SELECT string_agg(randflake_decode(id)::text, ' ' ORDER BY id) FROM unnest(ARRAY[$list]) AS id";
    is($node->sql($what), $maker->sql($what), "$test_name: decodes");
    return if $node->sql('SELECT pg_is_in_recovery()') eq 't';
    is( $node->sql("INSERT INTO t SELECT id::randflake FROM unnest(ARRAY[$list]) AS id RETURNING k"),
        join("\n", @texts), "$test_name: stores and returns them as they were");
    is($node->sql("SELECT count(DISTINCT k) FROM t WHERE randflake_timestamp(k) = to_timestamp($made_at)"), 5,
        "$test_name: with their time");
}
is(reload_secrets($standby, @ring), 2, 'the standby gets it by a reload');
reads($standby, 'the standby');
$standby->stop;
start_in_fleet($fleet, $standby);
reads($standby, 'the standby after a restart');
$standby->stop;

write_secrets($lacking, @ring);
$lacking->stop;
start_in_fleet($fleet, $lacking);
reads($lacking, 'static, started with it');
$lacking->stop;
my $again = PostgreSQL::Test::Cluster->new('again');
$again->init_from_backup($lacking, 'standby');
write_secrets($again, $secrets[0]);
configure_server($again, %leases);
start_in_fleet($fleet, $_) for $coordinator, $again;
knows($again, 'a copy that leases is told too');
is(reload_secrets($again, @ring), 2, 'leased, it gets it by a reload');
reads($again, 'leased');
wait_for_lease($again);
$again->stop;
start_in_fleet($fleet, $again);
reads($again, 'leased, after a restart');

no_secret_in(slurp_file($_->logfile), $secrets[1], 'the log of ' . $_->name . ' has no secret')
  for $maker, $lacking, $standby, $again;
$_->stop for $again, $maker, $coordinator;
done_testing();
