# A proxy between a server and its registry, with faults.
#
#	my $proxy = Proxy->new($node, host => '127.0.0.2', port => 5555);
#	... host=$proxy->{host} port=$proxy->{port} ...
#	$proxy->set('silent');
#
# What it does with a connection:
#
#	pass		nothing
#	silent		accepts it, and forwards nothing
#	mute		forwards a call of the registry, but not the answer
#	lose		ends the connection instead of forwarding a call
#	cut			ends the connection instead of forwarding the answer to a call
#	copy		answers a call as if it began a COPY
#	late		forwards the answer to a call half a second later, one after the other
#	far			forwards everything 50 ms later
package Proxy;

use v5.36;

use parent 'Listener';
use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(usleep);

sub new ($class, $node, %address)
{
	return $class->start('pass', \%address, $node->host . '/.s.PGSQL.' . $node->port);
}

sub serve ($self, $listener, $path)
{
	my $select = IO::Select->new($listener);
	my %link;

	while (1)
	{
		foreach my $socket ($select->can_read)
		{
			if ($socket == $listener)
			{
				my $client = $listener->accept or next;
				# A server would end a connection that says nothing after a minute.
				my $server =
				  $self->told eq 'silent' ? undef : IO::Socket::UNIX->new(Peer => $path);

				$self->count_connection;
				if (!$server && $self->told ne 'silent')
				{
					close $client;
					next;
				}
				my %new = (client => $client, server => $server);
				$link{$_} = \%new foreach grep { defined } $client, $server;
				$select->add(grep { defined } $client, $server);
				next;
			}
			my $link = $link{$socket} or next;
			next if forward($self, $link, $socket);
			foreach my $end (grep { defined } @$link{ 'client', 'server' })
			{
				$select->remove($end);
				delete $link{$end};
				close $end;
			}
		}
	}
	return;
}

# Forward what there is from one end to the other; false: end the connection.
sub forward ($self, $link, $from)
{
	my $mode = $self->told;
	my $is_client = $from == $link->{client};

	sysread($from, my $data, 65536) or return 0;
	# What sets a session up names functions, too.
	$link->{called} = 1 if $is_client && $data =~ /snowflake_registry\.\w+\(\$1/;
	return 1 if $mode eq 'silent' || !$link->{server};
	if ($link->{called})
	{
		return 0 if $mode eq 'lose';
		return 0 if $mode eq 'cut' && !$is_client;
		return 1 if $mode eq 'mute' && !$is_client;
		$data = "G\0\0\0\7\0\0\0" if $mode eq 'copy' && !$is_client;
		usleep(500_000) if $mode eq 'late' && !$is_client;
	}
	usleep(50_000) if $mode eq 'far';
	my $to = $is_client ? $link->{server} : $link->{client};
	return defined syswrite($to, $data);
}

1;
