# Checks that a server with invalid settings does not start, names the setting, and does not log the
# secret. With valid settings, a server makes the identifiers of the reference implementation.
use Randflake;
use RandflakeHistory qw(crash_backend);

my $node = new_server('main', conf => "log_min_messages = debug5\nrestart_after_crash = on\n");
my $secret = random_secret();
my %good = (node_id => 1, secret => $secret);

# Checks that the server does not start with these settings, and that the log gives the reason.
sub refused($settings, $reason, $name) {
    my $log = refuses_to_start($node, { %good, %$settings }, $reason, "refused: $name");
    no_secret_in($log, $secret, "refused: $name: the secret is not shown");
}

sub secret_file($content, $mode = undef) {
    my $path = $node->data_dir . '/secret';
    unlink $path;
    write_private_file($path, $content);
    chmod $mode // 0600, $path;
    return $path;
}

sub refused_file($path, $reason, $name) {
    my $log = refuses_to_start($node, { node_id => 1, secret_file => $path },
        qr/FATAL:(?=.*$reason)(?:.*\n)?.*"randflake\.secret_file"(?s:.*)HINT:/, "refused file: $name");
    no_secret_in($log, $secret, "refused file: $name: the secret is not shown");
}

refused({ node_id => 'abc' }, qr/FATAL:.*"randflake\.node_id": "abc"/, 'node_id is no number');
refused({ node_id => 131072 }, qr/FATAL:.*131072 is outside.*"randflake\.node_id"/, 'node_id too high');
refused({ node_id => -2 }, qr/FATAL:.*-2 is outside.*"randflake\.node_id"/, 'node_id too low');
refused({ node_count => 0 }, qr/FATAL:.*0 is outside.*"randflake\.node_count"/, 'node_count 0');
refused({ node_count => 'many' }, qr/FATAL:.*"randflake\.node_count": "many"/, 'node_count is no number');
my $beyond = qr/FATAL:.*"randflake\.node_id" and "randflake\.node_count" reach beyond/;
refused({ node_id => 131071, node_count => 2 }, $beyond, 'node range beyond the end by one');
refused({ max_wait => 'soon' }, qr/FATAL:.*"randflake\.max_wait": "soon"/, 'max_wait is no time');
refused({ sort_loads => 'perhaps' }, qr/FATAL:.*"randflake\.sort_loads": "perhaps"/, 'sort_loads is no boolean');
refused({ max_clock_skew => '-1s' }, qr/FATAL:.*"randflake\.max_clock_skew"/, 'max_clock_skew is negative');
refused({ vector_path => 'fast' }, qr/FATAL:.*"randflake\.vector_path".*: "fast"/, 'vector_path is unknown');
refused({ lease_duration => 'long' }, qr/FATAL:.*"randflake\.lease_duration": "long"/, 'lease_duration is no time');
refused({ coordinator => 'dbname=postgres' }, qr/FATAL:.*both "randflake\.node_id" and "randflake\.coordinator"/,
    'node_id and coordinator');

my $malformed = qr/FATAL:.*"randflake\.secret" does not hold a valid secret/;
refused({ secret => substr($secret, 1) }, $malformed, 'a secret of 31 digits');
refused({ secret => "$secret " }, $malformed, 'a secret before a space');
refused({ secret => '********' }, $malformed, 'a secret copied from what SHOW shows');
refused({ secret => $secret x 1000 }, $malformed, 'a secret of 32000 digits');

my $data = $node->data_dir;
refused_file("$data/absent", qr/absent.*No such file/, 'missing');
refused_file("$data/base", qr/not a regular file/, 'a directory');
refused_file('/dev/null', qr/not a regular file/, 'a device');
refused_file(secret_file($secret, $_), qr/group or world access/, sprintf 'mode %04o', $_)
  for 0640, 0620, 0610, 0604, 0602, 0601, 0666;
my $invalid = qr/does not hold a valid secret/;
refused_file(secret_file(''), $invalid, 'empty');
refused_file(secret_file(substr($secret, 1)), $invalid, '31 digits');
refused_file(secret_file("$secret\0"), $invalid, 'a zero byte after');
refused_file(secret_file($secret . "\n" x 10000), $invalid, 'ten thousand line breaks');
refused_file(secret_file($secret . "\n" x 10000 . 'x'), $invalid, 'too long, with more at the end');
refused_file(secret_file($secret x 100000), $invalid, 'three megabytes');
SKIP: {
    skip 'root reads every file', 2 if $> == 0;
    refused_file(secret_file($secret, 0000), qr/Permission denied/, 'not readable');
}

# If tempcheck.sh runs as root, it prepares files that other users own.
SKIP: {
    my $foreign = $ENV{RANDFLAKE_FOREIGN_SECRETS};
    skip 'files of other owners take root to make', 7 if !defined $foreign;
    refused_file("$foreign/root-0660", qr/group or world access/, "root's, the group may write");
    refused_file("$foreign/root-0644", qr/group or world access/, "root's, everyone may read");
    refused_file("$foreign/daemon-0640", qr/owned by the server's user or root/, 'of another user, the group may read');
    configure($node, node_id => 1, secret_file => "$foreign/root-0640");
    ok($node->start(fail_ok => 1), "starts: root's file, the group may read");
    $node->stop;
}

my $both = qr/FATAL:.*both "randflake\.secret" and "randflake\.secret_file"/;
refused({ secret_file => secret_file($secret) }, $both, 'secret and secret_file');
refused({ secret => 'x', secret_file => secret_file($secret) }, $both, 'a malformed secret and secret_file');

# The last value is the identifier that the reference implementation computed from the others.
my ($vector_secret, @vector) = ('dffd6021bb2bd5b0af676290809ec3a5', 42, 1, 1733706297, '4594531474933654033');

my $decode = "SELECT node_id, sequence, extract(epoch FROM generated_at)::bigint, $vector[3]"
  . " FROM randflake_decode($vector[3])";

sub starts($settings, $name) {
    configure($node, %$settings);
    ok($node->start(fail_ok => 1), "starts: $name") or return;
    $node->sql('CREATE EXTENSION IF NOT EXISTS randflake');
    is($node->sql($decode), join('|', @vector), "decodes: $name");
    my $fields = fields_of($node, 'SELECT randflake_generate() FROM generate_series(1, 100)');
    is($fields->{distinct}, 100, "generates: $name");
    my ($first, $last) = ($settings->{node_id}, $settings->{node_id} + ($settings->{node_count} // 1) - 1);
    ok(!(grep { $_ < $first || $_ > $last } split / /, $fields->{nodes}),
        "node ids $fields->{nodes} are in $first to $last: $name");
    $node->stop;
}

starts({ node_id => 0, secret => $vector_secret }, 'secret, lower case');
starts({ node_id => 131071, secret => uc $vector_secret }, 'secret, upper case; last node id');
starts({ node_id => 131068, node_count => 4, secret_file => secret_file($vector_secret) },
    'secret_file; last node ids');
starts({ node_id => 5, node_count => 100, secret_file => secret_file("$vector_secret\n", 0400) },
    'secret_file with a line break, mode 0400');
secret_file("\U$vector_secret\E \t\r\n");
starts({ node_id => 5, secret_file => 'secret' },
    'secret_file relative to the data directory, with white space at the end');
symlink 'secret', "$data/link" or die "could not link: $!";
starts({ node_id => 5, secret_file => "$data/link" }, 'secret_file through a link');
starts({ node_id => 0, node_count => 131072, secret => $vector_secret }, 'every node id');

my $warning = qr/WARNING:  the next start of the server will fail: both "randflake\.node_id" and "randflake\.coordinator" are set/;
my $shown = 'the next start of the server will fail: both "randflake.node_id" and'
  . ' "randflake.coordinator" are set: Node ids are either chosen by hand or leased.';
my $reloads = 0;

# Reloads the server with these settings. Checks the problem in the status, and counts warnings.
sub reloads($settings, $problem, $warnings, $name) {
    my $position = -s $node->logfile;
    configure($node, %$settings);
    # Every reload changes this setting. Its new value shows that the postmaster has reloaded.
    $node->append_conf('randflake.conf', 'wal_receiver_timeout = ' . ++$reloads . 's');
    $node->reload;
    await($node, "SELECT current_setting('wal_receiver_timeout') = '${reloads}s'", 'the reload did not come');
    is(status_of($node, 'problem'), $problem, "$name: problem");
    my @logged = slurp_file($node->logfile, $position) =~ /$warning/g;
    is(scalar @logged, $warnings, "$name: warnings");
}

my %static = (node_id => 1, secret => $secret, max_clock_skew => 0);
my %coordinator = (coordinator => 'host=/nowhere dbname=postgres');
configure($node, %static);
$node->start;
# An open session reads the reloaded settings too. It must not repeat the postmaster's warning.
my $session = $node->background_psql('postgres');
$session->query_safe('SELECT 1');
reloads({ %static, max_wait => '6s' }, '', 0, 'static, another setting changes');
reloads({ %static, %coordinator }, $shown, 1, 'static, the coordinator is set too');
$session->query_safe('SELECT 1');
reloads({ %static, %coordinator, max_wait => '7s' }, $shown, 0, '  another setting changes');
reloads({ %static, coordinator => 'host=/elsewhere' }, $shown, 0, '  so does its address');
reloads(\%static, '', 0, '  it is gone');
reloads({ %static, %coordinator }, $shown, 1, '  it is back');
my %leased = (secret => $secret, max_clock_skew => 0, %coordinator);
reloads(\%leased, '', 0, '  from static to leased');
reloads({ %static, %coordinator }, $shown, 1, '  both again');
$session->quit;
crash_backend($node);
is(status_of($node, 'mode, randflake_generate() IS NOT NULL'), 'static|t', '  after a crash of a backend it is static');
$node->stop;
refuses_to_start($node, { %static, %coordinator },
    qr/FATAL:.*both "randflake\.node_id" and "randflake\.coordinator"/, '  and it does not start');

configure($node, %leased);
$node->start;
my $no_lease = qr/this server has no lease of node ids/;
like(status_of($node, 'problem'), $no_lease, 'leased: the worse problem shows');
my $position = -s $node->logfile;
configure($node, %leased, node_id => 1);
$node->reload;
$node->wait_for_log($warning, $position);
pass('  a node id is set too: a warning');
like(status_of($node, 'problem'), $no_lease, '  the worse problem still shows');
$position = -s $node->logfile;
configure($node, %static);
$node->reload;
$node->wait_for_log(qr/"randflake\.coordinator" (?:removed|changed)/, $position);
unlike(slurp_file($node->logfile, $position), $warning, '  from leased to static: none');
$node->stop;
done_testing();
