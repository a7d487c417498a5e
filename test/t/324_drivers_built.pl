# Runs the recipes of docs/drivers-java-go.md with compiled drivers. This takes a minute, so the
# test runs only in scripts/test.sh drivers.
use Docs;
use Randflake;
use Recipes;

plan skip_all => 'takes long: runs in the stage "server tests: drivers that are built"'
  if ($ENV{RANDFLAKE_DRIVERS} // '') ne 'built';

read_document('docs/drivers-java-go.md', 'test/t/324_drivers_built.pl');
my %shared = map { $_->{name} => $_->{text} } grep { $_->{name} } code_blocks('docs/drivers.md');
my $node = start_recipes('built', @shared{qw(database tables)});

recipe(name => 'pgx', files => ['pgx.go'], programs => ['pgx_program.go'], tables => 1,
    needs => [
        'golang-go', succeeds('go', 'version'), 'golang-github-jackc-pgx-v4-dev',
        -d '/usr/share/gocode/src/github.com/jackc/pgx/v4' ],
    environment => {
        GOCACHE => tempdir(), GOFLAGS => '', GO111MODULE => 'off',
        GOPATH => '/usr/share/gocode' }, run => [ 'go', 'run', 'pgx.go', 'pgx_program.go' ]);
$node->stop;
every_block_was_used();
done_testing();
