--
-- CREATE EXTENSION by a role that has only the privilege to create objects in its
-- database; in a schema of this role
--
CREATE ROLE regress_migrator;
CREATE ROLE regress_nobody;
CREATE DATABASE regress_trusted TEMPLATE template0;
GRANT CREATE ON DATABASE regress_trusted TO regress_migrator;
SELECT current_database() AS tests \gset
\c regress_trusted
\set SHOW_CONTEXT never

SET SESSION AUTHORIZATION regress_nobody;
CREATE EXTENSION snowflake;
SET SESSION AUTHORIZATION regress_migrator;

-- Traps in the schema, for whatever the script would find there: better matches
-- of functions, operators and types.  What runs as a superuser, or can become
-- one, makes the role a superuser.
CREATE SCHEMA ext;
CREATE FUNCTION ext.grab() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    ALTER ROLE regress_migrator SUPERUSER;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;
END
$$;
-- operators for each pair of types for which PostgreSQL has none
DO $$
DECLARE
    types regtype[] := '{oid,regclass,regtype,regproc,boolean,smallint,integer,bigint,float8,numeric,text,name,timestamptz,interval}';
    operators text[] := '{=,<>,<,<=,>,>=,~~,!~~,~,+,-,*,/}';
    l regtype;
    r regtype;
    o text;
BEGIN
    FOREACH l IN ARRAY types LOOP
        FOREACH r IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION ext.trap(%s, %s) RETURNS boolean LANGUAGE plpgsql AS %L',
                           l, r, 'BEGIN PERFORM ext.grab(); RETURN true; END');
            FOREACH o IN ARRAY operators LOOP
                IF NOT EXISTS (SELECT FROM pg_operator p WHERE p.oprname = o AND p.oprleft = l AND p.oprright = r) THEN
                    EXECUTE format('CREATE OPERATOR ext.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = ext.trap)', o, l, r);
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END
$$;
CREATE FUNCTION ext.snowflake_parse(integer) RETURNS integer LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE FUNCTION ext.snowflake_parse(VARIADIC bigint[]) RETURNS integer LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE FUNCTION ext._snowflake_stat(VARIADIC text[]) RETURNS integer LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE FUNCTION ext.pg_encoding_to_char(bigint) RETURNS text LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE FUNCTION ext.equal(text, text) RETURNS boolean LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN true; END';
CREATE OPERATOR ext.= (LEFTARG = text, RIGHTARG = text, FUNCTION = ext.equal);
CREATE FUNCTION ext.remainder(bigint, integer) RETURNS integer LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE OPERATOR ext.% (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = ext.remainder);
CREATE FUNCTION ext.remainder(integer, bigint) RETURNS integer LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE OPERATOR ext.% (LEFTARG = integer, RIGHTARG = bigint, FUNCTION = ext.remainder);
CREATE DOMAIN ext.text AS pg_catalog.text CHECK (ext.grab() IS NULL);
CREATE DOMAIN ext.bigint AS int8 CHECK (ext.grab() IS NULL);
CREATE DOMAIN ext.regclass AS pg_catalog.regclass CHECK (ext.grab() IS NULL);
CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (ext.grab() IS NULL);
-- settings that a session may have
DO $$
BEGIN
    SET standard_conforming_strings = off;
EXCEPTION WHEN feature_not_supported THEN
    NULL;	-- since PostgreSQL 19
END
$$;
SET quote_all_identifiers = on;
SET check_function_bodies = off;
SET search_path = ext, pg_temp, pg_catalog;

-- the name of the schema is nowhere in the script
SET client_min_messages = warning;
CREATE SCHEMA "$$";
CREATE EXTENSION snowflake SCHEMA "$$";
DROP EXTENSION snowflake;
DROP SCHEMA "$$";
RESET client_min_messages;

-- existing objects are not taken over, and nothing ambiguous is called
\set VERBOSITY sqlstate
CREATE FUNCTION snowflake_nextval() RETURNS int8 LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE EXTENSION snowflake SCHEMA ext;
DROP FUNCTION snowflake_nextval();
CREATE FUNCTION ext._snowflake_stat(i integer DEFAULT 0) RETURNS integer LANGUAGE plpgsql
    AS 'BEGIN PERFORM ext.grab(); RETURN 0; END';
CREATE EXTENSION snowflake SCHEMA ext;
DROP FUNCTION ext._snowflake_stat(integer);
\set VERBOSITY default

CREATE EXTENSION snowflake SCHEMA ext;
CREATE EXTENSION snowflake_convert SCHEMA ext;
CREATE EXTENSION snowflake_keys SCHEMA ext;
RESET ALL;
SELECT rolname, rolsuper FROM pg_roles WHERE rolname = 'regress_migrator';

-- The role owns the extension, but not its objects.  No function runs as its owner,
-- or uses the caller's search_path.  The rest of the list is functions that not
-- everyone may execute.
SELECT extowner::regrole, extnamespace::regnamespace, extversion = '1.0' AS version
FROM pg_extension WHERE extname = 'snowflake';
CREATE TEMP TABLE member AS
SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'snowflake';
SELECT count(*) > 0 AS functions, bool_and(o.rolsuper) AS of_a_superuser,
       bool_or(p.prosecdef) AS security_definer,
       bool_or(l.lanname <> 'c' AND p.prosqlbody IS NULL AND p.proconfig IS NULL) AS by_search_path
FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
    JOIN pg_roles o ON o.oid = p.proowner JOIN pg_language l ON l.oid = p.prolang;
SELECT c.relname, c.relkind, o.rolsuper AS of_a_superuser
FROM member m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
    JOIN pg_roles o ON o.oid = c.relowner
ORDER BY 1;
SELECT p.oid::regprocedure AS denied
FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
WHERE NOT has_function_privilege(p.oid, 'EXECUTE') ORDER BY p.oid::regprocedure::pg_catalog.text COLLATE "C";
SELECT DISTINCT classid::regclass AS kinds FROM member
WHERE classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass, 'pg_rewrite'::regclass);

-- nothing in it uses other objects in the schema
SELECT DISTINCT pg_describe_object(d.refclassid, d.refobjid, 0) AS trap
FROM pg_depend d
    LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    LEFT JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
    LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid AND t.typtype = 'd'
WHERE EXISTS (SELECT FROM member m WHERE m.objid = coalesce(r.ev_class, d.objid))
AND 'ext'::regnamespace IN (p.pronamespace, o.oprnamespace, t.typnamespace)
AND NOT EXISTS (SELECT FROM member m WHERE m.objid = d.refobjid)
ORDER BY 1;

-- privileges of administrators
SELECT ext.snowflake_raise_mark(1);
SELECT ext.snowflake_set_mark(1);
SELECT ext.snowflake_set_mark(0, '{}', true);
SELECT ext.snowflake_accept_clock();
SELECT ext.snowflake_stat_reset();
GRANT EXECUTE ON FUNCTION ext.snowflake_set_mark(bigint, regclass[], boolean) TO regress_migrator;
GRANT EXECUTE ON FUNCTION ext.snowflake_accept_clock() TO PUBLIC;
GRANT EXECUTE ON FUNCTION ext.snowflake_stat_reset() TO regress_migrator;
ALTER FUNCTION ext.snowflake_set_mark(bigint, regclass[], boolean) OWNER TO regress_migrator;
ALTER FUNCTION ext.snowflake_set_mark(bigint, regclass[], boolean) RENAME TO reset;
CREATE FUNCTION ext.my_reset(bigint, regclass[], boolean) RETURNS void
    AS '$libdir/snowflake', 'snowflake_set_mark' LANGUAGE C STRICT;
-- nor can it replace them, although it owns the schema and the extension
ALTER FUNCTION ext.snowflake_nextval() SECURITY DEFINER;
ALTER FUNCTION ext.snowflake_nextval() SET search_path = ext;
ALTER FUNCTION ext.snowflake_nextval() RENAME TO other;
CREATE OR REPLACE FUNCTION ext.snowflake_nextval() RETURNS int8 LANGUAGE sql AS 'SELECT 1::int8';
CREATE OR REPLACE VIEW ext.snowflake_stat AS SELECT 1;
DROP FUNCTION ext.snowflake_nextval();
DROP VIEW ext.snowflake_stat;
ALTER EXTENSION snowflake DROP FUNCTION ext.snowflake_nextval();
ALTER EXTENSION snowflake DROP VIEW ext.snowflake_stat;
ALTER VIEW ext.snowflake_stat OWNER TO regress_migrator;

-- usage, without the schema in search_path
CREATE SCHEMA app;
SET search_path = app;
CREATE TABLE invoice (id bigint PRIMARY KEY DEFAULT ext.snowflake_nextval(), v int);
INSERT INTO invoice (v) SELECT generate_series(1, 3);
SELECT count(DISTINCT id), bool_and(id > 1000000) AS snowflakes FROM invoice;
CREATE TABLE customers (id serial PRIMARY KEY);
CREATE TABLE orders (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, customer int REFERENCES customers);
INSERT INTO customers SELECT FROM generate_series(1, 3);
SELECT ext.snowflake_convert('customers', dry_run => true);
SELECT ext.snowflake_convert('customers');
SELECT ext.snowflake_convert('orders', generator => 'ext.snowflake_id()');
SELECT ext.snowflake_convert('orders', generator => 'ext.snowflake_id()');
INSERT INTO customers DEFAULT VALUES;
INSERT INTO orders (customer) SELECT max(id) FROM customers RETURNING id > 1000000 AS snowflake, customer > 1000000 AS widened;
SELECT ext.snowflake_currval() = max(id) AS current FROM orders;
SELECT count(*), count(DISTINCT id) FROM ext.snowflake_nextval(10) id;
SELECT bool_and((ext.snowflake_parse(id)).worker_id = (SELECT worker_id FROM ext.snowflake_stat)
                AND ext.snowflake_timestamp(id) > now() - interval '1 day'
                AND ext.snowflake_lower_bound(ext.snowflake_timestamp(id)) <= id
                AND ext.snowflake_decode(ext.snowflake_encode(id)) = id
                AND ext.hashids_decode(ext.hashids_encode(id)) = ARRAY[id]
                AND ext.sqids_decode(ext.sqids_encode(id)) = ARRAY[id]) AS parts
FROM orders;
SELECT ext.uuid_timestamp(ext.uuid_v7()) > now() - interval '1 day' AS uuid,
       ext.uuid_v4() <> ext.uuid_v4() AS random,
       ext.objectid_timestamp(ext.objectid()) > now() - interval '1 day' AS objectid;
CREATE SEQUENCE of_day;
SELECT ext.daily_nextval('of_day') > 20260000000000 AS daily;
SELECT ids > 0 AS counted FROM ext.snowflake_stat;
SELECT count(*) > 0 AS schemes FROM ext.snowflake_schemes();

-- it cannot convert tables of others
RESET SESSION AUTHORIZATION;
CREATE TABLE app.of_others (id serial PRIMARY KEY);
SET SESSION AUTHORIZATION regress_migrator;
SELECT ext.snowflake_convert('of_others');

-- others insert without privileges on the schema
GRANT USAGE ON SCHEMA app TO regress_nobody;
GRANT INSERT (customer), SELECT ON orders TO regress_nobody;
SET SESSION AUTHORIZATION regress_nobody;
INSERT INTO app.orders (customer) VALUES (1) RETURNING id > 1000000 AS snowflake;
SELECT ext.snowflake_nextval();
SET SESSION AUTHORIZATION regress_migrator;

-- the mark is not lowered below IDs, whichever default they are from
RESET SESSION AUTHORIZATION;
CREATE TABLE app.no_key (id bigint DEFAULT ext.snowflake_id());
INSERT INTO app.no_key VALUES (9007199254740991);
SELECT ext.snowflake_set_mark(1, '{app.no_key}');
DROP TABLE app.of_others, app.no_key;
SET SESSION AUTHORIZATION regress_migrator;

-- the role removes them, too
DROP EXTENSION snowflake_convert, snowflake_keys;
DROP EXTENSION snowflake;
DROP EXTENSION snowflake CASCADE;
SELECT ext.snowflake_set_sequence_kind('customers_id_seq', 'local');
DROP EXTENSION snowflake CASCADE;
INSERT INTO customers DEFAULT VALUES RETURNING id;

RESET SESSION AUTHORIZATION;
\c :tests
DROP DATABASE regress_trusted;
DROP ROLE regress_migrator, regress_nobody;
