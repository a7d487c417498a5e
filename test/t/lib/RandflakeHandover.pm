# Moves node ids between data directories by copies, rollbacks and standbys, under differing clocks.
# Sessions collect every identifier, including those of rolled-back transactions.
#
# Each server has its own wall clock (see Randflake.pm), which is $node->{clock_ahead} seconds ahead
# of the true time. A test can stop all clocks together, so that its events happen within one second
# even on a slow machine.

package RandflakeHandover;

use Exporter 'import';
use Randflake;
use RandflakeWindowFile;
use Time::HiRes qw(time);

our @EXPORT = qw(
  set_ahead clocks_stand clocks_stand_in_next_second clocks_run collect collect_at_once copy_directory
  make_standby snapshot roll_back run_marker_path);

# --- clocks ----------------------------------------------------------------------------------
sub set_ahead($node, $seconds) {
    $node->{clock_ahead} = $seconds;
    clock_offset($node, $seconds);
}

sub clocks_stand(@nodes) {
    my $now = time;
    clock_stands_at($_, $now + ($_->{clock_ahead} // 0)) for @nodes;
}

# Stops all clocks in a second that is later than the true time and than the last call's second.
my $stood_at = 0;

sub clocks_stand_in_next_second(@nodes) {
    $stood_at = ($stood_at > time ? $stood_at : time) + 1;
    clock_stands_at($_, $stood_at + ($_->{clock_ahead} // 0)) for @nodes;
}

sub clocks_run(@nodes) { clock_offset($_, $_->{clock_ahead} // 0) for @nodes }

# --- identifiers -----------------------------------------------------------------------------
# The script rolls back the transactions in which it makes two thirds of its identifiers.
my $script = <<'SQL';
BEGIN; COPY (SELECT randflake_generate() FROM generate_series(1, 20)) TO STDOUT; ROLLBACK;
INSERT INTO kept SELECT randflake_generate() FROM generate_series(1, 10) RETURNING id;
\! sleep 0.1
SQL

# Lets each session generate for about this many seconds after its first identifier. Adds the
# identifiers to the history, and returns the era, or nothing if there are no identifiers.
sub collect($history, $node, $seconds, %options) {
    my @sessions;
    # Writes statements to a file, because psql would wait for the end of its standard input.
    my $statements = tempdir_short() . '/statements';
    append_to_file($statements, "CREATE TEMP TABLE kept (id bigint);\n" . $script x (10 * $seconds));
    for (1 .. $options{sessions} // 1) {
        my $file = tempdir_short() . '/collected';
        local $ENV{PGOPTIONS} = '-c randflake.max_wait=' . ($options{max_wait} // '60s');
        push @sessions,
          {
            file => $file,
            handle => IPC::Run::start(
                [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $statements ],
                '>', $file, '2>', "$file.err",
                IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default)) };
    }
    $_->{handle}->finish for @sessions;
    my @files = map { $_->{file} } @sessions;
    return if !grep { -s } @files;
    return $history->add_era(@files);
}

# Collects the identifiers that the server issues without waiting.
sub collect_at_once($history, $node, %options) {
    return collect($history, $node, 0.3, max_wait => '100ms', %options);
}

# --- directories -----------------------------------------------------------------------------
# Replaces $to's data directory with that of the stopped server $from, but keeps postgresql.conf.
sub copy_directory($from, $to) {
    my $directory = $to->data_dir;
    $to->{configuration} //= slurp_file("$directory/postgresql.conf");
    system_or_bail('rm', '-r', $directory);
    system_or_bail('cp', '-a', $from->data_dir, $directory);
    unlink map { "$directory/$_" } qw(postmaster.pid standby.signal);
    write_private_file("$directory/postgresql.conf", $to->{configuration});
}

# Makes the server start as a standby that has no primary. The test promotes it later.
sub make_standby($node) { append_to_file($node->data_dir . '/standby.signal', '') }

# These functions take and restore a disk snapshot of randflake's files, but not of the database.
# The identity file keeps its inode and time of birth.
sub snapshot($node) { return slurp_file(window_path($node)) }
sub roll_back($node, $snapshot) { write_window_bytes($node, $snapshot) }

# The name of the server's run marker is the 64-bit FNV-1a hash of the directory's identity.
sub run_marker_path($node) {
    use integer;    # wraps around
    my $window = read_window($node);
    my $hash = -3750763034362895579;    # 0xcbf29ce484222325
    for my $byte (unpack 'C*', pack 'Q<3q<', @$window{qw(system_identifier inode device birth)}) {
        $hash = ($hash ^ $byte) * 1099511628211;    # 0x100000001b3
    }
    return sprintf '/dev/shm/randflake.%016x', $hash;
}

1;
