--
-- Who may create functions where those are that a table calls could create one that matches a
-- bigint better, while the table is converted: that must not be called with the rights of the
-- owner of the table.  So who may do so is an obstacle, and then nobody is held up.
--
SELECT current_database() AS tests \gset
CREATE ROLE regress_dba SUPERUSER;
SET SESSION AUTHORIZATION regress_dba;
CREATE DATABASE regress_planted;
\c regress_planted
SET SESSION AUTHORIZATION regress_dba;
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never
\pset tuples_only on

CREATE ROLE regress_mallory;
CREATE ROLE regress_owner NOINHERIT;
GRANT CREATE ON SCHEMA public TO regress_owner;
CREATE SCHEMA shop;
GRANT USAGE ON SCHEMA shop TO regress_mallory, regress_owner;
CREATE FUNCTION shop.listed(anyarray) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
SET ROLE regress_owner;
CREATE TABLE t (id serial PRIMARY KEY, v int CONSTRAINT listed CHECK (shop.listed(ARRAY[id])));
CREATE TABLE indexed (id serial PRIMARY KEY, v int);
CREATE INDEX listed ON indexed (id) WHERE shop.listed(ARRAY[id]);
CREATE TABLE shown (id serial PRIMARY KEY, v int);
CREATE VIEW v AS SELECT id FROM shown WHERE shop.listed(ARRAY[id]);
INSERT INTO t (v) SELECT generate_series(1, 10);
INSERT INTO indexed (v) SELECT generate_series(1, 10);
RESET ROLE;
\set calls 'SELECT snowflake_convert(:''table'', dry_run => true); SELECT snowflake_convert(:''table''); SELECT snowflake_convert_plan(:''table''); CALL snowflake_convert_online(:''table'');'

-- who may create one is an obstacle,
GRANT CREATE ON SCHEMA shop TO regress_mallory;
\set table t
:calls
\set table indexed
:calls
\set table shown
:calls
-- and who has created one, which is not called
SET ROLE regress_mallory;
CREATE FUNCTION shop.listed(bigint[]) RETURNS boolean IMMUTABLE LANGUAGE plpgsql
AS 'BEGIN RAISE WARNING ''runs as %'', current_user; RETURN true; END';
RESET ROLE;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
\set table t
:calls
\set table indexed
:calls
\set table shown
:calls
DROP FUNCTION shop.listed(bigint[]);
DROP TABLE indexed, shown CASCADE;

-- in which ways a role may create one, and which statement, or membership, is right then
\set try 'SELECT count(*) > 0 FROM snowflake_convert(''t'', dry_run => true);'
GRANT CREATE ON SCHEMA shop TO PUBLIC;
:try
REVOKE CREATE ON SCHEMA shop FROM PUBLIC;
:try
-- the owner of the schema
ALTER SCHEMA shop OWNER TO regress_mallory;
:try
ALTER SCHEMA shop OWNER TO regress_owner;
:try
-- ... of the database
ALTER SCHEMA shop OWNER TO pg_database_owner;
GRANT USAGE ON SCHEMA shop TO regress_owner;
ALTER DATABASE regress_planted OWNER TO regress_mallory;
:try
ALTER DATABASE regress_planted OWNER TO regress_owner;
:try
ALTER DATABASE regress_planted OWNER TO regress_dba;
ALTER SCHEMA shop OWNER TO regress_dba;
GRANT USAGE ON SCHEMA shop TO regress_owner;
-- not who is a member of the owner of the table, or can become it, since 16 by options
GRANT CREATE ON SCHEMA shop TO regress_mallory;
:try
GRANT regress_owner TO regress_mallory;
:try
REVOKE regress_owner FROM regress_mallory;
ALTER ROLE regress_mallory NOINHERIT;
:try
GRANT regress_owner TO regress_mallory;
:try
REVOKE regress_owner FROM regress_mallory;
SELECT current_setting('server_version_num')::int >= 160000 AS has_options \gset
\if :has_options
    GRANT regress_owner TO regress_mallory WITH INHERIT FALSE, SET FALSE;
\endif
:try
\if :has_options
    GRANT regress_owner TO regress_mallory WITH SET TRUE;
\else
    GRANT regress_owner TO regress_mallory;
\endif
:try
REVOKE regress_owner FROM regress_mallory;

-- A view names tables of its schema, of which the owner is that of the database.  Whoever can grant
-- himself the role that owns the tables, as the role of a provider's customer, is trusted.
DROP TABLE t;
SET ROLE regress_owner;
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE VIEW v AS SELECT id FROM t;
RESET ROLE;
ALTER SCHEMA public OWNER TO pg_database_owner;
GRANT USAGE, CREATE ON SCHEMA public TO regress_owner;
ALTER DATABASE regress_planted OWNER TO regress_mallory;
:try
ALTER SCHEMA public OWNER TO regress_owner;
:try
ALTER SCHEMA public OWNER TO pg_database_owner;
GRANT CREATE ON SCHEMA public TO regress_owner;
:try
\if :has_options
    GRANT regress_owner TO regress_mallory WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;
\else
    ALTER ROLE regress_mallory CREATEROLE;
\endif
:try
ALTER DATABASE regress_planted OWNER TO regress_dba;
ALTER ROLE regress_mallory NOCREATEROLE;
\if :has_options
    REVOKE regress_owner FROM regress_mallory;
\endif

-- A policy names tables of other schemas, whose code any role that reads the table would call.
CREATE SCHEMA names;
CREATE TABLE names.allowed (id int);
GRANT USAGE ON SCHEMA names TO regress_owner;
GRANT SELECT ON names.allowed TO regress_owner;
SET ROLE regress_owner;
DROP VIEW v;
CREATE POLICY p ON t USING (id IN (SELECT id FROM names.allowed));
RESET ROLE;
ALTER SCHEMA names OWNER TO regress_mallory;
:try
ALTER SCHEMA names OWNER TO regress_owner;
:try

-- only the server's own functions are called: nothing is asked
SET ROLE regress_owner;
DROP POLICY p ON t;
CREATE VIEW v AS SELECT id, upper(v::text) FROM t;
ALTER TABLE t ADD CHECK (abs(id) >= 0);
CREATE INDEX ON t (abs(id));
RESET ROLE;
:try
SELECT count(*) > 0 FROM snowflake_convert_plan('t');
DROP TABLE t CASCADE;

-- New IDs are tried with what is not created again, too, also by a report.
CREATE SCHEMA tried;
CREATE FUNCTION shop.small(anyelement) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE TABLE tried.t (id bigserial PRIMARY KEY CONSTRAINT listed CHECK (shop.listed(ARRAY[id])),
    next bigint GENERATED ALWAYS AS (id + 1) STORED);
CREATE INDEX small ON tried.t (next) WHERE shop.small(next);
CREATE TABLE tried.parts (id bigserial) PARTITION BY LIST ((id > 0 AND shop.listed(ARRAY[id])));
CREATE TABLE tried.part PARTITION OF tried.parts DEFAULT;
SET ROLE regress_mallory;
CREATE FUNCTION shop.small(bigint) RETURNS boolean IMMUTABLE LANGUAGE plpgsql
AS 'BEGIN RAISE WARNING ''runs as %'', current_user; RETURN true; END';
CREATE FUNCTION shop.listed(bigint[]) RETURNS boolean IMMUTABLE LANGUAGE plpgsql
AS 'BEGIN RAISE WARNING ''runs as %'', current_user; RETURN true; END';
RESET ROLE;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
SELECT finding FROM snowflake_convert_report('tried', details => true) WHERE severity = 'obstacle';
SELECT snowflake_convert_schema('tried', dry_run => true);
SELECT snowflake_convert_schema('tried');
DROP TABLE tried.t;
SELECT snowflake_convert_schema('tried');
DROP SCHEMA tried CASCADE;
DROP FUNCTION shop.listed(bigint[]);

-- Who owns a schema can have the name of a table find another one, whose code a superuser would call.
CREATE SCHEMA theirs AUTHORIZATION regress_mallory;
CREATE TABLE theirs.t (id serial PRIMARY KEY);
SELECT snowflake_convert('theirs.t');
SELECT snowflake_convert('theirs.t', dry_run => true);
CALL snowflake_convert_online('theirs.t');
-- ... but not an ordinary role, which cannot alter tables of others
ALTER TABLE theirs.t OWNER TO regress_owner;
GRANT USAGE, CREATE ON SCHEMA theirs TO regress_owner;
SELECT snowflake_convert('theirs.t');
DROP SCHEMA theirs CASCADE;
-- ... or that of a relation, or of a type, in a view that is created again
CREATE SCHEMA theirs AUTHORIZATION regress_owner;
SET ROLE regress_owner;
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE TABLE theirs.other (a int);
CREATE VIEW of_table AS SELECT id, a FROM t, theirs.other;
CREATE TABLE u (id serial PRIMARY KEY, v int);
CREATE DOMAIN theirs.number AS bigint;
CREATE VIEW of_type AS SELECT id::theirs.number FROM u;
RESET ROLE;
:try
SELECT count(*) > 0 FROM snowflake_convert('u', dry_run => true);
ALTER SCHEMA theirs OWNER TO regress_mallory;
\set table t
:calls
\set table u
:calls
DROP SCHEMA theirs CASCADE;

-- A function of the extensions is not mistaken for one of another role: whoever may create functions
-- beside them has one for texts of each.
SET ROLE regress_owner;
CREATE TABLE o (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, t int REFERENCES t);
RESET ROLE;
GRANT CREATE ON SCHEMA public TO regress_mallory;
SET ROLE regress_mallory;
\set ECHO none
SELECT DISTINCT format('CREATE %s %s.%I(%s) %sLANGUAGE plpgsql AS %L', CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
    p.pronamespace::regnamespace, p.proname, first || repeat(', text', n - 1),
    CASE WHEN p.prokind <> 'p' THEN 'RETURNS text ' END, 'BEGIN RAISE WARNING ''runs as %'', current_user; END')
FROM pg_proc p JOIN pg_depend d ON (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, p.oid, 'e')
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname IN ('snowflake', 'snowflake_convert'),
    generate_series(1, p.pronargs) n, unnest(ARRAY['text', 'regclass', 'regclass[]']) first
WHERE p.proname ~ 'convert|_kind|_ranges'
AND ARRAY[first]::regtype[] || array_fill('text'::regtype, ARRAY[n - 1]) <> (p.proargtypes::oid[]::regtype[])[0:n - 1] \gexec
\set ECHO all
RESET ROLE;
SELECT count(*) > 20 AS there_are_some FROM pg_proc WHERE proowner = 'regress_mallory'::regrole AND prosrc ~ 'runs as';
BEGIN;
SELECT count(*) FROM snowflake_convert('t'::regclass);
ROLLBACK;
BEGIN;
SELECT count(*) FROM snowflake_convert('o'::regclass);
ROLLBACK;
CALL snowflake_convert_online('o'::regclass);
\set ECHO none
SELECT statement FROM snowflake_convert_plan('t'::regclass, NULL::name, false) WHERE state <> 'done' AND phase <> 'default' \gexec
SELECT statement FROM snowflake_convert_plan('t'::regclass, NULL::name, false) WHERE state <> 'done' AND phase = 'default' \gexec
\set ECHO all
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attrelid IN ('o'::regclass, 't'::regclass) AND attname IN ('id', 't') AND atttypid = 'bigint'::regtype ORDER BY 1, 2;

\c :tests
DROP DATABASE regress_planted;
DROP ROLE regress_mallory, regress_owner, regress_dba;
