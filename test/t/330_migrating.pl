# docs/migrating.md, step by step as printed, while programs write to both tables: none of their statements
# fails, no row is lost or mixed up, and each step takes the locks that the document says. The eight steps
# run once for each kind of key that they lead to, with the words replaced that the document names.

use Docs;
use Randflake;

read_document('docs/migrating.md', 'test/t/330_migrating.pl');
my $node = start_server('main',
    settings => { node_id => 1, secret => random_secret(), max_wait => '1h' },
    extensions => ['randflake_type'], conf => "deadlock_timeout = 100ms\n");

# --- new rows only ---------------------------------------------------------------------------

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE invoice (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, n integer);
INSERT INTO invoice (n) SELECT n FROM generate_series(1, 100) AS n;
SQL
$node->safe_psql('postgres', block('new_rows_only'));
$node->safe_psql('postgres', 'INSERT INTO invoice (n) SELECT n FROM generate_series(1, 100) AS n');
is($node->safe_psql('postgres', 'SELECT count(*) FROM invoice WHERE id BETWEEN 1 AND 100'),
    100, 'new rows only: old rows keep their numbers');
is(fields_of($node, 'SELECT id FROM invoice WHERE id NOT BETWEEN 1 AND 100')->{nodes},
    '1', '  new ones get identifiers');

# --- every row, with programs that go on -----------------------------------------------------

# An order and its lines in one transaction, changes of both, and an order that is removed
my $program = $node->basedir . '/program.sql';
append_to_file($program, <<'SQL');
\set n random(1, 1000000000)
BEGIN;
INSERT INTO orders (customer) VALUES ('customer ' || :n) RETURNING id \gset
INSERT INTO order_line (order_id, item) VALUES (:id, 'item 1 of customer ' || :n);
INSERT INTO order_line (order_id, item) VALUES (:id, 'item 2 of customer ' || :n);
COMMIT;
BEGIN;
SELECT id AS any FROM orders WHERE customer = 'customer ' || :n LIMIT 1 \gset
UPDATE orders SET customer = customer WHERE id = :any;
UPDATE order_line SET item = item WHERE order_id = :any;
COMMIT;
BEGIN;
INSERT INTO orders (customer) VALUES ('nobody') RETURNING id AS gone \gset
INSERT INTO order_line (order_id, item) VALUES (:gone, 'nothing');
DELETE FROM order_line WHERE order_id = :gone;
DELETE FROM orders WHERE id = :gone;
COMMIT;
SQL
# What a way replaces in the steps, and what it adds.
my %way;

# A step's text, as the way has it.
sub step {
    my ($name) = @_;
    my $sql = block($way{instead}{$name} // $name);
    my %replace = %{ $way{replace}{$name} // {} };
    for my $words (sort keys %replace) {
        $sql =~ s/\Q$words\E/$replace{$words}/ or die "$name has no $words";
    }
    $sql =~ s/^COMMIT;/block($way{add}{$name}) . 'COMMIT;'/em if $way{add}{$name};
    return $sql;
}

my ($programs, $errors);

sub start_programs {
    $errors = '';
    $programs = IPC::Run::start([
            'pgbench', '-n', '-M', $way{protocol}, '-f', $program, '-c', 3, '-R', 30, '-T', 3600,
            $node->connstr('postgres') ], '<', '/dev/null', '>&', \$errors);
}

# Waits until the programs have finished some transactions more.
sub let_them_write {
    my $written = $node->safe_psql('postgres', 'SELECT count(*) FROM orders') + 10;
    $node->poll_query_until('postgres', "SELECT count(*) >= $written FROM orders")
      or die "the programs do not write: $errors";
}

# Runs a block, again while lock_timeout strikes.
sub run_block {
    my ($name) = @_;
    my ($status, $out, $text);
    for (1 .. 100) {
        ($status, $out, $text) = $node->psql('postgres', step($name), on_error_stop => 1);
        last if $status == 0 || $text !~ /lock timeout/;
    }
    is($status, 0, "step \"$name\"") or diag($text);
    let_them_write();
    return $text;
}

# What the document's table says of a step: the strongest lock on each table.
my %documented;
for my $line (grep { /^\| \[?\d/ } split /\n/, slurp_file('docs/migrating.md')) {
    my ($step, @locks) = map { s/^\s+|\s+$//gr } (split /\|/, $line)[ 1 .. 3 ];
    $step =~ s/\[(\d)\]\([^)]*\)/$1/;
    @{ $documented{$step} }{qw(orders order_line)} = map { /^`(.+?)`/ ? $1 : '' } @locks;
}
is(keys %documented, 14, 'the table of locks was read');

my %mode = ('AccessShareLock' => 'ACCESS SHARE', 'RowShareLock' => 'ROW SHARE',
    'RowExclusiveLock' => 'ROW EXCLUSIVE', 'ShareUpdateExclusiveLock' => 'SHARE UPDATE EXCLUSIVE',
    'ShareLock' => 'SHARE', 'ShareRowExclusiveLock' => 'SHARE ROW EXCLUSIVE',
    'ExclusiveLock' => 'EXCLUSIVE', 'AccessExclusiveLock' => 'ACCESS EXCLUSIVE');
my @by_strength = ('ACCESS SHARE', 'ROW SHARE', 'ROW EXCLUSIVE', 'SHARE UPDATE EXCLUSIVE', 'SHARE',
    'SHARE ROW EXCLUSIVE', 'EXCLUSIVE', 'ACCESS EXCLUSIVE');
my $locks = q{SELECT relation::regclass || ' ' || mode FROM pg_locks
              WHERE relation IN ('orders'::regclass, 'order_line'::regclass) AND granted AND pid = };

# Compares the strongest lock on each table with the document's.
sub locks_are {
    my ($held, $step) = @_;
    for my $table (qw(orders order_line)) {
        my %held = map { $mode{$_} => 1 } $held =~ /^$table (\w+)$/mg;
        my ($strongest) = grep { $held{$_} } reverse @by_strength;
        is($strongest // '', $documented{$step}{$table}, "  step $step locks $table as documented");
    }
}

# The locks of a block, run in a transaction that looks at them at its end and is undone.
sub check_locks {
    my ($name, $step) = @_;
    my $sql = step($name) =~ s/^(?:BEGIN|COMMIT);\n//gmr;
    my ($status, $out, $text);
    for (1 .. 100) {
        ($status, $out, $text) = $node->psql('postgres', "BEGIN; $sql; $locks pg_backend_pid(); ROLLBACK;",
            on_error_stop => 1);
        last if $status == 0 || $text !~ /lock timeout/;
    }
    is($status, 0, "locks of step \"$name\"") or diag($text);
    locks_are($out, $step);
}

# The locks of a block that cannot run in a transaction, seen while an open transaction keeps it from
# its end. That transaction is not one of the programs', which would wait for nothing.
sub check_locks_while_waiting {
    my ($name, $step, $table) = @_;
    my $open = start_session($node,
        "BEGIN; LOCK TABLE $table IN ROW EXCLUSIVE MODE; SELECT pg_advisory_lock(1), pg_sleep(3600)");
    $node->poll_query_until('postgres',
        q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND granted})
      or die 'no open transaction';
    my $session = start_session($node, step($name));
    my $pid = q{(SELECT pid FROM pg_stat_activity WHERE query LIKE 'CREATE%INDEX CONCURRENTLY%'}
      . q{ AND wait_event_type = 'Lock')};
    $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM $pid AS waiting")
      or die "$name does not wait";
    locks_are($node->safe_psql('postgres', "$locks $pid"), $step);
    let_them_write();
    $node->safe_psql('postgres',
        q{SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'});
    finish_session($open);
    is((finish_session($session))[1], '', "step \"$name\"");
}

# The statement that the filling procedures repeat
sub check_locks_of_update {
    my ($table, $assignment, $step) = @_;
    my $key = $table eq 'orders' ? 'id' : 'order_id';
    locks_are($node->safe_psql('postgres',
            "BEGIN; UPDATE $table SET $assignment WHERE $key = (SELECT $key FROM $table LIMIT 1);"
              . " $locks pg_backend_pid(); ROLLBACK"), $step);
}

# The eight steps, on tables with these keys before.
sub migrate {
    (my $name, %way) = @_;
    note($name);
    $node->safe_psql('postgres', $way{serial} ? block('example') : block('example') =~
          s/GENERATED BY DEFAULT AS IDENTITY/DEFAULT randflake_generate()/r);
    $node->safe_psql('postgres', <<'SQL');
INSERT INTO orders (customer) SELECT 'customer ' || n FROM generate_series(1, 5000) AS n;
INSERT INTO order_line SELECT id, 'item ' || n || ' of ' || customer
FROM orders, generate_series(1, 2) AS n;
SQL
    start_programs();
    let_them_write();
    check_locks('column', 1);
    run_block('column');

    run_block('fill_procedure');
    my $text = run_block('fill');
    like($text, qr/filled 1000 rows, up to key 1000$/m, 'filling tells how far it is') if $way{serial};
    like($text, qr/filled (?:[5-9]\d{3}|\d{5,}) rows.*\z/, '  up to all rows that were there');
    is($node->safe_psql('postgres', 'SELECT count(*) FROM orders WHERE new_id IS NULL'), 0,
        'no row is without an identifier');
    like($node->safe_psql('postgres', step('progress')), qr/^(\d+)\|\1$/, '  as the progress shows');
    check_locks_of_update('orders', 'new_id = new_id', 2);

    check_locks_while_waiting('index', '3 index', 'orders');
    check_locks('constraint', '3 constraint');
    run_block('constraint');
    check_locks('validate', '3 validation');
    run_block('validate');

    check_locks('child_column', '4 column');
    run_block('child_column');
    run_block('child_fill_procedure');
    like(run_block('child_fill'), qr/filled \d{5,} rows.*\z/, 'lines are filled too');
    is($node->safe_psql('postgres', 'SELECT count(*) FROM order_line WHERE new_order_id IS NULL'), 0,
        'no line is without its order');
    check_locks_of_update('order_line', 'order_id = order_id', '4 fill');

    check_locks_while_waiting('child_index', '5 index', 'order_line');
    check_locks('child_constraint', '5 constraint');
    run_block('child_constraint');
    check_locks('child_validate', '5 validation');
    run_block('child_validate');

    check_locks('foreign_key', 6);
    run_block('foreign_key');
    check_locks('foreign_key_validate', '6 validation');
    run_block('foreign_key_validate');

    # --- the swap --------------------------------------------------------------------------------

    my $rows = q{SELECT count(*), md5(string_agg(customer || item, ',' ORDER BY customer, item))
                 FROM orders JOIN order_line ON order_id = orders.id WHERE customer IN
                 (SELECT 'customer ' || n FROM generate_series(1, 5000) AS n)};
    my $before = $node->safe_psql('postgres', $rows);
    check_locks('swap', 7);
    run_block('swap');
    is($node->safe_psql('postgres', $rows), $before, 'orders have their lines, as before');
    is( $node->safe_psql('postgres', 'SELECT count(*) FROM orders JOIN order_line ON old_order_id = old_id'
              . ' WHERE order_id <> id'), 0, '  by old number as by new');
    is( $node->safe_psql('postgres', q{SELECT count(*) FROM orders LEFT JOIN order_line ON order_id = id}
              . q{ WHERE item IS NULL OR item NOT LIKE 'item % of ' || customer}),
        0, '  and so have those that were written meanwhile');
    is( $node->safe_psql('postgres', q{SELECT attnotnull FROM pg_attribute}
              . q{ WHERE attrelid = 'orders'::regclass AND attname = 'id'}),
        't', 'the key is not null');
    is( $node->safe_psql('postgres', q{SELECT conname, convalidated, pg_get_constraintdef(oid)}
              . q{ FROM pg_constraint WHERE conrelid IN ('orders'::regclass, 'order_line'::regclass)}
              . q{ AND contype IN ('p', 'f', 'c') ORDER BY 1}),
        "order_line_order_id_fkey|t|FOREIGN KEY (order_id) REFERENCES orders(id)\n"
          . 'orders_pkey|t|PRIMARY KEY (id)', 'keys are what they were');

    is($node->safe_psql('postgres', 'SELECT count(*) FROM orders WHERE old_id::randflake <> id'), 0,
        'every row has the identifier that it had') if $way{same};

    check_locks('clean_up', 8);
    run_block('clean_up');
    is( $node->safe_psql('postgres', q{SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute}
              . q{ WHERE attrelid = 'orders'::regclass AND attnum > 0 AND NOT attisdropped}),
        'customer id', 'nothing is left over');

    # --- the programs noticed nothing ------------------------------------------------------------

    ok($programs->pumpable, 'the programs still run');
    $programs->kill_kill;
    unlike($errors, qr/error|abort|fatal|deadlock/i, '  none of their statements failed');
    is($node->safe_psql('postgres', "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attname = 'id'"
              . " AND attrelid = 'orders'::regclass"), $way{type}, 'the key has its type');
    my $made = fields_of($node, 'SELECT id::bigint FROM orders');
    is($made->{nodes}, '1', 'every order has an identifier of this server');
    is($made->{distinct}, $made->{count}, '  none twice');
    $node->safe_psql('postgres', 'DROP TABLE order_line, orders');
}

migrate('identifiers in a bigint', serial => 1, type => 'bigint', protocol => 'prepared');

# Statements that are parsed each time see the key change its type.
migrate('the type, from a serial number', serial => 1, type => 'randflake', protocol => 'extended',
    replace => {
        column => { 'new_id bigint' => 'new_id randflake', 'randflake_generate()' => 'randflake_next()' },
        fill_procedure => { 'randflake_generate()' => 'randflake_next()' },
        child_column => { 'new_order_id bigint' => 'new_order_id randflake' }
    });
migrate('the type, from identifiers', same => 1, type => 'randflake', protocol => 'extended',
    instead => { column => 'same_column' },
    replace => {
        fill_procedure => { 'randflake_generate()' => 'id::randflake' },
        child_column => { 'new_order_id bigint' => 'new_order_id randflake' }
    },
    add => { swap => 'same_swap', clean_up => 'same_clean_up' });

# --- identifiers to the type, at once ----------------------------------------------------------

$node->safe_psql('postgres', block('example') =~ s/GENERATED BY DEFAULT AS IDENTITY/DEFAULT randflake_generate()/r);
$node->safe_psql('postgres', <<'SQL');
INSERT INTO orders (customer) SELECT 'customer ' || n FROM generate_series(1, 100) AS n;
INSERT INTO order_line SELECT id, 'item of ' || customer FROM orders;
CREATE TABLE before AS SELECT id, customer FROM orders;
SQL
$node->safe_psql('postgres', block('same_at_once'));
$node->safe_psql('postgres', q{INSERT INTO orders (customer) VALUES ('new')});
is($node->safe_psql('postgres',
        'SELECT count(*), count(DISTINCT orders.id) FROM before JOIN orders ON orders.id = before.id::randflake'
          . q{ AND orders.customer = before.customer JOIN order_line ON order_id = orders.id}
          . q{ AND item = 'item of ' || orders.customer}),
    '100|100', 'at once: every row keeps its identifier, and its line');
error_is($node, 'INSERT INTO order_line VALUES (randflake_next(), 1)', '23503', {}, '  and lines need an order');

$node->stop;
every_block_was_used();
done_testing();
