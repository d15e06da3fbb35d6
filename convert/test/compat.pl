# compat/snowflake_compat.sql: functions for programs that ask a sequence for the ID of
# their row.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('main', 'fsync = off');

sub run_script
{
	my ($out, $err);

	my $ok = IPC::Run::run(
		[ 'psql', '-Xq', '-f', "$Page::top/compat/snowflake_compat.sql", '-d', $node->connstr('app') ],
		'>' => \$out,
		'2>' => \$err);
	return ($ok, $err);
}

# The extension in a schema of its own; a role that is not a superuser.
$node->safe_psql('postgres', 'CREATE ROLE regress_app LOGIN; CREATE DATABASE app OWNER regress_app');
my ($ok, $err) = run_script();
ok(!$ok && $err =~ /ERROR:  extension "snowflake" does not exist in this database/,
	'the script needs the extension');
$node->safe_psql('app', q{
	CREATE SCHEMA "Ext"; CREATE EXTENSION snowflake SCHEMA "Ext"; CREATE EXTENSION snowflake_convert SCHEMA "Ext"; CREATE EXTENSION snowflake_keys SCHEMA "Ext"; GRANT USAGE ON SCHEMA "Ext" TO PUBLIC;
	GRANT CREATE ON SCHEMA public TO regress_app;
	SET ROLE regress_app;
	CREATE TABLE customers (id serial PRIMARY KEY, name text);
	CREATE TABLE "Orders" (id serial PRIMARY KEY, customer int REFERENCES customers);
	CREATE TABLE kept (id serial PRIMARY KEY);
	CREATE FUNCTION uses_kept() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN currval(''kept_id_seq''); END';
	CREATE TABLE small (id serial PRIMARY KEY);
	CREATE TABLE plain (id int);
	INSERT INTO customers (name) VALUES ('a');
	SELECT "Ext".snowflake_convert_schema('public', '{small}')});

# A schema that another role has created beforehand
foreach my $schema ('snowflake_compat', 'snowflake_default')
{
	$node->safe_psql('app', qq{SET ROLE regress_app; CREATE SCHEMA $schema;
		CREATE FUNCTION $schema.last_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'});
	($ok, $err) = run_script();
	ok(!$ok && $err =~ /ERROR:  schema "$schema" belongs to role regress_app/, "a role cannot put its functions into $schema") or diag($err);
	$node->safe_psql('app', "DROP SCHEMA $schema CASCADE");
}

my $page = Page->claim('docs/clients.md', 'Clients that ask a sequence');
like($page->take('snowflake_compat.sql')->{text}, qr/\/extension\/snowflake_compat\.sql"$/,
	'the page names the script');
foreach my $time ('first', 'second')
{
	($ok, $err) = run_script();
	ok($ok && $err eq '', "the script runs for the $time time") or diag($err);
}
$ENV{PGUSER} = 'regress_app';
my @role = (dbname => 'app', replace => { 'ROLE app' => 'ROLE regress_app' });
Page::run($node, $page->take('search_path = public, snowflake_compat'), @role);

sub app
{
	my ($sql) = @_;
	my ($result, $out, $err) = $node->psql('app', $sql);

	return $err =~ /(ERROR:  .*)/ ? $1 : $out =~ s/\n/ /gr;
}

my $insert = "INSERT INTO customers (name) VALUES ('b');";
foreach my $call (
	'lastval()',
	"currval('customers_id_seq')",
	"currval('public.customers_id_seq'::text)",
	"currval(pg_get_serial_sequence('customers', 'id'))")
{
	is(app("$insert SELECT $call = max(id) FROM customers"), 't', "$call returns the ID of the row");
	is(app("SELECT $call"), 'ERROR:  current snowflake ID is not yet defined in this session',
		"$call fails before the first ID");
}
is( app(q{INSERT INTO "Orders" (customer) VALUES (1); SELECT currval(pg_get_serial_sequence('"Orders"', 'id')) = max(id) FROM "Orders"}),
	't',
	'names in quotes are found');
is(app(q{SELECT pg_get_serial_sequence('"Orders"', 'id')}), 'public."Orders_id_seq"', 'they are quoted');
is(app(q{SELECT pg_get_serial_sequence('plain', 'id') IS NULL}), 't', 'a column without a sequence has none');
is( app(q{CREATE SEQUENCE days; CREATE TABLE daily (id bigint DEFAULT "Ext".daily_nextval('days')); SELECT pg_get_serial_sequence('daily', 'id') IS NULL}),
	't',
	'a column with daily numbers has no sequence');
like(app(q{SELECT pg_get_serial_sequence('plain', 'none')}), qr/column "none" of relation "plain" does not exist/,
	'a column that does not exist is an error');
is(app(q{SELECT currval(NULL::text) IS NULL, pg_get_serial_sequence(NULL, 'id') IS NULL}), 't|t', 'NULL is NULL');

# Where sequences are left
is(app("INSERT INTO small DEFAULT VALUES; $insert SELECT lastval()"),
	'ERROR:  lastval() cannot tell a snowflake ID from the value of a sequence',
	'lastval() fails in a session that has used a sequence');
is( app("INSERT INTO small DEFAULT VALUES; $insert SELECT currval('small_id_seq') = max(id), currval(pg_get_serial_sequence('small', 'id')) = max(id) FROM small"),
	't|t',
	'currval() of a sequence that is used is its value');
is( app("$insert SELECT currval('small_id_seq')"),
	'ERROR:  currval of sequence "small_id_seq" is not yet defined in this session',
	'a sequence that was not used has no value');
is(app('INSERT INTO kept DEFAULT VALUES; SELECT max(id) = uses_kept() FROM kept'),
	't', 'a function that asks a kept sequence gets the ID');
is(app("SELECT nextval('small_id_seq') > 0"), 't', 'nextval() is as before');
is(app("SELECT nextval('customers_id_seq')"), 'ERROR:  relation "customers_id_seq" does not exist',
	'nextval() of a sequence that is gone fails');
is(app("CREATE TABLE mine (id serial); SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'mine'"),
	'public', 'tables are created where they were');

# Programs that read the default
Page::run($node, $page->take('snowflake_default.nextval'), @role);
is( app(q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'customers'::regclass}),
	q{nextval('snowflake'::text)},
	'the default looks like that of a sequence');
is(app("$insert SELECT currval('snowflake') = max(id), max(id) > 1000000000000 FROM customers"),
	't|t', 'the name in it is good for currval()');
is(app("SELECT nextval('customers_id_seq')"), 'ERROR:  relation "customers_id_seq" does not exist',
	'other names are those of sequences');
is(app("SELECT nextval('small_id_seq') > 0"), 't', 'which are called');
is( app(q{CREATE TABLE shared (id bigint DEFAULT nextval('small_id_seq')); SELECT pg_get_serial_sequence('shared', 'id') IS NULL}),
	't', 'a column with another sequence is not converted for pg_get_serial_sequence()');
is(app(q{SELECT pg_get_serial_sequence('customers', 'id')}), 'public.customers_id_seq',
	'the column is converted for pg_get_serial_sequence()');
delete $ENV{PGUSER};

$node->stop;
Page::all_taken();
done_testing();
