-- The schemas of what statements name: of tables and views, of what is looked up again, of its
-- types and what else it is made of, and of generators.  called is 1 for those of functions,
-- operators and types of others, and castable for those of such types, whose names are in the
-- texts, and of functions that a type could hide, if another role may create types there, or has
-- one, which it may rename even so.
-- name: named_schemas
-- with: looked_up, looking_up, type_of_other, callable, changed, gone, untrusted
WITH function_called(oid) AS (
  SELECT called FROM looking_up WHERE called_class = 'pg_proc'::regclass
  UNION
  SELECT refobjid FROM pg_depend
  WHERE (classid, refclassid) = ('pg_proc'::regclass, 'pg_proc'::regclass) AND objid = ANY ($22)),
 named(schema, called, needed) AS (
  SELECT relnamespace, 0, NULL::int FROM pg_class
  WHERE oid IN (SELECT relid FROM changed UNION SELECT relid FROM target
                UNION SELECT relid FROM gone
                UNION SELECT d.refobjid FROM looked_up o JOIN pg_depend d
                  ON (d.classid, d.objid) = (o.classid, o.objid)
                  AND d.refclassid = 'pg_class'::regclass)
  UNION
  SELECT pronamespace, 0, NULL FROM pg_proc
  WHERE oid = ANY ($22) OR oid IN (SELECT generator FROM target)
  UNION
  SELECT y.typnamespace, 0, NULL
  FROM looked_up o JOIN pg_depend d ON (d.classid, d.objid) = (o.classid, o.objid)
    JOIN pg_type y ON d.refclassid = 'pg_type'::regclass AND y.oid = d.refobjid
  UNION
  SELECT schema, 1, 1 FROM type_of_other
  UNION
  SELECT f.schema, 1, f.needed FROM callable f
  WHERE f.classid = 'pg_proc'::regclass AND f.oid IN (SELECT oid FROM function_called)
  OR (f.classid, f.oid) IN (SELECT called_class, called FROM looking_up))
SELECT n.schema, max(n.called) AS called,
  (coalesce(min(n.needed), 2) <= 1 AND EXISTS (
    SELECT FROM untrusted r
    WHERE NOT starts_with(r.rolname, 'pg_')
    AND (has_schema_privilege(r.oid, n.schema, 'CREATE')
         OR EXISTS (SELECT FROM pg_type y LEFT JOIN pg_class c ON c.oid = y.typrelid
                    WHERE (y.typnamespace, y.typowner) = (n.schema, r.oid) AND y.typtype <> 'b'
                    AND coalesce(c.relkind, 'c') = 'c'))))::int AS castable
FROM named n
GROUP BY n.schema

-- Who would rename one of the schemas $1 waits.
-- parameters: text
-- name: lock_schemas
SELECT FROM pg_namespace WHERE oid = ANY ($1::oid[]) ORDER BY oid FOR KEY SHARE
