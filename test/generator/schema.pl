# CREATE EXTENSION where another function has the name and the arguments of one of
# the extension's: the hint is a schema of its own.

use SnowflakeTest;

my $node = new_server('main', 'snowflake.worker_id = 1');
my @general = split /\n/, sql($node, q{
	SELECT p.oid::regprocedure
	FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON e.oid = d.refobjid
	WHERE extname = 'snowflake' AND proname !~ '^_?snowflake'
	ORDER BY 1});
cmp_ok(scalar @general, '>=', 4, 'the extension has functions with general names');
sql($node, 'DROP EXTENSION snowflake');

foreach my $function (@general, 'snowflake_nextval()', 'snowflake_id()')
{
	my ($name) = $function =~ /(\w+)/;

	sql_fails($node, "CREATE FUNCTION $function RETURNS int LANGUAGE sql AS 'SELECT 1';
			CREATE EXTENSION snowflake; DROP FUNCTION $function",
		qr/ERROR:  42723: schema "public" already has a function $name\(.*\nHINT:  Create the extension in a schema of its own: CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake;/,
		"$function: the hint is a schema");
}

# The hint as it is, while the other function stays
is(sql($node, q{
		CREATE FUNCTION uuid_v7() RETURNS int LANGUAGE sql AS 'SELECT 1';
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

$node->stop;
done_testing();
