# Plays a server that speaks enough of PostgreSQL's protocol to receive a request for a lease. The
# impostor answers as a test wants, with any row or with garbage, or stands between a client and the
# real server and loses answers. It listens in its own process, on a Unix socket unless the test
# gives it a listener, and starts a process for each connection.

package RandflakeImpostor;

use Exporter 'import';
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Randflake;
use Time::HiRes qw(sleep);

use constant { INT4 => 23, INT8 => 20, TEXT => 25 };

our @EXPORT = qw(
  INT4 INT8 TEXT message row_description columns data_row complete ready parameter report lease @lease_types
  welcome read_message say_to silence repeat byte_a_second black_hole);

# --- messages ----------------------------------------------------------------------------------
sub message($type, $body = undef) { return $type . pack('N', 4 + length $body) . $body }

# Takes the columns of a row as a list of [name, type].
sub row_description {
    return message('T', pack('n', scalar @_)
          . join '', map { pack 'Z* N n N n N n', $_->[0], 0, 0, $_->[1], 8, -1, 0 } @_);
}

# Takes the values of a row; undef is NULL.
sub data_row {
    return message('D', pack('n', scalar @_)
          . join '', map { defined $_ ? pack('N', length $_) . $_ : pack('N', 0xffffffff) } @_);
}

sub complete { return message('C', pack 'Z*', $_[0] // 'SELECT 1') }
sub ready { return message('Z', $_[0] // 'I') }
sub parameter { return message('S', pack 'Z* Z*', @_) }

# Returns an error, or a notice if `type` is N. `column` becomes the report's column name.
sub report($sqlstate, $text, %options) {
    my $severity = $options{severity} // 'ERROR';
    return message($options{type} // 'E',
        join('', map { pack 'A Z*', @$_ } [ S => $severity ], [ V => $severity ], [ C => $sqlstate ],
            [ M => $text ], defined $options{column} ? [ c => $options{column} ] : ()) . "\0");
}

# The values of a coordinator's answer have these types. The last two values are optional: the
# coordinator's clock in milliseconds, and the start of the first secret that the holder lacks.
our @lease_types = (INT8, INT4, INT4, INT8, INT8, INT8, INT8);

sub columns { my $number = 1; return map { [ 'column' . $number++, $_ ] } @_ }

sub lease {
    return row_description(columns(@lease_types)) . data_row(@_[ 0 .. 4 ], $_[5] // 1000 * time, $_[6]) . complete() . ready();
}

# --- the server --------------------------------------------------------------------------------
my @impostors;

sub new($class, $listener = undef) {
    my $directory = tempdir_short();
    my $self = bless { directory => $directory }, $class;
    $self->{listener} = $listener // IO::Socket::UNIX->new(Local => "$directory/.s.PGSQL.5432", Listen => 10)
      // die "could not listen: $!";
    push @impostors, $self;
    return $self;
}

sub connstr($self, $more = undef) {
    return "host=$self->{directory} port=5432 dbname=postgres user=leaser " . ($more // '');
}

# Makes an impostor that stands before a server, and treats all connections as `mode` says:
# - `pass` passes everything on.
# - `cut` breaks the connection after the coordinator grants a lease and before its answer arrives.
# - `hang` accepts connections and sends nothing.
sub before($class, $server) {
    my $self = $class->new;
    my $target = $server->host . '/.s.PGSQL.' . $server->port;
    $self->mode('pass');
    $self->play(serve => sub { _pass_on($self, $_[0], IO::Socket::UNIX->new(Peer => $target) // return) });
    return $self;
}

sub mode($self, $mode) {
    my $file = "$self->{directory}/mode";
    write_private_file("$file.new", $mode);
    rename "$file.new", $file or die "could not rename: $!";
}

sub _pass_on($self, $client, $server) {
    my $select = IO::Select->new($client, $server);
    my $asked;
    while (1) {
        for my $ready ($select->can_read) {
            my $mode = slurp_file("$self->{directory}/mode");
            my $got = sysread $ready, my $bytes, 65536;
            $asked = 1 if $got && $bytes =~ /randflake_lease_/;
            # The coordinator answers only after the commit, so the cut loses only the answer.
            return if !$got || $mode eq 'cut' && $ready == $server && $asked;
            syswrite $ready == $client ? $server : $client, $bytes unless $mode eq 'hang';
        }
    }
}

# Ends all connections. Each of these functions gets a new connection as an argument, and serves it:
# - `startup` answers the client's first message. By default, welcome() answers it.
# - `answer` gets the connection and the request, and sends the messages after BindComplete.
# - `serve` does everything instead of both.
sub play($self, %scenario) {
    $self->stop;
    my $pid = fork // die "could not fork: $!";
    if ($pid == 0) {
        setpgrp;
        local $SIG{CHLD} = 'IGNORE';
        local $SIG{PIPE} = 'IGNORE';
        while (1) {
            my $client = $self->{listener}->accept or next;
            next if fork;
            eval { _serve($self, $client, %scenario) };
            POSIX::_exit(0);
        }
    }
    $self->{pid} = $pid;
    # Waits until the process leads its own process group, because `stop` kills this group.
    sleep 0.01 until getpgrp($pid) == $pid;
}

sub stop($self) {
    my $pid = delete $self->{pid} // return;
    kill 'KILL', -$pid;
    waitpid $pid, 0;
}

# Perl runs this even if the test fails, and before it removes the directories. Forked processes
# exit without it.
END { local $?; $_->stop for @impostors }

# Returns the contents of clients' first messages, one a line. A wish for TLS is an empty line.
sub startups($self) { return -e "$self->{directory}/startups" ? slurp_file("$self->{directory}/startups") : '' }

sub read_bytes($client, $count) {
    my $bytes = '';
    while (length $bytes < $count) {
        sysread $client, $bytes, $count - length $bytes, length $bytes or die 'gone';
    }
    return $bytes;
}

sub read_message($client) {
    my ($type, $length) = unpack 'A N', read_bytes($client, 5);
    return ($type, read_bytes($client, $length - 4));
}

# Dies if the peer has closed the connection.
sub say_to($client, $bytes) {
    while (length $bytes) {
        my $written = syswrite($client, $bytes) // die 'gone';
        substr $bytes, 0, $written, '';
    }
}

sub welcome {
    return message('R', pack 'N', 0) . parameter(server_version => '15.0')
      . parameter(client_encoding => 'UTF8') . parameter(standard_conforming_strings => 'on')
      . parameter(in_hot_standby => 'off') . parameter(default_transaction_read_only => 'off')
      . message('K', pack 'N N', 1, 1) . ready();
}

sub _serve($self, $client, %scenario) {
    return $scenario{serve}->($client) if $scenario{serve};
    my $startup = '';
    while (length $startup <= 4) {
        say_to($client, 'N') if $startup ne '';    # no TLS
        $startup = read_bytes($client, unpack('N', read_bytes($client, 4)) - 4);
        append_to_file("$self->{directory}/startups", substr($startup, 4) =~ tr/\0/ /r . "\n");
    }
    $scenario{startup} ? $scenario{startup}->($client) : say_to($client, welcome());
    # The client sends Parse, Bind, Describe, Execute and Sync.
    my $request;
    while (1) {
        my ($type, $body) = read_message($client);
        last if $type eq 'X';
        $request = $body if $type eq 'P';
        next if $type ne 'S';
        say_to($client, message('1', '') . message('2', ''));
        $scenario{answer}->($client, $request);
    }
}

sub silence { sleep 1 while 1; return }

sub repeat($client, $bytes) {
    # Sends large pieces, because the reader must be slower than this process.
    $bytes x= 1 + int(65536 / length $bytes);
    say_to($client, $bytes) while 1;
}

sub byte_a_second($client, $bytes) {
    for my $byte (split //, $bytes) {
        say_to($client, $byte);
        sleep 1;
    }
}

# Makes a listener with a full queue. Connections to it get no answer, as if the network lost
# packets. Returns two values: an object that keeps the queue full, and the port.
sub black_hole {
    my $listener = IO::Socket::INET->new(Listen => 0, LocalAddr => '127.0.0.1') or die "could not listen: $!";
    my $port = $listener->sockport;
    my @queued = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Blocking => 0) } 1 .. 4;
    return ([ $listener, @queued ], $port);
}

1;
