# uuid_v7(): UUIDs increase across all backends, through kill -9 with the clock set
# back, and with every width of the sequence and length of the tick.

use SnowflakeTest;

my $functions = q{
	-- the milliseconds and 12 bits that follow the version
	CREATE FUNCTION first_bits(u uuid) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
		SELECT ('x' || substr(replace(u::text, '-', ''), 1, 12) || substr(u::text, 16, 3))::bit(60)::bigint
	$$;
	-- the first bits of those that are free for the maker
	CREATE FUNCTION sequence_bits(u uuid, width int) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
		SELECT lpad(left(substr(bits, 53, 12) || substr(bits, 67, 62), width), 64, '0')::bit(64)::bigint
		FROM (SELECT ('x' || replace(u::text, '-', ''))::bit(128)::text AS bits) t
	$$};

# Whoever asks after another one has received gets a greater one, whichever
# backend that was.
my $node = new_server('main', { allows_streaming => 1, clock => 0 }, 'restart_after_crash = on');
sql($node, $functions . q{;
	CREATE TABLE calls (backend int, asked timestamptz, u uuid, received timestamptz);
	CREATE TABLE t (id uuid PRIMARY KEY DEFAULT uuid_v7())});
# They begin together, when the lock is released.
my $gate = $node->background_psql('postgres', on_error_stop => 1);
$gate->query_safe('SELECT pg_advisory_lock(1)');
my @sessions = start_queries(
	$node,
	map {
		"SELECT pg_advisory_lock_shared(1); INSERT INTO calls SELECT $_, clock_timestamp(), uuid_v7(), clock_timestamp() FROM generate_series(1, 20000)"
	} 1 .. 8);
wait_until_true($node, "SELECT count(*) = 8 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
$gate->quit;
is(finish_queries(@sessions), 8, '8 backends generate UUIDs at the same time');
is( sql($node, q{
		WITH event AS (
			SELECT asked AS at, u, true AS asks FROM calls
			UNION ALL
			SELECT received, u, false FROM calls),
		 compared AS (
			SELECT u, asks, max(u::text COLLATE "C") FILTER (WHERE NOT asks)
				OVER (ORDER BY at, NOT asks ROWS UNBOUNDED PRECEDING) AS greatest
			FROM event)
		SELECT count(*), count(DISTINCT u), count(greatest) > 150000,
			count(*) FILTER (WHERE u::text COLLATE "C" <= greatest)
		FROM compared WHERE asks}),
	'160000|160000|t|0', 'a UUID that is requested later is greater');
cmp_ok(sql($node, q{
		SELECT count(*) FROM (
			SELECT backend, lag(backend) OVER (ORDER BY u) AS before FROM calls) t
		WHERE backend <> before}), '>', 100, 'the backends generated UUIDs in turns');

# Clients in the midst of which the server dies.  The ledger has the first bits,
# which increase as the UUIDs do.
my $ledger = new_ledger();
append_to_file(
	$node->basedir . '/usual.sql', q{
SELECT first_bits(uuid_v7()) FROM generate_series(1, 20);
INSERT INTO t DEFAULT VALUES RETURNING first_bits(id);
BEGIN;
INSERT INTO t SELECT FROM generate_series(1, 5) RETURNING first_bits(id);
ROLLBACK;
} x 20000);
my @ends = (
	sub { kill_postmaster($node) },
	sub { $node->stop('immediate') },
	sub { $node->stop });
my $clock = 0;
foreach my $round (0 .. 5)
{
	my $first = sql($node, 'SELECT first_bits(uuid_v7())');
	my @clients = start_clients($node, 8);
	SnowflakeTest::wait_for_clients(@clients);
	usleep(rand(200_000));
	$ends[ $round % 3 ]->();
	note_ids($ledger, [$first], finish_clients(@clients));
	$clock -= (0, 3)[ $round % 2 ];
	set_clock($node, $clock);
	start_with_clock($node);
}
is( verdict($ledger),
	'0 duplicates, 0 falls',
	"no duplicates over 6 stops with the clock set back ($ledger->{ids} UUIDs)");
is(sql($node, 'SELECT count(*) > 100 AND max(id::text COLLATE "C") < uuid_v7()::text FROM t'),
	't', 'new UUIDs are above the stored ones');

# The sequence follows the time, as wide as it is, with a tick of any length.
foreach my $case (
	[ 'timestamp=41,worker=10,sequence=1' => 1 ],
	[ 'yitter' => 6 ],
	[ 'sonyflake,worker=4' => 8 ],
	[ 'timestamp=41,sequence=12,worker=10' => 12 ],
	[ 'epoch=2024-01-01T00:00:00.777,tick=1001us,timestamp=40,sequence=13' => 13 ],
	[ 'mastodon,timestamp=47' => 16 ],
	[ 'epoch=1965-01-01,tick=1ms,timestamp=43,sequence=20' => 20 ],
	[ 'epoch=2020-01-01,tick=7777ms,timestamp=31,sequence=31' => 31 ],
	[ 'epoch=1970-01-01,tick=86400s,timestamp=31,sequence=32' => 32 ])
{
	my ($scheme, $width) = @$case;

	$node->append_conf('postgresql.conf', "snowflake.scheme = '$scheme'");
	$node->stop;
	start_with_clock($node);
	sql($node, 'SELECT snowflake_set_mark(0, force => true)');

	# With few numbers a tick, few are made.
	my $n = $width < 8 ? 500 : 20000;
	is( sql($node, qq{
			SET timezone = 'UTC';
			CREATE TEMP TABLE made AS
			SELECT n, snowflake_nextval() AS a, uuid_v7() AS u, snowflake_nextval() AS b
			FROM generate_series(1, $n) n;
			SELECT count(*),
				count(*) FILTER (WHERE id > a AND id < b),
				count(*) FILTER (WHERE u <= before),
				count(*) FILTER (WHERE uuid_timestamp(u) <> date_trunc('milliseconds', snowflake_timestamp(id)))
			FROM (
				SELECT a, u, b, lag(u) OVER (ORDER BY n) AS before,
					CASE WHEN snowflake_timestamp(a) > uuid_timestamp(u) THEN
						snowflake_make(snowflake_timestamp(a), p.worker_id, sequence_bits(u, $width))
					ELSE
						-- the tick that starts in that millisecond
						snowflake_make(uuid_timestamp(u) + interval '999 us', p.worker_id, sequence_bits(u, $width))
					END AS id
				FROM made, snowflake_parse(a) p) t}),
		"$n|$n|0|0", "$scheme: a UUID has time and sequence of an ID in between");
	is( sql($node, qq{
			SELECT count(DISTINCT sequence_bits(u, 74) % 1024) > 300
			FROM (SELECT uuid_v7() AS u FROM generate_series(1, 500)) t}),
		't', "$scheme: the bits below the sequence are random");
}

# The end of its time; the mark of today would be far behind that clock.
$node->append_conf('postgresql.conf',
	"snowflake.scheme = 'epoch=1970-01-01,tick=1s,timestamp=40,sequence=20'");
$node->stop;
my $end = 2**48 / 1000 - time;
set_clock($node, $end - 60);
start_with_clock($node);
sql($node, 'SELECT snowflake_set_mark(0, force => true)');
is( sql($node, q{
		SET timezone = 'UTC';
		SELECT uuid_timestamp(uuid_v7()) BETWEEN '10889-08-02 05:30:00' AND '10889-08-02 05:31:50'}),
	't', 'a UUID has a time in the year 10889');
set_clock($node, $end + 1);
sql_fails($node, 'SELECT uuid_v7()',
	qr/ERROR:  22008: time is out of range for version 7 UUIDs\nDETAIL:  The timestamp of such a UUID is between the years 1970 and 10889\./,
	'after the year 10889 there is an error');
set_clock($node, $clock);

# A server that has no generator, and a standby.
$node->stop;
$node->set_standby_mode;
$node->start;
sql_fails($node, 'SELECT uuid_v7()',
	qr/ERROR:  25006: cannot generate snowflake IDs during recovery/,
	'a standby generates no UUID of version 7');
restart_with($node, "shared_preload_libraries = ''");
sql_fails($node, 'SELECT uuid_v7()',
	qr/ERROR:  55000: snowflake must be loaded via "shared_preload_libraries"/,
	'uuid_v7() needs preloading');
is( sql($node, q{
		SELECT uuid_timestamp('017f22e2-79b0-7cc3-98c4-dc0c0c07398f') = '2022-02-22 19:22:22+00',
			uuid_timestamp(uuid_v4()) IS NULL}), 't|t', 'uuid_timestamp() needs no preloading');
done_testing();
