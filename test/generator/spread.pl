# Where fewer than one ID per tick is needed, id % N is spread evenly.

use SnowflakeTest;

my $ids = 5000;

# Pearson's chi-square of how many IDs fall into each class of id % $n.
sub chi_square ($node, $n)
{
	return sql($node, qq{
		SELECT round(sum((count - $ids / $n.0) ^ 2 / ($ids / $n.0)), 1)
		FROM (SELECT count(ids.id) FROM generate_series(0, $n - 1) class
			  LEFT JOIN ids ON ids.id % $n = class GROUP BY class) c});
}

# Make IDs about one in a tick.
sub make_ids ($node)
{
	sql($node, qq{
		DROP TABLE IF EXISTS ids;
		CREATE TABLE ids (id bigint);
		DO \$\$
		BEGIN
			FOR i IN 1 .. $ids LOOP
				INSERT INTO ids VALUES (snowflake_nextval());
				PERFORM pg_sleep(0.001);
			END LOOP;
		END
		\$\$});
	return sql($node, 'SELECT count(DISTINCT (snowflake_parse(id))."timestamp") FROM ids');
}

my $node = new_server('main', 'fsync = off');

# An even spread exceeds these with a probability below 1e-9: the chi-square
# distributions with 9 and 15 degrees of freedom.
my %limit = (10 => 62, 16 => 75);

# The test can fail: zero makes all IDs even.
foreach my $case ([ 'random', '<' ], [ 'zero', '>' ])
{
	my ($start, $is) = @$case;

	change_setting($node, 'snowflake.sequence_start', $start);
	my $ticks = make_ids($node);
	cmp_ok($ticks, '>', 0.95 * $ids, 'the load is about one ID per tick') if $start eq 'random';
	cmp_ok(chi_square($node, $_), $is, $limit{$_}, "sequence_start = $start: chi-squared of id % $_")
	  foreach 10, 16;
}

done_testing();
