# max_lag of snowflake_convert_online(), with a standby that is paused, delayed, or not
# connected, with pg_receivewal, and with a subscriber.

use SnowflakeTest::Online;
use SnowflakeTest;

my $waiting = qr/NOTICE:  waiting to copy the columns of table public\.t\nDETAIL:  Standby or subscriber (\w+) is [\d:.]+ behind\./;

# Have a table t of 500 rows, of which none are copied, again.
sub create_table ($node)
{
	sql($node, q{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id serial PRIMARY KEY, v int);
		INSERT INTO t (v) SELECT generate_series(1, 500)});
	convert_online($node, 'postgres', "'t', until => 'prepare'");
	return;
}

# Wait until something that receives WAL is behind.
sub wait_for_lag ($node, $name, $lag)
{
	wait_until_true($node, "SELECT $lag > interval '1 s' FROM pg_stat_replication WHERE application_name = '$name'",
		"$name is not behind");
	return;
}

my $primary = new_primary('primary', 'wal_level = logical');
my $standby = new_standby($primary, 'paused', 'wal_receiver_status_interval = 1s');
my $backfill = "'t', until => 'backfill', max_lag => '1 s'";

create_table($primary);
$primary->wait_for_catchup($standby);
unlike(convert_online($primary, 'postgres', $backfill), qr/waiting|ERROR/, 'a standby that is not behind is not waited for');
like(convert_online($standby, 'postgres', "'t'"), qr/ERROR:  .*(?:read-only transaction|during recovery)/, 'a standby cannot convert');

create_table($primary);
sql($standby, 'SELECT pg_wal_replay_pause()');
sql($primary, 'INSERT INTO t (v) VALUES (501)');
wait_for_lag($primary, 'paused', 'replay_lag');
like(convert_online($primary, 'postgres', "$backfill, give_up_after => '1 ms'"),
	qr/ERROR:  gave up waiting to copy the columns of table public\.t\nDETAIL:  Standby or subscriber paused is [\d:.]+ behind\./,
	'a conversion gives up waiting for a standby');
my $call = start_converting($primary, 'postgres', $backfill, $waiting);
is(sql($primary, 'SELECT count(snowflake_new_id) FROM t'), '1', 'the backfill waits for a standby whose replay is paused');
sql($standby, 'SELECT pg_wal_replay_resume()');
my $err = finish_converting($call);
like($err, qr/^NOTICE:  public\.t: copied 500 rows/m, 'it continues when the standby does') or diag($err);

# One that is not connected
create_table($primary);
$standby->stop;
wait_until_true($primary, 'SELECT count(*) = 0 FROM pg_stat_replication');
unlike(convert_online($primary, 'postgres', $backfill), qr/waiting|ERROR/, 'a standby that is not connected is not waited for');

# One that is behind by intention
create_table($primary);
$standby->append_conf('postgresql.conf', 'recovery_min_apply_delay = 1h');
$standby->start;
sql($primary, 'INSERT INTO t (v) VALUES (501)');
wait_for_lag($primary, 'paused', 'replay_lag');
$call = start_converting($primary, 'postgres', $backfill, $waiting);
is(sql($primary, 'SELECT count(snowflake_new_id) FROM t'), '1', 'the backfill waits for a standby with recovery_min_apply_delay');
reload_with($standby, 'recovery_min_apply_delay = 0');
like(finish_converting($call), qr/^NOTICE:  public\.t: copied 500 rows/m, 'it continues when that is changed');
$standby->stop;

# One that receives WAL, but never replays it
my ($out, $said);
my $archive = $primary->basedir . '/receivewal';
mkdir $archive;
my $receiver = IPC::Run::start([ 'pg_receivewal', '-D', $archive, '-d', $primary->connstr . ' application_name=receiver' ],
	'>' => \$out, '2>' => \$said);
create_table($primary);
wait_for_lag($primary, 'receiver', "coalesce(replay_lag, '2 s')");
unlike(convert_online($primary, 'postgres', "$backfill, give_up_after => '5 s'"), qr/waiting|ERROR/, 'pg_receivewal is not waited for');
$receiver->signal('INT');
eval { $receiver->finish };

# A subscriber in the middle of a transaction
my $subscriber = new_primary('subscriber', 'wal_level = logical');
create_table($primary);
sql($primary, 'CREATE TABLE other (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE other');
my $connstr = $primary->connstr . ' dbname=postgres';
sql($subscriber, "CREATE TABLE other (id int PRIMARY KEY); CREATE SUBSCRIPTION s CONNECTION '$connstr' PUBLICATION p");
$subscriber->wait_for_subscription_sync($primary, 's');
my $blocker = $subscriber->background_psql('postgres');
$blocker->query_safe('BEGIN; LOCK TABLE other');
sql($primary, 'INSERT INTO other VALUES (1)');
wait_for_lag($primary, 's', 'clock_timestamp() - reply_time');
$call = start_converting($primary, 'postgres', $backfill, $waiting);
is(sql($primary, 'SELECT count(snowflake_new_id) FROM t'), '0', 'the backfill waits for a subscriber that does not reply');
$blocker->query_safe('COMMIT');
$blocker->quit;
like(finish_converting($call), qr/^NOTICE:  public\.t: copied 500 rows/m, 'it continues when the subscriber does');
sql($subscriber, 'DROP SUBSCRIPTION s');
done_testing();
