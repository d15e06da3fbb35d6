# Who may create functions where those are that a table calls could create one that matches a
# bigint better, while the table is converted: that must not be called with the rights of the
# owner of the table.  So who may do so is an obstacle, and then nobody is held up.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off');
sql($node, q{
	CREATE ROLE regress_mallory;
	CREATE ROLE regress_owner NOINHERIT;
	GRANT CREATE ON SCHEMA public TO regress_owner;
	CREATE SCHEMA shop;
	GRANT USAGE ON SCHEMA shop TO regress_mallory, regress_owner;
	CREATE FUNCTION shop.listed(anyarray) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'});

my $planted = q{CREATE FUNCTION shop.listed(bigint[]) RETURNS boolean IMMUTABLE LANGUAGE plpgsql
	AS 'BEGIN RAISE WARNING ''runs as %'', current_user; RETURN true; END'};
my $view = 'CREATE VIEW v AS SELECT id FROM t WHERE shop.listed(ARRAY[id]);';
my $check = 'ALTER TABLE t ADD CONSTRAINT listed CHECK (shop.listed(ARRAY[id]));';
my $index = 'CREATE INDEX listed ON t (id) WHERE shop.listed(ARRAY[id]);';

# Objects of a new table call the function.
sub create_table (@objects)
{
	sql($node, qq{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS t CASCADE;
		SET ROLE regress_owner;
		CREATE TABLE t (id serial PRIMARY KEY, v int);
		INSERT INTO t (v) SELECT generate_series(1, 10);
		@objects});
	return;
}

# What a call says, of which nothing is to stay.
sub said ($call)
{
	return run_in($node, 'postgres', $call =~ /online/ ? "CALL $call" : "BEGIN; SELECT $call; ROLLBACK");
}

my @calls = (q{snowflake_convert('t', dry_run => true)}, q{snowflake_convert('t')}, q{snowflake_convert_plan('t')}, q{snowflake_convert_online('t')});
my $revoke = 'role regress_mallory could have its code called for .*: REVOKE CREATE ON SCHEMA shop FROM regress_mallory';
my $take = 'role regress_mallory could have its code called for .*: ALTER ROUTINE shop.listed\(bigint\[\]\) OWNER TO regress_owner';

# Who may create one, and has done so
foreach my $object ($view, $check, $index)
{
	create_table($object);
	sql($node, 'GRANT CREATE ON SCHEMA shop TO regress_mallory');
	like(said($_), qr/DETAIL:  $revoke\n/, "who may create a function is an obstacle: $_, $object") foreach @calls;
	sql($node, "SET ROLE regress_mallory; $planted");
	sql($node, 'REVOKE CREATE ON SCHEMA shop FROM regress_mallory');
	foreach my $call (@calls)
	{
		my $said = said($call);
		like($said, qr/DETAIL:  $take\n/, '... and who has created one');
		unlike($said, qr/runs as/, '... which is not called');
	}
	sql($node, 'DROP FUNCTION shop.listed(bigint[])');
}

# In which ways a role may create one, and which statement, or membership, is right then
sub allow ($what, $allow, $cure, $statement)
{
	my $call = q{snowflake_convert('t', dry_run => true)};

	sql($node, $allow);
	like(said($call), qr/DETAIL:  $statement\n/, $what);
	sql($node, $cure);
	unlike(said($call), qr/ERROR/, "... and is not after: $cure");
	return;
}

create_table($check);
allow('a privilege of all roles is an obstacle', 'GRANT CREATE ON SCHEMA shop TO PUBLIC', 'REVOKE CREATE ON SCHEMA shop FROM PUBLIC',
	'PUBLIC could have its code called for constraint listed on table .*t: REVOKE CREATE ON SCHEMA shop FROM PUBLIC');
allow('the owner of the schema is one', 'ALTER SCHEMA shop OWNER TO regress_mallory', 'ALTER SCHEMA shop OWNER TO regress_owner',
	'role regress_mallory could .*: ALTER SCHEMA shop OWNER TO regress_owner');
allow('the owner of the database is one', 'ALTER SCHEMA shop OWNER TO pg_database_owner; GRANT USAGE ON SCHEMA shop TO regress_owner; ALTER DATABASE postgres OWNER TO regress_mallory',
	'ALTER DATABASE postgres OWNER TO regress_owner', 'role regress_mallory could .*: ALTER SCHEMA shop OWNER TO regress_owner');
sql($node, 'ALTER DATABASE postgres OWNER TO postgres; ALTER SCHEMA shop OWNER TO postgres; GRANT USAGE ON SCHEMA shop TO regress_owner');
allow('who is no member of the owner is one', 'GRANT CREATE ON SCHEMA shop TO regress_mallory', 'GRANT regress_owner TO regress_mallory', $revoke);
sql($node, 'REVOKE regress_owner FROM regress_mallory; ALTER ROLE regress_mallory NOINHERIT');
allow('... nor one who inherits nothing, but can become the owner', 'SELECT', 'GRANT regress_owner TO regress_mallory', $revoke);
SKIP:
{
	skip 'memberships have options since PostgreSQL 16', 2 if $node->pg_version < 16;
	allow('... but a member without rights is one', 'GRANT regress_owner TO regress_mallory WITH INHERIT FALSE, SET FALSE',
		'GRANT regress_owner TO regress_mallory WITH SET TRUE', $revoke);
}
sql($node, 'REVOKE regress_owner FROM regress_mallory');

# A view names tables of its schema, of which the owner is that of the database.  Whoever can grant
# himself the role that owns the tables, as the role of a provider's customer, is trusted.
create_table('CREATE VIEW v AS SELECT id FROM t;');
sql($node, 'GRANT USAGE, CREATE ON SCHEMA public TO regress_owner; ALTER DATABASE postgres OWNER TO regress_mallory');
my $public = 'role regress_mallory could have its code called for rule _RETURN on view .*v: ALTER SCHEMA public OWNER TO regress_owner';
allow('the owner of the database is one for a view in "public"', 'SELECT', 'ALTER SCHEMA public OWNER TO regress_owner', $public);
allow('... but not who can grant himself the role of the tables', 'ALTER SCHEMA public OWNER TO pg_database_owner; GRANT CREATE ON SCHEMA public TO regress_owner',
	$node->pg_version < 16 ? 'ALTER ROLE regress_mallory CREATEROLE' : 'GRANT regress_owner TO regress_mallory WITH ADMIN TRUE, INHERIT FALSE, SET FALSE', $public);
sql($node, 'ALTER DATABASE postgres OWNER TO postgres; REVOKE regress_owner FROM regress_mallory; ALTER ROLE regress_mallory NOCREATEROLE');

# A policy names tables of other schemas, whose code any role that reads the table would call.
sql($node, q{
	CREATE SCHEMA names;
	CREATE TABLE names.allowed (id int);
	GRANT USAGE ON SCHEMA names TO regress_owner;
	GRANT SELECT ON names.allowed TO regress_owner});
create_table('CREATE POLICY p ON t USING (id IN (SELECT id FROM names.allowed));');
allow('the owner of a schema in a policy is one', 'ALTER SCHEMA names OWNER TO regress_mallory', 'ALTER SCHEMA names OWNER TO regress_owner',
	'role regress_mallory could have its code called for policy p on table .*t: ALTER SCHEMA names OWNER TO regress_owner');

# Only the server's own functions are called: nothing is asked.
create_table('CREATE VIEW v AS SELECT id, upper(v::text) FROM t; ALTER TABLE t ADD CHECK (abs(id) >= 0); CREATE INDEX ON t (abs(id))');
unlike(said($_), qr/ERROR/, "tables that call only functions of the server have no such obstacle: $_") foreach @calls[ 0, 1, 2 ];

# New IDs are tried with what is not created again, too, also by a report.
sql($node, qq{
	SET client_min_messages = warning;
	CREATE SCHEMA tried;
	CREATE FUNCTION shop.small(anyelement) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
	CREATE TABLE tried.t (id bigserial PRIMARY KEY CONSTRAINT listed CHECK (shop.listed(ARRAY[id])),
		next bigint GENERATED ALWAYS AS (id + 1) STORED);
	CREATE INDEX small ON tried.t (next) WHERE shop.small(next);
	CREATE TABLE tried.parts (id bigserial) PARTITION BY LIST ((id > 0 AND shop.listed(ARRAY[id])));
	CREATE TABLE tried.part PARTITION OF tried.parts DEFAULT;
	SET ROLE regress_mallory;
	CREATE FUNCTION shop.small(bigint) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RAISE WARNING ''runs as %'', current_user; RETURN true; END';
	$planted;
	RESET ROLE;
	REVOKE CREATE ON SCHEMA shop FROM regress_mallory});
foreach my $call (q{snowflake_convert_report('tried', details => true) WHERE severity = 'obstacle'}, q{snowflake_convert_schema('tried', dry_run => true)}, q{snowflake_convert_schema('tried')})
{
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT finding FROM $call" =~ s/finding FROM (?=snowflake_convert_schema)//r);
	unlike($err, qr/runs as/, "no function of another role is called: $call");
	like("$out$err", qr/called for constraint listed on table tried\.t: ALTER ROUTINE shop\.listed\(bigint\[\]\) OWNER/, '... and a constraint is an obstacle');
	like("$out$err", qr/called for index tried\.small: ALTER ROUTINE shop\.small\(bigint\) OWNER/, '... and an index of a generated column');
}
sql($node, 'DROP TABLE tried.t');
like(run_in($node, 'postgres', q{SELECT snowflake_convert_schema('tried')}), qr/called for table tried\.parts: ALTER ROUTINE shop\.listed\(bigint\[\]\) OWNER/, '... and a partition key');
sql($node, 'DROP SCHEMA tried CASCADE; DROP FUNCTION shop.listed(bigint[])');

# Who owns a schema can have the name of a table find another one, whose code a superuser would call.
sql($node, q{
	CREATE SCHEMA theirs AUTHORIZATION regress_mallory;
	CREATE TABLE theirs.t (id serial PRIMARY KEY)});
foreach my $call (q{SELECT snowflake_convert('theirs.t')}, q{SELECT snowflake_convert('theirs.t', dry_run => true)}, q{CALL snowflake_convert_online('theirs.t')})
{
	sql_fails($node, $call,
		qr/role regress_mallory could have its code called for table theirs\.t: ALTER SCHEMA theirs OWNER TO postgres/,
		"a table of a superuser in a schema of another role: $call");
}
is(sql_error($node, q{SET client_min_messages = warning; ALTER TABLE theirs.t OWNER TO regress_owner; GRANT USAGE, CREATE ON SCHEMA theirs TO regress_owner; SELECT snowflake_convert('theirs.t')}),
	'', '... and not one of an ordinary role, which cannot alter tables of others');
sql($node, 'DROP SCHEMA theirs CASCADE');

# ... or that of a relation, or of a type, in a view that is created again.
sql($node, 'CREATE SCHEMA theirs; GRANT USAGE, CREATE ON SCHEMA theirs TO regress_owner');
foreach my $object ('CREATE TABLE theirs.other (a int); CREATE VIEW v AS SELECT id, a FROM t, theirs.other;', 'CREATE DOMAIN theirs.number AS bigint; CREATE VIEW v AS SELECT id::theirs.number FROM t;')
{
	sql($node, 'ALTER SCHEMA theirs OWNER TO regress_owner');
	create_table($object);
	unlike(said($calls[0]), qr/ERROR/, "what a view names can be in a schema of the owner: $object");
	sql($node, 'ALTER SCHEMA theirs OWNER TO regress_mallory');
	like(said($_), qr/DETAIL:  role regress_mallory could have its code called for rule _RETURN on view .*v: ALTER SCHEMA theirs OWNER TO regress_owner\n/, "... and not of another role: $_") foreach @calls;
}
sql($node, 'SET client_min_messages = warning; DROP SCHEMA theirs CASCADE');

# A function of the extensions is not mistaken for one of another role: whoever may create functions
# beside them has one for texts of each.
create_table('CREATE TABLE o (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, t int REFERENCES t);');
sql($node, q{
	GRANT CREATE ON SCHEMA public TO regress_mallory;
	SET ROLE regress_mallory;
	SELECT DISTINCT format('CREATE %s %s.%I(%s) %sLANGUAGE plpgsql AS %L', CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
		p.pronamespace::regnamespace, p.proname, first || repeat(', text', n - 1),
		CASE WHEN p.prokind <> 'p' THEN 'RETURNS text ' END, 'BEGIN RAISE WARNING ''runs as %'', current_user; END')
	FROM pg_proc p JOIN pg_depend d ON (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, p.oid, 'e')
		JOIN pg_extension e ON e.oid = d.refobjid AND e.extname IN ('snowflake', 'snowflake_convert'),
		generate_series(1, p.pronargs) n, unnest(ARRAY['text', 'regclass', 'regclass[]']) first
	WHERE p.proname ~ 'convert|_kind|_ranges'
	AND ARRAY[first]::regtype[] || array_fill('text'::regtype, ARRAY[n - 1]) <> (p.proargtypes::oid[]::regtype[])[0:n - 1] \gexec});
my $by_hand = q{SELECT statement FROM snowflake_convert_plan('t'::regclass, NULL::name, false) WHERE state <> 'done' AND phase %s 'default' \gexec};
unlike(sql_error($node, "BEGIN; SELECT snowflake_convert('$_'::regclass); ROLLBACK"), qr/runs as|ERROR/, "no function of another role is called for $_") foreach qw(t o);
unlike(sql_error($node, "CALL snowflake_convert_online('o'::regclass)"), qr/runs as|ERROR/, '... nor while it is in use');
unlike(sql_error($node, join("\n", map { sprintf($by_hand, $_) } '<>', '=')), qr/runs as|ERROR/, '... nor by the statements of a plan');
is(sql($node, q{SELECT string_agg(attrelid::regclass || '.' || attname, ' ' ORDER BY attrelid::regclass::text, attname) FROM pg_attribute
	WHERE attrelid IN ('o'::regclass, 't'::regclass) AND attname IN ('id', 't') AND atttypid = 'bigint'::regtype}), 'o.id o.t t.id', '... and the columns are bigint');
sql($node, 'SET client_min_messages = warning; DROP TABLE o; DROP OWNED BY regress_mallory');

# Meanwhile, nobody waits who creates something else.
create_table($check, $view, $index);
my $converter = $node->background_psql('postgres');
$converter->query_safe(q{SET client_min_messages = warning; BEGIN; SELECT snowflake_convert('t')});
foreach my $create ('FUNCTION shop.other() RETURNS int LANGUAGE sql AS $$SELECT 1$$', 'TABLE other (id int)', 'TEMPORARY TABLE other (id int)', 'TYPE shop.mood AS ENUM ()', 'CAST (int8 AS jsonb) WITH INOUT')
{
	is(sql_error($node, "SET lock_timeout = '1s'; BEGIN; CREATE $create; ROLLBACK"), '', "not held up by a conversion: CREATE $create");
}
$converter->query_safe('COMMIT');
$converter->quit;
is(sql($node, q{SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'id'}), 'bigint', 'the table is converted');

done_testing();
