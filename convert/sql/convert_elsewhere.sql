--
-- The extension in other schemas, and views that cannot be created again
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_elsewhere;
\c regress_elsewhere
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_dba SUPERUSER;
CREATE ROLE regress_owner;
CREATE ROLE regress_other;
CREATE ROLE regress_reader;
SET SESSION AUTHORIZATION regress_dba;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;

-- beside a function that could be meant by the call in a view: refused, not called
CREATE FUNCTION _snowflake_stat(VARIADIC int[] DEFAULT '{}') RETURNS int LANGUAGE sql AS 'SELECT 1';
\set VERBOSITY sqlstate
CREATE EXTENSION snowflake;
\set VERBOSITY default
CREATE SCHEMA ids;
CREATE EXTENSION snowflake SCHEMA ids;
SELECT count(*) FROM ids.snowflake_stat;
DROP EXTENSION snowflake;
DROP FUNCTION _snowflake_stat;

-- in pg_catalog
SET allow_system_table_mods = on;
CREATE EXTENSION snowflake_convert SCHEMA pg_catalog CASCADE;
CREATE TABLE t (id serial PRIMARY KEY);
SELECT snowflake_convert('t');
RESET client_min_messages;
SELECT snowflake_convert('t');
SET client_min_messages = warning;
DROP TABLE t;
DROP EXTENSION snowflake_convert, snowflake;
RESET allow_system_table_mods;

-- in a schema of its own, on which the owner of the table needs USAGE
CREATE SCHEMA "Its Own";
CREATE EXTENSION snowflake_convert SCHEMA "Its Own" CASCADE;
GRANT CREATE ON SCHEMA public TO regress_owner;
SET ROLE regress_owner;
CREATE TABLE t (id serial PRIMARY KEY);
RESET ROLE;
SELECT "Its Own".snowflake_convert('t');
GRANT USAGE ON SCHEMA "Its Own" TO regress_owner;
SELECT "Its Own".snowflake_convert('t');
RESET client_min_messages;
SELECT "Its Own".snowflake_convert('t');
SET client_min_messages = warning;
DROP TABLE t;

-- views that cannot be created again are obstacles
SET search_path = public, "Its Own";
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_other LOCATION '';
CREATE SCHEMA closed;
SET ROLE regress_owner;
CREATE TABLE pages (id serial PRIMARY KEY);
GRANT SELECT ON pages TO regress_other;
CREATE VIEW with_function AS SELECT id FROM pages;
CREATE FUNCTION rows_of(with_function) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE VIEW with_type AS SELECT id FROM pages;
GRANT USAGE ON TYPE with_type TO regress_other;
CREATE VIEW granted_on AS SELECT id FROM pages;
GRANT SELECT ON granted_on TO regress_reader WITH GRANT OPTION;
SET ROLE regress_reader;
GRANT SELECT ON granted_on TO regress_other;
SET ROLE regress_owner;
CREATE VIEW in_closed_schema AS SELECT id FROM pages;
CREATE VIEW member AS SELECT id FROM pages;
CREATE VIEW plain AS SELECT id FROM pages;
RESET ROLE;
ALTER VIEW in_closed_schema SET SCHEMA closed;
CREATE MATERIALIZED VIEW stored TABLESPACE regress_other AS SELECT id FROM pages;
ALTER MATERIALIZED VIEW stored OWNER TO regress_owner;
ALTER EXTENSION snowflake_convert ADD VIEW member;
GRANT SELECT ON plain TO regress_other;
CREATE VIEW of_another_role AS SELECT id FROM plain;
ALTER VIEW of_another_role OWNER TO regress_other;
CREATE TABLE others (n int);
CREATE RULE r AS ON DELETE TO others DO ALSO DELETE FROM pages WHERE id = old.n;
-- since 17, the types of members of an extension are members, too
DO $$
DECLARE
    lines text;
BEGIN
    PERFORM FROM snowflake_convert('pages', dry_run => true);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS lines = PG_EXCEPTION_DETAIL;
    RAISE WARNING '%', regexp_replace(lines, '^type [^\n]*\n', '', 'gn');
END $$;
ALTER EXTENSION snowflake_convert DROP VIEW member;
SELECT snowflake_convert('pages');
DROP FUNCTION rows_of;
DROP VIEW with_type, granted_on, closed.in_closed_schema, of_another_role;
DROP MATERIALIZED VIEW stored;
DROP TABLE others;
SELECT count(*) > 0 AS converted FROM snowflake_convert('pages');

\c :tests
DROP DATABASE regress_elsewhere;
DROP TABLESPACE regress_other;
DROP ROLE regress_owner, regress_other, regress_reader, regress_dba;
