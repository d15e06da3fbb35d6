--
-- snowflake_convert(): which default a column had, and what else uses its
-- sequence
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
-- as with another extension's support function of nextval(): keys get snowflake_nextval()
ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support;
RESET client_min_messages;
CREATE SCHEMA defaults;
SET search_path = defaults, public;
\set SHOW_CONTEXT never

-- a generator that somebody has chosen is kept
CREATE FUNCTION own_id() RETURNS bigint LANGUAGE sql AS 'SELECT public.snowflake_nextval()';
CREATE TABLE own (id int PRIMARY KEY DEFAULT own_id());
SELECT snowflake_convert('own');
SELECT snowflake_convert('own');
SELECT snowflake_convert('own', generator => 'snowflake_nextval()');
CREATE TABLE rails (id bigserial PRIMARY KEY);
SELECT snowflake_convert('rails', generator => 'snowflake_id()');
SELECT snowflake_convert('rails');

-- a default that cannot generate IDs is replaced
CREATE FUNCTION int_id() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TABLE zero (id int PRIMARY KEY DEFAULT 0);
SELECT snowflake_convert('zero', dry_run => true);
CREATE TABLE ints (id bigint PRIMARY KEY DEFAULT int_id());
SELECT snowflake_convert('ints', dry_run => true);
CREATE TABLE minus (id bigint PRIMARY KEY DEFAULT - own_id());
SELECT snowflake_convert('minus', dry_run => true);

-- a partition that is attached later has a default of its own
CREATE TABLE parts (id bigserial, kind int) PARTITION BY LIST (kind);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
SELECT snowflake_convert('parts', 'id');
CREATE TABLE parts_2 (id bigserial, kind int);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
SELECT snowflake_convert('parts', 'id');
INSERT INTO parts_2 (kind) VALUES (2) RETURNING id > 1000000 AS snowflake;
CREATE TABLE parts_3 (id bigint NOT NULL, kind int);
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES IN (3);
SELECT snowflake_convert('parts', 'id');
SELECT snowflake_convert('parts', 'id');

-- a sequence that a default names as text
CREATE SEQUENCE late_seq;
CREATE TABLE late (id bigint PRIMARY KEY DEFAULT nextval('late_seq'::text));
SELECT snowflake_convert('late');
CREATE TABLE shared (id bigserial PRIMARY KEY);
CREATE TABLE sharing (n bigint DEFAULT nextval('defaults.shared_id_seq'::text));
SELECT snowflake_convert('shared');
INSERT INTO sharing DEFAULT VALUES RETURNING n;

-- a sequence that a function uses, and one that a trigger has in its argument
CREATE TABLE orders (id bigserial PRIMARY KEY);
CREATE TABLE log (id bigint);
CREATE FUNCTION log_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log VALUES (NextVal('Orders_id_seq'));
    RETURN NEW;
END $$;
CREATE TRIGGER log_order AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION log_order();
SELECT snowflake_convert('orders');
INSERT INTO orders DEFAULT VALUES;
SELECT * FROM log;
CREATE FUNCTION number_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := nextval(TG_ARGV[0]);
    RETURN NEW;
END $$;
CREATE TABLE bills (id bigserial PRIMARY KEY);
CREATE TABLE items (id bigint);
CREATE TRIGGER number_row BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION number_row('bills_id_seq');
SELECT snowflake_convert('bills');
INSERT INTO items DEFAULT VALUES RETURNING id;
-- not a part of a longer name
CREATE TABLE s (id bigint PRIMARY KEY);
CREATE SEQUENCE "Order" OWNED BY s.id;
ALTER TABLE s ALTER id SET DEFAULT nextval('"Order"');
SELECT snowflake_convert('s');
-- that of an extension
CREATE TABLE of_extension (id bigserial PRIMARY KEY);
ALTER EXTENSION snowflake ADD SEQUENCE of_extension_id_seq;
SELECT snowflake_convert('of_extension');
ALTER EXTENSION snowflake DROP SEQUENCE of_extension_id_seq;

-- the sequence of an identity cannot be kept
CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE borrower (n bigint DEFAULT nextval('numbered_id_seq'));
CREATE FUNCTION borrow() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('numbered_id_seq'); END $$;
SELECT snowflake_convert('numbered', dry_run => true);
SELECT snowflake_convert('numbered');
ALTER TABLE borrower ALTER n DROP DEFAULT;
DROP FUNCTION borrow;
SELECT snowflake_convert('numbered');

SET client_min_messages = warning;
DROP SCHEMA defaults CASCADE;
