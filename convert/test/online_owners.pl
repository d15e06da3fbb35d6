# snowflake_convert_online() by a superuser, while roles that may reference or read the
# table add tables and views of their own: it must do nothing for them.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off');

# Tables of the superuser, and a role that may reference the key.  What runs as a
# superuser makes that role a superuser.
sql($node, q{
	CREATE ROLE regress_mallory;
	CREATE SCHEMA mallory AUTHORIZATION regress_mallory;
	CREATE FUNCTION mallory.grab() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		ALTER ROLE regress_mallory SUPERUSER;
	EXCEPTION WHEN insufficient_privilege THEN
		NULL;
	END $$;
	CREATE FUNCTION mallory.evil(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS
		'BEGIN PERFORM mallory.grab(); RETURN i; END'});
my $is_super = q{SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_mallory'};

# Have mallory create something while the backfill waits for a locked row.  Returns the
# session of the conversion, when it has ended.
sub convert_with ($statements)
{
	sql($node, q{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS t, secret CASCADE;
		CREATE TABLE t (id serial PRIMARY KEY, v int);
		INSERT INTO t (v) SELECT generate_series(1, 10);
		CREATE TABLE secret (v text);
		INSERT INTO secret VALUES ('hidden');
		GRANT REFERENCES, SELECT ON t TO regress_mallory});
	sql($node, q{CALL snowflake_convert_online('t', until => 'prepare')});
	my ($locker) = start_queries($node, 'BEGIN; SELECT FROM t WHERE id = 5 FOR UPDATE; SELECT pg_sleep(600)');
	wait_until_true($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT FROM t%' AND wait_event = 'PgSleep'});
	my ($converter) = start_queries($node, q{CALL snowflake_convert_online('t')});
	wait_until_true($node, q{SELECT count(*) = 9 FROM t WHERE snowflake_new_id = id});
	sql($node, "SET SESSION AUTHORIZATION regress_mallory; $statements");
	sql($node, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT FROM t%'});
	finish_queries($locker);
	$converter->{succeeded} = finish_queries($converter);
	return $converter;
}

my $session = convert_with(q{
	CREATE TABLE mallory.l (t int REFERENCES t CHECK (mallory.evil(t) > 0));
	INSERT INTO mallory.l VALUES (1)});
is(sql($node, $is_super), 'f', 'the owner of a table that references the key since then gains no rights');
like(
	$session->{err},
	qr/ERROR:  table public\.t was changed .*\nDETAIL:  Table mallory\.l is linked to it by a foreign key, and belongs to another role/,
	'the conversion stops before it changes such a table');
is(sql($node, q{SELECT count(*) FROM pg_attribute WHERE attrelid = 'mallory.l'::regclass AND attnum > 0}), '1', 'the table is as it was');
sql($node, q{DROP TABLE mallory.l; CALL snowflake_convert_online('t')});
is(nothing_is_left($node, 'postgres'), '', 'the conversion continues without it');

$session = convert_with(q{
	CREATE VIEW mallory.v AS SELECT t.id, secret.v FROM t, secret;
	GRANT SELECT ON mallory.v TO PUBLIC});
sql_fails($node, 'SET SESSION AUTHORIZATION regress_mallory; SELECT * FROM mallory.v', qr/permission denied for table secret/,
	'a view of another role does not get the rights of the owner of the table');
like($session->{err}, qr/ERROR:  table public\.t was changed .*\nDETAIL:  view mallory\.v is owned by role regress_mallory, but table public\.t by role /,
	'the columns are not swapped under such a view');
$session = convert_with(q{
	CREATE VIEW mallory.v AS SELECT v FROM t});
ok($session->{succeeded}, 'a view of another role that does not use the column does not matter') or diag $session->{err};

# The owner of two schemas exchanges their names while CREATE INDEX CONCURRENTLY, which
# finds its table by name, is waited with: an index on the table of somebody else would call code
# of mallory with that role's rights.
sql($node, q{
	CREATE ROLE regress_victim;
	GRANT CREATE ON DATABASE postgres TO regress_mallory;
	CREATE SCHEMA a AUTHORIZATION regress_mallory;
	CREATE SCHEMA b AUTHORIZATION regress_mallory;
	GRANT ALL ON SCHEMA b TO regress_victim;
	GRANT USAGE ON SCHEMA a, mallory TO regress_victim;
	SET SESSION AUTHORIZATION regress_victim;
	CREATE TABLE b.t (id serial PRIMARY KEY, v int);
	INSERT INTO b.t (v) VALUES (1);
	SET SESSION AUTHORIZATION regress_mallory;
	CREATE FUNCTION mallory.note(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS
		$$ BEGIN RAISE WARNING 'runs as %', current_user; RETURN i; END $$;
	CREATE TABLE a.t (id serial PRIMARY KEY, v int);
	INSERT INTO a.t (v) VALUES (1);
	CREATE INDEX i ON a.t (mallory.note(id::bigint))});
sql($node, q{CALL snowflake_convert_online('b.t', until => 'foreign keys')});
sql($node, q{CALL snowflake_convert_online('a.t', until => 'backfill')});
my $mallory = $node->background_psql('postgres', on_error_stop => 0);
$mallory->query_safe('SET SESSION AUTHORIZATION regress_mallory; BEGIN; LOCK TABLE a.t IN SHARE UPDATE EXCLUSIVE MODE');
my ($creating) = start_queries($node, q{CALL snowflake_convert_online('a.t', until => 'foreign keys')});
wait_until_true($node, q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'a.t'::regclass AND NOT granted});
$mallory->query_safe('ALTER SCHEMA a RENAME TO c; ALTER SCHEMA b RENAME TO a; COMMIT');
$mallory->quit;
ok(finish_queries($creating), 'an index is created on the table that it is for') or diag $creating->{err};
is(sql($node, q{SELECT count(*) FROM pg_index WHERE indrelid = 'c.t'::regclass AND indexprs IS NOT NULL AND indisvalid}), '2',
	'... whose name another one has got');
unlike($creating->{err}, qr/runs as (?!regress_mallory\b)/, 'code of the owner is called as the owner only');
is(sql($node, q{SELECT count(*) FROM pg_index WHERE indrelid = 'a.t'::regclass AND indexprs IS NOT NULL}), '0', 'the other table has no such index');
sql($node, q{DROP OWNED BY regress_victim; DROP SCHEMA a, c CASCADE; REVOKE CREATE ON DATABASE postgres FROM regress_mallory; DROP ROLE regress_victim});

done_testing();
