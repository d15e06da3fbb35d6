--
-- snowflake_convert_schema() and snowflake_convert_report(): all tables of an
-- application
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
RESET client_min_messages;
CREATE ROLE regress_app;
CREATE ROLE regress_app_reader;
CREATE SCHEMA app AUTHORIZATION regress_app;
SET ROLE regress_app;
SET search_path = app, public;
\set SHOW_CONTEXT never
-- what later versions of PostgreSQL write otherwise
CREATE FUNCTION pg_temp.plain(statement text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(replace(statement, ', MAINTAIN', ''), '(?<!\.)\m(users|staff|counted|tags)\.(id|name|n|user_id)\M', '\2', 'g') $$;

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
REVOKE DELETE ON staff FROM regress_app;
GRANT UPDATE (name) ON staff TO regress_app_reader WITH GRANT OPTION;
ALTER VIEW staff ALTER name SET DEFAULT 'new';
COMMENT ON VIEW staff IS 'people; it''s';
COMMENT ON COLUMN staff.name IS 'theirs';
CREATE FUNCTION hire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER hire INSTEAD OF INSERT ON staff FOR EACH ROW EXECUTE FUNCTION hire();
COMMENT ON TRIGGER hire ON staff IS 'of one';
CREATE RULE keep AS ON DELETE TO staff DO INSTEAD NOTHING;
COMMENT ON RULE keep ON staff IS 'all';
COMMENT ON MATERIALIZED VIEW counted IS 'how many';
COMMENT ON INDEX counted_n IS 'one';
ALTER MATERIALIZED VIEW counted CLUSTER ON counted_n;
ALTER MATERIALIZED VIEW counted ALTER n SET STATISTICS 7;
CREATE MATERIALIZED VIEW later WITH (fillfactor = 50) AS SELECT n, n + 1 AS next FROM counted WITH NO DATA;
CREATE STATISTICS of_later ON n, next FROM later;
COMMENT ON STATISTICS of_later IS 'both';
-- a view created now would have these privileges
ALTER DEFAULT PRIVILEGES GRANT TRUNCATE ON TABLES TO regress_app_reader;
-- all that belongs to the views
CREATE FUNCTION pg_temp.describe() RETURNS text LANGUAGE sql AS $$
WITH v AS (SELECT * FROM pg_class WHERE relnamespace = 'app'::regnamespace AND relkind IN ('v', 'm'))
SELECT string_agg(line, E'\n' ORDER BY line COLLATE "C") FROM (
    SELECT format('%s %s %s %s %s %s', relname, relkind, relowner::regrole, reloptions, relispopulated, pg_get_viewdef(oid)) FROM v
    UNION ALL SELECT format('%s %s', relname, a) FROM v, unnest(coalesce(relacl, acldefault('r', relowner))) a
    UNION ALL SELECT format('%s %s %s', relname, attname, x) FROM v JOIN pg_attribute ON attrelid = v.oid, unnest(attacl) x
    UNION ALL SELECT format('%s %s %s', relname, attname, attstattarget) FROM v JOIN pg_attribute ON attrelid = v.oid
    UNION ALL SELECT format('%s %s', relname, pg_get_expr(adbin, adrelid)) FROM v JOIN pg_attrdef ON adrelid = v.oid
    UNION ALL SELECT format('%s %s %s', relname, objsubid, description) FROM v JOIN pg_description ON classoid = 'pg_class'::regclass AND objoid = v.oid
    UNION ALL SELECT format('%s %s', pg_get_triggerdef(t.oid), obj_description(t.oid, 'pg_trigger')) FROM v JOIN pg_trigger t ON tgrelid = v.oid
    UNION ALL SELECT format('%s %s', pg_get_ruledef(r.oid), obj_description(r.oid, 'pg_rewrite')) FROM v JOIN pg_rewrite r ON ev_class = v.oid
    UNION ALL SELECT format('%s %s %s', pg_get_indexdef(indexrelid), indisclustered, obj_description(indexrelid, 'pg_class')) FROM v JOIN pg_index ON indrelid = v.oid
    UNION ALL SELECT format('%s %s', pg_get_statisticsobjdef(s.oid), obj_description(s.oid, 'pg_statistic_ext')) FROM v JOIN pg_statistic_ext s ON stxrelid = v.oid
    ) s(line) $$;
SELECT pg_temp.describe() AS views \gset
INSERT INTO users (name) VALUES ('a'), ('b');
INSERT INTO projects (owner) VALUES (1);

SELECT severity, object, finding FROM snowflake_convert_report('app', '{sessions}', details => true);
-- what needs a decision first, and one row for objects of which the same is said
\x on
SELECT * FROM snowflake_convert_report('app', '{sessions}');
\x off
SELECT what_to_do COLLATE "C", count(*) FROM snowflake_convert_report('app', '{sessions}', details => true) GROUP BY 1 ORDER BY 1;
SELECT pg_temp.plain(snowflake_convert_schema('app', '{sessions}', dry_run => true));
CREATE TABLE own (id bigint PRIMARY KEY DEFAULT snowflake_id());
SELECT pg_temp.plain(snowflake_convert_schema('app', '{sessions}', widen => 'names'));
-- the views are as before
SELECT pg_temp.describe() AS created \gset
SELECT * FROM string_to_table(:'created', E'\n') EXCEPT SELECT * FROM string_to_table(:'views', E'\n');
SELECT * FROM string_to_table(:'views', E'\n') EXCEPT SELECT * FROM string_to_table(:'created', E'\n');

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
SELECT severity, object, finding FROM snowflake_convert_report('app', '{sessions}', details => true);
-- an upgrade restores a default, and adds a table
CREATE SEQUENCE users_seq;
ALTER TABLE users ALTER id SET DEFAULT nextval('users_seq');
CREATE TABLE tags (id serial PRIMARY KEY, issue int REFERENCES issues, user_id int);
SELECT object, finding, what_to_do FROM snowflake_convert_report('app', '{sessions}', details => true) WHERE severity = 'warning' AND object ~ 'users|tags';
SELECT snowflake_convert_schema('app', '{sessions}', generator => 'snowflake_id()', dry_run => true);
-- a view of a column that only widen changes
CREATE VIEW tagged AS SELECT user_id FROM tags;
SELECT object, finding FROM snowflake_convert_report('app', '{sessions}', widen => 'none', details => true) WHERE object ~ 'view';
SELECT object, finding FROM snowflake_convert_report('app', '{sessions}', widen => 'names', details => true) WHERE object ~ 'view' OR finding ~ 'stays integer';
SELECT pg_temp.plain(snowflake_convert_schema('app', '{sessions}', widen => 'names', dry_run => true));
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
SELECT object, finding FROM snowflake_convert_report('app', details => true) WHERE severity = 'obstacle';
SET ROLE regress_app_owner;
SELECT snowflake_convert_schema('app', '{sessions}');
SELECT * FROM snowflake_convert_report('app');
RESET ROLE;

-- what a nightly call returns: nothing, until there is a narrow column
CREATE SCHEMA healthy
    CREATE TABLE users (id serial PRIMARY KEY, name text)
    CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id int NOT NULL, number int);
SET client_min_messages = warning;
SELECT count(*) FROM snowflake_convert_schema('healthy', widen => 'names');
RESET client_min_messages;
SELECT * FROM snowflake_convert_report('healthy');
ALTER TABLE healthy.orders ADD seller_user_id smallint;
SELECT severity, object, finding FROM snowflake_convert_report('healthy', details => true);

-- without keys there is nothing that a column might hold
CREATE SCHEMA nothing;
SELECT snowflake_convert_schema('nothing');
CREATE TABLE nothing.copies (name text, user_id int);
SELECT snowflake_convert_schema('nothing', widen => 'names');
SELECT * FROM snowflake_convert_report('nothing');
SELECT snowflake_convert_schema(1::regnamespace);
SELECT snowflake_convert_schema('app', ARRAY[NULL::regclass]);
SELECT snowflake_convert_schema('pg_catalog');
SELECT snowflake_convert_schema('app', generator => 'now()');
SELECT snowflake_convert_schema(NULL);
SELECT * FROM snowflake_convert_report(NULL);
SELECT * FROM snowflake_convert_report('app', NULL);
SELECT * FROM snowflake_convert_report('app', '{}', NULL);
SELECT * FROM snowflake_convert_report('app', details => NULL);
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT snowflake_convert_schema('app');
ROLLBACK;

-- arguments that are not known
SELECT snowflake_convert_schema('app', widen => 'nothing');
SELECT * FROM snowflake_convert_report('app', widen => 'nothing');
SELECT snowflake_convert_schema('app', kind => 'serial');
SELECT snowflake_convert('app.users', kind => 'serial');
SELECT * FROM snowflake_convert_report('app', kind => 'serial');
SELECT * FROM snowflake_convert_plan('app.users', kind => 'serial');
SELECT snowflake_convert_schema('app', kind => 'snowflake', generator => 'snowflake_id()');
SELECT snowflake_convert('app.users', kind => 'snowflake', generator => 'snowflake_id()');

SET client_min_messages = warning;
DROP SCHEMA app, healthy, nothing CASCADE;
DROP OWNED BY regress_app;
DROP ROLE regress_app, regress_app_reader, regress_app_owner;

-- columns without a foreign key that prevent the conversion can be left out
CREATE SCHEMA leaving;
SET search_path = leaving, public;
CREATE TABLE users (id serial PRIMARY KEY);
CREATE TABLE notes (id bigserial PRIMARY KEY, user_id int, twice int GENERATED ALWAYS AS (user_id * 2) STORED);
CREATE TABLE called (user_id int);
CREATE FUNCTION sum_of() RETURNS bigint BEGIN ATOMIC SELECT sum(user_id) FROM called; END;
CREATE TABLE published (user_id int);
SET client_min_messages = error;
CREATE PUBLICATION regress_leaving FOR TABLE published (user_id);
SELECT object, what_to_do FROM snowflake_convert_report('leaving') WHERE severity = 'obstacle';
SELECT count(*) > 0 AS converted FROM snowflake_convert_schema('leaving', widen => 'none');
DROP PUBLICATION regress_leaving;
DROP SCHEMA leaving CASCADE;

-- generated columns that hold keys are never widened, and new IDs do not fit into them
CREATE SCHEMA computed;
SET search_path = computed, public;
CREATE TABLE users (id serial PRIMARY KEY);
CREATE TABLE documents (id bigserial PRIMARY KEY, data jsonb, user_id int GENERATED ALWAYS AS ((data ->> 'user')::int) STORED,
    user_ids int[] GENERATED ALWAYS AS (ARRAY[(data ->> 'user')::int]) STORED);
SELECT object, finding, what_to_do FROM snowflake_convert_report('computed') WHERE object ~ 'documents.user';
SELECT count(*) > 0 AS converted FROM snowflake_convert_schema('computed');
INSERT INTO users DEFAULT VALUES;
\set VERBOSITY sqlstate
INSERT INTO documents (data) SELECT jsonb_build_object('user', id) FROM users;
\set VERBOSITY default
DROP SCHEMA computed CASCADE;
