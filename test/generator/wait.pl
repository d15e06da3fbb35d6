# Waits for the sequence and for the clock: they can be cancelled, use no processor
# time, are visible, and end with an error if they would be too long.

use SnowflakeTest;

# What ends within this time, in seconds, did not wait: the waits here would take
# an hour or more.  It is long, because the machine may be busy.
my $soon = 20;

# Processor time that a process has used, in seconds.
sub cpu_seconds ($pid)
{
	my $stat = slurp_file("/proc/$pid/stat");
	$stat =~ s/.*\) //;
	my @field = split / /, $stat;
	return ($field[11] + $field[12]) / 100;
}

# A session that waits within the query; returns its session and process ID.
sub start_waiter ($node, $query)
{
	my ($waiter) = start_queries($node, $query);

	wait_until_true($node, q{SELECT count(*) = 1 FROM pg_stat_activity
		  WHERE backend_type = 'client backend' AND state = 'active'
		  AND wait_event_type = 'Extension'});
	my $pid = sql($node, q{SELECT pid FROM pg_stat_activity
		  WHERE backend_type = 'client backend' AND state = 'active'
		  AND wait_event_type = 'Extension'});
	return ($waiter, $pid);
}

# All that must hold of a wait, whatever it is for.
sub check_wait ($node, $query, $event, $what)
{
	my $version = $node->pg_version;

	my $begin = time;
	my ($waiter, $pid) = start_waiter($node, $query);
	is(sql($node, "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid"),
		$version >= 17 ? $event : 'Extension', "$what shows as a wait event");
	my $before = cpu_seconds($pid);
	sleep 2;
	my $used = cpu_seconds($pid) - $before;
	cmp_ok($used, '<=', 0.05, "$what uses no processor time ($used s in 2 s)");

	# It is added up while it lasts.
	my $counter = $event eq 'SnowflakeClock' ? 'clock' : 'sequence';
	becomes_true($node, "SELECT ${counter}_waits = 1 AND ${counter}_wait_ms > 1500 FROM snowflake_stat",
		"$what is counted");
	my $ms = sql($node, "SELECT ${counter}_wait_ms FROM snowflake_stat");
	cmp_ok($ms, '<=', (time - $begin) * 1000, "$what is counted in milliseconds");

	my $start = time;
	sql($node, "SELECT pg_cancel_backend($pid)");
	finish_queries($waiter);
	cmp_ok(time - $start, '<', $soon, "$what is cancelled at once");
	like($waiter->{err},
		qr/canceling statement due to user request/,
		"$what says that it was cancelled");

	$start = time;
	sql_fails($node, "SET statement_timeout = '300ms'; $query",
		qr/57014: canceling statement due to statement timeout/,
		"$what ends with statement_timeout");
	cmp_ok(time - $start, '<', $soon, "$what ends with statement_timeout in time");

	($waiter, $pid) = start_waiter($node, $query);
	$start = time;
	sql($node, "SELECT pg_terminate_backend($pid)");
	finish_queries($waiter);
	cmp_ok(time - $start, '<', $soon, "$what ends with pg_terminate_backend");
	like($waiter->{err}, qr/terminating connection/, "$what ends with the message of pg_terminate_backend");

	($waiter, $pid) = start_waiter($node, $query);
	$start = time;
	$node->stop('fast');
	cmp_ok(time - $start, '<', $soon, "$what does not hold up a fast shutdown");
	finish_queries($waiter);
}

# The sequence is exhausted: two numbers in a day, which is half over.
my $epoch = int(time * 1000) - 1000 * 86_400_000 - 43_200_000;
my $node = new_server('sequence',
	"snowflake.scheme = 'epoch=$epoch,tick=86400s,timestamp=30,worker=10,sequence=1'");
check_wait(
	$node,
	'SELECT snowflake_nextval() FROM generate_series(1, 5)',
	'SnowflakeSequence', 'waiting for the sequence');

# The clock is behind: the server's clock goes back while it runs.
$node = new_server_with_clock('clock', 'snowflake.clock_backward = wait', 'snowflake.max_clock_backward = 2h');
my $first = sql($node, 'SELECT snowflake_nextval()');
set_clock($node, -3600);
check_wait(
	$node,
	'SELECT snowflake_nextval()',
	'SnowflakeClock', 'waiting for the clock');

# Steps that are waited for, bridged and refused.
set_clock($node, 0);
$node->append_conf('postgresql.conf', 'snowflake.max_clock_backward = 10s');
start_with_clock($node);
my $last = sql($node, 'SELECT snowflake_nextval()');
cmp_ok($last, '>', $first, 'the ID after a restart is greater');
set_clock($node, -5);
my $start = time;
my $id = sql($node, 'SELECT snowflake_nextval()');
cmp_ok($id, '>', $last, 'the ID after a step back is greater');
cmp_ok(time - $start, '>', 0.5, 'the call after a step back waited for the clock');

$last = $id;
set_clock($node, -3601);
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: clock is too far behind the last snowflake ID.*DETAIL:  The timestamp of the next ID is \d{4}-.*, and the clock reads \d{4}-.*\. "snowflake.max_clock_backward" is 10000 ms.*HINT:  Correct the server's clock/s,
	'a long step back is an error');
is(sql($node, 'SELECT clock_waits, clock_errors, max_backward_ms BETWEEN 3590000 AND 3610000 FROM snowflake_stat'
	), '1|1|t', 'waits and errors are counted');

set_clock($node, 0);
$id = sql($node, 'SELECT snowflake_nextval()');
cmp_ok($id, '>', $last, 'calls succeed when the clock is right again');

$last = $id;
change_setting($node, 'snowflake.max_lead', '2h');
set_clock($node, -3600);
$start = time;
$id = sql($node, 'SELECT snowflake_nextval()');
cmp_ok(time - $start, '<', $soon, 'max_lead bridges a step back without waiting');
cmp_ok($id, '>', $last, 'with max_lead, the ID after a step back is greater');

# A wait ends as soon as the clock is set right.
reload_with($node, "snowflake.max_lead = 0\nsnowflake.max_clock_backward = 2h");
wait_until_true($node, "SELECT current_setting('snowflake.max_lead') = '0'");
my ($waiter, $pid) = start_waiter($node, 'SELECT snowflake_nextval()');
set_clock($node, 10);
$start = time;
is(finish_queries($waiter), 1, 'a call that waits continues when the clock is corrected');
cmp_ok(time - $start, '<', $soon, 'a call that waits continues at once');
cmp_ok($waiter->{out}, '>', $id, 'the ID of a call that waited is greater');

set_clock($node, 0);
done_testing();
