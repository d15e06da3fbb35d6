--
-- Properties of snowflake_nextval() that one session can see
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

-- what the catalog says about the functions
SELECT oid::regprocedure::text AS function, provolatile, proparallel, proisstrict, prorettype::regtype
FROM pg_proc
WHERE oid IN (SELECT objid FROM pg_depend
              WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
              AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake'))
ORDER BY oid::regprocedure::text COLLATE "C";
-- and all of it has comments (since 17, row types of views are members, too)
SELECT classid::regclass, objid
FROM pg_depend d
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
AND classid <> 'pg_type'::regclass
AND obj_description(objid, classid::regclass::name) IS NULL;
-- so are the columns of its tables and views
SELECT a.attrelid::regclass, a.attname
FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.objid AND a.attnum > 0
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
AND classid = 'pg_class'::regclass
AND a.attrelid IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'v'))
AND col_description(a.attrelid, a.attnum) IS NULL;
-- names in functions that are not C are those of pg_catalog, whatever the caller's search_path
SELECT p.oid::regprocedure
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid JOIN pg_language l ON l.oid = p.prolang
WHERE classid = 'pg_proc'::regclass AND refclassid = 'pg_extension'::regclass AND deptype = 'e'
AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
AND lanname <> 'c' AND prosqlbody IS NULL AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false);

-- increasing and distinct
CREATE TEMP TABLE ids (n int, id bigint);
INSERT INTO ids SELECT n, snowflake_nextval() FROM generate_series(1, 100000) n;
SELECT count(*), count(DISTINCT id) FROM ids;
SELECT count(*) AS falls
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM ids) i
WHERE id <= previous;

-- the timestamp is that of the call, and not ahead of the clock
SELECT clock_timestamp() AS before \gset
SELECT snowflake_nextval() AS id \gset
SELECT clock_timestamp() AS after \gset
SELECT "timestamp" BETWEEN date_trunc('milliseconds', :'before'::timestamptz) AND :'after' AS honest,
       datacenter_id IS NULL AS no_datacenter,
       worker_id = greatest(current_setting('snowflake.worker_id')::int, 0) AS own_worker,
       sequence BETWEEN 0 AND 4095 AS sequence_in_range
FROM snowflake_parse(:id);

-- an ID is not used again, whether the transaction commits or not
SELECT snowflake_nextval() AS first \gset
BEGIN;
SELECT snowflake_nextval() AS second \gset
ROLLBACK;
SELECT snowflake_nextval() AS third \gset
SELECT :first < :second AND :second < :third AS rises;

-- in read only transactions
BEGIN READ ONLY;
SELECT snowflake_nextval() > :third AS read_only;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT snowflake_nextval() > :third AS read_only;
COMMIT;

-- one ID a row, not one a query
SELECT count(DISTINCT snowflake_nextval()) FROM generate_series(1, 1000);

-- in parallel workers
CREATE TABLE parallel_source AS SELECT n FROM generate_series(1, 20000) n;
ALTER TABLE parallel_source SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS off) SELECT n, snowflake_nextval() FROM parallel_source;
SELECT count(DISTINCT id) FROM (SELECT snowflake_nextval() AS id FROM parallel_source OFFSET 0) i;
EXPLAIN (COSTS off) SELECT (snowflake_parse(n)).sequence, (snowflake_parse(n, 'leaf')).sequence, uuid_v4() FROM parallel_source;
DROP TABLE parallel_source;

-- in a schema of the user's choice, where it stays
DROP EXTENSION snowflake;
CREATE SCHEMA "Two";
CREATE EXTENSION snowflake SCHEMA "Two";
SELECT "Two".snowflake_nextval() > :third AS works,
       ("Two".snowflake_parse("Two".snowflake_nextval())).worker_id = greatest(current_setting('snowflake.worker_id')::int, 0) AS parses;
ALTER EXTENSION snowflake SET SCHEMA public;
DROP EXTENSION snowflake;
DROP SCHEMA "Two";
-- where another function has the name and the arguments of one of the extension's, a schema of its
-- own helps; one with other arguments does not matter
CREATE FUNCTION uuid_v7() RETURNS int LANGUAGE sql AS 'SELECT 1';
\set VERBOSITY sqlstate
CREATE EXTENSION snowflake;
\set VERBOSITY default
CREATE SCHEMA "Two";
CREATE EXTENSION snowflake SCHEMA "Two";
SELECT public.uuid_v7(), "Two".uuid_v7() IS NOT NULL AS uuid, "Two".snowflake_nextval() > :third AS works;
DROP EXTENSION snowflake;
DROP SCHEMA "Two";
DROP FUNCTION uuid_v7();
CREATE FUNCTION uuid_v7(text) RETURNS int LANGUAGE sql AS 'SELECT 2';
CREATE EXTENSION snowflake;
SELECT uuid_v7('now'::text), uuid_v7() IS NOT NULL AS uuid;
DROP FUNCTION uuid_v7(text);
SELECT snowflake_nextval() > :third AS works;
