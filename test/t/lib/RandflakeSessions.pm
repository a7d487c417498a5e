# Runs SQL four times as fast as PostgreSQL::Test::Cluster, which starts psql for each call. This
# module replaces two methods: `poll_query_until`, and `psql`, which `safe_psql` calls. The module
# sends SQL to the server through DBD::Pg. Each call has its own session, and each statement its own
# transaction. Results and errors look like psql's, but errors have no line numbers, and a statement
# on a table with rules may print a different result. SQL that needs psql runs in psql.
#
# A new session must fill its caches of the catalogs, which takes most of the time of a short call.
# A test that sets $keep uses sessions again. Before each call, DISCARD ALL resets the session.

package RandflakeSessions;

use v5.36;

use DBD::Pg qw(:async);
use DBI ();
use IO::Select ();
use PostgreSQL::Test::Cluster;
use Randflake ();
use Test::More;
use Time::HiRes qw(time);

our $keep = 0;
my %kept; # idle connections, by database and user

our $program = PostgreSQL::Test::Cluster->can('psql');
{
    no warnings 'redefine';
    *PostgreSQL::Test::Cluster::psql = \&psql;
    *PostgreSQL::Test::Cluster::poll_query_until = \&poll_query_until;
}

# Splits a text into statements as psql does. Returns nothing if the text may contain input for
# psql: a backslash, or rows for COPY. Leaves \gexec at the end of the last statement.
sub statements_of($sql) {
    return if $sql =~ /\\(?!gexec\s*\z)|\bCOPY\b.*\bSTD(?:IN|OUT)\b|\bBEGIN\s+ATOMIC\b/is;
    my ($depth, @statements) = (0, '');
    while ($sql =~ m{\G('[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|(\$\w*\$).*?\g2|[^-/'"\$;()]+|.)}gs) {
        my $part = $1;
        if ($part eq ';' && $depth == 0) {
            push @statements, '';
            next;
        }
        $depth += $part eq '(' ? 1 : $part eq ')' ? -1 : 0;
        $statements[-1] .= $part;
    }
    return map { s/^\s+//r } grep { s{--[^\n]*|/\*.*?\*/}{}gsr =~ /\S/ } @statements;
}

# Returns a value as text, because DBD::Pg turns some types into Perl values.
sub text_of($value, $type) {
    return '' if !defined $value;
    return '\x' . unpack 'H*', $value if $type eq 'bytea';
    return $value if $type ne 'float8';
    return $value =~ s/Inf/Infinity/r if $value =~ /[a-z]{3}/i;
    # Finds the shortest text that Perl reads as this number. The server prints this text too.
    my ($shortest) = grep { $_ == $value } map { sprintf "%.${_}g", $value } 15 .. 17;
    return $shortest;
}

# Returns the last statement's error. Newer DBD::Pg has no text for cancelled statements.
sub error_text($connection, $verbosity) {
    return 'ERROR:  ' . $connection->state if $verbosity eq 'sqlstate';
    return $connection->errstr
      // 'ERROR:  ' . ($verbosity eq 'verbose' ? $connection->state . ': ' : '') . $connection->pg_error_field('message_primary');
}

# Runs a statement, or dies at the time $give_up_at. Returns rows as text, and whether the statement
# succeeded. If $made is a list, adds the values to this list instead.
sub run($connection, $statement, $give_up_at, $made = undef) {
    my $handle = $connection->prepare($statement, { pg_direct => 1, pg_async => PG_ASYNC });
    $handle->execute or return;
    my $socket = IO::Select->new($connection->{pg_socket});
    until ($connection->pg_ready) {
        my $rest = $give_up_at ? $give_up_at - time : undef;
        if (defined $rest && $rest <= 0) {
            $connection->pg_cancel; # without this the handle waits
            die "timed out\n";
        }
        $socket->can_read($rest);
    }
    my $rows = $connection->pg_result or return;
    # Newer versions of DBD::Pg report a cancelled statement as if it had no rows.
    return if $connection->state eq '57014';
    return ('', 1) if !$handle->{NUM_OF_FIELDS};
    my $types = $handle->{pg_type};
    my $text = '';
    while (my $row = $handle->fetchrow_arrayref) {
        push @$made, grep { defined } @$row if $made;
        next if $made;
        $text .= join('|', map { text_of($row->[$_], $types->[$_]) } 0 .. $#$row) . "\n";
    }
    return ($text, 1);
}

# Returns a connection that is kept, if its server still answers.
sub kept($where) {
    my $connection = delete $kept{$where} or return;
    return $connection if eval { run($connection, 'DISCARD ALL', 0) };
    $connection->disconnect;
    return;
}

# Keeps a connection whose transaction has ended, or else disconnects.
sub keep($where, $connection) {
    return $connection->disconnect if !$keep || $connection->ping != 1;
    $kept{$where} = $connection;
}

sub psql {
    my ($node, $database, $sql, %options) = @_;
    my %given = %options;
    my $where = delete $given{connstr} // $node->connstr($database);
    my ($out, $err) = delete @given{qw(stdout stderr)};
    my $stop = delete $given{on_error_stop} // 1;
    my ($die, $timeout, $timed_out) = delete @given{qw(on_error_die timeout timed_out)};
    my %parameter = @{ delete $given{extra_params} // [] };
    my $user = delete $parameter{'-U'};
    my ($verbosity) = ($parameter{'-v'} // '') =~ /^VERBOSITY=(verbose|sqlstate)$/;
    delete $parameter{'-v'} if $verbosity;
    $verbosity //= 'default';
    my @statements = statements_of($sql);
    goto &{ $program } if !@statements || %given || %parameter;

    my ($output, $errors) = ('', '');
    local $SIG{__WARN__} = sub { $errors .= "psql: $_[0]" };
    $where .= " user='$user'" if defined $user;
    $$timed_out = 0 if $timed_out;
    my $status = 0;
    # A session in a database would stop commands on this database.
    $_->disconnect for $sql =~ /\bDATABASE\b/ ? delete @kept{ keys %kept } : ();
    my $connection = kept($where) // DBI->connect("dbi:Pg:$where", '', '', { PrintError => 0, PrintWarn => 1 });
    if ($connection) {
        $connection->{$_} = 0 for qw(pg_enable_utf8 pg_expand_array);
        $connection->{pg_bool_tf} = 1;
        $connection->{pg_errorlevel} = $verbosity eq 'verbose' ? 2 : 1;
    } else {
        # Reports the error without psql, because IPC::Run may die if psql cannot connect.
        @statements = ();
        $errors .= 'psql: error: ' . DBI->errstr;
        $status = 2;
    }
    while (defined(my $statement = shift @statements)) {
        my $made = $statement =~ s/\\gexec\s*\z// ? [] : undef;
        my ($text, $good) = eval { run($connection, $statement, $timeout ? time + $timeout : 0, $made) };
        push @statements, @{ $made // [] };
        if ($@) {
            die $@ if $@ ne "timed out\n" || !$timed_out;
            $$timed_out = 1;
            $status = undef;
            last;
        }
        $output .= $text // '';
        next if $good;
        $errors .= 'psql: ' . error_text($connection, $verbosity) . "\n";
        $status = $connection->ping ? 3 : 2;
        last if $stop || $status == 2;
    }
    $status = 0 if !$stop && ($status // 0) == 3;
    keep($where, $connection) if $connection;

    chomp($output, $errors);
    $$out = $output if $out;
    $$err = $errors if $err;
    print $output, "\n", $errors, "\n" if !wantarray && !$out;
    die "error running SQL: '$errors'\nwhile running '$sql'" if $status && $die;
    return wantarray ? ($status, $output, $errors) : $status;
}

sub poll_query_until($node, $database, $query, $expected = 't') {
    my ($output, $errors);
    return 1 if &Randflake::wait_until(sub {
        (undef, $output, $errors) = $node->psql($database, $query);
        return $output eq $expected && $errors eq '';
    });
    diag("not $expected, but '$output' with errors '$errors', is what is returned by $query");
    return 0;
}

1;
