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
package Proxy;

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(usleep);
use PostgreSQL::Test::Cluster;

my $number = 0;

sub new
{
	my ($class, $node, %params) = @_;
	my $host = $params{host} // '127.0.0.1';
	my $port = $params{port} // PostgreSQL::Test::Cluster::get_free_port();
	my $file = "$PostgreSQL::Test::Utils::tmp_check/proxy$$-" . $number++;
	my $listener = IO::Socket::INET->new(
		LocalAddr => $host,
		LocalPort => $port,
		Listen => 20,
		ReuseAddr => 1) or die "port $port of $host: $!";
	my $self = bless {
		host => $host,
		port => $port,
		file => $file,
		owner => $$
	}, $class;

	$self->set('pass');
	$self->{pid} = fork() // die "fork: $!";
	if ($self->{pid} == 0)
	{
		$SIG{TERM} = 'DEFAULT';
		eval { serve($self, $listener, $node->host . '/.s.PGSQL.' . $node->port); };
		POSIX::_exit(1);
	}
	close $listener;
	return $self;
}

# What it does from now on, also with the connections that it has.
sub set
{
	my ($self, $mode) = @_;

	open(my $handle, '>', "$self->{file}.new") or die "$self->{file}: $!";
	print $handle $mode;
	close $handle;
	rename("$self->{file}.new", $self->{file}) or die "$self->{file}: $!";
	return;
}

# How many connections there were.
sub connections
{
	my ($self) = @_;

	return -s "$self->{file}.count" // 0;
}

sub stop
{
	my ($self) = @_;
	my $pid = delete $self->{pid} // return;

	kill 'TERM', $pid;
	waitpid $pid, 0;
	return;
}

sub DESTROY
{
	my ($self) = @_;
	local $?;

	$self->stop if $$ == $self->{owner};
	return;
}

sub mode
{
	my ($self) = @_;

	open(my $handle, '<', $self->{file}) or die "$self->{file}: $!";
	return scalar <$handle>;
}

sub serve
{
	my ($self, $listener, $path) = @_;
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
				  mode($self) eq 'silent' ? undef : IO::Socket::UNIX->new(Peer => $path);

				open(my $count, '>>', "$self->{file}.count")
				  or die "$self->{file}.count: $!";
				print $count '.';
				close $count;
				if (!$server && mode($self) ne 'silent')
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
sub forward
{
	my ($self, $link, $from) = @_;
	my $mode = mode($self);
	my $is_client = $from == $link->{client};

	sysread($from, my $data, 65536) or return 0;
	$link->{called} = 1 if $is_client && $data =~ /(?:get|extend|return)_grant/;
	return 1 if $mode eq 'silent' || !$link->{server};
	if ($link->{called})
	{
		return 0 if $mode eq 'lose';
		return 0 if $mode eq 'cut' && !$is_client;
		return 1 if $mode eq 'mute' && !$is_client;
		$data = "G\0\0\0\7\0\0\0" if $mode eq 'copy' && !$is_client;
		usleep(500_000) if $mode eq 'late' && !$is_client;
	}
	my $to = $is_client ? $link->{server} : $link->{client};
	return defined syswrite($to, $data);
}

1;
