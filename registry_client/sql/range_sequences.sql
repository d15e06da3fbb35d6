--
-- Range sequences, as one session sees them, on a server that is its own registry.
-- registry/test/range_sequences.pl has two servers.
--
\c postgres
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_registry;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM snowflake_registry.registries) THEN
        PERFORM snowflake_registry.create(1, 100, new => true), snowflake_registry.add_database(current_database());
    END IF;
END
$$;
RESET client_min_messages;
CREATE SCHEMA rs;
SET search_path = rs, public;
\pset null -
\pset format unaligned

-- A statement's error
CREATE FUNCTION try(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE command;
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END
$$;

-- transactions
CREATE TABLE t (id serial PRIMARY KEY, x int);
SELECT snowflake_set_sequence_kind('t_id_seq', 'range');
INSERT INTO t DEFAULT VALUES RETURNING id, pg_typeof(id);
BEGIN;
INSERT INTO t DEFAULT VALUES;
ROLLBACK;
INSERT INTO t DEFAULT VALUES RETURNING id;
BEGIN;
SAVEPOINT s;
INSERT INTO t DEFAULT VALUES RETURNING id;
ROLLBACK TO s;
INSERT INTO t DEFAULT VALUES RETURNING id;
COMMIT;
SELECT nextval('t_id_seq');
SELECT currval('t_id_seq'), lastval();
BEGIN;
INSERT INTO t DEFAULT VALUES;
PREPARE TRANSACTION 'p';
COMMIT PREPARED 'p';
SELECT max(id) FROM t;
SELECT nextval('t_id_seq');
DISCARD SEQUENCES;
SELECT try($$SELECT currval('t_id_seq')$$);
BEGIN READ ONLY;
SELECT try($$SELECT nextval('t_id_seq')$$);
ROLLBACK;
SELECT pg_get_serial_sequence('t', 'id');
SELECT kind, numbers_left > 2000000000 AS numbers_left, problem FROM snowflake_sequences WHERE sequence = 't_id_seq';

-- a change of kind that is rolled back
CREATE TABLE used (id serial PRIMARY KEY);
INSERT INTO used SELECT FROM generate_series(1, 50);
BEGIN;
SELECT snowflake_set_sequence_kind('used_id_seq', 'range');
ROLLBACK;
INSERT INTO used DEFAULT VALUES RETURNING id;

-- what cannot be of kind range
CREATE SEQUENCE down INCREMENT -1;
CREATE SEQUENCE big;
CREATE TABLE narrow (id int DEFAULT nextval('big'));
CREATE SEQUENCE turns CYCLE;
CREATE TEMP SEQUENCE temporary;
SELECT try(command) FROM unnest(ARRAY[
    $$SELECT snowflake_set_sequence_kind('down', 'range')$$,
    $$SELECT snowflake_set_sequence_kind('turns', 'range')$$,
    $$SELECT snowflake_set_sequence_kind('big', 'range')$$,
    $$SELECT snowflake_set_sequence_kind('temporary', 'range')$$,
    $$SELECT snowflake_set_sequence_kind('down', 'ranges')$$,
    $$SELECT snowflake_set_sequence_kind('turns', 'snowflake', 'x.y')$$,
    format($$SELECT snowflake_set_sequence_kind('turns', 'range', %L)$$, repeat('x', 300)),
    $$SECURITY LABEL FOR snowflake ON SEQUENCE turns IS 'range'$$,
    $$SECURITY LABEL FOR snowflake ON SEQUENCE turns IS 'range name=rs.turns'$$,
    $$SECURITY LABEL FOR snowflake ON SEQUENCE t_id_seq IS 'range database=postgres name=rs.u'$$]) command;

-- Whoever owns a sequence cannot take the numbers of another name, nor with a label, nor continue
-- above those of another database.
CREATE ROLE regress_owner;
GRANT CREATE, USAGE ON SCHEMA rs TO regress_owner;
CREATE SEQUENCE owned;
ALTER SEQUENCE owned OWNER TO regress_owner;
SET ROLE regress_owner;
SELECT try(command) FROM unnest(ARRAY[
    $$SELECT snowflake_set_sequence_kind('owned', 'range', 'rs.t_id_seq')$$,
    $$SECURITY LABEL FOR snowflake ON SEQUENCE owned IS 'range database=postgres name=rs.t_id_seq'$$,
    $$SECURITY LABEL FOR snowflake ON SEQUENCE owned IS 'range database=regression name=rs.owned'$$]) command;
-- but it can have its own name, and cannot say later that it is of another database
SELECT snowflake_set_sequence_kind('owned', 'range');
SELECT try($$SECURITY LABEL FOR snowflake ON SEQUENCE owned IS 'range database=regression name=rs.owned'$$);
RESET ROLE;
SELECT count(*) FROM snowflake_registry.sequences WHERE name = 'rs.owned';

-- names
SET quote_all_identifiers = on;
CREATE SEQUENCE quoted;
SELECT snowflake_set_sequence_kind('quoted', 'range');
RESET quote_all_identifiers;
CREATE SEQUENCE "Upper";
CREATE SEQUENCE "a""b";
CREATE SEQUENCE "x y";
CREATE SEQUENCE "select";
CREATE SEQUENCE "1a";
CREATE SEQUENCE "a1_";
SELECT count(snowflake_set_sequence_kind(s, 'range')) FROM unnest(ARRAY['"Upper"', '"a""b"', '"x y"', '"select"', '"1a"', 'a1_']::regclass[]) s;
SELECT name FROM snowflake_registry.sequences WHERE name ~ '^rs\.("|quoted|select|a1)' ORDER BY name COLLATE "C";

-- what resets a sequence, renames it, or moves it: numbers increase, and the name at the registry
-- stays as it was
CREATE TABLE w (id serial, x int);
SELECT snowflake_set_sequence_kind('w_id_seq', 'range');
SELECT max(nextval('w_id_seq')) AS before FROM generate_series(1, 3) \gset
ALTER SEQUENCE w_id_seq RESTART;
TRUNCATE w RESTART IDENTITY;
SELECT nextval('w_id_seq') AS reset \gset
CREATE SCHEMA rs_other;
ALTER SEQUENCE w_id_seq RENAME TO w_seq;
ALTER SEQUENCE w_seq OWNED BY NONE;
ALTER SEQUENCE w_seq SET SCHEMA rs_other;
SELECT :reset > :before AS reset, nextval('rs_other.w_seq') > :reset AS moved;
SELECT name FROM snowflake_registry.sequences WHERE name ~ '^rs\.w_';

-- DROP: a sequence of the same name continues above, and two with one name have numbers of their own
CREATE SEQUENCE d AS int;
SELECT snowflake_set_sequence_kind('d', 'range');
SELECT nextval('d') FROM generate_series(1, 2);
BEGIN;
DROP SEQUENCE d;
ROLLBACK;
SELECT nextval('d') AS third \gset
DROP SEQUENCE d;
CREATE SEQUENCE d AS int;
SELECT snowflake_set_sequence_kind('d', 'range');
SELECT :third > 2 AS after_rollback, nextval('d') > :third AS of_the_same_name;
CREATE SEQUENCE e AS int;
SELECT snowflake_set_sequence_kind('e', 'range', 'rs.d');
SELECT count(DISTINCT nextval(s)) FROM generate_series(1, 100), unnest('{d,e}'::regclass[]) s;

-- COMMIT keeps the range of a new file, and ROLLBACK takes back no number.
CREATE SEQUENCE altered;
SELECT snowflake_set_sequence_kind('altered', 'range');
BEGIN;
ALTER SEQUENCE altered NO MINVALUE;
SELECT nextval('altered');
SAVEPOINT x;
SELECT nextval('altered');
RELEASE x;
COMMIT;
SELECT nextval('altered');
CREATE SEQUENCE rolled;
SELECT snowflake_set_sequence_kind('rolled', 'range');
BEGIN;
ALTER SEQUENCE rolled NO MINVALUE;
SELECT nextval('rolled') AS number \gset
ROLLBACK;
SELECT snowflake_set_sequence_kind('rolled', 'local');
SELECT nextval('rolled') > :number AS increases;

-- nor does a rollback of one of several files, of TRUNCATE, or of a prepared transaction
CREATE TABLE rolled_table (id serial);
ALTER SEQUENCE rolled_table_id_seq RENAME TO rolled1;
SELECT snowflake_set_sequence_kind('rolled1', 'range');
BEGIN;
TRUNCATE rolled_table RESTART IDENTITY;
SELECT nextval('rolled1') AS number \gset
ROLLBACK;
SELECT nextval('rolled1') > :number AS increases;
SELECT nextval('rolled1') AS number \gset
SELECT snowflake_set_sequence_kind('rolled1', 'local');
SELECT nextval('rolled1') > :number AS local;
CREATE SEQUENCE rolled2;
SELECT snowflake_set_sequence_kind('rolled2', 'range');
BEGIN;
SAVEPOINT x;
ALTER SEQUENCE rolled2 NO MINVALUE;
SELECT nextval('rolled2') AS number \gset
ROLLBACK TO x;
COMMIT;
SELECT nextval('rolled2') > :number AS increases;
SELECT nextval('rolled2') AS number \gset
SELECT snowflake_set_sequence_kind('rolled2', 'local');
SELECT nextval('rolled2') > :number AS local;
CREATE SEQUENCE rolled3;
SELECT snowflake_set_sequence_kind('rolled3', 'range');
BEGIN;
ALTER SEQUENCE rolled3 NO MINVALUE;
SAVEPOINT x;
ALTER SEQUENCE rolled3 NO MINVALUE;
SELECT nextval('rolled3') AS number \gset
ROLLBACK TO x;
COMMIT;
SELECT nextval('rolled3') > :number AS increases;
SELECT nextval('rolled3') AS number \gset
SELECT snowflake_set_sequence_kind('rolled3', 'local');
SELECT nextval('rolled3') > :number AS local;
CREATE SEQUENCE rolled4;
SELECT snowflake_set_sequence_kind('rolled4', 'range');
BEGIN;
SAVEPOINT x;
ALTER SEQUENCE rolled4 NO MINVALUE;
SAVEPOINT y;
SELECT nextval('rolled4') AS number \gset
RELEASE y;
ROLLBACK TO x;
COMMIT;
SELECT nextval('rolled4') > :number AS increases;
SELECT nextval('rolled4') AS number \gset
SELECT snowflake_set_sequence_kind('rolled4', 'local');
SELECT nextval('rolled4') > :number AS local;
CREATE SEQUENCE rolled5;
SELECT snowflake_set_sequence_kind('rolled5', 'range');
BEGIN;
SAVEPOINT x;
SAVEPOINT y;
ALTER SEQUENCE rolled5 NO MINVALUE;
SELECT nextval('rolled5') AS number \gset
RELEASE y;
RELEASE x;
ROLLBACK;
SELECT nextval('rolled5') > :number AS increases;
SELECT nextval('rolled5') AS number \gset
SELECT snowflake_set_sequence_kind('rolled5', 'local');
SELECT nextval('rolled5') > :number AS local;
CREATE SEQUENCE rolled6;
SELECT snowflake_set_sequence_kind('rolled6', 'range');
BEGIN;
ALTER SEQUENCE rolled6 NO MINVALUE;
SAVEPOINT x;
SELECT nextval('rolled6') AS number \gset
ROLLBACK TO x;
SELECT nextval('rolled6') AS number \gset
ROLLBACK;
SELECT nextval('rolled6') > :number AS increases;
SELECT nextval('rolled6') AS number \gset
SELECT snowflake_set_sequence_kind('rolled6', 'local');
SELECT nextval('rolled6') > :number AS local;
CREATE SEQUENCE rolled7;
SELECT snowflake_set_sequence_kind('rolled7', 'range');
BEGIN;
ALTER SEQUENCE rolled7 NO MINVALUE;
SELECT nextval('rolled7') AS number \gset
PREPARE TRANSACTION 'x';
ROLLBACK PREPARED 'x';
SELECT nextval('rolled7') > :number AS increases;
SELECT nextval('rolled7') AS number \gset
SELECT snowflake_set_sequence_kind('rolled7', 'local');
SELECT nextval('rolled7') > :number AS local;

-- local numbers are above those that were granted, whatever was done meanwhile
CREATE FUNCTION local_after(command text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
BEGIN
    CREATE SEQUENCE n;
    CREATE TABLE n_table (id bigint DEFAULT nextval('n'));
    ALTER SEQUENCE n OWNED BY n_table.id;
    PERFORM snowflake_set_sequence_kind('n', 'range');
    last := nextval('n');
    EXECUTE command;
    PERFORM snowflake_set_sequence_kind('n', 'local');
    IF nextval('n') <= last THEN
        RETURN false;
    END IF;
    DROP TABLE n_table;
    RETURN true;
END
$$;
SELECT command, local_after(command) AS increases
FROM unnest('{ALTER SEQUENCE n INCREMENT 2,ALTER SEQUENCE n CACHE 5,ALTER SEQUENCE n RESTART,TRUNCATE n_table RESTART IDENTITY}'::text[]) command;

-- a row at the end of the type, which somebody added, exhausts nothing
CREATE TABLE high (id serial);
INSERT INTO high VALUES (7), (2147483647);
SELECT snowflake_set_sequence_kind('high_id_seq', 'range');
SELECT nextval('high_id_seq');
SELECT snowflake_set_sequence_kind('high_id_seq', 'local');
SELECT nextval('high_id_seq') BETWEEN 9 AND 1000 AS is_low;
-- but if it is the last number of the sequence, it is not given out again
CREATE TABLE full_type (id smallserial);
SELECT snowflake_set_sequence_kind('full_type_id_seq', 'range');
INSERT INTO full_type VALUES (32766), (32767);
SELECT snowflake_set_sequence_kind('full_type_id_seq', 'local');
SELECT try($$SELECT nextval('full_type_id_seq')$$);
-- the least integer has no number before it
CREATE SEQUENCE lowest MINVALUE -9223372036854775808;
SELECT snowflake_set_sequence_kind('lowest', 'range');
SELECT nextval('lowest');
SELECT setval('lowest', -9223372036854775808, false), nextval('lowest');
-- a local sequence does not continue below its MINVALUE
CREATE TABLE low (id int PRIMARY KEY);
INSERT INTO low VALUES (5);
CREATE SEQUENCE low_seq AS int MINVALUE 1000 OWNED BY low.id;
SELECT snowflake_set_sequence_kind('low_seq', 'range');
SELECT snowflake_set_sequence_kind('low_seq', 'local');
SELECT nextval('low_seq');

-- what copies a schema, such as clone_schema(), copies the end of an exhausted sequence
SET client_min_messages = error;
CREATE TABLE tenant (id serial PRIMARY KEY);
INSERT INTO tenant SELECT generate_series(1, 50);
SELECT setval('tenant_id_seq', 2147483647);
SELECT snowflake_set_sequence_kinds('{tenant_id_seq}', 'range');
INSERT INTO tenant DEFAULT VALUES RETURNING id;
-- so does one that gets its kind by the setting
SET snowflake.default_sequence_kind = range;
CREATE SEQUENCE rs_other.t_id_seq;
ALTER SEQUENCE rs_other.t_id_seq AS integer INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 RESTART 1 CACHE 1 NO CYCLE;
SELECT setval('rs_other.t_id_seq', last_value, is_called) = last_value AS copied FROM t_id_seq;
CREATE TABLE rs_other.t (id integer PRIMARY KEY DEFAULT nextval('rs_other.t_id_seq'), x int);
ALTER SEQUENCE rs_other.t_id_seq OWNED BY rs_other.t.id;
INSERT INTO rs_other.t SELECT generate_series(1, 500);
INSERT INTO rs_other.t DEFAULT VALUES RETURNING id > 500 AS above;
RESET snowflake.default_sequence_kind;
RESET client_min_messages;

-- setval()
CREATE TABLE im (id serial, x int);
SELECT snowflake_set_sequence_kind('im_id_seq', 'range');
SELECT nextval('im_id_seq') FROM generate_series(1, 2);
INSERT INTO im SELECT g FROM generate_series(1000, 5000) g;
SELECT setval('im_id_seq', 5000);
SELECT currval('im_id_seq');
SELECT setval('im_id_seq', 5);
SELECT nextval('im_id_seq') > 5000 AS above;
DISCARD SEQUENCES;
SELECT setval('im_id_seq', 6001, false);
SELECT nextval('im_id_seq') > 6000 AS above;
DISCARD SEQUENCES;
-- to the end of the type, as in a dump: it changes nothing in the registry
SELECT floor FROM snowflake_registry.sequences WHERE name = 'rs.im_id_seq' \gset
SELECT setval('im_id_seq', 2147483647);
SELECT floor = :floor AS same_floor, next < 10000 AS low FROM snowflake_registry.sequences WHERE name = 'rs.im_id_seq';
-- beyond the type, far ahead
SELECT try($$SELECT setval('im_id_seq', 2147483648)$$);
SELECT split_part(try($$SELECT setval('im_id_seq', 2000000000)$$), E'\n', 1) AS far;
SELECT nextval('im_id_seq') < 10000 AS continues;
-- it reserves nothing: other servers have the numbers between
CREATE TABLE block (id serial, x int);
SELECT snowflake_set_sequence_kind('block_id_seq', 'range');
SELECT try(format('SELECT setval(''block_id_seq'', %s)', value))
FROM unnest('{nextval(''block_id_seq'') + 299,"nextval(''block_id_seq'') + 300, false"}'::text[]) value;
SELECT floor < 100 AS no_floor FROM snowflake_registry.sequences WHERE name = 'rs.block_id_seq';
INSERT INTO block DEFAULT VALUES;
INSERT INTO block SELECT g FROM generate_series(1000, 1500) g;
SELECT setval('block_id_seq', max(id)), setval('block_id_seq', max(id) + 1, false) FROM block;
DISCARD SEQUENCES;
SELECT setval('block_id_seq', 2000);

-- A label that an owner writes: a used sequence continues above its numbers.
CREATE FUNCTION labelled(name text, label text, statement text DEFAULT 'SELECT', OUT increases boolean) LANGUAGE plpgsql AS $$
DECLARE
    s text := name || '_id_seq';
    greatest bigint;
BEGIN
    EXECUTE format('CREATE TABLE %I (id serial)', name);
    PERFORM snowflake_set_sequence_kind(s::regclass, 'range');
    EXECUTE format('INSERT INTO %I DEFAULT VALUES', name);
    PERFORM snowflake_set_sequence_kind(s::regclass, 'local');
    EXECUTE format('INSERT INTO %I SELECT FROM generate_series(1, 5000)', name);
    EXECUTE format(statement, s);
    EXECUTE format('SELECT max(id) FROM %I', name) INTO greatest;
    EXECUTE format('SECURITY LABEL FOR snowflake ON SEQUENCE %I IS %L', s, label || format(' database=postgres name=rs.%s', s));
    increases := nextval(s::regclass) > greatest;
END
$$;
SET client_min_messages = error;
SELECT labelled('written', 'range last_value=1'), labelled('ended', 'range', 'SELECT setval(''%s'', 2147483647)'), labelled('restarted', 'range', 'ALTER SEQUENCE %s RESTART');
RESET client_min_messages;
-- the registry is not asked for that of an unused one
CREATE SEQUENCE unheard;
SECURITY LABEL FOR snowflake ON SEQUENCE unheard IS 'range database=postgres name=rs.unheard';
SELECT count(*) FROM snowflake_registry.sequences WHERE name = 'rs.unheard';

-- a trigger in the middle of TRUNCATE that gives the sequence another name
CREATE SEQUENCE b AS int;
SELECT snowflake_set_sequence_kind('b', 'range');
SELECT nextval('b');
DROP SEQUENCE b;
CREATE TABLE switched (id serial, x int);
ALTER SEQUENCE switched_id_seq RENAME TO a;
SELECT snowflake_set_sequence_kind('a', 'range');
SELECT count(nextval('a')) FROM generate_series(1, 5000);
CREATE FUNCTION switch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SECURITY LABEL FOR snowflake ON SEQUENCE a IS NULL';
    EXECUTE 'ALTER SEQUENCE a RENAME TO b';
    EXECUTE 'SECURITY LABEL FOR snowflake ON SEQUENCE b IS ''range last_value=1 database=postgres name=rs.b''';
    RETURN NULL;
END
$$;
CREATE TRIGGER switch BEFORE TRUNCATE ON switched EXECUTE FUNCTION switch();
TRUNCATE switched RESTART IDENTITY;
SELECT nextval('b') > 5000 AS above;

-- What a transaction was granted of another name, and rolled back, is no proof of a loss.
CREATE SEQUENCE tried;
BEGIN;
SELECT snowflake_set_sequence_kind('tried', 'range', 'rs.other_name');
SELECT count(nextval('tried')) FROM generate_series(1, 300);
ROLLBACK;
ALTER SEQUENCE tried RENAME TO tried_again;
SELECT snowflake_set_sequence_kind('tried_again', 'range');
ALTER SEQUENCE tried_again NO MINVALUE;
SELECT nextval('tried_again');
CREATE SEQUENCE tried;
BEGIN;
SELECT snowflake_set_sequence_kind('tried', 'range', 'rs.other_name');
SELECT count(nextval('tried')) FROM generate_series(1, 300);
ROLLBACK;
SELECT snowflake_set_sequence_kind('tried', 'range');
ALTER SEQUENCE tried NO MINVALUE;
SELECT nextval('tried');

CREATE FUNCTION calls() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT sum(calls) FROM snowflake_registry.range_clients';
-- the last numbers of a type come as fast as others
CREATE SEQUENCE of_small AS smallint START 20001;
SELECT snowflake_set_sequence_kind('of_small', 'range');
SELECT calls() AS before \gset
SELECT count(DISTINCT nextval('of_small')) FROM generate_series(1, 12767);
SELECT calls() - :before < 200 AS few;
SELECT try($$SELECT nextval('of_small')$$);

-- Two sequences of one name with different last values share all numbers up to the lower one, without
-- a call for each number, and lose none.
CREATE SEQUENCE lower_end AS integer;
SELECT snowflake_set_sequence_kind('lower_end', 'range');
ALTER SEQUENCE lower_end RENAME TO higher_end;
CREATE SEQUENCE lower_end AS integer MAXVALUE 1500;
SECURITY LABEL FOR snowflake ON SEQUENCE lower_end IS 'range database=postgres name=rs.lower_end';
CREATE TABLE shared (n bigint);
CREATE PROCEDURE alternate(n int) LANGUAGE sql AS
'INSERT INTO shared SELECT nextval(s) FROM generate_series(1, n), unnest(''{higher_end,lower_end}''::regclass[]) s';
SELECT calls() AS before \gset
CALL alternate(150);
DO $$ BEGIN FOR i IN 1 .. 20 LOOP CALL alternate(1); COMMIT; END LOOP; END $$;
SELECT calls() - :before < 12 AS few, count(*) = count(DISTINCT n) AS distinct, max(n) <= 1500 AS low FROM shared;
SELECT bool_and(rises) AS rises FROM (SELECT n > lag(n, 1, 0::bigint) OVER (ORDER BY ctid) AS rises FROM shared) s;
DO $$
BEGIN
    FOR i IN 1 .. 1500 LOOP
        INSERT INTO shared SELECT nextval('higher_end');
        BEGIN
            INSERT INTO shared SELECT nextval('lower_end');
        EXCEPTION WHEN sequence_generator_limit_exceeded THEN
            EXIT;
        END;
    END LOOP;
END
$$;
SELECT count(*) = count(DISTINCT n) AS distinct, count(*) FILTER (WHERE n <= 1500) > 1300 AS all FROM shared;
SELECT try($$SELECT nextval('lower_end')$$);
SELECT count(DISTINCT nextval('higher_end')) FROM generate_series(1, 1000);
SELECT calls() AS before \gset
SELECT count(try(format('SELECT nextval(%L)', s))) FROM generate_series(1, 10), unnest('{lower_end,higher_end}'::text[]) s;
SELECT calls() - :before < 5 AS few;

-- many sequences become local with a few calls
DO $$
BEGIN
    FOR i IN 1 .. 150 LOOP
        EXECUTE format('CREATE SEQUENCE many%s', i);
    END LOOP;
END
$$;
SELECT snowflake_set_sequence_kinds(array_agg(oid::regclass), 'range') FROM pg_class WHERE relname ~ '^many';
SELECT calls() AS before \gset
SELECT snowflake_set_sequence_kinds(array_agg(oid::regclass), 'local') FROM pg_class WHERE relname ~ '^many';
SELECT calls() - :before < 75 AS few;

-- who may call the registry cannot have others wait for a transaction: it is not prepared, and ends soon
\set call 'SELECT count(*) FROM snowflake_registry.registries s, snowflake_registry.extend_grant(s.scheme, 0, 1, 1, ''{}'', gen_random_uuid(), ''x'')'
\set VERBOSITY sqlstate
BEGIN;
:call;
PREPARE TRANSACTION 'call';
BEGIN;
SAVEPOINT a;
:call;
RELEASE a;
PREPARE TRANSACTION 'call';
BEGIN;
SELECT count(*) FROM snowflake_registry.get_ranges(gen_random_uuid(), NULL, '{}', gen_random_uuid(), 0, 'p', '{postgres}', '{p}', '{9}', '{0}', '{1}', '{NULL}', '{NULL}');
PREPARE TRANSACTION 'call';
BEGIN;
SELECT count(*) FROM snowflake_registry.get_floors(gen_random_uuid(), 0);
PREPARE TRANSACTION 'call';
\set VERBOSITY terse
SET idle_in_transaction_session_timeout = '4s';
BEGIN;
:call;
SHOW idle_in_transaction_session_timeout;
ROLLBACK;
SET idle_in_transaction_session_timeout = '1min';
BEGIN;
:call;
SHOW idle_in_transaction_session_timeout;
ROLLBACK;
RESET idle_in_transaction_session_timeout;
BEGIN;
:call;
SHOW idle_in_transaction_session_timeout;
ROLLBACK;

-- a prepared transaction that resets a snowflake sequence leaves it exhausted
CREATE TABLE prepared (id bigserial, n int);
SELECT snowflake_set_sequence_kind('prepared_id_seq');
BEGIN;
TRUNCATE prepared RESTART IDENTITY;
SAVEPOINT x;
ALTER SEQUENCE prepared_id_seq RESTART 5;
ROLLBACK TO x;
PREPARE TRANSACTION 'x';
COMMIT PREPARED 'x';
SELECT last_value, is_called FROM prepared_id_seq;
-- the position of a range sequence, which can be set unseen, is not where its numbers are
CREATE FUNCTION server_setval(regclass, bigint) RETURNS bigint LANGUAGE internal AS 'setval_oid';
CREATE SEQUENCE unseen;
SELECT snowflake_set_sequence_kind('unseen', 'range');
SELECT nextval('unseen'), server_setval('unseen', 5);
SELECT nextval('unseen');
-- who may see the connection string, and change it
SELECT count(*) FROM pg_settings WHERE name = 'snowflake.registry';
\set VERBOSITY sqlstate
SET ROLE regress_owner;
SHOW snowflake.registry;
RESET ROLE;
SET snowflake.registry = '';
\set VERBOSITY terse

-- nothing of all this is a loss
SELECT stopped FROM snowflake_registry.range_state;
SET client_min_messages = error;
DROP SCHEMA rs, rs_other CASCADE;
DROP ROLE regress_owner;
