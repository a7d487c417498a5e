# Sets up servers as docs/containers.md says. Tests the Dockerfile's commands, node ids from a pod's
# name, and secret files with each platform's owners and modes. If buildah is in PATH and may make
# user namespaces, the test builds the image for Kubernetes operators. With PostgreSQL 18 or later,
# the test starts a server with the files of this image.
use Cwd qw(getcwd);
use Docs;
use Randflake;

read_document('docs/containers.md', 'test/t/012_containers.pl');
my $node = new_server('main');

# Makes a secret file with this owner, group and mode. Returns undef if only root may make it.
sub secret_of($owner, $group, $mode) {
    if ($owner eq 'root') {
        my $prepared = $ENV{RANDFLAKE_FOREIGN_SECRETS} // return;
        return "$prepared/root" . ($group eq 'root' ? '-root' : '') . "-$mode";
    }
    # In a Kubernetes volume, a file is a link through `..data`, which is a link to a directory.
    my $volume = tempdir();
    mkdir "$volume/..2026" or die "could not make $volume/..2026: $!";
    append_to_file("$volume/..2026/secret", random_secret() . "\n");
    chmod oct $mode, "$volume/..2026/secret";
    symlink '..2026', "$volume/..data" or die "could not make a link: $!";
    symlink '..data/secret', "$volume/secret" or die "could not make a link: $!";
    return "$volume/secret";
}

my %reasons = (
    'root root 0444' => qr/has group or world access/,
    'server server 0440' => qr/has group or world access/,
    'root server 0644' => qr/has group or world access/,
    'root root 0400' => qr/could not open secret file ".*": Permission denied/);
my @rows = slurp_file('docs/containers.md') =~ /^\| (.+?) \| (root|server) \| (root|server) \| (\d{4}) \| (starts|does not start) \|$/mg;
is(scalar @rows, 5 * 7, 'the table has its rows');
while (my ($platform, $owner, $group, $mode, $says) = splice @rows, 0, 5) {
    SKIP: {
        my $path = secret_of($owner, $group, $mode);
        skip 'files of other owners take root to make', 1 if !defined $path;
        my @found = (stat $path)[ 2, 4, 5 ];
        is_deeply(
            [ $found[0] & 07777, $found[1], $found[2] ],
            [ oct $mode, $owner eq 'root' ? 0 : $>, $group eq 'root' ? 0 : (split / /, $))[0] ],
            "$platform: the file is as the table says");
        if ($says eq 'starts') {
            configure($node, node_id => 1, secret_file => $path);
            ok($node->start(fail_ok => 1), "$platform: starts");
            $node->stop;
        }
        else {
            refuses_to_start($node, { node_id => 1, secret_file => $path },
                qr/FATAL: .*$reasons{"$owner $group $mode"}/, "$platform: refused");
        }
    }
}

my $command = block('ordinal') =~ s/^exec postgres/echo/r;
for ([ 'db-0', 0 ], [ 'my-db-3', 48 ], [ 'db-17', 272 ]) {
    my ($host, $first) = @$_;
    IPC::Run::run([ 'sh', '-c', $command, 'sh', '-D', '/data' ], '<', '/dev/null', '>', \my $got,
        init => sub { $ENV{HOSTNAME} = $host });
    is($got, "-c randflake.node_count=16 -c randflake.node_id=$first -D /data\n", "the node ids of $host");
}

sub succeeds($command, $test_name) {
    ok(!system("($command) >image.log 2>&1"), $test_name) or diag(slurp_file('image.log'));
}

# --- the image -----------------------------------------------------------------------------------
SKIP: {
    skip 'the library is not built here', 1 if !-e 'randflake.so';
    my ($bindir, $installed) = map { chomp; $_ } $node->config_data(qw(--bindir --sharedir));
    my ($make, $build) = split /^(?=buildah)/m, block('image');
    # Makes `make` treat all built files as up to date.
    $make =~ s/^make /make -s -o all -o randflake.so /mg;
    succeeds("export PG_CONFIG='$bindir/pg_config'; $make", 'the files of the image');
    my $tree = getcwd() . '/build/image';
    my @files = map { s{\A\Q$tree\E/}{}r } sort glob "$tree/*/* $tree/*/*/*";
    my @extensions = map { s{.*/}{}r } sort glob "$installed/extension/randflake*";
    is_deeply([ grep { -f "$tree/$_" } @files ], [ 'lib/randflake.so', map { "share/extension/$_" } @extensions ],
        '  the library, and what is installed of the extensions');

    my $out = tempdir();
    my @commands = block('dockerfile') =~ /^RUN (make .+)$/mg;
    is(scalar @commands, 2, 'the Dockerfile builds and installs');
    for (@commands) {
        my $command = s{^make -C /src PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config}{make -s -o all -o randflake.so PG_CONFIG='$bindir/pg_config'}r
          =~ s{=/out$}{=$out}r;
        succeeds($command, "  $_");
    }
    ok(-f "$out$_", "  $_ is in /out") for map { "$installed/extension/$_" } @extensions;

    SKIP: {
        my $home = tempdir();
        local @ENV{qw(HOME TMPDIR XDG_RUNTIME_DIR STORAGE_DRIVER BUILDAH_ISOLATION)} = ($home, $home, $home, 'vfs', 'chroot');
        skip 'buildah is not installed', 3 if system 'buildah --version >/dev/null 2>&1';
        skip 'the system allows no user namespaces, which buildah needs', 3
          if system 'unshare --user --map-root-user true >/dev/null 2>&1';
        my $buildah = "buildah --root $home/store --runroot $home/run";
        $build =~ s/^buildah/$buildah/;
        succeeds($build, 'the image is built');
        succeeds("$buildah push randflake:18 oci:$home/oci", '  and written out');
        my $listing = join '', map { `tar -tzf $_ 2>/dev/null` } glob "$home/oci/blobs/sha256/*";
        is_deeply(
            [ grep { !m{/\z} } sort split /\n/, $listing ],
            [ 'lib/randflake.so', 'licenses/randflake/LICENSE', map { "share/extension/$_" } @extensions ],
            '  it has these files and no other');
    }

    # Sets the search paths as a Kubernetes operator does, with the mounted files first.
    SKIP: {
        skip 'a server before PostgreSQL 18 does not find mounted extensions', 1 if $node->pg_version < 18;
        my ($control) = grep { /\brandflake\.control$/ } glob "$tree/share/extension/*";
        append_to_file($control, "comment = 'mounted'\n");
        my $mounted = new_server('mounted');
        $mounted->append_conf('postgresql.conf',
            "extension_control_path = '$tree/share:\$system'\ndynamic_library_path = '$tree/lib:\$libdir'\n");
        $mounted->start;
        is( $mounted->sql('CREATE EXTENSION randflake; SELECT count(randflake_generate());'
                  . "SELECT comment FROM pg_available_extensions WHERE name = 'randflake'"),
            "1\nmounted", 'a server uses the mounted extension');
        my $maps = slurp_file('/proc/' . slurp_file($mounted->data_dir . '/postmaster.pid') =~ s/\n.*//sr . '/maps');
        like($maps, qr{\Q$tree\E/lib/randflake\.so}, '  and the mounted library');
        $mounted->stop;
    }
}
every_block_was_used();
done_testing();
