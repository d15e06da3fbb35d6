--
-- snowflake_convert_online() after somebody has changed the tables meanwhile, and with what a copy
-- of a table could lose: rights on sequences, deferred checks, names of what was dropped
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_online_changed;
\c regress_online_changed
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

CREATE ROLE regress_shop;
CREATE ROLE regress_reader;
CREATE ROLE regress_other;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE VIEW left_behind AS
SELECT attname::text AS name FROM pg_attribute WHERE attname ~ 'snowflake_(new|swap)' AND NOT attisdropped
UNION ALL SELECT relname FROM pg_class WHERE relname ~ 'snowflake_(new|swap)'
UNION ALL SELECT conname FROM pg_constraint WHERE conname ~ 'snowflake_(new|swap)'
UNION ALL SELECT tgname FROM pg_trigger WHERE tgname ~ 'snowflake_(new|swap|validate)'
UNION ALL SELECT stxname FROM pg_statistic_ext WHERE stxname ~ 'snowflake_(new|swap)'
UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid
ORDER BY 1;
CREATE FUNCTION obstacles() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    lines text;
BEGIN
    PERFORM FROM snowflake_convert_plan('t');
EXCEPTION WHEN object_not_in_prerequisite_state OR feature_not_supported THEN
    GET STACKED DIAGNOSTICS lines = PG_EXCEPTION_DETAIL;
    RETURN QUERY SELECT line FROM regexp_split_to_table(lines, '\n') line ORDER BY line;
END $$;
-- for each part: a conversion until its first swap, all of it, and back
\set until 'CALL snowflake_convert_online(''t'', until => ''foreign keys'');'
\set convert 'CALL snowflake_convert_online(''t'');'
\set undo 'SELECT snowflake_convert_undo(''t'');'
\set begin 'DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; SET search_path = shop, public;'

-- the privileges of sequences of identities, whatever new sequences would get
:begin
ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO regress_reader;
CREATE TABLE t (id int PRIMARY KEY);
CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
CREATE TABLE b (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
ALTER DEFAULT PRIVILEGES REVOKE SELECT ON SEQUENCES FROM regress_reader;
CREATE TABLE c (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO regress_reader;
REVOKE ALL ON SEQUENCE a_id_seq FROM regress_reader, current_user;
GRANT USAGE ON SEQUENCE b_id_seq TO regress_other WITH GRANT OPTION;
SELECT array_agg(relacl::text ORDER BY relname) AS privileges FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'S' \gset
:convert
SELECT attrelid::regclass, attidentity, atttypid::regtype FROM pg_attribute WHERE attrelid IN ('a'::regclass, 'b'::regclass, 'c'::regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attrelid::regclass::text;
SELECT array_agg(relacl::text ORDER BY relname) = :'privileges' AS same FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'S';
ALTER DEFAULT PRIVILEGES REVOKE SELECT ON SEQUENCES FROM regress_reader;

-- SET CONSTRAINTS with the name of a foreign key also defers the new one
:begin
CREATE TABLE t (id int PRIMARY KEY, v int);
CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t DEFERRABLE);
:until
BEGIN;
SET CONSTRAINTS l_t DEFERRED;
INSERT INTO l VALUES (1);
INSERT INTO t (id) VALUES (1);
COMMIT;
-- ... which is checked at once otherwise
INSERT INTO l VALUES (9);
:convert
BEGIN;
SET CONSTRAINTS l_t DEFERRED;
INSERT INTO l VALUES (2);
INSERT INTO t (id) VALUES (2);
COMMIT;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'l_t';

-- what is renamed or dropped meanwhile
:begin
CREATE TABLE t (id serial PRIMARY KEY, v int, CONSTRAINT c CHECK (id > 0));
CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t);
CREATE INDEX i ON t (v, id);
CREATE UNIQUE INDEX u ON t (id, v);
CREATE STATISTICS s ON id, v FROM t;
INSERT INTO t (v) SELECT generate_series(1, 100);
INSERT INTO l SELECT id FROM t;
:until
ALTER INDEX i RENAME TO j;
DROP INDEX u;
DROP STATISTICS s;
ALTER TABLE l RENAME CONSTRAINT l_t TO l_u;
ALTER TABLE t DROP CONSTRAINT c;
:convert
DROP INDEX snowflake_new_i, snowflake_new_u;
DROP STATISTICS snowflake_new_s;
ALTER TABLE t DROP CONSTRAINT snowflake_new_c;
ALTER TABLE l DROP CONSTRAINT snowflake_new_l_t;
:convert
SELECT * FROM left_behind;
-- ... which have the names that they were given meanwhile
SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1;
SELECT conname FROM pg_constraint WHERE conrelid = 'l'::regclass AND contype = 'f';

-- what is changed meanwhile, under the same name
:begin
CREATE TABLE t (id serial PRIMARY KEY, v int, CONSTRAINT c CHECK (id > 0));
CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t, v int, u int CONSTRAINT l_u REFERENCES t);
CREATE INDEX options ON t (v, id);
CREATE INDEX columns ON t (v, id);
CREATE INDEX directions ON t (v, id);
CREATE INDEX operators ON t (id, (v::text));
CREATE INDEX predicate ON t (id) WHERE v > 0;
CREATE INDEX renamed ON t (id) WHERE v > 0;
CREATE INDEX other ON t (id) WHERE v > 2;
CREATE UNIQUE INDEX unequal ON t (id, v);
CREATE STATISTICS s ON id, v FROM t;
CREATE INDEX same ON t (id) WHERE v > 3;
INSERT INTO t (v) SELECT generate_series(1, 100);
INSERT INTO l SELECT id FROM t;
:until
ALTER INDEX options SET (fillfactor = 50);
DROP INDEX columns, directions, operators, predicate, renamed, snowflake_new_other, unequal;
CREATE INDEX columns ON t (id, v);
CREATE INDEX directions ON t (v, id DESC);
CREATE INDEX operators ON t (id, (v::text) text_pattern_ops);
CREATE INDEX predicate ON t (id) WHERE v > 1;
ALTER INDEX other RENAME TO renamed;
CREATE INDEX unequal ON t (id, v);
ALTER TABLE t DROP CONSTRAINT c, ADD CONSTRAINT c CHECK (id > 1 OR v > 0);
ALTER TABLE l ALTER CONSTRAINT l_t DEFERRABLE;
ALTER TABLE l DROP CONSTRAINT l_u, ADD CONSTRAINT l_u FOREIGN KEY (u) REFERENCES t ON DELETE CASCADE;
DROP STATISTICS s;
CREATE STATISTICS s (mcv) ON id, v FROM t;
\set VERBOSITY sqlstate
:convert
\set VERBOSITY default
SELECT * FROM obstacles();
DROP INDEX snowflake_new_options, snowflake_new_columns, snowflake_new_directions, snowflake_new_operators, snowflake_new_predicate,
    snowflake_new_renamed, snowflake_new_unequal;
ALTER TABLE t DROP CONSTRAINT snowflake_new_c;
ALTER TABLE l DROP CONSTRAINT snowflake_new_l_t, DROP CONSTRAINT snowflake_new_l_u;
DROP STATISTICS snowflake_new_s;
-- the conversion continues with what there is now
:convert
SELECT * FROM left_behind;
SELECT stxkind FROM pg_statistic_ext WHERE stxname = 's';
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY indexrelid::regclass::text;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'shop'::regnamespace AND contype IN ('c', 'f') ORDER BY 1;

-- a column that is NOT NULL since its copy was created: a swap would read all rows
:begin
CREATE TABLE t (id serial PRIMARY KEY);
CREATE TABLE l (v int PRIMARY KEY, "Up" int REFERENCES t, b int NOT NULL REFERENCES t);
:until
ALTER TABLE l ALTER "Up" SET NOT NULL;
:convert
ALTER TABLE l ALTER "Up" DROP NOT NULL;
:convert
SELECT * FROM left_behind;

-- what was rewritten, or moved there and back, is as it was
:begin
CREATE TABLE t (id serial PRIMARY KEY, n varchar, v int,
    CONSTRAINT c CHECK (id > 0 AND n IN ('a', 'b')), CONSTRAINT d CHECK (v > 0 AND id + 0 > v - id) NOT VALID);
CREATE INDEX p ON t (id, (v + id), lower(n) text_pattern_ops DESC) INCLUDE (v) WITH (fillfactor = 70) WHERE n IN ('a', 'b') AND id % 2 = 0;
CREATE INDEX b ON t USING brin (v int4_minmax_multi_ops (values_per_range = 16), id);
CREATE INDEX k ON t ((id::bigint));
ALTER INDEX k ALTER 1 SET STATISTICS 10;
CREATE STATISTICS s ON v, n, (id % 10), (id + v) FROM t;
CREATE STATISTICS e (ndistinct) ON id, v FROM t;
INSERT INTO t (n, v) SELECT 'a', 1 FROM generate_series(1, 100);
:until
REINDEX INDEX CONCURRENTLY p;
CLUSTER t USING t_pkey;
ALTER STATISTICS s SET STATISTICS 10;
CREATE SCHEMA elsewhere;
ALTER TABLE t SET SCHEMA elsewhere;
ALTER TABLE elsewhere.t SET SCHEMA shop;
DROP SCHEMA elsewhere;
:convert
SELECT * FROM left_behind;

-- columns that were renamed meanwhile are undone
:begin
CREATE TABLE t (id serial PRIMARY KEY, "Straße \ ' x" int REFERENCES t);
INSERT INTO t DEFAULT VALUES;
:until
ALTER TABLE t RENAME id TO key;
ALTER TABLE t RENAME "Straße \ ' x" TO y;
:undo
SELECT * FROM left_behind;
INSERT INTO t (key, y) VALUES (100, 100);

-- without the trigger, rows cannot differ
:begin
CREATE TABLE t (id serial PRIMARY KEY, t int REFERENCES t);
INSERT INTO t (t) SELECT generate_series(1, 100);
:until
ALTER TABLE t DISABLE TRIGGER ALL;
\set VERBOSITY terse
INSERT INTO t (t) VALUES (5);
\set VERBOSITY default
ALTER TABLE t ENABLE TRIGGER ALL;
:convert
:undo
:convert
SELECT count(*), sum(id), sum(t) FROM t;

-- columns that are dropped: rows are written, and undo leaves nothing
\set referencing 'CREATE TABLE t (id serial PRIMARY KEY, v int); CREATE TABLE o (no int PRIMARY KEY, a int REFERENCES t, b int REFERENCES t, v int); INSERT INTO t (v) SELECT generate_series(1, 5); INSERT INTO o VALUES (1, 1, 2);'
:begin
:referencing
:until
ALTER TABLE o DROP a;
INSERT INTO o (no) VALUES (2);
UPDATE o SET v = 2;
:convert
:undo
SELECT * FROM left_behind;
:begin
:referencing
:until
ALTER TABLE o DROP a, DROP b;
INSERT INTO o (no) VALUES (3);
UPDATE o SET v = 2;
:convert
:undo
SELECT * FROM left_behind;
:convert
SELECT * FROM left_behind;
-- ... and added again
:begin
:referencing
:until
ALTER TABLE o DROP a, ADD a int REFERENCES t;
:convert
:undo
SELECT * FROM left_behind;
-- foreign keys that are dropped
:until
ALTER TABLE o DROP CONSTRAINT o_a_fkey, DROP CONSTRAINT o_b_fkey;
:convert
ALTER TABLE o DROP CONSTRAINT snowflake_new_o_a_fkey, DROP CONSTRAINT snowflake_new_o_b_fkey;
:convert
SELECT snowflake_convert_undo('o');
SELECT * FROM left_behind;

-- a trigger for other columns, whose columns undo does not drop
:begin
:referencing
CREATE TRIGGER "~snowflake_new" BEFORE INSERT ON o FOR EACH ROW EXECUTE FUNCTION _snowflake_convert_copy('a', 'b');
:convert
:undo
SELECT * FROM o;
-- a copy that was dropped
:until
ALTER TABLE t DROP snowflake_new_id CASCADE;
:undo
SELECT * FROM left_behind;

-- a schema whose name needs quotes
:begin
:referencing
ALTER SCHEMA shop RENAME TO "My shop";
CALL snowflake_convert_online('"My shop".t', until => 'foreign keys');
SELECT snowflake_convert_undo('"My shop".t');
SELECT * FROM left_behind;
DROP SCHEMA "My shop" CASCADE;

-- foreign keys whose own names are like those of new ones
:begin
CREATE TABLE c (id int PRIMARY KEY);
CREATE TABLE t (id int PRIMARY KEY, x int CONSTRAINT snowflake_new_foo REFERENCES c, parent bigint CONSTRAINT parent REFERENCES t);
CREATE TABLE u (t bigint CONSTRAINT of_u REFERENCES t);
:until
ALTER TABLE t DROP CONSTRAINT parent;
:undo
SELECT * FROM left_behind;
CREATE TABLE w (t int CONSTRAINT snowflake_new_bar REFERENCES t);
:convert
SELECT * FROM left_behind;

-- a column that holds keys without a foreign key gets no default
:begin
CREATE TABLE t (id bigint PRIMARY KEY, v int);
CREATE INDEX ON t (v);
INSERT INTO t VALUES (1, 7), (2, NULL);
CALL snowflake_convert_online('t', 'v', until => 'swap');
DROP TRIGGER "~snowflake_swapped" ON t;
SELECT atttypid::regtype, atthasdef, attnotnull FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'v';
SELECT id, v FROM t ORDER BY id;
SELECT * FROM left_behind;

-- rows of a table whose referencing column is bigint already
:begin
CREATE TABLE t (id serial PRIMARY KEY);
CREATE TABLE a (t int REFERENCES t);
CREATE TABLE b (t bigint REFERENCES t);
CREATE TABLE holder (b b);
:convert
SELECT * FROM left_behind;

-- a partition with a foreign key of its own: that of the table acts first
:begin
CREATE TABLE t (id int PRIMARY KEY);
CREATE TABLE o (a int, at int) PARTITION BY LIST (at);
CREATE TABLE o_1 PARTITION OF o FOR VALUES IN (1);
ALTER TABLE o ADD FOREIGN KEY (a) REFERENCES t ON DELETE CASCADE;
ALTER TABLE o_1 ADD FOREIGN KEY (a) REFERENCES t ON DELETE SET NULL;
INSERT INTO t VALUES (1);
INSERT INTO o VALUES (1, 1);
:convert
DELETE FROM t;
SELECT count(*) FROM o;

-- the comments of a constraint trigger
:begin
CREATE TABLE t (id int PRIMARY KEY, v int);
CREATE CONSTRAINT TRIGGER tr AFTER UPDATE OF id ON t FOR EACH ROW EXECUTE FUNCTION nothing();
COMMENT ON TRIGGER tr ON t IS 'trigger';
COMMENT ON CONSTRAINT tr ON t IS 'constraint';
CALL snowflake_convert_online('t', give_up_after => '178000000 years');
SELECT obj_description(oid, 'pg_trigger'), obj_description(tgconstraint, 'pg_constraint') FROM pg_trigger WHERE tgname = 'tr';

-- a row that is not below new IDs, and came after these were looked for first
:begin
CREATE TABLE t (id serial PRIMARY KEY, v int);
CREATE FUNCTION late() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO shop.t (id, v) VALUES (9000000000000000000, 1); END';
CREATE EVENT TRIGGER late ON ddl_command_end WHEN TAG IN ('ALTER INDEX') EXECUTE FUNCTION late();
:convert
DROP EVENT TRIGGER late;

-- code of the owner, which is called when the definition of an index is analyzed, and fires triggers
-- in the backfill, but as the owner only
:begin
CREATE SEQUENCE calls;
GRANT ALL ON SCHEMA shop TO regress_shop;
GRANT ALL ON SEQUENCE calls TO regress_shop;
SET SESSION AUTHORIZATION regress_shop;
CREATE FUNCTION note(int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('shop.calls');
    IF current_user <> 'regress_shop' THEN RAISE WARNING 'runs as %', current_user; END IF;
    RETURN true;
END $$;
CREATE DOMAIN d AS int CHECK (shop.note(VALUE));
CREATE TABLE t (id serial PRIMARY KEY, v int);
INSERT INTO t (v) SELECT generate_series(1, 10);
CREATE INDEX i ON t ((id + array_length('{1}'::shop.d[], 1)));
CREATE INDEX j ON t (id) WHERE v <> array_length('{2}'::shop.d[], 1);
RESET SESSION AUTHORIZATION;
SELECT last_value AS calls FROM calls \gset
:convert
SELECT last_value > :calls AS called FROM calls;
:begin
GRANT CREATE, USAGE ON SCHEMA shop TO regress_shop;
CREATE TABLE victim (n int);
INSERT INTO victim VALUES (0);
GRANT SELECT, UPDATE ON victim TO regress_shop;
CREATE TABLE log (n int);
CREATE FUNCTION log() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql SET search_path = shop AS
    'BEGIN INSERT INTO log VALUES (NEW.n); RETURN NEW; END';
CREATE TRIGGER log AFTER UPDATE ON victim FOR EACH ROW EXECUTE FUNCTION log();
SET ROLE regress_shop;
CREATE FUNCTION attack(int) RETURNS boolean LANGUAGE plpgsql AS
    'BEGIN UPDATE shop.victim SET n = n + 1; RETURN true; END';
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE shop.fired SET n = n + 1; RETURN NEW; END';
CREATE TABLE t (id int PRIMARY KEY, v int CONSTRAINT attack CHECK (attack(v)));
INSERT INTO t SELECT generate_series(1, 10);
CREATE TABLE fired (n int);
INSERT INTO fired VALUES (0);
CREATE TRIGGER always AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fire();
ALTER TABLE t ENABLE ALWAYS TRIGGER always;
CREATE TRIGGER replica BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fire();
ALTER TABLE t ENABLE REPLICA TRIGGER replica;
CREATE TRIGGER of_statement AFTER UPDATE ON t REFERENCING NEW TABLE AS rows EXECUTE FUNCTION fire();
RESET ROLE;
SET SESSION AUTHORIZATION regress_shop;
:until
RESET SESSION AUTHORIZATION;
-- triggers of the other table, and none of its own, in whatever state
SELECT n > 0, n = (SELECT count(*) FROM log) FROM victim;
SELECT n FROM fired;
:convert
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 't'::regclass ORDER BY tgname;
SELECT * FROM left_behind;

\c :tests
DROP DATABASE regress_online_changed;
DROP ROLE regress_shop, regress_reader, regress_other;
