--
-- What the planner knows of snowflake IDs: bounds that are constants are computed while a query
-- is planned, so that only the partitions that are needed are locked.  What outlives the scheme
-- of a server is in test/generator/planner.pl.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;
SET timezone = 'UTC';
SET jit = off;
CREATE SCHEMA planner;
SET search_path = planner, public;

CREATE TABLE m (id bigint PRIMARY KEY, v int) PARTITION BY RANGE (id);
DO $$
BEGIN
    FOR n IN 0 .. 99 LOOP
        EXECUTE format('CREATE TABLE m_%s PARTITION OF m FOR VALUES FROM (%s) TO (%s)', n,
            snowflake_lower_bound('2026-01-01'::timestamptz + n * interval '1 day'),
            snowflake_lower_bound('2026-01-02'::timestamptz + n * interval '1 day'));
    END LOOP;
END $$;
INSERT INTO m SELECT snowflake_make('2026-01-01'::timestamptz + n * interval '1 hour', 0, 0), n
FROM generate_series(0, 24 * 100 - 1) n;
ANALYZE m;
CREATE VIEW day AS
SELECT * FROM m WHERE id >= snowflake_lower_bound('2026-02-01') AND id < snowflake_lower_bound('2026-02-02');
CREATE FUNCTION since(t timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM m WHERE id >= snowflake_lower_bound(t) AND id < snowflake_lower_bound(until));
END $$;

-- what a query returns, and how many relations it locks: for a day the table, a partition, and its
-- index.  The partitioned index is not counted, because it is locked from PostgreSQL 16 on.
CREATE FUNCTION run(query text, OUT result bigint, OUT locks bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE query INTO result;
    SELECT count(*) INTO locks FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation'
    AND relation IN (SELECT oid FROM pg_class WHERE relkind <> 'I' AND relname ~ '^m(_\d+(_pkey)?)?$');
END $$;
CREATE FUNCTION plan(query text, options text DEFAULT 'COSTS off') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    lines text[];
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
        lines := lines || line;
    END LOOP;
    RETURN array_to_string(lines, E'\n');
END $$;

SELECT * FROM run($$SELECT count(*) FROM m WHERE id >= snowflake_lower_bound('2026-02-01') AND id < snowflake_lower_bound('2026-02-02')$$);
SELECT * FROM run($$SELECT count(*) FROM m WHERE id >= snowflake_lower_bound(timestamp '2026-02-01' AT TIME ZONE 'UTC') AND id < snowflake_lower_bound('2026-02-02')$$);
SELECT * FROM run($$SELECT count(*) FROM day$$);
SELECT * FROM run($$SELECT count(*) FROM m WHERE id BETWEEN snowflake_make('2026-02-01', 0, 0) AND snowflake_make('2026-02-01 23:59:59', 0, 0)$$);
SELECT * FROM run($$SELECT count(*) FROM m WHERE snowflake_within(id, '[2026-02-01,2026-02-02)')$$);
-- all partitions
SELECT * FROM run($$SELECT count(*) FROM (SELECT id FROM m OFFSET 0) m WHERE snowflake_within(id, '[2026-02-01,2026-02-02)')$$);
SELECT locks FROM run($$SELECT count(*) FROM m WHERE id < snowflake_lower_bound(now() - interval '1 hour')$$);
-- parameters: a plan for their values, and one for all
PREPARE p(timestamptz, timestamptz) AS
SELECT count(*) FROM m WHERE id >= snowflake_lower_bound($1) AND id < snowflake_lower_bound($2);
SET plan_cache_mode = force_custom_plan;
SELECT * FROM run($$EXECUTE p('2026-02-01', '2026-02-02')$$);
SELECT * FROM run($$SELECT since('2026-02-01', '2026-02-02')$$);
SET plan_cache_mode = force_generic_plan;
SELECT * FROM run($$EXECUTE p('2026-02-01', '2026-02-02')$$);
SELECT * FROM run($$SELECT since('2026-02-01', '2026-02-02')$$);
-- partitions are pruned when the execution begins
SELECT plan($$EXECUTE p('2026-02-01', '2026-02-02')$$) ~ 'Subplans Removed: 99\n' AS generic,
    plan($$SELECT * FROM m WHERE id < snowflake_lower_bound(now() - (now() - '2026-01-11'))$$) ~ 'Subplans Removed: 90\n' AS now;
RESET plan_cache_mode;

-- rows are estimated by the time at which the query is planned
CREATE TABLE flat AS SELECT * FROM m;
ANALYZE flat;
SELECT plan($$SELECT * FROM flat WHERE id < snowflake_lower_bound(now() - (now() - '2026-01-11'))$$, 'FORMAT json')::json
    -> 0 -> 'Plan' ->> 'Plan Rows' ~ '^2[1-6]\d$' AS about_240;
-- what is evaluated by time needs no index on it
SET enable_seqscan = off;
SELECT plan($$SELECT * FROM m_31 WHERE snowflake_within(id, tstzrange(now() - interval '1 day', NULL))$$)
    ~ 'Index Cond: .*id >= _snowflake_end_id\(tstzrange\(\(now' AS index;
RESET enable_seqscan;
-- parallel workers have the constant
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT plan('SELECT count(*) FROM day') ~ 'Gather.*Parallel Seq Scan on m_31 .*Filter: \(\(id >= ''\d+''::bigint\)' AS parallel;
SELECT count(*) FROM day;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET enable_indexonlyscan;

-- The right to call a function is checked when its result is computed, and a plan with the
-- result does not outlive it, even if the query does not name the function.
CREATE ROLE regress_reader;
GRANT USAGE ON SCHEMA planner TO regress_reader;
GRANT SELECT ON m, day TO regress_reader;
SET ROLE regress_reader;
PREPARE r AS SELECT count(*) FROM m WHERE snowflake_within(id, '[2026-02-01,2026-02-02)');
EXECUTE r;
RESET ROLE;
\set ON_ERROR_ROLLBACK on
BEGIN;
REVOKE EXECUTE ON FUNCTION snowflake_lower_bound(timestamptz), _snowflake_end_id(tstzrange, boolean) FROM PUBLIC;
SET ROLE regress_reader;
SELECT count(*) FROM m WHERE id >= snowflake_lower_bound('2026-02-01');
SELECT count(*) FROM m WHERE id > snowflake_lower_bound('2026-02-01') AND false;
EXECUTE r;
ROLLBACK;
\set ON_ERROR_ROLLBACK off
DEALLOCATE r;

-- A call that fails does so when it is reached, and not while the query is planned.
CREATE FUNCTION fails(call text, type text, value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    constant text := replace(call, '%', format('CAST(%s AS %s)', value, type));
BEGIN
    EXECUTE format('SELECT count(%s) FROM generate_series(1, 1) WHERE false', constant);
    EXECUTE format('SELECT CASE WHEN v < 0 THEN %s IS NULL END FROM generate_series(1, 1) v', constant);
    EXECUTE format('PREPARE q(%s) AS SELECT %s FROM generate_series(1, 1) v WHERE v < 0', type, replace(call, '%', '$1'));
    EXECUTE format('EXECUTE q(%s)', value);
    DEALLOCATE q;
    BEGIN
        EXECUTE 'SELECT ' || constant;
        RETURN 'does not fail';
    EXCEPTION WHEN OTHERS THEN
        RETURN SQLSTATE;
    END;
END $$;
SET plan_cache_mode = force_custom_plan;
SELECT call, type, string_agg(value || ' ' || fails(call, type, value), ', ' ORDER BY i) FROM (VALUES
    (1, 'snowflake_timestamp(%)', 'bigint', '{-1,-9223372036854775808}'::text[]),
    (2, 'snowflake_lower_bound(%)', 'timestamptz', $${'infinity','-infinity','2016-10-31 23:59:59.999999','2086-07-08 15:47:35.552','294276-12-31','4713-01-01 BC'}$$),
    (3, 'snowflake_make(%, 0, 0)', 'timestamptz', $${'infinity','-infinity','2016-10-31 23:59:59.999999','2086-07-08 15:47:35.552','294276-12-31','4713-01-01 BC'}$$),
    (4, $$snowflake_make('2026-01-01', %, 0)$$, 'int', '{-1,1024,2147483647,-2147483648}'),
    (5, $$snowflake_make('2026-01-01', 0, %)$$, 'bigint', '{-1,4096,9223372036854775807,-9223372036854775808}'),
    (6, $$snowflake_make('2026-01-01', 0, 0, %)$$, 'int', '{-1,1,2147483647,-2147483648}'),
    (7, $$snowflake_make('2026-01-01', coalesce(%, NULL), 0)$$, 'int', '{"NULL"}')) c(n, call, type, all_values),
    unnest(all_values) WITH ORDINALITY v(value, i) GROUP BY n, call, type ORDER BY n;
RESET plan_cache_mode;
PREPARE q(bigint) AS SELECT snowflake_timestamp($1) WHERE $1 >= 0;
EXECUTE q(-1);
SELECT snowflake_make(NULL, 0, 0) IS NULL AND snowflake_make('2026-01-01', 0, NULL) IS NULL AND snowflake_timestamp(NULL) IS NULL AS nulls;

-- What does not fail is computed, up to the limits.
CREATE VIEW calls AS
SELECT unnest(ARRAY[
    'snowflake_timestamp(0)', 'snowflake_timestamp(9223372036854775807)',
    $$snowflake_lower_bound('2016-11-01')$$, $$snowflake_lower_bound('2086-07-08 15:47:35.551')$$,
    $$snowflake_make('2016-11-01', 0, 0)$$, $$snowflake_make('2086-07-08 15:47:35.551', 1023, 4095)$$,
    $$snowflake_make('2026-01-01', 0, 0, 0)$$, $$snowflake_make('2026-01-01', 0, NULL)$$]) AS call
UNION ALL
SELECT format('_snowflake_end_id(%s, %s)', times, of_last) FROM unnest(ARRAY['false', 'true']) of_last,
    unnest(ARRAY[$$'empty'$$, 'NULL', $$'(,)'$$, $$'[infinity,]'$$, $$'[-infinity,infinity]'$$,
    $$'[294276-12-31,)'$$, $$'(,4713-01-01 BC]'$$]) times;
SELECT count(*) AS calls,
    count(*) FILTER (WHERE plan(format('SELECT %s FROM generate_series(1, 1)', call), 'VERBOSE, COSTS off') ~ 'snowflake_') AS not_computed
FROM calls;

-- What outlives the scheme may not depend on it.
CREATE INDEX ON m (id) WHERE id > snowflake_lower_bound('2026-02-01');
CREATE TABLE g (id bigint, x bigint GENERATED ALWAYS AS (snowflake_lower_bound('2026-02-01')) STORED);
CREATE TABLE g (id bigint, x bigint GENERATED ALWAYS AS (snowflake_make('2026-02-01', 1, 0, NULL, 'shardingsphere')) STORED);
INSERT INTO g VALUES (1);

SET client_min_messages = warning;
DROP SCHEMA planner CASCADE;
DROP ROLE regress_reader;
