# The crashes, stops and restarts under load of 100_crash.pl, for Snowflake identifiers.

use Randflake;

do './test/t/100_crash.pl' or die $@ || $!;
