# Leases node ids through SQL, as docs/leases-reference.md tells applications to do. A server and a
# JavaScript program that uses the npm package randflake make identifiers for one table, and decode
# each other's identifiers. The test skips the program if test/js lacks node-postgres, which "npm
# ci" installs. If the package randflake is missing, test/js/randflake.mjs replaces it.
use Cwd qw(getcwd);
use Docs;
use File::Basename qw(basename);
use Randflake;
use RandflakeLease;

read_document('docs/leases-reference.md', 'test/t/220_lease_js.pl');

$RandflakeLease::duration = 120;
my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');
my $server = start_holder($fleet, 'server', $coordinator, node_count => 3);
$server->sql('CREATE TABLE item (id bigint PRIMARY KEY DEFAULT randflake_generate(), made_by text)');

my $directory = tempdir();

sub write_program($name, $text) { append_to_file("$directory/$name", $text) }

sub output_of(@command) {
    local %ENV = (%ENV, SECRET => $fleet->{secret}, COORDINATOR_HOST => $coordinator->host,
        COORDINATOR_PORT => $coordinator->port, SERVER_HOST => $server->host,
        SERVER_PORT => $server->port, PGUSER => scalar getpwuid($<));
    my ($output, $errors) = ('', '');
    my $good = eval {
        IPC::Run::run(\@command, '<', '/dev/null', '>', \$output, '2>', \$errors);
    };
    return ($good, $output, $errors);
}

write_program('lease.mjs', block('lease.mjs'));
write_program('program.mjs', <<'JS');
import pg from 'pg';
import { acquire, generate, release, renew, request } from './lease.mjs';

const secret = Buffer.from(process.env.SECRET, 'hex');
async function connect(which) {
  const client = new pg.Client({
    host: process.env[`${which}_HOST`], port: process.env[`${which}_PORT`], database: 'postgres' });
  await client.connect();
  return client;
}
const coordinator = await connect('COORDINATOR');
const server = await connect('SERVER');
const lease = await acquire(coordinator, 'program', secret, 60);
const known = lease.end;

// Inserts an identifier of this program and one of the server in turn.
async function insert(count) {
  for (let i = 0; i < count; i++) {
    await server.query("INSERT INTO item VALUES ($1, 'program')", [generate(lease)]);
    await server.query("INSERT INTO item (made_by) VALUES ('server')");
  }
}
await insert(200);
await renew(coordinator, lease, 90);
console.log(`renewed ${lease.end > known}`);
await insert(200);

// Asks for more identifiers than a second has, then sets the clock ahead, back and ahead again.
// Calls fail, and no identifier repeats.
const realNow = Date.now;
const [began, made, errors] = [Math.floor(realNow() / 1000), [], []];
for (const [step, calls] of [[0, 131_200], [1, 1], [0, 200], [1, 200]]) {
  Date.now = () => (began + step) * 1000;
  let failed = 0;
  for (let i = 0; i < calls; i++) try { made.push(generate(lease)); } catch { failed++; }
  errors.push(failed);
}
console.log(`repeated ${made.length - new Set(made).size}, failed ${errors[0] >= 128} ${errors.slice(1)}`);
while (realNow() < (began + 2) * 1000) await new Promise((resolve) => setTimeout(resolve, 100));
Date.now = () => realNow() - 3600_000;
await release(coordinator, lease);
Date.now = realNow;

const { rows } = await server.query('SELECT id FROM item ORDER BY id');
for (const { id } of rows) {
  const { timestamp, nodeID, sequence } = lease.generator.inspect(BigInt(id));
  console.log(`${id}|${timestamp}|${nodeID}|${sequence}`);
}

// A grant that comes with a warning is no lease.
await server.query(`CREATE FUNCTION pg_temp.warn() RETURNS integer LANGUAGE plpgsql
  AS $$ BEGIN RAISE WARNING 'in doubt'; RETURN 1; END $$`);
await request(server, 'SELECT pg_temp.warn()', []).then(() => console.log('no error'), (error) => console.log(error.message));
await coordinator.end();
await server.end();
JS

SKIP: {
    my $packages = getcwd() . '/test/js/node_modules';
    skip 'the npm package pg is not in test/js/node_modules', 9
      if !-d "$packages/pg" && (!$ENV{RANDFLAKE_DRIVERS} || $ENV{RANDFLAKE_WITHOUT_NPM});
    mkdir "$directory/node_modules" or die $!;
    for my $package (glob "$packages/*") {
        symlink $package, "$directory/node_modules/" . basename($package) or die $!;
    }
    if (!-e "$packages/randflake") {
        mkdir "$directory/node_modules/randflake" or die $!;
        write_program('node_modules/randflake/package.json', '{"type": "module", "exports": {"./v2": "./randflake.mjs"}}');
        write_program('node_modules/randflake/randflake.mjs', slurp_file('test/js/randflake.mjs'));
    }
    my ($good, $output, $errors) = output_of('node', "$directory/program.mjs");
    ok($good, 'a JavaScript program leases, generates and inserts') or diag($errors);
    my ($renewed, $repeated, @inspected) = split /\n/, $output;
    is($renewed, 'renewed true', 'it renews its lease');
    is($repeated, 'repeated 0, failed true 0,200,0', '  and makes nothing twice when its clock steps back or a second is used up');
    is(pop @inspected, 'in doubt', 'takes an answer with a warning for none');
    my $decoded = $server->sql(<<'SQL');
SELECT id, extract(epoch FROM generated_at)::bigint, node_id, sequence
FROM item, randflake_decode(id) ORDER BY id
SQL
    is(join("\n", @inspected), $decoded, 'library and server read the same in every identifier');
    is($server->sql('SELECT made_by, count(*) FROM item GROUP BY made_by ORDER BY made_by'),
        "program|400\nserver|400", 'identifiers of both are in one table');

    my $items = $server->sql('SELECT id, made_by FROM item') =~ tr/|/\t/r;
    write_program('items', "$items\n");
    my $copy = "CREATE TEMP TABLE item (id bigint, made_by text);\n\\copy item FROM '$directory/items'\n";
    is($coordinator->sql(<<"SQL"), 0, 'all are inside the leases of their makers');
$copy
SELECT count(*) FROM item, randflake_decode(id)
WHERE NOT EXISTS (SELECT FROM randflake_lease WHERE holder = made_by AND nodes \@> node_id
                  AND span \@> extract(epoch FROM generated_at)::bigint)
SQL
    is($coordinator->sql(<<'SQL'), '2|t', 'whose node ids are disjoint');
SELECT count(*), NOT int4range(min(lower(nodes)), min(upper(nodes)))
                     && int4range(max(lower(nodes)), max(upper(nodes))) FROM randflake_lease
SQL
    is( $coordinator->sql(
            q{SELECT state, ends_at <= clock_timestamp() + interval '1 s' FROM randflake_leases WHERE holder = 'program'}),
        'released|t', 'the program gives its lease back, with what it used, by a clock that stepped back');
}
$_->stop for $server, $coordinator;
every_block_was_used();
done_testing();
