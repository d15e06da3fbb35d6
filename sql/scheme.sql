--
-- Schemes as text, and parsing IDs with them
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- IDs whose parts are known
SELECT * FROM snowflake_parse(3125927076831231, 'twitter,epoch=1596211200000');
SELECT * FROM snowflake_parse(6698247966366502912, 'twitter,epoch=-28800000');
SELECT * FROM snowflake_parse(1, 'shardingsphere');
SELECT * FROM snowflake_parse(9223372036854775807, 'shardingsphere');
SELECT * FROM snowflake_parse(9223372036854775807);
SELECT * FROM snowflake_parse(0, 'leaf');
SELECT * FROM snowflake_parse(9223372036854775807, 'leaf');

-- the server's own scheme is shardingsphere
SELECT (SELECT p FROM snowflake_parse(x) p) = (SELECT p FROM snowflake_parse(x, 'shardingsphere') p) AS same
FROM (VALUES (1::bigint), (1330739762918592512)) v(x);

-- fields in any order; the lowest is last
SELECT * FROM snowflake_parse((5::bigint << 24) | (200 << 16) | 77,
                              'epoch=2014-09-01,tick=10ms,timestamp=39,sequence=8,worker=16');
SELECT * FROM snowflake_parse((3::bigint << 50) | (9 << 12) | 77,
                              'epoch=2014-09-01,worker=5,timestamp=38,sequence=12');
-- the widest fields are shown whole
SELECT * FROM snowflake_parse(9223372036854775807, 'timestamp=31,sequence=32');
SELECT * FROM snowflake_parse(-1, 'timestamp=1,datacenter=31,sequence=32');
SELECT * FROM snowflake_parse(9223372036854775807, 'timestamp=1,worker=31,sequence=31');

-- a tick of microseconds: Bluesky's TIDs, as @atcute/tid reads 3l25zusnsfctk
SELECT extract(epoch FROM p."timestamp") * 1000000 AS us, p.*
FROM (SELECT sum((strpos('234567abcdefghijklmnopqrstuvwxyz', c) - 1) * 32::numeric ^ (13 - n))::bigint AS id
      FROM string_to_table('3l25zusnsfctk', NULL) WITH ORDINALITY t(c, n)) tid,
     snowflake_parse(id, 'epoch=0,tick=1us,timestamp=53,worker=10') p;
SELECT snowflake_make('2024-08-20 16:31:35.793', 816, NULL, NULL, 'epoch=0,tick=1us,timestamp=53,worker=10');
-- unused bits: at the top, between fields, at the end
SELECT * FROM snowflake_parse((-1::bigint << 62) | (5::bigint << 20) | (3 << 18) | (9 << 10) | (7 << 6) | 63,
                              'epoch=0,unused=2,timestamp=42,unused=2,worker=8,sequence=4,unused=1,unused=5');
SELECT snowflake_make('1970-01-01 00:00:00.005', 9, 7, NULL,
                      'epoch=0,unused=2,timestamp=42,unused=2,worker=8,sequence=4,unused=6')
       = (5::bigint << 20) | (9 << 10) | (7 << 6) AS same;
SELECT snowflake_parse(-1, 'unused=63,timestamp=1');
-- no sequence
SELECT * FROM snowflake_parse((5 << 4) | 3, 'epoch=0,timestamp=41,worker=4');
SELECT snowflake_make('1970-01-01 00:00:00.005', 3, NULL, NULL, 'epoch=0,timestamp=41,worker=4'),
       snowflake_make('1970-01-01 00:00:00.005', 3, 0, NULL, 'epoch=0,timestamp=41,worker=4');

-- ways to write an epoch and a tick
SELECT scheme, (snowflake_parse(4096, scheme || ',timestamp=41,sequence=12'))."timestamp"
FROM (VALUES ('epoch=2020-02-29'),
             ('epoch=2000-02-29'),
             ('epoch=1969-12-31'),
             ('epoch=0001-01-01'),
             ('epoch=2020-08-09T07:01:19'),
             ('epoch=2020-08-09T07:01'),
             ('epoch=2020-08-09t07:01:19.5z'),
             ('epoch=2020-08-09 07:01:19.12Z'),
             ('epoch=2020-08-09T07:01:19.123+02:00'),
             ('epoch=2020-08-09T07:01:19.123-0330'),
             ('epoch=2020-08-09T07:01:19+02'),
             ('epoch=0'),
             ('epoch=-1'),
             ('epoch=-2024'),
             ('epoch=100000000000'),
             ('tick=1us'),
             ('tick=1500us'),
             ('tick=86400000000us'),
             ('tick=1ms'),
             ('tick=10ms'),
             ('tick=1s'),
             ('tick = 86400 S , EPOCH = 1970-01-01 '),
             ('epoch=1970-01-01')) v(scheme);
SELECT (snowflake_parse(0, 'Twitter'))."timestamp";
SELECT (snowflake_parse(0, ' leaf , epoch = 2024-01-01 '))."timestamp";
SELECT * FROM snowflake_parse(1000000, 'twitter,worker=3,sequence=6,tick=1s,epoch=2024-01-01');

-- NULL in, NULL out
SELECT snowflake_parse(NULL), snowflake_parse(NULL, 'leaf'), snowflake_parse(1, NULL);

-- IDs that do not fit
\pset format unaligned
-- the error, without the line of the source
CREATE FUNCTION error_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    state text; message text; detail text; hint text;
BEGIN
    EXECUTE query;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE,
        message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n    ', state || ' ' || message, nullif(detail, ''), nullif(hint, ''));
END
$$;
SELECT error_of('SELECT snowflake_parse(-1)');
SELECT error_of('SELECT snowflake_parse(-9223372036854775808, ''leaf'')');
SELECT error_of('SELECT snowflake_parse(9007199254740992, ''timestamp=41,sequence=12'')');
SELECT error_of('SELECT snowflake_parse(9007199254740991, ''timestamp=41,sequence=12'')');
SELECT error_of('SELECT snowflake_parse(9007199254740991, ''tick=1s,timestamp=50,sequence=3'')');
SELECT error_of('SELECT snowflake_parse(9223372036854775807, ''tick=86400s,timestamp=62,sequence=1'')');

-- invalid schemes
SELECT quote_literal(CASE WHEN length(scheme) > 70 THEN left(scheme, 66) || '...' ELSE scheme END) || ': ' ||
       error_of(format('SELECT snowflake_parse(1, %L)', scheme)) AS error
FROM (VALUES
    (''),
    ('   '),
    (','),
    ('nobody'),
    ('nobody,epoch=2024-01-01'),
    ('twitter,'),
    ('twitter,leaf'),
    ('twitter rubbish'),
    ('timestamp'),
    ('timestamp=41,worker=10,sequence=12,'),
    ('timestamp=41,worker=10,sequence=12,rubbish'),
    ('timestamp=41,worker=10,sequence=12 rubbish'),
    ('timestamp=41,worker=10,sequence=12;'),
    ('timestamp=41,wroker=10,sequence=12'),
    ('=41,sequence=12'),
    ('timestamp=41,timestamp=10,sequence=12'),
    ('epoch=2016-11-01,timestamp=41,sequence=12,epoch=2016-11-01'),
    ('twitter,worker=6,worker=6'),
    ('leaf,datacenter=5,worker=5'),
    ('worker=10,sequence=12'),
    ('epoch=2016-11-01'),
    ('timestamp=0,sequence=12'),
    ('timestamp=41,worker=0,sequence=12'),
    ('timestamp=41,sequence=-1'),
    ('timestamp=41,sequence='),
    ('timestamp=41,sequence=1.5'),
    ('timestamp=41,sequence=99999999999999999999'),
    ('timestamp=64,sequence=12'),
    ('timestamp=41,worker=32,sequence=12'),
    ('timestamp=31,sequence=33'),
    ('timestamp=41,unused=64'),
    ('timestamp=41,unused=0'),
    ('timestamp=1,unused=63,unused=63,sequence=1'),
    ('unused=10'),
    ('leaf,unused=1'),
    ('timestamp=37,worker=20,sequence=16'),
    ('epoch=2016-11-01,tick=1ms,timestamp=43,worker=10,sequence=12'),
    ('twitter,sequence=14'),
    ('epoch=,timestamp=41,sequence=12'),
    ('epoch=yesterday,timestamp=41,sequence=12'),
    ('epoch=2016-13-01,timestamp=41,sequence=12'),
    ('epoch=2016-00-01,timestamp=41,sequence=12'),
    ('epoch=2015-02-29,timestamp=41,sequence=12'),
    ('epoch=1900-02-29,timestamp=41,sequence=12'),
    ('epoch=2016-11-31,timestamp=41,sequence=12'),
    ('epoch=2016-11,timestamp=41,sequence=12'),
    ('epoch=0000-01-01,timestamp=41,sequence=12'),
    ('epoch=2016-11-01T,timestamp=41,sequence=12'),
    ('epoch=2016-11-01T24:00,timestamp=41,sequence=12'),
    ('epoch=2016-11-01T00:00:00.1234,timestamp=41,sequence=12'),
    ('epoch=2016-11-01T00:00:00 CET,timestamp=41,sequence=12'),
    ('epoch=2016-11-01T00:00+25:00,timestamp=41,sequence=12'),
    ('epoch=2024,timestamp=41,sequence=12'),
    ('epoch=20240229,timestamp=41,sequence=12'),
    ('epoch=20230229,timestamp=41,sequence=12'),
    ('epoch=1577836800,timestamp=41,sequence=12'),
    ('epoch=99999999999,timestamp=41,sequence=12'),
    ('epoch=1,timestamp=41,sequence=12'),
    ('twitter,epoch=0999'),
    ('epoch=1e3,timestamp=41,sequence=12'),
    ('epoch=1234567890123456,timestamp=41,sequence=12'),
    ('epoch=253402300800000,timestamp=41,sequence=12'),
    ('epoch=-62135596800001,timestamp=41,sequence=12'),
    ('tick=0ms,timestamp=41,sequence=12'),
    ('tick=1,timestamp=41,sequence=12'),
    ('tick=ms,timestamp=41,sequence=12'),
    ('tick=1.5ms,timestamp=41,sequence=12'),
    ('tick=-1ms,timestamp=41,sequence=12'),
    ('tick=1ns,timestamp=41,sequence=12'),
    ('tick=86400000001us,timestamp=41,sequence=12'),
    ('tick=1 ms s,timestamp=41,sequence=12'),
    ('tick=86401s,timestamp=41,sequence=12'),
    ('twitter,a key that is much longer than what is shown of it=1'),
    ('twitter,épöque=1'),
    (repeat('twitter', 40)),
    (repeat(' ', 200) || repeat('x', 55)),
    ('twitter' || repeat(',', 100000))
) v(scheme);

-- at most 255 bytes, not one more
SELECT (snowflake_parse(0, rpad('leaf', 255)))."timestamp";
SELECT error_of(format('SELECT snowflake_parse(0, %L)', rpad('leaf', 256)));
DROP FUNCTION error_of(text);
