# The recipes of docs/drivers-java-go-rust.md for drivers that are compiled, which takes a minute. So this
# runs only when it is asked for: scripts/test.sh drivers.

use Docs;
use Randflake;
use Recipes;

plan skip_all => 'takes long: runs in the stage "server tests: drivers that are built"'
  if ($ENV{RANDFLAKE_DRIVERS} // '') ne 'built';

read_document('docs/drivers-java-go-rust.md', 'test/t/324_drivers_built.pl');
my %shared = map { $_->{name} => $_->{text} } grep { $_->{name} } code_blocks('docs/drivers.md');
my $node = start_recipes('built', @shared{qw(database tables)});

recipe(name => 'pgx', files => ['pgx.go'], tables => 1,
    needs => [
        'golang-go', succeeds('go', 'version'), 'golang-github-jackc-pgx-v4-dev',
        -d '/usr/share/gocode/src/github.com/jackc/pgx/v4' ],
    environment => {
        GOCACHE => PostgreSQL::Test::Utils::tempdir(), GOFLAGS => '', GO111MODULE => 'off',
        GOPATH => '/usr/share/gocode' }, run => [ 'go', 'run', 'pgx.go' ]);

# Debian's packages of Rust stand where its cargo looks for them when it is told so.
my $cargo = '/usr/bin/cargo';
recipe(name => 'tokio-postgres', files => [ 'Cargo.toml', 'recipe.rs' ], tables => 1,
    needs => [
        'cargo', succeeds($cargo, '--version'), 'librust-tokio-postgres-dev',
        scalar(() = glob '/usr/share/cargo/registry/tokio-postgres-*') ],
    environment => { PATH => "/usr/bin:$ENV{PATH}", RUSTC => '/usr/bin/rustc' },
    prepare => [ [ 'sh', '-ec', <<'SH' ] ],
mkdir .cargo
cat >.cargo/config.toml <<'TOML'
[source.crates-io]
replace-with = 'debian'
[source.debian]
directory = '/usr/share/cargo/registry'
TOML
SH
    run => [ $cargo, 'run', '--quiet', '--offline' ]);

$node->stop;
every_block_was_used();
done_testing();
