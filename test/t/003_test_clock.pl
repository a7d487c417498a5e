# Checks the clock that tests give to servers (lib/clock.c): no process reads a half-written time.
# Other tests notice if a server's processes see different clocks, or if servers share a clock.
use Randflake;

my $node = new_server('main');
start_under_clock($node);

# A step across 2^60 ns changes most bits, so a half-written time would equal neither time.
my @times = qw(1152921504.606846 1152921504.606847);
clock_stands_at($node, $times[0]);
my $session = start_session($node,
    "SELECT string_agg(DISTINCT extract(epoch FROM clock_timestamp())::text, ' ') FROM generate_series(1, 2000000)");
my $steps = 0;
while ($session->{handle}->pumpable) {
    clock_stands_at($node, $times[ $steps++ % 2 ]) for 1 .. 100;
    $session->{handle}->pump_nb;
}
my ($shown, $errors) = finish_session($session);
is("$shown$errors", "@times", "$steps steps, and none by halves");
$node->stop;
done_testing();
