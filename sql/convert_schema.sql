--
-- snowflake_convert_schema() and snowflake_convert_report(): all tables of an
-- application
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;
CREATE ROLE regress_app;
CREATE ROLE regress_app_reader;
CREATE SCHEMA app AUTHORIZATION regress_app;
SET ROLE regress_app;
SET search_path = app, public;
\set SHOW_CONTEXT never

-- keys, and what references them with and without a foreign key
CREATE TABLE users (id serial PRIMARY KEY, name text, boss int REFERENCES users);
CREATE TABLE projects (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner int NOT NULL REFERENCES users, parent_id int);
CREATE TABLE issues (id bigserial PRIMARY KEY, project int REFERENCES projects, author int REFERENCES users, "assigneeId" int, paid int);
CREATE TABLE journal (id serial, at date, user_id smallint, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE journal_1 PARTITION OF journal FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
CREATE TABLE no_key (id serial, user_id int);
-- keys that are left
CREATE TABLE profiles (id int PRIMARY KEY REFERENCES users, note text);
CREATE TABLE codes (id int PRIMARY KEY, code text);
CREATE TABLE states (id int PRIMARY KEY DEFAULT 0);
CREATE TABLE positions (name text PRIMARY KEY, number serial);
CREATE TABLE by_code (name text PRIMARY KEY, number serial UNIQUE);
CREATE TABLE of_code (number int REFERENCES by_code (number));
CREATE TABLE sessions (id serial PRIMARY KEY, user_id int);
CREATE TABLE plain (name text, valid boolean, part_id text);
-- a sequence in a function, functions with integers, and a default that calls one
CREATE FUNCTION log_user() RETURNS trigger LANGUAGE plpgsql AS
'DECLARE n int; BEGIN n := currval(''users_id_seq''); RETURN NEW; END';
CREATE TRIGGER log_user AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION log_user();
CREATE FUNCTION now_number() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER TABLE issues ADD number int DEFAULT now_number();
-- views
CREATE VIEW staff WITH (security_barrier) AS SELECT id, name FROM users;
CREATE MATERIALIZED VIEW counted AS SELECT count(id) AS n FROM staff;
CREATE UNIQUE INDEX counted_n ON counted (n);
GRANT SELECT ON staff TO regress_app_reader;
INSERT INTO users (name) VALUES ('a'), ('b');
INSERT INTO projects (owner) VALUES (1);

SELECT severity, object, finding FROM snowflake_convert_report('app', '{sessions}');
SELECT what_to_do COLLATE "C", count(*) FROM snowflake_convert_report('app', '{sessions}')
WHERE finding !~ 'must be dropped' GROUP BY 1 ORDER BY 1;
SELECT split_part(what_to_do, E'\n', 1) AS statement FROM snowflake_convert_report('app') WHERE finding ~ 'must be dropped';
SELECT snowflake_convert_schema('app', '{sessions}');

-- the views by the report's own statements
SELECT what_to_do AS first FROM snowflake_convert_report('app') WHERE object LIKE 'materialized view %' \gset
SELECT what_to_do AS second FROM snowflake_convert_report('app') WHERE object LIKE 'view %' \gset
SELECT split_part(:'first', E'\n', 1) AS drop_first, split_part(:'second', E'\n', 1) AS drop_second,
    substr(:'first', strpos(:'first', 'CREATE')) AS create_first,
    substr(:'second', strpos(:'second', 'CREATE')) AS create_second \gset
:drop_first
:drop_second
SELECT snowflake_convert_schema('app', '{sessions}', dry_run => true);
CREATE TABLE own (id bigint PRIMARY KEY DEFAULT snowflake_id());
SELECT snowflake_convert_schema('app', '{sessions}', widen_ids => true);
:create_second
:create_first
SELECT relname, reloptions, relacl IS NOT NULL AS granted FROM pg_class WHERE relname IN ('staff', 'counted') ORDER BY 1;

-- each table that changed has its key, and rows are as before
SELECT attrelid::regclass, string_agg(format('%s %s%s', attname, atttypid::regtype, ' ' || pg_get_expr(adbin, adrelid)), ', ' ORDER BY attnum)
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'app'::regnamespace AND relkind IN ('r', 'p'))
AND attnum > 0 AND atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
GROUP BY 1 ORDER BY attrelid::regclass::text COLLATE "C";
SELECT * FROM users;
SELECT relname FROM pg_class WHERE relnamespace = 'app'::regnamespace AND relkind = 'S' ORDER BY 1;

-- the second time, and the report afterwards
SELECT snowflake_convert_schema('app', '{sessions}');
SELECT severity, object, finding FROM snowflake_convert_report('app', '{sessions}');
-- an upgrade restores a default, and adds a table
CREATE SEQUENCE users_seq;
ALTER TABLE users ALTER id SET DEFAULT nextval('users_seq');
CREATE TABLE tags (id serial PRIMARY KEY, issue int REFERENCES issues, user_id int);
SELECT object, finding, what_to_do FROM snowflake_convert_report('app', '{sessions}') WHERE severity = 'warning' AND object ~ 'users|tags';
SELECT snowflake_convert_schema('app', '{sessions}', generator => 'snowflake_id()', dry_run => true);
-- a view of a column that only widen_ids changes
CREATE VIEW tagged AS SELECT user_id FROM tags;
SELECT object, finding FROM snowflake_convert_report('app', '{sessions}') WHERE severity = 'obstacle';
SELECT object, finding, split_part(what_to_do, E'\n', 1) AS what_to_do FROM snowflake_convert_report('app', '{sessions}', widen_ids => true) WHERE severity = 'obstacle' OR finding ~ 'stays integer';
SELECT snowflake_convert_schema('app', '{sessions}', widen_ids => true, dry_run => true);
DROP VIEW tagged;

-- code runs as the owner of the tables, not as the caller
CREATE FUNCTION who() RETURNS bigint LANGUAGE plpgsql AS
'BEGIN RAISE NOTICE ''generated by %'', current_user; RETURN public.snowflake_nextval(); END';
RESET ROLE;
SELECT count(*) FROM snowflake_convert_schema('app', '{sessions}', dry_run => true, generator => 'app.who()') \g /dev/null
SET ROLE regress_app;

-- other owners
RESET ROLE;
CREATE ROLE regress_app_owner;
GRANT USAGE ON SCHEMA app TO regress_app_owner;
ALTER TABLE tags OWNER TO regress_app_owner;
SELECT snowflake_convert_schema('app');
SELECT object, finding FROM snowflake_convert_report('app') WHERE severity = 'obstacle';
SET ROLE regress_app_owner;
SELECT snowflake_convert_schema('app', '{sessions}');
SELECT * FROM snowflake_convert_report('app');
RESET ROLE;

-- arguments
CREATE SCHEMA nothing;
SELECT snowflake_convert_schema('nothing');
SELECT * FROM snowflake_convert_report('nothing');
SELECT snowflake_convert_schema(1::regnamespace);
SELECT snowflake_convert_schema('app', ARRAY[NULL::regclass]);
SELECT snowflake_convert_schema('pg_catalog');
SELECT snowflake_convert_schema('app', generator => 'now()');
SELECT snowflake_convert_schema(NULL);
SELECT * FROM snowflake_convert_report(NULL);
SELECT * FROM snowflake_convert_report('app', NULL);
SELECT * FROM snowflake_convert_report('app', '{}', NULL);
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT snowflake_convert_schema('app');
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA app, nothing CASCADE;
DROP ROLE regress_app, regress_app_reader, regress_app_owner;
