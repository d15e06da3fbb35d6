# snowflake_convert_online() with pgAudit, pgbouncer in transaction mode, pg_repack, and
# pg_cron.

use SnowflakeTest::Online;
use SnowflakeTest;

my $norders = 200;
my $dir = PostgreSQL::Test::Utils::tempdir_short;
my $bouncer;

END
{
	my $status = $?;
	$bouncer->kill_kill if defined $bouncer;
	$? = $status;
}

# A database with the tables, and everything in it.
sub new_database ($node, $name, @statements)
{
	sql($node, "CREATE DATABASE $name");
	$node->safe_psql($name, join('; ', 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert', @statements));
	create_shop($node, $name, $norders);
	return;
}

# Is the conversion complete?
sub is_converted ($node, $database, $name)
{
	is(shop_is_whole($node, $database, $norders), '', "$name: no row is lost or changed");
	is(nothing_is_left($node, $database), '', "$name: nothing is left");
	is($node->safe_psql($database, q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'orders'::regclass}),
		'snowflake_nextval()', "$name: the default is set");
	return;
}

# Run the statements of the plan, each as one string, until there is none.
sub convert_by_hand ($connstr, $name)
{
	for (my $n = 0; $n < 100; $n++)
	{
		my ($statement, $err) = run_command(
			[ 'psql', '-XAtq', '-d', $connstr, '-c', q{SELECT statement FROM snowflake_convert_plan('orders') WHERE state LIKE 'next%'} ]);
		return fail("$name: the plan: $err") if $err =~ /ERROR/;
		return if $statement eq '';
		(undef, $err) = run_command([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connstr, '-c', $statement ]);
		return fail("$name: $statement: $err") if $?;
	}
	fail("$name: the plan has no end");
	return;
}

my $node = new_server(
	'main', 'wal_level = logical', "shared_preload_libraries = 'pgaudit, snowflake, pg_cron'",
	q{pgaudit.log = 'all'}, 'pgaudit.log_parameter = on', 'pgaudit.log_relation = on',
	"cron.database_name = 'postgres'", 'max_worker_processes = 20');
my $user = sql($node, 'SELECT current_user');
sql($node, 'CREATE ROLE regress_reader');

#
# pgAudit, with its extension, and the library alone
#
my $version = sql($node, q{SELECT default_version FROM pg_available_extensions WHERE name = 'pgaudit'});
my ($out, $err);
foreach my $case ([ 'audited', "pgAudit $version", 'CREATE EXTENSION pgaudit' ], [ 'loaded', "pgAudit $version as a library" ])
{
	my ($database, $label, @statements) = @$case;

	new_database($node, $database, @statements);
	$err = convert_online($node, $database, "'orders'");
	if ($version =~ /^(?:1\.7(?:\.0)?|16\.0|17\.0)$/)
	{
		like($err, qr/ERROR/, "$label fails at statements within a procedure");
		convert_by_hand($node->connstr($database), "$label, by hand");
	}
	else
	{
		unlike($err, qr/ERROR|WARNING/, "a conversion succeeds with $label") or diag($err);
	}
	is_converted($node, $database, $label);
}
like(slurp_file($node->logfile), qr/AUDIT: SESSION,.*CREATE INDEX CONCURRENTLY/, 'pgAudit logs the statements');

#
# pgbouncer: a call, the statements of the plan
#
sql($node, q{ALTER SYSTEM SET shared_preload_libraries = 'snowflake', 'pg_cron'});
$node->restart;
new_database($node, $_) foreach 'called', 'by_hand';
my $port = PostgreSQL::Test::Cluster::get_free_port();
append_to_file("$dir/userlist.txt", "\"$user\" \"secret\"\n");
append_to_file("$dir/pgbouncer.ini", join "\n", '[databases]', '* = ' . $node->connstr =~ tr/'//dr . " user=$user",
	'[pgbouncer]', 'listen_addr = 127.0.0.1', "listen_port = $port", 'auth_type = scram-sha-256', "auth_file = $dir/userlist.txt",
	'pool_mode = transaction', 'default_pool_size = 2', "unix_socket_dir = $dir", '');
$bouncer = IPC::Run::start([ 'pgbouncer', "$dir/pgbouncer.ini" ], '>' => "$dir/log", '2>&1');
my $pooled = "host=127.0.0.1 port=$port user=$user password=secret";
wait_until('pgbouncer', sub { system('psql', '-XAtq', '-o', '/dev/null', '-d', "$pooled dbname=called", '-c', 'SELECT 1') == 0 });
command_ok([ 'psql', '-XAtq', '-d', "$pooled dbname=called", '-c', "CALL snowflake_convert_online($_)" ],
	"a call by pgbouncer in transaction mode: $_") foreach "'orders', until => 'swap'", "'orders'";
is_converted($node, 'called', 'a call by pgbouncer');
convert_by_hand("$pooled dbname=by_hand", 'by hand, by pgbouncer');
is_converted($node, 'by_hand', 'by hand, by pgbouncer');
$bouncer->kill_kill;
undef $bouncer;

#
# pg_repack, which copies a table during the backfill, and replaces it only when all
# transactions from before have ended
#
sql($node, q{
	CREATE EXTENSION pg_repack;
	CREATE TABLE repacked (id serial PRIMARY KEY, v int);
	INSERT INTO repacked (v) SELECT generate_series(1, 50000)});
my $call = start_converting($node, 'postgres', q{'repacked', until => 'backfill', batch_time => '1 ms', work_share => 0.02});
wait_until_true($node, 'SELECT count(snowflake_new_id) > 0 FROM repacked');
my $in = "BEGIN;\nSELECT 'xid', txid_current();\n";
my $reader = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<' => \$in, '>' => \$out, '2>' => \$err);
$reader->pump until $out =~ /xid/;
my $repacked;
my $repack = IPC::Run::start([ 'pg_repack', '-h', $node->host, '-p', $node->port, '-d', 'postgres', '-t', 'repacked', '--no-kill-backend' ],
	'<' => \undef, '>' => \$repacked, '2>&1');
wait_until_said($call, qr/NOTICE:  waiting to copy the columns of table public\.repacked\nDETAIL:  column .* of repack\.log_\d+ uses the row type of table public\.repacked/);
$in .= "COMMIT;\n";
$reader->finish;
ok($repack->finish, 'pg_repack completes during a conversion') or diag($repacked);
like(finish_converting($call), qr/rows were moved before they were copied/, 'what pg_repack has copied without its new columns is filled again');
is(sql($node, 'SELECT count(*), count(snowflake_new_id) FROM repacked'), '50000|50000', 'all rows are filled');
$err = convert_online($node, 'postgres', "'repacked'");
unlike($err, qr/ERROR|WARNING/, 'the conversion of a table that was repacked completes') or diag($err);
is(sql($node, 'SELECT count(*), count(id), count(*) FILTER (WHERE id <> v) FROM repacked'), '50000|50000|0', 'pg_repack: no row is lost or changed');
is(nothing_is_left($node, 'postgres'), '', 'pg_repack: nothing is left');
sql($node, 'DROP EXTENSION pg_repack; DROP TABLE repacked');

#
# pg_cron, which runs a job in a session of its own, or in a background worker
#
sql($node, 'CREATE EXTENSION pg_cron; CREATE TABLE log (n int)');
foreach my $workers ('off', 'on')
{
	sql($node, "ALTER SYSTEM SET cron.use_background_workers = $workers");
	sql($node, "ALTER SYSTEM SET cron.host = '" . $node->host . "'");
	$node->restart;
	sql($node,
		'CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 100)');
	my $begun = sql($node, 'SELECT clock_timestamp()');
	sql($node,
		q{SELECT cron.schedule('convert', '* * * * *', 'CALL snowflake_convert_online(''public.t'')')});
	sql($node,
		q{SELECT cron.schedule('both', '* * * * *', 'INSERT INTO public.log VALUES (1); CALL snowflake_convert_online(''public.t'')')});
	wait_until_true($node,
		"SELECT count(DISTINCT jobid) = 2 FROM cron.job_run_details WHERE status IN ('succeeded', 'failed') AND start_time > '$begun'");
	my $details = sql($node,
		"SELECT CASE WHEN command LIKE 'INSERT%' THEN 'both' ELSE 'convert' END, status, return_message FROM cron.job_run_details WHERE start_time > '$begun' ORDER BY command, start_time");
	like($details, qr/^convert\|succeeded/m, "pg_cron converts a table, background workers $workers") or diag($details);
	like($details, qr/^both\|failed/m, "pg_cron with two statements, background workers $workers") or diag($details);
	is(sql($node, q{SELECT count(*) || pg_get_expr(adbin, adrelid) FROM t, pg_attrdef WHERE adrelid = 't'::regclass GROUP BY adbin, adrelid}),
		'100snowflake_nextval()', 'the table is converted');
	is(sql($node, 'SELECT count(*) FROM log'), '0', 'what stands before the call is not committed');
	is(nothing_is_left($node, 'postgres'), '', 'nothing is left');
	sql($node, q{SELECT cron.unschedule('convert'), cron.unschedule('both'); DROP TABLE t});
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'no process crashed');

done_testing();
