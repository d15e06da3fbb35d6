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
-- one a row in every way to ask
SELECT count(DISTINCT uuid_v4()) FROM generate_series(1, 1000);
CREATE TEMP TABLE u (id uuid PRIMARY KEY DEFAULT uuid_v4(), v int);
INSERT INTO u (v) SELECT n FROM generate_series(1, 1000) n;
SELECT count(DISTINCT id) FROM u;
