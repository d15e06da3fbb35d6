# The mark: when it is written, who may change it, what it refuses.

use SnowflakeTest;

my $node = new_server('main', 'snowflake.worker_id = 9', 'autovacuum = off',
	'checkpoint_timeout = 1h', 'bgwriter_delay = 10s', 'wal_writer_delay = 10s');

sub next_id { return sql($node, 'SELECT snowflake_nextval()'); }

# IDs are below the mark, and the mark can be read by a person.
is(mark_of($node), 0, 'no mark before the first ID');
my $id = next_id();
my $mark = mark_of($node);
cmp_ok($mark, '>', $id, 'the mark is above the first ID');
is( sql($node, qq{SELECT "timestamp" - (snowflake_parse($id))."timestamp" BETWEEN '0.5 s' AND '1.1 s'
		   FROM snowflake_parse($mark)}),
	't', 'the mark is ahead of the first ID by about reserve_time');

# The records that write it, by pg_waldump: the end of each in WAL and the mark.
sub mark_records ($start, $end)
{
	return () if $start eq $end;
	my ($out) = run_command([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal',
			'-r', 'ReplicationOrigin', '-s', $start, '-e', $end ]);
	return map {
		m{tot\): +\d+/ +(\d+), .* lsn: (\S+), .* set 65534; lsn ([^;]+);}
		  ? [ lsn_number($2) + $1, lsn_number($3) ]
		  : ()
	} split /\n/, $out;
}

sub lsn_number
{
	my ($high, $low) = map { hex } split m{/}, $_[0];

	return ($high << 32) + $low;
}

# How often it is written
sub count_records ($work)
{
	my $start = $node->lsn('insert');

	$work->();
	my @written = mark_records($start, $node->lsn('insert'));
	return scalar @written;
}

next_id();
is(count_records(sub { sleep 3 }), 0, 'an idle server writes no mark');
my $written = count_records(
	sub {
		sql($node, "SET statement_timeout = '4s'; DO \$\$ DECLARE t timestamptz := clock_timestamp() + '3 s'; BEGIN WHILE clock_timestamp() < t LOOP PERFORM snowflake_nextval(); END LOOP; END \$\$");
	});
cmp_ok($written, '<=', 7, "a busy server writes the mark at most twice per reserve_time ($written in 3 s)");
cmp_ok($written, '>=', 3, 'a busy server writes the mark at least once per reserve_time');

# It is flushed before the ID is handed out, and by nobody else: nothing is
# committed here, and the WAL writer sleeps.
sleep 2;
is( sql($node, q{
		BEGIN;
		SELECT pg_current_wal_insert_lsn() AS before \gset
		SELECT snowflake_nextval() AS id \gset
		SELECT :'before'::pg_lsn < pg_current_wal_flush_lsn();
		COMMIT}), 't', 'the mark is flushed before the ID is handed out');

# Nor does any of many backends get an ID before a mark above it is flushed,
# while another is about to do that: all of them ask at once, each time after a
# pause that is longer than what is reserved, and flushing takes its time.  What
# is flushed is read after the ID was handed out, and compared with the WAL.
reload_with($node, 'fsync = on', 'commit_siblings = 0', 'commit_delay = 5000');
change_setting($node, 'snowflake.reserve_time', '10ms');
sql($node, 'CREATE TABLE handed_out (id bigint, flushed pg_lsn)');
my $query = q{
	DO $$
	DECLARE
		ids bigint[];
		flushed pg_lsn[];
	BEGIN
		FOR i IN 1 .. 60 LOOP
			PERFORM pg_sleep(0.05 - extract(epoch FROM clock_timestamp()) % 0.05);
			FOR j IN 1 .. 10 LOOP
				ids := ids || snowflake_nextval();
				flushed := flushed || pg_current_wal_flush_lsn();
			END LOOP;
		END LOOP;
		INSERT INTO handed_out SELECT * FROM unnest(ids, flushed);
	END
	$$};
$mark = mark_of($node);
my $start = $node->lsn('insert');
is(finish_queries(start_queries($node, ($query) x 16)),
	16, 'many backends generate IDs with a short reserve');
my @records = mark_records($start, $node->lsn('flush'));
cmp_ok(scalar @records, '>=', 20, 'a short reserve is written many times');
my ($ids, $too_early) = (0, 0);
foreach my $row (split /\n/, sql($node, 'SELECT id, flushed FROM handed_out ORDER BY id'))
{
	my ($id, $flushed) = split /\|/, $row;

	$ids++;
	next if $id < $mark;
	shift @records while @records && $records[0][1] <= $id;
	$too_early++ if !@records || $records[0][0] > lsn_number($flushed);
}
is($ids, 16 * 60 * 10, 'all backends with a short reserve get their IDs');
is($too_early, 0, 'no ID is handed out before a mark above it is flushed');
reload_with($node, "snowflake.reserve_time = 1s\nfsync = off\ncommit_delay = 0\ncommit_siblings = 5");

# In a READ ONLY transaction, without a transaction ID
sleep 2;
is( sql($node, qq{
		BEGIN READ ONLY;
		SELECT snowflake_nextval() > $mark, pg_current_xact_id_if_assigned() IS NULL;
		COMMIT}), 't|t', 'the mark is written in a READ ONLY transaction');
cmp_ok(mark_of($node), '>', $mark, 'the READ ONLY transaction raised the mark');

# Restart with a lower worker ID, and with other fields at the same place
$id = next_id();
foreach my $conf (
	['snowflake.worker_id = 0'],
	['snowflake.worker_id = 1023'],
	[ "snowflake.scheme = 'timestamp=41,datacenter=5,worker=5,sequence=12'",
		'snowflake.worker_id = 3', 'snowflake.datacenter_id = 31' ],
	['snowflake.datacenter_id = 0'])
{
	restart_with($node, @$conf);
	my $next = next_id();
	cmp_ok($next, '>', $id, "IDs increase after a restart with @$conf");
	$id = $next;
}

# A scheme by which the mark seems to be years old
restart_with($node, "snowflake.scheme = 'shardingsphere,epoch=2015-01-01'");
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: clock is too far ahead of the mark of snowflake IDs.*HINT:.* or "snowflake\.scheme" was changed, call snowflake_accept_clock/s,
	'an epoch that is years earlier must be confirmed');
sql($node, 'SELECT snowflake_accept_clock()');
my $jumped = next_id();
cmp_ok($jumped, '>', $id, 'after snowflake_accept_clock() IDs increase');
$id = $jumped;

# A scheme by which IDs would fall
foreach my $scheme ('shardingsphere', 'shardingsphere,tick=10ms',
	'epoch=2015-01-01,timestamp=41,worker=9,sequence=12')
{
	restart_with($node, "snowflake.scheme = '$scheme'");
	sql_fails($node, 'SELECT snowflake_nextval()',
		qr{ERROR:  55000: mark of snowflake IDs is too far ahead of the clock.*HINT:  .*If "snowflake\.scheme" was changed, revert the change}s,
		"a scheme by which IDs would decrease is refused, and the hint names the cause: $scheme");
}

# The mark stays readable where it is wider than the scheme.
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/DETAIL:  The mark is \d{18,19} \(/, 'a mark that is wider than the scheme is shown');
restart_with($node, "snowflake.scheme = 'shardingsphere,epoch=2015-01-01'");
cmp_ok(next_id(), '>', $id, 'IDs increase again with the old scheme');

# snowflake_set_mark (sql/mark.sql has what it refuses)
sql($node, 'CREATE ROLE regress_bob; GRANT EXECUTE ON FUNCTION snowflake_set_mark TO regress_bob');
restart_with($node,
	"snowflake.scheme = 'epoch=2015-01-01,timestamp=41,sequence=12'", 'snowflake.worker_id = 0');
sql_fails($node, 'SELECT snowflake_set_mark(9007199254740992, force => true)',
	qr/ERROR:  22003: snowflake ID 9007199254740992 has more bits than the scheme/,
	'snowflake_set_mark() refuses a mark that is wider than the scheme');
my $offset = -s $node->logfile;
$mark = mark_of($node);
sql_fails($node, 'SET ROLE regress_bob; SELECT snowflake_set_mark(1000, force => true)',
	qr/WARNING:.*mark of snowflake IDs was set from $mark to 1000.*DETAIL:.*can be handed out again/s,
	'snowflake_set_mark() with force raises a warning');
like(slurp_file($node->logfile, $offset),
	qr/WARNING:  mark of snowflake IDs was set from $mark to 1000/,
	'the warning of snowflake_set_mark() is logged');
is(mark_of($node), 1000, 'snowflake_set_mark() with force sets the mark');
$id = next_id();
cmp_ok($id, '<', 9007199254740992, 'IDs of the narrower scheme are generated after snowflake_set_mark()');

# Lowered with a look at tables, which have to be below it.
sql($node, q{
	CREATE TABLE ids (n int PRIMARY KEY, id bigint DEFAULT snowflake_nextval());
	INSERT INTO ids VALUES (1), (2)});
my $stored = sql($node, 'SELECT max(id) FROM ids');
sql($node, 'SELECT snowflake_nextval()');
sql($node, "SELECT snowflake_set_mark($stored + 1, '{ids}')");
is(mark_of($node), $stored + 1, 'the mark is lowered to right above the stored IDs');
$id = next_id();
cmp_ok($id, '>', $stored, 'IDs continue at the lowered mark');

# It is durable, and IDs continue above a mark that is set ahead.
crash_and_start($node);
cmp_ok(next_id(), '>', $id, 'IDs continue above the lowered mark after a crash');
my $ahead = next_id() + (3000 << 12) + 5;
sql($node, "SELECT snowflake_set_mark($ahead, force => true)");
crash_and_start($node);
cmp_ok(next_id(), '>=', $ahead, 'IDs are not below a mark that is set ahead');
sql($node, 'SELECT snowflake_set_mark(9007199254740991, force => true)');
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: mark of snowflake IDs is too far ahead of the clock/,
	'calls with a mark that is years ahead are refused');
sql($node, 'SELECT snowflake_set_mark(0, force => true)');
ok(next_id(), 'a mark that is years ahead can be lowered');

# A wait after a crash is no fault of the clock, however small
# max_clock_backward is.
restart_with($node, 'snowflake.reserve_time = 3s',
	'snowflake.clock_backward = wait', 'snowflake.max_clock_backward = 0');
$id = next_id();
crash_and_start($node);
cmp_ok(next_id(), '>', $id, 'the first call after a crash waits for the remainder of the reserve');

# Nor are ticks that are longer than that.
restart_with($node, "snowflake.scheme = 'epoch=2015-01-01,tick=2s,timestamp=41,sequence=12'",
	'snowflake.reserve_time = 10ms');
sql($node, 'SELECT snowflake_set_mark(0, force => true)');
$id = next_id();
$node->restart;
cmp_ok(next_id(), '>', $id, 'the first call after a restart waits for the end of a long tick');

# A disk that needs ten times reserve_time for each flush is slow, but IDs are
# made: commit_delay makes it so.
restart_with($node, "snowflake.scheme = 'shardingsphere,epoch=2015-01-01'",
	'fsync = on', 'commit_siblings = 0', 'commit_delay = 100000');
sql($node, 'SELECT snowflake_accept_clock()');
is(sql_error($node, "SET statement_timeout = '20s'; SELECT snowflake_nextval() FROM generate_series(1, 10000)"),
	'', 'IDs are generated although flushes take longer than the reserve');
restart_with($node, 'commit_delay = 0');

# No replication origin is free
my $places = origins_setting($node);
sql($node, 'SELECT snowflake_set_mark(0, force => true)');
$node->append_conf('postgresql.conf',
	"$places = 1\nshared_preload_libraries = ''");
$node->stop;
unlink $node->data_dir . '/pg_logical/replorigin_checkpoint';
$node->start;
sql($node, q{
	SELECT pg_replication_origin_create('other');
	SELECT pg_replication_origin_advance('other', '0/1')});
$offset = -s $node->logfile;
restart_with($node, "shared_preload_libraries = 'snowflake'\nlog_min_messages = debug1");
my $exited = qr/background worker "snowflake startup" \(PID \d+\) exited with exit code (\d+)/;
$node->wait_for_log($exited, $offset);
my $log = slurp_file($node->logfile, $offset);
like($log,
	qr/ERROR:  could not find free replication state slot for replication origin with O?ID 65534/,
	'the log says at the start that no replication origin is free');
is(($log =~ $exited)[0], 0, 'the worker that says so ends for good');
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  53400: could not find free replication state slot.*HINT:  Increase "$places" to at least 2, on the physical standbys first.*CONTEXT:  while writing the mark of snowflake IDs/s,
	'without a free replication origin calls fail');
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  53400/, 'without a free replication origin the second call fails, too');
is(sql($node, 'SELECT mark_errors, clock_errors FROM snowflake_stat'), '2|0', 'snowflake_stat counts these calls');
sql($node, q{SELECT pg_replication_origin_drop('other')});
restart_with($node, "$places = 0");
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  53400.*HINT:  Increase "$places" to at least 1,/s, 'nor on a server that may have none');
restart_with($node, "$places = 2");
ok(next_id(), 'with a free replication origin calls succeed');
done_testing();
