# Two servers with worker IDs of their own write the same tables, and are merged
# by logical replication into a third, which writes too: no conflict.

use SnowflakeTest;

my $schema = q{
	CREATE TABLE customers (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), made_by int);
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer bigint NOT NULL REFERENCES customers);
};
my %server;
foreach my $worker (1 .. 3)
{
	$server{$worker} = new_server("server$worker", { allows_streaming => 'logical' }, "snowflake.worker_id = $worker");
	sql($server{$worker}, $schema);
}

my $merged = $server{3};
foreach my $worker (1, 2)
{
	sql($server{$worker}, 'CREATE PUBLICATION shard FOR TABLE customers, orders');
	sql($merged, "CREATE SUBSCRIPTION shard$worker CONNECTION '" . $server{$worker}->connstr
		  . " dbname=postgres' PUBLICATION shard");
	$merged->wait_for_subscription_sync($server{$worker}, "shard$worker");
}

# All three at once
my $insert = q{
	DO $$
	BEGIN
		FOR i IN 1 .. 10 LOOP
			INSERT INTO customers (made_by) SELECT WORKER FROM generate_series(1, 100);
			INSERT INTO orders (customer) SELECT id FROM customers WHERE made_by = WORKER;
			COMMIT;
		END LOOP;
	END
	$$};
my @sessions;
foreach my $worker (1 .. 3)
{
	push @sessions,
	  start_queries($server{$worker}, ($insert =~ s/WORKER/$worker/gr) x 2);
}
is(finish_queries(@sessions), 6, 'clients of three servers write');
$server{$_}->wait_for_catchup("shard$_") foreach (1, 2);

my $counts =
  'SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM orders)';
my @sum = (0, 0);
foreach my $worker (1, 2)
{
	my @count = split /\|/, sql($server{$worker}, $counts);
	$sum[$_] += $count[$_] foreach (0, 1);
}
my @own = split /\|/,
  sql($merged, 'SELECT count(*), (SELECT count(*) FROM orders WHERE (snowflake_parse(id)).worker_id = 3)
	 FROM customers WHERE made_by = 3');
cmp_ok($own[0], '>', 0, 'the third server has rows of its own');
is(sql($merged, $counts), join('|', $sum[0] + $own[0], $sum[1] + $own[1]),
	'the third server has all rows of the other two');
is(sql($merged, 'SELECT count(*) FROM customers WHERE (snowflake_parse(id)).worker_id <> made_by'),
	'0', 'an ID has the worker ID of its server');
unlike(slurp_file($merged->logfile),
	qr/conflict|duplicate key/, 'no conflict stopped a subscription');
is(sql($merged, q{SELECT count(*) FROM pg_replication_origin_status WHERE local_id = 65534}),
	'1', 'the mark is beside the progress of the subscriptions');

sql($merged, "DROP SUBSCRIPTION shard$_") foreach (1, 2);
$server{$_}->stop foreach (1 .. 3);
done_testing();
