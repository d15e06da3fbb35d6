# pg_dump and pg_restore with several jobs, while clients insert, as
# docs/backups.md has it.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/backups.md', 'Dumps');
my $old = new_server('old', 'snowflake.worker_id = 1', 'snowflake.max_lead = 10s');
sql($old, 'CREATE EXTENSION snowflake_convert');
my $new = plain_server('new', "shared_preload_libraries = 'snowflake'", 'snowflake.worker_id = 1');
my $dir = PostgreSQL::Test::Utils::tempdir;

sql($old, q{
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE TABLE u (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), t bigint REFERENCES t);
	CREATE TABLE converted (id serial PRIMARY KEY);
	INSERT INTO converted SELECT FROM generate_series(1, 100);
	SELECT snowflake_convert('converted', generator => 'snowflake_nextval()');
	INSERT INTO converted SELECT FROM generate_series(1, 100);
	INSERT INTO t SELECT FROM generate_series(1, 20000);
	INSERT INTO u (t) SELECT id FROM t});

# Rows that come meanwhile are in the dump, or are not; none breaks a reference.
my @clients = start_clients($old, 2);
wait_for_clients(@clients);

sub dump_into ($database)
{
	is(system_log('sh', '-c', $_), 0, $_)
	  foreach Page::commands(
		$page->example(
			'pg_dump -Fd',
			"'dbname=shop host=old'" => '"' . $old->connstr('postgres') . '"',
			"'dbname=shop host=new'" => '"' . $new->connstr($database) . '"',
			'shop.dump' => "$dir/$database.dump"));
	return;
}

sql($new, 'CREATE DATABASE meanwhile');
dump_into('meanwhile');
end_clients($old);
my @lists = finish_clients(@clients);
is($new->safe_psql('meanwhile', q{
		SELECT (SELECT count(*) FROM t) >= 20000, (SELECT count(*) FROM u), (SELECT count(*) FROM converted)}),
	't|20000|200', 'a dump that clients write during has the rows of its beginning');

# When they have gone, no row is missing.
dump_into('postgres');
my $rows = 'SELECT count(*), sum(hashint8(id)), (SELECT count(*) FROM u), (SELECT count(*) FROM converted) FROM t';
is(sql($new, $rows), sql($old, $rows), 'the restored database has all rows');
cmp_ok(sql($new, 'SELECT count(*) FROM t'), '>', $new->safe_psql('meanwhile', 'SELECT count(*) FROM t'),
	'rows that were written after the dump had begun were not in it');
is(sql($new, q{
		SELECT count(*) FROM pg_attrdef WHERE pg_get_expr(adbin, adrelid) = 'snowflake_nextval()'}),
	3, 'the restored database has the defaults');

# A part of it, with the extension and without
sql($old, 'CREATE SCHEMA shop; CREATE TABLE shop.v (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
foreach my $options ([ '-t', 't' ], [ '-n', 'shop' ])
{
	my ($lacks, $has) = map { "$dir/part.$_" } 'lacks', 'has';

	$old->command_ok([ 'pg_dump', @$options, '-f', $lacks, '-d', $old->connstr('postgres') ], "pg_dump @$options");
	$old->command_ok([ 'pg_dump', @$options, '-e', 'snowflake', '-f', $has, '-d', $old->connstr('postgres') ], "pg_dump @$options -e snowflake");
	sql($new, "DROP DATABASE IF EXISTS part; CREATE DATABASE part");
	$new->command_checks_all([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $lacks, '-d', $new->connstr('part') ], 3, [],
		[qr/function public\.snowflake_nextval\(\) does not exist/], '... which cannot be restored without the extension');
	sql($new, "DROP DATABASE part; CREATE DATABASE part");
	$new->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $has, '-d', $new->connstr('part') ], '... and with -e snowflake can');
}
like($page->{text}, qr/With `-n` or `-t`, add `-e snowflake`/, 'the page says so');

# The IDs of the old server ran ahead of the clock; the mark is carried over.
sql($old, 'SELECT count(*) FROM snowflake_nextval(30000)');
my $last = sql($old, 'SELECT snowflake_nextval()');
my ($read, $set) = Page::commands(
	$page->example(
		'SELECT mark',
		"'dbname=shop host=old'" => '"' . $old->connstr('postgres') . '"',
		"'dbname=shop host=new'" => '"' . $new->connstr('postgres') . '"'));
my $mark = `$read`;
cmp_ok($mark, '>', $last, 'the mark of the old server is read');
$set =~ s/\(\d+\)/'(' . $mark =~ s{\n}{}r . ')'/e or die;
is(system_log('sh', '-c', $set), 0, $set);
cmp_ok(sql($new, 'SELECT snowflake_nextval()'),
	'>=', $mark, 'IDs of the new server are above the copied mark');

Page::all_taken();
