# The C interface: an extension generates IDs through it, whichever of the two libraries
# is loaded first.

use Page;
use SnowflakeTest;

# script/check installs the extension; an installed server need not have it.
my $sharedir = `pg_config --sharedir`;
chomp $sharedir;
unless (-e "$sharedir/extension/snowflake_example.control")
{
	die 'snowflake_example is not installed' if $sharedir =~ /\/tmp_check\/install\//;
	plan skip_all => 'snowflake_example is not installed';
}

my $node = new_server('main', 'snowflake.worker_id = 5');
sql($node, 'CREATE EXTENSION snowflake_example; CREATE EXTENSION snowflake_convert');

sub preload ($libraries) { restart_with($node, "shared_preload_libraries = '$libraries'"); return; }

# IDs by the interface and by SQL are from the same generator.
my $in_turns = q{
	CREATE TEMP TABLE made AS
	SELECT n, snowflake_nextval() AS a, example_id() AS e, snowflake_nextval() AS b
	FROM generate_series(1, 10000) n;
	SELECT count(DISTINCT e), count(*) FILTER (WHERE example_snowflake_id(e) BETWEEN a + 1 AND b - 1)
	FROM made};
foreach my $libraries ('snowflake', 'snowflake, snowflake_example',
	'snowflake_example, snowflake')
{
	preload($libraries);
	is(sql($node, $in_turns), '10000|10000', "shared_preload_libraries = '$libraries'");
}

# Blocks, of several ticks
is( sql($node, q{
		SELECT snowflake_nextval() AS before \gset
		SELECT count(*), count(*) FILTER (WHERE id <= previous), count(DISTINCT snowflake_timestamp(id)) > 2,
			min(id) > :before AND max(id) < snowflake_nextval()
		FROM (
			SELECT id, lag(id) OVER (ORDER BY n) AS previous
			FROM unnest(example_block(10000)) WITH ORDINALITY i(id, n)) t}),
	'10000|0|t|t', 'the IDs of a block are distinct and in order');
sql_fails($node, 'SET statement_timeout = 2000; SELECT example_block(0)',
	qr/ERROR:  22023: count of snowflake IDs must be at least 1/, 'a block of no IDs is refused');
my @sessions = start_queries(
	$node,
	map { $_ % 2
		? 'SELECT unnest(example_block(10000))'
		: 'SELECT example_snowflake_id(example_id()) FROM generate_series(1, 10000)'
	} 1 .. 4);
is(finish_queries(@sessions), 4, 'several backends get IDs by the C interface');
my $ledger = new_ledger();
note_ids($ledger, map { [ split /\n/, $_->{out} ] } @sessions);
is(verdict($ledger), '0 duplicates, 0 falls', 'IDs that several backends get at once are distinct');
is($ledger->{ids}, 40000, 'no ID of the backends is lost');

# As the default of a key, and for a key that is converted
is( sql($node, q{
		CREATE TABLE orders (id text PRIMARY KEY DEFAULT example_order_number(), n bigserial);
		INSERT INTO orders (n) SELECT generate_series(1, 100);
		SELECT count(*) FROM orders WHERE id ~ '^5-\d+-\d+$'}),
	'100', 'a function of another extension is the default of a key');
is( sql($node, q{
		CREATE TABLE old (id serial PRIMARY KEY, v int);
		INSERT INTO old (v) VALUES (1);
		SELECT count(*) > 0 FROM snowflake_convert('old', generator => 'example_id()');
		INSERT INTO old (v) VALUES (2);
		SELECT worker_id FROM old, snowflake_parse(example_snowflake_id(id)) WHERE v = 2}),
	"t\n5", 'snowflake_convert() takes a function of another extension');

# What docs/develop/api.md shows
my $page = Page->claim('docs/develop/api.md');
my ($function, $loop) = map { $_->{text} } $page->rest('c');
my ($simple, $convert) = map { $_->{text} } $page->rest('sql');
my $build = $node->basedir . '/build';
mkdir $build;
append_to_file(
	"$build/my.c", qq{$function
PG_FUNCTION_INFO_V1(my_block);

Datum
my_block(PG_FUNCTION_ARGS)
{
	int			wanted = PG_GETARG_INT32(0);
	int64		made_ids = 0;

#define use(id) made_ids += (id) > 0
$loop
	PG_RETURN_INT64(made_ids);
}
});
my $headers = `pg_config --includedir-server`;
chomp $headers;
command_ok(
	[ 'make', '-s', '-C', $build,
		'-f', "$FindBin::RealBin/../api/Makefile",
		'MODULE_big=my', 'OBJS=my.o', 'EXTENSION=', 'DATA=',
		"PG_CPPFLAGS=-I$headers" ],
	'the functions of docs/develop/api.md are built');
is( sql($node, qq{
		CREATE FUNCTION my_id() RETURNS bigint LANGUAGE c AS '$build/my';
		CREATE FUNCTION my_block(int) RETURNS bigint LANGUAGE c AS '$build/my';
		SELECT snowflake_nextval() < my_id(), my_block(10000)}),
	't|10000', 'the functions of docs/develop/api.md generate IDs');
like(sql($node, "$simple SELECT order_number()"),
	qr/^ORD-[0-9A-Z]{13}$/, 'the function in SQL of docs/develop/api.md works');
is( sql($node, qq{
		SET client_min_messages = error;
		CREATE TABLE customers (id serial PRIMARY KEY, name text);
		$convert
		INSERT INTO customers (name) VALUES ('x');
		SELECT id > 1e18 FROM customers}) =~ /\nt$/,
	1, 'the conversion of docs/develop/api.md works');

# Parts and scheme, which may be written as a name or have no worker
my $parts = q{
	SELECT count(*), bool_and(p."timestamp" = e."timestamp" AND p.sequence = e.sequence
		AND coalesce(p.worker_id, 0) = e.worker_id AND coalesce(p.datacenter_id, 0) = e.datacenter_id
		AND id >> shifts[1] = e.tick)
	FROM snowflake_nextval(1000) id, snowflake_parse(id) p, example_parts(id) e, example_scheme()};
is(sql($node, $parts), '1000|t', 'the C interface takes an ID apart as snowflake_parse() does');
is(sql($node, "SET timezone = 'UTC'; SELECT * FROM example_scheme()"),
	'epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12|2016-11-01 00:00:00+00|1000|{41,0,10,12}|{22,0,12,0}',
	'the C interface returns the default scheme');
sql_fails($node, 'SELECT example_parts(-1)',
	qr/ERROR:  22003: snowflake ID -1 is negative/, 'a negative ID is not taken apart');
foreach my $case (
	[ 'sonyflake',
		'sonyflake|2014-09-01 00:00:00+00|10000|{39,0,16,8}|{24,0,0,16}' ],
	[ 'twitter,worker=7,sequence=10',
		'twitter,worker=7,sequence=10|2010-11-04 01:42:54.657+00|1000|{41,5,7,10}|{22,17,10,0}' ],
	[ 'tick=1s,timestamp=32,sequence=20',
		'tick=1s,timestamp=32,sequence=20|2016-11-01 00:00:00+00|1000000|{32,0,0,20}|{20,0,0,0}' ])
{
	my ($scheme, $fields) = @$case;

	$node->append_conf('postgresql.conf', "snowflake.scheme = '$scheme'");
	restart_with($node, 'snowflake.worker_id = 0');
	sql($node, 'SELECT snowflake_set_mark(0, force => true)');
	is(sql($node, "SET timezone = 'UTC'; SELECT * FROM example_scheme()"), $fields, $scheme);
	is(sql($node, $parts), '1000|t', 'IDs of this scheme are taken apart as by snowflake_parse()');
}

# Versions
is(sql($node, 'SELECT example_version(1)'), '1', 'the C interface has its version');
sql_fails($node, 'SELECT example_version(2)',
	qr/ERROR:  0A000: the loaded version of snowflake is too old\nDETAIL:  Its C interface has version 1, but version 2 is required\.\nHINT:  Upgrade the extension snowflake and restart the server\./,
	'a later version of the C interface is refused');

# Without preloading
preload('snowflake_example');
sql_fails($node, 'SELECT example_id()',
	qr/ERROR:  55000: snowflake is not loaded\nHINT:  Install the extension snowflake, append snowflake to "shared_preload_libraries" in postgresql\.conf, and restart the server\./,
	'a call without snowflake loaded is refused');
foreach my $call ('example_id()', 'example_block(1)', 'example_parts(1)',
	'example_scheme()')
{
	sql_fails($node, "LOAD 'snowflake'; SELECT $call",
		qr/ERROR:  55000: snowflake must be loaded via "shared_preload_libraries"/,
		"$call: snowflake is loaded by the session only");
}
my $version;
$node->psql(
	'postgres',
	"SELECT example_version(1); LOAD 'snowflake'; SELECT example_version(1)",
	stdout => \$version,
	on_error_stop => 0);
is($version, '1', 'a session finds snowflake that was loaded after a call without it');
Page::all_taken();
