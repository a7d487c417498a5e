# Checks that the managed script gives out the same numbers as its model, despite paused or canceled
# sessions, and after RANDFLAKE_ROUNDS crashes. A copied database must refuse to give out numbers.

use Docs;
use FindBin;
use List::Util qw(shuffle);
use POSIX qw(strftime);
use Randflake;
use RandflakeManaged;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{RANDFLAKE_ROUNDS} // 4;

# A call that is ahead of the clock waits until the WAL writer has written.
my $node = my $main = managed_server('main', streaming => 1, own_clock => 1, conf => "restart_after_crash = on\nlog_statement = none\nmax_connections = 60\nwal_writer_delay = 1ms\n");

# All servers share a clock. When a session of `owner` waits for the clock, the clock advances by a
# second. In other sessions, which test crashes and races, a wait takes true time.
my $ahead = 0;
$SIG{USR1} = sub { clock_offset($main, ++$ahead) };
$node->safe_psql($_, <<"SQL") for 'app', 'template1';
ALTER FUNCTION pg_catalog.pg_sleep(double precision) RENAME TO real_sleep;
CREATE FUNCTION pg_catalog.pg_sleep(seconds double precision) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS \$f\$
BEGIN
    IF session_user = 'owner' AND seconds = 0.002 THEN
        COPY (SELECT WHERE false) TO PROGRAM 'kill -USR1 $$';
    END IF;
    PERFORM real_sleep(seconds);
END \$f\$;
SQL
install_managed($node);

read_document('docs/managed.md', 'test/t/432_managed_numbers.pl');
like(as_owner($node, block('first_steps')), qr/Ada\|20.*\|7\|/, 'the first steps');
like(my $secret = as_owner($node, block('secret')), qr/^[0-9a-f]{32}$/, 'the secret to hand on');
append_to_file(my $file = PostgreSQL::Test::Utils::tempdir() . '/secret', "$secret\n" . ('5' x 32) . " from 2050-01-01T00:00:00Z\n");
as_owner($node, block('rotate') =~ s/'randflake\.secret'/'$file'/r);
is(as_owner($node, "SELECT string_agg(state, ' ' ORDER BY generation) FROM randflake.randflake_secrets; SELECT randflake.randflake_configure('$secret', NULL)"),
    "current future\n", 'the lines of a file, from psql');
is(as_owner($node, q{SELECT bool_and(generated_at < clock_timestamp() + interval '30 s') FROM customer, randflake.randflake_decode(id)}),
    't', 'what is made under a secret that is new begins at once');

$node->safe_psql('postgres', 'CREATE DATABASE second OWNER owner');
as_owner($node, 'BEGIN;' . slurp_file('managed/randflake.sql') . 'COMMIT; SELECT randflake.randflake_configure(NULL, 9); SELECT randflake.randflake_generate()', 'second');

# Identifiers go to a file, because a process with millions of them in memory forks slowly.
my $made = PostgreSQL::Test::Utils::tempdir() . '/made';

sub keep { append_to_file($made, join '', map { "$_\n" } @_) }

sub judge {
    my ($name) = @_;
    $node->safe_psql('app', "CREATE UNLOGGED TABLE IF NOT EXISTS made (id bigint); TRUNCATE made; COPY made FROM '$made'");
    my ($count, $distinct) = split /\|/, $node->safe_psql('app', 'SELECT count(*), count(DISTINCT id) FROM made');
    ok($count > 1000 && $distinct == $count, "$name: $distinct of $count identifiers are distinct");
    unlink $made;
}

sub start_standby {
    my ($name) = @_;
    my $standby = standby_of($node, $name, start => 0);
    start_under_clock($standby, $main);
    as_owner($node, 'SELECT count(*) FROM randflake.randflake_generate(3)');
    $node->wait_for_catchup($standby);
    return $standby;
}

sub receive_no_more {
    my ($standby) = @_;
    $standby->append_conf('postgresql.conf', "primary_conninfo = ''\n");
    $standby->reload;
    $standby->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_wal_receiver') or give_up('still receives');
}

# Makes identifiers that use up the given number of seconds ahead of the clock. Skips most numbers.
sub hurry {
    my ($server, $seconds, $database, $before, $after) = @_;
    return grep { /./ } split /\n/, as_owner($server, 'SET synchronous_commit = local;' . ($before // '') . q{
        DO 'BEGIN PERFORM setval(numbers, (pg_sequence_last_value(numbers) | 131071) - 8191) FROM randflake.randflake_state; END';
        SELECT randflake.randflake_generate(25);} x $seconds . ($after // ''), $database);
}

my $position = 'SELECT randflake.randflake_position(tickets, hops, leaps) FROM randflake.randflake_state';

# --- the model ------------------------------------------------------------------------------------

# Each read of the clock advances the clock by 5 ms. From the 150th read on, the clock stands still,
# so that the second does not end. A session that has no ticket by then counts as waiting.
$node->safe_psql('postgres', 'CREATE DATABASE model TEMPLATE template0 OWNER owner');
as_owner($node, 'BEGIN;' . slurp_file('managed/randflake.sql') . 'COMMIT; SELECT randflake.randflake_configure(NULL, 5); CREATE SEQUENCE looks; CREATE SEQUENCE before MINVALUE 0', 'model');
$node->safe_psql('model', <<'SQL');
ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO real_clock_timestamp;
CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE n bigint := nextval('public.looks');
BEGIN
    IF n > 150 AND pg_sequence_last_value('randflake.randflake_tickets_5') = pg_sequence_last_value('public.before') THEN
        RAISE 'waits';
    END IF;
    RETURN to_timestamp(1830000000.1 + 0.005 * least(n, 150));
END $$;
SQL
my $program = PostgreSQL::Test::Utils::tempdir() . '/sequence_trace';
PostgreSQL::Test::Utils::system_or_bail($ENV{CXX} // 'g++', '-std=c++20', '-O1', '-o', $program, "$FindBin::Bin/../unit/sequence_trace.cpp");
my $replay = <<'SQL';
DO $do$
DECLARE
    line text; t text[]; got text; id bigint; v bigint; start constant bigint := 100000000::bigint << 6; life bigint := date_part('microseconds', pg_postmaster_start_time())::bigint & 65535;
BEGIN
    FOREACH line IN ARRAY string_to_array(current_setting('test.trace'), chr(10)) LOOP
        t := string_to_array(line, ' ');
        PERFORM setval('randflake.randflake_numbers_5', (life << 47) | ((100000000 + t[1]::bigint) << 17) | t[2]::bigint),
            setval('randflake.randflake_tickets_5', start + t[3]::bigint), setval('before', start + t[3]::bigint),
            setval('randflake.randflake_hops_5', 0), setval('randflake.randflake_leaps_5', 0), setval('looks', 1);
        BEGIN
            id := randflake.randflake_generate();
            v := pg_sequence_last_value('randflake.randflake_numbers_5');
            got := format('%s %s %s %s %s %s', ((v >> 17) & 1073741823) - 100000000, v & 131071,
                randflake.randflake_position('randflake.randflake_tickets_5', 'randflake.randflake_hops_5', 'randflake.randflake_leaps_5') - start,
                pg_sequence_last_value('randflake.randflake_tickets_5') - pg_sequence_last_value('before'),
                pg_sequence_last_value('randflake.randflake_hops_5'), pg_sequence_last_value('randflake.randflake_leaps_5'));
            IF (SELECT (extract(epoch FROM generated_at)::bigint - 1830000000, sequence)::text FROM randflake.randflake_decode(id))
                <> (((v >> 17) & 1073741823) - 100000000, v & 131071)::text THEN
                got := got || ' but made another number';
            END IF;
        EXCEPTION WHEN raise_exception THEN
            got := 'wait';
        WHEN object_not_in_prerequisite_state THEN
            got := 'back';
        END;
        IF got <> array_to_string(t[4:], ' ') THEN
            RAISE WARNING '% gave %', line, got;
        END IF;
    END LOOP;
END
$do$;
SQL
for my $promoted ('', 'promoted') {
    chomp(my $trace = `$program $promoted`);
    as_owner($node, q{UPDATE randflake.randflake_state SET timeline = 'former', failover = true, writer = pg_current_xact_id()::xid}, 'model') if $promoted;
    my ($status, $out, $differs) = $node->psql('model', "SET test.trace = '$trace'; $replay");
    ok($status == 0 && $differs eq '', 'as the model' . ($promoted && ', promoted') . ', in ' . (1 + $trace =~ tr/\n//) . ' states') or diag substr $differs, 0, 2000;
}
$node->safe_psql('postgres', 'DROP DATABASE model');

# --- refusals -------------------------------------------------------------------------------------

for my $isolation ('REPEATABLE READ', 'SERIALIZABLE') {
    my $old = $node->background_psql('app', on_error_stop => 0);
    $old->query_safe("BEGIN ISOLATION LEVEL $isolation; SELECT 1 FROM pg_class");
    as_owner($node, 'SELECT randflake.randflake_configure(NULL, 8)');
    my ($text) = $old->query('SELECT randflake.randflake_generate()');
    like($old->{stderr} . ($text // ''), qr/not configured/, "$isolation: an old snapshot sees no node id");
    $old->quit;
    as_owner($node, 'SELECT randflake.randflake_configure(NULL, 7)');
}
error_is($node, q{DO 'BEGIN PERFORM setval(numbers, 0) FROM randflake.randflake_state; END'; SET neon.timeline_id = 'branch'; SELECT randflake.randflake_generate()},
    '55000', { message => qr/is a copy of the one/ }, 'a branch of Neon', database => 'app', user => 'owner');
as_owner($node, 'SELECT randflake.randflake_generate(); SELECT setval(tickets, pg_sequence_last_value(tickets) + 64 * 100), setval(numbers, pg_sequence_last_value(numbers) + (100 << 17)) FROM randflake.randflake_state');
error_is($node, "SELECT randflake.$_", '55000', { message => qr/far ahead of the server's clock/, hint => qr/randflake_configure/ }, "tickets of the future, $_", database => 'app')
  for qw(randflake_generate() randflake_generate(3) randflake53_generate(3));
is(as_owner($node, "$position; SELECT randflake.randflake_configure(NULL, 7); $position") =~ /^(\d+)\n\n\1$/ ? 1 : 0, 1, '  which stay used');
is(as_owner($node, 'SELECT randflake.randflake_configure(NULL, 9); SELECT count(*) FROM randflake.randflake_generate(3)'), "\n3", 'another node id is the remedy');

$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE app OWNER owner');
error_is($node, 'SELECT randflake.randflake_generate()', '55000', { message => qr/copy of the one that was configured/ }, 'a copy of the database', database => 'copy');
is(as_owner($node, 'SELECT problem FROM randflake.randflake_status', 'copy'), 'this database is a copy of the one that was configured, or was upgraded or restored: Two databases with the same node id would make the same identifiers.', 'the status of a copy');
is(as_owner($node, 'SELECT randflake.randflake_configure(NULL, 10); SELECT count(*) FROM randflake.randflake_generate(3)', 'copy'), "\n3", 'a copy with another node id');

# Each fault breaks one contract. The function must raise an error whose hint is the remedy.
my $script = slurp_file('managed/randflake.sql');
my @faults = (
    [ 'the position never falls', 'climb', 'p := nextval(tickets) + leapt', 'p := nextval(tickets)' ],
    [ 'a second is opened by its holder, once', 'open', "v := pg_sequence_last_value(c.numbers);\n",
        "PERFORM setval(c.numbers, (life << 47) | (t << 17)); v := pg_sequence_last_value(c.numbers);\n" ],
    [ 'after a start, no second is opened before the first that is unused for certain', 'open', 'WHEN second IS NULL THEN first', 'WHEN second IS NULL THEN now' ],
    [ 'the position goes beyond each second that may have been used', 'configure', 'greatest(((latest << 6) | 63) - reached, 0)', '0' ]);
is_deeply([ sort map { $_->[0] } @faults ], [ sort $script =~ /_broken\([\w.]+,\s+'(.+)'\)/g ], 'a fault for each contract');
for my $fault (@faults) {
    my ($contract, $name, $piece, $replacement) = @$fault;
    my ($function) = $script =~ /CREATE OR REPLACE (FUNCTION randflake\.randflake_$name\(.*?\$\$;)/s;
    die $piece if 1 != (my $faulty = $function) =~ s/\Q$piece\E/$replacement/;
    # Sets `numbers` to 0. Sets `tickets` and `hops` to values that add up to the clock's time.
    as_owner($node, "CREATE OR REPLACE $faulty" . q{SELECT setval(numbers, 0), setval(hops, 64), setval(tickets, ((extract(epoch FROM clock_timestamp())::bigint - 1730000000) << 6) - 32768)
        FROM randflake.randflake_state}, 'second');
    my $error = error_of($node, 'SELECT randflake.randflake_' . ($name eq 'configure' ? 'configure(NULL, 9)' : 'generate()'), database => 'second', user => 'owner');
    ok($error->{sqlstate} eq 'XX001' && $error->{detail} eq "The contract is: $contract.", "broken: $contract") or diag($error->{text});
    my ($remedy) = $error->{hint} =~ /run (SELECT .*?\))\./;
    is(as_owner($node, "CREATE OR REPLACE $function$remedy; SELECT count(*) FROM randflake.randflake_generate(3)", 'second'), "\n3", '  and its remedy');
}

# --- lost state -----------------------------------------------------------------------------------

# The database "lost" uses numbers that belong to seconds ahead of the clock. Then "lost" loses,
# recreates or restores its state, or another database uses the secret of "lost". SECRET is this
# secret.
my $install = 'BEGIN;' . slurp_file('managed/randflake.sql') . 'COMMIT;';
my $configure = 'SELECT randflake.randflake_configure';
for my $case (
    [ 'DROP SCHEMA' => "SET client_min_messages = error; DROP SCHEMA randflake CASCADE; $install $configure('SECRET', 20);" ],
    [ 'the row dropped' => "TRUNCATE randflake.randflake_state; $configure('SECRET', 20);" ],
    [ 'sequences dropped' => "$configure(NULL, NULL);", 'lost', 'DROP SEQUENCE randflake.randflake_tickets_20, randflake.randflake_hops_20, randflake.randflake_leaps_20' ],
    [ 'sequences set back' => "DO 'BEGIN PERFORM setval(tickets, pg_sequence_last_value(tickets) - 64 * 20) FROM randflake.randflake_state; END'; $configure(NULL, 20);" ],
    [ 'a branch from before' => "SET neon.timeline_id = 'branch'; DO 'BEGIN PERFORM setval(tickets, pg_sequence_last_value(tickets) - 64 * 20) FROM randflake.randflake_state; END'; $configure(NULL, NULL);" ],
    [ 'another database' => "$install $configure('SECRET', 20);", 'lost2' ],
    [ 'a dump, restored over it' => "$configure(NULL, NULL);", 'lost', 'dump' ],
    [ "a dump's data, restored over it" => "$configure(NULL, 20);", 'lost', 'data' ],
    map({ [ "a dump's data, restored after TRUNCATE$_->[0]" => "$configure(NULL, 20);", 'lost', 'data', "TRUNCATE randflake.randflake_state$_->[1]" ] }
        [ '', '' ], [ ' and without triggers', '; ALTER TABLE randflake.randflake_state DISABLE TRIGGER ALL' ]),
    [ 'configured and rolled back' => "$configure(NULL, 21);", 'lost', "BEGIN; $configure(NULL, 21);" ]) {
    my ($name, $sql, $second, $how, $before) = @$case;
    $node->safe_psql('postgres', "CREATE DATABASE $_ OWNER owner") for 'lost', 'lost2';
    my @ids = hurry($node, 12, 'lost', "$install $configure(NULL, 20);", 'SELECT secret FROM randflake.randflake_state');
    my $secret = pop @ids;
    like($secret, qr/^[0-9a-f]{32}$/, "$name: before");
    if (($how // '') eq 'data') {
        # The data is from now, and its `numbers` stays usable.
        command_ok([ 'pg_dump', '--data-only', '-U', 'owner', '-f', "$made.sql", $node->connstr('lost') ], "$name: dumped");
        push @ids, hurry($node, 12, 'lost');
        as_owner($node, $before, 'lost') if $before;
        command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-U', 'owner', '-f', "$made.sql", '-o', '/dev/null', $node->connstr('lost') ], "$name: restored");
        is(as_owner($node, 'SELECT secret FROM randflake.randflake_state', 'lost'), $secret, "$name: with the secret");
    } elsif (($how // '') eq 'dump') {
        # Makes the dump before sessions use further numbers, so the dump lacks them.
        my $dump = $node->basedir . '/lost.sql';
        command_ok([ 'pg_dump', '--clean', '-U', 'owner', '-f', $dump, $node->connstr('lost') ], "$name: dumped");
        push @ids, hurry($node, 12, 'lost');
        command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-U', 'owner', '-f', $dump, '-o', '/dev/null', $node->connstr('lost') ], "$name: restored");
    } elsif (($how // '') =~ /^DROP/) {
        as_owner($node, $how, 'lost');
    } elsif ($how) {
        push @ids, hurry($node, 3, 'lost', $how, 'ROLLBACK');
    }
    my $crash = "DO 'BEGIN PERFORM setval(numbers, 0) FROM randflake.randflake_state; END';" x (($how // '') =~ /^DROP/);
    error_is($node, "$crash SELECT randflake.randflake_generate()", '55000',
        { message => qr/is a copy of the one/ }, "$name: no identifier before that", database => 'lost') if $how && $how !~ /^BEGIN/;
    push @ids, hurry($node, 2, $second // 'lost', $sql =~ s/SECRET/$secret/gr);
    my %distinct = map { $_ => 1 } @ids;
    ok(@ids >= 350 && keys %distinct == @ids, "$name: none of " . @ids . ' identifiers comes twice') or diag(scalar keys %distinct);
    $node->safe_psql('postgres', "DROP DATABASE $_") for 'lost', 'lost2';
}

# Tools set sequences back and leave `numbers` alone. The next call that opens a second fails, also
# after a clean restart, and so does its successor. The hint has the remedy.
my $end_second = "DO 'BEGIN PERFORM setval(numbers, (pg_sequence_last_value(numbers) | 131071) - 8191) FROM randflake.randflake_state; END';";
# A run may end among a second's last 8,192 numbers, which are enough for a run of each session.
hurry($node, 3, 'app', "$configure(NULL, 22);");
is(as_owner($node, $end_second =~ s/8191/8192/r . 'SELECT count(*), count(*) FILTER (WHERE d.sequence > 122879) FROM randflake.randflake_generate(4096) AS id, randflake.randflake_decode(id) AS d'),
    '4096|64', 'a run that begins with the last number of a second');

my $problem = 'SELECT problem FROM randflake.randflake_status';
for my $case (
    [ 'setval of tickets', 'SELECT setval(tickets, pg_sequence_last_value(tickets) - 64 * 61) FROM randflake.randflake_state' ],
    [ 'setval of hops', 'SELECT setval(hops, pg_sequence_last_value(hops) - 64) FROM randflake.randflake_state' ],
    [ 'RESTART of leaps', 'ALTER SEQUENCE randflake.randflake_leaps_22 RESTART' ],
    [ 'RESTART of tickets', 'ALTER SEQUENCE randflake.randflake_tickets_22 RESTART' ],
    [ 'setval of numbers up', 'SELECT setval(numbers, pg_sequence_last_value(numbers) + (60 << 17)) FROM randflake.randflake_state' ])
{
    my ($name, $sql) = @$case;
    # The position has parts in all of its sequences, as after idle times.
    as_owner($node, "$configure(NULL, 22); SELECT setval(tickets, randflake.randflake_position(tickets, hops, leaps) - 16777216 - 32768),
        setval(leaps, 64), setval(hops, 64) FROM randflake.randflake_state");
    my @ids = hurry($node, 2);
    is(as_owner($node, $problem), '', "$name: no problem before");
    as_owner($node, $sql);
    for my $state ('at once', 'after a restart') {
        $node->stop, start_under_clock($node) if $state ne 'at once';
        like(as_owner($node, $problem), qr/^the sequences of node id 22 were set back: They stand at 2.*, but .* up to 2/, "$name, $state: a problem");
        error_is($node, ($state eq 'at once' ? $end_second : '') . 'SELECT randflake.randflake_generate()', '55000',
            { message => qr/^the sequences of node id 22 were set back$/, hint => qr/^Run SELECT randflake\.randflake_configure\(NULL, 22\)\.$/ }, "$name, $state: an error", database => 'app', user => 'owner');
    }
    push @ids, hurry($node, 1, 'app', "$configure(NULL, 22);");
    my %distinct = map { $_ => 1 } @ids;
    ok(@ids == 75 && keys %distinct == @ids, "$name: none of " . @ids . ' identifiers comes twice');
}

my $standby = start_standby('asynchronous');
error_is($standby, 'SELECT randflake.randflake_generate()', '25006', { message => qr/during recovery/ }, 'a standby', database => 'app');
receive_no_more($standby);
keep(hurry($node, 45));
$standby->promote;
error_is($standby, 'SELECT randflake.randflake_generate()', '55000', { message => qr/promoted or restored/ }, 'a promoted standby', database => 'app');
my $secrets = as_owner($standby, 'SELECT secret FROM randflake.randflake_state', 'second') . "\n" . random_secret() . strftime(' from %Y-%m-%dT%H:%M:%SZ', gmtime(time + $ahead + 45));
error_is($standby, "SELECT randflake.randflake_configure('$secrets', NULL)", '55000', { message => qr/not those that identifiers were made under/ },
    'a secret from a time that the former server may have used', database => 'second', user => 'owner');
as_owner($standby, 'SELECT randflake.randflake_configure(NULL, NULL)');
keep(hurry($standby, 2));
judge('a standby that takes the place');
$standby->stop;

# --- many sessions --------------------------------------------------------------------------------

sub start_clients {
    my ($count, $tag) = @_;
    my @statements = ('SELECT randflake.randflake_generate() FROM generate_series(1, 50)',
        'SELECT randflake.randflake_generate(3000)',
        'BEGIN; SELECT randflake.randflake_generate(20); ROLLBACK',
        'BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT a; SELECT randflake.randflake_generate(); ROLLBACK TO a; SELECT randflake.randflake_generate(20); COMMIT',
        'SELECT randflake.randflake53_generate(30)',
        'SELECT randflake.randflake_from_text(randflake.randflake_generate_text()) FROM generate_series(1, 20)');
    my @clients;
    for my $i (1 .. $count) {
        my $file = PostgreSQL::Test::Utils::tempdir_short() . "/ids";
        append_to_file("$file.sql", join '', map { "$statements[($i + $_) % @statements];\n" } 1 .. 4000);
        push @clients, { file => $file, handle => IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('app'), '-f', "$file.sql", '-o', $file ], '>', \my $out, '2>', \my $err) };
    }
    return @clients;
}

sub backends {
    return split /\n/, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE datname = 'app' AND backend_type = 'client backend'});
}

sub end_clients {
    for my $client (@_) {
        $client->{handle}->kill_kill(grace => 1);
        eval { $client->{handle}->finish };
        keep(grep { /^-?\d+$/ } split /\n/, slurp_file($client->{file}) =~ s/[^\n]*\z//r);
        unlink $client->{file};
    }
}

# If a session opens a second, it sleeps before its first ticket, after each ticket, and before it
# sets `numbers`.
my $open = join "\n", map { $script =~ /(CREATE OR REPLACE FUNCTION randflake\.randflake_$_\(.*?\$\$;)/s } qw(climb open);
my $slow = $open =~ s/(?=WHILE [^;]* < goal LOOP|IF p >> 6 >= wanted|PERFORM setval\(c\.numbers)/PERFORM pg_sleep(random() * 0.3); /gr;
die 'slows down nothing' if 3 != (() = $slow =~ /pg_sleep\(random/g);
$slow =~ s/(?=p := nextval\(tickets\) \+ leapt)/IF random() < 0.1 THEN PERFORM pg_sleep(random() * 0.1); END IF; /;
as_owner($node, $slow);
my @clients = start_clients(8);
my $end = time + 10;
while (time < $end) {
    my ($pid, $other) = shuffle(backends());
    next if !defined $other;
    kill 'STOP', $pid;
    $node->safe_psql('postgres', "SELECT pg_cancel_backend($other)");
    sleep rand 1.5;
    kill 'CONT', $pid;
}
end_clients(@clients);
judge('paused and cancelled');
as_owner($node, $open);

# --- crashes --------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', "wal_writer_delay = 200ms\n"); # crashes lose more
$node->reload;
for my $round (1 .. $rounds) {
    my @ways = ('immediate stop', 'session killed', 'immediate stop', 'fast stop');
    my $way = $ways[$round % @ways];
    # Sometimes changes the node id, because each crash may move its position ahead of the clock.
    as_owner($node, 'SELECT randflake.randflake_configure(NULL, ' . (100 + $round) . ')') if $round % 80 == 0;
    my @clients = start_clients(4);
    wait_until { !grep { !-s $_->{file} } @clients };
    sleep rand 0.5;
    if ($way eq 'session killed') {
        my ($pid) = backends();
        kill 'KILL', $pid if $pid;
        end_clients(@clients);
        $node->poll_query_until('postgres', 'SELECT true');
    } else {
        $node->stop($way =~ /(\w+)/);
        end_clients(@clients);
        start_under_clock($node);
    }
}
keep(split /\n/, as_owner($node, 'SELECT randflake.randflake_generate(1000)'));
judge("$rounds crashes and stops");
for my $crash (1 .. 3) {
    my $before = as_owner($node, "SELECT count(*) FROM randflake.randflake_generate(3); $position") =~ s/.*\n//r;
    $node->stop('immediate');
    start_under_clock($node);
    cmp_ok(as_owner($node, $position) - $before, '<=', 64, "crash $crash skips one second at most");
}

# --- failover -------------------------------------------------------------------------------------

# Fails over to a standby that has all commits but lacks the latest tickets. This can happen because
# a session waits only until the standby has the session's own tickets.
as_owner($node, 'SELECT randflake.randflake_configure(NULL, 99, failover => true)');
$standby = start_standby('synchronous');
$node->append_conf('postgresql.conf', "synchronous_standby_names = '*'\nwal_writer_delay = 1ms\n");
$node->reload;
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'}) or give_up('no standby');
receive_no_more($standby);
keep(hurry($node, 45));
$node->stop('immediate');
$standby->promote;
$node = $standby;
keep(hurry($node, 2));
judge('a failover');

every_block_was_used();
done_testing();
