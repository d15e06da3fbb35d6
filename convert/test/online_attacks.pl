# snowflake_convert_online() while somebody changes the tables, and with what a copy of
# a table could lose: rights on sequences, deferred checks, names of what was dropped.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'wal_level = logical', 'max_prepared_transactions = 1');
sql($node, 'CREATE ROLE regress_reader; CREATE ROLE regress_other');

my $shop = 'SET search_path = shop, public';
my $call = q{CALL snowflake_convert_online('shop.t')};
my $until = q{CALL snowflake_convert_online('shop.t', until => 'foreign keys')};
my $undo = q{SELECT snowflake_convert_undo('shop.t')};

#
# Locks
#
create($node, 'CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 100)');
run_in($node, 'postgres', $until);
my $err = run_in($node, 'postgres', 'SET client_min_messages = debug1', q{CALL snowflake_convert_online('shop.t', until => 'swap')});
like($err, qr/phase "swap"/, 'a table is swapped');
unlike($err, qr/verifying table "t"/, 'no row is read while the table is locked for the swap');

#
# Rights
#
create($node, q{
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO regress_reader;
	CREATE TABLE t (id int PRIMARY KEY);
	CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
	CREATE TABLE b (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
	ALTER DEFAULT PRIVILEGES REVOKE SELECT ON SEQUENCES FROM regress_reader;
	CREATE TABLE c (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO regress_reader;
	REVOKE ALL ON SEQUENCE a_id_seq FROM regress_reader, current_user;
	GRANT USAGE ON SEQUENCE b_id_seq TO regress_other WITH GRANT OPTION});
my $privileges = q{
	SELECT string_agg(format('%s %s %s %s', c.relname, e.grantee::regrole, e.privilege_type, e.is_grantable), ', '
		ORDER BY c.relname, e.grantee::regrole::text, e.privilege_type)
	FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('s', c.relowner))) e
	WHERE c.relnamespace = 'shop'::regnamespace AND c.relkind = 'S'};
my $before = sql($node, $privileges);
run_in($node, 'postgres', $call);
is(sql($node, q{SELECT count(*) FROM pg_attribute WHERE attrelid IN ('shop.a'::regclass, 'shop.b'::regclass, 'shop.c'::regclass) AND attidentity = 'a' AND atttypid = 'int8'::regtype}),
	'3', 'identities of columns that reference the key are kept');
is(sql($node, $privileges), $before, 'the sequences of identities have the privileges that they had');
sql($node, 'ALTER DEFAULT PRIVILEGES REVOKE SELECT ON SEQUENCES FROM regress_reader');

#
# Deferred checks
#
create($node, q{
	CREATE TABLE t (id int PRIMARY KEY, v int);
	CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t DEFERRABLE)});
my @deferred = ('BEGIN', 'SET CONSTRAINTS shop.l_t DEFERRED', 'INSERT INTO shop.l VALUES (%d)', 'INSERT INTO shop.t (id) VALUES (%1$d)', 'COMMIT');
run_in($node, 'postgres', $until);
is(run_in($node, 'postgres', map { sprintf $_, 1 } @deferred), '', 'SET CONSTRAINTS ... DEFERRED with the name of a foreign key also defers the new one');
like(run_in($node, 'postgres', 'INSERT INTO shop.l VALUES (9)'), qr/ERROR:  .*violates foreign key constraint "l_t"/, 'the foreign key is checked at once, as it was');
run_in($node, 'postgres', $call);
is(run_in($node, 'postgres', map { sprintf $_, 2 } @deferred), '', 'SET CONSTRAINTS ... DEFERRED after the conversion');
is(sql($node, q{SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'l_t'}), 'FOREIGN KEY (t) REFERENCES shop.t(id) DEFERRABLE',
	'a deferrable foreign key is as it was');

#
# What is renamed or dropped meanwhile
#
create($node, q{
	CREATE TABLE t (id serial PRIMARY KEY, v int, CONSTRAINT c CHECK (id > 0));
	CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t);
	CREATE INDEX i ON t (v, id); CREATE UNIQUE INDEX u ON t (id, v); CREATE STATISTICS s ON id, v FROM t;
	INSERT INTO t (v) SELECT generate_series(1, 100); INSERT INTO l SELECT id FROM t});
run_in($node, 'postgres', $until, $shop, 'ALTER INDEX i RENAME TO j', 'DROP INDEX u', 'DROP STATISTICS s',
	'ALTER TABLE l RENAME CONSTRAINT l_t TO l_u', 'ALTER TABLE t DROP CONSTRAINT c');
like(run_in($node, 'postgres', $call) =~ s/shop\.//gr,
	qr/DETAIL:  constraint snowflake_new_c on table t has no counterpart any more\nconstraint snowflake_new_l_t on table l has .*\nindex snowflake_new_i has .*\nindex snowflake_new_u has .*\nstatistics object snowflake_new_s has/,
	'what was created for objects that were dropped or renamed is an obstacle');
is(run_in($node, 'postgres', $shop, 'DROP INDEX snowflake_new_i, snowflake_new_u', 'DROP STATISTICS snowflake_new_s',
		'ALTER TABLE t DROP CONSTRAINT snowflake_new_c', 'ALTER TABLE l DROP CONSTRAINT snowflake_new_l_t'), '', 'it can be dropped');
unlike(run_in($node, 'postgres', $call), qr/ERROR/, 'then the conversion continues');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');
is(sql($node, q{
	SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = 'shop.t'::regclass
	UNION ALL SELECT string_agg(conname, ' ') FROM pg_constraint WHERE conrelid = 'shop.l'::regclass AND contype = 'f'}),
	"shop.j shop.t_pkey\nl_u", 'indexes and constraints have the names that they were given meanwhile');

#
# What is changed meanwhile, under the same name
#
my $changed = q{
	CREATE TABLE t (id serial PRIMARY KEY, v int, CONSTRAINT c CHECK (id > 0));
	CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t, v int);
	CREATE INDEX i ON t (v, id); CREATE UNIQUE INDEX u ON t (id, v); CREATE INDEX p ON t (id) WHERE v > 0;
	CREATE INDEX q ON t (id) WHERE v > 2; CREATE INDEX o ON t (id, (v::text));
	CREATE STATISTICS s ON id, v FROM t;
	INSERT INTO t (v) SELECT generate_series(1, 100); INSERT INTO l SELECT id FROM t};
foreach my $case (
	[ 'index i', 'ALTER INDEX i SET (fillfactor = 50)' ],
	[ 'index i', 'DROP INDEX i; CREATE INDEX i ON t (id, v)' ],
	[ 'index i', 'DROP INDEX i; CREATE INDEX i ON t (v, id DESC)' ],
	[ 'index o', 'DROP INDEX o; CREATE INDEX o ON t (id, (v::text) text_pattern_ops)' ],
	[ 'index p', 'DROP INDEX p; CREATE INDEX p ON t (id) WHERE v > 1' ],
	[ 'index p', 'DROP INDEX p, snowflake_new_q; ALTER INDEX q RENAME TO p' ],
	[ 'index u', 'DROP INDEX u; CREATE INDEX u ON t (id, v)' ],
	[ 'constraint c on table t', 'ALTER TABLE t DROP CONSTRAINT c; ALTER TABLE t ADD CONSTRAINT c CHECK (id > 1 OR v > 0)' ],
	[ 'constraint l_t on table l', 'ALTER TABLE l ALTER CONSTRAINT l_t DEFERRABLE' ],
	[ 'constraint l_t on table l', 'ALTER TABLE l DROP CONSTRAINT l_t; ALTER TABLE l ADD CONSTRAINT l_t FOREIGN KEY (t) REFERENCES t ON DELETE CASCADE' ],
	[ 'statistics object s', 'DROP STATISTICS s; CREATE STATISTICS s (mcv) ON id, v FROM t' ])
{
	my ($what, $change) = @$case;
	create($node, $changed);
	run_in($node, 'postgres', $until, $shop, $change);
	like(run_in($node, 'postgres', $call) =~ s/shop\.//gr, qr/DETAIL:  $what was changed after its counterpart was created\n/,
		"$what is not taken back: $change");
}

# The transaction that changes them may be older than the counterparts.
create($node, "CREATE TABLE other (v int); $changed");
my $older = $node->background_psql('postgres');
$older->query_safe('BEGIN; INSERT INTO shop.other VALUES (1)');
run_in($node, 'postgres', $until);
$older->query_safe('SET search_path = shop; ALTER TABLE t DROP CONSTRAINT c; ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0 OR v IS NULL); DROP INDEX p; CREATE INDEX p ON t (id) WHERE v > 1; COMMIT');
$older->quit;
like(run_in($node, 'postgres', $call) =~ s/shop\.//gr, qr/DETAIL:  index p was changed after its counterpart was created\nconstraint c on table t was changed /,
	'what an older transaction has changed is not taken back');

# A column that is NOT NULL since then: a swap would read all rows.
create($node, q{CREATE TABLE "T" (id serial PRIMARY KEY); CREATE TABLE t (v int PRIMARY KEY, "Up" int REFERENCES "T", b int NOT NULL REFERENCES "T")});
run_in($node, 'postgres', q{CALL snowflake_convert_online('shop."T"', until => 'foreign keys')}, 'ALTER TABLE shop.t ALTER "Up" SET NOT NULL');
like(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop."T"')}),
	qr/DETAIL:  column "Up" of table shop\.t is NOT NULL, and was not when its copy was created\nHINT:/, 'SET NOT NULL after the copy was created');
run_in($node, 'postgres', 'ALTER TABLE shop.t ALTER "Up" DROP NOT NULL');
unlike(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop."T"')}), qr/ERROR/, 'DROP NOT NULL, and the conversion continues');

# What is as it was is no obstacle.
create($node, q{
	CREATE TABLE t (id serial PRIMARY KEY, n varchar, v int,
		CONSTRAINT c CHECK (id > 0 AND n IN ('a', 'b')), CONSTRAINT d CHECK (v > 0 AND id + 0 > v - id) NOT VALID);
	CREATE INDEX p ON t (id, (v + id), lower(n) text_pattern_ops DESC) INCLUDE (v) WITH (fillfactor = 70) WHERE n IN ('a', 'b') AND id % 2 = 0;
	CREATE INDEX b ON t USING brin (v int4_minmax_multi_ops (values_per_range = 16), id);
	CREATE INDEX k ON t ((id::bigint)); ALTER INDEX k ALTER 1 SET STATISTICS 10;
	CREATE STATISTICS s ON v, n, (id % 10), (id + v) FROM t; CREATE STATISTICS e (ndistinct) ON id, v FROM t;
	INSERT INTO t (n, v) SELECT 'a', 1 FROM generate_series(1, 100)});
run_in($node, 'postgres', $until, $shop, 'REINDEX INDEX CONCURRENTLY p', 'CLUSTER t USING t_pkey', 'ALTER STATISTICS s SET STATISTICS 10',
	'CREATE SCHEMA elsewhere', 'ALTER TABLE t SET SCHEMA elsewhere', 'ALTER TABLE elsewhere.t SET SCHEMA shop', 'DROP SCHEMA elsewhere');
$err = run_in($node, 'postgres', $call);
unlike($err, qr/ERROR/, 'what was rewritten or moved there and back is as it was') or diag $err;

create($node, $changed);
run_in($node, 'postgres', $until, $shop, 'DROP STATISTICS s', 'CREATE STATISTICS s (mcv) ON id, v FROM t');
like(run_in($node, 'postgres', $call) =~ s/shop\.//gr, qr/HINT:  Nothing was changed\. Drop the counterpart, which has the same name after "snowflake_new_"/, 'the hint');
run_in($node, 'postgres', $shop, 'DROP STATISTICS snowflake_new_s');
unlike(run_in($node, 'postgres', $call), qr/ERROR/, 'then the conversion continues');
is(sql($node, q{SELECT stxkind FROM pg_statistic_ext WHERE stxname = 's'}), '{m}', 'with what there is now');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left of it');

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

# A plan would have a snapshot that is older than a GRANT.
create($node, 'CREATE TABLE t (id serial PRIMARY KEY)');
foreach my $function ('snowflake_convert_plan', 'snowflake_convert_undo')
{
	like(run_in($node, 'postgres', 'BEGIN ISOLATION LEVEL REPEATABLE READ', "SELECT $function('shop.t')"),
		qr/ERROR:  cannot convert a table in a transaction with isolation level REPEATABLE READ/, "$function() in a REPEATABLE READ transaction");
}

#
# Code of the owner, which is called when the definition of an index is analyzed
#
sql($node, q{CREATE ROLE regress_owner});
create($node, q{
	GRANT ALL ON SCHEMA shop TO regress_owner;
	SET SESSION AUTHORIZATION regress_owner;
	CREATE FUNCTION note(int) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		RAISE WARNING 'runs as %', current_user;
		RETURN true;
	END $$;
	CREATE DOMAIN d AS int CHECK (shop.note(VALUE));
	CREATE TABLE t (id serial PRIMARY KEY, v int);
	INSERT INTO t (v) SELECT generate_series(1, 10);
	CREATE INDEX i ON t ((id + array_length('{1}'::shop.d[], 1)));
	CREATE INDEX j ON t (id) WHERE v <> array_length('{2}'::shop.d[], 1);
	RESET SESSION AUTHORIZATION});
$err = run_in($node, 'postgres', $call);
like($err, qr/runs as regress_owner/, 'what a table owner can have called is called');
unlike($err, qr/runs as (?!regress_owner\b)|ERROR/, '... as the owner only, although a superuser converts');
create($node, 'SELECT');
sql($node, q{DROP ROLE regress_owner});

# Undo finds its columns by the arguments of the trigger.
create($node, q{
	CREATE TABLE t (id serial PRIMARY KEY, "Straße \ '' x" int REFERENCES t);
	INSERT INTO t DEFAULT VALUES});
run_in($node, 'postgres', $until, 'ALTER TABLE shop.t RENAME id TO key', 'ALTER TABLE shop.t RENAME "Straße \ \'\' x" TO y', $undo);
is(nothing_is_left($node, 'postgres'), '', 'columns that were renamed meanwhile are undone');
is(run_in($node, 'postgres', 'INSERT INTO shop.t (key, y) VALUES (100, 100)'), '', 'the table can be written after that');

# Triggers that were disabled and enabled again: no row is wrong, and undo works.
create($node, 'CREATE TABLE t (id serial PRIMARY KEY, t int REFERENCES t); INSERT INTO t (t) SELECT generate_series(1, 100)');
run_in($node, 'postgres', $until, 'ALTER TABLE shop.t DISABLE TRIGGER ALL');
like(run_in($node, 'postgres', 'INSERT INTO shop.t (t) VALUES (5)'), qr/violates check constraint "snowflake_new_check"/, 'without the trigger, rows cannot differ');
run_in($node, 'postgres', 'ALTER TABLE shop.t ENABLE TRIGGER ALL');
like(run_in($node, 'postgres', $call), qr/DETAIL:  trigger ~snowflake_new of table shop\.t is not enabled as it was\n/, 'a trigger that was disabled, and is not ENABLE ALWAYS any more');
is(run_in($node, 'postgres', $undo), '', 'undo after that');
unlike(run_in($node, 'postgres', $call), qr/ERROR/, 'the conversion begins again');
is(sql($node, 'SELECT count(*), sum(id), sum(t) FROM shop.t'), '100|5050|5050', 'the rows are as before');

#
# Code of the owner in the backfill
#
create($node, q{
	DROP ROLE IF EXISTS regress_owner; CREATE ROLE regress_owner; GRANT CREATE, USAGE ON SCHEMA shop TO regress_owner;
	CREATE TABLE victim (n int); INSERT INTO victim VALUES (0); GRANT SELECT, UPDATE ON victim TO regress_owner;
	CREATE TABLE log (n int);
	CREATE FUNCTION log() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql SET search_path = shop AS
		'BEGIN INSERT INTO log VALUES (NEW.n); RETURN NEW; END';
	CREATE TRIGGER log AFTER UPDATE ON victim FOR EACH ROW EXECUTE FUNCTION log();
	SET ROLE regress_owner;
	CREATE FUNCTION attack(int) RETURNS boolean LANGUAGE plpgsql AS
		'BEGIN UPDATE shop.victim SET n = n + 1; RETURN true; END';
	CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE shop.fired SET n = n + 1; RETURN NEW; END';
	CREATE TABLE t (id int PRIMARY KEY, v int CONSTRAINT attack CHECK (attack(v)));
	INSERT INTO t SELECT generate_series(1, 10);
	CREATE TABLE fired (n int); INSERT INTO fired VALUES (0);
	CREATE TRIGGER always AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fire();
	ALTER TABLE t ENABLE ALWAYS TRIGGER always;
	CREATE TRIGGER replica BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fire();
	ALTER TABLE t ENABLE REPLICA TRIGGER replica;
	CREATE TRIGGER of_statement AFTER UPDATE ON t REFERENCING NEW TABLE AS rows EXECUTE FUNCTION fire()});
is(run_in($node, 'postgres', 'SET client_min_messages = error', 'SET SESSION AUTHORIZATION regress_owner', $until), '', 'a table whose CHECK constraint changes another table');
is(sql($node, 'SELECT n > 0, n = (SELECT count(*) FROM shop.log) FROM shop.victim'), 't|t', 'triggers of the other table are fired');
is(sql($node, 'SELECT n FROM shop.fired'), '0', 'no trigger of the table is fired by the backfill, in whatever state');
unlike(run_in($node, 'postgres', $call), qr/ERROR/, 'such a table is converted');
is(sql($node, q{SELECT string_agg(tgname || ' ' || tgenabled::text, ', ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 'shop.t'::regclass}),
	'always A, of_statement O, replica R', 'the triggers are as they were');

# Intervals that no integer holds
create($node, 'CREATE TABLE t (id int PRIMARY KEY)');
like(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'prepare', batch_time => '-178000000 years')}), qr/ERROR:  batch_time must be/, 'a negative interval of millions of years');
unlike(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'prepare', give_up_after => '178000000 years')}), qr/ERROR/, 'an interval of millions of years');

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
