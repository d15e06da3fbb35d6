# A swap that has failed leaves IDs of multixacts in rows of the catalogs, on a server that has
# had more of these than transactions.  They are no transactions that are open.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'autovacuum = off');

sql($node, 'UPDATE pg_database SET datallowconn = true');
$node->safe_psql($_, 'VACUUM FREEZE') foreach 'template0', 'template1', 'postgres';
$node->stop;
my $directory = $node->data_dir;
run_log([ 'pg_resetwal', '-D', $directory, '-m', '983040000,983040000' ]) or die;
my $segment = "$directory/pg_multixact/offsets/3A98";
append_to_file($segment, "\0" x (256 * 1024));
$node->start;

sql($node, q{
	CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 10);
	CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_identity = 'public.t.id') THEN
			RAISE 'refused';
		END IF;
	END $$;
	CREATE EVENT TRIGGER refuse ON sql_drop EXECUTE FUNCTION refuse()});
like(convert_online($node, 'postgres', q{'t'}), qr/ERROR:  refused/, 'a swap fails');
sql($node, 'DROP EVENT TRIGGER refuse');
is(sql($node, q{SELECT bool_or(xmax::text::bigint >= 983040000) FROM pg_class WHERE oid = 't'::regclass}), 't', 'the table has a multixact');
cmp_ok(sql($node, q{SELECT count(*) FROM snowflake_convert_plan('t')}), '>', 0, 'there is a plan');
unlike(convert_online($node, 'postgres', q{'t'}), qr/ERROR/, 'the next call completes the conversion');
is(sql($node, 'SELECT count(*), sum(id) FROM t'), '10|55', '... with all rows');

done_testing();
