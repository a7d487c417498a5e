# Publishes a database with a coordinator, whole and as docs/staging.md shows, to another
# coordinator. Neither may stop, or get rows of the other.
use Docs;
use Randflake;

read_document('docs/staging.md', 'test/t/246_lease_publications.pl');
my ($from, $to) = map { PostgreSQL::Test::Cluster->new($_) } qw(publisher subscriber);
my $acquire = q{SELECT lease_id FROM randflake_lease_acquire('x', '00000000-0000-0000-0000-000000000001', 1, 3600, repeat('a', 16))};
my $announce = q{SELECT randflake_lease_announce('x', '00000000-0000-0000-0000-000000000001', 'x', 1, 1, repeat('a', 16), true)};
for my $node ($from, $to) {
    $node->init(allows_streaming => 'logical');
    $node->append_conf('postgresql.conf', "log_statement = none\n");
    $node->start;
    $node->sql('CREATE EXTENSION randflake_coordinator; CREATE TABLE purchase (id bigint PRIMARY KEY)');
}
$from->sql('CREATE PUBLICATION everything FOR ALL TABLES');

# Changes each table of the coordinator by INSERT, UPDATE and DELETE.
sub works($node, $test_name) {
    my $error = error_of($node, <<"SQL");
SELECT randflake_lease_configure(max_duration => 3600, max_clock_skew => 0, max_grants_per_role => 1000, secrets => repeat('a', 16));
SELECT randflake_lease_configure(closed => true);
SELECT randflake_lease_configure(closed => false);
UPDATE randflake_lease_hold SET longest = 0, since = since - 10;
DELETE FROM randflake_lease_hold;
UPDATE randflake_lease_pool SET high_water = 0;
$acquire;
$acquire;
SELECT randflake_lease_renew(max(lease_id), '00000000-0000-0000-0000-000000000001', max(upper(span)) - 1, 3600, repeat('a', 16)) FROM randflake_lease;
SELECT randflake_lease_release(max(lease_id), '00000000-0000-0000-0000-000000000001', NULL) FROM randflake_lease;
$announce;
$announce;
DELETE FROM randflake_lease_announcement;
$announce;
SELECT randflake_lease_purge('0');
DELETE FROM randflake_lease_role WHERE grants < 0;
SQL
    is($error->{text}, '', "$test_name: grants, renewals, announcements and changes of the pool");
}
sub rows {
    return $_[0]->sql(join ' UNION ALL ', map { "SELECT md5(coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')) FROM randflake_lease$_ AS t" } '', qw(_pool _hold _role _chunk _announcement));
}

works($from, 'a publication of all tables');
$to->sql('SELECT randflake_lease_configure(0, 1000, never_leased => true)');
works($to, 'the subscriber');
my $rows = rows($to);
isnt($rows, rows($from), 'both have rows');
$to->sql("CREATE SUBSCRIPTION everything CONNECTION '" . ($from->connstr('postgres') =~ s{'}{}gr) . "' PUBLICATION everything");
$to->wait_for_subscription_sync($from, 'everything');
is(rows($to), $rows, 'the first synchronization leaves the rows of the subscriber');
works($from, 'with a subscriber');
$from->sql('INSERT INTO purchase VALUES (1)');
$from->wait_for_catchup('everything');
is($to->sql('SELECT count(*) FROM purchase'), 1, 'the subscription goes on');
is(rows($to), $rows, '  and leaves the rows of the subscriber');
works($to, 'the subscriber goes on');
$to->sql($acquire);

# A TRUNCATE of the publisher arrives. The subscriber must know that it lacks leases.
$from->sql('TRUNCATE randflake_lease');
$from->wait_for_catchup('everything');
error_is($to, $acquire, '55000', { message => qr/^no lease may begin before/ }, 'a TRUNCATE that arrives: it grants nothing');
$to->sql('DROP SUBSCRIPTION everything');

# --- the publication of the page -----------------------------------------------------------------
$from->sql('DROP PUBLICATION everything');
my $version = $from->sql('SHOW server_version_num') / 10000;
my %publication = (list => block('list'), except => block('except'));
$from->sql($publication{ $version >= 19 ? 'except' : 'list' });
is($from->sql(q{SELECT string_agg(tablename, ' ') FROM pg_publication_tables WHERE pubname = 'app'}), 'purchase', 'the publication of the page has no table of the extensions');
every_block_was_used();
done_testing();
