--
-- snowflake_nextval() as the default of a column, in every command that fills tables
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v text);

INSERT INTO t (v) VALUES ('insert');
INSERT INTO t (v) VALUES ('several'), ('rows'), ('in one insert');
INSERT INTO t VALUES (DEFAULT, 'keyword');
INSERT INTO t (v) SELECT 'select ' || n FROM generate_series(1, 10) n;
COPY t (v) FROM stdin;
copied
copied too
\.
WITH w AS (INSERT INTO t (v) VALUES ('with') RETURNING id) SELECT count(id) FROM w;
INSERT INTO t (id, v) SELECT id, 'again' FROM t WHERE v = 'insert'
    ON CONFLICT (id) DO UPDATE SET v = 'conflict';
MERGE INTO t USING (VALUES ('merged')) s(v) ON t.v = s.v
    WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v);
UPDATE t SET id = DEFAULT WHERE v = 'keyword';
PREPARE p(text) AS INSERT INTO t (v) VALUES ($1);
EXECUTE p('prepared');
EXECUTE p('prepared');

SELECT count(*), count(DISTINCT id), bool_and(id > 0) FROM t;
SELECT v FROM t ORDER BY id;

-- functions and triggers
CREATE FUNCTION add_row(v text) RETURNS bigint LANGUAGE sql AS
    'INSERT INTO t (v) VALUES (v) RETURNING id';
SELECT add_row('sql function') < add_row('sql function') AS rises;
CREATE TABLE log (id bigint PRIMARY KEY, t_id bigint REFERENCES t);
CREATE FUNCTION log_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log VALUES (snowflake_nextval(), NEW.id);
    RETURN NEW;
END
$$;
CREATE TRIGGER log_row AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION log_row();
INSERT INTO t (v) SELECT 'triggered' FROM generate_series(1, 5);
SELECT count(*), bool_and(id > t_id) AS later_than_row FROM log;

-- partitioned tables, by hash and by range of the ID
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int) PARTITION BY HASH (id);
CREATE TABLE events_0 PARTITION OF events FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE events_1 PARTITION OF events FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO events (v) SELECT n FROM generate_series(1, 1000) n;
SELECT count(*), count(DISTINCT id), count(DISTINCT tableoid) FROM events;
CREATE TABLE ranges (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int) PARTITION BY RANGE (id);
SELECT snowflake_nextval() + (1::bigint << 22) * 3600000 AS hour \gset
CREATE TABLE ranges_now PARTITION OF ranges FOR VALUES FROM (0) TO (:hour);
CREATE TABLE ranges_later PARTITION OF ranges FOR VALUES FROM (:hour) TO (MAXVALUE);
INSERT INTO ranges (v) SELECT n FROM generate_series(1, 1000) n;
SELECT tableoid::regclass, count(*) FROM ranges GROUP BY 1;

-- a column added to a table that has rows gets an ID for each
CREATE TABLE old (v int);
INSERT INTO old SELECT n FROM generate_series(1, 100) n;
ALTER TABLE old ADD COLUMN id bigint DEFAULT snowflake_nextval();
SELECT count(DISTINCT id) FROM old;

-- with a scheme, values derived from an ID can be generated and indexed
CREATE TABLE made (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    at timestamptz GENERATED ALWAYS AS ((snowflake_parse(id, 'shardingsphere'))."timestamp") STORED
);
CREATE INDEX ON made (((snowflake_parse(id, 'shardingsphere')).worker_id));
INSERT INTO made DEFAULT VALUES;
SELECT at = (snowflake_parse(id))."timestamp" AS same FROM made;

-- snowflake_currval() in the INSERT of another row is the ID of that row
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE order_lines (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint);
INSERT INTO orders DEFAULT VALUES;
INSERT INTO order_lines (order_id) VALUES (snowflake_currval()) RETURNING order_id = id AS own;
-- a function in place of nextval() is for calls, not for defaults
CREATE TABLE others (id bigserial);
CREATE SCHEMA mine;
CREATE FUNCTION mine.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT snowflake_nextval()';
SET search_path = mine, pg_catalog, public;
SELECT nextval('others_id_seq') > 1000000 AS of_mine;
INSERT INTO others DEFAULT VALUES RETURNING id;
RESET search_path;

DROP TABLE orders, order_lines, others;
DROP FUNCTION mine.nextval;
DROP SCHEMA mine;
DROP TABLE log, t, events, ranges, old, made;
DROP FUNCTION add_row(text), log_row();
