-- The table; its old columns, with what they own; and publications with such a column.
-- cte: this
SELECT tab.* FROM tab JOIN scope USING (relid)

-- cte: mine
SELECT col.*, this.name, this.root, this.parent, this.depth, a.attstattarget, n.attacl AS newacl,
  col_description(col.relid, col.attnum) AS comment,
    pg_get_expr(f.adbin, f.adrelid) AS expression,
-- The server keeps the version of the attribute among its options.
  (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o
    WHERE NOT starts_with(o, 'pg_attver=')) AS options
FROM col JOIN this USING (relid)
  JOIN {attribute(a, col)}
  LEFT JOIN pg_attribute n ON (n.attrelid, n.attnum) = (col.relid, col.newnum)
  LEFT JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (col.relid, col.attnum)

-- cte: owned
SELECT d.deptype, mine.attname, mine.newname AS newcolumn, mine.name AS table, c.oid, c.relname,
  n.nspname
FROM mine JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    AND {on_column(d, mine)}
  JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
  JOIN pg_namespace n ON n.oid = c.relnamespace

-- cte: pub
SELECT p.*, b.pubname, this.name FROM pg_publication_rel p JOIN this ON this.relid = p.prrelid
  JOIN pg_publication b ON b.oid = p.prpubid
WHERE {depends(pg_publication_rel, p.oid, mine)}

-- cte: this_idx
SELECT idx.*, this.name, this.depth FROM idx JOIN this ON this.relid = idx.indrelid

-- cte: not_null
SELECT k.oid, k.conname, k.conrelid, k.coninhcount, mine.attnum, mine.newname AS newcolumn,
  mine.name, x.newname
FROM mine JOIN pg_constraint k ON k.contype = 'n' AND k.conrelid = mine.relid
  AND k.conkey = ARRAY[mine.attnum]
  CROSS JOIN LATERAL (SELECT ({new_name(k.conname)})::name AS newname) x

-- What gets the names of old objects, and so their comments.
-- cte: renamed(classid, objid, relid)
SELECT 'pg_class'::regclass, indexrelid, indrelid FROM idx
UNION ALL SELECT 'pg_constraint'::regclass, con, indrelid FROM idx
UNION ALL SELECT 'pg_constraint'::regclass, oid, conrelid FROM fkey
UNION ALL SELECT 'pg_constraint'::regclass, oid, conrelid FROM chk
UNION ALL SELECT 'pg_constraint'::regclass, oid, conrelid FROM not_null WHERE coninhcount = 0
UNION ALL SELECT 'pg_statistic_ext'::regclass, oid, stxrelid FROM stat

-- Whose rows PL/pgSQL functions use.
-- cte: row_table materialized
SELECT r.* FROM this JOIN pg_class r ON r.oid = this.relid

-- A view of another owner, which would become one of the owner of the table, is
-- an obstacle.  One that was created since then is not dropped here, so that
-- check_drop() of swap.c finds it.
-- cte: swap_statement(stage, a, b, c, command) union
SELECT 10, -depth, oid::bigint, 0, format('DROP VIEW %s', name)
FROM vw WHERE relowner IN (SELECT relowner FROM this)
SELECT CASE WHEN stage < 0 THEN 9 + stage ELSE 61 + stage END, depth, oid, 0, command
FROM attached_statement
SELECT 13, 0, oid, 0, format('ALTER PUBLICATION %I DROP TABLE %s', pubname, name) FROM pub
SELECT 14, 0, 0, 0, format('DROP TRIGGER "~snowflake_new" ON %s', name)
FROM this WHERE relid = root AND relid IN (SELECT relid FROM mine)
SELECT 15, 0, oid, 0, format('ALTER TABLE %s DROP CONSTRAINT %I', name, conname)
FROM fkey JOIN this ON this.relid = fkey.conrelid WHERE conparentid = 0
SELECT 16, 0, oid, 0, format('DROP STATISTICS %I.%I', stat.nspname, stxname)
FROM stat JOIN this ON this.relid = stat.stxrelid
SELECT 17, 0, con, 0, format('ALTER TABLE %s DROP CONSTRAINT %I', name, idx.relname)
FROM this_idx idx WHERE con IS NOT NULL AND idx.parent IS NULL
SELECT 17, 1 + depth, oid, 0, format('ALTER TABLE %s DROP CONSTRAINT %I', name, conname)
FROM chk JOIN this ON this.relid = chk.conrelid WHERE coninhcount = 0 OR conislocal
SELECT 18, 0, indexrelid, 0, format('DROP INDEX %I.%I', idx.nspname, idx.relname)
FROM this_idx idx WHERE con IS NULL AND idx.parent IS NULL
-- what the columns have
SELECT 20, attnum, depth, 0, format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', name, newname)
FROM mine WHERE attnotnull AND (relid, attnum) NOT IN (SELECT conrelid, attnum FROM not_null)
AND NOT EXISTS (SELECT FROM mine p WHERE p.relid = mine.parent AND p.attname = mine.attname
  AND p.attnotnull)
SELECT 20, attnum, 0, 0, format('ALTER TABLE %s ADD CONSTRAINT %I NOT NULL %I', name, newname,
  newcolumn)
FROM not_null WHERE coninhcount = 0
-- not earlier, because they prove that there are no nulls
SELECT 21, 0, depth, 0, format('ALTER TABLE %s DROP CONSTRAINT %I', name, conname)
FROM this JOIN pg_constraint k ON k.conrelid = this.relid AND k.contype = 'c'
  AND coninhcount = 0 AND {is_copy_check(k.conname)}
WHERE relid IN (SELECT relid FROM mine)
SELECT 21, 1, oid, 0, format('ALTER SEQUENCE %I.%I OWNED BY %s.%I', nspname, relname,
  owned.table, newcolumn)
FROM owned WHERE deptype = 'a'
SELECT 22, mine.depth, mine.attnum, 0, format('ALTER TABLE %s ALTER COLUMN %I %s', mine.name,
  mine.newname, coalesce('SET DEFAULT ' || mine.expression, 'DROP DEFAULT'))
FROM mine LEFT JOIN mine p ON (p.relid, p.attname) = (mine.parent, mine.attname)
WHERE mine.expression IS DISTINCT FROM p.expression
-- as by ALTER COLUMN ... TYPE
SELECT 23, 0, oid, n, CASE n
  WHEN 1 THEN format('ALTER SEQUENCE %I.%I AS bigint', nspname, relname)
  ELSE format('SELECT %s(%L::regclass, %L::name, %L::name)', (SELECT name FROM own_function
    WHERE proname = '_snowflake_convert_move_identity'), owned.table, attname, newcolumn) END
FROM owned, generate_series(1, 2) n WHERE deptype = 'i'
SELECT 25, attnum, 0, ordinality, format('REVOKE ALL (%I) ON TABLE %s FROM %s', newname, name,
  {grantee})
FROM mine, aclexplode(newacl) WITH ORDINALITY e WHERE newacl IS DISTINCT FROM attacl
SELECT 26, attnum, 0, ordinality, {grant_column(newname, name)}
FROM mine, aclexplode(attacl) WITH ORDINALITY e WHERE newacl IS DISTINCT FROM attacl
SELECT 27, attnum, 0, 0, format('ALTER TABLE ONLY %s ALTER COLUMN %I SET %s', name, newname, o)
FROM mine CROSS JOIN LATERAL (
  VALUES ('STATISTICS ' || nullif(attstattarget, -1)), ('(' || options || ')')) o(o)
WHERE o IS NOT NULL
SELECT 29, attnum, 0, 0, format('COMMENT ON COLUMN %s.%I IS %L', name, newname, comment)
FROM mine WHERE comment IS NOT NULL
-- the swap
SELECT 30, 0, 0, 0,
  format('ALTER TABLE %s %s', name, string_agg(format('DROP COLUMN %I', attname), ', '
    ORDER BY attnum))
FROM mine WHERE relid = root GROUP BY name
SELECT 31, attnum, 0, 0, format('ALTER TABLE %s RENAME COLUMN %I TO %I', name, newname, attname)
FROM mine WHERE relid = root
-- what hung on the columns
SELECT 32, 0, oid, 0, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', name, newname, conname)
FROM not_null WHERE coninhcount = 0
SELECT 40, 0, indexrelid, 0, format('ALTER INDEX %I.%I RENAME TO %I', idx.nspname, newname,
  idx.relname)
FROM this_idx idx WHERE idx.relkind = 'i'
SELECT 41, 0, indexrelid, 0, format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %2$I',
  name, idx.relname,
  CASE contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END)
FROM this_idx idx WHERE con IS NOT NULL AND idx.relkind = 'i'
-- as pg_dump does it: those of the parents are empty, and take over those of the partitions
SELECT 41, 1, indexrelid, 0, CASE WHEN con IS NULL THEN pg_get_indexdef(indexrelid)
  ELSE format('ALTER TABLE ONLY %s ADD CONSTRAINT %I %s%s', name, idx.relname,
    pg_get_constraintdef(con), ' WITH (' || array_to_string(reloptions, ', ') || ')') END
FROM this_idx idx WHERE idx.relkind = 'I'
SELECT 41, 2, indexrelid, 0, format('ALTER INDEX %I.%I SET TABLESPACE %I', idx.nspname,
  idx.relname, spcname)
FROM this_idx idx WHERE idx.relkind = 'I' AND spcname IS NOT NULL
SELECT 41, 3, -depth, 0, format('ALTER INDEX %I.%I ATTACH PARTITION %I.%I', p.nspname, p.relname,
  idx.nspname, idx.relname)
FROM this_idx idx JOIN idx p ON p.indexrelid = idx.parent
-- ALTER INDEX, which has no ONLY, would also set that of the partitions
SELECT 42, 0, indexrelid, a.attnum,
  format('ALTER TABLE ONLY %I.%I ALTER COLUMN %s SET STATISTICS %s',
  idx.nspname, idx.relname, a.attnum, a.attstattarget)
FROM this_idx idx
  JOIN pg_attribute a ON a.attrelid = idx.indexrelid AND a.attstattarget >= 0
WHERE NOT {only_casts(idx.indexrelid, idx.indrelid, a.attnum)}
-- an index has the names of its columns, too
SELECT 42, 1, newoid, a.attnum, format('ALTER TABLE %I.%I RENAME COLUMN %I TO %I', idx.nspname,
  idx.relname, a.attname, mine.attname)
FROM idx JOIN mine ON mine.relid = idx.indrelid
  JOIN pg_attribute a ON a.attrelid = idx.newoid AND a.attname = mine.newname
SELECT 44, 0, k.oid, 0, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', name, k.newname,
  conname)
FROM (SELECT oid, conrelid, conname, newconname AS newname FROM fkey WHERE newoid IS NOT NULL
  AND newconname <> conname
      UNION ALL SELECT oid, conrelid, conname, newname FROM chk WHERE coninhcount = 0) k
        JOIN this ON this.relid = k.conrelid
-- The old columns were equal to the new ones, and checked; so this is for new rows only.
SELECT 44, 0, rank() OVER (ORDER BY acts COLLATE "C"), 0,
  format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', name, conname, pg_get_constraintdef(fkey.oid),
  CASE WHEN convalidated THEN ' NOT VALID' END)
FROM fkey JOIN this ON this.relid = fkey.conrelid WHERE late
SELECT 44, 1, fkey.oid, 0,
  format('ALTER TABLE %s ALTER CONSTRAINT %I DEFERRABLE INITIALLY IMMEDIATE', name, conname)
FROM fkey JOIN this ON this.relid = fkey.conrelid WHERE condeferrable AND NOT condeferred
  AND conparentid = 0 AND NOT late
SELECT 46, 0, oid, 0, format('ALTER STATISTICS %I.%I RENAME TO %I', stat.nspname, newname,
  stxname)
FROM stat JOIN this ON this.relid = stat.stxrelid
SELECT 47, 0, oid, 0, {set_statistics(stat.nspname, stxname, stxstattarget)}
FROM stat JOIN this ON this.relid = stat.stxrelid WHERE stxstattarget >= 0
SELECT 55, 0, oid, 0, format('ALTER PUBLICATION %I ADD TABLE %s%s%s', pubname, name,
  ' (' || (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
          FROM pg_attribute a WHERE a.attrelid = prrelid AND a.attnum = ANY (prattrs::int2[]))
            || ')', ' WHERE (' || pg_get_expr(prqual, prrelid) || ')')
FROM pub
SELECT 60, depth * 100 + stage, oid, n, command FROM view_statement
SELECT 70, 0, indexrelid, 0, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', name,
  idx.relname)
FROM this_idx idx WHERE indisreplident
SELECT 71, 0, indexrelid, 0, format('ALTER TABLE %s CLUSTER ON %I', name, idx.relname)
FROM this_idx idx WHERE indisclustered
SELECT 72, 0, objid, 0, command
FROM ({comments((SELECT renamed.* FROM renamed JOIN this USING (relid)))}) c(classid, objid, relid,
  command)
SELECT 73, 0, objid, 0, command FROM gone_comment
SELECT 80, 0, oid, 0, command FROM row_function WHERE owned
-- which foreign keys are to be validated, as arguments of a trigger that is never fired
SELECT 91, 0, this.relid, n, CASE n
  WHEN 1 THEN format('CREATE TRIGGER "~snowflake_validate" BEFORE INSERT ON %s FOR EACH ROW '
    'EXECUTE FUNCTION %s(%s)',
                    name, (SELECT name FROM copier), string_agg(quote_literal(conname), ', '
                      ORDER BY conname))
  ELSE format('ALTER TABLE %s DISABLE TRIGGER "~snowflake_validate"', name) END
FROM fkey JOIN this ON this.relid = fkey.conrelid, generate_series(1, 2) n
WHERE late AND convalidated GROUP BY this.relid, name, n

-- name: swap_statements
SELECT stage, (stage >= 30)::int AS after_drop, command
FROM swap_statement WHERE command IS NOT NULL ORDER BY stage, a, b, c, command COLLATE "C"

-- What must be locked: sequences that the columns own, views, tables at the
-- other end of foreign keys, and the table.  Partitions are locked with their
-- tables.
-- name: swap_locks
SELECT oid FROM owned UNION ALL
SELECT oid FROM (SELECT oid FROM vw ORDER BY depth DESC) v UNION ALL
SELECT DISTINCT referenced FROM edge JOIN this ON this.relid = edge.referencing
  WHERE referenced NOT IN (SELECT relid FROM this) UNION ALL
SELECT relid FROM this WHERE relid = root

-- What is missing for the swap, or would be dropped with the old columns.
-- name: missing
SELECT format('foreign key %I of table %s', conname, conrelid::regclass)
FROM fkey JOIN scope ON scope.relid IN (conrelid, confrelid)
WHERE NOT internal
AND CASE WHEN late THEN NOT (conrelid IN (SELECT relid FROM scope) AND confrelid IN (SELECT relid
  FROM scope))
  WHEN conrelid IN (SELECT relid FROM scope) THEN newoid IS NULL OR convalidated AND NOT newvalid
    ELSE true END
UNION ALL
SELECT pg_describe_object(classid, oid, 0)
FROM (SELECT 'pg_class'::regclass, indexrelid, indrelid, newvalid FROM idx WHERE relkind = 'i'
      UNION ALL SELECT 'pg_constraint'::regclass, oid, conrelid,
        newvalid OR newoid IS NOT NULL AND NOT convalidated FROM chk
      UNION ALL SELECT 'pg_statistic_ext'::regclass, oid, stxrelid, newoid IS NOT NULL FROM stat)
    o(classid, oid, relid, there) JOIN scope USING (relid)
WHERE there IS NOT TRUE
UNION ALL
SELECT format('copy of the columns of table %s', name)
FROM tab JOIN scope USING (relid) WHERE tab.converted
  AND NOT (prepared AND tgenabled = 'A' AND copied)
UNION ALL
SELECT what FROM single JOIN scope USING (relid)

-- The tables that are swapped, with their partitions; and their indexes.
-- name: swap_scope
SELECT relid FROM scope

-- name: swap_indexes
SELECT indexrelid FROM this_idx idx

-- The relations by name, because views are created again.
-- texts: tables
-- name: swap_names
SELECT array_agg(oid::regclass)::text FROM pg_class WHERE oid = ANY ($tables::oid[])

-- What depends on a column with a counterpart, also of a partition that an event trigger created.
-- The names alone say which columns these are, so that this is quick.
-- name: dependents_of_columns
WITH RECURSIVE member(relid) AS (
  SELECT unnest($tables::oid[])
  UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.relid)
SELECT {describe(d)}
FROM member JOIN pg_attribute a ON a.attrelid = member.relid
  JOIN pg_attribute n ON n.attrelid = a.attrelid AND n.attname = {new_name(a.attname)}
  JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass
    AND (d.refobjid, d.refobjsubid) = (a.attrelid, a.attnum)
  LEFT JOIN pg_attrdef f ON {is_object(d, pg_attrdef, f.oid)}
  LEFT JOIN pg_constraint k ON {is_object(d, pg_constraint, k.oid)}
WHERE NOT a.attisdropped AND NOT n.attisdropped
AND (f.adrelid, f.adnum) IS DISTINCT FROM (a.attrelid, a.attnum)
AND k.contype IS DISTINCT FROM 'n'

-- The privileges on views, and columns of the relations with $names.
-- texts: names
-- name: swap_privileges
WITH r AS (
  SELECT n.name, c.*
  FROM unnest($names::text[]) n(name) JOIN pg_class c ON c.oid = to_regclass(n.name))
SELECT coalesce(md5(string_agg(p.line, E'\n' ORDER BY p.line COLLATE "C")), '')
FROM (SELECT concat_ws(' ', r.name, e)
      FROM r, aclexplode(coalesce(r.relacl, acldefault('r', r.relowner))) e
      WHERE r.relkind IN ('v', 'm')
      UNION ALL
      SELECT concat_ws(' ', r.name, quote_ident(a.attname), e)
      FROM r JOIN pg_attribute a ON a.attrelid = r.oid, aclexplode(a.attacl) e
      WHERE NOT a.attisdropped AND NOT {is_new(a.attname)}) p(line)
