# The queries of the converter can be prepared and explained as they are in the files, and
# generate.awk says what is wrong with one.

use Page;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'allow_system_table_mods = on');

# The catalogs of Citus that queries read
$node->safe_psql('postgres', q{
	CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partkey text);
	CREATE TABLE pg_catalog.pg_dist_local_group (groupid int)});

sub generate
{
	my (@arguments) = @_;
	my ($out, $err);

	my $ok = IPC::Run::run(
		[ 'awk', @arguments[ 0 .. $#arguments - 1 ],
			'-f', "$Page::top/convert/catalog/queries/generate.awk",
			ref $arguments[-1] ? @{ $arguments[-1] } : $arguments[-1] ],
		'>' => \$out,
		'2>' => \$err);
	return ($ok, $out, $err);
}

# The files of direct and online conversions, and those that they share
my $shared = "$Page::top/convert/catalog/queries/shared.sql";
foreach my $files (
	[ $shared, grep { !m{/online/} && $_ ne $shared } glob("$Page::top/convert/{queries,*/queries}/*.sql") ],
	[ $shared, "$Page::top/convert/catalog/queries/views.sql", glob("$Page::top/convert/online/queries/*.sql") ])
{
	my $folder = $files->[-1] =~ s/^\Q$Page::top\E\///r =~ s/\/[^\/]*$//r;
	my ($ok, $sql, $err) = generate('-v', 'prepare=1', $files);
	my @queries = $sql =~ /^PREPARE (\w+)/mg;
	cmp_ok(scalar(@queries), '>', 20, "there are queries in $folder");
	is($err, '', 'generate.awk has nothing to say about them');
	my $explain = join '', map { qq{
		SELECT format('EXPLAIN EXECUTE $_ %s', '(' || nullif(array_to_string(array_fill('NULL'::text,
			ARRAY[cardinality(parameter_types)]), ','), '') || ')')
		FROM pg_prepared_statements WHERE name = '$_' \\gexec
	} } @queries;
	my ($rc, $plans, $error) =
	  $node->psql('postgres', "SET search_path = pg_catalog;\n$sql$explain", on_error_stop => 1);
	is($error, '', 'each query is prepared and explained');
	my $explained = () = $plans =~ /^\w[^\n]*\(cost=/mg;
	cmp_ok($explained, '>=', scalar(@queries), 'each has a plan');
}

#
# What generate.awk makes of a query
#
my $folder = PostgreSQL::Test::Utils::tempdir();

sub generate_from
{
	my ($text, @arguments) = @_;

	append_to_file("$folder/shared.sql", "-- parameters: int\n") if !-e "$folder/shared.sql";
	unlink "$folder/some.sql";
	append_to_file("$folder/some.sql", $text);
	return generate(@arguments, [ "$folder/shared.sql", "$folder/some.sql" ]);
}

my ($ok, $out, $err) = generate_from(<<'END');
-- snippet: twice(a, b)
format('%s, (%s', {a}, {b})

-- cte: one(n)
SELECT 1

-- cte: two materialized
-- with: one
SELECT n + 1 AS n FROM one

-- A comment
-- name: some
-- with: two
WITH RECURSIVE three AS (
  -- Another
  SELECT {twice('a, (', coalesce(n, 1))} FROM two)
SELECT E'\\d"' FROM three;

-- snippet: all(entries)
SELECT * FROM ({entries}) ORDER BY 1

-- list: each all
-- hint: It's
--   this.
SELECT 1
-- hint: b
SELECT 2
END
is($err, '', 'generate.awk has nothing to say about a file');
is($out, <<'END', 'it makes constants of queries');
/* Made from some.sql by generate.awk. */

static const char sql_some[] =
"WITH RECURSIVE one(n) AS (\n"
"SELECT 1),\n"
"two AS MATERIALIZED (\n"
"SELECT n + 1 AS n FROM one),\n"
"three AS (\n"
"  SELECT format('%s, (%s', 'a, (', coalesce(n, 1)) FROM two)\n"
"SELECT E'\\\\d\"' FROM three";

static const char sql_each[] =
"SELECT * FROM (SELECT 1, 'It''s this.', o.* FROM (\n"
"SELECT 1) o\n"
"UNION ALL\n"
"SELECT 2, 'b', o.* FROM (\n"
"SELECT 2) o) ORDER BY 1";
END

foreach my $wrong (
	[ "SELECT 1\n", 'no name for SELECT 1' ],
	[ "-- name: a\n-- with: b\nSELECT 1\n", 'no CTE b' ],
	[ "-- name: a\nSELECT {b(1)}\n", 'no snippet b' ],
	[ "-- snippet: b(x)\n{x}\n-- name: a\nSELECT {b(1, 2)}\n", 'snippet b has other parameters' ],
	[ "-- snippet: b(x)\n{x}\n-- name: a\nSELECT {b(1}\n", 'snippet b has no end' ],
	[ "-- list: a b\n-- hint: c\nSELECT 1\n", 'no snippet b' ])
{
	my ($text, $message) = @$wrong;

	($ok, $out, $err) = generate_from($text);
	ok(!$ok && $err =~ /^\S*some\.sql(?::\d+|, a): \Q$message\E$/, "it fails: $message") or diag($err);
}

done_testing();
