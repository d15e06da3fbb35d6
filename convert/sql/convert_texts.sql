--
-- What the report and conversions say of texts made of numbers, and of what reads last_value
--
SELECT current_database() AS tests \gset
CREATE DATABASE regress_convert_texts;
\c regress_convert_texts
SET client_min_messages = warning;
CREATE EXTENSION snowflake_convert CASCADE;
RESET client_min_messages;
\set SHOW_CONTEXT never
\pset format unaligned

CREATE SCHEMA app;
SET search_path = app, public;
CREATE SEQUENCE invoice_no_seq;
CREATE TABLE invoices (id bigserial PRIMARY KEY, no text DEFAULT 'INV-' || lpad(nextval('invoice_no_seq')::text, 6, '0'));
CREATE TABLE tickets (id bigserial PRIMARY KEY, code text UNIQUE DEFAULT to_char(nextval('tickets_id_seq'), 'FM000000'));
CREATE DOMAIN order_no AS varchar(10);
CREATE TABLE orders (no order_no PRIMARY KEY);
CREATE SEQUENCE orders_no_seq OWNED BY orders.no;
ALTER TABLE orders ALTER no SET DEFAULT 'O' || nextval('orders_no_seq');
CREATE TABLE counted (id bigserial PRIMARY KEY, n numeric DEFAULT nextval('invoice_no_seq'));

CREATE VIEW last_invoice AS SELECT last_value FROM invoices_id_seq;
CREATE VIEW next_invoice AS SELECT nextval('invoices_id_seq');
CREATE FUNCTION last_id() RETURNS bigint LANGUAGE sql AS 'SELECT LAST_VALUE FROM app.invoices_id_seq';
CREATE FUNCTION last_body() RETURNS bigint LANGUAGE sql RETURN (SELECT last_value FROM invoices_id_seq);
CREATE FUNCTION resync() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN setval('invoices_id_seq', greatest((SELECT last_value FROM invoices_id_seq), (SELECT max(id) FROM invoices)));
END $$;
CREATE FUNCTION other() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT last_value FROM other_invoices_id_seq); END';

SELECT severity, object, finding, what_to_do FROM snowflake_convert_report('app') WHERE finding ~ 'text|last_value';
SELECT severity, object, finding, what_to_do FROM snowflake_convert_report('app', kind => 'range') WHERE finding ~ 'text|last_value';
SELECT severity, object, finding, what_to_do FROM snowflake_convert_report('app', kind => 'local') WHERE finding ~ 'text|last_value';
SELECT snowflake_convert_schema('app');
SELECT severity, object, finding, what_to_do FROM snowflake_convert_report('app') WHERE finding ~ 'text|last_value';
SELECT severity, object, finding FROM snowflake_convert_report('app', kind => 'range') WHERE finding ~ 'text|last_value';
\set VERBOSITY terse
SELECT snowflake_convert_schema('app', kind => 'range', dry_run => true);
SELECT snowflake_convert_schema('app', kind => 'local');
SELECT severity, object, finding FROM snowflake_convert_report('app', kind => 'local') WHERE finding ~ 'text|last_value';

\c :tests
DROP DATABASE regress_convert_texts;
