-- The keys, all columns that reference them, and the same column of their
-- partitions, children and parents, transitively.  is_key is true for a key
-- itself, and that of its partitions and children.  A column may reference
-- several keys; key is the number of one of them.  It is null for the other
-- columns that are widened.
-- name: walk
WITH fk(referencing, attnum, referenced, number) AS MATERIALIZED (
  SELECT c.conrelid, k.referencing, c.confrelid, k.referenced
  FROM pg_constraint c, unnest(c.conkey, c.confkey) k(referencing, referenced)
  WHERE c.contype = 'f'),
 walk(relid, attnum, is_key, key) AS (
  (SELECT k.relid, k.attnum, true, k.number::int
   FROM unnest($tables, $columns) WITH ORDINALITY k(relid, attnum, number)
   UNION ALL
   SELECT o.relid, o.attnum, false, NULL
   FROM unnest($other_tables, $other_columns) o(relid, attnum))
  UNION
  SELECT n.relid, n.attnum, n.is_key, w.key
  FROM walk w
    JOIN {attribute(this, w)}
    CROSS JOIN LATERAL (
-- a column of a foreign key that references this one,
      SELECT fk.referencing, fk.attnum, false
      FROM fk WHERE fk.referenced = w.relid AND fk.number = w.attnum
      UNION ALL
-- and the same column of a partition or child, and of a parent
      SELECT a.attrelid, a.attnum, i.is_key
      FROM (SELECT inhrelid, w.is_key FROM pg_inherits WHERE inhparent = w.relid
            UNION ALL
            SELECT inhparent, false FROM pg_inherits
            WHERE inhrelid = w.relid AND this.attinhcount > 0) i(relid, is_key)
        JOIN pg_attribute a ON (a.attrelid, a.attname) = (i.relid, this.attname)
          AND NOT a.attisdropped
    ) n(relid, attnum, is_key)
  WHERE this.atttypid IN ('int2'::regtype, 'int4'::regtype)
  OR this.atttypid IN (SELECT typid FROM wide))
SELECT array_agg(relid), array_agg(attnum), array_agg(is_key), array_agg(key)
FROM (SELECT relid, attnum, bool_or(is_key) AS is_key,
        coalesce(min(key) FILTER (WHERE is_key), min(key)) AS key
      FROM walk GROUP BY relid, attnum ORDER BY relid, attnum) w

-- The uses by name alone, which the catalogs do not record: in the body of a
-- function, in the argument of a trigger, and in a default such as
-- nextval('orders_id_seq'::text).  There may be much source, in which searching
-- for a regular expression takes long: so the texts that have the name are
-- found first.  A name with other characters than those of ASCII may have
-- other case there, and is searched for in all of them.
-- name: sequence_names
WITH word(oid, pattern, part) AS (
  SELECT oid, {word(relname)},
    CASE WHEN relname ~ '[^ -~]' THEN '' ELSE lower(relname::text COLLATE "C") END
  FROM seq),
 source(classid, objid, code) AS (
  SELECT 'pg_proc'::regclass, p.oid, p.prosrc FROM pg_proc p
  WHERE p.prolang NOT IN (SELECT oid FROM pg_language WHERE lanname IN ('internal', 'c'))
  AND NOT {of_extension(pg_proc, p.oid)}
  UNION ALL
  SELECT 'pg_trigger'::regclass, oid, encode(tgargs, 'escape') FROM pg_trigger),
 naming(oid, classid, objid) AS (
  SELECT w.oid, s.classid, s.objid
  FROM (SELECT *, lower(code COLLATE "C") AS lower FROM source
  WHERE EXISTS (SELECT FROM word) OFFSET 0) s
    JOIN word w ON CASE WHEN strpos(s.lower, w.part) > 0 THEN s.code ~* w.pattern END
  UNION ALL
  SELECT w.oid, 'pg_attrdef'::regclass, f.oid
  FROM word w JOIN pg_attrdef f
-- pg_get_expr() locks the table, so it is not called for all of them.
    ON CASE WHEN strpos(f.adbin::text, ':funcid ' || 'regclass(text)'::regprocedure::oid
      || ' ') > 0
       THEN pg_get_expr(f.adbin, f.adrelid) ~* ('nextval.*' || w.pattern || '.*::text') END
  WHERE f.oid NOT IN (SELECT oid FROM key_default))
SELECT (SELECT coalesce(array_agg(oid), '{}') FROM seq), coalesce(array_agg(oid), '{}'),
  coalesce(array_agg(pg_describe_object(classid, objid, 0)), '{}')
 FROM naming

-- Sequences of the keys that were not there then.
-- name: new_sequences
SELECT FROM seq WHERE oid <> ALL ($known_sequences)

-- The columns of table $object.
-- name: part
SELECT array_agg(relid), array_agg(attnum), array_agg(is_key), array_agg(key)
FROM unnest($target_tables, $target_columns, $target_is_key, $target_keys)
  w(relid, attnum, is_key, key)
WHERE relid = $object
