-- Columns of tree $12 with other privileges than the new ones beside them.
-- name: other_privileges
-- with: col, top
SELECT
FROM col JOIN top USING (relid)
  JOIN pg_attribute n ON (n.attrelid, n.attnum) = (col.relid, col.newnum)
WHERE top.root = $12
AND ARRAY(SELECT (e.grantee, e.privilege_type, e.is_grantable)::text
          FROM aclexplode(col.attacl) e ORDER BY 1)
  <> ARRAY(SELECT (e.grantee, e.privilege_type, e.is_grantable)::text
           FROM aclexplode(n.attacl) e ORDER BY 1)

-- Partitions without the foreign key that is to become that of their table, $12.
-- name: partitions_without
-- with: fkey
SELECT FROM fkey
WHERE top = $12 AND relkind <> 'p' AND NOT internal
AND (newoid IS NULL OR convalidated AND NOT newvalid)

-- name: acts_before
-- with: fkey
SELECT
FROM fkey JOIN pg_trigger o ON o.tgconstraint = fkey.oid AND o.tgrelid = confrelid
  JOIN pg_trigger n ON n.tgconstraint = fkey.newoid AND n.tgrelid = confrelid
WHERE fkey.oid = $12 AND 'd' IN (confdeltype, confupdtype)
AND n.tgname::text COLLATE "C" < o.tgname::text COLLATE "C" AND n.tgfoid = o.tgfoid

-- name: any_to_widen
-- with: target
SELECT FROM target WHERE change = 'widen'

-- A table that does not belong to role $12.
-- name: table_of_other
-- with: changed
SELECT r.oid::regclass FROM changed JOIN pg_class r ON r.oid = changed.relid
WHERE r.relowner <> $12 LIMIT 1

-- Tables of role $1 with the trigger of a conversion.
-- parameters: text
-- name: left_tables
SELECT format('%s.%I', c.relnamespace::regnamespace, c.relname)
FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
WHERE g.tgname = '~snowflake_new' AND g.tgparentid = 0 AND c.relowner = $1::oid
ORDER BY 1
