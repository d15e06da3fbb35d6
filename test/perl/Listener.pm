# A process that listens at an address, and that the test which started it tells what to do: the
# part that Proxy and FakeRegistry share.  A package that has this as its parent has serve().

package Listener;

use strict;
use warnings;

use IO::Socket::INET;
use POSIX ();
use PostgreSQL::Test::Cluster;

my $number = 0;

# Start it, at 127.0.0.1 and a free port unless they are given; $does is what it does at first, and
# the rest is for serve().
sub start
{
	my ($class, $does, $address, @arguments) = @_;
	my $host = $address->{host} // '127.0.0.1';
	my $port = $address->{port} // PostgreSQL::Test::Cluster::get_free_port();
	my $listener = IO::Socket::INET->new(
		LocalAddr => $host,
		LocalPort => $port,
		Listen => 20,
		ReuseAddr => 1) or die "port $port of $host: $!";
	my $self = bless {
		host => $host,
		port => $port,
		file => "$PostgreSQL::Test::Utils::tmp_check/listener$$-" . $number++,
		owner => $$
	}, $class;

	$self->set($does);
	$self->{pid} = fork() // die "fork: $!";
	if ($self->{pid} == 0)
	{
		$SIG{TERM} = 'DEFAULT';
		$SIG{PIPE} = 'IGNORE';
		eval { $self->serve($listener, @arguments); };
		print STDERR $@;
		POSIX::_exit(1);
	}
	close $listener;
	return $self;
}

# Tell it what to do from now on.
sub set
{
	my ($self, $does) = @_;

	open(my $handle, '>', "$self->{file}.new") or die "$self->{file}: $!";
	print $handle $does;
	close $handle;
	rename("$self->{file}.new", $self->{file}) or die "$self->{file}: $!";
	return;
}

# What it is to do, for itself.
sub told
{
	my ($self) = @_;

	open(my $handle, '<', $self->{file}) or die "$self->{file}: $!";
	return scalar(<$handle>) // '';
}

# It counts a connection.
sub count_connection
{
	my ($self) = @_;

	open(my $count, '>>', "$self->{file}.count") or die "$self->{file}.count: $!";
	syswrite $count, '.';
	close $count;
	return;
}

# How many there were.
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

1;
