-- Queries of keys.c.

-- The column that is the primary key of table $object.
-- name: primary_key
SELECT indkey[0] FROM pg_index WHERE indrelid = $object AND indisprimary AND indnkeyatts = 1

-- The schema of the extension snowflake, which can be another than that of this one.
-- name: generators_schema
SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake'
