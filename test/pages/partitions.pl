# docs/partitions.md: each example, and what the page promises about it, except for
# pg_partman (test/worlds/systems/pg_partman.pl).

use Page;
use SnowflakeTest;

my $node = new_server('main', "timezone = 'UTC'", 'snowflake.worker_id = 1', 'max_locks_per_transaction = 128');
my $table = Page->claim('docs/partitions.md', 'Create a partitioned table');
my $next = Page->claim('docs/partitions.md', 'Create the next partitions');
my $after = Page->claim('docs/partitions.md', 'After a wrong clock');
my $oldest = Page->claim('docs/partitions.md', 'Drop the oldest partitions');
my $brin = Page->claim('docs/partitions.md', 'BRIN');
my $uuids = Page->claim('docs/partitions.md', 'UUIDs');
my $new_york = "SET timezone = 'America/New_York'; SET client_min_messages = warning;";

# The partitions of a table except for DEFAULT, with the times at which they begin and
# end, UTC.
sub partitions ($table)
{
	return sql($node, qq{
		SELECT c.relname, snowflake_timestamp(bound[1]::bigint), snowflake_timestamp(bound[2]::bigint)
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
			regexp_match(pg_get_expr(c.relpartbound, c.oid), \$\$FROM \\('(\\d+)'\\) TO \\('(\\d+)'\\)\$\$) bound
		WHERE i.inhparent = '$table'::regclass AND bound IS NOT NULL ORDER BY bound[1]::bigint});
}

# The table, created by a session with another time zone
my $events = $table->example('CREATE TABLE event_tags');
sql($node, $new_york . $events);
is(partitions('events'), 'events_2026_11|2026-11-01 00:00:00+00|2026-12-01 00:00:00+00',
	'a partition has the bounds of a month in UTC');
is( sql($node, q{
		INSERT INTO events
		VALUES (snowflake_make('2026-11-01 00:00+00', 0, 0)), (snowflake_make('2026-11-30 23:59:59.999+00', 1023, 4095))
		RETURNING tableoid::regclass}),
	"events_2026_11\nevents_2026_11", 'the first and the last ID of a month are in its partition');
foreach my $outside ("'2026-10-31 23:59:59.999+00', 1023, 4095", "'2026-12-01 00:00+00', 0, 0")
{
	sql_fails($node, "INSERT INTO events VALUES (snowflake_make($outside))",
		qr/23514: no partition/, "an ID outside of the month is not in its partition: $outside");
}
sql_fails($node, "INSERT INTO event_tags VALUES (1, 'x')",
	qr/23503/, 'a foreign key to the partitioned table is checked');
sql($node, "INSERT INTO events VALUES (snowflake_make('2026-11-21', 0, 0)), (snowflake_make('2026-11-21 23:59', 0, 0)), (snowflake_make('2026-11-22', 0, 0))");
is(sql($node, $table->example('snowflake_within(id, \'[')),
	2, 'the page\'s query counts the rows of a day');

# The next partitions.  Each begins when the one before ends, as months do in UTC.
my $create = $next->example('CREATE PROCEDURE');
sql($node, "$new_york $create CALL create_partitions('events', 14); CALL create_partitions('events', 14)");
my @found = split /\n/, partitions('events');
my @months = split /\n/, sql($node, q{
	SELECT format('%s|%s|%s', 'events_' || to_char(m, 'YYYY_MM'), m, m + interval '1 month')
	FROM generate_series(date_trunc('month', now()), date_trunc('month', now()) + interval '14 months', '1 month') m});
my %found = map { $_ => 1 } @found;
is(join("\n", grep { !$found{$_} } @months), '', 'the procedure creates the current and the next months in UTC');
cmp_ok(scalar(@found), '<=', @months + 1, 'the procedure creates no other partitions');
ok(sql($node, 'INSERT INTO events DEFAULT VALUES RETURNING id'), 'a new ID has a partition');
is( sql($node, q{
		SELECT count(*) FROM pg_index x JOIN pg_inherits i ON i.inhrelid = x.indrelid
		WHERE i.inhparent = 'events'::regclass AND NOT indisprimary}),
	0, 'a partition has the primary key, and no second index for it');
is(sql($node, q{SELECT count(*) FROM pg_attrdef WHERE adrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'events'::regclass)}),
	scalar(@found), 'a partition has the default');

# A schema and a table with names that need quotes
sql($node, q{
	CREATE SCHEMA "The Shop";
	CREATE TABLE "The Shop"."All Orders" (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
	CALL create_partitions('"The Shop"."All Orders"', 0);
	INSERT INTO "The Shop"."All Orders" DEFAULT VALUES});

# Readers and writers are not blocked, and do not block.
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; SELECT count(*) FROM events; INSERT INTO events DEFAULT VALUES');
sql($node, "CALL create_partitions('events', 15)");
is(scalar(split /\n/, partitions('events')), @found + 1, 'a partition is created beside a transaction that writes to the table');
$reader->query_safe('COMMIT');

# pg_cron is given a command that works; here is something that takes it.
my $schedule = $next->example('cron.schedule');
sql($node, q{
	CREATE SCHEMA cron;
	CREATE FUNCTION cron.schedule(job_name text, schedule text, command text) RETURNS text LANGUAGE sql RETURN command});
my $command = sql($node, $schedule);
sql($node, "$new_york $command");
like($command, qr/^CALL create_partitions/, 'the scheduled command is executed');

is(sql($node, $next->example('partitions_until')),
	sql($node, q{SELECT date_trunc('month', now()) + interval '16 months'}),
	'the page\'s query returns where the partitions end');

# The oldest partitions, beside a reader
sql($node, "$new_york $_") foreach (q{CREATE TABLE events_2023_12 PARTITION OF events
	FOR VALUES FROM (snowflake_lower_bound('2023-12-01 00:00+00')) TO (snowflake_lower_bound('2024-01-01 00:00+00'))},
	q{CREATE TABLE events_2024_01 PARTITION OF events
	FOR VALUES FROM (snowflake_lower_bound('2024-01-01 00:00+00')) TO (snowflake_lower_bound('2024-02-01 00:00+00'))},
	q{INSERT INTO events VALUES (snowflake_make('2024-01-15', 0, 0))});
my $drop = $oldest->example('CONCURRENTLY\', p)');
sql($node, "$new_york $drop");
unlike(partitions('events'), qr/2023|2024/, 'the page\'s statements drop the oldest partitions');
is(scalar(split /\n/, partitions('events')), @found + 1, 'the page\'s statements drop no other partitions');
sql($node, "INSERT INTO event_tags SELECT max(id), 'x' FROM events_2026_11");
sql_fails($node, 'ALTER TABLE events DETACH PARTITION events_2026_11 CONCURRENTLY',
	qr/23503/, 'a partition with rows that are referenced is not detached');
sql($node, 'CREATE TABLE events_default PARTITION OF events DEFAULT');
sql_fails($node, 'ALTER TABLE events DETACH PARTITION events_2026_11 CONCURRENTLY',
	qr/cannot detach partitions concurrently when a default partition exists/,
	'with a DEFAULT partition none can be detached concurrently');

# BRIN
my ($index, $query) = $brin->example('USING brin') =~ /\A(.*?\n\n)(.*)\z/s;
sql($node, $index . 'INSERT INTO log_lines (line) SELECT repeat(\'x\', 200) FROM generate_series(1, 100000); VACUUM ANALYZE log_lines; CREATE INDEX btree ON log_lines (id)');
is(sql($node, 'SELECT pg_relation_size(\'log_lines_id_idx\') * 20 < pg_relation_size(\'btree\')'),
	't', 'a BRIN index takes less than a twentieth of a B-tree');
sql($node, 'DROP INDEX btree');
is(sql($node, $query), 100000, 'the page\'s query counts the lines of an hour');
like(
	sql($node, q{EXPLAIN SELECT count(*) FROM log_lines WHERE snowflake_within(id, tstzrange(now() + interval '1 hour', NULL))}),
	qr/Bitmap Index Scan on log_lines_id_idx/, 'the BRIN index is used for a range of times');

# UUIDs
sql($node, $new_york . $uuids->example('sessions_2026_11'));
is( sql($node, q{
		INSERT INTO sessions VALUES (uuid_lower_bound('2026-11-01 00:00+00')), ('01a22ee6-afff-7fff-bfff-ffffffffffff')
		RETURNING uuid_timestamp(id)}), "2026-11-01 00:00:00+00\n2026-11-30 23:59:59.999+00",
	'the first and the last UUID of a month are in its partition');
sql_fails($node, q{INSERT INTO sessions VALUES (uuid_lower_bound('2026-12-01 00:00+00'))},
	qr/23514: no partition/, 'a UUID of the next month is not');

$node->stop;

# A clock that was ahead
my $clocks = new_server_with_clock('clocks', 'snowflake.worker_id = 1', "timezone = 'UTC'");
sql($clocks, "$events $create CALL create_partitions('events')");
my $insert = 'INSERT INTO events DEFAULT VALUES';
sql($clocks, $insert);
foreach my $remedy ('snowflake_set_mark', 'create_partitions')
{
	set_clock($clocks, 200 * 86400);
	sql_fails($clocks, $insert, qr/23514: no partition of relation "events" found for row/, 'a clock that is 200 days ahead has no partition');
	set_clock($clocks, 0);
	sql_fails($clocks, $insert, qr/23514: no partition/, 'nor is there one when it is right again');
	sql($clocks, "SET client_min_messages = error; " . $after->example($remedy));
	is(sql_error($clocks, $insert), '', "but there is after $remedy()");
}

# With one that is years ahead
set_clock($clocks, 9 * 365 * 86400);
sql($clocks, "$new_york $drop");
cmp_ok(sql($clocks, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass"),
	'>', 12, 'a clock that is years ahead has no partitions dropped');
Page::all_taken();
