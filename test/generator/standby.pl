# A standby generates no IDs until it is promoted.

use SnowflakeTest;

my $primary = new_primary('primary');
sql($primary, q{
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	INSERT INTO t SELECT FROM generate_series(1, 1000)});
my $standby = new_standby($primary, 'standby', 'restart_after_crash = on');
$primary->wait_for_catchup($standby);

sql_fails($standby, 'SELECT snowflake_nextval()',
	qr/ERROR:  25006: cannot generate snowflake IDs during recovery.*HINT:  Use the primary server/s,
	'a standby generates no ID');
is(sql($standby, 'SELECT count(*) FROM t WHERE (snowflake_parse(id)).worker_id = 0'),
	'1000', 'a standby decodes IDs');

sql_fails($standby, 'SELECT snowflake_accept_clock()',
	qr/ERROR:  25006: cannot accept the clock during recovery/,
	'the clock is not accepted on a standby');
sql_fails($standby, 'SELECT snowflake_raise_mark(1)',
	qr/ERROR:  25006: cannot set the mark of snowflake IDs during recovery/,
	'the mark is not raised on a standby');
sql_fails($standby, 'SELECT snowflake_set_mark(1, force => true)',
	qr/ERROR:  25006: cannot set the mark of snowflake IDs during recovery/,
	'the mark is not set on a standby');
sql_fails($standby, 'DROP EXTENSION snowflake', qr/cannot execute DROP EXTENSION in a read-only transaction/,
	'a standby refuses to drop the extension with the message of PostgreSQL');
is(sql($standby, 'SELECT last_timestamp IS NULL, mark > (SELECT max(id) FROM t), ids FROM snowflake_stat'
	), 't|t|0', 'a standby shows its mark');

# The startup worker, which has not run yet, outlives a crash.
crash_process($standby, server_process($standby, 'checkpointer'));

# Calls that come while the server is promoted are before its startup worker.
my $log_start = -s $standby->logfile;
my @sessions = start_queries(
	$standby, (
		q{
	DO $$
	BEGIN
		LOOP
			BEGIN
				PERFORM snowflake_nextval();
				EXIT;
			EXCEPTION WHEN read_only_sql_transaction THEN
			END;
		END LOOP;
	END $$}) x 2);
wait_until_true($standby, q{SELECT count(*) = 2 FROM pg_stat_activity WHERE query ~ '^\s*DO'});
$standby->promote;
is(finish_queries(@sessions), 2, 'a promoted standby generates IDs at once');
$standby->wait_for_log(qr/"snowflake.worker_id" is not set/, $log_start);
is(sql($standby, 'SELECT snowflake_nextval() > max(id) FROM t'),
	't', 'IDs of a promoted standby are above its rows');

my $log = slurp_file($standby->logfile, $log_start);
my @starts = $log =~ /snowflake IDs continue above the mark/g;
is(scalar(@starts), 1, 'the log of a promoted standby has the mark once');
$standby->stop;

# A standby that has no replication origin for the mark says so when it starts, not only when
# its recovery stops.
my $setting = origins_setting($standby);
my $without = PostgreSQL::Test::Cluster->new('without_place');
$without->init_from_backup($primary, 'standby', has_streaming => 1);
$without->append_conf('postgresql.conf', "$setting = 0");
my $started = $without->start(fail_ok => 1);
like(slurp_file($without->logfile),
	qr/WARNING:  snowflake requires a replication origin, but "$setting" is 0.*a standby stops when its primary generates the first/s,
	'a standby without replication origins logs a warning at its start');
$without->stop('immediate') if $started;

done_testing();
