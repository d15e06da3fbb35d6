# The worker ID: what is logged when a server starts to generate IDs, and which values
# can be set for the next start.

use SnowflakeTest;

# DEBUG1 reports when the background worker has exited.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'snowflake'\nlog_min_messages = debug1");

my $made = qr/LOG:  snowflake IDs have scheme/;
my $not_set = qr/LOG:  "snowflake\.worker_id" is not set/;
my $others = qr/WARNING:  "snowflake\.worker_id" is not set.*\n.*DETAIL:  .* Another server with worker ID 0/;
my $done = qr/background worker "snowflake startup" \(PID \d+\) exited with exit code (\d+)/;

# What the log has from the worker, after something that makes it run.
sub log_of ($server, $action)
{
	my $offset = -s $server->logfile // 0;

	$action->();
	$server->wait_for_log($done, $offset);
	return slurp_file($server->logfile, $offset);
}

# Restart with other lines of configuration.
sub log_with (@conf)
{
	$node->append_conf('postgresql.conf', join("\n", @conf, ''));
	return log_of($node, sub { $node->restart });
}

sub worker
{
	return sql($node, 'SELECT datacenter_id, worker_id, worker_id_set FROM snowflake_stat');
}

# Never set
my $log = log_of($node, sub { $node->start });
like($log,
	qr/$made "epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12", worker ID 0$/m,
	'the start logs scheme and worker ID');
like($log, $not_set, 'the start logs that the worker ID was never set');
like($log, qr/HINT:  .* set a different "snowflake\.worker_id" on each server/,
	'the log has a hint for a worker ID that was never set');
unlike($log, $others, 'without subscriptions and Citus there is no warning');
like($log, $done, 'the startup worker exits');
is(($log =~ $done)[0], 0, 'the startup worker exits with status 0');
sql($node, 'CREATE EXTENSION snowflake');
is(worker(), '|0|f', 'snowflake_stat shows a worker ID that was never set');
is(sql($node, 'SELECT (snowflake_parse(snowflake_nextval())).worker_id'),
	0, 'IDs have worker ID 0 if it was never set');

# In another database than postgres, too
sql($node, 'CREATE DATABASE other');
$node->safe_psql('other',
	"CREATE SUBSCRIPTION s CONNECTION 'dbname=none' PUBLICATION p WITH (connect = false)");
$log = log_of($node, sub { $node->restart });
like($log, $others, 'a server with a subscription warns that the worker ID was never set');
like($log, qr/HINT:  .* set a different "snowflake\.worker_id"/, 'the warning says what to do');

# Citus, of which only a setting is looked at
$node->safe_psql('other', 'ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s');
unlike(log_of($node, sub { $node->restart }), $others, 'a server without the subscription does not');
$node->append_conf('postgresql.conf', "citus.version = '13.2.2'");
like(log_of($node, sub { $node->restart }), $others, 'a server with Citus warns, too');

# A chosen 0 is none that was forgotten.
sql($node, 'ALTER SYSTEM SET snowflake.worker_id = 0');
$log = log_of($node, sub { $node->restart });
like($log, qr/$made .*, worker ID 0$/m, 'worker ID 0 can be set');
unlike($log, qr/is not set/, 'a worker ID 0 that was set is not reported as missing');
is(sql_error($node, 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake'),
	'', 'CREATE EXTENSION does not warn if worker ID 0 was set');
is(worker(), '|0|t', 'snowflake_stat shows a worker ID 0 that was set');
sql($node, 'ALTER SYSTEM RESET snowflake.worker_id');

# Schemes with other fields
$log = log_with("snowflake.scheme = 'twitter'", 'snowflake.worker_id = 31',
	'snowflake.datacenter_id = 17');
like($log,
	qr/$made "twitter", datacenter ID 17, worker ID 31$/m,
	'the start logs the datacenter ID');
is(worker(), '17|31|t', 'snowflake_stat has the datacenter ID');
$log = log_with("snowflake.scheme = 'timestamp=41,sequence=12'",
	'snowflake.worker_id = -1', 'snowflake.datacenter_id = 0');
like($log, qr/$made "timestamp=41,sequence=12"$/m,
	'the start logs no worker ID for a scheme without one');
unlike($log, qr/is not set/, 'a scheme without a worker field misses no worker ID');
is(worker(), '||', 'snowflake_stat has no worker ID for a scheme without one');

# A standby generates no IDs; the log says with what they are generated when it is
# promoted.
log_with("snowflake.scheme = 'shardingsphere'");
my $standby = new_standby($node, 'standby', 'snowflake.worker_id = 4');
$standby->poll_query_until('postgres', 'SELECT pg_is_in_recovery()');
unlike(slurp_file($standby->logfile), $made, 'a standby logs no scheme');
$log = log_of($standby, sub { $standby->promote });
like($log, qr/$made "shardingsphere", worker ID 4$/m, 'a promoted standby logs scheme and worker ID');
$standby->stop;

# Where no slot is free for the worker
$node->append_conf('postgresql.conf',
	"snowflake.worker_id = 9\nmax_worker_processes = 0\nwal_level = replica\nmax_wal_senders = 1");
my $offset = -s $node->logfile;
$node->restart;
like(slurp_file($node->logfile, $offset),
	qr/LOG:  too many background workers/,
	'the log says that no slot is free for the startup worker');
like(slurp_file($node->logfile, $offset),
	qr/WARNING:  out of background worker slots for "snowflake standbys"\n.*HINT:  Increase "max_worker_processes", which is 0\./s,
	'the log says that no slot is free for the worker that knows the standbys');
is(sql($node, 'SELECT (snowflake_parse(snowflake_nextval())).worker_id'),
	9, 'a server without the startup worker generates IDs');
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->stop;

# What pg_upgrade starts, and single-user mode
$offset = -s $node->logfile;
system_or_bail('pg_ctl', '-w', '-s', '-D', $node->data_dir, '-l',
	$node->logfile, '-o', '-b', 'start');
system_or_bail('pg_ctl', '-w', '-s', '-D', $node->data_dir, 'stop');
$log = slurp_file($node->logfile, $offset);
like($log, qr/ready to accept connections/,
	'the server starts in binary upgrade mode');
unlike($log, qr/snowflake startup/, 'binary upgrade mode has no startup worker');
like(single_user($node, 'SELECT (snowflake_parse(snowflake_nextval())).worker_id'),
	qr/worker_id = "9"/, 'single-user mode generates IDs');

# The log collector starts after the library was loaded.
my $directory = $node->basedir . '/collected';
mkdir $directory or die "$directory: $!";
$node->append_conf('postgresql.conf',
	"logging_collector = on\nlog_directory = '$directory'\nlog_filename = 'log'");
$node->start;
wait_until("a line like $done", sub { -e "$directory/log" && slurp_file("$directory/log") =~ $done });
like(slurp_file("$directory/log"),
	qr/$made "shardingsphere", worker ID 9$/m, 'the log collector gets the scheme and worker ID');
restart_with($node, 'logging_collector = off');

#
# What can be written for the next start
#
sub refused ($sql, $why, $name) { return sql_fails($node, $sql, qr/ERROR:  22023: $why/, $name); }

my $too_wide = qr/5000 is outside the valid range for parameter "snowflake\.worker_id" \(0 \.\. 1023\)/;
refused('ALTER SYSTEM SET snowflake.worker_id = 5000',
	qr/$too_wide\nDETAIL:  The worker field of "snowflake\.scheme" has 10 bits\..*\nHINT:  To change the scheme as well, set "snowflake\.scheme" first/,
	'a worker ID that is too large for the scheme is refused, and the error says what to do');
refused('ALTER SYSTEM SET snowflake.worker_id = -2',
	'-2 is outside the valid range', 'a worker ID below -1 is refused');
refused('ALTER SYSTEM SET snowflake.datacenter_id = 1',
	'1 is outside the valid range for parameter "snowflake\.datacenter_id" \(0 \.\. 0\)',
	'a datacenter ID without a field is refused');
is( sql($node, q{SELECT count(*) FROM pg_file_settings
		  WHERE name LIKE 'snowflake.%' AND sourcefile LIKE '%.auto.conf'}),
	0, 'refused values are not written');

# With a wider scheme that is written before, in the same session ...
my $wide =
  "ALTER SYSTEM SET snowflake.scheme = 'epoch=2010-11-04,timestamp=41,worker=13,sequence=9'";
is(sql_error($node, "$wide; ALTER SYSTEM SET snowflake.worker_id = 5000"),
	'', 'a scheme and its worker ID can be set together');

# ... or in another one, when the server knows of it, and has that from the server.
sql($node, 'ALTER SYSTEM RESET snowflake.worker_id');
refused('ALTER SYSTEM SET snowflake.worker_id = 5000',
	$too_wide, 'another session does not know the new scheme before a reload');
$offset = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/parameter "snowflake\.scheme" cannot be changed without restarting/,
	$offset);
my $before = inherits() ? '' : "$wide; ";
sql($node, $before . 'ALTER SYSTEM SET snowflake.worker_id = 5000');
refused($before . 'ALTER SYSTEM SET snowflake.worker_id = 8192',
	'8192 is outside the valid range for parameter "snowflake\.worker_id" \(0 \.\. 8191\)',
	'after a reload the new scheme is known');
$log = log_of($node, sub { $node->restart });
like($log, qr/$made .*worker=13,sequence=9", worker ID 5000$/m,
	'the next start uses the new scheme and worker ID');

# Back to a narrower one: an ID that fits the server's scheme is not refused.
sql($node, "ALTER SYSTEM SET snowflake.scheme = 'shardingsphere'; ALTER SYSTEM SET snowflake.worker_id = 6000; ALTER SYSTEM SET snowflake.worker_id = 6");
$log = log_of($node, sub { $node->restart });
like($log, qr/$made "shardingsphere", worker ID 6$/m, 'a change to a narrower scheme is possible');

# Written by hand, in any order
sql($node, 'ALTER SYSTEM RESET ALL');
$offset = -s $node->logfile;
reload_with($node, 'snowflake.worker_id = 5000',
	"snowflake.scheme = 'epoch=2010-11-04,timestamp=41,worker=13,sequence=9'");
$node->wait_for_log(qr/configuration file .* contains errors/, $offset);
unlike(slurp_file($node->logfile, $offset),
	qr/outside the valid range/,
	'a reload does not complain about a worker ID for another scheme');
$log = log_of($node, sub { $node->restart });
like($log, qr/$made .*worker=13,sequence=9", worker ID 5000$/m,
	'a scheme and a worker ID written by hand are used at the start');
done_testing();
