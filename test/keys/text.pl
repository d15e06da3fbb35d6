# IDs as texts: the examples of docs/public-ids.md, other encodings, and the cost, at
# most a tenth of gen_random_uuid()'s.

use Page;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'jit = off',
	'max_parallel_workers_per_gather = 0');

# Each example, word for word, gives what the page shows or finds the row.
my $page = Page->claim('docs/public-ids.md', 'Short texts');
sql($node, q{
	CREATE TABLE invitation (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	INSERT INTO invitation SELECT snowflake_nextval(1000);
	INSERT INTO invitation VALUES (1212092628029698048);
	ANALYZE invitation});
foreach my $block ($page->rest('sql'))
{
	my $result = Page::run($node, $block);

	is($result, '1212092628029698048', 'the page\'s query finds the row') unless $block->{output};
}
foreach my $condition (q{code = '11MHQTB098W00'},
	q{snowflake_encode(id, 'base62') COLLATE "C" = '1RXOcR2DqUK'})
{
	like(sql($node, qq{
			SET enable_seqscan = off;
			EXPLAIN SELECT id FROM invitation WHERE $condition}),
		qr/Index Cond:/, "an index is used for $condition");
}

# The cost: about a twentieth of gen_random_uuid(), by bench/run.  A busy machine
# measures more; code that repeats needless work for each call costs more still.
sql($node, q{
	CREATE UNLOGGED TABLE ids AS
	SELECT id, snowflake_encode(id) AS base32, snowflake_encode(id, 'base62') AS base62
	FROM snowflake_nextval(100000) id;
	} . create_ms() . q{
	SELECT ms('SELECT count(id) FROM ids')});
foreach my $case (
	[ 'snowflake_encode(id)', 'id' ],
	[ "snowflake_encode(id, ''base62'')", 'id' ],
	[ 'snowflake_decode(base32)', 'base32' ],
	[ "snowflake_decode(base62, ''base62'')", 'base62' ])
{
	my ($call, $argument) = @$case;
	my $ratio = sql($node, qq{
		SELECT round((percentile_cont(0.5) WITHIN GROUP (ORDER BY (ours - base) / (uuid - base)))::numeric, 3)
		FROM (SELECT ms('SELECT count($call) FROM ids') AS ours,
					 ms('SELECT count(gen_random_uuid()) FROM ids') AS uuid,
					 ms('SELECT count($argument) FROM ids') AS base
			  FROM generate_series(1, 5)) r});

	cmp_ok($ratio, '<=', 0.25, "$call costs $ratio of gen_random_uuid()");
}

Page::all_taken();
