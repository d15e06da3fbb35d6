--
-- COPY FROM with defaults that generate keys: it inserts many rows at once, and each
-- row has a key of its own, whatever else runs meanwhile
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;
\set SHOW_CONTEXT never

-- Whether COPY inserts many rows at once is seen from the order of events: the default
-- of each row (d) and its index entry (i).
CREATE FUNCTION copy_note(event text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('copy.events', current_setting('copy.events', true) || event, false);
    RETURN 0;
END
$$;
CREATE FUNCTION copy_note_default() RETURNS integer LANGUAGE plpgsql STABLE AS
'BEGIN RETURN copy_note(''d''); END';
CREATE FUNCTION copy_note_index(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
'BEGIN RETURN copy_note(''i''); END';
CREATE FUNCTION copy_events() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    events text := current_setting('copy.events');
BEGIN
    PERFORM set_config('copy.events', '', false);
    RETURN events;
END
$$;
CREATE TABLE copy_noted (v integer, noted integer DEFAULT copy_note_default());
CREATE INDEX ON copy_noted (copy_note_index(v));
SET copy.events = '';

-- each of the functions
CREATE TABLE copy_nextval (id bigint DEFAULT snowflake_nextval(), LIKE copy_noted INCLUDING ALL);
CREATE TABLE copy_id (id bigint DEFAULT snowflake_id(), LIKE copy_noted INCLUDING ALL);
CREATE TABLE copy_v4 (id uuid DEFAULT uuid_v4(), LIKE copy_noted INCLUDING ALL);
CREATE TABLE copy_v7 (id uuid DEFAULT uuid_v7(), LIKE copy_noted INCLUDING ALL);
COPY copy_nextval (v) FROM STDIN;
1
2
3
\.
SELECT copy_events(), count(DISTINCT id) FROM copy_nextval;
COPY copy_id (v) FROM STDIN;
1
2
3
\.
SELECT copy_events(), count(DISTINCT id) FROM copy_id;
COPY copy_v4 (v) FROM STDIN;
1
2
3
\.
SELECT copy_events(), count(DISTINCT id) FROM copy_v4;
COPY copy_v7 (v) FROM STDIN;
1
2
3
\.
SELECT copy_events(), count(DISTINCT id) FROM copy_v7;
-- IDs increase in the order of the rows, and the last one is that of the session
SELECT v FROM copy_nextval ORDER BY id;
COPY copy_nextval (v) FROM STDIN;
4
\.
SELECT id = snowflake_currval() AS is_currval FROM copy_nextval WHERE v = 4;
SELECT copy_events();

-- more rows than are inserted at once, into partitions, too
CREATE TABLE copy_many (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v integer) PARTITION BY HASH (id);
CREATE TABLE copy_many_0 PARTITION OF copy_many FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE copy_many_1 PARTITION OF copy_many FOR VALUES WITH (MODULUS 2, REMAINDER 1);
COPY copy_many (v) FROM PROGRAM 'seq 5000';
SELECT count(DISTINCT id), count(DISTINCT tableoid) FROM copy_many;
CREATE TABLE copy_parts (id bigint DEFAULT snowflake_nextval(), LIKE copy_noted INCLUDING ALL) PARTITION BY LIST (v);
CREATE TABLE copy_part PARTITION OF copy_parts DEFAULT;
COPY copy_parts (v) FROM PROGRAM 'seq 3';
SELECT copy_events(), count(DISTINCT id) FROM copy_parts;

-- in other expressions
CREATE FUNCTION copy_twice(bigint) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1::text || '':'' || $1::text';
CREATE FUNCTION copy_key() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT snowflake_nextval()';
CREATE FUNCTION copy_query() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT snowflake_nextval() FROM generate_series(1, 1)';
CREATE DOMAIN copy_domain AS bigint DEFAULT snowflake_nextval() CHECK (VALUE > 0 AND VALUE < snowflake_nextval());
CREATE TABLE copy_expressions (
    n integer GENERATED ALWAYS AS IDENTITY,
    id text DEFAULT 'row ' || coalesce(snowflake_nextval(), 0),
    code text DEFAULT snowflake_encode(snowflake_id()),
    twice text DEFAULT copy_twice(snowflake_nextval()),
    inlined bigint DEFAULT copy_key(),
    domain copy_domain,
    domain_default copy_domain DEFAULT snowflake_nextval() - 1,
    list uuid[] DEFAULT ARRAY[uuid_v4(), uuid_v7()],
    LIKE copy_noted INCLUDING ALL);
COPY copy_expressions (v) FROM STDIN;
1
2
3
\.
SELECT copy_events(), count(DISTINCT id) AS ids, count(DISTINCT code) AS codes,
       count(DISTINCT inlined) AS inlined, count(DISTINCT domain) AS domains,
       count(DISTINCT domain_default) AS domain_defaults, count(DISTINCT list) AS lists,
       count(DISTINCT twice) AS twice, bool_and(split_part(twice, ':', 1) = split_part(twice, ':', 2)) AS same_in_one
FROM copy_expressions;
-- the constraint of the domain is as it was for the rest of the session
INSERT INTO copy_expressions (v) SELECT generate_series(4, 6);
SELECT copy_events(), count(DISTINCT domain) AS domains FROM copy_expressions;
-- an argument that is used twice is evaluated once, even if the planner considers nothing expensive
CREATE TABLE copy_twice (twice text DEFAULT copy_twice(snowflake_nextval()), LIKE copy_noted INCLUDING ALL);
SET cpu_operator_cost = 0;
COPY copy_twice (v) FROM PROGRAM 'seq 3';
RESET cpu_operator_cost;
SELECT copy_events(), bool_and(split_part(twice, ':', 1) = split_part(twice, ':', 2)) AS same_in_one FROM copy_twice;
-- that is also how to do without
SELECT '_snowflake_copy_default(internal, "any")' AS copy_default \gset
ALTER FUNCTION :copy_default COST 1;
COPY copy_twice (v) FROM PROGRAM 'seq 3';
ALTER FUNCTION :copy_default COST 1000;
SELECT copy_events(), bool_and(split_part(twice, ':', 1) = split_part(twice, ':', 2)) AS same_in_one FROM copy_twice;
-- what else is volatile stays so: random(), a function with a query, the WHERE clause
CREATE TABLE copy_random (id bigint DEFAULT snowflake_nextval(), r float8 DEFAULT random(), LIKE copy_noted INCLUDING ALL);
COPY copy_random (v) FROM PROGRAM 'seq 3';
SELECT copy_events(), count(DISTINCT id) FROM copy_random;
CREATE TABLE copy_query (id bigint DEFAULT copy_query(), LIKE copy_noted INCLUDING ALL);
COPY copy_query (v) FROM PROGRAM 'seq 3';
SELECT copy_events(), count(DISTINCT id) FROM copy_query;
SELECT snowflake_nextval() AS before \gset
TRUNCATE copy_nextval;
COPY copy_nextval (v) FROM PROGRAM 'seq 3' WHERE id < snowflake_nextval() AND snowflake_nextval() > v;
SELECT copy_events(), count(DISTINCT id), min(id) > :before AS new FROM copy_nextval;

--
-- Whatever else evaluates such a default while a COPY runs has a key for each row.
-- Each of these adds a column to three rows.
--
CREATE TABLE copy_filled (n integer);
INSERT INTO copy_filled VALUES (1), (2), (3);
CREATE FUNCTION copy_add_columns() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    -- one at a time: if one column needs new rows, defaults of the others are not evaluated once either
    ALTER TABLE copy_filled ADD a bigint DEFAULT snowflake_nextval();
    ALTER TABLE copy_filled ADD b uuid DEFAULT uuid_v4(), ADD c uuid NOT NULL DEFAULT uuid_v7();
    ALTER TABLE copy_filled ADD d text DEFAULT 'x' || snowflake_id();
    ALTER TABLE copy_filled ADD e copy_domain;
    ALTER TABLE copy_filled ADD f integer;
    ALTER TABLE copy_filled ALTER f TYPE text USING snowflake_nextval()::text;
    CREATE TEMP TABLE copy_as AS SELECT n, snowflake_nextval() AS id FROM copy_filled;
    SELECT format('%s %s %s %s %s %s %s', count(DISTINCT a), count(DISTINCT b), count(DISTINCT c),
                  count(DISTINCT d), count(DISTINCT e), count(DISTINCT f), count(DISTINCT id))
    INTO result FROM copy_filled JOIN copy_as USING (n);
    ALTER TABLE copy_filled DROP a, DROP b, DROP c, DROP d, DROP e, DROP f;
    DROP TABLE copy_as;
    RETURN result;
END
$$;
SELECT copy_add_columns();
CREATE FUNCTION copy_added() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN copy_add_columns(); END';

-- a function that the planner evaluates while COPY prepares its defaults
CREATE FUNCTION copy_load() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    COPY copy_many (v) FROM PROGRAM 'seq 3';
    RETURN copy_add_columns();
END
$$;
CREATE FUNCTION copy_constant(integer) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN copy_load(); END';
CREATE TABLE copy_prepares (constant text DEFAULT copy_constant(1), id bigint DEFAULT snowflake_nextval(), LIKE copy_noted INCLUDING ALL);
COPY copy_prepares (v) FROM PROGRAM 'seq 3';
SELECT copy_events(), count(DISTINCT id), constant FROM copy_prepares GROUP BY constant;
-- a default of another column
CREATE TABLE copy_default (id bigint DEFAULT snowflake_nextval(), added text DEFAULT copy_added(), v integer);
COPY copy_default (v) FROM PROGRAM 'seq 3';
SELECT count(DISTINCT id), added FROM copy_default GROUP BY added;
-- triggers, before and after the rows
CREATE FUNCTION copy_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE INFO '% %: %', TG_WHEN, TG_LEVEL, copy_add_columns();
    RETURN NEW;
END
$$;
CREATE TABLE copy_fires (id bigint DEFAULT snowflake_nextval(), v integer);
CREATE TRIGGER before_all BEFORE INSERT ON copy_fires EXECUTE FUNCTION copy_trigger();
CREATE TRIGGER before_each BEFORE INSERT ON copy_fires FOR EACH ROW EXECUTE FUNCTION copy_trigger();
CREATE TRIGGER after_each AFTER INSERT ON copy_fires FOR EACH ROW EXECUTE FUNCTION copy_trigger();
CREATE TRIGGER after_all AFTER INSERT ON copy_fires EXECUTE FUNCTION copy_trigger();
COPY copy_fires (v) FROM PROGRAM 'seq 2';
DROP TRIGGER before_each ON copy_fires;
COPY copy_fires (v) FROM PROGRAM 'seq 2';
SELECT count(DISTINCT id) FROM copy_fires;
-- COPY that is begun by one, before and after which other statements run
CREATE FUNCTION copy_nested() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    COPY copy_nextval (v) FROM PROGRAM 'seq 3';
    RAISE INFO '%, %', copy_events(), copy_add_columns();
    RETURN NEW;
END
$$;
CREATE TABLE copy_outer (id bigint DEFAULT snowflake_nextval(), v integer);
CREATE TRIGGER nested BEFORE INSERT ON copy_outer FOR EACH ROW EXECUTE FUNCTION copy_nested();
TRUNCATE copy_nextval;
COPY copy_outer (v) FROM PROGRAM 'seq 2';
SELECT count(DISTINCT o.id), count(DISTINCT n.id) FROM copy_outer o, copy_nextval n;
-- after an error in COPY, in its functions, and in a subtransaction
COPY copy_nextval (v) FROM PROGRAM 'echo 1; echo x';
SELECT copy_events(), copy_add_columns();
CREATE FUNCTION copy_fails(integer) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
'BEGIN IF current_setting(''copy.fail'', true) = ''on'' THEN RAISE ''failed on purpose''; END IF; RETURN 1; END';
CREATE TABLE copy_failing (id bigint DEFAULT snowflake_nextval(), f text DEFAULT copy_fails(1), v integer);
SET copy.fail = on;
COPY copy_failing (v) FROM PROGRAM 'seq 3';
SELECT copy_add_columns();
DO $$
BEGIN
    BEGIN
        COPY copy_failing (v) FROM PROGRAM 'seq 3';
    EXCEPTION WHEN raise_exception THEN
        RAISE INFO '%', copy_add_columns();
    END;
END
$$;
RESET copy.fail;
COPY copy_failing (v) FROM PROGRAM 'seq 3';
SELECT count(DISTINCT id) FROM copy_failing;

-- plans and functions from before and after a COPY
PREPARE copy_insert AS INSERT INTO copy_nextval (v) SELECT generate_series(1, 3);
TRUNCATE copy_nextval;
EXECUTE copy_insert;
COPY copy_nextval (v) FROM PROGRAM 'seq 3';
EXECUTE copy_insert;
SELECT count(*), count(DISTINCT id) FROM copy_nextval;
SELECT count(DISTINCT copy_key()) FROM generate_series(1, 3);
SELECT length(copy_events());
-- nothing that is stored has the substitute
SELECT objid::regclass FROM pg_depend WHERE refobjid = :'copy_default'::regprocedure;

--
-- Nobody else calls it
--
DO $$
BEGIN
    PERFORM _snowflake_copy_default(NULL, 'snowflake_nextval()'::regprocedure);
EXCEPTION WHEN undefined_function OR feature_not_supported THEN
    RAISE INFO 'no value has the type of its first argument';
END
$$;
-- a strict function returns a NULL of that type, without being called; not all servers
-- have such calls in a default
CREATE FUNCTION copy_called(bigint, integer) RETURNS bigint LANGUAGE plpgsql STABLE AS
'BEGIN RAISE INFO ''called''; RETURN 1; END';
DO $$
BEGIN
    CREATE TABLE copy_typed (
        v integer,
        called boolean DEFAULT (_snowflake_copy_default(
            int8_avg_deserialize(NULL, internal_in(textout(random()::text))),
            'copy_called(bigint, integer)'::regprocedure::oid, 1::bigint, 2) IS NULL));
    COPY copy_typed (v) FROM PROGRAM 'seq 1';
EXCEPTION WHEN feature_not_supported OR wrong_object_type THEN
END
$$;
-- a superuser who declares the function differently
CREATE FUNCTION copy_leak(bigint) RETURNS bigint LANGUAGE c STABLE AS '$libdir/snowflake', 'snowflake_copy_default';
SELECT copy_leak('snowflake_nextval()'::regprocedure::bigint);
ALTER TABLE copy_filled ADD leak bigint DEFAULT copy_leak(0);
CREATE FUNCTION copy_unsealed(bigint, oid) RETURNS bigint LANGUAGE c STABLE AS '$libdir/snowflake', 'snowflake_copy_default';
CREATE TABLE copy_unsealed (id bigint DEFAULT copy_unsealed(NULL, 'snowflake_nextval()'::regprocedure), v integer);
COPY copy_unsealed (v) FROM PROGRAM 'seq 1';
CREATE FUNCTION copy_leaks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    ALTER TABLE copy_filled ADD leak bigint DEFAULT copy_leak(0);
    RETURN NEW;
END
$$;
CREATE TABLE copy_leaking (id bigint DEFAULT snowflake_nextval(), v integer);
CREATE TRIGGER leak BEFORE INSERT ON copy_leaking FOR EACH ROW EXECUTE FUNCTION copy_leaks();
COPY copy_leaking (v) FROM PROGRAM 'seq 3';

--
-- Privileges are those of the function itself
--
CREATE ROLE regress_copy IN ROLE pg_execute_server_program;
CREATE TABLE copy_rights (id bigint DEFAULT snowflake_nextval(), LIKE copy_noted INCLUDING ALL);
GRANT ALL ON copy_rights TO regress_copy;
REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC;
SET ROLE regress_copy;
COPY copy_rights (v) FROM PROGRAM 'seq 3';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_nextval() TO PUBLIC;
REVOKE EXECUTE ON FUNCTION :copy_default FROM PUBLIC;
SET ROLE regress_copy;
COPY copy_rights (v) FROM PROGRAM 'seq 3';
RESET ROLE;
SELECT copy_events(), count(DISTINCT id) FROM copy_rights;
GRANT EXECUTE ON FUNCTION :copy_default TO PUBLIC;

-- functions with arguments, and those that are strict
CREATE FUNCTION copy_add(bigint, integer) RETURNS bigint LANGUAGE internal VOLATILE STRICT
SUPPORT _snowflake_copy_support AS 'int84pl';
CREATE FUNCTION copy_null() RETURNS integer LANGUAGE plpgsql STABLE AS 'BEGIN RETURN NULL; END';
CREATE TABLE copy_arguments (
    id bigint DEFAULT copy_add(snowflake_nextval(), 1), none bigint DEFAULT copy_add(snowflake_nextval(), copy_null()),
    LIKE copy_noted INCLUDING ALL);
COPY copy_arguments (v) FROM PROGRAM 'seq 3';
SELECT copy_events(), count(DISTINCT id), count(none) FROM copy_arguments;

\set VERBOSITY terse
SET client_min_messages = warning;
DROP TABLE copy_noted, copy_nextval, copy_id, copy_v4, copy_v7, copy_many, copy_parts, copy_expressions,
    copy_twice, copy_random, copy_query, copy_filled, copy_prepares, copy_default, copy_fires, copy_outer,
    copy_failing, copy_unsealed, copy_leaking, copy_rights, copy_arguments;
DROP DOMAIN copy_domain;
DROP FUNCTION copy_note, copy_note_default, copy_note_index, copy_events, copy_twice, copy_key, copy_query,
    copy_add_columns, copy_added, copy_load, copy_constant, copy_trigger, copy_nested, copy_fails, copy_called,
    copy_leak, copy_leaks, copy_unsealed, copy_add, copy_null;
DROP ROLE regress_copy;
