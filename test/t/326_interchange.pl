# Takes identifiers through tools that need no large package (bench/interchange), and checks the
# advice of docs/interchange.md: each tool gives text with a prefix back unchanged. If a tool has
# the version that the page names, its result is the page's. scripts/test_tools.sh installs them.
use Randflake;

my @programs = qw(node python3 ruby php perl gawk mawk jq sqlite3 datamash);
my @missing = grep { system("command -v $_ >/dev/null") } @programs;
plan(skip_all => "not installed: @missing; run scripts/test_tools.sh") if @missing && !$ENV{RANDFLAKE_DRIVERS};

my $node = start_server('main', extensions => ['randflake_type'],
    settings => { node_id => 0, secret => '00112233445566778899aabbccddeeff' });
my ($status, $keys, $errors) = $node->psql('postgres', slurp_file('bench/interchange/keys.sql'),
    extra_params => [ '-F', ',' ], on_error_stop => 1);
is($status, 0, 'identifiers are made') or diag($errors);
my @rows = map { [ split /,/ ] } split /\n/, $keys;
is(scalar(@rows), 1000, '1,000 of them');
for my $form (0 .. 4) {
    my %seen = map { $_->[$form] => 1 } @rows;
    is(scalar(keys %seen), 1000, "form $form: all differ");
}
ok((grep { $_->[2] eq '12e4567890123' } @rows), 'a text that looks like a number is there');

my $file = tempdir() . '/keys';
append_to_file($file, "$keys\n");
my @results = split /\n/, `bench/interchange/run.sh quick $file`;
is($?, 0, 'the tools ran');

# A row of the page has all tools with the same results, each with its version.
sub read_results {
    return map {
        my (undef, $tools, @cells) = split / *\| */;
        map { /^(.+) (\S+)$/ ? ($1 => [ $2, @cells ]) : () } split /; /, $tools
    } @_;
}
my %here = read_results(@results);
my %page = read_results(grep { /^\|/ } split /\n/, slurp_file('docs/interchange.md'));
is(scalar(keys %here), 11, 'eleven tools');
for my $tool (sort keys %here) {
    ok($page{$tool}, "$tool is on the page") or next;
    is($here{$tool}[4], 'exact', "$tool: text with a prefix") if $tool !~ /datamash/;
    is("@{ $here{$tool} }", "@{ $page{$tool} }", "$tool: as on the page") if $here{$tool}[0] eq $page{$tool}[0];
}
done_testing();
