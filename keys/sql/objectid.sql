--
-- ObjectIds
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_keys;
RESET client_min_messages;

-- in a session: 12 bytes, the same random bytes, a counter without gaps
CREATE TEMP TABLE objectids AS SELECT n, objectid() AS id FROM generate_series(1, 20000) n;
SELECT count(DISTINCT id), min(length(id)), max(length(id)), count(DISTINCT substr(id, 5, 5)) AS randoms FROM objectids;
SELECT count(*) AS gaps
FROM (SELECT c, lag(c) OVER (ORDER BY n) AS before
      FROM objectids, LATERAL (SELECT (get_byte(id, 9) << 16) | (get_byte(id, 10) << 8) | get_byte(id, 11)) v(c)) t
WHERE c <> (before + 1) % 16777216;
-- the time is that of the call
SELECT count(*) AS wrong FROM objectids
WHERE objectid_timestamp(id) NOT BETWEEN now() - '1 min'::interval AND clock_timestamp();
-- one for each row in every kind of query
CREATE TEMP TABLE o (id bytea PRIMARY KEY DEFAULT objectid(), v int);
INSERT INTO o (v) SELECT n FROM generate_series(1, 1000) n;
SELECT count(DISTINCT id) FROM o;

-- IDs of MongoDB's own libraries
CREATE TEMP TABLE published (source text, digits text, seconds bigint, random text, counter int);
COPY published FROM stdin;
bson (npm) 7.3.4	000000000000000000000000	0	0000000000	0
bson (npm) 7.3.4	507f191e810c19729de860ea	1350506782	810c19729d	15229162
bson (npm) 7.3.4	65920080000000000000abcd	1704067200	0000000000	43981
bson (npm) 7.3.4	80000000000000000000ffff	2147483648	0000000000	65535
bson (npm) 7.3.4	6560c5c0a1b2c3d4e5000001	1700840896	a1b2c3d4e5	1
bson (npm) createFromTime 7.3.4	000000000000000000000000	0	0000000000	0
bson (npm) createFromTime 7.3.4	5e0be1000000000000000000	1577836800	0000000000	0
bson (npm) createFromTime 7.3.4	7fffffff0000000000000000	2147483647	0000000000	0
bson (npm) createFromTime 7.3.4	ffffffff0000000000000000	4294967295	0000000000	0
pymongo 3.11.0 (ObjectId())	6b01807c83065dac8e6a97c7	1795260540	83065dac8e	6985671
pymongo 3.11.0 (ObjectId())	6b01807c83065dac8e6a97c9	1795260540	83065dac8e	6985673
pymongo 3.11.0 from_datetime	4b3d3b000000000000000000	1262304000	0000000000	0
pymongo 3.11.0 from_datetime	f48656ff0000000000000000	4102444799	0000000000	0
\.
SET timezone = 'UTC';
SELECT source, digits, objectid_timestamp(decode(digits, 'hex')) AS "timestamp" FROM published;
SELECT count(*) AS wrong FROM published, decode(digits, 'hex') id
WHERE objectid_timestamp(id) <> to_timestamp(seconds)
   OR encode(substr(id, 5, 5), 'hex') <> random
   OR (get_byte(id, 9) << 16) | (get_byte(id, 10) << 8) | get_byte(id, 11) <> counter
   OR encode(id, 'hex') <> digits;
-- in an index and a generated column
CREATE TEMP TABLE documents (
    id bytea PRIMARY KEY DEFAULT objectid(),
    text_id text GENERATED ALWAYS AS (encode(id, 'hex')) STORED);
CREATE INDEX ON documents (objectid_timestamp(id));
INSERT INTO documents VALUES ('\x507f191e810c19729de860ea');
SELECT text_id FROM documents;

-- NULL
SELECT objectid_timestamp(NULL) IS NULL;

-- invalid values
\set VERBOSITY sqlstate
SELECT objectid_timestamp('\x507f191e810c19729de860');
\set VERBOSITY default
SELECT objectid_timestamp('\x507f191e810c19729de860');
