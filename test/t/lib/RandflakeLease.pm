# Runs a fleet: a coordinator, servers that lease node ids from it, and clients that write down
# every identifier they receive. Checks all identifiers against the coordinator's leases.

package RandflakeLease;

use Exporter 'import';
use Fcntl qw(LOCK_EX);
use Randflake;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  new_fleet start_coordinator make_coordinator let_lease leasing move_to new_static new_holder start_holder
  start_in_fleet wait_for_lease wait_for_closed_window wait_for_open_window gave_back
  load_on end_load all_is_well processes_of lease_worker_of);

# Leases last this many seconds. Slow machines could not renew shorter leases in time.
our $duration = 4;

# A pool has this many node ids. Some tests set 16, so that grants soon reuse node ids.
our $node_ids = 131072;

# The template, seen from a server's directory of backups.
my $shared_backup = '../../fleet_template';

# All servers of all tests are copies of one template, because a copy is faster than initdb and a
# start. The first test makes it. It has both extensions in the database postgres. The servers of a
# test share a secret. Clients call randflake_generate(). With snowflake => 1, they call
# snowflake_generate().
sub new_fleet(%options) {
    my $template = PostgreSQL::Test::Cluster->new('template');
    mkdir $template->backup_dir;
    my $shared = $template->backup_dir . "/$shared_backup";
    open my $lock, '>', "$shared.lock" or die "could not open $shared.lock: $!";
    flock $lock, LOCK_EX or die "could not lock $shared.lock: $!";
    if (!-e $shared) {
        my $original = start_server('first_template', init => [ allows_streaming => 1 ],
            conf => "restart_after_crash = on\nlog_statement = none\nmax_connections = 250\n"
              . "shared_buffers = 16MB\n",    # 200 sessions at once pin more than the 1 MB of a test server
            settings => { node_id => 131071, secret => random_secret() },
            extensions => [qw(randflake randflake_coordinator)]);
        $original->stop;
        rename $original->data_dir, $shared or die "could not rename: $!";
    }
    my ($generate, $decode) = $options{snowflake}
      ? ('snowflake_generate()', "snowflake_decode(id, 'twitter')") : ('randflake_generate()', 'randflake_decode(id)');
    return {
        template => $template, secret => random_secret(), generate => $generate, decode => $decode,
        files => [], clients => {}
    };
}

# Starts a server. If $fleet->{clock} is a server, the new server shares the clock of that server.
sub start_in_fleet($fleet, $node) {
    if ($fleet->{clock}) {
        start_under_clock($node, $fleet->{clock});
    } else {
        $node->start;
    }
}

# Copies the template, adds these settings and `conf`, and starts the copy unless `start` is 0. If
# `secrets` has the arguments of write_secrets(), the copy has a secret file.
sub _copy_of_template($fleet, $name, $settings, %options) {
    my $node = PostgreSQL::Test::Cluster->new($name);
    $node->init_from_backup($fleet->{template}, $shared_backup);
    $node->append_conf('postgresql.conf', $options{conf} // '');
    my %settings = (secret => $fleet->{secret}, %$settings);
    if ($options{secrets}) {
        write_secrets($node, @{ $options{secrets} });
        delete $settings{secret};
        $settings{secret_file} = secret_path($node);
    }
    configure($node, %settings);
    start_in_fleet($fleet, $node) if $options{start} // 1;
    return $node;
}

# Makes a coordinator with short leases. It needs the secret, because it decodes all identifiers.
sub start_coordinator($fleet, $name, %options) {
    my $node = _copy_of_template($fleet, $name, {}, %options);
    make_coordinator($node) if $options{start} // 1;
    return $node;
}

# Creates the extension again, because a copied coordinator must assume that it lost leases. A
# trigger copies each lease for all_is_well, because a grant deletes older leases.
sub make_coordinator($node) {
    $node->sql(<<"SQL");
DROP EXTENSION randflake_coordinator;
CREATE EXTENSION randflake_coordinator;
SELECT randflake_lease_configure(0, $node_ids, max_duration => $duration, max_clock_skew => 1, never_leased => true);
CREATE TABLE IF NOT EXISTS lease_history (holder text, nodes int4range, span int8range);
CREATE OR REPLACE FUNCTION remember_lease() RETURNS trigger LANGUAGE plpgsql
AS \$\$ BEGIN INSERT INTO public.lease_history VALUES (NEW.holder, NEW.nodes, NEW.span); RETURN NULL; END \$\$;
CREATE TRIGGER remember AFTER INSERT OR UPDATE ON randflake_lease FOR EACH ROW EXECUTE FUNCTION remember_lease();
SQL
}

# Lets a role lease.
sub let_lease($coordinator, $role) {
    $coordinator->sql(<<"SQL");
GRANT EXECUTE ON FUNCTION randflake_lease_acquire(text, uuid, integer, integer, text),
    randflake_lease_renew(bigint, uuid, bigint, integer, text), randflake_lease_release(bigint, uuid, bigint) TO $role
SQL
}

sub new_static($fleet, $name, $node_id, %settings) {
    return _copy_of_template($fleet, $name, { node_id => $node_id, max_wait => '2min', %settings }, start => 0);
}

# Returns the settings of a server that leases from $coordinator (a server or a connection string).
sub leasing($fleet, $coordinator, %settings) {
    $coordinator = $coordinator->connstr('postgres') if ref $coordinator;
    return (secret => $fleet->{secret}, coordinator => $coordinator, lease_duration => $duration,
        max_wait => '2min', %settings);
}

sub move_to($fleet, $node, @leasing) {
    configure($node, leasing($fleet, @leasing));
    $node->reload;
}

sub new_holder($fleet, $name, $coordinator, %settings) {
    my %options = map { $_ => delete $settings{$_} } qw(conf secrets);
    return _copy_of_template($fleet, $name, { leasing($fleet, $coordinator, %settings) }, start => 0, %options);
}

sub start_holder {
    my ($fleet) = @_;
    my $node = new_holder(@_);
    start_in_fleet($fleet, $node);
    wait_for_lease($node);
    return $node;
}

# --- a server's lease --------------------------------------------------------------------------
# Waits until the server's precise and coarse clocks have passed the end of the window.
sub wait_for_closed_window($node) { wait_for_status($node, q{window_end <= clock_timestamp() - interval '20 ms'}) }

sub wait_for_open_window($node) {
    wait_for_status($node, 'clock_timestamp() >= window_start AND clock_timestamp() < window_end');
}

# Checks that the server has given back this lease or a later lease.
sub gave_back($coordinator, $holder, $lease, $test_name) {
    is( $coordinator->sql(q{SELECT count(*) > 0 FROM randflake_leases WHERE state = 'released'}
              . " AND holder = '" . $holder->name . "' AND lease_id >= $lease"), 't', $test_name);
}

# Waits until the server can generate, and returns its first node id.
sub wait_for_lease($node) {
    eval { $node->sql(q{SET randflake.max_wait = '3min'; SELECT randflake_generate()}) }
      or give_up($node->name . ": no lease: $@");
    return status_of($node, 'first_node_id');
}

# --- clients -----------------------------------------------------------------------------------
# Starts clients on a server. As long as its connection lasts, a client retries after any error.
sub load_on($fleet, $node, $count = undef) {
    $fleet->{script} //= do {
        my $file = tempdir_short() . '/load.sql';
        my $copy = "COPY (SELECT $fleet->{generate} FROM generate_series(1, 20)) TO STDOUT;\n";
        my $sleep = "DO \$\$ BEGIN PERFORM pg_sleep(0.02); END \$\$;\n";
        # Identifiers of rolled-back transactions count as used.
        PostgreSQL::Test::Utils::append_to_file($file, "$copy${sleep}BEGIN;\n${copy}ROLLBACK;\n$sleep" x 25_000);
        $file;
    };
    for (1 .. $count // 2) {
        my $file = tempdir_short() . '/received';
        push @{ $fleet->{files} }, [ $node->name, $file ];
        local $ENV{PGOPTIONS} = '-c randflake.max_wait=300ms';
        push @{ $fleet->{clients}{ $node->name } }, IPC::Run::start(
            [ 'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=load' ],
            '<', $fleet->{script}, '>', $file, '2>', "$file.err",
            IPC::Run::timeout(6 * $PostgreSQL::Test::Utils::timeout_default));
    }
    for my $file (map { $_->[1] } @{ $fleet->{files} }[ -($count // 2) .. -1 ]) {
        sleep 0.05 until -s $file || -s "$file.err";
    }
}

# Ends the clients of a server. If the server has stopped, its clients have ended by themselves.
sub end_load($fleet, $node) {
    # Passes the SQL as an argument of psql, because IPC::Run may die when it writes to the standard
    # input of a psql that cannot connect.
    IPC::Run::run(
        [ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'" ],
        '<', '/dev/null', '>', \my $out, '2>', \my $err);
    $_->finish for @{ delete $fleet->{clients}{ $node->name } // [] };
}

# Checks on the coordinator that no client received an identifier twice. If `leased` is true, the
# second and node id of each identifier must lie inside a lease of its server.
sub all_is_well($fleet, $coordinator, $test_name, %options) {
    my $copies = join '', map {
        "\\copy load (id) FROM '$_->[1]'\n"
          . "INSERT INTO received SELECT '$_->[0]', id FROM load; TRUNCATE load;\n"
    } @{ $fleet->{files} };
    my ($count, $distinct, $outside) = split /\|/, $coordinator->sql(<<"SQL");
CREATE TABLE IF NOT EXISTS lease_history (holder text, nodes int4range, span int8range);
CREATE TEMP TABLE load (id bigint);
CREATE TEMP TABLE received (holder text, id bigint);
$copies
SELECT count(*), count(DISTINCT id),
       (SELECT count(*) FROM (SELECT DISTINCT holder, generated_at, node_id
                              FROM received, $fleet->{decode}) AS used
        WHERE NOT EXISTS (SELECT FROM (SELECT holder, nodes, span FROM randflake_lease
                                       UNION ALL SELECT * FROM lease_history) AS l
                          WHERE l.holder = used.holder AND l.nodes \@> used.node_id
                            AND l.span \@> floor(extract(epoch FROM used.generated_at))::bigint))
FROM received
SQL
    ok($count > 0 && $distinct == $count, "$test_name: $count identifiers, none twice")
      or diag("$distinct are distinct");
    is($outside, 0, "$test_name: all inside the leases of their servers") if $options{leased} // 1;
    return $count;
}

# --- processes ---------------------------------------------------------------------------------
# Returns the process ids of a running server's postmaster and of the postmaster's children.
sub processes_of($node) {
    my $postmaster = postmaster_of($node);
    my @children = split ' ', `ps -o pid= --ppid $postmaster`;
    return ($postmaster, @children);
}

# Waits for the lease worker, because a new server accepts connections before this worker starts.
sub lease_worker_of($node) {
    my ($postmaster) = processes_of($node);
    my $pid = wait_until { (`ps -ww -o pid=,args= --ppid $postmaster` =~ /^\s*(\d+).*lease worker/m)[0] };
    return $pid // die $node->name . ' has no lease worker';
}

1;
