# What two telephones do that have accounts in Kamailio: they register with a password, one
# writes to the other, and to one that is away.  Arguments: the port, the two names.
# Prints the answers, and what was received.

use v5.36;
use warnings FATAL => 'all';
use Digest::MD5 'md5_hex';
use IO::Select;
use IO::Socket::INET;

my ($port, @names) = @ARGV;
my %socket;
my $calls = 0;

# Returns the next message that a telephone gets, or an empty one after a second.
sub receive ($name, $seconds = 30)
{
	IO::Select->new($socket{$name})->can_read($seconds) or return '';
	$socket{$name}->recv(my $message, 65535);
	return $message;
}

# Sends a request, and returns the answer.
sub request ($name, $method, $to, $headers, $text)
{
	my $own = $socket{$name}->sockport;
	my $target = $method eq 'REGISTER' ? 'sip:example.org' : "sip:$to\@example.org";
	my $sequence = ++$calls;

	$socket{$name}->send(join "\r\n", "$method $target SIP/2.0",
		"Via: SIP/2.0/UDP 127.0.0.1:$own;branch=z9hG4bK$own$sequence", 'Max-Forwards: 70',
		"From: <sip:$name\@example.org>;tag=t$own", "To: <sip:$to\@example.org>", "Call-ID: c$own$sequence$$",
		"CSeq: $sequence $method", "Contact: <sip:$name\@127.0.0.1:$own>", @$headers,
		'Content-Type: text/plain', 'Content-Length: ' . length $text, '', $text);
	while (my $answer = receive($name))
	{
		return $answer if $answer =~ /^SIP\/2\.0 [2-9]/ && $answer =~ /^CSeq: $sequence $method/m;
	}
	return 'none';
}

sub register ($name, $expires)
{
	my $answer = request($name, 'REGISTER', $name, [], '');
	my ($nonce) = $answer =~ /nonce="([^"]+)"/ or return "no challenge: $answer";
	my $response = md5_hex(join ':', md5_hex("$name:example.org:secret"), $nonce, md5_hex('REGISTER:sip:example.org'));

	return status(request($name, 'REGISTER', $name,
		[ qq{Authorization: Digest username="$name", realm="example.org", nonce="$nonce", uri="sip:example.org", response="$response"},
			"Expires: $expires" ], ''));
}

sub status { return $_[0] =~ /^SIP\/2\.0 (\d+)/ ? $1 : $_[0]; }

# Answers what a telephone is sent, and returns the texts; those that come again count again.
sub texts ($name, $seconds)
{
	my @texts;

	while (my $message = receive($name, $seconds))
	{
		my ($text) = $message =~ /^MESSAGE .*?\r\n\r\n(.*)/s or next;
		push @texts, $text =~ s/\[Offline message - [^\]]*\] //r;
		my @kept = $message =~ /^((?:Via|From|To|Call-ID|CSeq): .*?)\r$/mg;
		$socket{$name}->send(join "\r\n", 'SIP/2.0 200 OK', @kept, 'Content-Length: 0', '', '');
	}
	return join(', ', sort @texts) || 'nothing';
}

$socket{$_} = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1', PeerAddr => '127.0.0.1', PeerPort => $port) or die "socket: $!"
  foreach @names;
my ($one, $other) = @names;
print "register: ", register($one, 3600), "\n";
print "to one that is away: ", status(request($one, 'MESSAGE', $other, [], $_)), "\n" foreach 'first', 'second';
print "the other registers: ", register($other, 3600), "\n";
print "it gets: ", texts($other, 2), "\n";
print "it registers again: ", register($other, 3600), "\n";
print "it gets: ", texts($other, 2), "\n";
print "unregister: ", register($other, 0), "\n";
