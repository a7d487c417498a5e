# Collects every identifier that leaves a server, even if its transaction is rolled back. Clients
# write identifiers to files as soon as they receive them. An observer, another server with the same
# secret, decodes all identifiers.
#
# An era of the history lasts from one stop or crash of the server to the next.

package RandflakeHistory;

use Exporter 'import';
use Randflake;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  receive wait_until_received client_backends finish_clients end_clients crash_backend crash_server kill_postmaster
);

# Clients repeat these statements until they lose the connection. Each statement returns only
# identifiers, one per line. COPY passes identifiers on before the statement ends. generate_series
# is in the select list, because in FROM, the executor would store the rows of generate_series.
my %scripts = (single => [ 200_000, 'SELECT randflake_generate();' ],
    copy => [ 100_000, 'COPY (SELECT randflake_generate() FROM generate_series(1, 5)) TO STDOUT;' ],
    rollback => [ 50_000, 'BEGIN; COPY (SELECT randflake_generate() FROM generate_series(1, 5)) TO STDOUT; ROLLBACK;' ],
    stream => [ 1, 'COPY (SELECT randflake_generate() FROM (SELECT generate_series(1, 100000000)) AS n) TO STDOUT;' ],
    parallel => [ 2_000, 'COPY (SELECT randflake_generate() FROM numbers) TO STDOUT;' ],
    reconnect => [ 1_000, '\c' . "\nSELECT randflake_generate();" ]);

sub new($class, $secret) {
    my $observer = start_server('observer', settings => { secret => $secret });
    $observer->sql('CREATE UNLOGGED TABLE received (id bigint);'
          . 'CREATE UNLOGGED TABLE history (era integer, id bigint, second bigint,'
          . ' generated_at timestamptz, node_id integer, sequence integer)');
    return bless { observer => $observer, eras => 0 }, $class;
}

# --- clients ---------------------------------------------------------------------------------
sub start_clients($self, $node, @kinds) {
    my @clients;
    for my $kind (@kinds) {
        my $base = tempdir_short() . '/client';
        my ($times, $sql) = @{ $scripts{$kind} };
        write_private_file($self->{script}{$kind} = "$base.sql", "$sql\n" x $times) if !$self->{script}{$kind};
        my $client = { received => "$base.out", errors => "$base.err" };
        $client->{handle} = IPC::Run::start(
            [ 'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=client' ],
            '<', $self->{script}{$kind}, '>', $client->{received}, '2>', $client->{errors},
            IPC::Run::timeout(3 * $PostgreSQL::Test::Utils::timeout_default));
        push @clients, $client;
    }
    return @clients;
}

# Waits until each client has received something since it started or since the last wait.
sub wait_until_received(@clients) {
    for my $client (@clients) {
        my $seen = $client->{seen} // 0;
        wait_until { -s $client->{received} != $seen }
          or die 'a client receives nothing: ' . slurp_file($client->{errors});
        $client->{seen} = -s $client->{received};
    }
}

sub client_backends($node) {
    return split /\n/, $node->sql(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'client' ORDER BY random()");
}

# Waits until the clients lose the connection or finish the script. Returns the clients' files.
sub finish_clients(@clients) {
    $_->{handle}->finish for @clients;
    return map { $_->{received} } @clients;
}

sub end_clients($node, @clients) {
    $node->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'client'");
    return finish_clients(@clients);
}

# Runs psql with these arguments until its end or its first error. Returns the file of its output,
# whose errors are in a file of the same name with .err.
sub receive($node, $max_wait, @arguments) {
    my $file = tempdir_short() . '/received';
    local $ENV{PGOPTIONS} = "-c randflake.max_wait=$max_wait" if defined $max_wait;
    IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), @arguments ],
        '>', $file, '2>', "$file.err", IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
    return $file;
}

# Lets one session generate up to this many identifiers. Returns the file and the errors.
sub generate($self, $node, $count, $max_wait = undef) {
    my $file = receive($node, $max_wait, '-c',
        "COPY (SELECT randflake_generate() FROM generate_series(1, $count)) TO STDOUT");
    return ($file, slurp_file("$file.err"));
}

# Checks that one session gets this many identifiers. Returns their era.
sub generates($self, $node, $count, $test_name, $max_wait = undef) {
    my ($file, $errors) = $self->generate($node, $count, $max_wait);
    my $era = $self->add_era($file);
    is($era->{count}, $count, "$test_name: generates") or diag($errors);
    return $era;
}

# --- crashes -----------------------------------------------------------------------------------
# Kills a backend, by default a new one, and waits until the server has recovered.
sub crash_backend($node, $backend = undef) {
    my $log_start = -s $node->logfile;
    if (defined $backend) {
        kill 'KILL', $backend or die "could not kill $backend: $!";
    } else {
        $node->psql('postgres', q{COPY (SELECT) TO PROGRAM 'kill -KILL $PPID'});
    }
    $node->wait_for_log(qr/reinitializing.*database system is ready to accept (?:read-only )?connections/s, $log_start);
}

# Kills the postmaster and returns its surviving children.
sub kill_postmaster($node) {
    my $postmaster = postmaster_of($node);
    kill 'STOP', $postmaster or die "could not stop $postmaster: $!";
    my @children = map { int } qx(ps -o pid= --ppid $postmaster);
    $node->kill9;
    wait_until_gone($postmaster);
    return @children;
}

sub crash_server($node) { wait_until_gone(kill_postmaster($node)) }

# --- eras --------------------------------------------------------------------------------------
# Adds these files as an era. Returns the number of identifiers, the first and last second (counted
# from the epoch), how many identifiers are in the last second, and the sorted node ids as text.
sub add_era($self, @files) {
    my $era = ++$self->{eras};
    my $copies = join '', map { "\\copy received FROM '$_'\n" } @files;
    my $result = $self->{observer}->sql(<<"SQL");
TRUNCATE received;
${copies}INSERT INTO history
  SELECT $era, id, floor(extract(epoch FROM generated_at)) - 1730000000, generated_at, node_id,
         sequence
  FROM received, randflake_decode(id);
SELECT count(*), min(second), max(second),
       count(*) FILTER (WHERE second = (SELECT max(second) FROM history WHERE era = $era)),
       (SELECT string_agg(node_id::text, ' ' ORDER BY node_id)
        FROM (SELECT DISTINCT node_id FROM history WHERE era = $era) AS nodes)
FROM history WHERE era = $era;
SQL
    my %era;
    @era{qw(count first last of_last nodes)} = split /\|/, $result;
    return \%era;
}

# Empties the history, so that the next eras are independent of earlier eras.
sub forget($self) { $self->{observer}->sql('TRUNCATE history') }

# Checks that no (time, node id, sequence) and no identifier appears twice.
sub no_duplicates($self, $test_name) {
    my ($count, $numbers, $ids) = split /\|/, $self->{observer}->sql(<<'SQL');
SELECT (SELECT count(*) FROM history),
       (SELECT count(*) FROM (SELECT FROM history GROUP BY generated_at, node_id, sequence) AS n),
       (SELECT count(DISTINCT id) FROM history)
SQL
    ok($count > 0 && $numbers == $count && $ids == $count,
        "$test_name: $count identifiers, none twice")
      or diag("$numbers numbers and $ids identifiers are distinct; twice: "
          . $self->{observer}->sql(<<'SQL'));
SELECT generated_at, node_id, sequence, array_agg(era ORDER BY era) FROM history
GROUP BY 1, 2, 3 HAVING count(*) > 1 ORDER BY 1, 2, 3 LIMIT 10
SQL
}

1;
