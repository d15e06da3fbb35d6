-- The tables of a conversion in use: CTEs for all queries about them.

-- Names of what a conversion creates, in SQL: those of a new column, index, constraint, or
-- statistics object are made of that of the old one.
-- snippet: new_name(name)
'snowflake_new_'
  || CASE WHEN octet_length({name}::text) <= 49 THEN {name}::text ELSE md5({name}::text) END

-- snippet: is_new(name)
starts_with({name}::text, 'snowflake_new_')

-- Is it the name of a CHECK constraint that says that the copies are complete?
-- snippet: is_copy_check(name)
{name} IN ('snowflake_new_check', 'snowflake_new_null_check')

-- The arguments of triggers, as arg; and is one of them a name?
-- snippet: arguments(tgargs)
string_to_table(encode({tgargs}, 'escape'), E'\\000')

-- snippet: is_argument(name)
encode(convert_to({name}::text, getdatabaseencoding()), 'escape') = arg.name

-- snippet: other_sessions
pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()

-- What a row of pg_stat_activity is called.
-- snippet: process(word)
format('{word} %s (%s, %s)', pid, coalesce(usename, backend_type),
  coalesce(nullif(application_name, ''), backend_type))

-- Who has a lock, l: a process, or a row p of pg_prepared_xacts?
-- snippet: lock_owner
CASE WHEN l.pid IS NULL THEN format('Prepared transaction %L of %s', p.gid, p.owner)
  ELSE {process(Process)} END

-- Does an object depend on an old column, one of those in a CTE?
-- snippet: depends(catalog, object, columns)
EXISTS (SELECT FROM pg_depend d JOIN {columns} o ON {on_column(d, o)}
        WHERE (d.classid, d.objid) = ('{catalog}'::regclass, {object}))

-- snippet: with_new_name(name)
CROSS JOIN LATERAL (SELECT ({new_name({name})})::name AS newname) x

-- Are the columns of an old object not those of the new one?
-- snippet: other_columns(relid, old, new)
EXISTS (SELECT FROM unnest({old}, {new}) k(o, n)
          LEFT JOIN col ON (col.relid, col.attnum) = ({relid}, k.o)
        WHERE coalesce(col.newnum, k.o) IS DISTINCT FROM k.n)

-- The columns that get a new one beside them; their tables, with
-- the root of a tree of partitions; and the foreign keys, indexes, CHECK
-- constraints and statistics objects with such a column, each with the new one,
-- if there is one yet; and new ones without an old one.
--
-- A table that is no partition is the root of its tree. What a partition has
-- from its parent is a row of these CTEs, too: an index with a parent, a
-- constraint with conparentid or coninhcount.
-- cte: col
SELECT t.relid, t.attnum, t.attname, x.newname, n.attnum AS newnum, a.attnotnull, a.attacl
FROM widened t JOIN {attribute(a, t)}
  {with_new_name(t.attname)}
  LEFT JOIN pg_attribute n ON n.attrelid = t.relid AND n.attname = x.newname
    AND NOT n.attisdropped

-- cte: up(relid, ancestor, depth)
SELECT DISTINCT relid, relid, 0 FROM target
UNION ALL
SELECT u.relid, i.inhparent, u.depth + 1
FROM up u JOIN pg_class c ON c.oid = u.ancestor AND c.relispartition
  JOIN pg_inherits i ON i.inhrelid = u.ancestor

-- cte: top(relid, root, depth)
SELECT DISTINCT ON (relid) relid, ancestor, depth FROM up ORDER BY relid, depth DESC

-- The functions of this extension that statements call.
-- cte: own_function(oid, name, proname)
SELECT p.oid, format('%I.%I', n.nspname, p.proname), p.proname
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  JOIN pg_language l ON l.oid = p.prolang
  JOIN pg_depend d ON {is_object(d, pg_proc, p.oid)} AND d.deptype = 'e'
  JOIN pg_extension e ON {on_object(d, pg_extension, e.oid)}
WHERE p.proname IN ('_snowflake_convert_copy', '_snowflake_convert_move_identity')
AND l.lanname = 'c' AND e.extname = 'snowflake_convert'

-- cte: copier(oid, name)
SELECT oid, name FROM own_function WHERE proname = '_snowflake_convert_copy'

-- snippet: copier
(SELECT oid FROM copier)

-- cte: tab
SELECT r.oid AS relid, format('%I.%I', n.nspname, r.relname) AS name, n.nspname, r.relname,
  r.relowner, r.reltuples, r.relkind, top.root, top.depth, parent.ancestor AS parent,
  g.oid IS NOT NULL AND g.tgfoid = {copier} AS prepared, g.tgenabled,
  r.oid IN (SELECT relid FROM col) AS converted, coalesce(k.valid, false) AS copied,
  coalesce(k.validate, 'VALIDATE CONSTRAINT snowflake_new_check') AS validate
FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
  JOIN top ON top.relid = r.oid
  LEFT JOIN up parent ON parent.relid = r.oid AND parent.depth = 1
  LEFT JOIN pg_trigger g ON g.tgrelid = r.oid AND g.tgname = '~snowflake_new'
  CROSS JOIN LATERAL (SELECT every(k.convalidated),
    string_agg(format('VALIDATE CONSTRAINT %I', k.conname), ', ' ORDER BY k.conname)
    FROM pg_constraint k WHERE k.conrelid = r.oid AND k.contype = 'c'
    AND {is_copy_check(k.conname)}) k(valid, validate)

-- cte: fkey_pair(oid, newoid, top, acts)
-- A new foreign key of a partition is named like the old one until it has a parent.
-- Foreign keys act in the order of the names of triggers, which contain OIDs as text.
  SELECT c.oid, f.oid, c.oid, (SELECT min(g.tgname::text COLLATE "C") FROM pg_trigger g
    WHERE g.tgconstraint = c.oid AND starts_with(g.tgname::text, 'RI_ConstraintTrigger_a_'))
  FROM pg_constraint c
  {with_new_name(c.conname)}
    LEFT JOIN pg_constraint f ON f.conrelid = c.conrelid AND f.conname = x.newname
      AND f.contype = 'f'
  WHERE c.contype = 'f' AND c.conparentid = 0
  AND EXISTS (SELECT FROM col WHERE col.relid = c.conrelid AND col.attnum = ANY (c.conkey)
              OR col.relid = c.confrelid AND col.attnum = ANY (c.confkey))
  UNION ALL
  SELECT c.oid, f.oid, p.top, p.acts
  FROM fkey_pair p JOIN pg_constraint c ON c.conparentid = p.oid AND c.contype = 'f'
    LEFT JOIN pg_constraint f ON f.conparentid = p.newoid AND f.contype = 'f'
      AND (f.conrelid, f.confrelid) = (c.conrelid, c.confrelid)

-- cte: fkey
  SELECT c.*, x.newname, f.oid AS newoid, f.conname AS newconname, f.convalidated AS newvalid,
    p.top, p.acts,
-- Rows for the partitions of a referenced table are not foreign keys by themselves.
    coalesce(u.conrelid = c.conrelid, false) AS internal, r.relkind,
-- A partitioned table has the key for a new one after its swap only.
    c.conparentid = 0 AND o.relkind = 'p'
      AND EXISTS (SELECT FROM col WHERE col.relid = c.confrelid
        AND col.attnum = ANY (c.confkey)) AS late
  FROM fkey_pair p JOIN pg_constraint c ON c.oid = p.oid JOIN pg_class r ON r.oid = c.conrelid
    JOIN pg_class o ON o.oid = c.confrelid
    LEFT JOIN pg_constraint u ON u.oid = c.conparentid
  {with_new_name(c.conname)}
    LEFT JOIN pg_constraint b ON b.conrelid = c.conrelid AND b.conname = x.newname
      AND b.contype = 'f'
    LEFT JOIN pg_constraint f ON f.oid = coalesce(p.newoid, b.oid)

-- cte: idx
  SELECT i.*, c.relname, c.relkind, c.reloptions, h.inhparent AS parent, n.nspname, s.spcname,
    k.oid AS con, k.contype, k.condeferrable, x.newname, f.indexrelid AS newoid, f.indisvalid
      AND f.indisready AS newvalid
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
    LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid
    LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid
      AND k.contype IN ('p', 'u', 'x')
  {with_new_name(c.relname)}
    LEFT JOIN (pg_class fc JOIN pg_index f ON f.indexrelid = fc.oid)
      ON fc.relname = x.newname AND fc.relnamespace = c.relnamespace AND f.indrelid = i.indrelid
  WHERE i.indrelid IN (SELECT relid FROM col)
-- what a failed or present CREATE INDEX CONCURRENTLY or REINDEX has created
  AND (i.indisvalid OR c.relkind <> 'i' OR k.oid IS NOT NULL)
  AND ({depends(pg_class, i.indexrelid, col)} OR {depends(pg_constraint, k.oid, col)})

-- cte: chk
  SELECT k.*, x.newname, f.oid AS newoid, f.convalidated AS newvalid
  FROM pg_constraint k
  {with_new_name(k.conname)}
    LEFT JOIN pg_constraint f ON f.conrelid = k.conrelid AND f.conname = x.newname
      AND f.contype = 'c'
  WHERE k.contype = 'c' AND NOT {is_copy_check(k.conname)}
  AND EXISTS (SELECT FROM col WHERE col.relid = k.conrelid AND col.attnum = ANY (k.conkey))

-- cte: stat
  SELECT s.*, n.nspname, x.newname, f.oid AS newoid
  FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace
  {with_new_name(s.stxname)}
    LEFT JOIN pg_statistic_ext f ON f.stxname = x.newname AND f.stxnamespace = s.stxnamespace
      AND f.stxrelid = s.stxrelid
  WHERE s.stxrelid IN (SELECT relid FROM col) AND {depends(pg_statistic_ext, s.oid, col)}

-- cte: single(relid, what)
-- New objects whose old one was dropped or renamed.
SELECT DISTINCT col.relid, {describe_object(d)}
FROM col JOIN pg_depend d
  ON (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, col.relid, col.newnum)
  LEFT JOIN pg_class c ON {is_object(d, pg_class, c.oid)}
  LEFT JOIN pg_constraint k ON {is_object(d, pg_constraint, k.oid)}
  LEFT JOIN pg_statistic_ext s ON {is_object(d, pg_statistic_ext, s.oid)}
WHERE starts_with(coalesce(c.relname, k.conname, s.stxname)::text, 'snowflake_new_')
-- what REINDEX CONCURRENTLY has created
AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = c.oid AND NOT i.indisvalid
  AND c.relname ~ '_cc(new|old)[0-9]*$')
AND ({is_copy_check(k.conname)}) IS NOT TRUE AND k.contype IS DISTINCT FROM 'n'
AND NOT EXISTS (SELECT FROM idx WHERE idx.newoid = c.oid)
AND NOT EXISTS (SELECT FROM fkey WHERE fkey.newoid = k.oid)
AND NOT EXISTS (SELECT FROM chk WHERE chk.newoid = k.oid)
AND NOT EXISTS (SELECT FROM stat WHERE stat.newoid = s.oid)

-- cte: edge(referencing, referenced, late)
-- The trees that are swapped together, because there is a foreign key between them that is
-- created in the swap; and the trees to swap, those that are referenced after the others.
SELECT DISTINCT a.root, coalesce(b.root, confrelid), late
FROM fkey JOIN top a ON a.relid = conrelid LEFT JOIN top b ON b.relid = confrelid

-- cte: mate(relid, other)
SELECT root, root FROM top
UNION
SELECT m.relid, CASE m.other WHEN e.referencing THEN e.referenced ELSE e.referencing END
FROM mate m JOIN edge e ON e.late AND m.other IN (e.referencing, e.referenced)

-- cte: team(relid, team)
SELECT relid,
  coalesce(min(other) FILTER (WHERE other IN (SELECT referenced FROM edge WHERE late)), relid)
FROM mate GROUP BY relid

-- cte: swap(relid, level)
SELECT team, 0 FROM team JOIN top ON top.root = team.relid
WHERE top.relid IN (SELECT relid FROM col UNION SELECT conrelid FROM fkey)
UNION
SELECT coalesce(o.team, e.referenced), s.level + 1
FROM swap s JOIN team t ON t.team = s.relid JOIN edge e ON e.referencing = t.relid
  LEFT JOIN team o ON o.relid = e.referenced
WHERE coalesce(o.team, e.referenced) <> s.relid AND s.level < 99

-- cte: swapping(relid)
SELECT coalesce(t.relid, s.relid) FROM swap s LEFT JOIN team t ON t.team = s.relid

-- cte: unvalidated(relid, oid, conname, convalidated)
-- Foreign keys that were created in a swap, and not validated yet.
SELECT k.conrelid, k.oid, k.conname, k.convalidated
FROM tab JOIN pg_trigger g ON g.tgrelid = tab.relid AND g.tgname = '~snowflake_validate'
    AND g.tgfoid = {copier}
  CROSS JOIN LATERAL {arguments(g.tgargs)} arg(name)
  JOIN pg_constraint k ON k.conrelid = tab.relid AND k.contype = 'f' AND {is_argument(k.conname)}

-- cte: swapped(relid, sessions)
SELECT g.tgrelid, split_part(encode(g.tgargs, 'escape'), E'\\000', 1)
FROM pg_trigger g
WHERE g.tgrelid = $tables[1] AND g.tgname = '~snowflake_swapped'
AND g.tgfoid = {copier}

-- The tables that are swapped with table $object, or all if that is 0.
-- cte: scope(relid)
SELECT top.relid FROM top JOIN team ON team.relid = top.root WHERE $object IN (0, team.team)

-- What depends on the columns of tables in scope.
-- cte: in_the_way(classid, objid)
SELECT DISTINCT d.classid, d.objid
FROM col JOIN scope USING (relid) JOIN pg_depend d ON {on_column(d, col)}
