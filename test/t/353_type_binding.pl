# Checks that a database stays bound to the secrets of its values, whatever the clock shows.
# Withdraws a secret that began too early. Tries values without an entry in randflake_key, invented
# identifiers, parallel operations, and servers whose secrets differ from the database's secrets.
use Docs;
use Randflake;
use Time::HiRes qw(time);

read_document('docs/rotation.md', 'test/t/353_type_binding.pl');
my @secrets = map { random_secret() } 1 .. 4;
my $year = 365 * 86400;

# The test sets the server's clock, and so need not wait for the time of a secret.
my $node = start_server('main', own_clock => 1, extensions => ['randflake_type'], secrets => [ $secrets[0] ],
    settings => { node_id => 1, max_wait => '1h' });
my %settings = (node_id => 1, secret_file => secret_path($node), max_wait => '1h');
my $clock = int time;
sub clock_shows {
    ($clock) = @_;
    clock_runs_from($node, $clock);
}
clock_shows($clock);

$node->sql(<<'SQL');
CREATE ROLE app LOGIN;
CREATE TABLE made (id randflake PRIMARY KEY DEFAULT randflake_next(), n integer);
INSERT INTO made (n) SELECT generate_series(1, 5000);
CREATE TABLE number (number bigint);
INSERT INTO number SELECT id::bigint FROM made;
ANALYZE made, number;
GRANT ALL ON made, number TO app;
SQL
my $old = q{SELECT count(*), md5(string_agg(id::text, ' ' ORDER BY id)) FROM made WHERE n <= 5000};
my $shown = $node->sql($old);
my $entries = 'SELECT count(DISTINCT fingerprint) FROM randflake_key';
my ($first) = fingerprints_of($secrets[0]);

sub restart_with(@file) {
    $node->stop;
    write_secrets($node, @file);
    start_under_clock($node);
}
sub reload_with { return reload_secrets($node, @_) }

sub reads_old($test_name) {
    is($node->sql($old), $shown, $test_name);
    is($node->sql(<<"SQL"), "5000\n5000", '  in parallel, and as input');
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT count(id::text) FROM made WHERE n <= 5000;
SELECT count(number::randflake) FROM number;
SQL
}
sub is_as_before($test_name) {
    reads_old($test_name);
    is($node->sql('SELECT string_agg(fingerprint, $$ $$) FROM randflake_key'), $first,
        '  and the database has the first secret alone');
    is($node->sql('INSERT INTO made (n) VALUES (6000) RETURNING id::text::randflake = id', user => 'app'), 't',
        '  values are made');
    $node->sql('CREATE INDEX again ON made (id); DROP INDEX again');
}

# --- ways back ------------------------------------------------------------------------------------
my $begins = $clock + 60;
is(reload_with($secrets[0], $begins => $secrets[1]), 2, 'a line that others do not have');
clock_shows($begins + 5);
reads_old('after its time, old values are read');
$node->sql('SELECT randflake_lower(now())::text; CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION randflake_type CASCADE');
is($node->safe_psql('fresh', $entries), 1, '  and a new database has the first secret alone');
restart_with($secrets[0]);
is_as_before('the line is taken away');

$begins = $clock + 60;
is(reload_with($secrets[0], $begins => $secrets[1]), 2, 'a line');
clock_shows($begins - 1);
reads_old('just before its time, old values are read');
restart_with($secrets[0], $begins + 3600 => $secrets[1]);
is_as_before('the secret is moved to later');

configure($node, %settings, max_clock_skew => '30s');
$begins = $clock + 120;
restart_with($secrets[0], $begins => $secrets[1]);
clock_shows($begins - 21);
reads_old('within max_clock_skew of its time, old values are read');
restart_with($secrets[0]);
is_as_before('the secret is withdrawn');
configure($node, %settings);

# --- the clock refuses ----------------------------------------------------------------------------
$begins = $clock + 1000;
restart_with($secrets[0]);
# This session begins while the server has one secret, and goes on when the server has two secrets.
my $early = $node->background_psql('postgres', on_error_stop => 1);
$early->query_safe('SET ROLE app');
isnt($early->query_safe('SELECT randflake_next()'), '', 'a session makes a value');
is(reload_with($secrets[0], $begins => $secrets[1]), 2, '  before the second secret');
# Returns the identifier of this second's first number that the server does not skip.
sub number_of($second) {
    return $node->sql(<<"SQL");
CREATE OR REPLACE FUNCTION number_of(second bigint) RETURNS bigint LANGUAGE plpgsql AS \$\$
BEGIN
    FOR i IN 0 .. 1000 LOOP
        BEGIN
            RETURN randflake_encode(to_timestamp(second), 77, i);
        EXCEPTION WHEN invalid_parameter_value THEN
        END;
    END LOOP;
END \$\$;
SELECT number_of($second);
SQL
}
my $guessed = number_of($begins + 5);
my $unmade = { message => qr/invalid identifier for type randflake/, detail => qr/No server has made it yet\. Its time is / };
error_is($node, "SELECT ($guessed)::bigint::randflake", '22P02', $unmade, 'a made-up identifier of a future time is refused');
error_is($node, "SELECT randflake_to_text(($guessed)::bigint)::randflake", '22P02', $unmade, '  also as text', user => 'app');
error_is($node, "INSERT INTO made VALUES ($guessed)", '22P02', $unmade, '  nor a row');
is($node->sql($entries), 1, '  and binds nothing');
is($node->sql("SELECT randflake_lower(to_timestamp($begins + 5))::text::randflake = randflake_lower(to_timestamp($begins + 5))"), 't',
    '  but a second to come is one');
clock_shows($begins - 4);
error_is($node, "SELECT ($guessed)::bigint::randflake", '22P02', $unmade, 'four seconds before, it is still refused');
clock_shows($begins - 1);
is($node->sql("BEGIN; INSERT INTO made VALUES ($guessed); $entries; ROLLBACK; $entries"), "2\n1",
    'a second before, another server may have made it: it is read, and binds');

# --- read-only statements -------------------------------------------------------------------------
clock_shows($begins + 10);
my $own = number_of($begins + 2);
my $missing = {
    message => qr/a value of type randflake belongs to a secret that this database is not bound to/,
    detail => qr/^Key fingerprint \w{16} is not in the table "randflake_key"/,
    hint => qr/superuser run randflake_bind_secret\(\) once/ };
my $parallel = { %$missing, detail => qr/^A parallel operation cannot add key fingerprint \w{16}\.$/ };
my $in_parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
error_is($node, "$in_parallel SELECT count(randflake_next()) FROM number", '55000', $parallel, 'a parallel operation makes no first value');
error_is($node, "$in_parallel SELECT max((number * 0 + ($own))::randflake) FROM number", '55000', $parallel, '  and reads none in');
is($node->sql("SET default_transaction_read_only = on; SELECT count(*) FROM made WHERE id = ($own)::bigint::randflake"), 0,
    'a read-only transaction searches by one');
error_is($node, 'BEGIN READ ONLY; SELECT randflake_next()', '55000', $missing, '  and shows none that it made');
is($node->sql($entries), 1, '  which binds nothing');

# --- rolled-back entries --------------------------------------------------------------------------
my $own_text = $node->sql("SELECT lpad(randflake_to_text($own), 13, '0')");
for my $how ('BEGIN', 'BEGIN READ ONLY') {
    my $rest = "PREPARE kept AS SELECT '$own_text'::randflake; ROLLBACK; EXECUTE kept";
    error_is($node, "$how; $rest", '55000', $missing, "prepared after $how, executed later");
    is($node->sql("$how; " . ($rest =~ s/EXECUTE/BEGIN; SELECT length(randflake_bind_secret()); EXECUTE/r) . "; ROLLBACK") =~ s/\n\w+$//r,
        16, '  and the hint helps');
}
my $outlives = <<'SQL';
DO $$
DECLARE kept randflake;
BEGIN
    BEGIN
        kept := randflake_next();
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN
    END;
    INSERT INTO made VALUES (kept, 7000);
END $$;
SQL
$node->sql("BEGIN; $outlives ROLLBACK");
error_is($node, "BEGIN; $outlives SELECT id FROM made WHERE n = 7000", '55000', $missing, 'a variable that outlives a subtransaction');
is($node->sql("BEGIN; $outlives SELECT length(randflake_bind_secret()); SELECT length(id::text) > 0 FROM made WHERE n = 7000; ROLLBACK"), "16\nt",
    '  and the hint helps');
is($node->sql("BEGIN; $outlives $in_parallel SET parallel_leader_participation = off; SELECT count(id::text) FROM made WHERE n <= 7000; ROLLBACK") > 5000, 1,
    '  and a parallel worker shows it');
is($node->sql($entries), 1, '  nothing is bound by any of this');

my $looking = start_session($node, <<'SQL');
DO $$
DECLARE shown integer;
BEGIN
    LOOP
        SELECT count(id::text) INTO shown FROM made WHERE n >= 5000;
        EXIT WHEN shown = 5;
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$
SQL
await($node, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 'no session looks');
$early->query_safe('INSERT INTO made (n) VALUES (8000)');
$early->quit;
is((finish_session($looking))[1], '', 'a transaction that looks at old values sees the first of the new secret');
is($node->sql($entries), 2, '  which an ordinary role has bound');
$node->sql("$in_parallel INSERT INTO made (n) SELECT 8001; SELECT count(randflake_next()) FROM number");
pass('  and parallel operations make values');

# --- differing secrets ----------------------------------------------------------------------------
my $new = q{SELECT count(*), md5(string_agg(id::text, ' ' ORDER BY id)) FROM made};
my $everything = $node->sql($new);
my $differs = {
    message => qr/belong to another secret/,
    detail => qr/^The database has key fingerprint \w{16} beside \Q$first\E, this server has .* They differ from .* on; earlier values can be read\.$/,
    hint => qr/delete them and its rows in the table "randflake_key"/ };
sub differs($test_name, @file) {
    restart_with(@file);
    reads_old("$test_name: old values are read");
    error_is($node, $_, '55000', $differs, "  refused: $_") for 'SELECT id FROM made WHERE n = 8000',
        "SELECT ($own)::bigint::randflake", 'CREATE INDEX ON made (id)', 'COPY made TO STDOUT';
    is($node->sql('SELECT count(*) FROM (SELECT n FROM (SELECT * FROM made OFFSET 0) AS m ORDER BY id) AS s'), 5005, '  rows are sorted');
}
differs('withdrawn after it was used', $secrets[0]);
differs('replaced', $secrets[0], $begins => $secrets[2]);
differs('moved to later', $secrets[0], $begins + 20 => $secrets[1]);
differs('moved to earlier', $secrets[0], $begins - 20 => $secrets[1]);
# Under the first secret, some of these invented identifiers decode to the second secret's times.
my $none = 'SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 100) AS i WHERE (i * 1000003 + 7)::bigint::randflake IS NULL) AS s';
error_is($node, $none, '55000', $differs, '  nor is an identifier of no secret or of a later second a malformed one');
restart_with($secrets[3]);
for my $sql ($old, "SELECT ($own)::bigint::randflake", 'SELECT n FROM (SELECT * FROM made OFFSET 0) AS s ORDER BY id',
    'CREATE INDEX ON made (id)', 'SELECT randflake_lower(now())') {
    error_is($node, $sql, '55000', { message => qr/belong to another secret/, detail => qr/^[^.]*\.$/ }, "another first secret refuses $sql");
}
restart_with($secrets[0], $begins => $secrets[1], $begins + $year => $secrets[2]);
is($node->sql($new), $everything, 'with a line too many, all is read');
is($node->sql($entries), 2, '  and nothing is bound');

# Runs the documented statements that abandon all values made with a secret.
restart_with($secrets[0]);
my ($fingerprint) = error_of($node, 'SELECT id FROM made WHERE n = 8000')->{detail} =~ /key fingerprint (\w+) beside/;
$node->sql(block('give_up') =~ s/orders/made/r =~ s/'2027[^']*'/"'" . utc($begins) . "'"/er
      =~ s/0f1e2d3c4b5a6978/$fingerprint/r);
is($node->sql('SELECT count(*) FROM randflake_key_check'), 1, 'the rows of a secret are gone');
is($node->sql($old), $shown, '  and its values');
$node->sql("SELECT 12345::bigint::randflake; CREATE INDEX ON made (id)");
pass('  and the rest is as if it had never been');

$node->stop;
no_secret_in(slurp_file($node->logfile), $_, 'the log has no secret') for @secrets;
every_block_was_used();
done_testing();
