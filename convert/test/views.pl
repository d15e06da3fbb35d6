# What is in the way of a conversion is dropped, and created again as it was: views, rules,
# triggers and policies.  For what belongs to other roles, pg_dump has the statements.

use SnowflakeTest;

my $node = new_server('main', 'fsync = off');
my $space = PostgreSQL::Test::Utils::tempdir;

sql($node, 'CREATE ROLE regress_owner; CREATE ROLE regress_other; CREATE ROLE regress_reader; CREATE DATABASE app');
sql($node, "CREATE TABLESPACE other LOCATION '$space'");
sql($node, 'GRANT CREATE ON TABLESPACE other TO regress_owner');
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
	COMMENT ON RULE "_RETURN" ON people IS 'a query';
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
	ALTER MATERIALIZED VIEW kept SET (toast.autovacuum_enabled = off);
	CREATE MATERIALIZED VIEW texts AS SELECT id, name FROM users;
	ALTER MATERIALIZED VIEW texts ALTER name SET STORAGE EXTERNAL, ALTER name SET COMPRESSION pglz,
		ALTER name SET (n_distinct = 5), SET (toast.autovacuum_enabled = off);
	CREATE INDEX texts_upper ON texts (upper(name));
	ALTER INDEX texts_upper ALTER 1 SET STATISTICS 70;
	ALTER STATISTICS kept_both SET STATISTICS 80;
	CREATE TRIGGER of_column BEFORE UPDATE OF id ON users FOR EACH ROW EXECUTE FUNCTION instead();
	COMMENT ON TRIGGER of_column ON users IS 'of a column';
	CREATE CONSTRAINT TRIGGER condition AFTER INSERT ON users DEFERRABLE FOR EACH ROW WHEN (NEW.id > 5)
		EXECUTE FUNCTION instead();
	COMMENT ON CONSTRAINT condition ON users IS 'a condition';
	ALTER TABLE users ENABLE ALWAYS TRIGGER condition;
	CREATE RULE also AS ON UPDATE TO users WHERE NEW.id > 7 DO ALSO INSERT INTO log VALUES (1);
	ALTER TABLE users DISABLE RULE also;
	COMMENT ON RULE also ON users IS 'of a table';
	CREATE POLICY own ON notes AS RESTRICTIVE FOR UPDATE TO regress_reader, regress_other
		USING (user_id > 1) WITH CHECK (EXISTS (SELECT FROM people WHERE id = user_id));
	COMMENT ON POLICY own ON notes IS 'a policy';
	RESET ROLE;
	CREATE INDEX kept_odd ON kept (odd) TABLESPACE other;
	ALTER MATERIALIZED VIEW empty SET TABLESPACE other;
	SET ROLE regress_other;
	CREATE VIEW "Other Views"."Those they CREATE" AS SELECT count(*) FROM public.users WHERE id > 0;
	RESET ROLE;
	ALTER DEFAULT PRIVILEGES FOR ROLE regress_owner GRANT TRIGGER ON TABLES TO regress_other;
	ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM CURRENT_USER;
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO regress_reader});

# Everything but the tables, in an order that does not depend on OIDs
sub dump_views
{
	my ($out) = run_command([ 'pg_dump', '--schema-only', '-d', $node->connstr('app') ]);
	my @parts = grep { !/Type: (?:TABLE|SEQUENCE|SEQUENCE OWNED BY|DEFAULT|CONSTRAINT);/ } split /^--\n(?=-- Name: )/m, $out =~ s/^\\.*\n//mgr;

	return join "\n", map { join "\n", sort split /\n/ } sort @parts;
}

my $convert = "SELECT snowflake_convert_schema('public', widen => 'names')";
my $report = "snowflake_convert_report('public', widen => 'names', details => true)";
my $before = dump_views();
like($before, qr/toast\.autovacuum_enabled/, 'the dump has options');

#
# What belongs to another role
#
my ($rc, $out, $err) = $node->psql('app', $convert);
like($err, qr/DETAIL:  view "Other Views"\."Those they CREATE" is owned by role regress_other, but table public\.users by role regress_owner\nHINT:  Nothing was changed\. Change what these lines say, or drop the objects/,
	'a view of another role is an obstacle, and the only one');
is(dump_views(), $before, 'nothing was changed');
my $drop = 'DROP VIEW "Other Views"."Those they CREATE";';
my ($create) = run_command([ 'pg_dump', '--schema-only', '-t', '"Other Views"."Those they CREATE"', '-d', $node->connstr('app') ]);
$create =~ s/^\\.*\n//mg;

#
# What comes back
#
is($node->safe_psql('app', "SELECT object FROM $report WHERE finding LIKE 'it is dropped and created again%' ORDER BY 1"),
	'materialized view public.empty
materialized view public.kept
materialized view public.texts
policy own on table public.notes
rule also on table public.users
trigger condition on table public.users
trigger of_column on table public.users
view "Other Views"."Those they CREATE"
view public.noted
view public.people', 'the report names what comes back');
$node->safe_psql('app', "BEGIN; $drop $convert; SET ROLE regress_other; $create; COMMIT");
is(dump_views(), $before, 'all is as before');
is($node->safe_psql('app', "SELECT obj_description(oid, 'pg_rewrite') FROM pg_rewrite WHERE ev_class = 'people'::regclass"), 'a query', '... and a comment that pg_dump does not have');
is($node->safe_psql('app', "INSERT INTO notes SELECT id FROM users; REFRESH MATERIALIZED VIEW kept; SELECT count(*) FROM kept"),
	'2', 'and works');
is($node->safe_psql('app', "SELECT count(*) FROM pg_attribute WHERE attrelid IN ('people'::regclass, 'noted'::regclass, 'kept'::regclass) AND attname IN ('id', 'user_id') AND atttypid <> 'bigint'::regtype"),
	'0', 'with the new type');

# Views that depend on each other in a circle, by a rule
$node->safe_psql('app', q{
	CREATE TABLE tags (id serial PRIMARY KEY);
	CREATE VIEW one AS SELECT id FROM tags;
	CREATE VIEW two AS SELECT id FROM one;
	CREATE RULE circle AS ON DELETE TO one DO INSTEAD DELETE FROM two WHERE id = old.id});
$before = dump_views();
$node->safe_psql('app', "SELECT snowflake_convert('tags')");
is(dump_views(), $before, 'views that depend on each other in a circle come back');

done_testing();
