# What each of the three extensions leaves in a database, alone and with the others, as psql and
# tools that read a schema show it. sql/setup.sql lists the functions and tests other schemas.

use Randflake;

my $node = new_server('main');
$node->start;
my $databases = 0;

# A new database, after this statement; returns its name and the client's messages.
sub database_with {
    my ($sql) = @_;
    my $database = 'database_' . ++$databases;
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    my ($status, undef, $messages) = $node->psql($database, $sql, on_error_die => 1);
    return ($database, $messages);
}

# The output of psql's command, without its frame.
sub shown_by {
    my ($database, $command) = @_;
    return $node->safe_psql($database, $command);
}

my $relations = <<'SQL';
SELECT format('%s %s', relkind, relname) COLLATE "C" FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i' ORDER BY 1
SQL
# Without row types of tables and views, and without array types.
my $types = <<'SQL';
SELECT typname FROM pg_type LEFT JOIN pg_class c ON c.oid = typrelid
WHERE typnamespace = 'public'::regnamespace AND typelem = 0 AND typrelid = 0 ORDER BY typname COLLATE "C"
SQL
my $tables_of_tools = q{SELECT table_name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1};
my $functions = q{SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace};

# --- randflake alone -------------------------------------------------------------------------

my ($database) = database_with('CREATE EXTENSION randflake');
is($node->safe_psql($database, $relations), "v randflake_secrets\nv randflake_slots\nv randflake_status",
    'randflake alone: three views, no table, no sequence');
is($node->safe_psql($database, $types), '', '  no type');
is($node->safe_psql($database, $tables_of_tools), '', '  nothing for tools that read tables');
is(shown_by($database, '\dt *.randflake*'), '', '  nor for psql');

# --- the others ------------------------------------------------------------------------------

($database, my $messages) = database_with('CREATE EXTENSION randflake_type CASCADE');
like($messages, qr/\A[^\n]*NOTICE:  installing required extension "randflake"\z/,
    'randflake_type brings randflake along');
is($node->safe_psql($database, "$relations"), <<'END' =~ s/\n\z//r, '  and has two tables');
r randflake_key
r randflake_key_check
v randflake_secrets
v randflake_slots
v randflake_status
END
is($node->safe_psql($database, $types), "randflake\nrandflake_key_internal", '  and the type, and that of an argument');
is($node->safe_psql($database, "SELECT count(*) FROM pg_proc WHERE proname LIKE 'randflake%lease%'"), 0,
    '  and no leases');
is_deeply(
    [ shown_by($database, '\dx randflake*') =~ /^([^|]*)\|\d+\.\d+\|.*public\|(.+)$/mg ],
    [
        'randflake', 'unique, unpredictable 64-bit identifiers without a round trip',
        'randflake_type', 'type randflake: identifiers stored in the order of time and shown encrypted'
    ],
    '\dx shows a line of each');
my (undef, undef, $error) = $node->psql($database, 'DROP EXTENSION randflake');
like($error, qr/extension randflake_type depends on extension randflake/, 'randflake stays while it is needed');
$node->safe_psql($database, 'DROP EXTENSION randflake_type; DROP EXTENSION randflake');
is($node->safe_psql($database, "$relations") . $node->safe_psql($database, $functions), '',
    '  and leaves nothing behind');

($database, $messages) = database_with('CREATE EXTENSION randflake_coordinator');
is($messages, '', 'randflake_coordinator needs nothing');
is($node->safe_psql($database, $relations), <<'END' =~ s/\n\z//r, '  and has its tables and views');
S randflake_lease_change
S randflake_lease_collected
S randflake_lease_lease_id_seq
S randflake_lease_takeover
r randflake_lease
r randflake_lease_announcement
r randflake_lease_chunk
r randflake_lease_hold
r randflake_lease_pool
r randflake_lease_role
v randflake_leases
v randflake_pool
END
is($node->safe_psql($database, $types), 'randflake_lease_internal', '  the type of an argument');
is($node->safe_psql($database, "$functions AND proname !~ '^randflake_(lease|coordinator)_'"), '',
    '  and no functions but its own');
my ($comment) = shown_by($database, '\dx randflake*') =~ /\Arandflake_coordinator\|\d+\.\d+\|.*public\|(.+)\z/;
is($comment, 'leases of node ids, for servers that make identifiers', '\dx shows it');
$node->safe_psql($database, 'CREATE EXTENSION randflake; DROP EXTENSION randflake_coordinator');
is($node->safe_psql($database, $relations), "v randflake_secrets\nv randflake_slots\nv randflake_status",
    '  and it comes and goes by itself');

$node->stop;
done_testing();
