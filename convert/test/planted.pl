# Who may create functions where those are that a table calls creates one that matches a
# bigint better, while the table is converted: it must not be called with the rights of
# the owner of the table.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use SnowflakeTest::Online;
use Test::More;

my $node = new_server('main', 'fsync = off', 'max_prepared_transactions = 5');
$node->safe_psql(
	'postgres', q{
	CREATE ROLE regress_mallory;
	CREATE SCHEMA shop;
	GRANT ALL ON SCHEMA shop TO regress_mallory;
	CREATE FUNCTION shop.listed(anyarray) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'});

my $planted = q{CREATE FUNCTION shop.listed(bigint[]) RETURNS boolean IMMUTABLE LANGUAGE plpgsql
	AS 'BEGIN RAISE WARNING ''runs as %'', current_user; RETURN true; END'};
my $plant = "SET SESSION AUTHORIZATION regress_mallory; $planted";
my $obstacle = qr/calls function shop\.listed\(anyarray\), and might call function shop\.listed\(bigint\[\]\) of role regress_mallory instead/;
my $create = 'CREATE FUNCTION shop.other() RETURNS int LANGUAGE sql AS $$SELECT 1$$';

# Objects of a new table call the function.
sub create_table
{
	my (@objects) = @_;

	$node->safe_psql(
		'postgres', qq{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS t CASCADE;
		DROP FUNCTION IF EXISTS shop.listed(bigint[]), shop.other();
		CREATE TABLE t (id serial PRIMARY KEY, v int);
		INSERT INTO t (v) SELECT generate_series(1, 10);
		@objects});
	return;
}

my $view = 'CREATE VIEW v AS SELECT id FROM t WHERE shop.listed(ARRAY[id]);';
my $check = 'ALTER TABLE t ADD CONSTRAINT listed CHECK (shop.listed(ARRAY[id]));';
my $index = 'CREATE INDEX listed ON t (id) WHERE shop.listed(ARRAY[id]);';

# A transaction that is open has created it when the conversion begins.
foreach my $dry_run ('true', 'false')
{
	create_table($check);
	$node->safe_psql('postgres', "BEGIN; $plant; PREPARE TRANSACTION 'plant'");
	my ($session) = start_queries($node, "SELECT snowflake_convert('t', dry_run => $dry_run)");
	$node->poll_query_until(
		'postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE wait_event = 'transactionid' AND query LIKE '%snowflake_convert%' AND pid <> pg_backend_pid()}
	) or die 'the conversion does not wait';
	$node->safe_psql('postgres', $create);
	pass("who waits for a function holds up no other (dry run: $dry_run)");
	$node->safe_psql('postgres', "COMMIT PREPARED 'plant'");
	ok(!finish_queries($session), "a function that is created meanwhile is an obstacle (dry run: $dry_run)");
	like($session->{err}, $obstacle, '... and named');
	unlike($session->{err}, qr/runs as/, '... and not called');
}

# Then nobody creates one until the transaction has ended.
create_table($check, $view);
my $converter = $node->background_psql('postgres');
$converter->query_safe(q{SET client_min_messages = warning; BEGIN; SELECT snowflake_convert('t')});
like(sql_error($node, "SET lock_timeout = '10ms'; $plant"), qr/lock timeout/, 'no function is created while a conversion looks up others');
like(sql_error($node, "SET lock_timeout = '10ms'; ALTER SCHEMA shop RENAME TO other"), qr/lock timeout/, '... nor is their schema renamed');
$converter->query_safe('COMMIT');
$converter->quit;
$node->safe_psql('postgres', $plant);
unlike($node->safe_psql('postgres', q{SELECT pg_get_viewdef('v') || (SELECT string_agg(refobjid::regprocedure::text, ' ') FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjid >= 16384)}),
	qr/bigint\[\]/, 'afterwards, the view and the constraint call what they did');

# A type could hide a function with one argument, if somebody else may create one.
my $type = 'CREATE TYPE shop.mood AS ENUM ()';
my $temporary = 'CREATE TEMPORARY TABLE temporary ()';
create_table($check);
$converter = $node->background_psql('postgres');
$converter->query_safe(q{SET client_min_messages = warning; BEGIN; SELECT snowflake_convert('t')});
like(sql_error($node, "SET lock_timeout = '10ms'; $_"), qr/lock timeout/, "not possible meanwhile: $_")
	foreach "SET SESSION AUTHORIZATION regress_mallory; $type", 'CREATE CAST (int8 AS jsonb) WITH INOUT';
$converter->query_safe('ROLLBACK');
$node->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA shop FROM regress_mallory');
$converter->query_safe(q{BEGIN; SELECT snowflake_convert('t')});
$node->safe_psql('postgres', "SET lock_timeout = '180s'; $temporary");
pass('a temporary table is created, if nobody else may create types in the schema');
$converter->query_safe('ROLLBACK');
$node->safe_psql('postgres', "$type; ALTER TYPE shop.mood OWNER TO regress_mallory");
$converter->query_safe(q{BEGIN; SELECT snowflake_convert('t')});
like(sql_error($node, q{SET lock_timeout = '10ms'; SET SESSION AUTHORIZATION regress_mallory; ALTER TYPE shop.mood RENAME TO listed}), qr/lock timeout/, '... but no type of another role is renamed');
$converter->query_safe('ROLLBACK');
$node->safe_psql('postgres', 'DROP TYPE shop.mood');
$converter->quit;
$node->safe_psql('postgres', 'GRANT CREATE ON SCHEMA shop TO regress_mallory');

# One that is not committed yet is waited for, and a temporary table is not.
my $open = $node->background_psql('postgres');
$open->query_safe("BEGIN; $temporary");
$node->safe_psql('postgres', "BEGIN; SET LOCAL SESSION AUTHORIZATION regress_mallory; CREATE DOMAIN shop.listed AS boolean; PREPARE TRANSACTION 'plant'");
my ($waiting) = start_queries($node, q{SELECT snowflake_convert('t')});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid' AND query LIKE '%snowflake_convert%' AND pid <> pg_backend_pid()}) or die;
$node->safe_psql('postgres', "COMMIT PREPARED 'plant'");
ok(!finish_queries($waiting), 'a type that is created meanwhile is an obstacle');
like($waiting->{err}, qr/calls function shop\.listed\(anyarray\), and might call a cast to type shop\.listed of role regress_mallory instead/, '... and named');
$node->safe_psql('postgres', 'DROP DOMAIN shop.listed');
$node->safe_psql('postgres', qq{
	SET SESSION AUTHORIZATION regress_mallory; CREATE TYPE shop.mood AS ENUM ('ok'); RESET SESSION AUTHORIZATION;
	CREATE VIEW v AS SELECT id, 'ok'::text::shop.mood FROM t});
$node->safe_psql('postgres', q{BEGIN; SET LOCAL SESSION AUTHORIZATION regress_mallory; ALTER TYPE shop.mood RENAME TO humour; CREATE DOMAIN shop.mood AS text; PREPARE TRANSACTION 'plant'});
($waiting) = start_queries($node, q{SELECT snowflake_convert('t')});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid' AND query LIKE '%snowflake_convert%' AND pid <> pg_backend_pid()}) or die;
$node->safe_psql('postgres', "COMMIT PREPARED 'plant'");
ok(finish_queries($waiting), 'a type that is renamed meanwhile is found') or diag $waiting->{err};
like($node->safe_psql('postgres', q{SELECT pg_get_viewdef('v')}), qr/::shop\.humour/, '... and not one with its name');
$node->safe_psql('postgres', 'DROP VIEW v; DROP DOMAIN shop.mood; DROP TYPE shop.humour');
$open->query_safe('ROLLBACK');
$open->quit;

# Who owns a schema cannot have a statement find another table there, which would call code as the
# owner of the first.
$node->safe_psql(
	'postgres', q{
	GRANT CREATE ON DATABASE postgres TO regress_mallory;
	CREATE SCHEMA own AUTHORIZATION regress_mallory;
	CREATE TABLE own.t (id serial PRIMARY KEY);
	CREATE TABLE own.big (id bigserial PRIMARY KEY);
	CREATE TABLE key (id serial PRIMARY KEY);
	CREATE TABLE own.referencing (id int REFERENCES key)});
$node->safe_psql('postgres', q{UPDATE pg_proc SET prosupport = 0 WHERE oid = 'nextval(regclass)'::regprocedure;
	SELECT snowflake_set_sequence_kind('own.big_id_seq', 'snowflake')});
my $rename = "SET lock_timeout = '10ms'; SET SESSION AUTHORIZATION regress_mallory; ALTER SCHEMA own RENAME TO other";
foreach my $call (q{snowflake_convert('own.t', dry_run => true)}, q{snowflake_convert_plan('own.t')}, q{snowflake_convert('own.big', dry_run => true, kind => 'local')})
{
	foreach my $mode ('WRITE', $call =~ /plan/ ? () : 'ONLY')
	{
		$converter = $node->background_psql('postgres');
		$converter->query_safe("SET client_min_messages = warning; BEGIN READ $mode; SELECT $call");
		like(sql_error($node, $rename), qr/lock timeout/, "a schema is not renamed meanwhile, READ $mode: $call");
		$converter->query_safe('COMMIT');
		$converter->quit;
	}
}
$node->safe_psql('postgres', q{SELECT snowflake_convert('own.big', kind => 'local')});
$node->safe_psql('postgres', 'ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support');
$node->safe_psql('postgres', q{INSERT INTO own.t SELECT generate_series(1, 10); CALL snowflake_convert_online('own.t', until => 'prepare')});
foreach my $call ([ q{SELECT snowflake_convert('key')}, 'referencing' ], [ q{CALL snowflake_convert_online('own.t')}, 't' ])
{
	my ($convert, $table) = @{$call};

	$node->safe_psql('postgres', "BEGIN; SET LOCAL SESSION AUTHORIZATION regress_mallory; ALTER SCHEMA own RENAME TO other; PREPARE TRANSACTION 'rename'");
	my ($renamed) = start_queries($node, $convert);
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid' AND query LIKE '%snowflake_convert%' AND pid <> pg_backend_pid()}) or die;
	$node->safe_psql('postgres', "COMMIT PREPARED 'rename'");
	ok(finish_queries($renamed), "a schema is being renamed, and waited for: $convert") or diag $renamed->{err};
	is($node->safe_psql('postgres', "SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'other.$table'::regclass AND attname = 'id'"), 'bigint', '... and the table is found by its new name');
	$node->safe_psql('postgres', 'ALTER SCHEMA other RENAME TO own');
}
$node->safe_psql('postgres', q{DROP SCHEMA own CASCADE; DROP TABLE key; REVOKE CREATE ON DATABASE postgres FROM regress_mallory});

create_table();
$converter = $node->background_psql('postgres');
$converter->query_safe(q{SET client_min_messages = warning; BEGIN; SELECT snowflake_convert('t')});
$node->safe_psql('postgres', "SET lock_timeout = '180s'; $create");
pass('a conversion that looks up no function holds up nobody');
$converter->query_safe('ROLLBACK');
create_table($check);
$converter->query_safe(q{BEGIN; SELECT snowflake_convert('t', dry_run => true)});
$node->safe_psql('postgres', "SET lock_timeout = '180s'; $create; $type");
pass('... nor does a dry run that is over');
$converter->query_safe('ROLLBACK');
$converter->quit;

# New IDs are tried with what is not created again, too, also by a report.
$node->safe_psql(
	'postgres', qq{
	SET client_min_messages = warning;
	DROP TABLE t CASCADE;
	CREATE SCHEMA tried;
	DROP FUNCTION IF EXISTS shop.listed(bigint[]);
	CREATE FUNCTION shop.small(anyelement) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
	CREATE TABLE tried.t (id bigserial PRIMARY KEY CONSTRAINT listed CHECK (shop.listed(ARRAY[id])),
		next bigint GENERATED ALWAYS AS (id + 1) STORED);
	CREATE INDEX small ON tried.t (next) WHERE shop.small(next);
	CREATE TABLE tried.parts (id bigserial) PARTITION BY LIST ((id > 0 AND shop.listed(ARRAY[id])));
	CREATE TABLE tried.part PARTITION OF tried.parts DEFAULT;
	SET ROLE regress_mallory;
	CREATE FUNCTION shop.small(bigint) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RAISE WARNING ''runs as %'', current_user; RETURN true; END';
	$planted});
foreach my $call (q{count(*) FROM snowflake_convert_report('tried', details => true) WHERE severity = 'obstacle'}, q{snowflake_convert_schema('tried', dry_run => true)}, q{snowflake_convert_schema('tried')})
{
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT $call");
	unlike($err, qr/runs as/, "no function of another role is called: $call");
	if ($call =~ /report/)
	{
		is($out, '3', '... and there is an obstacle for each object');
		next;
	}
	like($err, qr/constraint listed on table tried\.t $obstacle/, '... and a constraint is an obstacle');
	like($err, qr/index tried\.small calls function shop\.small\(anyelement\)/, '... and an index of a generated column');
	like($err, qr/table tried\.parts $obstacle/, '... and a partition key');
}
$node->safe_psql('postgres', 'DROP SCHEMA tried CASCADE; CREATE TABLE t ()');

# In use: it is created while the backfill waits for a row.
foreach my $objects ([ 'swap', $view ], [ 'CHECK constraint', $check ], [ 'index', $index ])
{
	my ($what, $object) = @{$objects};

	create_table($object);
	$node->safe_psql('postgres', q{CALL snowflake_convert_online('t', until => 'prepare')});
	my $locker = $node->background_psql('postgres');
	$locker->query_safe('BEGIN; SELECT FROM t WHERE id = 5 FOR UPDATE');
	my ($session) = start_queries($node, q{CALL snowflake_convert_online('t')});
	$node->poll_query_until('postgres', q{SELECT count(*) = 9 FROM t WHERE snowflake_new_id = id}) or die;
	$node->safe_psql('postgres', $plant);
	$locker->query_safe('COMMIT');
	$locker->quit;
	ok(!finish_queries($session), "a function that is created during the backfill stops a conversion before the $what");
	like($session->{err}, qr/ERROR:  table public\.t was changed during the conversion\nDETAIL:  .*$obstacle/, '... and is named');
	unlike($session->{err}, qr/runs as/, '... and not called');
	$node->safe_psql('postgres', q{DROP FUNCTION shop.listed(bigint[]); CALL snowflake_convert_online('t')});
	is(nothing_is_left($node, 'postgres'), '', '... which continues without it');
}

# The lock is released when an index is defined, and not after all is read.
create_table($index);
$node->safe_psql('postgres', q{CALL snowflake_convert_online('t', until => 'backfill')});
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
my ($creating) = start_queries($node, q{CALL snowflake_convert_online('t', until => 'indexes')});
$node->poll_query_until('postgres', q{
	SELECT count(*) = 1 FROM pg_stat_progress_create_index p JOIN pg_index i ON i.indexrelid = p.index_relid
	WHERE p.phase ~ 'waiting' AND i.indpred IS NOT NULL}) or die;
$node->safe_psql('postgres', "SET lock_timeout = '180s'; $create; $plant");
pass('functions are created while CREATE INDEX CONCURRENTLY waits');
$reader->query_safe('COMMIT');
$reader->quit;
finish_queries($creating);
unlike($creating->{err}, qr/runs as/, '... and not called by the index');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE relation = 'pg_proc'::regclass AND mode <> 'AccessShareLock'}), '0', 'no lock is left');

$node->stop;
done_testing();
