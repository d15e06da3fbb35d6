# The extension is dropped, and a key goes back to a sequence, as
# docs/uninstall.md has it: no row is lost, and IDs continue above the mark if the
# extension is created again.

use strict;
use warnings;

use Cwd;
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
$node->safe_psql('postgres', "CREATE EXTENSION snowflake_convert; SELECT snowflake_convert('customers')");
isnt((run_command(\@dump))[0] =~ s/^\\.*\n//mgr, $schema =~ s/^\\.*\n//mgr, 'a table is converted');
$node->safe_psql('postgres', $integer);
is((run_command(\@dump))[0] =~ s/^\\.*\n//mgr, $schema =~ s/^\\.*\n//mgr, 'a conversion is taken back, and the schema is as before');
is($node->safe_psql('postgres', "INSERT INTO customers (name) VALUES ('c') RETURNING id"), '3', 'the sequence continues after the conversion was taken back');
$node->safe_psql('postgres', "SELECT snowflake_convert('customers'); INSERT INTO customers (name) VALUES ('d')");
like(sql_error($node, $integer), qr/ERROR:  22003: integer out of range/, 'a row with a snowflake ID prevents taking the conversion back');
is($node->safe_psql('postgres', "SELECT count(*), pg_typeof(max(id)) FROM customers"), '4|bigint', 'no row is lost when taking the conversion back fails');
$node->safe_psql('postgres', 'DROP TABLE invoices, customers');

# A key goes back to a sequence while clients insert.
my $writing = start_writing($node, 'orders', 2);
$node->poll_query_until('postgres', 'SELECT count(*) > 1100 FROM orders') or die 'clients insert nothing';
$node->safe_psql('postgres', $sequence);
my $then = $node->safe_psql('postgres', 'SELECT count(*) FROM orders');
$node->poll_query_until('postgres', "SELECT count(*) > $then + 100 FROM orders") or die 'clients insert nothing with the sequence';
stop_writing($writing);
is($node->safe_psql('postgres', 'SELECT count(*), max(id) = last_value FROM orders, orders_id_seq WHERE id > last_value - 100 GROUP BY last_value'),
	'100|t', 'the last 100 IDs are those of the sequence');
$before = $node->safe_psql('postgres', $sum);
$greatest = $node->safe_psql('postgres', 'SELECT max(id) FROM orders');
$node->safe_psql('postgres', $expression);
$node->safe_psql('postgres', $drop);
is($node->safe_psql('postgres', $sum), $before, 'no row has changed');
is($node->safe_psql('postgres', 'INSERT INTO orders DEFAULT VALUES RETURNING id'),
	$greatest + 1, 'the sequence continues above the IDs');

# All tables of a schema go back to sequences.
my $dir = PostgreSQL::Test::Utils::tempdir();
my $map = "$dir/old and new.csv";
sub run_script
{
	my ($file) = @_;
	my ($out, $err);

	my $ok = IPC::Run::run(
		[
			'psql', '-Xq', '-v', 'schema=The Shop', '-v', "map=$map", '-f', "$Page::top/compat/$file",
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
	CREATE EXTENSION snowflake_convert;
	CREATE EXTENSION snowflake_keys;
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
	SELECT snowflake_convert_schema('"The Shop"', widen => 'names');
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
my $ids = 'SELECT string_agg(id::text, E\'\\n\' ORDER BY name) FROM "The Shop".customers WHERE name LIKE \'new%\'';
my @old = split /\n/, $node->safe_psql('back', $ids);
like($page->take('snowflake_undo.sql')->{text}, qr/-v schema=public .*\/extension\/snowflake_undo\.sql"$/, 'the page names the script');
my ($ok, $err) = run_script('snowflake_compat.sql');
ok($ok, 'functions for clients that ask a sequence') or diag($err);
$node->safe_psql('back', q{ALTER TABLE "The Shop".orders ALTER id SET DEFAULT snowflake_default.nextval('snowflake'::text);
	CREATE SEQUENCE public.of_both;
	CREATE TABLE "The Shop".one (id bigint DEFAULT snowflake_default.nextval('public.of_both'))});
($ok, $err) = run_script('snowflake_undo.sql');
ok($ok, 'the way back') or diag($err);
like($err, qr/NOTICE:  4 keys have a sequence, 12 rows a new number/, 'it says what it did');
is($node->safe_psql('back', $what), $shop, 'rows belong together as before');
like($err, qr/^The old and new numbers are in \Q$map\E$/m, 'it says where the old and new numbers are');
my @new = split /\n/, $node->safe_psql('back', $ids);
my ($head, @lines) = split /\n/, slurp_file($map);
my %number = map { split /,/ } @lines;
is("$head @number{@old}", "old,new @new", 'they are there');
is(scalar(@lines), 12, '... those of all tables');
is( $node->safe_psql('back', q{SELECT string_agg(id::text, ' ' ORDER BY id), (SELECT max(id) FROM "The Shop".orders),
		(SELECT max(id) FROM "The Shop".events) FROM "The Shop".customers}),
	'1 2 3 5 7 9 11|12|14',
	'rows have small numbers');
is( $node->safe_psql(
		'back', q{
		SET ROLE regress_app;
		INSERT INTO "The Shop".customers (name) VALUES ('after') RETURNING id, currval(pg_get_serial_sequence('"The Shop".customers', 'id'));
		INSERT INTO "The Shop".empty DEFAULT VALUES RETURNING id;
		INSERT INTO "The Shop".events (at) VALUES ('2025-01-02') RETURNING id}),
	"15|15\n15\n15",
	'keys have sequences that continue');
is( $node->safe_psql('back', q{SELECT has_sequence_privilege('public', '"The Shop".customers_id_seq', 'USAGE'),
		has_sequence_privilege('public', '"The Shop".orders_id_seq', 'USAGE')}),
	't|f',
	'who may insert may use the sequence');
like($node->safe_psql('back', q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '"The Shop".one'::regclass}),
	qr/of_both/, 'a default that uses another sequence by snowflake_default stays');
($ok, $err) = run_script('snowflake_undo.sql');
like($err, qr/NOTICE:  0 keys have a sequence, 0 rows a new number/, 'there is nothing left to do');

# What must not change, and what could go wrong
sub undo
{
	my ($database, @options) = @_;
	my ($out, $err);

	local $ENV{PGOPTIONS} = '--default-transaction-isolation=repeatable\\ read';

	my $ok = IPC::Run::run(
		[ 'psql', '-Xq', '-v', 'schema=public', '-v', "map=$map", @options, '-f', "$Page::top/compat/snowflake_undo.sql",
			'-d', $node->connstr($database) ],
		'>' => \$out,
		'2>' => \$err);
	return $ok ? '' : $err;
}
$node->safe_psql('postgres', 'CREATE ROLE regress_other; CREATE DATABASE odd');
my $long = 'a' x 63;
$node->safe_psql(
	'odd', qq{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_convert;
	CREATE EXTENSION snowflake_keys;
	GRANT CREATE ON SCHEMA public TO regress_other;
	CREATE SEQUENCE numbers;
	CREATE TABLE invoices (number bigint PRIMARY KEY DEFAULT daily_nextval('numbers'));
	INSERT INTO invoices DEFAULT VALUES;
	CREATE TABLE copies AS SELECT number FROM invoices;
	CREATE TABLE groups (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
	CREATE TABLE user_group (id serial PRIMARY KEY);
	INSERT INTO user_group SELECT FROM generate_series(1, 50);
	CREATE TABLE "user" (group_id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE TABLE $long (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE TABLE below_zero (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	INSERT INTO below_zero (id) VALUES (-5);
	GRANT INSERT (name) ON below_zero TO regress_app;
	CREATE DOMAIN id AS bigint; CREATE DOMAIN user_id AS id;
	WITH u AS (INSERT INTO "user" DEFAULT VALUES RETURNING group_id)
	SELECT group_id::user_id AS of_domain, group_id AS old, group_id AS new INTO references_user FROM u;
	CREATE TABLE r AS SELECT old FROM references_user});
my $numbers = $node->safe_psql('odd', 'SELECT number FROM invoices');
like(undo('odd', '-v', "map=$dir/missing/file"), qr/missing\/file: No such file/, 'a file that cannot be written is an error');
is($node->safe_psql('odd', 'SELECT group_id < 1000 FROM "user"'), 'f', 'and nothing is changed');
is(undo('odd'), '', 'the way back with tables that are left');
is($node->safe_psql('odd', 'SELECT i.number, c.number FROM invoices i, copies c'), "$numbers|$numbers", 'daily numbers stay');
is($node->safe_psql('odd', 'SELECT of_domain = group_id FROM references_user, "user"'), 't', 'a column of a domain over a domain gets the new number');
is($node->safe_psql('odd', 'SELECT count(*) FROM references_user JOIN r USING (old) JOIN "user" ON group_id IN (old) AND group_id = new'), '1',
	'so do columns with names that the script uses itself');
is($node->safe_psql('odd', 'INSERT INTO user_group DEFAULT VALUES RETURNING id'), '51', 'a sequence of another table is left alone');
is($node->safe_psql('odd', 'INSERT INTO "user" DEFAULT VALUES RETURNING group_id'), '2', 'and its table gets a sequence with another name');
is($node->safe_psql('odd', "SET ROLE regress_app; INSERT INTO below_zero (name) VALUES ('a'); RESET ROLE; SELECT max(id) FROM below_zero"),
	'2', 'a sequence begins above 0, and who may insert into a column may use it');

# Without -v map, the current directory gets the file.
my $here = getcwd();
chdir $dir or die;
$node->safe_psql('odd', 'ALTER TABLE "user" ALTER group_id SET DEFAULT snowflake_nextval(); INSERT INTO "user" DEFAULT VALUES');
my ($undone) = (run_command([ 'psql', '-Xq', '-v', 'schema=public', '-f', "$Page::top/compat/snowflake_undo.sql", '-d', $node->connstr('odd') ]))[1];
like($undone, qr/^The old and new numbers are in (snowflake_undo_odd_public_\d{8}_\d{6}_\d{6}\.csv)$/m, 'it says which file has the numbers');
my ($file) = glob('snowflake_undo_*.csv');
like(slurp_file($file), qr/\Aold,new\n\d+,3\n\z/, 'a file in the current directory');
chdir $here or die;

# Keys were above 2^31 before the conversion.
$node->safe_psql(
	'odd', q{
	DROP TABLE below_zero, "user";
	CREATE TABLE big (id bigserial PRIMARY KEY);
	CREATE TABLE files (size bigint);
	INSERT INTO big VALUES (5), (3000000000); INSERT INTO files VALUES (3000000000);
	SELECT snowflake_convert('big');
	INSERT INTO big DEFAULT VALUES});
like(undo('odd'), qr/ERROR:  column id of table public\.big has the value 3000000000, which is hardly a snowflake ID/,
	'a value above 2147483647 from before the conversion is an error');
is(undo('odd', '-v', 'above=3000000000'), '', 'unless the greatest value is given');
is($node->safe_psql('odd', "SELECT string_agg(id::text, ' ' ORDER BY id), min(size) FROM big, files"),
	'5 3000000000 3000000001|3000000000', 'and then rows up to that value keep it');

# Sequences that were kept, because another table or a function uses them
$node->safe_psql('postgres', 'CREATE DATABASE kept');
$node->safe_psql(
	'kept', q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_convert;
	CREATE EXTENSION snowflake_keys;
	CREATE TABLE a (id serial PRIMARY KEY, x int);
	CREATE TABLE b (id int PRIMARY KEY DEFAULT nextval('a_id_seq'), x int);
	CREATE TABLE tens (id serial PRIMARY KEY, x int);
	ALTER SEQUENCE tens_id_seq INCREMENT 10;
	CREATE TABLE unused (id serial PRIMARY KEY);
	CREATE TABLE emptied (id serial PRIMARY KEY);
	CREATE TABLE behind (id serial PRIMARY KEY);
	CREATE SEQUENCE down_id_seq AS int INCREMENT -1 START 1000 MAXVALUE 2000 MINVALUE -2000;
	CREATE TABLE down (id int PRIMARY KEY DEFAULT nextval('down_id_seq'), x int);
	ALTER SEQUENCE down_id_seq OWNED BY down.id;
	CREATE FUNCTION used() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('tens_id_seq') + nextval('unused_id_seq')
		+ nextval('emptied_id_seq') + nextval('behind_id_seq') + nextval('down_id_seq') $$;
	INSERT INTO a (x) SELECT generate_series(1, 5);
	INSERT INTO tens (x) VALUES (1), (2);
	INSERT INTO down (x) VALUES (1), (2);
	DELETE FROM down WHERE id = 1000;
	INSERT INTO emptied DEFAULT VALUES;
	DELETE FROM emptied;
	INSERT INTO behind VALUES (7)});
$node->safe_psql('kept', "SELECT snowflake_convert(name) FROM unnest('{a,tens,unused,emptied,behind,down}'::regclass[]) t(name)");
$node->safe_psql(
	'kept', q{
	INSERT INTO b (x) SELECT generate_series(1, 1000);
	SELECT nextval('down_id_seq');
	INSERT INTO a (x) VALUES (6), (7);
	INSERT INTO tens (x) VALUES (3), (4);
	INSERT INTO down (x) VALUES (3)});
is(undo('kept'), '', 'the way back with sequences that were kept');
is($node->safe_psql('kept', "SELECT string_agg(id::text, ' ' ORDER BY x) FROM a"), '1 2 3 4 5 1006 1007',
	'new numbers of rows are above those that another table got from the sequence');
is($node->safe_psql('kept', 'INSERT INTO a (x) VALUES (8) RETURNING id; INSERT INTO b (x) VALUES (0) RETURNING id'), "1011\n1012",
	'a sequence that another table uses continues');
is($node->safe_psql('kept', q{SELECT string_agg(id::text, ' ' ORDER BY x) FROM tens; INSERT INTO tens DEFAULT VALUES RETURNING id}), "1 11 1008 1009\n1020",
	'a sequence with another increment continues');
is($node->safe_psql('kept', q{SELECT string_agg(id::text, ' ' ORDER BY x) FROM down; INSERT INTO down DEFAULT VALUES RETURNING id}), "999 1010\n997",
	'a decreasing sequence continues, and new numbers of rows are above it');
is($node->safe_psql('kept', q{INSERT INTO unused DEFAULT VALUES RETURNING id; INSERT INTO emptied DEFAULT VALUES RETURNING id;
		INSERT INTO behind DEFAULT VALUES RETURNING id}), "1011\n1011\n1011",
	'sequences of tables without rows continue above all new numbers, too');

# ... one of them to a snowflake ID
$node->safe_psql('kept', q{
	ALTER TABLE a ALTER id SET DEFAULT snowflake_nextval();
	INSERT INTO a (x) VALUES (9);
	SELECT setval('a_id_seq', max(id)) FROM a});
like(undo('kept'), qr/ERROR:  sequence public\.a_id_seq has reached \d{16,}, and column id of table public\.a would get larger numbers/,
	'a sequence that has reached snowflake IDs is an error');
is($node->safe_psql('kept', q{SELECT setval('a_id_seq', 2000, false)}), 2000, 'the sequence is set back');
is(undo('kept'), '', '... and then there is a way back');
is($node->safe_psql('kept', 'SELECT max(id) FROM a; INSERT INTO b (x) VALUES (0) RETURNING id'), "2000\n2001", '... and the sequence continues');

# Constraints over several columns hold for the old numbers and for the new ones, not for a mix.
$node->safe_psql(
	'kept', q{
	CREATE TABLE trees (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent bigint REFERENCES trees DEFERRABLE INITIALLY DEFERRED,
		root bigint NOT NULL REFERENCES trees DEFERRABLE, name text, CHECK (parent < id AND root <= parent), UNIQUE (root, parent, id) DEFERRABLE);
	CREATE TABLE edges (a bigint, b bigint, CHECK (a < b)) PARTITION BY RANGE (a, b);
	CREATE TABLE edges_low PARTITION OF edges FOR VALUES FROM (0, 0) TO (1000, 0);
	CREATE TABLE edges_high PARTITION OF edges DEFAULT;
	CREATE TABLE base (id bigint DEFAULT snowflake_nextval(), name text);
	CREATE TABLE derived (parent bigint, CHECK (parent < id)) INHERITS (base);
	WITH RECURSIVE i(n, id, root, parent) AS (
		SELECT 1, v.id, v.id, NULL::bigint FROM (SELECT snowflake_nextval()) v(id)
		UNION ALL SELECT n + 1, snowflake_nextval(), root, id FROM i WHERE n < 4)
	INSERT INTO trees SELECT id, parent, root, n FROM i;
	INSERT INTO edges SELECT parent, id FROM trees WHERE parent IS NOT NULL;
	INSERT INTO edges VALUES (7, 8);
	INSERT INTO base (name) VALUES ('base');
	INSERT INTO derived (name, parent) SELECT 'derived', id FROM base});
is(undo('kept'), '', 'the way back with constraints over several columns');
is($node->safe_psql('kept', q{SELECT string_agg(concat_ws(':', name, id, parent, root), ' ' ORDER BY id) FROM trees}),
	'1:9:9 2:10:9:9 3:11:10:9 4:12:11:9', 'all columns of a row get the new numbers at once');
is($node->safe_psql('kept', q{SELECT string_agg(concat_ws(':', a, b, tableoid::regclass), ' ' ORDER BY a) FROM edges}),
	'7:8:edges_low 9:10:edges_low 10:11:edges_low 11:12:edges_low', '... in a partitioned table, too, above its small numbers');
is($node->safe_psql('kept', q{SELECT string_agg(concat_ws(':', b.name, b.id, d.parent), ' ' ORDER BY b.id) FROM base b LEFT JOIN derived d USING (id)}),
	'base:13 derived:14:13', '... and in a table that inherits one of them');

# Rows that differ have numbers that differ: in copies, an archive, and an audit log.
$node->safe_psql('postgres', 'CREATE DATABASE copied');
$node->safe_psql(
	'copied', q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_convert;
	CREATE EXTENSION snowflake_keys;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE copied (LIKE orders INCLUDING ALL);
	CREATE TABLE archive (LIKE orders INCLUDING ALL);
	CREATE TABLE articles (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE pages (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE contents (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE items (order_id bigint, name text);
	CREATE TABLE others (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	INSERT INTO archive VALUES (7, 'old');
	INSERT INTO items VALUES (7, 'old'), (9, 'of a deleted order');
	INSERT INTO orders (name) SELECT unnest('{a,b,c,d}'::text[]);
	INSERT INTO copied SELECT * FROM orders WHERE name IN ('b', 'c');
	WITH moved AS (DELETE FROM orders WHERE name IN ('c', 'd') RETURNING *) INSERT INTO archive SELECT * FROM moved;
	INSERT INTO items SELECT id, name FROM orders UNION SELECT id, name FROM archive WHERE name = 'd';
	INSERT INTO articles (name) VALUES ('article');
	INSERT INTO pages (name) VALUES ('page');
	INSERT INTO contents TABLE articles UNION TABLE pages;
	INSERT INTO others (name) VALUES ('other')});
my $same = q{
	SELECT string_agg(i.name || ':' || coalesce(o.name, '') || ':' || coalesce(a.name, ''), ' ' ORDER BY i.name)
	FROM items i LEFT JOIN orders o ON o.id = i.order_id LEFT JOIN archive a ON a.id = i.order_id;
	SELECT string_agg(c.name || ':' || coalesce(o.name, '') || ':' || coalesce(a.name, ''), ' ' ORDER BY c.name)
	FROM copied c LEFT JOIN orders o USING (id) LEFT JOIN archive a USING (id);
	SELECT string_agg(c.name || ':' || coalesce(a.name, '') || ':' || coalesce(p.name, ''), ' ' ORDER BY c.name)
	FROM contents c LEFT JOIN articles a USING (id) LEFT JOIN pages p USING (id)};
my $belongs = $node->safe_psql('copied', $same);
is($belongs, "a:a: b:b: d::d of a deleted order:: old::old\nb:b: c::c\narticle:article: page::page",
	'rows with IDs of several tables');
is(undo('copied'), '', 'the way back with such rows');
is($node->safe_psql('copied', $same), $belongs, 'rows belong together as before');
is($node->safe_psql('copied', q{SELECT string_agg(name || ':' || id, ' ' ORDER BY name) FROM (TABLE orders UNION TABLE archive UNION TABLE contents UNION TABLE others) t}),
	'a:10 article:14 b:11 c:12 d:13 old:7 other:16 page:15', 'all IDs are numbered together, above the small numbers');
is( $node->safe_psql('copied', q{
		INSERT INTO orders DEFAULT VALUES RETURNING id;
		INSERT INTO articles DEFAULT VALUES RETURNING id;
		INSERT INTO others DEFAULT VALUES RETURNING id}),
	"17\n17\n17", 'new rows get none of their numbers');

# A deleted row had a number above the limit, and is in a log.
$node->safe_psql(
	'copied', q{
	CREATE TABLE bills (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE TABLE log (row_id bigint, what text);
	INSERT INTO bills VALUES (2999999999);
	INSERT INTO log VALUES (3000000001, 'deleted'), (3, 'small'), (NULL, 'nothing');
	INSERT INTO bills SELECT FROM generate_series(1, 3);
	INSERT INTO log SELECT id, 'made' FROM bills});
like(undo('copied', '-v', 'above=2999999999'), qr/ERROR:  column row_id of table public\.log has the value 3000000001, which would be a new number, too/,
	'a number of a deleted row that would be a new one is an error');
is(undo('copied', '-v', 'above=3000000001'), '', 'the way back with a number of a deleted row');
is($node->safe_psql('copied', q{SELECT string_agg(row_id || ':' || what, ' ' ORDER BY row_id) FROM log}),
	'3:small 2999999999:made 3000000001:deleted 3000000002:made 3000000003:made 3000000004:made', 'new numbers are above it');
$node->safe_psql('copied', 'DROP TABLE bills, log');

# A log has IDs of deleted rows, before those that are there.  Rows were moved out of a table
# that has small numbers left.
$node->safe_psql('postgres', 'CREATE DATABASE moved');
$node->safe_psql(
	'moved', q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_convert;
	CREATE EXTENSION snowflake_keys;
	CREATE TABLE rows (id serial PRIMARY KEY, name text);
	INSERT INTO rows (name) SELECT 'small ' || n FROM generate_series(1, 6) n;
	SELECT snowflake_convert('rows');
	CREATE TABLE archive (LIKE rows INCLUDING ALL);
	CREATE TABLE log (row_id bigint, name text);
	INSERT INTO rows (name) SELECT 'new ' || n FROM generate_series(1, 5) n;
	INSERT INTO log SELECT id, name FROM rows WHERE name IN ('small 1', 'small 3') OR name LIKE 'new%';
	DELETE FROM rows WHERE name IN ('new 1', 'new 3');
	WITH moved AS (DELETE FROM rows WHERE name LIKE 'new%' RETURNING *) INSERT INTO archive SELECT * FROM moved});
my $ids_of_deleted = $node->safe_psql('moved', q{SELECT row_id FROM log WHERE name IN ('new 1', 'new 3') ORDER BY 1});
is(undo('moved'), '', 'the way back with IDs of deleted rows');
is($node->safe_psql('moved', q{
		SELECT string_agg(l.name || ':' || coalesce(r.name, '') || ':' || coalesce(a.name, ''), ' ' ORDER BY l.name)
		FROM log l LEFT JOIN rows r ON r.id = row_id LEFT JOIN archive a ON a.id = row_id;
		SELECT string_agg(id::text, ' ' ORDER BY id) FROM archive;
		INSERT INTO rows DEFAULT VALUES RETURNING id;
		SELECT row_id FROM log WHERE row_id > 1000 ORDER BY 1}),
	"new 1:: new 2::new 2 new 3:: new 4::new 4 new 5::new 5 small 1:small 1: small 3:small 3:\n7 8 9\n10\n$ids_of_deleted",
	'references are those of before, and IDs of deleted rows stay');

# The last row of before was moved, and its sequence is gone.
$node->safe_psql(
	'moved', q{
	CREATE TABLE numbered (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name text);
	INSERT INTO numbered (name) SELECT 'old' FROM generate_series(1, 30);
	CREATE TABLE old_numbered AS TABLE numbered;
	TRUNCATE numbered;
	SELECT snowflake_convert('numbered');
	INSERT INTO numbered (name) VALUES ('new');
	CREATE SEQUENCE numbered_id_seq OWNED BY numbered.id;
	SELECT setval('numbered_id_seq', 30)});
is(undo('moved'), '', 'the way back with a sequence that was created for it');
is($node->safe_psql('moved', 'SELECT id FROM numbered; INSERT INTO numbered DEFAULT VALUES RETURNING id'), "31\n32",
	'numbers are above that of the last row that was moved');

# Columns that cannot be updated, and foreign keys of others that do not refer to a key
$node->safe_psql(
	'moved', q{
	CREATE TABLE parts (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY HASH (id);
	CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
	CREATE TABLE shared (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES parts);
	INSERT INTO parts DEFAULT VALUES;
	INSERT INTO shared OVERRIDING SYSTEM VALUE TABLE parts});
like(undo('moved'), qr/ERROR:  column id of table public\.shared has snowflake IDs, and is GENERATED ALWAYS\nHINT:  .* ALTER TABLE public\.shared ALTER COLUMN id SET GENERATED BY DEFAULT\./,
	'an identity that is always generated is an error');
$node->safe_psql('moved', q{
	ALTER TABLE shared ALTER COLUMN id SET GENERATED BY DEFAULT;
	CREATE TABLE of_shared (id bigint REFERENCES shared);
	CREATE TABLE of_part (id bigint REFERENCES part);
	ALTER TABLE of_shared OWNER TO regress_other;
	ALTER TABLE of_part OWNER TO regress_other});
like(undo('moved'), qr/ERROR:  table public\.of_shared references public\.shared, but belongs to another role/,
	'a foreign key of another role to a column that has IDs is an error');
$node->safe_psql('moved', 'DROP TABLE of_shared');
like(undo('moved'), qr/ERROR:  table public\.of_part references public\.part, but belongs to another role/,
	'... and one to a partition');
$node->safe_psql('moved', 'DROP TABLE of_part');
is(undo('moved'), '', 'the way back without them');
is($node->safe_psql('moved', 'SELECT shared.id = parts.id, parts.id < 1000 FROM shared, parts'), 't|t', 'and rows belong together');

# Generated columns are computed from the new numbers.
$node->safe_psql(
	'copied', q{
	CREATE TABLE links (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), half bigint GENERATED ALWAYS AS (id / 2) STORED,
		code text GENERATED ALWAYS AS ('l_' || snowflake_encode(id)) STORED,
		name text, upper text GENERATED ALWAYS AS (upper(name)) STORED) PARTITION BY HASH (id);
	CREATE TABLE links_0 (LIKE links INCLUDING ALL);
	ALTER TABLE links ATTACH PARTITION links_0 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
	INSERT INTO links (name) VALUES ('a');
	CREATE SCHEMA remains;
	CREATE TABLE remains.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), half bigint GENERATED ALWAYS AS (id / 2) STORED,
		code text GENERATED ALWAYS AS (snowflake_encode(id)) STORED);
	INSERT INTO remains.orders DEFAULT VALUES});
my $code = $node->safe_psql('copied', 'SELECT code FROM links');
my ($of_code) = undo('copied') =~ /^psql:\S+ (ERROR:  .*\nHINT:  .*)/m;
is($of_code, "ERROR:  column code of table public.links is computed from snowflake IDs, and would change
HINT:  Nothing was changed. Make it an ordinary column, which has these values: ALTER TABLE public.links ALTER COLUMN code DROP EXPRESSION. Or drop it.",
	'a generated column of the extension is an error');
$node->safe_psql('copied', $of_code =~ /(ALTER TABLE .* DROP EXPRESSION)/);
($undone) = (run_command([ 'psql', '-Xq', '-v', 'schema=public', '-v', "map=$map", '-f', "$Page::top/compat/snowflake_undo.sql", '-d', $node->connstr('copied') ]))[1];
is(join('|', $undone =~ /WARNING:  (.*)/g), 'column half of table public.links is computed again, from the new numbers',
	'a WARNING names another one that is computed from the key');
is($node->safe_psql('copied', 'SELECT id, half, code, upper FROM links'), "1|0|$code|A", 'the ordinary column has the values of before');

# Others' tables and triggers
$node->safe_psql(
	'odd', q{
	CREATE TABLE users (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	INSERT INTO users DEFAULT VALUES;
	GRANT SELECT, REFERENCES ON users TO regress_other;
	SET ROLE regress_other;
	CREATE FUNCTION gain() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ALTER ROLE regress_other SUPERUSER; RETURN NEW; END';
	CREATE TABLE others AS SELECT id FROM users;
	CREATE TRIGGER gain BEFORE UPDATE ON others FOR EACH ROW EXECUTE FUNCTION gain();
	ALTER TABLE others ENABLE ALWAYS TRIGGER gain});
is(undo('odd'), '', 'the way back beside a table of another role');
is($node->safe_psql('odd', "SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_other'"), 'f', 'whose trigger does not run as superuser');
$node->safe_psql('odd', q{
	ALTER TABLE users ALTER id SET DEFAULT snowflake_nextval();
	INSERT INTO users DEFAULT VALUES;
	CREATE TABLE referencing (id bigint REFERENCES users);
	ALTER TABLE referencing OWNER TO regress_other});
like(undo('odd'), qr/ERROR:  table public\.referencing references public\.users, but belongs to another role/, 'a foreign key of a table of another role is an error');
$node->safe_psql('odd', q{
	ALTER TABLE referencing OWNER TO CURRENT_USER;
	CREATE TRIGGER gain BEFORE UPDATE ON referencing FOR EACH ROW EXECUTE FUNCTION gain();
	ALTER TABLE referencing ENABLE ALWAYS TRIGGER gain});
like(undo('odd'), qr/ERROR:  trigger gain of table public\.referencing is enabled ALWAYS or REPLICA/, 'a trigger that would run is an error');
$node->safe_psql('odd', q{
	ALTER TABLE referencing DISABLE TRIGGER gain;
	CREATE TABLE in_use (id serial PRIMARY KEY);
	CREATE TABLE of_it (in_use int REFERENCES in_use)});
$node->safe_psql('odd', "CALL snowflake_convert_online('in_use', until => 'prepare')");
my ($in_use) = undo('odd') =~ /^psql:\S+ (ERROR:  .*\nHINT:  .*)/m;
is($in_use, "ERROR:  table public.in_use is being converted by snowflake_convert_online()
HINT:  Nothing was changed. Complete the conversion, or take it back with snowflake_convert_undo() for the table that it was begun for.",
	'an online conversion that is not complete is an error');
$node->safe_psql('odd', "SELECT snowflake_convert_undo('in_use'); DROP TABLE of_it, in_use");
SKIP:
{
	skip 'SET on a parameter cannot be granted before PostgreSQL 15', 2 if $node->pg_version < 15;
	$node->safe_psql('odd', q{
		ALTER ROLE regress_app LOGIN;
		GRANT SET ON PARAMETER session_replication_role TO regress_app;
		CREATE SCHEMA owned AUTHORIZATION regress_app;
		SET ROLE regress_app;
		CREATE TABLE owned.people (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), boss bigint REFERENCES owned.people);
		WITH p AS (INSERT INTO owned.people DEFAULT VALUES RETURNING id) INSERT INTO owned.people (boss) SELECT id FROM p});
	is(undo('odd', '-U', 'regress_app', '-v', 'schema=owned'), '', 'the owner of the tables can go back, too');
	is($node->safe_psql('odd', q{SELECT string_agg(concat_ws('<', id, boss), ' ' ORDER BY id) FROM owned.people}), '1 2<1', 'and rows have small numbers');
}
$node->safe_psql('odd', 'DROP TRIGGER gain ON referencing; CREATE TABLE loose (id bigint)');

# A row that references another without a foreign key, while its session is open
my $id = $node->safe_psql('odd', 'SELECT max(id) FROM users');
$node->append_conf('postgresql.conf', 'max_prepared_transactions = 2');
$node->restart;
$node->safe_psql('odd', "BEGIN; INSERT INTO loose VALUES ($id); PREPARE TRANSACTION 'writer'");
$ENV{PGOPTIONS} = '--default-transaction-isolation=repeatable\\ read';
my $undo = IPC::Run::start(
	[ 'psql', '-Xq', '-v', 'schema=public', '-f', "$Page::top/compat/snowflake_undo.sql", '-d', $node->connstr('odd') ],
	'>' => \my $undo_out,
	'2>' => \my $undo_err);
delete $ENV{PGOPTIONS};
# Without the lock, it would be over.
$node->poll_query_until('postgres', q{
	SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'odd' AND wait_event_type IS DISTINCT FROM 'Lock')
	AND (EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'odd' AND wait_event_type = 'Lock')
		OR NOT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE datname = 'odd' AND pid IS NOT NULL))});
$node->safe_psql('odd', "COMMIT PREPARED 'writer'");
$undo->finish;
is($node->safe_psql('odd', 'SELECT l.id = max(u.id), l.id < 100 FROM loose l, users u GROUP BY l.id'), 't|t', 'a row that was inserted meanwhile gets the new number');

# Without the library, and with it again
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
($id, my $mark) = split /\|/, $node->safe_psql('postgres', $origin);
is($id, 65534, 'the replication origin stays');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
cmp_ok($node->safe_psql('postgres', 'SELECT snowflake_nextval()'),
	'>', $greatest, 'IDs continue above the mark if the extension is created again');

$node->stop;
Page::all_taken();
done_testing();
