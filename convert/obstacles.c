/*-------------------------------------------------------------------------
 *
 * obstacles.c
 *	  What prevents a conversion.
 *
 * ALTER TABLE would fail as well, but at the first obstacle, with less advice,
 * and perhaps after rewriting a large table.  So everything that can be known
 * before is listed at once, and a dry run finds what the conversion would.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/obstacles.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_namespace.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "convert/convert.h"

/*
 * A further CTE: types that contain the row type of a table, and that itself.
 */
#define HOLDERS \
"WITH RECURSIVE holder(table_name, typid) AS (" \
"  SELECT t.table_name, r.reltype" \
"  FROM target t JOIN pg_class r ON r.oid = t.relid" \
"  WHERE t.change = 'widen'" \
"  UNION" \
"  SELECT h.table_name, coalesce(c.reltype, d.objid)" \
"  FROM holder h" \
"    JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = h.typid" \
"    LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid" \
"      AND d.objsubid > 0" \
"  WHERE d.classid = 'pg_type'::regclass OR c.relkind IN ('c', 'v', 'f'))"

/*
 * What prevents columns from becoming bigint.
 */
static const SnowflakeObstacleQuery column_obstacles[] = {
	{
		"SELECT format('%s has type %s, but references a column that becomes bigint',"
		"    t.column_name, format_type(a.atttypid, a.atttypmod)), t.column_name"
		" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
		" WHERE t.change = 'cannot'",
		"Change the type of columns that are not of an integer type, or drop their foreign keys."
	},
	{
		"SELECT format('partition %s of table %s is being detached', i.inhrelid::regclass,"
		"    i.inhparent::regclass), t.table_name"
		" FROM target t JOIN pg_inherits i ON i.inhrelid = t.relid AND i.inhdetachpending",
		"Run ALTER TABLE ... DETACH PARTITION ... FINALIZE."
	},
	{
		/*
		 * The index of a partition is dropped and created with its parent,
		 * which fails for a constraint of its own, or would lose what
		 * differs.
		 */
		"SELECT format('constraint %I of partition %s belongs to index %s, which has another constraint or none',"
		"    k.conname, k.conrelid::regclass, h.inhparent::regclass), t.table_name"
		" FROM target t"
		"  JOIN pg_index i ON i.indrelid = t.relid AND t.attnum = ANY (i.indkey)"
		"  JOIN pg_inherits h ON h.inhrelid = i.indexrelid"
		"  JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u')"
		"  LEFT JOIN pg_constraint p ON p.conindid = h.inhparent AND p.contype IN ('p', 'u')"
		" WHERE t.change = 'widen'"
		" AND (k.contype, k.condeferrable, k.condeferred) IS DISTINCT FROM (p.contype, p.condeferrable, p.condeferred)",
		"Give partitions the constraints of the partitioned table: detach a partition, replace its constraint, and attach it again."
	},
};

/*
 * The same, but an online conversion creates most of these objects again:
 * online/obstacles.c.
 */
static const SnowflakeObstacleQuery dependent_obstacles[] = {
	{
		"SELECT format('%s depends on %s',"
		"    pg_describe_object(d.classid, d.objid, d.objsubid), t.column_name), t.column_name"
		" FROM target t"
		"  JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass"
		"    AND d.refobjid = t.relid AND d.refobjsubid = t.attnum"
		"  LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid"
		"  LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid"
		" WHERE t.change = 'widen'"
		" AND (d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass,"
		"                    'pg_proc'::regclass, 'pg_publication_rel'::regclass)"
		"      OR NOT g.tgisinternal"
		"      OR (f.adrelid, f.adnum) <> (t.relid, t.attnum))",
		"Drop objects that depend on a column, convert, and create them again (snowflake_convert_report() has the statements for views), or use snowflake_convert_online()."
	},
};

/*
 * Foreign keys are created again, with triggers that are enabled as usual.
 */
static const SnowflakeObstacleQuery trigger_obstacles[] = {
	{
		"SELECT format('triggers of foreign key %I of table %s are %s', c.conname, c.conrelid::regclass,"
		"      CASE g.tgenabled WHEN 'D' THEN 'disabled' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE REPLICA' END),"
		"    t.table_name"
		" FROM target t"
		"  JOIN pg_constraint c ON c.contype = 'f'"
		"    AND (c.conrelid = t.relid AND t.attnum = ANY (c.conkey)"
		"         OR c.confrelid = t.relid AND t.attnum = ANY (c.confkey))"
		"  JOIN pg_trigger g ON g.tgconstraint = c.oid"
		" WHERE t.change = 'widen' AND g.tgenabled <> 'O'",
		"Enable the triggers of foreign keys with ALTER TABLE ... ENABLE TRIGGER, or drop the foreign keys."
	},
};

/*
 * What ALTER COLUMN ... TYPE would lose of indexes and statistics objects, and
 * statements_query in statements.c cannot restore.  The name of an index that
 * is created with its parent is not known before.
 */
static const SnowflakeObstacleQuery rebuilt_obstacles[] = {
	{
		/*
		 * All of a table are created again, and those that are not complete
		 * would be valid.
		 */
		"SELECT format('index %s of table %s is invalid', i.indexrelid::regclass, i.indrelid::regclass), t.table_name"
		" FROM (SELECT DISTINCT relid, table_name FROM target WHERE change = 'widen') t JOIN pg_index i ON i.indrelid = t.relid"
		" WHERE NOT i.indisvalid",
		"Drop or rebuild invalid indexes."
	},
	{
		"SELECT format('index %I of partition %s %s', i.relname, i.indrelid::regclass, w.what),"
		"    format('table %s', i.indrelid::regclass)"
		" FROM rebuilt_index i JOIN pg_class p ON p.oid = i.parent"
		"  CROSS JOIN LATERAL (VALUES"
		"    ('is its replica identity', i.indisreplident),"
		"    ('is the one to CLUSTER on', i.indisclustered),"
		"    ('has storage parameters of its own', i.reloptions IS DISTINCT FROM p.reloptions),"
		"    ('has a tablespace of its own', i.reltablespace <> p.reltablespace),"
		"    ('has statistics targets of its own', EXISTS ("
		"      SELECT FROM pg_attribute a JOIN pg_attribute b ON (b.attrelid, b.attnum) = (p.oid, a.attnum)"
		"      WHERE a.attrelid = i.oid"
		"      AND coalesce(a.attstattarget, -1) <> coalesce(b.attstattarget, -1))),"
		"    ('depends on an extension', EXISTS ("
		"      SELECT FROM pg_depend d"
		"      WHERE (d.classid, d.objid, d.deptype) = ('pg_class'::regclass, i.oid, 'x')))) w(what, found)"
		" WHERE w.found",
		"PostgreSQL creates such indexes again as copies of those of the partitioned table. "
		"Reset what was set of the partition alone, convert, and set it again, or use snowflake_convert_online()."
	},
	{
		/*
		 * PostgreSQL would create the parent's first, with which the child's
		 * own conflicts.
		 */
		"WITH RECURSIVE above(relid, parent) AS ("
		"  SELECT i.inhrelid, i.inhparent FROM pg_inherits i"
		"  WHERE i.inhrelid IN (SELECT relid FROM target WHERE change = 'widen')"
		"  UNION"
		"  SELECT a.relid, i.inhparent FROM above a JOIN pg_inherits i ON i.inhrelid = a.parent)"
		"SELECT format('check constraint %I of table %s is valid, but that of table %s is not',"
		"    c.conname, c.conrelid::regclass, p.conrelid::regclass), format('table %s', c.conrelid::regclass)"
		" FROM rebuilt r JOIN pg_constraint c ON (r.classid, r.objid) = ('pg_constraint'::regclass, c.oid)"
		"  JOIN above a ON a.relid = c.conrelid"
		"  JOIN pg_constraint p ON p.conrelid = a.parent AND p.contype = 'c' AND p.conname = c.conname"
		"    AND NOT p.convalidated"
		" WHERE c.contype = 'c' AND c.conislocal AND c.coninhcount > 0 AND c.convalidated",
		"Run ALTER TABLE ... VALIDATE CONSTRAINT on parent tables."
	},
	{
		"SELECT format('role %s, the owner of table %s, cannot set the statistics target of statistics object %I.%I',"
		"    r.relowner::regrole, r.oid::regclass, s.nspname, s.stxname), format('table %s', r.oid::regclass)"
		" FROM rebuilt_statistics s JOIN pg_class r ON r.oid = s.stxrelid"
		" WHERE s.stxstattarget >= 0 AND NOT has_schema_privilege(r.relowner, s.stxnamespace, 'USAGE')",
		"Grant the owner of the table USAGE on the schemas of its statistics objects."
	},
	{
		"SELECT format('statistics object %I.%I of table %s belongs to another role', s.nspname, s.stxname, r.oid::regclass),"
		"    format('table %s', r.oid::regclass)"
		" FROM rebuilt_statistics s JOIN pg_class r ON r.oid = s.stxrelid"
		" WHERE s.stxowner <> r.relowner",
		"Give statistics objects the owner of the table: PostgreSQL does so when it creates them again."
	},
};

static const SnowflakeObstacleQuery type_obstacles[] = {
	{
		/* Columns in the key, or in its expressions, depend on the table. */
		"SELECT format('%s is part of the partition key', t.column_name), t.column_name"
		" FROM target t"
		"  JOIN pg_depend d"
		"    ON (d.classid, d.objid, d.objsubid) = ('pg_class'::regclass, t.relid, t.attnum)"
		"    AND (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, t.relid, 0)"
		" WHERE t.change = 'widen' AND d.deptype = 'i'",
		"The type of a partition key column cannot be changed. Create a new table with a bigint column and move the rows."
	},
	{
		HOLDERS
		"SELECT format('column %I of %s uses the row type of %s', a.attname,"
		"    c.oid::regclass, h.table_name), h.table_name"
		" FROM holder h"
		"  JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = h.typid"
		"    AND d.classid = 'pg_class'::regclass"
		"  JOIN pg_class c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm')"
		"  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.objid, d.objsubid)",
		"Drop columns that use the row type, or change their type."
	},
	{
		/*
		 * In an expression.  A function also depends on the types in its
		 * signature, which does not matter.
		 */
		HOLDERS
		"SELECT format('%s uses the row type of %s', pg_describe_object(d.classid, d.objid, d.objsubid),"
		"    h.table_name), h.table_name"
		" FROM holder h"
		"  JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = h.typid"
		"  LEFT JOIN pg_type y ON d.classid = 'pg_type'::regclass AND y.oid = d.objid"
		"  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid"
		" WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_constraint'::regclass,"
		"                     'pg_attrdef'::regclass, 'pg_policy'::regclass,"
		"                     'pg_trigger'::regclass, 'pg_statistic_ext'::regclass)"
		" OR d.classid = 'pg_class'::regclass AND d.objsubid = 0 AND d.deptype <> 'i'"
		" OR y.typtype = 'd' AND y.typbasetype <> h.typid"
		" OR concat(p.prosqlbody, p.proargdefaults) ~ format(':(consttype|row_typeid) %s ', h.typid)",
		"Drop objects that depend on a column, convert, and create them again."
	},
	{
		"SELECT format('%s calls %s with rows of %s', pg_describe_object(d.classid, d.objid, 0),"
		"    p.oid::regprocedure, t.table_name), t.table_name"
		" FROM target t JOIN pg_class r ON r.oid = t.relid"
		"  JOIN pg_proc p ON r.reltype = ANY (p.proargtypes)"
		"  JOIN pg_depend d ON (d.refclassid, d.refobjid) = ('pg_proc'::regclass, p.oid)"
		"  LEFT JOIN pg_index i ON d.classid = 'pg_class'::regclass AND i.indexrelid = d.objid"
		"  LEFT JOIN pg_constraint c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid"
		" WHERE t.change = 'widen' AND t.relid IN (i.indrelid, c.conrelid)",
		"Drop objects that depend on a column, convert, and create them again."
	},
	{
		"SELECT format('%s is a typed table of type %s', t.table_name,"
		"    format_type(r.reloftype, NULL)), t.table_name"
		" FROM target t JOIN pg_class r ON r.oid = t.relid"
		" WHERE t.change = 'widen' AND r.reloftype <> 0",
		"Run ALTER TABLE ... NOT OF on typed tables."
	},
	{
		"SELECT format('%s is inherited from several parent tables', t.column_name), t.column_name"
		" FROM target t WHERE t.change = 'widen' AND t.attinhcount > 1",
		"Run ALTER TABLE ... NO INHERIT, so that each table has one parent."
	},
	{
		"SELECT format('%s is a generated column', t.column_name), t.column_name"
		" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
		" WHERE t.change = 'widen' AND a.attgenerated <> '' AND NOT t.is_key",
		"Drop generated columns, convert, and add them again."
	},
	{
		/* Since 18: PostgreSQL cannot create such a constraint again. */
		"SELECT format('constraint %I of %s is named %I in table %s', c.conname,"
		"    t.table_name, p.conname, p.conrelid::regclass), t.column_name"
		" FROM target t"
		"  JOIN pg_constraint c ON c.contype = 'n' AND c.conrelid = t.relid"
		"    AND t.attnum = ANY (c.conkey)"
		"  JOIN pg_inherits i ON i.inhrelid = t.relid"
		"  JOIN pg_attribute a ON a.attrelid = i.inhparent AND a.attname = t.attname"
		"  JOIN pg_constraint p ON p.contype = 'n' AND p.conrelid = a.attrelid"
		"    AND a.attnum = ANY (p.conkey)"
		" WHERE t.change = 'widen' AND c.conislocal AND c.coninhcount > 0"
		"   AND p.conname <> c.conname",
		"Give not-null constraints the name that they have in the parent table: "
		"run ALTER TABLE ... NO INHERIT, then RENAME CONSTRAINT, then INHERIT."
	},
	{
		"SELECT format('%s belongs to a foreign table', t.column_name), t.column_name"
		" FROM target t JOIN pg_class r ON r.oid = t.relid"
		" WHERE t.change = 'widen' AND r.relkind = 'f'",
		"Remove foreign tables from the inheritance tree, convert the tables on their own servers, and change the column type of the foreign tables."
	},
};

/*
 * What prevents the column from having the generator as its default.
 */
static const SnowflakeObstacleQuery key_obstacles[] = {
	{
		"SELECT format('%s is a generated column', t.column_name), t.column_name"
		" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
		" WHERE t.is_key AND t.set_default AND a.attgenerated <> ''",
		"A generated column cannot have a default. Drop it and add it as a bigint column."
	},
	{
		"SELECT format('%s is inherited from table %s', t.column_name, i.inhparent::regclass), t.column_name"
		" FROM target t"
		"  JOIN pg_inherits i ON i.inhrelid = t.relid"
		"  JOIN pg_attribute p ON p.attrelid = i.inhparent AND p.attname = t.attname"
		"    AND NOT p.attisdropped"
		" WHERE t.is_root AND t.set_default AND t.attinhcount > 0",
		"Convert the parent table, which also converts its children."
	},
	{
		"SELECT format('%s is a foreign key column: constraint %I references table %s',"
		"    t.column_name, c.conname, c.confrelid::regclass), t.column_name"
		" FROM target t"
		"  JOIN pg_constraint c ON c.contype = 'f' AND c.conparentid = 0"
		"    AND c.conrelid = t.relid AND t.attnum = ANY (c.conkey)"
		" WHERE t.is_key AND t.set_default",
		"The values of a foreign key come from the referenced table. Convert that table."
	},
	{
		"SELECT format('role %I, the owner of table %s, lacks %s', o.rolname,"
		"    r.oid::regclass, p.what), t.table_name"
		" FROM target t JOIN pg_class r ON r.oid = t.relid JOIN pg_roles o ON o.oid = r.relowner"
		"  JOIN pg_proc f ON f.oid = t.generator"
		"  CROSS JOIN LATERAL (VALUES"
		"    (format('USAGE on schema %s', f.pronamespace::regnamespace),"
		"     has_schema_privilege(o.oid, f.pronamespace, 'USAGE')),"
		"    (format('EXECUTE on function %s', f.oid::regprocedure),"
		"     has_function_privilege(o.oid, f.oid, 'EXECUTE'))) p(what, has)"
		" WHERE t.is_root AND t.set_default AND NOT p.has",
		"Grant the table owner the privileges that the generator requires."
	},
	{
		/* The default is evaluated with the privileges of who inserts. */
		"SELECT DISTINCT format('role %I, which has INSERT on table %s, lacks EXECUTE on function %s',"
		"    g.name, r.oid::regclass, f.oid::regprocedure), t.table_name"
		" FROM target t JOIN pg_class r ON r.oid = t.relid JOIN pg_proc f ON f.oid = t.generator"
		"  CROSS JOIN LATERAL ("
		"   SELECT e.* FROM aclexplode(r.relacl) e"
		"   UNION ALL"
		"   SELECT e.* FROM pg_attribute a, aclexplode(a.attacl) e WHERE a.attrelid = r.oid) e"
		"  CROSS JOIN LATERAL (SELECT CASE e.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(e.grantee) END) g(name)"
		" WHERE t.is_key AND t.set_default AND e.privilege_type = 'INSERT' AND e.grantee <> r.relowner"
		" AND NOT has_function_privilege(g.name, f.oid, 'EXECUTE')",
		"Grant EXECUTE on the generator to these roles."
	},
};

/*
 * What prevents an identity from becoming a default: its sequence is dropped
 * with it.
 */
static const SnowflakeObstacleQuery sequence_obstacles[] = {
	{
		"SELECT format('%s %s sequence %s, which is dropped with the identity of %s',"
		"    u.name, CASE WHEN u.by_name THEN 'contains the name of' ELSE 'uses' END, s.name, t.column_name), t.column_name"
		" FROM seq s JOIN seq_user u ON u.oid = s.oid"
		"  JOIN pg_depend d ON (d.classid, d.objid, d.deptype) = ('pg_class'::regclass, s.oid, 'i')"
		"  JOIN target t ON (t.relid, t.attnum) = (d.refobjid, d.refobjsubid)"
		" WHERE s.is_identity AND s.replaced",
		"Use another sequence in these objects. If a function contains the name of a sequence but does not use it, rename the sequence."
	},
};

/*
 * What prevents tables from being altered, and their foreign keys from being
 * checked.  The CTE owned has these tables.
 */
#define OWNED \
", owned AS (" \
"  SELECT r.oid, r.oid::regclass AS name, r.relnamespace, r.relowner," \
"    r.relrowsecurity AND r.relforcerowsecurity AS forced," \
"    o.rolname, o.rolsuper OR o.rolbypassrls AS bypasses" \
"  FROM changed c JOIN pg_class r ON r.oid = c.relid" \
"    JOIN pg_roles o ON o.oid = r.relowner) "

static const SnowflakeObstacleQuery table_obstacles[] = {
	{
		"SELECT format('table %s is owned by role %I, but table %s by role %s', t.name,"
		"    t.rolname, k.oid::regclass, k.relowner::regrole), format('table %s', t.name)"
		" FROM owned t JOIN pg_class k ON k.oid = $1[1] AND k.relowner <> t.relowner",
		"The conversion runs code of indexes and constraints of all these tables as one role. "
		"If the owners trust each other, give the tables to a new role that is a member of theirs, and back after the conversion (ALTER TABLE ... OWNER TO). A role with privileges on a table would lose them."
	},
	{
		"SELECT format('row-level security is forced for role %2$I, the owner of table %1$s', name, rolname), format('table %s', name)"
		" FROM owned WHERE forced AND NOT bypasses",
		"Run ALTER TABLE ... NO FORCE ROW LEVEL SECURITY before the conversion and FORCE ROW LEVEL SECURITY after it, in one transaction."
	},
	{
		"SELECT format('role %I, the owner of table %s, lacks USAGE on schema %s', rolname,"
		"    name, relnamespace::regnamespace), format('table %s', name)"
		" FROM owned WHERE NOT has_schema_privilege(relowner, relnamespace, 'USAGE')",
		"Grant the owner of each table USAGE on its schema."
	},
};

/*
 * A conversion that was begun online keeps two columns equal, and has to get to
 * its own end.  Partitions have the triggers of their table.
 */
#define BEING_CONVERTED(trigger) \
"SELECT format('table %s is being converted online', t.name), format('table %s', t.name)" \
" FROM owned t JOIN pg_trigger g ON g.tgrelid = t.oid AND g.tgparentid = 0" \
"   AND g.tgname = '" trigger "'" \
"  JOIN pg_proc p ON p.oid = g.tgfoid AND p.proname = 'snowflake_convert_copy'"

static const SnowflakeObstacleQuery begun_obstacles[] = {
	{
		BEING_CONVERTED(SNOWFLAKE_COPY_TRIGGER),
		"Complete the conversion with snowflake_convert_online(), or take it back with snowflake_convert_undo(), which is possible before the first swap."
	},
	{
		BEING_CONVERTED(SNOWFLAKE_SWAP_TRIGGER),
		"Complete the conversion with snowflake_convert_online(), or, if the column needs no default and no other one waits for its own, drop trigger \"" SNOWFLAKE_SWAP_TRIGGER "\"."
	},
	{
		BEING_CONVERTED(SNOWFLAKE_VALIDATE_TRIGGER),
		"Complete the conversion with snowflake_convert_online()."
	},
};

/*
 * What Citus would refuse, by its catalogs.
 */
#define DISTRIBUTED \
" JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = t.relid"

static const SnowflakeObstacleQuery citus_obstacles[] = {
	{
		/* The distribution column is kept as the text of a Var. */
		"SELECT format('%s is the distribution column', t.column_name), t.column_name"
		" FROM target t" DISTRIBUTED
		" WHERE t.change = 'widen'"
		" AND substring(p.partkey FROM ':varattno ([0-9]+)') = t.attnum::text",
		"Call undistribute_table() for tables whose distribution column changes its type, convert, and distribute them again."
	},
	{
		"SELECT format('%s is an identity column of a distributed table', t.column_name), t.column_name"
		" FROM target t" DISTRIBUTED
		"  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
		" WHERE t.is_key AND t.set_default AND a.attidentity <> ''",
		"Create a table with LIKE ... INCLUDING ALL EXCLUDING IDENTITY, distribute it, copy the rows, and rename it."
	},
	{
		"SELECT format('table %s is a distributed table, and this server is not the coordinator', t.relid::regclass), format('table %s', t.relid::regclass)"
		" FROM changed t" DISTRIBUTED
		"  CROSS JOIN pg_catalog.pg_dist_local_group g"
		" WHERE g.groupid <> 0",
		"Convert distributed tables on the coordinator."
	},
};

/*
 * Can the current user read a catalog of Citus?
 */
static bool
can_read(const char *catalog)
{
	Oid			relid = get_relname_relid(catalog, PG_CATALOG_NAMESPACE);

	return OidIsValid(relid) &&
		pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/*
 * Add an obstacle.
 */
void
snowflake_add_obstacle(List **obstacles, const char *object, const char *line,
					   const char *hint)
{
	SnowflakeObstacle *obstacle = palloc(sizeof(SnowflakeObstacle));

	obstacle->object = object;
	obstacle->line = line;
	obstacle->hint = hint;
	*obstacles = lappend(*obstacles, obstacle);
}

/*
 * Add the obstacles that queries find, which begin after these CTEs.  They are
 * about this object; or, if it is NULL, about the one that the queries return
 * after each line.  All are asked in one, because planning the CTEs takes longer
 * than the rest.
 */
void
snowflake_ask_obstacles(const SnowflakeConversion *conversion,
						const char *ctes, const SnowflakeObstacleQuery *list,
						size_t count, const char *object, List **obstacles)
{
	StringInfoData query;
	ListCell   *cell;

	initStringInfo(&query);
	appendStringInfoString(&query, ctes);
	for (size_t i = 0; i < count; i++)
		appendStringInfo(&query, "%s SELECT %zu, line COLLATE \"C\", %s FROM (%s) %s GROUP BY 2",
						 i == 0 ? "" : " UNION ALL", i,
						 object == NULL ? "min(object COLLATE \"C\")" : "NULL",
						 list[i].query,
						 object == NULL ? "o(line, object)" : "o(line)");
	appendStringInfoString(&query, " ORDER BY 1, 2");
	foreach(cell, snowflake_ask(conversion, query.data))
	{
		char	  **row = lfirst(cell);

		snowflake_add_obstacle(obstacles, object == NULL ? row[2] : object,
							   row[1], list[pg_strtoint32(row[0])].hint);
	}
}

static void
ask_obstacles(const SnowflakeConversion *conversion, const char *ctes,
			  const SnowflakeObstacleQuery *list, size_t count,
			  List **obstacles)
{
	snowflake_ask_obstacles(conversion, ctes, list, count, NULL, obstacles);
}

/*
 * Is there a key whose default must be set?
 */
static bool
sets_default(const SnowflakeConversion *conversion)
{
	ListCell   *cell;

	foreach(cell, conversion->keys)
	{
		if (((SnowflakeKey *) lfirst(cell))->set_default)
			return true;
	}
	return false;
}

/*
 * Find what has the row types of the tables, among others: anybody can create
 * that at any time.
 */
void
snowflake_find_type_obstacles(const SnowflakeConversion *conversion,
							  List **obstacles)
{
	ask_obstacles(conversion, "", type_obstacles, lengthof(type_obstacles),
				  obstacles);
}

/*
 * Find foreign keys whose triggers are disabled.
 */
void
snowflake_find_trigger_obstacles(const SnowflakeConversion *conversion,
								 List **obstacles)
{
	ask_obstacles(conversion, "", trigger_obstacles,
				  lengthof(trigger_obstacles), obstacles);
}

/*
 * Find the obstacles that the catalogs show.
 */
void
snowflake_find_obstacles(const SnowflakeConversion *conversion,
						 List **obstacles)
{
	ask_obstacles(conversion, "", column_obstacles, lengthof(column_obstacles),
				  obstacles);
	if (!conversion->online)
	{
		ask_obstacles(conversion, "", dependent_obstacles,
					  lengthof(dependent_obstacles), obstacles);
		ask_obstacles(conversion, snowflake_rebuilt, rebuilt_obstacles,
					  lengthof(rebuilt_obstacles), obstacles);
		snowflake_find_trigger_obstacles(conversion, obstacles);
	}
	snowflake_find_type_obstacles(conversion, obstacles);
	if (sets_default(conversion))
	{
		ask_obstacles(conversion, "", key_obstacles, lengthof(key_obstacles),
					  obstacles);
		Assert(conversion->names[0] != (Datum) 0);
		ask_obstacles(conversion, snowflake_sequences, sequence_obstacles,
					  lengthof(sequence_obstacles), obstacles);
	}
	ask_obstacles(conversion, psprintf("%s%s", snowflake_changed_tables, OWNED),
				  table_obstacles, lengthof(table_obstacles), obstacles);
	if (!conversion->online)
		ask_obstacles(conversion, psprintf("%s%s", snowflake_changed_tables, OWNED),
					  begun_obstacles, lengthof(begun_obstacles), obstacles);
	if (can_read("pg_dist_partition") && can_read("pg_dist_local_group"))
		ask_obstacles(conversion, snowflake_changed_tables, citus_obstacles,
					  lengthof(citus_obstacles), obstacles);
}

/*
 * Fail if there are obstacles, and list all of them, each hint once.
 */
void
snowflake_report_obstacles(const SnowflakeConversion *conversion,
						   const List *obstacles)
{
	SnowflakeKey *key = linitial(conversion->keys);
	StringInfoData lines;
	StringInfoData hints;
	ListCell   *cell;

	if (obstacles == NIL)
		return;
	initStringInfo(&lines);
	initStringInfo(&hints);
	foreach(cell, obstacles)
	{
		const SnowflakeObstacle *obstacle = lfirst(cell);

		appendStringInfo(&lines, "%s%s", lines.len > 0 ? "\n" : "",
						 obstacle->line);
		if (strstr(hints.data, obstacle->hint) == NULL)
			appendStringInfo(&hints, " %s", obstacle->hint);
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 OidIsValid(conversion->schema) ?
			 errmsg("cannot convert the tables of schema \"%s\"",
					get_namespace_name(conversion->schema)) :
			 errmsg("cannot convert column \"%s\" of table %s", key->column,
					key->table),
			 errdetail_internal("%s", lines.data),
			 errhint("Nothing was changed.%s", hints.data)));
}
