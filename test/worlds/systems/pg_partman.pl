# pg_partman with snowflake IDs and UUIDs, as docs/partitions.md has it, with version 4
# or 5, whichever is installed.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/partitions.md', 'pg_partman');
my $node = new_server('main', "timezone = 'UTC'", 'snowflake.worker_id = 1', 'max_locks_per_transaction = 128');
my $new_york = "SET timezone = 'America/New_York'; SET client_min_messages = warning;";
my $by_id = 'id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id)';
my $by_uuid = 'id uuid PRIMARY KEY DEFAULT uuid_v7()) PARTITION BY RANGE (id)';

# The first bound of each partition except for DEFAULT, as a time, in order.
sub starts ($table, $type, $timestamp)
{
	return split /\n/, sql($node, qq{
		SELECT $timestamp(bound[1]::$type)
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
			regexp_match(pg_get_expr(c.relpartbound, c.oid), \$\$FROM \\('([^']+)'\\)\$\$) bound
		WHERE i.inhparent = '$table'::regclass AND bound IS NOT NULL ORDER BY 1});
}

sub starts_of_ids { return starts($_[0], 'bigint', 'snowflake_timestamp'); }

sub starts_of_uuids { return starts($_[0], 'uuid', 'uuid_timestamp'); }

sub maintain { return sql($node, 'CALL partman.run_maintenance_proc()'); }

# Both versions of the example; the installed one is called.
my ($extension, $parent, $retention) = split /\n\n/, $page->example("'native'");
my $parent_5 = $page->example("'id', (86400000");
sql($node, $extension);
my $version = sql($node,
	q{SELECT split_part(extversion, '.', 1) FROM pg_extension WHERE extname = 'pg_partman'});
note "pg_partman $version";
my $native = $version < 5 ? "'native', " : '';

# IDs
sql($node, "CREATE TABLE events ($by_id");
sql($node, $new_york . ($version < 5 ? $parent : $parent_5) . $retention);
my $today = sql($node, q{SELECT date_trunc('day', now(), 'UTC')});
my $days = sub ($from, $to) {
	return sql($node,
		"SELECT n FROM generate_series(timestamptz '$today' + interval '$from days', timestamptz '$today' + interval '$to days', '1 day') n");
};
is(join("\n", starts_of_ids('events')), $days->(0, 30),
	'pg_partman creates partitions that begin at midnight, UTC');
my $filled = sub { sql($node, 'SELECT count(*) FROM events_default') };
sql($node, 'INSERT INTO events DEFAULT VALUES');
sql($node, qq{INSERT INTO events
	SELECT snowflake_lower_bound(timestamptz '$today' + n * interval '1 day') FROM generate_series(0, 25) n});
is($filled->(), 0, 'rows have partitions');
maintain();
is(join("\n", starts_of_ids('events')), $days->(0, 25 + 30), 'premake counts from the last ID');
sql($node, q{UPDATE partman.part_config SET retention = (10 * 86400000::bigint << 22)::text});
maintain();
is(join("\n", starts_of_ids('events')), $days->(25 - 10, 25 + 30), 'retention counts from the last ID');
sql($node, q{INSERT INTO events
	VALUES (snowflake_make(now() + interval '90 days', 0, 0)), (snowflake_make(now() + interval '80 days', 0, 0))});
is($filled->(), 2, 'rows after a long pause go into the DEFAULT partition');
is(sql($node, 'SELECT * FROM partman.check_default()'),
	'public.events_default|2', 'check_default() reports them');
if ($version < 5)
{
	like(sql_error($node, 'CALL partman.run_maintenance_proc()'),
		qr/updated partition constraint for default partition .* would be violated/,
		'then maintenance fails');
}
else
{
	maintain();
	is(join("\n", starts_of_ids('events')), $days->(25 - 10, 25 + 30), 'then maintenance creates no partitions');
}
sql($node, q{SELECT partman.partition_data_id('public.events', p_batch_count => 10)});
is($filled->(), 0, 'partition_data_id() moves them');
maintain();
is(sql($node, q{INSERT INTO events VALUES (snowflake_make(now() + interval '100 days', 0, 0)) RETURNING tableoid::regclass <> 'events_default'::regclass}),
	't', 'then maintenance creates partitions again');
sql($node, q{DROP TABLE events; DELETE FROM partman.part_config});

sql($node, "CREATE TABLE by_epoch ($by_id");
sql($node,
	"SELECT partman.create_parent('public.by_epoch', 'id', $native'1 day', p_epoch => 'milliseconds')");
is(sql($node, 'INSERT INTO by_epoch DEFAULT VALUES RETURNING tableoid::regclass'),
	'by_epoch_default', 'with p_epoch, new rows go into the DEFAULT partition');

# UUIDs, and times as IDs
my ($function, $table, $call) = split /\n\n/, $page->example('uuid_text_timestamp');
sql($node, "$function $table");
is( sql($node, q{SELECT bool_and(uuid_text_timestamp(u::text) = uuid_timestamp(u)) FROM (SELECT uuid_v7() AS u) t}),
	't', 'the decoder for texts returns the same time');
if ($version < 5)
{
	like(sql_error($node, "SELECT partman.create_parent('public.logins', 'id', 'native', '1 day')"),
		qr/only supports partitioning of data types that are integer or date/, 'version 4 refuses UUIDs');
}
else
{
	sql($node, qq{
		CREATE TABLE encoded ($by_id;
		CREATE FUNCTION encode(t timestamptz) RETURNS bigint LANGUAGE sql RETURN snowflake_lower_bound(t);
		CREATE FUNCTION decode(id text) RETURNS timestamptz LANGUAGE sql RETURN snowflake_timestamp(id::bigint)});
	like(
		sql_error($node, q{SELECT partman.create_parent('public.encoded', 'id', '1 day',
			p_time_encoder => 'public.encode', p_time_decoder => 'public.decode')}),
		qr/can only be used with text\/uuid type control column/,
		'an encoder is refused for a bigint');

	sql($node, $call);
	is(join("\n", starts_of_uuids('logins')), $days->(-4, 4), 'partitions of UUIDs begin at midnight');
	sql($node, q{UPDATE partman.part_config SET premake = 10 WHERE parent_table = 'public.logins'});
	is(sql($node, 'INSERT INTO logins DEFAULT VALUES RETURNING tableoid::regclass <> \'logins_default\'::regclass'),
		't', 'a new UUID has a partition');
	maintain();
	is(join("\n", starts_of_uuids('logins')), $days->(-4, 10), 'maintenance creates the next partitions of UUIDs');
	sql($node,
		q{UPDATE partman.part_config SET retention = '2 days', retention_keep_table = false WHERE parent_table = 'public.logins'});
	maintain();
	is(join("\n", starts_of_uuids('logins')), $days->(-2, 10), 'maintenance drops the oldest partitions of UUIDs');

	sql($node, 'CREATE TABLE elsewhere (' . $by_uuid);
	sql($node, $new_york . $call =~ s/logins/elsewhere/r);
	is(scalar(grep { / 0[45]:00:00\+00$/ } starts_of_uuids('elsewhere')),
		9, 'days of UUIDs begin at midnight in the session\'s time zone');

	sql($node, "CREATE TABLE broken ($by_uuid");
	sql($node, $call =~ s/logins/broken/r =~ s/uuid_text_timestamp/uuid_timestamp/r);
	like(sql_error($node, q{SELECT partman.run_maintenance('public.broken')}),
		qr/function public\.uuid_timestamp\(text\) does not exist/,
		'uuid_timestamp() as decoder is accepted, and then maintenance fails');
}

Page::all_taken();
