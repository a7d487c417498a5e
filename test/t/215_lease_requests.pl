# Checks a server whose requests to its coordinator fail. Only a clear answer counts as a grant.
# With sslmode=verify-full, the server sends requests and the password to this coordinator only.
use IO::Socket::INET;
use Randflake;
use RandflakeImpostor;
use RandflakeLease;
use RandflakeWindowFile;
use Time::HiRes qw(sleep);

$RandflakeLease::node_ids = 16;
my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator',
    conf => "listen_addresses = '127.0.0.1'\nlog_connections = on\ninclude_if_exists = 'tls.conf'\n");
my $here = sprintf 'host=%s port=%s', $coordinator->host, $coordinator->port;
my $good = "$here dbname=postgres";
my $duration = $RandflakeLease::duration;

# Makes roles with passwords. One of them may not lease node ids.
my $passwords = "$here dbname=postgres user";
$coordinator->sql(<<'SQL');
CREATE ROLE leaser LOGIN PASSWORD 'correct';
CREATE ROLE stranger LOGIN;
CREATE ROLE leaseholder;
CREATE ROLE server1 LOGIN PASSWORD 'pass word' CONNECTION LIMIT 4 IN ROLE leaseholder;
CREATE DATABASE empty;
CREATE DATABASE elsewhere;
CREATE DATABASE rival;
SQL
let_lease($coordinator, 'leaser, leaseholder');
$coordinator->safe_psql('elsewhere', 'CREATE SCHEMA apart; CREATE EXTENSION randflake_coordinator SCHEMA apart;'
      . 'SELECT apart.randflake_lease_configure(never_leased => true)');
$coordinator->safe_psql('rival', 'CREATE EXTENSION randflake_coordinator;'
      . "SELECT randflake_lease_configure(max_duration => $duration, max_clock_skew => 1," . ' never_leased => true)');
my $hba = slurp_file($coordinator->data_dir . '/pg_hba.conf');
unlink $coordinator->data_dir . '/pg_hba.conf';
$coordinator->append_conf('pg_hba.conf', "local all leaser scram-sha-256\nhostssl postgres +leaseholder 127.0.0.1/32 scram-sha-256\n$hba");
$coordinator->reload;

my $holder = new_holder($fleet, 'holder', $good);
sub configure_holder(%settings) { configure($holder, leasing($fleet, $good, max_wait => '3min', %settings)) }

sub reload_with($connstr, %settings) {
    configure_holder(coordinator => $connstr, %settings);
    $holder->reload;
}

sub told($pattern, $test_name, $offset = undef) {
    wait_for_status($holder, "lease_error ~ '$pattern'");
    $pattern =~ s/''/'/g;
    log_has($holder, qr/LOG: .*$pattern/, "$test_name: in randflake_status and the log", $offset);
}

configure_holder(coordinator => "$here dbname=nowhere");
$holder->start;
told('could not lease node ids: .*database "nowhere" does not exist', 'no database');
error_is($holder, 'SET randflake.max_wait = 0; SELECT randflake_generate()', '55000',
    { message => qr/this server has no lease of node ids/, detail => qr/^The coordinator has not answered since .*\.$/,
      hint => qr/"randflake_status"/ }, 'no lease: generate says what kind of failure it is', problem => 1);

# A worker can miss a reload while it starts, so after its start it reads the settings again.
configure_holder(coordinator => "$here dbname=empty");
kill 'TERM', lease_worker_of($holder);
told('could not lease node ids: function randflake_lease_acquire.* does not exist', 'no extension');
for (
    [ 'host=' . $coordinator->host . ' port=1 dbname=postgres', '.*(port|\.s\.PGSQL\.1")', 'nobody there' ],
    [ "$here dbname=elsewhere", 'function randflake_lease_acquire.* does not exist', 'extension in another schema' ],
    [ "$passwords=leaser password=wrong", '.*password authentication failed for user "leaser"', 'wrong password' ],
    [ "$passwords=stranger", 'permission denied for function randflake_lease_acquire', 'a role without the right' ],
    [ 'nonsense', '"randflake.coordinator" is not a valid connection string', 'malformed connection string' ],
    [ '', '"randflake.coordinator" is empty', 'empty connection string' ]) {
    my ($connstr, $reason, $name) = @$_;
    reload_with($connstr);
    told("could not lease node ids: $reason", $name);
}

$coordinator->safe_psql('rival', q{UPDATE randflake_lease_pool SET secrets = 'feedfeedfeedfeed'});
reload_with("$here dbname=rival");
told('could not lease node ids: the holder has another secret than the other holders', 'wrong key');
$coordinator->safe_psql('rival', 'SELECT randflake_lease_configure(forget_key => true)');
$coordinator->safe_psql('rival', <<'SQL');
SELECT randflake_lease_configure(0, 1);
SELECT pg_sleep_until(to_timestamp(high_water)) FROM randflake_lease_pool;
SELECT randflake_lease_acquire('x', gen_random_uuid(), 1, 60, '0123456789abcdef');
SELECT randflake_lease_configure(forget_key => true);
INSERT INTO randflake_lease (holder, incarnation, secrets, nodes, span)
SELECT 'nobody', gen_random_uuid(), '0123456789abcdef', '[0,1)', int8range(2500000000, 2500000001);
SQL
told('could not lease node ids: no node id is free', 'pool dry');
$coordinator->safe_psql('rival', q{DELETE FROM randflake_lease; SELECT randflake_lease_configure(0, 16)});

reload_with("$here dbname=elsewhere options='-c search_path=apart'");
wait_for_lease($holder);
is($coordinator->safe_psql('elsewhere', 'SELECT holder FROM apart.randflake_leases'),
    'holder', 'extension in another schema: leases with a search_path');
$coordinator->sql(q{CREATE ROLE ghost; GRANT ghost TO leaser; ALTER ROLE leaser SET role = 'ghost'; DROP ROLE ghost});
my ($out, $err);
IPC::Run::run([ 'psql', '-XAtq', '-d', "$passwords=leaser password=correct", '-c', 'SELECT' ], '>', \$out, '2>', \$err);
like($err, qr/^WARNING/, 'a connection that begins with a warning');
reload_with("$passwords=leaser password=correct");
await($coordinator, q{SELECT count(*) > 0 FROM randflake_leases WHERE holder = 'holder' AND state = 'active'}, 'no lease');
wait_for_lease($holder);
wait_for_status($holder, 'lease_error IS NULL');
pass('a warning while connecting does not cost a lease');
$coordinator->sql('ALTER ROLE leaser RESET role');

sub change_over_to($connstr, %settings) {
    my $end = status_of($holder, 'extract(epoch FROM window_end)');
    reload_with($connstr, %settings);
    wait_for_status($holder, "extract(epoch FROM window_start) >= $end AND clock_timestamp() < window_end");
}

load_on($fleet, $holder);
change_over_to($_) for "$here dbname=rival", $good, "$here dbname=rival";
pass('another coordinator: its lease opens when the former one has ended');
end_load($fleet, $holder);
my %nodes = map { $_ => $coordinator->safe_psql($_,
    q{SELECT string_agg(first_node_id::text, ' ') FROM randflake_leases WHERE holder = 'holder'}) } qw(postgres rival);
like("$nodes{postgres}|$nodes{rival}", qr/\b(\d+)\b.*\|.*\b\1\b/,
    "another coordinator: granted the same node id ($nodes{postgres} and $nodes{rival})");
all_is_well($fleet, $coordinator, 'another coordinator', leased => 0);

# Checks that the server keeps one lease, or on a slow machine a later lease, for four renewals.
sub is_kept($test_name) {
    ok(wait_until {
        my ($lease, $extensions) = split /\|/, status_of($holder, 'lease_id, window_extensions');
        $lease ||= 0;
        wait_for_status($holder, "lease_id IS DISTINCT FROM $lease OR window_extensions >= $extensions + 4");
        status_of($holder, 'lease_id') eq $lease;
    }, $test_name);
}

change_over_to($good, lease_duration => 3600);
is_kept('lease_duration beyond the coordinator\'s limit: renewed in time');
reload_with($good, lease_duration => 2);
is_kept('lease_duration shortened: the lease is kept');

my $first = status_of($holder, 'first_node_id');
$coordinator->sql(sprintf 'SELECT randflake_lease_configure(%d, 1000)', $first + 1);
wait_for_status($holder, "first_node_id > $first AND clock_timestamp() < window_end");
log_has($holder, qr/does not renew lease \d+ of node ids: .* no longer in the pool/,
    'node ids out of the pool: another lease');
$coordinator->sql('SELECT randflake_lease_configure(0, 131072)');

my $proxy = RandflakeImpostor->before($coordinator);
my $proxied = "host=$proxy->{directory} port=5432 dbname=postgres";
my ($hole, $hole_port) = black_hole();

# Neither a reload nor a shutdown waits for a pending connection. At the first address, a server
# accepts the connection but stays silent. At the second address, no server answers.
$proxy->mode('hang');
for my $silent ($proxied, "host=127.0.0.1 port=$hole_port dbname=postgres") {
    my $offset = -s $holder->logfile;
    reload_with($silent);
    sleep 1;
    reload_with($good);
    my $renewed = status_of($holder, 'window_extensions');
    wait_for_status($holder, "window_extensions > $renewed");
    reload_with($silent);
    sleep 1;
    $holder->stop;
    unlike(slurp_file($holder->logfile, $offset), qr/could not (renew|lease) .*did not answer/,
        'reload and shutdown interrupt a connection to a silent host');
    configure_holder();
    $holder->start;
    wait_for_lease($holder);
}

# If a host hangs, even after it has accepted the login, the server asks the next host of its list.
my $impostor = RandflakeImpostor->new;
$impostor->play(answer => \&silence);
for my $first_host ([ $proxy->{directory}, 5432 ],
    [ '127.0.0.1', $hole_port ],
    [ $impostor->{directory}, 5432 ]) {
    my $list = sprintf 'host=%s,%s port=%s,%s dbname=postgres', $first_host->[0],
      $coordinator->host, $first_host->[1], $coordinator->port;
    configure_holder(coordinator => $list);
    $holder->restart;
    wait_for_status($holder, 'window_extensions > 0');
    pass('a silent host does not keep the next one from being asked');
}
log_has($holder, qr/could not (lease|renew the lease of) node ids: the coordinator did not answer in time/,
    'a silent host is in the log');

# The coordinator commits the grant, but the proxy drops the answer. The server must have no lease.
$holder->stop;
$proxy->mode('cut');
configure_holder(coordinator => $proxied);
unlink run_marker_path($holder);
$coordinator->sql('DELETE FROM randflake_lease WHERE upper(span) < 1');
my $granted = $coordinator->sql('SELECT max(lease_id) FROM randflake_lease');
$holder->start;
await($coordinator, "SELECT count(*) >= 2 FROM randflake_lease WHERE holder = 'holder' AND lease_id > $granted", 'no lease was granted');
told('could not lease node ids: server closed the connection unexpectedly', 'answer lost');
is(status_of($holder, 'lease_id IS NULL AND window_end IS NULL'), 't', 'answer to an acquisition lost: no lease');
$granted = $coordinator->sql('SELECT max(lease_id) FROM randflake_lease');
$proxy->mode('pass');
wait_for_lease($holder);
cmp_ok(status_of($holder, 'lease_id'), '>', $granted, 'answered again: a new lease');

# The coordinator commits the renewal, but the proxy drops the answer. The end of the server's
# window does not change. If an answer comes before this end, the server renews the same lease.
my $lease = status_of($holder, 'lease_id');
my $known_end = q{(SELECT extract(epoch FROM ends_at) FROM randflake_leases WHERE holder = 'holder'
    ORDER BY lease_id DESC LIMIT 1)};
$proxy->mode('cut');
wait_for_status($holder, q{lease_error ~ 'could not renew'});
my $end = status_of($holder, 'extract(epoch FROM window_end)');
await($coordinator, "SELECT $known_end > $end", 'not renewed');
is(status_of($holder, 'extract(epoch FROM window_end)'), $end, 'answer to a renewal lost: the window keeps its end');
$proxy->mode('pass');
wait_for_status($holder, "extract(epoch FROM window_end) > $end");
cmp_ok(status_of($holder, 'lease_id'), '>=', $lease, 'answered again: renewed');

# If an operator cancels the wait for a standby, the coordinator commits the grant, but a failover
# may lose it. The holder must not use it, even if its role turns off the wait and the warning.
$coordinator->sql(<<'SQL');
ALTER ROLE leaser SET client_min_messages = 'error';
ALTER ROLE leaser SET synchronous_commit = 'local';
SQL
$holder->stop;
unlink run_marker_path($holder);    # so that it goes on with no lease
sub waits_for_standby($name) {
    $coordinator->append_conf('postgresql.conf', "synchronous_standby_names = '$name'");
    $coordinator->reload;
}
waits_for_standby('nobody');
configure_holder(coordinator => "$passwords=leaser password=correct");
$granted = $coordinator->sql('SELECT max(lease_id) FROM randflake_lease');

sub cancel_wait($function) {
    await($coordinator, <<"SQL", 'nobody waits for a standby');
SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity
WHERE wait_event = 'SyncRep' AND query ~ '$function'
SQL
}
$holder->start;
cancel_wait('randflake_lease_acquire');
told('could not lease node ids: canceling wait for synchronous replication', 'synchronous wait cancelled');
is($coordinator->sql("SELECT count(*) > 0 FROM randflake_lease WHERE lease_id > $granted"),
    't', 'synchronous wait cancelled: the coordinator has committed');
is(status_of($holder, 'lease_id IS NULL AND window_end IS NULL'), 't', 'synchronous wait cancelled: no lease');
waits_for_standby('');
wait_for_lease($holder);
$end = status_of($holder, 'extract(epoch FROM window_end)');
waits_for_standby('nobody');
cancel_wait('randflake_lease_renew');
told('could not renew the lease of node ids: canceling wait for synchronous replication',
    'synchronous wait of a renewal cancelled');
waits_for_standby('');
wait_for_lease($holder);

$holder->stop;
configure($holder, coordinator => $good);
$holder->start;
told('could not lease node ids: no secret is configured', 'no secret');
$holder->stop;
configure_holder(node_count => 100);
$coordinator->sql('SELECT randflake_lease_configure(0, 99)');
$holder->start;
told('could not lease node ids: the pool has fewer than 100 node ids', 'pool too small');

# --- TLS -----------------------------------------------------------------------------------------
my $directory = tempdir();

sub openssl {
    my ($out, $errors) = ('', '');
    IPC::Run::run([ 'openssl', @_ ], '<', '/dev/null', '>', \$out, '2>', \$errors) or die "openssl @_: $errors";
}

# Makes a certificate authority in NAME.crt and NAME.key. It signs certificates for host names.
my @new_key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', 2);
sub authority($name) {
    openssl('req', '-x509', @new_key, '-subj', "/CN=$name", '-keyout', "$directory/$name.key",
        '-out', "$directory/$name.crt");
}

sub certificate($name, $host, $authority) {
    openssl('req', @new_key, '-subj', "/CN=$host", '-keyout', "$directory/$name.key", '-out', "$directory/$name.csr");
    openssl('x509', '-req', '-in', "$directory/$name.csr", '-CA', "$directory/$authority.crt",
        '-CAkey', "$directory/$authority.key", '-CAcreateserial', '-days', 2, '-out', "$directory/$name.crt");
    chmod 0600, "$directory/$name.key";
}
authority($_) for qw(ours theirs);
certificate('right', 'localhost', 'ours');
certificate('of_another_host', 'elsewhere.example.com', 'ours');
certificate('of_another_authority', 'localhost', 'theirs');

sub has_certificate($name) {
    my $file = $coordinator->data_dir . '/tls.conf';
    unlink $file;
    append_to_file($file, "ssl = on\nssl_cert_file = '$directory/$name.crt'\nssl_key_file = '$directory/$name.key'\n");
    $coordinator->reload;
    $holder->reload if $holder->{_pid};
}
write_private_file(my $passfile = "$directory/passfile", "*:*:*:*:pass word\n");
my $over_tls = sub ($port, $sslmode) {
    return "host=localhost hostaddr=127.0.0.1 port=$port dbname=postgres user=server1 passfile=$passfile"
      . " sslmode=$sslmode sslrootcert=$directory/ours.crt";
};

$holder->stop;
$coordinator->sql('SELECT randflake_lease_configure(0, 16)');
has_certificate('right');
configure_holder(coordinator => $over_tls->($coordinator->port, 'verify-full'));
$holder->start;
wait_for_lease($holder);
log_has($coordinator, qr/connection authorized: user=server1 .*SSL enabled/, 'a server leases over TLS');
unlike(slurp_file($_->logfile), qr/pass word/, '  with a password that ' . $_->name . ' does not log')
  for $holder, $coordinator;
has_certificate('of_another_authority');
told('certificate verify failed', 'a certificate of another authority is refused');
has_certificate('of_another_host');
told('certificate for "elsewhere\.example\.com" does not match host name "localhost"', 'and one of another host');
has_certificate('right');
wait_for_status($holder, 'lease_error IS NULL');
wait_for_lease($holder);

# This impostor has no certificate. It asks for a plain password, and remembers the answer.
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 10) or die "could not listen: $!";
$impostor = RandflakeImpostor->new($listener);
$impostor->play(startup => sub {
    say_to($_[0], message('R', pack 'N', 3));
    append_to_file("$impostor->{directory}/startups", (read_message($_[0]))[1]);
    die 'enough';
});
reload_with($over_tls->($listener->sockport, 'verify-full'));
told('server does not support SSL', 'a server without TLS is refused');
like($impostor->startups, qr/^\n+$/, '  and sent nothing but the wish for TLS');
reload_with($over_tls->($listener->sockport, 'prefer'));
ok(wait_until { $impostor->startups =~ /pass word/ }, 'without verify-full it gets the password');
$_->stop for $holder, $coordinator;
done_testing();
