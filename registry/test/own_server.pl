# A server that is its own registry, or the registry of others: wrong clocks, and
# the worker ID that it has itself.

use SnowflakeTest;

# The clock is ahead by 90 s, and then right again.  Grants reach 10 s ahead of it.
my $own = PostgreSQL::Test::Cluster->new('own');
my $socket = $own->host . ' port=' . $own->port;
$own->init;
$own->append_conf('postgresql.conf', join("\n",
	"shared_preload_libraries = 'snowflake'", registry_conf($own), ''));
start_with_clock($own);
sql($own, q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_registry;
	SELECT snowflake_registry.create(1, 100, grant_time => '4 s', reach => '10 s', failovers => 0, new => true)});
my $last = sql($own, 'SELECT snowflake_nextval()');

# IDs for some seconds; returns how long the longest call took, by the server's clock, which does
# not jump meanwhile.
sub longest_call ($seconds)
{
	my ($start, $longest, $good) = (time, 0, 1);

	while (time - $start < $seconds)
	{
		my ($id, $took) = split /\|/, sql($own, q{
			SELECT id, extract(epoch FROM clock_timestamp() - begun)
			FROM (SELECT clock_timestamp() AS begun, snowflake_nextval() AS id) i});

		$longest = $took if $took > $longest;
		$good = 0 if $id <= $last;
		$last = $id;
		usleep(100_000);
	}
	ok($good, 'IDs increase');
	return $longest;
}

set_clock($own, 90);
my $ahead = q{SELECT granted_until > now() - interval '1 s' FROM snowflake_stat};
longest_call(1) until sql($own, $ahead) eq 't';
set_clock($own, 0);
is(sql($own, q{SELECT granted_until > now() + interval '80 s' FROM snowflake_stat}),
	't', 'a server was granted a range by a clock that was ahead');
cmp_ok(longest_call(12), '<', 3,
	'IDs continue when the clock is right again, for three times as long as a grant');
$own->stop;
start_with_clock($own);
cmp_ok(longest_call(6), '<', 9, 'IDs continue after a restart with a clock that was ahead');
cmp_ok(longest_call(6), '<', 3, 'IDs continue for longer than a grant after a restart');
is( sql($own, q{
		SELECT granted_until < now() + interval '100 s' FROM snowflake_stat}),
	't', 'grants do not get further ahead of the clock');
kill_postmaster($own);
start_with_clock($own);
cmp_ok(longest_call(6), '<', 9, 'IDs continue after kill -9 with a clock that was ahead');
$own->stop;

# The registry's own server has a worker ID that is set.
my $registry = new_server('registry', 'snowflake.worker_id = 3', "snowflake.scheme = 'twitter'", 'snowflake.datacenter_id = 2');
sql($registry, 'CREATE EXTENSION snowflake_registry');
sql_fails($registry, q{SELECT snowflake_registry.create(1, 20, new => true)},
	qr/ERROR:  22023: invalid settings for a registry\n.*DETAIL:  This server generates IDs with worker ID 3 \("snowflake\.worker_id"\)\./,
	'a registry does not take the worker ID of its server');
is(sql_error($registry, q{SELECT snowflake_registry.create(1, 20, 'leaf', new => true)}),
	'', 'a registry takes the worker ID of its server for another scheme');
unlike(sql_error($registry, q{SELECT snowflake_registry.create(4, 7, failovers => 0, new => true)}),
	qr/ERROR/, 'a registry takes other worker IDs than that of its server');
sql_fails($registry, q{SELECT snowflake_registry.alter(NULL, first_worker_id => 3, new => true)},
	qr/ERROR:  22023: /, 'alter() does not add the worker ID of the server');

# It is set afterwards.
my $get = q{SELECT worker_id FROM snowflake_registry.get_grant('twitter', DATACENTER, 5,
	snowflake_registry.lower_bound(clock_timestamp(), 'twitter'), '{}', '00000000-0000-0000-0000-00000000000TOKEN', 'test')};
sub get ($datacenter, $token)
{
	my $query = $get =~ s/DATACENTER/$datacenter/r =~ s/TOKEN/$token/r;

	return sql($registry, $query);
}
is(get(2, 1), 5, 'a worker ID is granted');
restart_with($registry, 'snowflake.worker_id = 5');
is( sql($registry, q{
		SELECT count(*) FROM snowflake_registry.extend_grant('twitter', 2, 5,
			snowflake_registry.lower_bound(clock_timestamp(), 'twitter'), '{00000000-0000-0000-0000-000000000001}', gen_random_uuid(), 'test')}),
	0, 'the grant of a worker ID that the server itself was given is not extended');
is(sql($registry, $get =~ s/DATACENTER/2/r =~ s/\{\}/{00000000-0000-0000-0000-000000000001}/r =~ s/TOKEN/2/r),
	4, 'another worker ID is granted');
is(join(' ', get(2, 3), get(2, 4)), '6 7', 'all worker IDs but that of the server are granted');
my $detail = sql_error($registry, $get =~ s/DATACENTER/2/r =~ s/TOKEN/5/r);
like($detail, qr/All worker IDs that the registry can grant now \(3\) are held or reserved/,
	'the worker ID of the server does not count as one that can be granted');

# It is the only one that the registry has.
restart_with($registry, 'snowflake.worker_id = 8');
sql($registry, q{SELECT snowflake_registry.alter(NULL, 5, 5, new => true)});
restart_with($registry, 'snowflake.worker_id = 5');
my $none = qr/ERROR:  53400: no worker ID is free\n.*DETAIL:  The registry can grant only worker ID 5 now, with which its own server generates IDs \("snowflake\.worker_id"\)\.\n.*HINT:  Set another "snowflake\.worker_id" on that server and restart it, or call snowflake_registry\.alter\(\) to grant other worker IDs\./;
sql_fails($registry, $get =~ s/DATACENTER/2/r =~ s/TOKEN/6/r, $none,
	'the error says that the only worker ID is that of the server');
restart_with($registry, 'snowflake.worker_id = 8');
sql($registry, q{SELECT snowflake_registry.alter(NULL, 4, 7, new => true)});
restart_with($registry, 'snowflake.worker_id = 5');

# As long as the library is not loaded, its settings are read from the file.
restart_with($registry, "shared_preload_libraries = ''");
sql_fails($registry, q{SELECT snowflake_registry.alter('twitter', last_worker_id => 10, new => true)},
	qr/ERROR:  22023: .*\n.*DETAIL:  This server generates IDs with worker ID 5/,
	'a server without the library in shared_preload_libraries is treated alike');
reload_with($registry, "snowflake.worker_id = 100");
local $ENV{PGOPTIONS} = '-c client_min_messages=error';
becomes_true($registry, q{SELECT snowflake_registry.alter('twitter', last_worker_id => 10, new => true) IS NOT NULL},
	'with another worker ID, the settings are changed');
done_testing();
