# Runs a proxy that can lose answers between a server and its coordinator. The proxy runs in its own
# process and listens on a Unix socket.

package RandflakeProxy;

use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Randflake;

# Makes a proxy for a PostgreSQL::Test::Cluster. At first the proxy passes everything on.
sub new($class, $server) {
    my $directory = tempdir_short();
    my $self = bless { directory => $directory, port => 5432, mode_file => "$directory/mode" }, $class;
    $self->set_mode('pass');
    my $listener = IO::Socket::UNIX->new(Local => "$directory/.s.PGSQL.5432", Listen => 10)
      or die "could not listen: $!";
    my $target = $server->host . '/.s.PGSQL.' . $server->port;
    my $pid = fork // die "could not fork: $!";
    if ($pid == 0) {
        _run($self->{mode_file}, $listener, $target);
        POSIX::_exit(0);
    }
    $self->{pid} = $pid;
    return $self;
}

# Sets how the proxy treats connections, including open ones:
# - `pass` passes everything on.
# - `cut` breaks the connection after the coordinator grants a lease and before its answer arrives.
# - `hang` accepts connections and sends nothing.
sub set_mode($self, $mode) {
    write_private_file("$self->{mode_file}.new", $mode);
    rename "$self->{mode_file}.new", $self->{mode_file} or die "could not rename: $!";
}

sub connstr($self) { return "host=$self->{directory} port=$self->{port} dbname=postgres" }

sub stop($self) {
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
}

sub _run($mode_file, $listener, $target) {
    my $select = IO::Select->new($listener);
    my (%peer, %is_client, %asked);
    while (1) {
        for my $ready ($select->can_read) {
            my $mode = slurp_file($mode_file);
            if ($ready == $listener) {
                my $client = $listener->accept or next;
                my $server = IO::Socket::UNIX->new(Peer => $target);
                if (!$server) {
                    close $client;
                    next;
                }
                @peer{ $client, $server } = ($server, $client);
                $is_client{$client} = 1;
                $select->add($client, $server);
                next;
            }
            my $got = sysread $ready, my $bytes, 65536;
            my $peer = $peer{$ready};
            my $client = $is_client{$ready} ? $ready : $peer;
            $asked{$client} = 1 if $got && $bytes =~ /randflake_lease_/;
            # The coordinator answers only after the commit, so the cut loses only the answer.
            my $cut = $mode eq 'cut' && $ready != $client && $asked{$client};
            if (!$got || $cut) {
                $select->remove($ready, $peer);
                close $_ for $ready, $peer;
                delete @peer{ $ready, $peer };
                delete @is_client{ $ready, $peer };
                delete @asked{ $ready, $peer };
                last;
            }
            syswrite $peer, $bytes unless $mode eq 'hang';
        }
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
