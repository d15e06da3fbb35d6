-- Queries of keys.c.

-- The schema of the extension snowflake, which can be another than that of this one.
-- name: generators_schema
SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake'

-- The keys of a schema, and what is said of those that are left as they are.
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
      WHERE {is_object(d, pg_attrdef, c.default_oid)} AND d.refclassid = 'pg_proc'::regclass
      AND p.pronargs = 0 AND p.prorettype = 'int8'::regtype) AS generated,
    EXISTS (SELECT FROM pg_constraint x WHERE x.contype = 'f' AND x.conrelid = c.relid
            AND c.attnum = ANY (x.conkey)) AS referencing,
    EXISTS (SELECT FROM pg_constraint x WHERE x.contype = 'f' AND x.confrelid = c.relid
            AND c.attnum = ANY (x.confkey)) AS referenced
  FROM candidate c)
SELECT relid, attname, format('column %I of table %s', attname, relid::regclass) AS object,
  l.title, l.finding, l.what_to_do
 FROM key LEFT JOIN (VALUES
    ('referencing', 'keys that are foreign keys have the values of the referenced tables',
      'it is a foreign key, and has the values of the referenced table', NULL),
    ('supplied', 'keys whose values the application supplies stay as they are',
      'no sequence or generator is its default, so the application supplies its values',
      'If the application can omit it in INSERT, convert the table with snowflake_convert().'),
    ('counter', 'columns with a sequence that are no keys stay as they are',
      'it has a sequence, but is not in the primary key, and no foreign key references it',
      'If it is a key, convert it with snowflake_convert().')) l(why, title, finding, what_to_do)
    ON why = CASE WHEN referencing THEN 'referencing' WHEN NOT generated THEN 'supplied'
      WHEN NOT (in_key OR referenced) AND has_key THEN 'counter' END
 WHERE in_key AND alone OR generated
 ORDER BY relid, attnum
