# IDs that find their shard by PL/Proxy, as docs/plproxy.md has it.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/plproxy.md');

sub example ($text) { return $page->example($text) =~ s/^CREATE EXTENSION snowflake;\n//r; }

my @shards =
  map { new_server("shard$_", 'snowflake.worker_id = ' . ($_ + 1)) } 0 .. 3;
my $proxy = new_server('proxy', 'snowflake.worker_id = 5');
my $cluster = example('CREATE SERVER');
foreach my $n (0 .. 3)
{
	my $to = $shards[$n]->connstr('postgres') =~ s/'//gr;
	$cluster =~ s/'host=10\.0\.0\.1@{[1 + $n]} dbname=shop'/'$to'/ or die;
}
sql($proxy, $cluster);

# How many rows each shard has, and chi-squared for four equal parts: above 30
# by chance once in a million
sub spread
{
	my @counts = map { sql($_, 'SELECT count(*) FROM orders') } @shards;
	my ($sum, $chi) = (0, 0);

	$sum += $_ foreach @counts;
	$chi += ($_ - $sum / 4)**2 / ($sum / 4) foreach @counts;
	note(sprintf 'rows on the shards: %s, chi-squared %.1f', "@counts", $chi);
	return $chi;
}

# How many rows and IDs all shards have together
sub all_rows
{
	my @ids = map { split /\n/, sql($_, 'SELECT id FROM orders') } @shards;
	my %ids = map { $_ => 1 } @ids;

	return @ids . ' rows, ' . keys(%ids) . ' IDs';
}

sub clear { sql($_, 'TRUNCATE orders') foreach @shards; }

# One call after another, each with a tick of its own
sub calls ($call, $n)
{
	return
	  "DO \$\$ BEGIN FOR i IN 1 .. $n LOOP PERFORM $call; PERFORM pg_sleep(0.001); END LOOP; END \$\$";
}

#
# The shard makes the ID.
#
sql($_, example('CREATE TABLE orders')) foreach @shards;
sql($proxy, example('RUN ON ANY'));
my ($new, $get) = split /\n/, example('SELECT new_order');
my $id = sql($proxy, $new);
is(sql($proxy, $get =~ s/\d{19}/$id/r), 7, 'an ID finds its row');
is(finish_queries(start_queries($proxy, (calls('new_order(i)', 200)) x 4)), 4,
	'four clients insert through the proxy');
my $n = 0;
foreach my $shard (@shards)
{
	my $by = 1 + $n++;

	is(sql($shard, 'SELECT DISTINCT (snowflake_parse(id)).worker_id FROM orders'),
		$by, "shard of worker ID $by has its own IDs");
	my $rows = sql($shard, 'SELECT id, customer FROM orders');
	my $found = sql($proxy, 'SELECT v.id, get_customer(v.id) FROM (VALUES '
		  . join(',', map { '(' . (split /\|/)[0] . ')' } split /\n/, $rows)
		  . ') v(id)');
	is($found, $rows, 'each row is found by its ID');
}
cmp_ok(spread(), '<', 30, 'the shards fill evenly');
is(all_rows(), '801 rows, 801 IDs', 'no row is missing or doubled on the shards');

# The rows of a customer together
my ($other) = $page->{text} =~ /`(RUN ON hash\w+\(customer\))` instead/;
sql($proxy,
	"CREATE OR REPLACE FUNCTION new_order(customer int) RETURNS bigint LANGUAGE plproxy AS \$\$CLUSTER 'shop'; $other;\$\$");
my $ids = sql($proxy, "SELECT new_order(7000 + n % 10) FROM generate_series(1, 100) n");
is(scalar(map { split /\n/ } map { sql($_, 'SELECT DISTINCT customer FROM orders WHERE customer >= 7000') } @shards),
	10, "$other: each customer is on one shard");
is(sql($proxy, 'SELECT count(*), count(DISTINCT get_customer(v.id)) FROM (VALUES (' . join('),(', split /\n/, $ids) . ')) v(id)'),
	'100|10', "$other: each row is found by its ID");

#
# The proxy makes the ID.
#
clear();
sql($_, example('INSERT INTO orders (id')) foreach @shards;
my $store = example('RUN ON id');
$id = sql($proxy, $store);
like($id, qr/^\d+$/, 'a row with an ID of the proxy is stored');
is(sql($proxy, "SELECT find_customer($id), (snowflake_parse($id)).worker_id"),
	'7|5', 'a row is found by the ID of the proxy');
is(finish_queries(start_queries($proxy, (calls('store_order(snowflake_nextval(), i)', 500)) x 4)),
	4, 'four clients insert through the proxy');
cmp_ok(spread(), '<', 30, 'the shards fill evenly');
is(all_rows(), '2001 rows, 2001 IDs', 'no row with an ID of the proxy is missing or doubled on the shards');

# The same without the random beginning
clear();
reload_with($proxy, 'snowflake.sequence_start = zero');
$proxy->poll_query_until('postgres', q{SELECT current_setting('snowflake.sequence_start') = 'zero'});
is(finish_queries(start_queries($proxy, calls('store_order(snowflake_nextval(), i)', 500))), 1,
	'a client inserts through the proxy');
cmp_ok(spread(), '>', 30, 'with sequence_start = zero, the shards do not fill evenly');

# With the worker ID lowest
foreach my $scheme ('hazelcast', 'sonyflake')
{
	$proxy->stop;
	$proxy = new_server($scheme, 'snowflake.worker_id = 5', "snowflake.scheme = '$scheme'");
	is(sql($proxy, 'SELECT DISTINCT id & 3 FROM snowflake_nextval(2000) id'),
		1, "with $scheme, id & 3 sends all IDs to one shard");
	my $chi = sql($proxy, q{
		SELECT sum((n - 500) ^ 2 / 500) FROM (
			SELECT count(*) AS n FROM snowflake_nextval(2000) id GROUP BY hashint8(id) & 3) g});
	cmp_ok($chi, '<', 30, "with $scheme, hashint8(id) spreads the IDs (chi-squared $chi)");
}
sql($proxy, $cluster);
clear();
sql($proxy, $store =~ s/RUN ON id/RUN ON hashint8(id)/gr);
is(finish_queries(start_queries($proxy, calls('store_order(snowflake_nextval(), i)', 1000))), 1,
	'a client inserts through the proxy');
cmp_ok(spread(), '<', 30, 'RUN ON hashint8(id) fills the shards evenly');

Page::all_taken();
