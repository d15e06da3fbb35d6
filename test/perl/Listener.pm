# A process that listens at an address, and that the test which started it tells what to do: the
# part that Proxy and FakeRegistry share.  A package that has this as its parent has serve().

package Listener;

use v5.36;

use IO::Socket::INET;
use POSIX ();
use PostgreSQL::Test::Cluster;

my $number = 0;

# Start it, at 127.0.0.1 and a free port unless they are given; $does is what it does at first, and
# the rest is for serve().
sub start ($class, $does, $address, @arguments)
{
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

# As a server is asked where it is.
sub host { return $_[0]{host}; }
sub port { return $_[0]{port}; }

# A line that the test and the process share, by a name: replace it, or read it.
sub write_file ($self, $name, $line)
{
	my $file = "$self->{file}.$name";

	open(my $handle, '>', "$file.new") or die "$file: $!";
	print $handle $line;
	close $handle;
	rename("$file.new", $file) or die "$file: $!";
	return;
}

sub read_file ($self, $name)
{
	open(my $handle, '<', "$self->{file}.$name") or return '';
	return scalar(<$handle>) // '';
}

# Tell it what to do from now on.
sub set { return $_[0]->write_file('does', $_[1]); }

# What it is to do, for itself.
sub told { return $_[0]->read_file('does'); }

# It counts a connection.
sub count_connection ($self)
{
	open(my $count, '>>', "$self->{file}.count") or die "$self->{file}.count: $!";
	syswrite $count, '.';
	close $count;
	return;
}

# How many there were.
sub connections ($self) { return -s "$self->{file}.count" // 0; }

sub stop ($self)
{
	my $pid = delete $self->{pid} // return;

	kill 'TERM', $pid;
	waitpid $pid, 0;
	return;
}

sub DESTROY ($self)
{
	local $?;

	$self->stop if $$ == $self->{owner};
	return;
}

1;
