-- What depends on the columns, other than the obstacles of obstacles.c: whether it is created
-- again, the generator of new rows, which must satisfy it (receives), whether these might not
-- belong there (is_doubtful), and the statement that creates it, or a SELECT of its expression.
-- It may use a column by way of one that is generated from it.  What is inherited is left out.
-- name: dependents
WITH own AS (
  SELECT t.*, u.used, r.relispartition
  FROM target t
    JOIN pg_class r ON r.oid = t.relid JOIN pg_class k ON k.oid = $tables[1]
    CROSS JOIN LATERAL (
      SELECT t.attnum
      UNION ALL
      SELECT f.adnum FROM pg_depend d JOIN pg_attrdef f ON {is_object(d, pg_attrdef, f.oid)}
      WHERE {on_column(d, t)}) u(used)
  WHERE r.relowner = k.relowner AND t.change <> 'cannot'
  AND NOT EXISTS (SELECT FROM pg_partition_ancestors(t.relid) n(relid)
                    JOIN pg_class p ON p.oid = n.relid
                  WHERE p.relowner <> k.relowner))
SELECT DISTINCT d.description COLLATE "C" AS description, t.relid, t.attnum, d.is_check,
  d.is_partition_key, (t.change = 'widen')::int AS recreated,
  CASE WHEN t.gets_ids AND d.receives THEN t.generator END AS receives,
  (t.attinhcount > 0 AND NOT (t.relispartition AND d.is_check = 0))::int AS is_doubtful, d.text
 FROM own t CROSS JOIN LATERAL (
  SELECT format('check constraint %I of %s', c.conname, t.table_name), 1, 0, true,
    format('SELECT %s', pg_get_expr(c.conbin, c.conrelid))
  FROM pg_constraint c
  WHERE c.contype = 'c' AND c.conrelid = t.relid AND t.used = ANY (c.conkey) AND c.coninhcount = 0
-- Since 18, a constraint may be not enforced.
  AND to_jsonb(c) -> 'conenforced' IS DISTINCT FROM 'false'
  UNION ALL
  SELECT CASE WHEN x.oid IS NULL THEN format('index %s of %s', i.indexrelid::regclass, t.table_name)
    ELSE format('exclusion constraint %I of %s', x.conname, t.table_name) END, 0, 0,
-- What has columns alone accepts any value.
    i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
      OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.relid
                 AND a.attnum = ANY (i.indkey) AND a.attgenerated <> ''),
    CASE WHEN x.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
      ELSE format('ALTER TABLE t ADD %s', pg_get_constraintdef(x.oid)) END
  FROM pg_index i LEFT JOIN pg_constraint x ON x.conindid = i.indexrelid AND x.contype = 'x'
  WHERE i.indrelid = t.relid
  AND (t.used = ANY (i.indkey)
       OR EXISTS (SELECT FROM pg_depend d
                  WHERE {on_object(d, pg_class, t.relid)} AND d.refobjsubid = t.used
                  AND ({is_object(d, pg_class, i.indexrelid)}
                       OR {is_object(d, pg_constraint, x.oid)})))
  AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
  UNION ALL
  SELECT format('statistics object %s.%I of %s', s.stxnamespace::regnamespace, s.stxname,
    t.table_name), 0, 0, true, pg_get_statisticsobjdef(s.oid)
  FROM pg_statistic_ext s
  WHERE s.stxrelid = t.relid
  AND (t.used = ANY (s.stxkeys)
       OR EXISTS (SELECT FROM pg_depend d
                  WHERE {on_object(d, pg_class, t.relid)} AND d.refobjsubid = t.used
                  AND {is_object(d, pg_statistic_ext, s.oid)}))
  UNION ALL
  SELECT format('generated column %I of %s', a.attname, t.table_name), 0, 0, true,
    format('SELECT %I', a.attname)
  FROM pg_attribute a
  WHERE (a.attrelid, a.attnum) = (t.relid, t.used)
  AND t.used <> t.attnum AND a.attinhcount = 0 AND t.change = 'keep'
  UNION ALL
-- The column has the type of the domain already, which is no cast to it.
  SELECT t.column_name, 0, 0, true,
    format('SELECT %I::bigint::%s', t.attname, format_type(t.typid, NULL))
  FROM pg_type y
  WHERE y.oid = t.typid AND y.typtype = 'd' AND t.used = t.attnum AND t.attinhcount = 0
  UNION ALL
  SELECT format('partition key of %s', t.table_name), 0, 1, true,
    format('SELECT %s', pg_get_expr(p.partexprs, p.partrelid))
  FROM pg_partitioned_table p
  WHERE p.partrelid = t.relid AND p.partexprs IS NOT NULL AND t.is_key AND t.change = 'keep')
  d(description, is_check, is_partition_key, receives, text)
 ORDER BY 1, 2, 3
