# The even rounds of 142_handover.pl.

use Randflake;

do './test/t/142_handover.pl' or die $@ || $!;
