-- Columns of tree $object with other privileges than the new ones beside them.
-- name: other_privileges
SELECT
FROM col JOIN top USING (relid)
  JOIN pg_attribute n ON (n.attrelid, n.attnum) = (col.relid, col.newnum)
WHERE top.root = $object
AND ARRAY(SELECT (e.grantee, e.privilege_type, e.is_grantable)::text
          FROM aclexplode(col.attacl) e ORDER BY 1)
  <> ARRAY(SELECT (e.grantee, e.privilege_type, e.is_grantable)::text
           FROM aclexplode(n.attacl) e ORDER BY 1)

-- Partitions without the foreign key that is to become that of their table, $object.
-- name: partitions_without
SELECT FROM fkey
WHERE top = $object AND relkind <> 'p' AND NOT internal
AND (newoid IS NULL OR convalidated AND NOT newvalid)

-- A table that does not belong to role $object.
-- name: table_of_other
SELECT r.oid::regclass FROM changed JOIN pg_class r ON r.oid = changed.relid
WHERE r.relowner <> $object LIMIT 1
