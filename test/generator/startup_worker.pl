# The worker that runs once at the server's start is told to end while it waits for
# a slow disk, in the middle of a critical section: by a fast stop right after the
# start, and by pg_terminate_backend().  Neither is a PANIC.

use FindBin;
use lib "$FindBin::RealBin/../worlds/torture";
use SnowflakeTest;
use Torture qw(set_disk start_node);

# Its worker ID is not set, so that the worker looks for subscriptions and is in
# pg_stat_activity.
my $node = new_server('node', 'fsync = on', 'restart_after_crash = on');
sql($node, 'SELECT snowflake_nextval()');

# Start the server with a disk that does not finish a flush until it is told to,
# and wait until the worker is in one.
sub start_with_slow_disk
{
	$node->stop if is_up($node);
	start_node($node, flush => 600);
	wait_until_true($node, q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE backend_type = 'snowflake startup'
		AND wait_event IN ('WALSync', 'WalSync', 'WALWrite')});
	return server_process($node, 'snowflake startup');
}

sub shows_panic ($log_end)
{
	my ($panic) = slurp_file($node->logfile, $log_end) =~ /(PANIC: .*)/;

	return $panic // '';
}

# A call waits until the worker has written the mark.
my $worker = start_with_slow_disk();
my ($call) = start_queries($node, "SET statement_timeout = '10 s'; SELECT snowflake_nextval()");
becomes_true($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%SELECT snowflake_nextval()' AND wait_event = }
		  . wait_event($node, 'SnowflakeReserve'),
	'a call waits for another process that writes the mark');
is(finish_queries($call), 0, '... until a timeout');
like($call->{err}, qr/canceling statement due to statement timeout/, '... which it reports');

# pg_terminate_backend()
my $log_end = -s $node->logfile;
sql($node, "SELECT pg_terminate_backend($worker)");
set_disk($node, 0, 0);
wait_until_true($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $worker");
is(shows_panic($log_end), '', 'the worker is terminated without a PANIC');
is($node->psql('postgres', 'SELECT snowflake_nextval()'),
	0, 'the server generates IDs after the worker was terminated');

# A fast stop.
$worker = start_with_slow_disk();
$log_end = -s $node->logfile;
my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
kill 'INT', $postmaster;
$node->wait_for_log(qr/received fast shutdown request/, $log_end);
set_disk($node, 0, 0);
$node->stop('fast', fail_ok => 1);
is(shows_panic($log_end), '', 'a fast stop right after the start shows no PANIC');
my ($state) = run_command([ 'pg_controldata', $node->data_dir ]);
like($state, qr/^Database cluster state: +shut down$/m, 'a fast stop right after the start shuts the server down');

done_testing();
