# What docs/decoding.md and docs/schemes.md say: each example, word for word, and
# what it promises.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('main', "timezone = 'UTC'");
my $decoding = Page->claim('docs/decoding.md');

# Orders of three days, one an hour.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	INSERT INTO orders
	SELECT snowflake_make(t, 0, 0)
	FROM generate_series('2026-11-20 00:00+00'::timestamptz, '2026-11-22 23:00+00', '1 hour') t});

is($node->safe_psql('postgres', $decoding->example('LIMIT 1')) =~ s/^\d+\|//r,
	'2026-11-22 23:00:00+00', 'the time of the last');
my $day = $decoding->example("'2026-11-21') AND");
is($node->safe_psql('postgres', $day), '24', 'the rows of a day');

# Time zones
my $other = $decoding->example('2026-11-21 00:00+00\') AND');
foreach my $zone ('UTC', 'Asia/Tokyo', 'America/New_York')
{
	is($node->safe_psql('postgres', "SET timezone = '$zone'; $other"),
		"24\n24", "days with a time zone, for one in $zone");
}
is( $node->safe_psql(
		'postgres',
		"SET timezone = 'America/New_York'; DELETE FROM orders WHERE id < snowflake_lower_bound('2026-11-21'); $day"
	),
	24,
	'the day of New York');
is($node->safe_psql('postgres', $day),
	19, 'has five hours less of the day in UTC');
is($node->safe_psql('postgres', $decoding->example('date_trunc')),
	"2026-11-20 23:00:00+00|18\n2026-11-21 23:00:00+00|24\n2026-11-22 23:00:00+00|1",
	'rows per day of a zone');

# Partitions
$node->safe_psql('postgres', $decoding->example('PARTITION OF measurements'));
is( $node->safe_psql(
		'postgres', q{
		INSERT INTO measurements
		VALUES (snowflake_make('2026-01-01 00:00+00', 0, 0)), (snowflake_make('2026-12-31 23:59:59.999+00', 1023, 4095))
		RETURNING tableoid::regclass}),
	"measurements_2026\nmeasurements_2026",
	'the first and the last of a year');
foreach my $outside ("'2025-12-31 23:59:59.999+00', 1023, 4095",
	"'2027-01-01 00:00+00', 0, 0")
{
	like(
		sql_error(
			$node, "INSERT INTO measurements VALUES (snowflake_make($outside))"),
		qr/23514: no partition/,
		"not $outside");
}

# Foreign tables
my @far =
  map { $decoding->example($_) } '(SELECT snowflake_lower_bound', "', 'shardingsphere');\n";
SKIP:
{
	my ($host, $port) = ($node->host, $node->port);

	skip 'postgres_fdw is not installed', 6
	  if !$node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}
	  );
	$node->safe_psql(
		'postgres', qq{
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
		    OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER far;
		CREATE FOREIGN TABLE far_orders (id bigint) SERVER far OPTIONS (table_name 'orders')});

	my $here = 'SELECT count(*) FROM far_orders WHERE id >= snowflake_lower_bound(now());';
	my $plan = $node->safe_psql('postgres', "EXPLAIN VERBOSE $here");
	like($plan, qr/Filter: .*snowflake_lower_bound/,
		'a function is computed here');
	unlike($plan, qr/Remote SQL: .*WHERE/, 'for all rows');

	foreach my $query (@far)
	{
		like($node->safe_psql('postgres', "EXPLAIN VERBOSE $query"),
			qr/Remote SQL: .*WHERE \(\(id >= /, "sent to the other server");
		$node->safe_psql('postgres', $query);
	}
}

# A generated column, and RETURNING with a form that is immutable
$node->safe_psql('postgres', $decoding->example('GENERATED ALWAYS'));
is( $node->safe_psql(
		'postgres',
		q{SELECT count(*), count(*) FILTER (WHERE created_at = snowflake_timestamp(id)) FROM orders}
	),
	'43|43',
	'a generated column');
like(
	$node->safe_psql('postgres', $decoding->example('RETURNING')),
	qr/^\d+\|20\d\d-/, 'the form for Citus');
is( $node->safe_psql(
		'postgres', q{
		SELECT provolatile FROM pg_proc
		WHERE oid = 'snowflake_timestamp(bigint, text)'::regprocedure}),
	'i',
	'is immutable');

# Old rows
my ($make) = $decoding->{text} =~ /`(UPDATE t SET [^`]*)`/;
is( $node->safe_psql(
		'postgres', qq{
		CREATE TABLE t (id bigint PRIMARY KEY, n int, created_at timestamptz);
		INSERT INTO t SELECT n, n, timestamptz '2024-02-29 12:00' + n / 10 * interval '1 s' FROM generate_series(1, 100) n;
		$make;
		SELECT count(*) FROM t WHERE snowflake_timestamp(id) = created_at}),
	100,
	'old rows have IDs by their time');

# The schemes of docs/schemes.md
my $page = Page->look('docs/schemes.md')->{text};
my %schemes = $page =~ /^\| `(\w+)` \| `(epoch=\S+)` \|$/mg;
is( join("\n", map { "$_|$schemes{$_}" } sort keys %schemes),
	$node->safe_psql(
		'postgres',
		'SELECT name, scheme FROM snowflake_schemes() ORDER BY name COLLATE "C"'
	),
	'all names and texts');
foreach my $scheme ($page =~ /`([^`\n]*[\w]+=[^`\n]*)`/g)
{
	next if $scheme =~ /^key=|^epoch=\d+$/;
	is( $node->safe_psql(
			'postgres',
			"SELECT snowflake_timestamp(1, '$scheme') IS NOT NULL"),
		't',
		"can be read: $scheme");
}
my @refused = $page =~ /`(epoch=\d+)`/g;
is(@refused, 3, 'numbers that are no epoch');
foreach my $epoch (@refused)
{
	like(
		sql_error(
			$node, "SELECT snowflake_parse(1, 'twitter,$epoch')"),
		qr/22023: .*use (2024-01-01|1704067200000)\./s,
		"$epoch is refused");
}

$node->stop;

Page::all_taken();
done_testing();
