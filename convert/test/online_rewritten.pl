# Tables that somebody rewrites during the backfill: rows move to pages that it has
# looked at before.  And a table that grows while it is filled.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'wal_level = logical', 'autovacuum = off');
sql($node, q{
	SET allow_in_place_tablespaces = on;
	CREATE TABLESPACE other LOCATION ''});

# A table with 15 rows a page, whose first 20 pages are empty, so that a row that is moved
# is moved to a page before it.  They are too few for a batch that then has all the others.
sub begin_backfill ($share)
{
	sql($node, q{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id serial PRIMARY KEY, v int, filler text);
		ALTER TABLE t ALTER filler SET STORAGE plain;
		INSERT INTO t (v, filler) SELECT g, repeat('x', 500) FROM generate_series(1, 1800) g;
		CALL snowflake_convert_online('t', until => 'prepare');
		DELETE FROM t WHERE id <= 300});
	my $call = start_converting($node, 'postgres', "'t', batch_time => '1 ms', work_share => $share");
	wait_until_true($node, 'SELECT count(snowflake_new_id) > 0 FROM t');
	return $call;
}

sub finish_backfill ($call, $name, $rows)
{
	unlike(finish_converting($call), qr/ERROR/, "$name: the conversion completes") or diag($call->{err});
	is(sql($node, 'SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <> v), pg_typeof(max(id)) FROM t'),
		"$rows|$rows|0|bigint", "$name: no row is missing or wrong");
	is(nothing_is_left($node, 'postgres'), '', "$name: nothing is left");
}

my $moved = qr/NOTICE:  public\.t: rows were moved before they were copied; looking at all of them again/;
foreach my $rewrite ('VACUUM FULL t', 'CLUSTER t USING t_pkey', 'ALTER TABLE t SET UNLOGGED', 'ALTER TABLE t ALTER v TYPE bigint')
{
	my $call = begin_backfill(0.01);

	sql($node, $rewrite);
	finish_backfill($call, $rewrite, 1500);
	like($call->{err}, $moved, "$rewrite: it was during the backfill") or diag($call->{err});
}

# The same pages in another file
my $call = begin_backfill(0.01);
sql($node, 'ALTER TABLE t SET TABLESPACE other');
cmp_ok(sql($node, 'SELECT count(*) - count(snowflake_new_id) FROM t'), '>', 0, 'SET TABLESPACE: it was during the backfill');
finish_backfill($call, 'SET TABLESPACE', 1500);
unlike($call->{err}, $moved, 'SET TABLESPACE: nothing is looked at twice');

# Fewer pages
$call = begin_backfill(0.01);
sql($node, q{TRUNCATE t; INSERT INTO t (id, v, filler) SELECT g, g, 'new' FROM generate_series(1, 70) g});
finish_backfill($call, 'TRUNCATE', 70);

# A copy that somebody makes of the table, as pg_repack does: it misses what is filled
# meanwhile, because its log is written by a trigger.
$call = begin_backfill(0.01);
sql($node, 'CREATE TABLE log (id bigserial PRIMARY KEY, "row" t)');
my $waiting = qr/NOTICE:  waiting to copy the columns of table public\.t\nDETAIL:  column "?row"? of table (public\.)?log uses the row type of table public\.t/;
wait_until_said($call, $waiting);
is(sql($node, q{SELECT count(snowflake_new_id) = count(*) FROM t}), 't', 'a copy of the table: all rows are filled');
is(sql($node, q{SELECT convalidated FROM pg_constraint WHERE conname = 'snowflake_new_check'}),
	'f', 'a copy of the table: that is not proved while the copy is made');
sql($node, 'DROP TABLE log');
finish_backfill($call, 'a copy of the table', 1500);

# More pages, because each update adds a row version: the backfill ends while this
# continues.
$call = begin_backfill(0.1);
my $size = sql($node, q{SELECT pg_relation_size('t')});
my $file = $node->basedir . '/updates.sql';
append_to_file($file, 'UPDATE t SET filler = filler WHERE id IN (SELECT (301 + random() * 1499)::int FROM generate_series(1, 50));');
my $clients = IPC::Run::start([ 'pgbench', '-n', '-c', 1, '-T', 1000, '--max-tries', 3, '-f', $file, $node->connstr('postgres') ],
	'<' => \undef, '>' => '/dev/null', '2>' => '/dev/null');
becomes_true($node, q{SELECT count(*) = 0 FROM pg_trigger WHERE tgrelid = 't'::regclass AND tgname = '~snowflake_new'},
	'the backfill of a table that grows ends');
cmp_ok(sql($node, q{SELECT pg_relation_size('t')}), '>', $size, 'it has grown');
$clients->signal('TERM');
eval { $clients->finish };
finish_backfill($call, 'a table that grows', 1500);

done_testing();
