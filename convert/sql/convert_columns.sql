--
-- Columns whose names say that they hold keys, and that cannot hold new ones
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
RESET client_min_messages;
CREATE SCHEMA held;
SET search_path = held, public;
CREATE TABLE users (id serial PRIMARY KEY);
-- as in MediaWiki
CREATE TABLE content_models (model_id serial PRIMARY KEY);
CREATE TABLE content (id bigserial PRIMARY KEY, content_model smallint NOT NULL, content_size smallint);
CREATE DOMAIN short_number AS numeric(12, 2);
CREATE DOMAIN small_id AS integer;
CREATE TABLE groups (id serial PRIMARY KEY, owner_id integer, role_id smallint, user_ids integer[], role_ids smallint[],
    user_id numeric(10), amount_id numeric(25, 7), big_id numeric(19), wide_id numeric, cent_id numeric(21, 2), hundred_id numeric(17, -2),
    list_ids numeric(10)[], short_id short_number, small_id small_id, doc_id double precision, item_id real, doc_ids double precision[],
    bigint_ids bigint[], paid_ids text, number numeric(3),
    "user" integer, content_models integer, model integer, object_id varchar(10), fixed_id char(18), long_id varchar(19), code_id char(4),
    any_id varchar, name varchar(10), title_id text);
CREATE TABLE roles ("user" integer PRIMARY KEY);
CREATE TABLE grants ("user" integer REFERENCES roles);
SELECT severity, object, finding FROM snowflake_convert_report('held') WHERE object ~ 'groups|grants|roles|column content_[a-z]+ of table held.content$' AND object !~ 'column id ';
SELECT object, finding FROM snowflake_convert_report('held', widen => 'names') WHERE object ~ 'groups|grants|roles|column content_[a-z]+ of table held.content$' AND object !~ 'column id ';
BEGIN;
SELECT count(*) FROM snowflake_convert_schema('held', widen => 'names');
SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = 'groups'::regclass AND attname IN ('owner_id', 'role_id', 'user_ids', 'small_id') ORDER BY attnum;
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA held CASCADE;
