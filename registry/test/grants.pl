# Servers that get their worker IDs from a registry.

use SnowflakeTest;

my $registry = new_registry('registry',
	"101, 1000, grant_time => '4 s', reach => '1 min', new => true",
	'wal_level = replica', 'max_wal_senders = 2');
my $conf = registry_conf($registry);
my $a = new_server('a', $conf);
my $b = new_server('b', $conf, "snowflake.server_name = 'beta'");
my %servers = (a => $a, b => $b);
my %seen;
my %last;

# IDs of a server; each is new to all servers, and increases on its own.
sub take_ids ($name, $n)
{
	my @ids = split /\n/,
	  sql($servers{$name}, "SELECT snowflake_nextval() FROM generate_series(1, $n)");
	my $good = @ids == $n;

	foreach my $id (@ids)
	{
		$good = 0 if $seen{$id}++ || $id <= ($last{$name} // 0);
		$last{$name} = $id;
	}
	return $good;
}

sub worker_id ($node)
{
	return sql($node, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())');
}

# In the registry, the worker ID that a server holds.
sub held_by ($name)
{
	return sql($registry,
		"SELECT worker_id FROM snowflake_registry.workers WHERE server_name = '$name' AND state = 'held'");
}

# How long the calls of a server wait for a grant.
sub set_timeout { return change_setting($_[0], 'snowflake.grant_timeout', $_[1]); }

# Wait until the worker of a server has got an error like this; its calls then fail at once.
sub wait_for_error ($node, $error)
{
	wait_until_true($node, "SELECT registry_error ~ '$error' FROM snowflake_stat");
	return;
}

sub wait_for_log ($node, $pattern, $offset)
{
	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if slurp_file($node->logfile, $offset) =~ $pattern;
		usleep(100_000);
	}
	return 0;
}

# The start.
ok(take_ids($_, 1000), "server $_ generates IDs") foreach 'a', 'b';
my %worker = map { $_ => worker_id($servers{$_}) } 'a', 'b';
isnt($worker{a}, $worker{b}, 'two servers have different worker IDs');
cmp_ok($_, '>=', 101, 'the worker ID is in the range of the registry')
  foreach values %worker;
is(held_by('a'), $worker{a}, 'the registry shows the holder by cluster_name');
is(held_by('beta'), $worker{b}, 'the registry shows the holder by snowflake.server_name');
is( sql($a, q{
		SELECT worker_id, worker_id_set, granted_until BETWEEN now() AND now() + '1 min',
			registry_contact > now() - interval '1 min', registry_error IS NULL, registry_error_since IS NULL
		FROM snowflake_stat}),
	"$worker{a}|t|t|t|t|t",
	'snowflake_stat has the grant');
like(slurp_file($a->logfile),
	qr/LOG:  snowflake IDs are generated with worker ID $worker{a}\n.*DETAIL:  The registry granted it until /,
	'the log has the worker ID and the grant');
unlike(slurp_file($a->logfile), qr/"snowflake.worker_id" is not set/,
	'the log does not ask for a worker ID');

# What is monitored is there.
my $yaml = slurp_file("$FindBin::RealBin/../../monitoring/queries.yaml");
my ($query, $metrics) = $yaml =~ /query: \|\n(.*?)\n  metrics:\n(.*?)(?:^\S|\z)/ms;
my @metrics = $metrics =~ /^    - (\w+):$/mg;
is(sql($a, "SELECT * FROM ($query) q") =~ tr/|//,
	$#metrics, 'the query for metrics has a column for each');
is( sql($a, qq{
		SELECT registry_error, granted_until_timestamp_seconds > registry_contact_timestamp_seconds FROM ($query) q}),
	'0|t', 'the query for metrics reports the registry');

# It is extended, all the time.
my $until = sql($a, 'SELECT granted_until FROM snowflake_stat');
becomes_true($a, "SELECT granted_until > '$until'::timestamptz + interval '4 s' FROM snowflake_stat",
	'the grant is extended');
is(worker_id($a), $worker{a}, 'the worker ID stays the same');
ok(take_ids('a', 1000), 'IDs continue under an extended grant');

# A clean shutdown gives the worker ID back; a start takes one at once.
$a->stop;
is( sql($registry, "SELECT count(*) FROM snowflake_registry.workers WHERE worker_id = $worker{a} AND state = 'held'"),
	0,
	'a clean shutdown returns the worker ID');
$a->start;
ok(take_ids('a', 1000), 'IDs are generated after a restart');

# A crash of a backend, with the registry away: the grant, which is for 10 minutes, is
# kept, where the postmaster can keep anything.
sql($registry, q{SELECT snowflake_registry.create(1, 100, 'cosid', new => true)});
my $kept = new_server('kept', $conf, "snowflake.scheme = 'cosid'", 'restart_after_crash = on');
$servers{kept} = $kept;
sql($kept, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
my $before = worker_id($kept);
my @clients = start_clients($kept, 2);
wait_for_clients(@clients);
$registry->stop('immediate');
kill_backend($kept);
finish_clients(@clients);
$registry->start if !inherits();
ok(take_ids('kept', 1000), 'IDs are generated after the crash of a backend');
if (inherits())
{
	is(worker_id($kept), $before, 'the worker ID stays the same');
}
else
{
	isnt(worker_id($kept), $before, 'the worker ID is another one after the crash of a backend (EXEC_BACKEND)');
	$registry->stop('immediate');
}
$kept->stop('immediate');

# The registry is away for longer than the grant.
becomes_true($a, 'SELECT granted_until < now() FROM snowflake_stat',
	'the grant ends');
$a->wait_for_log(qr/WARNING:  the grant of snowflake worker ID $worker{a} has ended\n/);
pass('the log says that the grant has ended, although nobody called');
my ($waiter) = start_queries($a, 'SELECT snowflake_nextval()');
becomes_true($a, q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE query = 'SELECT snowflake_nextval()' AND wait_event = } . wait_event($a, 'SnowflakeGrant'),
	'a call waits for a grant');
sql($a,
	"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT snowflake_nextval()'");
finish_queries($waiter);
like($waiter->{err}, qr/canceling statement due to user request\n.*CONTEXT:  while waiting for the registry to grant a snowflake worker ID/s,
	'a call that waits for a grant can be cancelled, and says so');
wait_for_error($a, 'connection to server');
set_timeout($a, '100ms');
sql_fails($a, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: the grant of worker ID $worker{a} ended at .*\n.*DETAIL:  Calls to the registry have failed since .*: .*connection to server .* failed.*HINT:  Check "snowflake\.registry", the registry, and the server log/s,
	'a call fails after snowflake.grant_timeout with the reason');
is( sql($a, q{
		SELECT registry_error ~ 'connection to server', registry_error_since < now(), grant_waits > 0, grant_wait_ms > 0
		FROM snowflake_stat}),
	't|t|t|t',
	'snowflake_stat has the error of the registry');
like(slurp_file($a->logfile),
	qr/WARNING:  could not extend the grant of snowflake worker ID $worker{a}\n.*DETAIL:  .*connection to server/,
	'the log has the error of the registry');
set_timeout($a, '1min');
($waiter) = start_queries($a, 'SELECT snowflake_nextval()');
$registry->start;
is(finish_queries($waiter), 1, 'a call that waits succeeds when the registry is back');
ok(take_ids($_, 1000), "server $_ generates IDs when the registry is back") foreach 'a', 'b';
ok(wait_for_log($a, qr/LOG:  the registry of snowflake worker IDs is available again/, 0),
	'the log says that the registry is back');

# A worker ID is taken from a server that runs; its IDs keep increasing.
$worker{a} = worker_id($a);
sql($registry, "SELECT snowflake_registry.free_worker($worker{a})");
wait_until_true($a, "SELECT worker_id <> $worker{a} FROM snowflake_stat");
ok(take_ids('a', 1000), 'IDs are generated after the worker ID was taken from the server');
isnt(worker_id($a), $worker{a}, 'the worker ID that was taken is not used');

# The worker is terminated, and started again.
my $worker_pid = server_process($a, 'snowflake grant');
sql($a, "SELECT pg_terminate_backend($worker_pid)");
wait_until_true($a,
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'snowflake grant' AND pid <> $worker_pid");
ok(take_ids('a', 1000), 'IDs are generated after the worker was terminated');

# The mark is set by hand: what was made before is not made again.
$worker{a} = worker_id($a);
my ($mark) = sql($a,
	"SET client_min_messages = error; SELECT snowflake_lower_bound(now() - interval '1 s') AS mark \\gset
	SELECT snowflake_set_mark(:mark, force => true); SELECT :mark");
$last{a} = 0;
ok(take_ids('a', 10000), 'IDs are generated after the mark was lowered');
isnt(worker_id($a), $worker{a}, 'IDs have another worker ID after the mark was lowered');

# A wish.
$worker{b} = worker_id($b);
$b->append_conf('postgresql.conf', "snowflake.worker_id = $worker{b}");
$b->stop('immediate');
$until = sql($registry, "SELECT granted_until FROM snowflake_registry.workers WHERE worker_id = $worker{b}");
$b->start;
SKIP:
{
	my $other = worker_id($b);

	skip 'the start took longer than the grant', 1 if sql($registry, "SELECT '$until' < now()") eq 't' && $other == $worker{b};
	isnt($other, $worker{b}, 'a server gets another worker ID after an immediate stop');
	wait_until_true($registry, "SELECT granted_until < now() FROM snowflake_registry.workers WHERE worker_id = $worker{b}",
		'a grant does not end');
}
$b->restart;
is(worker_id($b), $worker{b}, 'a server gets the worker ID that it asks for if it is free');
$b->restart;
ok(take_ids('b', 1000), 'server b generates IDs after restarts');
my $c = new_server('c', $conf, "snowflake.worker_id = " . worker_id($b));
$servers{c} = $c;
isnt(worker_id($c), worker_id($b), 'a server gets another worker ID if the one that it asks for is held');
like(slurp_file($c->logfile),
	qr/LOG:  snowflake IDs are generated with worker ID \d+\n.*DETAIL:  The registry granted it until .*\. It could not grant worker ID @{[ worker_id($b) ]}, the value of "snowflake\.worker_id"\.$/m,
	'the log says that the worker ID was not granted');
like(slurp_file($c->logfile),
	qr/WARNING:  "snowflake\.worker_id" is set, although a registry grants worker IDs\n.*DETAIL:  .*generates IDs with worker ID @{[ worker_id($b) ]}, which/,
	'a server that asks for a worker ID warns of a fixed one');
unlike(slurp_file($a->logfile), qr/although a registry grants/,
	'a server that asks for no worker ID does not warn of a fixed one');
unlike(slurp_file($a->logfile), qr/It could not grant/,
	'a server that asks for no worker ID logs nothing of that');
ok(take_ids('c', 1000), 'server c generates IDs');

# Registries that cannot be used.  The error of a call says why.
sub call_fails ($line, $error, $label)
{
	my $offset = -s $c->logfile;
	$c->append_conf('postgresql.conf', "$line\nsnowflake.grant_timeout = 0");
	$c->stop;
	$c->start;
	wait_for_error($c, '.');
	my $text = sql_error($c, 'SELECT snowflake_nextval()');
	my ($detail) = $text =~ /DETAIL:  Calls to the registry have failed since .*?: (.*)/;
	like($text, qr/ERROR:  55000: no worker ID is granted to this server/, 'no ID is generated without a grant');
	my ($logged) = slurp_file($c->logfile, $offset) =~
	  /WARNING:  could not get a snowflake worker ID from the registry\n.*DETAIL:  (.*)/;
	is($logged, $detail, 'the log has the same reason');
	return like($detail, $error, $label);
}
my ($host, $port) = ($registry->host, $registry->port);
sql($registry,
	q{CREATE DATABASE empty; CREATE ROLE regress_stranger LOGIN; CREATE ROLE regress_server LOGIN;
	GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant, snowflake_registry.extend_grant, snowflake_registry.return_grant TO regress_server});
call_fails("snowflake.registry = 'host=$host port=1 dbname=postgres'",
	qr/connection to server .*port=?.*1|\.s\.PGSQL\.1/, 'the error says that the registry cannot be reached');
call_fails("snowflake.registry = 'host=$host port=$port dbname=nowhere'",
	qr/database "nowhere" does not exist/, 'the error says that the database does not exist');
call_fails("snowflake.registry = 'host=$host port=$port dbname=empty'",
	qr/the extension snowflake_registry is not installed in database "empty"/,
	'the error says that the extension is not installed');
call_fails("snowflake.registry = 'host=$host port=$port dbname=postgres user=regress_stranger'",
	qr/permission denied for function get_grant/,
	'the error says that the role has no privilege');
call_fails("snowflake.registry = 'host=$host port=$port dbname=postgres user=regress_server'\nsnowflake.scheme = 'leaf'\nsnowflake.worker_id = 0",
	qr/registry has no worker IDs for scheme "epoch=2010-11-04/,
	'the error says that the registry has another scheme');
call_fails("snowflake.scheme = 'epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12'\nsnowflake.reserve_time = '10 s'",
	qr/grant_time of the registry \(4000 ms\) is less than "snowflake\.reserve_time" \(10000 ms\)/,
	'the error says that the grant is shorter than reserve_time');
$c->append_conf('postgresql.conf', 'snowflake.reserve_time = 1s');
set_timeout($c, '1min');
becomes_true($c, 'SELECT worker_id > 100 FROM snowflake_stat',
	'an ordinary role gets a grant after a reload');
ok(take_ids('c', 1000), 'server c generates IDs after a reload');

# The registry refuses to extend a grant, and to give another, and a backend
# crashes: what was kept is nothing to generate IDs of.
restart_with($c, 'restart_after_crash = on');
sql($c, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
my $worker = worker_id($c);
@clients = start_clients($c, 2, 'asking');
wait_for_clients(@clients);
sql($registry,
	"REVOKE EXECUTE ON FUNCTION snowflake_registry.get_grant FROM regress_server; SELECT snowflake_registry.free_worker($worker)");
wait_until_true($c, "SELECT registry_error ~ 'permission denied' FROM snowflake_stat");
kill_backend($c);
finish_clients(@clients);
wait_for_error($c, 'permission denied');
set_timeout($c, '0');
sql_fails($c, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: no worker ID is granted to this server/,
	'after a crash, no IDs of a grant that the registry refused to extend');
sql($registry, 'GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant TO regress_server');
set_timeout($c, '1min');
ok(take_ids('c', 1000), 'IDs are generated with a new grant');

# A commit of the registry that did not wait for its synchronous standby is no
# answer, and defaults of the servers' role change nothing of that.
sql($registry, q{
	ALTER ROLE regress_server SET client_min_messages = error;
	ALTER ROLE regress_server SET default_transaction_isolation = serializable;
	ALTER ROLE regress_server SET lock_timeout = 1;
	ALTER ROLE regress_server SET search_path = ''});
sql($registry, 'ALTER ROLE regress_server SET standard_conforming_strings = off')
  if sql($registry, 'SHOW server_version_num') < 190000;
reload_with($registry, "synchronous_standby_names = 'nobody'");
crash_and_start($c);
my $not_durable =
  qr/could not get a snowflake worker ID from the registry\n.*DETAIL:  the registry did not commit durably: canceling wait for synchronous replication/;
wait_until(
	"a line like $not_durable",
	sub {
		# Calls of the other servers wait, too, and hold this one up.
		sql($registry,
			"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
		return slurp_file($c->logfile) =~ $not_durable;
	});
like(slurp_file($c->logfile), $not_durable,
	'a commit that is not durable on the standby grants nothing');
reload_with($registry, "synchronous_standby_names = ''");
ok(take_ids('c', 1000), 'IDs are generated when commits are durable again');

# The first of several hosts is not there.
restart_with($c,
	"snowflake.registry = 'host=$host,$host port=1,$port dbname=postgres user=regress_server'");
ok(take_ids('c', 1000), 'IDs are generated if the first host does not answer');

# All are taken.
sql($registry, q{SELECT snowflake_registry.create(1, 1, 'twitter', failovers => 0, new => true)});
my $d = new_server('d', $conf, "snowflake.scheme = 'twitter'");
is(worker_id($d), 1, 'a server has the only worker ID of a scheme');
my $e = new_server('e', $conf, "snowflake.scheme = 'twitter'", "snowflake.grant_timeout = 0");
wait_for_error($e, 'free');
sql_fails($e, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: no worker ID is granted to this server\n.*DETAIL:  .*free/,
	'the error says when a worker ID is free');
$d->stop;
wait_until_true($e, 'SELECT worker_id = 1 FROM snowflake_stat');
is(worker_id($e), 1, 'a worker ID that was returned is free');

# The registry notices by a server's first call that it lost grants.
$e->stop;
sql($registry,
	q{UPDATE snowflake_registry.registries SET identity = 'another' WHERE scheme ~ 'datacenter'});
my $offset = -s $d->logfile;
$d->append_conf('postgresql.conf', "snowflake.grant_timeout = 0");
$d->start;
wait_for_error($d, 'no worker ID is free');
sql_fails($d, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: no worker ID is granted to this server\n.*DETAIL:  .*no worker ID is free/,
	'no worker ID is granted when grants were lost');
unlike(slurp_file($d->logfile, $offset), qr/out of range/,
	'the answer of a registry that lost grants is understood');

done_testing();
