# Checks which secret files are valid, and when a server accepts a further secret. After a refusal
# the server keeps its secrets, and no message reveals a secret.
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my @secrets = map { random_secret() } 1 .. 17;
my $year = 365 * 86400;
my $soon = int(time) + $year;

my $node = new_server('main', conf => "restart_after_crash = on\n", secrets => [ $secrets[0] ], settings => {});
my %settings = (node_id => 7, secret_file => secret_path($node), max_wait => '20s');
configure($node, %settings);

# Writes the text to the secret file, replacing each SN (S1, S2, …) with secret number N.
sub write_lines($text) {
    $text =~ s/S(\d+)/$secrets[$1 - 1]/g;
    my $path = secret_path($node);
    unlink $path;
    append_to_file($path, $text);
    chmod 0600, $path;
}

my $query = 'SELECT string_agg(generation || state, $$ $$ ORDER BY generation) FROM randflake_secrets';
sub secrets { return $node->sql($query) }
sub generate { return $node->sql('SELECT randflake_generate()') }
sub reload { return reload_secrets($node, @_) }

# --- the file ------------------------------------------------------------------------------------
# The unit tests try each kind of malformed text, and test/t/010_settings.pl tests other problems.
write_lines("S1\nS2\n");
my $log = refuses_to_start($node, \%settings,
    qr/"randflake\.secret_file" does not hold a valid secret.*Line 2 is wrong.*followed by/s, 'refused at a start: a line without a time');
no_secret_in($log, $_, '  and shown nowhere') for @secrets;
write_secrets($node, $secrets[0]);
$node->start;
$node->sql('CREATE EXTENSION randflake');
my @ids = generate();
my $time = utc($soon);
for my $case ([ '', qr/must hold a secret/ ], [ "S1\n" . '#' x 9000, qr/longer than 8192 bytes/ ],
    [ "S1\nS2\n", qr/^Line 2 is wrong\. .*followed by "from" and a time/ ],
    [ "S1\n\nS2 from tomorrow\n", qr/^Line 3 is wrong\. .*as in 2027-01-01T00:00:00Z/ ],
    [ "S1\nS2 from $time\nS3 from $time\n", qr/^Line 3 .*later than that of the secret before/ ],
    [ "S1\nS1 from $time\n", qr/^Line 2 .*may come twice/ ],
    [ "S1\n" . join('', map { "S$_ from " . (2028 + $_) . "-01-01T00:00:00Z\n" } 2 .. 17), qr/^Line 17 .*at most 16/ ])
{
    write_lines($case->[0]);
    error_is($node, 'SELECT randflake_reload_secret()', '22023', { message => qr/does not hold a valid secret/, detail => $case->[1] },
        "refused at a reload: $case->[1]");
}
chmod 0644, secret_path($node);
error_is($node, 'SELECT randflake_reload_secret()', 'F0000', { message => qr/group or world access/ }, 'refused: readable');
is(secrets(), '1current', 'the one secret stays');
push @ids, generate();

# --- reloads -------------------------------------------------------------------------------------
is(reload($secrets[0]), 1, 'nothing new');
write_secrets($node, $secrets[0], int(time) - 100 => $secrets[1]);
my $asked_at = int time;
my $early = error_of($node, 'SELECT randflake_reload_secret()');
is($early->{sqlstate}, '55000', 'a time in the past is refused');
like($early->{message}, qr/secret 2 of "randflake\.secret_file" begins too early/, '  by number');
my ($earliest) = $early->{detail} =~ /the earliest possible time is (.*)\.$/;
$earliest = $node->sql("SELECT extract(epoch FROM '$earliest'::timestamptz)::bigint");
cmp_ok($earliest, '>', $asked_at + 2, '  and the earliest possible time is after the tolerated difference');
cmp_ok($earliest, '<', time + 6, '  and soon');
sub begins_too_early($server, $from, $test_name) {
    write_secrets($server, $secrets[0], $from => $secrets[1]);
    error_is($server, 'SELECT randflake_reload_secret()', '55000', { message => qr/begins too early/ }, $test_name);
}
begins_too_early($node, $_, 'so is one too soon') for int time, int(time) + 1;
# A new secret must begin after the window's end on disk, even if the clock shows an earlier time.
$node->sql('SET max_parallel_workers = 0; ALTER SYSTEM SET randflake.max_clock_skew = 0');
$node->reload;
generate();
my $written = 1730000000 + written_end($node);
begins_too_early($node, $written - 1, 'one second before the written end is too early');
$node->sql('ALTER SYSTEM RESET randflake.max_clock_skew');
$node->reload;
is(secrets(), '1current', '  the one secret stays');

is(reload($secrets[0], $soon => $secrets[1]), 2, 'a time to come is taken');
is(secrets(), '1current 2future', '  as the view shows');
is($node->sql('SELECT extract(epoch FROM valid_from)::bigint FROM randflake_secrets WHERE generation = 2'),
    $soon, '  with its time');
is(reload($secrets[0], $soon => $secrets[1]), 2, '  once');
my $grown = { message => qr/can only be added after the last one/ };
write_secrets($node, $secrets[0]);
error_is($node, 'SELECT randflake_reload_secret()', '55000', { %$grown, detail => qr/has 2 secrets.*holds 1\./ },
    'a file that is shorter is refused');
write_secrets($node, $secrets[0], $soon + 1 => $secrets[1]);
error_is($node, 'SELECT randflake_reload_secret()', '55000', { %$grown, detail => qr/Secret 2/ }, '  and another time');
is(reload($secrets[0], $soon => $secrets[1], $soon + $year => $secrets[2]), 3, 'a third is taken');
is($node->sql('SELECT string_agg(fingerprint, $$ $$ ORDER BY generation) FROM randflake_secrets'),
    join(' ', fingerprints_of($secrets[0], $soon => $secrets[1], $soon + $year => $secrets[2])),
    '  and the fingerprints cover the times and the secrets before');
push @ids, generate();

# --- a start -------------------------------------------------------------------------------------
$node->stop;
write_secrets($node, $secrets[0], $soon + 5 => $secrets[4]);
$node->start;
push @ids, generate();
is(secrets(), '1current 2future', 'secrets that have not begun are replaced with a restart');
is($node->sql('SELECT problem FROM randflake_status'), '', '  without a problem');

$node->stop;
my $begin = int(time) + 3;
my $refused = { message => qr/secrets are not those that it had before/,
    detail => qr/Identifiers up to .* may have been made under other secrets/, hint => qr/put back every secret/ };
sub start_with($good, $name, @file) {
    $node->stop if -e $node->data_dir . "/postmaster.pid";
    write_secrets($node, @file);
    $node->start;
    if ($good) {
        push @ids, generate();
        ok($ids[-1], "a start is accepted with $name");
    } else {
        error_is($node, 'SET randflake.max_wait = 500; SELECT randflake_generate()', '55000', $refused,
            "a start is refused with $name");
        like($node->sql('SELECT problem FROM randflake_status'), qr/secrets are not those/, '  as in the status');
    }
}
start_with(0, 'a secret of the past', $secrets[0], int(time) - 3600 => $secrets[1]);
start_with(1, 'a second that begins soon', $secrets[0], $begin => $secrets[1]);
sleep 0.1 while time < $begin + 0.2;
push @ids, generate();
is(secrets(), '1past 2current', '  and begins');
is_deeply([ map { sprintf '%016x %d', @$_ } read_window($node)->{secrets}[1] ],
    [ $node->sql('SELECT fingerprint FROM randflake_secrets WHERE generation = 2') . ' '
          . ($begin - 1730000000) ], '  the state on disk has it');
my @ring = ($secrets[0], $begin => $secrets[1]);
start_with(0, 'the second missing', $secrets[0]);
start_with(1, 'a third to come', @ring, $soon => $secrets[2]);

# --- after a crash -------------------------------------------------------------------------------
is(reload(@ring, $soon => $secrets[2]), 3, 'a third is added');
RandflakeHistory::crash_backend($node);
is(secrets(), '1past 2current 3future', '  and is there after the crash of a session');
push @ids, generate();
write_lines("S1\nS2\n");
RandflakeHistory::crash_backend($node);
is(secrets(), '1past 2current 3future', '  with any contents of the file');
is(reload(@ring, $soon => $secrets[2]), 3, '  and nothing is new in it');
push @ids, generate();
$node->stop('immediate');
$node->start;
push @ids, generate();
is(secrets(), '1past 2current 3future', 'a crash of the server keeps them too');
is($node->sql('SELECT count(DISTINCT id), count(randflake_generated_at(id)) FROM unnest(ARRAY['
          . join(', ', map { "($_)::bigint" } @ids) . ']) AS id'),
    @ids . '|' . @ids, 'all that was made is distinct and decodes');

$node->stop;

# --- leases --------------------------------------------------------------------------------------
my $coordinator = start_server('coordinator', settings => {}, extensions => ['randflake_coordinator']);
$coordinator->sql('SELECT randflake_lease_configure(1, 10, 100, never_leased => true)');
my $holder = start_server('holder', secrets => [ $secrets[0] ],
    settings => { coordinator => $coordinator->connstr('postgres'), lease_duration => 60, max_wait => '20s' });
$holder->sql('SELECT randflake_generate()');
my $end = status_of($holder, 'extract(epoch FROM window_end)::bigint');
cmp_ok($end, '>', time + 20, 'a lease lasts');
begins_too_early($holder, $end - 1, '  and no secret begins before its end');
is(reload_secrets($holder, $secrets[0], $end + 60 => $secrets[1]), 2, '  but later');
$holder->stop;
$coordinator->stop;

# --- a waiting session ---------------------------------------------------------------------------
my $waiting = start_server('waiting', own_clock => 1, secrets => [ $secrets[0] ], settings => { node_id => 9, max_wait => '1h' });
$waiting->sql('SELECT randflake_generate()');
# The clock was set back, so servers may already have used times that are ahead of the clock.
my $announced = 1730000000 + written_end($waiting);
clock_offset($waiting, -3600);
sleep 0.1 while time < $announced + 1;
begins_too_early($waiting, int time, 'the present is too early under a clock that was set back');
write_secrets($waiting, $secrets[0]);
clock_offset($waiting, 0);
my $stands = int(time) + 5;
clock_stands_at($waiting, $stands + 0.5);
my $session = start_session($waiting, 'CREATE TABLE made AS SELECT id FROM randflake_generate(140000) AS id');
wait_until_waiting($waiting, 1);
my @begun = ($secrets[0], $stands + 10 => $secrets[1]);
is(reload_secrets($waiting, @begun), 2, 'a secret is added while a session waits');
clock_runs_from($waiting, $stands + 10.2);
is((finish_session($session))[1], '', '  and the session goes on');
is($waiting->sql(<<"SQL"), '140000|140000|t|t', '  under the secret of each second');
SELECT count(DISTINCT id), count(second), bool_and(second = $stands OR second BETWEEN $stands + 10 AND $stands + 30),
       count(*) FILTER (WHERE second > $stands) > 8000
FROM made, LATERAL (SELECT extract(epoch FROM randflake_generated_at(id)) AS second) AS d
SQL
is_deeply(read_window($waiting)->{secrets}[1], [ hex((fingerprints_of(@begun))[1]), $stands + 10 - 1730000000 ],
    '  which the state on disk has');
$waiting->stop('immediate');
write_secrets($waiting, $secrets[0]);
start_under_clock($waiting);
error_is($waiting, 'SET randflake.max_wait = 500; SELECT randflake_generate()', '55000', $refused,
    '  so that a start after a crash needs it');
$waiting->stop;

configure($node, node_id => 8, secret => $secrets[0]);
unlink $node->data_dir . '/randflake/window';
$node->start;
error_is($node, 'SELECT randflake_reload_secret()', '55000', { message => qr/"randflake\.secret_file" is not set/ },
    'without a file there is nothing to read');
$node->stop;

no_secret_in(join('', map { slurp_file($_->logfile) } $node, $holder, $waiting), $_, 'no log has a secret') for @secrets;
done_testing();
