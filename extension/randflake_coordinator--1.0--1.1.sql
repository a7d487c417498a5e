\echo Use "ALTER EXTENSION randflake_coordinator UPDATE TO '1.1'" to load this file. \quit
