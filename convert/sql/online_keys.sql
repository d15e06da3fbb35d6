--
-- Keys of all kinds, which snowflake_convert_online() converts: identities, partitions, names, owners
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_online_keys;
\c regress_online_keys
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

CREATE ROLE regress_shop;
CREATE ROLE regress_reader;
CREATE VIEW left_behind AS
SELECT attname::text AS name FROM pg_attribute WHERE attname ~ 'snowflake_(new|swap)' AND NOT attisdropped
UNION ALL SELECT relname FROM pg_class WHERE relname ~ 'snowflake_(new|swap)'
UNION ALL SELECT conname FROM pg_constraint WHERE conname ~ 'snowflake_(new|swap)'
UNION ALL SELECT tgname FROM pg_trigger WHERE tgname ~ 'snowflake_(new|swap|validate)'
UNION ALL SELECT stxname FROM pg_statistic_ext WHERE stxname ~ 'snowflake_(new|swap)'
UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid
ORDER BY 1;

-- the smallest and the greatest integers
CREATE TABLE negative (id int PRIMARY KEY, v int);
INSERT INTO negative VALUES (-2147483648, 1), (-1, 2), (0, 3), (2147483647, 4);
CALL snowflake_convert_online('negative');
SELECT id, v, pg_typeof(id) FROM negative ORDER BY id;

-- smallint, and a key that is a foreign key
CREATE TABLE tiny (id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int);
CREATE TABLE tinier (id smallint PRIMARY KEY REFERENCES tiny, up smallint REFERENCES tinier);
INSERT INTO tiny (v) VALUES (1), (2);
INSERT INTO tinier VALUES (1, NULL), (2, 1);
CALL snowflake_convert_online('tiny');
SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute
WHERE attrelid IN ('tiny'::regclass, 'tinier'::regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attrelid::regclass::text, attname;

-- an identity is the same until the default takes its place
CREATE TABLE ident (id int GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5 CACHE 3) PRIMARY KEY, v int);
COMMENT ON SEQUENCE ident_id_seq IS 'numbers';
GRANT USAGE ON SEQUENCE ident_id_seq TO regress_reader;
INSERT INTO ident (v) VALUES (1), (2);
SELECT oid, relacl::text FROM pg_class WHERE relname = 'ident_id_seq' \gset
CALL snowflake_convert_online('ident', until => 'swap');
SELECT c.oid = :oid, pg_get_serial_sequence('ident', 'id'), obj_description('ident_id_seq'::regclass), c.relacl::text = :'relacl',
    s.seqincrement, s.seqmax, s.seqcache, (SELECT attidentity FROM pg_attribute WHERE attrelid = 'ident'::regclass AND attname = 'id')
FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid WHERE c.relname = 'ident_id_seq';
INSERT INTO ident (v) VALUES (3) RETURNING id > 15 AND id < 100;
CALL snowflake_convert_online('ident');
SELECT * FROM left_behind;

-- a column that others reference by a unique constraint, and one that is bigint already
CREATE TABLE parts (id bigint PRIMARY KEY, number int UNIQUE DEFERRABLE, code int UNIQUE);
ALTER TABLE parts DROP CONSTRAINT parts_number_key;
CREATE TABLE uses (id serial PRIMARY KEY, code bigint REFERENCES parts (code),
    "Big code" int REFERENCES parts (code) MATCH FULL ON DELETE SET NULL ON UPDATE RESTRICT);
INSERT INTO parts VALUES (1, 2, 3);
INSERT INTO uses (code, "Big code") VALUES (3, 3), (NULL, NULL);
CALL snowflake_convert_online('parts', 'code');
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'uses'::regclass AND contype = 'f' ORDER BY conname COLLATE "C";
SELECT * FROM left_behind;

-- a view that does not accept a bigint is found before the first change
CREATE FUNCTION shown(int) RETURNS text LANGUAGE sql RETURN 'n' || $1;
CREATE TABLE viewed (id serial PRIMARY KEY, v int);
CREATE VIEW view_of AS SELECT shown(id) FROM viewed;
INSERT INTO viewed (v) VALUES (1);
CALL snowflake_convert_online('viewed');
SELECT * FROM left_behind;
INSERT INTO viewed (v) VALUES (2);
SELECT * FROM view_of;
CREATE FUNCTION shown(bigint) RETURNS text LANGUAGE sql RETURN 'N' || $1;
CALL snowflake_convert_online('viewed');
SELECT * FROM view_of;

-- names that are long, or are not plain
SELECT repeat('x', 60) AS long \gset
\set long_index :long i
CREATE TABLE :long (:long serial PRIMARY KEY, "Straße ""x"" '%s" int REFERENCES :long);
CREATE INDEX :long_index ON :long ("Straße ""x"" '%s");
INSERT INTO :long ("Straße ""x"" '%s") VALUES (1), (2), (NULL);
CALL snowflake_convert_online(:'long');
SELECT count("Straße ""x"" '%s"), pg_typeof(max(:long)), pg_typeof(max("Straße ""x"" '%s")) FROM :long;
SELECT * FROM left_behind;

-- A session keeps no plans, which are large, after a call that succeeds, and one that fails.
CREATE TABLE kept (id serial PRIMARY KEY);
\set plans 'SELECT count(*) FROM pg_backend_memory_contexts WHERE name ~ ''^CachedPlan'' AND ident ~ ''^WITH RECURSIVE wide'';'
CALL snowflake_convert_online('kept', until => 'indexes');
:plans
ALTER TABLE kept DROP COLUMN snowflake_new_id CASCADE;
CALL snowflake_convert_online('kept');
:plans
DROP TABLE kept;

-- what is said of partitioned tables
CREATE TABLE by_key (id int PRIMARY KEY) PARTITION BY RANGE (id);
CALL snowflake_convert_online('by_key');
CREATE TABLE by_key_below (id serial, d int, PRIMARY KEY (d, id)) PARTITION BY LIST (d);
CREATE TABLE by_key_1 PARTITION OF by_key_below FOR VALUES IN (1) PARTITION BY LIST (id);
CALL snowflake_convert_online('by_key_below', 'id');
CREATE FOREIGN DATA WRAPPER w;
CREATE SERVER s FOREIGN DATA WRAPPER w;
CREATE FUNCTION narrow(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TABLE o (id serial, d int, PRIMARY KEY (d, id)) PARTITION BY LIST (d);
CREATE TABLE o1 PARTITION OF o FOR VALUES IN (1);
CREATE TABLE r (o int, d int, FOREIGN KEY (d, o) REFERENCES o) PARTITION BY LIST (d);
CREATE VIEW ov AS SELECT narrow(id) FROM o1;
CALL snowflake_convert_online('o', 'id');
CALL snowflake_convert_online('o1', 'id');
SELECT snowflake_convert_plan('o', 'id');
DROP TABLE r;
CALL snowflake_convert_online('o', 'id');
DROP TABLE o CASCADE;
CREATE TABLE o (id serial, d int) PARTITION BY LIST (d);
CREATE FOREIGN TABLE o1 PARTITION OF o FOR VALUES IN (1) SERVER s;
CREATE TABLE o2 PARTITION OF o (UNIQUE (id, d)) FOR VALUES IN (2);
CREATE TABLE o3 PARTITION OF o FOR VALUES IN (3);
SET client_min_messages = error;
CREATE PUBLICATION p FOR TABLE o (id, d) WITH (publish_via_partition_root);
SET client_min_messages = warning;
CALL snowflake_convert_online('o', 'id');
DROP FOREIGN TABLE o1;
CREATE UNIQUE INDEX oi ON o (id, d);
CALL snowflake_convert_online('o', 'id');
DROP TABLE o;
DROP PUBLICATION p;

-- an interruption between the swap and the validation of the foreign keys of a partitioned table
CREATE TABLE keys (d int, id serial, PRIMARY KEY (d, id)) PARTITION BY LIST (d);
CREATE TABLE keys1 PARTITION OF keys FOR VALUES IN (1);
CREATE TABLE used (d int, key int, CONSTRAINT uses_key FOREIGN KEY (d, key) REFERENCES keys);
INSERT INTO keys (d) SELECT 1 FROM generate_series(1, 10);
INSERT INTO used SELECT d, id FROM keys;
CALL snowflake_convert_online('keys', 'id', until => 'foreign keys');
\set ECHO none
SELECT statement FROM snowflake_convert_plan('keys', 'id') WHERE state LIKE 'next%' \gexec
\set ECHO all
SELECT statement FROM snowflake_convert_plan('keys', 'id') WHERE state = 'next';
INSERT INTO used VALUES (1, 99);
SELECT snowflake_convert_undo('keys', 'id');
CALL snowflake_convert_online('keys', 'id');
SELECT convalidated FROM pg_constraint WHERE conname = 'uses_key';
SELECT * FROM left_behind;

-- since 17, partitions share the identity of their table, and before that, one may have its own
CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY, d int NOT NULL, PRIMARY KEY (d, id)) PARTITION BY LIST (d);
CREATE TABLE numbered1 PARTITION OF numbered FOR VALUES IN (1) PARTITION BY LIST (d);
CREATE TABLE numbered11 PARTITION OF numbered1 FOR VALUES IN (1);
CREATE TABLE numbered2 (d int NOT NULL, id int NOT NULL);
ALTER TABLE numbered ATTACH PARTITION numbered2 FOR VALUES IN (2);
GRANT INSERT, SELECT ON numbered TO regress_reader;
GRANT USAGE ON SEQUENCE numbered_id_seq TO regress_reader WITH GRANT OPTION;
SELECT current_setting('server_version_num')::int < 170000 AS own \gset
\if :own
    ALTER TABLE numbered2 ALTER id ADD GENERATED BY DEFAULT AS IDENTITY;
\endif
CREATE VIEW identities AS
SELECT attrelid, attidentity, pg_get_serial_sequence(attrelid::regclass::text, 'id') AS sequence, s.oid AS sequence_oid, s.relacl
FROM pg_attribute LEFT JOIN pg_class s ON s.oid = pg_get_serial_sequence(attrelid::regclass::text, 'id')::regclass
WHERE attrelid::regclass::text ~ '^numbered[0-9]*$' AND attname = 'id';
CREATE TABLE identities_before AS SELECT * FROM identities;
SET ROLE regress_reader;
INSERT INTO numbered (d) VALUES (1), (2) RETURNING tableoid::regclass, id;
RESET ROLE;
CALL snowflake_convert_online('numbered', 'id', until => 'swap');
TABLE identities EXCEPT TABLE identities_before;
SELECT count(*) FROM identities;
SET ROLE regress_reader;
INSERT INTO numbered (d) VALUES (1), (2) RETURNING tableoid::regclass, id;
RESET ROLE;
DROP TABLE numbered;
SELECT relname FROM pg_class WHERE relname ~ '^numbered';

-- Constants of some types call code of the owner when they are parsed, as those in a view are while
-- the columns have their new types for a moment.  Rows that are read then would be taken for what
-- they are not.
CREATE SCHEMA owned AUTHORIZATION regress_shop;
SET SESSION AUTHORIZATION regress_shop;
CREATE TABLE owned.t (id int PRIMARY KEY, v text);
INSERT INTO owned.t VALUES (1, 'abc' || chr(9) || 'xyz');
CREATE FUNCTION owned.look() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    seen text;
BEGIN
    EXECUTE 'SELECT v FROM owned.t' INTO seen;
    RAISE WARNING 'the row has %', seen;
    RETURN true;
END $$;
CREATE DOMAIN owned.looking AS int CHECK (owned.look());
SET client_min_messages = error;
CREATE VIEW owned.v AS SELECT id, '{1}'::owned.looking[] AS looking FROM owned.t;
SET client_min_messages = warning;
SELECT count(*) > 0 FROM snowflake_convert_plan('owned.t');
ALTER DOMAIN owned.looking DROP CONSTRAINT looking_check;
ALTER DOMAIN owned.looking ADD CHECK (brin_summarize_new_values('owned.t_pkey') = 0) NOT VALID;
SELECT count(*) > 0 FROM snowflake_convert_plan('owned.t');
ALTER DOMAIN owned.looking DROP CONSTRAINT looking_check;
ALTER DOMAIN owned.looking ADD CHECK (VALUE > 0) NOT VALID;
SELECT count(*) > 0 FROM snowflake_convert_plan('owned.t');
-- An error in a later transaction of CREATE INDEX CONCURRENTLY, which runs as the owner: the session
-- is again that of the caller, and is not restricted.
CREATE FUNCTION owned.fail(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF i = 2 AND EXISTS (SELECT FROM pg_index WHERE NOT indisvalid) THEN
        RAISE 'it fails';
    END IF;
    RETURN i;
END $$;
CREATE TABLE owned.f (id serial PRIMARY KEY, v int);
INSERT INTO owned.f (v) VALUES (1), (2);
CREATE INDEX f_i ON owned.f (owned.fail(id::bigint));
RESET SESSION AUTHORIZATION;
CALL snowflake_convert_online('owned.f');
SELECT session_user = current_user, rolsuper FROM pg_roles WHERE rolname = current_user;
SET ROLE regress_shop;
SELECT current_user;
RESET ROLE;
DROP SCHEMA owned CASCADE;

\c :tests
DROP DATABASE regress_online_keys;
DROP ROLE regress_shop, regress_reader;
