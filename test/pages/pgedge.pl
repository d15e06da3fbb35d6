# Moving from pgEdge's extension of the same name, by the statements of
# docs/migrating.md.  Its library cannot be installed beside this one, so a
# function in SQL stands for its snowflake.nextval().

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/migrating.md', "pgEdge's snowflake");
my $drop = $page->example('DROP EXTENSION',
	'DROP EXTENSION snowflake;' => 'DROP FUNCTION snowflake.nextval(regclass);');
my $conf = $page->example('snowflake.scheme');
my $raise = $page->example('snowflake_raise_mark');
my $keep = $page->example('snowflake_set_sequence_kind');
my $convert = $page->example('snowflake_convert');

my $node = plain_server('main', $conf, 'snowflake.node = 1');
like(slurp_file($node->logfile),
	qr/WARNING: .*invalid configuration parameter name "snowflake\.node"/,
	'a setting of pgEdge\'s extension that is still there is reported');

# IDs in pgEdge's layout, of node 1, an hour ahead of the clock.
sql($node, q{
	CREATE SCHEMA snowflake;
	CREATE FUNCTION snowflake.nextval(regclass) RETURNS bigint LANGUAGE sql AS $$
		SELECT (extract(epoch FROM clock_timestamp() + interval '1 hour' - timestamptz '2023-01-01 00:00+00') * 1000)::bigint << 22
			| (1 << 12) | (nextval($1) & 4095) $$;
	CREATE TABLE orders (id bigserial PRIMARY KEY);
	ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake.nextval('orders_id_seq');
	CREATE TABLE invoices (id serial PRIMARY KEY);
	ALTER TABLE invoices ALTER COLUMN id TYPE bigint,
		ALTER COLUMN id SET DEFAULT snowflake.nextval('invoices_id_seq');
	INSERT INTO invoices SELECT FROM generate_series(1, 1000);
	INSERT INTO orders SELECT FROM generate_series(1, 1000)});
is(sql($node, $drop),
	"orders|id\ninvoices|id", 'the defaults are found, and pgEdge\'s function is dropped');

my $greatest = sql($node, 'SELECT greatest((SELECT max(id) FROM orders), (SELECT max(id) FROM invoices))');
sql($node, 'CREATE EXTENSION snowflake');
sql_fails($node, $convert, qr/ 55000: /, 'stored IDs that are ahead of the clock are an error');
$raise =~ s/^CREATE EXTENSION \w+;$//m or die 'no extension is created';
sql($node, $raise);
$convert =~ s/^CREATE EXTENSION \w+;$//m or die 'no extension is created';
sql($node, $keep);
sql($node, $convert);
is(sql($node, q{
		INSERT INTO orders VALUES (nextval('orders_id_seq')) RETURNING id = currval('orders_id_seq');
		SELECT kind FROM snowflake_sequences WHERE sequence = 'invoices_id_seq'}),
	"t\nsnowflake", 'sequences are kept, and can be used by name');
foreach my $table ('orders', 'invoices')
{
	sql($node, "INSERT INTO $table SELECT FROM generate_series(1, 1000)");
	is( sql($node, qq{
			SELECT count(*) >= 2000, count(DISTINCT id) = count(*), count(*) FILTER (WHERE id > $greatest) >= 1000,
				   bool_and((snowflake_parse(id)).worker_id = 1)
			FROM $table}),
		't|t|t|t', "$table: new IDs of the same layout are above the old ones, which stay");
}

Page::all_taken();
