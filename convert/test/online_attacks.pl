# snowflake_convert_online() while another transaction that changes the tables is open.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'wal_level = logical', 'max_prepared_transactions = 1');
sql($node, 'CREATE ROLE regress_reader');

my $shop = 'SET search_path = shop, public';
my $call = q{CALL snowflake_convert_online('shop.t')};
my $until = q{CALL snowflake_convert_online('shop.t', until => 'foreign keys')};

#
# Locks
#
create($node, 'CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 100)');
run_in($node, 'postgres', $until);
my $err = run_in($node, 'postgres', 'SET client_min_messages = debug1', q{CALL snowflake_convert_online('shop.t', until => 'swap')});
like($err, qr/phase "swap"/, 'a table is swapped');
unlike($err, qr/verifying table "t"/, 'no row is read while the table is locked for the swap');

# A transaction that changes indexes and constraints may be older than their counterparts.
create($node, q{
	CREATE TABLE other (v int);
	CREATE TABLE t (id serial PRIMARY KEY, v int, CONSTRAINT c CHECK (id > 0));
	CREATE INDEX p ON t (id) WHERE v > 0});
my $older = $node->background_psql('postgres');
$older->query_safe('BEGIN; INSERT INTO shop.other VALUES (1)');
run_in($node, 'postgres', $until);
$older->query_safe('SET search_path = shop; ALTER TABLE t DROP CONSTRAINT c; ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0 OR v IS NULL); DROP INDEX p; CREATE INDEX p ON t (id) WHERE v > 1; COMMIT');
$older->quit;
like(run_in($node, 'postgres', $call) =~ s/shop\.//gr, qr/DETAIL:  index p was changed after its counterpart was created\nconstraint c on table t was changed /,
	'what an older transaction has changed is not taken back');

#
# Snapshots that are older than the copy of a column
#
create($node, q{
	CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE l (t int);
	INSERT INTO t SELECT generate_series(1, 100); INSERT INTO l SELECT id FROM t});
run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'indexes')});
my $old = $node->background_psql('postgres', on_error_stop => 0);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->query_safe('SELECT pg_current_snapshot()');
run_in($node, 'postgres', $shop, 'ALTER TABLE l ADD FOREIGN KEY (t) REFERENCES t');
like(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', give_up_after => '2 s')}),
	qr/ERROR:  gave up waiting to swap the columns of table shop\.l\nDETAIL:  Process \d+ \(.*\) has a snapshot that is older than the copy/,
	'a swap waits for old snapshots');
is($old->query_safe('SELECT count(t) FROM shop.l'), '100', 'which see all values');
$old->quit;
unlike(run_in($node, 'postgres', $call), qr/ERROR/, 'then the conversion continues');

# A look that begins after now has ended.
sub wait_for_a_look
{
	my $call = q{FROM pg_stat_activity WHERE query LIKE 'CALL snowflake%'};

	foreach my $n (1 .. 2)
	{
		my $start = sql($node, "SELECT coalesce(max(xact_start), clock_timestamp()) $call");
		wait_until_true($node, "SELECT coalesce((SELECT xact_start > '$start' $call), NOT EXISTS (SELECT $call))");
	}
	return;
}

# Another session imports such a snapshot, while a swap waits for it.  The one that has
# exported it ends after the next look, or before.
foreach my $looks_between (1, 0)
{
	create($node, q{
		CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE l (t int);
		INSERT INTO t SELECT generate_series(1, 100); INSERT INTO l SELECT id FROM t});
	run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'indexes')});
	my ($exporter, $importer) = map { $node->background_psql('postgres') } 1 .. 2;
	$exporter->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $exported = $exporter->query_safe('SELECT pg_export_snapshot()');
	run_in($node, 'postgres', $shop, 'ALTER TABLE l ADD FOREIGN KEY (t) REFERENCES t');
	my ($waiting) = start_queries($node, q{CALL snowflake_convert_online('shop.t', until => 'swap')});
	wait_until_true($node, q{SELECT count(*) = 1 FROM pg_constraint WHERE conname = 'snowflake_new_l_t_fkey' AND convalidated});
	wait_for_a_look();
	$importer->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$exported'");
	wait_for_a_look() if $looks_between;
	$exporter->query_safe('COMMIT');
	$exporter->quit;
	wait_for_a_look();
	is($importer->query_safe('SELECT count(t) FROM shop.l'), '100', "a session that has imported an old snapshot sees all values, $looks_between looks between");
	$importer->query_safe('COMMIT');
	$importer->quit;
	ok(finish_queries($waiting), 'then the columns are swapped') or diag $waiting->{err};
}

# Old transactions hold back how old the snapshots of all sessions seem to be.
create($node, q{CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 100)});
$node->safe_psql('template1', q{BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'far away'});
my $sleep = $node->basedir . '/sleep.sql';
append_to_file($sleep, "SELECT pg_sleep(0.2);\n");
my $sleepers = IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 600, '-f', $sleep, $node->connstr('postgres') ],
	'<' => \undef, '>' => '/dev/null', '2>' => '/dev/null');
wait_until_true($node, q{SELECT count(*) = 4 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(0.2);' AND wait_event = 'PgSleep'});
$err = run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'swap', give_up_after => '20 s')});
unlike($err, qr/ERROR/, 'a swap does not wait for newer sessions, whatever is open elsewhere') or diag $err;
$sleepers->signal('TERM');
eval { $sleepers->finish };
$node->safe_psql('template1', q{ROLLBACK PREPARED 'far away'});

#
# What is changed between the search for the statements of a swap and its lock
#
create($node, q{
	CREATE TABLE t (id serial PRIMARY KEY, v int); CREATE INDEX i ON t (v, id);
	CREATE VIEW w AS SELECT id FROM t;
	GRANT SELECT (id), UPDATE (id) ON t TO regress_reader;
	GRANT USAGE ON SEQUENCE t_id_seq TO regress_reader;
	GRANT SELECT (id) ON w TO regress_reader});
run_in($node, 'postgres', $until);
sql($node, q{ALTER DATABASE postgres SET deadlock_timeout = '100 s'});

# Swap the columns, while a transaction is open; its statements, and what to do when the
# statements of the swap are found, or those of another phase.
sub swap_while ($statements, $work, $phase = undef)
{
	my $writer = $node->background_psql('postgres');

	$writer->query_safe("BEGIN; $statements");
	my ($swapping) = start_queries($node, q{CALL snowflake_convert_online('shop.t', lock_wait => '90 s', until => '} . ($phase // 'swap') . q{')});
	wait_until_true($node, q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'shop.t'::regclass AND NOT granted});
	$work->();
	$writer->query_safe('COMMIT');
	$writer->quit;
	finish_queries($swapping);
	return $swapping->{err};
}

like(swap_while('CREATE VIEW shop.v AS SELECT id FROM shop.t', sub { }),
	qr/ERROR:  table shop\.t was changed .*\nDETAIL:  The old column would be dropped with rule _RETURN on view shop\.v/, 'a view that comes then is not dropped');
run_in($node, 'postgres', 'DROP VIEW shop.v');
my @revoking;
$err = swap_while('LOCK TABLE shop.t IN ROW EXCLUSIVE MODE', sub {
	(@revoking) = start_queries($node, 'REVOKE SELECT (id) ON shop.t FROM regress_reader', 'REVOKE USAGE ON SEQUENCE shop.t_id_seq FROM regress_reader',
		'REVOKE SELECT (id) ON shop.w FROM regress_reader');
	wait_until_true($node, q{SELECT count(*) = 3 FROM pg_stat_activity WHERE query ~ 'regress_reader$' AND wait_event_type = 'Lock'});
	like(run_in($node, 'postgres', "SET lock_timeout = '100 ms'", 'ALTER INDEX shop.i SET (fillfactor = 50)'), qr/ERROR:  canceling statement due to lock timeout/, 'changes of indexes do');
});
unlike($err, qr/ERROR/, 'the columns are swapped') or diag $err;
sql($node, q{ALTER DATABASE postgres RESET deadlock_timeout});
finish_queries(@revoking);

# Since 18, REVOKE locks the table, so it waits for the swap, and then finds what there is.
my $locks = $node->pg_version >= 18;
like($revoking[0]{err}, $locks ? qr/^$/ : qr/ERROR:  tuple concurrently updated/, 'REVOKE fails if the column was swapped meanwhile, and waits since 18');
is($revoking[1]{err}, '', '... and waits if the sequence was not');
like($revoking[2]{err}, $locks ? qr/^$/ : qr/ERROR:  /, '... and fails for a view that was created again, and waits since 18');
my $rights = q{SELECT has_column_privilege('regress_reader', 'shop.t', 'id', 'SELECT'), has_column_privilege('regress_reader', 'shop.t', 'id', 'UPDATE'),
	has_column_privilege('regress_reader', 'shop.w', 'id', 'SELECT'), has_sequence_privilege('regress_reader', 'shop.t_id_seq', 'USAGE')};
is(sql($node, $rights), $locks ? 'f|t|f|f' : 't|t|t|f', 'what was not revoked is there');
run_in($node, 'postgres', 'REVOKE SELECT (id) ON shop.t FROM regress_reader', 'REVOKE SELECT (id) ON shop.w FROM regress_reader');
is(sql($node, $rights), 'f|t|f|f', 'what is revoked then, is not');

# Default privileges, for the sequences and views that are created again.
create($node, 'CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, l int); CREATE VIEW w AS SELECT id FROM t');
run_in($node, 'postgres', $until);
sql($node, q{ALTER DATABASE postgres SET deadlock_timeout = '100 s'});
like(swap_while('LOCK TABLE shop.t IN ROW EXCLUSIVE MODE', sub { run_in($node, 'postgres', 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO regress_reader') }),
	qr/ERROR:  table shop\.t was changed .*\nDETAIL:  Its views or columns would have other privileges/, 'default privileges that are new');
sql($node, q{ALTER DATABASE postgres RESET deadlock_timeout});
run_in($node, 'postgres', $call);
is(sql($node, q{SELECT has_table_privilege('regress_reader', 'shop.w', 'SELECT')}), 'f', 'a view that existed before them is without them');
run_in($node, 'postgres', 'ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM regress_reader');

# A privilege that is revoked while the first lock is waited for.
create($node, 'CREATE TABLE t (id serial PRIMARY KEY); GRANT SELECT (id), UPDATE (id) ON t TO regress_reader');
sql($node, q{ALTER DATABASE postgres SET deadlock_timeout = '100 s'});
$err = swap_while('LOCK TABLE shop.t IN SHARE UPDATE EXCLUSIVE MODE', sub { is(run_in($node, 'postgres', 'REVOKE SELECT (id) ON shop.t FROM regress_reader'), '', 'REVOKE before the copy is created') }, 'prepare');
sql($node, q{ALTER DATABASE postgres RESET deadlock_timeout});
unlike($err, qr/ERROR/, '... which is created then');
is(sql($node, q{SELECT has_column_privilege('regress_reader', 'shop.t', 'snowflake_new_id', 'SELECT'), has_column_privilege('regress_reader', 'shop.t', 'snowflake_new_id', 'UPDATE')}),
	'f|t', '... without the privilege');

# Privileges that were changed in a transaction that is open.
foreach my $change (
	'REVOKE SELECT (id) ON shop.t FROM regress_reader',
	'GRANT SELECT (id) ON shop.w TO regress_reader',
	'REVOKE USAGE ON SEQUENCE shop.t_id_seq FROM regress_reader',
	'CREATE OR REPLACE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$',
	'CREATE OR REPLACE FUNCTION shop.g() RETURNS text LANGUAGE plpgsql AS $$DECLARE r shop.t; BEGIN RETURN r; END$$',
	'ALTER STATISTICS shop.s SET STATISTICS 7',
	'DROP PUBLICATION regress_p')
{
	create($node, q{
		CREATE TABLE t (id serial PRIMARY KEY, v int); CREATE VIEW w AS SELECT id FROM t;
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER f AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
		CREATE FUNCTION g() RETURNS text LANGUAGE plpgsql AS 'DECLARE r t; BEGIN RETURN NULL; END';
		CREATE STATISTICS s ON id, v FROM t; DROP PUBLICATION IF EXISTS regress_p; CREATE PUBLICATION regress_p FOR TABLE t (id);
		GRANT SELECT (id) ON t TO regress_reader; GRANT USAGE ON SEQUENCE t_id_seq TO regress_reader});
	run_in($node, 'postgres', $until);
	my $revoker = $node->background_psql('postgres');
	$revoker->query_safe("BEGIN; SAVEPOINT s; $change; RELEASE s");
	like(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', give_up_after => '1 s')}),
		qr/ERROR:  gave up waiting to look for obstacles\nDETAIL:  Process \d+ \(.*\) has changed privileges or definitions of/, "a call waits for the end of: $change");
	like(run_in($node, 'postgres', q{SELECT snowflake_convert_plan('shop.t')}), qr/ERROR:  cannot look for obstacles of table shop\.t now\nDETAIL:  Process \d+ .*\nHINT:/, '... so does the plan, as an error');
	$revoker->query_safe('COMMIT');
	$revoker->quit;
	unlike(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'swap')}), qr/ERROR/, 'then the columns are swapped');
	is(sql($node, $rights), $change =~ /^GRANT/ ? 't|f|t|t' : $change =~ /SEQ/ ? 't|f|f|f' : $change =~ /REVOKE/ ? 'f|f|f|t' : 't|f|f|t', '... with these privileges');
}

# The same during a call, which locks nothing meanwhile.
create($node, 'CREATE TABLE t (id serial PRIMARY KEY, v int)');
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE shop.t IN ROW EXCLUSIVE MODE');
my $calling = start_converting($node, 'postgres', q{'shop.t', until => 'prepare'}, qr/waiting to lock table/);
my $granter = $node->background_psql('postgres');
$granter->query_safe('BEGIN; GRANT SELECT ON shop.t TO regress_reader');
$holder->query_safe('COMMIT');
$holder->quit;
wait_until_said($calling, qr/has changed privileges/);
is(run_in($node, 'postgres', q{SET lock_timeout = '50 ms'}, map { ("INSERT INTO shop.t (v) VALUES ($_)", 'SELECT pg_sleep(0.05)') } 1 .. 20), '', 'no client waits until privileges are committed');
$granter->query_safe('COMMIT');
$granter->quit;
unlike(finish_converting($calling), qr/ERROR/, 'then the conversion continues');

# A rule that is created in the backfill, before the last row is filled.
create($node, 'CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT generate_series(1, 10); CREATE TABLE u (v int)');
run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'prepare')});
my ($locker) = start_queries($node, 'BEGIN; SELECT FROM shop.t WHERE id = 5 FOR UPDATE; SELECT pg_sleep(600)');
wait_until_true($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT FROM shop.t%' AND wait_event = 'PgSleep'});
my ($converter) = start_queries($node, $until);
wait_until_true($node, q{SELECT count(*) = 9 FROM shop.t WHERE snowflake_new_id = id});
my ($ruler) = start_queries($node, 'CREATE RULE r AS ON UPDATE TO shop.t DO INSTEAD UPDATE shop.u SET v = 1');
wait_until_true($node, q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'shop.t'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted});
sql($node, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT FROM shop.t%'});
finish_queries($locker, $ruler);
is(finish_queries($converter), 0, 'a rule that is created in the backfill');
like($converter->{err}, qr/ERROR:  a rule was created for table shop\.t during the conversion/, 'a rule is an error, also when the conversion runs');
run_in($node, 'postgres', 'DROP RULE r ON shop.t', $call);
is(sql($node, 'SELECT count(*), sum(id) FROM shop.t'), '10|55', 'the conversion continues without the rule');

done_testing();
