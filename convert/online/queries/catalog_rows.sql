-- The rows about tables.  Of what may belong to others, only what the owner of the table could
-- change as well: who converts a table cannot have others wait for their own objects.
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
-- texts: tables
-- name: changers
WITH row_table AS MATERIALIZED (SELECT t.* FROM pg_class t WHERE t.oid = ANY ($tables::oid[]))
SELECT r.xmax::text FROM {class_rows} AND r.xmax <> 0
UNION
SELECT r.xmax::text FROM {attribute_rows} AND r.xmax <> 0
UNION
SELECT r.xmax::text FROM {sequence_rows} AND r.xmax <> 0
UNION
SELECT r.xmax::text FROM {statistics_rows} AND r.xmax <> 0
UNION
SELECT r.xmax::text FROM {publication_rows} AND r.xmax <> 0
UNION
SELECT r.xmax::text FROM {trigger_function_rows} AND r.xmax <> 0
UNION
SELECT r.xmax::text FROM {row_function_rows} AND r.xmax <> 0

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

-- Functions in the definitions that a swap reads and writes again.
-- name: functions_of_tables
SELECT r.oid
FROM pg_proc r
WHERE r.oid IN (
  SELECT d.refobjid FROM pg_depend d
  WHERE d.refclassid = 'pg_proc'::regclass AND (d.classid, d.objid) IN (
    SELECT 'pg_policy'::regclass::oid, oid FROM pg_policy WHERE polrelid = ANY ($tables::oid[])
    UNION ALL
    SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite WHERE ev_class = ANY ($tables::oid[])
    UNION ALL
    SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid = ANY ($tables::oid[])
    UNION ALL
    SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid = ANY ($tables::oid[])
    UNION ALL
    SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = ANY ($tables::oid[])
    UNION ALL
    SELECT 'pg_publication_rel'::regclass, oid FROM pg_publication_rel
    WHERE prrelid = ANY ($tables::oid[])))
ORDER BY r.oid

-- Who has a transaction?
-- texts: transaction
-- name: owner_of_transaction
SELECT CASE WHEN l.pid IS NOT NULL THEN {process(Process)}
    ELSE format('Prepared transaction %L of %s', p.gid, p.owner) END
FROM pg_locks l LEFT JOIN pg_stat_activity USING (pid)
  LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
AND l.transactionid = $transaction::xid
