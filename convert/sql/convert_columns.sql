--
-- Columns whose names say that they hold keys, and that cannot hold new ones
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
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
    any_id varchar, name varchar(10), title_id text, members integer[], sizes integer[]);
CREATE TABLE roles ("user" integer PRIMARY KEY);
CREATE TABLE grants ("user" integer REFERENCES roles);
SELECT severity, object, finding FROM snowflake_convert_report('held', widen => 'none', details => true) WHERE object ~ 'groups|grants|roles|column content_[a-z]+ of table held.content$' AND object !~ 'column id ';
SELECT object, finding FROM snowflake_convert_report('held', widen => 'names', details => true) WHERE object ~ 'groups|grants|roles|column content_[a-z]+ of table held.content$' AND object !~ 'column id ';
BEGIN;
SELECT count(*) FROM snowflake_convert_schema('held', widen => 'names');
SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = 'groups'::regclass AND attname IN ('owner_id', 'role_id', 'user_ids', 'small_id') ORDER BY attnum;
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA held CASCADE;
RESET client_min_messages;

-- What names and values tell of columns without a foreign key
CREATE FUNCTION verdicts(schema text, widen text DEFAULT 'none') RETURNS TABLE (severity text, "column" text, finding text)
LANGUAGE sql AS $$
SELECT severity, regexp_replace(object, '^column (.*) of table .*[.](.*)$', '\2.\1'), regexp_replace(finding, ', without a foreign key,', '')
FROM snowflake_convert_report(schema::regnamespace, widen => widen, details => true) WHERE finding ~ 'holds? a key|becomes bigint:' ORDER BY regexp_replace(object, '^column (.*) of table .*[.](.*)$', '\2.\1') COLLATE "C"
$$;
CREATE SCHEMA told;
SET search_path = told, public;
CREATE TABLE users (id serial PRIMARY KEY, name text);
CREATE TABLE categories (id serial PRIMARY KEY, rank integer);
CREATE TABLE pages (page_id serial PRIMARY KEY, page_latest integer, page_touched integer, page_len integer, page_user integer);
CREATE TABLE artist_types (id serial PRIMARY KEY);
CREATE TABLE countries (id integer PRIMARY KEY, name text);
CREATE TABLE artists (id serial PRIMARY KEY, type integer, status integer, "Category" integer, "parentId" integer, created_by integer,
    country_id integer, paid integer, order_id integer, created_on integer, "user" integer, users integer, first_user integer, page_id integer,
    object_type text, object_id integer, foreign_id integer, reference text, url text);
INSERT INTO users SELECT FROM generate_series(1, 40);
INSERT INTO categories (rank) SELECT i FROM generate_series(1, 40) i;
INSERT INTO pages (page_latest, page_touched, page_len, page_user)
SELECT i + 3, 1700000000 + i, i + 3, 7000 + i FROM generate_series(1, 30) i;
INSERT INTO artist_types SELECT FROM generate_series(1, 3);
INSERT INTO countries SELECT i, 'a' FROM generate_series(1, 30) i;
INSERT INTO artists (type, "Category", country_id, users, first_user, object_type, object_id, foreign_id, reference, url)
SELECT 1 + i % 3, i, i, i % 4, i, 'user', i, 100000 + i, 'artist.types,' || i, 'localhost:' || i FROM generate_series(1, 30) i;
CREATE TABLE links (pl_latest integer, pl_from integer);
SELECT * FROM verdicts('told');
SELECT * FROM verdicts('told', 'keys') WHERE finding ~ 'becomes';
SELECT "column", finding FROM verdicts('told', 'all') WHERE severity = 'warning';
SELECT object, finding FROM snowflake_convert_report('told', widen => 'none, artists.created_on , told.links."pl_from"', details => true) WHERE object ~ 'created_on|pl_from|pl_latest';
-- what the argument cannot be
SELECT snowflake_convert_report('told', widen => 'ids');
SELECT snowflake_convert_report('told', widen => 'keys, a.b.c.d');
SELECT snowflake_convert_report('told', widen => '');
SELECT snowflake_convert_report('told', widen => 'keys,');
SELECT snowflake_convert_report('told', widen => 'artist.id');
SELECT snowflake_convert_report('told', widen => 'keys, nowhere.artists.id');
SELECT snowflake_convert_report('told', widen => 'artists.ids');
SELECT snowflake_convert_report('told', widen => 'artists.ctid');
SELECT object, finding FROM snowflake_convert_report('told', widen => 'artists.reference', details => true) WHERE severity = 'obstacle';
SELECT count(*) FROM snowflake_convert_report('told', widen => NULL);
-- ANALYZE changes nothing, and the conversion does what the dry run shows
CREATE TEMP TABLE dry AS SELECT * FROM snowflake_convert_schema('told', dry_run => true) s(statement);
ANALYZE;
SET client_min_messages = warning;
BEGIN;
CREATE TEMP TABLE done AS SELECT * FROM snowflake_convert_schema('told') s(statement);
SELECT count(*) FILTER (WHERE statement ~ 'TYPE bigint') > 0 AS any FROM done;
SELECT * FROM dry EXCEPT SELECT * FROM done;
SELECT * FROM done EXCEPT SELECT * FROM dry;
SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON oid = attrelid
WHERE relnamespace = 'told'::regnamespace AND relkind = 'r' AND attnum > 0 AND atttypid = 'bigint'::regtype ORDER BY attrelid::regclass::text COLLATE "C", attnum;
-- a column that was added since
ALTER TABLE links ADD user_id integer, ADD pl_level integer;
SELECT severity, "column", finding FROM verdicts('told', 'keys') WHERE "column" ~ 'links';
ROLLBACK;
RESET client_min_messages;

-- Nothing of a big table is read but a sample, also of one that holds keys, and of texts
CREATE TABLE big (id serial PRIMARY KEY, held integer, counted integer, word text) WITH (autovacuum_enabled = off);
INSERT INTO big (held, counted, word) SELECT 1 + i % 40, i, 'a' FROM generate_series(1, 200000) i;
SELECT pg_relation_size('big') > 1000 * current_setting('block_size')::int AS is_big;
SELECT "column", finding FROM verdicts('told') WHERE "column" ~ 'big';
-- what was read before does not count
SELECT pg_stat_force_next_flush();
BEGIN;
SELECT count(*) > 0 FROM snowflake_convert_report('told');
SELECT seq_scan, seq_tup_read BETWEEN 1 AND 60000 AS sampled FROM pg_stat_xact_user_tables WHERE relid = 'big'::regclass;
-- not without an index, so whether its values are there is not known
ALTER TABLE big DROP CONSTRAINT big_pkey;
CREATE TABLE holds_big (a integer);
INSERT INTO holds_big SELECT 150000 + i FROM generate_series(1, 30) i;
SELECT "column", finding FROM verdicts('told') WHERE "column" ~ 'holds_big';
CREATE INDEX ON big (id);
SELECT "column", finding FROM verdicts('told') WHERE "column" ~ 'holds_big';
ROLLBACK;

-- Partitions and children are read with their table
CREATE TABLE parted (id serial, held integer, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (1000000);
INSERT INTO parted (held) SELECT i FROM generate_series(1, 30) i;
CREATE TABLE parent (keeper integer);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child SELECT i FROM generate_series(1, 30) i;
CREATE TABLE by_user (user_id integer) PARTITION BY LIST (user_id);
SELECT "column", finding FROM verdicts('told', 'all') WHERE "column" ~ 'parted|parent|child|by_user';

-- Tables of others are not read, so their code does not run, nor those with policies for the owner
CREATE ROLE regress_told;
CREATE ROLE regress_told_other;
GRANT ALL ON SCHEMA told TO regress_told, regress_told_other;
CREATE TABLE others (user_id integer, held integer);
INSERT INTO others SELECT i, i FROM generate_series(1, 30) i;
CREATE TABLE guarded (held integer, user_id integer);
INSERT INTO guarded SELECT i, i FROM generate_series(1, 30) i;
CREATE TABLE unread (held integer, user_id integer);
INSERT INTO unread SELECT i, i FROM generate_series(1, 30) i;
DO $$
DECLARE t regclass;
BEGIN
	FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'told'::regnamespace AND relkind IN ('r', 'p') LOOP
		EXECUTE format('ALTER TABLE %s OWNER TO regress_told', t);
	END LOOP;
END $$;
ALTER TABLE others OWNER TO regress_told_other;
GRANT SELECT ON others TO regress_told;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
REVOKE ALL ON unread FROM regress_told;
CREATE FUNCTION spy() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE WARNING 'called'; RETURN 1; END $$;
SET client_min_messages = error;
CREATE INDEX ON others ((held + spy()));
RESET client_min_messages;
SELECT "column", severity, finding FROM verdicts('told') WHERE "column" ~ 'others|guarded|unread';
SELECT "column", severity, finding FROM verdicts('told', 'keys') WHERE "column" ~ 'others|guarded|unread';
SELECT object, finding FROM snowflake_convert_report('told', widen => 'others.user_id', details => true) WHERE severity = 'obstacle' AND object ~ 'others';
SET ROLE regress_told;
SELECT "column", severity, finding FROM verdicts('told') WHERE "column" ~ 'others|guarded|unread';
RESET ROLE;

-- Keys that are bigint are not held by integers, except if names say so
CREATE SCHEMA wide;
SET search_path = wide, public;
CREATE TABLE users (id bigserial PRIMARY KEY);
INSERT INTO users SELECT FROM generate_series(1, 40);
CREATE TABLE logs (id bigserial PRIMARY KEY, user_id integer, host_id integer, points integer, spot integer);
INSERT INTO logs (user_id, host_id, points, spot) SELECT i, i, i, i FROM generate_series(1, 30) i;
SELECT * FROM verdicts('wide');

-- Names of foreign keys of other tables, and of kinds that have a table
CREATE SCHEMA alike;
SET search_path = alike, public;
CREATE TABLE users (id serial PRIMARY KEY);
CREATE TABLE series_types (id serial PRIMARY KEY);
CREATE TABLE teams (lead integer REFERENCES users);
CREATE TABLE offices (lead integer, building_type integer);
SELECT * FROM verdicts('alike');

-- Whatever the name of a column whose values are keys, it is reported; a number or kind is perhaps, and comes last
CREATE SCHEMA named;
SET search_path = named, public;
CREATE TABLE orders (id serial PRIMARY KEY);
INSERT INTO orders SELECT FROM generate_series(1, 60);
DO $$
DECLARE
	names text[] := '{order_id, row_id, sort_id, scope_id, schema_id, purchase_order_id, matrix_row_id, channel, files, has_file, is_child_of, buyer,
		paid, valid, hits, users, days, lines, kind, state, hash, namespace, version, position, price, amount, row_count, digits, index, left, len, length,
		access_level, number, order, pages, priority, quantity, rank, right, score, sequence, size, sort, status, total, type, weight}';
BEGIN
	EXECUTE format('CREATE TABLE facts (%s)', (SELECT string_agg(format('%I integer', n), ', ') FROM unnest(names) n));
	EXECUTE format('INSERT INTO facts SELECT %s FROM generate_series(11, 60) i', (SELECT string_agg('i', ', ') FROM unnest(names)));
END $$;
SELECT finding, string_agg("column", ' ' ORDER BY "column" COLLATE "C") FROM verdicts('named') GROUP BY finding ORDER BY finding COLLATE "C";
SELECT (SELECT count(*) FROM pg_attribute WHERE attrelid = 'facts'::regclass AND attnum > 0) - count(*) AS silent FROM verdicts('named');
CREATE TABLE more (once integer, twice integer, small_rank integer, again integer, never integer, never_id integer);
INSERT INTO more SELECT 7, 7 + i % 2, i, i + 30 FROM generate_series(1, 18) i;
SELECT object FROM snowflake_convert_report('named', widen => 'none') WHERE finding = 'columns might hold a key, and stay integer';
SELECT object FROM snowflake_convert_report('named', widen => 'none', details => true) WHERE finding ~ 'might hold' AND object ~ 'more|position';

-- Without a value only a name that says whose key it is tells
CREATE SCHEMA empty
	CREATE TABLE queues (id serial PRIMARY KEY, level integer, parent integer, creator integer, "lastUpdatedBy" integer)
	CREATE TABLE grp (id serial PRIMARY KEY)
	CREATE TABLE access_levels (id serial PRIMARY KEY)
	CREATE TABLE pages (page_id serial PRIMARY KEY)
	CREATE TABLE given (id integer PRIMARY KEY)
	CREATE TABLE address (grp integer, queue integer, queueid integer, queue_id integer, old_queue integer, old_queue_id integer, ppageid integer,
		member_id integer, memberid integer, paid integer, access_level integer, runner_owner integer, given_id integer, port integer, page_of integer)
	CREATE TABLE links (li_page integer, li_from integer);
SELECT * FROM verdicts('empty', 'keys');

-- The key of another table, as in SpamAssassin, and as the key of a table
CREATE SCHEMA ids;
SET search_path = ids, public;
CREATE TABLE vars (id serial PRIMARY KEY);
INSERT INTO vars SELECT FROM generate_series(1, 2);
CREATE TABLE tokens (id integer, token text, PRIMARY KEY (id, token));
CREATE TABLE profiles (id integer PRIMARY KEY);
INSERT INTO tokens VALUES (2, 'a');
INSERT INTO profiles VALUES (2);
SELECT * FROM verdicts('ids');

-- Types that are not widened
CREATE SCHEMA types;
SET search_path = types, public;
CREATE DOMAIN small_int AS integer;
CREATE DOMAIN short AS varchar(8);
CREATE TABLE people (id serial PRIMARY KEY);
INSERT INTO people SELECT FROM generate_series(1, 50);
CREATE TABLE facts (buyer smallint, seller small_int, giver numeric(9,0), taker varchar(8), host char(8), guest short, heir real, price numeric(6, 2),
	zip varchar(8), name varchar(8), other small_int, wide varchar(20), rate numeric(4, 3));
INSERT INTO facts SELECT i, i, i, i, i, i, i, i, 40000 + i, 'a' || i, NULL, i, 1 / i::numeric FROM generate_series(1, 50) i;
SELECT object, finding FROM snowflake_convert_report('types', widen => 'all', details => true) WHERE object ~ 'facts';

-- After the conversion nothing is a warning but what it would widen
BEGIN;
CREATE TABLE plain (people_id integer, holder integer);
INSERT INTO plain SELECT i, i FROM generate_series(1, 30) i;
SELECT count(*) > 0 AS warned FROM snowflake_convert_report('types', widen => 'none') WHERE severity <> 'info';
SET client_min_messages = warning;
SELECT count(*) > 0 AS done FROM snowflake_convert_schema('types', widen => 'none');
SELECT object FROM snowflake_convert_report('types', widen => 'none') WHERE severity <> 'info';
SELECT object, finding FROM snowflake_convert_report('types') WHERE severity <> 'info';
ROLLBACK;

-- Keys of ten digits, and values of reals, which have an exponent from 1e+06 or 1e+15 on
CREATE SCHEMA great;
SET search_path = great, public;
CREATE TABLE users (id serial PRIMARY KEY);
CREATE TABLE parts (id serial PRIMARY KEY);
INSERT INTO users SELECT 1500000000 + i FROM generate_series(1, 100) i;
INSERT INTO parts SELECT 1000000 + i FROM generate_series(1, 100) i;
CREATE TABLE facts (user_id integer, buyer integer, seller numeric(10), made real, sold double precision, heir double precision,
    weighed real, beyond numeric(10));
INSERT INTO facts SELECT 1500000000 + i, 1500000000 + i, 1500000000 + i, 1000000 + i, 1000000 + i, 1500000000 + i, 1000000.5 + i, 5500000000 + i
FROM generate_series(1, 50) i;
SELECT object, finding FROM snowflake_convert_report('great', widen => 'all', details => true) WHERE object ~ 'facts';

-- A key that cannot be read refutes nothing: there is no index that begins with it
CREATE SCHEMA closed;
SET search_path = closed, public;
CREATE TABLE events (id serial, day date, note text, PRIMARY KEY (day, id)) WITH (autovacuum_enabled = off);
INSERT INTO events (day, note) SELECT '2026-01-01', repeat('x', 200) FROM generate_series(1, 8000) g;
SELECT pg_relation_size('events') > 128 * current_setting('block_size')::int AS is_big;
CREATE TABLE logs (event_id integer, who integer);
INSERT INTO logs SELECT 10 * i, 10 * i FROM generate_series(1, 50) i;
SELECT * FROM verdicts('closed');
-- nor does it tell of a column without such a name, for the conversion of one table
SELECT count(*) FROM snowflake_convert('events', 'id', dry_run => true);

-- More columns than a query can have twice, and texts that are too short
CREATE SCHEMA much;
SET search_path = much, public;
CREATE TABLE users (id serial PRIMARY KEY);
INSERT INTO users SELECT FROM generate_series(1, 40);
DO $$
BEGIN
	EXECUTE format('CREATE TABLE facts (%s, holder integer)', (SELECT string_agg(format('c%s varchar(10)', i), ', ') FROM generate_series(1, 850) i));
END $$;
INSERT INTO facts (holder) SELECT i FROM generate_series(1, 40) i;
CREATE TABLE notes (user_id varchar(10));
INSERT INTO notes SELECT 'users/' || i FROM generate_series(1, 40) i;
SELECT * FROM verdicts('much') WHERE "column" ~ 'holder';
SELECT severity, object, finding FROM snowflake_convert_report('much', widen => 'none', details => true) WHERE object ~ 'notes';

-- One table: what has its key without a foreign key is named, with what cures it
CREATE SCHEMA one;
SET search_path = one, public;
CREATE TABLE lines (id serial PRIMARY KEY, n integer);
CREATE TABLE others (id serial PRIMARY KEY);
CREATE TABLE audit (row_id integer, what text, other_id integer, kind integer, small integer);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit (row_id, what) VALUES (NEW.id, TG_OP); RETURN NEW; END $$;
CREATE TRIGGER audit AFTER INSERT ON lines FOR EACH ROW EXECUTE FUNCTION audit();
INSERT INTO lines (n) SELECT i FROM generate_series(1, 40) i;
UPDATE audit SET other_id = row_id, small = 1;
SET client_min_messages = notice;
SELECT count(*) FROM snowflake_convert('lines', dry_run => true);
SELECT count(*) > 0 AS steps FROM snowflake_convert_plan('lines');
-- the tables that were read for it are free again
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT count(*) FROM snowflake_convert('lines', dry_run => true);
SELECT relation::regclass FROM pg_locks WHERE pid = pg_backend_pid() AND relation = ANY ('{others, audit}'::regclass[]);
ROLLBACK;
-- as the hint says; where the table has no key yet, nothing is stored that is none
SET client_min_messages = warning;
CALL snowflake_convert_online('audit', 'row_id', until => 'swap');
INSERT INTO audit (what) VALUES ('nothing');
DROP TRIGGER "~snowflake_swapped" ON audit;
INSERT INTO audit (what) VALUES ('nothing') RETURNING row_id;
SELECT count(*) FROM audit WHERE what = 'nothing' AND row_id IS NULL;
CALL snowflake_convert_online('lines');
INSERT INTO lines (n) VALUES (1);
SELECT count(*) FROM lines JOIN audit ON id = row_id WHERE id > 40;
RESET client_min_messages;

-- A name of one letter says nothing
CREATE SCHEMA short
    CREATE TABLE t (id serial PRIMARY KEY, u integer, note text);
SELECT * FROM verdicts('short');

-- Keys to which the application gives values, and what references them
CREATE SCHEMA supplied;
CREATE TABLE supplied.options (id serial PRIMARY KEY, name text);
CREATE TABLE supplied.option_scope (scope_id smallint PRIMARY KEY);
CREATE TABLE supplied.scopes (scope_id integer PRIMARY KEY REFERENCES supplied.option_scope);
CREATE TABLE supplied.colours (colour_id integer PRIMARY KEY);
CREATE TABLE supplied.details (option_id integer PRIMARY KEY);
INSERT INTO supplied.options SELECT FROM generate_series(1, 30);
INSERT INTO supplied.option_scope SELECT generate_series(1, 5);
INSERT INTO supplied.colours SELECT generate_series(1, 30);
SELECT * FROM verdicts('supplied');
SET client_min_messages = warning;
DROP SCHEMA supplied, told, wide, alike, named, empty, ids, types, great, closed, much, one, short CASCADE;
DROP FUNCTION verdicts;
DROP ROLE regress_told, regress_told_other;
