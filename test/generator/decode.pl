# Decoding costs less than two thirds of what the same shifts and masks cost in
# SQL: a third is usual.

use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'jit = off',
	'max_parallel_workers_per_gather = 0');
sql($node, q{
	CREATE UNLOGGED TABLE ids AS SELECT snowflake_nextval(300000) AS id;
	} . create_ms() . q{
	SELECT ms('SELECT count(id) FROM ids')});

# The fastest of several runs each: whatever else the machine does makes them
# slower only.
sub compare ($what, $ours, $sql)
{
	my $ratio = sql($node, qq{
		SELECT round((min(ours) / min(sql))::numeric, 2)
		FROM (SELECT ms('SELECT count($ours) FROM ids') AS ours,
					 ms('SELECT count($sql) FROM ids') AS sql
			  FROM generate_series(1, 7)) r});
	cmp_ok($ratio, '<=', 0.6, "$what costs $ratio times the same in SQL");
}

compare(
	'snowflake_parse(id)',
	'snowflake_parse(id)',
	'ROW(to_timestamp(((id >> 22) + 1477958400000) / 1000.0), ((id >> 12) & 1023)::int, (id & 4095)::int)');
compare('snowflake_timestamp(id)',
	'snowflake_timestamp(id)',
	'to_timestamp(((id >> 22) + 1477958400000) / 1000.0)');

done_testing();
