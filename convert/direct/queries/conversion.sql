-- The keys, and their columns in partitions and children.
-- name: key_columns
SELECT relid, attnum, key FROM target WHERE is_key

-- The tables to lock, and whether they are altered.
-- name: tables_to_lock
SELECT relid, 1 AS altered FROM changed
UNION
SELECT relid, 0 FROM target WHERE relid NOT IN (SELECT relid FROM changed)
ORDER BY 1

-- Views that are dropped, those that are made of others first; and other relations whose rules
-- and policies are.  Those of other owners are obstacles.
-- name: views_to_lock
SELECT v.oid
FROM (SELECT oid, relowner, depth FROM vw UNION ALL SELECT oid, relowner, 0 FROM ruled) v
  JOIN owner ON owner.oid = v.relowner
ORDER BY v.depth DESC, v.oid

-- name: functions_to_lock
SELECT oid FROM row_function WHERE owned ORDER BY 1

-- The columns that are not converted.
-- name: narrow_targets
SELECT attname, relid FROM target WHERE change = 'widen'
ORDER BY key, NOT is_root, relid, attnum

-- texts: function
-- name: lock_function
SELECT FROM pg_proc WHERE oid = $function::oid FOR NO KEY UPDATE
