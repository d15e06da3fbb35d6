# snowflake_convert_online() where everything looks at statements: pg_stat_statements,
# auto_explain, the log, and event triggers.  No warning is logged, such as one of a
# snapshot or a resource that was not released, and no memory is kept.

use SnowflakeTest::Online;
use SnowflakeTest;

my $norders = 300;
my $node = new_server(
	'main', 'fsync = off', 'wal_level = logical',
	q{shared_preload_libraries = 'pg_stat_statements, snowflake, auto_explain'},
	'pg_stat_statements.track = all', 'pg_stat_statements.track_utility = on', 'pg_stat_statements.track_planning = on',
	'auto_explain.log_min_duration = 0', 'auto_explain.log_nested_statements = on', 'auto_explain.log_analyze = on',
	'auto_explain.log_triggers = on', 'log_statement = all', 'log_min_duration_statement = 0',
	'log_lock_waits = on', 'log_temp_files = 0', 'track_functions = all');
sql($node, q{
	CREATE EXTENSION pg_stat_statements;
	CREATE ROLE regress_reader});
create_shop($node, 'postgres', $norders);

# Event triggers that query, write, and catch errors
sql($node, q{
	CREATE TABLE ddl (event text, tag text, object text);
	CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
	DECLARE
		r record;
	BEGIN
		FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
			INSERT INTO public.ddl VALUES (tg_event, r.command_tag, r.object_identity);
		END LOOP;
		BEGIN
			PERFORM 1 / (count(*) - count(*)) FROM public.ddl;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
	END $$;
	CREATE FUNCTION on_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
	DECLARE
		r record;
	BEGIN
		FOR r IN SELECT * FROM pg_event_trigger_dropped_objects() LOOP
			INSERT INTO public.ddl VALUES (tg_event, tg_tag, r.object_identity);
		END LOOP;
	END $$;
	CREATE FUNCTION on_start() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.ddl VALUES (tg_event, tg_tag);
	END $$;
	CREATE FUNCTION on_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		-- An empty copy shows the definitions of indexes.
		IF NOT current_setting('test.copies')::boolean OR pg_event_trigger_table_rewrite_oid()::regclass::text <> 'public.snowflake_new_definitions' THEN
			RAISE 'table % is rewritten', pg_event_trigger_table_rewrite_oid()::regclass;
		END IF;
	END $$;
	CREATE EVENT TRIGGER on_ddl ON ddl_command_end EXECUTE FUNCTION on_ddl();
	CREATE EVENT TRIGGER on_drop ON sql_drop EXECUTE FUNCTION on_drop();
	CREATE EVENT TRIGGER on_start ON ddl_command_start EXECUTE FUNCTION on_start();
	CREATE EVENT TRIGGER on_rewrite ON table_rewrite EXECUTE FUNCTION on_rewrite();
	SELECT pg_stat_statements_reset()});
my $before = describe_shop($node, 'postgres');
my $offset = -s $node->logfile;
my $err = convert_online($node, 'postgres', "'orders'", before => ['SET test.copies = off']);
like($err, qr/ERROR:  table public\.snowflake_new_definitions is rewritten/, 'an event trigger that has no table rewritten is an error');
is(describe_shop($node, 'postgres'), $before, 'nothing is changed before that');
sql($node, 'ALTER DATABASE postgres SET test.copies = on');
$err = convert_online($node, 'postgres', "'orders'");
unlike($err, qr/ERROR|WARNING/, 'a conversion succeeds where everything looks at statements') or diag($err);
is(shop_is_whole($node, 'postgres', $norders), '', 'no row is lost or changed');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');
foreach my $statement ('CALL snowflake_convert_online', 'CREATE INDEX CONCURRENTLY', 'CREATE UNIQUE INDEX CONCURRENTLY', 'ALTER TABLE', 'ANALYZE', 'UPDATE ONLY')
{
	cmp_ok(sql($node, "SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE '$statement%'"), '>', 0, "pg_stat_statements has $statement");
}
foreach (
	[ 'ddl_command_start', 'CREATE INDEX', '' ],
	[ 'ddl_command_end', 'CREATE INDEX', 'snowflake_new_orders_mod' ],
	[ 'ddl_command_end', 'ALTER TABLE', 'public.orders' ],
	[ 'sql_drop', 'ALTER TABLE', 'public.orders.id' ])
{
	my ($event, $tag, $object) = @$_;

	isnt(sql($node, "SELECT count(*) FROM ddl WHERE event = '$event' AND tag = '$tag' AND coalesce(object, '') LIKE '%$object'"),
		'0', "an event trigger saw $event, $tag $object");
}

# VACUUM of a table that is large enough
sql($node, q{CREATE TABLE large (id serial PRIMARY KEY, v text); INSERT INTO large (v) SELECT repeat('x', 500) FROM generate_series(1, 3000)});
$err = convert_online($node, 'postgres', "'large', work_share => 1");
unlike($err, qr/ERROR|WARNING/, 'a larger table is converted') or diag($err);
cmp_ok(sql($node, q{SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE 'VACUUM%large'}), '>', 0, 'pg_stat_statements has VACUUM');

# Calls in one session, some of which fail
my $sum = q{SELECT sum(used_bytes), count(*) FILTER (WHERE name IN ('snowflake_convert_online', 'top-level statement', 'SPI Proc', 'SPI Exec')) FROM pg_backend_memory_contexts};
my $once = q{
	CREATE TABLE t (id serial PRIMARY KEY, v int, CHECK (id < 100));
	INSERT INTO t (v) SELECT generate_series(1, 50);
	CALL snowflake_convert_online('t');
	ALTER TABLE t DROP CONSTRAINT t_id_check;
	INSERT INTO t (id) VALUES (1);
	CALL snowflake_convert_online('t');
	DROP TABLE t;
};
my ($out, $said);
$node->psql('postgres', "SET client_min_messages = error;" . ($once x 2) . "$sum;" . ($once x 4) . $sum, stdout => \$out, stderr => \$said, on_error_stop => 0);
my @memory = map { [ split /\|/ ] } split /\n/, $out;
is(scalar(() = $said =~ /ERROR/g), 12, 'a call that fails, and others, in one session') or diag($said);
cmp_ok($memory[1]->[0] - $memory[0]->[0], '<', 400_000, 'a session keeps no memory of calls') or diag($out);
is($memory[1]->[1], $memory[0]->[1], 'no memory context is left');

my @warnings = grep { !/there is no transaction/ } slurp_file($node->logfile, $offset) =~ /^.*(?:WARNING|TRAP|PANIC|FATAL):.*$/mg;
is(join("\n", @warnings), '', 'no warning is logged');
done_testing();
