# snowflake_convert_online() and transactions that are in its way; a dump of a table that is
# being converted.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'wal_level = logical', 'max_prepared_transactions = 5');
sql($node, 'CREATE ROLE regress_reader');
create_shop($node, 'postgres', 500);

# A transaction that has read the table, and stays open.  Others need not wait.
foreach my $case (
	[ 'prepare', 'BEGIN; SELECT FROM orders LIMIT 1' ],
	[ 'foreign keys', 'BEGIN; UPDATE events SET kind = kind WHERE order_id = 1' ],
	[ 'swap', 'BEGIN; SELECT FROM lines LIMIT 1' ])
{
	my ($phase, $statement) = @$case;

	# What comes before would wait for other reasons.
	convert_online($node, 'postgres', "'orders', until => 'indexes'") if $phase eq 'foreign keys';
	my ($session) = start_queries($node, "$statement; SELECT pg_sleep(600)");
	wait_until_true($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN;%' AND wait_event = 'PgSleep' AND xact_start < clock_timestamp() - interval '1 s'");
	my $call = start_converting($node, 'postgres', "'orders', until => '$phase'", qr/waiting to lock table/);
	my $longest = 0;
	for (my $end = time + 2; time < $end;)
	{
		my $time = sql($node, q{
			DO $$
			DECLARE start timestamptz := clock_timestamp();
			BEGIN
				UPDATE orders SET total = total WHERE id = 7;
				UPDATE lines SET amount = amount WHERE order_id = 8;
				UPDATE events SET kind = kind WHERE order_id = 9;
				PERFORM set_config('test.ms', (1000 * extract(epoch FROM clock_timestamp() - start))::text, false);
			END $$;
			SELECT current_setting('test.ms')});
		$longest = $time if $time > $longest;
	}
	cmp_ok($longest, '<', 20_000, "phase $phase: nobody waits behind a request while a transaction is in the way");
	sql($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN;%'");
	finish_queries($session);
	my $err = finish_converting($call);
	like($err, qr/DETAIL:  Process \d+ \(.+?, online_locks\.pl\) has a lock on (?:public\.)?\w+, in a transaction that is [\d:.]+ old\./, "phase $phase: the transaction in the way is named")
	  or diag($err);
	unlike($err, qr/ERROR/, "phase $phase: the conversion continues when it has ended");
}
unlike(convert_online($node, 'postgres', "'orders'"), qr/ERROR/, 'the conversion is completed');
is(shop_is_whole($node, 'postgres', 500), '', 'no row is lost or changed');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');

# Prepared transactions
sql($node, 'CREATE TABLE p (id serial PRIMARY KEY, v int); INSERT INTO p (v) SELECT generate_series(1, 10)');
foreach my $phase ('prepare', 'swap')
{
	convert_online($node, 'postgres', "'p', until => 'foreign keys'") if $phase eq 'swap';
	sql($node, "BEGIN; UPDATE p SET v = 0 WHERE id = 1; PREPARE TRANSACTION 'it''s open'");
	$node->restart if $phase eq 'swap';
	wait_until_true($node, "SELECT prepared < clock_timestamp() - interval '300 ms' FROM pg_prepared_xacts");
	my $call = start_converting($node, 'postgres', "'p'", qr/waiting to lock table/);
	is(sql_error($node, q{SET lock_timeout = '100ms'; UPDATE p SET v = 0 WHERE id = 2; SELECT pg_sleep(0.3); UPDATE p SET v = 0 WHERE id = 2}),
		'', "phase $phase: nobody waits while a transaction is prepared");
	sql($node, "ROLLBACK PREPARED 'it''s open'");
	my $err = finish_converting($call);
	like($err, qr/^DETAIL:  Prepared transaction 'it''s open' of .+ has a lock on (?:public\.)?p, in a transaction that is [\d:.]+ old\.$/m,
		"phase $phase: a prepared transaction is named") or diag($err);
	unlike($err, qr/ERROR/, "phase $phase: the conversion continues when it has ended");
	sql($node, 'DROP TABLE p; CREATE TABLE p (id serial PRIMARY KEY, v int); INSERT INTO p (v) SELECT generate_series(1, 10)');
}

# Each transaction of these clients is prepared.
my $script = $node->basedir . '/prepared.sql';
append_to_file($script, q{
BEGIN;
UPDATE p SET v = v + 1 WHERE id = :client_id + 1;
PREPARE TRANSACTION 't:client_id';
COMMIT PREPARED 't:client_id';
});
my $preparing = IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 600, '-f', $script, $node->connstr('postgres') ],
	'<' => \undef, '>' => '/dev/null', '2>' => '/dev/null');
wait_until_true($node, 'SELECT sum(v) > 200 FROM p');
my $prepared = convert_online($node, 'postgres', "'p', until => 'swap', give_up_after => '30 s'");
unlike($prepared, qr/ERROR/, 'prepared transactions that end soon are not waited for') or diag($prepared);
$preparing->signal('TERM');
eval { $preparing->finish };
sql($node, "ROLLBACK PREPARED '$_'") foreach split /\n/, sql($node, 'SELECT gid FROM pg_prepared_xacts');
unlike(convert_online($node, 'postgres', "'p'"), qr/ERROR/, 'the conversion is completed');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');

# Rows that are locked during the backfill
sql($node, 'CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 100)');
my ($session) = start_queries($node, 'BEGIN; SELECT FROM t WHERE id = 50 FOR UPDATE; SELECT pg_sleep(600)');
wait_until_true($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT FROM t%' AND wait_event = 'PgSleep'");
sql($node, "SELECT 1");
my $before = start_converting($node, 'postgres', "'t', until => 'prepare'", qr/waiting to lock table/);
sql($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN;%'");
finish_queries($session);
finish_converting($before);
($session) = start_queries($node, 'BEGIN; SELECT FROM t WHERE id = 50 FOR UPDATE; SELECT pg_sleep(600)');
wait_until_true($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT FROM t%' AND wait_event = 'PgSleep'");
my $filling = start_converting($node, 'postgres', "'t', until => 'backfill'", qr/waiting to copy locked rows of table public\.t/);
is(sql($node, 'SELECT count(*) FROM t WHERE snowflake_new_id IS NULL'), '1', 'the backfill skips a row that is locked');
like(sql($node, q{SELECT state FROM snowflake_convert_plan('t') WHERE state LIKE 'next%'}), qr/^next, about 99 % are copied$/, 'the plan shows how far the backfill is');
sql($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN;%'");
finish_queries($session);
unlike(finish_converting($filling), qr/ERROR/, 'the backfill ends when the row is not locked anymore');
is(sql($node, 'SELECT count(*) FROM t WHERE snowflake_new_id IS DISTINCT FROM id'), '0', 'all rows are copied');
unlike(convert_online($node, 'postgres', "'t', batch_time => '10 ms', max_lag => '1 s'"), qr/ERROR/, 'a table without standbys is converted');

# The greatest key is only looked for under the lock where an index has it.  Before, a sample of
# the table is read, to find columns that hold the key.
foreach my $case ([ 'PRIMARY KEY (v, id)', 2 ], [ 'PRIMARY KEY (id)', 1 ])
{
	my ($key, $scans) = @$case;

	sql($node, "CREATE TABLE k (id bigserial, v int, $key); INSERT INTO k (v) SELECT generate_series(1, 100000); ANALYZE k");
	my $count = q{SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'k'};
	wait_until_true($node, q{SELECT n_tup_ins = 100000 FROM pg_stat_user_tables WHERE relname = 'k'});
	my $before = sql($node, $count);
	unlike(convert_online($node, 'postgres', "'k', 'id'"), qr/ERROR/, "a table with $key is converted");
	wait_until_true($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'CALL %'});
	cmp_ok(sql($node, $count) - $before, '<=', $scans, '... and its rows are not read while others wait');
	like(sql($node, q{INSERT INTO k (v) VALUES (0) RETURNING id > 1000000}), qr/^t$/, '... and has the default');
	sql($node, 'DROP TABLE k');
}

# A foreign key of a partitioned table needs a stronger lock.  It is requested before a
# client waits: a client that has locked a row, and then changes it, is no deadlock.
sql($node, q{
	CREATE TABLE a (id serial PRIMARY KEY, v int);
	INSERT INTO a (v) VALUES (1);
	CREATE TABLE parts (n int, a int REFERENCES a) PARTITION BY LIST (n);
	CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1);
	INSERT INTO parts VALUES (1, 1)});
convert_online($node, 'postgres', "'a', until => 'indexes'");
is( sql($node, q{
		SELECT string_agg(format('%s: %s', table_name, lock), ', ' ORDER BY step)
		FROM snowflake_convert_plan('a') WHERE phase = 'foreign keys' AND statement ~ 'ADD CONSTRAINT'}),
	'public.parts1: SHARE ROW EXCLUSIVE, public.parts: ACCESS EXCLUSIVE',
	'the plan has the locks of both');
my $client = $node->background_psql('postgres');
$client->query_safe('BEGIN; SELECT FROM a WHERE id = 1 FOR UPDATE');
my $calling = start_converting($node, 'postgres', "'a', until => 'foreign keys', lock_wait => '10 min'", undef,
	before => [q{SET deadlock_timeout = '1 h'}]);
wait_until_true($node, q{
	SELECT count(*) > 0 FROM pg_locks
	WHERE relation = 'a'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted}, 'the call does not wait');
is($client->query_safe('UPDATE a SET v = 2 WHERE id = 1; SELECT 1'), '1', 'a client that waits for the call is no deadlock');
$client->query_safe('COMMIT');
$client->quit;
unlike(finish_converting($calling), qr/ERROR/, 'the foreign key of a partitioned table is created') or diag($calling->{err});
unlike(convert_online($node, 'postgres', "'a'"), qr/ERROR/, 'the conversion with a partitioned table is completed');
sql($node, 'DROP TABLE parts');

# A logical slot that no publication belongs to
SKIP:
{
	sql($node, 'SET client_min_messages = warning; DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY)');
	skip 'no test_decoding', 1
	  if $node->psql('postgres', "SELECT pg_create_logical_replication_slot('decoded', 'test_decoding')") != 0;
	like(convert_online($node, 'postgres', "'a', until => 'prepare'"), qr/NOTICE:  logical replication slot decoded gets an UPDATE of each row\n/,
		'a logical slot is named');
	sql($node, "SELECT pg_drop_replication_slot('decoded'); SELECT snowflake_convert_undo('a')");
}

# A dump in the middle
foreach my $phase ('prepare', 'foreign keys')
{
	my $database = 'dump_' . $phase =~ s/ /_/r;

	sql($node, "CREATE DATABASE $database");
	sql($node, 'SET client_min_messages = warning; DROP TABLE IF EXISTS a, b CASCADE; CREATE TABLE a (id serial PRIMARY KEY, up int REFERENCES a); CREATE TABLE b (a int NOT NULL REFERENCES a ON DELETE CASCADE); CREATE INDEX ON b (a);
		INSERT INTO a (up) SELECT n FROM generate_series(1, 100) n; INSERT INTO b SELECT generate_series(1, 100)');
	convert_online($node, 'postgres', "'a', until => '$phase'");
	my $file = $node->basedir . "/$database.sql";
	$node->command_ok([ 'pg_dump', '-f', $file, '-t', 'a', '-t', 'b', '-t', 'a_id_seq', $node->connstr('postgres') ], "a dump after phase $phase");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert');
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $node->connstr($database) ], "the dump after phase $phase is restored");
	my ($out, $said);
	$node->psql($database, "CALL snowflake_convert_online('a')", stdout => \$out, stderr => \$said);
	unlike($said, qr/ERROR/, "the conversion continues in a database restored after phase $phase") or diag($said);
	is(nothing_is_left($node, $database), '', 'nothing is left');
	is($node->safe_psql($database, 'SELECT count(*), count(b.a), sum(a.up) FROM a JOIN b ON b.a = a.id'), '100|100|5050', 'no row is lost or changed');
	sql($node, "SELECT snowflake_convert_undo('a')");
}

done_testing();
