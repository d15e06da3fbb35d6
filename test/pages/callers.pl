# docs/migrating.md: the queries and commands that find and replace calls of nextval()
# by name find and replace all of them, in the database and in files.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Path;
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $page = Page->claim('docs/migrating.md', 'Code that calls nextval() by name');
my $find = $page->example('pg_describe_object');
my $replace = $page->example('pg_get_functiondef');
my $list = $page->example('sequences.txt');
my $sed = $page->example('sed -i');
my $drop = $page->example('DROP SEQUENCE');

my $node = new_server('main');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake_convert');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE orders (id bigserial PRIMARY KEY);
	CREATE TABLE others (id bigserial PRIMARY KEY);
	CREATE VIEW next_order AS SELECT nextval('orders_id_seq') AS id;
	CREATE FUNCTION add_order() RETURNS bigint LANGUAGE plpgsql AS $$
		DECLARE n bigint := NEXTVAL('public.orders_id_seq'::regclass);
		BEGIN INSERT INTO orders VALUES (n); RETURN n; END $$;
	CREATE FUNCTION last_order() RETURNS bigint LANGUAGE sql AS $$ SELECT pg_catalog.currval('orders_id_seq') $$;
	CREATE FUNCTION add_other() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('others_id_seq') $$;
	CREATE SCHEMA elsewhere;
	CREATE SEQUENCE elsewhere.orders_id_seq;
	CREATE FUNCTION elsewhere.next() RETURNS bigint LANGUAGE sql SET search_path = elsewhere AS $$ SELECT nextval('orders_id_seq') $$;
	CREATE FUNCTION of_body() RETURNS bigint BEGIN ATOMIC SELECT nextval('orders_id_seq'); END;
	CREATE FUNCTION sum_of(interval_of int) RETURNS int LANGUAGE sql AS $$ SELECT interval_of $$});
is( $node->safe_psql('postgres', $find), join("\n",
		'default value for column id of table orders', 'function add_order()', 'function add_other()',
		'function elsewhere.next()', 'function last_order()', 'function of_body()', 'rule _RETURN on view next_order'),
	'what refers to the sequence is found, and functions that call one');

$node->safe_psql('postgres', $replace);
is( $node->safe_psql('postgres', q{SELECT string_agg(proname || ' ' || trim(regexp_replace(prosrc, '\s+', ' ', 'g')), E'\n' ORDER BY proname)
		FROM pg_proc WHERE proname IN ('add_order', 'last_order', 'add_other', 'next')}),
	join("\n",
		'add_order DECLARE n bigint := public.snowflake_nextval(); BEGIN INSERT INTO orders VALUES (n); RETURN n; END',
		q{add_other SELECT nextval('others_id_seq')},
		q{last_order SELECT pg_catalog.currval('orders_id_seq')},
		q{next SELECT nextval('orders_id_seq')}),
	'calls of nextval() in functions are replaced, and no others');
$node->safe_psql('postgres', q{CREATE OR REPLACE VIEW next_order AS SELECT snowflake_nextval() AS id; DROP FUNCTION of_body()});

# What stands in the source of applications
my $dir = PostgreSQL::Test::Utils::tempdir;
my %files = (
	'src/dao.py' => qq{cur.execute("SELECT nextval('orders_id_seq')")\nother = "SELECT nextval('others_id_seq')"\n},
	'src/report.sql' => qq{SELECT Pg_Catalog.NextVal('public.orders_id_seq'::regclass), currval('orders_id_seq');\n},
	'src/sub/Order.java' => qq{\@SequenceGenerator(name = "orders", sequenceName = "orders_id_seq")\n},
	'src/sub/edb.sql' => qq{SELECT orders_id_seq.NEXTVAL FROM dual;\n},
	'src/reset.rb' => qq{connection.execute("SELECT setval('orders_id_seq', 1), lastval()")\n},
	'src/clean.go' => qq{const interval = 1 // no sequence\n});
foreach my $file (sort keys %files)
{
	mkpath($dir . '/' . ($file =~ s{/[^/]*$}{}r));
	append_to_file("$dir/$file", $files{$file});
}

# Run commands of the page in the directory.
sub run_in
{
	my ($commands) = @_;
	my ($out, $err);

	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	local $ENV{PGDATABASE} = 'postgres';
	IPC::Run::run([ 'sh', '-ec', "cd '$dir'\n$commands" ], '>', \$out, '2>', \$err)
	  or fail($commands) or diag($err);
	return $out;
}

my %found = map { /^(\S+?):\d+:/ ? ($1 => 1) : () } split /\n/, run_in($list);
is(join(' ', sort keys %found), 'src/dao.py src/report.sql src/reset.rb src/sub/Order.java src/sub/edb.sql',
	'all files with a call or the name of a sequence are found, and no other');
run_in($sed);
is(slurp_file("$dir/src/dao.py"), qq{cur.execute("SELECT snowflake_nextval()")\nother = "SELECT nextval('others_id_seq')"\n}, 'a call in Python is replaced');
is(slurp_file("$dir/src/report.sql"), qq{SELECT snowflake_nextval(), currval('orders_id_seq');\n}, 'calls of nextval() in SQL are replaced');
is(slurp_file("$dir/$_"), $files{$_}, "$_ is left alone") foreach 'src/sub/Order.java', 'src/sub/edb.sql', 'src/reset.rb', 'src/clean.go';

# It works afterwards, and what was forgotten fails.
$node->safe_psql('postgres', q{SELECT snowflake_convert('orders')});
$node->safe_psql('postgres', $drop);
is($node->safe_psql('postgres', 'SELECT add_order() > 1000000 FROM orders RIGHT JOIN (SELECT) t ON true'), 't', 'functions generate snowflake IDs');
like(sql_error($node, 'SELECT last_order()'), qr/42P01: relation "orders_id_seq" does not exist/, 'a currval() that was forgotten fails');

# Why not to replace currval(): it is the last ID of any table.
is($node->safe_psql('postgres', q{
	CREATE TABLE order_lines (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint);
	INSERT INTO orders DEFAULT VALUES;
	INSERT INTO order_lines (order_id) VALUES (snowflake_currval()) RETURNING order_id = id}),
	't', 'snowflake_currval() in the INSERT of another row is the ID of that row');
like(sql_error($node, q{SELECT nextval('orders_id_seq')}), qr/42P01: relation "orders_id_seq" does not exist/, 'a call that was forgotten fails');

# Why not to override it: the default calls the original.
$node->safe_psql('postgres', q{
	CREATE SCHEMA mine;
	CREATE FUNCTION mine.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT snowflake_nextval()'});
is($node->safe_psql('postgres', q{
	SET search_path = mine, pg_catalog, public;
	SELECT nextval('others_id_seq') > 1000000;
	INSERT INTO others DEFAULT VALUES RETURNING id}), "t\n1", 'defaults call the original nextval() in spite of an override');

$node->stop;
Page::all_taken();
done_testing();
