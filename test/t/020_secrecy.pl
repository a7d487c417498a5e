# Checks that no role sees the secret in SHOW, in the views of settings, in errors, in the most
# verbose log, or in process titles.
use Randflake;
use RandflakeHistory qw(crash_backend);

my $talkative = <<'CONF';
log_min_messages = debug5
log_min_error_statement = debug5
log_error_verbosity = verbose
log_statement = all
log_duration = on
log_connections = on
debug_print_plan = on
restart_after_crash = on
CONF

my $node = new_server('main', conf => $talkative);
my $file = $node->data_dir . '/secret';
$node->start;
$node->sql(<<'SQL');
CREATE EXTENSION randflake;
CREATE ROLE ordinary LOGIN;
CREATE ROLE reader LOGIN;
GRANT pg_read_all_settings, pg_monitor TO reader;
CREATE TABLE made (id bigint PRIMARY KEY DEFAULT randflake_generate());
SQL
$node->stop;

# Each statement shows settings, or fails with an error about the secret.
my @looks = (
    'SHOW randflake.secret',
    'SHOW randflake.secret_file',
    'SHOW ALL',
    q{SELECT current_setting('randflake.secret')},
    q{SELECT current_setting('randflake.secret', true)},
    q{SELECT * FROM pg_settings WHERE name LIKE 'randflake%'},
    'SELECT * FROM pg_settings',
    'SELECT * FROM pg_stat_activity',
    q{SELECT set_config('randflake.secret', current_setting('randflake.secret'), false)},
    q{SET randflake.secret = 'else'},
    'SET randflake.secret TO DEFAULT',
    'RESET randflake.secret',
    'RESET ALL',
    'DISCARD ALL',
    q{ALTER ROLE CURRENT_USER SET randflake.secret = 'else'},
    q{DO $$ BEGIN RAISE '%', current_setting('randflake.secret'); END $$},
    'EXPLAIN (ANALYZE, VERBOSE, SETTINGS) SELECT randflake_generate()',
    'SELECT randflake_generate(), randflake_generate_text()',
    'SELECT * FROM randflake_decode(1)',
    q{SELECT randflake_encode('1970-01-01', 1, 1)},
    q{SELECT randflake_from_text('!')},
    'INSERT INTO made DEFAULT VALUES',
    'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;'
      . ' SELECT count(randflake_generate()) FROM made');

# The encoded identifiers depend on the key, so this result shows which key the server uses.
my $key_probe = q{SELECT string_agg(randflake_encode('2030-01-01', n, n)::text, ' ')
                  FROM generate_series(1, 10) AS n};

sub looks($label, $secret) {
    for my $user (undef, 'reader', 'ordinary') {
        my $everything = '';
        for my $sql (@looks) {
            my ($status, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 0,
                extra_params => [ '-v', 'VERBOSITY=verbose', $user ? ('-U', $user) : () ]);
            $everything .= "$sql\n$out\n$err\n";
        }
        no_secret_in($everything, $secret, "$label: what " . ($user // 'a superuser') . ' sees');
    }
}

for my $form ('setting', 'file') {
    # The secret mixes lower and upper case, because the search for it must ignore case.
    my $secret = random_secret() =~ s/([a-f])/rand 2 < 1 ? uc $1 : $1/ger;
    my $other = random_secret();

    my $set = sub ($value) {
        if ($form eq 'setting') {
            configure($node, node_id => 1, secret => $value);
            return;
        }
        configure($node, node_id => 1, secret_file => $file);
        write_private_file($file, $value);
    };
    $set->($secret);
    unlink $node->logfile;
    $node->start;

    is($node->sql('SHOW randflake.secret'), $form eq 'setting' ? '********' : '', "$form: shown masked");
    is( $node->sql(q{SELECT setting, boot_val, reset_val, extra_desc ~ 'secret_file'
              FROM pg_settings WHERE name = 'randflake.secret'}),
        $form eq 'setting' ? '********||********|t' : '|||t',
        "$form: masked in pg_settings");
    for my $name ('secret', 'secret_file') {
        for my $sql ("SHOW randflake.$name", "SELECT current_setting('randflake.$name')") {
            is(error_of($node, $sql, user => 'ordinary')->{sqlstate}, '42501',
                "$form: $sql is denied to an ordinary role");
        }
    }
    is($node->sql(q{SELECT count(*) FROM pg_settings WHERE name LIKE 'randflake.secret%'}, user => 'ordinary'), '0',
        "$form: no row in pg_settings for an ordinary role");
    for my $user ('ordinary', 'reader') {
        is(error_of($node, 'SELECT * FROM pg_file_settings', user => $user)->{sqlstate}, '42501',
            "$form: pg_file_settings is denied to $user");
    }
    looks($form, $secret);

    my $probe = $node->sql($key_probe);
    for my $value ($other, 'malformed', substr($secret, 1), '') {
        my $log_start = -s $node->logfile;
        $set->($value);
        $node->reload;
        $node->wait_for_log(qr/received SIGHUP, reloading configuration files/, $log_start);
    }
    $set->($other);
    $node->reload;
    is($node->sql($key_probe), $probe, "$form: the key in use outlives a reload");
    looks("$form, after reloads", $secret);

    crash_backend($node);
    is($node->sql($key_probe), $probe, "$form: the key in use outlives a crash");

    my $session = start_session($node, 'SELECT count(randflake_generate()) FROM generate_series(1, 100000)',
        'SELECT pg_sleep(3600)');
    $node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'});
    my $postmaster = postmaster_of($node);
    my @titles = grep { /^\s*(?:$postmaster|\d+\s+$postmaster)\s/ } `ps -eww -o pid,ppid,args`;
    cmp_ok(scalar @titles, '>', 5, "$form: the server's processes are found");
    no_secret_in(join('', @titles), $secret, "$form: process titles");
    $node->sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'});
    finish_session($session);

    $node->restart;
    isnt($node->sql($key_probe), $probe, "$form: a restart takes the new secret");
    looks("$form, after a restart", $other);
    $node->stop;
    my $log = slurp_file($node->logfile);
    cmp_ok(length $log, '>', 100_000, "$form: the log is talkative");
    no_secret_in($log, $secret, "$form: the log, first secret");
    no_secret_in($log, $other, "$form: the log, second secret");
}
done_testing();
