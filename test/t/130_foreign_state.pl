# Starts servers whose state on disk is damaged, or was written by another server or under another
# secret. Checks the log's messages, that the server holds off, and that it then continues.
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

sub generate($node, $test_name) { return $history->generates($node, 100, $test_name) }

# Reads the log from a position on. Returns each warning about the state, and the message about the
# secret, as [message, detail, hint].
sub warnings_since($node, $position) {
    my @warnings;
    for (split /^(?=\d{4}-)/m, slurp_file($node->logfile, $position)) {
        next if /cannot generate 53-bit identifiers|listening on Unix socket|background worker/;    # at each start
        push @warnings, [$1] if /(?:WARNING|LOG):  (.*randflake.*)/;
        push @{ $warnings[-1] }, $1 if @warnings && /(?:DETAIL|HINT):  (.*)/;
    }
    return \@warnings;
}

sub problem_of { return status_of($_[0], 'problem') }

my $is_copy = 'this data directory is a copy: A server that runs with the same node ids makes the same identifiers.'
  . ' If there is none, let a superuser run randflake_acknowledge_copy().';

# Checks that the next start logs this warning, and that the hold-off ends later than both the start
# time and $end. The second start must neither warn nor hold off, but the server must report a copy
# until a superuser acknowledges it.
sub holds_off($node, $test_name, $warning, $end = undef) {
    my $position = -s $node->logfile;
    my $started = time;
    $node->start;
    my $problem = $warning->[2] =~ /acknowledge_copy/ ? $is_copy : '';
    is(problem_of($node), $problem, "$test_name: is a problem, or none, before the first identifier");
    my $era = generate($node, $test_name);
    is_deeply(warnings_since($node, $position), [$warning], "$test_name: warns");
    is(problem_of($node), $problem, "$test_name: and after it");
    cmp_ok($era->{first} + $epoch, '>', $started + $skew, "$test_name: holds off");
    cmp_ok($era->{first}, '>=', $end, "$test_name: also to the end") if defined $end;

    $node->stop;
    my $exact = written_end($node);
    $position = -s $node->logfile;
    $node->start;
    $era = generate($node, "$test_name, next start");
    is_deeply(warnings_since($node, $position), [], "$test_name, next start: does not warn");
    cmp_ok($era->{first}, '>=', $exact, "$test_name, next start: starts at the exact end");
    is(problem_of($node), $problem, "$test_name, next start: the same problem");
    $node->sql('SELECT randflake_acknowledge_copy()');
    $node->restart;
    is(problem_of($node), '', "$test_name, acknowledged: none");
    generate($node, "$test_name, acknowledged");
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

# A copy may get the inode of a file that was deleted. Its time of birth, in nanoseconds, differs.
sub checks_identity {
    my ($inode, $born, $fraction) = split ' ', `stat -c '%i %W %w' '@{[ $node->data_dir ]}/randflake/identity'` =~ s/ \S+ [\d:]+\.(\d+) .*/ $1/r;
    my $window = read_window($node);
    is("$window->{inode} $window->{birth}", "$inode $born$fraction", 'the state names the inode and the birth of the file identity');
}

# A new directory may be a copy, so the server holds off there. It logs no warning.
my $started = time;
$node->start;
$node->sql('CREATE EXTENSION randflake');
my $era = generate($node, 'first use');
cmp_ok($era->{first} + $epoch, '>', $started + 3, 'first use: holds off from the start');
checks_identity();
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
    holds_off($node, $name, damaged($reason));
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
    holds_off($node, $name, damaged($reason));
}

my $directory = $node->data_dir . '/randflake';
unlink "$directory/window" or die "could not remove the window file: $!";
holds_off($node, 'no window file', damaged('the file is missing beside its identity file'));

# --- copies --------------------------------------------------------------------------------------
unlink "$directory/identity" or die "could not remove the identity file: $!";
holds_off($node, 'no identity file', $copied);

system_or_bail('cp', '-p', "$directory/identity", "$directory/copy");
rename "$directory/copy", "$directory/identity" or die "could not rename the identity file: $!";
my $window = read_window($node);
my $end = int(time) - $epoch + 5;
$window->{ends}[0][2] = $end;
write_window($node, $window);
holds_off($node, 'a copy of the identity file, and an end ahead', $copied, $end);

system_or_bail('mv', $directory, "$directory.was");
system_or_bail('cp', '-Rp', "$directory.was", $directory);
holds_off($node, 'a copy of the directory', $copied);

$window = read_window($node);
my $own = $window->{system_identifier};
write_window($node, { %$window, system_identifier => $own ^ 1 });
holds_off(
    $node,
    'another system identifier',
    [
        'the window file of randflake was written by another database system',
        'It has system identifier ' . ($own ^ 1) . ", this server $own.",
        'Make sure that the server it came from does not generate with the node ids of this one.'
          . ' Then let a superuser run randflake_acknowledge_copy().'
    ]);

write_window($node, { %{ read_window($node) }, timeline => 7 });
holds_off($node, 'another timeline',
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
holds_off($node, 'hold-off cut short, next start', $copied);

# --- the secret ----------------------------------------------------------------------------------
sub restart_with {
    $node->stop if $node->{_pid};
    configure($node, %settings, @_);
    $node->start;
}

restart_with(node_id => 300);
generate($node, 'the first secret');
my $new_secret = random_secret();
my $position = -s $node->logfile;
restart_with(node_id => 300, secret => $new_secret);
my $id = $node->sql('SELECT randflake_generate()');
is_deeply(
    warnings_since($node, $position),
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
is_deeply(warnings_since($node, $position), [], 'another secret, next start: says nothing');
restart_with(node_id => 300);
generate($node, 'the former secret');

$history->no_duplicates('foreign state');
done_testing();
