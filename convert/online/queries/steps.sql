-- The steps: kind, phase, done, table, another table to lock, object, name of the new object,
-- tablespace, statement.
-- cte: step union
SELECT 'prepare', 'prepare', NOT EXISTS (SELECT FROM tab m JOIN col USING (relid)
                        WHERE m.root = tab.relid
                          AND NOT (m.prepared AND col.newnum IS NOT NULL)),
  tab.relid, 0, 0, NULL::name, NULL::name,
  format(E'ALTER TABLE %1$s %2$s, ADD CONSTRAINT snowflake_new_check CHECK (%3$s) NOT VALID;\n'
    'CREATE TRIGGER "~snowflake_new" BEFORE INSERT OR UPDATE ON %1$s'
    ' FOR EACH ROW EXECUTE FUNCTION %4$s(%5$s);\n'
    'ALTER TABLE %1$s ENABLE ALWAYS TRIGGER "~snowflake_new"%6$s%7$s', tab.name,
    string_agg(format('ADD COLUMN %I bigint', newname), ', ' ORDER BY attnum),
    string_agg(format(CASE WHEN attnotnull THEN '%I IS NOT NULL AND %1$I = %I'
                      ELSE '%I IS NOT DISTINCT FROM %I' END, newname, attname), ' AND '
                        ORDER BY attnum),
    (SELECT name FROM copier),
    string_agg(format('%L, %L', attname, newname), ', ' ORDER BY attnum),
-- partitions whose column is NOT NULL although that of the parent is not
    (SELECT string_agg(format(E';\nALTER TABLE %s ADD CONSTRAINT snowflake_new_null_check '
      'CHECK (%s) NOT VALID', name, condition), '' ORDER BY depth, relid)
    FROM (SELECT m.relid, m.name, m.depth, string_agg(format('%I IS NOT NULL', c.newname),
      ' AND ' ORDER BY c.attnum)
          FROM tab m JOIN col c USING (relid)
            JOIN col p ON (p.relid, p.attname) = (m.parent, c.attname)
          WHERE m.root = tab.relid AND c.attnotnull AND NOT p.attnotnull
          GROUP BY m.relid, m.name, m.depth) n(relid, name, depth, condition)),
    (SELECT string_agg(E';\n' || {grant_column(c.newname, m.name)}, ''
                      ORDER BY m.depth, m.relid, c.attnum, ordinality)
    FROM tab m JOIN col c USING (relid), aclexplode(c.attacl) WITH ORDINALITY e
    WHERE m.root = tab.relid)), 0, tab.name
FROM tab JOIN col ON col.relid = tab.relid WHERE tab.relid = tab.root
  GROUP BY tab.relid, tab.name
SELECT 'backfill', 'backfill', copied, tab.relid, 0, 0, NULL, NULL,
  format(E'UPDATE ONLY %s SET %s WHERE %s;\nALTER TABLE %1$s %4$s', tab.name,
    string_agg(format('%I = %I', newname, attname), ', ' ORDER BY attnum),
    string_agg(format('%I IS DISTINCT FROM %I', newname, attname), ' OR ' ORDER BY attnum),
      validate), 0, tab.name
FROM tab JOIN col ON col.relid = tab.relid WHERE relkind <> 'p' GROUP BY tab.relid, tab.name,
  copied, validate
-- which reads no rows again
SELECT 'validate', 'backfill', copied, relid, 0, 0, NULL, NULL,
  format('ALTER TABLE %s %s', name, validate), 1, name
FROM tab WHERE relkind = 'p'
  AND (relid = root OR strpos(validate, 'snowflake_new_null_check') > 0)
AND tab.converted
SELECT 'index', 'indexes', coalesce(newvalid, false), indrelid, 0, indexrelid, newname, spcname,
  CASE WHEN NOT newvalid THEN format('DROP INDEX CONCURRENTLY %I.%I', nspname, newname) END,
  CASE WHEN indisunique THEN 4 ELSE 0 END, relname
FROM idx WHERE relkind = 'i'
SELECT 'check', 'indexes', newoid IS NOT NULL, conrelid, 0, oid, newname, NULL, NULL, 1, conname
FROM chk WHERE coninhcount = 0
-- What is NOT VALID stays so.
SELECT 'validate', 'indexes', coalesce(newvalid, false), conrelid, 0, oid, newname, NULL,
  format('ALTER TABLE %s VALIDATE CONSTRAINT %I', tab.name, newname), 2, conname
FROM chk JOIN tab ON tab.relid = chk.conrelid WHERE convalidated
  AND (coninhcount = 0 OR relkind <> 'p')
SELECT 'statistics', 'indexes', newoid IS NOT NULL, stxrelid, 0, oid, newname, NULL, NULL, 3,
  stxname
FROM stat
-- Of a partitioned table, only ANALYZE by hand has had statistics.
SELECT 'analyze', 'indexes', reltuples = 0 OR NOT EXISTS (
    SELECT FROM col LEFT JOIN pg_stats o ON (o.schemaname, o.tablename, o.attname)
      = (tab.nspname, tab.relname, col.attname)
      LEFT JOIN pg_stats n ON (n.schemaname, n.tablename, n.attname) = (tab.nspname,
        tab.relname, col.newname)
    WHERE col.relid = tab.relid AND (relkind <> 'p' OR o.null_frac IS NOT NULL)
    AND (n.null_frac IS NULL OR abs(n.null_frac - o.null_frac) > 0.01))
  AND NOT EXISTS (SELECT FROM idx WHERE idx.indrelid = tab.relid AND idx.indexprs IS NOT NULL
    AND EXISTS (SELECT FROM pg_stats s
    WHERE (s.schemaname, s.tablename) = (idx.nspname, idx.relname))
    AND NOT EXISTS (SELECT FROM pg_stats s
    WHERE (s.schemaname, s.tablename) = (idx.nspname, idx.newname))),
  relid, 0, 0, NULL, NULL, format('ANALYZE %s', name), 5, name
FROM tab WHERE tab.converted
SELECT 'foreign key', 'foreign keys', newoid IS NOT NULL, conrelid, confrelid, oid, newname, NULL,
  format('ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %s (%s)%s%s%s%s%s',
    tab.name, newname, c.referencing,
    (SELECT {qualified(r)} FROM pg_class r WHERE r.oid = confrelid), c.referenced,
    CASE confmatchtype WHEN 'f' THEN ' MATCH FULL' END,
    (SELECT string_agg(format(' ON %s %s%s', event, action, ' (' || columns || ')'), ''
      ORDER BY event)
    FROM (VALUES ('UPDATE', confupdtype, NULL), ('DELETE', confdeltype, c.emptied))
        e(event, type, columns)
      JOIN (VALUES ('r', 'RESTRICT'), ('c', 'CASCADE'), ('n', 'SET NULL')) a(type, action)
        ON a.type = e.type::text),
    CASE WHEN condeferrable THEN ' DEFERRABLE' END,
-- SET CONSTRAINTS of the application has the name of the old one only.
    CASE WHEN condeferrable THEN ' INITIALLY DEFERRED' END,
-- That of a partitioned table takes over those of the partitions, without looking at rows.
    CASE WHEN fkey.relkind <> 'p' OR NOT convalidated THEN ' NOT VALID' END),
  CASE WHEN fkey.relkind = 'p' THEN 2 ELSE 0 END, acts
FROM fkey JOIN tab ON tab.relid = fkey.conrelid
-- its columns, those that it references, and those that it sets to NULL
  CROSS JOIN LATERAL (
    SELECT string_agg(k.name, ', ' ORDER BY k.i) FILTER (WHERE k.n = 1),
      string_agg(k.name, ', ' ORDER BY k.i) FILTER (WHERE k.n = 2),
      string_agg(k.name, ', ' ORDER BY k.i) FILTER (WHERE k.n = 3)
    FROM (SELECT k.n, u.i, quote_ident(coalesce(col.newname, a.attname)) AS name
          FROM (VALUES (1, conrelid, conkey), (2, confrelid, confkey),
              (3, conrelid, confdelsetcols)) k(n, relid, attnums)
            CROSS JOIN LATERAL unnest(k.attnums) WITH ORDINALITY u(attnum, i)
            JOIN pg_attribute a ON (a.attrelid, a.attnum) = (k.relid, u.attnum)
            LEFT JOIN col ON (col.relid, col.attnum) = (k.relid, u.attnum)) k)
    c(referencing, referenced, emptied)
WHERE NOT internal AND NOT late AND (conparentid = 0 OR fkey.relkind <> 'p')
SELECT 'validate', 'foreign keys', coalesce(newvalid, false), conrelid, 0, oid, newname, NULL,
  format('ALTER TABLE %s VALIDATE CONSTRAINT %I', tab.name, newname), 1, acts
FROM fkey JOIN tab ON tab.relid = fkey.conrelid
WHERE convalidated AND NOT internal AND NOT late AND fkey.relkind <> 'p'
-- before the next swap
SELECT 'validate', 'swap', convalidated, relid, 0, oid, conname, NULL,
  format('ALTER TABLE %s VALIDATE CONSTRAINT %I', tab.name, conname), -2, conname
FROM unvalidated JOIN tab USING (relid)
SELECT DISTINCT 'check', 'swap', false, relid, 0, 0::oid, NULL::name, NULL::name,
  format('DROP TRIGGER "~snowflake_validate" ON %s', tab.name), -1, tab.name
FROM unvalidated JOIN tab USING (relid)
SELECT 'swap', 'swap', false, tab.relid, 0, 0, NULL, NULL, NULL, max(swap.level), tab.name
FROM swap JOIN tab ON tab.relid = swap.relid
WHERE swap.relid IN (SELECT team FROM team JOIN top ON top.root = team.relid
  WHERE top.relid IN (SELECT relid FROM col UNION SELECT conrelid FROM fkey))
GROUP BY tab.relid, tab.name

-- Foreign keys are created in the order in which they act, and indexes in that of the old ones,
-- because a foreign key depends on the first one that is possible.
-- name: steps
SELECT kind, phase, done::int, relid, other, object, newname, spcname, statement,
  (SELECT name FROM tab WHERE tab.relid = s.relid)
FROM step s(kind, phase, done, relid, other, object, newname, spcname, statement, rank, name)
  JOIN (VALUES ('prepare', 1), ('backfill', 2), ('indexes', 3), ('foreign keys', 4), ('swap', 5))
    p(phase, number) USING (phase)
  LEFT JOIN top USING (relid)
ORDER BY p.number, CASE phase WHEN 'indexes' THEN rank / 4 WHEN 'foreign keys' THEN 0
  ELSE rank END,
  CASE WHEN phase <> 'foreign keys' THEN root END,
  CASE phase WHEN 'foreign keys' THEN name COLLATE "C" END, rank, depth DESC, relid,
  CASE kind WHEN 'index' THEN object END, name COLLATE "C", kind

-- Is there an object, $object, yet?
-- name: is_there
SELECT FROM pair WHERE oid = $object

-- cte: copy
SELECT tab.*, format('%I.snowflake_new_definitions', nspname) AS copy
FROM tab

-- cte: pair(oid, newoid)
SELECT indexrelid, newoid FROM idx UNION ALL SELECT oid, newoid FROM chk
UNION ALL SELECT oid, newoid FROM stat

-- Statements that create an object, $object, on an empty copy of its table, the
-- only one in target, and then rename its columns.
--
-- If there is a new one, their definitions are compared.  The server has read
-- that of the new one once more, and might write it in other words since then,
-- so this is repeated here.
-- cte: copy_statement(step, number, command) union
SELECT 1, 0, format('CREATE TABLE %s (LIKE %s)', copy, name) FROM copy
SELECT 2, col.attnum, format('ALTER TABLE %s DROP COLUMN %I', copy, newname)
FROM copy JOIN col USING (relid) WHERE newnum IS NOT NULL
SELECT 3, 0, format('CREATE %sINDEX snowflake_new_definitions_object ON %s ', p.u, copy)
  || substr(pg_get_indexdef(idx.indexrelid), length(p.p) + 1)
FROM copy JOIN idx ON idx.indrelid = copy.relid AND idx.indexrelid = $object
  CROSS JOIN LATERAL (SELECT u, format('CREATE %sINDEX %I ON %s ', u, idx.relname, copy.name)
                      FROM (SELECT CASE WHEN idx.indisunique THEN 'UNIQUE ' END) u(u)) p(u, p)
WHERE starts_with(pg_get_indexdef(idx.indexrelid), p.p)
SELECT 3, 0, format('ALTER TABLE %s ADD CONSTRAINT snowflake_new_definitions_object %s%s', copy,
  pg_get_constraintdef(chk.oid), CASE WHEN chk.convalidated THEN ' NOT VALID' END)
FROM copy JOIN chk ON chk.conrelid = copy.relid AND chk.oid = $object
SELECT 3, 0, format('CREATE STATISTICS %I.snowflake_new_definitions_object%s FROM %s',
  copy.nspname, substr(left(d.d, -length(d.s)), length(d.p) + 1), copy)
FROM copy JOIN stat ON stat.stxrelid = copy.relid AND stat.oid = $object
  CROSS JOIN LATERAL (SELECT pg_get_statisticsobjdef(stat.oid),
    format('CREATE STATISTICS %I.%I', stat.nspname, stat.stxname),
      format(' FROM %s', copy.name)) d(d, p, s)
WHERE starts_with(d.d, d.p) AND right(d.d, length(d.s)) = d.s
SELECT 4, n, format('ALTER TABLE %s %s', copy,
  string_agg(format('ALTER COLUMN %I TYPE bigint', attname), ', ' ORDER BY col.attnum))
FROM copy JOIN col USING (relid), generate_series(1, 1 + (SELECT count(newoid) FROM pair
WHERE oid = $object)) n
GROUP BY copy, n
SELECT 5, col.attnum, format('ALTER TABLE %s RENAME COLUMN %I TO %I', copy, attname, newname)
FROM copy JOIN col USING (relid)

-- name: copy_statements
SELECT command FROM copy_statement ORDER BY step, number

-- A definition without the words before it, which name the object.
-- snippet: after(prefix, definition)
CASE WHEN starts_with({definition}, {prefix}) THEN substr({definition}, length({prefix}) + 1) END

-- snippet: statistics_columns(object)
(SELECT array_agg(a.attname ORDER BY a.attname) FROM pg_attribute a
  WHERE a.attrelid = {object}.stxrelid AND a.attnum = ANY ({object}.stxkeys::int2[]))

-- The definition of the object on the copy, as a statement for the table, and
-- whether the new object has another one.
-- name: definition
SELECT format('CREATE %sINDEX CONCURRENTLY %I ON %s ', u.u, idx.newname, copy.name)
  || d.d AS statement,
  ({after(format('CREATE %sINDEX %I ON %s ', u.u, idx.newname, copy.name),
    pg_get_indexdef(idx.newoid))} IS DISTINCT FROM d.d)::int AS differs
FROM copy JOIN idx ON idx.indrelid = copy.relid AND idx.indexrelid = $object
  JOIN pg_index i ON i.indrelid = copy.copy::regclass
  CROSS JOIN LATERAL (SELECT CASE WHEN idx.indisunique THEN 'UNIQUE ' END) u(u)
  CROSS JOIN LATERAL (SELECT
    {after(format('CREATE %sINDEX snowflake_new_definitions_object ON %s ', u.u, copy.copy),
  pg_get_indexdef(i.indexrelid))}) d(d)
WHERE d.d IS NOT NULL
UNION ALL
SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', copy.name, chk.newname, d.d),
-- The new one may have been validated.
  (regexp_replace(pg_get_constraintdef(chk.newoid), ' NOT VALID$',
    '') IS DISTINCT FROM regexp_replace(d.d, ' NOT VALID$', ''))::int
FROM copy JOIN chk ON chk.conrelid = copy.relid AND chk.oid = $object
  JOIN pg_constraint c ON c.conrelid = copy.copy::regclass AND c.contype = 'c'
  CROSS JOIN LATERAL (SELECT pg_get_constraintdef(c.oid)) d(d)
UNION ALL
SELECT format('CREATE STATISTICS %I.%I%s FROM %s', stat.nspname, stat.newname, d.d, copy.name),
-- A definition has the columns in their order in the table.
  (NOT EXISTS (SELECT FROM pg_statistic_ext f WHERE f.oid = stat.newoid
    AND (f.stxkind, {statistics_columns(f)}, pg_get_statisticsobjdef_expressions(f.oid))
      IS NOT DISTINCT FROM (s.stxkind, {statistics_columns(s)},
        pg_get_statisticsobjdef_expressions(s.oid))))::int
FROM copy JOIN stat ON stat.stxrelid = copy.relid AND stat.oid = $object
  JOIN pg_statistic_ext s ON s.stxrelid = copy.copy::regclass
  CROSS JOIN LATERAL (SELECT pg_get_statisticsobjdef(s.oid), format(' FROM %s', copy.copy)) x(d,
    s)
  CROSS JOIN LATERAL (SELECT left(
    {after(format('CREATE STATISTICS %I.snowflake_new_definitions_object', copy.nspname), x.d)},
  -length(x.s))) d(d)
WHERE d.d IS NOT NULL AND right(x.d, length(x.s)) = x.s

-- What takes everything back: first the tables to lock, with NULL for a
-- statement, then the statements.
-- name: undo
-- Tables with the trigger: those that are converted, and those that were, until their foreign key
-- or its column was dropped.
WITH mine(relid) AS (
  SELECT relid FROM tab
  UNION
  SELECT c.conrelid FROM mine JOIN pg_constraint c ON c.confrelid = mine.relid
  WHERE c.contype = 'f' AND c.conparentid = 0 AND {is_new(c.conname)}
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = mine.relid
    AND a.attnum = ANY (c.confkey) AND {is_new(a.attname)})),
own AS (
  SELECT relid, {qualified(r)} AS name, g.tgargs, g.tgparentid
  FROM mine JOIN pg_trigger g ON g.tgrelid = relid
    AND g.tgname = '~snowflake_new' AND g.tgfoid = {copier}
    JOIN pg_class r ON r.oid = relid),
-- As the trigger has them: the old column may have another name now. Whoever has the TRIGGER
-- privilege could have created one with other names.
own_column AS (
  SELECT own.relid, n.attnum, n.attname
  FROM own CROSS JOIN LATERAL {arguments(own.tgargs)} WITH ORDINALITY arg(name, number)
    JOIN pg_attribute n ON n.attrelid = own.relid AND NOT n.attisdropped
      AND {is_argument(n.attname)}
  WHERE arg.number % 2 = 0 AND {is_new(n.attname)} AND n.atttypid = 'int8'::regtype),
made AS (
  SELECT c.* FROM pg_constraint c
  WHERE c.conparentid = 0 AND (c.oid IN (SELECT newoid FROM fkey)
    OR c.contype = 'f' AND {is_new(c.conname)}
      AND EXISTS (SELECT FROM own_column n WHERE n.relid = c.conrelid
        AND n.attnum = ANY (c.conkey) OR n.relid = c.confrelid AND n.attnum = ANY (c.confkey))))
SELECT relid, command FROM (
  SELECT 0, relid, NULL FROM own
  UNION
  SELECT 0, unnest(ARRAY[conrelid, confrelid]), NULL FROM made
  UNION ALL
  SELECT 1, conrelid, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
    FROM made
  UNION ALL
  SELECT 2, stxrelid, format('DROP STATISTICS %I.%I', nspname, newname) FROM stat
    WHERE newoid IS NOT NULL
  UNION ALL
  SELECT 3, relid, format('DROP TRIGGER "~snowflake_new" ON %s', name) FROM own
    WHERE tgparentid = 0
  UNION ALL
  SELECT 4, own.relid, format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS snowflake_new_check%s',
    own.name, string_agg(', DROP COLUMN ' || quote_ident(n.attname), '' ORDER BY n.attnum))
  FROM own LEFT JOIN own_column n USING (relid) WHERE tgparentid = 0
  GROUP BY own.relid, own.name
) s(step, relid, command) ORDER BY step, relid, command COLLATE "C"

-- What is not as it was when the new object was created, beside definitions, which
-- snowflake_online_find_changed_objects() compares.
-- name: changed_objects
SELECT indrelid AS relid, {describe_oid(pg_class, indexrelid)} AS what
FROM idx JOIN pg_class o ON o.oid = indexrelid JOIN pg_class n ON n.oid = newoid
WHERE o.reltablespace <> n.reltablespace
UNION ALL
SELECT conrelid, {describe_oid(pg_constraint, fkey.oid)}
FROM fkey JOIN pg_constraint f USING (conrelid)
WHERE f.oid = newoid AND NOT internal
AND ((fkey.confrelid, fkey.confupdtype, fkey.confdeltype, fkey.confmatchtype, fkey.condeferrable)
  IS DISTINCT FROM (f.confrelid, f.confupdtype, f.confdeltype, f.confmatchtype, f.condeferrable)
  OR {other_columns(conrelid, fkey.conkey, f.conkey)}
  OR {other_columns(f.confrelid, fkey.confkey, f.confkey)}
  OR {other_columns(conrelid, fkey.confdelsetcols, f.confdelsetcols)})

-- A table that still has the trigger that copies is not swapped, but another column of it may
-- have been.  A foreign key without a pair, but with a new column, was swapped.
-- name: swapped_columns
SELECT FROM swapped WHERE relid NOT IN (SELECT relid FROM tab WHERE prepared)
UNION ALL
SELECT FROM pg_constraint c JOIN col ON col.relid = c.confrelid AND col.newnum = ANY (c.confkey)
WHERE c.contype = 'f' AND NOT {is_new(c.conname)}

-- Those of tables, in any order that is the same.
-- texts: tables
-- name: definitions
SELECT coalesce(string_agg(concat_ws(' ', oid, definition), E'\n'
  ORDER BY oid, definition COLLATE "C"), '')
FROM (
  SELECT indexrelid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = ANY ($tables::oid[])
  UNION ALL
  SELECT oid, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = ANY ($tables::oid[])
  UNION ALL
  SELECT oid, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
  WHERE stxrelid = ANY ($tables::oid[])) d(oid, definition)
