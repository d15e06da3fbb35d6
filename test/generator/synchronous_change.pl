# synchronous_standby_names and snowflake.synchronous_mark are changed while a
# server runs: for waits that have begun, and for IDs that are already reserved.

use SnowflakeTest;

# Generate an ID below a mark that is written for it.
use constant RAISE_MARK => q{
	SET client_min_messages = error;
	SELECT snowflake_set_mark(snowflake_lower_bound(now()), force => true);
	SELECT snowflake_nextval()};

# A call that is expected to wait for a standby.
sub start_call ($node, $name)
{
	my ($call) = start_queries($node,
		"SET statement_timeout = '30 s'; SELECT snowflake_nextval()");
	ok(waits_for_standbys($node), $name);
	return $call;
}

# A server whose synchronous standby was never there.
my $alone = new_server('alone', 'wal_level = replica', 'max_wal_senders = 1',
	"synchronous_standby_names = 'nobody'", 'synchronous_commit = local');
my $call = start_call($alone, 'a call waits for a standby that does not answer');
change_setting($alone, 'snowflake.synchronous_mark', 'off');
is(finish_queries($call), 1,
	'when synchronous_mark is switched off, a wait that has begun ends');
is(sql($alone, 'SELECT reserve_waits, reserve_wait_ms > 0, clock_waits FROM snowflake_stat'),
	'1|t|0', 'snowflake_stat counts this wait');
is($alone->psql('postgres', 'SELECT snowflake_nextval()'),
	0, 'with synchronous_mark = off, no other call waits');

# The setting is reloaded while the postmaster begins shared memory after a crash, so
# each process of the server starts with the new value.  A debugger reloads it there.
SKIP:
{
	my $postmaster = (split /\n/, slurp_file($alone->data_dir . '/postmaster.pid'))[0];

	change_setting($alone, 'restart_after_crash', 'on');
	change_setting($alone, 'snowflake.synchronous_mark', 'on');
	my $gdb = debug_process($alone, $postmaster, qr/^attached$/m,
		'break CreateSharedMemoryAndSemaphores', 'echo attached\n', 'continue',
		"shell kill -HUP $postmaster");
	skip 'no debugger', 1 if !$gdb;
	$alone->append_conf('postgresql.conf', 'snowflake.synchronous_mark = off');
	crash_process($alone, server_process($alone, 'walwriter'));
	finish_debugger($gdb);
	is(sql_error($alone, "SET statement_timeout = '10 s'; SELECT snowflake_nextval()"),
		'', 'a setting that is reloaded during the recovery from a crash counts');
}
$alone->stop;

# In a tick that lasts, sessions look at the standbys until its end.  The clock stands still
# at its last half millisecond.
my $slow = new_server_with_clock('slow', 'wal_level = replica', 'max_wal_senders = 1',
	"snowflake.scheme = 'epoch=2020-01-01, tick=2s, timestamp=32, worker=10, sequence=21'");
sql($slow, 'SELECT snowflake_nextval()');
my $tick = 2 * int(time / 2) + 2;
foreach my $into (1, 1.9995)
{
	stop_clock($slow, $tick + 0.1);
	is(sql($slow, 'SELECT extract(epoch FROM snowflake_timestamp(snowflake_nextval()))::bigint'),
		$tick, 'IDs are generated in a tick');
	change_setting($slow, 'synchronous_standby_names', 'nobody');
	stop_clock($slow, $tick + $into);
	my ($waiting) = start_queries($slow, 'SELECT snowflake_nextval()');
	ok(waits_for_standbys($slow), "a call waits for standbys $into s after the beginning of a tick that began without");
	sql($slow, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT snowflake_nextval()'");
	is(finish_queries($waiting), 0, 'it gets no ID') or diag($waiting->{out});
	change_setting($slow, 'synchronous_standby_names', '');
	$tick += 2;
}
stop_clock($slow, 0);
$slow->stop;

# What is reserved lasts for longer than this test takes.
# Nothing but WAL makes a standby report how far it is.
my $primary = new_primary('primary', "snowflake.reserve_time = '1 min'", 'synchronous_commit = local',
	'wal_sender_timeout = 0', 'wal_receiver_timeout = 0', 'wal_receiver_status_interval = 0', 'autovacuum = off', 'wal_log_hints = off');
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);

# A minute is reserved while there is no synchronous standby, so none has the mark.
sql($primary, 'SELECT snowflake_nextval()');
change_setting($primary, 'synchronous_standby_names', 'nobody');
$call = start_call($primary,
	'when a synchronous standby is named, calls wait until it has the mark of what was reserved before');
change_setting($primary, 'synchronous_standby_names', '');
is(finish_queries($call), 1, 'calls that wait succeed when no standby is named any more');
change_setting($primary, 'synchronous_standby_names', 'standby');
$call = start_call($primary, 'calls wait when a synchronous standby is named again');
$standby->start;
is(finish_queries($call), 1, 'calls that wait succeed when the synchronous standby answers');
cmp_ok(mark_of($standby), '>', $call->{out}, 'the synchronous standby has a mark above the IDs');

# A standby that has the mark becomes synchronous, and there is no WAL to report: no
# checkpoint, and no snapshot of the background writer.
change_setting($primary, 'synchronous_standby_names', '');
my $writer = sql($primary, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'");
kill 'STOP', $writer;
sql($primary, RAISE_MARK);
$primary->wait_for_catchup($standby, 'flush', $primary->lsn('flush'));
my $loop = q{
	SET statement_timeout = '30 s';
	DO $$
	BEGIN
		FOR i IN 1 .. 100 LOOP
			PERFORM snowflake_nextval(), pg_sleep(0.02);
		END LOOP;
	END $$};
my ($running) = start_queries($primary, $loop);
require_standbys($primary, 'standby');

# The checkpointer has the setting some time later.
is(sql_error($primary, $loop), '', 'calls continue when a standby that has the mark becomes synchronous');
is(finish_queries($running), 1, 'so does a query that began before')
  or diag($running->{err});
kill 'CONT', $writer;

# What a standby has confirmed does not count for the next one.
my $next = new_standby($primary, 'next');
change_setting($primary, 'synchronous_standby_names', 'FIRST 1 (standby, next)');
wait_until_true($primary, q{SELECT string_agg(sync_state, ' ' ORDER BY application_name DESC) = 'sync potential' FROM pg_stat_replication});
$primary->wait_for_catchup($next, 'flush', $primary->lsn('flush'));
my $receiver = server_process($next, 'walreceiver');
kill 'STOP', $receiver;
sql($primary, RAISE_MARK);
$standby->stop;
wait_until_true($primary, q{
	SELECT count(*) = 1 AND bool_and(sync_state = 'sync' AND state = 'streaming')
	FROM pg_stat_replication});
$call = start_call($primary,
	'when another standby becomes synchronous, calls wait until it has the mark');
kill 'CONT', $receiver;
is(finish_queries($call), 1, 'calls that wait succeed when the other standby has the mark');
cmp_ok(mark_of($next), '>', $call->{out}, 'the other standby has a mark above the IDs');

done_testing();
