-- The rows about tables.  Of what may belong to others, only what the owner of the table could
-- change as well: who converts a table cannot have others wait for their own objects.
-- texts: tables
-- snippet: class_rows
pg_class r WHERE r.oid = ANY ($tables::oid[])

-- snippet: attribute_rows
pg_attribute r WHERE r.attrelid = ANY ($tables::oid[]) AND r.attnum > 0

-- snippet: sequence_rows
pg_depend d JOIN pg_class r ON r.oid = d.objid AND r.relkind = 'S'
WHERE d.refclassid = d.classid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
AND d.refobjid = ANY ($tables::oid[])

-- snippet: statistics_rows
pg_statistic_ext r JOIN pg_class t ON t.oid = r.stxrelid
WHERE t.oid = ANY ($tables::oid[]) AND pg_has_role(t.relowner, r.stxowner, 'USAGE')

-- snippet: publication_rows
pg_publication_rel r JOIN pg_class t ON t.oid = r.prrelid JOIN pg_publication b ON b.oid = r.prpubid
WHERE t.oid = ANY ($tables::oid[]) AND pg_has_role(t.relowner, b.pubowner, 'USAGE')

-- snippet: trigger_function_rows
pg_trigger g JOIN pg_proc r ON r.oid = g.tgfoid JOIN pg_class t ON t.oid = g.tgrelid
WHERE NOT g.tgisinternal AND t.oid = ANY ($tables::oid[])
AND pg_has_role(t.relowner, r.proowner, 'USAGE')

-- Functions that a swap alters beside these.  To find them takes time if there is much source, so
-- that it is not done with locks that clients wait for.
-- snippet: row_function_rows
row_user u JOIN pg_proc r ON r.oid = u.oid WHERE {may_alter(u.owner, r)}

-- Which transactions have changed them?
-- name: changers
WITH row_table AS MATERIALIZED (SELECT t.* FROM pg_class t WHERE t.oid = ANY ($tables::oid[]))
SELECT xmax::text
FROM (SELECT r.xmax FROM {class_rows}
      UNION SELECT r.xmax FROM {attribute_rows}
      UNION SELECT r.xmax FROM {sequence_rows}
      UNION SELECT r.xmax FROM {statistics_rows}
      UNION SELECT r.xmax FROM {publication_rows}
      UNION SELECT r.xmax FROM {trigger_function_rows}
      UNION SELECT r.xmax FROM {row_function_rows}) r(xmax)
WHERE xmax <> 0

-- name: lock_rows
WITH c AS (SELECT FROM {class_rows} FOR NO KEY UPDATE OF r NOWAIT),
 a AS (SELECT FROM {attribute_rows} FOR NO KEY UPDATE OF r NOWAIT),
 s AS (SELECT FROM {sequence_rows} FOR NO KEY UPDATE OF r NOWAIT),
 x AS (SELECT FROM {statistics_rows} FOR NO KEY UPDATE OF r NOWAIT),
 b AS (SELECT FROM {publication_rows} FOR NO KEY UPDATE OF r NOWAIT),
 f AS (SELECT FROM {trigger_function_rows} FOR NO KEY UPDATE OF r NOWAIT)
SELECT FROM c UNION ALL SELECT FROM a UNION ALL SELECT FROM s UNION ALL SELECT FROM x
UNION ALL SELECT FROM b UNION ALL SELECT FROM f

-- name: lock_row_function_rows
WITH row_table AS MATERIALIZED (SELECT t.* FROM pg_class t WHERE t.oid = ANY ($tables::oid[]))
SELECT FROM {row_function_rows} FOR NO KEY UPDATE OF r NOWAIT

-- Functions in definitions of what depends on tables, some of which a swap reads and writes again.
-- name: functions_of_tables
SELECT DISTINCT f.refobjid
FROM pg_depend d JOIN pg_depend f ON (f.classid, f.objid) = (d.classid, d.objid)
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY ($tables::oid[])
AND f.refclassid = 'pg_proc'::regclass
ORDER BY 1

-- Who has a transaction?
-- texts: transaction
-- name: owner_of_transaction
SELECT {lock_owner}
FROM pg_locks l LEFT JOIN pg_stat_activity USING (pid)
  LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
AND l.transactionid = $transaction::xid
