# Starts a server whose state on disk is damaged, or was written by another server or under another
# secret. Checks the log's messages, that the server holds off, and that it then continues. Then
# replaces the server's own files by a FIFO, a link, a directory, a device or a socket. The server
# must report it, not block on it, follow it or write to it, and must continue by itself once it is
# gone.
use File::Copy qw(move);
use IO::Socket::UNIX;
use POSIX qw(mkfifo);
use Randflake;
use RandflakeHistory;
use RandflakeWindowFile;
use Time::HiRes qw(time);

my $epoch = 1730000000;
my $skew = 0.5;

my $secret = random_secret();
my %settings = (secret => $secret, max_wait => '60s', max_clock_skew => $skew * 1000);
my $history = RandflakeHistory->new($secret);
my $node = new_server('main', settings => { %settings, node_id => 100, node_count => 4, max_clock_skew => '3s' },
    conf => "restart_after_crash = on\nlog_statement = none\n");

sub generates($test_name) { return $history->generates($node, 100, $test_name, '60s') }

# Reads the log from a position on. Returns each warning about the state, and the message about the
# secret, as [message, detail, hint].
sub warnings_since($position) {
    my @warnings;
    for (split /^(?=\d{4}-)/m, slurp_file($node->logfile, $position)) {
        next if /cannot generate 53-bit identifiers|listening on Unix socket|background worker/;    # at each start
        push @warnings, [$1] if /(?:WARNING|LOG):  (.*randflake.*)/;
        push @{ $warnings[-1] }, $1 if @warnings && /(?:DETAIL|HINT):  (.*)/;
    }
    return \@warnings;
}

sub problem { return status_of($node, 'problem') }

my $is_copy = 'this data directory is a copy: A server that runs with the same node ids makes the same identifiers.'
  . ' If there is none, let a superuser run randflake_acknowledge_copy().';

# Checks that the next start logs this warning, and that the hold-off ends later than both the start
# time and $end. The second start must neither warn nor hold off, but the server must report a copy
# until a superuser acknowledges it.
sub holds_off($test_name, $warning, $end = undef) {
    my $position = -s $node->logfile;
    my $started = time;
    $node->start;
    my $problem = $warning->[2] =~ /acknowledge_copy/ ? $is_copy : '';
    is(problem(), $problem, "$test_name: is a problem, or none, before the first identifier");
    my $era = generates($test_name);
    is_deeply(warnings_since($position), [$warning], "$test_name: warns");
    is(problem(), $problem, "$test_name: and after it");
    cmp_ok($era->{first} + $epoch, '>', $started + $skew, "$test_name: holds off");
    cmp_ok($era->{first}, '>=', $end, "$test_name: also to the end") if defined $end;

    $node->stop;
    my $exact = written_end($node);
    $position = -s $node->logfile;
    $node->start;
    $era = generates("$test_name, next start");
    is_deeply(warnings_since($position), [], "$test_name, next start: does not warn");
    cmp_ok($era->{first}, '>=', $exact, "$test_name, next start: starts at the exact end");
    is(problem(), $problem, "$test_name, next start: the same problem");
    $node->sql('SELECT randflake_acknowledge_copy()');
    $node->restart;
    is(problem(), '', "$test_name, acknowledged: none");
    generates("$test_name, acknowledged");
    is(status_of($node, 'problem, copy_found_at'), '|', "$test_name, acknowledged: nor after the first identifier");
    $node->stop;
}

sub damaged($reason) {
    return [
        "the window file of randflake cannot be used: $reason",
        'The server generates nothing for "randflake.max_clock_skew" after its start or promotion.',
        'Make sure that the clock is right: identifiers may have been issued under these node ids up'
          . ' to now.'
    ];
}

my $copied = [
    'the window file of randflake was copied from another data directory',
    'This happens after a base backup, a clone or pg_rewind.',
    'Make sure that the server it came from does not generate with the node ids of this one.'
      . ' Then let a superuser run randflake_acknowledge_copy().'
];

# A new directory may be a copy, so the server holds off there. It logs no warning.
my $started = time;
$node->start;
$node->sql('CREATE EXTENSION randflake');
my $era = generates('first use');
cmp_ok($era->{first} + $epoch, '>', $started + 3, 'first use: holds off from the start');
# A copy may get the inode of a file that was deleted. Its time of birth, in nanoseconds, differs.
my ($inode, $born, $fraction) = split ' ', `stat -c '%i %W %w' '@{[ $node->data_dir ]}/randflake/identity'` =~ s/ \S+ [\d:]+\.(\d+) .*/ $1/r;
my $window = read_window($node);
is("$window->{inode} $window->{birth}", "$inode $born$fraction", 'the state names the inode and the birth of the file identity');
$node->stop;
configure($node, %settings, node_id => 100, node_count => 4);

# Tests one case of each kind of damage. The unit tests cover every byte and every length.
for my $case (
    [ 'empty', 'the file has the wrong length', sub { '' } ],
    [ 'truncated', 'the file has the wrong length', sub { substr $_[0], 0, -1 } ],
    [ 'another first byte', 'the file does not begin as a window file does', sub { flip($_[0], 0) } ],
    [ 'a bit of the recorded stop', 'the checksum does not match', sub { flip($_[0], 88) } ],
    [ 'a bit of the end', 'the checksum does not match', sub { flip($_[0], 212) } ]) {
    my ($name, $reason, $damage) = @$case;
    write_window_bytes($node, $damage->(slurp_file(window_path($node))));
    holds_off($name, damaged($reason));
}

sub flip($bytes, $at) {
    substr($bytes, $at, 1) ^= "\x01";
    return $bytes;
}

for my $case (
    [ 'next format version', 'the file has an unknown format version', version => 7 ],
    [ 'an end out of range', 'the content is impossible', ends => [ [ 100, 4, (1 << 30) + 1 ] ] ]) {
    my ($name, $reason, @fields) = @$case;
    write_window($node, { %{ read_window($node) }, @fields });
    holds_off($name, damaged($reason));
}

my $directory = $node->data_dir . '/randflake';
unlink "$directory/window" or die "could not remove the window file: $!";
holds_off('no window file', damaged('the file is missing beside its identity file'));

# --- copies --------------------------------------------------------------------------------------
unlink "$directory/identity" or die "could not remove the identity file: $!";
holds_off('no identity file', $copied);

system_or_bail('cp', '-p', "$directory/identity", "$directory/copy");
rename "$directory/copy", "$directory/identity" or die "could not rename the identity file: $!";
$window = read_window($node);
my $end = int(time) - $epoch + 5;
$window->{ends}[0][2] = $end;
write_window($node, $window);
holds_off('a copy of the identity file, and an end ahead', $copied, $end);

system_or_bail('mv', $directory, "$directory.was");
system_or_bail('cp', '-Rp', "$directory.was", $directory);
holds_off('a copy of the directory', $copied);

$window = read_window($node);
my $own = $window->{system_identifier};
write_window($node, { %$window, system_identifier => $own ^ 1 });
holds_off(
    'another system identifier',
    [
        'the window file of randflake was written by another database system',
        'It has system identifier ' . ($own ^ 1) . ", this server $own.",
        'Make sure that the server it came from does not generate with the node ids of this one.'
          . ' Then let a superuser run randflake_acknowledge_copy().'
    ]);

write_window($node, { %{ read_window($node) }, timeline => 7 });
holds_off('another timeline',
    [ 'the window file of randflake was written on another timeline',
      'It was written on timeline 7, this server is on timeline 1.',
      'Make sure that the former primary server does not generate with the node ids of this one.' ]);

unlink "$directory/identity" or die "could not remove the identity file: $!";
clock_stands_at($node, time);
start_under_clock($node);
error_is($node, 'SET client_min_messages = error; SET randflake.max_wait = 0; SELECT randflake_generate()', '55000',
    { message => qr/^the window for identifiers is not open yet$/, detail => qr/^It opens at 20.*\.$/,
      hint => qr/^Try again at that time, or raise "randflake\.max_wait"\.$/ },
    'hold-off cut short: there is an error until it is over', problem => 1);
mkdir "$directory/window.new" or die "could not make a directory: $!";
error_is($node, 'SELECT randflake_acknowledge_copy()', '55000',
    { message => qr/^could not write down that the copy was acknowledged$/, hint => qr/can be written\.$/ },
    'a copy is not acknowledged where that cannot be written');
rmdir "$directory/window.new" or die "could not remove a directory: $!";
$node->stop;
holds_off('hold-off cut short, next start', $copied);

# --- the secret ----------------------------------------------------------------------------------
sub restart_with {
    $node->stop if $node->{_pid};
    configure($node, %settings, @_);
    $node->start;
}

restart_with(node_id => 300);
generates('the first secret');
my $new_secret = random_secret();
my $position = -s $node->logfile;
restart_with(node_id => 300, secret => $new_secret);
my $id = $node->sql('SELECT randflake_generate()');
is_deeply(
    warnings_since($position),
    [
        [
            'the secret of randflake has changed',
            'Identifiers made under the former secret no longer decode.',
            'If that was not intended, set the former one and restart the server.'
        ]
    ],
    'another secret: says so');
is($node->sql("SELECT node_id FROM randflake_decode($id)"), 300, 'another secret: its identifiers decode');
$position = -s $node->logfile;
restart_with(node_id => 300, secret => $new_secret);
$node->sql('SELECT randflake_generate()');
is_deeply(warnings_since($position), [], 'another secret, next start: says nothing');
restart_with(node_id => 300);
generates('the former secret');

# --- irregular files -----------------------------------------------------------------------------
my %irregular = (node_id => 70, max_wait => '1s', max_clock_skew => 0);
my $base = $node->basedir;
my $target = "$base/target";
my $content = "somebody's data\n";

sub make_target {
    unlink $target;
    append_to_file($target, $content);
}

# Each function makes an object at a path, and returns false if the test's user may not make it.
my %make = (
    'a FIFO' => sub { mkfifo($_[0], 0600) },
    'a link' => sub { symlink $target, $_[0] },
    'a link to nothing' => sub { symlink "$target.absent", $_[0] },
    'a directory' => sub { mkdir $_[0] },
    'a socket' => sub {
        # The system limits a socket's path to 107 bytes.
        my $short = tempdir_short() . '/s';
        IO::Socket::UNIX->new(Local => $short, Listen => 1) and rename $short, $_[0];
    },
    # Uses device 0/0, because only root may make other devices.
    'a device' => sub { system("mknod '$_[0]' c 0 0 2>/dev/null") == 0 });

sub put($kind, $path) {
    make_target();
    return $make{$kind}->($path);
}

sub take_away($path) { (-d $path && !-l $path ? rmdir $path : unlink $path) or die "could not remove $path: $!" }

sub refused($name, $test_name) {
    error_is($node, 'SELECT randflake_generate()', '55000',
        { message => qr{^could not extend the window for identifiers: "randflake/$name" is not a regular file$},
          hint => qr/^Move it away/ }, $test_name, problem => 1);
}

restart_with(%irregular);
generates('as always');
$node->stop;
for my $name (qw(identity window window.new)) {
    $position = -s $node->logfile;
    my $path = "$directory/$name";
    move($path, "$base/$name") if -e $path;
    $node->start;
    for my $kind (sort keys %make) {
      SKIP: {
            skip "$kind cannot be made here", 4 if !put($kind, $path);
            refused($name, "$kind at $name");
            ok(-l $path || !-f $path, '  it is still there');
            is(slurp_file($target), $content, '  the target of a link is unchanged');
            ok(!-e "$target.absent", '  and not made');
            take_away($path);
        }
    }
    like(slurp_file($node->logfile, $position),
        qr{LOG:  "randflake/$name" is not a regular file\n.*DETAIL:.*\n.*HINT:  Move it away},
        "$name: the log tells, with a remedy");
    move("$base/$name", $path) if -e "$base/$name";
    generates("$name as it was");
    $node->stop;
}

# window.new is a hard link to another file. The other file must keep its content.
make_target();
link $target, "$directory/window.new" or die "could not link: $!";
$node->start;
generates('a second name of another file at window.new');
is(slurp_file($target), $content, '  the other file is unchanged');
$node->stop;

configure($node, %settings, %irregular, max_wait => '1h');
move("$directory/window", "$base/window");
put('a FIFO', "$directory/window");
$node->start;
my $session = start_session($node, 'SELECT randflake_generate()');
wait_until_waiting($node, 1);
is($node->sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT randflake_generate()'}), 't',
    'a session that waits because of a FIFO');
like((finish_session($session))[1], qr/57014/, '  is cancelled');
error_is($node, 'SET statement_timeout = 300; SELECT randflake_generate()', '57014', {}, '  or ends by itself');
$session = start_session($node, 'SELECT randflake_generate()');
wait_until_waiting($node, 1);
$node->stop('fast');
finish_session($session);
pass('  and the server stops');
take_away("$directory/window");
move("$base/window", "$directory/window");
restart_with(%irregular);
generates('before a FIFO comes');
put('a FIFO', "$directory/window.new");
$position = -s $node->logfile;
$node->stop('fast');
like(slurp_file($node->logfile, $position), qr{LOG:  "randflake/window\.new" is not a regular file},
    'a server stops with a FIFO at window.new, and says that it wrote no end');
take_away("$directory/window.new");
$node->start;
generates('after it');

# Sessions use an open window until its end, so the problem appears only after this end.
put('a FIFO', "$directory/window.new");
my $problem = wait_until {
    $node->psql('postgres', 'SET randflake.max_wait = 0; SELECT randflake_generate()');
    $node->sql('SELECT problem FROM randflake_status');
};
like($problem, qr{"randflake/window\.new" is not a regular file}, 'a FIFO at window.new while the server runs');
take_away("$directory/window.new");
generates('once it is away');
$node->stop;

move($directory, "$base/folder");
mkfifo($directory, 0600);
$node->start;
error_is($node, 'SELECT randflake_generate()', '55000',
    { message => qr/^could not extend the window for identifiers: Not a directory$/ },
    'a FIFO in place of the folder', problem => 1);
take_away($directory);
symlink "$base/folder", $directory;
generates('the folder may be a link');
$node->stop;

my $marker = run_marker_path($node);
unlink $marker;
mkfifo($marker, 0600);
$node->start;
is(error_of($node, 'SELECT randflake_generate()')->{text}, '', 'a FIFO in place of the run marker');
generates('  as always');
$node->stop;
ok(!-p $marker, '  which is removed');
$history->no_duplicates('foreign state');

my $coordinator = start_server('coordinator', settings => {}, extensions => ['randflake_coordinator']);
$coordinator->sql('SELECT randflake_lease_configure(never_leased => true)');
my $holder = new_server('holder',
    settings => { coordinator => $coordinator->connstr('postgres'), secret => $secret, max_wait => '1s' });
mkdir $holder->data_dir . '/randflake';
put('a FIFO', $holder->data_dir . '/randflake/window.new');
$holder->start;
$holder->sql('CREATE EXTENSION randflake');
ok( $holder->poll_query_until('postgres', q{SELECT problem LIKE '%"randflake/window.new" is not a regular file%' FROM randflake_status}),
    'a server with leased node ids says so, too');
take_away($holder->data_dir . '/randflake/window.new');
my $ends = 'leases of this server will not survive a crash of its postmaster: Could not open';
sub has_problem { $holder->poll_query_until('postgres', "SELECT coalesce(problem, '') LIKE '$_[0]' FROM randflake_status") }
ok(has_problem(qq{$ends "randflake/window.new": "randflake/window.new" is not a regular file.}),
    '  goes on, and says that it could not make its file of identity');
$holder->restart;
ok(has_problem(''), '  not after a restart');
$holder->stop;
unlink $marker = run_marker_path($holder) or die;
mkdir $marker or die;    # cannot be removed like a file, as if another user had made it
my $log = -s $holder->logfile;
$holder->start;
ok(has_problem(qq{$ends "$marker": Is a directory.}), 'a server with leased node ids names a marker that it may not use');
like(slurp_file($holder->logfile, $log), qr/LOG:  leases of this server.*\n.*DETAIL:  Could not open "\Q$marker\E"/, '  in its log too');
$holder->sql(q{SET randflake.max_wait = '1min'; SELECT randflake_generate()});
rmdir $marker or die;
put('a FIFO', $holder->data_dir . '/randflake/window.new');
$holder->stop('fast');
pass('  and stops');
$coordinator->stop;
done_testing();
