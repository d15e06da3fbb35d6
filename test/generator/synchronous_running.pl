# Queries that run while it changes how many synchronous standbys are required, and
# which these are: IDs wait for what commits wait for, and no longer.

use SnowflakeTest;

my $primary = new_primary('primary', "snowflake.scheme = 'timestamp=41,worker=2,sequence=20'",
	'snowflake.sequence_start = zero', 'synchronous_commit = local', 'autovacuum = off');
my %standby = map { $_ => new_standby($primary, $_) } 'b', 'c';

sub wait_for_streaming (@names)
{
	my $list = join ' ', @names;

	wait_until_true($primary, "SELECT string_agg(application_name, ' ' ORDER BY application_name) = '$list'
		 FROM pg_stat_replication WHERE state = 'streaming' AND flush_lsn IS NOT NULL");
	return;
}

sub change_standbys ($names)
{
	change_setting($primary, 'synchronous_standby_names', $names);
	return;
}

# A query that generates an ID every few milliseconds, a number of times.
sub start_query ($times)
{
	my ($query) = start_queries($primary,
		"SET statement_timeout = '60 s';
		 COPY (SELECT snowflake_nextval() FROM (SELECT pg_sleep(0.002) FROM generate_series(1, $times)) t WHERE t IS NOT NULL) TO STDOUT");

	wait_until_true($primary, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%COPY%' AND wait_event = 'PgSleep'");
	return $query;
}

sub last_id ($query) { return (split /\n/, $query->{out})[-1]; }

# The worker that reads the configuration for others.  It is started again.
my $worker = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake standbys'";
wait_until_true($primary, "SELECT count(*) = 1 FROM ($worker) w");
my $pid = sql($primary, $worker);
wait_for_streaming('b', 'c');
sql($primary, "SELECT pg_terminate_backend($pid)");
becomes_true($primary, "SELECT count(*) = 1 FROM ($worker AND pid <> $pid AND wait_event IS NOT NULL) w",
	'after the worker was terminated, it is started again');

# More standbys.
change_standbys('FIRST 1 (b)');
my $query = start_query(100000);
change_standbys('FIRST 2 (b, c)');
$standby{c}->stop;
ok(waits_for_standbys($primary),
	'when more standbys are required, a running query waits for all of them');

# The configuration is reloaded for something else.
change_setting($primary, 'log_min_messages', 'notice');
is(sql($primary, 'SELECT pg_sleep(3), count(*) FROM pg_stat_activity WHERE wait_event IN (\'Extension\', \'SnowflakeStandby\') AND query LIKE \'%COPY%\' AND pid <> pg_backend_pid()'),
	'|1', 'a reload of another setting does not end that');
sql($primary, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%COPY%' AND pid <> pg_backend_pid()");
finish_queries($query);
$standby{c}->start;
wait_for_streaming('b', 'c');
$primary->wait_for_catchup($standby{c}, 'flush', $primary->lsn('flush'));
cmp_ok(mark_of($standby{c}), '>', last_id($query),
	'all standbys have a mark above the IDs');

# Fewer standbys, for a process that never reads the configuration again.
change_standbys('FIRST 2 (b, c)');
$standby{c}->stop;
my $parallel = sql($primary, 'SHOW server_version_num') < 160000
  ? 'force_parallel_mode' : 'debug_parallel_query';
($query) = start_queries($primary,
	"SET $parallel = on; SET statement_timeout = '60 s'; SELECT snowflake_nextval()");
ok(waits_for_standbys($primary), 'a parallel worker waits for two standbys');
change_standbys('FIRST 1 (b)');
is(finish_queries($query), 1, 'it continues when one is required')
  or diag($query->{err});

# Any of them, while one that is connected does not answer.
$standby{c}->start;
wait_for_streaming('b', 'c');
change_standbys('FIRST 2 (b, c)');
$query = start_query(2000);
my $receiver = server_process($standby{c}, 'walreceiver');
kill 'STOP', $receiver;
ok(waits_for_standbys($primary), 'a running query waits for a standby that is stuck');
change_standbys('ANY 1 (b, c)');
is(finish_queries($query), 1, 'it continues when any of them is enough')
  or diag($query->{err});
kill 'CONT', $receiver;

# A tick that lasts: IDs are ahead of the clock, and it has a million of them.
change_standbys('FIRST 1 (b, c)');
sql($primary, q{
	SET client_min_messages = error;
	SELECT snowflake_raise_mark(snowflake_lower_bound(now() + '1 hour')), snowflake_nextval()});
$query = start_query(100000);
$receiver = server_process($standby{c}, 'walreceiver');
kill 'STOP', $receiver;
sql($primary, q{
	SET client_min_messages = error;
	SELECT snowflake_raise_mark(snowflake_lower_bound(now() + '2 hour')), snowflake_nextval()});
$standby{b}->stop;
ok(waits_for_standbys($primary),
	'IDs of a tick that was entered before wait for another standby, too');
kill 'CONT', $receiver;
wait_until_true($primary, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%COPY%' AND wait_event = 'PgSleep'");
pass('they continue when it has the mark');
sql($primary, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%COPY%' AND pid <> pg_backend_pid()");
finish_queries($query);

# snowflake_raise_mark()
$standby{c}->stop;
my $mark = sql($primary, "SELECT snowflake_lower_bound(now() + '3 hours')");
my ($call) = start_queries($primary, "SELECT snowflake_raise_mark($mark)");
ok(waits_for_standbys($primary), 'snowflake_raise_mark() waits for a synchronous standby');
$standby{c}->start;
is(finish_queries($call), 1, 'it returns when a standby has the mark');

# A standby that is ahead when another one is promoted cannot follow that, but connects
# again and again.
$standby{b}->start;
wait_for_streaming('b', 'c');
$standby{c}->stop;
sql($primary, 'CREATE TABLE ahead AS SELECT generate_series(1, 20000)');
$primary->wait_for_catchup($standby{b});
$primary->stop('immediate');
$standby{c}->append_conf('postgresql.conf', "synchronous_standby_names = 'b'");
$standby{c}->start;
$standby{c}->promote;
$standby{b}->append_conf('postgresql.conf', "wal_retrieve_retry_interval = '50 ms'");
$standby{b}->enable_streaming($standby{c});
$standby{b}->reload;
my $before = () = slurp_file($standby{b}->logfile) =~ /new timeline 2 forked off/g;
sql_fails($standby{c}, "SET statement_timeout = '5 s'; SELECT snowflake_nextval()",
	qr/ERROR:  57014: /, 'IDs wait while the synchronous standby is ahead on the previous timeline');
my $after = () = slurp_file($standby{b}->logfile) =~ /new timeline 2 forked off/g;
cmp_ok($after, '>', $before, 'meanwhile it connects');
change_setting($standby{c}, 'synchronous_standby_names', '');
cmp_ok(sql($standby{c}, 'SET client_min_messages = error; SELECT snowflake_nextval()'),
	'>=', $mark, 'a standby that is promoted after snowflake_raise_mark() continues above the mark');
done_testing();
