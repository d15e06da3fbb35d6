-- What depends on the columns, other than the obstacles of obstacles.c: whether it is created
-- again, the generator of new rows, which must satisfy it (receives), whether these might not
-- belong there (is_doubtful), and the statement that creates it, or a SELECT of its expression.
-- It may use a column by way of one that is generated from it.  What is inherited is left out.
-- name: dependents
WITH own AS (
  SELECT t.*, u.used, (t.change = 'widen')::int AS recreated,
    CASE WHEN t.gets_ids THEN t.generator END AS receives,
    (t.attinhcount > 0 AND NOT r.relispartition)::int AS is_child
  FROM target t
    JOIN pg_class r ON r.oid = t.relid JOIN pg_class k ON k.oid = $tables[1]
    CROSS JOIN LATERAL (
      SELECT t.attnum
      UNION ALL
      SELECT f.adnum FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid
      WHERE d.classid = 'pg_attrdef'::regclass
      AND {on_column(d, t)}
    ) u(used)
  WHERE r.relowner = k.relowner AND t.change <> 'cannot'
  AND NOT EXISTS (SELECT FROM pg_partition_ancestors(t.relid) n(relid) JOIN pg_class p
    ON p.oid = n.relid
                  WHERE p.relowner <> k.relowner))
SELECT format('check constraint %I of %s', c.conname, t.table_name) COLLATE "C" AS description,
    t.relid, t.attnum, 1 AS is_check, 0 AS is_partition_key, t.recreated, t.receives,
    (t.attinhcount > 0)::int AS is_doubtful,
  format('SELECT %s', pg_get_expr(c.conbin, c.conrelid)) AS text
 FROM own t JOIN pg_constraint c ON c.contype = 'c' AND c.conrelid = t.relid
   AND t.used = ANY (c.conkey)
 WHERE c.coninhcount = 0
-- Since 18, a constraint may be not enforced.
 AND to_jsonb(c) -> 'conenforced' IS DISTINCT FROM 'false'
 UNION
SELECT CASE WHEN x.oid IS NULL THEN format('index %s of %s', i.indexrelid::regclass, t.table_name)
    ELSE format('exclusion constraint %I of %s', x.conname, t.table_name) END,
    t.relid, t.attnum, 0, 0, t.recreated,
-- What has columns alone accepts any value.
  CASE WHEN i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
    OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.relid AND a.attnum = ANY (i.indkey)
      AND a.attgenerated <> '')
    THEN t.receives END, t.is_child,
  CASE WHEN x.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
    ELSE format('ALTER TABLE t ADD %s', pg_get_constraintdef(x.oid)) END
 FROM own t JOIN pg_index i ON i.indrelid = t.relid
  LEFT JOIN pg_constraint x ON x.conindid = i.indexrelid AND x.contype = 'x'
 WHERE (t.used = ANY (i.indkey)
        OR EXISTS (SELECT FROM pg_depend d
                   WHERE d.refclassid = 'pg_class'::regclass
                   AND (d.refobjid, d.refobjsubid) = (t.relid, t.used)
                   AND (d.classid, d.objid) IN (('pg_class'::regclass, i.indexrelid),
                                                ('pg_constraint'::regclass, x.oid))))
 AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
 UNION
SELECT format('statistics object %s.%I of %s', s.stxnamespace::regnamespace, s.stxname,
    t.table_name), t.relid, t.attnum, 0, 0, t.recreated, t.receives, t.is_child,
  pg_get_statisticsobjdef(s.oid)
 FROM own t JOIN pg_statistic_ext s ON s.stxrelid = t.relid
 WHERE t.used = ANY (s.stxkeys)
 OR EXISTS (SELECT FROM pg_depend d
            WHERE d.refclassid = 'pg_class'::regclass
            AND (d.refobjid, d.refobjsubid) = (t.relid, t.used)
            AND (d.classid, d.objid) = ('pg_statistic_ext'::regclass, s.oid))
 UNION
SELECT format('generated column %I of %s', a.attname, t.table_name), t.relid, t.attnum, 0, 0,
    t.recreated, t.receives, t.is_child, format('SELECT %I', a.attname)
 FROM own t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.used)
 WHERE t.used <> t.attnum AND a.attinhcount = 0 AND t.change = 'keep'
 UNION
-- The column has the type of the domain already, which is no cast to it.
SELECT t.column_name, t.relid, t.attnum, 0, 0, t.recreated, t.receives, t.is_child,
  format('SELECT %I::bigint::%s', t.attname, format_type(t.typid, NULL))
 FROM own t JOIN pg_type y ON y.oid = t.typid AND y.typtype = 'd'
 WHERE t.used = t.attnum AND t.attinhcount = 0
 UNION
SELECT format('partition key of %s', t.table_name), t.relid, t.attnum, 0, 1, 0, t.receives,
  t.is_child,
  format('SELECT %s', pg_get_expr(p.partexprs, p.partrelid))
 FROM own t JOIN pg_partitioned_table p ON p.partrelid = t.relid AND p.partexprs IS NOT NULL
 WHERE t.is_key AND t.change = 'keep'
 ORDER BY 1, 2, 3
