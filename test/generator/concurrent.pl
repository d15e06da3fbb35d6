# Many backends at once: IDs are distinct, increase, are not ahead of the clock,
# and use every number of a tick.

use SnowflakeTest;

my $backends = 16;
my $ids_each = 80_000;

my $node = new_server('main', 'snowflake.worker_id = 1', 'fsync = off',
	'max_wal_size = 4GB', 'shared_buffers = 512MB');

# Each backend inserts its IDs, with the clock read after each.
sql($node, 'CREATE UNLOGGED TABLE ids (backend int, n int, id bigint, at timestamptz)');
my @sessions = start_queries(
	$node,
	map {
		"INSERT INTO ids SELECT $_, n, snowflake_nextval(), clock_timestamp()
		 FROM generate_series(1, $ids_each) n"
	} 1 .. $backends);
is(finish_queries(@sessions), $backends, 'all backends get the IDs that they request');
is(sql($node, 'SELECT count(*), count(DISTINCT id) FROM ids'),
	join('|', ($backends * $ids_each) x 2), 'IDs of all backends are distinct');
is( sql($node, 'SELECT count(*) FROM (SELECT id, lag(id) OVER (PARTITION BY backend ORDER BY n) AS previous FROM ids) i
		 WHERE id <= previous'), '0', 'IDs of each backend increase');
is(sql($node, 'SELECT count(*) FROM ids WHERE (snowflake_parse(id))."timestamp" > at'),
	'0', 'no ID is ahead of the clock');
is(sql($node, 'SELECT count(*) FROM ids WHERE (snowflake_parse(id)).worker_id <> 1'),
	'0', 'all IDs have the worker ID of the server');

# An ID asked for after another was received is greater, across backends and
# databases: the clients of pgbench note the greatest that was received before
# each asks for one.
sql($node, q{
	CREATE TABLE received (k int PRIMARY KEY, id bigint);
	INSERT INTO received VALUES (0, 0);
	CREATE TABLE falls (before bigint, id bigint);
	CREATE FUNCTION next_after() RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		before bigint;
		got bigint;
	BEGIN
		PERFORM pg_advisory_xact_lock_shared(1);
		SELECT id FROM received INTO before;
		FOR i IN 1 .. 20 LOOP
			got := snowflake_nextval();
			IF got <= before THEN
				INSERT INTO falls VALUES (before, got);
			END IF;
			before := got;
		END LOOP;
		UPDATE received SET id = greatest(id, got);
	END
	$$;
});
my $script = $node->basedir . '/next_after.sql';
append_to_file($script, "SELECT next_after();\n");
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '250', '-f', $script,
		'-d', $node->connstr('postgres') ], 'clients request IDs in turn');
is(sql($node, 'SELECT count(*) FROM falls'), '0', 'an ID that is requested later is greater');
my $last = 0;
my $falls = 0;
sql($node, 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION snowflake');
foreach my $i (1 .. 20)
{
	my $id = $node->safe_psql($i % 2 ? 'postgres' : 'other', 'SELECT snowflake_nextval()');
	$falls++ if $id <= $last;
	$last = $id;
}
is($falls, 0, 'IDs of all databases are distinct');

# Under full load a tick's numbers are all used, each once.  Nothing is stored
# while the IDs are generated, so that the demand is above 4096 per ms.
sql($node, 'CREATE UNLOGGED TABLE loads (ids bigint[])');
sub load ($ids, $bits, $label)
{
	my $load = "INSERT INTO loads SELECT array_agg(snowflake_nextval()) FROM generate_series(1, $ids)";

	is(finish_queries(start_queries($node, ($load) x 4)), 4, $label);
	return split /\|/, sql($node, qq{
		WITH ticks AS (
			SELECT (snowflake_parse(id))."timestamp" AS t, count(*) AS ids,
				   count(DISTINCT id & ((1 << $bits) - 1)) AS numbers
			FROM loads, unnest(ids) id GROUP BY 1)
		SELECT count(*) FILTER (WHERE ids = 1 << $bits) AS full,
			   count(*) FILTER (WHERE ids <> numbers) AS wrong,
			   count(*) AS ticks
		FROM ticks});
}
my ($full, $wrong, $ticks) = load(500_000, 12, 'backends request IDs as fast as they can');
SKIP:
{
	# An emulated processor, say; the next test is for any machine.
	skip "this machine is too slow to use up a tick", 1
	  if 4 * 500_000 / $ticks < 4096 / 2;
	cmp_ok($full, '>', 0, "$full of $ticks ticks have all 4096 numbers");
}
is($wrong, 0, 'no tick has a number twice');

# With a sequence that any machine exhausts, nearly all ticks are full.
restart_with($node, "snowflake.scheme = 'timestamp=41,worker=15,sequence=7'");
sql($node, 'TRUNCATE loads');
($full, $wrong, $ticks) = load(20_000, 7, 'backends exhaust a short sequence');
cmp_ok($full, '>', 0.7 * $ticks, "$full of $ticks ticks have all 128 numbers");
is($wrong, 0, 'no tick has a number twice');

# IDs may run ahead of the clock by max_lead, and by no more.
restart_with($node, "snowflake.max_lead = 100ms\nsnowflake.scheme = 'timestamp=41,worker=18,sequence=4'");
my $most = sql($node, q{SELECT extract(epoch FROM max((snowflake_parse(id))."timestamp" - at)) * 1000
	  FROM (SELECT snowflake_nextval() AS id, clock_timestamp() AS at
			FROM generate_series(1, 5000) OFFSET 0) i});
cmp_ok($most, '>', 50, "with max_lead, bursts borrow from later ticks (lead $most ms)");
cmp_ok($most, '<=', 100, 'bursts stay within max_lead');

done_testing();
