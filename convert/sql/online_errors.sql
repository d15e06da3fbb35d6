--
-- Errors of functions of users, with codes that the server raises if somebody else was first: they
-- end a conversion, and are not waited for
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_online_errors;
\c regress_online_errors
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

CREATE TABLE refusing (code text);
CREATE FUNCTION refuse() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE c text := (SELECT code FROM public.refusing);
BEGIN
    IF c <> '' THEN RAISE EXCEPTION USING MESSAGE = 'tuple concurrently updated', ERRCODE = c; END IF;
    RETURN true;
END $$;
CREATE FUNCTION refuse(bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT public.refuse()';
CREATE FUNCTION refuse(int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT public.refuse()';
CREATE FUNCTION refuse_command() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.refuse(); END';
-- what refuses in a new table, after the phases before it; who waits for it gives up
\set begin 'DROP EVENT TRIGGER IF EXISTS refuse; TRUNCATE refusing; DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, v int, part int DEFAULT 1, PRIMARY KEY (id, part)) PARTITION BY LIST (part); CREATE TABLE t1 PARTITION OF t DEFAULT; INSERT INTO t (v) VALUES (1), (2)'
\set convert 'CALL snowflake_convert_online(''t'', ''id'', give_up_after => ''2 s'')'
CREATE VIEW codes AS SELECT format('INSERT INTO refusing VALUES (%L)', code) AS code FROM unnest('{55P03,40P01,40001,XX000}'::text[]) code;

-- a CHECK constraint of the key
SELECT unnest(ARRAY[:'begin', 'ALTER TABLE t ADD CHECK (refuse(id))', code, :'convert']) FROM codes \gexec

-- a CHECK constraint, by the backfill
SELECT unnest(ARRAY[:'begin', 'ALTER TABLE t ADD CHECK (refuse(v))',
    'CALL snowflake_convert_online(''t'', ''id'', until => ''prepare'')', code, :'convert']) FROM codes \gexec

-- an index
SELECT unnest(ARRAY[:'begin', 'CREATE INDEX ON t (id) WHERE refuse(v)',
    'CALL snowflake_convert_online(''t'', ''id'', until => ''backfill'')', code, :'convert']) FROM codes \gexec

-- an event trigger
SELECT unnest(ARRAY[:'begin', 'CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION refuse_command()',
    code, :'convert']) FROM codes \gexec

\c :tests
DROP DATABASE regress_online_errors;
