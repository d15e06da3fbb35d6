# Moving from pgEdge's extension of the same name, by the statements of
# docs/migrating.md.  Its library cannot be installed beside this one, so a
# function in SQL stands for its snowflake.nextval().

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $page = Page->claim('docs/migrating.md', "pgEdge's snowflake");
my $drop = $page->example('DROP EXTENSION',
	'DROP EXTENSION snowflake;' => 'DROP FUNCTION snowflake.nextval(regclass);');
my $conf = $page->example('snowflake.scheme');
my $convert = $page->example('CREATE EXTENSION');
my $raise = $page->example('snowflake_raise_mark');

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', $conf);
$node->append_conf('postgresql.conf', 'snowflake.node = 1');
$node->start;
like(
	slurp_file($node->logfile),
	qr/WARNING: .*invalid configuration parameter name "snowflake\.node"/,
	'a setting of pgEdge\'s extension that is still there is reported');

# IDs in pgEdge's layout, of node 1, an hour ahead of the clock.
$node->safe_psql(
	'postgres', q{
	CREATE SCHEMA snowflake;
	CREATE FUNCTION snowflake.nextval(regclass) RETURNS bigint LANGUAGE sql AS $$
		SELECT (extract(epoch FROM clock_timestamp() + interval '1 hour' - timestamptz '2023-01-01 00:00+00') * 1000)::bigint << 22
			| (1 << 12) | (nextval($1) & 4095) $$;
	CREATE TABLE orders (id serial PRIMARY KEY);
	ALTER TABLE orders ALTER COLUMN id TYPE bigint,
		ALTER COLUMN id SET DEFAULT snowflake.nextval('orders_id_seq');
	INSERT INTO orders SELECT FROM generate_series(1, 1000)});
is($node->safe_psql('postgres', $drop),
	'orders|id', 'the default is found, and pgEdge\'s function is dropped');

my $greatest = $node->safe_psql('postgres', 'SELECT max(id) FROM orders');
like(sql_error($node, $convert),
	qr/ 55000: .*$greatest/s, 'stored IDs that are ahead of the clock are an error');
$node->safe_psql('postgres', $raise);
$convert =~ s/^CREATE EXTENSION \w+;$//mg or die 'no extension is created';
$node->safe_psql('postgres', $convert);
$node->safe_psql('postgres',
	'INSERT INTO orders SELECT FROM generate_series(1, 1000)');
is( $node->safe_psql(
		'postgres', qq{
		SELECT count(*), count(*) FILTER (WHERE id > $greatest),
			   bool_and((snowflake_parse(id)).worker_id = 1),
			   to_regclass('orders_id_seq') IS NULL
		FROM orders}),
	'2000|1000|t|t',
	'new IDs of the same layout are above the old ones, which stay');

$node->stop;
Page::all_taken();
done_testing();
