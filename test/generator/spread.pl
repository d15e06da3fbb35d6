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

cmp_ok(make_ids($node), '>', 0.95 * $ids, 'the load is about one ID per tick');
foreach my $n (10, 16)
{
	my $chi_square = chi_square($node, $n);
	cmp_ok($chi_square, '<', $limit{$n},
		"with sequence_start = random, id % $n is even (chi-squared $chi_square)");
}

# The test can fail: zero makes all IDs even.
change_setting($node, 'snowflake.sequence_start', 'zero');
make_ids($node);
foreach my $n (10, 16)
{
	my $chi_square = chi_square($node, $n);
	cmp_ok($chi_square, '>', $limit{$n},
		"with sequence_start = zero, id % $n is not even (chi-squared $chi_square)");
}

done_testing();
