# pg_upgrade of a server whose databases use the extension: script/tests/upgrade

use PgUpgrade;
use SnowflakeTest;

# An old server with the extension, and a new one without anything.
sub make_servers ($name, @conf)
{
	unshift @conf, "shared_preload_libraries = 'snowflake'", 'snowflake.worker_id = 5';
	my ($old, $new) = (new_old_server($name, @conf), new_new_server($name, @conf));

	sql($old, q{
		CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert;
		CREATE TABLE t (
		    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
		    at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'shardingsphere')) STORED);
		CREATE INDEX ON t ((snowflake_timestamp(id, 'shardingsphere')));
		CREATE VIEW mark AS SELECT mark FROM snowflake_stat;
		GRANT EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass[], boolean) TO pg_monitor;
		INSERT INTO t SELECT FROM generate_series(1, 1000);
		CREATE TABLE s (id bigserial PRIMARY KEY, n int);
		INSERT INTO s (n) VALUES (1), (2);
		CREATE SEQUENCE pooled INCREMENT 50;
		SELECT snowflake_set_sequence_kind('s_id_seq'),
		    snowflake_set_sequence_kind('pooled');
		INSERT INTO s (n) VALUES (3);
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create(101, 200, new => true);
		CREATE DATABASE other;
		\c other
		CREATE SCHEMA ids;
		CREATE EXTENSION snowflake SCHEMA ids; CREATE EXTENSION snowflake_convert SCHEMA ids;
		CREATE TABLE t (id bigint PRIMARY KEY DEFAULT ids.snowflake_nextval(), old serial UNIQUE);
		SELECT ids.snowflake_convert('t', 'old');
		INSERT INTO t SELECT FROM generate_series(1, 1000)});
	return ($old, $new);
}

# What a registry answers to a server.
sub ask_registry ($node)
{
	return sql_error($node,
		q{SELECT 1 / worker_id FROM snowflake_registry.get_grant('shardingsphere', 0, NULL,
		  snowflake_lower_bound(now()), '{}', gen_random_uuid(), 'server')});
}

sub greatest ($node) { return sql($node, 'SELECT max(id) FROM t'); }

# As it is done every day: the clock is right, and IDs have no lead.
my ($old, $new) = make_servers('plain');
my $greatest = greatest($old);
my $version_sql =
  "SELECT extversion FROM pg_extension WHERE extname = 'snowflake'";
my $version = sql($old, $version_sql);
my $rows = sql($old, 'SELECT id, at FROM t ORDER BY id');
is(ask_registry($old), '', 'a registry grants worker IDs');
$old->stop;
upgrade($old, $new);
is(sql($new, 'SELECT id, at FROM t ORDER BY id'),
	$rows, 'all rows are there after pg_upgrade');
is(sql($new, $version_sql),
	$version, 'the extension is there after pg_upgrade');
is( sql($new, q{SELECT has_function_privilege('pg_monitor', 'snowflake_set_mark(bigint, regclass[], boolean)', 'EXECUTE')}
	),
	't',
	'the privileges of the extension are there after pg_upgrade');
is(mark_of($new), 0, 'the mark is not copied by pg_upgrade');
sql($new, 'INSERT INTO t SELECT FROM generate_series(1, 1000)');
is( sql($new, "SELECT count(*), count(*) FILTER (WHERE id > $greatest) FROM t"),
	'2000|1000',
	'IDs keep increasing after pg_upgrade');
is( sql($new, 'SELECT count(*) FROM t WHERE at <> snowflake_timestamp(id)'),
	0,
	'generated columns work after pg_upgrade');
like(
	sql($new, "SET enable_seqscan = off; EXPLAIN (COSTS off) SELECT FROM t WHERE snowflake_timestamp(id, 'shardingsphere') > now()"),
	qr/Index Cond/,
	'indexes on expressions work after pg_upgrade');
is( $new->safe_psql(
		'other',
		'INSERT INTO t SELECT FROM generate_series(1, 1000); SELECT count(*), count(DISTINCT old) FROM t'),
	'2000|2000',
	'a database with the extension in another schema works after pg_upgrade');
cmp_ok(sql($new, 'SELECT mark FROM mark'),
	'>', $greatest, 'a view on snowflake_stat works after pg_upgrade, and there is a mark');

# Snowflake sequences: their labels and positions are there.
is( sql($new, q{
		INSERT INTO s (n) VALUES (4);
		SELECT count(*) FILTER (WHERE id > 1e17) FROM s;
		SELECT count(DISTINCT nextval('pooled') / 50) FROM generate_series(1, 1000);
		SELECT count(*) FROM snowflake_sequences WHERE problem IS NOT NULL;
		SELECT snowflake_set_sequence_kind('s_id_seq', 'local'), snowflake_set_sequence_kind('pooled', 'local');
		SELECT nextval('s_id_seq')}),
	"2\n1000\n0\n|\n3",
	'snowflake sequences return IDs after pg_upgrade, and have their positions');
ask_registry($new);
like(ask_registry($new),
	qr/Grants might have been lost, .* gives none until/,
	'a registry detects pg_upgrade, and grants nothing for a while');
sql($new, 'SELECT snowflake_registry.alter(NULL, 201, 300, new => true)');
is(ask_registry($new), '', 'a registry grants worker IDs after pg_upgrade that were never granted');
$new->stop;

# IDs ran an hour ahead: without the mark, the new server's are below.
($old, $new) = make_servers('lead');
sql($old, q{
	SELECT snowflake_raise_mark(snowflake_lower_bound(now() + '1 hour'));
	INSERT INTO t DEFAULT VALUES});
$greatest = greatest($old);

# What the README says: read it when no more IDs are generated, and set it.
my $mark = sql($old, 'SELECT mark FROM snowflake_stat');
cmp_ok($mark, '>', $greatest, 'the old mark is above all IDs');
$old->stop;
upgrade($old, $new);
cmp_ok(sql($new, 'SELECT snowflake_nextval()'),
	'<', $greatest, 'a new server without the mark begins at its clock');
sql($new, "SELECT snowflake_raise_mark($mark)");
cmp_ok(sql($new, 'INSERT INTO t DEFAULT VALUES RETURNING id'),
	'>=', $mark, 'with the copied mark, IDs are above all IDs of the old server');
crash_and_start($new);
cmp_ok(sql($new, 'SELECT snowflake_nextval()'),
	'>', greatest($new), 'the copied mark is durable');
done_testing();
