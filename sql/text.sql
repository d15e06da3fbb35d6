--
-- Snowflake IDs as short texts
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

-- as TSID libraries write them: see test/vectors/README.md
CREATE TEMP TABLE tsid (
    library text, number bigint, crockford13 text, lower text, hex text, base62 text, base10 text);
\copy tsid FROM PROGRAM 'cat "$PG_ABS_SRCDIR/test/vectors/tsid_crockford.csv"' (FORMAT csv, HEADER)
SELECT count(*) AS written,
       count(*) FILTER (WHERE snowflake_encode(number) IS DISTINCT FROM crockford13) AS wrong_base32,
       count(*) FILTER (WHERE lower(snowflake_encode(number)) IS DISTINCT FROM lower) AS wrong_lower,
       count(*) FILTER (WHERE snowflake_encode(number, 'base62') IS DISTINCT FROM base62) AS wrong_base62,
       count(*) FILTER (WHERE snowflake_encode(number, 'hex') IS DISTINCT FROM hex) AS wrong_hex
FROM tsid WHERE base62 IS NOT NULL;
SELECT count(*) AS read,
       count(*) FILTER (WHERE snowflake_decode(crockford13) IS DISTINCT FROM number) AS wrong_base32,
       count(lower) AS more,
       count(*) FILTER (WHERE snowflake_decode(lower) <> number) AS wrong_lower,
       count(*) FILTER (WHERE snowflake_decode(base62, 'base62') <> number) AS wrong_base62,
       count(*) FILTER (WHERE snowflake_decode(hex, 'hex') <> number) AS wrong_hex,
       count(*) FILTER (WHERE snowflake_decode(lower(hex), 'hex') <> number) AS wrong_lower_hex
FROM tsid;
DROP TABLE tsid;

-- the ends, and IDs with the 64th bit
SELECT id, snowflake_encode(id), snowflake_encode(id, 'base62') AS base62, snowflake_encode(id, 'HEX') AS hex
FROM (VALUES (0::bigint), (9223372036854775807), (-9223372036854775808), (-1)) v(id);
SELECT snowflake_decode('FZZZZZZZZZZZZ'), snowflake_decode('LygHa16AHYF', 'base62') AS base62,
       snowflake_decode('ffffFFFFffffFFFF', 'Hex') AS hex;
SELECT snowflake_decode('oilIL00000000') = snowflake_decode('0111100000000') AS mistyped;

-- round trip, and texts sort like the IDs
SELECT setseed(0.5);
CREATE TEMP TABLE texts AS
SELECT id, format, snowflake_encode(id, format) AS code
FROM (SELECT n, (floor(random() * 2 ^ 31)::bigint << 32 | floor(random() * 2 ^ 32)::bigint) >> n % 63 AS id
      FROM generate_series(1, 10000) n OFFSET 0) i, (VALUES ('base32'), ('base62'), ('hex')) f(format);
SELECT format, count(*) AS texts, min(length(code)), max(length(code)),
       count(*) FILTER (WHERE snowflake_decode(code, format) <> id) AS wrong
FROM texts GROUP BY 1 ORDER BY 1;
SELECT format, count(*) FILTER (WHERE (id > previous_id) <> (code COLLATE "C" > previous)) AS out_of_order
FROM (SELECT format, id, code, lag(id) OVER w AS previous_id, lag(code) OVER w AS previous
      FROM texts WINDOW w AS (PARTITION BY format ORDER BY md5(code))) t
GROUP BY 1 ORDER BY 1;
DROP TABLE texts;

-- NULL in, NULL out
SELECT snowflake_encode(NULL) IS NULL AND snowflake_encode(1, NULL) IS NULL
       AND snowflake_decode(NULL) IS NULL AND snowflake_decode('0', NULL) IS NULL AS nulls;

-- a column and an index on it
CREATE TABLE invitation (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    code text COLLATE "C" GENERATED ALWAYS AS (snowflake_encode(id)) STORED UNIQUE);
INSERT INTO invitation SELECT FROM generate_series(1, 1000);
SELECT count(DISTINCT code) FROM invitation;
SELECT count(*) AS wrong
FROM (SELECT rank() OVER (ORDER BY id) AS by_id, rank() OVER (ORDER BY code) AS by_code FROM invitation) r
WHERE by_id <> by_code;
DROP TABLE invitation;

-- errors
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
    RETURN concat_ws(' | ', state || ' ' || message, nullif(detail, ''), nullif(hint, ''));
END
$$;
\pset format unaligned
SELECT format || ' ' || quote_literal(left(encoded, 30)) || ': ' ||
       error_of(format('SELECT snowflake_decode(%L, %L)', encoded, format)) AS error
FROM (VALUES
    ('base32', ''),
    ('base32', '11MHQTB098W0'),
    ('base32', '11MHQTB098W000'),
    ('base32', '11MHQTB098W0U'),
    ('base32', ' 11MHQTB098W00'),
    ('base32', '11MHQT-B098W00'),
    ('base32', '11MHQTB098W00*'),
    ('base32', 'G000000000000'),
    ('base32', 'zzzzzzzzzzzzz'),
    ('base32', repeat('Z', 1000)),
    ('base32', repeat('Z', 1000) || '!'),
    ('base62', '1RXOcR2DqU'),
    ('base62', '1RXOcR2DqUK1'),
    ('base62', '1RXOcR2DqU_'),
    ('base62', 'LygHa16AHYG'),
    ('base62', 'zzzzzzzzzzz'),
    ('hex', '10D237D2C094700'),
    ('hex', '0x10D237D2C0947000'),
    ('hex', '10D237D2C094700G'),
    ('hex', '10D237D2C09470000'),
    ('base64', '11MHQTB098W00'),
    ('', '11MHQTB098W00'),
    ('base', '11MHQTB098W00'),
    ('base320', '11MHQTB098W00')
) v(format, encoded);
SELECT error_of($$SELECT snowflake_encode(1, 'base64')$$);
SELECT error_of($$SELECT snowflake_encode(1, repeat('long', 1000000))$$);
SELECT error_of($$SELECT snowflake_decode(repeat('0', 1000000), 'hex')$$);
DROP FUNCTION error_of(text);

-- a character of several bytes is shown whole, and its place is counted in characters
SELECT current_database() AS here \gset
SET client_min_messages = warning;
CREATE DATABASE regression_text TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C';
\c regression_text
CREATE EXTENSION snowflake;
SET client_encoding = 'UTF8';
SELECT snowflake_decode(E'11MHQTB098W\xc3\xa90');
SELECT snowflake_decode(E'11MHQTB098W0\xe2\x82\xac');
\c :here
DROP DATABASE regression_text;
