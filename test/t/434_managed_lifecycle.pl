# Dumps, restores and moves databases that have the managed script, by itself or as an extension of
# pg_tle. Installs a later version of the script over an earlier one.
use Docs;
use Randflake;
use RandflakeInstallation;
use RandflakeManaged;

my ($installation, $extensions) = private_installation();
my $node = managed_server('main', install_path => $installation, streaming => 'logical', conf => "max_prepared_transactions = 2\n");
install_managed($node, undef);

sub problem_is($database, $pattern, $test_name) {
    like(as_owner($node, 'SELECT mode, problem, first_node_id FROM randflake.randflake_status', $database), $pattern, $test_name);
}

sub restore($from, $to) {
    $node->sql("CREATE DATABASE $to OWNER owner");
    command_ok([ 'sh', '-c', "pg_dump -U owner '" . $node->connstr($from) . "' | psql -XqAt -v ON_ERROR_STOP=1 -U owner '" . $node->connstr($to) . "'" ], "$to: restored");
}

# --- the status -----------------------------------------------------------------------------------
problem_is('app', qr/^managed\|randflake is not configured in this database: .*\|$/, 'the status before it is configured');
as_owner($node, 'SELECT randflake.randflake_configure(NULL, 7); CREATE TABLE item (id bigint DEFAULT randflake.randflake_generate()); INSERT INTO item DEFAULT VALUES');
my $secret = 'SELECT secret FROM randflake.randflake_state';
restore('app', 'restored');
problem_is('restored', qr/^managed\|this database is a copy of the one that was configured.*\|7$/, '  of a restored dump');
is(as_owner($node, $secret, 'restored'), as_owner($node, $secret), '  which has the secret');
as_owner($node, 'DROP SEQUENCE randflake.randflake_tickets_7, randflake.randflake_numbers_7', 'restored');
problem_is('restored', qr/^managed\|this database is a copy.*\|7$/, '  without sequences');

# --- the text -------------------------------------------------------------------------------------
# What runs is what the file shows. The functions in SQL have no body that could differ in text.
sub runs_as_shown($file, $database, $schema, $least) {
    my %functions;
    for my $chunk (split /^(?=CREATE (?:OR REPLACE )?FUNCTION )/m, slurp_file($file) =~ s/\@extschema\@/$schema/gr) {
        my ($name) = $chunk =~ /^CREATE (?:OR REPLACE )?FUNCTION (?:randflake\.)?(\w+)\(/ or next;
        my ($body) = $chunk =~ /\bAS (?:'MODULE_PATHNAME', '(?=\w+'\sLANGUAGE C)|\$\$)(.*?)(?:\$\$;|'\sLANGUAGE C)/s;
        push @{ $functions{$name} }, $body // 'in SQL';
    }
    my @shown = map { my $name = $_; map { "$name $_" } sort @{ $functions{$name} } } sort keys %functions;
    cmp_ok(scalar @shown, '>', $least, "functions in $file");
    is($node->safe_psql($database, qq{SELECT string_agg(p.proname || ' ' || f.body, E'\\n---\\n' ORDER BY p.proname COLLATE "C", f.body COLLATE "C")
        FROM pg_proc AS p, LATERAL (SELECT CASE WHEN p.prosqlbody IS NULL THEN p.prosrc ELSE 'in SQL' END AS body) AS f WHERE p.pronamespace = '$schema'::regnamespace}),
        join("\n---\n", @shown), '  are there as they run');
}
$node->sql("CREATE DATABASE $_ OWNER owner") for qw(coordinator extension);
as_owner($node, slurp_file('managed/coordinator.sql'), 'coordinator');
$node->safe_psql('extension', 'CREATE SCHEMA coordinates; CREATE EXTENSION randflake_coordinator SCHEMA coordinates');
runs_as_shown('managed/randflake.sql', 'app', 'randflake', 30);
runs_as_shown('managed/coordinator.sql', 'coordinator', 'randflake_coordinator', 40);
runs_as_shown((glob 'extension/randflake_coordinator--*.sql')[0], 'extension', 'coordinates', 40);

# --- quoted names --------------------------------------------------------------------------------
$node->sql('CREATE ROLE "Owner 1" LOGIN; CREATE DATABASE named OWNER "Owner 1"');
my $scripts = join '', map { 'BEGIN;' . slurp_file($_) . 'COMMIT;' } 'managed/randflake.sql', 'migrate/randflake_migrate.sql';
is($node->safe_psql('named', "$scripts SELECT randflake.randflake_configure(NULL, 11); CREATE TABLE item (id serial PRIMARY KEY); SELECT count(*) > 0 FROM randflake_migrate.plan() AS p WHERE p::text ~ 'item'",
        extra_params => [ '-U', 'Owner 1' ]) =~ /t$/, 1, 'an owner whose name needs quotes installs and plans');

# --- publications and prepared transactions -------------------------------------------------------
# Another server's row and rotations never arrive, whatever is published, and stop no worker. The
# subscriber lacks the sequences that the publisher's row names.
$node->sql("CREATE DATABASE $_ OWNER owner") for qw(publisher subscriber);
my $install = 'BEGIN;' . slurp_file('managed/randflake.sql') . 'COMMIT;';
my $item = 'CREATE TABLE item (id bigint DEFAULT randflake.randflake_generate())';
as_owner($node, "$install SELECT randflake.randflake_configure(NULL, 30); $item; INSERT INTO item SELECT FROM generate_series(1, 5)", 'publisher');
as_owner($node, "$install SELECT randflake.randflake_configure(NULL, 31); $item; SELECT randflake.randflake_generate()", 'subscriber');
$node->safe_psql('publisher', q{CREATE PUBLICATION everything FOR ALL TABLES; CREATE ROLE decodes LOGIN REPLICATION;
    SELECT pg_create_logical_replication_slot('fed', 'pgoutput'), pg_create_logical_replication_slot('read', 'test_decoding'), pg_create_logical_replication_slot('rewrites', 'test_decoding')});
my $row = 'SELECT s::text, xmin FROM randflake.randflake_state AS s';
my $kept = as_owner($node, $row, 'subscriber');
$node->safe_psql('subscriber', "CREATE SUBSCRIPTION fed CONNECTION 'host=" . $node->host . ' port=' . $node->port . " dbname=publisher' PUBLICATION everything WITH (create_slot = false, slot_name = 'fed')");
ok($node->poll_query_until('subscriber', q{SELECT bool_and(srsubstate = 'r') AND count(*) > 1 FROM pg_subscription_rel}), 'all tables are synchronized');
my $new = random_secret();
my $ring = as_owner($node, $secret, 'publisher') . "\n$new from 2050-01-01T00:00:00Z";
as_owner($node, "SELECT randflake.randflake_configure('$ring', 32); SELECT count(*) FROM randflake.randflake_generate(5)", 'publisher');
as_owner($node, 'INSERT INTO item DEFAULT VALUES', 'publisher');
ok($node->poll_query_until('subscriber', 'SELECT count(*) = 6 FROM item'), 'a rotation with another node id stops no subscription');
is(as_owner($node, $row, 'subscriber'), $kept, '  and the subscriber keeps its row');
problem_is('subscriber', qr/^managed\|\|31$/, '  and goes on');
as_owner($node, 'SELECT randflake.randflake_configure(NULL, 33)', 'subscriber');
# A worker of another product is not recognized, but no call trusts its row.
my $secrets = as_owner($node, $secret, 'subscriber');
$node->safe_psql('subscriber', q{SET session_replication_role = replica; CREATE TEMP TABLE copied AS SELECT (s).* FROM randflake.randflake_state AS s;
    UPDATE copied SET secret = 'another'; INSERT INTO randflake.randflake_state SELECT * FROM copied});
problem_is('subscriber', qr/^managed\|this database is a copy.*\|33$/, 'a row of a tool is noticed');
is(as_owner($node, $secret, 'subscriber'), $secrets, '  and the secret stays');
as_owner($node, 'SELECT randflake.randflake_configure(NULL, 33); INSERT INTO item DEFAULT VALUES', 'subscriber');
$node->safe_psql('subscriber', 'DROP SUBSCRIPTION fed');
if ($node->pg_version->major >= 19) {
    # The subscriber takes over the publisher's node id and secret, then refreshes its sequences.
    as_owner($node, 'SELECT randflake.randflake_configure(NULL, 30)', 'publisher');
    $node->safe_psql('publisher', q{CREATE PUBLICATION sequences FOR ALL SEQUENCES; SELECT pg_create_logical_replication_slot('refreshed', 'pgoutput')});
    as_owner($node, "SELECT randflake.randflake_configure(NULL, $_)", 'subscriber') for 32, 30;
    $node->safe_psql('subscriber', "CREATE SUBSCRIPTION refreshed CONNECTION 'host=" . $node->host . ' port=' . $node->port . " dbname=publisher' PUBLICATION sequences WITH (create_slot = false, slot_name = 'refreshed')");
    my $synchronized = q{SELECT bool_and(srsubstate = 'r') AND count(*) > 5 FROM pg_subscription_rel};
    ok($node->poll_query_until('subscriber', $synchronized), 'the sequences are synchronized');
    as_owner($node, 'SELECT randflake.randflake_configure(NULL, 30); SELECT randflake.randflake_generate()', 'subscriber');
    problem_is('subscriber', qr/^managed\|\|30$/, '  and moved on');
    $node->safe_psql('subscriber', 'ALTER SUBSCRIPTION refreshed REFRESH SEQUENCES');
    ok($node->poll_query_until('subscriber', $synchronized), '  and refreshed');
    problem_is('subscriber', qr/^managed\|the sequences of node id 30 were set back: /, '  which is noticed');
    $node->safe_psql('subscriber', 'DROP SUBSCRIPTION refreshed');
}
my %decoded = map { $_ => $node->safe_psql('publisher', "SELECT string_agg(data, ' ') FROM pg_logical_slot_get_changes('$_', NULL, NULL, 'include-rewrites', '" . ($_ eq 'rewrites' ? 1 : 0) . "')", extra_params => [ '-U', 'decodes' ]) } qw(read rewrites);
like($decoded{read}, qr/public\.item: INSERT/, 'logical decoding shows the tables');
unlike($decoded{read}, qr/$new/, '  and no secret');
like($decoded{rewrites}, qr/$new/, '  but a role with REPLICATION that asks for rewrites reads it, as the page says');

$node->safe_psql('publisher', q{BEGIN; INSERT INTO item DEFAULT VALUES; SAVEPOINT a; INSERT INTO item DEFAULT VALUES; PREPARE TRANSACTION 'it''s one'}, extra_params => [ '-U', 'owner' ]);
my $waits = start_session($node, '\\c publisher owner', 'SELECT randflake.randflake_configure(NULL, 32)');
$node->poll_query_until('publisher', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted}) or give_up('configure does not wait');
$node->safe_psql('publisher', q{COMMIT PREPARED 'it''s one'}, extra_params => [ '-U', 'owner' ]);
like((finish_session($waits))[1], qr/WARNING: .*waits for prepared transactions: 'it''s one'.*COMMIT PREPARED/s, 'configure names the prepared transaction that it waits for');

# --- another tablespace ---------------------------------------------------------------------------
my $space = tempdir();
$node->sql("CREATE TABLESPACE space LOCATION '$space'; CREATE DATABASE copy TEMPLATE app");
for my $place (qw(space pg_default)) {
    $node->sql("ALTER DATABASE $_ SET TABLESPACE $place") for qw(app copy);
    as_owner($node, 'INSERT INTO item SELECT FROM generate_series(1, 3)');
    error_is($node, 'SELECT randflake.randflake_generate()', '55000', { message => qr/is a copy/ }, "a copy in $place", database => 'copy');
}
is($node->safe_psql('app', 'SELECT count(DISTINCT id) FROM item'), 7, 'a database goes on in another tablespace');

# --- the extension --------------------------------------------------------------------------------
# Makes an extension from the text that pg_tle would register, because pg_tle is not installed.
sub write_file($name, $text) {
    unlink "$extensions/$name";
    append_to_file("$extensions/$name", $text);
}

sub register($program, @arguments) {
    my $printed = `$program @arguments`;
    my ($function, $parts, $script) = $printed =~ /^SELECT pgtle\.(\w+)\('randflake_managed', (.*?), \$_randflake_managed_\$\n(.*)\$_randflake_managed_\$\);/s
      or die "$program printed something else";
    my @versions = $function eq 'install_extension' ? $parts =~ /^'([^']+)'/ : $parts =~ /'([^']+)'/g;
    write_file('randflake_managed--' . join('--', @versions) . '.sql', $script);
    write_file('randflake_managed.control', "default_version = '$versions[-1]'\nsuperuser = false\n");
    return $printed;
}
register('managed/pgtle.sh');
$node->sql('CREATE DATABASE tle OWNER owner');
as_owner($node, 'CREATE EXTENSION randflake_managed; SELECT randflake.randflake_configure(NULL, 9); CREATE TABLE item (id bigint DEFAULT randflake.randflake_generate()); INSERT INTO item DEFAULT VALUES', 'tle');
restore('tle', 'tle_restored');
is(as_owner($node, $secret, 'tle_restored'), as_owner($node, $secret, 'tle'), 'the extension: a dump has the secret');
problem_is('tle_restored', qr/^managed\|this database is a copy.*\|9$/, '  and what was restored is a copy');
as_owner($node, 'SELECT randflake.randflake_configure(NULL, 10); INSERT INTO item DEFAULT VALUES', 'tle_restored');
is(as_owner($node, 'SELECT string_agg(d.node_id::text, $$,$$ ORDER BY d.node_id) FROM item, randflake.randflake_decode(id) AS d', 'tle_restored'), '9,10', '  which reads old values and makes new ones');
is(system("managed/pgtle.sh \"1'; DROP\" >/dev/null 2>&1") >> 8, 2, 'pgtle.sh takes nothing but a version');

# --- a later version ------------------------------------------------------------------------------
my $script = slurp_file('managed/randflake.sql');
my $later = $script =~ s/^(?=CREATE SCHEMA)/ALTER TABLE randflake.randflake_state ADD COLUMN IF NOT EXISTS later text DEFAULT 'later'; CREATE OR REPLACE FUNCTION randflake.randflake_later() RETURNS text LANGUAGE sql RETURN 'later';\n/mr;
my $other = $script =~ s/(?<=LANGUAGE sql IMMUTABLE RETURN )1;/2;/r =~ s/(?<=randflake_format\(\) <> )1 /2 /gr =~ s/(?<=installed > )1 /2 /r;

# Returns the statements that can fail. A psql that fails does not read the rest of a long input.
sub head { return $_[0] =~ s/^CREATE SCHEMA.*//msr }
sub install { as_owner($node, "BEGIN; $_[0] COMMIT") }

$node->sql('CREATE ROLE reader');
as_owner($node, <<'SQL');
GRANT EXECUTE ON FUNCTION randflake.randflake_decode(bigint) TO reader;
REVOKE EXECUTE ON FUNCTION randflake.randflake_generate_text() FROM PUBLIC;
REVOKE USAGE ON SCHEMA randflake FROM PUBLIC;
CREATE TABLE made (id bigint DEFAULT randflake.randflake_generate(), shown text GENERATED ALWAYS AS (randflake.randflake_to_text(id, 'it')) STORED);
CREATE INDEX ON made (randflake.randflake_shard(id, 8));
CREATE VIEW seen AS SELECT d.* FROM made, randflake.randflake_decode(id) AS d;
SQL
my $state = q{SELECT to_jsonb(s) - 'later', (SELECT string_agg(p.oid || p.proacl::text, ' ' ORDER BY p.oid) FROM pg_proc AS p WHERE p.pronamespace = n.oid AND p.proname <> 'randflake_later'), n.nspacl
FROM randflake.randflake_state AS s, pg_namespace AS n WHERE n.nspname = 'randflake'};
my $before = as_owner($node, $state);
my @clients = map { start_session($node, '\\c app owner', 'PREPARE make AS INSERT INTO made SELECT FROM generate_series(1, 20)', 'EXECUTE make',
        ('EXECUTE make', 'INSERT INTO made DEFAULT VALUES', 'BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO made DEFAULT VALUES; COMMIT') x 150) } 1 .. 3;
$node->poll_query_until('app', 'SELECT count(*) > 60 FROM made') or give_up('the clients do nothing');
my $installed = 0;
do {
    install($installed++ % 2 ? $script : $later);
} while ($node->safe_psql('app', q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'owner'}));
is(join('', map { (finish_session($_))[1] } @clients), '', "$installed times over itself, with sessions that go on");
is($node->safe_psql('app', 'SELECT count(*), count(DISTINCT id), count(shown) FROM made'), '9960|9960|9960', '  whose identifiers are distinct');
install($later);
is(as_owner($node, $state), $before, '  state and grants are kept');
is(as_owner($node, q{SELECT later, (SELECT count(*) FROM seen WHERE node_id = 7), (SELECT string_agg(p.proname || p.proacl::text, ',') FROM pg_proc AS p WHERE p.proname = 'randflake_later') FROM randflake.randflake_state}),
    'later|9960|randflake_later{owner=X/owner}', '  what is new is there, and the owner\'s');

my $reader = $node->background_psql('app', extra_params => [ '-U', 'owner' ]);
$reader->query_safe('BEGIN; SELECT randflake.randflake_generate()');
error_is($node, "BEGIN; SET LOCAL lock_timeout = '0.1 s'; " . head($script), '55P03', {}, 'an open transaction is waited for', database => 'app', user => 'owner');
$reader->quit;
error_is($node, head($later), '25P01', {}, 'not without a transaction', database => 'app', user => 'owner');

for my $case ([ 'the same format', $later, qr/^-?\d+$/, qr/^$/ ], [ 'another format', $other, qr/^$/, qr/ERROR:  40001: randflake was updated during this call/ ]) {
    my ($name, $text, $out, $error) = @$case;
    my $installer = $node->background_psql('app', extra_params => [ '-U', 'owner' ]);
    $installer->query_safe("BEGIN; $text");
    my $call = start_session($node, '\\c app owner', 'SELECT randflake.randflake_generate()');
    $node->poll_query_until('app', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted}) or give_up('no call waits');
    $installer->query_safe('COMMIT');
    $installer->quit;
    my @got = finish_session($call);
    ok($got[0] =~ $out && $got[1] =~ $error, "a call that waits, $name") or diag "@got";
    as_owner($node, 'INSERT INTO made DEFAULT VALUES');
}
error_is($node, "BEGIN; " . head($script), '55000', { message => qr/later version/ }, 'a former version does not replace a later one', database => 'app', user => 'owner');
$node->sql('CREATE ROLE stranger SUPERUSER LOGIN');
error_is($node, "BEGIN; " . head($other), '42P06', { message => qr/not one that this script can change/ }, 'another role', database => 'app', user => 'stranger');
$node->sql('CREATE SCHEMA randflake AUTHORIZATION owner; CREATE FUNCTION randflake.randflake_format() RETURNS integer LANGUAGE sql RETURN 1');
error_is($node, "BEGIN; " . head($script), '42P06', {}, 'functions of others', user => 'owner');

my $tree = tempdir();
system_or_bail('cp', '-R', 'managed', 'randflake.control', $tree);
my $session = $node->background_psql('tle', extra_params => [ '-U', 'owner' ]);
$session->query_safe('PREPARE make AS INSERT INTO item DEFAULT VALUES; ' . 'EXECUTE make; ' x 7);
system_or_bail('sed', '-i', "s/^default_version = .*/default_version = '9.9'/", "$tree/randflake.control");
unlink "$tree/managed/randflake.sql";
append_to_file("$tree/managed/randflake.sql", $later);
like(register("$tree/managed/pgtle.sh", '1.0'), qr/set_default_version\('randflake_managed', '9\.9'\)/, 'the way to a later version is registered');
as_owner($node, 'ALTER EXTENSION randflake_managed UPDATE', 'tle');
$session->query_safe('EXECUTE make');
$session->quit;
is(as_owner($node, 'SELECT (SELECT extversion FROM pg_extension WHERE extname = $$randflake_managed$$), later, (SELECT count(DISTINCT id) FROM item) FROM randflake.randflake_state', 'tle'),
    '9.9|later|9', '  and taken, with a session that goes on');
restore('tle', 'tle_later');
is(as_owner($node, $secret, 'tle_later'), as_owner($node, $secret, 'tle'), '  a dump still has the secret');
done_testing();
