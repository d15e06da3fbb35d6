# What others do during snowflake_convert_online() that conflicts with no lock on the
# table: they rename functions of its policies, alter those that use its rows, and store its
# rows elsewhere.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off');
sql($node, 'CREATE ROLE regress_owner');

my $shop = 'SET search_path = shop, public';
my $call = q{CALL snowflake_convert_online('shop.t')};

# A session with the table open, and a call that has found the statements of the swap
# and waits for that.  It waits for lock_wait, and after that until no transaction is much
# older, so another session takes over before that; the table is always open.
sub between ($lock)
{
	run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'foreign keys')});
	my ($session, $next) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	$_->query_safe($shop) foreach $session, $next;
	$session->query_safe("BEGIN; $lock");
	my ($calling) = start_queries($node, q{CALL snowflake_convert_online('shop.t', until => 'swap', lock_wait => '900 ms')});
	my $waits = q{SELECT FROM pg_locks WHERE relation = 'shop.t'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted};
	while ($session->query_safe(qq{
			DO \$\$ BEGIN
				FOR i IN 1 .. 100 LOOP
					EXIT WHEN EXISTS ($waits);
					PERFORM pg_sleep(0.02);
				END LOOP;
			END \$\$; SELECT count(*) FROM ($waits) w}) eq '0')
	{
		$next->query_safe("BEGIN; $lock");
		$session->query_safe('ROLLBACK');
		($session, $next) = ($next, $session);
	}
	$next->quit;
	return ($session, $calling);
}

# Functions that change their names
create($node, q{
	CREATE FUNCTION f(bigint) RETURNS bool LANGUAGE sql AS 'SELECT true';
	CREATE FUNCTION g(bigint) RETURNS bool LANGUAGE sql AS 'SELECT false';
	CREATE TABLE t (id int PRIMARY KEY);
	CREATE POLICY po ON t USING (f(id));
	CREATE VIEW w AS SELECT id FROM t WHERE f(id)});
my $uses = q{
	SELECT string_agg(DISTINCT p.prosrc, ' ') FROM pg_depend d JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
	WHERE d.classid IN ('pg_policy'::regclass, 'pg_rewrite'::regclass) AND p.pronamespace = 'shop'::regnamespace};
is(sql($node, $uses), 'SELECT true', 'the policy and the view use one function');
my ($session, $calling) = between('SELECT FROM t');
my ($renaming) = start_queries($node, 'ALTER FUNCTION shop.f(bigint) RENAME TO before; ALTER FUNCTION shop.g(bigint) RENAME TO f');
# It need not wait if the call has just given up its locks, to try again.
wait_until_true($node, q{
	SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'ALTER FUNCTION%' AND wait_event_type = 'Lock')
		OR EXISTS (SELECT FROM pg_proc WHERE proname = 'before')});
$session->query_safe('COMMIT');
$session->quit;
ok(finish_queries($calling), 'a swap while functions change their names') or diag $calling->{err};
ok(finish_queries($renaming), 'which wait for the swap') or diag $renaming->{err};
is(sql($node, $uses), 'SELECT true', 'the policy and the view use that function still');

# A procedure that is compiled again
create($node, q{
	CREATE TABLE t (id int PRIMARY KEY);
	CREATE PROCEDURE pr() SECURITY DEFINER LANGUAGE plpgsql AS 'DECLARE r shop.t; BEGIN END'});
($session, $calling) = between('SELECT FROM t');
my ($altering) = start_queries($node, 'ALTER PROCEDURE shop.pr() SECURITY INVOKER');
wait_until_true($node, q{
	SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'ALTER PROCEDURE%' AND wait_event_type = 'Lock')
		OR EXISTS (SELECT FROM pg_proc WHERE proname = 'pr' AND NOT prosecdef)});
$session->query_safe('COMMIT');
$session->quit;
ok(finish_queries($calling), 'a swap while a procedure is altered') or diag $calling->{err};
is(sql($node, q{SELECT prosecdef::text FROM pg_proc WHERE proname = 'pr'}), finish_queries($altering) ? 'false' : 'true',
	'a swap takes back nothing that was committed');

# A second column is converted, while the end of the first one is still to come.
foreach my $tables (
	'CREATE TABLE t (id serial PRIMARY KEY, v int); CREATE TABLE o (t int REFERENCES t); INSERT INTO t (v) VALUES (7); INSERT INTO o VALUES (1)',
	'CREATE TABLE t (id serial, v int, p int, PRIMARY KEY (p, id)) PARTITION BY LIST (p); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1); INSERT INTO t (v, p) VALUES (7, 1)')
{
	my $second = q{CALL snowflake_convert_online('shop.t', 'id'};
	my $swapped = qr/ERROR:  cannot undo the conversion of table shop\.t, because columns have been swapped/;

	create($node, $tables);
	run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', 'v', until => 'swap')});
	like(run_in($node, 'postgres', q{SELECT snowflake_convert('shop.t', 'id')}),
		qr/DETAIL:  table shop\.t is being converted online\nHINT:  Nothing was changed\. Complete the conversion with snowflake_convert_online\(\)\. If the column needs no default, and no other one waits for its own, drop trigger "~snowflake_swapped" instead\./,
		'snowflake_convert() while the end of a conversion is to come');
	like(run_in($node, 'postgres', "$second, until => 'indexes')"), qr/the next phase is/, 'a second column gets its copy');
	is(run_in($node, 'postgres', q{SELECT snowflake_convert_undo('shop.t')}), '', 'it is undone, although the first column is swapped');
	is(sql($node, q{SELECT string_agg(tgname, ' ') FROM pg_trigger WHERE tgrelid = 'shop.t'::regclass AND NOT tgisinternal}),
		'~snowflake_swapped', 'nothing is left of the second column, and the first one is as it was');
	like(run_in($node, 'postgres', q{SELECT snowflake_convert_undo('shop.t', 'v')}), $swapped, 'that one cannot be undone');

	my $between = $node->background_psql('postgres');
	unlike(run_in($node, 'postgres', "$second, until => 'swap')"), qr/ERROR/, 'the second column is swapped');
	like(run_in($node, 'postgres', "$second, until => 'swap')", q{SELECT snowflake_convert_undo('shop.t', 'id')}), $swapped, 'and cannot be undone');
	like(run_in($node, 'postgres', "$second, give_up_after => '1 ms')"), qr/sessions are older than the swap/, 'its default waits for sessions from before its swap');
	$between->quit;
	unlike(run_in($node, 'postgres', "$second)"), qr/ERROR/, 'then it is set');
	is(nothing_is_left($node, 'postgres'), '', 'nothing is left of both');
	is(sql($node, q{SELECT string_agg(format('%s %s', attname, atttypid::regtype), ', ' ORDER BY attname) FROM pg_attribute
			WHERE attrelid = 'shop.t'::regclass AND attname IN ('id', 'v')}), 'id bigint, v bigint', 'both are bigint');
}

# The order in which foreign keys act, which decides what a DELETE does.  It is that of
# OIDs as text, so the second one may have the greater number of digits.
foreach my $case (
	[ q{CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE o (a int, b int)}, 'a', 'b' ],
	[ q{CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE o (b int, a int)}, 'a', 'b' ],
	[ q{CREATE TABLE t (id serial, at int DEFAULT 1, PRIMARY KEY (id, at)) PARTITION BY LIST (at); CREATE TABLE t_1 PARTITION OF t DEFAULT;
		CREATE TABLE o (a int, b int, at int DEFAULT 1)}, 'a, at', 'b, at' ])
{
	my ($tables, $one, $two) = @$case;

	foreach my $digits (0, 1)
	{
		if ($digits)
		{
			$node->stop;
			run_log([ 'pg_resetwal', '-D', $node->data_dir, '-o', '99950' ]) or die;
			$node->start;
		}
		create($node, $tables);
		my ($first, $second) = ("ADD CONSTRAINT o_1 FOREIGN KEY ($one) REFERENCES t", "ADD CONSTRAINT o_2 FOREIGN KEY ($two) REFERENCES t ON DELETE CASCADE");
		($first, $second) = ($second, $first) unless $digits;
		run_in($node, 'postgres', $shop, "ALTER TABLE o $first", !$digits ? () : q{DO 'BEGIN WHILE lo_create(0)::bigint < 100000 LOOP END LOOP; END'},
			"ALTER TABLE o $second", 'INSERT INTO t DEFAULT VALUES', 'INSERT INTO o VALUES (1, 1)');
		is(sql($node, q{SELECT length(min(oid::text)) - length(max(oid::text)) FROM pg_constraint WHERE conname IN ('o_1', 'o_2')}), $digits, 'digits of the OIDs');
		my $delete = 'BEGIN; DELETE FROM shop.t; ROLLBACK';
		unlike(run_in($node, 'postgres', $delete), qr/ERROR/, "$tables, $digits: rows are deleted");
		unlike(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', 'id')}), qr/ERROR/, "$tables, $digits: a conversion");
		unlike(run_in($node, 'postgres', $delete), qr/ERROR/, "$tables, $digits: rows are deleted afterwards");
	}
}
# Rows that are stored elsewhere: before the columns are copied, before the swap, and
# while that waits for its last lock
my $store = 'CREATE TABLE h (c t, a t[]); INSERT INTO h SELECT t, ARRAY[t] FROM t';
my $rows = 'CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT generate_series(1, 5)';
create($node, $rows);
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; SELECT FROM shop.t');
$calling = start_converting($node, 'postgres', "'shop.t'", qr/waiting to lock table/);
run_in($node, 'postgres', $shop, $store);
$holder->query_safe('COMMIT');
like(finish_converting($calling), qr/ERROR:  cannot convert .*\nDETAIL:  column a of table shop\.h uses the row type of table shop\.t/, 'rows that are stored elsewhere before the table has new columns');
is(nothing_is_left($node, 'postgres'), '', 'it has none then');

create($node, $rows);
run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'foreign keys')});
$holder->query_safe('BEGIN; SELECT FROM shop.t');
$calling = start_converting($node, 'postgres', "'shop.t'", qr/waiting to lock table/);
run_in($node, 'postgres', $shop, $store);
$holder->query_safe('COMMIT');
$holder->quit;
like(finish_converting($calling), qr/ERROR:  table shop\.t was changed during the conversion\nDETAIL:  column a of table shop\.h uses the row type of table shop\.t/, 'before the swap');

create($node, $rows);
($session, $calling) = between('SELECT FROM t');
$session->query_safe($store);
$session->query_safe('COMMIT');
$session->quit;
# or the lock was not to be had, and the next look finds them
ok(finish_queries($calling) || $calling->{err} =~ /DETAIL:  column a of shop\.h uses the row type of table shop\.t/,
	'while the swap waits for its lock, they have both columns') or diag($calling->{err});
is(sql($node, 'SELECT sum((c).id), sum(a[1].id) FROM shop.h'), '15|15', '... and the rows have their keys');

# A session imports an old snapshot, and the one that has exported it ends, before
# somebody can see that.
create($node, 'CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE l (t int); INSERT INTO t SELECT generate_series(1, 100); INSERT INTO l SELECT id FROM t');
run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'indexes')});
my ($exporter, $importer) = map { $node->background_psql('postgres') } 1 .. 2;
$exporter->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$importer->query_safe('SELECT 1');
run_in($node, 'postgres', $shop, 'ALTER TABLE l ADD FOREIGN KEY (t) REFERENCES t');
$calling = start_converting($node, 'postgres', "'shop.t', until => 'swap'", qr/waiting to swap the columns of table shop\.l/);
my $snapshot = $exporter->query_safe('SELECT pg_export_snapshot()');
$importer->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$snapshot'");
$exporter->query_safe('COMMIT');
$exporter->quit;
wait_until_true($node, q{SELECT pg_sleep(1.5) IS NOT NULL});
is($importer->query_safe('SELECT count(t) FROM shop.l'), '100', 'who has imported an old snapshot sees all values');
$importer->query_safe('COMMIT');
$importer->quit;
unlike(finish_converting($calling), qr/ERROR/, 'then the columns are swapped');

# A table owner cannot have others wait for their own functions.
create($node, q{
	GRANT ALL ON SCHEMA shop TO regress_owner;
	CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TABLE t (id int PRIMARY KEY);
	CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION audit();
	ALTER TABLE t OWNER TO regress_owner});
run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', until => 'prepare')});
my $owner = $node->background_psql('postgres');
$owner->query_safe(q{SET SESSION AUTHORIZATION regress_owner; BEGIN; SELECT snowflake_convert_undo('shop.t')});
is(run_in($node, 'postgres', "SET lock_timeout = '3 s'", "CREATE OR REPLACE FUNCTION shop.audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'"),
	'', 'a function of another role can be replaced while the table is locked');
$owner->query_safe('COMMIT');
$owner->quit;

# Two sessions have one lock together.
create($node, 'CREATE TABLE t (id int PRIMARY KEY)');
my @both = map { $node->background_psql('postgres') } 1 .. 2;
$_->query_safe(q{BEGIN; SELECT relname FROM pg_class WHERE oid = 'shop.t'::regclass FOR SHARE}) foreach @both;
like(run_in($node, 'postgres', q{CALL snowflake_convert_online('shop.t', give_up_after => '2 s')}), qr/ERROR:  gave up waiting to look for obstacles/,
	'a call gives up waiting for a lock that two sessions have');
$_->query_safe('COMMIT') foreach @both;
$_->quit foreach @both;

# Another conversion at the same time, which advisory locks of roles do not prevent, and a temporary
# function of another session, which is no obstacle
create($node, 'CREATE TABLE t (id serial PRIMARY KEY)');
my $other = $node->background_psql('postgres');
$other->query_safe('SELECT pg_advisory_lock(0), pg_advisory_lock(1936617335, 1)');
$other->query_safe('CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE sql AS $$ INSERT INTO pg_class SELECT * FROM pg_class WHERE false $$');
$other->query_safe('CREATE FUNCTION pg_temp.g() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO archive SELECT * FROM t; END $$');
unlike(run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('shop.t')"), qr/ERROR|pg_temp/, 'a temporary function of another session');
$other->query_safe('BEGIN; SELECT FROM shop.t');
$calling = start_converting($node, 'postgres', "'shop.t'", qr/waiting to lock table shop\.t/);
my $converting = qr/ERROR:  another session converts a table of this database\nDETAIL:  .*has the advisory lock of conversions\./;
like(run_in($node, 'postgres', $call), $converting, 'another session converts');
like(run_in($node, 'postgres', q{SELECT snowflake_convert_undo('shop.t')}), $converting, 'another session converts, and undo');
$other->query_safe('COMMIT');
$other->quit;
unlike(finish_converting($calling), qr/ERROR/, 'that one succeeds');

# A temporary view, which cannot be created again
create($node, 'CREATE TABLE t (id int PRIMARY KEY)');
my $temporary = $node->background_psql('postgres');
$temporary->query_safe('CREATE TEMP VIEW w AS SELECT id FROM shop.t');
like(run_in($node, 'postgres', $call), qr/ERROR:  cannot convert .*\nDETAIL:  view pg_temp_\d+\.w is temporary/, 'a temporary view is an obstacle');
$temporary->quit;

done_testing();
