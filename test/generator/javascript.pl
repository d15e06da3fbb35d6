# The scheme for clients in JavaScript: all IDs are exact as a double, and so as a
# Number there, up to the last worker ID.

use SnowflakeTest;

my $node = new_server('main', "snowflake.scheme = 'javascript'", 'snowflake.worker_id = 63');

is( sql($node, q{
		SELECT count(DISTINCT id), bool_and(id <= 9007199254740991 AND id::float8::bigint = id),
			   bool_and(json_build_object('id', id)::json->>'id' = id::text),
			   bool_and((snowflake_parse(id)).worker_id = 63),
			   bool_and(snowflake_timestamp(id) BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute')
		FROM snowflake_nextval(50000) id}),
	'50000|t|t|t|t', 'IDs are unique, and exact as a double');
is( sql($node, q{
		SELECT times, _snowflake_end_id(times, false), _snowflake_end_id(times, true) < 0, snowflake_within(9007199254740992, times)
		FROM unnest('{"[3000-01-01,)", "[3000-01-01,4000-01-01)", "[2050-01-01,)", "(,)"}'::tstzrange[]) times}) =~ s/^.*?\)"?\|//gmr,
	"0|t|f\n0|t|f\n" . sql($node, q{SELECT snowflake_lower_bound('2050-01-01')}) . "|f|t\n0|f|t",
	'a range of times that begins after the scheme has no IDs');
$node->stop;
start_fails($node, 'snowflake.worker_id = 64', qr/64/, 'a worker ID that does not fit is refused at the start');

done_testing();
