# What a role that may lease can do to the leases of others, and to the bound on its own: nothing.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use RandflakeLease;
use Test::More;
use Time::HiRes qw(sleep);

my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');
$coordinator->safe_psql('postgres', <<'SQL');
CREATE ROLE leaseholder;
GRANT EXECUTE ON FUNCTION
    randflake_lease_acquire(text, uuid, integer, integer, text),
    randflake_lease_renew(bigint, uuid, bigint, integer),
    randflake_lease_release(bigint, uuid, bigint) TO leaseholder;
CREATE ROLE first LOGIN IN ROLE leaseholder;
CREATE ROLE second LOGIN IN ROLE leaseholder;
SQL
my @holders = map {
    start_holder($fleet, "holder$_", $coordinator->connstr('postgres') . ' user=first')
} 1, 2;
is( $coordinator->safe_psql('postgres',
        'SELECT string_agg(role, $$ $$), count(DISTINCT first_node_id) FROM randflake_leases'),
    'first first|2', 'two servers lease under one role');

# --- what one sees of the other ------------------------------------------------------------------

# Their requests wait for the pool.
my $lock = $coordinator->background_psql('postgres');
$lock->query_safe('BEGIN; SELECT FROM randflake_lease_pool FOR UPDATE');
$_->reload for @holders;
my $requests = q{FROM pg_stat_activity WHERE application_name = 'randflake' AND state = 'active'};
$coordinator->poll_query_until('postgres', "SELECT count(*) = 2 $requests") or die 'nobody asks';
my $seen = $coordinator->safe_psql('postgres', "SELECT query $requests",
    extra_params => [ '-U', 'first' ]);
is($seen, join("\n", ('SELECT randflake_lease_renew($1, $2, $3, $4)') x 2),
    'a role sees the statements of its sessions');
my @incarnations = split /\n/, $coordinator->safe_psql('postgres', 'SELECT incarnation FROM randflake_lease');
my $activity = $coordinator->safe_psql('postgres', 'SELECT pg_stat_activity::text FROM pg_stat_activity');
is(scalar(grep { index($activity, $_) >= 0 } @incarnations), 0, '  and nothing shows an incarnation');
$lock->query_safe('ROLLBACK');
$lock->quit;
wait_for_status($_, 'lease_error IS NULL') for @holders;

# --- what one can do with a lease of the other ---------------------------------------------------

# Of the first server's lease, what an attacker may know
my ($lease, $incarnation, $end) = split /\|/, $coordinator->safe_psql('postgres', <<'SQL');
SELECT lease_id, incarnation, upper(span) - 1 FROM randflake_lease WHERE holder = 'holder1'
SQL
my $not_yours = qr/^lease $lease does not exist or is not this holder's$/;
for my $case (
    [ 'another role with the incarnation', 'second', "'$incarnation'" ],
    [ 'another role without it', 'second', 'gen_random_uuid()' ],
    [ 'the role without the incarnation', 'first', 'gen_random_uuid()' ])
{
    my ($name, $role, $uuid) = @$case;
    for my $request (
        [ renews => "randflake_lease_renew($lease, $uuid, $end, 4)" ],
        [ releases => "randflake_lease_release($lease, $uuid, $end)" ],
        [ 'releases it as unused' => "randflake_lease_release($lease, $uuid, NULL)" ])
    {
        my ($what, $call) = @$request;
        my $error = error_of($coordinator, "SELECT $call", user => $role);
        is($error->{sqlstate}, '55000', "$name $what: refused");
        like($error->{message}, $not_yours, '  with the reason');
    }
    # Nor by another name of the session
    my $error = error_of($coordinator,
        "SET ROLE leaseholder; SELECT randflake_lease_renew($lease, $uuid, $end, 4)", user => $role);
    like($error->{message}, $not_yours, "$name renews as a role that both are members of: refused");
}
is($coordinator->safe_psql('postgres', "SELECT released_at IS NULL FROM randflake_lease WHERE lease_id = $lease"),
    't', 'the lease is its holder\'s');

# --- ends that are made up -----------------------------------------------------------------------

# Each renewal names the latest end that was given, or a later one.
my ($latest) = $coordinator->safe_psql('postgres', <<'SQL', extra_params => [ '-U', 'second' ]);
DO $$
DECLARE
    held record;
    known bigint;
    latest bigint := 0;
    fingerprint text;
BEGIN
    BEGIN
        PERFORM randflake_lease_acquire('x', gen_random_uuid(), 1, 4, repeat('0', 16));
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        GET STACKED DIAGNOSTICS fingerprint = PG_EXCEPTION_DETAIL;
        fingerprint := substring(fingerprint FROM 'leases ([0-9a-f]{16})');
    END;
    CREATE TEMP TABLE mine AS
    SELECT *, '00000000-0000-0000-0000-000000000002'::uuid AS incarnation
    FROM randflake_lease_acquire('x', '00000000-0000-0000-0000-000000000002', 1, 4, fingerprint);
    SELECT * INTO held FROM mine;
    known := held.lease_end;
    FOR i IN 1 .. 2000 LOOP
        BEGIN
            known := randflake_lease_renew(held.lease_id, held.incarnation, known + i % 6, 4);
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
            NULL;
        END;
        latest := greatest(latest, known - floor(extract(epoch FROM clock_timestamp()))::bigint);
    END LOOP;
    CREATE TEMP TABLE result AS SELECT latest;
END $$;
SELECT latest FROM result;
SQL
# max_duration + max_clock_skew, as the last second, which is inclusive; a second may begin meanwhile
cmp_ok($latest, '<=', $RandflakeLease::duration + 1, "after 2,000 renewals a lease ends $latest s ahead");

$_->stop for @holders, $coordinator;
done_testing();
