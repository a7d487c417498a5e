# Files of several secrets, and servers that read them.

package RandflakeSecrets;

use strict;
use warnings;

use Exporter 'import';
use POSIX qw(strftime);
use PostgreSQL::Test::Utils;

our @EXPORT = qw(
  write_secrets
  secret_path
  utc
);

# An instant as the file has it, of a Unix second.
sub utc {
    my ($second) = @_;
    return strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $second);
}

sub secret_path {
    my ($node) = @_;
    return $node->basedir . '/secrets';
}

# Writes the file of a server: the first secret, then pairs of a Unix second and a secret; or a text.
sub write_secrets {
    my ($node, $first, @later) = @_;
    my $text = "$first\n";
    while (my ($second, $secret) = splice @later, 0, 2) {
        $text .= "$secret from " . utc($second) . "\n";
    }
    my $path = secret_path($node);
    open my $out, '>', "$path.new" or die "could not write $path: $!";
    print $out $text;
    close $out or die "could not write $path: $!";
    chmod 0600, "$path.new";
    rename "$path.new", $path or die "could not rename $path: $!";
    return;
}

1;
