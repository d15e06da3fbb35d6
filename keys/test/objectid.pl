# ObjectIds: unique over all backends, parallel workers, restarts, crashes and
# a clock that goes over the same seconds again, and through all values of a
# process's counter.

use SnowflakeTest;

my $each = 20000;
my $node = new_server_with_clock('main', 'restart_after_crash = on');
sql($node, q{
	CREATE TABLE o (id bytea, life int, backend int);
	CREATE TABLE numbers AS SELECT generate_series(1, 200000) AS n});

# Lives of the server, all of which begin at the same second.
my $begin = time;
my $made = 0;

sub one_life ($life, $end)
{
	set_clock($node, $begin - time);
	my @sessions = start_queries($node,
		("INSERT INTO o SELECT objectid(), $life, pg_backend_pid() FROM generate_series(1, $each)"
		) x 8);
	is(finish_queries(@sessions), 8, "life $life: 8 backends generate ObjectIds");
	$made += 8 * $each;
	$end->();
	start_with_clock($node);
	return;
}

one_life(1, sub { $node->stop });
one_life(2, sub { kill_postmaster($node) });
one_life(3, sub { $node->stop('immediate') });
one_life(4, sub { $node->stop });

# Parallel workers make some of their own.
is( sql($node, q{
		SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0;
		SET min_parallel_table_scan_size = 0;
		SET max_parallel_workers_per_gather = 2;
		SET parallel_leader_participation = off;
		CREATE TABLE p AS SELECT objectid() AS id FROM numbers;
		SELECT count(*) FROM p WHERE substr(id, 5, 5) = (SELECT substr(objectid(), 5, 5))}),
	'0', 'parallel workers have random bytes of their own');
sql($node, 'INSERT INTO o SELECT id, 5, 0 FROM p');
$made += 200000;

is(sql($node, q{SELECT count(DISTINCT id), count(DISTINCT (life, backend)) - 1, count(DISTINCT substr(id, 5, 5)) > 32 FROM o}
	), "$made|32|t", "no duplicates among $made ObjectIds of 32 backends and parallel workers");
is( sql($node, q{
		SELECT max(first) <= min(last)
		FROM (SELECT min(objectid_timestamp(id)) AS first, max(objectid_timestamp(id)) AS last
			  FROM o WHERE life < 5 GROUP BY life) t}), 't', 'the lives used the same seconds');

# One process uses all values of the counter once, and then draws random bytes
# again.  The sums are those of 0 to 2^24 - 1 and of their squares.
is( sql($node, q{
		SET max_parallel_workers_per_gather = 0;
		SELECT count(*), sum(c) = 140737479966720, sum(c * c) = 1574122020219062845440
		FROM (SELECT substr(id, 5, 5) AS random,
					 (get_byte(id, 9)::bigint << 16) | (get_byte(id, 10) << 8) | get_byte(id, 11) AS c
			  FROM (SELECT objectid() AS id FROM generate_series(1, 4096) a, generate_series(1, 4097) b OFFSET 0) t) t
		GROUP BY random ORDER BY count(*)}),
	"4096|f|f\n16777216|t|t", 'an exhausted counter continues with other random bytes');

# Times that four bytes cannot have
foreach my $year (-60, 81)
{
	set_clock($node, $year * 366 * 86400);
	sql_fails($node, 'SELECT objectid()',
		qr/22008: current time is out of range for ObjectIds/,
		"a clock $year years ahead is refused");
}
set_clock($node, 0);
is(sql($node, 'SELECT length(objectid())'),
	'12', 'ObjectIds are generated when the clock is correct');

done_testing();
