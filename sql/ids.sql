--
-- Blocks of IDs, times, bounds, IDs composed of parts, named schemes
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

-- currval, before and after the first ID of a session
SELECT snowflake_currval();
SELECT snowflake_nextval() AS id \gset
SELECT snowflake_currval() = :id AS same;
BEGIN;
SELECT snowflake_nextval() AS id \gset
ROLLBACK;
SELECT snowflake_currval() = :id AS same;

-- it is discarded like that of sequences, not otherwise
DISCARD PLANS;
DISCARD TEMP;
SELECT snowflake_currval() = :id AS same;
BEGIN;
DISCARD ALL;
ROLLBACK;
SELECT snowflake_currval() = :id AS same;
DISCARD SEQUENCES;
SELECT snowflake_currval();
SELECT snowflake_nextval() AS id \gset
SELECT snowflake_currval() = :id AS same;
DO 'BEGIN DISCARD SEQUENCES; END';
SELECT snowflake_currval();
SELECT snowflake_nextval() AS id \gset
DISCARD ALL;
SELECT snowflake_currval();

SET timezone = 'UTC';
SET datestyle = 'ISO';

-- blocks
SELECT count(*), count(DISTINCT id) FROM snowflake_nextval(1) id;
CREATE TEMP TABLE ids (n serial, id bigint);
INSERT INTO ids (id) SELECT snowflake_nextval(100000);
INSERT INTO ids (id) SELECT id FROM snowflake_nextval(20000) id;
INSERT INTO ids (id) SELECT snowflake_nextval() FROM generate_series(1, 1000);
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= previous) AS falls,
       count(*) FILTER (WHERE (snowflake_parse(id)).worker_id <> greatest(current_setting('snowflake.worker_id')::int, 0)) AS foreign_ids
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM ids) i;
SELECT snowflake_currval() = max(id) AS last FROM ids;
SELECT max(snowflake_nextval) = snowflake_currval() AS last FROM snowflake_nextval(5000);
-- a block that is not read to the end
SELECT count(*) FROM (SELECT snowflake_nextval(1000000) LIMIT 10) i;
SELECT snowflake_nextval(0);
SELECT snowflake_nextval(-1);
SELECT snowflake_nextval(NULL);

-- the time of an ID
SELECT snowflake_timestamp(id) = (snowflake_parse(id))."timestamp" AS same FROM snowflake_nextval() id;
SELECT snowflake_timestamp(175928847299117063, 'discord');
SELECT snowflake_timestamp(-1);
SELECT snowflake_timestamp(-1, 'leaf');
SELECT snowflake_timestamp(1, 'nobody');
SELECT snowflake_timestamp(NULL), snowflake_timestamp(NULL, 'leaf'), snowflake_timestamp(1, NULL);

-- the smallest ID of a time
SELECT snowflake_lower_bound('2016-11-01'), snowflake_lower_bound('2016-11-01 00:00:00.001'),
       snowflake_lower_bound('2016-11-01 00:00:00.0011') >> 22 AS rounded_up,
       snowflake_lower_bound('2086-07-08 15:47:35.551') >> 22 = (1::bigint << 41) - 1 AS last_tick;
SELECT snowflake_lower_bound('2020-01-01', 'sonyflake'), snowflake_lower_bound('2020-01-01', 'baidu');
SELECT count(*) AS wrong
FROM (SELECT snowflake_nextval() AS id, pg_sleep(0.0005) FROM generate_series(1, 200)) i,
     LATERAL (SELECT clock_timestamp() - (random() * 200) * interval '1 ms' AS t OFFSET 0) x
WHERE (snowflake_timestamp(id) >= t) <> (id >= snowflake_lower_bound(t));
SELECT snowflake_lower_bound('2016-10-31 23:59:59.999');
SELECT snowflake_lower_bound('2086-07-08 15:47:35.552');
SELECT snowflake_lower_bound('2086-07-08 15:47:35.5511');
SELECT snowflake_lower_bound('infinity');
SELECT snowflake_lower_bound('-infinity', 'leaf');
SELECT snowflake_lower_bound('2090-01-01', 'discord');
SELECT snowflake_lower_bound('2020-01-01', 'worker=10,timestamp=41,sequence=12');
SELECT snowflake_lower_bound('2020-01-01', 'unused=1,timestamp=41,sequence=12');
SELECT snowflake_lower_bound('2020-01-01 00:00:00.0000001', 'epoch=0,tick=1us,timestamp=53,worker=10') >> 10 AS us;
SELECT snowflake_lower_bound(NULL), snowflake_lower_bound(NULL, 'leaf'), snowflake_lower_bound('2020-01-01', NULL);

-- the IDs of a range of times; a time that the scheme does not have is no error
SELECT times, _snowflake_end_id(times, false) AS first, _snowflake_end_id(times, true) AS last
FROM unnest('{empty, "(,)", "[2010-01-01,2012-01-01)", "[2010-01-01,2016-11-01]", "[2016-11-01,2016-11-01]",
              "(2016-11-01,2016-11-01 00:00:00.001]", "(2016-11-01 00:00:00.0001,2016-11-01 00:00:00.0009)",
              "[2086-07-08 15:47:35.551,)", "(2086-07-08 15:47:35.551,)", "[2090-01-01,infinity)",
              "[-infinity,infinity]"}'::tstzrange[]) times;
SELECT snowflake_within(NULL, '[2024-01-01,2025-01-01)'), snowflake_within(1, NULL), snowflake_within(1, 'empty'),
       snowflake_within(-1, '(,)');
SELECT count(*) AS wrong
FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 200)) i,
     LATERAL (SELECT snowflake_timestamp(id) + (n - 2) * interval '500 us' AS a,
                     snowflake_timestamp(id) + (m - 2) * interval '500 us' AS b
              FROM generate_series(0, 4) n, generate_series(0, 4) m WHERE n <= m) t,
     unnest('{[],[),(],()}'::text[]) bounds
WHERE snowflake_within(id, tstzrange(a, b, bounds)) <> (snowflake_timestamp(id) <@ tstzrange(a, b, bounds));

-- rows by time are found through the primary key, and partitions have bounds by time
CREATE TABLE made (id bigint PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE made_old PARTITION OF made FOR VALUES FROM (MINVALUE) TO (snowflake_lower_bound('2024-01-01'));
CREATE TABLE made_2024 PARTITION OF made
    FOR VALUES FROM (snowflake_lower_bound('2024-01-01')) TO (snowflake_lower_bound('2025-01-01'));
CREATE TABLE made_new PARTITION OF made
    FOR VALUES FROM (snowflake_lower_bound('2025-01-01', 'shardingsphere')) TO (MAXVALUE);
INSERT INTO made SELECT snowflake_make('2023-07-01'::timestamptz + n * interval '1 hour', 1, 0), n
FROM generate_series(0, 23999) n;
SELECT tableoid::regclass, count(*), min(snowflake_timestamp(id)), max(snowflake_timestamp(id))
FROM made GROUP BY 1 ORDER BY 1;
ANALYZE made;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT * FROM made
WHERE id >= snowflake_lower_bound('2024-03-01', 'shardingsphere') AND id < snowflake_lower_bound('2024-03-03', 'shardingsphere');
-- the planner knows the server's scheme, too
EXPLAIN (COSTS off) SELECT * FROM made
WHERE id >= snowflake_lower_bound('2024-03-01') AND id < snowflake_lower_bound('2024-03-03');
EXPLAIN (COSTS off) SELECT * FROM made
WHERE id BETWEEN snowflake_make('2024-03-01', 1, 0) AND snowflake_make('2024-03-03', 1, 0);
EXPLAIN (COSTS off) SELECT * FROM made WHERE snowflake_within(id, '[2024-03-01,2024-03-03)');
SELECT count(*), min(snowflake_timestamp(id)), max(snowflake_timestamp(id)) FROM made
WHERE snowflake_within(id, '[2024-03-01,2024-03-03)');
EXPLAIN (COSTS off) SELECT id FROM made_new WHERE snowflake_timestamp(4194304) < '2020-01-01';
SET plan_cache_mode = force_generic_plan;
PREPARE by_time(timestamptz, timestamptz) AS
    SELECT count(*), min(snowflake_timestamp(id)), max(snowflake_timestamp(id)) FROM made
    WHERE id >= snowflake_lower_bound($1) AND id < snowflake_lower_bound($2);
EXPLAIN (COSTS off) EXECUTE by_time('2024-03-01', '2024-03-03');
EXECUTE by_time('2024-03-01', '2024-03-03');
DROP TABLE made;

-- the inverse of parse
SELECT snowflake_make('2020-08-09 07:01:19.092', 1, 4095, 1, 'twitter,epoch=1596211200000');
SELECT snowflake_make('2016-04-30 11:18:25.796', 0, 7, 1, 'discord');
SELECT snowflake_make('2016-11-01 00:00:00.0019', 0, 0) >> 22 AS rounded_down;
SELECT snowflake_make(NULL, 1, 1), snowflake_make('2020-01-01', 1, NULL);
SELECT snowflake_make('2020-01-01', NULL, 1);
SELECT snowflake_make('2020-01-01', 1, 1, NULL, 'twitter');
SELECT snowflake_make('2020-01-01', NULL, 1, NULL, 'mastodon') > 0 AS needs_no_worker;
SELECT snowflake_make('2020-01-01', 1024, 1);
SELECT snowflake_make('2020-01-01', -1, 1);
SELECT snowflake_make('2020-01-01', 1, 4096);
SELECT snowflake_make('2020-01-01', 1, 9223372036854775807);
SELECT snowflake_make('2020-01-01', 1, 4294967295, NULL, 'epoch=0,tick=1s,timestamp=31,sequence=32,worker=1') & 8589934591;
SELECT snowflake_make('2020-01-01', 1, 1, NULL, 'timestamp=41,worker=4');
SELECT snowflake_make('2020-01-01', 1, 1, 1);
SELECT snowflake_make('2010-01-01', 1, 1);
SELECT snowflake_make('2100-01-01', 1, 1);
SELECT snowflake_make('2020-01-01', 1, 1, NULL, 'nobody');
SELECT snowflake_make('2020-01-01', 1, 1, NULL, NULL), snowflake_make(NULL, 1, 1, NULL, 'twitter');
-- for any ID of any named scheme
SELECT setseed(0.5);
SELECT name, count(*) AS ids, count(*) FILTER (WHERE made IS DISTINCT FROM id) AS wrong
FROM snowflake_schemes() s,
     generate_series(1, 2000) n,
     LATERAL (SELECT (floor(random() * 2 ^ 32)::bigint << 32) | floor(random() * 2 ^ 32)::bigint + n * 0 AS any_bits) r,
     LATERAL (SELECT CASE WHEN n = 1 THEN 0
                          WHEN s.name IN ('discord', 'instagram', 'mastodon', 'tsid', 'pgactive') THEN any_bits
                          WHEN s.name = 'javascript' THEN any_bits & 9007199254740991
                          ELSE any_bits & 9223372036854775807 END AS id) i,
     LATERAL snowflake_parse(i.id, s.name) p,
     LATERAL (SELECT snowflake_make(p."timestamp", p.worker_id, p.sequence, p.datacenter_id, s.name) AS made) m
GROUP BY name ORDER BY name;

-- the named schemes
SELECT * FROM snowflake_schemes();
-- indexes are built on the names: a text that was released never changes
WITH released(name, scheme) AS (VALUES
    ('shardingsphere', 'epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12'),
    ('twitter', 'epoch=1288834974657,tick=1ms,timestamp=41,datacenter=5,worker=5,sequence=12'),
    ('leaf', 'epoch=1288834974657,tick=1ms,timestamp=41,worker=10,sequence=12'),
    ('discord', 'epoch=2015-01-01,tick=1ms,timestamp=42,datacenter=5,worker=5,sequence=12'),
    ('instagram', 'epoch=1314220021721,tick=1ms,timestamp=41,worker=13,sequence=10'),
    ('sonyflake', 'epoch=2014-09-01,tick=10ms,timestamp=39,sequence=8,worker=16'),
    ('pgedge', 'epoch=2023-01-01,tick=1ms,timestamp=41,worker=10,sequence=12'),
    ('baidu', 'epoch=1463673600000,tick=1s,timestamp=28,worker=22,sequence=13'),
    ('mastodon', 'epoch=1970-01-01,tick=1ms,timestamp=48,sequence=16'),
    ('hazelcast', 'epoch=2018-01-01,tick=1ms,timestamp=41,sequence=6,worker=16'),
    ('sonyflake2', 'epoch=2025-01-01,tick=10ms,timestamp=39,sequence=8,worker=16'),
    ('cosid', 'epoch=1577203200000,tick=1ms,timestamp=41,worker=10,sequence=12'),
    ('tsid', 'epoch=2020-01-01,tick=1ms,timestamp=42,worker=10,sequence=12'),
    ('yitter', 'epoch=1582136402000,tick=1ms,timestamp=51,worker=6,sequence=6'),
    ('snowflaked', 'epoch=1970-01-01,tick=1ms,timestamp=41,worker=10,sequence=12'),
    ('seata', 'epoch=1588435200000,tick=1ms,worker=10,timestamp=41,sequence=12'),
    ('pgedge1', 'epoch=2023-01-01,tick=1ms,timestamp=41,sequence=12,worker=10'),
    ('pgactive', 'epoch=1475796139634,tick=1ms,timestamp=40,worker=10,sequence=14'),
    ('pgdog', 'epoch=1764184395000,tick=1ms,timestamp=41,worker=10,sequence=12'),
    ('javascript', 'epoch=2026-01-01,tick=10ms,timestamp=37,worker=6,sequence=10'))
SELECT count(*) AS names, count(*) FILTER (WHERE s.scheme IS DISTINCT FROM r.scheme) AS changed
FROM released r FULL JOIN snowflake_schemes() s USING (name);
-- their ranges are those of parse
SELECT count(*) AS wrong FROM snowflake_schemes()
WHERE snowflake_timestamp(0, scheme) <> first_time
   OR snowflake_timestamp(CASE WHEN name IN ('discord', 'instagram', 'mastodon', 'tsid', 'pgactive') THEN -1
                               WHEN name = 'javascript' THEN 9007199254740991
                               ELSE 9223372036854775807 END, name) <> last_time;
-- the greatest ID for JavaScript is the greatest integer that a Number there has
SELECT snowflake_make(last_time, 63, 1023, NULL, name) FROM snowflake_schemes() WHERE name = 'javascript';
SELECT snowflake_timestamp(9007199254740992, 'javascript');
-- IDs that the systems published: Discord's and Mastodon's API references (the
-- latter's hash the low bits, and the status was made 52 ms after its ID),
-- pgEdge's manual, the README of uid-generator (made with another epoch), the
-- recipe of Instagram's engineers (time 1387263000, shard 1341, sequence 5001 % 1024)
SELECT * FROM snowflake_parse(175928847299117063, 'discord');
SELECT snowflake_timestamp(103270115826048975, 'mastodon');
SELECT * FROM snowflake_parse(136169504773242881, 'pgedge1');
-- two of Seata, of one report (its issue 4898): before 1.4.2, with the begin time
-- 1661951863312, and after; and Twitter's last number without a time
SELECT *, snowflake_timestamp(308351234998353920,
           'epoch=1588435200000,timestamp=41,worker=10,sequence=12') =
       to_timestamp(1661951863.312) AS begin_time
FROM snowflake_parse(308351234998353920, 'epoch=1588435200000,timestamp=41,worker=10,sequence=12');
SELECT * FROM snowflake_parse(5674781293195218178, 'seata');
SELECT snowflake_timestamp(29700859247, 'twitter');
SELECT worker_id, sequence FROM snowflake_parse(180363646902239241, 'baidu');
SELECT * FROM snowflake_parse((1387263000::bigint << 23) | (1341 << 10) | (5001 % 1024), 'instagram');
SELECT * FROM snowflake_parse((1::bigint << 24) | (2 << 16) | 3, 'sonyflake');
SELECT * FROM snowflake_parse((1::bigint << 22) | (2 << 16) | 3, 'hazelcast');
-- the 64th bit is like any other if the scheme has it
SELECT * FROM snowflake_parse(-1, 'discord');
SELECT * FROM snowflake_parse(-9223372036854775808, 'instagram');

-- where a block takes whole ticks, it leaves no number out
SELECT count(*) - count(*) FILTER (WHERE ids = 4096) <= 2 AS full_ticks
FROM (SELECT count(*) AS ids FROM snowflake_nextval(200000) id GROUP BY snowflake_timestamp(id)) t;
-- one of eight minutes can be cancelled
\set VERBOSITY sqlstate
SET statement_timeout = '200ms';
SELECT count(*) FROM (SELECT snowflake_nextval(2000000000) OFFSET 0) i;
