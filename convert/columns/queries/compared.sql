-- The relations of the schema, and the views that are made of them.
-- cte: seen(oid)
SELECT oid FROM pg_class WHERE relnamespace = $schema AND relkind IN ('r', 'p', 'v', 'm')
UNION
SELECT w.ev_class
FROM seen s JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass
  AND (d.refclassid, d.refobjid) = ('pg_class'::regclass, s.oid)
  JOIN pg_rewrite w ON w.oid = d.objid

-- The queries that the server has stored, as trees: those of view; of rules, and of functions with
-- BEGIN ATOMIC; and the expressions of policies, which are about the table ruled.
-- name: stored_queries
SELECT CASE WHEN r.relkind IN ('v', 'm') AND w.rulename = '_RETURN' THEN w.ev_class END AS view,
  NULL AS ruled,
  CASE WHEN w.rulename = '_RETURN' THEN pg_describe_object('pg_class'::regclass, r.oid, 0)
    ELSE pg_describe_object('pg_rewrite'::regclass, w.oid, 0) END AS name, w.ev_action AS tree
FROM seen s JOIN pg_rewrite w ON w.ev_class = s.oid JOIN pg_class r ON r.oid = s.oid
UNION ALL
SELECT NULL, p.polrelid, pg_describe_object('pg_policy'::regclass, p.oid, 0), e.tree
FROM seen s JOIN pg_policy p ON p.polrelid = s.oid
  CROSS JOIN LATERAL (VALUES (p.polqual), (p.polwithcheck)) e(tree)
WHERE e.tree IS NOT NULL
UNION ALL
SELECT NULL, NULL, pg_describe_object('pg_proc'::regclass, p.oid, 0), p.prosqlbody
FROM pg_proc p
WHERE p.prosqlbody IS NOT NULL
AND EXISTS (SELECT FROM seen s JOIN pg_depend d
              ON (d.refclassid, d.refobjid) = ('pg_class'::regclass, s.oid)
            WHERE (d.classid, d.objid) = ('pg_proc'::regclass, p.oid))
ORDER BY 1, 2, 3
