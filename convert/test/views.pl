# Views that are in the way of a conversion are dropped, and created again as they were,
# by the commands of docs/converting-applications.md.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('main', 'fsync = off');
my $space = PostgreSQL::Test::Utils::tempdir;

$node->safe_psql('postgres', 'CREATE ROLE regress_owner; CREATE ROLE regress_other; CREATE ROLE regress_reader; CREATE DATABASE app');
$node->safe_psql('postgres', "CREATE TABLESPACE other LOCATION '$space'");
$node->safe_psql('app', q{
	CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert;
	GRANT CREATE ON SCHEMA public TO regress_owner;
	CREATE SCHEMA "Other Views" AUTHORIZATION regress_other;
	SET ROLE regress_owner;
	CREATE TABLE users (id serial PRIMARY KEY, name text);
	CREATE TABLE notes (user_id int, note text);
	CREATE TABLE log (id int);
	GRANT SELECT ON users TO regress_other;
	INSERT INTO users (name) VALUES ('a'), ('b');
	CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE VIEW people WITH (security_barrier = true, check_option = local) AS SELECT id, name AS "Straße" FROM users WHERE name <> '';
	REVOKE TRUNCATE ON people FROM regress_owner;
	GRANT SELECT ON people TO PUBLIC;
	GRANT INSERT ON people TO regress_other WITH GRANT OPTION;
	GRANT UPDATE ("Straße") ON people TO regress_other;
	ALTER VIEW people ALTER "Straße" SET DEFAULT 'it''s new';
	COMMENT ON VIEW people IS E'two\nlines; -- ''x''';
	COMMENT ON COLUMN people."Straße" IS 'a column';
	CREATE VIEW noted AS SELECT p.id, n.note, n.user_id FROM people p JOIN notes n ON n.user_id = p.id;
	CREATE TRIGGER instead INSTEAD OF INSERT OR UPDATE ON noted FOR EACH ROW EXECUTE FUNCTION instead('a');
	COMMENT ON TRIGGER instead ON noted IS 'a trigger';
	CREATE RULE log AS ON DELETE TO noted DO INSTEAD INSERT INTO log VALUES (old.id);
	COMMENT ON RULE log ON noted IS 'a rule';
	CREATE MATERIALIZED VIEW kept WITH (autovacuum_enabled = off) AS SELECT id, id > 1 AS odd FROM noted;
	CREATE UNIQUE INDEX kept_id ON kept (id);
	ALTER MATERIALIZED VIEW kept CLUSTER ON kept_id;
	ALTER MATERIALIZED VIEW kept ALTER odd SET STATISTICS 50;
	CREATE STATISTICS kept_both ON id, odd FROM kept;
	COMMENT ON STATISTICS kept_both IS 'statistics';
	COMMENT ON INDEX kept_id IS 'an index';
	COMMENT ON MATERIALIZED VIEW kept IS 'a materialized view';
	CREATE MATERIALIZED VIEW empty AS SELECT * FROM kept WITH NO DATA;
	RESET ROLE;
	CREATE INDEX kept_odd ON kept (odd) TABLESPACE other;
	ALTER MATERIALIZED VIEW empty SET TABLESPACE other;
	SET ROLE regress_other;
	CREATE VIEW "Other Views"."Those they CREATE" AS SELECT count(*) FROM public.users WHERE id > 0;
	RESET ROLE;
	ALTER DEFAULT PRIVILEGES FOR ROLE regress_owner GRANT TRIGGER ON TABLES TO regress_other;
	ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM CURRENT_USER;
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO regress_reader});

# Everything, in an order that does not depend on OIDs
sub dump_views
{
	my ($out) = run_command([ 'pg_dump', '--schema-only', '-d', $node->connstr('app') ]);
	my @parts = grep { !/^-- Name: (?:users|notes|log|.*_seq)\b/ } split /^--\n(?=-- Name: )/m, $out =~ s/^\\.*\n//mgr;

	return join "\n", map { join "\n", sort split /\n/ } sort @parts;
}

my $before = dump_views();
my $page = Page->claim('docs/converting-applications.md', 'Views');
my @commands = Page::commands($page->take('drop_views.sql')->{text});
my $dir = PostgreSQL::Test::Utils::tempdir;
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
chdir $dir or die "$dir: $!";
$node->command_ok([ 'sh', '-c', $_ ], "a file is written: $_") foreach @commands;
is(slurp_file('drop_views.sql'), 'DROP MATERIALIZED VIEW public.empty;
DROP MATERIALIZED VIEW public.kept;
DROP VIEW public.noted;
DROP VIEW "Other Views"."Those they CREATE";
DROP VIEW public.people;
', 'views are dropped before those that they are made of');

my @psql = ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('app'), '-f');
$node->command_ok([ @psql, 'drop_views.sql' ], 'the views are dropped');
is($node->safe_psql('app', "SELECT count(*) FROM snowflake_convert_report('public', widen => 'names') WHERE severity = 'obstacle'"),
	'0', 'nothing is in the way');
$node->safe_psql('app', "SELECT snowflake_convert_schema('public', widen => 'names')");
$node->command_ok([ @psql, 'create_views.sql' ], 'the views are created again');
is(dump_views(), $before, 'they are as before');
is($node->safe_psql('app', "INSERT INTO notes SELECT id FROM users; REFRESH MATERIALIZED VIEW kept; SELECT count(*) FROM kept"),
	'2', 'and work');

# Views that depend on each other in a circle, by a rule
$node->safe_psql('app', q{
	CREATE TABLE tags (id serial PRIMARY KEY);
	CREATE VIEW one AS SELECT id FROM tags;
	CREATE VIEW two AS SELECT id FROM one;
	CREATE RULE circle AS ON DELETE TO one DO INSTEAD DELETE FROM two WHERE id = old.id});
is($node->safe_psql('app', "SELECT count(*) FROM snowflake_convert_report('public') WHERE finding LIKE 'it must be dropped%'"),
	'2', 'the report ends if views depend on each other in a circle');

$node->stop;
Page::all_taken();
done_testing();
