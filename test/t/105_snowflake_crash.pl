# Crashes, stops and restarts under load, as 100_crash.pl has them, for Snowflake identifiers.

use Randflake;

do './test/t/100_crash.pl' or die $@ || $!;
