--
-- Daily numbers
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_keys;
RESET client_min_messages;

-- a time zone in which it is noon, far from midnight
SELECT 'NOON' || to_char(extract(hour FROM now() AT TIME ZONE 'UTC') - 12, 'FMSG00') AS noon \gset
SET timezone = :'noon';
SELECT to_char(now(), 'YYYYMMDD') AS today,
       to_char(now() - '1 day'::interval, 'YYYYMMDD') AS yesterday,
       to_char(now() + '1 day'::interval, 'YYYYMMDD') AS tomorrow \gset

CREATE SEQUENCE order_numbers;
SELECT daily_nextval('order_numbers')::text = :'today' || n AS good FROM unnest(ARRAY['000001', '000002', '000003']) n;
-- the sequence contains the date, too
SELECT last_value::text = :'today' || '0000000003' AS good FROM order_numbers;
-- in a default
CREATE TABLE orders (number text PRIMARY KEY DEFAULT 'ORD' || daily_nextval('order_numbers'), v int);
INSERT INTO orders (v) SELECT generate_series(1, 3);
SELECT number = 'ORD' || :'today' || '00000' || v + 3 AS good FROM orders ORDER BY v;
\set VERBOSITY terse
DROP SEQUENCE order_numbers;
\set VERBOSITY default
-- digits, also when their number changes
SELECT digits, daily_nextval('order_numbers', digits)::text = :'today' || lpad((digits + 6)::text, digits, '0') AS good
FROM generate_series(1, 3) digits;
SELECT daily_nextval('order_numbers', 9)::text = :'today' || '000000010' AS good;
-- not rolled back
BEGIN;
SELECT daily_nextval('order_numbers') % 1000000 AS n;
ROLLBACK;
SELECT daily_nextval('order_numbers') % 1000000 AS n;
-- NULL
SELECT daily_nextval(NULL) IS NULL AS no_sequence, daily_nextval('order_numbers', NULL) IS NULL AS no_digits,
       daily_nextval('order_numbers', 6, NULL)::text = :'today' || '000013' AS session_zone;

-- the next day: starts at 1, also if that is rolled back
SELECT setval('order_numbers', (:'yesterday' || '0000000999')::bigint) > 0 AS set;
BEGIN;
SELECT daily_nextval('order_numbers')::text = :'today' || '000001' AS good;
ROLLBACK;
SELECT daily_nextval('order_numbers')::text = :'today' || '000002' AS good;
-- a clock behind the last number: continues with its day
SELECT setval('order_numbers', (:'tomorrow' || '0000000999')::bigint) > 0 AS set;
SELECT daily_nextval('order_numbers')::text = :'tomorrow' || '001000' AS good;
-- a session in another time zone, in which it is yesterday or tomorrow
SELECT setval('order_numbers', 1) > 0 AS set;
CREATE TEMP TABLE drawn (n serial, zone text, number bigint);
INSERT INTO drawn (zone, number)
SELECT zone, daily_nextval('order_numbers', 6, zone)
FROM generate_series(1, 4), unnest(ARRAY['Pacific/Kiritimati', 'Etc/GMT+12', 'UTC', 'EST5EDT', 'utc', 'JST']) zone;
SELECT count(*) AS falls FROM drawn a JOIN drawn b ON a.n < b.n AND a.number >= b.number;
SELECT count(DISTINCT number) AS numbers, count(DISTINCT number / 1000000) AS days FROM drawn;
SELECT setval('order_numbers', 1) > 0 AS set;
SELECT daily_nextval('order_numbers', 6, 'Etc/GMT+12')::text = to_char(now() AT TIME ZONE 'Etc/GMT+12', 'YYYYMMDD') || '000001' AS day_of_zone,
       daily_nextval('order_numbers', 6, 'Pacific/Kiritimati')::text = to_char(now() AT TIME ZONE 'Pacific/Kiritimati', 'YYYYMMDD') || '000001' AS a_later_day;
SET timezone = 'Etc/GMT+12';
SELECT setval('order_numbers', 1) > 0 AS set;
SELECT daily_nextval('order_numbers')::text = to_char(now(), 'YYYYMMDD') || '000001' AS day_of_session;
SET timezone = :'noon';

-- never more digits than requested
SELECT setval('order_numbers', (:'today' || '0000000098')::bigint) > 0 AS set;
SELECT daily_nextval('order_numbers', 2) % 100 AS n;
\set VERBOSITY terse
SELECT daily_nextval('order_numbers', 2);
SELECT daily_nextval('order_numbers', 2);
\set VERBOSITY default
SELECT daily_nextval('order_numbers', 3) % 1000 AS n;
SELECT daily_nextval('order_numbers', 2);
DO $$
BEGIN
    FOR i IN 1 .. 1000 LOOP
        BEGIN
            PERFORM daily_nextval('order_numbers', 2);
            RAISE 'a number without digits';
        EXCEPTION WHEN sequence_generator_limit_exceeded THEN
        END;
    END LOOP;
END
$$;
SELECT last_value::text = :'today' || '0000001103' AS in_its_day FROM order_numbers;
SELECT setval('order_numbers', (:'today' || '0999999999')::bigint) > 0 AS set;
SELECT daily_nextval('order_numbers', 9);

-- privileges are those of nextval(), on the first number of a day, too
CREATE ROLE regress_daily;
SET ROLE regress_daily;
SELECT daily_nextval('order_numbers');
RESET ROLE;
GRANT USAGE ON SEQUENCE order_numbers TO regress_daily;
SELECT setval('order_numbers', 1) > 0 AS set;
SET ROLE regress_daily;
SELECT daily_nextval('order_numbers') % 1000000 AS n, current_user;
SELECT setval('order_numbers', 1);
-- but they do not suffice to turn a sequence of other numbers into one
RESET ROLE;
SELECT setval('order_numbers', 1000000) > 0 AS set;
SET ROLE regress_daily;
SELECT daily_nextval('order_numbers');
RESET ROLE;
SELECT last_value FROM order_numbers;
CREATE SEQUENCE from_least MINVALUE -9223372036854775808;
SELECT setval('from_least', 1000000) > 0 AS set;
GRANT USAGE ON SEQUENCE from_least TO regress_daily;
SET ROLE regress_daily;
SELECT daily_nextval('from_least');
RESET ROLE;
DROP SEQUENCE from_least;
CREATE TABLE serial_numbers (id bigserial, n text);
GRANT USAGE ON SEQUENCE serial_numbers_id_seq TO regress_daily;
SET ROLE regress_daily;
SELECT daily_nextval('serial_numbers_id_seq');
RESET ROLE;
ALTER SEQUENCE serial_numbers_id_seq OWNED BY serial_numbers.n;
SET ROLE regress_daily;
SELECT daily_nextval('serial_numbers_id_seq') % 1000000 AS n;
RESET ROLE;
DROP TABLE serial_numbers;
GRANT UPDATE ON SEQUENCE order_numbers TO regress_daily;
SET ROLE regress_daily;
SELECT daily_nextval('order_numbers') % 1000000 AS n;
RESET ROLE;
REVOKE ALL ON SEQUENCE order_numbers FROM regress_daily;
DROP ROLE regress_daily;
-- no lock remains except that of nextval()
BEGIN;
SELECT setval('order_numbers', 1) > 0 AS set;
SELECT daily_nextval('order_numbers') % 1000000 AS n;
SELECT locktype, mode FROM pg_locks WHERE pid = pg_backend_pid() AND (relation = 'order_numbers'::regclass OR locktype = 'object' AND classid <> 'pg_proc'::regclass);
COMMIT;
BEGIN READ ONLY;
SELECT daily_nextval('order_numbers');
ROLLBACK;

-- errors
SELECT daily_nextval('order_numbers', 0);
SELECT daily_nextval('order_numbers', 10);
SELECT daily_nextval('order_numbers', 6, 'Mars/Olympus_Mons');
-- a time zone that would move the numbers of all sessions days ahead
SELECT last_value AS before FROM order_numbers \gset
SELECT daily_nextval('order_numbers', 6, 'X-167:59:59');
SELECT daily_nextval('order_numbers', 6, 'X+167:59:59');
SET timezone = 'X-167';
SELECT daily_nextval('order_numbers');
SET timezone = :'noon';
SELECT last_value = :before AS unchanged FROM order_numbers;
SELECT setval('order_numbers', 209913010000000001) > 0 AS set;
SELECT daily_nextval('order_numbers');
SELECT setval('order_numbers', 209900010000000001) > 0 AS set;
SELECT daily_nextval('order_numbers');
SELECT setval('order_numbers', 209901320000000001) > 0 AS set;
SELECT daily_nextval('order_numbers');
SELECT setval('order_numbers', 1999912310000000001) > 0 AS set;
SELECT daily_nextval('order_numbers');
SELECT setval('order_numbers', 99991231000000000) > 0 AS set;
SELECT daily_nextval('order_numbers') % 1000000 AS n;
CREATE SEQUENCE daily_increment INCREMENT 2;
SELECT daily_nextval('daily_increment');
CREATE SEQUENCE daily_cache CACHE 2;
SELECT daily_nextval('daily_cache');
CREATE SEQUENCE daily_cycle CYCLE;
SELECT daily_nextval('daily_cycle');
CREATE SEQUENCE daily_integer AS integer;
SELECT daily_nextval('daily_integer');
CREATE UNLOGGED SEQUENCE daily_unlogged;
SELECT daily_nextval('daily_unlogged');
-- a kind, as by "snowflake.default_sequence_kind"
CREATE SEQUENCE daily_kind;
SELECT snowflake_set_sequence_kind('daily_kind');
SELECT daily_nextval('daily_kind');
SELECT snowflake_set_sequence_kind('daily_kind', 'local');
SELECT daily_nextval('daily_kind') % 1000000 AS n;
CREATE TEMP SEQUENCE daily_temp;
SELECT daily_nextval('daily_temp') % 1000000 AS n;
\set VERBOSITY sqlstate
SELECT daily_nextval('daily_increment');
SELECT daily_nextval('order_numbers', 6, 'X-167:59:59');
SELECT daily_nextval('order_numbers', 0);
SELECT daily_nextval('order_numbers', 6, 'Mars/Olympus_Mons');
SELECT daily_nextval('orders');
SELECT daily_nextval(0);
SELECT setval('order_numbers', 1999912310000000001) > 0 AS set;
SELECT daily_nextval('order_numbers');
SELECT setval('order_numbers', (:'today' || '0000000099')::bigint) > 0 AS set;
SELECT daily_nextval('order_numbers', 2);
\set VERBOSITY default

DROP TABLE orders;
DROP SEQUENCE order_numbers, daily_increment, daily_cache, daily_cycle, daily_integer, daily_unlogged, daily_kind;
