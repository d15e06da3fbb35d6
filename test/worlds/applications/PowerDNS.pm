# A PowerDNS server that has its zones in an application's database: its HTTP interface,
# its tool, and queries.

package PowerDNS;

use v5.36;

use HTTP::Tiny;
use JSON::PP;
use Net::DNS;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our $schemas = '/usr/share/pdns-backend-pgsql/schema';

sub new ($class, $app)
{
	my $self = bless {
		app => $app, dir => PostgreSQL::Test::Utils::tempdir,
		port => PostgreSQL::Test::Cluster::get_free_port(),
		web => PostgreSQL::Test::Cluster::get_free_port()
	}, $class;

	append_to_file("$self->{dir}/pdns.conf", "launch=gpgsql
gpgsql-host=$app->{env}{PGHOST}
gpgsql-port=$app->{env}{PGPORT}
gpgsql-dbname=app
gpgsql-user=regress_app
gpgsql-dnssec=yes
socket-dir=$self->{dir}
local-address=127.0.0.1
local-port=$self->{port}
api=yes
api-key=secret
webserver=yes
webserver-port=$self->{web}
primary=yes
zone-cache-refresh-interval=0
cache-ttl=0
negquery-cache-ttl=0
query-cache-ttl=0
daemon=no
guardian=no
");
	return $self;
}

sub command ($self, @settings) { return ('pdns_server', "--config-dir=$self->{dir}", @settings); }

sub start ($self)
{
	$self->{service} = $self->{app}->start_service($self->{web}, $self->command);
	return $self->{service};
}

sub stop ($self) { Application::stop_service(delete $self->{service}); return; }

# One call of the HTTP interface.  Returns its status and its answer.
sub call ($self, $method, $path, $content = undef)
{
	my $answer = HTTP::Tiny->new(default_headers => { 'X-API-Key' => 'secret' }, timeout => 60)
	  ->request($method, "http://127.0.0.1:$self->{web}/api/v1/servers/localhost$path",
		$content ? { content => encode_json($content) } : {});

	return "$answer->{status}" . ($answer->{success} ? '' : " $answer->{content}"),
	  $answer->{success} && length $answer->{content} ? decode_json($answer->{content}) : undef;
}

sub tool ($self, @command)
{
	my ($out, $err);

	IPC::Run::run([ 'pdnsutil', "--config-dir=$self->{dir}", @command ], '<' => \undef, '>' => \$out, '2>' => \$err);
	return $? ? "failed: $err" : 'done';
}

# What a query returns
sub answers ($self, $name, $type)
{
	my $resolver = Net::DNS::Resolver->new(nameservers => ['127.0.0.1'], port => $self->{port}, recurse => 0, retry => 2, udp_timeout => 20);
	my $packet = $resolver->send($name, $type) or return $resolver->errorstring;

	return join(' ', sort map { $_->rdstring } grep { $_->type eq $type } $packet->answer) || $packet->header->rcode;
}

# Use it: zones, records, comments, metadata, keys, an end.  Returns what does not depend
# on the IDs.
sub use ($self, $name)
{
	my $zone = "$name.example.org";
	my $address = sub { { content => $_[0], disabled => JSON::PP::false } };
	my $set = sub {
		my ($host, $type, @contents) = @_;
		return { name => $host eq '' ? "$zone." : "$host.$zone.", type => $type, ttl => 300, changetype => 'REPLACE', records => [ map { $address->($_) } @contents ] };
	};
	my @lines;
	my $note = sub { push @lines, join(': ', @_); };

	$note->('zone', ($self->call('POST', '/zones', { name => "$zone.", kind => 'Master', nameservers => ["ns1.$zone."] }))[0]);
	$note->('records', ($self->call('PATCH', "/zones/$zone.", { rrsets => [ $set->('www', 'A', '192.0.2.1'), $set->('', 'MX', "10 mail.$zone."), $set->('mail', 'A', '192.0.2.2', '192.0.2.3') ] }))[0]);
	$note->('comment', ($self->call('PATCH', "/zones/$zone.", { rrsets => [ { %{ $set->('www', 'TXT', '"text"') }, comments => [ { content => 'a comment', account => 'me', modified_at => 1 } ] } ] }))[0]);
	$note->('www', $self->answers("www.$zone", 'A'));
	$note->('mail', $self->answers("mail.$zone", 'A'));
	$note->('nothing', $self->answers("nothing.$zone", 'A'));
	my ($status, $read) = $self->call('GET', "/zones/$zone.");
	$note->('read', $status, join(' ', sort map { my $host = $_->{name} =~ s/\Q$zone\E\.$//r; "$host$_->{type}" . @{ $_->{comments} } } @{ $read->{rrsets} // [] }));
	($status, $read) = $self->call('GET', "/search-data?q=*mail.$zone");
	$note->('search', $status, scalar @{ $read // [] });

	$note->('serial number', $self->tool('increase-serial', $zone));
	$note->('metadata', ($self->call('POST', "/zones/$zone./metadata", { kind => 'ALLOW-AXFR-FROM', metadata => ['127.0.0.0/8'] }))[0]);
	my $resolver = Net::DNS::Resolver->new(nameservers => ['127.0.0.1'], port => $self->{port}, tcp_timeout => 20);
	$note->('transfer', scalar grep { $_->type !~ /^(?:RRSIG|NSEC|DNSKEY)/ } $resolver->axfr($zone));
	$note->('secured', $self->tool('secure-zone', $zone));
	($status, $read) = $self->call('GET', "/zones/$zone./cryptokeys");
	$note->('keys', $status, scalar @{ $read // [] });
	$note->('key', ($self->call('GET', "/zones/$zone./cryptokeys/" . ($read->[0]{id} // 0)))[0]);
	$note->('is signed', $self->answers($zone, 'DNSKEY') =~ /^257 3 13/ ? 'yes' : 'no');
	$note->('key for transfers', ($self->call('POST', '/tsigkeys', { name => $name, algorithm => 'hmac-sha256' }))[0]);
	$note->('check', $self->tool('check-zone', $zone));

	$note->('second zone', $self->tool('create-zone', "second.$zone", "ns1.$zone"));
	$note->('its server', $self->answers("second.$zone", 'NS') eq "ns1.$zone." ? 'yes' : 'no');
	$note->('deleted', ($self->call('DELETE', "/zones/second.$zone."))[0]);
	$note->('gone', $self->answers("x.second.$zone", 'A'));
	$note->('record deleted', ($self->call('PATCH', "/zones/$zone.", { rrsets => [ { name => "mail.$zone.", type => 'A', changetype => 'DELETE' } ] }))[0]);
	$note->('mail', $self->answers("mail.$zone", 'A'));
	return join "\n", @lines, '';
}

1;
