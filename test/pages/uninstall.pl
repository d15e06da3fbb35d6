# The extension is dropped, and a key goes back to a sequence, as
# docs/uninstall.md has it: no row is lost, and IDs continue above the mark if the
# extension is created again.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/uninstall.md');
my $list = $page->example('generated column');
my $sequence = $page->example('CREATE SEQUENCE orders_id_seq');
my $local = $page->example("kind => 'local'");
my $integer = $page->example('TYPE integer');
my $expression = $page->example('DROP EXPRESSION');
my $drop = $page->example('DROP EXTENSION');
my $origin = $page->example('local_id');

my $node = new_primary('main', 'snowflake.worker_id = 1');
my $standby = new_standby($node, 'standby', "shared_preload_libraries = ''");
sql($node, q{
	CREATE TABLE orders (
		id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
		created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'shardingsphere')) STORED);
	INSERT INTO orders SELECT FROM generate_series(1, 1000)});
my $sum = 'SELECT count(*), sum(hashint8(id)), sum(extract(epoch FROM created_at)) FROM orders';
my $before = sql($node, $sum);
my $greatest = sql($node, 'SELECT max(id) FROM orders');

like(sql($node, $list),
	qr/\Aorders\|created_at\|generated column\|.*\norders\|id\|default\|snowflake_nextval\(\)\z/,
	'the query lists the default and the generated column');
my $error = sql_error($node, $drop);
like($error, qr/ERROR:  2BP01:.*column id of table orders.*column created_at of table orders/s, 'without CASCADE nothing is dropped');
is( sql($node, q{
		BEGIN;
		DROP EXTENSION snowflake CASCADE;
		SELECT string_agg(attname, ' ') FROM pg_attribute
		WHERE attrelid = 'orders'::regclass AND attnum > 0 AND NOT attisdropped;
		ROLLBACK}), 'id', 'CASCADE drops the generated column');

# A conversion is taken back, unless a row has a snowflake ID.
sql($node, q{
	CREATE TABLE customers (id serial PRIMARY KEY, name text);
	CREATE TABLE invoices (customer int REFERENCES customers);
	INSERT INTO customers (name) VALUES ('a'), ('b');
	INSERT INTO invoices VALUES (2)});
my @dump = ('pg_dump', '--schema-only', '-t', 'customers*', '-t', 'invoices', '-d', $node->connstr('postgres'));
my ($schema) = run_command(\@dump);
sql($node, "CREATE EXTENSION snowflake_convert; SELECT snowflake_convert('customers', generator => 'snowflake_nextval()')");
isnt((run_command(\@dump))[0] =~ s/^\\.*\n//mgr, $schema =~ s/^\\.*\n//mgr, 'a table is converted');
sql($node, $integer);
is((run_command(\@dump))[0] =~ s/^\\.*\n//mgr, $schema =~ s/^\\.*\n//mgr, 'a conversion is taken back, and the schema is as before');
is(sql($node, "INSERT INTO customers (name) VALUES ('c') RETURNING id"), '3', 'the sequence continues after the conversion was taken back');
sql($node, "SELECT snowflake_convert('customers', generator => 'snowflake_nextval()'); INSERT INTO customers (name) VALUES ('d')");
sql_fails($node, $integer, qr/ERROR:  22003: integer out of range/, 'a row with a snowflake ID prevents taking the conversion back');
is(sql($node, "SELECT count(*), pg_typeof(max(id)) FROM customers"), '4|bigint', 'no row is lost when taking the conversion back fails');
sql($node, 'DROP TABLE invoices, customers');

# A key goes back to a sequence while clients insert.
my $writing = start_writing($node, 'orders', 2);
wait_until_true($node, 'SELECT count(*) > 1100 FROM orders', 'clients insert nothing');
sql($node, $sequence);
my $then = sql($node, 'SELECT count(*) FROM orders');
wait_until_true($node, "SELECT count(*) > $then + 100 FROM orders", 'clients insert nothing with the sequence');
stop_writing($writing);
is(sql($node, 'SELECT count(*), max(id) = last_value FROM orders, orders_id_seq WHERE id > last_value - 100 GROUP BY last_value'),
	'100|t', 'the last 100 IDs are those of the sequence');
$before = sql($node, $sum);
$greatest = sql($node, 'SELECT max(id) FROM orders');
sql($node, $expression);
sql($node, $drop);
is(sql($node, $sum), $before, 'no row has changed');
is(sql($node, 'INSERT INTO orders DEFAULT VALUES RETURNING id'),
	$greatest + 1, 'the sequence continues above the IDs');

# Sequences that stayed become local.
sql($node, q{CREATE DATABASE back});
$node->safe_psql('back', q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_convert;
	CREATE TABLE customers (id serial PRIMARY KEY, name text);
	INSERT INTO customers (name) VALUES ('old');
	SELECT snowflake_convert_schema('public');
	INSERT INTO customers (name) VALUES ('new');
	DROP EXTENSION snowflake_convert});
my $given = $node->safe_psql('back', q{SELECT nextval('customers_id_seq')});
$node->safe_psql('back', $local);
is($node->safe_psql('back', qq{INSERT INTO customers (name) VALUES ('newer') RETURNING id > $given}),
	't', 'a sequence that stayed continues above the IDs, also above one that is not stored');
is($node->safe_psql('back', 'SELECT DISTINCT kind FROM snowflake_sequences'), 'local', 'and is local');
$node->safe_psql('back', $drop);

# A standby without the library has all of it.
$node->wait_for_catchup($standby, 'replay', $node->lsn('write'));
is(sql($standby, $_), sql($node, $_), "on a standby without the library: $_")
  foreach $sum, 'SELECT count(*) FROM pg_extension';
$standby->stop;

# Without the library, and with it again
restart_with($node, "shared_preload_libraries = ''");
my ($id, $mark) = split /\|/, sql($node, $origin);
is($id, 65534, 'the replication origin stays');
restart_with($node, "shared_preload_libraries = 'snowflake'");
sql($node, 'CREATE EXTENSION snowflake');
cmp_ok(sql($node, 'SELECT snowflake_nextval()'),
	'>', $greatest, 'IDs continue above the mark if the extension is created again');

Page::all_taken();
