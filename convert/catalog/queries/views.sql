-- What a view is called in a statement.
-- snippet: kind
CASE vw.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END

-- snippet: trigger_state(state)
CASE {state} WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS' WHEN 'R' THEN 'ENABLE REPLICA'
  ELSE 'ENABLE' END

-- These use the CTE vw, which has the rows of pg_class, the qualified name,
-- and depth, which increases from a view to those that are made of it.
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

-- cte: view_index
SELECT i.*, vw.oid AS view, vw.name AS view_name, format('%I.%I', n.nspname, c.relname) AS name,
  c.relname, c.reltablespace
FROM vw JOIN pg_index i ON i.indrelid = vw.oid JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace

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
SELECT 2, depth, view, indexrelid, pg_get_indexdef(indexrelid) FROM view_index
  JOIN vw ON vw.oid = view
SELECT 3, depth, view, indexrelid, format('ALTER INDEX %s SET TABLESPACE %I', i.name, s.spcname)
FROM view_index i JOIN vw ON vw.oid = view JOIN pg_tablespace s ON s.oid = i.reltablespace
SELECT 4, depth, view, indexrelid, format('ALTER MATERIALIZED VIEW %s CLUSTER ON %I', view_name,
  i.relname)
FROM view_index i JOIN vw ON vw.oid = view WHERE indisclustered
SELECT 5, depth, view, indexrelid, {comment_on('INDEX ' || i.name, indexrelid, pg_class)}
FROM view_index i JOIN vw ON vw.oid = view WHERE {has_comment(indexrelid, pg_class)}
SELECT 6, depth, vw.oid, a.attnum,
  format('ALTER MATERIALIZED VIEW %s ALTER COLUMN %I SET STATISTICS %s', name,
  a.attname, a.attstattarget)
FROM vw JOIN pg_attribute a ON a.attrelid = vw.oid AND a.attnum > 0 WHERE relkind = 'm'
  AND a.attstattarget >= 0
SELECT 6, depth, vw.oid, a.attnum,
  format('ALTER MATERIALIZED VIEW %s ALTER COLUMN %I SET %s', name, a.attname, o.option)
FROM vw JOIN pg_attribute a ON a.attrelid = vw.oid AND a.attnum > 0
  JOIN pg_type y ON y.oid = a.atttypid
  CROSS JOIN LATERAL (VALUES
-- The server keeps the version of the attribute among its options.
    ('(' || (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o
      WHERE NOT starts_with(o, 'pg_attver=')) || ')'),
    ('STORAGE ' || CASE WHEN a.attstorage <> y.typstorage THEN CASE a.attstorage WHEN 'p'
      THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END),
    ('COMPRESSION ' || CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END)
    ) o(option)
WHERE relkind = 'm' AND o.option IS NOT NULL
SELECT 6, depth, view, indexrelid, format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s',
  i.name, a.attnum, a.attstattarget)
FROM view_index i JOIN vw ON vw.oid = view
  JOIN pg_attribute a ON a.attrelid = indexrelid AND a.attstattarget >= 0
SELECT 7, depth, vw.oid, s.oid, pg_get_statisticsobjdef(s.oid)
FROM vw JOIN pg_statistic_ext s ON s.stxrelid = vw.oid
SELECT 8, depth, vw.oid, s.oid, format('ALTER STATISTICS %s.%I OWNER TO %s',
  s.stxnamespace::regnamespace, s.stxname,
  s.stxowner::regrole)
FROM vw JOIN pg_statistic_ext s ON s.stxrelid = vw.oid
SELECT 9, depth, vw.oid, s.oid,
  {comment_on(format('STATISTICS %s.%I', s.stxnamespace::regnamespace, s.stxname), s.oid,
    pg_statistic_ext)}
FROM vw JOIN pg_statistic_ext s ON s.stxrelid = vw.oid
WHERE {has_comment(s.oid, pg_statistic_ext)}
SELECT 9, depth, vw.oid, s.oid, {set_statistics(s.stxnamespace::regnamespace, s.stxname,
  s.stxstattarget)}
FROM vw JOIN pg_statistic_ext s ON s.stxrelid = vw.oid AND s.stxstattarget >= 0
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
  a.attname,
  pg_get_expr(f.adbin, f.adrelid))
FROM vw JOIN pg_attrdef f ON f.adrelid = vw.oid
  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (f.adrelid, f.adnum)
SELECT 14, depth, oid, 0, {comment_on(format('%s %s', {kind}, name), oid, pg_class)}
FROM vw WHERE {has_comment(oid, pg_class)}
SELECT 14, depth, vw.oid, w.oid, {comment_on(format('RULE %I ON %s', w.rulename, name), w.oid,
  pg_rewrite)}
FROM vw JOIN pg_rewrite w ON w.ev_class = vw.oid AND w.rulename = '_RETURN'
WHERE {has_comment(w.oid, pg_rewrite)}
SELECT 15, depth, vw.oid, a.attnum, format('COMMENT ON COLUMN %s.%I IS %L', name, a.attname,
  col_description(vw.oid, a.attnum))
FROM vw JOIN pg_attribute a ON a.attrelid = vw.oid
WHERE col_description(vw.oid, a.attnum) IS NOT NULL
SELECT 16, depth, vw.oid, g.oid, pg_get_triggerdef(g.oid)
FROM vw JOIN pg_trigger g ON g.tgrelid = vw.oid AND NOT g.tgisinternal
SELECT 17, depth, vw.oid, g.oid,
  {comment_on(format('TRIGGER %I ON %s', g.tgname, name), g.oid, pg_trigger)}
FROM vw JOIN pg_trigger g ON g.tgrelid = vw.oid AND NOT g.tgisinternal
WHERE {has_comment(g.oid, pg_trigger)}
SELECT 18, depth, oid, 0, format('REFRESH MATERIALIZED VIEW %s', name)
FROM vw WHERE relkind = 'm' AND relispopulated

-- Rules other than those of views' queries, from the CTE rul.
-- cte: rule_statement(stage, oid, relid, command) union
SELECT 1, w.oid, w.ev_class, rtrim(pg_get_ruledef(w.oid), ';')
FROM rul JOIN pg_rewrite w USING (oid)
SELECT 2, w.oid, w.ev_class, format('ALTER TABLE %s %s RULE %I', w.ev_class::regclass,
  {trigger_state(w.ev_enabled)}, w.rulename)
FROM rul JOIN pg_rewrite w USING (oid) WHERE w.ev_enabled <> 'O'
SELECT 3, w.oid, w.ev_class, {comment_on(format('RULE %I ON %s', w.rulename,
  w.ev_class::regclass), w.oid, pg_rewrite)}
FROM rul JOIN pg_rewrite w USING (oid) WHERE {has_comment(w.oid, pg_rewrite)}

-- Policies and triggers, from the CTEs pol and trg, in which depth increases to partitions.
-- cte: attached_statement(stage, depth, oid, command) union
SELECT -2, 0, p.oid, format('DROP POLICY %I ON %s', p.polname, p.polrelid::regclass)
FROM pol JOIN pg_policy p USING (oid)
SELECT -1, 0, g.oid, format('DROP TRIGGER %I ON %s', g.tgname, g.tgrelid::regclass)
FROM trg JOIN pg_trigger g USING (oid) WHERE g.tgparentid = 0
SELECT 1, 0, p.oid, format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s', p.polname,
  p.polrelid::regclass, CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
  CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
    WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
  (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE r::regrole::text END, ', ')
    FROM unnest(p.polroles) r),
  ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
  ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
FROM pol JOIN pg_policy p USING (oid)
SELECT 2, 0, p.oid, {comment_on(format('POLICY %I ON %s', p.polname, p.polrelid::regclass), p.oid,
  pg_policy)}
FROM pol JOIN pg_policy p USING (oid) WHERE {has_comment(p.oid, pg_policy)}
SELECT 3, 0, g.oid, pg_get_triggerdef(g.oid)
FROM trg JOIN pg_trigger g USING (oid) WHERE g.tgparentid = 0
SELECT 4, trg.depth, g.oid, format('ALTER TABLE %s %s TRIGGER %I', g.tgrelid::regclass,
  {trigger_state(g.tgenabled)}, g.tgname)
FROM trg JOIN pg_trigger g USING (oid) LEFT JOIN pg_trigger p ON p.oid = g.tgparentid
WHERE g.tgenabled <> coalesce(p.tgenabled, 'O')
SELECT 5, 0, g.oid, {comment_on(format('TRIGGER %I ON %s', g.tgname, g.tgrelid::regclass), g.oid,
  pg_trigger)}
FROM trg JOIN pg_trigger g USING (oid) WHERE {has_comment(g.oid, pg_trigger)}
-- a constraint trigger
SELECT 5, 1, g.oid, {comment_on(format('CONSTRAINT %I ON %s', g.tgname, g.tgrelid::regclass),
  g.tgconstraint, pg_constraint)}
FROM trg JOIN pg_trigger g USING (oid)
WHERE g.tgconstraint <> 0 AND {has_comment(g.tgconstraint, pg_constraint)}
