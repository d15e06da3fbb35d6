# Registries with several hosts, and hosts with several addresses: one that is
# silent, or answers with an error, hides none of the others.

use FindBin;
use Proxy;
use SnowflakeTest;

my $user = conninfo_user();
my $registry = new_registry('registry',
	"1, 100, grant_time => '4 s', reach => '10 min', new => true",
	'wal_level = replica');
my $other = new_registry('other', "1, 100, 'leaf', new => true");
my $proxy = Proxy->new($registry);
my @socket = ($registry->host, $registry->port);

# Names are looked up in a file.
my $library =
  compile("$FindBin::RealBin/../../test/perl/name_server.c", '-shared', '-fPIC');
my $names = "$PostgreSQL::Test::Utils::tmp_check/names";
append_to_file($names, "two.test 127.0.0.2 127.0.0.1\n");
my $server = PostgreSQL::Test::Cluster->new('server');
$server->init;
$server->append_conf('postgresql.conf', <<"EOF");
shared_preload_libraries = 'snowflake'
snowflake.grant_timeout = '1 min'
EOF

sub start_server
{
	local $ENV{LD_PRELOAD} = $library;
	local $ENV{SNOWFLAKE_NAMES} = $names;

	return $server->start;
}

# Start the server with hosts of a registry; returns how long it takes until it
# has a worker ID.
sub time_to_get ($hosts, $ports, $options = '')
{
	$server->stop('immediate') if $server->{_pid};
	$server->append_conf('postgresql.conf',
		setting('snowflake.registry', "host=$hosts port=$ports dbname=postgres $user $options"));
	start_server();
	my $start = time;
	sql($server, 'CREATE EXTENSION IF NOT EXISTS snowflake; SELECT snowflake_nextval()');
	return time - $start;
}

# Wait until the server has extended its grant.
sub wait_for_extension
{
	wait_until_true($server, "SELECT granted_until > '"
		  . sql($server, 'SELECT granted_until FROM snowflake_stat') . "' FROM snowflake_stat");
	return;
}

sub worker_id { return sql($server, 'SELECT worker_id FROM snowflake_stat'); }

# A host that accepts connections, and says nothing.
my $log_end = -s $server->logfile // 0;
$proxy->set('silent');
cmp_ok(time_to_get("$proxy->{host},$socket[0]", "$proxy->{port},$socket[1]"),
	'<', 20, 'the first host is silent: a worker ID from the second');
is($proxy->connections, 1, 'the first host was tried once');
unlike(slurp_file($server->logfile, $log_end), qr/could not get a snowflake worker ID/,
	'the first call has succeeded');
wait_for_extension() foreach 1, 2;
is($proxy->connections, 1, 'the next calls begin with the second host');

# A host that carries out calls, and does not answer them.
$proxy->set('mute');
cmp_ok(time_to_get("$proxy->{host},$socket[0]", "$proxy->{port},$socket[1]"),
	'<', 20, 'the first host does not answer calls: a worker ID from the second');
my $first = worker_id();
wait_for_extension() foreach 1, 2;
is(worker_id(), $first, 'the server keeps the worker ID of the second host');

# A host that answers a call with something else.
$proxy->set('copy');
cmp_ok(time_to_get("$proxy->{host},$socket[0]", "$proxy->{port},$socket[1]"),
	'<', 20, 'the first host answers a call by beginning a COPY: a worker ID from the second');

# A host that refuses: it has no registry for the scheme.
cmp_ok(time_to_get($other->host . ",$socket[0]", $other->port . ",$socket[1]"),
	'<', 20, 'the first host has no registry for the scheme: a worker ID from the second');
wait_for_extension();

# Each host has its own time.
$proxy->set('silent');
cmp_ok(
	time_to_get("$proxy->{host},$proxy->{host},$socket[0]",
		"$proxy->{port},$proxy->{port},$socket[1]", 'connect_timeout=6'),
	'<', 30, 'silent hosts for longer than 10 s: a worker ID from the third');

# Each address of a name has its own time.
my $silent = Proxy->new($registry, host => '127.0.0.2');
my $second = Proxy->new($registry, port => $silent->{port});
$silent->set('silent');
cmp_ok(time_to_get('two.test', $silent->{port}),
	'<', 20, 'the first address of a name is silent: a worker ID from the second');
is($silent->connections, 1, 'the first address was tried once');
wait_for_extension() foreach 1, 2;
is($silent->connections, 1, 'the next calls begin with the second address');

done_testing();
