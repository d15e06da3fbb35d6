-- Queries of keys.c.

-- The schema of the extension snowflake, which can be another than that of this one.
-- name: generators_schema
SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake'

-- The keys of a schema: table, column, kind, and description.
-- name: keys
WITH candidate AS (
  SELECT r.oid AS relid, a.attnum, a.attname, a.attidentity, f.oid AS default_oid,
    pg_get_expr(f.adbin, f.adrelid) AS expression, i.indrelid IS NOT NULL AS has_key,
    coalesce(a.attnum = ANY (i.indkey), false) AS in_key, i.indnkeyatts = 1 AS alone
  FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid
    LEFT JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (a.attrelid, a.attnum)
    LEFT JOIN pg_index i ON i.indrelid = r.oid AND i.indisprimary
  WHERE r.relnamespace = $schema AND r.relkind IN ('r', 'p')
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0 AND a.attgenerated = ''
  AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
  AND NOT {of_extension(pg_class, r.oid)}),
 key AS (
  SELECT c.*, c.attidentity <> '' OR coalesce(c.expression ~* 'nextval[(]', false) OR EXISTS (
      SELECT FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid
      WHERE (d.classid, d.objid) = ('pg_attrdef'::regclass, c.default_oid)
      AND d.refclassid = 'pg_proc'::regclass
      AND p.pronargs = 0 AND p.prorettype = 'int8'::regtype) AS generated,
    EXISTS (SELECT FROM pg_constraint x WHERE x.contype = 'f' AND x.conrelid = c.relid
            AND c.attnum = ANY (x.conkey)) AS referencing,
    EXISTS (SELECT FROM pg_constraint x WHERE x.contype = 'f' AND x.confrelid = c.relid
            AND c.attnum = ANY (x.confkey)) AS referenced
  FROM candidate c)
SELECT relid, attname, CASE WHEN referencing THEN 'referencing' WHEN NOT generated THEN 'supplied'
    WHEN in_key OR referenced OR NOT has_key THEN 'converted'
    ELSE 'counter' END AS kind,
  format('column %I of table %s', attname, relid::regclass) AS object
 FROM key WHERE in_key AND alone OR generated
 ORDER BY relid, attnum

-- The column that is the primary key of a table.
-- texts: table
-- name: primary_key
SELECT indkey[0] FROM pg_index WHERE indrelid = $table::oid AND indisprimary AND indnkeyatts = 1
