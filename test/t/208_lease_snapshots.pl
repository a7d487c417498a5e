# Runs a leasing server beside snapshots of its directory, which no inode and no time of birth tell
# from the original. At most one of them may resume a lease, and none while another runs.
# lib/watch_files.c makes a copy look like a snapshot of the block device. Where the user may make
# user namespaces, the test also runs servers on overlays. scripts/snapshot_test.sh, as root, runs
# servers on real snapshots of ext4, xfs and btrfs.
use Randflake;
use RandflakeLease;
use RandflakeWindowFile;

$RandflakeLease::duration = 3600;
my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');
my $original = start_holder($fleet, 'original', $coordinator);
my %twins = map { $_ => new_holder($fleet, $_, $coordinator) } qw(first second);

sub starts($node) {
    local $ENV{LD_PRELOAD} = $node == $original ? '' : preload_library('watch_files.c');
    local $ENV{RANDFLAKE_SNAPSHOT_OF} = $original->data_dir . '/randflake/identity';
    $node->start;
}

my $why = qr/^leases of this server will not survive a crash of its postmaster: Could not lock "\/dev\/shm\/randflake\.\w+": another process holds it\.$/;

# Loads the server. Checks whether it has this lease, and that it says so if a lock is missing.
sub runs($node, $lease, $resumes, $others_run, $test_name) {
    load_on($fleet, $node);
    wait_for_lease($node);
    my ($is, $problem) = split /\|/, status_of($node, 'lease_id, problem'), 2;
    ok(($is == $lease) == $resumes, "$test_name: " . ($resumes ? 'goes on' : 'has another lease'))
      or diag("lease $is, not $lease");
    like($problem, $others_run ? $why : qr/^$|^identifiers end at/, '  and its status tells ' . ($others_run ? 'the lock' : 'nothing'));
    like(slurp_file($node->logfile), qr/LOG:  leases of this server will not survive.*\n.*DETAIL:  Could not lock/, '  and its log') if $others_run;
}

sub ends {
    for my $node (@_) {
        $node->stop('immediate');
        end_load($fleet, $node);
    }
}

for my $stop (qw(immediate fast)) {
    my $lease = status_of($original, 'lease_id');

    # While its processes are stopped, the directory is as in a frozen file system.
    my @processes = processes_of($original);
    kill 'STOP', @processes;
    copy_directory($original, $twins{first});
    kill 'CONT', @processes;
    starts($twins{first});
    runs($twins{first}, $lease, 0, 1, "$stop: a snapshot that starts while the original runs");
    runs($original, $lease, 1, 0, "$stop: the original");
    ends($twins{first});

    $coordinator->stop if $stop eq 'fast';    # so that the lease stays in the state
    end_load($fleet, $original);
    $original->stop($stop);
    copy_directory($original, $_) for values %twins;
    starts($twins{first});
    starts($original);
    starts($twins{second});
    if ($stop eq 'fast') {
        $coordinator->start;
        $coordinator->sql('SELECT randflake_lease_configure(nothing_lost => true)');
    }
    runs($twins{first}, $lease, 1, 0, "$stop: a snapshot in the place of the original");
    runs($original, $lease, 0, 1, "$stop: the original that starts later");
    runs($twins{second}, $lease, 0, 1, "$stop: another snapshot");
    ends($twins{first}, $twins{second}, $original);

    starts($original);
    runs($original, $lease, 0, 0, "$stop: the original after all");
    ends($original);
    starts($twins{second});
    runs($twins{second}, $lease, 0, 0, "$stop: the other snapshot after all");
    ends($twins{second});
    starts($original);
    wait_for_lease($original);
}

# --- overlays ------------------------------------------------------------------------------------
ends($original);
my $lease;

# Mounts an overlay over the original's directory in name spaces of its own, and starts a server.
sub starts_on_overlay($node, %conf) {
    my $base = $node->basedir;
    my $configuration = slurp_file($node->data_dir . '/postgresql.conf');
    system_or_bail('sh', '-c', 'chmod -Rf u+rwx "$@"; rm -rf "$@"', 'sh', map { "$base/$_" } qw(upper work));
    mkdir "$base/$_", 0700 or die for qw(upper work);
    append_to_file("$base/upper/postgresql.conf", $configuration . join '', map { "$_ = $conf{$_}\n" } keys %conf);
    system_or_bail('unshare', '-Urm', 'sh', '-c', <<'END', $original->data_dir, $base, $node->data_dir, $>, $) + 0, $node->logfile);
mount -t overlay overlay -o "userxattr,lowerdir=$0,upperdir=$1/upper,workdir=$1/work" "$2"
rm -f "$2/postmaster.pid"
exec unshare -U --map-user="$3" --map-group="$4" pg_ctl -w -s -D "$2" -l "$5" start
END
    $node->{overlay} = (split /\n/, slurp_file("$base/upper/postmaster.pid"))[0];
}

SKIP: {
    my $tried = tempdir_short();
    mkdir "$tried/$_" for qw(l u w m);
    my $refused = system('unshare', '-Urm', 'mount', '-t', 'overlay', 'overlay', '-o', "userxattr,lowerdir=$tried/l,upperdir=$tried/u,workdir=$tried/w", "$tried/m");
    chmod 0700, "$tried/w/work";    # the kernel gives it no rights, and Perl could not remove it
    if ($refused) {
        diag('NOT RUN: servers on overlays, because this user may not mount any');
        skip 'no overlays', 1;
    }
    for my $conf ({ fsync => 'off' }, { recovery_init_sync_method => 'syncfs' }, {}) {
        my $name = join(' ', %$conf) || 'default settings';
        $original->start;
        load_on($fleet, $original);
        wait_for_lease($original);
        $lease = status_of($original, 'lease_id');
        ends($original);
        starts_on_overlay($_, %$conf) for @twins{qw(first second)};
        load_on($fleet, $_) for values %twins;
        my @leases = map { wait_for_lease($_); status_of($_, 'lease_id') } @twins{qw(first second)};
        isnt($leases[0], $leases[1], "$name: two overlays have two leases");
        isnt($leases[1], $lease, '  and the second not the original\'s');
        for my $node (values %twins) {
            kill 'QUIT', $node->{overlay} or die;
            wait_until_gone($node->{overlay});
            end_load($fleet, $node);
            system_or_bail('chmod', '-R', 'u+rwx', $node->basedir . '/work');
        }
    }
}

all_is_well($fleet, $coordinator, 'snapshots and overlays', leased => 0);
done_testing();
