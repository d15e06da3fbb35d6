# Blocks of IDs: large ones run in constant memory, and many at once keep to the
# rules of single IDs.  (sql/ids.sql has what one session sees.)

use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'max_wal_size = 4GB');

# The memory of the backend that makes them, at its highest
my ($before, $count, $after) = split /\n/,
  sql($node, q{
	CREATE FUNCTION memory() RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		kb int;
	BEGIN
		kb := substring(pg_read_file('/proc/' || pg_backend_pid() || '/status')
						FROM 'VmHWM:\s*(\d+)')::int;
		RETURN kb;
	END $$;
	SELECT count(*) FROM (SELECT snowflake_nextval(1000) OFFSET 0) i \gset
	SELECT memory();
	SELECT count(*) FROM (SELECT snowflake_nextval(10000000) OFFSET 0) i;
	SELECT memory()});
is($count, 10_000_000, '10 million IDs in one call');
cmp_ok($after - $before, '<', 2048,
	'in constant memory (' . ($after - $before) . ' kB more)');

# Blocks and single IDs of many backends
sql($node, 'CREATE UNLOGGED TABLE ids (backend int, n int, id bigint, at timestamptz)');
my @sessions = start_queries(
	$node,
	map {
		my $source =
		  $_ % 2
		  ? 'SELECT snowflake_nextval(100000) AS id'
		  : 'SELECT snowflake_nextval() AS id FROM generate_series(1, 100000)';
		"INSERT INTO ids SELECT $_, row_number() OVER (), id, clock_timestamp()
		 FROM ($source OFFSET 0) s"
	} 1 .. 8);
is(finish_queries(@sessions), 8, 'blocks and single IDs are generated at the same time');
is( sql($node, q{
		SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= previous),
			   count(*) FILTER (WHERE snowflake_timestamp(id) > at)
		FROM (SELECT id, at, lag(id) OVER (PARTITION BY backend ORDER BY n) AS previous FROM ids) i}
	), '800000|800000|0|0', 'IDs of blocks are distinct, increase, and are not ahead of the clock');

$node->stop;

# Fairness: nobody takes a tick from those who wait for it.  With 16 numbers in a
# second, ten sessions ask for blocks that would use it up, and one for single IDs.
my $scarce = new_server('scarce', 'fsync = off',
	"snowflake.scheme = 'tick=1s,timestamp=33,worker=10,sequence=4'");
sql($scarce, 'CREATE TABLE taken (session int, id bigint)');
@sessions = start_queries(
	$scarce,
	map {
		"SET statement_timeout = '120s'; INSERT INTO taken SELECT $_, id FROM snowflake_nextval(16) id"
	} (1 .. 10) x 1);
my $slowest = 0;
foreach my $i (1 .. 5)
{
	my $waited = sql($scarce, q{
		SELECT extract(epoch FROM snowflake_timestamp(id) - at)
		FROM (SELECT clock_timestamp() AS at, snowflake_nextval() AS id) i});

	$slowest = $waited if $waited > $slowest;
}
cmp_ok($slowest, '<', 2.5,
	"a single call waits for the next tick, not longer ($slowest s)");
is(finish_queries(@sessions), 10, 'all blocks are complete');
is( sql($scarce, q{
		SELECT count(*), count(DISTINCT id),
			   -- each session has some of a tick that several of them share
			   (SELECT max(n) FROM (SELECT count(DISTINCT session) AS n FROM taken GROUP BY id >> 14) t) >= 8
		FROM taken}), '160|160|t', 'blocks and single calls share the ticks');

# A block that is cancelled while it waits leaves its place in the queue.  The
# next one of the same session has as many IDs as were asked for all the same.
my ($out, $err);
$scarce->psql(
	'postgres', q{
	SET statement_timeout = '300ms';
	SELECT count(*) FROM snowflake_nextval(64);
	RESET statement_timeout;
	SELECT pg_sleep(1.1);
	SELECT count(*) FROM snowflake_nextval(3);
	SELECT count(DISTINCT id) FROM snowflake_nextval(20) id},
	stdout => \$out,
	stderr => \$err,
	on_error_stop => 0);
like($err, qr/canceling statement due to statement timeout/,
	'a block can be cancelled while it waits for a tick');
is($out, "\n3\n20", 'a cancelled block leaves no IDs to the next call');
done_testing();
