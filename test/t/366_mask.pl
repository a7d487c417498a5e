# Tests masks and 53-bit identifiers as described in docs/masking.md.
use Docs;
use JSON::PP ();
use Randflake;
use RandflakeLease;

read_document('docs/masking.md', 'test/t/366_mask.pl');
my $secret = '00112233445566778899aabbccddeeff';
my $largest = (1 << 53) - 1;
my $node = start_server('main', init => [ allows_streaming => 1 ], own_clock => 1, extensions => ['randflake_type'],
    secrets => [$secret], settings => { node_id => 254, node_count => 2, max_wait => '1h' });

# --- vectors -----------------------------------------------------------------------------------
my @vectors = @{ JSON::PP::decode_json(slurp_file('test/unit/feistel_vectors.json')) };
for my $encoding (qw(utf8 koi8r win1251 sql_ascii)) {
    $node->sql("CREATE DATABASE $encoding ENCODING $encoding LOCALE 'C' TEMPLATE template0");
    $node->safe_psql($encoding, 'CREATE EXTENSION randflake');
    for my $vector (grep { $_->{secret} eq $secret && $_->{use} eq 'randflake mask' } @vectors) {
        my ($label, $numbers) = ($vector->{label}, $vector->{numbers});
        next if $encoding eq 'sql_ascii' && $label =~ /[^ -~]/;
        utf8::encode($label);
        my $values = join ', ', map { "($_->[0], $_->[1])" } @$numbers;
        is($node->safe_psql($encoding, <<"SQL"), scalar @$numbers, "$encoding, label $label");
SET client_encoding = '@{[ $encoding eq 'sql_ascii' ? 'SQL_ASCII' : 'UTF8' ]}';
SELECT count(*) FROM (VALUES $values) AS v (number, masked)
WHERE randflake_mask(number, '$label') = masked AND randflake_unmask(masked, '$label') = number
SQL
    }
}
error_is($node, "SELECT randflake_mask(1, E'\\xfc')", '22021', { message => qr/not valid text/, detail => qr/ASCII/,
    hint => qr/customer/ }, 'SQL_ASCII: a label is ASCII', database => 'sql_ascii');

# --- the page ----------------------------------------------------------------------------------
$node->sql(block($_)) for qw(mask generate prefix columns api);
is($node->sql("SET ROLE web; SELECT name FROM api.customer(8771554062691717), api.add_customer('Joan')"),
    'Ada', 'a function finds the row');
for my $call ("randflake_mask(1, 'customer')", "randflake_unmask(1, 'customer')",
    'randflake53_decode(1)', 'randflake53_encode(now(), 1, 1)') {
    error_is($node, "SET ROLE web; SELECT $call", '42501', {}, "and its role may not call $call");
}

# For each number, the program prints the masked number, and the result of unmasking it.
my @numbers = map { $_ <= 2000 ? $_ : int(rand 1 << 27) << 26 | int(rand 1 << 26) } 1 .. 9999;
push @numbers, $largest;
my $masks = join ', ', map { "$_" } @numbers;
my @expected = split /\n/, $node->sql(<<"SQL");
SELECT randflake_mask(n, 'order') || ' ' || n
FROM unnest(ARRAY[$masks]::bigint[]) WITH ORDINALITY AS u (n, i) ORDER BY i
SQL
is(scalar @expected, 10000, 'ten thousand numbers');
my $directory = tempdir();
append_to_file("$directory/mask.mjs", block('mask.mjs'));
append_to_file("$directory/main.mjs", <<"JS");
import { createInterface } from 'node:readline';
import { keyOf, mask, unmask } from './mask.mjs';
const key = keyOf('$secret', 'randflake mask', 'order');
for await (const line of createInterface({ input: process.stdin })) {
  const masked = mask(key, Number(line));
  if (!Number.isSafeInteger(masked)) throw new Error(masked);
  console.log(masked, unmask(key, masked));
}
JS
SKIP: {
    skip 'node is not installed', 1
      if !eval { IPC::Run::run([ 'node', '--version' ], '>', \my $version) } && ($ENV{RANDFLAKE_DRIVERS} // '') ne 'light';
    my ($out, $err) = ('', '');
    IPC::Run::run([ 'node', 'main.mjs' ], '<', \join("\n", @numbers, ''), '>', \$out, '2>', \$err,
        init => sub { chdir $directory or die $! });
    ok($out eq join("\n", @expected, ''), 'JavaScript gives what the server gives') or diag($err, substr $out, 0, 200);
}

# --- a standby ---------------------------------------------------------------------------------
my $standby = standby_of($node, 'standby');
is($standby->sql("SELECT randflake_unmask(randflake_mask(1, 'customer'), 'customer')"), 1, 'standby: masks');
error_is($standby, 'SELECT randflake53_generate()', '25006', { hint => qr/primary/ }, 'standby: generates nothing');
$standby->stop;

# --- crashes -----------------------------------------------------------------------------------
$node->sql('CREATE TABLE made (id bigint, n serial)');
my $make = 'INSERT INTO made SELECT randflake53_generate() FROM generate_series(1, 40000)';
$node->sql($make);
for my $stop ('immediate', 'fast', 'immediate') {
    $node->stop($stop);
    start_under_clock($node);
    $node->sql($make);
}
my $before = $node->sql('SELECT sum(hashtext(d::text)) FROM made, randflake53_decode(id) AS d');
my $mask = $node->sql("SELECT randflake_mask(1, 'customer')");
my $from = time + 60;
reload_secrets($node, $secret, $from, random_secret());
is($node->sql('SELECT sum(hashtext(d::text)) FROM made, randflake53_decode(id) AS d'),
    $before, 'a further secret: earlier identifiers decode');
my $loop = start_session($node, "DO \$\$ BEGIN WHILE clock_timestamp() < to_timestamp($from) + interval '2 s' LOOP
    INSERT INTO made SELECT randflake53_generate() FROM generate_series(1, 1000); COMMIT; PERFORM pg_sleep(0.02);
    END LOOP; END \$\$");
$node->poll_query_until('postgres', 'SELECT count(*) > 160000 FROM made');
clock_runs_from($node, $from - 1);
is((finish_session($loop))[1], '', '  a session goes on through its time');
is($node->sql(<<"SQL"), 't|t|t|t', '  no identifier twice, and each decodes to its own');
SELECT count(*) = count(DISTINCT id), count(*) = count(DISTINCT d), bool_and(randflake53_encode((d).generated_at, (d).node_id, (d).sequence) = id),
       count(*) FILTER (WHERE (d).generated_at >= to_timestamp($from)) > 1000
FROM (SELECT id, randflake53_decode(id) AS d FROM made) AS decoded
SQL
is($node->sql("SELECT randflake_mask(1, 'customer')"), $mask, '  masks stay');
my $fields = fields_of($node, 'SELECT id FROM made', 'randflake53_decode(id)');
like($fields->{nodes}, qr/^25[45]( 255)?$/, '  all under node ids of this server');

# --- node ids -----------------------------------------------------------------------------------
$node->stop;
for my $case ([ 255, 2, 'node ids 255 to 256' ], [ 0, 257, 'node ids 0 to 256' ], [ 131071, 1, 'node ids 131071 to 131071' ]) {
    my ($first, $count, $named) = @$case;
    configure($node, node_id => $first, node_count => $count, secret_file => secret_path($node), max_wait => '1h');
    my $offset = -s $node->logfile;
    start_under_clock($node);
    like(slurp_file($node->logfile, $offset), qr/cannot generate 53-bit identifiers: \Q$named\E do not fit/,
        "$named: the log says so");
    error_is($node, 'SELECT randflake53_generate()', '55000', { message => qr/^\Q$named\E do not fit in 53-bit/,
        detail => qr/from 0 to 255/, hint => qr/"randflake.node_id"/ }, '  and a call at once');
    ok($node->sql('SELECT randflake_generate()'), '  others are made');
    $node->stop;
}

my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');
$coordinator->sql('SELECT randflake_lease_configure(first_node_id => 255, node_count => 2)');
my $holder = start_holder($fleet, 'holder', $coordinator, node_count => 1);
ok($holder->sql('SELECT randflake53_generate()'), 'leased: node id 255');
my $other = start_holder($fleet, 'other', $coordinator, node_count => 1);
error_is($other, 'SELECT randflake53_generate()', '55000',
    { message => qr/^node ids 256 to 256 do not fit/, hint => qr/pool/ }, 'leased: node id 256');
$_->stop for $holder, $other, $coordinator;
every_block_was_used();
done_testing();
