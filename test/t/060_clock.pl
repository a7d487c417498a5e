# The clock at the ends of what an identifier can hold, at the middle, where the top bit turns on,
# and stepped back.

use Randflake;

my $first = 1730000000;              # 2024-10-27 03:33:20
my $top_bit = $first + (1 << 29);    # 2041-11-01 10:21:52
my $last = $first + (1 << 30) - 1;   # 2058-11-05 17:10:23

my $node = new_server('main',
    settings => { node_id => 1, secret => random_secret(), max_wait => '60s' });

sub start_at {
    my ($time) = @_;
    $node->stop if $node->{_pid};
    clock_runs_from($node, $time);
    start_under_clock($node);
}

# Makes some identifiers at this time of the clock, which must show in them.
sub generates_at {
    my ($time, $name) = @_;
    clock_stands_at($node, $time);
    $node->safe_psql('postgres', 'INSERT INTO made SELECT randflake_generate(1000)');
    is($node->safe_psql('postgres',
            'SELECT count(*) FROM made, randflake_decode(id)'
              . " WHERE extract(epoch FROM generated_at) = $time"
              . " AND randflake_generated_at(id) = generated_at"),
        1000, "generates $name");
}

# --- before the beginning --------------------------------------------------------------------

start_at($first - 3600);
$node->safe_psql('postgres', 'CREATE EXTENSION randflake; CREATE TABLE made (id bigint)');
clock_stands_at($node, $first - 1);
for my $max_wait (0, 100) {
    error_is($node,
        "SET timezone = 'UTC'; SET randflake.max_wait = $max_wait; SELECT randflake_generate()",
        '22008',
        {
            message => qr/clock is before the first second/,
            detail => qr/2024-10-27 03:33:19.*2024-10-27 03:33:20/,
            hint => qr/clock/
        },
        "before the first second, max_wait $max_wait: generate fails");
}
is( $node->safe_psql('postgres',
        "SELECT sequence FROM randflake_decode(randflake_encode(to_timestamp($last), 1, 2))"),
    2, 'before the first second: decode and encode work');

# --- the middle ------------------------------------------------------------------------------

start_at($top_bit - 60);
$node->safe_psql('postgres', 'INSERT INTO made SELECT randflake_generate()');
generates_at($top_bit - 1, 'in the last second without the top bit');
generates_at($top_bit, 'in the first second with the top bit');
generates_at($top_bit + 1, 'in the next');

# --- the end ---------------------------------------------------------------------------------

start_at($last - 60);
$node->safe_psql('postgres', 'INSERT INTO made SELECT randflake_generate()');
generates_at($last - 1, 'in the last second but one');
generates_at($last, 'in the last second');
for my $time ($last + 1, $last + 1000) {
    clock_stands_at($node, $time);
    for my $max_wait (0, 100) {
        error_is($node,
            "SET timezone = 'UTC'; SET randflake.max_wait = $max_wait; SELECT randflake_generate()",
            '22008',
            {
                message => qr/clock is after the last second/,
                detail => qr/2058-11-05 17:\d\d:\d\d.*2058-11-05 17:10:23/,
                hint => qr/clock/
            },
            "after the last second, max_wait $max_wait: generate fails");
    }
}
all_distinct($node, 'SELECT id FROM made', 5002, 'nothing twice');
$node->stop;

# --- stepped back ----------------------------------------------------------------------------

# A slot goes on in its own second, until that is used up; with one node id, there is no other.
my $now = int time;
my $back = new_server('back',
    settings => { node_id => 1, secret => random_secret(), max_wait => '60s' });
clock_runs_from($back, $now);
start_under_clock($back);
$back->safe_psql('postgres',
    'CREATE EXTENSION randflake; CREATE TABLE made (id bigint); SELECT randflake_generate()');
my $second = $now + 60;
clock_stands_at($back, $second);
$back->safe_psql('postgres', 'INSERT INTO made SELECT randflake_generate(1000)');
for my $step (1, 600, 3600) {
    clock_stands_at($back, $second - $step);
    $back->safe_psql('postgres', 'INSERT INTO made SELECT randflake_generate(1000)');
}
all_distinct($back, 'SELECT id FROM made', 4000, 'stepped back: nothing twice');
my $fields = fields_of($back, 'SELECT id FROM made');
is("$fields->{first_second} $fields->{last_second}", "$second $second",
    'stepped back: goes on in the second it had reached');

error_is($back, 'SET randflake.max_wait = 0; SELECT count(*) FROM randflake_generate(131072)', '55000',
    {
        message => qr/clock is 3600 seconds behind the last identifier/,
        hint => qr/clock.*"randflake\.node_id"/
    },
    'stepped back, and the second is used up: generate fails', problem => 1);

# When the clock has caught up, all is well.
my $session =
  start_session($back, 'INSERT INTO made SELECT randflake_generate() FROM generate_series(1, 1000)');
wait_until_waiting($back, 1);
clock_stands_at($back, $second + 1);
is((finish_session($session))[1], '', 'stepped back: a session waits until the clock has caught up');
all_distinct($back, 'SELECT id FROM made', 5000, 'caught up: nothing twice');
is(fields_of($back, 'SELECT id FROM made')->{last_second}, $second + 1,
    'caught up: the next second is in use');

$back->stop;
done_testing();
