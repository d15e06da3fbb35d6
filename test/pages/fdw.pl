# A table that is partitioned over four servers by postgres_fdw, as
# docs/postgres_fdw.md has it.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/postgres_fdw.md');
my $router = new_server('router', 'snowflake.worker_id = 1');
if (!sql($router, q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}))
{
	plan skip_all => 'postgres_fdw is not installed';
}

# Both new_server and the page create the extension.
sub example ($text) { return $page->example($text) =~ s/^CREATE EXTENSION snowflake;\n//r; }

sql($router, example('PARTITION BY HASH'));
my @shards;
my $on_shard = example("PRIMARY KEY DEFAULT snowflake_nextval(),\n    customer");
my $for_shard = example('CREATE SERVER');
foreach my $n (1 .. 4)
{
	my $shard = new_server(
		"shard$n",
		'snowflake.worker_id = ' . (1 + $n),
		'log_statement = mod');
	my $user = sql($router, 'SELECT quote_literal(current_user)');

	sql($shard, $on_shard);
	push @shards, $shard;
	sql($router, Page::replace($for_shard,
			shard1 => "shard$n",
			'REMAINDER 0' => 'REMAINDER ' . ($n - 1),
			'10.0.0.11' => $shard->host,
			5432 => $shard->port,
			"dbname 'shop'" => "dbname 'postgres'", "user 'shop'" => "user $user"));
}

# No server has another one's worker ID.
sql($router, example('CREATE VIEW'));
my $check = example('OVER');
is(sql($router, $check), '', 'the check finds no problem');
restart_with($shards[2], 'snowflake.worker_id = 3');
is(sql($router, "SELECT server, servers FROM ($check) c ORDER BY 1" =~ s/;\n(?=\))//r),
	"shard2|2\nshard3|2", 'the check finds two servers with one worker ID');
restart_with($shards[2], 'snowflake.worker_id = -1');
is(sql($router, "SELECT server, worker_id_set FROM ($check) c" =~ s/;\n(?=\))//r),
	'shard3|f', 'the check finds a worker ID that was never set');
restart_with($shards[2], "snowflake.worker_id = 4\nsnowflake.scheme = 'sonyflake'");
is(sql($router, "SELECT server, same_scheme FROM ($check) c" =~ s/;\n(?=\))//r),
	'shard3|f', 'the check finds another scheme');
restart_with($shards[2],
	"snowflake.scheme = 'epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12'");
is(sql($router, $check), '', 'the check finds no problem when all are correct again');

# Through the partitioned table the router makes the IDs, and sends many rows at
# once.
my @offsets = map { -s $_->logfile } @shards;
sql($router, example('generate_series'));
my $workers = 'SELECT string_agg(DISTINCT (snowflake_parse(id)).worker_id::text, \' \') FROM orders';
foreach my $i (0 .. 3)
{
	my ($count, $by) = split /\|/,
	  sql($shards[$i], "SELECT count(*), ($workers) FROM orders");
	my $inserts = () = slurp_file($shards[$i]->logfile, $offsets[$i]) =~ /INSERT INTO public\.orders/g;

	cmp_ok($count, '>', 800, "shard @{[$i + 1]} has its part ($count rows)");
	is($by, 1, 'rows of the shard have IDs of the router');
	cmp_ok($inserts, '<=', 3, "rows are sent in few INSERTs ($inserts)");
}
is(sql($router, 'SELECT count(*), count(DISTINCT id) FROM orders'),
	'4000|4000', 'the router sees all rows');
like(sql($router, 'INSERT INTO orders (customer) VALUES (1), (2), (3) RETURNING id'),
	qr/^\d+\n\d+\n\d+$/, 'RETURNING has the IDs of all rows');

# Rows by time
my $range = example('snowflake_lower_bound');
my $plan = sql($router, "EXPLAIN (VERBOSE, COSTS off) $range");
my $sent = () = $plan =~ /Remote SQL: .*WHERE \(\(id >= \$1/g;
is($sent, 4, 'the bound is sent to each shard');
is(sql($router, $range), 4003, 'the shards return the rows above the bound');
like(
	sql($shards[0], 'SET enable_seqscan = off; EXPLAIN SELECT FROM orders WHERE id >= 1330748464283259557'),
	qr/orders_pkey/, 'a shard uses its primary key');

# A client of a shard, and a foreign table without the ID
sql($shards[0], example(q{CHECK (region = 'eu')}));
sql($router, example('new_visits_eu'));
sql($shards[0], q{INSERT INTO visits (page) VALUES ('/by/client')});
is(sql($router, q{
		SELECT page, region, (snowflake_parse(id)).worker_id FROM visits ORDER BY page COLLATE "C"}),
	"/by/client|eu|2\n/by/router|eu|1\n/by/shard|eu|2",
	'IDs have the worker ID of the router, or of the shard');

# All servers at once, into a table of their own
my $insert = 'INSERT INTO orders (customer) SELECT n FROM generate_series(1, 5000) n';
sql($_, 'CREATE TABLE own (LIKE orders INCLUDING ALL)') foreach @shards;
is(finish_queries(start_queries($router, ($insert) x 2),
		map { start_queries($_, $insert =~ s/orders/own/r) } @shards),
	6, 'clients of five servers insert');
my %seen;
$seen{$_}++ foreach map { split /\n/, sql($_, 'SELECT id FROM orders UNION ALL SELECT id FROM own') } @shards;
is(scalar(keys %seen), 34003, 'IDs of five servers are distinct');
$offsets[0] = -s $shards[0]->logfile;
sql($router, 'INSERT INTO orders (customer) SELECT n FROM generate_series(1, 100) n RETURNING id');
my $inserts = () = slurp_file($shards[0]->logfile, $offsets[0]) =~ /INSERT INTO public\.orders/g;
cmp_ok($inserts, '>', 5, "with RETURNING, a shard gets an INSERT for each row ($inserts)");

Page::all_taken();
