-- The schemas of functions and operators that are looked up again.
-- name: called_schemas
-- with: looking_up, callable
SELECT DISTINCT f.schema FROM callable f
WHERE (f.classid, f.oid) IN (
  SELECT called_class, called FROM looking_up
  UNION ALL
  SELECT d.refclassid, d.refobjid FROM pg_depend d
  WHERE d.classid = 'pg_proc'::regclass AND d.objid = ANY ($22))

-- Who would rename one of the schemas $1 waits.
-- parameters: text
-- name: lock_schemas
SELECT FROM pg_namespace WHERE oid = ANY ($1::oid[]) ORDER BY oid FOR KEY SHARE
