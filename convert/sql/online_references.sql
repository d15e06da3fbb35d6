--
-- What foreign keys do in each phase of snowflake_convert_online(), and those that come and go meanwhile
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_online_references;
\c regress_online_references
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

CREATE VIEW left_behind AS
SELECT attname::text AS name FROM pg_attribute WHERE attname ~ 'snowflake_(new|swap)' AND NOT attisdropped
UNION ALL SELECT relname FROM pg_class WHERE relname ~ 'snowflake_(new|swap)'
UNION ALL SELECT conname FROM pg_constraint WHERE conname ~ 'snowflake_(new|swap)'
UNION ALL SELECT tgname FROM pg_trigger WHERE tgname ~ 'snowflake_(new|swap|validate)'
UNION ALL SELECT stxname FROM pg_statistic_ext WHERE stxname ~ 'snowflake_(new|swap)'
UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid
ORDER BY 1;
\set begin 'DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; SET search_path = shop, public;'

-- what they do, are enforced, and leave no orphans, after each phase
\set referencing 'CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int, a int REFERENCES a ON DELETE SET NULL ON UPDATE CASCADE); CREATE TABLE c (id int, a int REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE); CREATE TABLE d (id int, a int REFERENCES a ON DELETE SET NULL ON UPDATE SET NULL); INSERT INTO a SELECT generate_series(1, 100); INSERT INTO b SELECT n, n FROM generate_series(1, 100) n; INSERT INTO c SELECT n, n FROM generate_series(1, 100) n; INSERT INTO d SELECT n, n FROM generate_series(1, 100) n; CREATE SEQUENCE n START 10 INCREMENT 2;'
CREATE FUNCTION act() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    n int := nextval('n');
    l text;
BEGIN
    DELETE FROM a WHERE id = n;
    UPDATE a SET id = id + 1000 WHERE id = n + 1;
    INSERT INTO b (id, a) VALUES (n, n + 1001);
    FOREACH l IN ARRAY '{b,c,d}'::text[] LOOP
        RETURN QUERY EXECUTE format('SELECT %L || '': '' || string_agg(coalesce((a - $1)::text, ''null''), '','' ORDER BY a) FROM %1$I WHERE id IN ($1, $1 + 1)', l) USING n;
        RETURN QUERY EXECUTE format('SELECT ''orphan in '' || %L FROM %1$I WHERE a IS NOT NULL AND NOT EXISTS (SELECT FROM a WHERE a.id = %1$I.a)', l);
    END LOOP;
    BEGIN
        INSERT INTO b (id, a) VALUES (1, n);
    EXCEPTION WHEN foreign_key_violation THEN
        RETURN NEXT 'they are enforced';
    END;
END $$;
\set phases 'SELECT unnest(ARRAY[format(''CALL snowflake_convert_online(''''a'''', until => %L)'', phase), ''SELECT * FROM act()'']) FROM unnest(ARRAY'
\set swaps 'SELECT unnest(ARRAY[statement, ''SELECT * FROM act()'']) FROM snowflake_convert_plan(''a'') WHERE phase = ''swap'' AND table_name IN (''shop.b'', ''shop.c'', ''shop.d'') ORDER BY step'
:begin
:referencing
:phases ['prepare', 'backfill', 'indexes', 'foreign keys']) phase \gexec
\set ECHO none
:swaps \gexec
\set ECHO all
:phases ['swap', 'default']) phase \gexec
SELECT * FROM left_behind;
-- ... when the triggers of the old foreign keys are fired after those of the new ones
:begin
:referencing
:phases ['prepare', 'backfill', 'indexes', 'foreign keys']) phase \gexec
ALTER TABLE b DROP CONSTRAINT b_a_fkey, ADD CONSTRAINT b_a_fkey FOREIGN KEY (a) REFERENCES a ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE c DROP CONSTRAINT c_a_fkey, ADD CONSTRAINT c_a_fkey FOREIGN KEY (a) REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE d DROP CONSTRAINT d_a_fkey, ADD CONSTRAINT d_a_fkey FOREIGN KEY (a) REFERENCES a ON DELETE SET NULL ON UPDATE SET NULL;
SELECT * FROM act();
\set ECHO none
:swaps \gexec
\set ECHO all
:phases ['swap', 'default']) phase \gexec
SELECT * FROM left_behind;

-- a foreign key and an index that come before the swap, and a foreign key after it
:begin
CREATE TABLE a (id int PRIMARY KEY);
INSERT INTO a SELECT generate_series(1, 10);
CALL snowflake_convert_online('a', until => 'foreign keys');
CREATE TABLE b (a int REFERENCES a);
INSERT INTO b SELECT generate_series(1, 10);
CREATE INDEX late ON a ((id + 1));
CALL snowflake_convert_online('a', until => 'swap');
CREATE TABLE c (a int REFERENCES a);
INSERT INTO c SELECT generate_series(1, 10);
CALL snowflake_convert_online('a');
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attrelid IN ('a'::regclass, 'b'::regclass, 'c'::regclass) AND atttypid = 'int8'::regtype ORDER BY attrelid::regclass::text;
SELECT pg_get_indexdef('late'::regclass);
SELECT * FROM left_behind;

-- a foreign key that is dropped, then undo
:begin
CREATE TABLE a (id int PRIMARY KEY);
CREATE TABLE b (a int REFERENCES a);
CALL snowflake_convert_online('a', until => 'foreign keys');
ALTER TABLE b DROP CONSTRAINT b_a_fkey;
SELECT snowflake_convert_undo('b', 'a');
SELECT snowflake_convert_undo('a');
SELECT * FROM left_behind;

-- a foreign key depends on the index that the old one depended on
:begin
CREATE TABLE a (id serial PRIMARY KEY, v int);
CREATE TABLE b (a int REFERENCES a);
ALTER TABLE a ADD CONSTRAINT a_again UNIQUE (id);
CALL snowflake_convert_online('a');
SELECT conindid::regclass FROM pg_constraint WHERE conname = 'b_a_fkey';

\c :tests
DROP DATABASE regress_online_references;
