--
-- Functions that might hold keys in integers are named, and stay as they are
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
CREATE SCHEMA held;
CREATE SCHEMA elsewhere;
SET search_path = held, public;
CREATE TABLE people (person_id serial PRIMARY KEY, name text, boss int REFERENCES people);
CREATE TABLE log (entry serial PRIMARY KEY, about int REFERENCES people, line text);
INSERT INTO people (name) VALUES ('a');

-- by a parameter, a result, or a word in the body; with the name of a table, or of a column
CREATE FUNCTION by_parameter(int) RETURNS text LANGUAGE sql AS 'SELECT name FROM people WHERE person_id = $1';
CREATE FUNCTION by_result() RETURNS SETOF smallint LANGUAGE sql AS 'SELECT 1::int2 FROM People';
CREATE FUNCTION by_output(OUT whose int, OUT t text) RETURNS SETOF record LANGUAGE sql AS 'SELECT about, line FROM log';
CREATE FUNCTION by_name(person_id int) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION by_word() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE n INT4 := NEW.boss; BEGIN RETURN NEW; END';
CREATE FUNCTION by_lock(about bigint) RETURNS void LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1, about); END';
CREATE FUNCTION by_row(p people) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN (p.person_id % 7)::integer; END';
CREATE PROCEDURE do_it(whom int) LANGUAGE plpgsql AS 'BEGIN UPDATE people SET name = ''b'' WHERE person_id = whom; END';
CREATE TRIGGER by_word BEFORE UPDATE ON people FOR EACH ROW EXECUTE FUNCTION by_word();
-- keys of other tables, in a temporary one or in JSON
CREATE FUNCTION by_temporary() RETURNS void LANGUAGE plpgsql AS 'BEGIN CREATE TEMP TABLE t (n int); END';
CREATE FUNCTION by_json(j json) RETURNS text LANGUAGE sql AS $$ SELECT chr((j->>'order')::int) $$;
CREATE VIEW from_json AS SELECT (name::json ->> 'order')::int AS n FROM people;
CREATE VIEW named AS SELECT by_parameter(1) AS name;
-- not these: no integer; no name; part of a name or word; elsewhere; an aggregate
CREATE FUNCTION no_integer(bigint) RETURNS text LANGUAGE sql AS 'SELECT name FROM people WHERE person_id = $1';
CREATE FUNCTION no_name(n int) RETURNS int LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION part_of_name(n int) RETURNS int LANGUAGE sql AS 'SELECT $1 AS person_ids';
CREATE FUNCTION part_of_word() RETURNS text LANGUAGE plpgsql AS 'DECLARE pointer text; int8s int8; BEGIN SELECT name INTO pointer FROM people; RETURN pointer; END';
CREATE FUNCTION elsewhere.other(int) RETURNS text LANGUAGE sql AS 'SELECT name FROM held.people WHERE person_id = $1';
CREATE AGGREGATE people_of(int) (SFUNC = int4pl, STYPE = int, INITCOND = 0);

CREATE VIEW functions AS
SELECT p.oid::regprocedure::text COLLATE "C", md5(pg_get_functiondef(p.oid))
FROM pg_proc p WHERE pronamespace = 'held'::regnamespace AND prokind <> 'a';
CREATE TABLE before AS SELECT * FROM functions;
SELECT object, finding FROM snowflake_convert_report('held', details => true) WHERE object ~ '^(function|procedure|view)';
SELECT DISTINCT what_to_do FROM snowflake_convert_report('held', details => true) WHERE object ~ '^(function|procedure)';
SET client_min_messages = notice;
SELECT count(*) > 0 FROM snowflake_convert('people', dry_run => true);
SET client_min_messages = warning;
-- what fails is found by rows with new keys
BEGIN;
SELECT object, finding FROM snowflake_convert_report('held', rehearse => true, details => true) WHERE finding ~ 'new key';
ROLLBACK;
SELECT count(*) > 0 FROM snowflake_convert_schema('held');
SELECT count(*) FROM (TABLE before EXCEPT TABLE functions) d;
SELECT * FROM named;

DROP SCHEMA held, elsewhere CASCADE;
