# What speaks PostgreSQL's protocol at the address of a registry, and is none.
#
#	my $fake = FakeRegistry->new(name => sub { ... }, ...);
#	... host=$fake->{host} port=$fake->{port} ...
#	$fake->set('name');
#
# It calls the function of that name for each message that it must answer, with a
# hash that describes the connection:
#
#	stage		start, query (the statements that set a session up), or call
#	number		of the connection, from 1 on
#	parameters	of a call
#	sent		call it with what is to be sent at once; false: the client is gone
#	ask			wait for a message of the client, as a type and its text
#
# and sends what it returns; undef ends the connection.  Functions get one with a
# good_... function below.  $fake->busy('name', 'stage') waits until it answers like that.
package FakeRegistry;

use v5.36;

use parent 'Listener';
use Exporter 'import';
use List::Util qw(max);
use SnowflakeTest::Limits;

our @EXPORT = qw(
  message row_description row complete ready error_message notice good_start good_query
  rows unfinished answer_call good_value forever notices_without_end
);

sub new ($class, %answers) { return $class->start('', {}, \%answers); }

# Wait until it answers by this, at this stage of a connection.
sub busy ($self, $name, $stage)
{
	wait_until("an answer: $name, $stage", sub { $self->read_file('answer') eq "$name $stage" });
	return;
}

sub serve ($self, $listener, $answers)
{
	my $connection = 0;

	# A client that was killed has no successor before.
	while (my $client = $listener->accept)
	{
		my $name = $self->told;

		$self->count_connection;
		talk($client, $answers->{$name} // sub { undef }, ++$connection, sub { $self->write_file('answer', "$name $_[0]") });
		close $client;
	}
	return;
}

sub receive ($client, $size)
{
	my $data = '';

	while (length $data < $size)
	{
		sysread($client, $data, $size - length $data, length $data) or return undef;
	}
	return $data;
}

# A message of the client: its type and its text.
sub receive_message ($client, $has_type)
{
	my $type = $has_type ? receive($client, 1) // return : '';
	my $size = unpack('N', receive($client, 4) // return);

	return ($type, receive($client, $size - 4) // return);
}

sub sent ($client, $data)
{
	my $offset = 0;

	while ($offset < length $data)
	{
		$offset += syswrite($client, $data, length($data) - $offset, $offset) // return 0;
	}
	return 1;
}

# The parameters of a Bind message.
sub bound ($text)
{
	my (undef, undef, $rest) = split /\0/, $text, 3;
	my $formats = unpack 'n', $rest;
	my $next = 2 + 2 * $formats;
	my $count = unpack 'n', substr($rest, $next, 2);
	my @values;

	$next += 2;
	foreach (1 .. $count)
	{
		my $size = unpack 'N', substr($rest, $next, 4);

		push @values, substr($rest, $next + 4, $size);
		$next += 4 + $size;
	}
	return @values;
}

sub talk ($client, $answer, $connection, $note_stage)
{
	my %state = (
		number => $connection,
		stage => 'ssl',
		sent => sub { sent($client, @_) },
		ask => sub { receive_message($client, 1) });
	my $reply = sub {
		$note_stage->($state{stage} = shift);
		my $data = $answer->(\%state) // return 0;
		return sent($client, $data);
	};

	while (1)
	{
		my (undef, $text) = receive_message($client, 0) or return;
		my $code = unpack 'N', $text;

		# Requests to encrypt.
		last if $code != 80877103 && $code != 80877104;
		sent($client, 'N') or return;
	}
	$reply->('start') or return;
	while (my ($type, $text) = receive_message($client, 1))
	{
		return if $type eq 'X';
		if ($type eq 'Q') { $reply->('query') or return; }
		elsif ($type eq 'P') { ($state{statement}) = $text =~ /\0(.*?)\0/s; }
		elsif ($type eq 'B') { $state{parameters} = [ bound($text) ]; }
		elsif ($type eq 'S') { $reply->('call') or return; }
	}
	return;
}

# Messages of a server.

sub message ($type, $text) { return $type . pack('N', 4 + length $text) . $text; }

sub row_description ($columns)
{
	return message('T', pack('n', $columns) . join '', map { "c$_\0" . pack('NnNnNn', 0, 0, 25, 65535, 0xffffffff, 0) } 1 .. $columns);
}

# NULL is undef.
sub row
{
	return message('D', pack('n', scalar @_) . join '', map { defined $_ ? pack('N', length $_) . $_ : pack('N', 0xffffffff) } @_);
}

sub complete { return message('C', "SELECT $_[0]\0"); }
sub ready { return message('Z', 'I'); }

# Fields are pairs of a letter and a text.
sub error_message (%fields)
{
	return message('E', join('', map { "$_$fields{$_}\0" } sort keys %fields) . "\0");
}

sub notice (%fields)
{
	return message('N', join('', map { "$_$fields{$_}\0" } sort keys %fields) . "\0");
}

sub parameter_status { return message('S', "$_[0]\0$_[1]\0"); }

sub good_start
{
	return
	    message('R', pack 'N', 0)
	  . parameter_status('server_version', '15.20')
	  . parameter_status('in_hot_standby', 'off')
	  . parameter_status('default_transaction_read_only', 'off')
	  . parameter_status('client_encoding', 'UTF8')
	  . message('K', pack 'NN', 1, 1)
	  . ready();
}

# The session is set up, and the registry's functions may be called.
sub good_query
{
	return
	    message('C', "SET\0") x 2
	  . row_description(3)
	  . row(undef, 'postgres', '7')
	  . complete(1)
	  . ready();
}

# Answers of what is no registry.

# The result of one call: rows of this many columns.
sub rows ($columns, @rows)
{
	return
	    message('1', '')
	  . message('2', '')
	  . row_description($columns)
	  . join('', map { row(@$_) } @rows)
	  . complete(scalar @rows)
	  . ready();
}

# The same, but for the message that ends it.
sub unfinished { return substr rows(@_), 0, -length ready(); }

# Connects and sets up as a registry does, and then answers a call by this.
sub answer_call ($answer)
{
	return sub ($state) {
		return good_start() if $state->{stage} eq 'start';
		return good_query() if $state->{stage} eq 'query';
		return $answer->($state);
	};
}

# What a registry would answer: for 10 minutes.
sub good_value ($column, @call)
{
	return (max(1, $call[2]), $call[3] + (600_000 << 22), 600_000)[$column];
}

# Sends something without an end.
sub forever ($data)
{
	return sub ($state) {
		while ($state->{sent}->($data)) { }
		return undef;
	};
}

# As many notices as the client takes
sub notices_without_end
{
	return answer_call(
		forever(notice(S => 'WARNING', V => 'WARNING', C => '01000', M => 'a' x 10_000) x 100));
}

1;
