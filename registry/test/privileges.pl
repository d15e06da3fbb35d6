# What servers call, and what is not called: in a schema with the registry's name that belongs to
# another role, which may have been there before the extension, or with objects that look like the
# registry's.  And the dump of the owner of a database that was handed over.
# (registry/sql/privileges.sql has what roles with some privileges can do in one session.)

use SnowflakeTest;

my $node = new_server('main');
my $caught = $node->basedir . '/caught';

# What an attacker has others execute.  As a superuser it writes a file, which no
# rollback takes back.
my $grab = qq{
	CREATE FUNCTION regress_app.grab() RETURNS boolean LANGUAGE plpgsql AS \$\$
	BEGIN COPY (SELECT current_user) TO '$caught'; RETURN true;
	EXCEPTION WHEN insufficient_privilege THEN RETURN true; END \$\$};
my $signature = 'text, integer, integer, bigint, uuid[], uuid, text, OUT worker_id int, OUT until bigint, OUT grant_time_ms bigint';
my $trap = qq{snowflake_registry.get_grant($signature) LANGUAGE plpgsql AS
	'BEGIN PERFORM regress_app.grab(); worker_id := 77; until := 9223372036854775807; grant_time_ms := 600000; END'};
my $of_app = q{CREATE SCHEMA regress_app AUTHORIZATION regress_app; GRANT USAGE ON SCHEMA regress_app TO PUBLIC};

sql($node, q{CREATE ROLE regress_app LOGIN; CREATE ROLE regress_server LOGIN});

# A database with a registry, and with a role that can create objects in it
sub registry_database ($name)
{
	sql($node, "CREATE DATABASE $name");
	$node->safe_psql($name, $_) foreach qq{
		GRANT CREATE ON DATABASE $name TO regress_app;
		$of_app;
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create(1, 20, 'twitter', failovers => 0, new => true);
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_registry TO regress_server}, "SET ROLE regress_app; $grab";
	return;
}

# A server asks the registry, not what is in a schema with the name of its role, or a better match.
registry_database('mistake');
my $other = q{OUT worker_id int, OUT until bigint, OUT grant_time_ms bigint) LANGUAGE sql AS 'SELECT 77, 9223372036854775807, 600000::bigint'};
$node->safe_psql('mistake', qq{
	GRANT CREATE ON SCHEMA snowflake_registry TO regress_app;
	SET ROLE regress_app;
	CREATE SCHEMA regress_server;
	GRANT USAGE ON SCHEMA regress_server TO PUBLIC;
	CREATE FUNCTION snowflake_registry.get_grant(text, text, text, text, text, text, text, $other;
	CREATE FUNCTION regress_server.get_grant(text, integer, integer, bigint, uuid[], uuid, text, $other;
	CREATE FUNCTION regress_server.snowflake_get_grant(text, integer, integer, bigint, uuid[], uuid, text, $other});
my $server = new_server('server', "snowflake.scheme = 'twitter'",
	"snowflake.registry = 'host=" . $node->host . ' port=' . $node->port . " dbname=mistake user=regress_server'");
my $worker = sql($server, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())');
is($node->safe_psql('mistake', "SELECT server_name FROM snowflake_registry.workers WHERE worker_id = $worker AND state = 'held'"),
	'server', 'a server is granted a worker ID of the registry');
$server->stop;

# The owner of a database with a registry can dump it, which shows no secrets, and restores
# nothing that is a registry.
registry_database('given');
$node->safe_psql('given', $_) foreach
  q{SELECT snowflake_registry.get_grant('twitter', 0, NULL, snowflake_registry.lower_bound(clock_timestamp(), 'twitter'), '{}', gen_random_uuid(), 'a')},
  'ALTER DATABASE given OWNER TO regress_app';
my $dump = $node->basedir . '/given.sql';
command_ok([ 'pg_dump', '-d', $node->connstr('given') . ' user=regress_app', '-f', $dump ],
	'the owner of a database with a registry dumps it');
like(slurp_file($dump), qr/^COPY snowflake_registry\.registries .*\n.*worker=5/m, 'the dump has the settings');
unlike(slurp_file($dump), qr/COPY snowflake_registry\.grants/, 'the dump has no grants');
sql($node, 'CREATE DATABASE restored; CREATE DATABASE of_app OWNER regress_app');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $dump ],
	'a superuser restores the dump');
is($node->safe_psql('restored', 'SELECT count(*) FROM snowflake_registry.registries'), 1, 'with the settings');
like(sql_error($node, "\\i $dump", dbname => 'of_app'),
	qr/cannot use database "of_app" as a registry, because its owner is not a superuser/,
	'not into a database of another role');

# Servers call nothing in a schema of another role, which may have been there before the extension.
# The worker of a registry in its own server is a superuser here.
my $local = new_server('many', "snowflake.scheme = 'twitter'", "snowflake.grant_timeout = '100 ms'");
sql($local, 'CREATE ROLE regress_app; CREATE ROLE regress_dba SUPERUSER');

sub calls_nothing ($label, $host, $dbname, $error, $statements)
{
	sql($host, "CREATE DATABASE $dbname; GRANT CREATE ON DATABASE $dbname TO regress_app");
	$host->safe_psql($dbname, "$of_app; SET ROLE regress_app; $grab; RESET ROLE; $statements");
	restart_with($local, "snowflake.registry = 'host=" . $host->host . ' port=' . $host->port . " dbname=$dbname'");
	becomes_true($local, "SELECT registry_error ~ \$\$$error\$\$ FROM snowflake_stat",
		"$label: an error says why nothing is called");
	sql_fails($local, 'SELECT snowflake_nextval()', qr/ERROR:  55000: no worker ID is granted/,
		"$label: no worker ID is granted");
	ok(!-e $caught, "$label: nothing is executed");
	unlink $caught;
	return;
}

my $schema_of_app = "SET ROLE regress_app; CREATE SCHEMA snowflake_registry; CREATE FUNCTION $trap; RESET ROLE";
my $not_of_a_superuser = 'schema "snowflake_registry" in database "NAME" does not belong to a superuser; Its owner, role "regress_app", could replace';
my $objects = 'objects of the registry in database "NAME" do not belong to its extension, or not to a superuser; Check what the schema contains, and give what is of the extension to a superuser';
foreach my $case (
	[ 'a schema that was there before', 'before', $not_of_a_superuser, $schema_of_app ],
	[ 'a schema of a superuser with functions of another role', 'given', 'the extension snowflake_registry is not installed in database "NAME": schema "snowflake_registry" has other objects',
		"$schema_of_app; ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER" ],
	[ 'a function that is not of the extension', 'functions', $objects, qq{
		CREATE EXTENSION snowflake_registry;
		ALTER EXTENSION snowflake_registry DROP FUNCTION snowflake_registry.get_grant;
		DROP FUNCTION snowflake_registry.get_grant;
		GRANT CREATE ON SCHEMA snowflake_registry TO regress_app;
		SET ROLE regress_app; CREATE FUNCTION $trap} ],
	[ 'a table of another role', 'tables', $objects,
		'CREATE EXTENSION snowflake_registry; ALTER TABLE snowflake_registry.grants OWNER TO regress_app' ],
	[ 'an extension of another role', 'extensions', $objects, q{
		SET ROLE regress_dba; CREATE EXTENSION snowflake_registry;
		RESET ROLE; REASSIGN OWNED BY regress_dba TO regress_app; SET ROLE regress_app;
		ALTER EXTENSION snowflake_registry DROP TABLE snowflake_registry.grants; RESET ROLE;
		ALTER SCHEMA snowflake_registry OWNER TO regress_dba;
		ALTER TABLE snowflake_registry.registries OWNER TO regress_dba; ALTER TABLE snowflake_registry.dropped OWNER TO regress_dba;
		ALTER VIEW snowflake_registry.workers OWNER TO regress_dba;
		DO $$DECLARE f regprocedure; BEGIN
		FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace LOOP
			EXECUTE format('ALTER ROUTINE %s OWNER TO regress_dba', f);
		END LOOP; END$$} ])
{
	my ($label, $dbname, $error, $statements) = @$case;

	calls_nothing("locally, $label", $local, "trap_$dbname", $error =~ s/NAME/trap_$dbname/r, $statements);
}
calls_nothing('elsewhere, a schema of another role', $node, 'trap', $not_of_a_superuser =~ s/NAME/trap/r, $schema_of_app);

done_testing();
