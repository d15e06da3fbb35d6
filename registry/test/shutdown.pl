# How the worker that calls the registry ends.  A shutdown is not held up.  If the
# worker alone is terminated, the server keeps its worker ID.

use SnowflakeTest;

my $registry =
  new_registry('registry', "1, 100, grant_time => '10 s', new => true");
my $conf = registry_conf($registry);

# A synchronous standby that is down.  While snowflake_set_mark() flushes a
# mark, the worker wants to know the next tick, and must not write a mark
# itself: it would wait for the standby.
my $library =
  compile("$FindBin::RealBin/../../test/worlds/torture/wal_disk.c", '-shared', '-fPIC');
my $server = PostgreSQL::Test::Cluster->new('server');
my $disk = $server->basedir . '/wal_disk';

sub set_flush_ms ($ms) { write_integers($disk, 0, 1000 * $ms); return; }

set_flush_ms(0);
$server->init(allows_streaming => 1);
$server->append_conf('postgresql.conf', <<"EOF");
shared_preload_libraries = 'snowflake'
$conf
fsync = on
wal_sync_method = fsync
synchronous_commit = local
EOF
{
	local $ENV{LD_PRELOAD} = $library;
	local $ENV{SNOWFLAKE_WAL_DISK} = $disk;
	$server->start;
}
sql($server, 'CREATE EXTENSION snowflake; SELECT snowflake_nextval()');
change_setting($server, 'synchronous_standby_names', 'nobody');

# A debugger holds the worker up where it has seen that the mark must be read,
# until snowflake_set_mark() has read it.
my $until = sql($server, 'SELECT granted_until FROM snowflake_stat');
SKIP:
{
	my $worker = server_process($server, 'snowflake grant');
	my $gdb = debug_process($server, $worker, qr/^Breakpoint 2 /m,
		'break snowflake_recover', 'break snowflake_reserve', 'continue',
		'shell while ! test -e released; do sleep 0.05; done');

	skip 'no debugger', 1 if !$gdb;
	$until = sql($server, 'SELECT granted_until FROM snowflake_stat');
	set_flush_ms(2500);
	my ($session) = start_queries($server,
		'SELECT snowflake_set_mark(snowflake_lower_bound(now()), force => true)');
	wait_until_true($server, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'WALSync' AND query ~ 'snowflake_set_mark'});
	kill 'HUP', $worker;
	wait_for_debugger($gdb, qr/^Breakpoint [12], /m);
	is(finish_queries($session), 1,
		'snowflake_set_mark() ends while the worker reads the mark');
	set_flush_ms(0);
	append_to_file($server->basedir . '/released', '');
	finish_debugger($gdb);
}
becomes_true($server, "SELECT granted_until > '$until' FROM snowflake_stat",
	'the grant is extended although the synchronous standby is down');
my $start = time;
$server->stop;
cmp_ok(time - $start, '<', 10,
	'a synchronous standby that is down does not hold up a fast shutdown');
# A grant that has not to be extended needs one call.
my $other = new_registry('other', "1, 100, grant_time => '1 hour', reach => '1 day', new => true", "track_functions = 'all'");
my $once = new_server('once', registry_conf($other));
sql($once, 'SELECT snowflake_nextval()');
$once->stop;
wait_until_true($other, "SELECT count(*) = 1 FROM pg_stat_user_functions WHERE funcname = 'return_grant'");
is(sql($other, "SELECT funcname, calls FROM pg_stat_user_functions WHERE funcname ~ '^(get|extend|return)_grant' ORDER BY 1"),
	"get_grant|1\nreturn_grant|1", 'a grant needs one call');
$other->stop;

# The worker alone is terminated.
$server = new_server('terminated', $conf, 'restart_after_crash = on');
my $worker_id = 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())';
my $held = sql($server, $worker_id);
my $terminate = q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
	WHERE backend_type = 'snowflake grant'};
is( sql($server, qq{
		SET client_min_messages = error;
		SELECT snowflake_stat_reset();
		$terminate;
		$worker_id;
		SELECT grant_waits FROM snowflake_stat}) =~ s/^\n//r,
	"t\n$held\n0", 'the worker is terminated: IDs continue at once, with the same worker ID');
is(sql($registry, "SELECT state FROM snowflake_registry.workers WHERE worker_id = $held"),
	'held', 'the worker is terminated: the server still holds its worker ID');
like(slurp_file($server->logfile),
	qr/FATAL:  terminating background worker "snowflake grant" due to administrator command/,
	'the worker is terminated: the log says so');

# It is not there while it waits to be started again.
my $wait = q{
	SET client_min_messages = error;
	SELECT snowflake_set_mark(snowflake_lower_bound(now() - interval '1 min'), force => true);
	SELECT snowflake_nextval()};
unlike(sql_error($server, "$terminate; $wait"),
	qr/ERROR/, 'calls wait for a worker that is started again');
change_setting($server, 'snowflake.grant_timeout', '100ms');
sql_fails($server, "$terminate; $wait",
	qr/ERROR:  55000: no worker ID is granted to this server\nDETAIL:  The background worker "snowflake grant", which calls the registry, is not running\./,
	'an error says that the worker is not running');
my $stopped = server_process($server, 'snowflake grant');
wait_until_true($server, 'SELECT granted_until > now() FROM snowflake_stat');
sql($server, 'SELECT snowflake_nextval()');
kill 'STOP', $stopped;
sql_fails($server, $wait,
	qr/ERROR:  55000: no worker ID is granted to this server\nDETAIL:  The background worker "snowflake grant", which calls the registry, does not respond\.\nHINT:  Terminate it: SELECT pg_terminate_backend/,
	'an error says that the worker does not respond, and what to do');
kill 'CONT', $stopped;
reload_with($server, "snowflake.grant_timeout = '1 min'");

# Calls that do not wait wake the worker, which would next call in minutes.
my $long = new_registry('long', "1, 100, grant_time => '1 hour', reach => '1 day', new => true");
my $impatient = new_server('impatient', registry_conf($long), 'snowflake.grant_timeout = 0');
wait_until_true($impatient, 'SELECT granted_until > now() FROM snowflake_stat');
sql($impatient, 'SELECT snowflake_nextval()');
sql_fails($impatient, $wait,
	qr/ERROR:  55000: no worker ID is granted to this server\nDETAIL:  The registry did not answer within "snowflake\.grant_timeout" \(0 ms\)\./,
	'a call that does not wait fails');
becomes_true($impatient, 'SELECT granted_until > now() FROM snowflake_stat',
	'a call that does not wait wakes the worker');
$_->stop foreach $impatient, $long;

# The worker is terminated while the registry is down: the grant is used to its
# end.
$held = sql($server, $worker_id);
$registry->stop('immediate');
sql($server, $terminate);
server_process($server, 'snowflake grant');
is(sql($server, $worker_id),
	$held, 'the worker is terminated while the registry is down: the grant remains');

# Who may see what is wrong.
my ($host, $port) = ($registry->host, $registry->port);
wait_until_true($server, 'SELECT registry_error IS NOT NULL FROM snowflake_stat');
sql($server, q{
	CREATE ROLE regress_plain;
	CREATE ROLE regress_monitor IN ROLE pg_monitor;
	CREATE ROLE regress_settings IN ROLE pg_read_all_settings});
my $error = 'SELECT registry_error FROM snowflake_stat';
is(sql($server, "SET ROLE regress_plain; $error"),
	'See the server log.', 'a role without rights does not see the error of the connection');
like(sql($server, "SET ROLE $_; $error"), qr/\Q$host\E/, "$_ sees it")
  foreach 'regress_monitor', 'regress_settings';
reload_with($server, "snowflake.grant_timeout = '100 ms'");
wait_until_true($server, 'SELECT granted_until < now() FROM snowflake_stat');
my $of_plain = sql_error($server, 'SET ROLE regress_plain; SELECT snowflake_nextval()');
like($of_plain,
	qr/ERROR:  55000: the grant of worker ID $held ended at .*\nDETAIL:  Calls to the registry have failed since .*: See the server log\./,
	'the error of a call sends a role without rights to the log');
unlike($of_plain, qr/\Q$host\E/, 'the error of a call does not name the host to a role without rights');
sql_fails($server, 'SET ROLE regress_monitor; SELECT snowflake_nextval()',
	qr/DETAIL:  Calls to the registry have failed since .*: .*\Q$host\E/,
	'regress_monitor sees the reason');

# Functions and a view of a superuser
sql($server, q{
	CREATE FUNCTION generate() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT snowflake_nextval()';
	CREATE FUNCTION monitor() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT registry_error FROM snowflake_stat';
	CREATE VIEW of_superuser AS SELECT registry_error FROM snowflake_stat;
	GRANT SELECT ON of_superuser TO PUBLIC});
sql_fails($server, 'SET ROLE regress_plain; SELECT generate()',
	qr/DETAIL:  Calls to the registry have failed since .*: See the server log\./,
	'the error of a call in a function of a superuser does not name the host to a role without rights');
sql_fails($server, 'SET ROLE regress_monitor; SELECT generate()',
	qr/DETAIL:  Calls to the registry have failed since .*: .*\Q$host\E/,
	'the error of a call in a function of a superuser names the host to regress_monitor');
is(sql($server, 'SET ROLE regress_plain; TABLE of_superuser'),
	'See the server log.', 'a view of a superuser does not show more than its user may see');
like(sql($server, 'SET ROLE regress_plain; SELECT monitor()'),
	qr/\Q$host\E/, 'a function of a superuser can show what its owner may see');

# Single-user mode.
$server->stop;
like(single_user($server, 'SELECT snowflake_nextval()'),
	qr/ERROR:  no worker ID is granted to this server\n.*DETAIL:  In single-user mode, no background worker calls the registry\.\n.*HINT:  Start the server normally\./,
	'in single-user mode, an error says why there is no worker ID');

# A shutdown returns the worker ID.
$registry->start;
$server->append_conf('postgresql.conf', "snowflake.grant_timeout = '1 min'");
$server->start;
$held = sql($server, $worker_id);
$server->stop('smart');
is(sql($registry, "SELECT state FROM snowflake_registry.workers WHERE worker_id = $held"),
	'free', 'a smart shutdown returns the worker ID');

# So does one that comes while the worker has a reload to see.
$server->start;
$held = sql($server, $worker_id);
my $worker = server_process($server, 'snowflake grant');
kill 'STOP', $worker;
reload_with($server, "snowflake.grant_timeout = '2 min'");
wait_until_true($server, "SELECT setting = '120000' FROM pg_settings WHERE name = 'snowflake.grant_timeout'");
my $pid_file = $server->data_dir . '/postmaster.pid';
my $signals = IPC::Run::start(
	[ 'sh', '-c',
		"n=0; until grep -q stopping '$pid_file' || [ \$n = 600 ]; do n=\$((n + 1)); sleep 0.1; done; kill -TERM $worker; kill -CONT $worker" ]);
$server->stop;
ok($signals->finish, 'the worker receives a reload and a shutdown at once');
is(sql($registry, "SELECT state FROM snowflake_registry.workers WHERE worker_id = $held"),
	'free', 'a shutdown after a reload returns the worker ID');

done_testing();
