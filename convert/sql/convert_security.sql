--
-- snowflake_convert() by a superuser, on tables of untrusted owners
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE ROLE regress_mallory;
CREATE ROLE regress_bob;
CREATE ROLE regress_dba SUPERUSER;
SET SESSION AUTHORIZATION regress_dba;
CREATE SCHEMA shop;
GRANT USAGE ON SCHEMA shop TO regress_mallory, regress_bob;
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET search_path = shop, public;

-- what runs as a superuser, or can become one, makes mallory a superuser
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.grab() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    ALTER ROLE regress_mallory SUPERUSER;
EXCEPTION WHEN insufficient_privilege THEN
    BEGIN
        RESET ROLE;
        ALTER ROLE regress_mallory SUPERUSER;
    EXCEPTION WHEN insufficient_privilege THEN
        NULL;
    END;
END
$$;
CREATE FUNCTION shop.evil(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM shop.grab();
    RETURN i;
END
$$;
SET SESSION AUTHORIZATION regress_dba;
CREATE FUNCTION caught() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_mallory') THEN
        ALTER ROLE regress_mallory NOSUPERUSER;
        RETURN 'mallory is superuser';
    END IF;
    RETURN 'mallory is as before';
END
$$;

-- constants in indexes and statistics, which planning evaluates
SET SESSION AUTHORIZATION regress_mallory;
CREATE TABLE in_index (id bigint PRIMARY KEY);
CREATE INDEX ON in_index ((shop.evil(1)));
CREATE TABLE in_statistics (id bigint PRIMARY KEY, a int);
CREATE STATISTICS in_statistics_s ON (shop.evil(1) + a), id FROM in_statistics;
SET SESSION AUTHORIZATION regress_dba;
SET client_min_messages = warning;
SELECT count(*) FROM snowflake_convert('in_index', dry_run => true);
SELECT caught();
SELECT count(*) FROM snowflake_convert('in_statistics', dry_run => true);
SELECT caught();
SELECT count(*) FROM snowflake_convert('in_index');
SELECT caught();
SELECT count(*) FROM snowflake_convert('in_statistics');
SELECT caught();

-- checks and indexes of the table, which rewriting it evaluates
SET SESSION AUTHORIZATION regress_mallory;
CREATE TABLE in_check (id int PRIMARY KEY CHECK (shop.evil(id) > 0), v int);
CREATE INDEX ON in_check ((shop.evil(v)));
INSERT INTO in_check VALUES (1, 1);
SET SESSION AUTHORIZATION regress_dba;
SELECT count(*) FROM snowflake_convert('in_check');
SELECT caught();

-- also after an error in an expression, which is caught
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.fail(i bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM shop.grab(); RAISE ''not %'', ''this one''; END';
CREATE TABLE failing (id bigint PRIMARY KEY, CONSTRAINT a CHECK (shop.fail(id)), CONSTRAINT b CHECK (shop.evil(id) > 0));
SET SESSION AUTHORIZATION regress_dba;
SELECT snowflake_convert('failing', dry_run => true);
SELECT caught();
SELECT snowflake_convert('failing');
SELECT caught();
SELECT current_user, current_setting('search_path');

-- a generator, and a partition key
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.generate() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM shop.grab(); RETURN 1; END';
CREATE TABLE generated (id bigint PRIMARY KEY);
CREATE TABLE parts (id bigint) PARTITION BY RANGE (shop.evil(id));
CREATE TABLE parts_1 PARTITION OF parts DEFAULT;
SET SESSION AUTHORIZATION regress_dba;
SELECT count(*) FROM snowflake_convert('generated', generator => 'shop.generate()');
SELECT caught();
SELECT count(*) FROM snowflake_convert('parts', 'id');
SELECT caught();

-- operators and functions in the search path
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.equal(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM shop.grab(); RETURN true; END';
CREATE OPERATOR shop.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = shop.equal);
CREATE TABLE plain (id int PRIMARY KEY);
SET SESSION AUTHORIZATION regress_dba;
SELECT count(*) FROM snowflake_convert('plain');
SELECT caught();

-- a table that references the key, of a role without further privileges
CREATE TABLE customers (id serial PRIMARY KEY);
GRANT SELECT, REFERENCES ON customers TO regress_mallory;
INSERT INTO customers VALUES (1);
SET SESSION AUTHORIZATION regress_mallory;
CREATE TABLE trap (customer int REFERENCES customers, CHECK (shop.evil(customer) > 0));
INSERT INTO trap VALUES (1);
SET SESSION AUTHORIZATION regress_dba;
SELECT snowflake_convert('customers');
SELECT caught();
SELECT snowflake_convert('customers', dry_run => true);
-- a table that is not altered, but that a foreign key is checked against
SET SESSION AUTHORIZATION regress_mallory;
ALTER TABLE trap RENAME TO trap_bigint;
ALTER TABLE trap_bigint ALTER customer TYPE bigint;
SET SESSION AUTHORIZATION regress_dba;
SELECT snowflake_convert('customers');
DROP TABLE trap_bigint;
SET SESSION AUTHORIZATION regress_mallory;
CREATE TABLE other_key (id int PRIMARY KEY);
GRANT REFERENCES ON other_key TO regress_bob;
SET SESSION AUTHORIZATION regress_dba;
ALTER TABLE customers OWNER TO regress_bob;
GRANT CREATE ON SCHEMA shop TO regress_bob;
SET SESSION AUTHORIZATION regress_bob;
CREATE TABLE both_keys (c int REFERENCES customers, FOREIGN KEY (c) REFERENCES other_key);
SELECT snowflake_convert('customers');
DROP TABLE both_keys;
SET SESSION AUTHORIZATION regress_dba;
-- one that is not altered does not matter
CREATE TABLE big (id bigserial PRIMARY KEY);
GRANT REFERENCES ON big TO regress_mallory;
SET SESSION AUTHORIZATION regress_mallory;
CREATE TABLE reference (id bigint REFERENCES big, CHECK (shop.evil(id) > 0));
SET SESSION AUTHORIZATION regress_dba;
SELECT count(*) FROM snowflake_convert('big', dry_run => true);
SELECT caught();
-- nor does its partition key
SET SESSION AUTHORIZATION regress_mallory;
CREATE TABLE reference_parts (id bigint REFERENCES big) PARTITION BY LIST (shop.evil(id));
CREATE TABLE reference_parts_1 PARTITION OF reference_parts FOR VALUES IN (1);
CREATE TABLE reference_parts_2 PARTITION OF reference_parts DEFAULT;
SET SESSION AUTHORIZATION regress_dba;
ALTER TABLE reference_parts_2 OWNER TO regress_dba;
ALTER TABLE reference_parts_2 ADD CHECK (id > 0);
SELECT count(*) FROM snowflake_convert('big', dry_run => true);
SELECT caught();
SELECT count(*) FROM snowflake_convert('big');
SELECT caught();
-- the same owner for the conversion
CREATE TABLE orders (customer int REFERENCES customers);
SELECT snowflake_convert('customers');
BEGIN;
ALTER TABLE orders OWNER TO regress_bob;
SELECT count(*) FROM snowflake_convert('customers');
ALTER TABLE orders OWNER TO regress_dba;
COMMIT;

-- the owner of the table
SET SESSION AUTHORIZATION regress_bob;
SELECT snowflake_convert('generated');
SELECT count(*) FROM snowflake_convert('customers');
SET SESSION AUTHORIZATION regress_dba;
GRANT regress_mallory TO regress_bob;
SET SESSION AUTHORIZATION regress_bob;
SELECT count(*) FROM snowflake_convert('generated', generator => 'public.snowflake_nextval()');
SET SESSION AUTHORIZATION regress_dba;

-- objects that the owner cannot use
SET client_min_messages = warning;
CREATE SCHEMA closed;
CREATE FUNCTION closed.own() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
REVOKE EXECUTE ON FUNCTION closed.own() FROM PUBLIC;
CREATE TABLE closed.t (id int PRIMARY KEY);
ALTER TABLE closed.t OWNER TO regress_bob;
SELECT snowflake_convert('closed.t', generator => 'closed.own()');
GRANT USAGE ON SCHEMA closed TO regress_bob;
SELECT snowflake_convert('closed.t', generator => 'closed.own()');
GRANT EXECUTE ON FUNCTION closed.own() TO regress_bob;
SELECT count(*) FROM snowflake_convert('closed.t', generator => 'closed.own()');

-- rows that are hidden from the owner
CREATE TABLE hidden (id bigint PRIMARY KEY);
INSERT INTO hidden VALUES (9223372036854775807);
ALTER TABLE hidden OWNER TO regress_bob;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
SET SESSION AUTHORIZATION regress_bob;
SELECT snowflake_convert('hidden');
ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
SELECT snowflake_convert('hidden');
SET SESSION AUTHORIZATION regress_dba;
SELECT snowflake_convert('hidden', dry_run => true);
ALTER ROLE regress_bob BYPASSRLS;
SELECT snowflake_convert('hidden');
ALTER ROLE regress_bob NOBYPASSRLS;
ALTER TABLE hidden NO FORCE ROW LEVEL SECURITY;
DELETE FROM hidden;
SELECT snowflake_convert('hidden');

ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
SET client_min_messages = notice;
SELECT snowflake_convert('hidden');
SET client_min_messages = warning;

-- changes during the conversion, here by an event trigger, are detected
CREATE TABLE changed (id bigint PRIMARY KEY);
CREATE FUNCTION undo() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_attrdef WHERE adrelid = 'shop.changed'::regclass) THEN
        ALTER TABLE shop.changed ALTER id DROP DEFAULT;
    END IF;
END
$$;
CREATE EVENT TRIGGER regress_undo ON ddl_command_end EXECUTE FUNCTION undo();
SELECT snowflake_convert('changed');
DROP EVENT TRIGGER regress_undo;
SELECT snowflake_convert('changed');

-- what is created again calls a function with a bigint: one of that name which another role can
-- create would get the rights of the owner, who has to be the only one to create any there
SET SESSION AUTHORIZATION regress_bob;
CREATE FUNCTION shop.allowed(int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 < 10';
CREATE FUNCTION shop.allowed(double precision) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION shop.other(int, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION shop.other(bigint, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION shop.other(text, double precision) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION shop.named(int, text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION shop.computed(double precision) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION shop.listed(anyarray) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
SET SESSION AUTHORIZATION regress_dba;
CREATE TABLE guarded (id int PRIMARY KEY, CHECK (allowed(id) OR id > 0), CHECK (other(id, 1)), CHECK (computed(id)));
CREATE POLICY p ON guarded USING (allowed(id));
CREATE VIEW guarded_view AS SELECT id FROM guarded WHERE allowed(id);
GRANT CREATE ON SCHEMA shop TO PUBLIC;
SELECT count(*) FROM snowflake_convert('guarded', dry_run => true);
REVOKE CREATE ON SCHEMA shop FROM PUBLIC, regress_bob, regress_mallory;
ALTER SCHEMA shop OWNER TO regress_bob;
SELECT count(*) FROM snowflake_convert('guarded', dry_run => true);
ALTER SCHEMA shop OWNER TO pg_database_owner;
SET client_min_messages = notice;
SELECT count(*) FROM snowflake_convert('guarded', dry_run => true);
SET client_min_messages = warning;
CREATE OPERATOR <<< (FUNCTION = other, LEFTARG = int, RIGHTARG = int);
ALTER TABLE guarded ADD CHECK (id <<< 1), ADD CHECK (named(id, '1')), ADD CHECK (listed(ARRAY[id]));
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.allowed(i bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil(i) IS NOT NULL';
CREATE FUNCTION shop.other(int, VARIADIC bigint[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil($1) IS NOT NULL';
CREATE FUNCTION shop.computed(i bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil(i) IS NOT NULL';
CREATE FUNCTION shop.computed(text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE DOMAIN shop.mallorys AS bigint;
CREATE FUNCTION shop.named(shop.mallorys, shop.mallorys) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil($1) IS NOT NULL';
CREATE FUNCTION shop.listed(bigint[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil($1[1]) IS NOT NULL';
CREATE OPERATOR shop.<<< (FUNCTION = shop.other, LEFTARG = bigint, RIGHTARG = int);
SET SESSION AUTHORIZATION regress_dba;
SELECT snowflake_convert('guarded', dry_run => true);
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
SELECT snowflake_convert('guarded');
DROP OPERATOR <<< (bigint, int);
DROP FUNCTION allowed(bigint), other(int, bigint[]), computed(bigint), computed(text), named(mallorys, mallorys), listed(bigint[]);
ALTER TABLE guarded DROP CONSTRAINT guarded_id_check3, DROP CONSTRAINT guarded_id_check4;
SELECT snowflake_convert('guarded') IS NOT NULL LIMIT 1;
SELECT caught();

-- the index of an exclusion constraint has expressions, on which the constraint does not depend
CREATE TABLE excluding (id int PRIMARY KEY, v int);
ALTER TABLE excluding ADD CONSTRAINT pairs EXCLUDE USING btree (id WITH =, (listed(ARRAY[v])) WITH =);
ALTER TABLE excluding ADD CONSTRAINT rows EXCLUDE USING btree (id WITH =) WHERE (listed(ARRAY[1]));
INSERT INTO excluding VALUES (1, 1);
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.listed(int[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil($1[1]) IS NOT NULL';
SET SESSION AUTHORIZATION regress_dba;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
SELECT snowflake_convert('excluding', dry_run => true);
SELECT snowflake_convert('excluding');
DROP FUNCTION listed(int[]);
ALTER TABLE excluding ALTER id TYPE bigint;
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.listed(int[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil($1[1]) IS NOT NULL';
SET SESSION AUTHORIZATION regress_dba;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
SELECT snowflake_convert('excluding', dry_run => true);
SELECT caught();
DROP FUNCTION listed(int[]);

-- a call with one argument is a cast to a type of that name, unless the argument has the type of the
-- parameter
CREATE FUNCTION shop.size(anyelement) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION shop.code(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT lower($1)';
CREATE TABLE sized (id int PRIMARY KEY, name varchar(9), CHECK (size(id) > 0));
CREATE INDEX ON sized (id, code(name));
INSERT INTO sized VALUES (1, 'A');
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.evil(i text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT shop.evil(1)::text';
CREATE DOMAIN shop.size AS bigint CHECK (shop.evil(VALUE) IS NOT NULL);
CREATE DOMAIN shop.code AS text CHECK (shop.evil(VALUE) IS NOT NULL);
SET SESSION AUTHORIZATION regress_dba;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
SELECT snowflake_convert('sized', dry_run => true);
SELECT snowflake_convert('sized');
SELECT caught();
DROP DOMAIN size, code;
SELECT snowflake_convert('sized') IS NOT NULL LIMIT 1;

-- the owner of a type has its casts call a function
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET SESSION AUTHORIZATION regress_mallory;
CREATE TYPE shop.mood AS ENUM ('1', 'ok');
CREATE DOMAIN shop.moods AS shop.mood[];
SET SESSION AUTHORIZATION regress_dba;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
CREATE TABLE cast_to (id int PRIMARY KEY CHECK (id::text::mood IS NOT NULL));
CREATE TABLE cast_from (id int PRIMARY KEY, m mood, ms moods, CHECK (id > 0 AND m::text <> ''), CHECK (id > 0 AND ms::text[] <> '{}'));
CREATE VIEW cast_view AS SELECT id, m::text AS mood FROM cast_from;
INSERT INTO cast_to VALUES (1);
INSERT INTO cast_from VALUES (1, 'ok', '{ok}');
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET SESSION AUTHORIZATION regress_mallory;
CREATE FUNCTION shop.to_mood(text) RETURNS mood IMMUTABLE LANGUAGE sql AS $$SELECT 'ok'::shop.mood WHERE shop.evil($1) IS NOT NULL$$;
CREATE FUNCTION shop.from_mood(mood) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'ok' WHERE shop.evil('') IS NOT NULL$$;
CREATE CAST (text AS mood) WITH FUNCTION to_mood(text);
CREATE CAST (mood AS text) WITH FUNCTION from_mood(mood) AS IMPLICIT;
SET SESSION AUTHORIZATION regress_dba;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
SELECT snowflake_convert('cast_to', dry_run => true);
SELECT snowflake_convert('cast_to');
SELECT snowflake_convert('cast_from');
SELECT caught();
-- ... unless that role has the rights of the owner of the tables anyway
BEGIN;
GRANT regress_dba TO regress_mallory;
SELECT snowflake_convert('cast_from', dry_run => true) IS NOT NULL LIMIT 1;
ROLLBACK;
DROP CAST (text AS mood);
DROP CAST (mood AS text);
SELECT snowflake_convert('cast_from', dry_run => true);
ALTER TYPE mood OWNER TO regress_dba;
ALTER DOMAIN moods OWNER TO regress_dba;
SELECT snowflake_convert('cast_from') IS NOT NULL LIMIT 1;

DROP SCHEMA shop, closed CASCADE;
RESET SESSION AUTHORIZATION;
DROP ROLE regress_mallory, regress_bob, regress_dba;
