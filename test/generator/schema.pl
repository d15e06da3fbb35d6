# CREATE EXTENSION where another function has the name and the arguments of one of
# the extension's: a schema of its own helps.

use SnowflakeTest;

my $node = new_server('main', 'snowflake.worker_id = 1');
sql_fails($node, q{
		DROP EXTENSION snowflake;
		CREATE FUNCTION uuid_v7() RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE EXTENSION snowflake},
	qr/ERROR:  42723: function "uuid_v7" already exists with same argument types/, 'another function has the name');
is(sql($node, q{
		CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake;
		SELECT public.uuid_v7(), snowflake.uuid_v7() IS NOT NULL, snowflake.snowflake_nextval() > 1000000;
		DROP EXTENSION snowflake; DROP SCHEMA snowflake}), '1|t|t', 'a schema of its own helps');

# A function with other arguments is in nobody's way.
is( sql($node, q{
		DROP FUNCTION uuid_v7();
		CREATE FUNCTION uuid_v7(text) RETURNS int LANGUAGE sql AS 'SELECT 2';
		CREATE EXTENSION snowflake;
		SELECT uuid_v7('now'::text), uuid_v7() IS NOT NULL}),
	'2|t', 'a function with other arguments does not matter');

done_testing();
