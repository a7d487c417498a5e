# The test's coordinator sends arbitrary answers or none. The server must issue no identifier,
# report what happened, and stop on request. Callers must not see the coordinator's text.
use Randflake;
use RandflakeImpostor;
use RandflakeLease;
use RandflakeWindowFile;
use Time::HiRes qw(sleep time);

my @types = @lease_types;
my $impostor = RandflakeImpostor->new;
my $other = RandflakeImpostor->new;    # refuses
$other->play(answer => sub { say_to($_[0], report('55000', 'another refusal') . ready()) });
my $node = new_server('holder', settings => {},
    conf => "log_min_messages = log\nlc_messages = 'C'\nrestart_after_crash = on\n");

# Replaces the settings file. The settings in `more` last until the next call.
sub settings(%more) {
    configure($node, secret => 'c0ffee00c0ffee00c0ffee00c0ffee00', max_wait => 0,
        lease_duration => 60, coordinator => $impostor->connstr, %more);
}

sub ask_again {
    settings(@_);
    $node->reload;
}

settings();
$impostor->play(answer => \&silence);
$node->start;
$node->sql('CREATE EXTENSION randflake; CREATE ROLE ordinary LOGIN');

# If any process crashed, this session and the worker would end.
my $session = $node->background_psql('postgres');
$session->set_query_timer_restart;
my $backend = $session->query_safe('SELECT pg_backend_pid()');
my $worker = lease_worker_of($node);

sub told($pattern, $test_name) {
    my $error;
    wait_until { ($error = status_of($node, 'lease_error')) =~ $pattern };
    like($error, $pattern, $test_name);
    return $error;
}

sub caller_is_told($detail, $test_name) {
    my $error = error_of($node, 'SELECT randflake_generate()', user => 'ordinary');
    is($error->{sqlstate}, '55000', "$test_name: nothing is issued") or diag($error->{text});
    like($error->{detail}, $detail, "$test_name: callers are told the kind");
    (my $timeless = $error->{text}) =~ s/\d{4}-\d\d-\d\d [\d:.]+//g;    # microseconds may look like a port
    unlike($timeless, qr/leaser|\Q$impostor->{directory}\E|leak|5432/, "$test_name: and nothing of the connection");
}

my $since = qr/since \d{4}-\d\d-\d\d .*\d\.$/;
my $unusable = qr/^The coordinator has given no usable answer $since/;
my $no_answer = qr/^The coordinator has not answered $since/;

sub error_text { return report('XX000', $_[0]) . ready() }

# Makes the server report another error, because its present error may be the expected one.
sub is_next($name) {
    $impostor->play(answer => sub { say_to($_[0], error_text("before $name")) });
    ask_again();
    told(qr/before \Q$name\E/, "$name: is next");
}

sub told_after($answer, $pattern, $test_name, %settings) {
    is_next($test_name);
    $impostor->play(answer => sub { say_to($_[0], $answer) });
    ask_again(%settings);
    return told($pattern, $test_name);
}

# --- shapes of answers ---------------------------------------------------------------------------
my $now = time;
my @good = (1, 7, 1, int($now) - 5, int($now) + 60, 1000 * int($now), undef);
my $row = row_description(columns(@types)) . data_row(@good);
my $no_lease = qr/^could not lease node ids: the coordinator sent a row that is no lease of node ids$/;
my $no_row = qr/^could not lease node ids: the coordinator sent something else than one row$/;
my $no_sense = qr/^could not lease node ids: the coordinator granted a lease that makes no sense$/;

sub with($column, $value) {
    my @values = @good;
    $values[$column] = $value;
    return lease(@values);
}

sub with_types {
    my @other = @_;
    return row_description(columns(@other)) . data_row(@good) . complete() . ready();
}

# These answers cover each kind of result that libpq returns. test/unit/lease_answer_test.cpp
# tests more shapes and numbers, and lease_test.cpp tests more leases.
my @answers = ([ 'no column', row_description() . data_row() . complete() . ready(), $no_lease ],
    [ 'more columns', row_description(columns(@types, INT8)) . data_row(@good, 1) . complete() . ready(), $no_lease ],
    [ 'fewer values than columns',
        row_description(columns(@types)) . data_row(@good[ 0 .. 1 ]) . complete() . ready(),
        qr/^could not lease node ids: / ],
    [ 'a null', with(1, undef), $no_lease ],
    [ 'a number of 100,000 digits', with(1, '0' x 100_000 . 'leak'), $no_lease ],
    [ 'a zero byte in a number', with(1, "7\0"), $no_lease ],
    [ 'text where int8 is due', with_types(TEXT, @types[ 1 .. 6 ]), $no_lease ],
    [ 'int8 where int4 is due', with_types(INT8, INT8, (@types)[ 2 .. 6 ]), $no_lease ],
    [ 'binary format',
        (row_description(columns(@types)) =~ s/\0\0(?=column|$)/\0\x01/gr) . data_row(@good) . complete() . ready(),
        $no_lease ],
    [ 'no row', row_description(columns(@types)) . complete('SELECT 0') . ready(), $no_row ],
    [ 'two rows', $row . data_row(@good) . complete('SELECT 2') . ready(), $no_row ],
    [ 'two results', $row . complete() . $row . complete() . ready(), $no_row ],
    [ 'a row and then a command', $row . complete() . complete('INSERT 0 1') . ready(), $no_row ],
    [ 'an empty query', message('I', '') . ready(), $no_row ],
    [ 'nothing but readiness', ready(), $no_row ],
    [ 'CopyIn', message('G', pack 'C n n', 0, 1, 0), $no_row ],
    [ 'CopyOut', message('H', pack 'C n n', 0, 1, 0) . message('d', 'leak'), $no_row ],
    [ 'CopyBoth', message('W', pack 'C n n', 0, 1, 0), $no_row ],
    [ 'an open transaction', $row . complete() . ready('T'),
        qr/^could not lease node ids: the coordinator has not committed what it answered$/ ],
    [ 'an error after the row', $row . report('40001', 'could not serialize') . ready(),
        qr/^could not lease node ids: could not serialize$/ ],
    [ 'a warning after the completion', $row . complete()
          . report('01000', 'a late one', type => 'N', severity => 'WARNING') . ready(),
        qr/^could not lease node ids: a late one$/ ],
    [ 'a message that is shorter than its length', pack('A N', 'D', 3), qr/^could not lease node ids: ./ ],
    [ 'an error without fields', message('E', "\0") . ready(), qr/^could not lease node ids: ./ ],
    [ 'lease id 0', with(0, 0), $no_sense ],
    [ 'a lease that ends before it begins', lease(1, 7, 1, $good[3], $good[3] - 1), $no_sense ]);
for my $case (@answers) {
    my ($name, $answer, $error) = @$case;
    told_after($answer, $error, "$name: is no lease");
    is(status_of($node, 'lease_id IS NULL AND window_end IS NULL'), 't', "$name: none is held");
    if ($error eq $no_lease) { caller_is_told($unusable, $name) }
}

# --- text --------------------------------------------------------------------------------------
is( told_after(error_text("Gr\xf6\xdfe"), qr/Gr/, 'Latin-1') =~ s/.*: //r,
    'Gr??e', 'Latin-1: bytes that are no UTF-8 are replaced');
is( told_after(error_text("Gr\xc3\xb6\xc3\x9fe"), qr/Gr\xc3/, 'UTF-8') =~ s/.*: //r,
    "Gr\xc3\xb6\xc3\x9fe", 'UTF-8: stays');
my $controls = join '', map { chr } 1 .. 31, 127;
is( told_after(error_text("a${controls}b\xc2\x9bc\xe2\x82"), qr/: a/, 'control characters') =~ s/.*: //r,
    'a' . ('?' x 8) . '  ' . ('?' x 21) . '?b??c??', 'control characters: replaced');

# Sends an overlong sequence, a surrogate and a code point beyond Unicode.
is( told_after(error_text("x\xc0\xafy\xed\xa0\x80z\xf5\x80\x80\x80"), qr/: x/, 'bad UTF-8') =~ s/.*: //r,
    'x??y???z????', 'bad UTF-8: replaced');
for my $shift (0 .. 3) {
    my $error = told_after(error_text('s' x $shift . "\xf0\x9f\xa6\x86" x 7000),
        qr/: s{$shift}\xf0/, "a long text, shifted by $shift");
    like($error, qr/^could not lease node ids: s{$shift}(\xf0\x9f\xa6\x86){50,110}$/, '  cut between characters');
}
$node->sql("CREATE DATABASE $_->[0] ENCODING '$_->[1]' LOCALE 'C' TEMPLATE template0")
  for [ 'latin', 'LATIN1' ], [ 'ascii', 'SQL_ASCII' ], [ 'japanese', 'EUC_JP' ];
for my $database (qw(latin ascii japanese)) {
    $node->safe_psql($database, 'CREATE EXTENSION randflake');
    like($node->safe_psql($database, 'SELECT lease_error FROM randflake_status'),
        qr/^could not lease node ids: sss\?+$/, "$database: the text is of the database's encoding");
}
my $all_logged = slurp_file($node->logfile);
unlike($all_logged, qr/[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]/, 'no control character is logged');
ok(utf8::decode(my $decoded = $all_logged), 'the log is UTF-8');
like($impostor->startups, qr/client_encoding UTF8/, 'the coordinator is asked for UTF-8');

# --- passwords ---------------------------------------------------------------------------------
sub logged {
    return join "\n", grep { !/parameter "randflake.coordinator" changed/ } split /\n/, slurp_file($node->logfile);
}

my $passfile = $node->basedir . '/passfile';
append_to_file($passfile, "*:*:*:*:hunter2leak\n");
chmod 0600, $passfile;
$impostor->play(startup => sub {
        say_to($_[0], message('R', pack 'N', 3));
        my ($type, $body) = read_message($_[0]);
        say_to($_[0], report('28P01', 'what a password: ' . unpack('Z*', $body), severity => 'FATAL'));
    });
ask_again(coordinator => $impostor->connstr("passfile=$passfile"));
told(qr/withheld, because it contains the password/, 'a password that is quoted by the coordinator');
caller_is_told($no_answer, 'a password that is quoted');

my $malformed = qr/^could not lease node ids: "randflake.coordinator" is not a valid connection string$/;
for my $coordinator ("host=$impostor->{directory} password=hunter 2leak",
    "host=$impostor->{directory} password='hunter2leak",
    "host=$impostor->{directory} password=hunter pass2leak=x",
    'postgresql://leaser:hunter/2leak@ids.example.com/ids',
    'postgresql://leaser:hunter@2leak@ids.example.com/ids',
    'postgresql://leaser:hunter%2leak@ids.example.com/ids', 'hunter2leak') {
    is_next('malformed connection string');
    ask_again(coordinator => $coordinator);
    told($malformed, "malformed connection string: $coordinator");
    caller_is_told(qr/^The settings have not allowed a request to the coordinator $since/, '  is not quoted');
}
unlike(logged(), qr/hunter|2leak/, 'no part of a password is logged');

# --- kinds -------------------------------------------------------------------------------------
told_after(report('55000', 'no leak of node ids') . ready(), qr/no leak/, 'a refusal');
caller_is_told(qr/^The coordinator has refused $since/, 'a refusal');
told_after(report('42501', 'permission denied for leak') . ready(), qr/permission/, 'an error');
caller_is_told($unusable, 'an error');
ask_again(coordinator => "host=$impostor->{directory} port=5433 user=leaser");
told(qr/\Q$impostor->{directory}\E/, 'nobody listens: members of pg_monitor see where');
caller_is_told($no_answer, 'nobody listens');

my ($first) = error_of($node, 'SELECT randflake_generate()')->{detail} =~ /since (.*)\.$/;
sleep 1;
ask_again(coordinator => "host=$impostor->{directory} port=5434 user=leaser");
told(qr/5434/, 'nobody listens there either');
is(error_of($node, 'SELECT randflake_generate()')->{detail},
    "The coordinator has not answered since $first.", 'since the first failure');

# --- endless answers ---------------------------------------------------------------------------
sub asking { return split ' ', `ps -o pid= --ppid $worker` }

sub memory {
    my $most = 0;
    for my $pid ($worker, asking()) {
        open my $in, '<', "/proc/$pid/status" or next;
        /^VmHWM:\s+(\d+)/ and $1 > $most and $most = $1 while <$in>;
    }
    return $most / 1024;
}
my $most_memory = 64;
my $row_of = sub { row_description(columns(@types)) . pack 'A N', 'D', $_[0] };
my $block = "\0" x 1_000_000;

my $endless_settings = sub ($client) {
    my $n = 0;
    say_to($client, join '', map { parameter('leak' . $n++, 'x' x 10000) } 1 .. 10) while 1;
};

my @endless = ([ 'silence', answer => \&silence ],
    [ 'silence at the door', startup => \&silence ],
    [ 'half a message', answer => sub { say_to($_[0], substr $row, 0, length($row) - 3); silence() } ],
    [ 'half a welcome', startup => sub { say_to($_[0], substr welcome(), 0, 30); silence() } ],
    [ 'a byte a second', answer => sub { byte_a_second($_[0], $row) } ],
    [ 'a byte a second at the door', startup => sub { byte_a_second($_[0], welcome()) } ],
    [ 'notices at the door', startup => sub {
            say_to($_[0], message('R', pack 'N', 0));
            repeat($_[0], report('00000', 'leak', type => 'N', severity => 'NOTICE')) } ],
    [ 'settings at the door', startup => sub { say_to($_[0], message('R', pack 'N', 0)); $endless_settings->($_[0]) } ],
    [ 'settings', answer => $endless_settings ],
    [ 'a row of a gigabyte, header first', answer => sub { say_to($_[0], $row_of->(1 << 30)); sleep 0.3;
            repeat($_[0], $block) } ],
    # A client that accepted this iteration count would compute two billion rounds of a hash.
    [ 'a password to be hashed without end', startup => sub {
            say_to($_[0], message('R', pack 'N Z* x', 10, 'SCRAM-SHA-256'));
            my ($type, $body) = read_message($_[0]);
            my ($nonce) = $body =~ /r=(.*)$/s;
            say_to($_[0], message('R', pack('N', 11) . "r=${nonce}leak,s=c2FsdA==,i=2147483647"));
            silence() } ]);

# These answers begin with the first text, and repeat the second.
for ([ 'notifications', '', message('A', pack 'N Z* Z*', 1, 'leak', 'x' x 10000) ],
    [ 'a row of a gigabyte', $row_of->(1 << 30), $block ],
    [ 'a row of 30 MB and more of them', '', $row_of->(4 + (30 << 20)) . "\0" x (30 << 20) ],
    [ 'rows', row_description(columns(@types)), data_row(@good) ],
    [ 'row descriptions', '', row_description(columns(@types)) ],
    [ 'completions', '', complete() ],
    [ 'readiness', '', ready() ],
    [ 'CopyOut', message('H', pack 'C n n', 0, 1, 0), message('d', 'leak') ],
    [ 'CopyBoth', message('W', pack 'C n n', 0, 1, 0), message('d', 'leak') ],
    [ 'notices', '', report('00000', 'leak', type => 'N', severity => 'NOTICE') ],
    [ 'warnings', '', report('01000', 'leak', type => 'N', severity => 'WARNING') ]) {
    my ($name, $first, $again) = @$_;
    push @endless, [ $name, answer => sub { say_to($_[0], $first); repeat($_[0], $again) } ];
}
my %at_once = map { $_ => $unusable } 'rows', 'row descriptions', 'completions', 'CopyOut', 'CopyBoth',
  'notices', 'warnings', 'readiness';
# The server reacts in under a second unless a request blocks it. The test tries up to five times.
my $patience = 5;
for my $case (@endless) {
    my ($name, %scenario) = @$case;
    my ($dropped, $reloaded);
    for (1 .. 5) {
        is_next("endless $name");
        $impostor->play(%scenario);
        $node->sql('CREATE DATABASE dropped TEMPLATE template0');
        my $connected = length $impostor->startups;
        ask_again(coordinator => $impostor->connstr("passfile=$passfile"));
        wait_until { length $impostor->startups > $connected };
        my $memory = 0;
        my $began = time;
        $node->sql('DROP DATABASE dropped');
        $dropped = time - $began;
        while (time < $began + 2) {
            my $now = memory();
            $memory = $now if $now > $memory;
            sleep 0.02;
        }
        cmp_ok($memory, '<', $most_memory, "endless $name: takes no memory");
        if ($at_once{$name}) {
            told(qr/^could not lease node ids: (?!before)/, "endless $name: ended at once");
            caller_is_told($at_once{$name}, "endless $name");
        }
        my $reloading = time;
        ask_again(coordinator => $other->connstr);
        told(qr/another refusal/, "endless $name: a reload asks another coordinator");
        $reloaded = time - $reloading;
        last if $dropped < $patience && $reloaded < $patience;
    }
    cmp_ok($dropped, '<', $patience, "endless $name: a database can be dropped");
    cmp_ok($reloaded, '<', $patience, "endless $name: at once");
}

# --- the server lives --------------------------------------------------------------------------
is($session->query_safe('SELECT pg_backend_pid()'), $backend, 'the session from the beginning goes on');
is(lease_worker_of($node), $worker, 'and so does the worker');
is_deeply([ asking() ], [], 'which has no process left over');
my $log = slurp_file($node->logfile);
unlike($log, qr/terminated by signal|exited with|PANIC|TRAP/, 'no process crashed');
unlike($log, qr/^(?:NOTICE|WARNING):/m, 'libpq has printed nothing to the log');

# --- deadlines ---------------------------------------------------------------------------------
for my $case (@endless[ 0, 4, 1, 5 ]) {
    my ($name, %scenario) = @$case;
    told_after(error_text('before'), qr/before/, "deadline, $name: is next");
    $impostor->play(%scenario);
    my $began = time;
    ask_again();
    told(qr/did not answer in time|timeout expired/, "deadline, $name");
    cmp_ok(time - $began, '<', 60, "deadline, $name: it counts all of the exchange");
    caller_is_told($no_answer, "deadline, $name");
}

# If abandoned requests use up the role's connection limit, the server still shows the first error.
told_after(error_text('before'), qr/before/, 'abandoned requests: is next');
$impostor->play(answer => \&silence);
ask_again();
told(qr/did not answer in time$/, 'abandoned requests');
$impostor->play(startup => sub { say_to($_[0], report('53300', 'too many connections for role "leaser"', severity => 'FATAL')) });
told(qr/did not answer in time, and then: .*too many connections/, 'abandoned requests: the first cause is named');
like($impostor->startups, qr/default_transaction_isolation=read.* committed -c statement_timeout=/,
    '  and on the coordinator they end by themselves');

# --- stopping ----------------------------------------------------------------------------------
$session->quit;
for my $case (@endless) {
    my ($name, %scenario) = @$case;
    next if $at_once{$name};
    $impostor->play(%scenario);
    my $took;
    for (1 .. 5) {
        ask_again(coordinator => $impostor->connstr("passfile=$passfile"));
        sleep 0.5;
        my $began = time;
        $node->stop('fast');
        $took = time - $began;
        $node->start;
        $worker = lease_worker_of($node);
        last if $took < $patience;
    }
    cmp_ok($took, '<', $patience, "endless $name: stops fast");
}

# --- until when ----------------------------------------------------------------------------------
# A refusal may contain the time of the next possible grant. The server ignores invalid times.
my $soon = int(time) + 3600;
my $refused = qr/The coordinator has refused since \d{4}-\d\d-\d\d [^.]*\.\d+\+\d\d\./;
my $then = $node->sql("SELECT to_timestamp($soon)");
for my $case (
    [ 'a refusal', '55000', $soon, qr/^$refused The coordinator grants none before \Q$then\E\.$/ ],
    [ 'no free node id', '53400', $soon, qr/^$refused The coordinator grants none before \Q$then\E\.$/ ],
    [ 'another error', 'XX000', $soon, $unusable ],
    [ 'no free node id and no time', '53400', undef, $unusable ],
    [ 'a time that is over', '55000', $soon - 7200, qr/^$refused$/ ],
    [ "a refusal until 'leak'", '55000', 'leak', qr/^$refused$/ ]) {
    my ($name, $sqlstate, $column, $detail) = @$case;
    told_after(report($sqlstate, "refused: $name" =~ s/[^ -~]//gr, column => $column) . ready(),
        qr/could not lease node ids: refused: /, "$name: is told");
    caller_is_told($detail, $name);
}

# --- limits of time ----------------------------------------------------------------------------
my @renewal = ([ lease_end => INT8 ], [ clock_ms => INT8 ], [ differs_from => INT8 ]);

sub renewal($last, $clock = undef) {
    return row_description(@renewal) . data_row($last, $clock // 1000 * int(time), undef) . complete() . ready();
}

# Starts the server without its marker, so it has no lease and asks for one. The impostor grants the
# lease that the block returns. The impostor answers each renewal with the end of the granted lease.
# So on a slow machine, a late renewal cannot change the lease.
my $given_back = $node->basedir . '/given_back';

sub start_with :prototype(&%) {
    my ($granted, %settings) = @_;
    $node->stop('fast');
    unlink run_marker_path($node), $given_back;
    $impostor->play(answer => sub {
        my ($client, $request) = @_;
        my @granted = $granted->();
        return say_to($client, $request =~ /_renew/ ? renewal(@granted[ 4, 5 ]) : lease(@granted)) if $request !~ /_release/;
        append_to_file($given_back, "yes\n");
        say_to($client, row_description([ randflake_lease_release => 2278 ]) . data_row('') . complete() . ready());
    });
    settings(%settings);
    $node->start;
}

start_with { (1, 7, 1, int(time) - 1000, int(time) - 900) };
told(qr/^lease 1, from .* to .*, has ended by this server's clock$/, 'a lease in the past');
my $clocks = qr/The clocks of this server and of the coordinator have differed $since/;
caller_is_told(qr/^It ended at .* $clocks/, 'a lease in the past');
for my $second (4_102_444_800, '9223372036854775807') {    # 2100-01-01
    start_with { (1, 7, 1, $second, $second) };
    told($no_sense, "a lease at $second");
    caller_is_told($unusable, "a lease at $second");
}
start_with { (1, 7, 1, int(time) + 1000, int(time) + 1050) } lease_duration => '20min';
told(qr/^lease 1, .*, has not begun by this server's clock$/, 'a lease that has not begun');
caller_is_told(qr/^It begins at /, 'a lease that has not begun');

for my $case ([ '3600', 'behind' ], [ '-3600', 'ahead of' ], ['9223372036854775'], ['-9223372036854775']) {
    my ($clock, $direction) = @$case;
    start_with { (1, 7, 1, int(time) - 1000, int(time) - 900, ($direction ? int(time) + $clock : $clock) . '000') };
    my $by = $direction ? qr/, which is 3[56]\d\d\.\d{3} seconds $direction the coordinator's, give or take \d+ ms/ : '';
    told(qr/^lease 1, .*, has ended by this server's clock$by$/, "a coordinator whose clock shows $clock");
    caller_is_told($direction ? qr/This server's clock is 3[56].* seconds $direction the coordinator's, give or take \d+ ms\.$/ : $clocks,
        "a coordinator whose clock shows $clock");
}

# The server requests a lease of 60 seconds. If a lease exceeds 60 seconds plus the tolerated
# difference of clocks, the server gives the lease back, because it cannot shorten a window.
for my $case ([ 'ten years', undef, 10 * 365 * 86400 ],
    [ 'all of time', 1_730_000_001, 9223372036854775807 - 1_730_000_001 ],
    [ 'a minute more', undef, 123 ]) {
    my ($name, $begin, $length) = @$case;
    start_with {
        my $first = $begin // int(time);
        ('9223372036854775807', 131071, 1, $first, $first + $length);
    };
    told(qr/^could not lease node ids: the coordinator granted a lease to 20\d\d-.*, but 60 seconds were asked for at 20\d\d-.* by this server's clock$/,
        "a lease of $name: is not taken");
    caller_is_told($unusable, "a lease of $name");
    is(status_of($node, 'lease_id IS NULL AND window_end IS NULL'), 't', "a lease of $name: none is held");
    ok(-s $given_back, "a lease of $name: is given back");
}

my $later = int(time) + 2000;
start_with { (1, 7, 1, $later, $later + 59) };
told(qr/^lease 1, .*, ends too late by this server's clock$/,
    'a lease as long as asked for that begins later: the clock is named');
caller_is_told(qr/^It begins at /, 'a lease that begins later');

start_with { ('9223372036854775807', 131071, 1, 1_730_000_001, int(time) + 55) };
wait_for_lease($node);
is(status_of($node, 'lease_id, first_node_id, lease_error IS NULL'), '9223372036854775807|131071|t',
    'the largest numbers');

# --- renewals ----------------------------------------------------------------------------------
my $end = int(time) + 1000;
start_with { (1, 7, 1, int(time) - 5, $end) } lease_duration => '20min';
wait_for_lease($node);
my $shown = 1000 * int(time);
my $could_not = 'could not renew the lease of node ids: ';
for my $case ([ 'null', renewal(undef) ],
    [ 'one column', row_description($renewal[0]) . data_row($end) . complete() . ready() ],
    [ 'CopyIn', message('G', pack 'C n n', 0, 1, 0) ],
    [ 'two rows', row_description(@renewal) . data_row($end + 50, $shown, undef) x 2 . complete() . ready() ], ) {
    my ($name, $answer) = @$case;
    told_after($answer, qr/^${could_not}the coordinator sent/, "renewal, $name: is none", lease_duration => '20min');
    is(status_of($node, 'lease_id, extract(epoch FROM window_end)::bigint'), '1|' . ($end + 1),
        "renewal, $name: the lease stays as it was");
}
is($node->sql('SELECT count(randflake_generate())'), 1, 'and identifiers go on');
for my $case ([ '-9223372036854775808', $end + 1 ], [ 0, $end + 1 ], [ $end + 100, $end + 101 ]) {
    my ($last, $expected) = @$case;
    $impostor->play(answer => sub { say_to($_[0], renewal($last)) });
    my $extensions = status_of($node, 'window_extensions');
    ask_again(lease_duration => '20min');
    wait_for_status($node, "window_extensions > $extensions");
    is(status_of($node, 'extract(epoch FROM window_end)::bigint'), $expected, "renewed to $last");
}

my $wanted = $node->basedir . '/wanted';
$impostor->play(answer => sub {
    my ($client, $request) = @_;
    append_to_file($wanted, $request =~ /(randflake_lease_\w+)/ ? "$1\n" : "?\n");
    return say_to($client, report('55000', 'no lease any more') . ready()) if $request !~ /lease_renew/;
    say_to($client, renewal('4611686018427387904'));
});
my $offset = -s $node->logfile;
ask_again(lease_duration => '20min');
told(qr/^could not lease node ids: no lease any more$/, 'renewed to 2^62: another lease is asked for');
log_has($node, qr/LOG: .*${could_not}the coordinator renewed it to 2058-.*, but 1200 seconds were asked for at 20\d\d-.* by this server's clock$/m,
    '  the answer is named', $offset);
is(status_of($node, 'lease_id, extract(epoch FROM window_end)::bigint'), '1|' . ($end + 101), '  the lease keeps its end');
is($node->sql('SELECT count(randflake_generate())'), 1, '  and identifiers go on');
like(slurp_file($wanted), qr/^randflake_lease_renew\n(?:randflake_lease_acquire\n)+$/, '  it is not renewed again');

$impostor->play(answer => \&silence);
my $began = time;
$node->stop('fast');
cmp_ok(time - $began, '<', 2 * $patience, 'stops fast with a lease that no coordinator takes back');
log_has($node, qr/lease 1 of node ids is not given back/, '  and says so');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process crashed to the end');
done_testing();
