# Checks that a physical standby and logical subscribers show the same values as the primary.
use Randflake;

my $secret = random_secret();
my $publisher = start_server('publisher', extensions => ['randflake_type'], init => [ allows_streaming => 'logical' ],
    settings => { node_id => 1, node_count => 4, secret => $secret, max_wait => '1h' });
$publisher->sql(<<'SQL');
CREATE TABLE made (id randflake PRIMARY KEY DEFAULT randflake_next(), others randflake[], n integer);
CREATE PUBLICATION everything FOR TABLE made;
INSERT INTO made (n) SELECT n FROM generate_series(1, 1000) AS n;
SQL
my $content = q{SELECT count(*), md5(string_agg(format('%s %s %s', id, others, n), ',' ORDER BY id)) FROM made};

# --- a physical standby ----------------------------------------------------------------------
my $standby = standby_of($publisher, 'standby');
$publisher->wait_for_catchup($standby, 'replay', $publisher->lsn('insert'));
is($standby->sql($content), $publisher->sql($content), 'a standby shows what its primary shows');
is($standby->sql(q{SELECT count(*) FROM made AS m WHERE id = m.id::text::randflake AND id = m.id::bigint::randflake}
          . q{ AND id >= randflake_lower(now() - interval '1 day')}),
    1000, '  reads identifiers, and finds rows by time');
for my $max_wait (0, '1h') {
    error_is($standby, "SET randflake.max_wait = '$max_wait'; SELECT randflake_next()", '25006',
        { message => qr/during recovery/, hint => qr/primary/ }, "  but makes none, max_wait $max_wait");
}
$standby->stop;
configure($standby, node_id => 1, node_count => 4, secret => random_secret());
$standby->start;
error_is($standby, 'SELECT id FROM made', '55000', { message => qr/belong to another secret/ },
    'a standby with another secret shows nothing');
$standby->stop;

# --- logical replication ---------------------------------------------------------------------
my %subscriber;
for my $format ('text', 'binary') {
    my $node = $subscriber{$format} = start_server("in_$format", extensions => ['randflake_type'],
        settings => { node_id => 100, secret => $secret, max_wait => '1h' });
    my $binary = $format eq 'binary' ? 'true' : 'false';
    my $connection = $publisher->connstr('postgres') =~ s/'/''/gr;
    $node->sql(<<"SQL");
CREATE TABLE made (id randflake PRIMARY KEY, others randflake[], n integer);
CREATE SUBSCRIPTION in_$format CONNECTION '$connection' PUBLICATION everything WITH (binary = $binary);
SQL
    $node->wait_for_subscription_sync($publisher, "in_$format");
}

# The apply worker acts as the owner of the subscription and the table, who needs USAGE on the type.
for my $format (sort keys %subscriber) {
    my $node = $subscriber{$format};
    $node->sql($_) for 'CREATE ROLE applier SUPERUSER LOGIN', 'ALTER TABLE made OWNER TO applier',
      'REVOKE USAGE ON TYPE randflake FROM PUBLIC', "ALTER SUBSCRIPTION in_$format OWNER TO applier",
      ($node->pg_version >= 16 ? "ALTER SUBSCRIPTION in_$format SET (password_required = false)" : ()),
      'ALTER ROLE applier NOSUPERUSER';
    my $before = -s $node->logfile;
    $publisher->sql('INSERT INTO made (n) VALUES (4000)');
    ok($node->wait_for_log(qr/permission denied for type public\.randflake\n.*Role "applier" needs USAGE/, $before),
        "in $format: a row does not arrive without USAGE");
    $node->sql('GRANT USAGE ON TYPE randflake TO applier');
    $publisher->wait_for_catchup("in_$format");
    is($node->sql($content), $publisher->sql($content), '  and does with it');
    $node->sql('GRANT USAGE ON TYPE randflake TO PUBLIC; ALTER ROLE applier SUPERUSER');
}

$_->sql('CREATE DATABASE whole') for $publisher, $subscriber{text};
$publisher->safe_psql('whole', <<'SQL');
CREATE PUBLICATION whole FOR ALL TABLES;
CREATE EXTENSION randflake_type CASCADE;
CREATE TABLE made (id randflake PRIMARY KEY DEFAULT randflake_next(), others randflake[], n integer);
INSERT INTO made (n) SELECT n FROM generate_series(1, 1000) AS n;
SQL
my $keys = 'TABLE randflake_key UNION ALL TABLE randflake_key_check';
my $whole_keys = $publisher->safe_psql('whole', $keys);
like($whole_keys, qr/^(\w+)\n\1$/, 'published as a whole: the extension is bound');
my $connection = $publisher->connstr('whole') =~ s/'/''/gr;
$subscriber{text}->safe_psql('whole', <<"SQL");
CREATE EXTENSION randflake_type CASCADE;
CREATE TABLE made (id randflake PRIMARY KEY, others randflake[], n integer);
CREATE SUBSCRIPTION in_whole CONNECTION '$connection' PUBLICATION whole;
SQL
$subscriber{text}->wait_for_subscription_sync($publisher, 'in_whole', 'whole');
$publisher->safe_psql('whole',
    'DELETE FROM randflake_key; SELECT randflake_bind_secret(); INSERT INTO made (n) VALUES (1001)');
$publisher->wait_for_catchup('in_whole');
is($_->safe_psql('whole', $keys), $whole_keys, '  and bound anew') for $publisher, $subscriber{text};
is($subscriber{text}->safe_psql('whole', $content), $publisher->safe_psql('whole', $content),
    '  and a subscriber has everything');

# In an unbound database, one transaction adds the first row and the secret's fingerprint.
my $forget = 'DELETE FROM randflake_key; DELETE FROM randflake_key_check';
$publisher->safe_psql('whole', "$forget; INSERT INTO made (n) VALUES (1002)");
$publisher->wait_for_catchup('in_whole');
is($_->safe_psql('whole', $keys), $whole_keys, 'bound by a first use') for $publisher, $subscriber{text};
is($subscriber{text}->safe_psql('whole', $content), $publisher->safe_psql('whole', $content),
    '  which a subscriber sees');
$subscriber{text}->safe_psql('whole', 'DROP SUBSCRIPTION in_whole');

for my $format (sort keys %subscriber) {
    my $node = $subscriber{$format};
    $node->sql($forget);
    $publisher->sql('INSERT INTO made (n) VALUES (5000)');
    $publisher->wait_for_catchup("in_$format");
    is($node->sql($keys), $whole_keys, "in $format: a row binds a subscriber");
    is($node->sql($content), $publisher->sql($content), '  and is there');
}

$publisher->safe_psql('whole', <<"SQL");
SELECT pg_create_logical_replication_slot('unbound', 'test_decoding');
BEGIN;
INSERT INTO made (n) VALUES (1003);
$forget;
COMMIT;
INSERT INTO made (n) VALUES (1004);
BEGIN;
$forget;
UPDATE made SET n = 1005 WHERE n = 1004;
COMMIT;
SQL
is($publisher->safe_psql('whole',
        q{SELECT count(*) FROM pg_logical_slot_get_changes('unbound', NULL, NULL) WHERE data ~ 'public.made: .*id\[randflake\]:''?\w{5,13}'}),
    3, 'what was written without a fingerprint is decoded');
is($publisher->safe_psql('whole', 'SELECT count(*) FROM randflake_key'), 0, '  which binds nothing');
$publisher->safe_psql('whole', q{SELECT pg_drop_replication_slot('unbound')});

my $node = $subscriber{text};
configure($node, node_id => 100, secret => random_secret(), max_wait => '1h');
$node->restart;
$publisher->sql('INSERT INTO made (n) VALUES (10000)');
ok($node->wait_for_log(qr/ERROR:  (?:\w+: )?values of type randflake in this database belong to another secret/),
    'a subscriber with another secret stops');
is($node->sql('SELECT count(*) FROM made WHERE n = 10000'), 0, '  before it stores anything');
configure($node, node_id => 100, secret => $secret, max_wait => '1h');
$node->restart;
$publisher->wait_for_catchup('in_text');
is($node->sql($content), $publisher->sql($content), '  and goes on with the right one');
$_->stop for values %subscriber, $publisher;
done_testing();
