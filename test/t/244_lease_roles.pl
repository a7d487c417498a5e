# What a role that may lease can do to the leases of others, to the bounds on its own, and to the lock of
# the pool: nothing, or not for long.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use RandflakeLease;
use Test::More;
use Time::HiRes qw(sleep time);

my $fleet = new_fleet();
my $coordinator = start_coordinator($fleet, 'coordinator');
$coordinator->safe_psql('postgres', <<'SQL');
CREATE ROLE leaseholder;
GRANT EXECUTE ON FUNCTION
    randflake_lease_acquire(text, uuid, integer, integer, text),
    randflake_lease_renew(bigint, uuid, bigint, integer, text),
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
is($seen, join("\n", ('SELECT lease_end, differs_from FROM randflake_lease_renew($1, $2, $3, $4, $5)') x 2),
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
        [ renews => "randflake_lease_renew($lease, $uuid, $end, 4, '0123456789abcdef')" ],
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
        "SET ROLE leaseholder; SELECT randflake_lease_renew($lease, $uuid, $end, 4, '0123456789abcdef')", user => $role);
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
            known := (randflake_lease_renew(held.lease_id, held.incarnation, known + i % 6, 4, fingerprint)).lease_end;
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

# --- how much one may have -----------------------------------------------------------------------

$coordinator->safe_psql('postgres', 'SELECT randflake_lease_configure(max_nodes_per_role => 2)');
my $fingerprint = $coordinator->safe_psql('postgres', 'SELECT secrets FROM randflake_pool');
my $acquire = sub {
    my ($role, $nodes) = @_;
    return error_of($coordinator,
        "SELECT randflake_lease_acquire('x', gen_random_uuid(), $nodes, 4, '$fingerprint')", user => $role);
};
my $error = $acquire->('first', 1);
is($error->{sqlstate}, '53400', 'a role whose servers have all that it may have: refused');
like($error->{message}, qr/^role "first" may have at most 2 node ids$/, '  with the reason');
like($error->{detail}, qr/^It has 2, and asks for 1\.$/, '  and what it has');
my ($free_at) = $error->{text} =~ /^COLUMN NAME:  (\d+)$/m;
cmp_ok(abs(($free_at // 0) - time), '<=', 6, '  and when its first lease ends');
is($acquire->('second', 3)->{sqlstate}, '53400', '  more than one may have');
$coordinator->poll_query_until('postgres',
    q{SELECT count(*) = 0 FROM randflake_lease WHERE role = 'second' AND to_timestamp(upper(span)) > now()})
  or die 'the lease of the other role does not end';
is($acquire->('second', 2)->{text}, '', '  and another role leases');

# --- a transaction that stays open ---------------------------------------------------------------

# A role that leases can keep its transaction open, whatever limits the session has, and so the lock of
# the pool. Who waits for it ends the session after 20 seconds.
$_->stop for @holders;
$coordinator->safe_psql('postgres', 'SELECT randflake_lease_configure(max_nodes_per_role => 1000)');
my $leases = "SELECT randflake_lease_acquire('x', gen_random_uuid(), 1, 4, '$fingerprint')";
my ($in, $out, $errors) = ('', '', '');
my $open = IPC::Run::start(
    [ 'psql', '-XAtq', '-d', $coordinator->connstr('postgres') . ' user=second application_name=open' ],
    '<', \$in, '>', \$out, '2>', \$errors, IPC::Run::timeout(3 * $PostgreSQL::Test::Utils::timeout_default));
$in = "SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;\n"
  . "BEGIN; SAVEPOINT s; $leases; RELEASE s; SELECT pg_sleep(3600);\n";
$open->pump while length $in;
$coordinator->poll_query_until('postgres', <<'SQL') or die 'nobody has the lock';
SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE application_name = 'open' AND relation = 'randflake_lease_pool'::regclass
  AND mode = 'ShareUpdateExclusiveLock' AND granted
SQL
my $asked = time;
is($acquire->('first', 1)->{text}, '', 'a transaction stays open: another role leases');
my $waited = time - $asked;
cmp_ok($waited, '<', 20 + 10, "  after $waited s");
is( $coordinator->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'open'}),
    0, '  when that session has ended');
$open->kill_kill;

# Whoever has locked it for less is left alone, although others wait.
my $young = $coordinator->background_psql('postgres', extra_params => [ '-U', 'second' ]);
$young->query_safe("BEGIN; $leases");
my $waiting = start_session($coordinator, 'SET SESSION AUTHORIZATION first', $leases);
sleep 12;
$coordinator->poll_query_until('postgres', <<'SQL') or die 'nobody waits';
SELECT count(*) = 1 FROM pg_locks WHERE relation = 'randflake_lease_pool'::regclass AND NOT granted
SQL
$young->query_safe('COMMIT');
is($young->query_safe('SELECT 1'), 1, 'a transaction of twelve seconds commits');
$young->quit;
is((finish_session($waiting))[1], '', '  and the next goes on');

$coordinator->stop;
done_testing();
