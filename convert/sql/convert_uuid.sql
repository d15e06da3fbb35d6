--
-- snowflake_convert() of a uuid key: another default, and nothing else
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_convert;
RESET client_min_messages;
CREATE SCHEMA uuids;
SET search_path = uuids, public;
\set SHOW_CONTEXT never

CREATE TABLE documents (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), body text);
CREATE TABLE versions (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), document uuid REFERENCES documents);
INSERT INTO documents SELECT FROM generate_series(1, 100);
INSERT INTO versions (document) SELECT id FROM documents;
CREATE VIEW of_documents AS SELECT id FROM documents;
-- only if the generator is named
SELECT snowflake_convert('documents');
SELECT snowflake_convert('documents', generator => 'uuid_v7()', dry_run => true);
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'documents'::regclass;
SELECT pg_relation_filenode('documents') AS before \gset
SELECT snowflake_convert('documents', generator => 'uuid_v7()');
SELECT pg_relation_filenode('documents') = :before AS not_rewritten;
SELECT snowflake_convert('documents', generator => 'uuid_v7()');
-- old rows keep their keys, and new ones are of version 7
INSERT INTO documents SELECT FROM generate_series(1, 100);
INSERT INTO versions (document) SELECT id FROM documents WHERE uuid_timestamp(id) IS NOT NULL;
SELECT substr(id::text, 15, 1) AS version, count(*), count(v.document) AS referenced
FROM documents d LEFT JOIN (SELECT document FROM versions) v ON v.document = d.id GROUP BY 1 ORDER BY 1;
-- by name of the column, back, and one without a default
SELECT snowflake_convert('documents', 'id', generator => 'gen_random_uuid()');
CREATE TABLE bare (id uuid PRIMARY KEY);
SELECT snowflake_convert('bare', generator => 'uuid_v7()');
-- partitions and children have the default of their parent
CREATE TABLE parts (id uuid DEFAULT gen_random_uuid(), kind int) PARTITION BY LIST (kind);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts (id DEFAULT uuid_v4()) FOR VALUES IN (2);
SELECT snowflake_convert('parts', 'id', generator => 'uuid_v7()');
INSERT INTO parts_2 (kind) VALUES (2) RETURNING uuid_timestamp(id) IS NOT NULL AS of_version_7;
SELECT snowflake_convert('parts', 'id', generator => 'uuid_v7()');
SELECT snowflake_convert('parts_1', 'id', generator => 'uuid_v4()');
-- a foreign key gets its values from the other table
SELECT snowflake_convert('versions', 'document', generator => 'uuid_v7()');

-- a generator of another type, and other types of column
SELECT snowflake_convert('documents', generator => 'snowflake_nextval()');
CREATE TABLE numbers (id bigserial PRIMARY KEY);
SELECT snowflake_convert('numbers', generator => 'uuid_v7()');
CREATE TABLE named (id text PRIMARY KEY);
SELECT snowflake_convert('named', generator => 'uuid_v7()');
CREATE DOMAIN key AS uuid;
CREATE TABLE of_domain (id key PRIMARY KEY);
SELECT snowflake_convert('of_domain', generator => 'uuid_v7()');
CREATE FUNCTION gives_null() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid';
SELECT snowflake_convert('documents', generator => 'gives_null()');
SET client_min_messages = warning;
DROP SCHEMA uuids CASCADE;
