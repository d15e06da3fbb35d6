--
-- snowflake_convert_report(rehearse => true): rows with new keys, and what triggers,
-- defaults and generated columns make of them
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
RESET client_min_messages;
-- triggers that insert rows of a table that has rows: of one that is converted, of one that is not,
-- and of one whose trigger calls nextval(); what sequences have given is rolled back
CREATE SCHEMA audited;
SET search_path = audited, public;
CREATE TABLE audit (id serial PRIMARY KEY, "row" int, op text);
CREATE TABLE left_audit (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "row" int, of_order int);
CREATE TABLE own_audit (id serial PRIMARY KEY, of_order int);
ALTER TABLE own_audit ALTER id DROP DEFAULT;
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit ("row", op) VALUES (NEW.id, TG_OP);
    INSERT INTO left_audit ("row") VALUES (NEW.id % 1000);
    INSERT INTO own_audit VALUES (nextval('own_audit_id_seq'));
    RETURN NEW;
END $$;
CREATE TABLE orders (id serial PRIMARY KEY, note text);
CREATE TRIGGER audit AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION audit();
ALTER TABLE left_audit ADD FOREIGN KEY (of_order) REFERENCES orders;
INSERT INTO orders (note) SELECT 'a' FROM generate_series(1, 5);
UPDATE left_audit SET of_order = 1;
CREATE TEMP TABLE before AS SELECT array_agg(s ORDER BY s::text) AS sequences FROM pg_sequences s WHERE schemaname = 'audited';
SELECT object, finding FROM snowflake_convert_report('audited', '{left_audit}', 'none', rehearse => true, details => true) WHERE finding ~ 'new key|rehearse';
ALTER TABLE audit ALTER "row" TYPE bigint;
SELECT object, finding FROM snowflake_convert_report('audited', '{left_audit}', 'none', rehearse => true, details => true) WHERE finding ~ 'new key|rehearse';
SELECT sequences = (SELECT array_agg(s ORDER BY s::text) FROM pg_sequences s WHERE schemaname = 'audited') AS same FROM before;
SET client_min_messages = warning;
DROP SCHEMA audited CASCADE;
DROP TABLE before;
RESET search_path;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
RESET client_min_messages;
CREATE ROLE regress_rehearse;
CREATE ROLE regress_rehearse_other;
CREATE SCHEMA tried AUTHORIZATION regress_rehearse;
SET ROLE regress_rehearse;
SET search_path = tried, public;
\set SHOW_CONTEXT never

-- triggers that cannot take a bigint, each in another way
CREATE FUNCTION make(t text, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (id serial PRIMARY KEY, c text, d date, n int)', t);
    EXECUTE format('CREATE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN %s RETURN NEW; END $f$', t || '_f', body);
    EXECUTE format('CREATE TRIGGER t BEFORE INSERT ON %I FOR EACH ROW EXECUTE FUNCTION %I()', t, t || '_f');
    EXECUTE format('INSERT INTO %I DEFAULT VALUES', t);
END $$;
SELECT make('f_repeat', $$NEW.c := repeat('x', NEW.id % 3);$$),
       make('f_date', $$NEW.d := date '2020-01-01' + NEW.id;$$),
       make('f_assign', $$NEW.n := NEW.id;$$),
       make('f_locked', $$IF NEW.id > 1000 THEN RAISE SQLSTATE '55P03' USING MESSAGE = 'the key is locked'; END IF;$$),
       make('f_fine', $$NEW.c := NEW.id;$$);
-- with names of the search path; AFTER; deferred; only in an UPDATE
CREATE TABLE log (n int);
-- a number that is no key
INSERT INTO log VALUES (1000000);
CREATE FUNCTION write_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NULL; END $$;
CREATE TABLE logged (id serial PRIMARY KEY, c text);
CREATE TRIGGER t AFTER INSERT ON logged FOR EACH ROW EXECUTE FUNCTION write_log();
CREATE TABLE deferred (id serial PRIMARY KEY);
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION write_log();
CREATE TABLE updated (id serial PRIMARY KEY, c text);
CREATE TRIGGER t AFTER UPDATE ON updated FOR EACH ROW EXECUTE FUNCTION write_log();
INSERT INTO updated (c) VALUES ('a');
-- of a reference, in a table without a key, and in the table itself, which an UPDATE sets
CREATE FUNCTION int_only(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION of_reference() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM int_only(0 + NEW.fine); RETURN NEW; END $$;
CREATE TABLE of_fine (fine int REFERENCES f_fine, note text);
CREATE TRIGGER t BEFORE INSERT ON of_fine FOR EACH ROW EXECUTE FUNCTION of_reference();
INSERT INTO of_fine VALUES (1, 'a');
CREATE FUNCTION of_parent() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE p int := 0 + NEW.parent; BEGIN RETURN NEW; END $$;
CREATE TABLE tree (id serial PRIMARY KEY, parent int REFERENCES tree, name text UNIQUE, number int NOT NULL UNIQUE, day date UNIQUE);
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON tree FOR EACH ROW EXECUTE FUNCTION of_parent();
INSERT INTO tree VALUES (1, NULL, 'root', 1, '2026-01-01'), (2, 1, 'leaf', 2, '2026-01-02');
-- values that are different before, and equal afterwards
CREATE TABLE invoices (id bigserial PRIMARY KEY, code text GENERATED ALWAYS AS ('INV' || lpad(id::text, 8, '0')) STORED, v int);
INSERT INTO invoices (v) VALUES (1);
CREATE FUNCTION code() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.code := coalesce(NEW.code, lpad(NEW.id::text, 6, '0')); RETURN NEW; END $$;
CREATE TABLE coded (id bigserial PRIMARY KEY, code text, whole text GENERATED ALWAYS AS (id::text) STORED, said text DEFAULT 'same');
CREATE TRIGGER t BEFORE INSERT ON coded FOR EACH ROW EXECUTE FUNCTION code();
INSERT INTO coded DEFAULT VALUES;
CREATE TABLE unique_code (id serial PRIMARY KEY, code text UNIQUE);
CREATE TRIGGER t BEFORE INSERT ON unique_code FOR EACH ROW EXECUTE FUNCTION code();
INSERT INTO unique_code DEFAULT VALUES;
-- what cannot be tried, and an empty table that can
CREATE TABLE excluding (id serial PRIMARY KEY, v int4range NOT NULL, EXCLUDE USING gist (v WITH &&));
INSERT INTO excluding (v) VALUES ('[1,2]');
CREATE FUNCTION ignore_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TABLE ignoring (id serial PRIMARY KEY);
CREATE TRIGGER t BEFORE INSERT ON ignoring FOR EACH ROW EXECUTE FUNCTION ignore_row();
-- an UPDATE that fails before, too, and a function with quotes in its name
CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'never'; END $$;
CREATE FUNCTION "a ""name"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format(E'INSERT INTO log\n VALUES (%s)', NEW.id); RETURN NEW; END $$;
CREATE TABLE constant (id serial PRIMARY KEY);
CREATE TRIGGER t BEFORE UPDATE ON constant FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER u BEFORE INSERT ON constant FOR EACH ROW EXECUTE FUNCTION "a ""name"();
CREATE TABLE "empty %s" (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, short varchar(12) DEFAULT 'a', "n%" int);

-- the report without it finds none of these triggers
SELECT object, finding FROM snowflake_convert_report('tried', details => true) WHERE object ~ 'f_(repeat|date|assign)_f|invoices' AND finding !~ 'becomes|not a snowflake|dropped|compiled|might hold' ORDER BY 1, 2;
CREATE TABLE before AS SELECT (SELECT array_agg(s ORDER BY s::text) FROM pg_sequences s WHERE schemaname = 'tried') AS sequences;
SELECT severity, object, finding FROM snowflake_convert_report('tried', rehearse => true, details => true)
WHERE finding ~ 'new key|rehearse' ORDER BY object COLLATE "C", finding COLLATE "C";
SELECT DISTINCT what_to_do FROM snowflake_convert_report('tried', rehearse => true, details => true)
WHERE finding ~ 'new key|rehearse' ORDER BY 1;
-- nothing stays
SELECT sequences = (SELECT array_agg(s ORDER BY s::text) FROM pg_sequences s WHERE schemaname = 'tried') AS same FROM before;
SELECT count(*) FROM log;
SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'tried'::regnamespace AND c.relkind = 'r' AND a.attname = 'id' AND a.atttypid = 'int8'::regtype;
SELECT (SELECT count(*) FROM f_fine), (SELECT count(*) FROM tree), (SELECT count(*) FROM of_fine), (SELECT count(*) FROM "empty %s");
-- nor in what the session has compiled
BEGIN;
INSERT INTO f_assign DEFAULT VALUES;
INSERT INTO tree VALUES (3, 2, 'twig', 3, '2026-01-03');
UPDATE tree SET parent = 1 WHERE id = 3;
INSERT INTO of_fine VALUES (1, 'b');
ROLLBACK;
-- and it is true
BEGIN;
SET client_min_messages = warning;
SELECT count(*) > 0 AS converted FROM snowflake_convert_schema('tried');
SAVEPOINT s;
INSERT INTO f_assign DEFAULT VALUES;
ROLLBACK TO s;
INSERT INTO invoices (v) VALUES (2), (3);
SELECT count(DISTINCT code) FROM invoices WHERE v > 1;
ROLLBACK;

-- obstacles
CREATE TABLE seen (of tree);
SELECT severity, object, finding, what_to_do FROM snowflake_convert_report('tried', rehearse => true)
WHERE finding ~ 'new key|rehearse';
DROP TABLE seen;
-- a transaction with a trigger that waits
BEGIN;
INSERT INTO deferred DEFAULT VALUES;
SELECT * FROM snowflake_convert_report('tried', rehearse => true);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM snowflake_convert_report('tried', rehearse => true);
ROLLBACK;
SELECT * FROM snowflake_convert_report('tried', rehearse => NULL);

-- as a superuser: triggers have the rights of the owner
RESET ROLE;
CREATE TABLE secret (n bigint);
SET ROLE regress_rehearse;
CREATE FUNCTION steal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO tried.secret VALUES (NEW.id); RETURN NEW; END $$;
CREATE TABLE thief (id serial PRIMARY KEY);
CREATE TRIGGER t BEFORE INSERT ON thief FOR EACH ROW EXECUTE FUNCTION steal();
RESET ROLE;
SELECT finding FROM snowflake_convert_report('tried', rehearse => true, details => true) WHERE object ~ 'thief' AND finding ~ 'rehearse';
SET client_min_messages = warning;
DROP SCHEMA tried CASCADE;
RESET client_min_messages;
-- what works has no finding: identities, partitions, children, references in a circle, unique
-- indexes of expressions, columns without a foreign key, names with all characters
CREATE SCHEMA fine AUTHORIZATION regress_rehearse;
SET ROLE regress_rehearse;
SET search_path = fine, public;
CREATE TABLE people ("the ""id%" int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, mail varchar(20) CHECK (mail ~ '^[^@]+@[^@]+$'), u uuid UNIQUE, at timestamptz UNIQUE DEFAULT now(), CHECK (mail IS NOT NULL));
CREATE UNIQUE INDEX ON people (lower(mail));
INSERT INTO people (mail, u) VALUES ('a@b', gen_random_uuid());
CREATE TABLE teams (id smallserial PRIMARY KEY, lead int NOT NULL REFERENCES people, room_id int);
INSERT INTO teams (lead, room_id) VALUES (1, 7);
ALTER TABLE people ADD team smallint REFERENCES teams;
UPDATE people SET team = 1;
CREATE TABLE members (team smallint REFERENCES teams, person int REFERENCES people, PRIMARY KEY (team, person));
INSERT INTO members VALUES (1, 1);
CREATE TABLE events (id serial, at date, person int REFERENCES people, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
INSERT INTO events (at, person) VALUES ('2026-01-01', 1);
CREATE TABLE parent (id serial PRIMARY KEY, note text);
CREATE TABLE child (more text NOT NULL) INHERITS (parent);
INSERT INTO child (more) VALUES ('a');
-- a unique index whose first column references a table that is not converted
CREATE TABLE kinds (code int PRIMARY KEY);
INSERT INTO kinds VALUES (1);
CREATE TABLE typed (id serial PRIMARY KEY, kind int NOT NULL REFERENCES kinds, place int NOT NULL, UNIQUE (kind, place));
INSERT INTO typed (kind, place) VALUES (1, 1);
-- as does a trigger that reads the rows that a policy of another role lets it see
RESET ROLE;
CREATE TABLE guarded (n int);
ALTER TABLE guarded OWNER TO regress_rehearse_other;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON guarded USING (true);
GRANT SELECT ON guarded TO regress_rehearse;
SET ROLE regress_rehearse;
CREATE FUNCTION reads() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM guarded; RETURN NEW; END $$;
CREATE TRIGGER r BEFORE INSERT ON parent FOR EACH ROW EXECUTE FUNCTION reads();
SELECT object, finding FROM snowflake_convert_report('fine', widen => 'names', rehearse => true, details => true) WHERE severity = 'obstacle' OR finding ~ 'new key|rehearse';
-- with each of these the trigger of a partition, a child, a column without a foreign key
CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('SELECT ($1.%I)::int', TG_ARGV[0]) USING NEW; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON events_1 FOR EACH ROW EXECUTE FUNCTION fails('person');
CREATE TRIGGER t BEFORE INSERT ON child FOR EACH ROW EXECUTE FUNCTION fails('id');
CREATE TRIGGER t BEFORE INSERT ON teams FOR EACH ROW EXECUTE FUNCTION fails('room_id');
CREATE TRIGGER t BEFORE UPDATE ON members FOR EACH ROW EXECUTE FUNCTION fails('team');
CREATE TRIGGER t BEFORE UPDATE ON people FOR EACH ROW EXECUTE FUNCTION fails('team');
SELECT object, finding FROM snowflake_convert_report('fine', widen => 'names', rehearse => true, details => true) WHERE severity = 'obstacle' OR finding ~ 'new key|rehearse';
DROP TRIGGER t ON teams;
SELECT object, finding FROM snowflake_convert_report('fine', widen => 'names', rehearse => true, details => true) WHERE object ~ 'people|members' AND finding ~ 'new key|rehearse';
-- a table of another role that needs no change, whose trigger must not run with the rights of the first one
CREATE TABLE wide (id bigserial PRIMARY KEY);
CREATE TABLE others (wide bigint REFERENCES wide, note text NOT NULL);
INSERT INTO others (note) VALUES ('a');
CREATE TRIGGER t BEFORE INSERT ON others FOR EACH ROW EXECUTE FUNCTION fails('note');
SELECT object, finding FROM snowflake_convert_report('fine', widen => 'names', rehearse => true, details => true) WHERE object ~ 'others';
RESET ROLE;
ALTER TABLE others OWNER TO regress_rehearse_other;
SELECT object, finding FROM snowflake_convert_report('fine', widen => 'names', rehearse => true, details => true) WHERE object ~ 'others|obstacle';
SET client_min_messages = warning;
DROP SCHEMA fine CASCADE;
DROP ROLE regress_rehearse, regress_rehearse_other;
-- code of roles that cannot become the owner does not run: what it did with a sequence would stay,
-- and with it what these roles may not read
CREATE ROLE regress_rehearse_mal;
CREATE ROLE regress_rehearse_owner;
CREATE ROLE regress_rehearse_member IN ROLE regress_rehearse_owner;
CREATE SCHEMA mals AUTHORIZATION regress_rehearse_mal;
GRANT USAGE ON SCHEMA mals TO PUBLIC;
CREATE SCHEMA watched;
CREATE TABLE watched.secret (pin bigint);
INSERT INTO watched.secret VALUES (4711);
GRANT USAGE, CREATE ON SCHEMA watched TO regress_rehearse_owner;
GRANT USAGE ON SCHEMA watched TO regress_rehearse_mal;
GRANT SELECT ON watched.secret TO regress_rehearse_owner;
SET SESSION AUTHORIZATION regress_rehearse_mal;
SET search_path = mals;
CREATE SEQUENCE got;
GRANT ALL ON SEQUENCE got TO PUBLIC;
CREATE FUNCTION take(bigint) RETURNS bigint LANGUAGE plpgsql AS
    $$ BEGIN PERFORM setval('mals.got', pin) FROM watched.secret; RETURN $1; END $$;
CREATE FUNCTION taking() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM mals.take(1); RETURN NEW; END $$;
CREATE OPERATOR ### (FUNCTION = take, RIGHTARG = bigint);
CREATE DOMAIN taken AS bigint CHECK (take(VALUE) > 0);
SET SESSION AUTHORIZATION regress_rehearse_member;
SET search_path = watched;
CREATE FUNCTION trusted() RETURNS trigger LANGUAGE plpgsql AS 
    $$ BEGIN IF NEW.id > 1000 THEN RAISE 'too big'; END IF; RETURN NEW; END $$;
SET SESSION AUTHORIZATION regress_rehearse_owner;
CREATE TABLE by_trigger (id serial PRIMARY KEY);
CREATE TABLE by_default (id serial PRIMARY KEY, n bigint DEFAULT mals.take(1));
CREATE TABLE by_check (id serial PRIMARY KEY, n bigint CHECK (OPERATOR(mals.###) n > 0));
CREATE TABLE by_domain (id serial PRIMARY KEY, n mals.taken[]);
CREATE TABLE by_partition (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE its_partition PARTITION OF by_partition DEFAULT;
CREATE TABLE plain (id bigserial PRIMARY KEY, by_trigger_id int REFERENCES by_trigger);
CREATE TRIGGER t BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION trusted();
GRANT TRIGGER ON by_trigger, its_partition TO regress_rehearse_mal;
INSERT INTO plain DEFAULT VALUES;
SET SESSION AUTHORIZATION regress_rehearse_mal;
CREATE TRIGGER t BEFORE INSERT ON watched.by_trigger FOR EACH ROW EXECUTE FUNCTION mals.taking();
CREATE TRIGGER t BEFORE INSERT ON watched.its_partition FOR EACH ROW EXECUTE FUNCTION mals.taking();
RESET SESSION AUTHORIZATION;
RESET search_path;
SELECT object, finding FROM snowflake_convert_report('watched', rehearse => true, details => true) WHERE object ~ '^table' AND finding ~ 'new key|rehearse';
SELECT last_value, is_called FROM mals.got;
SET client_min_messages = warning;
DROP SCHEMA mals, watched CASCADE;
DROP ROLE regress_rehearse_mal, regress_rehearse_owner, regress_rehearse_member;
