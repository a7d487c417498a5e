# Reads and writes a server's window file byte by byte, without the code under test. Copies data
# directories, and names the files of a server that other directories have too.

package RandflakeWindowFile;

use Exporter 'import';
use Randflake;

our @EXPORT = qw(window_path read_window write_window window_bytes write_window_bytes written_end crc32c run_marker_path copy_directory);

# A file contains the fields of the head, two leases, 16 secrets (fingerprint and time), 16 node
# ranges (each with its written end), and the checksum.
my @head = qw(magic version end_count system_identifier timeline secret_count differs_from
  smallest_skew_ms largest_skew_ms inode device birth
  stop_boot0 stop_boot1 stop_at_ms stop_clock_ms stop_first_node stop_nodes floor copied_at original_first original_count
  configured_first configured_count
  mark follows postmaster boot0 boot1 written_at_ms leases);
my $layout = 'a8 V V Q< V5 Q< Q< q< Q< Q< q< q< V8 Q<5 q< a120 (Q<V)16 (V3)16';

sub window_path($node) { return $node->data_dir . '/randflake/window' }

# Returns the fields as a hash, in which each secret is [fingerprint, from], and each range of node
# ids is [first, count, end]. Dies if the file is incomplete.
sub read_window($node) {
    my $bytes = window_bytes($node);
    die 'window file has length ' . length $bytes if length $bytes != 688;
    die 'window file has a wrong checksum' if crc32c(substr $bytes, 0, -4) != unpack 'V', substr $bytes, -4;
    my %window;
    (@window{@head}, my @lists) = unpack $layout, $bytes;
    my @secrets = splice @lists, 0, 32;
    $window{secrets} = [ map { [ splice @secrets, 0, 2 ] } 1 .. $window{secret_count} ];
    $window{ends} = [ map { [ splice @lists, 0, 3 ] } 1 .. $window{end_count} ];
    return \%window;
}

# Overwrites the file in place with these fields and their checksum.
sub write_window($node, $window) {
    my @ends = map { @$_ } @{ $window->{ends} };
    my @secrets = map { @$_ } @{ $window->{secrets} };
    my $bytes = pack $layout, @$window{@head}, @secrets, (0) x (32 - @secrets), @ends, (0) x (48 - @ends);
    write_window_bytes($node, $bytes . pack 'V', crc32c($bytes));
}

# A disk that is set back has a former window file; the identity file keeps inode and time of birth.
sub window_bytes($node) { return slurp_file(window_path($node)) }

sub write_window_bytes($node, $bytes) {
    my $path = window_path($node);
    open my $out, '>:raw', $path or die "could not write $path: $!";
    print $out $bytes;
    close $out or die "could not write $path: $!";
}

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

# Replaces $to's data directory with that of the stopped server $from, but keeps postgresql.conf.
sub copy_directory($from, $to) {
    my $directory = $to->data_dir;
    $to->{configuration} //= slurp_file("$directory/postgresql.conf");
    system_or_bail('rm', '-r', $directory);
    system_or_bail('cp', '-a', $from->data_dir, $directory);
    unlink map { "$directory/$_" } qw(postmaster.pid standby.signal);
    write_private_file("$directory/postgresql.conf", $to->{configuration});
}

# Returns the end of the window that the file records for the range of node ids in use.
sub written_end($node) { return read_window($node)->{ends}[0][2] }

sub crc32c($bytes) {
    my $crc = 0xffffffff;
    for my $byte (unpack 'C*', $bytes) {
        $crc ^= $byte;
        $crc = $crc >> 1 ^ ($crc & 1 ? 0x82f63b78 : 0) for 1 .. 8;
    }
    return $crc ^ 0xffffffff;
}

1;
