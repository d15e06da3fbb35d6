--
-- A session that is open while another one converts a table, and has plans for the old type of its
-- columns
--
SELECT current_database() AS tests \gset
CREATE ROLE regress_dba SUPERUSER;
CREATE ROLE regress_shop;
SET SESSION AUTHORIZATION regress_dba;
CREATE DATABASE regress_sessions;
\c regress_sessions
SET SESSION AUTHORIZATION regress_dba;
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

CREATE TABLE log (id bigint, line text);
CREATE FUNCTION log_update() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    line := 'id ' || NEW.id;
    INSERT INTO log VALUES (NEW.id, line);
    RETURN NULL;
END $$;
GRANT CREATE, USAGE ON SCHEMA public TO regress_shop;
GRANT INSERT ON log TO regress_shop;

-- a function of a trigger is compiled again, and has its properties
CREATE TABLE orders (id serial PRIMARY KEY, v int);
INSERT INTO orders (v) SELECT generate_series(1, 3);
CREATE TRIGGER log_update AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION log_update();
UPDATE orders SET v = v + 1 WHERE id = 1;
\! psql -XAtq -d regress_sessions -c "SET client_min_messages = warning" -c "SELECT snowflake_convert('orders')" 2>&1
UPDATE orders SET v = v + 1 WHERE id = 2;
INSERT INTO orders (v) VALUES (4);
UPDATE orders SET v = v + 1 WHERE v = 4;
SELECT count(*), count(*) FILTER (WHERE id > 1000000) FROM log;
SELECT provolatile FROM pg_proc WHERE proname = 'log_update';

-- one of another owner is not, but is named in a NOTICE, and fails until its owner has done that
CREATE TABLE bills (id serial PRIMARY KEY, v int);
INSERT INTO bills (v) SELECT generate_series(1, 3);
CREATE TRIGGER log_update AFTER UPDATE ON bills FOR EACH ROW EXECUTE FUNCTION log_update();
ALTER TABLE bills OWNER TO regress_shop;
SET SESSION AUTHORIZATION regress_shop;
UPDATE bills SET v = v + 1 WHERE id = 1;
\! psql -XAtq -d regress_sessions -c "SET SESSION AUTHORIZATION regress_shop" -c "SELECT snowflake_convert('bills')" 2>&1
\set VERBOSITY sqlstate
UPDATE bills SET v = v + 1 WHERE id = 2;
\set VERBOSITY default
\! psql -XAtq -d regress_sessions -c "ALTER FUNCTION log_update() VOLATILE"
UPDATE bills SET v = v + 1 WHERE id = 3 RETURNING id;
SET SESSION AUTHORIZATION regress_dba;

-- Prepared statements, and a trigger, while a table is converted that is in use: those whose results
-- have changed are errors each time, with * at once, and by name after the swap.
TRUNCATE log;
CREATE TABLE c (id serial PRIMARY KEY, v int);
CREATE TABLE d (c int REFERENCES c, v int);
INSERT INTO c (v) SELECT generate_series(1, 100);
CREATE TRIGGER log_update AFTER UPDATE ON c FOR EACH ROW EXECUTE FUNCTION log_update();
PREPARE one AS SELECT id FROM c WHERE id = $1;
PREPARE whole AS SELECT * FROM c WHERE id = $1;
PREPARE write AS UPDATE c SET v = v + 1 WHERE id = $1;
PREPARE add AS INSERT INTO c (v) VALUES ($1);
PREPARE reference AS INSERT INTO d (c, v) VALUES ($1, 1);
EXECUTE one(1);
EXECUTE whole(1);
EXECUTE write(1);
EXECUTE add(1);
EXECUTE reference(1);
\! psql -XAtq -d regress_sessions -c "CALL snowflake_convert_online('c', until => 'foreign keys')" 2>/dev/null
\set VERBOSITY sqlstate
EXECUTE whole(2);
EXECUTE one(2);
EXECUTE write(2);
EXECUTE add(2);
EXECUTE reference(2);
\! psql -XAtq -d regress_sessions -c "CALL snowflake_convert_online('c', until => 'swap')" 2>/dev/null
EXECUTE one(3);
EXECUTE one(3);
EXECUTE write(3);
EXECUTE add(3);
EXECUTE reference(3);
EXECUTE write(4);
\set VERBOSITY default
SELECT id, line FROM log ORDER BY id;
SELECT count(*) FROM d JOIN c ON c.id = d.c;

-- functions with rows of the table as parameters and variables, also in an online conversion
CREATE TABLE items (id serial PRIMARY KEY, v int);
CREATE TABLE goods (id serial PRIMARY KEY, v int);
CREATE TABLE seen (t text);
SELECT format('INSERT INTO %1$I (v) SELECT generate_series(1, 3);
CREATE FUNCTION see_%1$s(r %1$I) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN format(''%%s %%s'', (r).id, (r).v); END $$;
CREATE FUNCTION tell_%1$s() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE r record; s %1$I; BEGIN
    SELECT * INTO r FROM %1$I WHERE v = NEW.v LIMIT 1;
    SELECT * INTO s FROM %1$I WHERE v = NEW.v LIMIT 1;
    INSERT INTO seen VALUES (concat_ws('' '', see_%1$s(NEW), r.id, (s).id)); RETURN NULL; END $$;
CREATE TRIGGER tell AFTER UPDATE ON %1$I FOR EACH ROW EXECUTE FUNCTION tell_%1$s();
CREATE FUNCTION look_%1$s() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r record; s %1$I; BEGIN
    SELECT * INTO r FROM %1$I WHERE v = 3;
    SELECT * INTO s FROM %1$I WHERE v = 3;
    RETURN concat_ws('' '', r.id, (s).id); END $$', name) FROM unnest('{items,goods}'::text[]) name
\set ECHO none
\gexec
\set ECHO all
UPDATE items SET v = 10 WHERE id = 1;
UPDATE goods SET v = 10 WHERE id = 1;
SELECT look_items(), look_goods();
\! psql -XAtq -d regress_sessions -c "SELECT snowflake_convert('items')" >/dev/null 2>&1
\! psql -XAtq -d regress_sessions -c "CALL snowflake_convert_online('goods', until => 'swap')" 2>/dev/null
SELECT look_items(), look_goods();
UPDATE items SET v = 10 WHERE id = 1;
UPDATE goods SET v = 10 WHERE id = 1;
SELECT t FROM seen;
SELECT attrelid::regclass, atttypid::regtype FROM pg_attribute
WHERE attrelid IN ('items'::regclass, 'goods'::regclass) AND attname = 'id' ORDER BY attrelid::regclass::text;

-- a partition as the type of a parameter, and a function in a schema without USAGE, which is named
CREATE TABLE parent (id serial PRIMARY KEY);
CREATE TABLE parts (n int, p int REFERENCES parent) PARTITION BY LIST (n);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parent DEFAULT VALUES;
INSERT INTO parts VALUES (1, 1);
CREATE FUNCTION key_of(r part_1) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN concat('key ', (r).p); END $$;
CREATE PROCEDURE twice(x int) LANGUAGE plpgsql AS $$ DECLARE r parent; BEGIN END $$;
CREATE PROCEDURE twice(OUT x int) LANGUAGE plpgsql AS $$ DECLARE r parent; BEGIN END $$;
CREATE SCHEMA closed;
CREATE FUNCTION closed.look() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r parent; BEGIN END $$;
ALTER FUNCTION closed.look() OWNER TO regress_shop;
ALTER TABLE parent OWNER TO regress_shop;
ALTER TABLE parts OWNER TO regress_shop;
ALTER TABLE part_1 OWNER TO regress_shop;
ALTER FUNCTION key_of OWNER TO regress_shop;
ALTER PROCEDURE twice(IN int) OWNER TO regress_shop;
ALTER PROCEDURE twice(OUT int) OWNER TO regress_shop;
SELECT key_of(x) FROM part_1 x;
\! psql -XAtq -d regress_sessions -c "CALL snowflake_convert_online('parent', until => 'swap')" 2>&1 | grep -E 'ERROR|might fail'
SELECT key_of(x) FROM part_1 x;

-- functions are left alone if the type stays
CREATE TABLE big (id bigserial PRIMARY KEY);
CREATE TRIGGER log_update AFTER UPDATE ON big FOR EACH ROW EXECUTE FUNCTION log_update();
SELECT snowflake_convert('big');

\c :tests
DROP DATABASE regress_sessions;
DROP ROLE regress_shop, regress_dba;
