--
-- snowflake_convert(): constraints, indexes, statistics and generated columns
-- that do not accept a bigint, or the IDs to come.  What a dry run says is what
-- the conversion says.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
CREATE SCHEMA expressions;
SET search_path = expressions, public;
\set SHOW_CONTEXT never

-- CHECK constraints that no new ID, or not every one, satisfies
CREATE TABLE t (id int PRIMARY KEY CHECK (id < 1000000), v int, CONSTRAINT even CHECK (v > 0 AND id % 2 = 0));
CREATE TABLE u (t int REFERENCES t CHECK (t IN (1, 2, 3)));
SELECT snowflake_convert('t', dry_run => true);
SELECT snowflake_convert('t');
ALTER TABLE t DROP CONSTRAINT t_id_check, DROP CONSTRAINT even;
ALTER TABLE u DROP CONSTRAINT u_t_check;
-- those that depend on other columns, or are null
ALTER TABLE t ADD CHECK (id < 1000000 OR v > 0), ADD CHECK (id > nullif(0, 0)),
    ADD CHECK (v IS NOT NULL AND id > 0), ADD CHECK (num_nulls(t.*) < 2);
CREATE TABLE family (f int PRIMARY KEY REFERENCES t);
CREATE TABLE child (CHECK (f < 10)) INHERITS (family);
SELECT count(*) FROM snowflake_convert('t', dry_run => true);
SELECT count(*) FROM snowflake_convert('t');
INSERT INTO t (v) VALUES (1) RETURNING id > 1000000 AS snowflake;
-- functions that are not immutable
CREATE FUNCTION small(bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN $1 < 1000000; END';
CREATE TABLE volatile (id bigint PRIMARY KEY CHECK (expressions.small(id)));
SELECT snowflake_convert('volatile');

-- a cancel is not an obstacle
CREATE FUNCTION slow(bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_cancel_backend(pg_backend_pid());
    PERFORM pg_sleep(600);
    RETURN true;
END $$;
CREATE TABLE slow (id bigint PRIMARY KEY CHECK (expressions.slow(id)));
SELECT snowflake_convert('slow');
SELECT snowflake_convert('slow', dry_run => true);

-- what only a partition or a child has: rows with new IDs might not belong there
CREATE TABLE parts (id bigint, at date) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts (CHECK (id < 1000)) FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2021-01-01') TO ('2022-01-01') PARTITION BY LIST ((id::int));
CREATE TABLE parts_2_1 PARTITION OF parts_2 DEFAULT;
CREATE INDEX parts_1_int ON parts_1 ((id::int));
CREATE UNIQUE INDEX parts_1_digits ON parts_1 (lpad(id::text, 6, '0'));
SELECT snowflake_convert('parts', 'id', dry_run => true);
SELECT snowflake_convert('parts', 'id');
DROP INDEX parts_1_int, parts_1_digits;
DROP TABLE parts_2;
CREATE TABLE child_1 (CHECK (id < 1000)) INHERITS (volatile);
CREATE INDEX child_1_int ON child_1 ((id::int));
ALTER TABLE volatile DROP CONSTRAINT volatile_id_check;
SET client_min_messages = notice;
SELECT snowflake_convert('parts', 'id');
SELECT snowflake_convert('volatile');
SET client_min_messages = warning;
-- IDs that a partition does not accept
CREATE TABLE by_id (id bigint) PARTITION BY RANGE (id);
CREATE TABLE by_id_1 PARTITION OF by_id (CHECK (id < 1000)) FOR VALUES FROM (1) TO (1000) PARTITION BY LIST ((id::int));
CREATE TABLE by_id_2 PARTITION OF by_id FOR VALUES FROM (1000) TO (MAXVALUE);
CREATE INDEX by_id_1_int ON by_id_1 ((id::int));
CREATE INDEX by_id_2_int ON by_id_2 ((id::int));
SELECT snowflake_convert('by_id', 'id');
DROP INDEX by_id_2_int;
SET client_min_messages = notice;
SELECT snowflake_convert('by_id', 'id');
SET client_min_messages = warning;

-- functions and operator classes that accept integers only
CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2';
CREATE TABLE halves (id int PRIMARY KEY, b int, CONSTRAINT half CHECK (expressions.f(id) >= 0));
CREATE INDEX halves_f ON halves (b, f(id));
CREATE INDEX halves_where ON halves (b) WHERE f(id) > 1;
CREATE INDEX halves_brin ON halves USING brin (b int4_minmax_multi_ops, id int4_minmax_multi_ops);
CREATE STATISTICS halves_statistics ON (f(id)), b FROM halves;
SELECT snowflake_convert('halves', dry_run => true);
SELECT snowflake_convert('halves');
DROP STATISTICS halves_statistics;
DROP INDEX halves_f, halves_where, halves_brin;
ALTER TABLE halves DROP CONSTRAINT half;
CREATE INDEX halves_brin ON halves USING brin (b int4_minmax_multi_ops, id int4_minmax_ops);
CREATE INDEX halves_expression ON halves ((id / 2) int4_ops DESC, b) INCLUDE (id) WHERE id > 5;
CREATE STATISTICS halves_statistics ON (id / 2), b, id FROM halves;
ALTER TABLE halves ADD EXCLUDE USING btree (id WITH =), ADD CHECK (id <> b), ADD UNIQUE (b, id);
INSERT INTO halves VALUES (1, 2);
SELECT count(*) FROM snowflake_convert('halves', dry_run => true);
SELECT count(*) FROM snowflake_convert('halves');
INSERT INTO halves (b) VALUES (3) RETURNING id > 1000000 AS snowflake;
ANALYZE halves;

-- expressions that cannot be computed for new IDs
CREATE TABLE narrow (id bigint PRIMARY KEY, b int, half int GENERATED ALWAYS AS (id::int / 2) STORED);
CREATE INDEX narrow_index ON narrow ((id::int), b);
CREATE STATISTICS narrow_statistics ON (id::int + b), b FROM narrow;
SELECT snowflake_convert('narrow', dry_run => true);
SELECT snowflake_convert('narrow');
CREATE TABLE narrow_parts (id bigint) PARTITION BY RANGE ((id::int));
CREATE TABLE narrow_parts_1 PARTITION OF narrow_parts DEFAULT;
SELECT snowflake_convert('narrow_parts', 'id');
CREATE TABLE narrow_parts_2 PARTITION OF narrow_parts FOR VALUES FROM (1) TO (10);
SELECT snowflake_convert('narrow_parts', 'id');

-- generated columns, with the casts to their types, and what depends on them
CREATE DOMAIN small_id AS bigint CHECK (VALUE < 1000000);
CREATE TABLE invoices (id bigint PRIMARY KEY, v int,
    n int GENERATED ALWAYS AS (id) STORED,
    label varchar(12) GENERATED ALWAYS AS ('INV-' || id::text) STORED,
    padded char(8) GENERATED ALWAYS AS (id::text) STORED,
    amount numeric(10) GENERATED ALWAYS AS (id) STORED,
    small small_id GENERATED ALWAYS AS (id) STORED,
    code text GENERATED ALWAYS AS ('INV-' || id::text) STORED CONSTRAINT short CHECK (length(code) <= 12));
CREATE INDEX invoices_index ON invoices ((substr(code, 5)::bigint::int), v);
CREATE INDEX invoices_where ON invoices (v) WHERE substr(code, 5)::bigint::int > 0;
CREATE STATISTICS invoices_statistics ON (substr(code, 5)::bigint::int), v FROM invoices;
CREATE TABLE lines (v int, invoice bigint REFERENCES invoices, copy int GENERATED ALWAYS AS (invoice) STORED,
    other bigint GENERATED ALWAYS AS (v) STORED REFERENCES invoices CONSTRAINT few CHECK (other < 1000));
SELECT snowflake_convert('invoices', dry_run => true);
SELECT snowflake_convert('invoices');
DROP TABLE invoices, lines;
-- since PostgreSQL 18, those that are not stored, too
SELECT CASE WHEN current_setting('server_version_num')::int < 180000 THEN 'STORED' ELSE 'VIRTUAL' END AS kind \gset
CREATE TABLE computed (id bigint PRIMARY KEY,
    n int GENERATED ALWAYS AS (id) :kind,
    code text GENERATED ALWAYS AS ('INV-' || id::text) :kind CONSTRAINT short CHECK (length(code) <= 12));
SELECT snowflake_convert('computed');
-- those that accept new IDs, or depend on other columns
CREATE TABLE invoices (id bigint PRIMARY KEY, v int,
    n bigint GENERATED ALWAYS AS (id) STORED,
    label varchar(30) GENERATED ALWAYS AS ('INV-' || id::text) STORED CHECK (length(label) > 12),
    mixed int GENERATED ALWAYS AS (id % 10 + v) STORED CHECK (mixed < 100),
    half int GENERATED ALWAYS AS (v / 2) STORED CHECK (half < 100));
CREATE INDEX invoices_index ON invoices ((substr(label, 5)::bigint), half) WHERE mixed > 0;
CREATE STATISTICS invoices_statistics ON (substr(label, 5)::bigint), mixed, half FROM invoices;
CREATE TABLE lines (v int, invoice bigint GENERATED ALWAYS AS (v) STORED REFERENCES invoices CHECK (invoice > 1000));
SELECT count(*) FROM snowflake_convert('invoices', dry_run => true);
SELECT count(*) FROM snowflake_convert('invoices');
INSERT INTO invoices (v) VALUES (1), (2);
ANALYZE invoices;
-- a reference whose type is a domain
CREATE TABLE orders (id bigint PRIMARY KEY);
CREATE DOMAIN smaller_id AS small_id;
CREATE DOMAIN any_id AS bigint CHECK (VALUE > 0);
CREATE TABLE items (a small_id REFERENCES orders, b smaller_id REFERENCES orders, c any_id REFERENCES orders);
SELECT snowflake_convert('orders', dry_run => true);
SELECT snowflake_convert('orders');
ALTER TABLE items DROP a, DROP b;
SELECT count(*) FROM snowflake_convert('orders');
WITH o AS (INSERT INTO orders DEFAULT VALUES RETURNING id) INSERT INTO items SELECT id FROM o;

-- unique indexes in which different IDs have the same value
CREATE TABLE codes (id bigint PRIMARY KEY, v int, name text, deleted boolean NOT NULL DEFAULT false,
    code text GENERATED ALWAYS AS ('INV-' || lpad(id::text, 6, '0')) STORED UNIQUE,
    rounded real GENERATED ALWAYS AS (id) STORED UNIQUE,
    double float8 GENERATED ALWAYS AS (id) STORED,
    CONSTRAINT both_codes UNIQUE (code, double));
CREATE UNIQUE INDEX codes_double ON codes (double) WHERE id > 0;
CREATE UNIQUE INDEX codes_padded ON codes (lpad(id::text, 6, '0')) INCLUDE (name);
SELECT snowflake_convert('codes', dry_run => true);
SELECT snowflake_convert('codes');
ALTER TABLE codes DROP code, DROP rounded, DROP double;
DROP INDEX codes_padded;
-- those with different values, other columns, nulls, or perhaps without such rows
ALTER TABLE codes ADD code text GENERATED ALWAYS AS (lpad(id::text, 6, '0')) STORED,
    ADD full_code text GENERATED ALWAYS AS ('INV-' || id::text) STORED UNIQUE,
    ADD UNIQUE (code, v), ADD UNIQUE (code, full_code);
CREATE UNIQUE INDEX codes_name ON codes (id, lower(name));
CREATE UNIQUE INDEX codes_hash ON codes (hashint8(id));
CREATE UNIQUE INDEX codes_old ON codes ((id::int)) WHERE id < 1000000;
CREATE UNIQUE INDEX codes_kept ON codes (code) WHERE NOT deleted;
CREATE UNIQUE INDEX codes_null ON codes ((CASE WHEN id < 1000000 THEN 1 END));
CREATE INDEX codes_not_unique ON codes (code);
SELECT count(*) FROM snowflake_convert('codes', dry_run => true);
SELECT count(*) FROM snowflake_convert('codes');
INSERT INTO codes (v, deleted) SELECT i, true FROM generate_series(1, 10) i;

-- what is set of indexes and statistics objects beside their definitions
CREATE TABLE kinds (id int PRIMARY KEY);
CREATE TABLE log (id int, at int, kind int CONSTRAINT of_kind REFERENCES kinds, CONSTRAINT positive CHECK (id > 0)) PARTITION BY RANGE (at);
CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (0) TO (10);
CREATE UNIQUE INDEX log_expression ON log (id, at, (id / 2));
CREATE INDEX log_1_expression ON log_1 (at, (id / 3));
CREATE UNIQUE INDEX log_1_id ON log_1 (id);
CREATE STATISTICS log_statistics ON id, at FROM log;
CREATE STATISTICS "Log 1 statistics" ON (id / 2), at FROM log_1;
CREATE STATISTICS log_other ON at, (at + 1) FROM log;
ALTER TABLE log_1 ALTER id SET NOT NULL, ADD EXCLUDE USING btree ((id * 5) WITH =);
ALTER INDEX log_expression ALTER 3 SET STATISTICS 11;
ALTER INDEX log_1_expression ALTER 2 SET STATISTICS 12;
ALTER INDEX log_1_expr_excl ALTER 1 SET STATISTICS 0;
ALTER STATISTICS log_statistics SET STATISTICS 13;
ALTER STATISTICS "Log 1 statistics" SET STATISTICS 0;
ALTER STATISTICS log_other SET STATISTICS 15;
ALTER INDEX log_1_expression DEPENDS ON EXTENSION plpgsql;
ALTER TABLE log_1 REPLICA IDENTITY USING INDEX log_1_id, CLUSTER ON log_1_expression;
COMMENT ON INDEX log_1_expression IS 'thirds';
COMMENT ON STATISTICS log_statistics IS 'of the log';
COMMENT ON CONSTRAINT positive ON log_1 IS 'in 1';
COMMENT ON CONSTRAINT of_kind ON log_1 IS 'kind in 1';
CREATE TABLE notes (at int, kind int CONSTRAINT of_kind REFERENCES kinds) PARTITION BY RANGE (at);
CREATE TABLE notes_1 (at int, kind int CONSTRAINT of_its_kind REFERENCES kinds) PARTITION BY RANGE (at);
CREATE TABLE notes_1_1 PARTITION OF notes_1 FOR VALUES FROM (0) TO (5);
CREATE TABLE notes_1_2 (at int, kind int CONSTRAINT of_kind REFERENCES kinds);
ALTER TABLE notes_1 ATTACH PARTITION notes_1_2 FOR VALUES FROM (5) TO (10);
ALTER TABLE notes ATTACH PARTITION notes_1 FOR VALUES FROM (0) TO (10);
COMMENT ON CONSTRAINT of_its_kind ON notes_1_1 IS 'lost with the name';
COMMENT ON CONSTRAINT of_kind ON notes_1_2 IS 'kind in 2';
CREATE VIEW settings AS
SELECT a.attrelid::regclass::text AS name, format('column %s: %s', a.attnum, a.attstattarget) AS setting
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indexrelid AND a.attstattarget >= 0
WHERE i.indrelid IN ('log'::regclass, 'log_1'::regclass)
UNION ALL
SELECT s.stxname, format('%s %s', s.stxstattarget, obj_description(s.oid, 'pg_statistic_ext'))
FROM pg_statistic_ext s WHERE s.stxrelid IN ('log'::regclass, 'log_1'::regclass)
UNION ALL
SELECT i.indexrelid::regclass::text, format('clustered %s, replica identity %s, extensions %s, %s', i.indisclustered, i.indisreplident,
    (SELECT count(*) FROM pg_depend d WHERE d.objid = i.indexrelid AND d.deptype = 'x'), obj_description(i.indexrelid, 'pg_class'))
FROM pg_index i WHERE i.indrelid = 'log_1'::regclass
UNION ALL
SELECT k.conname, obj_description(k.oid, 'pg_constraint')
FROM pg_constraint k WHERE k.conrelid IN ('log'::regclass, 'log_1'::regclass, 'notes_1_1'::regclass, 'notes_1_2'::regclass)
AND obj_description(k.oid, 'pg_constraint') IS NOT NULL;
CREATE TABLE before AS SELECT * FROM settings;
SELECT * FROM before ORDER BY name COLLATE "C", setting;
SELECT snowflake_convert('log', 'id');
SELECT snowflake_convert('kinds');
(TABLE before EXCEPT TABLE settings) UNION ALL (TABLE settings EXCEPT TABLE before);
-- what cannot be set again
CREATE ROLE regress_expressions_owner;
CREATE TABLE kept (id int, at int, kind int, PRIMARY KEY (id, at), UNIQUE (at)) PARTITION BY RANGE (at);
CREATE TABLE kept_1 PARTITION OF kept FOR VALUES FROM (0) TO (10);
CREATE INDEX kept_a ON kept (id);
CREATE INDEX kept_b ON kept ((id + 1), (id + 2)) WITH (fillfactor = 60);
ALTER INDEX kept_b ALTER 1 SET STATISTICS 7;
SELECT count(*) FROM snowflake_convert('kept', 'id', dry_run => true);
ALTER TABLE kept_1 REPLICA IDENTITY USING INDEX kept_1_pkey, CLUSTER ON kept_1_id_idx;
ALTER INDEX kept_1_id_idx SET (fillfactor = 50);
ALTER INDEX kept_1_id_idx DEPENDS ON EXTENSION plpgsql;
ALTER INDEX kept_1_expr_expr1_idx ALTER 2 SET STATISTICS 5;
COMMENT ON INDEX kept_1_id_idx IS 'of the partition';
COMMENT ON CONSTRAINT kept_1_pkey ON kept_1 IS 'of the partition';
CREATE STATISTICS kept_statistics ON id, at FROM kept_1;
CREATE STATISTICS kept_by_default ON id, at, kind FROM kept_1;
ALTER STATISTICS kept_statistics SET STATISTICS 9;
CREATE SCHEMA regress_expressions_hidden;
CREATE STATISTICS regress_expressions_hidden.kept_hidden ON id, at FROM kept_1;
ALTER STATISTICS regress_expressions_hidden.kept_hidden SET STATISTICS 9;
ALTER STATISTICS regress_expressions_hidden.kept_hidden OWNER TO regress_expressions_owner;
ALTER TABLE kept OWNER TO regress_expressions_owner;
ALTER TABLE kept_1 OWNER TO regress_expressions_owner;
GRANT USAGE ON SCHEMA expressions TO regress_expressions_owner;
SELECT snowflake_convert('kept', 'id');
DROP SCHEMA regress_expressions_hidden CASCADE;
-- a constraint that is valid in one partition only
CREATE TABLE checked (id int, at int) PARTITION BY LIST (at);
CREATE TABLE checked_1 PARTITION OF checked FOR VALUES IN (1);
CREATE TABLE checked_2 PARTITION OF checked FOR VALUES IN (2);
ALTER TABLE checked ADD CONSTRAINT positive CHECK (id > 0) NOT VALID;
ALTER TABLE checked_1 VALIDATE CONSTRAINT positive;
SELECT snowflake_convert('checked', 'id');
SELECT conrelid::regclass, convalidated FROM pg_constraint WHERE conname = 'positive' AND conrelid::regclass::text LIKE 'checked%' ORDER BY conrelid::regclass::text;
-- one that children have themselves, too
CREATE TABLE elder (id int PRIMARY KEY);
ALTER TABLE elder ADD CONSTRAINT positive CHECK (id > 0) NOT VALID;
CREATE TABLE middle () INHERITS (elder);
ALTER TABLE middle VALIDATE CONSTRAINT positive;
CREATE TABLE younger (CONSTRAINT positive CHECK (id > 0)) INHERITS (middle);
SELECT snowflake_convert('elder', dry_run => true);
SELECT snowflake_convert('elder');
ALTER TABLE elder VALIDATE CONSTRAINT positive;
SELECT count(*) FROM snowflake_convert('elder');
-- constraints of partitions that are not those of the partitioned table
CREATE TABLE bound (id int, at int, v int) PARTITION BY LIST (at);
CREATE TABLE bound_1 PARTITION OF bound (PRIMARY KEY (id, at), CONSTRAINT late UNIQUE (at, id) DEFERRABLE, UNIQUE (v, id, at)) FOR VALUES IN (1);
ALTER TABLE bound ADD UNIQUE (id, at), ADD UNIQUE (at, id), ADD CONSTRAINT same UNIQUE (v, id, at);
CREATE TABLE bound_2 PARTITION OF bound (CONSTRAINT own UNIQUE (at, v, id)) FOR VALUES IN (2);
CREATE UNIQUE INDEX bound_index ON bound (at, v, id);
SELECT snowflake_convert('bound', 'id', dry_run => true);
SELECT snowflake_convert('bound', 'id');
-- an index that is not complete
CREATE TABLE partial (id int, at int, PRIMARY KEY (id, at)) PARTITION BY LIST (at);
CREATE TABLE partial_1 PARTITION OF partial FOR VALUES IN (1);
CREATE INDEX partial_at ON ONLY partial (at);
SELECT snowflake_convert('partial', 'id');
-- triggers of foreign keys, which would be enabled
CREATE TABLE off (id int PRIMARY KEY);
CREATE TABLE off_reference (off int REFERENCES off);
ALTER TABLE off_reference DISABLE TRIGGER ALL;
SELECT snowflake_convert('off', dry_run => true);
SELECT snowflake_convert('off');
ALTER TABLE off_reference ENABLE TRIGGER ALL;
DO $$ BEGIN EXECUTE (SELECT format('ALTER TABLE off ENABLE ALWAYS TRIGGER %I', min(tgname)) FROM pg_trigger WHERE tgrelid = 'off'::regclass); END $$;
SELECT snowflake_convert('off');
ALTER TABLE off DISABLE TRIGGER ALL;
SELECT snowflake_convert('off');
ALTER TABLE off ENABLE TRIGGER ALL;
SELECT count(*) FROM snowflake_convert('off');
-- those of deferrable constraints
CREATE TABLE off_late (id int UNIQUE DEFERRABLE, v int UNIQUE DEFERRABLE);
ALTER TABLE off_late ADD CONSTRAINT off_late_x EXCLUDE ((id + 1) WITH =) DEFERRABLE;
ALTER TABLE off_late DISABLE TRIGGER ALL;
SELECT snowflake_convert('off_late', 'id');
-- not if the type stays the same
CREATE TABLE off_big (id bigint PRIMARY KEY);
CREATE TABLE off_big_reference (off bigint REFERENCES off_big);
ALTER TABLE off_big_reference DISABLE TRIGGER ALL;
SELECT count(*) FROM snowflake_convert('off_big');

-- the row type of the table in expressions, and in calls of functions
CREATE TABLE r (id int PRIMARY KEY, v text);
CREATE TABLE other (v text DEFAULT (NULL::r)::text CHECK (NULL::r IS NULL OR v > ''));
CREATE INDEX other_index ON other (v) WHERE NULL::r[] IS NULL;
CREATE STATISTICS other_statistics ON (NULL::r IS NULL), v FROM other;
CREATE POLICY other_policy ON other USING (NULL::r IS NULL);
CREATE VIEW r_view AS SELECT NULL::r IS NULL AS v;
CREATE TYPE box_of_r AS (r r);
CREATE VIEW box_view AS SELECT NULL::box_of_r IS NULL AS v;
CREATE DOMAIN r_domain AS text CHECK (NULL::r IS NULL OR VALUE > '');
CREATE FUNCTION of_r() RETURNS SETOF r LANGUAGE sql BEGIN ATOMIC SELECT NULL::r; END;
CREATE FUNCTION id_of(r) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1.id';
CREATE INDEX r_index ON r (id_of(r));
ALTER TABLE r ADD CONSTRAINT r_check CHECK (id_of(r) > 0);
SELECT snowflake_convert('r', dry_run => true);
DROP TABLE other;
DROP VIEW r_view, box_view;
DROP DOMAIN r_domain;
DROP FUNCTION of_r;
DROP INDEX r_index;
ALTER TABLE r DROP CONSTRAINT r_check;
-- what has it only in its signature, or whole rows of the table
CREATE FUNCTION takes_r(r) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END;
CREATE FUNCTION returns_r() RETURNS SETOF r LANGUAGE plpgsql AS 'BEGIN END';
CREATE VIEW whole AS SELECT r, r::text AS v FROM r;
SELECT count(*) FROM snowflake_convert('r', dry_run => true);
SELECT count(*) FROM snowflake_convert('r');

-- casts that are none afterwards
CREATE TABLE casts (id int PRIMARY KEY, n int);
CREATE INDEX casts_target ON casts ((id::bigint), (id::text));
ALTER INDEX casts_target ALTER COLUMN 1 SET STATISTICS 10;
ALTER INDEX casts_target ALTER COLUMN 2 SET STATISTICS 11;
CREATE STATISTICS casts_fine ON (id::bigint), n FROM casts;
SELECT count(*) FROM snowflake_convert('casts');
SELECT coalesce(attstattarget, -1) FROM pg_attribute WHERE attrelid = 'casts_target'::regclass ORDER BY attnum;

-- all obstacles are named at once, also what INSERT would find
CREATE TABLE several (id serial PRIMARY KEY, parent int REFERENCES several, CHECK (id < 1000000));
CREATE UNIQUE INDEX several_digits ON several (substr(id::text, 1, 3));
ALTER TABLE several DISABLE TRIGGER ALL;
INSERT INTO several VALUES (1, NULL);
SELECT snowflake_convert('several');
SELECT severity, object, finding FROM snowflake_convert_report('expressions', details => true)
WHERE object LIKE '%several%' AND severity = 'obstacle';
CREATE TABLE several_years (id bigserial PRIMARY KEY, CHECK (id < 1000000)) PARTITION BY RANGE (id);
SELECT snowflake_convert('several_years');
DROP TABLE several, several_years;

-- views that are made of each other, which nobody can read
CREATE TABLE turns (id int PRIMARY KEY);
CREATE VIEW first_turns AS SELECT id FROM turns;
CREATE VIEW second_turns AS SELECT id FROM first_turns;
CREATE OR REPLACE VIEW first_turns AS SELECT id FROM turns UNION ALL SELECT id FROM second_turns;
SET statement_timeout = '180s';
SELECT severity, finding FROM snowflake_convert_report('expressions', widen => 'turns.id', details => true) WHERE object LIKE '%turns%';
DO $$
BEGIN
    PERFORM snowflake_convert('turns');
EXCEPTION WHEN dependent_objects_still_exist THEN
    RAISE INFO 'they are not dropped';
END
$$;
RESET statement_timeout;

DROP SCHEMA expressions CASCADE;
DROP ROLE regress_expressions_owner;
