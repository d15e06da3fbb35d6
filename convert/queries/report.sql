-- The views that depend on a column that is widened, and those
-- that are made of them.  Rules can make views depend on each other in a
-- circle, so the depth has a limit.
-- cte: dependent(oid, depth)
-- with: target
SELECT w.ev_class, 1
FROM target t JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass
    AND (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, t.relid, t.attnum)
  JOIN pg_rewrite w ON w.oid = d.objid JOIN pg_class v ON v.oid = w.ev_class
WHERE t.change = 'widen' AND v.relkind IN ('v', 'm')
UNION
SELECT w.ev_class, p.depth + 1
FROM dependent p JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass
    AND (d.refclassid, d.refobjid) = ('pg_class'::regclass, p.oid)
  JOIN pg_rewrite w ON w.oid = d.objid JOIN pg_class v ON v.oid = w.ev_class
WHERE v.relkind IN ('v', 'm') AND w.ev_class <> p.oid AND p.depth < 999

-- cte: vw
-- with: dependent
SELECT v.*, format('%I.%I', n.nspname, v.relname) AS name, d.depth
FROM (SELECT oid, max(depth) AS depth FROM dependent GROUP BY oid) d
  JOIN pg_class v ON v.oid = d.oid JOIN pg_namespace n ON n.oid = v.relnamespace

-- These views, each before those that it is made of, with the statements that
-- drop it and create it again.
-- name: views
-- with: vw, view_statement
WITH kind AS (SELECT *, CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'MATERIALIZED VIEW' END AS kind
  FROM vw)
SELECT format('%s %s', lower(kind), name),
  format('it must be dropped, as number %s of %s', row_number() OVER (ORDER BY depth DESC, name),
    count(*) OVER ()),
  format(E'DROP %s %s;\n-- convert, and create the views in reverse order:\n%s', kind, name,
    (SELECT string_agg(command || ';', E'\n' ORDER BY stage, n) FROM (
       SELECT stage, n, command FROM view_statement s WHERE s.oid = kind.oid
       UNION ALL
       SELECT 1, 0, format('ALTER %s %s OWNER TO %s', kind, name, relowner::regrole)) s))
 FROM kind ORDER BY depth DESC, name

-- Keys that are not converted yet, with their defaults.
-- name: unconverted_keys
-- with: target
SELECT t.column_name,
  format('it has %s', CASE WHEN a.attidentity <> '' THEN 'an identity'
    ELSE coalesce(format('the default %s', pg_get_expr(f.adbin, f.adrelid)), 'no default') END)
FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)
  LEFT JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (t.relid, t.attnum)
WHERE t.is_root AND t.gets_ids
ORDER BY t.column_name COLLATE "C"
