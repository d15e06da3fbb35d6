-- Where a registry can be created, and what roles with some privileges can do with its
-- functions, which run as a superuser: default privileges, privileges that were granted by
-- mistake, a schema or database that was handed over, and objects that look like the
-- registry's.  registry/test/privileges.pl has what servers call.
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS snowflake;
DROP SCHEMA IF EXISTS snowflake_registry;
\set SHOW_CONTEXT never
\pset null -
\pset format unaligned

CREATE ROLE regress_app;
CREATE ROLE regress_server;
CREATE ROLE regress_dba SUPERUSER;
CREATE SCHEMA regress_app AUTHORIZATION regress_app;
GRANT USAGE ON SCHEMA regress_app TO PUBLIC;

-- What an attacker has others execute.  As a superuser it takes a number, which no rollback
-- gives back.
CREATE SEQUENCE caught;
SET ROLE regress_app;
CREATE FUNCTION regress_app.grab() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('public.caught');
    RETURN true;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN true;
END
$$;
CREATE FUNCTION regress_app.fire() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM regress_app.grab(); RETURN coalesce(new, old); END';
SELECT regress_app.grab();
RESET ROLE;
SELECT is_called AS seen FROM caught;
SELECT regress_app.grab();
SELECT is_called AS seen FROM caught;
SELECT setval('caught', 1, false);

-- All calls of a registry, those of servers first
CREATE TABLE calls (n serial, call text);
INSERT INTO calls (call) VALUES
    ($$get_grant('twitter', 0, NULL, snowflake_registry.lower_bound(clock_timestamp(), 'twitter'), '{}', '00000000-0000-0000-0000-000000000001', 'a')$$),
    ($$extend_grant('twitter', 0, 1, snowflake_registry.lower_bound(clock_timestamp(), 'twitter'),
        '{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000002}', '00000000-0000-0000-0000-000000000003', 'a')$$),
    ($$return_grant('twitter', 0, 1, '{00000000-0000-0000-0000-000000000003}', NULL)$$),
    ($$add_database('shop')$$),
    ($$get_ranges('00000000-0000-0000-0000-000000000001', NULL, '{}', '00000000-0000-0000-0000-000000000002', 0, 'a', '{shop}', '{t}', '{100}', '{1}', '{1}', '{0}', '{NULL}')$$),
    ($$get_range_names('00000000-0000-0000-0000-000000000001', 'a', '00000000-0000-0000-0000-000000000003', 0, 1)$$),
    ($$get_floors('00000000-0000-0000-0000-000000000001', 0)$$),
    ($$report_ranges('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', '{}', 'a', '{}', '{}', '{}', '{}', '{}', true,
        '00000000-0000-0000-0000-000000000003')$$),
    ($$return_ranges('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', '{}')$$),
    ($$alter_ranges('5 min')$$),
    ($$stop_ranges('test')$$),
    ($$resume_ranges(1)$$),
    ($$remove_database('shop')$$),
    ($$alter('twitter', grant_time => '5 min')$$),
    ($$confirm_promotion('twitter')$$),
    ($$free_worker(1, 0, 'twitter')$$),
    ($$report_loss('twitter')$$),
    ($$drop('twitter')$$),
    ($$create(1, 20, 'twitter', new => true)$$);

-- Execute a statement as a role; returns its error without the name of the database.
CREATE FUNCTION try(role text, command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    PERFORM set_config('role', role, true);
    EXECUTE command;
    PERFORM set_config('role', 'none', true);
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN replace(concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, '')), current_database(), '(database)');
END
$$;
-- Make all calls as the role of servers, or only one.
CREATE FUNCTION make_calls(schema text DEFAULT 'snowflake_registry', last int DEFAULT 19, OUT calls bigint, OUT result text, OUT seen boolean)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    results text[];
    c text;
BEGIN
    FOR c IN SELECT call FROM calls WHERE n <= last ORDER BY n LOOP
        results := results || try('regress_server', format('SELECT FROM %I.%s', schema, c));
    END LOOP;
    RETURN QUERY SELECT count(*), r, (SELECT is_called FROM caught) FROM unnest(results) r GROUP BY r;
END
$$;
-- A registry, of which a role was granted all functions
CREATE PROCEDURE create_registry() LANGUAGE plpgsql AS $$
BEGIN
    CREATE EXTENSION snowflake_registry;
    PERFORM snowflake_registry.create(1, 20, 'twitter', failovers => 0, new => true);
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_registry TO regress_server;
END
$$;
CREATE PROCEDURE give_database(role regrole) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER DATABASE %I OWNER TO %s', current_database(), role);
END
$$;

-- Where it is refused: in a schema of another role, or with other objects, or in a database of
-- another role; and only a superuser creates it
BEGIN;
CREATE SCHEMA snowflake_registry AUTHORIZATION regress_app;
SELECT try('none', 'CREATE EXTENSION snowflake_registry');
ROLLBACK;
BEGIN;
CREATE SCHEMA snowflake_registry;
CREATE FUNCTION snowflake_registry.lift(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
SELECT try('none', 'CREATE EXTENSION snowflake_registry');
ROLLBACK;
BEGIN;
CALL give_database('regress_app');
SELECT try('none', 'CREATE EXTENSION snowflake_registry');
SELECT split_part(try('regress_app', 'CREATE EXTENSION snowflake_registry'), E'\n', 1);
ROLLBACK;
-- it stays in its schema
BEGIN;
CALL create_registry();
SELECT try('none', 'ALTER EXTENSION snowflake_registry SET SCHEMA public');
-- no other registry in a database that was handed over
CALL give_database('regress_app');
SELECT try('none', $$SELECT snowflake_registry.create(1, 20, 'leaf')$$);
ROLLBACK;

-- Default privileges give a role nothing of either extension.
BEGIN;
DROP EXTENSION snowflake;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_app;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_app;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_app;
CREATE EXTENSION snowflake;
CALL create_registry();
SELECT pg_describe_object(classid, objid, 0)
FROM pg_shdepend
WHERE refobjid = 'regress_app'::regrole AND deptype = 'a' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid <> 'pg_default_acl'::regclass;
SELECT attack, left(try('regress_app', attack), 23) AS result
FROM unnest(ARRAY[
    'CREATE TRIGGER t BEFORE UPDATE ON snowflake_registry.grants FOR EACH ROW EXECUTE FUNCTION regress_app.fire()',
    'CREATE FUNCTION snowflake_registry.f() RETURNS int LANGUAGE sql AS $$SELECT 1$$',
    'SELECT snowflake_set_mark(1000, force => true)',
    'SELECT snowflake_raise_mark(1)',
    'SELECT snowflake_accept_clock()',
    'SELECT snowflake_stat_reset()',
    'SELECT snowflake_registry.report_loss(''twitter'')',
    'SELECT snowflake_registry.lock(''twitter'', true)',
    'TABLE snowflake_registry.grants',
    'UPDATE snowflake_registry.registries SET slices = 1']) attack;
ROLLBACK;

-- Privileges that were granted by mistake: triggers do not fire.
BEGIN;
CALL create_registry();
GRANT ALL ON ALL TABLES IN SCHEMA snowflake_registry TO regress_app;
SET ROLE regress_app;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.grants FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
CREATE TRIGGER s AFTER INSERT OR UPDATE OR DELETE ON snowflake_registry.grants EXECUTE FUNCTION regress_app.fire();
CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.registries FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
CREATE TABLE regress_app.child (scheme text REFERENCES snowflake_registry.registries ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TRIGGER t BEFORE DELETE OR UPDATE ON regress_app.child FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
INSERT INTO regress_app.child SELECT scheme FROM snowflake_registry.registries;
RESET ROLE;
SELECT * FROM make_calls();
-- CREATE on the schema: functions that would be better matches are not called
GRANT CREATE ON SCHEMA snowflake_registry TO regress_app;
SET ROLE regress_app;
CREATE FUNCTION snowflake_registry.get_grant(text, text, text, text, text, text, text,
    OUT worker_id int, OUT until bigint, OUT grant_time_ms bigint) LANGUAGE sql AS 'SELECT 77, 9223372036854775807, 600000::bigint';
CREATE FUNCTION snowflake_registry.lock(text, text) RETURNS record LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
CREATE FUNCTION snowflake_registry.read_scheme(unknown_ varchar) RETURNS record LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
CREATE FUNCTION snowflake_registry.end_of_range(snowflake_registry.registries, timestamptz, bigint, record, boolean) RETURNS bigint
LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
CREATE FUNCTION snowflake_registry.lower_bound(timestamptz, varchar) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
CREATE FUNCTION snowflake_registry.choose_worker_id(snowflake_registry.registries, integer, text, text, bigint) RETURNS integer
LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
RESET ROLE;
SELECT * FROM make_calls();
ROLLBACK;

-- The schema was handed over: its owner renames it, and waits for calls.
BEGIN;
CALL create_registry();
ALTER SCHEMA snowflake_registry OWNER TO regress_app;
CALL give_database('regress_app');
SET ROLE regress_app;
ALTER SCHEMA snowflake_registry RENAME TO was;
CREATE SCHEMA snowflake_registry;
GRANT USAGE ON SCHEMA snowflake_registry TO PUBLIC;
CREATE DOMAIN snowflake_registry.trap AS int CHECK (regress_app.grab());
CREATE TABLE snowflake_registry.registries (scheme text, slices snowflake_registry.trap);
CREATE TABLE snowflake_registry.grants (scheme text, worker_id snowflake_registry.trap);
CREATE TABLE snowflake_registry.range_clients (client uuid, calls snowflake_registry.trap);
CREATE TABLE snowflake_registry.range_sequences (name text, next snowflake_registry.trap);
CREATE FUNCTION snowflake_registry.read_scheme(scheme text, OUT canonical text, OUT tick interval, OUT last_worker_id int)
LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
CREATE FUNCTION snowflake_registry.lower_bound(timestamptz, text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION snowflake_registry.hash(uuid) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); RETURN NULL; END';
CREATE FUNCTION snowflake_registry.check_database() RETURNS void LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
CREATE FUNCTION snowflake_registry.lock(text, boolean) RETURNS record LANGUAGE plpgsql AS 'BEGIN PERFORM regress_app.grab(); END';
RESET ROLE;
CALL give_database(quote_ident(current_user)::regrole);
SELECT * FROM make_calls('was');
-- nor if a variable has a type of its owner, or if the new schema is given to a superuser
SET ROLE regress_app;
DROP TABLE snowflake_registry.registries;
CREATE TYPE regress_app.any AS (scheme text, slices int);
CREATE DOMAIN snowflake_registry.registries AS regress_app.any CHECK (regress_app.grab());
RESET ROLE;
ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER;
SELECT * FROM make_calls('was');
ROLLBACK;

-- Everything was handed over, and then the schema and the functions that are called given back,
-- but not what they use: its owner has code executed with each row.
BEGIN;
CREATE FUNCTION give_function(oid regprocedure) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER ROUTINE %s OWNER TO regress_dba', oid);
    RETURN true;
END
$$;
SET ROLE regress_dba;
CALL create_registry();
RESET ROLE;
REASSIGN OWNED BY regress_dba TO regress_app;
SELECT * FROM make_calls(last => 1);
ALTER SCHEMA snowflake_registry OWNER TO regress_dba;
SELECT count(give_function(oid)) FROM pg_proc
WHERE pronamespace = 'snowflake_registry'::regnamespace AND proname IN (SELECT split_part(call, '(', 1) FROM calls);
SET ROLE regress_app;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.grants FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.registries FOR EACH ROW EXECUTE FUNCTION regress_app.fire();
ALTER TABLE snowflake_registry.grants ENABLE ALWAYS TRIGGER t;
ALTER TABLE snowflake_registry.registries ENABLE ALWAYS TRIGGER t;
RESET ROLE;
SELECT * FROM make_calls();
-- nor if they are taken out of the extension, and everything else is given back
SET ROLE regress_app;
ALTER EXTENSION snowflake_registry DROP TABLE snowflake_registry.grants;
ALTER EXTENSION snowflake_registry DROP VIEW snowflake_registry.workers;
ALTER EXTENSION snowflake_registry DROP TABLE snowflake_registry.registries;
RESET ROLE;
SELECT count(give_function(oid)) > 19 AS given FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace;
ALTER TABLE snowflake_registry.dropped OWNER TO regress_dba;
SELECT * FROM make_calls();
ROLLBACK;

-- One object of another role is enough.
BEGIN;
CALL create_registry();
CREATE PROCEDURE give(object text, to_role text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER %s OWNER TO %s', replace(object, ' ', ' snowflake_registry.'), to_role);
END
$$;
CREATE FUNCTION result_if_given(object text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    CALL give(object, 'regress_app');
    said := result FROM make_calls(last => 1);
    CALL give(object, 'CURRENT_USER');
    RETURN split_part(said, E'\n', 1);
END
$$;
SELECT object, result_if_given(object) FROM unnest('{TABLE grants,TABLE dropped,VIEW workers,FUNCTION lift,FUNCTION place}'::text[]) object;
SELECT * FROM make_calls();
ROLLBACK;

-- Who can read all tables has no token: it is stored as a hash.
BEGIN;
CALL create_registry();
GRANT pg_read_all_data TO regress_app;
SELECT * FROM make_calls(last => 1);
SET ROLE regress_app;
SELECT token_hash = sha256(uuid_send('00000000-0000-0000-0000-000000000001')) AS is_hash,
    to_jsonb(g)::text ~ '0000-?0000-?0000-?000000000001' AS is_readable
FROM snowflake_registry.grants g;
ROLLBACK;

SELECT is_called AS seen FROM caught;
DROP FUNCTION make_calls, try;
DROP PROCEDURE create_registry, give_database;
DROP TABLE calls;
DROP SEQUENCE caught;
DROP SCHEMA regress_app CASCADE;
DROP ROLE regress_app, regress_server, regress_dba;
