# Synchronous standbys: IDs are handed out only below a mark that they have, so that
# a promoted standby repeats none, whatever the old primary does.

use SnowflakeTest;

my $primary = new_primary('primary', 'max_connections = 60');
sql($primary, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
my $standby = new_standby($primary, 'standby');
require_standbys($primary, 'standby');

sub somebody_waits
{
	return $primary->poll_query_until(
		'postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active'
		AND wait_event_type = 'Extension' AND wait_event IN ('Extension', 'SnowflakeStandby')});
}

# While the standby answers, calls that commit nothing continue, and what they got
# is below the mark of the standby.
my $below = 1;
foreach my $i (1 .. 20)
{
	my $id = sql($primary, 'SELECT snowflake_nextval()');
	$below = 0 unless mark_of($standby) > $id
	  || $standby->poll_query_until('postgres',
		"SELECT pg_last_wal_receive_lsn() >= '" . $primary->lsn('flush') . "'")
	  && mark_of($standby) > $id;
	usleep(100_000);
}
ok($below, 'the standby has the mark above each ID');

# The standby stops answering.  Nothing is committed, and yet IDs end with
# what is reserved, which is the case from the time of the standby's mark on.
my $receiver = server_process($standby, 'walreceiver');
kill 'STOP', $receiver;
wait_until_true($standby, 'SELECT pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()');
wait_until_true($primary, 'SELECT now() > snowflake_timestamp(' . mark_of($standby) . ')');
foreach my $level ('on', 'local', 'off')
{
	my ($waiter) = start_queries($primary,
		"SET synchronous_commit = $level; SELECT snowflake_nextval(), pg_sleep(0.01) FROM generate_series(1, 1000)");
	ok(somebody_waits(),
		"with synchronous_commit = $level, calls wait for the standby");
	if ($level eq 'on')
	{
		my $start = time;
		sql_fails($primary, "SET statement_timeout = '300ms'; SELECT snowflake_nextval()",
			qr/57014: canceling statement due to statement timeout\n.*CONTEXT:  while waiting for synchronous standbys to have the mark of snowflake IDs/s,
			'a call that waits for the standby ends with statement_timeout, and says what for');
		cmp_ok(time - $start, '<', 10, 'statement_timeout ends the wait for the standby in time');
		ok(somebody_waits(), 'the other call still waits for the standby');
	}
	sql($primary, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 1000)' AND pid <> pg_backend_pid()");
	finish_queries($waiter);
	like($waiter->{err}, qr/canceling statement due to user request/,
		'a call that waits for the standby can be cancelled');
	unlike($waiter->{err}, qr/synchronous replication/,
		'a cancelled call does not mention a commit');
}
my $stopped_mark = mark_of($standby);
my $got = $primary->psql('postgres',
	"SET statement_timeout = '1s'; SELECT snowflake_nextval()");
isnt($got, 0, 'after a cancelled wait the next call waits, too');

# It answers again.
my ($waiter) = start_queries($primary, 'SELECT snowflake_nextval()');
ok(somebody_waits(), 'a call waits for the standby that is stopped');
kill 'CONT', $receiver;
is(finish_queries($waiter), 1, 'calls continue when the standby answers');

# The names are cleared while somebody waits, as Patroni does it.
$receiver = server_process($standby, 'walreceiver');
kill 'STOP', $receiver;
usleep(1_200_000);
($waiter) = start_queries($primary, 'SELECT snowflake_nextval()');
usleep(300_000);
require_standbys($primary, '');
is(finish_queries($waiter), 1, 'calls that wait continue when synchronous_standby_names is cleared');
kill 'CONT', $receiver;

# Nor does anybody if the mark need not be synchronous.
require_standbys($primary, 'standby');
change_setting($primary, 'snowflake.synchronous_mark', 'off');
$receiver = server_process($standby, 'walreceiver');
kill 'STOP', $receiver;
is(sql_error($primary, "SET statement_timeout = '20s'; SELECT snowflake_nextval(), pg_sleep(0.1) FROM generate_series(1, 30)"),
	'', 'with synchronous_mark = off, IDs continue without the standby');
kill 'CONT', $receiver;
change_setting($primary, 'snowflake.synchronous_mark', 'on');
$primary->wait_for_catchup($standby);

# Split brain: the primary is cut off and keeps running under load; the standby is
# promoted.  Every ID that any client of either received.
my $ledger = new_ledger();
# Those that commit soon hang in their commit; asking ones commit nothing.
my @old = (start_clients($primary, 4), start_clients($primary, 4, 'asking'));
wait_for_clients(@old);
usleep(500_000);
my $sender = server_process($primary, 'walsender');
stop_walsender($primary, $sender);
$standby->promote;
my @new = (start_clients($standby, 4), start_clients($standby, 4, 'asking'));
wait_for_clients(@new);
usleep(4_000_000);
# A slow standby has made what is reserved longer, to a minute at most.
my $cut_off = 0;
foreach my $i (1 .. 200)
{
	$cut_off = $primary->psql('postgres',
		"SET statement_timeout = '1s'; SELECT snowflake_nextval()");
	last if $cut_off != 0;
	usleep(500_000);
}
isnt($cut_off, 0, 'a primary that is cut off generates no more IDs');
end_clients($_) foreach ($primary, $standby);
my %seen;
my @from_old = map { @$_ } finish_clients(@old);
my @from_new = map { @$_ } finish_clients(@new);
cmp_ok(scalar(@from_old), '>', 0, scalar(@from_old) . ' IDs of the old primary are received');
cmp_ok(scalar(@from_new), '>', 0, scalar(@from_new) . ' IDs of the new primary are received');
my $again = grep { $seen{$_}++ } @from_old, @from_new;
is($again, 0, 'no ID of the two primaries is a duplicate');
my ($last_old) = sort { $b <=> $a } @from_old;
my ($first_new) = sort { $a <=> $b } @from_new;
cmp_ok($first_new, '>', $last_old, 'all IDs of the new primary are above those of the old one');
kill 'CONT', $sender;

done_testing();
