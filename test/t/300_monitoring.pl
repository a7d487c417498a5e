# Runs every query of docs/monitoring/ as a monitoring role and checks its columns. Rules and the
# dashboard may use only existing metrics. Runs promtool and postgres_exporter if PATH has them.
use HTTP::Tiny;
use JSON::PP ();
use Randflake;

# --- the files -------------------------------------------------------------------------------
# Returns the text of a YAML block scalar: all lines with at least the first line's indentation.
sub block_scalar($text) {
    my ($indent) = $text =~ /\A( +)/;
    my ($block) = $text =~ /\A((?:\Q$indent\E.*\n|\n)*)/;
    return $block =~ s/^\Q$indent\E//gmr =~ s/\s+\z//r;
}

# Returns a hash. Each key is a namespace, and the value is the namespace's query and the usage of
# the query's columns.
sub read_postgres_exporter {
    my %sets;
    for my $part (map { split /^(?=\w)/m, slurp_file($_) } glob 'docs/monitoring/postgres_exporter*.yml') {
        my ($namespace) = $part =~ /^(\w+):$/m or next;
        my ($query) = $part =~ /^  query: \|\n(.*)\z/ms or die "no query in $namespace";
        $sets{$namespace}{query} = block_scalar($query);
        while ($part =~ /^    - (\w+): \{usage: (\w+), description: .+\}$/mg) {
            $sets{$namespace}{columns}{$1} = { usage => lc $2 };
        }
    }
    return \%sets;
}

my $sets = read_postgres_exporter();
is_deeply([ sort keys %$sets ], [qw(randflake randflake_leases randflake_secrets randflake_server)], 'the queries');

# --- the queries -----------------------------------------------------------------------------
my $node = start_server('main', extensions => [qw(randflake randflake_coordinator)]);
$node->sql('CREATE ROLE monitor LOGIN IN ROLE pg_monitor');

sub rows_of($server, $query) {
    my ($names, @rows) = split /\n/, $server->sql($query,
        extra_params => [ '-U', 'monitor', '-P', 'tuples_only=off', '-P', 'footer=off' ]);
    my @names = split /\|/, $names // '';
    return map {
        my %row;
        @row{@names} = split /\|/, $_, -1;
        \%row
    } @rows;
}

sub check_queries($server, $state, @namespaces) {
    for my $namespace (@namespaces) {
        my $columns = $sets->{$namespace}{columns};
        my @rows = rows_of($server, $sets->{$namespace}{query});
        is(scalar @rows, 1, "$state: $namespace gives one row") or next;
        is_deeply([ sort keys %{ $rows[0] } ], [ sort keys %$columns ], '  of the columns promised');
        my @values = grep { $columns->{$_}{usage} ne 'label' } sort keys %$columns;
        my @odd = grep { $rows[0]{$_} !~ /^-?\d+(\.\d+)?$/ } @values;
        ok(!@odd, '  all of them numbers') or diag("not a number: @odd");
    }
}

my @of_generators = qw(randflake randflake_server randflake_secrets);
check_queries($node, 'before the first identifier', @of_generators);
$node->sql('SELECT count(*) FROM randflake_generate(1000)');
check_queries($node, 'generating', @of_generators);

my ($row) = rows_of($node, $sets->{randflake}{query});
cmp_ok($row->{ids_issued_total}, '>=', 1000, 'identifiers are counted');
is($row->{capacity_ids_per_second}, 131072, 'one node id has this capacity');
is($row->{clock_behind_seconds} + 0, 0, 'the clock is not behind');
is($row->{lease_granted_seconds}, 0, 'there is no lease');
is($row->{copy_found_time_seconds}, 0, 'its data directory is its own');

# Starts a coordinator and a server, which leases the greatest possible number of node ids.
my $coordinator = start_server('coordinator', settings => {}, extensions => ['randflake_coordinator']);
$coordinator->sql('CREATE ROLE monitor LOGIN IN ROLE pg_monitor;'
      . 'SELECT randflake_lease_configure(never_leased => true, max_duration => 30)');
my $holder = start_server('holder',
    settings => {
        coordinator => $coordinator->connstr('postgres'), secret => random_secret(),
        node_count => 131072, lease_duration => '90s', max_wait => '1h' });
$holder->sql('CREATE ROLE monitor LOGIN IN ROLE pg_monitor; SELECT randflake_generate()');
check_queries($holder, 'leased', @of_generators);
check_queries($coordinator, 'a coordinator', 'randflake_leases');
($row) = rows_of($holder, $sets->{randflake}{query});
is($row->{mode}, 'leased', 'a holder says so');
is($row->{capacity_ids_per_second}, 131072**2, 'all node ids have this capacity');
# A renewal may have shortened the lease by one second.
cmp_ok(abs($row->{lease_granted_seconds} - 30), '<', 1, 'the length of a lease is the granted one, not the requested one');
cmp_ok($row->{window_remaining_seconds}, '<=', 30, '  which is left at first');
($row) = rows_of($coordinator, $sets->{randflake_leases}{query});
is("$row->{active} $row->{node_ids}", '1 131072', 'its coordinator counts it');
cmp_ok($row->{next_end_seconds}, '>', 0, '  and knows when it ends');
$holder->stop;
$coordinator->stop;

my $plain = new_server('plain', settings => {});
$plain->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$plain->start;
$plain->sql('CREATE EXTENSION randflake; CREATE EXTENSION randflake_coordinator;'
      . 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor');
is(scalar rows_of($plain, $sets->{$_}{query}), 0, "not preloaded: nothing in $_") for @of_generators;
check_queries($plain, 'not preloaded', 'randflake_leases');
unlike(slurp_file($plain->logfile), qr/ERROR/, '  and no error in the log');
$plain->stop;

# The capacity excludes the numbers that servers skip because of the former secret.
my $from = time - 86400;
my $rotated = start_server('rotated', secrets => [ random_secret(), $from => random_secret() ],
    settings => { node_id => 1, node_count => 2, max_wait => '1h' });
$rotated->sql('CREATE ROLE monitor LOGIN IN ROLE pg_monitor; SELECT randflake_generate()');
($row) = rows_of($rotated, $sets->{randflake}{query});
is($row->{capacity_ids_per_second}, int(2 * 131072 * (1 - ($from - 1730000000) / 2**30)),
    'what a former secret owns is not counted as capacity');
$rotated->stop;

my $primary = start_server('primary', init => [ allows_streaming => 1 ]);
$primary->sql(
    'CREATE ROLE monitor LOGIN IN ROLE pg_monitor; SET randflake.max_wait = 600000; SELECT randflake_generate()');
my $standby = standby_of($primary, 'standby');
is(scalar rows_of($standby, $sets->{$_}{query}), 0, "a standby has nothing in $_") for qw(randflake randflake_server);
$standby->promote;
my $began = int time;
$standby->sql('SET randflake.max_wait = 600000; SELECT randflake_generate()');
($row) = rows_of($standby, $sets->{randflake}{query});
cmp_ok($row->{copy_found_time_seconds}, '>=', $began, 'a promoted server reports when it found a copy');
$standby->restart;
($row) = rows_of($standby, $sets->{randflake}{query});
cmp_ok($row->{copy_found_time_seconds}, '>=', $began, '  also after its next start');
$standby->sql('SELECT randflake_acknowledge_copy()');
($row) = rows_of($standby, $sets->{randflake}{query});
is($row->{copy_found_time_seconds}, 0, '  until it is acknowledged');
$standby->stop;
$primary->stop;

# --- the rules -------------------------------------------------------------------------------
my %known = map {
    my $namespace = $_;
    map { ("${namespace}_$_" => $sets->{$namespace}{columns}{$_}{usage}) } keys %{ $sets->{$namespace}{columns} }
} keys %$sets;
my @with_value = grep { $known{$_} ne 'label' } sort keys %known;
my $alerts = slurp_file('docs/monitoring/alerts.yml');
my @expressions = $alerts =~ /^ +expr: (.+\n(?:          .*\n)*)/mg;
my @alerts = $alerts =~ /- alert: (\w+)/g;
is(@expressions, @alerts, 'each alert has an expression');
my %used = map { $_ => 1 } join(' ', @expressions) =~ /\b(randflake_\w+)/g;
is_deeply([ grep { !$known{$_} } sort keys %used ], [], 'rules use only metrics that exist');

my $manual = slurp_file('docs/monitoring.md');
is_deeply([ grep { $manual !~ /\Q$_\E/ } @alerts ], [], 'docs/monitoring.md has every alert');
is_deeply([ grep { !$known{$_} } $manual =~ /`(randflake_\w+_(?:total|seconds|info|per_second))`/g ], [], '  and only existing metrics');

# --- the dashboard ---------------------------------------------------------------------------
my $dashboard = JSON::PP->new->decode(slurp_file('docs/monitoring/grafana.json'));
my @panels = @{ $dashboard->{panels} };
my @targets = map { @{ $_->{targets} } } @panels;
my %shown = map { $_ => 1 } join(' ', map { $_->{expr} } @targets) =~ /\b(randflake_\w+)/g;
is_deeply([ sort keys %shown ], \@with_value, 'the dashboard shows every metric, and no other');
my (%ids, %taken);
for my $panel (@panels) {
    my %at = %{ $panel->{gridPos} };
    my @cells = map { my $y = $_; map { "$_,$y" } $at{x} .. $at{x} + $at{w} - 1 } $at{y} .. $at{y} + $at{h} - 1;
    ok( !$ids{ $panel->{id} }++ && $at{x} + $at{w} <= 24 && !grep({ $taken{$_}++ } @cells)
          && ($panel->{description} // '') =~ /\.$/,
        "panel \"$panel->{title}\" has an id, a place and a description of its own");
}
my %names = map { $_->{name} => 1 } @{ $dashboard->{templating}{list} };
is_deeply([ sort keys %names ], [qw(datasource instance)], 'it has these variables');

# promtool does not know Grafana's variables, so the test writes the dashboard's queries as rules.
my $queries = "groups:\n- name: dashboard\n  rules:\n" . join '', map {
    sprintf "  - {record: 'dashboard:%d', expr: '%s'}\n", $_,
      $targets[$_]{expr} =~ s/\$__rate_interval/1m/gr =~ s/\$instance/one|two/gr
} 0 .. $#targets;

# --- real programs ---------------------------------------------------------------------------
sub in_path($program) { return grep { -x "$_/$program" } split /:/, $ENV{PATH} }

SKIP: {
    skip 'promtool is not installed (Debian: prometheus)', 3 unless in_path('promtool');
    command_ok([ 'promtool', 'check', 'rules', 'docs/monitoring/alerts.yml' ], 'promtool reads the rules');
    command_ok([ 'promtool', 'test', 'rules', 'docs/monitoring/alerts_test.yml' ],
        '  and each alert fires when it should');
    my $file = tempdir() . '/dashboard.yml';
    append_to_file($file, $queries);
    command_ok([ 'promtool', 'check', 'rules', $file ], "  and the dashboard's queries");
}

SKIP: {
    skip 'postgres_exporter is not installed (Debian: prometheus-postgres-exporter)', 2
      unless in_path('prometheus-postgres-exporter');
    my $address = '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();
    my $output = '';
    my $both = tempdir() . '/both.yml';
    append_to_file($both, slurp_file($_))
      for 'docs/monitoring/postgres_exporter.yml', 'docs/monitoring/postgres_exporter_coordinator.yml';
    local $ENV{DATA_SOURCE_NAME} = 'postgresql:///postgres?sslmode=disable&user=monitor&host='
      . $node->host . '&port=' . $node->port;
    my $exporter = IPC::Run::start([
            'prometheus-postgres-exporter', "--extend.query-path=$both",
            '--disable-default-metrics', '--disable-settings-metrics',
            "--web.listen-address=$address" ], '<', '/dev/null', '>&', \$output);
    my $answer;
    wait_until {
        $answer = HTTP::Tiny->new(timeout => 60)->get("http://$address/metrics");
        $answer->{success} || !$exporter->pumpable;
    };
    $exporter->kill_kill;
    my %metrics = ($answer->{content} // '') =~ /^(randflake_\w+)(?:\{.*\})? (\S+)$/mg;
    is_deeply([ sort keys %metrics ], \@with_value, 'postgres_exporter has every metric')
      or diag("$output\n$answer->{content}");
    cmp_ok($metrics{randflake_ids_issued_total} // 0, '>=', 1000, '  with its value');
  SKIP: {
        skip 'promtool is not installed (Debian: prometheus)', 1 unless in_path('promtool');
        my $ours = join '', ($answer->{content} // '') =~ /^((?:# \w+ )?randflake_.*\n)/mg;
        my $complaints;
        ok(IPC::Run::run([ 'promtool', 'check', 'metrics' ], '<', \$ours, '&>', \$complaints), '  and names that promtool accepts')
          or diag($complaints);
    }
}
$node->stop;
done_testing();
