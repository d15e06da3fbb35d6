# Rows of two servers that had the same worker ID, as docs/troubleshooting.md has it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $page = Page->claim('docs/troubleshooting.md', 'Rows with equal IDs');
my $publisher = new_server('publisher', 'wal_level = logical', 'max_wal_senders = 4');
my $subscriber = new_server('subscriber', 'wal_level = logical', 'wal_retrieve_retry_interval = 100ms');
my ($connstr, $here) = map { $_->connstr . ' dbname=postgres' } $publisher, $subscriber;

# Each has a hundred orders, and half of them have IDs that the other one has as well.
foreach my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', q{
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text, created_at timestamptz DEFAULT clock_timestamp());
		CREATE TABLE lines (order_id bigint REFERENCES orders, no int)});
}
$publisher->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE orders');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION from_a CONNECTION '$connstr' PUBLICATION p WITH (copy_data = false)");
my $before = $publisher->safe_psql('postgres', q{INSERT INTO orders (customer) VALUES ('replicated before') RETURNING id});
$publisher->wait_for_catchup('from_a');
my $id = $publisher->safe_psql('postgres', 'SELECT snowflake_nextval()');
$subscriber->safe_psql('postgres', "
	INSERT INTO lines VALUES ($before, 1);
	INSERT INTO orders SELECT $id + n, 'of the subscriber ' || n FROM generate_series(51, 150) n;
	INSERT INTO lines SELECT id, 1 FROM orders WHERE id <> $before");
$publisher->safe_psql('postgres', "INSERT INTO orders SELECT $id + n, 'of the publisher ' || n FROM generate_series(1, 100) n");
$publisher->safe_psql('postgres', "UPDATE orders SET customer = 'changed' WHERE id = $before");
$subscriber->wait_for_log(qr/duplicate key value violates unique constraint "orders_pkey"/);

$subscriber->safe_psql('postgres', $page->example('CREATE UNLOGGED TABLE theirs'));
system_or_bail(
	'bash', '-c',
	$page->example('COPY theirs',
		"-d 'host=10.0.0.1 dbname=shop'" => "-X -d '$connstr'",
		'-d shop' => "-X -d '$here'"));
my @renumbered = split /\n/, $subscriber->safe_psql('postgres', $page->example('RETURNING'));
is(scalar(@renumbered), 50, 'the rows with equal IDs get new ones');
$publisher->wait_for_catchup('from_a');
is( $subscriber->safe_psql('postgres', q{
		SELECT count(*), count(DISTINCT customer), count(*) FILTER (WHERE customer LIKE 'of the publisher%'),
			count(*) FILTER (WHERE customer = 'changed') FROM orders}),
	'201|201|100|1', 'the subscriber has all rows of both');
is( $subscriber->safe_psql('postgres', q{
		SELECT count(*), count(*) FILTER (WHERE customer LIKE 'of the subscriber%') FROM lines JOIN orders ON id = order_id}),
	'101|100', 'referencing rows follow their orders');

$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION from_a');
$subscriber->stop;
$publisher->stop;
Page::all_taken();
done_testing();
