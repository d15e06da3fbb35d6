--
-- snowflake_convert(): which columns are converted together, what happens to
-- sequences, defaults and partitions, and user-defined generators
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
RESET client_min_messages;
CREATE SCHEMA keys;
SET search_path = keys, public;
\set SHOW_CONTEXT never
-- the columns of a schema that are not bigint
CREATE VIEW narrow AS
    SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'keys'::regnamespace AND relkind IN ('r', 'p', 'f') AND attnum > 0 AND NOT attisdropped
    AND atttypid <> 'int8'::regtype;

-- columns that reference a bigint key are converted, also through other bigints
CREATE TABLE customers (id bigserial PRIMARY KEY);
CREATE TABLE cards (customer bigint PRIMARY KEY REFERENCES customers);
CREATE TABLE orders (id bigserial PRIMARY KEY, customer int REFERENCES customers);
CREATE TABLE payments (card int REFERENCES cards, small smallint REFERENCES cards);
CREATE DOMAIN wide AS bigint;
CREATE TABLE refunds (card wide UNIQUE REFERENCES cards);
CREATE TABLE reviews (refund int REFERENCES refunds (card));
CREATE DOMAIN wider AS wide;
CREATE TABLE vouchers (card wider UNIQUE REFERENCES cards);
CREATE TABLE stubs (voucher int REFERENCES vouchers (card));
SELECT snowflake_convert('customers');
SELECT * FROM narrow WHERE attrelid <> 'narrow'::regclass ORDER BY attrelid::text;
WITH c AS (INSERT INTO customers DEFAULT VALUES RETURNING id)
INSERT INTO orders (customer) SELECT id FROM c RETURNING customer > 1000000 AS snowflake;
SELECT snowflake_convert('customers');
-- also those that were added after the key was converted
CREATE TABLE late (customer int REFERENCES customers);
SELECT snowflake_convert('customers', dry_run => true);
SELECT snowflake_convert('customers');
SELECT * FROM narrow WHERE attrelid <> 'narrow'::regclass ORDER BY attrelid::text;

-- a domain over integer cannot
CREATE DOMAIN number AS int;
CREATE TABLE stamps (customer number REFERENCES customers);
SELECT snowflake_convert('customers');
CREATE TABLE people (id bigserial PRIMARY KEY);
CREATE TABLE phones (person number REFERENCES people);
SELECT snowflake_convert('people');
SELECT snowflake_convert('people', dry_run => true);
DROP TABLE stamps, phones;

-- nor a generated column, whose expression is of type integer
CREATE TABLE copies (person int, same_person int GENERATED ALWAYS AS (person) STORED REFERENCES people);
SELECT snowflake_convert('people', dry_run => true);
DROP TABLE copies;

-- a key that is a foreign key itself, also only in a partition
CREATE TABLE profiles (id bigint PRIMARY KEY REFERENCES people);
SELECT snowflake_convert('profiles');
CREATE TABLE parts (id bigint, kind int) PARTITION BY LIST (kind);
CREATE TABLE parts_1 PARTITION OF parts (CONSTRAINT parts_1_people FOREIGN KEY (id) REFERENCES people) FOR VALUES IN (1);
SELECT snowflake_convert('parts', 'id');

-- partitions for new IDs
CREATE TABLE ranges (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE ranges_1 PARTITION OF ranges FOR VALUES FROM (MINVALUE) TO (1000000);
SELECT snowflake_convert('ranges');
SELECT snowflake_lower_bound(now() + '1 month') AS month \gset
CREATE TABLE ranges_2 PARTITION OF ranges FOR VALUES FROM (1000000) TO (:month);
SELECT snowflake_convert('ranges', dry_run => true);
CREATE TABLE ranges_3 PARTITION OF ranges FOR VALUES FROM (:month) TO (MAXVALUE) PARTITION BY RANGE (id);
SELECT snowflake_convert('ranges', dry_run => true);
CREATE TABLE ranges_3_default PARTITION OF ranges_3 DEFAULT;
SELECT snowflake_convert('ranges');
INSERT INTO ranges DEFAULT VALUES RETURNING tableoid::regclass;
-- a DEFAULT partition is hardly meant for all new rows, unless it is that of another column
CREATE TABLE rest (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE rest_1 PARTITION OF rest FOR VALUES FROM (MINVALUE) TO (1000000);
CREATE TABLE rest_default PARTITION OF rest DEFAULT;
SELECT snowflake_convert('rest', dry_run => true);
CREATE TABLE rest_2 PARTITION OF rest FOR VALUES FROM (1000000) TO (:month);
SELECT snowflake_convert('rest');
CREATE TABLE regions (region text, id bigint) PARTITION BY LIST (region);
CREATE TABLE regions_rest PARTITION OF regions DEFAULT PARTITION BY RANGE (id);
CREATE TABLE regions_rest_1 PARTITION OF regions_rest FOR VALUES FROM (1) TO (MAXVALUE);
SELECT snowflake_convert('regions', 'id', dry_run => true);
CREATE TABLE regions_b PARTITION OF regions FOR VALUES IN ('b') PARTITION BY LIST ((id % 2));
CREATE TABLE regions_b_1 PARTITION OF regions_b FOR VALUES IN (1);
DROP TABLE regions_rest;
SELECT snowflake_convert('regions', 'id', dry_run => true);
CREATE TABLE regions_b_rest PARTITION OF regions_b DEFAULT;
SELECT snowflake_convert('regions', 'id', dry_run => true);
CREATE TABLE lists (id bigint, kind int) PARTITION BY LIST (kind);
CREATE TABLE lists_1 PARTITION OF lists FOR VALUES IN (1) PARTITION BY LIST (id);
CREATE TABLE lists_1_1 PARTITION OF lists_1 FOR VALUES IN (1, 2, 3);
SELECT snowflake_convert('lists', 'id');
CREATE TABLE lists_2 PARTITION OF lists FOR VALUES IN (2);
SELECT snowflake_convert('lists', 'id');
-- partitions by a column that references the key
CREATE TABLE posts (id bigint PRIMARY KEY);
CREATE TABLE replies (id bigint, post bigint REFERENCES posts) PARTITION BY HASH (id);
CREATE TABLE replies_0 PARTITION OF replies FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY RANGE (post);
CREATE TABLE replies_0_1 PARTITION OF replies_0 FOR VALUES FROM (1) TO (1000000);
SELECT snowflake_convert('posts', dry_run => true);
-- which excluding its table leaves as it is
CREATE SCHEMA parts;
CREATE TABLE parts.posts (id bigserial PRIMARY KEY);
CREATE TABLE parts.replies (id bigserial, post bigint REFERENCES parts.posts, PRIMARY KEY (id, post)) PARTITION BY RANGE (post);
CREATE TABLE parts.replies_1 PARTITION OF parts.replies FOR VALUES FROM (1) TO (1000000);
SELECT snowflake_convert_schema('parts', '{parts.replies}', dry_run => true);
SELECT snowflake_convert_schema('parts', '{parts.posts}', dry_run => true);
SET client_min_messages = warning;
DROP SCHEMA parts CASCADE;
RESET client_min_messages;
CREATE TABLE replies_0_2 PARTITION OF replies_0 FOR VALUES FROM (1000000) TO (:month);
SELECT snowflake_convert('posts');
-- keys with several columns
CREATE TABLE pairs (kind text, id bigint) PARTITION BY RANGE (kind, id);
CREATE TABLE pairs_1 PARTITION OF pairs FOR VALUES FROM ('a', 1) TO ('b', 1);
SELECT snowflake_convert('pairs', 'id');
CREATE TABLE pairs_2 (id bigint, kind text) PARTITION BY RANGE (id, kind);
CREATE TABLE pairs_2_1 PARTITION OF pairs_2 FOR VALUES FROM (1, 'a') TO (1000, 'b');
SELECT snowflake_convert('pairs_2', 'id');
-- expressions
CREATE TABLE modulo (v text, id bigint) PARTITION BY LIST ((id % 2));
CREATE TABLE modulo_0 PARTITION OF modulo FOR VALUES IN (0);
CREATE TABLE modulo_1 PARTITION OF modulo FOR VALUES IN (1);
SELECT snowflake_convert('modulo', 'id');
CREATE TABLE residues (id bigint) PARTITION BY LIST ((id % 16));
CREATE TABLE residues_1 PARTITION OF residues FOR VALUES IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
SELECT snowflake_convert('residues', 'id');
CREATE TABLE residues_15 PARTITION OF residues FOR VALUES IN (15);
SELECT snowflake_convert('residues', 'id');
CREATE TABLE millions (id bigint) PARTITION BY RANGE ((id / 1000000));
CREATE TABLE millions_1 PARTITION OF millions FOR VALUES FROM (0) TO (10);
SELECT snowflake_convert('millions', 'id');
CREATE TABLE of_days (id bigint) PARTITION BY RANGE (snowflake_timestamp(id, 'epoch=2016-11-01,timestamp=41,worker=10,sequence=12'));
CREATE TABLE of_days_1 PARTITION OF of_days FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
SELECT snowflake_convert('of_days', 'id');
CREATE TABLE halves (id int) PARTITION BY RANGE ((id / 2));
SELECT snowflake_convert('halves', 'id');
CREATE TABLE hashes (id bigint PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE hashes_0 PARTITION OF hashes FOR VALUES WITH (MODULUS 2, REMAINDER 0);
SELECT snowflake_convert('hashes');
CREATE TABLE hashes_1 PARTITION OF hashes FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT snowflake_convert('hashes');

-- foreign tables
CREATE FOREIGN DATA WRAPPER regress_nowhere;
CREATE SERVER regress_nowhere FOREIGN DATA WRAPPER regress_nowhere;
CREATE TABLE logs (id int, day date) PARTITION BY RANGE (day);
CREATE FOREIGN TABLE logs_1 PARTITION OF logs FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') SERVER regress_nowhere;
SELECT snowflake_convert('logs', 'id', dry_run => true);
DROP FOREIGN TABLE logs_1;
CREATE TABLE remote (id int PRIMARY KEY);
CREATE FOREIGN TABLE remote_1 () INHERITS (remote) SERVER regress_nowhere;
SELECT snowflake_convert('remote', dry_run => true);

-- row types in types in tables
CREATE TABLE node (id int PRIMARY KEY);
CREATE TYPE carton AS (n node);
CREATE DOMAIN cartons AS carton[];
CREATE TYPE crate AS (c cartons);
CREATE TABLE yard (crates crate[]);
SELECT snowflake_convert('node', dry_run => true);

-- defaults and sequences of partitions and children, which are replaced
CREATE TABLE family (id serial PRIMARY KEY);
CREATE TABLE child_same () INHERITS (family);
CREATE TABLE child_serial (id serial CONSTRAINT family_id_not_null NOT NULL) INHERITS (family);
CREATE TABLE child_own (id int DEFAULT 42) INHERITS (family);
CREATE TABLE child_identity (id int CONSTRAINT family_id_not_null NOT NULL GENERATED ALWAYS AS IDENTITY) INHERITS (family);
SELECT snowflake_convert('family');
SELECT attrelid::regclass, atttypid::regtype, pg_get_expr(adbin, adrelid), attidentity = '' AS no_identity
FROM pg_attribute JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid IN (SELECT 'family'::regclass UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = 'family'::regclass)
ORDER BY attrelid::regclass::text;
SELECT relname FROM pg_class WHERE relnamespace = 'keys'::regnamespace AND relkind = 'S' AND relname LIKE 'child%' OR relname LIKE 'family%_seq';

-- an identity of a partitioned table, which its partitions share since 17
CREATE TABLE counted (id int GENERATED ALWAYS AS IDENTITY, kind int) PARTITION BY LIST (kind);
CREATE TABLE counted_1 PARTITION OF counted FOR VALUES IN (1);
SELECT snowflake_convert('counted', 'id');
INSERT INTO counted (kind) VALUES (1) RETURNING id > 1000000 AS snowflake;

-- a sequence that the column does not own
CREATE SEQUENCE numbers;
CREATE TABLE numbered (id bigint PRIMARY KEY DEFAULT nextval('numbers'));
SELECT snowflake_convert('numbered');
SELECT 'numbers'::regclass;

-- user-defined generators
CREATE SEQUENCE odd INCREMENT 2;
CREATE FUNCTION "Own"() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('keys.odd') $$;
CREATE TABLE own (id serial PRIMARY KEY);
SELECT snowflake_convert('own', generator => 'keys."Own"()');
INSERT INTO own DEFAULT VALUES RETURNING id > 1;
SELECT snowflake_convert('own', generator => '"Own"()');
SELECT snowflake_convert('own', dry_run => true);
CREATE TABLE above (id bigint PRIMARY KEY);
INSERT INTO above VALUES (1000);
SELECT setval('odd', 5) > 0;
SELECT snowflake_convert('above', generator => '"Own"()');
CREATE FUNCTION gives_null() RETURNS bigint LANGUAGE sql AS 'SELECT NULL::bigint';
CREATE FUNCTION gives_int() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION gives_many() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION takes_one(int DEFAULT 1) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
SELECT snowflake_convert('above', generator => 'gives_null()');
SELECT snowflake_convert('above', generator => 'gives_int()');
SELECT snowflake_convert('above', generator => 'gives_many()');
SELECT snowflake_convert('above', generator => 'takes_one(int)');
SELECT snowflake_convert('above', generator => 'sum(int)');
SELECT snowflake_convert('above', generator => 0);
-- the range of partitions depends on the generator
CREATE TABLE own_ranges (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE own_ranges_1 PARTITION OF own_ranges FOR VALUES FROM (1) TO (1000000);
SELECT snowflake_convert('own_ranges', generator => '"Own"()');

-- locks: a table whose bigint references the key can be written meanwhile
CREATE TABLE locked (id bigserial PRIMARY KEY);
CREATE TABLE locked_big (id bigint UNIQUE REFERENCES locked);
CREATE TABLE locked_int (id int UNIQUE REFERENCES locked);
CREATE TABLE locked_end (id bigint REFERENCES locked_int (id));
CREATE VIEW locks AS
    SELECT DISTINCT relation::regclass::text, mode FROM pg_locks
    WHERE pid = pg_backend_pid() AND relation::regclass::text LIKE 'locked%' AND relation::regclass::text !~ 'key|seq'
    AND mode IN ('RowExclusiveLock', 'AccessExclusiveLock')
    ORDER BY 1, 2;
SET client_min_messages = warning;
BEGIN;
SELECT count(*) FROM snowflake_convert('locked', dry_run => true);
SELECT * FROM locks;
SELECT count(*) FROM snowflake_convert('locked');
SELECT * FROM locks;
COMMIT;
RESET client_min_messages;

-- what Citus would refuse, with stand-ins for its catalogs
BEGIN;
SET LOCAL allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partkey text);
CREATE TABLE pg_catalog.pg_dist_local_group AS SELECT 0 AS groupid;
SET LOCAL allow_system_table_mods = off;
CREATE TABLE tenants (v text, id int PRIMARY KEY, same_id int GENERATED ALWAYS AS (id) STORED);
INSERT INTO pg_dist_partition SELECT adrelid, adbin FROM pg_attrdef WHERE adrelid = 'tenants'::regclass;
ALTER TABLE tenants DROP same_id;
CREATE TABLE visits (tenant int REFERENCES tenants, n int GENERATED ALWAYS AS IDENTITY);
INSERT INTO pg_dist_partition SELECT 'visits', replace(partkey, ':varattno 2', ':varattno 1') FROM pg_dist_partition;
CREATE TABLE nodes (id bigserial PRIMARY KEY);
\set ON_ERROR_ROLLBACK on
SELECT snowflake_convert('tenants', dry_run => true);
SELECT snowflake_convert('visits', 'n', dry_run => true);
SELECT count(*) FROM snowflake_convert_plan('visits', 'n');
SELECT count(*) FROM snowflake_convert('nodes');
UPDATE pg_dist_local_group SET groupid = 1;
SELECT snowflake_convert('visits', 'n', dry_run => true);
SELECT snowflake_convert('nodes');
ROLLBACK;
\set ON_ERROR_ROLLBACK off

-- not a table
SELECT snowflake_convert(0);
SELECT snowflake_convert('numbers');
SELECT snowflake_convert('pg_depend', 'objsubid', dry_run => true);
CREATE TABLE gone (id int PRIMARY KEY);
SELECT 'gone'::regclass::oid AS gone \gset
DROP TABLE gone;
\set VERBOSITY sqlstate
SELECT snowflake_convert(:gone);
\set VERBOSITY default
-- an old snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_convert('above');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT snowflake_convert('above', dry_run => true);
ROLLBACK;
-- a temporary table
CREATE TEMPORARY TABLE temporary (id serial PRIMARY KEY);
SET client_min_messages = warning;
SELECT count(*) FROM snowflake_convert('temporary');
INSERT INTO temporary DEFAULT VALUES RETURNING id > 1000000 AS snowflake;
-- in use
SELECT snowflake_convert('above') FROM above;
-- settings and the role are as before
SELECT current_user = session_user AS same_user, current_setting('search_path'), current_setting('row_security');

DROP SCHEMA keys CASCADE;
DROP FOREIGN DATA WRAPPER regress_nowhere CASCADE;

-- an index that includes the column: what depends on it alone prevents the conversion, and the dry
-- run says so
CREATE TABLE coded (id serial PRIMARY KEY, code text, name text, UNIQUE (code) INCLUDE (id), UNIQUE (id, code));
CREATE TABLE by_code (code text REFERENCES coded (code));
CREATE TABLE by_both (id int, code text, FOREIGN KEY (id, code) REFERENCES coded (id, code));
SELECT snowflake_convert('coded');
DROP TABLE by_code;
SELECT snowflake_convert('coded');
CREATE TABLE named (id serial UNIQUE, code text PRIMARY KEY, name text);
ALTER TABLE named DROP CONSTRAINT named_pkey, ADD PRIMARY KEY (code) INCLUDE (id);
CREATE VIEW grouped AS SELECT code, name FROM named GROUP BY code;
SELECT snowflake_convert('named', 'id');
DROP TABLE coded, by_both, named CASCADE;

-- a comment on an index of a partitioned table is that of this one alone
CREATE TABLE commented (id serial, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE commented_1 PARTITION OF commented FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
CREATE INDEX commented_at ON commented (at, id);
CREATE INDEX alone_at ON commented_1 (id);
COMMENT ON INDEX commented_pkey IS 'the key''s';
COMMENT ON INDEX commented_at IS 'that of times';
COMMENT ON INDEX alone_at IS 'that of the partition';
SELECT snowflake_convert('commented', 'id');
SELECT i.indrelid::regclass, count(*), string_agg(obj_description(i.indexrelid, 'pg_class'), ', ' ORDER BY i.indexrelid::regclass::text)
FROM pg_index i WHERE i.indrelid IN ('commented'::regclass, 'commented_1'::regclass) GROUP BY 1 ORDER BY 1;
DROP TABLE commented;

-- what a conversion says of partitions is in the report, too
CREATE SCHEMA parts;
CREATE TABLE parts.rest (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parts.rest_1 PARTITION OF parts.rest (CHECK (id < 1000000)) FOR VALUES FROM (MINVALUE) TO (1000000);
CREATE TABLE parts.rest_default PARTITION OF parts.rest (CONSTRAINT old CHECK (id < 2000000)) DEFAULT;
SELECT severity, object, finding, what_to_do FROM snowflake_convert_report('parts', details => true)
WHERE object <> 'column id of table parts.rest';
DROP SCHEMA parts CASCADE;
