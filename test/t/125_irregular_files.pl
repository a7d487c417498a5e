# Replaces the server's own files by a FIFO, a link, a directory, a device or a socket. The server
# must report it, not block on it, follow it or write to it, and must continue by itself once it is
# gone.
use File::Copy qw(move);
use IO::Socket::UNIX;
use POSIX qw(mkfifo);
use Randflake;
use RandflakeHandover;
use RandflakeHistory;
use RandflakeWindowFile;

my $secret = random_secret();
my %settings = (node_id => 70, secret => $secret, max_wait => '1s', max_clock_skew => 0);
my $node = new_server('main', settings => \%settings, conf => "log_statement = none\n");
my $history = RandflakeHistory->new($secret);
my $folder = $node->data_dir . '/randflake';
my $base = $node->basedir;
my $target = "$base/target";
my $content = "somebody's data\n";

sub generates($test_name) { $history->generates($node, 100, $test_name, '60s') }

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

$node->start;
$node->sql('CREATE EXTENSION randflake');
generates('as always');
$node->stop;
for my $name (qw(identity window window.new)) {
    my $position = -s $node->logfile;
    my $path = "$folder/$name";
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
link $target, "$folder/window.new" or die "could not link: $!";
$node->start;
generates('a second name of another file at window.new');
is(slurp_file($target), $content, '  the other file is unchanged');
$node->stop;

configure($node, %settings, max_wait => '1h');
move("$folder/window", "$base/window");
put('a FIFO', "$folder/window");
$node->start;
my $session = start_session($node, 'SELECT randflake_generate()');
wait_until_waiting($node, 1);
is($node->sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT randflake_generate()'}), 't',
    'a session that waits because of a FIFO');
like((finish_session($session))[1], qr/57014/, '  is cancelled');
error_is($node, 'SET statement_timeout = 300; SELECT randflake_generate()', '57014', {}, '  or ends by itself');
$session = start_session($node, 'SELECT randflake_generate()');
wait_until_waiting($node, 1);
$node->stop('fast');
finish_session($session);
pass('  and the server stops');
take_away("$folder/window");
move("$base/window", "$folder/window");
configure($node, %settings);

$node->start;
generates('before a FIFO comes');
put('a FIFO', "$folder/window.new");
my $position = -s $node->logfile;
$node->stop('fast');
like(slurp_file($node->logfile, $position), qr{LOG:  "randflake/window\.new" is not a regular file},
    'a server stops with a FIFO at window.new, and says that it wrote no end');
take_away("$folder/window.new");
$node->start;
generates('after it');

# Sessions use an open window until its end, so the problem appears only after this end.
put('a FIFO', "$folder/window.new");
my $problem = wait_until {
    $node->psql('postgres', 'SET randflake.max_wait = 0; SELECT randflake_generate()');
    $node->sql('SELECT problem FROM randflake_status');
};
like($problem, qr{"randflake/window\.new" is not a regular file}, 'a FIFO at window.new while the server runs');
take_away("$folder/window.new");
generates('once it is away');
$node->stop;

move($folder, "$base/folder");
mkfifo($folder, 0600);
$node->start;
error_is($node, 'SELECT randflake_generate()', '55000',
    { message => qr/^could not extend the window for identifiers: Not a directory$/ },
    'a FIFO in place of the folder', problem => 1);
take_away($folder);
symlink "$base/folder", $folder;
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
$history->no_duplicates('in all of this');

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
