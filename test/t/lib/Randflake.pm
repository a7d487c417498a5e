# Provides what the TAP tests share: configured servers, parsed errors, background sessions,
# settable clocks, checks of identifiers, files of secrets, and searches for secrets. Also imports
# strict, warnings, signatures, Test::More and PostgreSQL's test modules into the test.

package Randflake;

use v5.36;
use feature ();

use Digest::SHA qw(hmac_sha256);
use Exporter ();
use Fcntl qw(O_CREAT O_WRONLY);
use File::Basename qw(dirname);
use IPC::Run ();
use POSIX qw(strftime);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RandflakeSessions ();
use Test::More;
use Time::HiRes qw(sleep time);

{
    # Perl's rmtree takes four times as long as rm.
    no warnings 'redefine';
    *PostgreSQL::Test::Cluster::clean_node = sub ($node) {
        system('rm', '-rf', $node->basedir) if !defined $node->{_pid};
    };

    # Runs SQL in the database postgres, as safe_psql does. Another option is `user`, a role.
    *PostgreSQL::Test::Cluster::sql = sub ($node, $sql, %options) {
        my $user = delete $options{user};
        return $node->safe_psql('postgres', $sql, $user ? (extra_params => [ '-U', $user ]) : (), %options);
    };
}

our @EXPORT = qw(
  random_secret write_private_file new_server start_server standby_of configure refuses_to_start status_of wait_for_status error_of
  error_is is_problem log_has start_session finish_session wait_until give_up wait_until_gone postmaster_of wait_until_waiting fields_of all_distinct no_secret_in same_list preload_library
  write_secrets reload_secrets secret_path fingerprints_of utc clock_offset clock_runs_from clock_stands_at start_under_clock
  await tempdir tempdir_short);

sub import {
    strict->import;
    warnings->import;
    feature->import('signatures');
    my $caller = caller;
    Exporter::export($_, $caller) for __PACKAGE__, qw(Test::More PostgreSQL::Test::Utils);
}

*tempdir = \&PostgreSQL::Test::Utils::tempdir;
*tempdir_short = \&PostgreSQL::Test::Utils::tempdir_short;

sub random_secret { return join '', map { sprintf '%02x', int rand 256 } 1 .. 16 }

# Writes a file that only its owner may read.
sub write_private_file($path, $content) {
    open my $out, '>', $path or die "could not write $path: $!";
    print $out $content;
    close $out or die "could not write $path: $!";
    chmod 0600, $path;
}

# Initializes and configures a server, but does not start it. Options:
# - `settings` contains the arguments of configure() (default: a node id and a secret).
# - `conf` contains more lines for postgresql.conf.
# - `secrets` contains the arguments of write_secrets(), for a server with a secret file.
# - `init` contains arguments for PostgreSQL::Test::Cluster's init.
# - `install_path` is the directory of the server's programs, as in PostgreSQL::Test::Cluster.
sub new_server($name, %options) {
    my $node = PostgreSQL::Test::Cluster->new($name,
        $options{install_path} ? (install_path => $options{install_path}) : ());
    $node->init(@{ $options{init} // [] });
    # Sessions that have ended may take a while to exit on a loaded machine.
    $node->append_conf('postgresql.conf', "shared_preload_libraries = 'randflake'\nmax_connections = 50\n"
          . "include = 'randflake.conf'\n" . ($options{conf} // ''));
    my %settings = %{ $options{settings} // { node_id => 1, secret => random_secret() } };
    if ($options{secrets}) {
        write_secrets($node, @{ $options{secrets} });
        $settings{secret_file} = secret_path($node);
    }
    configure($node, %settings);
    return $node;
}

# Starts a new server, and creates `extensions` (default: randflake) in the database postgres. If
# `own_clock` is true, the server runs under its own clock.
sub start_server($name, %options) {
    my $extensions = delete $options{extensions} // ['randflake'];
    my $node = new_server($name, %options);
    $options{own_clock} ? start_under_clock($node) : $node->start;
    $node->sql("CREATE EXTENSION $_ CASCADE") for @$extensions;
    return $node;
}

# Makes a standby of a running server from a new base backup, or from the base backup named
# `backup`. Starts the standby unless `start` is 0.
sub standby_of($primary, $name, %options) {
    my $backup = $options{backup} // $name;
    $primary->backup($backup) if !$options{backup};
    my $standby = PostgreSQL::Test::Cluster->new($name);
    $standby->init_from_backup($primary, $backup, has_streaming => 1);
    $standby->start if $options{start} // 1;
    return $standby;
}

# Replaces all randflake.* settings of the server. The caller names them without this prefix. The
# settings take effect at the next start or reload.
sub configure($node, %settings) {
    write_private_file($node->data_dir . '/randflake.conf',
        join '', map { "randflake.$_ = '" . $settings{$_} =~ s/(['\\])/$1$1/gr . "'\n" } sort keys %settings);
}

# Checks that the server refuses to start with these settings, for a reason that matches the
# pattern. Returns the log of the attempt.
sub refuses_to_start($node, $settings, $reason, $test_name) {
    configure($node, %$settings);
    unlink $node->logfile;
    my $started = $node->start(fail_ok => 1);
    $node->stop if $started;
    my $log = slurp_file($node->logfile);
    ok(!$started && $log =~ $reason, $test_name) or diag($started ? 'it started' : "log: $log");
    return $log;
}

sub status_of($node, $columns) { return $node->sql("SELECT $columns FROM randflake_status") }

sub wait_for_status($node, $condition) {
    $node->poll_query_until('postgres', "SELECT $condition FROM randflake_status")
      or give_up($node->name . ": $condition did not come true: " . status_of($node, '*'));
}

# Runs a statement as `user` (default: the bootstrap superuser) in `database` (default: postgres).
# Returns sqlstate, message, detail and hint of its error, and text (all of standard error).
sub error_of($node, $sql, %options) {
    my ($status, $out, $text) = $node->psql($options{database} // 'postgres', $sql,
        timeout => $PostgreSQL::Test::Utils::timeout_default,
        extra_params => [ '-v', 'VERBOSITY=verbose', $options{user} ? ('-U', $options{user}) : () ]);
    my %error = map { $_ => '' } qw(sqlstate message detail hint);
    $error{text} = $text;
    @error{qw(sqlstate message)} = ($1, $2) if $text =~ /(?:ERROR|FATAL):\s+(\w{5}): (.*)/;
    $error{detail} = $1 if $text =~ /^DETAIL:\s+(.*)/m;
    $error{hint} = $1 if $text =~ /^HINT:\s+(.*)/m;
    return \%error;
}

# Checks that a statement fails with this SQLSTATE, and with message, detail and hint that match the
# patterns. With the option `problem`, also checks that randflake_status shows the same error.
sub error_is($node, $sql, $sqlstate, $patterns, $test_name, %options) {
    my $error = error_of($node, $sql, %options);
    my $good = $error->{sqlstate} eq $sqlstate;
    $good &&= $error->{$_} =~ $patterns->{$_} for keys %$patterns;
    ok($good, $test_name) or diag("expected $sqlstate, got: $error->{text}");
    is_problem($node, $error, $test_name) if $options{problem};
}

# Checks that randflake_status shows this error as the problem. The comparison ignores numbers.
sub is_problem($node, $error, $test_name) {
    my $expected = join ': ', grep { $_ ne '' } @$error{qw(message detail)};
    is(status_of($node, 'problem') =~ s/\d+/0/gr, $expected =~ s/\d+/0/gr, "$test_name, as the status tells");
}

# Starts a background session, which runs each statement as a transaction and ends at an error.
sub start_session($node, @statements) {
    my $session = { out => '', err => '' };
    $session->{handle} = IPC::Run::start([
            'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose',
            '-d', $node->connstr('postgres'),
            map { ('-c', $_) } 'SET client_min_messages = error', @statements ],
        '<', '/dev/null', '>', \$session->{out}, '2>', \$session->{err},
        IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
    return $session;
}

# Waits for a session's end. Returns its output without the last newline, and its errors.
sub finish_session($session) {
    $session->{handle}->finish;
    chomp(my $out = $session->{out});
    return ($out, $session->{err});
}

# Runs a block until its result is true or the test times out. Returns the last result.
sub wait_until :prototype(&) {
    my ($block) = @_;
    my $give_up_at = time + $PostgreSQL::Test::Utils::timeout_default;
    my ($result, $pause) = (undef, 0.01);
    # The sleeps grow longer, because most blocks start a psql at each attempt.
    until (($result = $block->()) || time > $give_up_at) {
        sleep $pause;
        $pause = 1.3 * $pause if $pause < 0.2;
    }
    return $result;
}

# Fails a check that a test waited for in vain, and ends the test.
sub give_up($reason) {
    fail($reason);
    die "$reason\n";
}

# Waits until a query of the database postgres returns true. If it does not, gives the reason.
sub await($node, $query, $reason) { $node->poll_query_until('postgres', $query) or give_up($reason) }

sub log_has($node, $pattern, $test_name, $offset = undef) {
    my $found = wait_until { slurp_file($node->logfile, $offset // 0) =~ $pattern };
    ok($found, $test_name) or diag('log: ' . slurp_file($node->logfile, $offset // 0));
}

sub wait_until_gone {
    for my $process (@_) {
        wait_until { !kill 0, $process } or give_up("process $process does not end");
    }
}

sub postmaster_of($node) { return (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0] }

sub wait_until_waiting($node, $count) {
    await($node, <<"SQL", 'no session waits for a number');
SELECT count(*) = $count FROM pg_stat_activity
WHERE wait_event_type = 'Extension' AND query ~ '(rand|snow)flake_generate'
SQL
}

# Decodes the identifiers that a query returns in one column. Returns a hash: how many identifiers
# and how many distinct identifiers there are, the first and last Unix second, the sorted node ids
# as text, and the smallest and largest sequence number. `decode` is SQL that decodes a column `id`.
sub fields_of($node, $query, $decode = 'randflake_decode(id)') {
    my %fields;
    @fields{qw(count distinct first_second last_second nodes min_sequence max_sequence)} =
      split /\|/, $node->sql(<<"SQL");
WITH ids (id) AS MATERIALIZED ($query),
decoded AS MATERIALIZED (SELECT $decode AS d FROM ids)
SELECT count(*), (SELECT count(DISTINCT id) FROM ids),
       floor(extract(epoch FROM min((d).generated_at))),
       floor(extract(epoch FROM max((d).generated_at))),
       (SELECT string_agg(node_id::text, ' ' ORDER BY node_id)
        FROM (SELECT DISTINCT (d).node_id FROM decoded) AS nodes),
       min((d).sequence), max((d).sequence)
FROM decoded
SQL
    return \%fields;
}

sub all_distinct($node, $query, $count, $test_name) {
    is($node->sql("SELECT count(*), count(DISTINCT id) FROM ($query) AS ids (id)"),
        "$count|$count", $test_name);
}

# Checks that the text has no twelve consecutive hex digits of the secret, in upper or lower case.
sub no_secret_in($text, $secret, $test_name) {
    my @parts = map { lc substr $secret, $_, 12 } 0 .. length($secret) - 12;
    $text = lc $text; # a pattern takes seconds for a copy of a server
    my @found = grep { index($text, $_) >= 0 } @parts;
    ok(!@found, $test_name) or diag('found in: ' . join "\n", grep { my $line = $_; grep { index($line, $_) >= 0 } @found } split /\n/, $text);
}

# Compares long lists faster than is_deeply, which takes seconds for many thousands of elements.
sub same_list($got, $expected, $test_name) {
    return pass($test_name) if "@$got" eq "@$expected";
    is_deeply($got, $expected, $test_name);
}

# --- files of several secrets ----------------------------------------------------------------
# Returns a Unix second in the format of the file of secrets.
sub utc($second) { return strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $second) }
sub secret_path($node) { return $node->basedir . '/secrets' }

# Writes a server's secret file. Takes the first secret, and then a pair for each further secret:
# its first Unix second, and the secret.
sub write_secrets($node, $first, @later) {
    my $text = "$first\n";
    while (my ($second, $secret) = splice @later, 0, 2) {
        $text .= "$secret from " . utc($second) . "\n";
    }
    my $path = secret_path($node);
    write_private_file("$path.new", $text);
    rename "$path.new", $path or die "could not rename $path: $!";
}

# Writes the file of a running server and makes it read the file. Returns the number of secrets.
sub reload_secrets($node, @file) {
    write_secrets($node, @file);
    return $node->sql('SELECT randflake_reload_secret()');
}

sub fingerprints_of($first, @later) {
    my @fingerprints = substr hmac_sha256('randflake key check', pack 'H*', $first), 0, 8;
    while (my ($second, $secret) = splice @later, 0, 2) {
        my $place = $fingerprints[-1] . pack 'N', $second - 1730000000;
        push @fingerprints, substr hmac_sha256("randflake key check$place", pack 'H*', $secret), 0, 8;
    }
    return map { unpack 'H*', $_ } @fingerprints;
}

# --- preloaded libraries ---------------------------------------------------------------------
# Compiles a source of test/t/lib for LD_PRELOAD, and returns the path of the library.
sub preload_library($source) {
    state %library;
    return $library{$source} //= do {
        my $path = tempdir() . '/library.so';
        system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O2', '-o', $path, dirname(__FILE__) . "/$source");
        $path;
    };
}

# --- the clock -------------------------------------------------------------------------------
# start_under_clock gives the server its own wall clock (clock.c), which shows the true time until a
# test sets it. A test can set the clock to any fraction of a second at any time, even while the
# server is stopped. The server's processes see each change at once.

sub clock_file($node) { return $node->basedir . '/clock' }

# Overwrites the clock file without replacing it, because clock.c in each process has mapped it.
sub set_clock($node, $seconds, $stands) {
    my $word = 2 * 1000 * sprintf('%.0f', 1e6 * $seconds) + $stands;
    my $file = clock_file($node);
    sysopen my $out, $file, O_WRONLY | O_CREAT or die "could not open $file: $!";
    syswrite($out, pack 'q2', $word, $word) == 16 or die "could not write $file: $!";
    close $out or die "could not write $file: $!";
}

# Lets the server's clock run this far ahead of the true time, or behind it if $seconds is negative.
sub clock_offset($node, $seconds) { set_clock($node, $seconds, 0) }

# Lets the server's clock run from this Unix time. The coarse clock, which identifiers use, follows
# at its next tick, within 10 ms.
sub clock_runs_from($node, $time) {
    clock_offset($node, $time - time);
    sleep 0.02;
}

# Stops the server's clock at this Unix time.
sub clock_stands_at($node, $time) { set_clock($node, $time, 1) }

# Starts a server under its own clock, or under the clock of another server.
sub start_under_clock($node, $owner = $node) {
    clock_offset($owner, 0) if !-e clock_file($owner);
    local $ENV{RANDFLAKE_CLOCK} = clock_file($owner);
    local $ENV{LD_PRELOAD} = join ' ', preload_library('clock.c'), $ENV{LD_PRELOAD} // ();
    $node->start;
}

1;
