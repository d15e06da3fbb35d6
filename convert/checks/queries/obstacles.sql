-- Types that contain the row type of a table, and that itself.
-- cte: holder(table_name, typid)
SELECT t.table_name, r.reltype
FROM widened t JOIN pg_class r ON r.oid = t.relid
UNION
SELECT h.table_name, coalesce(c.reltype, d.objid)
FROM holder h JOIN pg_depend d ON {on_object(d, pg_type, h.typid)}
  LEFT JOIN pg_class c ON {is_object(d, pg_class, c.oid)} AND d.objsubid > 0
WHERE d.classid = 'pg_type'::regclass OR c.relkind IN ('c', 'v', 'f')

-- What prevents tables from being altered, and their foreign keys from being
-- checked.  The CTE owned has these tables.
-- cte: owned
SELECT r.oid, format('table %s', r.oid::regclass) AS object, r.relnamespace, r.relowner,
  r.relrowsecurity AND r.relforcerowsecurity AS forced, o.rolname,
  o.rolsuper OR o.rolbypassrls AS bypasses
FROM changed c JOIN pg_class r ON r.oid = c.relid
  JOIN pg_roles o ON o.oid = r.relowner

-- How many objects a conversion locks: what it creates, drops, and creates again, and what belongs
-- to a table that is rewritten.  A foreign key is created again by each of its tables, and has
-- four triggers.
-- cte: lock_use(n) union
SELECT 100::numeric
SELECT count(*) FROM changed
SELECT 5 + 4 * (reltoastrelid <> 0)::int FROM pg_class
WHERE oid IN (SELECT relid FROM widened)
SELECT 2 * count(*) FROM pg_index
WHERE indrelid IN (SELECT relid FROM widened)
SELECT 1 + 5 * count(DISTINCT t.relid)
FROM widened t JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND {on_column(d, t)}
  JOIN pg_constraint k ON k.oid = d.objid AND k.contype = 'f'
GROUP BY k.oid
SELECT 2 * count(*) FROM rebuilt LEFT JOIN pg_constraint k
  ON (classid, objid) = ('pg_constraint'::regclass, k.oid)
WHERE classid <> 'pg_class'::regclass AND k.contype IS DISTINCT FROM 'f'
SELECT 2 * count(*) FROM gone
SELECT 2 * count(*) FROM seq

-- A conversion that was begun online keeps two columns equal, and has to get to its own end.
-- Partitions have the triggers of their table.
-- cte: converting(line, object, trigger)
SELECT format('%s is being converted online', t.object), t.object, g.tgname
FROM owned t JOIN pg_trigger g ON g.tgrelid = t.oid AND g.tgparentid = 0
  JOIN pg_proc p ON p.oid = g.tgfoid AND p.proname = '_snowflake_convert_copy'

-- What prevents columns from becoming bigint.
-- list: column_obstacles obstacles

-- hint: Change the type of columns that are not of an integer type, or drop their foreign keys.
SELECT format('%s has type %s, but references a column that becomes bigint',
    t.column_name, format_type(a.atttypid, a.atttypmod)), t.column_name
FROM target t JOIN {attribute(a, t)}
WHERE t.change = 'cannot'

-- hint: Run ALTER TABLE ... DETACH PARTITION ... FINALIZE.
SELECT format('partition %s of table %s is being detached', i.inhrelid::regclass,
    i.inhparent::regclass), t.table_name
FROM target t JOIN pg_inherits i ON i.inhrelid = t.relid AND i.inhdetachpending

-- The index of a partition is dropped and created with its parent, which fails for a constraint
-- of its own, or would lose what differs.
-- hint: Give partitions the constraints of the partitioned table: detach a partition, replace its
--   constraint, and attach it again.
SELECT format('constraint %I of partition %s belongs to index %s, which has another constraint '
  'or none', k.conname, k.conrelid::regclass, h.inhparent::regclass), t.table_name
FROM widened t
  JOIN pg_index i ON i.indrelid = t.relid AND t.attnum = ANY (i.indkey)
  JOIN pg_inherits h ON h.inhrelid = i.indexrelid
  JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u')
  LEFT JOIN pg_constraint p ON p.conindid = h.inhparent AND p.contype IN ('p', 'u')
WHERE (k.contype, k.condeferrable, k.condeferred) IS DISTINCT FROM (p.contype, p.condeferrable,
  p.condeferred)

-- All of a table are created again directly, and in use those with the column, and ones that are
-- not complete would be valid.  Whoever creates one just now has a lock.
-- hint: Drop indexes that are invalid, or create them again with REINDEX.
SELECT format('index %s of table %s is invalid', i.indexrelid::regclass, i.indrelid::regclass),
  t.table_name
FROM (SELECT DISTINCT relid, table_name FROM widened) t JOIN pg_index i ON i.indrelid = t.relid
WHERE NOT i.indisvalid
AND (NOT $online
     OR ('pg_class'::regclass, i.indexrelid) IN (SELECT classid, objid FROM rebuilt)
     AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.relation = i.indrelid AND l.granted
       AND l.database = {this_database}
       AND l.mode = 'ShareUpdateExclusiveLock' AND l.pid <> pg_backend_pid()))

-- hint: Give statistics objects the owner of the table: PostgreSQL does so when it creates them
--   again.
SELECT format('statistics object %I.%I of table %s belongs to another role', s.nspname, s.stxname,
  r.oid::regclass), format('table %s', r.oid::regclass)
FROM rebuilt_statistics s JOIN pg_class r ON r.oid = s.stxrelid
WHERE s.stxowner <> r.relowner

-- With the new columns beside the old ones, or the old ones, dropped, as NULLs.  Each column is
-- aligned.
-- hint: Use snowflake_convert(), which leaves no dropped columns, or move columns to another table.
SELECT format('rows of table %s would not fit into a block', relid::regclass), table_name
FROM (SELECT t.relid, t.table_name, t.added, greatest(a.attlen, 1) AS length, a.attnotnull, s.size,
        lag(s.size) OVER (PARTITION BY a.attrelid, a.attnotnull ORDER BY a.attnum) AS before
      FROM (SELECT relid, table_name, 8 * count(*) AS added FROM widened GROUP BY 1, 2) t
        JOIN pg_attribute a ON a.attrelid = t.relid AND a.attnum > 0
        CROSS JOIN LATERAL (SELECT CASE WHEN a.attlen > 0
          THEN position(a.attalign IN 'cs-i---d') ELSE 1 END) s(size)
      WHERE $online) c
GROUP BY relid, table_name, added
HAVING 24 + count(*) / 8 + added + sum(length + greatest(size - before, 0))
    FILTER (WHERE attnotnull) > current_setting('block_size')::int - 32

-- What prevents that what depends on the columns comes back.  An online conversion drops, and
-- creates again, other objects with a column: online/obstacles.c.
-- list: recreated_obstacles obstacles

-- hint: Drop objects that depend on a column, convert, and create them again, or use
--   snowflake_convert_online().
SELECT format('%s depends on %s', {describe(d)}, t.column_name), t.column_name
FROM widened t JOIN pg_depend d ON {on_column(d, t)}
  LEFT JOIN pg_trigger g ON {is_object(d, pg_trigger, g.oid)}
  LEFT JOIN pg_attrdef f ON {is_object(d, pg_attrdef, f.oid)}
WHERE NOT $online
AND (d.classid = ANY ('{pg_rewrite,pg_policy,pg_proc,pg_publication_rel}'::regclass[])
      OR NOT g.tgisinternal
      OR (f.adrelid, f.adnum) <> (t.relid, t.attnum))
AND (d.classid, d.objid) NOT IN (SELECT classid, objid FROM gone)

-- An index is created again with each of its columns, also those that it merely includes, and so is
-- its constraint.  What depends on these, but not on the column, is not, and prevents that.
-- hint: Drop objects that depend on an index or key with a column, convert, and create them again.
SELECT format('%s depends on %s', {describe(d)}, {describe_object(n)}), t.column_name
FROM widened t
  JOIN pg_index i ON i.indrelid = t.relid AND t.attnum = ANY (i.indkey)
  LEFT JOIN pg_constraint u ON u.conindid = i.indexrelid AND u.contype IN ('p', 'u', 'x')
  CROSS JOIN LATERAL (VALUES ('pg_class'::regclass, i.indexrelid),
    ('pg_constraint'::regclass, u.oid)) n(classid, objid)
  JOIN pg_depend d ON (d.refclassid, d.refobjid, d.deptype) = (n.classid, n.objid, 'n')
WHERE (d.classid, d.objid) NOT IN (SELECT classid, objid FROM gone)
AND NOT EXISTS (
  SELECT FROM pg_depend c
  WHERE (c.classid, c.objid) = (d.classid, d.objid) AND {on_column(c, t)})

-- hint: Change what these lines say, or drop the objects, convert, and create them again: pg_dump
--   --schema-only has their statements.
SELECT line, relid::regclass::text FROM lost

-- Constraints are created again, with triggers that are enabled as usual.
-- hint: Enable such triggers with ALTER TABLE ... ENABLE TRIGGER, or drop the constraints.
SELECT format('triggers of constraint %I of table %s are not enabled as usual', k.conname,
    k.conrelid::regclass), format('table %s', k.conrelid::regclass)
FROM rebuilt r JOIN pg_constraint k ON {is_object(r, pg_constraint, k.oid)}
  JOIN pg_trigger g ON g.tgconstraint = k.oid
WHERE g.tgenabled <> 'O'

-- list: type_obstacles obstacles

-- Columns in the key, or in its expressions, depend on the table.
-- hint: The type of a partition key column cannot be changed. Create a new table with a bigint
--   column and move the rows.
SELECT format('%s is part of the partition key', t.column_name), t.column_name
FROM widened t
  JOIN pg_depend d
    ON (d.classid, d.objid, d.objsubid) = ('pg_class'::regclass, t.relid, t.attnum)
    AND (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, t.relid, 0)
WHERE d.deptype = 'i'

-- In a column, or in an expression.  A function also depends on the types in its signature, which
-- does not matter.
-- hint: Drop what uses the row type, or change its type, convert, and create it again.
SELECT format('%s uses the row type of %s', {describe(d)}, h.table_name), h.table_name
FROM holder h JOIN pg_depend d ON {on_object(d, pg_type, h.typid)}
  LEFT JOIN pg_class c ON {is_object(d, pg_class, c.oid)}
  LEFT JOIN pg_type y ON {is_object(d, pg_type, y.oid)}
  LEFT JOIN pg_proc p ON {is_object(d, pg_proc, p.oid)}
WHERE d.classid = ANY ('{pg_rewrite,pg_constraint,pg_attrdef,pg_policy,pg_trigger,'
  'pg_statistic_ext}'::regclass[])
OR CASE d.objsubid WHEN 0 THEN c.oid IS NOT NULL AND d.deptype <> 'i'
  ELSE c.relkind IN ('r', 'p', 'm') END
OR y.typtype = 'd' AND y.typbasetype <> h.typid
OR concat(p.prosqlbody, p.proargdefaults) ~ format(':(consttype|row_typeid) %s ', h.typid)
SELECT format('%s calls %s with rows of %s', {describe_object(d)},
    p.oid::regprocedure, t.table_name), t.table_name
FROM widened t JOIN pg_class r ON r.oid = t.relid
  JOIN pg_proc p ON r.reltype = ANY (p.proargtypes)
  JOIN pg_depend d ON {on_object(d, pg_proc, p.oid)}
  LEFT JOIN pg_index i ON {is_object(d, pg_class, i.indexrelid)}
  LEFT JOIN pg_constraint c ON {is_object(d, pg_constraint, c.oid)}
WHERE t.relid IN (i.indrelid, c.conrelid)

-- hint: Drop generated columns, convert, and add them again.
SELECT format('%s is a generated column', column_name), column_name
FROM target
WHERE attgenerated <> '' AND CASE WHEN is_key THEN set_default ELSE change = 'widen' END

-- Since 18: PostgreSQL cannot create such a constraint again.
-- hint: Give not-null constraints the name that they have in the parent table: run ALTER TABLE
--   ... NO INHERIT, then RENAME CONSTRAINT, then INHERIT.
SELECT format('constraint %I of %s is named %I in table %s', c.conname,
    t.table_name, p.conname, p.conrelid::regclass), t.column_name
FROM widened t
  JOIN pg_constraint c ON c.contype = 'n' AND c.conrelid = t.relid AND t.attnum = ANY (c.conkey)
  JOIN pg_inherits i ON i.inhrelid = t.relid
  JOIN pg_attribute a ON a.attrelid = i.inhparent AND a.attname = t.attname
  JOIN pg_constraint p ON p.contype = 'n' AND p.conrelid = a.attrelid
    AND a.attnum = ANY (p.conkey)
WHERE c.conislocal AND c.coninhcount > 0 AND p.conname <> c.conname

-- hint: Remove foreign tables from the inheritance tree, convert the tables on their own servers,
--   and change the column type of the foreign tables.
SELECT format('%s belongs to a foreign table', t.column_name), t.column_name
FROM widened t JOIN pg_class r ON r.oid = t.relid
WHERE r.relkind = 'f'

-- What prevents that the rows and the generator are accessed, or the column from getting IDs.
-- list: access_obstacles obstacles

-- hint: Run these statements, but drop what should not be called there instead of giving it to the
--   owner of the tables. Or grant that role to these roles.
SELECT format('%s could have its code called for %s: %s', who,
    min(pg_describe_object(classid, objid, 0) COLLATE "C"), cure),
  min(pg_describe_object(classid, objid, 0) COLLATE "C")
FROM exposed GROUP BY who, cure

-- hint: Convert the parent table, which also converts its children.
SELECT format('%s is inherited from table %s', t.column_name, i.inhparent::regclass),
  t.column_name
FROM target t
  JOIN pg_inherits i ON i.inhrelid = t.relid
  JOIN pg_attribute p ON p.attrelid = i.inhparent AND p.attname = t.attname
    AND NOT p.attisdropped
WHERE t.is_root AND t.gets_ids AND t.attinhcount > 0

-- hint: The values of a foreign key come from the referenced table. Convert that table.
SELECT format('%s is a foreign key column: constraint %I references table %s',
    t.column_name, c.conname, c.confrelid::regclass), t.column_name
FROM target t
  JOIN pg_constraint c ON c.contype = 'f' AND c.conparentid = 0
    AND c.conrelid = t.relid AND t.attnum = ANY (c.conkey)
WHERE t.is_key AND t.gets_ids

-- hint: Grant the owner of the tables these privileges.
SELECT format('role %I, the owner of %s, lacks %s', t.rolname, t.object, p.what), t.object
FROM owned t
  LEFT JOIN (SELECT relid, generator FROM target WHERE is_root AND set_default) k ON k.relid = t.oid
  LEFT JOIN pg_proc f ON f.oid = k.generator
  CROSS JOIN LATERAL (
    SELECT {needs_schema(t.relowner, s, USAGE)} FROM unnest(ARRAY[t.relnamespace, f.pronamespace]) s
    UNION ALL
    SELECT {needs_function(t.relowner, f.oid)}) p(what, has)
WHERE NOT p.has

-- The default is evaluated with the privileges of who inserts.
-- hint: Grant EXECUTE on the generator to these roles.
SELECT DISTINCT format('role %I, which has INSERT on table %s, lacks EXECUTE on function %s',
    g.name, r.oid::regclass, f.oid::regprocedure), t.table_name
FROM target t JOIN pg_class r ON r.oid = t.relid JOIN pg_proc f ON f.oid = t.generator
  CROSS JOIN LATERAL (
  SELECT e.* FROM aclexplode(r.relacl) e
  UNION ALL
  SELECT e.* FROM pg_attribute a, aclexplode(a.attacl) e WHERE a.attrelid = r.oid) e
  CROSS JOIN LATERAL (SELECT CASE e.grantee WHEN 0 THEN 'public'
    ELSE pg_get_userbyid(e.grantee) END) g(name)
WHERE t.is_key AND t.set_default AND e.privilege_type = 'INSERT' AND e.grantee <> r.relowner
AND NOT has_function_privilege(g.name, f.oid, 'EXECUTE')

-- The server does not know of functions, and an online conversion sets the default last.
-- hint: Use another sequence in these objects, or rename it if a function only contains its name.
SELECT format('%s %s sequence %s, which is dropped with the identity of %s', u.name,
    CASE WHEN u.by_name THEN 'contains the name of' ELSE 'uses' END, s.name, t.column_name),
  t.column_name
FROM seq s JOIN seq_user u ON u.oid = s.oid
  JOIN pg_depend d ON {is_object(d, pg_class, s.oid)} AND d.deptype = 'i'
  JOIN target t ON {on_column(d, t)}
WHERE s.is_identity AND s.replaced

-- hint: The conversion runs code of indexes and constraints of all these tables as one role. If
--   the owners trust each other, give the tables to a new role that is a member of theirs, and
--   back after the conversion (ALTER TABLE ... OWNER TO). A role with privileges on a table would
--   lose them.
SELECT format('%s is owned by role %I, but table %s by role %s', t.object,
    t.rolname, k.oid::regclass, k.relowner::regrole), t.object
FROM owned t JOIN pg_class k ON k.oid = $tables[1] AND k.relowner <> t.relowner

-- hint: Run ALTER TABLE ... NO FORCE ROW LEVEL SECURITY before the conversion and FORCE ROW LEVEL
--   SECURITY after it, in one transaction.
SELECT format('row-level security is forced for role %I, the owner of %s', rolname, object), object
FROM owned WHERE forced AND NOT bypasses

-- What prevents direct conversions alone.
-- list: direct_obstacles obstacles

-- The server has room for max_locks_per_transaction locks of each session that it can have, and for
-- some more, if nothing else has used it.
-- hint: Increase max_locks_per_transaction, and restart the server.
SELECT format('the conversion needs about %s locks, for which max_locks_per_transaction must be '
    '%s, and it is %s', n, ceil(n / sessions), setting), format('table %s', $tables[1]::regclass)
FROM (SELECT sum(n) FROM lock_use) u(n)
  CROSS JOIN (
    SELECT current_setting('max_locks_per_transaction')::int, 1 + sum(current_setting(name)::int)
    FROM unnest(ARRAY['max_connections', 'max_prepared_transactions', 'max_worker_processes',
      'max_wal_senders', CASE WHEN current_setting('server_version_num')::int < 180000
      THEN 'autovacuum_max_workers' ELSE 'autovacuum_worker_slots' END]) name) s(setting, sessions)
WHERE ceil(n / sessions) > 2 * setting

-- What ALTER COLUMN ... TYPE would lose of indexes, and the query statements cannot restore.  The
-- name of an index that is created with its parent is not known before.
-- hint: PostgreSQL creates such indexes again as copies of those of the partitioned table. Reset
--   what was set of the partition alone (replica identity, CLUSTER, storage parameters, tablespace,
--   statistics targets, extension, comments), convert, and set it again, or use
--   snowflake_convert_online().
SELECT format('index %I of partition %s has properties of its own', i.relname,
    i.indrelid::regclass), format('table %s', i.indrelid::regclass)
FROM rebuilt_index i JOIN pg_class p ON p.oid = i.parent
WHERE i.indisreplident OR i.indisclustered OR i.reloptions IS DISTINCT FROM p.reloptions
OR i.reltablespace <> p.reltablespace OR {has_comment(i.oid, pg_class)}
OR EXISTS (
  SELECT FROM pg_attribute a JOIN pg_attribute b ON (b.attrelid, b.attnum) = (p.oid, a.attnum)
  WHERE a.attrelid = i.oid AND coalesce(a.attstattarget, -1) <> coalesce(b.attstattarget, -1))
OR EXISTS (SELECT FROM pg_depend d
           WHERE {is_object(d, pg_class, i.oid)} AND d.deptype = 'x')
OR EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.oid AND k.contype IN ('p', 'u')
           AND {has_comment(k.oid, pg_constraint)})

-- hint: Complete the conversion with snowflake_convert_online(), or take it back with
--   snowflake_convert_undo(), which is possible before the first swap.
SELECT line, object FROM converting WHERE trigger = '~snowflake_new'

-- hint: Complete the conversion with snowflake_convert_online(). If the column needs no default,
--   and no other one waits for its own, drop trigger "~snowflake_swapped" instead.
SELECT line, object FROM converting WHERE trigger <> '~snowflake_new'

-- list: citus_obstacles obstacles

-- The distribution column is kept as the text of a Var.
-- hint: Call undistribute_table() for tables whose distribution column changes its type, convert,
--   and distribute them again.
SELECT format('%s is the distribution column', t.column_name), t.column_name
FROM widened t JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = t.relid
WHERE substring(p.partkey FROM ':varattno ([0-9]+)') = t.attnum::text

-- hint: Create a table with LIKE ... INCLUDING ALL EXCLUDING IDENTITY, distribute it, copy the
--   rows, and rename it.
SELECT format('%s is an identity column of a distributed table', t.column_name), t.column_name
FROM target t JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = t.relid
WHERE t.is_key AND t.gets_ids AND t.attidentity <> ''

-- hint: Convert distributed tables on the coordinator.
SELECT format('table %s is a distributed table, and this server is not the coordinator',
  t.relid::regclass), format('table %s', t.relid::regclass)
FROM changed t JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = t.relid
  CROSS JOIN pg_catalog.pg_dist_local_group g
WHERE g.groupid <> 0

-- hint: Convert distributed tables with snowflake_convert().
SELECT format('%s is a distributed table', t.table_name), t.table_name
FROM target t JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = t.relid
WHERE $online
