/*-------------------------------------------------------------------------
 *
 * convert.c
 *	  snowflake_convert(): change an integer column to bigint, with a generator
 *	  of IDs as its default, and all columns that reference it to bigint.
 *
 * Converting a table evaluates code of its owner: expressions of indexes,
 * statistics, constraints, and partition keys, the functions that they call,
 * and the generator.  The caller may be a superuser, and the owner anybody.
 * So, like REINDEX, CLUSTER, and REFRESH MATERIALIZED VIEW:
 *
 * - Everything runs as the owner of the table, in a security-restricted
 *	 operation, with settings of its own.
 * - The catalogs are queried with SQL, whose names are looked up in pg_catalog
 *	 only.  The queries are not in functions of the extension, because the
 *	 owner might not have the privilege to call them.
 * - Tables are locked by OID before they are examined, and the locks are held
 *	 until the end of the transaction, so a name refers to the same table
 *	 throughout.  Only a schema can still be renamed, so the result is looked
 *	 up by OID.
 * - All tables that are altered, and those whose foreign keys are checked
 *	 again, have the same owner.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/convert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "generator.h"
#include "scheme.h"
#include "table.h"

/* The arrays that walk_query returns: tables, columns, and is_key. */
#define TARGET_NARRAYS	3

/* The column to convert, and how. */
typedef struct Conversion
{
	Oid			relid;			/* the table */
	char	   *table;			/* its qualified name, when it is locked */
	AttrNumber	attnum;			/* the column */
	char	   *column;			/* its name */
	Oid			generator;		/* function that makes the IDs */
	bool		snowflakes;		/* are they snowflake IDs? */
	bool		dry_run;
	bool		set_default;	/* is the generator not the default yet? */
	Datum		targets[TARGET_NARRAYS];	/* see find_targets() */
} Conversion;

/* Obstacles, one per line, and hints, as sentences. */
typedef struct Obstacles
{
	StringInfoData lines;
	StringInfoData hints;
} Obstacles;

PG_FUNCTION_INFO_V1(snowflake_convert);

/*
 * The column, all that reference it, and the same column of their partitions,
 * children and parents, transitively.  is_key is true for the column itself,
 * and that of its partitions and children.
 */
static const char walk_query[] =
"WITH RECURSIVE walk(relid, attnum, is_key) AS ("
"  SELECT $1::oid, $2, true"
"  UNION"
"  SELECT n.relid, n.attnum, n.is_key"
"  FROM walk w"
"    JOIN pg_attribute this ON (this.attrelid, this.attnum) = (w.relid, w.attnum)"
"    JOIN pg_type y ON y.oid = this.atttypid"
"    CROSS JOIN LATERAL ("
/* a column of a foreign key that references this one, */
"      SELECT c.conrelid, k.referencing, false"
"      FROM pg_constraint c, unnest(c.conkey, c.confkey) k(referencing, referenced)"
"      WHERE c.contype = 'f' AND c.confrelid = w.relid AND k.referenced = w.attnum"
"      UNION ALL"
/* the same column of a partition or child, */
"      SELECT a.attrelid, a.attnum, w.is_key"
"      FROM pg_inherits i JOIN pg_attribute a ON a.attrelid = i.inhrelid"
"      WHERE i.inhparent = w.relid AND a.attname = this.attname AND NOT a.attisdropped"
"      UNION ALL"
/* and of a parent */
"      SELECT a.attrelid, a.attnum, false"
"      FROM pg_inherits i JOIN pg_attribute a ON a.attrelid = i.inhparent"
"      WHERE i.inhrelid = w.relid AND a.attname = this.attname AND NOT a.attisdropped"
"      AND this.attinhcount > 0"
"    ) n(relid, attnum, is_key)"
"  WHERE y.oid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)"
"  OR y.typbasetype = 'int8'::regtype),"
" once AS ("
"  SELECT relid, attnum, bool_or(is_key) AS is_key FROM walk GROUP BY relid, attnum) "
"SELECT array_agg(relid ORDER BY relid, attnum),"
"  array_agg(attnum ORDER BY relid, attnum),"
"  array_agg(is_key ORDER BY relid, attnum)"
" FROM once";

/*
 * The beginning of all other queries: the columns that were found.  change
 * says what to do: widen a smallint or integer, keep a bigint, or that the
 * column cannot be converted because it has another type.
 */
static const char target_query[] =
"WITH RECURSIVE target AS ("
"  SELECT w.relid, w.attnum, w.is_key, a.attname, a.attinhcount,"
"    CASE WHEN y.oid IN ('int2'::regtype, 'int4'::regtype) THEN 'widen'"
"      WHEN 'int8'::regtype IN (y.oid, y.typbasetype) THEN 'keep'"
"      ELSE 'cannot' END AS change,"
"    format('table %s', w.relid::regclass) AS table_name,"
"    format('column %I of table %s', a.attname, w.relid::regclass) AS column_name"
"  FROM unnest($5, $6, $7) w(relid, attnum, is_key)"
"    JOIN pg_attribute a ON (a.attrelid, a.attnum) = (w.relid, w.attnum)"
"    JOIN pg_type y ON y.oid = a.atttypid) ";

/*
 * Run a query.  The parameters are $1 the table, $2 the column, $3 the
 * generator, $4 whether it must become the default, and $5 to $7 the columns
 * that find_targets() found.
 */
static void
run_query(const Conversion *conversion, const char *query)
{
	Oid			types[] = {REGCLASSOID, INT2OID, REGPROCEDUREOID, BOOLOID,
	OIDARRAYOID, INT2ARRAYOID, BOOLARRAYOID};
	Datum		values[lengthof(types)];
	char		nulls[lengthof(types)];

	values[0] = ObjectIdGetDatum(conversion->relid);
	values[1] = Int16GetDatum(conversion->attnum);
	values[2] = ObjectIdGetDatum(conversion->generator);
	values[3] = BoolGetDatum(conversion->set_default);
	memset(nulls, ' ', sizeof(nulls));
	for (int i = 0; i < TARGET_NARRAYS; i++)
	{
		values[4 + i] = conversion->targets[i];
		nulls[4 + i] = conversion->targets[i] == (Datum) 0 ? 'n' : ' ';
	}
	if (SPI_execute_with_args(query, lengthof(types), types, values, nulls,
							  false, 0) != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", query);
}

/*
 * Run a query about the columns.
 */
static void
ask(const Conversion *conversion, const char *query)
{
	run_query(conversion, psprintf("%s%s", target_query, query));
}

/*
 * A column of the result of a query, as text; NULL for a null.
 */
static char *
answer(uint64 row, int column)
{
	return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						column);
}

/*
 * Is the result of a query one row, with true in it?
 */
static bool
answer_is_true(void)
{
	return SPI_processed == 1 && strcmp(answer(0, 1), "t") == 0;
}

/*
 * Fail if the generator is not a function without arguments that returns a
 * bigint.
 */
static void
check_generator(Oid generator)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(generator));
	Form_pg_proc form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function with OID %u does not exist", generator)));
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prokind != PROKIND_FUNCTION || form->pronargs != 0 ||
		form->prorettype != INT8OID || form->proretset)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("function %s cannot be used as a generator of IDs",
						format_procedure(generator)),
				 errdetail("A generator must be a function without arguments that returns a single bigint.")));
	ReleaseSysCache(tuple);
}

/*
 * Find the column, by its name or as the primary key, and check its type.
 */
static void
find_column(Conversion *conversion, const char *name)
{
	Oid			type;

	if (name != NULL)
	{
		conversion->attnum = get_attnum(conversion->relid, name);
		if (conversion->attnum <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of table %s does not exist",
							name, conversion->table)));
	}
	else
	{
		run_query(conversion,
				  "SELECT indkey[0] FROM pg_index"
				  " WHERE indrelid = $1 AND indisprimary AND indnkeyatts = 1");
		if (SPI_processed != 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("table %s has no single-column primary key",
							conversion->table),
					 errhint("Specify the column to convert.")));
		conversion->attnum = pg_strtoint16(answer(0, 1));
	}
	conversion->column = get_attname(conversion->relid, conversion->attnum,
									 false);

	type = get_atttype(conversion->relid, conversion->attnum);
	if (type != INT2OID && type != INT4OID && type != INT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table %s is not of an integer type",
						conversion->column, conversion->table),
				 errdetail("Its type is %s.", format_type_be(type))));
}

/*
 * Is the column a bigint with the generator as its default?
 */
static bool
has_default(const Conversion *conversion)
{
	run_query(conversion,
			  "SELECT a.atttypid = 'int8'::regtype"
			  " AND pg_get_expr(d.adbin, d.adrelid) = $3::text"
			  " FROM pg_attribute a JOIN pg_attrdef d"
			  " ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)"
			  " WHERE a.attrelid = $1 AND a.attnum = $2");
	return answer_is_true();
}

/*
 * Find the columns that must be converted together.
 */
static void
find_targets(Conversion *conversion)
{
	bool		isnull;

	/* The result is kept until SPI_finish(). */
	run_query(conversion, walk_query);
	for (int i = 0; i < TARGET_NARRAYS; i++)
		conversion->targets[i] = SPI_getbinval(SPI_tuptable->vals[0],
											   SPI_tuptable->tupdesc,
											   i + 1, &isnull);
}

/*
 * A further CTE: the tables that are altered, and those at the other end of a
 * foreign key that is created again.
 */
#define CHANGED \
", changed(relid) AS (" \
"  SELECT relid FROM target WHERE is_key AND $4 OR change = 'widen'" \
"  UNION" \
"  SELECT unnest(ARRAY[c.conrelid, c.confrelid])" \
"  FROM target t JOIN pg_constraint c ON c.contype = 'f'" \
"    AND (c.confrelid = t.relid AND t.attnum = ANY (c.confkey)" \
"         OR c.conrelid = t.relid AND t.attnum = ANY (c.conkey))" \
"  WHERE t.change = 'widen')"

/*
 * Lock the tables that ALTER TABLE will lock.  Tables that only reference them
 * get a lock that allows reads and writes, but no new foreign key, which would
 * need a stronger one.  New tables may have appeared while waiting for a lock,
 * so repeat until there are none.  Tables of other owners are obstacles.
 */
static void
lock_tables(Conversion *conversion, Oid owner)
{
	char	   *before = NULL;

	for (;;)
	{
		StringInfoData now;
		uint64		ntables;
		Oid		   *tables;
		bool	   *altered;

		find_targets(conversion);
		ask(conversion,
			CHANGED
			" SELECT relid, true FROM changed"
			" UNION"
			" SELECT relid, false FROM target"
			" WHERE relid NOT IN (SELECT relid FROM changed)"
			" ORDER BY 1");
		ntables = SPI_processed;
		tables = palloc_array(Oid, ntables);
		altered = palloc_array(bool, ntables);
		initStringInfo(&now);
		for (uint64 i = 0; i < ntables; i++)
		{
			tables[i] = atooid(answer(i, 1));
			altered[i] = strcmp(answer(i, 2), "t") == 0;
			appendStringInfo(&now, "%u %d\n", tables[i], altered[i]);
		}
		if (before != NULL && strcmp(before, now.data) == 0)
			return;
		before = now.data;

		for (uint64 i = 0; i < ntables; i++)
		{
			if (!altered[i])
				LockRelationOid(tables[i], RowExclusiveLock);
			else if (snowflake_table_owner(tables[i]) == owner)
				LockRelationOid(tables[i], AccessExclusiveLock);
		}
	}
}

/*
 * What prevents columns from becoming bigint, and what to do about it.  A
 * holder is a type that contains the row type of a table.
 */
static const char type_obstacles[] =
", holder(table_name, typid) AS ("
"  SELECT t.table_name, r.reltype"
"  FROM target t JOIN pg_class r ON r.oid = t.relid"
"  WHERE t.change = 'widen'"
"  UNION"
"  SELECT h.table_name, coalesce(c.reltype, d.objid)"
"  FROM holder h"
"    JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = h.typid"
"    LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND d.objsubid > 0"
"  WHERE d.classid = 'pg_type'::regclass OR c.relkind IN ('c', 'v', 'f'))"
"SELECT format('%s has type %s, but references a column that becomes bigint',"
"    t.column_name, format_type(a.atttypid, a.atttypmod)) COLLATE \"C\" AS obstacle,"
"  'Change the type of columns that are not of an integer type, or drop their foreign keys.' AS hint"
" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
" WHERE t.change = 'cannot'"
" UNION "
"SELECT format('%s depends on %s', pg_describe_object(d.classid, d.objid, d.objsubid), t.column_name),"
"  'Drop objects that depend on a column, convert, and create them again.'"
" FROM target t"
"  JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass"
"    AND d.refobjid = t.relid AND d.refobjsubid = t.attnum"
"  LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid"
"  LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid"
" WHERE t.change = 'widen'"
" AND (d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass,"
"                    'pg_proc'::regclass, 'pg_publication_rel'::regclass)"
"      OR NOT g.tgisinternal"
"      OR (f.adrelid, f.adnum) <> (t.relid, t.attnum))"
" UNION "
"SELECT format('%s is part of the partition key', t.column_name),"
"  'The type of a partition key column cannot be changed. Create a new table with a bigint column and move the rows.'"
" FROM target t"
/* Columns in the key, or in its expressions, depend on the table. */
"  JOIN pg_depend d ON (d.classid, d.objid, d.objsubid) = ('pg_class'::regclass, t.relid, t.attnum)"
"    AND (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, t.relid, 0)"
" WHERE t.change = 'widen' AND d.deptype = 'i'"
" UNION "
"SELECT format('column %I of %s uses the row type of %s', a.attname, c.oid::regclass, h.table_name),"
"  'Drop columns that use the row type, or change their type.'"
" FROM holder h"
"  JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = h.typid"
"    AND d.classid = 'pg_class'::regclass"
"  JOIN pg_class c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm')"
"  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.objid, d.objsubid)"
" UNION "
"SELECT format('%s is a typed table of type %s', t.table_name, format_type(r.reloftype, NULL)),"
"  'Run ALTER TABLE ... NOT OF on typed tables.'"
" FROM target t JOIN pg_class r ON r.oid = t.relid"
" WHERE t.change = 'widen' AND r.reloftype <> 0"
" UNION "
"SELECT format('%s is inherited from several parent tables', t.column_name),"
"  'Run ALTER TABLE ... NO INHERIT, so that each table has one parent.'"
" FROM target t WHERE t.change = 'widen' AND t.attinhcount > 1"
" UNION "
"SELECT format('%s is a generated column', t.column_name),"
"  'Drop generated columns, convert, and add them again.'"
" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
" WHERE t.change = 'widen' AND a.attgenerated <> '' AND NOT t.is_key"
" UNION "
"SELECT format('constraint %I of %s is named %I in table %s', c.conname, t.table_name, p.conname, p.conrelid::regclass),"
"  'Give not-null constraints the name that they have in the parent table:"
" run ALTER TABLE ... NO INHERIT, then RENAME CONSTRAINT, then INHERIT.'"
" FROM target t"
/* Since 18: PostgreSQL cannot make such a constraint again. */
"  JOIN pg_constraint c ON c.contype = 'n' AND c.conrelid = t.relid AND t.attnum = ANY (c.conkey)"
"  JOIN pg_inherits i ON i.inhrelid = t.relid"
"  JOIN pg_attribute a ON a.attrelid = i.inhparent AND a.attname = t.attname"
"  JOIN pg_constraint p ON p.contype = 'n' AND p.conrelid = a.attrelid AND a.attnum = ANY (p.conkey)"
" WHERE t.change = 'widen' AND c.conislocal AND c.coninhcount > 0 AND p.conname <> c.conname"
" UNION "
"SELECT format('%s belongs to a foreign table', t.column_name),"
"  'Remove foreign tables from the inheritance tree, convert the tables on their own servers, and change the column type of the foreign tables.'"
" FROM target t JOIN pg_class r ON r.oid = t.relid"
" WHERE t.change = 'widen' AND r.relkind = 'f'"
" ORDER BY 1, 2";

/*
 * What prevents tables from being altered, and their foreign keys from being
 * checked.
 */
static const char table_obstacles[] =
CHANGED
", owned AS ("
"  SELECT r.oid, r.oid::regclass AS name, r.relnamespace, r.relowner,"
"    r.relrowsecurity AND r.relforcerowsecurity AS forced,"
"    o.rolname, o.rolsuper OR o.rolbypassrls AS bypasses"
"  FROM changed c JOIN pg_class r ON r.oid = c.relid"
"    JOIN pg_roles o ON o.oid = r.relowner) "
"SELECT format('table %s is owned by role %I, but table %s by role %I', t.name, t.rolname, k.name, k.rolname) COLLATE \"C\" AS obstacle,"
"  'The conversion runs code of indexes and constraints of all these tables as one role."
" If the owners trust each other, give the tables the same owner for the conversion (ALTER TABLE ... OWNER TO).' AS hint"
" FROM owned t JOIN owned k ON k.oid = $1::oid AND k.relowner <> t.relowner"
" UNION "
"SELECT format('row-level security is forced for role %2$I, the owner of table %1$s', name, rolname),"
"  'Run ALTER TABLE ... NO FORCE ROW LEVEL SECURITY before the conversion and FORCE ROW LEVEL SECURITY after it, in one transaction.'"
" FROM owned WHERE forced AND NOT bypasses"
" UNION "
"SELECT format('role %I, the owner of table %s, lacks USAGE on schema %s', rolname, name, relnamespace::regnamespace),"
"  'Grant the owner of each table USAGE on its schema.'"
" FROM owned WHERE NOT has_schema_privilege(relowner, relnamespace, 'USAGE')"
" ORDER BY 1, 2";

/*
 * What prevents the column from having the generator as its default.
 */
static const char key_obstacles[] =
"SELECT format('%s is a generated column', t.column_name) COLLATE \"C\" AS obstacle,"
"  'A generated column cannot have a default. Drop it and add it as a bigint column.' AS hint"
" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
" WHERE t.is_key AND a.attgenerated <> ''"
" UNION "
"SELECT format('%s is inherited from table %s', t.column_name, i.inhparent::regclass),"
"  'Convert the parent table, which also converts its children.'"
" FROM target t"
"  JOIN pg_inherits i ON i.inhrelid = t.relid"
"  JOIN pg_attribute p ON p.attrelid = i.inhparent AND p.attname = t.attname AND NOT p.attisdropped"
" WHERE t.relid = $1::oid AND t.attnum = $2 AND t.attinhcount > 0"
" UNION "
"SELECT format('%s is a foreign key column: constraint %I references table %s',"
"    t.column_name, c.conname, c.confrelid::regclass),"
"  'The values of a foreign key come from the referenced table. Convert that table.'"
" FROM target t"
"  JOIN pg_constraint c ON c.contype = 'f' AND c.conparentid = 0"
"    AND c.conrelid = t.relid AND t.attnum = ANY (c.conkey)"
" WHERE t.is_key"
" UNION "
"SELECT format('role %I, the owner of table %s, lacks %s', o.rolname, r.oid::regclass, p.what),"
"  'Grant the table owner the privileges that the generator requires.'"
" FROM pg_class r JOIN pg_roles o ON o.oid = r.relowner"
"  JOIN pg_proc f ON f.oid = $3::oid"
"  CROSS JOIN LATERAL (VALUES"
"    (format('USAGE on schema %s', f.pronamespace::regnamespace),"
"     has_schema_privilege(o.oid, f.pronamespace, 'USAGE')),"
"    (format('EXECUTE on function %s', $3),"
"     has_function_privilege(o.oid, f.oid, 'EXECUTE'))) p(what, has)"
" WHERE r.oid = $1::oid AND NOT p.has"
" ORDER BY 1, 2";

/*
 * Add an obstacle, and its hint unless that is already there.
 */
static void
add_obstacle(Obstacles *obstacles, const char *line, const char *hint)
{
	if (obstacles->lines.len > 0)
		appendStringInfoChar(&obstacles->lines, '\n');
	appendStringInfoString(&obstacles->lines, line);
	if (strstr(obstacles->hints.data, hint) == NULL)
		appendStringInfo(&obstacles->hints, " %s", hint);
}

/*
 * Add the obstacles that a query finds.
 */
static void
ask_obstacles(const Conversion *conversion, const char *query,
			  Obstacles *obstacles)
{
	ask(conversion, query);
	for (uint64 i = 0; i < SPI_processed; i++)
		add_obstacle(obstacles, answer(i, 1), answer(i, 2));
}

/*
 * Run a query that returns a single value, as text, or NULL.
 */
static char *
get_value(const char *query)
{
	if (SPI_execute(query, false, 1) < 0 || SPI_processed != 1)
		elog(ERROR, "query failed: %s", query);
	return answer(0, 1);
}

/*
 * The RANGE and LIST partition keys that contain the column, if it is a
 * bigint: the key expression if it depends on this column alone, otherwise
 * NULL.
 */
static const char partition_keys[] =
", part AS ("
"  SELECT t.relid, t.attnum, p.partnatts, p.partexprs, array_agg(d.objsubid) AS used"
"  FROM target t"
"    JOIN pg_partitioned_table p ON p.partrelid = t.relid AND p.partstrat <> 'h'"
/* Columns in the key, or in its expressions, depend on the table. */
"    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = t.relid AND d.objsubid > 0"
"      AND (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, t.relid, 0)"
"      AND d.deptype = 'i'"
"  WHERE t.is_key AND t.change = 'keep'"
"  GROUP BY t.relid, t.attnum, p.partnatts, p.partexprs) "
"SELECT DISTINCT CASE WHEN partexprs IS NOT NULL AND partnatts = 1 AND used = ARRAY[attnum::int]"
"  THEN pg_get_expr(partexprs, relid) END"
" FROM part WHERE attnum = ANY (used) ORDER BY 1";

/*
 * Is there a partition for an ID?  The planner knows: it prunes partitions
 * that cannot contain the ID, and if none is left, the plan is a constant
 * false.  The value of a key expression must be added to the query.  If the
 * key has other columns too, it is enough that there is a partition for some
 * of their values.
 */
static bool
has_partition(const Conversion *conversion, const char *id)
{
	StringInfoData query;
	const char *column = quote_identifier(conversion->column);
	char	  **expressions;
	uint64		nkeys;

	ask(conversion, partition_keys);
	nkeys = SPI_processed;
	if (nkeys == 0)
		return true;
	expressions = palloc(nkeys * sizeof(char *));
	for (uint64 i = 0; i < nkeys; i++)
		expressions[i] = answer(i, 1);

	initStringInfo(&query);
	appendStringInfo(&query,
					 "EXPLAIN (FORMAT JSON, COSTS OFF) SELECT FROM %s WHERE %s = %s::bigint",
					 conversion->table, column, id);
	for (uint64 i = 0; i < nkeys; i++)
	{
		char	   *value;

		if (expressions[i] == NULL)
			continue;
		value = get_value(psprintf("SELECT (%s)::text FROM (SELECT %s::bigint AS %s) r",
								   expressions[i], id, column));
		if (value == NULL)
			appendStringInfo(&query, " AND (%s) IS NULL", expressions[i]);
		else
			appendStringInfo(&query, " AND (%s) = %s", expressions[i],
							 quote_literal_cstr(value));
	}
	return strstr(get_value(query.data),
				  "\"One-Time Filter\": \"false\"") == NULL;
}

/*
 * A snowflake ID of a year later, or of the end of the scheme.
 */
static char *
a_year_later(const char *id)
{
	const SnowflakeScheme *scheme = snowflake_server_scheme();
	int64		tick = snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP,
										   pg_strtoint64(id));
	int64		year = 365 * USECS_PER_DAY / scheme->tick_us;
	int64		last = snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP);

	return psprintf(INT64_FORMAT,
					snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP,
										Min(tick, last - year) + year));
}

/*
 * Check that rows are below new IDs, and that there are partitions for them.
 */
static void
check_ids(const Conversion *conversion, Obstacles *obstacles)
{
	const char *when[] = {"now", "a year from now"};
	char	   *ids[] = {NULL, NULL};
	char	   *greatest;

	ids[0] = get_value(psprintf("SELECT %s.%s()",
								quote_identifier(get_namespace_name(get_func_namespace(conversion->generator))),
								quote_identifier(get_func_name(conversion->generator))));
	if (ids[0] == NULL)
	{
		add_obstacle(obstacles, "the generator returned null",
					 "Use a generator that always returns an ID.");
		return;
	}
	if (conversion->snowflakes)
		ids[1] = a_year_later(ids[0]);

	greatest = get_value(psprintf("SELECT max(%s) FROM %s",
								  quote_identifier(conversion->column),
								  conversion->table));
	if (greatest != NULL && pg_strtoint64(greatest) >= pg_strtoint64(ids[0]))
		add_obstacle(obstacles,
					 psprintf("table %s contains the value %s, which is not below new IDs",
							  conversion->table, greatest),
					 "Change values that are not below new IDs.");

	for (size_t i = 0; i < lengthof(ids) && ids[i] != NULL; i++)
	{
		if (!has_partition(conversion, ids[i]))
			add_obstacle(obstacles,
						 psprintf("table %s has no partition for IDs made %s",
								  conversion->table, when[i]),
						 "Add partitions for new IDs; snowflake_lower_bound() returns the first ID of a point in time.");
	}
}

/*
 * Fail if there are obstacles, and list all of them.
 */
static void
check_obstacles(const Conversion *conversion)
{
	Obstacles	obstacles;

	initStringInfo(&obstacles.lines);
	initStringInfo(&obstacles.hints);
	ask_obstacles(conversion, type_obstacles, &obstacles);
	if (conversion->set_default)
		ask_obstacles(conversion, key_obstacles, &obstacles);
	ask_obstacles(conversion, table_obstacles, &obstacles);

	/* With some obstacles, the rows or the generator cannot be accessed. */
	if (conversion->set_default && obstacles.lines.len == 0)
		check_ids(conversion, &obstacles);

	if (obstacles.lines.len > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot convert column \"%s\" of table %s",
						conversion->column, conversion->table),
				 errdetail_internal("%s", obstacles.lines.data),
				 errhint("Nothing was changed.%s", obstacles.hints.data)));
}

/*
 * Further CTEs: the sequences that the column, or that of a partition or
 * child, owns or has in its default; unused if nothing else uses them.
 */
#define SEQUENCES \
", used(seqid, owned) AS (" \
"  SELECT d.objid, true FROM target t" \
"    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.deptype = 'a'" \
"      AND (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, t.relid, t.attnum)" \
"  WHERE t.is_key" \
"  UNION ALL" \
"  SELECT d.refobjid, false FROM target t" \
"    JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (t.relid, t.attnum)" \
"    JOIN pg_depend d ON (d.classid, d.objid) = ('pg_attrdef'::regclass, f.oid)" \
"      AND d.refclassid = 'pg_class'::regclass" \
"  WHERE t.is_key)," \
" seq AS (" \
"  SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, bool_or(u.owned) AS owned," \
"    NOT EXISTS (" \
"      SELECT FROM pg_depend d" \
"        LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid" \
"        LEFT JOIN target t ON t.is_key AND (t.relid, t.attnum) = (f.adrelid, f.adnum)" \
"      WHERE (d.refclassid, d.refobjid) = ('pg_class'::regclass, c.oid)" \
"      AND t.relid IS NULL) AS unused" \
"  FROM used u" \
"    JOIN pg_class c ON c.oid = u.seqid AND c.relkind = 'S'" \
"    JOIN pg_namespace n ON n.oid = c.relnamespace" \
"  GROUP BY c.oid, n.nspname, c.relname) "

/*
 * What an administrator needs to know besides the statements: notice, detail,
 * and hint.
 */
static const char notices[] =
SEQUENCES
", defaults AS ("
"  SELECT t.*, pg_get_expr(f.adbin, f.adrelid) AS expression"
"  FROM target t JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (t.relid, t.attnum)"
"  WHERE t.is_key AND $4) "
"SELECT 'columns are changed to type bigint',"
"  string_agg(format('%s (%s)', t.column_name, format_type(a.atttypid, NULL)), E'\\n'"
"             ORDER BY t.column_name COLLATE \"C\"),"
"  'Use 64-bit integers for these columns in the application, and have it reconnect.'"
" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
" WHERE t.change = 'widen' AND t.attinhcount = 0"
" HAVING count(*) > 0"
" UNION ALL "
"(SELECT format('default of %s is replaced', d.column_name), format('The default was %s.', d.expression), NULL"
" FROM defaults d LEFT JOIN defaults k ON k.relid = $1::oid"
" WHERE d.relid <> $1::oid AND d.expression <> $3::text"
" AND d.expression IS DISTINCT FROM k.expression"
" ORDER BY d.column_name COLLATE \"C\")"
" UNION ALL "
"SELECT format('%s had no default', t.column_name),"
"  'The application supplied the values.',"
"  'Omit the column from INSERT in the application. If the application continues to supply values, for example from a sequence, they are not snowflake IDs.'"
" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
" WHERE t.relid = $1::oid AND t.attnum = $2 AND $4 AND a.attidentity = ''"
" AND NOT EXISTS (SELECT FROM defaults d WHERE (d.relid, d.attnum) = (t.relid, t.attnum))"
" UNION ALL "
"(SELECT format('sequence %s is kept', name),"
"  CASE WHEN owned THEN 'Other objects use it.' ELSE 'The column does not own it.' END,"
"  'An application that uses the sequence gets numbers that are not snowflake IDs. Drop it when nothing uses it anymore.'"
" FROM seq WHERE $4 AND NOT (owned AND unused)"
" ORDER BY name COLLATE \"C\")";

/*
 * The statements, in their order.  The default goes first: Citus, for example,
 * does not allow changing the type of a column whose default is a sequence.
 * Since 17, partitions have the identity of their table, and lose it with it.
 */
static const char statements_query[] =
SEQUENCES
", altered AS ("
"  SELECT t.*, format('%I.%I', n.nspname, r.relname) AS name, r.relispartition"
"  FROM target t JOIN pg_class r ON r.oid = t.relid"
"    JOIN pg_namespace n ON n.oid = r.relnamespace),"
" statement(step, other, name, command) AS ("
"  SELECT 1, t.relid <> $1::oid, t.name,"
"    format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', t.name, t.attname)"
"  FROM altered t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
"  WHERE $4 AND t.is_key AND a.attidentity <> ''"
"  AND (t.relid = $1::oid OR NOT t.relispartition"
"       OR current_setting('server_version_num')::int < 170000)"
"  UNION ALL"
"  SELECT 2, false, t.name,"
"    format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %I.%I()',"
"           t.name, t.attname, n.nspname, f.proname)"
"  FROM altered t, pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace"
"  WHERE $4 AND t.relid = $1::oid AND t.attnum = $2 AND f.oid = $3::oid"
"  UNION ALL"
"  SELECT 3, false, name, format('DROP SEQUENCE %s', name)"
"  FROM seq WHERE $4 AND owned AND unused"
"  UNION ALL"
"  SELECT 4, relid <> $1::oid, name,"
"    format('ALTER TABLE %s %s', name,"
"           string_agg(format('ALTER COLUMN %I TYPE bigint', attname), ', ' ORDER BY attnum))"
"  FROM altered WHERE change = 'widen' AND attinhcount = 0"
"  GROUP BY relid, name) "
"SELECT command FROM statement ORDER BY step, other, name COLLATE \"C\"";

/*
 * Report what the statements do not show.
 */
static void
give_notices(const Conversion *conversion)
{
	ask(conversion, notices);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *detail = answer(i, 2);
		char	   *hint = answer(i, 3);

		ereport(NOTICE,
				(errmsg_internal("%s", answer(i, 1)),
				 detail != NULL ? errdetail_internal("%s", detail) : 0,
				 hint != NULL ? errhint("%s", hint) : 0));
	}
}

/*
 * Execute the statements, unless it is a dry run, and return them.
 */
static void
execute_statements(const Conversion *conversion, ReturnSetInfo *rsinfo)
{
	uint64		nstatements;
	char	  **statements;

	ask(conversion, statements_query);
	nstatements = SPI_processed;
	statements = palloc_array(char *, nstatements);
	for (uint64 i = 0; i < nstatements; i++)
		statements[i] = answer(i, 1);

	if (nstatements == 0)
		ereport(NOTICE,
				(errmsg("column \"%s\" of table %s is already converted",
						conversion->column, conversion->table)));

	for (uint64 i = 0; i < nstatements; i++)
	{
		Datum		value = CStringGetTextDatum(statements[i]);
		bool		isnull = false;

		if (!conversion->dry_run &&
			SPI_execute(statements[i], false, 0) != SPI_OK_UTILITY)
			elog(ERROR, "statement failed: %s", statements[i]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc,
							 &value, &isnull);
	}
}

/*
 * Fail if the statements did not have the expected result: a schema was
 * renamed, or an event trigger interfered.
 */
static void
check_result(Conversion *conversion)
{
	find_targets(conversion);
	ask(conversion,
		"SELECT NOT EXISTS (SELECT FROM target WHERE change = 'widen')");
	if (!answer_is_true() || !has_default(conversion))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("column \"%s\" of table %s was changed during the conversion",
						conversion->column, conversion->table),
				 errhint("Check for event triggers and for sessions that rename schemas.")));
}

/*
 * snowflake_convert(relation regclass, column_name name, dry_run boolean,
 *					 generator regprocedure) returns setof text
 */
Datum
snowflake_convert(PG_FUNCTION_ARGS)
{
	Conversion	conversion = {0};
	Oid			namespace = get_func_namespace(fcinfo->flinfo->fn_oid);
	Oid			nextval;
	Oid			owner;
	SnowflakeCaller caller;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		return (Datum) 0;

	/* The snapshot may be older than some rows and foreign keys. */
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot convert a table in a transaction with isolation level %s",
						XactIsoLevel == XACT_SERIALIZABLE ? "SERIALIZABLE" : "REPEATABLE READ"),
				 errdetail("The snapshot of the transaction might not contain all rows and foreign keys."),
				 errhint("Use BEGIN ISOLATION LEVEL READ COMMITTED.")));

	conversion.relid = PG_GETARG_OID(0);
	conversion.dry_run = PG_GETARG_BOOL(2);
	nextval = snowflake_find_function(namespace, "snowflake_nextval");
	conversion.generator = PG_ARGISNULL(3) ? nextval : PG_GETARG_OID(3);
	conversion.snowflakes = conversion.generator == nextval ||
		conversion.generator == snowflake_find_function(namespace, "snowflake_id");
	check_generator(conversion.generator);
	owner = snowflake_lock_table(conversion.relid,
								 conversion.dry_run ? AccessShareLock : AccessExclusiveLock);
	conversion.table = snowflake_relation_name(conversion.relid);

	snowflake_become_owner(owner, &caller);
	SPI_connect();

	find_column(&conversion, PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)));
	conversion.set_default = true;
	if (conversion.dry_run)
		find_targets(&conversion);
	else
		lock_tables(&conversion, owner);
	conversion.set_default = !has_default(&conversion);
	check_obstacles(&conversion);
	give_notices(&conversion);
	execute_statements(&conversion, (ReturnSetInfo *) fcinfo->resultinfo);
	if (!conversion.dry_run)
		check_result(&conversion);

	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
