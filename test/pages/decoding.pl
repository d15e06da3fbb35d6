# What docs/decoding.md and docs/schemes.md say: each example, word for word, and
# what it promises.

use Page;
use SnowflakeTest;

my $node = new_server('main', "timezone = 'UTC'");
my $decoding = Page->claim('docs/decoding.md');

# Orders of three days, one an hour.
sql($node, q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	INSERT INTO orders
	SELECT snowflake_make(t, 0, 0)
	FROM generate_series('2026-11-20 00:00+00'::timestamptz, '2026-11-22 23:00+00', '1 hour') t});

is(sql($node, $decoding->example('LIMIT 1')) =~ s/^\d+\|//r,
	'2026-11-22 23:00:00+00', 'the page\'s query returns the time of the last row');
my $day = $decoding->example("'2026-11-21') AND");
is(sql($node, $day), '24', 'the page\'s query counts the rows of a day');

like(sql($node, $decoding->example('snowflake_within')),
	qr/^24\n\d+$/, 'the page\'s queries count the rows of ranges');

# What the page says to write returns what it is written instead of.
my @instead = $decoding->{text} =~ /^\| `(snowflake_timestamp\(id\) .*)` \| `(.*)` \|$/mg;
is(@instead, 8, 'the page has 4 conditions with better ones');
foreach my $n (0 .. @instead / 2 - 1)
{
	my ($slow, $fast) = @instead[ 2 * $n, 2 * $n + 1 ];
	my $wrong = "SELECT count(*) FROM orders,
		(VALUES (timestamptz '2026-11-21', timestamptz '2026-11-21', timestamptz '2026-11-22')) v(t, a, b),
		LATERAL (SELECT tstzrange(a, b) AS range) r WHERE ($slow) <> ($fast)";

	is(sql($node, $wrong), 0, "the page's condition is the same: $fast");
}

# Time zones
my $other = $decoding->example('2026-11-21 00:00+00\') AND');
foreach my $zone ('UTC', 'Asia/Tokyo', 'America/New_York')
{
	is(sql($node, "SET timezone = '$zone'; $other"),
		"24\n24", "a day with a time zone is the same for a session in $zone");
}
is(sql($node, "SET timezone = 'America/New_York'; DELETE FROM orders WHERE id < snowflake_lower_bound('2026-11-21'); $day"
	), 24, 'a session in New York counts its own day');
is(sql($node, $day), 19, 'a day in UTC is another one than in New York');
is(sql($node, $decoding->example("date_trunc('day'")),
	"2026-11-20 23:00:00+00|18\n2026-11-21 23:00:00+00|24\n2026-11-22 23:00:00+00|1",
	'the page\'s query counts rows per day of a time zone');

# Foreign tables
my @far =
  map { $decoding->example($_) } '(SELECT snowflake_lower_bound', "far_orders\nWHERE id >= snowflake_lower_bound('";
SKIP:
{
	my ($host, $port) = ($node->host, $node->port);

	skip 'postgres_fdw is not installed', 6
	  if !sql($node, q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'});
	sql($node, qq{
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
		    OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER far;
		CREATE FOREIGN TABLE far_orders (id bigint) SERVER far OPTIONS (table_name 'orders')});

	my $here = 'SELECT count(*) FROM far_orders WHERE id >= snowflake_lower_bound(now());';
	my $plan = sql($node, "EXPLAIN VERBOSE $here");
	like($plan, qr/Filter: .*snowflake_lower_bound/,
		'postgres_fdw evaluates a function locally');
	unlike($plan, qr/Remote SQL: .*WHERE/, 'postgres_fdw fetches all rows for a function');

	foreach my $query (@far)
	{
		like(sql($node, "EXPLAIN VERBOSE $query"),
			qr/Remote SQL: .*WHERE \(\(id >= /, "a bound is sent to the other server");
		sql($node, $query);
	}
}

# A generated column, and RETURNING with a form that is immutable
sql($node, $decoding->example('GENERATED ALWAYS'));
is(sql($node, q{SELECT count(*), count(*) FILTER (WHERE created_at = snowflake_timestamp(id)) FROM orders}
	), '43|43', 'a generated column has the time of the ID');
like(sql($node, $decoding->example('DEFAULT VALUES RETURNING')),
	qr/^\d+\|20\d\d-/, 'the form for Citus returns a time');
is( sql($node, q{
		SELECT provolatile FROM pg_proc
		WHERE oid = 'snowflake_timestamp(bigint, text)'::regprocedure}),
	'i', 'the form for Citus is immutable');

# Old rows
my $make = $decoding->example('UPDATE orders');
is( sql($node, qq{
		DROP TABLE orders;
		CREATE TABLE orders (id bigint PRIMARY KEY, created_at timestamptz);
		INSERT INTO orders SELECT n, timestamptz '2024-02-29 12:00' + n / 10 * interval '1 s' FROM generate_series(1, 100) n;
		INSERT INTO orders VALUES (snowflake_nextval(), '2024-02-29 12:00');
		$make
		SELECT count(*), count(*) FILTER (WHERE snowflake_timestamp(id) = created_at) FROM orders}),
	'101|100', 'old rows have IDs by their time, and new rows are not changed');
sql($node, "INSERT INTO orders SELECT n, '2024-03-01 12:00' FROM generate_series(1, 4097) n");
sql_fails($node, $make, qr/ERROR:  22003: /, 'a millisecond has 4096 numbers');
my $late = $decoding->example('floor(random()');
sql($node, $late) foreach 1 .. 20;
cmp_ok(sql($node, q{SELECT count(*) FROM orders WHERE created_at = '2026-11-20 12:00+00' AND snowflake_timestamp(id) = created_at}), '>', 15,
	'rows of the past that keep coming have IDs by their time');
sql($node, q{INSERT INTO orders SELECT snowflake_make('2026-11-20 12:00+00', 0, n), '2026-11-20 12:00+00' FROM generate_series(0, 4095) n ON CONFLICT DO NOTHING});
is(sql($node, $late), '', '... and no row comes back if the number is in use');

# The schemes of docs/schemes.md
my $page = Page->look('docs/schemes.md')->{text};
my %schemes = $page =~ /^\| `(\w+)` \| `(epoch=\S+)` \|/mg;
is(join("\n", map { "$_|$schemes{$_}" } sort keys %schemes),
	sql($node, 'SELECT name, scheme FROM snowflake_schemes() ORDER BY name COLLATE "C"'),
	'docs/schemes.md has all names and texts');
foreach my $scheme ($page =~ /`([^`\n]*[\w]+=[^`\n]*)`/g)
{
	next if $scheme =~ /^key=|^epoch=\d+$/;
	is(sql($node, "SELECT snowflake_timestamp(1, '$scheme') IS NOT NULL"),
		't', "a scheme of docs/schemes.md can be read: $scheme");
}
my @refused = $page =~ /`(epoch=\d+)`/g;
is(@refused, 3, 'docs/schemes.md has 3 numbers that are refused as epochs');
foreach my $epoch (@refused)
{
	sql_fails($node, "SELECT snowflake_parse(1, 'twitter,$epoch')",
		qr/22023: .*use (2024-01-01|1704067200000)\./s,
		"$epoch is refused, and the hint has the right text");
}

Page::all_taken();
