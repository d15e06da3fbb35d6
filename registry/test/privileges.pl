# Where a registry can be created, and what roles with some privileges can do with
# its functions, which run as a superuser: default privileges, privileges that were
# granted by mistake, a schema or database that was handed over, and objects that
# look like the registry's.

use SnowflakeTest;

my $node = new_server('main');
my $caught = $node->basedir . '/caught';

# What an attacker has others execute.  As a superuser it writes a file, which no
# rollback takes back.
my $grab = qq{
	CREATE FUNCTION regress_app.grab() RETURNS boolean LANGUAGE plpgsql AS \$\$
	BEGIN COPY (SELECT current_user) TO '$caught'; RETURN true;
	EXCEPTION WHEN insufficient_privilege THEN RETURN true; END \$\$};

# All calls of a registry, those of servers first.
my $next = "snowflake_registry.lower_bound(clock_timestamp(), 'twitter')";
my $tokens = q{'{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000002}'};
my @calls = (
	"get_grant('twitter', 0, NULL, $next, '{}', '00000000-0000-0000-0000-000000000001', 'a')",
	"extend_grant('twitter', 0, 1, $next, $tokens, '00000000-0000-0000-0000-000000000003', 'a')",
	q{return_grant('twitter', 0, 1, '{00000000-0000-0000-0000-000000000003}', NULL)},
	q{add_database('shop')},
	q{get_ranges('00000000-0000-0000-0000-000000000001', NULL, '{}', '00000000-0000-0000-0000-000000000002', 0, 'a', '{shop}', '{t}', '{100}', '{1}', '{1}', '{0}', '{NULL}')},
	q{get_range_names('00000000-0000-0000-0000-000000000001', 'a', '00000000-0000-0000-0000-000000000003', 0, 1)},
	q{get_floors('00000000-0000-0000-0000-000000000001', 0)},
	q{report_ranges('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', '{}', 'a', '{}', '{}', '{}', '{}', '{}', true, '00000000-0000-0000-0000-000000000003')},
	q{return_ranges('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', '{}')},
	q{alter_ranges('5 min')},
	q{stop_ranges('test')},
	q{resume_ranges(1)},
	q{remove_database('shop')},
	q{alter('twitter', grant_time => '5 min')},
	q{confirm_promotion('twitter')},
	q{free_worker(1, 0, 'twitter')},
	q{report_loss('twitter')},
	q{drop('twitter')},
	q{create(1, 20, 'twitter', new => true)});

# A new database with a role that can create objects in it, and one that was
# granted all functions of the registry that is there; its name and what is done
# before the extension is created.
sub registry_database ($name, $before)
{
	sql($node, "CREATE DATABASE $name");
	$node->safe_psql($name, qq{
		GRANT CREATE ON DATABASE $name TO regress_app;
		CREATE SCHEMA regress_app AUTHORIZATION regress_app;
		GRANT USAGE ON SCHEMA regress_app TO PUBLIC;
		$before;
		CREATE EXTENSION snowflake;
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create(1, 20, 'twitter', failovers => 0, new => true);
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_registry TO regress_server});
	$node->safe_psql($name, "SET ROLE regress_app; $grab");
	return;
}

# Make all calls; returns those that failed.  None may have executed anything as a
# superuser.
sub make_calls ($name, $schema, $label)
{
	my @failed;

	foreach my $call (@calls)
	{
		my $error = sql_error($node, "SET ROLE regress_server; SELECT * FROM $schema.$call", dbname => $name);
		push @failed, $error if $error =~ /ERROR/;
		ok(!-e $caught, "$label: " . ($call =~ s/\(.*//r) . '() executes nothing as a superuser');
		unlink $caught;
	}
	return @failed;
}

sql($node, q{
	CREATE ROLE regress_app LOGIN;
	CREATE ROLE regress_server LOGIN});

#
# Where it is refused
#
sql($node, 'CREATE DATABASE places; GRANT CREATE ON DATABASE places TO regress_app');
sub refused ($before, $detail, $label)
{
	$node->safe_psql('places', $before);
	like(sql_error($node, 'CREATE EXTENSION snowflake_registry', dbname => 'places'),
		qr/ERROR:  55000: cannot .*\n(?:.*\n)*?.*DETAIL:  $detail/, $label);
	return;
}
refused('SET ROLE regress_app; CREATE SCHEMA snowflake_registry',
	'The schema belongs to role "regress_app", which is not a superuser\.',
	'no registry in a schema of another role');
refused('DROP SCHEMA snowflake_registry; CREATE SCHEMA snowflake_registry; CREATE FUNCTION snowflake_registry.lift(int) RETURNS int LANGUAGE sql AS $$SELECT 1$$',
	'The schema contains other objects\.',
	'no registry in a schema with other objects');
refused('DROP SCHEMA snowflake_registry CASCADE; ALTER DATABASE places OWNER TO regress_app',
	'Role "regress_app" owns the database and could replace it with one that grants worker IDs twice\.',
	'no registry in a database of another role');
like(sql_error($node, 'SET ROLE regress_app; CREATE EXTENSION snowflake_registry', dbname => 'places'),
	qr/ERROR:  42501: permission denied to create extension "snowflake_registry"/,
	'only a superuser creates a registry');
$node->safe_psql('places', 'ALTER DATABASE places OWNER TO CURRENT_USER; CREATE EXTENSION snowflake_registry');
is(sql_error($node, 'ALTER EXTENSION snowflake_registry SET SCHEMA public', dbname => 'places') =~ /does not support SET SCHEMA/,
	1, 'the registry stays in its schema');

#
# Default privileges
#
registry_database('defaults', q{
	ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_app;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_app;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_app});
is( $node->safe_psql('defaults', q{
		SELECT string_agg(DISTINCT o, ', ') FROM (
			SELECT relname FROM pg_class, aclexplode(relacl) WHERE grantee = 'regress_app'::regrole
				AND relnamespace IN ('public'::regnamespace, 'snowflake_registry'::regnamespace)
			UNION ALL
			SELECT proname FROM pg_proc, aclexplode(proacl) WHERE grantee = 'regress_app'::regrole
				AND pronamespace IN ('public'::regnamespace, 'snowflake_registry'::regnamespace)
			UNION ALL
			SELECT nspname FROM pg_namespace, aclexplode(nspacl) WHERE grantee = 'regress_app'::regrole
				AND nspname = 'snowflake_registry') m(o)}),
	'', 'default privileges give a role nothing of either extension');
foreach my $attack (
	'CREATE TRIGGER t BEFORE UPDATE ON snowflake_registry.grants FOR EACH ROW EXECUTE FUNCTION regress_app.fire()',
	'CREATE FUNCTION snowflake_registry.f() RETURNS int LANGUAGE sql AS $$SELECT 1$$',
	'SELECT snowflake_set_mark(1000, force => true)',
	'SELECT snowflake_raise_mark(1)',
	'SELECT snowflake_accept_clock()',
	'SELECT snowflake_stat_reset()',
	q{SELECT snowflake_registry.report_loss('twitter')},
	q{SELECT snowflake_registry.lock('twitter', true)},
	'TABLE snowflake_registry.grants',
	'UPDATE snowflake_registry.registries SET slices = 1')
{
	like(sql_error($node, "SET ROLE regress_app; $attack", dbname => 'defaults'),
		qr/ERROR:  42501: permission denied/, "default privileges do not permit: $attack");
}

#
# Privileges that were granted by mistake: triggers do not fire
#
registry_database('mistake', '');
$node->safe_psql('mistake', 'GRANT ALL ON ALL TABLES IN SCHEMA snowflake_registry TO regress_app');
$node->safe_psql('mistake', q{
	SET ROLE regress_app;
	CREATE FUNCTION regress_app.fire() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM regress_app.grab(); RETURN coalesce(new, old); END';
	CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.grants FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
	CREATE TRIGGER s AFTER INSERT OR UPDATE OR DELETE ON snowflake_registry.grants EXECUTE FUNCTION regress_app.fire();
	CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.registries FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
	CREATE TABLE regress_app.child (scheme text REFERENCES snowflake_registry.registries ON UPDATE CASCADE ON DELETE CASCADE);
	CREATE TRIGGER t BEFORE DELETE OR UPDATE ON regress_app.child FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
	INSERT INTO regress_app.child SELECT scheme FROM snowflake_registry.registries});
is(join('', make_calls('mistake', 'snowflake_registry', 'after GRANT ALL ON ALL TABLES')),
	'', 'after GRANT ALL ON ALL TABLES: all calls succeed');

# CREATE on the schema: functions that would be better matches
$node->safe_psql('mistake', 'GRANT CREATE ON SCHEMA snowflake_registry TO regress_app');
$node->safe_psql('mistake', q{
	SET ROLE regress_app;
	CREATE FUNCTION snowflake_registry.get_grant(text, text, text, text, text, text, text,
		OUT worker_id int, OUT until bigint, OUT grant_time_ms bigint) LANGUAGE sql AS 'SELECT 77, 9223372036854775807, 600000::bigint';
	CREATE FUNCTION snowflake_registry.lock(text, text) RETURNS record LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
	CREATE FUNCTION snowflake_registry.read_scheme(unknown_ varchar) RETURNS record LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
	CREATE FUNCTION snowflake_registry.end_of_range(snowflake_registry.registries, timestamptz, bigint, record, boolean) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
	CREATE FUNCTION snowflake_registry.lower_bound(timestamptz, varchar) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
	CREATE FUNCTION snowflake_registry.choose_worker_id(snowflake_registry.registries, integer, text, text, bigint) RETURNS integer LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END'});
is(join('', make_calls('mistake', 'snowflake_registry', 'with other functions in the schema')),
	'', 'with other functions in the schema: all calls succeed');

# A server asks the registry, not what is in a schema with its name.
$node->safe_psql('mistake', q{
	SET ROLE regress_app;
	CREATE SCHEMA regress_server;
	GRANT USAGE ON SCHEMA regress_server TO PUBLIC;
	CREATE FUNCTION regress_server.get_grant(text, integer, integer, bigint, uuid[], uuid, text,
		OUT worker_id int, OUT until bigint, OUT grant_time_ms bigint) LANGUAGE sql AS 'SELECT 77, 9223372036854775807, 600000::bigint';
	CREATE FUNCTION regress_server.snowflake_get_grant(text, integer, integer, bigint, uuid[], uuid, text,
		OUT worker_id int, OUT until bigint, OUT grant_time_ms bigint) LANGUAGE sql AS 'SELECT 77, 9223372036854775807, 600000::bigint'});
my $server = new_server('server', "snowflake.scheme = 'twitter'",
	"snowflake.registry = 'host=" . $node->host . ' port=' . $node->port . " dbname=mistake user=regress_server'");
my $worker = sql($server, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())');
is($node->safe_psql('mistake', "SELECT server_name FROM snowflake_registry.workers WHERE worker_id = $worker AND state = 'held'"),
	'server', 'a server is granted a worker ID of the registry');
$server->stop;

#
# The schema was handed over: its owner renames it, and waits for calls.
#
registry_database('handed_over', '');
$node->safe_psql('handed_over', 'ALTER SCHEMA snowflake_registry OWNER TO regress_app');
$node->safe_psql('handed_over', q{
	SET ROLE regress_app;
	ALTER SCHEMA snowflake_registry RENAME TO was;
	CREATE SCHEMA snowflake_registry;
	GRANT USAGE ON SCHEMA snowflake_registry TO PUBLIC;
	CREATE DOMAIN snowflake_registry.trap AS int CHECK (regress_app.grab());
	CREATE TABLE snowflake_registry.registries (scheme text, slices snowflake_registry.trap);
	CREATE TABLE snowflake_registry.grants (scheme text, worker_id snowflake_registry.trap);
	CREATE TABLE snowflake_registry.range_clients (client uuid, calls snowflake_registry.trap);
	CREATE TABLE snowflake_registry.range_sequences (name text, next snowflake_registry.trap);
	CREATE FUNCTION snowflake_registry.read_scheme(scheme text, OUT canonical text, OUT tick interval,
		OUT last_worker_id int) LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
	CREATE FUNCTION snowflake_registry.lower_bound(timestamptz, text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE FUNCTION snowflake_registry.hash(uuid) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); RETURN NULL; END';
	CREATE FUNCTION snowflake_registry.check_database() RETURNS void LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
	CREATE FUNCTION snowflake_registry.lock(text, boolean) RETURNS record LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END'});
my @failed = make_calls('handed_over', 'was', 'in a schema that was handed over');
is(scalar(@failed), scalar(@calls), 'in a schema that was handed over: all calls fail');
my $not_the_schema = qr/ERROR:  55000: schema of the registry is not "snowflake_registry", or does not belong to a superuser\nDETAIL:  .*\nHINT:  Check that the schema has no objects of others in it\. /;
is(scalar(grep { $_ =~ $not_the_schema } @failed), scalar(@calls), 'each error names the reason');

# Nor if a variable has a type of its owner, or if the new schema is given to a
# superuser.
$node->safe_psql('handed_over', $_) foreach q{
	SET ROLE regress_app;
	DROP TABLE snowflake_registry.registries;
	CREATE TYPE regress_app.any AS (scheme text, slices int);
	CREATE DOMAIN snowflake_registry.registries AS regress_app.any CHECK (regress_app.grab())},
  'ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER';
@failed = make_calls('handed_over', 'was', 'in a schema that was renamed');
is(scalar(grep { $_ =~ $not_the_schema } @failed), scalar(@calls), 'in a schema that was renamed: all calls fail');
$node->safe_psql('handed_over', 'ALTER SCHEMA snowflake_registry OWNER TO regress_app');

#
# Everything was handed over, and then the schema and the functions that are called
# given back, but not what they use: its owner has code executed with each row.
#
sql($node, 'CREATE ROLE regress_dba SUPERUSER');
registry_database('tables', 'SET ROLE regress_dba');
$node->safe_psql('tables', 'REASSIGN OWNED BY regress_dba TO regress_app');
my @functions = map { 'snowflake_registry.' . s/\(.*//r } @calls;
like(sql_error($node, "SET ROLE regress_server; SELECT snowflake_registry.$calls[0]", dbname => 'tables'),
	qr/ERROR:  42501: permission denied to set parameter "session_replication_role"/,
	'a function of the registry that was handed over cannot be called');
$node->safe_psql('tables', $_) foreach
  join('', 'ALTER SCHEMA snowflake_registry OWNER TO regress_dba;',
	map { "ALTER FUNCTION $_ OWNER TO regress_dba;" } @functions),
  q{
	SET ROLE regress_app;
	CREATE FUNCTION regress_app.fire() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM regress_app.grab(); RETURN coalesce(new, old); END';
	CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.grants FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
	CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.registries FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
	ALTER TABLE snowflake_registry.grants ENABLE ALWAYS TRIGGER t;
	ALTER TABLE snowflake_registry.registries ENABLE ALWAYS TRIGGER t};
my $not_the_owner = qr/ERROR:  55000: not all objects of the registry belong to superusers\nDETAIL:  .*\nHINT:  .*REASSIGN OWNED.* triggers, rules, policies, /;
@failed = make_calls('tables', 'snowflake_registry', 'with tables of another role');
is(scalar(grep { $_ =~ $not_the_owner } @failed), scalar(@calls), 'with tables of another role: all calls fail');

# Nor if they are taken out of the extension, and everything else is given back
$node->safe_psql('tables', $_) foreach q{
	SET ROLE regress_app;
	ALTER EXTENSION snowflake_registry DROP TABLE snowflake_registry.grants;
	ALTER EXTENSION snowflake_registry DROP VIEW snowflake_registry.workers;
	ALTER EXTENSION snowflake_registry DROP TABLE snowflake_registry.registries},
  q{DO $$DECLARE f regprocedure; BEGIN
	FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace LOOP
		EXECUTE format('ALTER ROUTINE %s OWNER TO regress_dba', f);
	END LOOP;
	ALTER TABLE snowflake_registry.dropped OWNER TO regress_dba; END$$};
@failed = make_calls('tables', 'snowflake_registry', 'with an extension of another role');
is(scalar(grep { $_ =~ $not_the_owner } @failed), scalar(@calls), 'with an extension of another role: all calls fail');

# One object of another role is enough.
registry_database('object', '');
foreach my $object ('TABLE grants', 'TABLE dropped', 'VIEW workers', 'FUNCTION lift', 'FUNCTION place')
{
	my $alter = 'ALTER ' . $object =~ s/ / snowflake_registry./r . ' OWNER TO';

	$node->safe_psql('object', "$alter regress_app");
	like(sql_error($node, "SET ROLE regress_server; SELECT snowflake_registry.$calls[0]", dbname => 'object'),
		$not_the_owner, "nothing is granted while another role owns $object");
	$node->safe_psql('object', "$alter CURRENT_USER");
}
is(join('', make_calls('object', 'snowflake_registry', 'with all objects given back')),
	'', 'with all objects given back: all calls succeed');

# So was the database: its owner can dump it, which shows no secrets, and restores
# nothing that is a registry.
registry_database('given', '');
$node->safe_psql('given', $_) foreach
  "SET ROLE regress_server; SELECT snowflake_registry.$calls[0]",
  'ALTER DATABASE given OWNER TO regress_app';
my $dump = $node->basedir . '/given.sql';
command_ok([ 'pg_dump', '-d', $node->connstr('given') . ' user=regress_app', '-f', $dump ],
	'the owner of a database with a registry dumps it');
like(slurp_file($dump), qr/^COPY snowflake_registry\.registries .*\n.*worker=5/m, 'the dump has the settings');
unlike(slurp_file($dump), qr/COPY snowflake_registry\.grants/, 'the dump has no grants');
like(sql_error($node, q{SELECT snowflake_registry.create(1, 20, 'leaf')}, dbname => 'given'),
	qr/ERROR:  55000: cannot use database "given" as a registry, because its owner is not a superuser/,
	'no other registry in a database that was handed over');
sql($node, 'CREATE DATABASE restored; CREATE DATABASE of_app OWNER regress_app');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $dump ],
	'a superuser restores the dump');
is($node->safe_psql('restored', 'SELECT count(*) FROM snowflake_registry.registries'), 1, 'with the settings');
like(sql_error($node, "\\i $dump", dbname => 'of_app'),
	qr/cannot use database "of_app" as a registry, because its owner is not a superuser/,
	'not into a database of another role');

#
# Servers call nothing in a schema of another role, which may have been there before
# the extension.  The worker of a registry in its own server is a superuser here.
#
my $signature = 'text, integer, integer, bigint, uuid[], uuid, text, OUT worker_id int, OUT until bigint, OUT grant_time_ms bigint';
my $trap = qq{snowflake_registry.get_grant($signature) LANGUAGE plpgsql AS
	'BEGIN PERFORM regress_app.grab(); worker_id := 77; until := 9223372036854775807; grant_time_ms := 600000; END'};

# A server with a registry in a database, local or not, reports this error.
sub calls_nothing ($name, $registry, $dbname, $error, $label)
{
	my $server = new_server($name, "snowflake.scheme = 'twitter'", "snowflake.grant_timeout = '100 ms'");
	my $host = $registry // $server;

	sql($server, "CREATE ROLE regress_app; CREATE DATABASE $dbname") if !$registry;
	$server->safe_psql($dbname, $_) foreach $registry ? () : @{$error}{'before'};
	restart_with($server, "snowflake.registry = 'host=" . $host->host . ' port=' . $host->port . " dbname=$dbname'");
	becomes_true($server, "SELECT registry_error ~ \$\$$error->{is}\$\$ FROM snowflake_stat",
		"$label: an error says why nothing is called");
	sql_fails($server, 'SELECT snowflake_nextval()', qr/ERROR:  55000: no worker ID is granted/,
		"$label: no worker ID is granted");
	ok(!-e $caught, "$label: nothing is executed");
	unlink $caught;
	$server->stop;
	return;
}

my $of_app = qq{GRANT CREATE ON DATABASE trap TO regress_app;
	CREATE SCHEMA regress_app AUTHORIZATION regress_app;
	GRANT USAGE ON SCHEMA regress_app TO PUBLIC;
	SET ROLE regress_app; $grab;
	CREATE SCHEMA snowflake_registry; CREATE FUNCTION $trap};
my $not_of_a_superuser = 'schema "snowflake_registry" in database "\w+" does not belong to a superuser; Its owner, role "regress_app", could replace';
calls_nothing('trap_before', undef, 'trap', { before => $of_app, is => $not_of_a_superuser },
	'locally, a schema that was there before');
calls_nothing('trap_given', undef, 'trap', {
		before => "$of_app; RESET ROLE; ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER",
		is => 'the extension snowflake_registry is not installed in database "trap": schema "snowflake_registry" has other objects'},
	'locally, a schema of a superuser with functions of another role');
calls_nothing('trap_function', undef, 'trap', {
		before => qq{GRANT CREATE ON DATABASE trap TO regress_app;
			CREATE SCHEMA regress_app AUTHORIZATION regress_app;
			CREATE EXTENSION snowflake_registry;
			SET ROLE regress_app; $grab; RESET ROLE;
			ALTER EXTENSION snowflake_registry DROP FUNCTION snowflake_registry.get_grant;
			DROP FUNCTION snowflake_registry.get_grant;
			GRANT CREATE ON SCHEMA snowflake_registry TO regress_app;
			SET ROLE regress_app; CREATE FUNCTION $trap},
		is => 'objects of the registry in database "trap" do not belong to its extension, or not to a superuser; Check what the schema contains, and give what is of the extension to a superuser'},
	'locally, a function that is not of the extension');
calls_nothing('trap_table', undef, 'trap', {
		before => 'CREATE EXTENSION snowflake_registry; ALTER TABLE snowflake_registry.grants OWNER TO regress_app',
		is => 'objects of the registry in database "trap" do not belong to its extension, or not to a superuser; '},
	'locally, a table of another role');
calls_nothing('trap_extension', undef, 'trap', {
		before => q{CREATE ROLE regress_dba SUPERUSER; SET ROLE regress_dba; CREATE EXTENSION snowflake_registry;
			RESET ROLE; REASSIGN OWNED BY regress_dba TO regress_app; SET ROLE regress_app;
			ALTER EXTENSION snowflake_registry DROP TABLE snowflake_registry.grants; RESET ROLE;
			ALTER SCHEMA snowflake_registry OWNER TO regress_dba;
			ALTER TABLE snowflake_registry.registries OWNER TO regress_dba; ALTER TABLE snowflake_registry.dropped OWNER TO regress_dba;
			ALTER VIEW snowflake_registry.workers OWNER TO regress_dba;
			DO $$DECLARE f regprocedure; BEGIN
			FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace LOOP
				EXECUTE format('ALTER ROUTINE %s OWNER TO regress_dba', f);
			END LOOP; END$$},
		is => 'objects of the registry in database "trap" do not belong to its extension, or not to a superuser; '},
	'locally, an extension of another role');
$node->safe_psql('handed_over', "SET ROLE regress_app; CREATE FUNCTION $trap");
calls_nothing('remote', $node, 'handed_over', { is => $not_of_a_superuser },
	'elsewhere, a schema that was handed over');

# Who can read all tables has no token.
$node->safe_psql('restored', 'GRANT pg_read_all_data TO regress_app');
is( $node->safe_psql('given', q{
		SET ROLE regress_app;
		SELECT token_hash = sha256(uuid_send('00000000-0000-0000-0000-000000000001')),
			to_jsonb(g)::text ~ '0000-?0000-?0000-?000000000001' FROM snowflake_registry.grants g}),
	't|f', 'a token is stored as a hash');

done_testing();
