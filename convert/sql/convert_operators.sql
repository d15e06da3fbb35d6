--
-- snowflake_convert() and operators: of exclusion constraints, and of indexes that are no longer used;
-- constraints that versions of the server have differently
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_operators;
\c regress_operators
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
SELECT current_setting('server_version_num')::int / 10000 AS version \gset

-- the detail of an error
CREATE FUNCTION detail(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    EXECUTE statement;
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;

-- Not-null constraints have names since 18, which must be those of the parent.
CREATE TABLE parent (id serial PRIMARY KEY);
CREATE TABLE child (id int NOT NULL) INHERITS (parent);
SELECT detail('SELECT FROM snowflake_convert(''parent'', dry_run => true)') = CASE WHEN :version < 18 THEN ''
    ELSE 'constraint child_id_not_null of table public.child is named parent_id_not_null in table public.parent' END;
ALTER TABLE child NO INHERIT parent;
SELECT 'ALTER TABLE child RENAME CONSTRAINT child_id_not_null TO parent_id_not_null' AS rename WHERE :version >= 18
UNION ALL SELECT 'SELECT' WHERE :version < 18 \gset
:rename \g /dev/null
ALTER TABLE child INHERIT parent;
SELECT count(*) FROM snowflake_convert('parent');

-- Since 18, a CHECK constraint may be not enforced, and then is no obstacle.
SELECT CASE WHEN :version < 18 THEN 'CHECK (id > 0)' ELSE 'CHECK (id < 10) NOT ENFORCED' END AS "check" \gset
CREATE TABLE unchecked (id bigint PRIMARY KEY :check);
SELECT count(*) FROM snowflake_convert('unchecked');

-- operators of exclusion constraints, which need an index for equality of any kind
SELECT count(*) < 2 AS skip FROM pg_available_extensions WHERE name IN ('btree_gist', 'btree_gin') \gset
\if :skip
    \c :tests
    DROP DATABASE regress_operators;
    \quit
\endif
CREATE EXTENSION btree_gist;
CREATE FUNCTION same(int, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 = $2';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = same, COMMUTATOR = ===);
ALTER OPERATOR FAMILY gist_int4_ops USING gist ADD OPERATOR 30 === (int4, int4);
CREATE TABLE excluding (id int PRIMARY KEY, EXCLUDE USING gist (id WITH ===) WHERE (id > 5));
-- ... for integers only
SELECT detail('SELECT FROM snowflake_convert(''excluding'', dry_run => true)');
CREATE FUNCTION same(bigint, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 = $2';
CREATE OPERATOR === (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = same, COMMUTATOR = ===);
-- ... outside of the operator family
SELECT detail('SELECT FROM snowflake_convert(''excluding'', dry_run => true)');
-- ... and in it
ALTER OPERATOR FAMILY gist_int8_ops USING gist ADD OPERATOR 30 === (int8, int8);
SELECT count(*) FROM snowflake_convert('excluding');

-- Indexes whose operators have no form for a bigint and an integer: they are named,
CREATE TABLE looked_up (id int PRIMARY KEY, plain int);
CREATE INDEX by_gist ON looked_up USING gist (id);
CREATE INDEX by_hash ON looked_up USING hash (id);
CREATE INDEX by_brin ON looked_up USING brin (id);
CREATE INDEX kept ON looked_up USING gist (plain);
INSERT INTO looked_up SELECT g, g FROM generate_series(1, 1000) g;
RESET client_min_messages;
SELECT snowflake_convert('looked_up');
SET client_min_messages = warning;
-- and are not used, unless the literal is cast.  Since 19, btree_gin has such a form.
CREATE EXTENSION btree_gin;
CREATE TABLE by_two (id serial PRIMARY KEY, other int REFERENCES by_two, plain int);
CREATE INDEX by_gin ON by_two USING gin (other, plain);
INSERT INTO by_two SELECT g, 1, g FROM generate_series(1, 10000) g;
CREATE FUNCTION uses(literal text) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (COSTS off, FORMAT json) SELECT FROM by_two WHERE other = ' || literal INTO plan;
    RETURN plan::text ~ 'by_gin';
END $$;
SELECT uses('5');
SELECT count(*) = (:version < 19)::int FROM snowflake_convert_report('public', details => true)
WHERE finding ~ 'column other .*no longer use index public.by_gin';
SELECT count(*) FROM snowflake_convert('by_two');
SELECT uses('5') = (:version >= 19), uses('5::bigint');

\c :tests
DROP DATABASE regress_operators;
