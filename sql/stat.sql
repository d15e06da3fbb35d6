--
-- The view snowflake_stat
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

SELECT attname, atttypid::regtype FROM pg_attribute
WHERE attrelid = 'snowflake_stat'::regclass AND attnum > 0 ORDER BY attnum;

SELECT snowflake_nextval() AS id \gset
SELECT count(*) FROM snowflake_stat;
SELECT scheme = current_setting('snowflake.scheme') AS scheme, datacenter_id IS NULL AS no_datacenter,
       worker_id = greatest(current_setting('snowflake.worker_id')::int, 0) AS worker,
       worker_id_set = (current_setting('snowflake.worker_id') <> '-1') AS worker_set,
       last_timestamp >= snowflake_timestamp(:id) AS last, mark > :id AS mark,
       mark_timestamp = snowflake_timestamp(mark) AS mark_timestamp,
       expires_at AT TIME ZONE 'UTC' AS expires_at, stats_reset < now() AS stats_reset
FROM snowflake_stat;

-- every ID is counted, and nothing else
SELECT ids FROM snowflake_stat \gset
SELECT count(snowflake_nextval()) FROM generate_series(1, 12345);
SELECT count(*) FROM (SELECT snowflake_nextval(20000) OFFSET 0) i;
SELECT ids - :ids AS ids FROM snowflake_stat;
SELECT ids FROM snowflake_stat \gset
DO $$
BEGIN
    FOR i IN 1 .. 50 LOOP
        PERFORM snowflake_nextval(), pg_sleep(0.002);
    END LOOP;
END
$$;
SELECT ids - :ids AS ids FROM snowflake_stat;

-- a wait has taken its time (on a slow machine there is none; test/generator/wait.pl counts them)
SELECT (sequence_waits > 0) = (sequence_wait_ms > 0) AS agrees, reserves > 0 AS reserved,
       clock_waits, clock_errors
FROM snowflake_stat;

-- reset
SELECT snowflake_stat_reset();
SELECT ids, sequence_waits, sequence_wait_ms, clock_waits, clock_wait_ms, clock_errors, max_backward_ms,
       reserves, now() - stats_reset < interval '1 min' AS stats_reset, last_timestamp >= snowflake_timestamp(:id) AS last
FROM snowflake_stat;
SELECT count(snowflake_nextval()) FROM generate_series(1, 10);
SELECT ids FROM snowflake_stat;

-- anybody can read it, but not reset it
CREATE ROLE regress_snowflake_looker;
SET ROLE regress_snowflake_looker;
SELECT ids FROM snowflake_stat;
SELECT snowflake_stat_reset();
RESET ROLE;
DROP ROLE regress_snowflake_looker;

-- What a monitoring system reads is as it was released, whatever comes later: new columns are at the
-- end, and the objects of an older version get those that it has.
SELECT worker_id = greatest(current_setting('snowflake.worker_id')::int, 0) AS worker, clock_errors, stats_reset < now() AS stats_reset
FROM _snowflake_stat() AS of_1_0(
    scheme text, datacenter_id integer, worker_id integer, worker_id_set boolean, last_timestamp timestamptz,
    mark bigint, mark_timestamp timestamptz, expires_at timestamptz, lead_ms double precision, follows_clock boolean, ids bigint,
    granted_until timestamptz, registry_contact timestamptz, registry_error text, registry_error_since timestamptz,
    sequence_waits bigint, sequence_wait_ms double precision, clock_waits bigint, clock_wait_ms double precision,
    reserve_waits bigint, reserve_wait_ms double precision, grant_waits bigint, grant_wait_ms double precision,
    clock_errors bigint, mark_errors bigint, clock_steps bigint, max_backward_ms double precision,
    reserves bigint, stats_reset timestamptz);
SELECT worker_id = greatest(current_setting('snowflake.worker_id')::int, 0) AS worker
FROM _snowflake_stat() AS fewer(scheme text, datacenter_id int, worker_id int);
SELECT _snowflake_stat();
