# Runs a coordinator over TLS as documented. Checks that a server with sslmode=verify-full sends
# requests and the password to this coordinator only.
use IO::Socket::INET;
use POSIX ();
use Randflake;
use RandflakeLease;

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

my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator', start => 0,
    conf => "listen_addresses = '127.0.0.1'\nlog_connections = on\ninclude_if_exists = 'tls.conf'\n");

sub has_certificate($name) {
    my $file = $coordinator->data_dir . '/tls.conf';
    unlink $file;
    append_to_file($file, "ssl = on\nssl_cert_file = '$directory/$name.crt'\nssl_key_file = '$directory/$name.key'\n");
}
has_certificate('right');
my $hba = $coordinator->data_dir . '/pg_hba.conf';
unlink $hba;
append_to_file($hba, "local all all trust\nhostssl postgres +leaseholder 127.0.0.1/32 scram-sha-256\n");
start_in_fleet($fleet, $coordinator);
make_coordinator($coordinator);
my $password = 'pass word';
$coordinator->sql(
    "CREATE ROLE leaseholder; CREATE ROLE server1 LOGIN PASSWORD '$password' CONNECTION LIMIT 4 IN ROLE leaseholder");
let_lease($coordinator, 'leaseholder');

my $passfile = "$directory/passfile";
append_to_file($passfile, "*:*:*:*:$password\n");
chmod 0600, $passfile;
my $over_tls = sub ($port, $sslmode) {
    return "host=localhost hostaddr=127.0.0.1 port=$port dbname=postgres user=server1 passfile=$passfile"
      . " sslmode=$sslmode sslrootcert=$directory/ours.crt";
};

my $verified = $over_tls->($coordinator->port, 'verify-full');
my $holder = start_holder($fleet, 'holder', $verified);
log_has($coordinator, qr/connection authorized: user=server1 .*SSL enabled/, 'a server leases over TLS');
unlike(slurp_file($_->logfile), qr/\Q$password\E/, '  with a password that ' . $_->name . ' does not log')
  for $holder, $coordinator;

sub is_refused($reason, $test_name) {
    $holder->reload;
    my $error;
    wait_until { ($error = status_of($holder, 'lease_error')) =~ $reason };
    like($error, $reason, $test_name);
}
has_certificate('of_another_authority');
$coordinator->reload;
is_refused(qr/certificate verify failed/, 'a certificate of another authority is refused');
has_certificate('of_another_host');
$coordinator->reload;
is_refused(qr/certificate for "elsewhere\.example\.com" does not match host name "localhost"/,
    'and one of another host');
has_certificate('right');
$coordinator->reload;
$holder->reload;
wait_for_status($holder, 'lease_error IS NULL');
wait_for_lease($holder);

# This impostor has no certificate. It asks for a plain password, and stores each answer in a file.
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 10) or die "could not listen: $!";
my $impostor = fork // die "could not fork: $!";
if ($impostor == 0) {
    while (my $client = $listener->accept) {
        my $bytes;
        my $message = sub {
            $client->read($bytes, 4) == 4 && $client->read($bytes, unpack('N', $bytes) - 4);
            return $bytes // '';
        };
        append_to_file("$directory/sent", 'asked ');
        my $first = $message->();
        if ($first eq pack 'N', 80877103) {
            print $client 'N';
            $client->flush;
            $first = $message->();
        }
        next if length $first < 8;
        print $client pack 'A N N', 'R', 8, 3;
        $client->flush;
        $client->read($bytes, 1);
        append_to_file("$directory/sent", $message->());
    }
    POSIX::_exit(0);
}
move_to($fleet, $holder, $over_tls->($listener->sockport, 'verify-full'));
is_refused(qr/server does not support SSL/, 'a server without TLS is refused');
like(slurp_file("$directory/sent"), qr/^(?:asked )+$/, '  and sent nothing but the wish for TLS');
move_to($fleet, $holder, $over_tls->($listener->sockport, 'prefer'));
wait_until { slurp_file("$directory/sent") =~ /\Q$password\E/ };
like(slurp_file("$directory/sent"), qr/\Q$password\E/, 'without verify-full it gets the password');
kill 'KILL', $impostor;
waitpid $impostor, 0;
$_->stop for $holder, $coordinator;
done_testing();
