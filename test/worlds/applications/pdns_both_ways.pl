# PowerDNS on two servers that replicate to each other: zones are created on both at the
# same time, and each answers for those of the other.

use Application;
use PowerDNS;
use SnowflakeTest;

my $first = Application->new;
my %app = (first => $first);
$first->run_ok('its tables are created', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$PowerDNS::schemas/schema.pgsql.sql");
my %dns = (first => PowerDNS->new($first));
ok($dns{first}->start, 'it starts');
my $before = $dns{first}->use('before');
$dns{first}->stop;

$app{second} = $first->second;
$dns{second} = PowerDNS->new($app{second});
my @names = ('first', 'second');
$app{$_}->convert_to('range') foreach @names;
Application::replicate(@app{@names});
ok($dns{$_}->start, "range: it starts on the $_") foreach @names;

# Each writes while the other does.
my @runs = map {
	my ($name, $out) = ($_, '');
	{ name => $name, out => \$out, run => IPC::Run::start(sub { print $dns{$name}->use($name); }, '>' => \$out) }
} @names;
$_->{run}->finish foreach @runs;
is(${ $_->{out} }, $before, "range: its answers on the $_->{name} are the same") foreach @runs;
Application::replicated('range', @app{@names});

foreach my $name (@names)
{
	my ($other) = grep { $_ ne $name } @names;
	is($dns{$name}->answers("www.$other.example.org", 'A'), '192.0.2.1', "range: the $name answers for a zone of the $other");
	is(($dns{$name}->call('PATCH', "/zones/$other.example.org.",
			{ rrsets => [ { name => "also.$other.example.org.", type => 'A', ttl => 300, changetype => 'REPLACE', records => [ { content => '192.0.2.9', disabled => JSON::PP::false } ] } ] }))[0],
		204, 'range: and changes it');
}
Application::replicated('range, changed', @app{@names});
is($dns{$_}->answers("also.$_.example.org", 'A'), '192.0.2.9', "range: the $_ has the change") foreach @names;
$dns{$_}->stop foreach @names;
$app{$_}->kinds_are('range') foreach @names;
is($first->sql('SELECT count(*) = count(DISTINCT id), max(id) < 10000 FROM records'), 't|t', 'range: IDs are small');

done_testing();
