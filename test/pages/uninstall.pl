# The extension is dropped, and a key goes back to a sequence, as
# docs/uninstall.md has it: no row is lost, and IDs continue above the mark if the
# extension is created again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $page = Page->claim('docs/uninstall.md');
my $list = $page->example('generated column');
my $sequence = $page->example('CREATE SEQUENCE orders_id_seq');
my $integer = $page->example('TYPE integer');
my $expression = $page->example('DROP EXPRESSION');
my $drop = $page->example('DROP EXTENSION');
my $origin = $page->example('local_id');

my $node = new_server('main', 'snowflake.worker_id = 1');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE orders (
		id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
		created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'shardingsphere')) STORED);
	INSERT INTO orders SELECT FROM generate_series(1, 1000)});
my $sum = 'SELECT count(*), sum(hashint8(id)), sum(extract(epoch FROM created_at)) FROM orders';
my $before = $node->safe_psql('postgres', $sum);
my $greatest = $node->safe_psql('postgres', 'SELECT max(id) FROM orders');

like($node->safe_psql('postgres', $list),
	qr/\Aorders\|created_at\|generated column\|.*\norders\|id\|default\|snowflake_nextval\(\)\z/,
	'the query lists the default and the generated column');
my $error = sql_error($node, $drop);
like($error, qr/ERROR:  2BP01:.*column id of table orders.*column created_at of table orders/s, 'without CASCADE nothing is dropped');
is( $node->safe_psql(
		'postgres', q{
		BEGIN;
		DROP EXTENSION snowflake CASCADE;
		SELECT string_agg(attname, ' ') FROM pg_attribute
		WHERE attrelid = 'orders'::regclass AND attnum > 0 AND NOT attisdropped;
		ROLLBACK}),
	'id',
	'CASCADE drops the generated column');

# A conversion is taken back, unless a row has a snowflake ID.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE customers (id serial PRIMARY KEY, name text);
	CREATE TABLE invoices (customer int REFERENCES customers);
	INSERT INTO customers (name) VALUES ('a'), ('b');
	INSERT INTO invoices VALUES (2)});
my @dump = ('pg_dump', '--schema-only', '-t', 'customers*', '-t', 'invoices', '-d', $node->connstr('postgres'));
my ($schema) = run_command(\@dump);
$node->safe_psql('postgres', "SELECT snowflake_convert('customers')");
isnt((run_command(\@dump))[0] =~ s/^\\.*\n//mgr, $schema =~ s/^\\.*\n//mgr, 'a table is converted');
$node->safe_psql('postgres', $integer);
is((run_command(\@dump))[0] =~ s/^\\.*\n//mgr, $schema =~ s/^\\.*\n//mgr, 'a conversion is taken back, and the schema is as before');
is($node->safe_psql('postgres', "INSERT INTO customers (name) VALUES ('c') RETURNING id"), '3', 'the sequence continues after the conversion was taken back');
$node->safe_psql('postgres', "SELECT snowflake_convert('customers'); INSERT INTO customers (name) VALUES ('d')");
like(sql_error($node, $integer), qr/ERROR:  22003: integer out of range/, 'a row with a snowflake ID prevents taking the conversion back');
is($node->safe_psql('postgres', "SELECT count(*), pg_typeof(max(id)) FROM customers"), '4|bigint', 'no row is lost when taking the conversion back fails');
$node->safe_psql('postgres', 'DROP TABLE invoices, customers');

$node->safe_psql('postgres', $sequence);
$node->safe_psql('postgres', $expression);
$node->safe_psql('postgres', $drop);
is($node->safe_psql('postgres', $sum), $before, 'no row has changed');
is($node->safe_psql('postgres', 'INSERT INTO orders DEFAULT VALUES RETURNING id'),
	$greatest + 1, 'the sequence continues above the IDs');

# All tables of a schema go back to sequences.
sub run_script
{
	my ($file) = @_;
	my ($out, $err);

	my $ok = IPC::Run::run(
		[
			'psql', '-Xq', '-v', 'schema=The Shop', '-f', "$Page::top/compat/$file",
			'-d', $node->connstr('back')
		],
		'>' => \$out,
		'2>' => \$err);
	return ($ok, $err);
}
$node->safe_psql('postgres', 'CREATE ROLE regress_app; CREATE DATABASE back');
$node->safe_psql(
	'back', q{
	CREATE EXTENSION snowflake;
	CREATE SCHEMA "The Shop" AUTHORIZATION regress_app;
	GRANT CREATE ON SCHEMA public TO regress_app;
	SET ROLE regress_app;
	SET search_path = "The Shop", public;
	CREATE TABLE customers (id bigserial PRIMARY KEY, name text, referred_by int REFERENCES customers, twice bigint GENERATED ALWAYS AS (id * 2) STORED);
	CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer int NOT NULL REFERENCES customers, name text);
	CREATE TABLE notes (order_id int, customer_id int, big bigint);
	CREATE TABLE events (id serial, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
	CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
	CREATE TABLE empty (id serial PRIMARY KEY);
	CREATE TABLE public.elsewhere (customer int REFERENCES customers);
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
	CREATE TRIGGER refuse BEFORE UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION refuse();
	GRANT INSERT ON customers TO PUBLIC;
	INSERT INTO customers (name) VALUES ('old'), ('old 2');
	SELECT snowflake_convert_schema('"The Shop"', widen_ids => true);
	WITH c AS (INSERT INTO customers (name, referred_by) SELECT 'new ' || n, 2 FROM generate_series(1, 5) n RETURNING id, name),
		o AS (INSERT INTO orders (customer, name) SELECT id, name FROM c RETURNING id, customer),
		e AS (INSERT INTO public.elsewhere SELECT id FROM c)
	INSERT INTO notes SELECT id, customer, 10000000000 FROM o;
	INSERT INTO events (at) VALUES ('2025-01-01'), ('2026-01-01');
	UPDATE customers SET referred_by = id WHERE name = 'new 3'});
my $what = q{
	SELECT c.name, o.name, n.big, r.name, e.customer = c.id, c.twice = c.id * 2
	FROM "The Shop".customers c LEFT JOIN "The Shop".orders o ON o.customer = c.id
		LEFT JOIN "The Shop".notes n ON (n.order_id, n.customer_id) = (o.id, c.id)
		LEFT JOIN "The Shop".customers r ON r.id = c.referred_by
		LEFT JOIN public.elsewhere e ON e.customer = c.id
	ORDER BY c.id};
my $shop = $node->safe_psql('back', $what);
like($page->take('snowflake_undo.sql')->{text}, qr/-v schema=public .*\/extension\/snowflake_undo\.sql"$/, 'the page names the script');
my ($ok, $err) = run_script('snowflake_compat.sql');
ok($ok, 'functions for clients that ask a sequence') or diag($err);
$node->safe_psql('back', q{ALTER TABLE "The Shop".orders ALTER id SET DEFAULT snowflake_default.nextval('snowflake'::text)});
($ok, $err) = run_script('snowflake_undo.sql');
ok($ok, 'the way back') or diag($err);
like($err, qr/NOTICE:  4 keys have a sequence, 12 rows a new number/, 'it says what it did');
is($node->safe_psql('back', $what), $shop, 'rows belong together as before');
is( $node->safe_psql('back', q{SELECT string_agg(id::text, ' ' ORDER BY id), (SELECT max(id) FROM "The Shop".orders),
		(SELECT max(id) FROM "The Shop".events) FROM "The Shop".customers}),
	'1 2 3 4 5 6 7|5|2',
	'rows have small numbers');
is( $node->safe_psql(
		'back', q{
		SET ROLE regress_app;
		INSERT INTO "The Shop".customers (name) VALUES ('after') RETURNING id, currval(pg_get_serial_sequence('"The Shop".customers', 'id'));
		INSERT INTO "The Shop".empty DEFAULT VALUES RETURNING id;
		INSERT INTO "The Shop".events (at) VALUES ('2025-01-02') RETURNING id}),
	"8|8\n1\n3",
	'keys have sequences that continue');
is( $node->safe_psql('back', q{SELECT has_sequence_privilege('public', '"The Shop".customers_id_seq', 'USAGE'),
		has_sequence_privilege('public', '"The Shop".orders_id_seq', 'USAGE')}),
	't|f',
	'who may insert may use the sequence');
($ok, $err) = run_script('snowflake_undo.sql');
like($err, qr/NOTICE:  0 keys have a sequence, 0 rows a new number/, 'there is nothing left to do');

# Without the library, and with it again
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
my ($id, $mark) = split /\|/, $node->safe_psql('postgres', $origin);
is($id, 65534, 'the replication origin stays');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
cmp_ok($node->safe_psql('postgres', 'SELECT snowflake_nextval()'),
	'>', $greatest, 'IDs continue above the mark if the extension is created again');

$node->stop;
Page::all_taken();
done_testing();
