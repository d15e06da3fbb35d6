--
-- What resets the position of snowflake sequences: in the middle of it, no path to nextval() gives
-- a small number
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;
CREATE SCHEMA sr;
SET search_path = sr, public;
\set SHOW_CONTEXT never

-- an aggregate whose final function is the server's nextval(), which no planner replaces
CREATE TABLE log (label text, n bigint);
CREATE TABLE t (id bigserial, n int);
SELECT snowflake_set_sequence_kind('t_id_seq');
CREATE FUNCTION keep(regclass, int) RETURNS regclass LANGUAGE sql AS 'SELECT $1';
CREATE AGGREGATE small(int) (sfunc = keep, stype = regclass, initcond = 't_id_seq', finalfunc = nextval);
CREATE FUNCTION take(label text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v bigint;
BEGIN
    SELECT small(1) INTO v;
    INSERT INTO log VALUES (label, v);
END
$$;
CREATE FUNCTION try(label text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM take(label);
EXCEPTION WHEN sequence_generator_limit_exceeded THEN
    INSERT INTO log VALUES (label, NULL);
END
$$;
SELECT small(1);

-- triggers in the middle of what resets a sequence get an error
CREATE FUNCTION on_truncate() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM try(TG_WHEN || '' TRUNCATE''); RETURN NULL; END';
CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS
'BEGIN PERFORM try(TG_EVENT || '' '' || TG_TAG); END';
CREATE TRIGGER b BEFORE TRUNCATE ON t EXECUTE FUNCTION on_truncate();
CREATE TRIGGER a AFTER TRUNCATE ON t EXECUTE FUNCTION on_truncate();
CREATE EVENT TRIGGER regress_s ON ddl_command_start EXECUTE FUNCTION on_ddl();
CREATE EVENT TRIGGER regress_e ON ddl_command_end EXECUTE FUNCTION on_ddl();
TRUNCATE t RESTART IDENTITY;
ALTER SEQUENCE t_id_seq RESTART;
ALTER SEQUENCE t_id_seq MAXVALUE 1000000;
ALTER SEQUENCE t_id_seq NO MAXVALUE CACHE 5;
ALTER TABLE t ADD g int DEFAULT length(current_setting('role')), SET UNLOGGED;
ALTER TABLE t SET LOGGED;
BEGIN;
TRUNCATE t RESTART IDENTITY;
SAVEPOINT x;
ALTER SEQUENCE t_id_seq RESTART 5;
ROLLBACK TO x;
COMMIT;
SELECT label, count(n) FROM log GROUP BY label ORDER BY label COLLATE "C";
SELECT last_value, is_called FROM t_id_seq;
-- what is wrong with a definition is an error also if an event trigger runs queries before the
-- statement ends
ALTER SEQUENCE t_id_seq CYCLE;
ALTER SEQUENCE t_id_seq INCREMENT -1;
SELECT seqcycle, seqincrement FROM pg_sequence WHERE seqrelid = 't_id_seq'::regclass;
DROP EVENT TRIGGER regress_s;
DROP EVENT TRIGGER regress_e;
DROP TRIGGER a ON t;
DROP TRIGGER b ON t;

-- What begins no query in the trigger: a cursor that was open before, and an expression whose
-- nextval() is the server's.  An error in between, which undoes what exhausts the sequence.
CREATE FUNCTION keep_only(regclass, int) RETURNS regclass LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
CREATE AGGREGATE small_only(int) (sfunc = keep_only, stype = regclass, initcond = 't_id_seq', finalfunc = nextval);
CREATE FUNCTION without_query() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    c refcursor := 'c';
    v bigint;
BEGIN
    BEGIN
        v := length(current_setting('role'));
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN
    END;
    BEGIN
        IF TG_ARGV[0] = 'cursor' THEN
            FETCH c INTO v;
        ELSE
            v := nextval('t_id_seq');
        END IF;
    EXCEPTION WHEN sequence_generator_limit_exceeded THEN
        v := NULL;
    END;
    INSERT INTO log VALUES (TG_ARGV[0], v);
    RETURN NULL;
END
$$;
TRUNCATE log;
CREATE TRIGGER a AFTER TRUNCATE ON t EXECUTE FUNCTION without_query('cursor');
BEGIN;
DECLARE c CURSOR FOR SELECT small_only(1) FROM generate_series(1, 3) g GROUP BY g;
TRUNCATE t RESTART IDENTITY;
COMMIT;
DROP TRIGGER a ON t;
CREATE TRIGGER a AFTER TRUNCATE ON t EXECUTE FUNCTION without_query('expression');
BEGIN;
REVOKE EXECUTE ON FUNCTION _snowflake_nextval FROM PUBLIC;
TRUNCATE t RESTART IDENTITY;
GRANT EXECUTE ON FUNCTION _snowflake_nextval TO PUBLIC;
COMMIT;
DROP TRIGGER a ON t;
SELECT label, n FROM log ORDER BY label;

-- a function in a default, while ALTER TABLE rewrites the table
CREATE FUNCTION in_default() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'ALTER SEQUENCE t_id_seq RESTART';
    PERFORM try('default');
    RETURN 1;
END
$$;
INSERT INTO t (n) VALUES (1), (2);
ALTER TABLE t ADD d int DEFAULT in_default(), SET UNLOGGED;
SELECT label, n FROM log WHERE label = 'default';
SELECT last_value, is_called FROM t_id_seq;

SELECT snowflake_set_sequence_kind('t_id_seq', 'local');
SET client_min_messages = warning;
DROP SCHEMA sr CASCADE;
