--
-- uuid_v4()
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

-- more than one pool of random bytes
CREATE TEMP TABLE uuids AS SELECT uuid_v4() AS u FROM generate_series(1, 20000);
SELECT count(DISTINCT u) FROM uuids;
-- version and variant
SELECT count(*) AS wrong FROM uuids
WHERE u::text !~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$';
-- each of the other bits is set in half of them: within 10 standard deviations
WITH bits AS (
    SELECT b, avg(get_bit(uuid_send(u), b)) AS share
    FROM uuids, generate_series(0, 127) b GROUP BY b)
SELECT count(*) FILTER (WHERE abs(share - 0.5) < 10 * 0.5 / sqrt(20000)) AS random,
       count(*) FILTER (WHERE share IN (0, 1)) AS fixed
FROM bits;
-- one for each row in every kind of query
SELECT count(DISTINCT uuid_v4()) FROM generate_series(1, 1000);
CREATE TEMP TABLE u (id uuid PRIMARY KEY DEFAULT uuid_v4(), v int);
INSERT INTO u (v) SELECT n FROM generate_series(1, 1000) n;
SELECT count(DISTINCT id) FROM u;

--
-- uuid_v7()
--
-- all increase, over more than one pool of random bytes, in every sort order
CREATE TEMP TABLE v7 AS SELECT n, uuid_v7() AS u FROM generate_series(1, 20000) n;
SELECT count(*) FILTER (WHERE u <= before) AS falls,
       count(*) FILTER (WHERE u::text COLLATE "C" <= before::text) AS text_falls,
       count(*) FILTER (WHERE uuid_send(u) <= uuid_send(before)) AS byte_falls
FROM (SELECT u, lag(u) OVER (ORDER BY n) AS before FROM v7) t;
-- version and variant
SELECT count(*) AS wrong FROM v7
WHERE u::text !~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$';
-- what is below the default scheme's 12 bits of sequence is random
WITH bits AS (
    SELECT b, avg(get_bit(uuid_send(u), b)) AS share
    FROM v7, generate_series(64, 127) b GROUP BY b)
SELECT count(*) FILTER (WHERE abs(share - 0.5) < 10 * 0.5 / sqrt(20000)) AS random,
       count(*) FILTER (WHERE share IN (0, 1)) AS fixed
FROM bits;
-- it has the time and sequence of an ID between those before and after it
CREATE TEMP TABLE between_ids AS
SELECT snowflake_nextval() AS a, uuid_v7() AS u, snowflake_nextval() AS b FROM generate_series(1, 20000);
SELECT count(*) FILTER (WHERE id BETWEEN a + 1 AND b - 1) AS between
FROM (SELECT a, b, snowflake_make(uuid_timestamp(u), (snowflake_parse(a)).worker_id,
                                  ('x' || substr(u::text, 16, 3))::bit(12)::bigint) AS id
      FROM between_ids) t;
-- the time is that of the call
SELECT bool_and(uuid_timestamp(u) BETWEEN start - interval '1 ms' AND clock_timestamp())
FROM (SELECT clock_timestamp() AS start) s, LATERAL (SELECT uuid_v7() AS u FROM generate_series(1, 1000)) t;
-- one for each row in every kind of query
SELECT count(DISTINCT uuid_v7()) FROM generate_series(1, 1000);
CREATE TEMP TABLE u7 (id uuid PRIMARY KEY DEFAULT uuid_v7(), v int);
INSERT INTO u7 (v) SELECT n FROM generate_series(1, 1000) n;
SELECT count(*) AS falls FROM (SELECT id, lag(id) OVER (ORDER BY v) AS before FROM u7) t WHERE id <= before;
-- it is not a snowflake ID of this session
SELECT snowflake_nextval() AS id \gset
SELECT uuid_v7() > '00000000-0000-7000-8000-000000000000' AS made, snowflake_currval() = :id AS same;

-- of a time: to the millisecond, in the order of microseconds, and otherwise random
CREATE TEMP TABLE past AS
SELECT t, uuid_v7(t) AS u
FROM (SELECT timestamptz '2019-02-03 04:05:06.998+00' + n * interval '1 us' AS t FROM generate_series(0, 9999) n) s;
SELECT count(*) FILTER (WHERE uuid_timestamp(u) <> date_trunc('milliseconds', t)) AS wrong_time,
       count(*) FILTER (WHERE u <= before) AS falls,
       count(*) FILTER (WHERE u::text !~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$') AS wrong
FROM (SELECT *, lag(u) OVER (ORDER BY t) AS before FROM past) p;
WITH bits AS (
    SELECT b, avg(get_bit(uuid_send(u), b)) AS share
    FROM past, generate_series(64, 127) b GROUP BY b)
SELECT count(*) FILTER (WHERE abs(share - 0.5) < 10 * 0.5 / sqrt(10000)) AS random,
       count(*) FILTER (WHERE share IN (0, 1)) AS fixed
FROM bits;
SELECT count(DISTINCT uuid_v7('2019-02-03 04:05:06+00')) FROM generate_series(1, 1000);
SELECT left(uuid_v7('1970-01-01 00:00+00')::text, 20) ~ '^00000000-0000-7000-[89ab]' AS first,
       left(uuid_v7('10889-08-02 05:31:50.655999+00')::text, 20) ~ '^ffffffff-ffff-7ffb-[89ab]' AS last,
       uuid_v7(NULL) IS NULL AS strict;
SELECT uuid_v7('1969-12-31 23:59:59.9999+00');
SELECT uuid_v7('10889-08-02 05:31:50.656+00');
SELECT uuid_v7('infinity');

--
-- uuid_lower_bound()
--
SELECT uuid_lower_bound('1970-01-01 00:00+00'), uuid_lower_bound('2022-02-22 19:22:22+00'),
       uuid_lower_bound('10889-08-02 05:31:50.655+00');
SELECT count(*) AS wrong
FROM (SELECT uuid_v7() AS u FROM generate_series(1, 200)) i,
     LATERAL (SELECT uuid_timestamp(u) + (n - 2) * interval '500 us' AS t FROM generate_series(0, 4) n) x
WHERE (uuid_timestamp(u) >= t) <> (u >= uuid_lower_bound(t));
SELECT uuid_lower_bound('1969-12-31 23:59:59.9999+00');
SELECT uuid_lower_bound('10889-08-02 05:31:50.6551+00');
SELECT uuid_lower_bound('infinity');
SELECT uuid_lower_bound('-infinity');
CREATE TEMP TABLE by_time (id uuid PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TEMP TABLE by_time_2025 PARTITION OF by_time
    FOR VALUES FROM (uuid_lower_bound('2025-01-01 00:00+00')) TO (uuid_lower_bound('2026-01-01 00:00+00'));
CREATE TEMP TABLE by_time_2026 PARTITION OF by_time
    FOR VALUES FROM (uuid_lower_bound('2026-01-01 00:00+00')) TO (uuid_lower_bound('2027-01-01 00:00+00'));
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT * FROM by_time WHERE id >= uuid_lower_bound('2026-02-01 00:00+00');
RESET enable_bitmapscan;

--
-- uuid_timestamp()
--
CREATE TEMP TABLE vectors (library text, uuid uuid, unix_ms bigint, "timestamp" timestamptz, version int);
\copy vectors FROM PROGRAM 'cat "$PG_ABS_SRCDIR/test/vectors/uuidv7.csv"' (FORMAT csv, HEADER)
SELECT count(*), count(*) FILTER (WHERE uuid_timestamp(uuid) IS DISTINCT FROM "timestamp") AS wrong,
       count(*) FILTER (WHERE uuid_timestamp(uuid) IS DISTINCT FROM to_timestamp(unix_ms / 1000.0)) AS wrong_ms
FROM vectors;
-- RFC 9562, A.1 to A.6, B.1 and B.2; the Nil and the Max UUID; no variant of RFC 9562
SET timezone = 'UTC';
SELECT n AS of, u, uuid_timestamp(u) FROM (VALUES
    (1, uuid 'C232AB00-9414-11EC-B3C8-9F6BDECED846'),
    (2, '000003e8-9414-21ec-b300-9f6bdeced846'),
    (3, '5df41881-3aed-3515-88a7-2f4a814cf09e'),
    (4, '919108f7-52d1-4320-9bac-f847db4148a8'),
    (5, '2ed6657d-e927-568b-95e1-2665a8aea6a2'),
    (6, '1EC9414C-232A-6B00-B3C8-9F6BDECED846'),
    (7, '017F22E2-79B0-7CC3-98C4-DC0C0C07398F'),
    (8, '2489E9AD-2EE2-8E00-8EC9-32D5F69181C0'),
    (0, '00000000-0000-0000-0000-000000000000'),
    (15, 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    (1, 'C232AB00-9414-11EC-33C8-9F6BDECED846'),
    (7, '017F22E2-79B0-7CC3-D8C4-DC0C0C07398F')) v(n, u);
-- first and last of each version, and microseconds
SELECT u, uuid_timestamp(u) FROM (VALUES
    (uuid '00000000-0000-1000-8000-000000000000'),
    ('ffffffff-ffff-1fff-bfff-ffffffffffff'),
    ('00000000-0000-6000-8000-000000000000'),
    ('ffffffff-ffff-6fff-bfff-ffffffffffff'),
    ('00000000-0000-7000-8000-000000000000'),
    ('ffffffff-ffff-7fff-bfff-ffffffffffff'),
    ('c232ab13-9414-11ec-8000-000000000000'),
    ('1ec9414c-232a-6b13-8000-000000000000')) v(u);
RESET timezone;
SELECT uuid_timestamp(NULL) IS NULL AS strict;
-- a ULID has no version, and looks like one of a UUID by chance: docs/keys.md has what is
-- right for all of them
SELECT uuid_timestamp(id) = time AS same, time = '2024-08-13 14:36:52.926+00' AS ulid
FROM unnest('{01914c2b-9f3e-1a2b-8c3d-4e5f60718293, 01914c2b-9f3e-6a2b-8c3d-4e5f60718293,
              01914c2b-9f3e-0a2b-8c3d-4e5f60718293, 01914c2b-9f3e-7a2b-8c3d-4e5f60718293}'::uuid[]) id,
     LATERAL (SELECT timestamptz 'epoch' + ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint * interval '1 ms' AS time) u;
