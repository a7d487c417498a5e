# Makes a private installation of PostgreSQL for a test that adds extension scripts. A server finds
# the installation's files by their paths relative to its own program.

package RandflakeInstallation;

use Exporter 'import';
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use Randflake;

our @EXPORT = qw(private_installation);

# Links all entries of one directory into another, except those with the given names.
sub link_all($from, $to, @except) {
    make_path($to);
    for my $path (glob "$from/*") {
        my $name = basename($path);
        next if grep { $_ eq $name } @except;
        symlink $path, "$to/$name" or die "could not link $to/$name: $!";
    }
}

# Copies the programs, because links would lead back to the original installation. Links all other
# files. Returns the install_path to pass to PostgreSQL::Test::Cluster, and the directory of
# extensions, in which the test may add and replace files.
sub private_installation {
    my %directory;
    chomp($directory{$_} = (run_command([ 'pg_config', "--$_" ]))[0]) for qw(bindir sharedir pkglibdir);
    # The directories keep their places relative to each other.
    my $prefix = $directory{bindir};
    for my $other (values %directory) {
        $prefix = dirname($prefix) until $prefix eq '/' || index("$other/", "$prefix/") == 0;
    }
    my $root = tempdir();
    my %private = map { $_ => $root . substr($directory{$_}, length $prefix) } keys %directory;

    make_path($private{bindir});
    system_or_bail('cp', '-RL', "$directory{bindir}/.", $private{bindir});
    link_all($directory{pkglibdir}, $private{pkglibdir});
    link_all($directory{sharedir}, $private{sharedir}, 'extension');
    link_all("$directory{sharedir}/extension", "$private{sharedir}/extension");
    return (dirname($private{bindir}), "$private{sharedir}/extension");
}

1;
