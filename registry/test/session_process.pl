# The process that is connected to the registry: signals that reach the worker's process
# group do not end a call, and its own end, whenever that is, is no crash of the server.
# In a container, the postmaster is the parent of processes that lose theirs.

use FindBin;
use SnowflakeTest;

plan skip_all => 'only Linux has subreapers' if $^O ne 'linux';

my $registry = new_registry('registry', "1, 100, grant_time => '1 hour', reach => '1 day', new => true");
# A grant for an hour needs one call, and none soon after it.
sql($registry, "ALTER SYSTEM SET track_functions = 'all'");
$registry->reload;
my $once = new_server('once', registry_conf($registry));
sql($once, 'SELECT snowflake_nextval()');
$once->stop;
wait_until_true($registry, "SELECT count(*) = 1 FROM pg_stat_user_functions WHERE funcname = 'return_grant'",
	'the grant was not returned');
is(sql($registry, "SELECT funcname, calls FROM pg_stat_user_functions WHERE funcname ~ '^(get|extend|return)_grant' ORDER BY 1"),
	"get_grant|1\nreturn_grant|1", 'a grant needs one call');

my $server = PostgreSQL::Test::Cluster->new('server');
$server->init;
$server->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'snowflake'", registry_conf($registry), 'restart_after_crash = on'));
{
	local $ENV{LD_PRELOAD} = compile("$FindBin::RealBin/subreaper.c", '-shared', '-fPIC');
	$server->start;
}
sql($server, 'CREATE EXTENSION snowflake; SELECT snowflake_nextval()');

my $crash = qr/terminated by signal|all server processes terminated/;
my $until = 'SELECT granted_until FROM snowflake_stat';

# Let the worker call; returns its process, and that of the call, which waits for a
# lock in the registry.
sub begin_call
{
	my $worker = server_process($server, 'snowflake grant');
	my $child;

	kill 'HUP', $worker;
	wait_until_true($registry, q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query ~ 'extend_grant'}, 'no call waits');
	($child) = `ps -o pid= --ppid $worker` =~ /(\d+)/ or die 'the worker has no child';
	return ($worker, $child);
}

my $holder = $registry->background_psql('postgres');

# The postmaster sends its signals to the worker, and then to its process group: the last
# call may have begun between the two.
my $before = sql($server, $until);
$holder->query_safe('BEGIN; LOCK TABLE snowflake_registry.workers IN ACCESS EXCLUSIVE MODE');
my (undef, $child) = begin_call();
kill $_, $child foreach 'TERM', 'INT', 'ALRM';
$holder->query_safe('COMMIT');
becomes_true($server, "SELECT granted_until > '$before' FROM snowflake_stat",
	'a call continues after signals');
unlike(slurp_file($server->logfile), qr/ended unexpectedly/, 'signals do not end the process of a call');

# The worker ends with an error, and does not wait for its child.
my $session = $server->background_psql('postgres');
$session->query_safe('SELECT 1');
$before = sql($server, $until);
$holder->query_safe('BEGIN; LOCK TABLE snowflake_registry.workers IN ACCESS EXCLUSIVE MODE');
(my $worker, $child) = begin_call();
kill 'INT', $worker;
wait_until('the end of a process without a parent', sub { !kill 0, $child });
$server->wait_for_log(qr/canceling statement due to user request/);
isnt(server_process($server, 'snowflake grant'), $worker, 'the worker is started again');
unlike(slurp_file($server->logfile), $crash, 'the end of a process without a parent is no crash');
like($session->query('SELECT 1'), qr/^1$/, 'sessions continue');
$holder->query_safe('COMMIT');
$session->quit;
wait_until_true($server, "SELECT granted_until > '$before' FROM snowflake_stat", 'the new worker does not call');

# It is killed itself: the call may have been committed, so its token remains.
$before = sql($server, $until);
my $held = sql($server, 'SELECT worker_id FROM snowflake_stat');
$holder->query_safe('BEGIN; LOCK TABLE snowflake_registry.workers IN ACCESS EXCLUSIVE MODE');
(undef, $child) = begin_call();
kill 'KILL', $child;
$server->wait_for_log(qr/process that connects ended unexpectedly/);
$holder->query_safe('COMMIT');
$holder->quit;
becomes_true($server, "SELECT granted_until > '$before' FROM snowflake_stat",
	'a server whose call was killed extends its grant');
is(sql($server, 'SELECT worker_id FROM snowflake_stat'), $held, 'with the same worker ID');
unlike(slurp_file($server->logfile), $crash, 'that is no crash either');

# There is no process for a call, or no socket to one: the worker's limits are lowered.
foreach my $case ([ 'nproc', 'could not start a process' ], [ 'nofile', 'could not create a socket' ])
{
	my ($limit, $error) = @$case;
	my $worker = server_process($server, 'snowflake grant');

	$before = sql($server, $until);
	system_or_bail('prlimit', "--pid=$worker", "--$limit=1:");
	kill 'HUP', $worker;
	becomes_true($server, "SELECT registry_error ~ '^$error: ' FROM snowflake_stat",
		"snowflake_stat has the reason: $error");
	is(sql($server, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())'),
		$held, "IDs are generated with the grant that is there: $error");
	system_or_bail('prlimit', "--pid=$worker", "--$limit=10000:");
	kill 'HUP', $worker;
	becomes_true($server, "SELECT granted_until > '$before' AND worker_id = $held FROM snowflake_stat",
		"the same worker extends the grant when it can: $error");
	is(server_process($server, 'snowflake grant'), $worker, "the worker did not end: $error");
}

# It does not even run.
$holder = $registry->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE snowflake_registry.workers IN ACCESS EXCLUSIVE MODE');
(undef, $child) = begin_call();
kill 'STOP', $child;
my $start = time;
$server->stop('fast');
cmp_ok(time - $start, '<', 10, 'a process that is stopped does not hold up a fast shutdown');
ok(!kill(0, $child), 'it has ended');
$holder->query_safe('COMMIT');
$holder->quit;
$server->start;

$_->stop foreach $server, $registry;
done_testing();
