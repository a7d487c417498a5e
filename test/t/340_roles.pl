# Checks which functions each role may call, and what each recipe of docs/security.md permits.
use Docs;
use Randflake;

read_document('docs/security.md', 'test/t/340_roles.pl');
my $secret = random_secret();
my $node = start_server('main', extensions => [qw(randflake_type randflake_coordinator)], secrets => [$secret],
    settings => { node_id => 1, max_wait => '1h' });
my $secret_file = secret_path($node);
$node->sql(<<'SQL');
CREATE ROLE ordinary LOGIN;
CREATE ROLE app LOGIN;
CREATE ROLE partner LOGIN;
CREATE ROLE visitor LOGIN;
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
CREATE ROLE reader LOGIN IN ROLE pg_read_server_files;
SQL
$node->sql(block('support'));
$node->sql('CREATE ROLE supporter LOGIN IN ROLE support');

sub as_role($role, $sql) {
    my ($status, $out, $text) = $node->psql('postgres', $sql,
        extra_params => [ '-U', $role, '-v', 'VERBOSITY=sqlstate' ]);
    return $status == 0 && $text eq '' ? $out : ($text =~ /ERROR:\s+(\w{5})/)[0];
}

# --- privileges ------------------------------------------------------------------------------
my $id = $node->sql('SELECT randflake_generate()');
my @everybody = qw(ordinary monitor supporter reader);
my %may = ((map { $_ => \@everybody } 'randflake_generate()', '(SELECT count(*) FROM randflake_generate(2))',
    'randflake_generate_text()', 'randflake53_generate()', "randflake_to_text($id)", "randflake_from_text('0')",
    "randflake_shard($id, 4)", '(SELECT count(*) FROM randflake_shard_ranges(4))', 'randflake_next()',
    "randflake_from_bigint($id)", 'randflake_from_integer(1)', "randflake_to_bigint('a')", 'randflake_lower(now())',
    '(SELECT count(*) FROM randflake_key)', '(SELECT count(*) FROM randflake_key_check)',
    'randflake_key_matches((SELECT min(fingerprint) FROM randflake_key))', 'snowflake_generate()',
    '(snowflake_decode(1)).node_id', q{(snowflake_decode(1, 'twitter')).node_id}, q{snowflake_lower('2030-01-01')},
    '(SELECT count(*) FROM snowflake_layouts())', q{randflake_lease_stops_at(NULL, 'a', 'b')}),
    (map { $_ => ['monitor'] } '(SELECT mode FROM randflake_status)', '(SELECT count(*) FROM randflake_slots)',
    '(SELECT count(*) FROM randflake_secrets)', '(SELECT count(*) FROM randflake_leases)',
    '(SELECT count(*) FROM randflake_pool)', '(SELECT count(*) FROM randflake_status())',
    '(SELECT count(*) FROM randflake_slots())'), (map { $_ => ['supporter'] } "(randflake_decode($id)).node_id",
    "randflake_generated_at($id)"));
for my $call (sort keys %may) {
    my %allowed = map { $_ => 1 } @{ $may{$call} };
    my %denied = map { $_ => 1 } grep { (as_role($_, "SELECT $call") // '') eq '42501' } @everybody;
    is_deeply([ grep { !$denied{$_} } @everybody ], [ grep { $allowed{$_} } @everybody ],
        "$call: " . (join(' ', @{ $may{$call} }) || 'superusers'));
}

# The page may omit functions that PostgreSQL calls for input, operators, indexes and aggregates.
my @functions = split /\n/, $node->sql(<<"SQL");
SELECT DISTINCT proname FROM pg_depend JOIN pg_proc ON pg_proc.oid = objid
WHERE refclassid = 'pg_extension'::regclass AND classid = 'pg_proc'::regclass
  AND refobjid IN (SELECT oid FROM pg_extension WHERE extname LIKE 'randflake%')
  AND has_function_privilege('ordinary', pg_proc.oid, 'EXECUTE')
  AND proargtypes[0] IS DISTINCT FROM 'internal'::regtype
  AND pg_proc.oid NOT IN (
    SELECT unnest(ARRAY[typinput, typoutput, typreceive, typsend]) FROM pg_type
    UNION ALL SELECT oprcode FROM pg_operator UNION ALL SELECT amproc FROM pg_amproc
    UNION ALL SELECT unnest(ARRAY[aggfnoid, aggtransfn]) FROM pg_aggregate)
SQL
my $listed = join ' ', grep { @{ $may{$_} } } keys %may;
is_deeply([ grep { $listed !~ /\b$_\b/ } @functions ], [], 'everybody may call nothing else');

is($node->sql(<<'SQL'), <<'GRANTS' =~ s/\n\z//r, '  nor read or change another table or sequence; other roles may do no more than this');
SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type, string_agg(DISTINCT name, ' ' ORDER BY name)
FROM (SELECT proname, proacl, proowner FROM pg_proc UNION ALL SELECT relname, relacl, relowner FROM pg_class) AS o (name, acl, owner), aclexplode(acl)
WHERE name ~ 'flake' AND grantee <> owner AND NOT (grantee = 0 AND privilege_type = 'EXECUTE') GROUP BY 1, 2 ORDER BY 1, 2
SQL
PUBLIC|SELECT|randflake_key randflake_key_check
pg_database_owner|INSERT|randflake_key randflake_key_check
pg_monitor|EXECUTE|randflake_lease_pool_state randflake_secrets randflake_slots randflake_status
pg_monitor|SELECT|randflake_leases randflake_pool randflake_secrets randflake_slots randflake_status
support|EXECUTE|randflake_decode randflake_generated_at
GRANTS
is( $node->sql(
        q{SELECT string_agg(name, ' ') FROM pg_settings WHERE name ~ '^randflake\.' AND context NOT IN ('postmaster', 'sighup', 'internal')}),
    'randflake.max_wait randflake.sort_loads', '  nor set anything but how long it waits, and the order in loads');

# --- the secret ------------------------------------------------------------------------------
is(as_role('reader', "CREATE TEMP TABLE file (line text); COPY file FROM '$secret_file';" . ' SELECT line FROM file'),
    $secret, 'who may read the files of the server reads the secret, as documented');

# --- the recipes -----------------------------------------------------------------------------
$node->sql(block('day_of'));
is(as_role('app', "SELECT day_of($id) - current_date BETWEEN -1 AND 1"), 't', 'a program gets the one fact it needs');
is(as_role('app', "SELECT randflake_generated_at($id)"), '42501', '  and no more');
is(as_role('partner', "SELECT day_of($id)"), '42501', '  and no other role does');

$node->sql(block('row_level_security'));
for my $role (qw(app partner)) {
    is(as_role($role, "INSERT INTO document (title) VALUES ('Private: $role'), ('Public: $role')"),
        '', "$role inserts");
}
my $foreign = $node->sql(q{SELECT id FROM document WHERE title = 'Private: partner'});
is(as_role('app', 'SELECT count(*), min(owner), max(owner) FROM document'), '2|app|app', 'each sees its own rows');
is(as_role('app', "SELECT count(*) FROM document WHERE id = $foreign"), 0,
    '  and not those of others, by their identifier');
is(as_role('app', "WITH gone AS (DELETE FROM document WHERE id = $foreign RETURNING 1) SELECT count(*) FROM gone"),
    0, '  nor deletes them');
is(as_role('app', "INSERT INTO document (id, title) VALUES ($foreign, 'x')"), '42501',
    '  nor learns from an error that they exist');
is(as_role('app', "UPDATE document SET id = $foreign"), '42501', '  by update neither');
is(as_role('app', q{INSERT INTO document (owner, title) VALUES ('partner', 'x')}), '42501',
    '  nor gives rows to others');

$node->sql(block('view'));
is( as_role('visitor', 'SELECT count(*), min(title), max(title) FROM shared_document'),
    '2|Public: app|Public: partner', 'a visitor sees what the view shows');
my $text = as_role('visitor', q{SELECT id FROM shared_document WHERE title = 'Public: app'});
is( $node->sql("SELECT title FROM document WHERE id = randflake_from_text('$text')"),
    'Public: app', '  with the text form of the identifier');
is(as_role('visitor', 'SELECT count(*) FROM document'), '42501', '  and not the table');
is( as_role('visitor', 'SELECT (randflake_decode(randflake_from_text(id))).* FROM shared_document'),
    '42501', '  and cannot decode it');
# Without a security barrier, PostgreSQL would call a cheap function before it checks the condition.
$node->sql('GRANT CREATE ON SCHEMA public TO visitor');
my ($status, $out, $notices) = $node->psql('postgres', <<'SQL', extra_params => [ '-U', 'visitor' ]);
CREATE FUNCTION peek(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS
$$ BEGIN RAISE NOTICE 'seen: %', $1; RETURN true; END $$;
SELECT count(*) FROM shared_document WHERE peek(title);
SQL
like($notices, qr/seen: Public: app/, '  and with a function of its own');
unlike($notices, qr/Private/, '  sees no other row either');

# The page's SQL revokes EXECUTE from PUBLIC on VOLATILE functions, because these use up numbers.
my $takes_numbers = <<"SQL";
SELECT pg_proc.oid::regprocedure FROM pg_depend JOIN pg_proc ON pg_proc.oid = objid
WHERE deptype = 'e' AND classid = 'pg_proc'::regclass AND refclassid = 'pg_extension'::regclass
  AND refobjid IN (SELECT oid FROM pg_extension WHERE extname LIKE 'randflake%')
  AND provolatile = 'v' AND has_function_privilege('ordinary', pg_proc.oid, 'EXECUTE')
ORDER BY pg_proc.oid::regprocedure::text COLLATE "C"
SQL
my @takes_numbers = split /\n/, $node->sql($takes_numbers);
is("@takes_numbers", 'randflake53_generate() randflake53_generate(integer) randflake_generate() randflake_generate(integer) randflake_generate_text()'
      . ' randflake_next() snowflake_generate()', 'everybody may call functions that take numbers');
$node->sql(block($_)) for qw(restrict_generate restrict_next);
is($node->sql($takes_numbers), '', '  and no longer after they are taken away');
is(as_role('app', q{INSERT INTO document (title) VALUES ('Private: more')}), '', '  and given to those who insert');
is(as_role('partner', q{INSERT INTO document (title) VALUES ('Private: more')}), '42501',
    '  whose rights the default runs with');
$node->stop;
every_block_was_used();
done_testing();
