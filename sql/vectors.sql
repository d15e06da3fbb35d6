--
-- IDs that 40 libraries made, and published ones: see test/vectors/README.md
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

CREATE TEMP TABLE vectors (
    library text, version text, configuration text, scheme text, id bigint,
    unix_ms bigint, datacenter int, worker int, sequence bigint, expected_from text);
\copy vectors FROM PROGRAM 'cat "$PG_ABS_SRCDIR/test/vectors/snowflake_ids.csv"' (FORMAT csv, HEADER)
CREATE TEMP TABLE published (
    system text, source text, scheme text, id bigint,
    "timestamp" timestamptz, datacenter int, worker int, sequence bigint, note text);
\copy published FROM PROGRAM 'cat "$PG_ABS_SRCDIR/test/vectors/published_ids.csv"' (FORMAT csv, HEADER)
SELECT (SELECT count(*) FROM vectors) AS vectors, (SELECT count(*) FROM published) AS published;

-- schemes that the file has as items, by name too
INSERT INTO vectors
SELECT v.library, v.version, v.configuration, n.name, v.id, v.unix_ms, v.datacenter, v.worker, v.sequence, v.expected_from
FROM vectors v
    JOIN (VALUES ('sonyflake2', 'sonyflake,epoch=2025-01-01'),
                 ('cosid', 'epoch=1577203200000,timestamp=41,worker=10,sequence=12'),
                 ('tsid', 'epoch=2020-01-01,timestamp=42,worker=10,sequence=12'),
                 ('yitter', 'epoch=1582136402000,timestamp=51,worker=6,sequence=6'),
                 ('snowflaked', 'epoch=0,timestamp=41,worker=10,sequence=12'),
                 ('seata', 'epoch=1588435200000,worker=10,timestamp=41,sequence=12')
         ) n(name, scheme) USING (scheme);
SELECT s.name, count(*) > 0 AS tried
FROM snowflake_schemes() s
    LEFT JOIN (SELECT scheme FROM vectors UNION ALL SELECT scheme FROM published) v ON v.scheme = s.name
WHERE s.name <> 'javascript'  -- which is of no other system
GROUP BY 1 ORDER BY 1;

-- parsed, and composed again
SELECT library, count(*) AS ids,
       count(*) FILTER (WHERE (p."timestamp", p.datacenter_id, p.worker_id, p.sequence)
                        IS DISTINCT FROM (e."timestamp", datacenter, worker, v.sequence)) AS wrong,
       count(*) FILTER (WHERE snowflake_make(e."timestamp", worker, v.sequence, datacenter, scheme)
                        IS DISTINCT FROM id) AS made_wrong
FROM vectors v,
    LATERAL (SELECT timestamptz 'epoch' + unix_ms * interval '1 ms' AS "timestamp") e,
    LATERAL snowflake_parse(id, scheme) p
GROUP BY 1 ORDER BY library COLLATE "C";
SELECT system, count(*) AS ids,
       count(*) FILTER (WHERE (p."timestamp", p.datacenter_id, p.worker_id, p.sequence)
                        IS DISTINCT FROM (v."timestamp", datacenter, worker, v.sequence)) AS wrong,
       count(*) FILTER (WHERE snowflake_make(v."timestamp", worker, v.sequence, datacenter, scheme)
                        IS DISTINCT FROM id) AS made_wrong
FROM published v, LATERAL snowflake_parse(id, scheme) p
GROUP BY 1 ORDER BY system COLLATE "C";

-- IDs of which only the time is known
SELECT count(*) AS ids, count(*) FILTER (WHERE snowflake_timestamp(id, known) IS DISTINCT FROM v."timestamp") AS wrong
FROM published v
    JOIN (VALUES ('LinkedIn', 'epoch=1970-01-01,timestamp=41,unused=22'),
                 ('TikTok', 'epoch=1970-01-01,tick=1s,timestamp=32,unused=32'),
                 ('Mastodon', 'epoch=1970-01-01,timestamp=48,unused=16')) k(system, known) USING (system);
DROP TABLE vectors, published;
