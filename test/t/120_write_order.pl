# Checks how the server writes the window file. The server writes, syncs and renames it, and syncs
# the directory, before it uses the new window. Two writes are at least two seconds apart. When the
# disk fails, the window keeps its old end. lib/watch_files.c logs, delays or prevents operations.
use Errno qw(EIO ENOSPC);
use List::Util qw(max);
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my $epoch = 1730000000;
my $secret = random_secret();
my $node = new_server('main', settings => { node_id => 60, secret => $secret, max_wait => '1s' },
    conf => "fsync = on\nrestart_after_crash = on\nlog_statement = none\n");
my $history = RandflakeHistory->new($secret);

my $watch = tempdir;

sub start_watched {
    local %ENV = (%ENV, LD_PRELOAD => preload_library('watch_files.c'), RANDFLAKE_WATCH => $watch);
    start_under_clock($node);
}

# Returns all operations except reads since this function's last call, as "operation file[: error]".
my $seen = 0;

sub operations {
    return if !-e "$watch/log";
    my $log = slurp_file("$watch/log", $seen);
    $seen += length $log;
    return map { /^\d+ (\S+ \S+) (.*)$/ ? ($2 eq 'ok' ? $1 : "$1: $2") : () } grep { !/^\d+ read / } split /\n/, $log;
}

sub set_fault($what, $error) { append_to_file("$watch/fault.$what", $error) }
sub clear_fault($what) { unlink "$watch/fault.$what" or die "could not remove the fault: $!" }

sub open_gate($what) { unlink "$watch/gate.$what" or die "could not open the gate: $!" }

# Checks that the server generates, in no second before $first.
sub generates($test_name, $first = 0) {
    my $era = $history->generates($node, 100, $test_name, '60s');
    cmp_ok($era->{first}, '>=', $first, "$test_name: in no second before the written end") if $first;
}

sub cannot_extend($text, $detail, $test_name) {
    error_is($node, 'SELECT randflake_generate()', '55000',
        { message => qr/^could not extend the window for identifiers: \Q$text\E$/, detail => qr/^Could not $detail\.$/,
          hint => qr/^Identifiers continue as soon as the file can be written\.$/ }, $test_name, problem => 1);
}

# The server's clock is ahead by this many seconds. This number only grows.
my $ahead = 0;

sub let_window_end {
    $ahead = max($ahead, written_end($node) + $epoch - time);
    clock_offset($node, $ahead);
}

my @write = ('write window.new', 'fsync window.new', 'rename window.new', 'fsync randflake');
my @reply = ('reply client');

start_watched();
$node->sql('CREATE EXTENSION randflake');
operations();
$node->sql(q{SET randflake.max_wait = '60s'; SELECT randflake_generate()});
is_deeply([operations()], [ 'fsync pgdata', 'write identity', 'fsync identity', 'fsync randflake', @write, @reply ],
    'first use: identity and window are on disk before the reply');

let_window_end();
$node->sql('SELECT randflake_generate()');
is_deeply([operations()], [ @write, @reply ], 'extension: the window is on disk before the reply');
clock_stands_at($node, written_end($node) + $epoch - 1.5);
$node->sql('SELECT randflake_generate()') for 1 .. 3;
is_deeply([ grep { !/reply/ } operations() ], [], 'within the window: nothing is written');
clock_offset($node, $ahead);

$node->stop;
is_deeply([operations()], \@write, 'clean stop: the exact end is written');
start_watched();
$node->sql('SELECT 1');
is_deeply([ grep { !/reply/ } operations() ], [], 'start: nothing is written');
# The server used a later second before the restart, so this call waits until that second ends.
$node->sql(q{SET randflake.max_wait = '60s'; SELECT randflake_generate()});
is_deeply([operations()], [ @write, @reply ], 'first use after a start: on disk before the reply');

# Closes a gate, where the writing session waits until the test opens it. Returns the session.
sub waits_for_write($test_name, $gate) {
    my $closed_at = -s "$watch/log";
    append_to_file("$watch/gate.$gate", '');
    my $writer = start_session($node, q{SET randflake.max_wait = '60s'}, 'SELECT randflake_generate()');
    my $line = ($gate =~ s/\./ /r) . ' waits';
    wait_until { slurp_file("$watch/log", $closed_at) =~ /^\d+ \Q$line\E$/m } or give_up("no process is at the gate $gate");
    error_is($node, q{SET randflake.max_wait = '500ms'; SELECT randflake_generate()}, '55000',
        { message => qr/^the window for identifiers is not open$/,
          detail => qr/^Another session is writing its new end\. The call waited 500 ms\.$/,
          hint => qr/^Check the latency of the data directory's disk, or raise "randflake\.max_wait"\.$/ },
        "$test_name: another session fails after max_wait");
    error_is($node, q{SET randflake.max_wait = '1h'; SET statement_timeout = '500ms'; SELECT randflake_generate()},
        '57014', { message => qr/statement timeout/ }, "$test_name: or at its statement_timeout");
    return $writer;
}

for my $gate ('fsync.window.new', 'rename.window.new', 'fsync.randflake') {
    let_window_end();
    my $writer = waits_for_write("extension, at the $gate", $gate);
    open_gate($gate);
    is((finish_session($writer))[1], '', "extension, at the $gate: the writing session goes on");
    generates("extension, at the $gate, afterwards");
}

# Crashes the server at each step of a write. Every window that the server has used must be on disk.
for my $gate ('write.window.new', 'fsync.window.new', 'rename.window.new', 'fsync.randflake') {
    let_window_end();
    my $writer = waits_for_write("crash at the $gate", $gate);
    my @children = kill_postmaster($node);
    kill 'KILL', @children;
    wait_until_gone(@children);
    open_gate($gate);
    finish_session($writer);
    my $end = written_end($node);
    start_watched();
    generates("crash at the $gate, afterwards", $end);
}

$node->stop;
start_watched();
my $writer = waits_for_write('first window', 'fsync.window.new');
open_gate('fsync.window.new');
is((finish_session($writer))[1], '', 'first window: the writing session goes on');
generates('first window, afterwards');

# --- a failing disk ------------------------------------------------------------------------------
my $short = -1;    # room for half of it
for my $case (
    [ 'write.window.new', ENOSPC, 'No space left on device', 'write', 'randflake/window.new' ],
    [ 'write.window.new', $short, 'No space left on device', 'write', 'randflake/window.new' ],
    [ 'fsync.window.new', EIO, 'Input/output error', 'fsync', 'randflake/window.new' ],
    [ 'fsync.window.new', ENOSPC, 'No space left on device', 'fsync', 'randflake/window.new' ],
    [ 'rename.window.new', EIO, 'Input/output error', 'rename', 'randflake/window.new' ],
    [ 'rename.window.new', ENOSPC, 'No space left on device', 'rename', 'randflake/window.new' ],
    [ 'fsync.randflake', EIO, 'Input/output error', 'fsync', 'randflake' ]) {
    my ($fault, $error, $text, $action, $path) = @$case;
    my $name = "$fault: $text";
    $name .= ' (half)' if $error == $short;

    $node->stop;
    start_watched();
    generates("$name, before");
    let_window_end();
    clock_stands_at($node, time + $ahead);
    generates("$name, a new window");
    my $log_start = -s $node->logfile;
    my $end = written_end($node);
    operations();
    set_fault($fault, $error);

    clock_stands_at($node, $end + $epoch - 1);
    my $began = time;
    my @clients = $history->start_clients($node, 'single');
    $node->wait_for_log(qr/could not extend|LOG:  could not \Q$action\E/, $log_start);
    wait_until_received(@clients) for 1 .. 3;
    let_window_end();
    wait_until { slurp_file($clients[0]{errors}) =~ /ERROR.*ERROR/s } or give_up('the client gets no error');
    my $era = $history->add_era(end_clients($node, @clients));
    is("$era->{first} $era->{last}", join(' ', ($end - 1) x 2),
        "$name: the window is used to its old end, also after the failure");
    cannot_extend($text, qr/$action file "\Q$path\E" in the data directory/, "$name: then there is an error");
    my $failures = grep { /: / } operations();
    my $log = slurp_file($node->logfile, $log_start);
    my $logged = () = $log =~ /LOG:  could not \Q$action\E file "\Q$path\E": \Q$text\E/g;
    my $intervals = 1 + int((time - $began) / 10);
    ok($failures >= 3 && $logged >= 1 && $logged <= $intervals, "$name: of many failures one in 10 s is logged")
      or diag("$failures failures, $logged in the log");
    is(written_end($node), $end, "$name: the written end is not raised")
      if $fault ne 'fsync.randflake';    # by then the new file is in place

    clear_fault($fault);
    generates("$name, repaired", $end);
}

my $end = written_end($node);
set_fault('fsync.window.new', EIO);
$node->stop;
clear_fault('fsync.window.new');
is(read_window($node)->{stop_nodes}, 0, 'clean stop on a bad disk: no stop is recorded');
is(written_end($node), $end, 'clean stop on a bad disk: the written end stays');
start_watched();
generates('clean stop on a bad disk, repaired', $end);

let_window_end();
$node->stop;
unlink map { $node->data_dir . "/randflake/$_" } qw(window identity);
set_fault('fsync.pgdata', EIO);
start_watched();
cannot_extend('Input/output error', qr/fsync file "\." in the data directory/, 'first use on a bad disk: there is an error');
clear_fault('fsync.pgdata');
generates('first use on a bad disk, repaired');

$node->stop;
set_fault('read.window', EIO);
start_watched();
cannot_extend('Input/output error', qr{read file "randflake/window" in the data directory}, 'unreadable file: there is an error');
clear_fault('read.window');
generates('unreadable file, repaired');

# --- how often -----------------------------------------------------------------------------------
operations();
my $first_end = written_end($node);
my @clients = $history->start_clients($node, qw(single copy));
my $started = time;
sleep 9;
$history->add_era(end_clients($node, @clients));
my $writes = grep { $_ eq 'rename window.new' } operations();
my $seconds = written_end($node) - $first_end;
note(sprintf '%d writes in %.1f s of full load', $writes, time - $started);
cmp_ok(2 * $writes, '<=', $seconds, 'full load: at least two seconds to a write');
cmp_ok($writes, '>=', 2, 'full load: there are writes');
my $extensions = status_of($node, 'window_extensions');
cmp_ok($extensions, '>=', 2, 'full load: the counter knows of them');
clock_offset($node, $ahead + 10);
sleep 1;
is(status_of($node, 'window_extensions'), $extensions, 'idle: no extension');
is_deeply([ grep { !/reply/ } operations() ], [], 'idle: nothing is written');

$history->no_duplicates('writes');
$node->stop;
done_testing();
