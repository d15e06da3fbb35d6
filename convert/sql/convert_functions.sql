--
-- Functions that hold keys in integers are changed with the columns
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
CREATE ROLE regress_functions;
CREATE ROLE regress_functions_reader;
CREATE SCHEMA held AUTHORIZATION regress_functions;
GRANT USAGE ON SCHEMA held TO regress_functions_reader;
SET ROLE regress_functions;
SET search_path = held, public;
CREATE TABLE people (person_id serial PRIMARY KEY, name text, boss int REFERENCES people);
CREATE TABLE log (entry serial PRIMARY KEY, about int REFERENCES people, line text, n int);

-- found by its name, with a prefix, and by what is done with it
CREATE FUNCTION by_name(p_person_id int, n int) RETURNS text LANGUAGE sql AS
$$SELECT repeat(name, n) FROM people WHERE person_id = $1$$;
CREATE FUNCTION by_place(int, int) RETURNS text LANGUAGE sql AS
$$SELECT repeat(name, $2) FROM people WHERE boss IN ($1)$$;
CREATE FUNCTION note(whom int, what text, times int DEFAULT 2, VARIADIC more int[] DEFAULT '{}') RETURNS int LANGUAGE plpgsql
    STABLE SECURITY DEFINER SET search_path = held AS $body$
DECLARE
    -- whom int; this is a comment
    alias_of ALIAS FOR whom;
    first CONSTANT smallint := alias_of;
    copied integer;
    loops int := 3;
    made int;
    declared log.about%TYPE;
    text text := 'whom::int';
BEGIN
    copied := whom::integer;
    FOR i IN 1 .. loops LOOP text := substr(text, loops); END LOOP;
    SELECT max(person_id), 7 INTO STRICT made, loops FROM people WHERE person_id < CAST(first AS int);
    RETURN copied;
END $body$;
COMMENT ON FUNCTION note IS 'it''s a note';
REVOKE ALL ON FUNCTION note FROM PUBLIC;
GRANT EXECUTE ON FUNCTION note TO regress_functions_reader WITH GRANT OPTION;
-- by calls, to and fro
CREATE FUNCTION passed(a int, b int) RETURNS int LANGUAGE plpgsql AS $$BEGIN RETURN b; END$$;
CREATE FUNCTION on_people() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    got int;
    chosen int = 4;
BEGIN
    got := passed(b => NEW.person_id, a => 1);
    INSERT INTO log (line, about, n) VALUES (substr('abc', chosen), got, 0), ('second', passed(1, NEW.boss), 5);
    RETURN NEW;
END$$;
CREATE TRIGGER log AFTER INSERT ON people FOR EACH ROW EXECUTE FUNCTION on_people();
CREATE FUNCTION columns(OUT id int, OUT length int) RETURNS SETOF record LANGUAGE plpgsql AS
$$BEGIN FOR id IN SELECT person_id FROM people LOOP length := 1; RETURN NEXT; END LOOP; END$$;
CREATE FUNCTION rows_of() RETURNS TABLE (whose int, "how many" int) LANGUAGE sql AS
$$WITH p AS (SELECT 1) SELECT about, length(line) FROM log$$;
CREATE FUNCTION last_one() RETURNS SETOF int LANGUAGE sql AS $$SELECT entry FROM log ORDER BY 1 DESC LIMIT 1$$;
CREATE FUNCTION only_output(INOUT whom int) LANGUAGE plpgsql AS
$$BEGIN DELETE FROM log WHERE about = only_output.whom; END$$;
CREATE PROCEDURE do_it(whom int, times int, note text DEFAULT E'\n LANGUAGE none') LANGUAGE plpgsql AS
$$BEGIN UPDATE people SET name = repeat(name, times) WHERE person_id = whom; END$$;
COMMENT ON PROCEDURE do_it IS 'a procedure';
CREATE FUNCTION stores(who int, times int) RETURNS void LANGUAGE sql AS
$$INSERT INTO log (line, about, n) VALUES ('x', 1, times), (repeat('y', $2), who, 5)$$;
CREATE FUNCTION copies(int, times int) RETURNS void LANGUAGE sql AS
$$INSERT INTO held.log (about, line) SELECT $1, repeat('z', times)$$;
-- rows of a table; a variable with the name of one outside of its block
CREATE FUNCTION of_row(p people) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n int := 2;
    got text;
BEGIN
    DECLARE
        n int := CASE WHEN p.boss IS NULL THEN 1 ELSE p.boss END;
        picked int;
        kind int := CASE WHEN p.person_id = 1 THEN 1 ELSE p.person_id % 7 END;
    BEGIN
        n := p.person_id;
        picked := CASE WHEN kind < 0 THEN 0 ELSE CASE kind WHEN -1 THEN 1 ELSE n END END;
        got := picked;
    END;
    IF n > 1 THEN got := got || substr('abc', n); END IF;
    RETURN got;
END$$;
-- queries that do not begin with SELECT
CREATE FUNCTION adds() RETURNS TABLE (whose int, how_many int) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY INSERT INTO log (about, line) SELECT about, 'again' FROM log WHERE line = 'second' RETURNING about, length(line);
    RETURN QUERY WITH p AS (SELECT 1) (SELECT about, 7 FROM log ORDER BY about DESC NULLS LAST LIMIT 1);
END$$;
-- calls with integers find another one afterwards
CREATE FUNCTION many(person_id int) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
CREATE FUNCTION many(double precision) RETURNS text LANGUAGE sql AS $$SELECT 'a double'$$;
CREATE FUNCTION either(person_id int, n int DEFAULT 1) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
CREATE FUNCTION either(numeric) RETURNS text LANGUAGE sql AS $$SELECT 'numeric'$$;
-- but not those of these
CREATE FUNCTION several(person_id int) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
CREATE FUNCTION several(person_id int, text) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
CREATE FUNCTION several(text) RETURNS text LANGUAGE sql AS $$SELECT 'a text'$$;
-- a view that calls one
CREATE FUNCTION of_view(whom int) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE boss = whom$$;
CREATE VIEW named AS SELECT of_view(5) AS name;
GRANT SELECT ON named TO regress_functions_reader;

-- not changed: holds no key; something depends on it; another one has the parameters; another role
CREATE FUNCTION bucket() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    n int := 1;
    text text;
BEGIN
    n := person_id % 16 FROM people LIMIT 1;
    SELECT person_id / 1000, name INTO n, text FROM people;
    RETURN length(substr(text, n));
END$$;
CREATE FUNCTION compared() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    n int := (SELECT (person_id IS NOT NULL)::int + coalesce(boss > 5, false)::int FROM people LIMIT 1);
    part int;
BEGIN
    SELECT (person_id % 16)::int, max(abs(person_id % 7)) INTO part, n FROM people GROUP BY person_id LIMIT 1;
    RETURN length(substr('abc', part, n + 1));
END$$;
CREATE FUNCTION no_key(n int) RETURNS int LANGUAGE sql AS $$SELECT count(*)::int + n FROM people$$;
CREATE FUNCTION in_default(person_id int) RETURNS int LANGUAGE sql AS $$SELECT 1 FROM people WHERE person_id = $1$$;
ALTER TABLE log ALTER n SET DEFAULT in_default(1);
CREATE FUNCTION taken(person_id int) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
CREATE FUNCTION taken(person_id bigint) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
-- of two that would have the same parameters, one is changed
CREATE FUNCTION twins(person_id int) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
CREATE FUNCTION twins(person_id smallint) RETURNS text LANGUAGE sql AS $$SELECT name FROM people WHERE person_id = $1$$;
RESET ROLE;
CREATE FUNCTION of_other(person_id int) RETURNS text LANGUAGE sql AS $$SELECT name FROM held.people WHERE person_id = $1$$;
CREATE FUNCTION leakproof(person_id int) RETURNS text LANGUAGE sql LEAKPROOF AS $$SELECT name FROM held.people WHERE person_id = $1$$;
ALTER FUNCTION leakproof OWNER TO regress_functions;
CREATE FUNCTION list_functions() RETURNS SETOF text LANGUAGE sql AS $$
SELECT format('%s %s %s %s %s %s', p.oid::regprocedure, pg_get_function_result(p.oid), CASE WHEN pg_get_userbyid(proowner) = session_user THEN 'another' ELSE proowner::regrole::text END, proacl, proconfig, obj_description(p.oid, 'pg_proc'))
FROM pg_proc p WHERE pronamespace = 'held'::regnamespace AND proname <> 'list_functions' ORDER BY p.oid::regprocedure::text COLLATE "C" $$;
SET ROLE regress_functions;
INSERT INTO people (name) VALUES ('a');
INSERT INTO people (name, boss) VALUES ('b', 1);

SELECT * FROM list_functions();
SELECT object, finding FROM snowflake_convert_report('held', details => true) WHERE object ~ 'function|procedure|view';
-- since 17, there is one privilege more
SELECT replace(snowflake_convert_schema('held', dry_run => true), ', MAINTAIN', '') AS statement;
BEGIN;
SELECT severity, object, finding FROM snowflake_convert_report('held', rehearse => true, details => true) WHERE finding ~ 'new key|rehearse';
COMMIT;
SELECT count(*) > 0 FROM snowflake_convert_schema('held');
SELECT * FROM list_functions();
\sf note

-- they work
INSERT INTO people (name, boss) SELECT 'c', max(person_id) FROM people RETURNING person_id > 4294967296;
SELECT about > 4294967296 AS big, line, n FROM log ORDER BY entry DESC LIMIT 2;
SELECT by_name(max(person_id), 2), by_place(max(boss), 2), by_name(1, 2), by_name('1', 2) FROM people;
SELECT count(*) FILTER (WHERE id > 4294967296), min(length) FROM columns();
SELECT count(*) FILTER (WHERE whose > 4294967296), min("how many") FROM rows_of();
SELECT last_one() > 0, only_output(max(person_id)) > 4294967296 FROM people;
SELECT note(max(person_id), 'x', 1) > 0 FROM people;
SELECT compared() >= 0;
DO $$DECLARE last bigint := max(person_id) FROM people; BEGIN CALL do_it(last, 3); END$$;
SELECT name FROM people ORDER BY person_id DESC LIMIT 1;
SELECT stores(max(person_id), 2), copies(max(person_id), 2) FROM people;
SELECT count(*) FROM log WHERE about > 4294967296 AND line IN ('yy', 'zz');
SELECT of_row(p) ~ '^[0-9]{19}bc$' FROM people p WHERE name = 'ccc';
SELECT count(*) FILTER (WHERE whose > 4294967296), min(how_many), max(how_many) FROM adds();
SELECT several(1), several(1, 'x'), many(person_id), either(person_id) FROM people WHERE person_id > 4294967296;
SELECT * FROM named;
SELECT has_table_privilege('regress_functions_reader', 'named', 'SELECT');
-- the second time
SELECT snowflake_convert_schema('held');
RESET ROLE;
DROP SCHEMA held CASCADE;
DROP ROLE regress_functions, regress_functions_reader;
