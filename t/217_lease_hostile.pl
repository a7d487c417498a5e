# A coordinator that answers anything at all, or never: the server loses nothing, issues nothing,
# says what happened, and can be stopped. What callers learn of it is in no word the coordinator's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Randflake;
use RandflakeImpostor;
use RandflakeLease;
use Test::More;
use Time::HiRes qw(sleep time);

use constant { INT4 => RandflakeImpostor::INT4, INT8 => RandflakeImpostor::INT8 };

*say_to = \&RandflakeImpostor::say_to;
*lease = \&RandflakeImpostor::lease;
*message = \&RandflakeImpostor::message;
*row_description = \&RandflakeImpostor::row_description;
*columns = \&RandflakeImpostor::columns;
*data_row = \&RandflakeImpostor::data_row;
*complete = \&RandflakeImpostor::complete;
*ready = \&RandflakeImpostor::ready;
*report = \&RandflakeImpostor::report;

my @types = @RandflakeImpostor::types;
my $impostor = RandflakeImpostor->new;
my $node = new_server('holder',
    settings => {},
    conf => "log_min_messages = log\nlc_messages = 'C'\nrestart_after_crash = on\n");

# Everything that is set, so that each reload says it again.
sub settings {
    my (%more) = @_;
    configure($node,
        secret => 'c0ffee00c0ffee00c0ffee00c0ffee00',
        max_wait => 0,
        lease_duration => 60,
        coordinator => $impostor->connstr,
        %more);
    return;
}

# The worker asks at once.
sub ask_again {
    settings(@_);
    $node->reload;
    return;
}

settings();
$impostor->play(answer => \&RandflakeImpostor::silence);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION randflake; CREATE ROLE ordinary LOGIN');

# A session that stays, and the process of the worker: a crash of any process would end both.
my $session = $node->background_psql('postgres');
my $backend = $session->query_safe('SELECT pg_backend_pid()');
my $worker = lease_worker_of($node);

# Waits until an error other than before is told, and returns it.
sub told {
    my ($pattern, $test_name, %options) = @_;
    my $offset = $options{offset} // 0;
    my $give_up_at = time + $PostgreSQL::Test::Utils::timeout_default;
    my $error = '';
    until ($error =~ $pattern || time > $give_up_at) {
        sleep 0.05;
        $error = status_of($node, 'lease_error');
    }
    like($error, $pattern, $test_name);
    return $error;
}

# What a caller without rights is told: all of it.
sub caller_is_told {
    my ($detail, $test_name) = @_;
    my $error = error_of($node, 'SELECT randflake_generate()', user => 'ordinary');
    is($error->{sqlstate}, '55000', "$test_name: nothing is issued") or diag($error->{text});
    like($error->{detail}, $detail, "$test_name: callers are told the kind");
    unlike($error->{text}, qr/leaser|\Q$impostor->{directory}\E|leak|5432/,
        "$test_name: and nothing of the connection");
    return;
}

my $since = qr/since \d{4}-\d\d-\d\d .*\d\.$/;
my $unusable = qr/^The coordinator has given no usable answer $since/;
my $no_answer = qr/^The coordinator has not answered $since/;

# --- answers of every shape ----------------------------------------------------------------------

my $now = time;
my @good = (1, 7, 1, int($now) - 5, int($now) + 60);
my $row = row_description(columns(@types)) . data_row(@good);
my $no_lease = qr/^could not lease node ids: the coordinator sent a row that is no lease of node ids$/;
my $no_row = qr/^could not lease node ids: the coordinator sent something else than one row$/;
my $no_sense = qr/^could not lease node ids: the coordinator granted a lease that makes no sense$/;

sub with {
    my ($column, $value) = @_;
    my @values = @good;
    $values[$column] = $value;
    return lease(@values);
}

sub with_types {
    my @other = @_;
    return row_description(columns(@other)) . data_row(@good) . complete() . ready();
}

my @answers = (
    [ 'no column', row_description() . data_row() . complete() . ready(), $no_lease ],
    [ 'fewer columns',
        row_description(columns(@types[ 0 .. 3 ])) . data_row(@good[ 0 .. 3 ]) . complete() . ready(),
        $no_lease ],
    [ 'more columns',
        row_description(columns(@types, INT8)) . data_row(@good, 1) . complete() . ready(), $no_lease ],
    [ 'fewer values than columns',
        row_description(columns(@types)) . data_row(@good[ 0 .. 1 ]) . complete() . ready(),
        qr/^could not lease node ids: / ],
    (map { [ "null in column $_", with($_, undef), $no_lease ] } 0 .. 4),
    [ 'text where numbers are due', with(1, 'leak'), $no_lease ],
    [ 'a number and more', with(1, '7 leak'), $no_lease ],
    [ 'space before a number', with(1, ' 7'), $no_lease ],
    [ 'a plus', with(1, '+7'), $no_lease ],
    [ 'an empty number', with(1, ''), $no_lease ],
    [ 'a zero byte in a number', with(1, "7\0"), $no_lease ],
    [ 'a number of 100,000 digits', with(1, '0' x 100_000 . 'leak'), $no_lease ],
    [ 'types of text', with_types((RandflakeImpostor::TEXT) x 5), $no_lease ],
    [ 'int8 where int4 is due', with_types(INT8, INT8, INT4, INT8, INT8), $no_lease ],
    [ 'binary format',
        (row_description(columns(@types)) =~ s/\0\0(?=column|$)/\0\x01/gr) . data_row(@good) . complete() . ready(),
        $no_lease ],
    [ 'no row', row_description(columns(@types)) . complete('SELECT 0') . ready(), $no_row ],
    [ 'two rows', $row . data_row(@good) . complete('SELECT 2') . ready(), $no_row ],
    [ 'two results', $row . complete() . $row . complete() . ready(), $no_row ],
    [ 'a row and then a command', $row . complete() . complete('INSERT 0 1') . ready(), $no_row ],
    [ 'a row and then an empty query', $row . complete() . message('I', '') . ready(), $no_row ],
    [ 'a command without a row', complete('LISTEN') . ready(), $no_row ],
    [ 'an empty query', message('I', '') . ready(), $no_row ],
    [ 'nothing but readiness', ready(), $no_row ],
    [ 'CopyIn', message('G', pack 'C n n', 0, 1, 0), $no_row ],
    [ 'CopyOut', message('H', pack 'C n n', 0, 1, 0) . message('d', 'leak'), $no_row ],
    [ 'CopyBoth', message('W', pack 'C n n', 0, 1, 0), $no_row ],
    [ 'a row and then CopyIn', $row . complete() . message('G', pack 'C n n', 0, 1, 0), $no_row ],
    [ 'an open transaction', $row . complete() . ready('T'),
        qr/^could not lease node ids: the coordinator has not committed what it answered$/ ],
    [ 'an error after the row', $row . report('40001', 'could not serialize') . ready(),
        qr/^could not lease node ids: could not serialize$/ ],
    [ 'an error after the completion', $row . complete() . report('40001', 'too late') . ready(),
        qr/^could not lease node ids: too late$/ ],
    [ 'a warning', report('01000', 'not on the standby', type => 'N', severity => 'WARNING') . $row
          . complete() . ready(),
        qr/^could not lease node ids: not on the standby$/ ],
    [ 'a warning after the completion', $row . complete()
          . report('01000', 'a late one', type => 'N', severity => 'WARNING') . ready(),
        qr/^could not lease node ids: a late one$/ ],
    [ 'an unknown message', message('!', 'leak' x 10), qr/^could not lease node ids: ./ ],
    [ 'a message that is shorter than its length', pack('A N', 'D', 3), qr/^could not lease node ids: ./ ],
    [ 'authentication once more', message('R', pack 'N', 3), qr/^could not lease node ids: ./ ],
    [ 'an error without fields', message('E', "\0") . ready(), qr/^could not lease node ids: ./ ],

    # Numbers at their limits
    (map { [ "lease id $_", with(0, $_), $no_sense ] } 0, -1, '-9223372036854775808'),
    (map { [ "lease id $_", with(0, $_), $no_lease ] } '9223372036854775808', '-9223372036854775809', '9' x 40),
    (map { [ "first node id $_", with(1, $_), $no_sense ] } -1, 131072, 2147483647, -2147483648),
    (map { [ "first node id $_", with(1, $_), $no_lease ] }
          2147483648, -2147483649, '9223372036854775807', '4294967303'),
    (map { [ "node count $_", with(2, $_), $no_sense ] } 0, 2, -1, 2147483647, -2147483648),
    [ 'a lease that ends before it begins', lease(1, 7, 1, $good[3], $good[3] - 1), $no_sense ],
    [ 'a lease from -2^63', with(3, '-9223372036854775808'), $no_sense ],
    [ 'a lease before the first identifier', lease(1, 7, 1, 1_600_000_000, 1_600_000_060), $no_sense ],
);
for my $case (@answers) {
    my ($name, $answer, $error) = @$case;
    # What was told before must go, for the next error may have the same text.
    $impostor->play(answer => sub { say_to($_[0], report('XX000', "before $name")) });
    ask_again();
    told(qr/before \Q$name\E/, "$name: is next") or last;
    $impostor->play(answer => sub { say_to($_[0], $answer) });
    ask_again();
    told($error, "$name: is no lease");
    is(status_of($node, 'lease_id IS NULL AND window_end IS NULL'), 't', "$name: none is held");
    if ($error eq $no_lease) { caller_is_told($unusable, $name) }
}
$impostor->play(answer => sub { say_to($_[0], with(3, 9e18) =~ s/9e\+18/9000000000000000000/r) });

done_testing();
