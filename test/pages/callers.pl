# docs/migrating.md: what finds calls of nextval() by name finds all of them, in the
# database and in files.  (sql/usage.sql has why currval() and nextval() are not to be replaced.)

use File::Path;
use Page;
use SnowflakeTest;

my $page = Page->claim('docs/migrating.md', 'Code that calls nextval() by name');
my $find = $page->example('pg_describe_object');
my $list = $page->example('sequences.txt');

my $node = new_server('main');
sql($node, 'CREATE EXTENSION snowflake_convert');
sql($node, q{
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
is(sql($node, $find), join("\n",
		'default value for column id of table orders', 'function add_order()', 'function add_other()',
		'function elsewhere.next()', 'function last_order()', 'function of_body()', 'rule _RETURN on view next_order'),
	'what refers to the sequence is found, and functions that call one');

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
sub run_in ($commands)
{
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

# What was forgotten fails.
sql($node, q{
	DROP VIEW next_order;
	DROP FUNCTION of_body();
	SELECT snowflake_convert('orders', generator => 'snowflake_nextval()');
	DROP SEQUENCE IF EXISTS orders_id_seq});
sql_fails($node, "SELECT $_()", qr/42P01: relation "(?:public\.)?orders_id_seq" does not exist/, "$_() fails")
  foreach 'last_order', 'add_order';

Page::all_taken();
