--
-- Snowflake sequences: nextval() and its like, in one session
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;
CREATE SCHEMA seq;
SET search_path = seq, public;

CREATE TABLE users (id bigserial PRIMARY KEY, name text);
INSERT INTO users (name) VALUES ('before');

-- nothing is attached before a label; another extension's support function stays
CREATE VIEW attached AS
    SELECT p.oid::regprocedure AS function, prosupport,
        (SELECT count(*) FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid) AS dependencies
    FROM pg_proc p
    WHERE proname IN ('nextval', 'currval', 'lastval', 'setval') AND pronamespace = 'pg_catalog'::regnamespace;
SELECT * FROM attached ORDER BY function::text COLLATE "C";
BEGIN;
ALTER FUNCTION pg_catalog.nextval(regclass) SUPPORT generate_series_int8_support;
SAVEPOINT s;
SELECT snowflake_set_sequence_kind('users_id_seq');
ROLLBACK TO s;
SELECT snowflake_set_sequence_kinds('{users_id_seq}', 'range');
ROLLBACK TO s;
SECURITY LABEL FOR snowflake ON SEQUENCE users_id_seq IS 'snowflake last_value=1';
ROLLBACK TO s;
SELECT snowflake_set_sequence_kind('users_id_seq', 'local');
DROP EXTENSION snowflake;
SELECT * FROM attached ORDER BY function::text COLLATE "C";
SAVEPOINT s;
SECURITY LABEL FOR snowflake ON SEQUENCE users_id_seq IS 'snowflake last_value=1';
ROLLBACK TO s;
CREATE EXTENSION snowflake SCHEMA public;
SELECT * FROM attached ORDER BY function::text COLLATE "C";
ROLLBACK;
-- nor can there be a label without the extension
BEGIN;
DROP EXTENSION snowflake;
SELECT * FROM attached ORDER BY function::text COLLATE "C";
SECURITY LABEL FOR snowflake ON SEQUENCE users_id_seq IS 'snowflake last_value=1';
ROLLBACK;
-- a label attaches, also of who owns the sequence alone
BEGIN;
CREATE ROLE regress_seq_labels;
CREATE SEQUENCE labelled;
ALTER SEQUENCE labelled OWNER TO regress_seq_labels;
GRANT USAGE ON SCHEMA seq TO regress_seq_labels;
SET LOCAL ROLE regress_seq_labels;
SECURITY LABEL FOR snowflake ON SEQUENCE labelled IS 'snowflake';
SELECT nextval('labelled') > 1e17 AS is_id;
RESET ROLE;
SELECT * FROM attached ORDER BY function::text COLLATE "C";
ROLLBACK;

SELECT snowflake_set_sequence_kind('users_id_seq', 'ranges');
SELECT snowflake_set_sequence_kind('users_id_seq', 'range');
SELECT snowflake_set_sequence_kind('users_id_seq', 'snowflake', 'public.users');
SELECT snowflake_set_sequence_kind('users_id_seq', 'range', '');
SELECT snowflake_set_sequence_kind('users');
-- many
SELECT snowflake_set_sequence_kinds('{users_id_seq}', 'ranges');
SELECT snowflake_set_sequence_kinds('{users_id_seq}', 'range');
SELECT snowflake_set_sequence_kinds('{users_id_seq,users}');
SELECT _snowflake_prepare_ranges('{users_id_seq}');
SELECT _snowflake_prepare_ranges('{users}');
CREATE SEQUENCE one;
CREATE SEQUENCE two;
SELECT snowflake_set_sequence_kinds('{one,NULL,two,one}');
SELECT sequence, kind FROM snowflake_sequences WHERE sequence IN ('one', 'two') ORDER BY 1;
SELECT snowflake_set_sequence_kinds('{two,one}', 'local');
SELECT nextval('one'), nextval('two');
DROP SEQUENCE one, two;
SELECT snowflake_set_sequence_kind('users_id_seq');
SELECT snowflake_set_sequence_kind('users_id_seq');
SELECT objname, label FROM pg_seclabels WHERE provider = 'snowflake';
SELECT last_value, is_called FROM users_id_seq;

-- every way to a value: an ID is above 10^17
CREATE FUNCTION is_id(bigint) RETURNS bool LANGUAGE sql RETURN $1 > 1e17;
INSERT INTO users (name) VALUES ('one') RETURNING is_id(id);
INSERT INTO users (name) VALUES ('m1'), ('m2'), (DEFAULT);
INSERT INTO users (name) SELECT 's' || n FROM generate_series(1, 1000) n;
WITH x AS (INSERT INTO users (name) VALUES ('cte') RETURNING id) SELECT is_id(id) FROM x;
MERGE INTO users u USING (VALUES ('merge')) v (n) ON u.name = v.n WHEN NOT MATCHED THEN INSERT (name) VALUES (v.n);
INSERT INTO users (id, name) VALUES (DEFAULT, 'conflict') ON CONFLICT DO NOTHING;
COPY users (name) FROM stdin;
c1
c2
\.
SELECT count(*) FILTER (WHERE NOT is_id(id)) AS small, count(*), count(DISTINCT id) FROM users;
SELECT is_id(nextval('users_id_seq')) AS literal, is_id(pg_catalog.nextval('seq.users_id_seq'::regclass)) AS qualified,
    is_id(nextval('users_id_seq'::text)) AS late;
PREPARE p(regclass) AS SELECT is_id(nextval($1));
SET plan_cache_mode = force_generic_plan;
EXECUTE p('users_id_seq');
RESET plan_cache_mode;
EXECUTE p('users_id_seq');
DO $$
DECLARE
    i bigint;
    c CURSOR FOR SELECT nextval('users_id_seq');
BEGIN
    i := nextval('users_id_seq');
    RAISE NOTICE 'assigned: %', is_id(i);
    EXECUTE 'SELECT nextval(''users_id_seq'')' INTO i;
    RAISE NOTICE 'dynamic: %', is_id(i);
    OPEN c;
    FETCH c INTO i;
    RAISE NOTICE 'cursor: %', is_id(i);
    FOR i IN SELECT nextval('users_id_seq') LOOP RAISE NOTICE 'loop: %', is_id(i); END LOOP;
END
$$;
CREATE FUNCTION f_sql() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('users_id_seq') $$;
CREATE FUNCTION f_atomic() RETURNS bigint LANGUAGE sql RETURN nextval('users_id_seq');
CREATE PROCEDURE p_call(n bigint) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'call: %', seq.is_id(n); END $$;
SELECT is_id(f_sql()), is_id(f_atomic());
CALL p_call(nextval('users_id_seq'));
CREATE TABLE more (a int);
INSERT INTO more SELECT generate_series(1, 5);
ALTER TABLE more ADD COLUMN k bigint DEFAULT nextval('users_id_seq');
SELECT count(*) FILTER (WHERE is_id(k)), count(DISTINCT k) FROM more;
CREATE VIEW v AS SELECT nextval('users_id_seq') AS n;
SELECT is_id(n) FROM v;
CREATE DOMAIN d AS bigint DEFAULT nextval('users_id_seq');
CREATE TABLE domains (d d, x int);
INSERT INTO domains (x) VALUES (1) RETURNING is_id(d);
CREATE TABLE ruled (k bigint, x int);
CREATE RULE r AS ON INSERT TO ruled DO ALSO INSERT INTO domains VALUES (nextval('users_id_seq'), NEW.x);
INSERT INTO ruled VALUES (1, 2);
SELECT count(*) FROM domains WHERE is_id(d);
CREATE FUNCTION f_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k := nextval('seq.users_id_seq'); RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON more FOR EACH ROW EXECUTE FUNCTION f_trigger();
INSERT INTO more VALUES (6, 6) RETURNING is_id(k);
CREATE TABLE alike (LIKE users INCLUDING ALL);
INSERT INTO alike DEFAULT VALUES RETURNING is_id(id);

-- currval() and lastval(), beside local sequences and identity columns
DISCARD SEQUENCES;
SELECT currval('users_id_seq');
SELECT lastval();
INSERT INTO users (name) VALUES ('a'), ('b');
INSERT INTO users (name) VALUES ('last') RETURNING id \gset
SELECT currval('users_id_seq') = :id AS currval, lastval() = :id AS lastval,
    currval(pg_get_serial_sequence('users', 'id')) = :id AS of_column;
CREATE TABLE plain (id bigserial, name text);
INSERT INTO plain (name) VALUES ('x');
SELECT lastval(), currval('plain_id_seq'), currval('users_id_seq') = :id AS currval;
INSERT INTO users (name) VALUES ('a'), ('b');
CREATE TABLE identity (id int GENERATED ALWAYS AS IDENTITY, name text);
INSERT INTO identity (name) VALUES ('i'), ('j');
SELECT lastval();
INSERT INTO users (name) VALUES ('a') RETURNING id \gset
SELECT lastval() = :id AS lastval;
WITH x AS (INSERT INTO identity (name) VALUES ('k')) SELECT 1;
SELECT lastval();
EXPLAIN (COSTS OFF, VERBOSE) INSERT INTO identity (name) VALUES ('l');
-- where it cannot be known
INSERT INTO users (name) VALUES ('a'), ('b');
ALTER TABLE identity ADD other int GENERATED BY DEFAULT AS IDENTITY;
SELECT lastval();
INSERT INTO users (name) VALUES ('c');
SELECT lastval() = currval('users_id_seq') AS known_again;

-- a change of kind in this session leaves both as they were
CREATE SEQUENCE changing START 5;
SELECT nextval('changing');
BEGIN;
SELECT snowflake_set_sequence_kind('changing');
SELECT currval('changing'), lastval();
ROLLBACK;
SELECT currval('changing'), lastval();
SELECT setval('changing', 70, false);
SELECT snowflake_set_sequence_kind('changing');
SELECT snowflake_set_sequence_kind('changing', 'local');
SELECT currval('changing'), lastval();
SELECT nextval('changing'), currval('changing'), lastval();
CREATE SEQUENCE unused;
SELECT snowflake_set_sequence_kind('unused');
SELECT snowflake_set_sequence_kind('unused', 'local');
SELECT currval('unused');
DROP SEQUENCE changing, unused;

-- where it was before can be below MINVALUE by now
CREATE SEQUENCE raised;
SELECT nextval('raised');
SELECT snowflake_set_sequence_kind('raised');
ALTER SEQUENCE raised MINVALUE 5 START 7;
SELECT snowflake_set_sequence_kind('raised', 'local');
SELECT nextval('raised'), nextval('raised');
DROP SEQUENCE raised;

-- setval() sets nothing
SELECT setval('users_id_seq', 7), setval('users_id_seq', 8, false);
SELECT is_id(nextval('users_id_seq'));

-- nor does it reserve values, which others use; it may be called after an import
CREATE TABLE blocks (id bigserial PRIMARY KEY, other int);
SELECT snowflake_set_sequence_kind('blocks_id_seq');
SELECT setval('blocks_id_seq', 9000000000000000000);
SELECT setval('blocks_id_seq', nextval('blocks_id_seq')) = currval('blocks_id_seq') AS same;
SELECT setval('blocks_id_seq', nextval('blocks_id_seq') + 99);
SELECT setval('blocks_id_seq', nextval('blocks_id_seq') + 99, false);
SELECT setval('blocks_id_seq', nextval('blocks_id_seq') - 99) < currval('blocks_id_seq') AS lower;
WITH import AS (INSERT INTO blocks VALUES (9000000000000000000) RETURNING id) SELECT setval('blocks_id_seq', max(id)) FROM import;
SELECT setval('blocks_id_seq', max(id)), setval('blocks_id_seq', max(id) + 1), setval('blocks_id_seq', max(id) + 1, false) FROM blocks;
SELECT setval('blocks_id_seq', max(id) + 2) FROM blocks;
SELECT setval('blocks_id_seq', 9223372036854775807);
DISCARD SEQUENCES;
SELECT setval('blocks_id_seq', max(id) + 2) FROM blocks;
-- whose keys others may not read, and have in a domain, a partition, or a table that only has the default
CREATE DOMAIN big AS bigint;
CREATE TABLE parted (id big DEFAULT nextval('blocks_id_seq')) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parted DEFAULT;
INSERT INTO part VALUES (9000000000000000003);
CREATE ROLE seq_importer;
GRANT USAGE ON SCHEMA seq TO seq_importer;
GRANT USAGE, UPDATE ON SEQUENCE blocks_id_seq TO seq_importer;
SET ROLE seq_importer;
SELECT is_id(nextval('blocks_id_seq')), setval('blocks_id_seq', 9000000000000000003);
SELECT setval('blocks_id_seq', 9000000000000000005);
RESET ROLE;
-- ... of a table whose owner does not see all rows: a key is one all the same
CREATE ROLE seq_owner;
GRANT USAGE ON SCHEMA seq TO seq_owner;
CREATE TABLE hidden (id bigserial PRIMARY KEY);
INSERT INTO hidden VALUES (9000000000000000000);
ALTER TABLE hidden OWNER TO seq_owner;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT snowflake_set_sequence_kind('hidden_id_seq');
SET ROLE seq_owner;
SELECT count(*) FROM hidden;
SELECT is_id(nextval('hidden_id_seq')), setval('hidden_id_seq', 9000000000000000000);
SELECT setval('hidden_id_seq', 9000000000000000007);
RESET ROLE;
DROP TABLE hidden;
REVOKE USAGE ON SCHEMA seq FROM seq_owner;
DROP ROLE seq_owner;
DROP TABLE parted;
DROP DOMAIN big;
REVOKE USAGE ON SCHEMA seq FROM seq_importer;
REVOKE USAGE, UPDATE ON SEQUENCE blocks_id_seq FROM seq_importer;
DROP ROLE seq_importer;

-- what copies a schema copies positions without kinds
CREATE SEQUENCE copied;
SELECT setval('copied', last_value, is_called) FROM blocks_id_seq;
SELECT nextval('copied');
SELECT snowflake_set_sequence_kind('copied');
SELECT is_id(nextval('copied')), setval('copied', 9223372036854775807);
SELECT snowflake_set_sequence_kind('copied', 'local');
SELECT setval('copied', 9223372036854775807, false);
DROP SEQUENCE copied;

-- loops over all sequences work, also those of a role that owns all but that of the extension
CREATE ROLE seq_looper;
CREATE SEQUENCE looped;
ALTER SEQUENCE looped OWNER TO seq_looper;
GRANT USAGE ON SCHEMA seq TO seq_looper;
SET ROLE seq_looper;
CREATE TEMP VIEW every AS SELECT oid::regclass AS sequence FROM pg_class WHERE relname IN ('looped', '_snowflake_lastval_marker') AND relkind = 'S';
SELECT count(snowflake_set_sequence_kind(sequence)) FROM every;
SELECT snowflake_set_sequence_kinds(array_agg(sequence), 'local') FROM every;
SELECT count(setval(sequence, 1)), count(setval(sequence, 1, false)) FROM every;
SELECT count(nextval(format('%I.%I', sequence_schema, sequence_name)::regclass)) FROM information_schema.sequences;
RESET ROLE;
SELECT is_id(nextval('blocks_id_seq')), is_id(lastval()), (SELECT last_value < -1000000 FROM _snowflake_lastval_marker);
DO $$
DECLARE
    s regclass;
BEGIN
    FOR s IN SELECT sequence FROM every LOOP
        EXECUTE format('ALTER SEQUENCE %s OWNER TO seq_looper', s);
        EXECUTE format('ALTER SEQUENCE %s RESTART', s);
        EXECUTE format('GRANT ALL ON SEQUENCE %s TO PUBLIC', s);
        EXECUTE format('REVOKE ALL ON SEQUENCE %s FROM PUBLIC', s);
    END LOOP;
END $$;
SELECT nextval('looped'), is_id(nextval('blocks_id_seq')), is_id(lastval());
DO $$ BEGIN EXECUTE format('ALTER SEQUENCE _snowflake_lastval_marker OWNER TO %I', current_user); END $$;
DROP VIEW every;
DROP SEQUENCE looped;
REVOKE USAGE ON SCHEMA seq FROM seq_looper;
DROP ROLE seq_looper;

-- the view names columns that are too narrow, and can be asked for what does not exist, and
-- read while others drop sequences
SELECT count(*) FROM snowflake_sequences WHERE sequence = 'missing' OR table_name = 'missing' OR column_type = 'missing';
BEGIN;
CREATE SEQUENCE gone_local;
CREATE SEQUENCE gone;
SELECT snowflake_set_sequence_kind('gone');
DECLARE c CURSOR FOR SELECT count(*), count(problem) FROM snowflake_sequences WHERE sequence ~ '^[0-9]+$';
DROP SEQUENCE gone_local, gone;
FETCH c;
COMMIT;
CREATE SEQUENCE narrow_seq;
SELECT snowflake_set_sequence_kind('narrow_seq');
CREATE DOMAIN small_number AS integer;
CREATE DOMAIN smaller_number AS small_number;
CREATE DOMAIN decimal_number AS numeric(12, 2);
CREATE TABLE narrow (a bigint DEFAULT nextval('narrow_seq'), b smaller_number DEFAULT nextval('narrow_seq'), c decimal_number DEFAULT nextval('narrow_seq'),
    d numeric DEFAULT nextval('narrow_seq'), e numeric(19) DEFAULT nextval('narrow_seq'), f numeric(18) DEFAULT nextval('narrow_seq'),
    g varchar(10) DEFAULT 'O' || nextval('narrow_seq'), h text DEFAULT nextval('narrow_seq'), i float8 DEFAULT nextval('narrow_seq'));
SELECT column_name, column_type, problem FROM snowflake_sequences WHERE sequence = 'narrow_seq' ORDER BY column_name;
DROP TABLE narrow;
DROP SEQUENCE narrow_seq;
DROP DOMAIN smaller_number, small_number, decimal_number;
DROP TABLE blocks;

-- what resets a sequence leaves it exhausted
ALTER SEQUENCE users_id_seq RESTART;
SELECT last_value, is_called FROM users_id_seq;
ALTER SEQUENCE users_id_seq MAXVALUE 1000000;
SELECT last_value, is_called FROM users_id_seq;
ALTER SEQUENCE users_id_seq AS integer;
ALTER SEQUENCE IF EXISTS missing_seq MAXVALUE 1000000;
ALTER SEQUENCE users_id_seq MAXVALUE 1000000 RESTART;
SELECT last_value, is_called, is_id(nextval('users_id_seq')) FROM users_id_seq;
ALTER SEQUENCE users_id_seq AS bigint NO MAXVALUE;
TRUNCATE users RESTART IDENTITY;
SELECT last_value, is_called FROM users_id_seq;
ALTER SEQUENCE users_id_seq CYCLE;
ALTER SEQUENCE users_id_seq INCREMENT -1;

-- also if its name is that of another one afterwards
CREATE SCHEMA seq_before;
CREATE FUNCTION f_hide() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN CREATE SEQUENCE seq_before.users_id_seq; END $$;
CREATE EVENT TRIGGER hide ON ddl_command_end WHEN TAG IN ('ALTER SEQUENCE') EXECUTE FUNCTION f_hide();
SET search_path = seq_before, seq, public;
ALTER SEQUENCE users_id_seq RESTART;
SET search_path = seq, public;
DROP EVENT TRIGGER hide;
DROP SEQUENCE seq_before.users_id_seq;
DROP SCHEMA seq_before;
SELECT last_value, is_called FROM users_id_seq;

-- what resets it unseen is corrected by the next call that may write
CREATE FUNCTION server_setval(regclass, bigint) RETURNS bigint LANGUAGE internal AS 'setval_oid';
SELECT server_setval('users_id_seq', 5);
GRANT SELECT ON SEQUENCE users_id_seq TO CURRENT_USER;
BEGIN READ ONLY;
SELECT nextval('users_id_seq');
ROLLBACK;
SELECT is_id(nextval('users_id_seq'));
SELECT last_value, is_called FROM users_id_seq;
DROP FUNCTION server_setval;

-- ROLLBACK, and ROLLBACK TO
BEGIN;
SELECT snowflake_set_sequence_kind('plain_id_seq');
SELECT is_id(nextval('plain_id_seq'));
ROLLBACK;
SELECT nextval('plain_id_seq');
BEGIN;
SAVEPOINT s;
SELECT snowflake_set_sequence_kind('users_id_seq', 'local');
SELECT nextval('users_id_seq');
ROLLBACK TO s;
SELECT is_id(nextval('users_id_seq'));
COMMIT;

-- back to local: position
SELECT snowflake_set_sequence_kind('plain_id_seq');
SELECT label FROM pg_seclabels WHERE provider = 'snowflake' AND objname = 'plain_id_seq';
SELECT snowflake_set_sequence_kind('plain_id_seq', 'local');
SELECT nextval('plain_id_seq');
-- CYCLE has to be off
ALTER SEQUENCE plain_id_seq CYCLE;
SELECT snowflake_set_sequence_kind('plain_id_seq');

-- INCREMENT: clients count up from the value, or down to it
CREATE SEQUENCE pooled INCREMENT 50;
SELECT snowflake_set_sequence_kind('pooled');
CREATE TABLE got AS SELECT nextval('pooled') AS v FROM generate_series(1, 2000);
SELECT count(DISTINCT v + n) AS up, count(DISTINCT v - n) AS down FROM got, generate_series(0, 49) n;
ALTER SEQUENCE pooled INCREMENT 2049;
CREATE SEQUENCE large INCREMENT 2049;
SELECT snowflake_set_sequence_kind('large');

-- labels by hand
SECURITY LABEL FOR snowflake ON SEQUENCE plain_id_seq IS 'fast';
SECURITY LABEL FOR snowflake ON SEQUENCE plain_id_seq IS 'snowflake last_value=x';
SECURITY LABEL FOR snowflake ON SEQUENCE plain_id_seq IS 'snowflake';
SECURITY LABEL FOR snowflake ON TABLE plain IS 'snowflake';
SECURITY LABEL FOR snowflake ON SEQUENCE _snowflake_lastval_marker IS 'snowflake';
CREATE TABLE narrow (id serial);
SECURITY LABEL FOR snowflake ON SEQUENCE narrow_id_seq IS 'snowflake';
CREATE SEQUENCE by_hand;
SECURITY LABEL FOR snowflake ON SEQUENCE by_hand IS 'snowflake';
SELECT is_id(nextval('by_hand')), last_value, is_called FROM by_hand;
SECURITY LABEL FOR snowflake ON SEQUENCE by_hand IS NULL;
SELECT nextval('by_hand');

-- one that counts down, and one that begins again, are not exhausted
CREATE SEQUENCE downwards INCREMENT -1;
CREATE SEQUENCE around MAXVALUE 2 START 2 CYCLE;
SELECT nextval('downwards'), nextval('around');
SELECT snowflake_set_sequence_kind('downwards', 'local'), snowflake_set_sequence_kind('around', 'local');
DROP SEQUENCE downwards, around;
-- one that has lost its label, as in a dump that was restored without it
SELECT snowflake_set_sequence_kind('by_hand');
DELETE FROM pg_seclabel WHERE objoid = 'by_hand'::regclass;
SELECT nextval('by_hand');
SELECT snowflake_set_sequence_kind('by_hand', 'local');
SELECT setval('by_hand', 5);
SELECT snowflake_set_sequence_kind('by_hand', 'local');
SELECT nextval('by_hand');

-- privileges are the server's
CREATE ROLE regress_seq;
GRANT USAGE ON SCHEMA seq TO regress_seq;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA seq TO regress_seq;
SET ROLE regress_seq;
SELECT nextval('users_id_seq');
SELECT currval('users_id_seq');
SELECT lastval();
SELECT setval('users_id_seq', 1);
SELECT snowflake_set_sequence_kind('users_id_seq', 'local');
SECURITY LABEL FOR snowflake ON SEQUENCE users_id_seq IS NULL;
RESET ROLE;
GRANT SELECT ON SEQUENCE users_id_seq TO regress_seq;
SET ROLE regress_seq;
SELECT nextval('users_id_seq');
SELECT is_id(currval('users_id_seq'));
RESET ROLE;
GRANT USAGE ON SEQUENCE users_id_seq TO regress_seq;
SET ROLE regress_seq;
SELECT is_id(nextval('users_id_seq'));
RESET ROLE;
REVOKE USAGE ON SEQUENCE users_id_seq FROM regress_seq;
SET ROLE regress_seq;
SELECT nextval('users_id_seq');
RESET ROLE;
-- EXECUTE on the server's function counts as before
BEGIN;
REVOKE EXECUTE ON FUNCTION pg_catalog.nextval(regclass) FROM PUBLIC;
GRANT USAGE ON SEQUENCE users_id_seq TO regress_seq;
SET ROLE regress_seq;
SELECT nextval('users_id_seq');
ROLLBACK;
-- without EXECUTE on ours, local sequences work, and others fail
REVOKE EXECUTE ON FUNCTION _snowflake_nextval(regclass) FROM PUBLIC;
SELECT nextval('plain_id_seq');
SELECT nextval('users_id_seq');
PREPARE revoked AS SELECT is_id(nextval('users_id_seq'));
EXECUTE revoked;
-- nor does setval() have them continue
REVOKE EXECUTE ON FUNCTION _snowflake_setval(regclass, bigint),
    _snowflake_setval(regclass, bigint, boolean) FROM PUBLIC;
SELECT setval('users_id_seq', 5), setval('users_id_seq', 5, false);
SELECT last_value = 9223372036854775807 AS exhausted, is_called FROM users_id_seq;
EXECUTE revoked;
GRANT EXECUTE ON FUNCTION _snowflake_nextval(regclass), _snowflake_setval(regclass, bigint),
    _snowflake_setval(regclass, bigint, boolean) TO PUBLIC;
EXECUTE revoked;
DEALLOCATE revoked;
SELECT is_id(nextval('users_id_seq'));

-- a read-only transaction
BEGIN READ ONLY;
SELECT nextval('users_id_seq');
ROLLBACK;
BEGIN READ ONLY;
SELECT snowflake_set_sequence_kind('users_id_seq', 'local');
ROLLBACK;
-- which may use temporary sequences, like PostgreSQL's
CREATE TEMP SEQUENCE temporary;
SELECT snowflake_set_sequence_kind('temporary');
SELECT nextval('plain_id_seq') > 0;
BEGIN READ ONLY;
SELECT is_id(nextval('temporary')) AS nextval, lastval() = currval('temporary') AS lastval, setval('temporary', 5);
SAVEPOINT s;
SELECT nextval('users_id_seq');
ROLLBACK TO s;
SELECT setval('users_id_seq', 5);
ROLLBACK;
DROP SEQUENCE temporary;

-- its name, schema, owner, type and column
CREATE SCHEMA seq_moved;
CREATE ROLE regress_seq_owner;
CREATE TABLE moved (id bigserial, other bigint);
SELECT snowflake_set_sequence_kind('moved_id_seq');
ALTER SEQUENCE moved_id_seq RENAME TO renamed;
ALTER TABLE moved SET SCHEMA seq_moved;
ALTER TABLE seq_moved.moved OWNER TO regress_seq_owner;
INSERT INTO seq_moved.moved DEFAULT VALUES RETURNING is_id(id), currval('seq_moved.renamed') = id AS currval;
ALTER SEQUENCE seq_moved.renamed AS integer;
ALTER SEQUENCE seq_moved.renamed OWNED BY seq_moved.moved.other;
ALTER SEQUENCE seq_moved.renamed OWNED BY NONE;
SELECT last_value, is_called, is_id(nextval('seq_moved.renamed')) FROM seq_moved.renamed;
ALTER TABLE seq_moved.moved ALTER id DROP DEFAULT;
DROP SEQUENCE seq_moved.renamed;
DROP TABLE seq_moved.moved;
DROP SCHEMA seq_moved;
DROP ROLE regress_seq_owner;

-- the extension in another schema, and its end
ALTER EXTENSION snowflake SET SCHEMA seq;
INSERT INTO users (name) VALUES ('moved') RETURNING is_id(id), lastval() = id AS lastval;
ALTER EXTENSION snowflake SET SCHEMA public;
DROP EXTENSION snowflake CASCADE;

-- the view
SELECT sequence, kind, table_name, column_name, column_type, problem FROM snowflake_sequences ORDER BY sequence::text COLLATE "C", table_name::text COLLATE "C";

-- the end
DROP EXTENSION snowflake;
DROP EXTENSION snowflake CASCADE;
DROP EXTENSION IF EXISTS nothing, snowflake;
SELECT prosupport FROM attached WHERE function = 'nextval(regclass)'::regprocedure;
SELECT snowflake_set_sequence_kind(sequence, 'local') FROM (SELECT DISTINCT sequence FROM snowflake_sequences WHERE kind <> 'local') s;
DROP EXTENSION snowflake;
SELECT nextval('pooled'), nextval('users_id_seq');
SELECT * FROM attached ORDER BY function::text COLLATE "C";
SET client_min_messages = warning;
DROP SCHEMA seq CASCADE;
DROP ROLE regress_seq;
