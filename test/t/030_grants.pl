# Servers that get their worker IDs from a registry.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $registry = new_registry('registry',
	"101, 1000, grant_time => '4 s', reach => '1 min', new => true",
	'wal_level = replica', 'max_wal_senders = 2');
my $conf = registry_conf($registry);
my $a = new_server('a', $conf, 'restart_after_crash = on');
my $b = new_server('b', $conf, "snowflake.server_name = 'beta'");
$a->safe_psql('postgres',
	'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
my %servers = (a => $a, b => $b);
my %seen;
my %last;

# IDs of a server; each is new to all servers, and rises on its own.
sub take_ids
{
	my ($name, $n) = @_;
	my @ids = split /\n/,
	  $servers{$name}->safe_psql('postgres',
		"SELECT snowflake_nextval() FROM generate_series(1, $n)");
	my $good = @ids == $n;

	foreach my $id (@ids)
	{
		$good = 0 if $seen{$id}++ || $id <= ($last{$name} // 0);
		$last{$name} = $id;
	}
	return $good;
}

sub worker_id
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		'SELECT worker_id FROM snowflake_parse(snowflake_nextval())');
}

# In the registry, the worker ID that a server holds.
sub held_by
{
	my ($name) = @_;
	return $registry->safe_psql('postgres',
		"SELECT worker_id FROM snowflake_workers WHERE server_name = '$name' AND state = 'held'");
}

sub wait_for_log
{
	my ($node, $pattern, $offset) = @_;
	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if slurp_file($node->logfile, $offset) =~ $pattern;
		usleep(100_000);
	}
	return 0;
}

# The start.
ok(take_ids($_, 1000), "IDs of $_") foreach 'a', 'b';
my %worker = map { $_ => worker_id($servers{$_}) } 'a', 'b';
isnt($worker{a}, $worker{b}, 'they have worker IDs of their own');
cmp_ok($_, '>=', 101, 'out of the range of the registry')
  foreach values %worker;
is(held_by('a'), $worker{a}, 'the registry knows who has which, by cluster_name');
is(held_by('beta'), $worker{b}, 'or by the name that is set');
is( $a->safe_psql(
		'postgres', q{
		SELECT worker_id, worker_id_set, granted_until BETWEEN now() AND now() + '1 min',
			registry_contact > now() - interval '1 min', registry_error IS NULL, registry_error_since IS NULL
		FROM snowflake_stat}),
	"$worker{a}|t|t|t|t|t",
	'snowflake_stat has the grant');
like(
	slurp_file($a->logfile),
	qr/LOG:  snowflake IDs are made with worker ID $worker{a}\n.*DETAIL:  The registry granted it until /,
	'so has the log');
unlike(slurp_file($a->logfile), qr/"snowflake.worker_id" is not set/,
	'nobody is told to set a worker ID');

# What is monitored is there.
my $yaml = slurp_file("$FindBin::RealBin/../../monitoring/queries.yaml");
my ($query) = $yaml =~ /query: \|\n(.*?)\n  metrics:/s;
my @metrics = $yaml =~ /^    - (\w+):$/mg;
is($a->safe_psql('postgres', "SELECT * FROM ($query) q") =~ tr/|//,
	$#metrics, 'the query for metrics has a column for each');
is( $a->safe_psql('postgres', qq{
		SELECT registry_error, granted_until_timestamp_seconds > registry_contact_timestamp_seconds FROM ($query) q}),
	'0|t', 'and tells of the registry');

# It is extended, all the time.
my $until = $a->safe_psql('postgres',
	'SELECT granted_until FROM snowflake_stat');
ok( $a->poll_query_until(
		'postgres',
		"SELECT granted_until > '$until'::timestamptz + interval '4 s' FROM snowflake_stat"),
	'the grant is extended');
is(worker_id($a), $worker{a}, 'with the same worker ID');
ok(take_ids('a', 1000), 'IDs go on');

# Who may see the connection string, and change it.
$a->safe_psql('postgres', 'CREATE ROLE regress_user');
is( $a->safe_psql(
		'postgres',
		"SELECT count(*) FROM pg_settings WHERE name = 'snowflake.registry'"),
	1,
	'a superuser sees the connection string');
like(
	sql_error($a, 'SET ROLE regress_user; SHOW snowflake.registry'),
	# as PostgreSQL 15 says it, and later ones
	qr/ERROR:  42501: (?:must be superuser or .*pg_read_all_settings|permission denied to examine "snowflake\.registry")/,
	'not everybody does');
like(sql_error($a, "SET snowflake.registry = ''"),
	qr/ERROR:  55P02: /, 'a session cannot change it');

# A clean shutdown gives the worker ID back; a start takes one at once.
$a->stop;
is( $registry->safe_psql(
		'postgres',
		"SELECT count(*) FROM snowflake_workers WHERE worker_id = $worker{a} AND state = 'held'"),
	0,
	'a shutdown gives the worker ID back');
my $start = time;
$a->start;
ok(take_ids('a', 1000), 'IDs after a restart');
cmp_ok(time - $start, '<', 20, 'which waited for no grant to end');

# A crash of a backend, with the registry away: the grant is kept, where the
# postmaster can keep anything.
$worker{a} = worker_id($a);
$registry->stop('immediate');
my @clients = start_clients($a, 2);
wait_for_clients(@clients);
kill_backend($a);
finish_clients(@clients);
$registry->start if !inherits();
ok(take_ids('a', 1000), 'IDs after the crash of a backend without a registry');
if (inherits())
{
	is(worker_id($a), $worker{a}, 'with the same worker ID');
}
else
{
	isnt(worker_id($a), $worker{a}, 'or with another one, and with a registry');
	$worker{a} = worker_id($a);
	$registry->stop('immediate');
}

# The registry is away for longer than the grant.
ok( $a->poll_query_until(
		'postgres',
		'SELECT granted_until < now() FROM snowflake_stat'),
	'the grant ends');
my ($waiter) = start_queries($a, 'SELECT snowflake_nextval()');
ok( $a->poll_query_until(
		'postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'SELECT snowflake_nextval()'
		  AND wait_event IN ('Extension', 'SnowflakeGrant')}),
	'a call waits for a grant');
$a->safe_psql('postgres',
	"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT snowflake_nextval()'");
finish_queries($waiter);
like($waiter->{err}, qr/canceling statement due to user request/,
	'it can be cancelled');
my $error = sql_error($a, 'SELECT snowflake_nextval()');
like(
	$error,
	qr/ERROR:  55000: the grant of worker ID $worker{a} ended at .*\n.*DETAIL:  Calls to the registry have failed since .*: .*connection to server .* failed/,
	'and fails after snowflake.grant_timeout with what is wrong');
like($error, qr/HINT:  Check "snowflake\.registry", the registry, and the server log/,
	'and where to look');
is( $a->safe_psql(
		'postgres', q{
		SELECT registry_error ~ 'connection to server', registry_error_since < now(), grant_waits > 0, grant_wait_ms > 0
		FROM snowflake_stat}),
	't|t|t|t',
	'snowflake_stat has it, too');
like(
	slurp_file($a->logfile),
	qr/WARNING:  could not extend the grant of snowflake worker ID $worker{a}\n.*DETAIL:  .*connection to server/,
	'and so has the log');
($waiter) = start_queries($a, 'SELECT snowflake_nextval()');
$registry->start;
is(finish_queries($waiter), 1, 'a call that waits succeeds when it is back');
ok(take_ids($_, 1000), "IDs of $_ go on") foreach 'a', 'b';
ok(wait_for_log($a, qr/LOG:  the registry of snowflake worker IDs is available again/, 0),
	'the log says that it is back');

# A worker ID is taken from a server that runs; its IDs go on rising.
$worker{a} = worker_id($a);
$registry->safe_psql('postgres', "SELECT snowflake_free_worker($worker{a})");
$a->poll_query_until('postgres',
	"SELECT worker_id <> $worker{a} FROM snowflake_stat")
  or die 'the worker ID stays';
ok(take_ids('a', 1000), 'IDs with another worker ID');
isnt(worker_id($a), $worker{a}, 'after an administrator took it');

# The worker is terminated, and started again.
my $worker_pid = server_process($a, 'snowflake grant');
$a->safe_psql('postgres', "SELECT pg_terminate_backend($worker_pid)");
$a->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'snowflake grant' AND pid <> $worker_pid")
  or die 'the worker is not started again';
ok(take_ids('a', 1000), 'IDs after the worker was terminated');

# The mark is set by hand: what was made before is not made again.
$worker{a} = worker_id($a);
my ($mark) = $a->safe_psql('postgres',
	"SET client_min_messages = error; SELECT snowflake_lower_bound(now() - interval '1 s') AS mark \\gset
	SELECT snowflake_reset(:mark, force => true); SELECT :mark");
$last{a} = 0;
ok(take_ids('a', 10000), 'IDs after the mark was lowered');
isnt(worker_id($a), $worker{a}, 'are of another worker ID');

# A wish.
$worker{b} = worker_id($b);
$b->append_conf('postgresql.conf', "snowflake.worker_id = $worker{b}");
$b->stop('immediate');
$b->start;
isnt(worker_id($b), $worker{b}, 'who lost its memory gets another worker ID');
$registry->poll_query_until('postgres',
	"SELECT granted_until < now() FROM snowflake_workers WHERE worker_id = $worker{b}")
  or die 'a grant does not end';
$b->restart;
is(worker_id($b), $worker{b}, 'the one that is wished for, if it is free');
$b->restart;
ok(take_ids('b', 1000), 'IDs of b');
my $c = new_server('c', $conf, "snowflake.worker_id = " . worker_id($b));
$servers{c} = $c;
isnt(worker_id($c), worker_id($b), 'and another if it is not');
ok(take_ids('c', 1000), 'IDs of c');

# Registries that cannot be used.  The error of a call says why.
sub call_error
{
	my ($line) = @_;
	my $offset = -s $c->logfile;
	$c->append_conf('postgresql.conf',
		"$line\nsnowflake.grant_timeout = '3 s'");
	$c->stop;
	$c->start;
	my $text = sql_error($c, 'SELECT snowflake_nextval()');
	my ($detail) = $text =~ /DETAIL:  Calls to the registry have failed since .*?: (.*)/;
	like($text, qr/ERROR:  55000: no worker ID is granted to this server/, 'no ID without a grant');
	my ($logged) = slurp_file($c->logfile, $offset) =~
	  /WARNING:  could not get a snowflake worker ID from the registry\n.*DETAIL:  (.*)/;
	is($logged, $detail, 'the log says the same');
	return $detail;
}
my $host = $registry->host;
my $port = $registry->port;
$registry->safe_psql('postgres',
	q{CREATE DATABASE empty; CREATE ROLE stranger LOGIN; CREATE ROLE server LOGIN;
	GRANT EXECUTE ON FUNCTION snowflake_get_grant, snowflake_extend_grant, snowflake_return_grant TO server});
like(call_error("snowflake.registry = 'host=$host port=1 dbname=postgres'"),
	qr/connection to server .*port=?.*1|\.s\.PGSQL\.1/, 'nobody listens');
like(call_error("snowflake.registry = 'host=$host port=$port dbname=nowhere'"),
	qr/database "nowhere" does not exist/, 'no such database');
like(call_error("snowflake.registry = 'host=$host port=$port dbname=empty'"),
	qr/the extension snowflake is not installed in database "empty"/,
	'no extension there');
like(call_error("snowflake.registry = 'host=$host port=$port dbname=postgres user=stranger'"),
	qr/permission denied for function snowflake_get_grant/,
	'no right to ask');
like(
	call_error("snowflake.registry = 'host=$host port=$port dbname=postgres user=server'\nsnowflake.scheme = 'leaf'\nsnowflake.worker_id = 0"),
	qr/registry has no worker IDs for scheme "epoch=2010-11-04/,
	'another scheme');
like(
	call_error("snowflake.scheme = 'epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12'\nsnowflake.reserve_time = '10 s'"),
	qr/grant_time of the registry \(4000 ms\) is less than "snowflake\.reserve_time" \(10000 ms\)/,
	'a grant that is shorter than what is reserved');
$c->append_conf('postgresql.conf', 'snowflake.reserve_time = 1s');
$c->reload;
ok($c->poll_query_until('postgres', 'SELECT worker_id > 100 FROM snowflake_stat'),
	'a plain role may ask; what was wrong is mended by a reload');
ok(take_ids('c', 1000), 'IDs of c, again');

# The registry refuses to extend a grant, and to give another, and a backend
# crashes: what was kept is nothing to make IDs of.
$c->append_conf('postgresql.conf', 'restart_after_crash = on');
$c->restart;
$c->safe_psql('postgres',
	'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
my $worker = worker_id($c);
$registry->safe_psql('postgres',
	"REVOKE EXECUTE ON FUNCTION snowflake_get_grant FROM server; SELECT snowflake_free_worker($worker)");
$c->poll_query_until('postgres',
	"SELECT registry_error ~ 'permission denied' FROM snowflake_stat")
  or die 'the grant was extended';
@clients = start_clients($c, 2, 'asking');
wait_for_clients(@clients);
kill_backend($c);
finish_clients(@clients);
like(
	sql_error($c, 'SELECT snowflake_nextval()'),
	qr/ERROR:  55000: no worker ID is granted to this server/,
	'after a crash, no IDs of a grant that the registry refused to extend');
$registry->safe_psql('postgres',
	'GRANT EXECUTE ON FUNCTION snowflake_get_grant TO server');
ok(take_ids('c', 1000), 'IDs with a new one');

# A commit of the registry that did not wait for its synchronous standby is no
# answer.
$registry->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
$registry->reload;
$c->stop('immediate');
$c->start;
my $not_durable =
  qr/could not get a snowflake worker ID from the registry\n.*DETAIL:  the registry did not commit durably: canceling wait for synchronous replication/;
foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if slurp_file($c->logfile) =~ $not_durable;

	# Calls of the other servers wait, too, and hold this one up.
	$registry->safe_psql('postgres',
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
	usleep(100_000);
}
like(slurp_file($c->logfile), $not_durable,
	'a commit that is not durable on the standby grants nothing');
$registry->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$registry->reload;
ok(take_ids('c', 1000), 'IDs when it is');

# The first of several hosts is not there.
$c->append_conf('postgresql.conf',
	"snowflake.registry = 'host=$host,$host port=1,$port dbname=postgres user=server'");
$c->restart;
ok(take_ids('c', 1000), 'IDs if the first host is away');

# All are taken.
$registry->safe_psql('postgres',
	q{SELECT snowflake_create_registry(1, 1, 'twitter', failovers => 0, new => true)});
my $d = new_server('d', $conf, "snowflake.scheme = 'twitter'");
is(worker_id($d), 1, 'the only worker ID of a scheme');
my $e = new_server('e', $conf, "snowflake.scheme = 'twitter'", "snowflake.grant_timeout = '3 s'");
like(
	sql_error($e, 'SELECT snowflake_nextval()'),
	qr/ERROR:  55000: no worker ID is granted to this server\n.*DETAIL:  .*free/,
	'none is free, and the message says when one is');
$d->stop;
$e->poll_query_until('postgres', 'SELECT worker_id = 1 FROM snowflake_stat')
  or die 'a worker ID that was given back is not free';
is(worker_id($e), 1, 'it is free when it is given back');

# The registry notices by a server's first call that it lost grants.
$e->stop;
$registry->safe_psql('postgres',
	q{UPDATE snowflake_registry SET identity = 'another' WHERE scheme ~ 'datacenter'});
my $offset = -s $d->logfile;
$d->start;
like(
	sql_error($d, 'SELECT snowflake_nextval()'),
	qr/ERROR:  55000: no worker ID is granted to this server\n.*DETAIL:  .*no worker ID is free/,
	'no worker ID when grants were lost');
unlike(slurp_file($d->logfile, $offset), qr/out of range/,
	'and what the registry answers is understood');

$_->stop foreach $a, $b, $c, $d, $registry;
done_testing();
