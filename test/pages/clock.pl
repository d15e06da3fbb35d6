# docs/clock.md, step by step, for a server whose clock was ten days ahead.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/clock.md');
my $see = $page->example('lead_ms');
my $accept = $page->example('SELECT snowflake_accept_clock');
my $tables = $page->example('pg_attrdef');
my $find = $page->example('SELECT count(*)');
my $leave = $page->example('BEGIN');

my $node = new_server_with_clock('main');
sql($node, q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n serial);
	INSERT INTO orders SELECT FROM generate_series(1, 1000)});

# See it
sub look { return split /\|/, sql($node, $see); }
my ($last, $lead, $clock_steps) = look();
cmp_ok($lead, '<', 100, 'there is no lead at first');

# Ten days ahead, and set right
set_clock($node, 10 * 86400);
sql($node, 'INSERT INTO orders SELECT FROM generate_series(1, 500)');
set_clock($node, 0);
sql($node, 'INSERT INTO orders SELECT FROM generate_series(1, 500)');
($last, $lead, $clock_steps) = look();
cmp_ok($lead, '>', 863_000_000, 'after a wrong clock there is a lead of ten days');
my ($count) = split /\|/, sql($node, $find);
is($count, 1000, 'the rows from the future are found');

# All tables that have IDs are found, and no other columns.
sql($node, q{
	CREATE TABLE named (code text DEFAULT 'o_' || snowflake_encode(snowflake_id()), id int GENERATED ALWAYS AS IDENTITY, at timestamptz DEFAULT now());
	CREATE TABLE numbered (id bigserial);
	SELECT snowflake_set_sequence_kind('numbered_id_seq')});
is(sql($node, $tables), "named|code\nnumbered|id\norders|id", 'the columns that have IDs are found');
sql($node, 'DROP TABLE named, numbered');

# What must not be done is refused.
my $refused = sql_error($node,
	"SELECT snowflake_set_mark(snowflake_lower_bound(now()), '{orders}')");
like($refused, qr/ERROR:  55000: column id of table public\.orders has IDs at or above the new mark/,
	'the mark is not lowered below stored IDs');

# Leave the lead behind
is($node->psql('postgres', $leave, on_error_stop => 1), 0, 'the statements that replace IDs run');
($last, $lead) = look();
cmp_ok($lead, '<', 2000, 'the lead is gone after IDs were replaced');
($count) = split /\|/, sql($node, $find);
cmp_ok($count, '<=', 1000, 'no row from the future is left');
is( sql($node, q{
		SELECT count(*), count(DISTINCT id), bool_and(id > 0),
			   max(snowflake_timestamp(id)) < clock_timestamp() + interval '2 s'
		FROM orders}), '2000|2000|t|t', 'no row is lost, and all times are right');
sql($node, 'INSERT INTO orders DEFAULT VALUES');
is(sql($node, 'SELECT count(*) = 2001 AND (SELECT n FROM orders ORDER BY id DESC LIMIT 1) = 2001 FROM orders'),
	't', 'IDs continue above the replaced ones');

# A jump that is not followed, and accepted
set_clock($node, 400 * 86400);
sql($node, 'INSERT INTO orders DEFAULT VALUES');
is(sql($node, 'SELECT snowflake_timestamp(max(id)) < now() - interval \'399 days\' FROM orders'),
	't', 'IDs do not follow a clock that is more than a year ahead');
sql($node, $accept);
sql($node, 'INSERT INTO orders DEFAULT VALUES');
is(sql($node, 'SELECT snowflake_timestamp(max(id)) > now() - interval \'1 min\' FROM orders'),
	't', 'IDs follow a clock that was accepted');

Page::all_taken();
