--
-- Settings of the session that change how SQL is read and written: conversions do the same with each
-- of them
--
SELECT current_database() AS tests \gset
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_other LOCATION '';
CREATE DATABASE regress_settings;
\c regress_settings
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
RESET client_min_messages;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

CREATE SCHEMA shop;
CREATE TABLE shop.t (id serial PRIMARY KEY, "a\b" int, CONSTRAINT c CHECK (id > 0));
CREATE TABLE shop.u (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), t_id int REFERENCES shop.t, other_id int);
CREATE INDEX ON shop.u (t_id, (other_id || '\n'));
CREATE INDEX of_values_idx ON shop.u (t_id) WHERE other_id::float8 < '0.12345678901234567'::float8;
CREATE TABLE shop.p (at date, t_id int REFERENCES shop.t) PARTITION BY RANGE (at);
CREATE TABLE shop.p_1 PARTITION OF shop.p FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
CREATE INDEX ON shop.p (t_id);
CREATE STATISTICS shop.s ON t_id, other_id FROM shop.u;
CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE i int; BEGIN PERFORM nextval(''shop.t_id_seq''); RETURN NEW; END';
CREATE TRIGGER f BEFORE INSERT ON shop.u FOR EACH ROW EXECUTE FUNCTION shop.f();
INSERT INTO shop.t SELECT generate_series(1, 10);

-- what the functions return and report: the plan has the sessions of the present time, and literals
-- as this session can read them
CREATE FUNCTION plain(line text) RETURNS text LANGUAGE sql
RETURN replace(replace(regexp_replace(line, '\(''+\d+\.\d+ [\d ]+''+\)', '', 'g'), '\\', '\'), '\\', '\');
CREATE TEMP TABLE seen (function text, line text);
\set look 'TRUNCATE seen; INSERT INTO seen SELECT ''report'', plain(r::text) FROM snowflake_convert_report(''shop'') r; INSERT INTO seen SELECT ''schema'', plain(r::text) FROM snowflake_convert_schema(''shop'', widen => ''names'', dry_run => true) r; INSERT INTO seen SELECT ''table'', plain(r::text) FROM snowflake_convert(''shop.t'', dry_run => true) r; INSERT INTO seen SELECT ''plan'', plain(r::text) FROM snowflake_convert_plan(''shop.t'') r;'
\set compare ':look (TABLE seen EXCEPT ALL TABLE usual) UNION ALL (TABLE usual EXCEPT ALL TABLE seen);'
:look
CREATE TEMP TABLE usual AS TABLE seen;
SELECT function, count(*) > 0, bool_or(line ~ 'info'), bool_or(line ~ 'next'),
    bool_or(line ~ 'pg_attver') AS "what the server keeps among the options of a column"
FROM usual GROUP BY 1 ORDER BY 1;

-- those that are gone since 19
CREATE FUNCTION old_strings() RETURNS SETOF text LANGUAGE sql
BEGIN ATOMIC
    SELECT set_config(name, 'off', false)
    FROM (VALUES ('standard_conforming_strings'), ('escape_string_warning'), ('backslash_quote')) s(name)
    WHERE current_setting('server_version_num')::int < 190000;
END;
-- two times, because some of them have two values that could matter
SET quote_all_identifiers = on;
SET bytea_output = escape;
SET transform_null_equals = on;
SET IntervalStyle = iso_8601;
SET DateStyle = 'German';
SELECT count(*) BETWEEN 0 AND 3 FROM old_strings();
:compare
RESET ALL;
SET search_path = shop, public;
SET IntervalStyle = sql_standard;
SET DateStyle = 'SQL, DMY';
SET extra_float_digits = 0;
SET array_nulls = off;
SET default_tablespace = regress_other;
:compare
RESET ALL;

-- Conversions with all of them; the time zone has an abbreviation that is read as another one.
CREATE POLICY of_values ON shop.u USING (t_id > 0 AND now() > '2020-01-01 00:00:00+05:30'::timestamptz
    AND now() - '2020-01-01'::timestamptz > '-1 day +02:03:04'::interval AND other_id::float8 < '0.12345678901234567'::float8);
CREATE VIEW shop.of_values AS SELECT id, t_id, '{a,NULL}'::text[] AS a, other_id = NULL AS b, DATE '2020-02-01' AS d FROM shop.u;
CREATE VIEW definitions AS
SELECT pg_get_viewdef(to_regclass('shop.of_values')), pg_get_indexdef(to_regclass('shop.of_values_idx')),
    (SELECT pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polname = 'of_values');
CREATE TEMP TABLE before AS TABLE definitions;
DROP TRIGGER f ON shop.u;
SET client_min_messages = warning;
SET quote_all_identifiers = on;
SET bytea_output = escape;
SET transform_null_equals = on;
SET search_path = shop, public;
SET IntervalStyle = sql_standard;
SET DateStyle = 'SQL, DMY';
SET extra_float_digits = 0;
SET array_nulls = off;
SET default_tablespace = regress_other;
SET timezone = 'Asia/Kolkata';
SELECT count(*) BETWEEN 0 AND 3 FROM old_strings();
CALL snowflake_convert_online('shop.t');
RESET ALL;
SELECT attname::text FROM pg_attribute WHERE attname ~ 'snowflake_(new|swap)' AND NOT attisdropped
UNION ALL SELECT relname FROM pg_class WHERE relname ~ 'snowflake_(new|swap)'
UNION ALL SELECT conname FROM pg_constraint WHERE conname ~ 'snowflake_(new|swap)'
UNION ALL SELECT tgname FROM pg_trigger WHERE tgname ~ 'snowflake_(new|swap|validate)'
UNION ALL SELECT stxname FROM pg_statistic_ext WHERE stxname ~ 'snowflake_(new|swap)'
UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid;
SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'shop.t'::regclass AND attname = 'id';
TABLE definitions EXCEPT TABLE before;
SELECT count(*) FROM pg_class WHERE reltablespace <> 0 AND NOT relisshared;
SELECT pg_get_indexdef('shop.u_t_id_expr_idx'::regclass);

\c :tests
DROP DATABASE regress_settings;
DROP TABLESPACE regress_other;
