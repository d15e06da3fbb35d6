# The queries of the converter can be prepared and explained as they are in the files, and
# generate.awk says what is wrong with one.

use Page;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'allow_system_table_mods = on');

# The catalogs of Citus that queries read
sql($node, q{
	CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partkey text);
	CREATE TABLE pg_catalog.pg_dist_local_group (groupid int)});

sub generate (@arguments)
{
	my ($out, $err);

	my $ok = IPC::Run::run(
		[ 'awk', @arguments[ 0 .. $#arguments - 1 ],
			'-f', "$Page::top/convert/catalog/queries/generate.awk",
			ref $arguments[-1] ? @{ $arguments[-1] } : $arguments[-1] ],
		'>' => \$out,
		'2>' => \$err);
	return ($ok, $out, $err);
}

# As the Makefile has them
my @files = glob("$Page::top/convert/{queries,*/queries}/*.sql");
my ($ok, $sql, $err) = generate('-v', 'prepare=1',
	[ (grep { !/\/online\// } @files), 'set=online', grep { /\/online\// } @files ]);
my @queries = $sql =~ /^PREPARE (\w+)/mg;
cmp_ok(scalar(@queries), '>', 80, 'there are queries');
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

#
# What generate.awk makes of a query
#
my $folder = PostgreSQL::Test::Utils::tempdir();

sub generate_from ($text, @arguments)
{
	unlink "$folder/some.sql";
	append_to_file("$folder/some.sql", $text);
	return generate(@arguments, [ "$folder/some.sql", 'set=other', "$folder/other.sql" ]);
}

append_to_file("$folder/other.sql", <<'END');
-- cte: one(n)
SELECT $numbers[1]

-- name: other
SELECT * FROM two
END

my $some = <<'END';
-- parameters: numbers int4[],
--   number int4

-- snippet: twice(a, b)
format('%1$s, (%s', {a}, {b})

-- cte: one(n)
SELECT $number WHERE $number > 0

-- cte: two materialized
SELECT n + 1 AS n
FROM one

-- cte: some(n) union
SELECT 1
UNION
  SELECT 2
-- Another comment
SELECT 3

-- A comment
-- name: some
WITH RECURSIVE three AS (
  -- Another
  SELECT {twice('a, (', coalesce(n, 1))} FROM two)
SELECT E'\\d"' FROM three;

-- name: own
WITH one AS (SELECT 1 AS n) SELECT * FROM two

-- snippet: all(entries)
SELECT * FROM ({entries}) ORDER BY 1

-- snippet: hint(number, hint, query)
SELECT {number}, {hint} FROM ({query})

-- list: each all
-- hint: It's
--   this.
SELECT 1
-- hint: b
SELECT 2, 3

-- texts: a, number
-- name: given
SELECT $number, $a
END
($ok, my $out, $err) = generate_from($some);
is($err, '', 'generate.awk has nothing to say about a file');
is($out, <<'END', 'it makes constants of queries');
/* Made by generate.awk. */

static const Oid parameter_types[] = {
	InvalidOid,
	[parameter_numbers] = INT4ARRAYOID,
	[parameter_number] = INT4OID
};

enum
{
	first_piece = 6,
	npieces = 7
};

static const char all_texts[] =
/* twice */
"format('%1$s, (%s', \005\001, \005\002)\0"
/* one */
"one(n) AS (\n"
"SELECT \001\002 WHERE \001\002 > 0)\0"
/* two */
"two AS MATERIALIZED (\n"
"SELECT n + 1 AS n\n"
"FROM one)\0"
/* some */
"some(n) AS (\n"
"SELECT 1\n"
"UNION\n"
"SELECT 2\n"
"UNION ALL\n"
"SELECT 3)\0"
/* all */
"SELECT * FROM (\005\001) ORDER BY 1\0"
/* hint */
"SELECT \005\001, \005\002 FROM (\005\003)\0"
/* one */
"one(n) AS (\n"
"SELECT \001\001[1])\0"
/* some */
"\007\010\004,\n"
"three AS (\n"
"SELECT \002\006'a, ('\003coalesce(n, 1)\003\004 FROM two)\n"
"SELECT E'\\\\d\"' FROM three\0"
/* own */
"\010\004,\n"
"one AS (SELECT 1 AS n) SELECT * FROM two\0"
/* each */
"\004\002\012\002\0131\003'It''s this.'\003SELECT 1\003\004\n"
"UNION ALL\n"
"\002\0132\003'b'\003SELECT 2, 3\003\004\003\004\0"
/* given */
"\004SELECT $2, $1\0"
/* other */
"\014\010\004\n"
"SELECT * FROM two\0";
END

($ok, $out, $err) = generate_from($some, '-v', 'names=1');
is($out, <<'END', 'it makes names of parameters and queries');
/* Made by generate.awk. */

typedef enum SnowflakeParameter
{
	no_parameter,
	parameter_numbers,
	parameter_number,
	SNOWFLAKE_PARAMETERS
}	SnowflakeParameter;

typedef enum SnowflakeQuery
{
	sql_some,
	sql_own,
	sql_each,
	sql_given,
	sql_other,
	SNOWFLAKE_QUERIES
}	SnowflakeQuery;
END

foreach my $wrong (
	[ "SELECT 1\n", 'no name for SELECT 1' ],
	[ "-- name: a\nSELECT {b(1)}\n", 'no snippet b' ],
	[ "-- snippet: b(x, y)\n{x}\n-- name: a\nSELECT {b(1)}\n", 'snippet b has other arguments' ],
	[ "-- snippet: b(x)\n{x}\n-- name: a\nSELECT {b(1}\n", 'snippet b has no end' ],
	[ "-- list: a b\n-- hint: c\nSELECT 1\n", 'no snippet b' ],
	[ "-- parameters: numbers int4\n-- name: a\nSELECT \$b\n", 'no parameter b' ],
	[ "-- parameters: numbers int4\n\n-- texts: b\n-- name: a\nSELECT \$b, \$c\n", 'no parameter c' ])
{
	my ($text, $message) = @$wrong;

	($ok, $out, $err) = generate_from($text);
	ok(!$ok && $err =~ /^\S*some\.sql(?::\d+|, a): \Q$message\E$/, "it fails: $message") or diag($err);
}

done_testing();
