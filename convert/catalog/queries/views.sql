-- What a view is called in a statement.
-- snippet: kind
CASE vw.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END

-- snippet: trigger_state(state)
CASE {state} WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS' WHEN 'R' THEN 'ENABLE REPLICA'
  ELSE 'ENABLE' END

-- These use the CTE vw, which has the rows of pg_class, the qualified name,
-- and depth, which increases from a view to those that are made of it.  A command is NULL if it has
-- nothing to set.
--
-- Default privileges, which are those of whoever creates it, may give a new view
-- other rights than this one has, so they are revoked first.  The owner has them
-- from the beginning.
--
-- A materialized view is created without data, and refreshed when it has its
-- owner: what it is made of may call functions, which run with the rights of who
-- creates it, or else of its owner.
-- cte: by_default(oid, grantee)
SELECT DISTINCT vw.oid, e.grantee
FROM vw JOIN pg_default_acl a ON a.defaclobjtype = 'r'
  AND a.defaclnamespace IN (0, vw.relnamespace),
  aclexplode(a.defaclacl) e

-- cte: view_statement(stage, depth, oid, n, command) union
SELECT 0, depth, oid::bigint, 0::bigint, format(E'CREATE %s %s%s%s%s AS\n%s%s', {kind}, name,
  (SELECT format(' USING %I', m.amname) FROM pg_am m WHERE m.oid = vw.relam
    AND m.amname <> current_setting('default_table_access_method')),
  ' WITH (' || (SELECT string_agg(o, ', ') FROM (
    SELECT unnest(reloptions)
    UNION ALL
    SELECT 'toast.' || unnest(t.reloptions) FROM pg_class t WHERE t.oid = vw.reltoastrelid) r(o))
    || ')',
  (SELECT format(' TABLESPACE %I', s.spcname) FROM pg_tablespace s
    WHERE s.oid = vw.reltablespace),
  rtrim(pg_get_viewdef(oid), ';'), CASE relkind WHEN 'm' THEN E'\n  WITH NO DATA' END)
FROM vw
SELECT o.stage, depth, vw.oid, c.oid, o.command
FROM vw JOIN pg_index i ON i.indrelid = vw.oid JOIN pg_class c ON c.oid = i.indexrelid
  CROSS JOIN LATERAL (SELECT c.oid::regclass) n(index)
  CROSS JOIN LATERAL (
    SELECT 2, pg_get_indexdef(c.oid)
    UNION ALL SELECT 3, format('ALTER INDEX %s SET TABLESPACE %I', n.index, s.spcname)
      FROM pg_tablespace s WHERE s.oid = c.reltablespace
    UNION ALL SELECT 4, format('ALTER MATERIALIZED VIEW %s CLUSTER ON %I', name, c.relname)
      WHERE i.indisclustered
    UNION ALL SELECT 6, format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s', n.index,
        a.attnum, a.attstattarget)
      FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attstattarget >= 0) o(stage, command)
SELECT 6, depth, vw.oid, a.attnum,
  format('ALTER MATERIALIZED VIEW %s ALTER COLUMN %I SET ', name, a.attname) || o.option
FROM vw JOIN pg_attribute a ON a.attrelid = vw.oid AND a.attnum > 0
  JOIN pg_type y ON y.oid = a.atttypid
  CROSS JOIN LATERAL (VALUES
    ('STATISTICS ' || CASE WHEN a.attstattarget >= 0 THEN a.attstattarget END),
-- The server keeps the version of the attribute among its options.
    ('(' || (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o
      WHERE NOT starts_with(o, 'pg_attver=')) || ')'),
    ('STORAGE ' || CASE WHEN a.attstorage <> y.typstorage THEN CASE a.attstorage WHEN 'p'
      THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END),
    ('COMPRESSION ' || CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END)
    ) o(option)
WHERE relkind = 'm'
SELECT o.stage, depth, vw.oid, s.oid, o.command
FROM vw JOIN pg_statistic_ext s ON s.stxrelid = vw.oid
  JOIN pg_namespace n ON n.oid = s.stxnamespace
  CROSS JOIN LATERAL (VALUES (7, pg_get_statisticsobjdef(s.oid)),
    (8, format('ALTER STATISTICS %I.%I OWNER TO %s', n.nspname, s.stxname, s.stxowner::regrole)),
    (9, CASE WHEN s.stxstattarget >= 0 THEN {set_statistics(n.nspname, s.stxname,
      s.stxstattarget)} END)) o(stage, command)
SELECT 10, depth, vw.oid, 0, format('REVOKE ALL ON TABLE %s FROM %s', name, {grantee})
FROM vw JOIN (SELECT oid, grantee FROM by_default
              UNION SELECT oid, relowner FROM vw WHERE relacl IS NOT NULL) e ON e.oid = vw.oid
SELECT 11, depth, vw.oid, min(ordinality), format('GRANT %s ON TABLE %s TO %s%s',
  string_agg(e.privilege_type, ', ' ORDER BY ordinality), name, {grantee}, {grant_option})
FROM vw, aclexplode(coalesce(relacl, acldefault('r', relowner))) WITH ORDINALITY e
WHERE relacl IS NOT NULL OR vw.oid IN (SELECT oid FROM by_default)
GROUP BY depth, vw.oid, name, e.grantee, e.is_grantable
SELECT 12, depth, vw.oid, a.attnum * 1000 + ordinality, {grant_column(a.attname, name)}
FROM vw JOIN pg_attribute a ON a.attrelid = vw.oid, aclexplode(a.attacl) WITH ORDINALITY e
SELECT 13, depth, vw.oid, f.adnum, format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s', name,
  a.attname, pg_get_expr(f.adbin, f.adrelid))
FROM vw JOIN pg_attrdef f ON f.adrelid = vw.oid
  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (f.adrelid, f.adnum)
SELECT 16, depth, vw.oid, g.oid, pg_get_triggerdef(g.oid)
FROM vw JOIN pg_trigger g ON g.tgrelid = vw.oid AND NOT g.tgisinternal
SELECT 18, depth, oid, 0, format('REFRESH MATERIALIZED VIEW %s', name)
FROM vw WHERE relkind = 'm' AND relispopulated

-- Policies and triggers, from the CTEs pol and trg, in which depth increases to partitions.
-- cte: attached_statement(stage, depth, oid, command) union
SELECT o.stage, 0, p.oid, o.command
FROM pol JOIN pg_policy p USING (oid)
  CROSS JOIN LATERAL (SELECT format('POLICY %I ON %s', p.polname, p.polrelid::regclass)) t(name)
  CROSS JOIN LATERAL (VALUES (-2, 'DROP ' || t.name),
    (1, format('CREATE %s AS %s FOR %s TO %s%s%s', t.name,
      CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
      CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
        WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
      (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE r::regrole::text END, ', ')
        FROM unnest(p.polroles) r),
      ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
      ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')'))) o(stage, command)
SELECT o.stage, trg.depth, g.oid, o.command
FROM trg JOIN pg_trigger g USING (oid) LEFT JOIN pg_trigger p ON p.oid = g.tgparentid
  CROSS JOIN LATERAL (VALUES (-1, CASE g.tgparentid WHEN 0
      THEN format('DROP TRIGGER %I ON %s', g.tgname, g.tgrelid::regclass) END),
    (3, CASE g.tgparentid WHEN 0 THEN pg_get_triggerdef(g.oid) END),
    (4, CASE WHEN g.tgenabled <> coalesce(p.tgenabled, 'O') THEN format('ALTER TABLE %s %s '
      'TRIGGER %I', g.tgrelid::regclass, {trigger_state(g.tgenabled)}, g.tgname) END))
    o(stage, command)

-- The comments of objects, for when these have been created again.
-- snippet: comments(objects)
SELECT o.*, format('COMMENT ON %s %s IS %L',
  upper(regexp_replace(i.type, '^(table|.*view) (?=c)| object$', '')), i.identity, d.description)
FROM {objects} o(classid, objid)
  JOIN pg_description d ON (d.classoid, d.objoid) = (o.classid, o.objid)
  CROSS JOIN LATERAL pg_identify_object(d.classoid, d.objoid, d.objsubid) i

-- cte: gone_comment(classid, objid, relid, command)
{comments(gone)}
