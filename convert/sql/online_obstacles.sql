--
-- What snowflake_convert_online() refuses: where it is called, with which arguments,
-- and what tables have that it does not carry over
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_online_obstacles;
\c regress_online_obstacles
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
RESET client_min_messages;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never

CREATE ROLE regress_shop;
CREATE ROLE regress_other;
CREATE ROLE regress_reader;
GRANT ALL ON SCHEMA public TO regress_shop;
GRANT CREATE ON DATABASE regress_online_obstacles TO regress_shop;
-- where the plan has another text on each server or version
CREATE FUNCTION obstacles(regclass, name DEFAULT NULL) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    lines text;
BEGIN
    PERFORM FROM snowflake_convert_plan($1, $2);
EXCEPTION WHEN object_not_in_prerequisite_state OR feature_not_supported THEN
    GET STACKED DIAGNOSTICS lines = PG_EXCEPTION_DETAIL;
    RETURN QUERY SELECT regexp_split_to_table(lines, '\n');
END $$;
-- a conversion that has begun has them
CREATE VIEW left_behind AS SELECT tgrelid::regclass AS of, tgname AS trigger FROM pg_trigger WHERE tgfoid = '_snowflake_convert_copy'::regproc;
GRANT SELECT ON left_behind TO regress_shop;

-- where it is called
CREATE TABLE log (n int);
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE PROCEDURE in_plpgsql() LANGUAGE plpgsql AS $$ BEGIN CALL snowflake_convert_online('t'); END $$;
CREATE PROCEDURE in_sql() LANGUAGE sql AS $$ CALL snowflake_convert_online('t') $$;
CREATE FUNCTION in_function() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL snowflake_convert_online('t'); END $$;
CREATE PROCEDURE after_commit() LANGUAGE plpgsql AS $$ BEGIN COMMIT; CALL snowflake_convert_online('t'); END $$;
DO $$ BEGIN CALL snowflake_convert_online('t'); END $$;
BEGIN;
CALL snowflake_convert_online('t');
ROLLBACK;
CALL in_plpgsql();
CALL in_sql();
CALL after_commit();
SELECT in_function();
INSERT INTO log VALUES (1)\; CALL snowflake_convert_online('t');
SELECT count(*) FROM log;
SET default_transaction_isolation = 'repeatable read';
CALL snowflake_convert_online('t');
RESET default_transaction_isolation;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_convert_plan('t');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_convert_undo('t');
ROLLBACK;

-- arguments
CALL snowflake_convert_online('t', until => 'never');
CALL snowflake_convert_online('t', batch_time => '1 hour');
CALL snowflake_convert_online('t', batch_time => '1 us');
CALL snowflake_convert_online('t', batch_time => '-178000000 years');
CALL snowflake_convert_online('t', work_share => 2);
CALL snowflake_convert_online('t', work_share => 'NaN');
CALL snowflake_convert_online('t', lock_wait => '1 s');
CALL snowflake_convert_online('t', max_lag => '-1 s');
CALL snowflake_convert_online('t', give_up_after => '0');
CALL snowflake_convert_online(NULL);
CALL snowflake_convert_online('t', 'no');
CALL snowflake_convert_online('pg_class');
CALL snowflake_convert_online('t', generator => 'now()');
SELECT snowflake_convert_undo(NULL);
SET ROLE regress_other;
CALL snowflake_convert_online('t');
SELECT * FROM snowflake_convert_plan('t');
SELECT snowflake_convert_undo('t');
RESET ROLE;
CREATE TEMP TABLE temporary (id int PRIMARY KEY);
SELECT regexp_replace(obstacles, 'pg_temp_\d+', 'pg_temp') AS obstacles FROM obstacles('temporary');
SELECT * FROM left_behind;
DROP TABLE t, temporary;
DROP ROUTINE in_plpgsql, in_sql, in_function, after_commit;

-- what is not carried over, or has a name that is needed
SET ROLE regress_shop;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TABLE t (id serial PRIMARY KEY, v int);
INSERT INTO t (v) SELECT generate_series(1, 10);
CREATE MATERIALIZED VIEW kept AS SELECT id FROM t;
CREATE VIEW shown AS SELECT id FROM t;
CREATE MATERIALIZED VIEW kept_of_view AS SELECT id FROM shown;
CREATE RULE no_insert AS ON INSERT TO shown DO INSTEAD NOTHING;
CREATE FUNCTION of_row(shown) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION of_rows(shown[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE VIEW of_another_role AS SELECT id FROM t;
CREATE VIEW row_type_revoked AS SELECT id FROM t;
REVOKE USAGE ON TYPE row_type_revoked FROM PUBLIC;
CREATE VIEW row_type_revoked_too AS SELECT id FROM t;
REVOKE USAGE ON TYPE row_type_revoked_too FROM PUBLIC, CURRENT_USER;
CREATE VIEW row_type_with_comment AS SELECT id FROM t;
COMMENT ON TYPE row_type_with_comment IS '';
COMMENT ON TYPE row_type_with_comment IS 'a';
CREATE TABLE parts (id int, t int REFERENCES t) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9);
ALTER TABLE parts_1 ADD FOREIGN KEY (t) REFERENCES t;
CREATE TABLE parts_by_key (t int REFERENCES t) PARTITION BY LIST (t);
CREATE TABLE set_default (t int DEFAULT 1 REFERENCES t ON DELETE SET DEFAULT);
CREATE TABLE without_triggers (t int REFERENCES t);
CREATE TABLE table_of_another_role (t int REFERENCES t);
CREATE FUNCTION greatest_id() RETURNS bigint BEGIN ATOMIC SELECT max(id) FROM t; END;
CREATE RULE also AS ON DELETE TO t DO ALSO NOTHING;
ALTER TABLE t ADD EXCLUDE (id WITH =), ADD CONSTRAINT expression EXCLUDE ((id % 100) WITH =),
    ADD CONSTRAINT predicate EXCLUDE (v WITH =) WHERE (id > 100), ADD UNIQUE (id) DEFERRABLE;
SET client_min_messages = error;
CREATE PUBLICATION all_columns FOR TABLE t;
CREATE TABLE other_identity (t int PRIMARY KEY REFERENCES t, v int NOT NULL CONSTRAINT u UNIQUE);
ALTER TABLE other_identity REPLICA IDENTITY USING INDEX u;
ALTER TABLE other_identity DROP CONSTRAINT u;
CREATE TABLE no_identity (t int REFERENCES t, v int);
CREATE PUBLICATION without_identity FOR TABLE other_identity (v), no_identity (v);
RESET client_min_messages;
CREATE TRIGGER "~z" BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE STATISTICS of_another_role ON id, v FROM t;
CREATE INDEX invalid ON t (id, v);
CREATE INDEX whole_row ON t (hash_record(t));
CREATE INDEX whole_row_not_null ON t (v) WHERE t IS NOT NULL;
CREATE TABLE guarded (v int);
CREATE POLICY of_ids ON guarded USING (v IN (SELECT id FROM t));
CREATE VIEW with_guarded AS SELECT id, guarded.v FROM t, guarded;
CREATE RULE of_view AS ON INSERT TO guarded WHERE NEW.v IN (SELECT id FROM with_guarded) DO INSTEAD NOTHING;
GRANT UPDATE (id) ON t TO regress_other WITH GRANT OPTION;
CREATE UNIQUE INDEX i ON t (id);
CREATE UNIQUE INDEX snowflake_new_i ON t (id);
CREATE STATISTICS s ON id, v FROM t;
CREATE STATISTICS snowflake_new_s ON id, v FROM t;
CREATE TABLE new_foreign_key (t int CONSTRAINT snowflake_new_t REFERENCES t);
ALTER TABLE t ADD snowflake_new_id int, ADD CONSTRAINT snowflake_new_check CHECK (v > 0);
CREATE TABLE snowflake_new_t_pkey (i int);
CREATE TRIGGER "~snowflake_new" BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER "~snowflake_swapped" BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION nothing();
SET ROLE regress_other;
GRANT UPDATE (id) ON t TO regress_reader;
RESET ROLE;
ALTER VIEW of_another_role OWNER TO regress_other;
ALTER STATISTICS of_another_role OWNER TO regress_other;
ALTER TABLE table_of_another_role OWNER TO regress_other;
ALTER TABLE without_triggers DISABLE TRIGGER ALL;
SET allow_system_table_mods = on;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'invalid'::regclass;
INSERT INTO pg_seclabel VALUES ('t'::regclass, 'pg_class'::regclass, 1, 'a', 'b');
RESET allow_system_table_mods;
CALL snowflake_convert_online('t');
SET allow_system_table_mods = on;
DELETE FROM pg_seclabel;
RESET allow_system_table_mods;
SELECT * FROM left_behind;
SET client_min_messages = warning;
DROP PUBLICATION all_columns, without_identity;
DROP TABLE t, snowflake_new_t_pkey, guarded CASCADE;
DROP TABLE parts, parts_by_key, set_default, without_triggers, table_of_another_role, other_identity, no_identity, new_foreign_key;
RESET client_min_messages;

-- what versions of PostgreSQL say in other words
SET ROLE regress_shop;
CREATE TABLE t (id serial PRIMARY KEY, v int, next int GENERATED ALWAYS AS (id + 1) STORED);
CREATE VIEW member AS SELECT id FROM t;
RESET ROLE;
ALTER EXTENSION snowflake ADD VIEW member;
SELECT regexp_replace(obstacles, '^default value for ', '') AS obstacles FROM obstacles('t') WHERE obstacles !~ '^type ';
ALTER EXTENSION snowflake DROP VIEW member;
DROP TABLE t CASCADE;

-- what is said of the table alone
SET ROLE regress_shop;
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE TABLE child () INHERITS (t);
CREATE TABLE circle (id int PRIMARY KEY REFERENCES t);
ALTER TABLE t ADD circle int REFERENCES circle;
CREATE TABLE snowflake_new_definitions (i int);
RESET ROLE;
SET client_min_messages = error;
CREATE PUBLICATION all_tables FOR ALL TABLES;
CREATE PUBLICATION all_of_schema FOR TABLES IN SCHEMA public;
RESET client_min_messages;
CALL snowflake_convert_online('t');
DROP PUBLICATION all_tables, all_of_schema;
DROP TABLE child, snowflake_new_definitions;
ALTER TABLE t DROP circle;
DROP TABLE circle;
REVOKE CREATE ON SCHEMA public FROM regress_shop;
CALL snowflake_convert_online('t');
GRANT CREATE ON SCHEMA public TO regress_shop;
DROP TABLE t;

-- rows that would not fit into a block with the new column
DO $$ BEGIN EXECUTE (SELECT 'CREATE TABLE wide (id serial PRIMARY KEY, ' || string_agg(format('c%s bigint NOT NULL', i), ', ') || ')'
    FROM generate_series(1, 1010) i); END $$;
CALL snowflake_convert_online('wide');
DROP TABLE wide;
DO $$ BEGIN EXECUTE (SELECT 'CREATE TABLE wide (id serial PRIMARY KEY, v int, ' || string_agg(format('b%s bool NOT NULL, c%1$s bigint NOT NULL', i), ', ') || ')'
    FROM generate_series(1, 503) i); END $$;
CALL snowflake_convert_online('wide');
DROP TABLE wide;
SET ROLE regress_shop;
CREATE TABLE t (id serial PRIMARY KEY, v int);
INSERT INTO t (v) SELECT generate_series(1, 10);
DO $$ BEGIN EXECUTE (SELECT 'CREATE TABLE wide (t int REFERENCES t, ' || string_agg(format('c%s bool', i), ', ') || ')'
    FROM generate_series(1, 1599) i); END $$;
SET client_min_messages = warning;
CALL snowflake_convert_online('t');
SELECT snowflake_convert_undo('t');
RESET client_min_messages;
DROP TABLE wide;
SELECT * FROM left_behind;

-- what is created again, but does not accept a bigint
CREATE TYPE word AS ENUM ('one');
CREATE FUNCTION number(word) RETURNS int IMMUTABLE LANGUAGE sql RETURN 1;
CREATE CAST (word AS int) WITH FUNCTION number(word) AS ASSIGNMENT;
CREATE FUNCTION narrow(int) RETURNS int IMMUTABLE LANGUAGE sql RETURN $1;
CREATE FUNCTION pair(anyelement, anyelement) RETURNS bool LANGUAGE sql AS 'SELECT $1 = $2';
CREATE FUNCTION rows_of_t() RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t';
CREATE TABLE a (t int REFERENCES t);
CREATE TABLE b (id int REFERENCES t);
CREATE VIEW calls AS SELECT narrow(id) FROM t;
CREATE VIEW names AS SELECT id AS i FROM t;
CREATE VIEW names_calls AS SELECT i FROM names WHERE narrow(i) > 0;
CREATE VIEW pairs AS SELECT v FROM t JOIN a ON pair(id, a.t);
CREATE VIEW dates AS SELECT date '2020-01-01' + id AS d FROM t;
CREATE POLICY uses ON t USING (narrow(id) > 0);
CREATE POLICY checks ON t FOR INSERT WITH CHECK (narrow(id) > 0);
CREATE TRIGGER condition BEFORE UPDATE ON t FOR EACH ROW WHEN (narrow(NEW.id) > OLD.v) EXECUTE FUNCTION nothing();
ALTER TABLE t ALTER id SET DEFAULT 'one'::word;
CREATE VIEW with_default AS SELECT id FROM t;
ALTER VIEW with_default ALTER id SET DEFAULT 'one'::word;
SET client_min_messages = error;
CREATE PUBLICATION filtering FOR TABLE t (id) WHERE (chr(id) <> 'a');
RESET client_min_messages;
-- ... or depends on the order of columns
CREATE VIEW column_list AS SELECT x.a FROM t x (a, b);
CREATE POLICY column_list ON t USING (id IN (SELECT x.a FROM t x (a, b)));
CREATE VIEW join_columns AS SELECT j.a FROM (t JOIN a ON id = a.t) j (a, b);
CREATE VIEW join_using AS SELECT j.id FROM (t JOIN b USING (id)) j;
CREATE VIEW join_name AS SELECT j.id FROM (t JOIN a ON id = a.t) j;
CREATE VIEW of_function AS SELECT r.id FROM rows_of_t() r;
CALL snowflake_convert_online('t');
SET client_min_messages = warning;
DROP PUBLICATION filtering;
DROP TABLE t, a, b CASCADE;
RESET client_min_messages;

-- what does not accept new IDs
CREATE TABLE t (id serial PRIMARY KEY, v int, CHECK (id < 1000));
CREATE TABLE a (t bigint REFERENCES t, copy int GENERATED ALWAYS AS (t) STORED);
CREATE UNIQUE INDEX i ON t (lpad(id::text, 6, '0'));
CALL snowflake_convert_online('t');
SELECT * FROM left_behind;
DROP TABLE t, a;

-- a row that does not satisfy a constraint, which could not be updated
CREATE TABLE t (id serial PRIMARY KEY, v int);
INSERT INTO t (v) VALUES (-7), (8);
ALTER TABLE t ADD CONSTRAINT later CHECK (v > 0) NOT VALID;
CALL snowflake_convert_online('t');
DELETE FROM t WHERE v = -7;
SET client_min_messages = warning;
CALL snowflake_convert_online('t', until => 'backfill');
SELECT snowflake_convert_undo('t');

-- the plan while a query of the tables is open
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t;
FETCH c;
SELECT count(*) > 5 AS planned FROM snowflake_convert_plan('t');
INSERT INTO t (v) VALUES (9);
FETCH c;
COMMIT;

-- views that name columns and joins, or use rows of the table, but are no obstacles
SET client_min_messages = error;
DROP TABLE t;
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE TABLE a (v int, t int REFERENCES t);
INSERT INTO t (v) VALUES (7), (8);
INSERT INTO a VALUES (9, 2);
CREATE FUNCTION row_of(t) RETURNS int LANGUAGE sql AS 'SELECT ($1).v';
CREATE VIEW w1 AS SELECT * FROM t;
CREATE VIEW w2 AS SELECT id, row_of(t.*), (SELECT count(*) FROM jsonb_object_keys(to_jsonb(t.*))) FROM t;
CREATE VIEW w3 AS SELECT id, v, count(*) FROM t GROUP BY id;
CREATE VIEW w4 AS SELECT id, tableoid::regclass FROM t FOR UPDATE;
CREATE VIEW w5 AS SELECT x.id FROM t x (id, v);
CREATE VIEW w6 AS WITH RECURSIVE t AS (SELECT 1::bigint AS id UNION ALL SELECT x.id + 100 FROM public.t x, t WHERE t.id < 50) SELECT id FROM t;
CREATE VIEW w7 AS SELECT * FROM w1 UNION SELECT t, 0 FROM a;
CREATE VIEW w8 AS SELECT array_agg(x.one ORDER BY x.one) AS ids FROM w7 x (one, two);
CREATE VIEW w9 AS SELECT unnest(ids) AS id FROM w8;
CREATE VIEW w10 AS SELECT id FROM t JOIN (SELECT t FROM a) s ON true;
CREATE VIEW w11 AS SELECT r.t, r.v FROM a r;
CREATE VIEW w12 WITH (check_option = local) AS SELECT id, v FROM t WHERE id > 0;
CREATE VIEW w13 AS SELECT x.b FROM t x (a, b);
CREATE MATERIALIZED VIEW w14 AS SELECT v FROM t;
CREATE POLICY mine ON t USING (id IN (SELECT id FROM w1));
CREATE INDEX snowflake_new_i ON t (id, v);
CREATE STATISTICS snowflake_new_s ON id, v FROM t;
SELECT string_agg(format('SELECT %s AS w, to_jsonb(w%1$s) AS row FROM w%1$s', i), ' UNION ALL ') || ' ORDER BY w, row' AS views
FROM generate_series(1, 14) i \gset
:views;
CALL snowflake_convert_online('t');
:views;
DROP TABLE t, a CASCADE;
RESET client_min_messages;

-- Trigger functions that insert a row by the order of its columns: the first cases are obstacles,
-- and the others are not.
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE TABLE ordered (op text, id int, v int);
CREATE TABLE cases (no int, body text);
INSERT INTO cases VALUES
    (1, $$INSERT INTO ordered SELECT 'I', NEW.*$$),
    (2, $$insert into ordered select distinct new . *$$),
    (3, $$INSERT INTO ordered VALUES ('I', (NEW).*)$$),
    (4, $$INSERT INTO ordered VALUES (NEW.*)$$),
    (5, $$/* * first */ INSERT INTO ordered SELECT NEW.*; /** last **/ NULL$$),
    (6, $$INSERT INTO ordered (op, id, v) (SELECT upper(lower('i')), OLD.*)$$),
    (7, $$EXECUTE format('INSERT INTO %I SELECT ($1).*', 'ordered') USING NEW$$),
    (8, $$EXECUTE format('INSERT INTO %I SELECT $1.*', 'ordered') USING NEW$$),
    (9, $$INSERT INTO ordered SELECT 'I', n.* FROM "New rows" n$$),
    (10, $$INSERT INTO ordered SELECT * FROM "New rows"$$),
    (11, $$INSERT INTO ordered TABLE "New rows"$$),
    (12, $$INSERT INTO ordered (op, id, v) (SELECT nextval('t_id_seq'), n.* FROM "New rows" n)$$),
    (13, $$DECLARE r record; BEGIN IF TG_OP = 'DELETE' THEN r := OLD; ELSE r = NEW; END IF; INSERT INTO ordered SELECT TG_OP, r.*; END$$),
    (14, $$DECLARE n ALIAS FOR NEW; BEGIN INSERT INTO ordered SELECT 'I', n.*; END$$),
    (15, $$EXECUTE 'INSERT INTO ordered SELECT ''I'', (t ' || quote_literal(NEW) || ').*'$$),
    (16, $$EXECUTE 'INSERT INTO ordered SELECT ($1).*' USING NEW$$),
    (17, $$EXECUTE format('INSERT INTO ordered SELECT ''I'', (%L::t).*', NEW)$$),
    (18, $$INSERT INTO ordered SELECT 'I', (CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END).*$$),
    (19, $$INSERT INTO ordered SELECT 'I', (coalesce(NEW, OLD)).*$$),
    (101, $$INSERT INTO ordered SELECT 'I', count(*) FROM "New rows"$$),
    (102, $$INSERT INTO ordered SELECT 'I', count(*) * 2 FROM "New rows"$$),
    (103, $$INSERT INTO ordered SELECT 'I', 1 WHERE NOT EXISTS (SELECT * FROM "New rows")$$),
    (104, $$INSERT INTO ordered (op) SELECT to_jsonb(x) FROM (SELECT * FROM "New rows" LIMIT 100) x$$),
    (105, $$INSERT INTO ordered VALUES ('I', NEW.*::text)$$),
    (106, $$INSERT INTO ordered VALUES ('I', NEW.* IS DISTINCT FROM OLD.*)$$),
    (107, $$INSERT INTO ordered VALUES ('I', to_jsonb((NEW).*))$$),
    (108, $$INSERT INTO ordered SELECT 'I', n.id, 2 * n.v FROM "New rows" n$$),
    (109, $$INSERT INTO ordered SELECT o.* FROM others o$$),
    (110, $$INSERT INTO ordered VALUES ('I', jsonb_build_object('op', upper(tg_op), 'row', NEW.*) ->> 'v')$$),
    (111, $$INSERT INTO ordered SELECT 'I', NEW.id WHERE ROW(NEW.*) IS DISTINCT FROM ROW(OLD.*)$$),
    (112, $$INSERT INTO ordered VALUES ('I', NEW.id, NEW.v)$$),
    (113, $$INSERT INTO ordered SELECT to_jsonb(NEW.*) ->> 'v'$$),
    (114, $$IF NEW.* IS DISTINCT FROM OLD.* THEN INSERT INTO ordered VALUES ('U', NEW.id); END IF$$),
    (115, E'NULL; -- INSERT INTO ordered SELECT NEW.*\n NULL'),
    (116, $$INSERT INTO ordered VALUES ('I'); IF 1 = ALL (ARRAY[1]) AND NEW.* = OLD.* THEN NULL; END IF$$);
\set ECHO none
SELECT format('CREATE FUNCTION ordered%s() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN %s; RETURN NULL; END $f$', no, body),
    format('CREATE TRIGGER ordered%s AFTER INSERT ON t REFERENCING NEW TABLE AS "New rows" FOR EACH ROW EXECUTE FUNCTION ordered%1$s()', no)
FROM cases \gexec
\set ECHO all
SELECT * FROM obstacles('t') ORDER BY length(obstacles), obstacles;
DROP TABLE t;
CREATE TABLE parts (id serial, at int, PRIMARY KEY (id, at)) PARTITION BY LIST (at);
CREATE TABLE part PARTITION OF parts DEFAULT;
CREATE TRIGGER ordered AFTER INSERT ON part FOR EACH ROW EXECUTE FUNCTION ordered1();
SELECT * FROM obstacles('parts', 'id');
DROP TABLE parts;

-- triggers of views, and functions, that insert into the table without the names of its columns, or all
-- of its columns elsewhere
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE VIEW over AS SELECT id, v FROM t;
TRUNCATE cases;
INSERT INTO cases VALUES
    (1, $$INSERT INTO t VALUES (NEW.*)$$),
    (2, $$INSERT INTO T SELECT * FROM others$$),
    (3, $$insert into public . "t" as x values (1, 2)$$),
    (4, $$INSERT INTO t(SELECT 1, 2)$$),
    (5, $$INSERT INTO t /* (id, v) */ OVERRIDING USER VALUE VALUES (1, 2)$$),
    (6, $$WITH x AS (SELECT 1) INSERT INTO t TABLE x$$),
    (101, $$INSERT INTO t (v) VALUES (1)$$),
    (102, $$INSERT INTO t AS x (v) SELECT 1$$),
    (103, $$INSERT INTO t DEFAULT VALUES$$),
    (104, $$INSERT INTO other.t VALUES (1)$$),
    (105, $$INSERT INTO t_t VALUES (1)$$),
    (106, E'NULL; -- INSERT INTO t VALUES (1)\n NULL');
\set ECHO none
SELECT format('CREATE FUNCTION instead%s() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN %s; RETURN NULL; END $f$', no, body),
    format('CREATE TRIGGER instead%s INSTEAD OF INSERT ON over FOR EACH ROW EXECUTE FUNCTION instead%1$s()', no)
FROM cases \gexec
\set ECHO all
TRUNCATE cases;
INSERT INTO cases VALUES
    (1, $$WITH d AS (DELETE FROM t RETURNING *) INSERT INTO archive SELECT * FROM d$$),
    (2, $$INSERT INTO archive SELECT * FROM public.t WHERE id = 1$$),
    (3, $$INSERT INTO archive (a, b) SELECT "x".* FROM T x$$),
    (4, $$INSERT INTO archive TABLE ONLY t$$),
    (5, $$EXECUTE 'INSERT INTO archive SELECT * FROM t'$$),
    -- notices
    (11, $$INSERT INTO archive (a, b) SELECT x.* FROM (SELECT * FROM T) x$$),
    (12, $$INSERT INTO archive SELECT 0, x.* FROM others CROSS JOIN t x$$),
    (13, $$UPDATE archive SET (a, b) = (SELECT y.* FROM t y WHERE id = 1)$$),
    (14, $$FOR a, b IN SELECT * FROM t LOOP NULL; END LOOP$$),
    (15, $$EXECUTE 'SELECT * FROM t' INTO a, b$$),
    (16, $$SELECT * INTO a, b FROM t$$),
    (17, $$DELETE FROM t RETURNING * INTO STRICT a, b$$),
    (18, $$INSERT INTO archive SELECT (r).* FROM t r$$),
    (19, $$r := (SELECT t FROM t LIMIT 1); INSERT INTO archive VALUES (1, r.*)$$),
    (20, $$INSERT INTO archive SELECT * FROM queue WHERE kind = 't'$$),
    (21, $$WITH d AS (DELETE FROM t RETURNING *) INSERT INTO archive (a) SELECT d.id FROM d$$),
    (22, $$INSERT INTO archive (a) SELECT count(*) FROM (SELECT * FROM t) x$$),
    (23, $$INSERT INTO archive SELECT * FROM other.t$$),
    -- nothing
    (101, $$SELECT * INTO r FROM t$$),
    (102, $$INSERT INTO t (v) VALUES (1)$$),
    (103, $$WITH d AS (DELETE FROM t RETURNING id, v) INSERT INTO archive SELECT id, v FROM d$$),
    (104, $$INSERT INTO archive (a) SELECT 1 WHERE NOT EXISTS (SELECT * FROM t)$$),
    (105, $$INSERT INTO archive (a) SELECT count(*) FROM t$$),
    (106, $$INSERT INTO archive (a) SELECT id * 2 FROM t$$),
    (107, $$INSERT INTO archive SELECT * FROM t_t$$);
\set ECHO none
SELECT format('CREATE FUNCTION archive%s() RETURNS void LANGUAGE plpgsql AS $f$ DECLARE r record; a bigint; b bigint; BEGIN %s; END $f$', no, body)
FROM cases \gexec
\set ECHO all
SELECT * FROM obstacles('t') ORDER BY length(obstacles), obstacles;
SET client_min_messages = warning;
DROP FUNCTION instead1, instead2, instead3, instead4, instead5, instead6 CASCADE;
RESET client_min_messages;
DROP FUNCTION archive1, archive2, archive3, archive4, archive5;

-- what is said of the others, of functions that have integers, and of casts
CREATE FUNCTION narrow() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE n int := NEW.id; BEGIN RETURN NULL; END';
CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE n int := 5; BEGIN RETURN NULL; END';
CREATE TRIGGER narrow AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION narrow();
CREATE TRIGGER counts AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION counts();
CREATE POLICY mine ON t USING (id = current_setting('app.id')::int);
CREATE POLICY constant ON t USING (id > -1);
CREATE TABLE tenants (t int DEFAULT current_setting('app.id')::int REFERENCES t, v int DEFAULT 1);
CREATE VIEW casts AS SELECT id FROM t WHERE id = current_setting('app.id')::int;
CREATE VIEW none AS SELECT id FROM t;
SELECT count(*) > 0 AS planned FROM snowflake_convert_plan('t');
SET client_min_messages = warning;
DROP TABLE t, tenants CASCADE;
RESET ROLE;

-- the owner has to create triggers and views again
CREATE DOMAIN cents AS int;
CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
SET ROLE regress_shop;
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE TRIGGER closed AFTER UPDATE OF id ON t FOR EACH ROW EXECUTE FUNCTION closed();
CREATE VIEW shown AS SELECT id, v::cents, NULL::cents[] AS more FROM t;
CREATE TRIGGER closed INSTEAD OF INSERT ON shown FOR EACH ROW EXECUTE FUNCTION closed();
RESET ROLE;
REVOKE EXECUTE ON FUNCTION closed() FROM PUBLIC;
REVOKE USAGE ON TYPE cents FROM PUBLIC;
CALL snowflake_convert_online('t');
GRANT EXECUTE ON FUNCTION closed() TO regress_shop;
GRANT USAGE ON TYPE cents TO regress_shop;
SELECT * FROM obstacles('t');
DROP TABLE t CASCADE;

-- the trigger that copies columns
SET ROLE regress_shop;
CREATE TABLE w (a int, b bigint, c text);
CREATE TRIGGER w AFTER INSERT ON w FOR EACH ROW EXECUTE FUNCTION _snowflake_convert_copy('a', 'b');
INSERT INTO w VALUES (1, 2, 'x');
CREATE OR REPLACE TRIGGER w BEFORE INSERT ON w FOR EACH ROW EXECUTE FUNCTION _snowflake_convert_copy('c', 'b');
INSERT INTO w VALUES (1, 2, 'x');
CREATE OR REPLACE TRIGGER w BEFORE INSERT ON w FOR EACH ROW EXECUTE FUNCTION _snowflake_convert_copy('b', 'a');
INSERT INTO w VALUES (1, 2, 'x');
DROP TABLE w;
-- ... does not find one that was renamed meanwhile
CREATE TABLE t (id serial PRIMARY KEY, v int);
CALL snowflake_convert_online('t', until => 'prepare');
ALTER TABLE t RENAME id TO key;
INSERT INTO t (v) VALUES (1);
ALTER TABLE t RENAME key TO id;
-- ... and is for columns of one conversion
CREATE TABLE k (id int PRIMARY KEY);
ALTER TABLE t ADD k int REFERENCES k;
CALL snowflake_convert_online('k');
-- no other conversion meanwhile
SELECT snowflake_convert('t');
SELECT snowflake_convert('t', dry_run => true);
SELECT snowflake_convert_schema('public');
SELECT severity, object FROM snowflake_convert_report('public', details => true) WHERE finding LIKE 'table %t is being converted online';
-- ... which cannot be taken back after the swap
CALL snowflake_convert_online('t', until => 'swap');
SELECT snowflake_convert('t');
CALL snowflake_convert_online('t');
SELECT * FROM snowflake_convert('t');
DROP TABLE t, k;

-- what depends on the old column of a partition at the last moment; settings are as before
CREATE TABLE t (id serial, v int, PRIMARY KEY (id, v)) PARTITION BY RANGE (v);
CREATE TABLE part PARTITION OF t DEFAULT;
INSERT INTO t (v) SELECT generate_series(1, 10);
RESET ROLE;
CREATE FUNCTION late() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN CREATE VIEW public.late AS SELECT id FROM public.part; END';
CREATE EVENT TRIGGER late ON ddl_command_end WHEN TAG IN ('DROP TRIGGER') EXECUTE FUNCTION late();
SET search_path = pg_temp, public;
CALL snowflake_convert_online('public.t', 'id');
-- ... also of a partition that comes then
CREATE OR REPLACE FUNCTION public.late() RETURNS event_trigger LANGUAGE plpgsql AS
'BEGIN CREATE TABLE public.last PARTITION OF public.t FOR VALUES FROM (100) TO (200); CREATE INDEX late ON public.last (id); END';
CALL snowflake_convert_online('public.t', 'id');
DROP EVENT TRIGGER late;
SET ROLE regress_shop;
CREATE VIEW public.late AS SELECT id FROM part;
CALL snowflake_convert_online('public.t', 'id');
SHOW search_path;
SELECT count(*), pg_typeof(max(id)) FROM late;
RESET search_path;
DROP TABLE t CASCADE;

-- what subscribers are prepared for
SET client_min_messages = error;
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE PUBLICATION p FOR TABLE t;
CALL snowflake_convert_online('t', subscribers_ready => true);
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 't'::regclass;
DROP TABLE t;
RESET ROLE;

-- a table of an owner without rights, who gains none
CREATE SCHEMA shop AUTHORIZATION regress_shop;
SET ROLE regress_shop;
CREATE FUNCTION shop.own(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'regress_shop' THEN RAISE 'executed by %', current_user; END IF;
    RETURN i;
END $$;
CREATE FUNCTION shop.evil(i bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    BEGIN ALTER ROLE regress_shop SUPERUSER; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
    IF current_user <> 'regress_shop' THEN RAISE 'executed by %', current_user; END IF;
    RETURN i;
END $$;
CREATE TABLE shop.t (id serial PRIMARY KEY, v int, CHECK (shop.evil(id) > 0));
CREATE TABLE shop.l (t int NOT NULL REFERENCES shop.t, v int);
CREATE VIEW shop.w AS SELECT id, v FROM shop.t;
INSERT INTO shop.t (v) SELECT generate_series(1, 10);
CREATE INDEX ON shop.t (shop.own(id));
CREATE STATISTICS shop.s ON shop.own(id), v FROM shop.t;
RESET ROLE;
CALL snowflake_convert_online('shop.t');
SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_shop';
SELECT DISTINCT relowner::regrole FROM pg_class WHERE relnamespace = 'shop'::regnamespace;
-- ... or converts it
SET SESSION AUTHORIZATION regress_shop;
DROP TABLE shop.t, shop.l CASCADE;
CREATE TABLE shop.t (id serial PRIMARY KEY, v int);
CREATE VIEW shop.w AS SELECT id FROM shop.t;
CALL snowflake_convert_online('shop.t');
SELECT pg_typeof(max(id)) FROM shop.w;
RESET SESSION AUTHORIZATION;
SELECT * FROM left_behind;

\c :tests
DROP DATABASE regress_online_obstacles;
DROP ROLE regress_shop, regress_other, regress_reader;
