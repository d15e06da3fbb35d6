--
-- What drops the extension, while sequences use it and when none does; and default privileges
-- when it is created
--
SELECT current_database() AS here \gset
SET client_min_messages = warning;
CREATE ROLE regress_drops_owner;
CREATE ROLE regress_drops_other;
CREATE DATABASE regression_drops OWNER regress_drops_owner;
\c regression_drops
SET client_min_messages = warning;
CREATE SCHEMA others AUTHORIZATION regress_drops_other;
CREATE TABLE others.t (id int);
ALTER TABLE others.t OWNER TO regress_drops_other;
GRANT CREATE ON SCHEMA public TO regress_drops_owner;
CREATE SCHEMA helper;
-- how many of the server's functions know kinds
CREATE VIEW helper.attached AS
SELECT count(*) FROM pg_proc p JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid AND refobjid = prosupport
WHERE proname IN ('nextval', 'currval', 'lastval', 'setval') AND pronamespace = 'pg_catalog'::regnamespace;
GRANT USAGE ON SCHEMA helper TO PUBLIC;
GRANT SELECT ON helper.attached TO PUBLIC;
CREATE PROCEDURE helper.create_again() LANGUAGE plpgsql AS $$
BEGIN
    CREATE SCHEMA IF NOT EXISTS m;
    CREATE EXTENSION snowflake SCHEMA m;
    CREATE SCHEMA app;
    CREATE TABLE app.t (id bigserial, n int);
    PERFORM m.snowflake_set_sequence_kind('app.t_id_seq');
END
$$;
-- the error of a statement, of which nothing remains
CREATE FUNCTION helper.error_of(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE command;
    RAISE division_by_zero;
EXCEPTION
    WHEN division_by_zero THEN
        RETURN 'done';
    WHEN OTHERS THEN
        RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;

SET ROLE regress_drops_owner;
CALL helper.create_again();
CREATE TABLE kept (id bigserial);
\set VERBOSITY default
DROP EXTENSION snowflake;
SELECT command, helper.error_of(command) FROM unnest(ARRAY[
    'DROP EXTENSION IF EXISTS absent, snowflake CASCADE', 'DROP SCHEMA m CASCADE', 'DO $$BEGIN DROP SCHEMA m CASCADE; END$$',
    'DROP SCHEMA m']) command;
SET ROLE regress_drops_other;
SELECT command, split_part(helper.error_of(command), ' ', 1) AS error
FROM unnest('{DROP EXTENSION snowflake,DROP SCHEMA m CASCADE,DROP OWNED BY regress_drops_owner,DROP OWNED BY regress_drops_other}'::text[]) command;
SET ROLE regress_drops_owner;
TABLE helper.attached;
INSERT INTO app.t (n) VALUES (1) RETURNING id > 1e17 AS is_id;

-- with all its sequences, as the reset of an ORM does
DROP SCHEMA m, app CASCADE;
TABLE helper.attached;
SELECT count(*) FROM pg_extension WHERE extname = 'snowflake';
INSERT INTO kept DEFAULT VALUES RETURNING id;
CALL helper.create_again();
BEGIN;
DROP SCHEMA m, app CASCADE;
ROLLBACK;
TABLE helper.attached;
INSERT INTO app.t (n) VALUES (1) RETURNING id > 1e17 AS is_id;

-- DROP OWNED of who owns the extension, also if it remains
DROP OWNED BY regress_drops_owner CASCADE;
TABLE helper.attached;
RESET ROLE;
CREATE SCHEMA m AUTHORIZATION regress_drops_owner;
CREATE EXTENSION snowflake SCHEMA m;
SET ROLE regress_drops_owner;
SELECT split_part(helper.error_of('DROP OWNED BY regress_drops_owner'), ' ', 1);
TABLE helper.attached;
RESET ROLE;
DROP EXTENSION snowflake;

-- public, with all that is in it
CREATE EXTENSION snowflake SCHEMA public;
CREATE TABLE t (id bigserial);
SELECT snowflake_set_sequence_kind('t_id_seq');
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE EXTENSION snowflake SCHEMA public;
CREATE TABLE t (id bigserial);
SELECT snowflake_set_sequence_kind('t_id_seq');
INSERT INTO t DEFAULT VALUES RETURNING id > 1e17 AS is_id;

-- snowflake_convert requires snowflake
DROP TABLE t;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake_convert;

-- Where nobody has EXECUTE by default, a role uses the sequences that it may use.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
CREATE EXTENSION snowflake;
CREATE TABLE t (id bigserial, n int);
CREATE TABLE l (id bigserial, n int);
SELECT snowflake_set_sequence_kind('t_id_seq');
GRANT USAGE ON SCHEMA public TO regress_drops_other;
GRANT INSERT, SELECT ON t, l TO regress_drops_other;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO regress_drops_other;
SET ROLE regress_drops_other;
INSERT INTO l (n) VALUES (1) RETURNING id;
INSERT INTO t (n) VALUES (1) RETURNING id > 1e17 AS is_id;
SELECT lastval() > 1e17 AS last, currval('t_id_seq') > 1e17 AS current;
\c :here
DROP DATABASE regression_drops;
DROP ROLE regress_drops_owner, regress_drops_other;
