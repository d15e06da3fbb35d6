# The extension created by the owner of a database who is not a superuser: dumps, and
# what the role could do with the registry's functions.  (sql/trusted.sql has the
# rest.)

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('main');
$node->safe_psql(
	'postgres', q{
	CREATE ROLE app LOGIN CREATEDB;
	CREATE ROLE servers LOGIN});
my @as_app = ('-X', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('app') . ' user=app');

# What migrations do
$node->safe_psql('postgres', 'CREATE DATABASE app OWNER app');
command_ok([ 'psql', @as_app, '-c', 'CREATE EXTENSION snowflake' ],
	'the owner of a database creates the extension');
$node->safe_psql('app',
	'SET ROLE app; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int); INSERT INTO t (v) VALUES (1)'
);
my $dump = $node->basedir . '/app.sql';
command_ok(
	[ 'pg_dump', '-d', $node->connstr('app') . ' user=app', '-f', $dump ],
	'and dumps the database');
$node->safe_psql('postgres', 'CREATE DATABASE again OWNER app');
command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump,
		'-d', $node->connstr('again') . ' user=app'
	],
	'which the role restores');
is( $node->safe_psql('again',
		'SET ROLE app; INSERT INTO t (v) VALUES (2); SELECT count(DISTINCT id) FROM t WHERE id > 1000000'),
	'2',
	'with the default');

# Who owns the schema puts another one in its place, and waits for a server to
# call the registry.  What runs as a superuser then writes a file, which no
# rollback takes back.
my $caught = $node->basedir . '/caught';
my $trap = q{
	CREATE FUNCTION SCHEMA.grab() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN COPY (SELECT current_user) TO 'FILE'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;
	CREATE FUNCTION SCHEMA.snowflake_read_scheme(text, OUT canonical text, OUT tick interval,
		OUT last_datacenter_id int, OUT last_worker_id int) LANGUAGE plpgsql AS
		'BEGIN PERFORM SCHEMA.grab(); END';
	CREATE FUNCTION SCHEMA.snowflake_lock_registry(text, bigint) RETURNS record LANGUAGE plpgsql AS
		'BEGIN PERFORM SCHEMA.grab(); RETURN NULL; END';
	CREATE TABLE SCHEMA.snowflake_grants (scheme text);
	CREATE TABLE SCHEMA.snowflake_registry (scheme text);
	GRANT USAGE ON SCHEMA SCHEMA, was TO servers};
my %calls = (
	snowflake_get_grant => q{'twitter', 0, NULL, 1, '{}', gen_random_uuid(), 'a'},
	snowflake_extend_grant => q{'twitter', 0, 1, 1, '{}', gen_random_uuid(), 'a'},
	snowflake_return_grant => q{'twitter', 0, 1, '{}', 1},
	snowflake_create_registry => q{1, 10, 'twitter'},
	snowflake_drop_registry => q{'twitter'},
	snowflake_registry_lost => q{'twitter'},
	snowflake_free_worker => q{1, 0, 'twitter'});
foreach my $schema ('public', 'ext')
{
	$node->safe_psql('postgres', "CREATE DATABASE own_$schema OWNER app");
	$node->safe_psql("own_$schema",
		"SET ROLE app; CREATE SCHEMA IF NOT EXISTS $schema; CREATE EXTENSION snowflake SCHEMA $schema"
	);
	is( $node->safe_psql("own_$schema",
			q{SELECT count(*) FROM pg_proc WHERE prosecdef AND proname ~ '^snowflake'}),
		'0',
		"no function runs as its owner in schema $schema");
	$node->safe_psql("own_$schema",
		"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA $schema TO servers");
	(my $put = $trap) =~ s/SCHEMA\.|SCHEMA(?=,)/$& eq 'SCHEMA' ? $schema : "$schema."/ge;
	$put =~ s/FILE/$caught/;
	$node->safe_psql("own_$schema",
		"SET ROLE app; ALTER SCHEMA $schema RENAME TO was; CREATE SCHEMA $schema; $put"
	);
	foreach my $function (sort keys %calls)
	{
		$node->psql("own_$schema",
			"SET ROLE servers; SELECT was.$function($calls{$function})");
		ok(!-e $caught, "$function() of it runs nothing as a superuser");
		unlink $caught;
	}
}
is( $node->safe_psql('postgres',
		q{SELECT count(*) > 0 FROM pg_proc WHERE prosecdef AND proname ~ '^snowflake'}),
	't',
	"in a superuser's database those of the registry run as their owner");

$node->stop;

done_testing();
