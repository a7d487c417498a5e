# Writes files that contain several secrets, and makes servers read these files.

package RandflakeSecrets;

use Digest::SHA qw(hmac_sha256);
use Exporter 'import';
use POSIX qw(strftime);
use Randflake;

our @EXPORT = qw(write_secrets reload_secrets secret_path fingerprints_of utc);

# Returns a Unix second in the format of the file of secrets.
sub utc($second) { return strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $second) }
sub secret_path($node) { return $node->basedir . '/secrets' }

# Writes a server's secret file. Takes the first secret, and then a pair for each further secret:
# its first Unix second, and the secret.
sub write_secrets($node, $first, @later) {
    my $text = "$first\n";
    while (my ($second, $secret) = splice @later, 0, 2) {
        $text .= "$secret from " . utc($second) . "\n";
    }
    my $path = secret_path($node);
    write_private_file("$path.new", $text);
    rename "$path.new", $path or die "could not rename $path: $!";
}

# Writes the file of a running server and makes it read the file. Returns the number of secrets.
sub reload_secrets($node, @file) {
    write_secrets($node, @file);
    return $node->sql('SELECT randflake_reload_secret()');
}

sub fingerprints_of($first, @later) {
    my @fingerprints = substr hmac_sha256('randflake key check', pack 'H*', $first), 0, 8;
    while (my ($second, $secret) = splice @later, 0, 2) {
        my $place = $fingerprints[-1] . pack 'N', $second - 1730000000;
        push @fingerprints, substr hmac_sha256("randflake key check$place", pack 'H*', $secret), 0, 8;
    }
    return map { unpack 'H*', $_ } @fingerprints;
}

1;
