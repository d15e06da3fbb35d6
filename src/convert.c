/*-------------------------------------------------------------------------
 *
 * convert.c
 *	  snowflake_convert(): change an integer column to bigint, with a generator
 *	  of IDs as its default, and all columns that reference it to bigint.
 *
 * In order: lock the tables; list what prevents the conversion, if anything
 * does; give notices; execute the statements; check the result.  convert.h
 * says which file has what.
 *
 * Converting a table evaluates code of its owner: expressions of indexes,
 * statistics, constraints, and partition keys, the functions that they call,
 * and the generator.  The caller may be a superuser, and the owner anybody.
 * So, like REINDEX, CLUSTER, and REFRESH MATERIALIZED VIEW:
 *
 * - Everything runs as the owner of the table, in a security-restricted
 *	 operation, with settings of its own.
 * - Tables are locked by OID before they are examined, and the locks are held
 *	 until the end of the transaction, so a name refers to the same table
 *	 throughout.  Only a schema can still be renamed, so the result is looked
 *	 up by OID.
 * - All tables that are altered, and those whose foreign keys are checked
 *	 again, have the same owner.
 *
 * The column may be converted in part, or by hand, before: what has to be done
 * is read from the catalogs each time.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/convert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "rewrite/rewriteHandler.h"
#include "rewrite/rewriteManip.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "convert.h"
#include "table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert);

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
find_column(SnowflakeConversion *conversion, const char *name)
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
		List	   *rows = snowflake_ask(conversion,
										 "SELECT indkey[0] FROM pg_index"
										 " WHERE indrelid = $1 AND indisprimary AND indnkeyatts = 1");

		if (rows == NIL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("table %s has no single-column primary key",
							conversion->table),
					 errhint("Specify the column to convert.")));
		conversion->attnum = pg_strtoint16(((char **) linitial(rows))[0]);
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
 * The function that a default calls without arguments for a bigint, if that is
 * all that the default is; otherwise InvalidOid.
 */
static Oid
default_function(Oid relid, AttrNumber attnum)
{
	Relation	table = try_relation_open(relid, AccessShareLock);
	Node	   *expression;
	Oid			result = InvalidOid;

	if (table == NULL)
		return InvalidOid;
	expression = build_column_default(table, attnum);
	if (expression != NULL)
		expression = strip_implicit_coercions(expression);
	if (expression != NULL && IsA(expression, FuncExpr))
	{
		FuncExpr   *call = (FuncExpr *) expression;

		if (call->args == NIL && call->funcresulttype == INT8OID)
			result = call->funcid;
	}
	relation_close(table, NoLock);
	return result;
}

/*
 * The generator is the one that the caller names.  Otherwise it is the one that
 * the column has, because somebody has chosen it, or snowflake_nextval().
 */
static void
choose_generator(SnowflakeConversion *conversion, Oid named, Oid namespace)
{
	Oid			nextval = snowflake_find_function(namespace, "snowflake_nextval");
	Oid			present = default_function(conversion->relid, conversion->attnum);

	if (OidIsValid(named))
		conversion->generator = named;
	else if (OidIsValid(present))
		conversion->generator = present;
	else
		conversion->generator = nextval;

	conversion->snowflakes = conversion->generator == nextval ||
		conversion->generator == snowflake_find_function(namespace, "snowflake_id");
	if (!OidIsValid(named) && !conversion->snowflakes)
		ereport(NOTICE,
				(errmsg("column \"%s\" of table %s keeps its default %s",
						conversion->column, conversion->table,
						format_procedure(conversion->generator)),
				 errhint("To replace it, specify generator => '%s'.",
						 format_procedure(nextval))));
}

/*
 * Is the generator the default of the column, and in partitions and children?
 */
static bool
has_default(const SnowflakeConversion *conversion)
{
	ListCell   *cell;

	foreach(cell, snowflake_ask(conversion,
								"SELECT relid, attnum FROM target WHERE is_key"))
	{
		char	  **row = lfirst(cell);
		Oid			relid = atooid(row[0]);
		AttrNumber	attnum = pg_strtoint16(row[1]);

		if (get_atttype(relid, attnum) != INT8OID ||
			default_function(relid, attnum) != conversion->generator)
			return false;
	}
	return true;
}

/*
 * Lock the tables that ALTER TABLE will lock.  Tables that only reference them
 * get a lock that allows reads and writes, but no new foreign key, which would
 * need a stronger one.  New tables may have appeared while waiting for a lock,
 * so repeat until there are none.  Tables of other owners are obstacles.
 */
static void
lock_tables(SnowflakeConversion *conversion, Oid owner)
{
	List	   *locked[2] = {NIL, NIL}; /* not altered, altered */
	bool		found;

	do
	{
		ListCell   *cell;

		found = false;
		snowflake_find_targets(conversion);
		foreach(cell, snowflake_ask(conversion,
									psprintf("%s"
											 " SELECT relid, 1 FROM changed"
											 " UNION"
											 " SELECT relid, 0 FROM target"
											 " WHERE relid NOT IN (SELECT relid FROM changed)"
											 " ORDER BY 1",
											 snowflake_changed_tables)))
		{
			char	  **row = lfirst(cell);
			Oid			relid = atooid(row[0]);
			int			altered = pg_strtoint16(row[1]);

			if (list_member_oid(locked[altered], relid))
				continue;
			found = true;
			locked[altered] = lappend_oid(locked[altered], relid);
			if (!altered)
				LockRelationOid(relid, RowExclusiveLock);
			else if (snowflake_table_owner(relid) == owner)
				LockRelationOid(relid, AccessExclusiveLock);
		}
	} while (found);
}

/*
 * Lock the functions that are altered, because altering one that another
 * conversion has altered meanwhile would fail after all the work was done.
 */
static void
lock_functions(const SnowflakeConversion *conversion)
{
	ListCell   *cell;

	foreach(cell, snowflake_ask(conversion,
								psprintf("%s SELECT oid FROM trigger_function"
										 " WHERE owned ORDER BY oid",
										 snowflake_trigger_functions)))
	{
		char	  **row = lfirst(cell);

		LockDatabaseObject(ProcedureRelationId, atooid(row[0]), 0,
						   ShareUpdateExclusiveLock);
	}
}

/*
 * Fail if there are obstacles.
 */
static void
check_obstacles(const SnowflakeConversion *conversion)
{
	SnowflakeObstacles obstacles;

	snowflake_find_obstacles(conversion, &obstacles);
	snowflake_check_expressions(conversion, NULL, 0, &obstacles);

	/* With some obstacles, the rows or the generator cannot be accessed. */
	if (conversion->set_default && obstacles.lines.len == 0)
		snowflake_check_new_ids(conversion, &obstacles);
	snowflake_report_obstacles(conversion, &obstacles);
}

/*
 * Execute the statements, unless it is a dry run, and return them.
 */
static void
execute_statements(const SnowflakeConversion *conversion, ReturnSetInfo *rsinfo)
{
	List	   *statements = snowflake_statements(conversion);
	ListCell   *cell;

	if (statements == NIL)
		ereport(NOTICE,
				(errmsg("column \"%s\" of table %s is already converted",
						conversion->column, conversion->table)));

	foreach(cell, statements)
	{
		char	   *statement = lfirst(cell);
		Datum		value = CStringGetTextDatum(statement);
		bool		isnull = false;

		if (!conversion->dry_run &&
			SPI_execute(statement, false, 0) != SPI_OK_UTILITY)
			elog(ERROR, "statement failed: %s", statement);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc,
							 &value, &isnull);
	}
}

/*
 * Fail if the statements did not have the expected result: a schema was
 * renamed, or an event trigger interfered.
 */
static void
check_result(SnowflakeConversion *conversion)
{
	snowflake_find_targets(conversion);
	if (snowflake_ask(conversion, "SELECT FROM target WHERE change = 'widen'") != NIL ||
		!has_default(conversion))
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
	SnowflakeConversion conversion = {0};
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
	if (!PG_ARGISNULL(3))
		check_generator(PG_GETARG_OID(3));
	owner = snowflake_lock_table(conversion.relid,
								 conversion.dry_run ? AccessShareLock : AccessExclusiveLock);
	conversion.table = snowflake_relation_name(conversion.relid);
	if (IsCatalogRelationOid(conversion.relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is a system catalog", conversion.table)));

	snowflake_become_owner(owner, &caller);
	SPI_connect();

	find_column(&conversion, PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)));
	choose_generator(&conversion, PG_ARGISNULL(3) ? InvalidOid : PG_GETARG_OID(3),
					 get_func_namespace(fcinfo->flinfo->fn_oid));
	conversion.set_default = true;
	if (conversion.dry_run)
		snowflake_find_targets(&conversion);
	else
		lock_tables(&conversion, owner);
	conversion.set_default = !has_default(&conversion);
	check_obstacles(&conversion);
	if (!conversion.dry_run)
		lock_functions(&conversion);
	snowflake_give_notices(&conversion);
	execute_statements(&conversion, (ReturnSetInfo *) fcinfo->resultinfo);
	if (!conversion.dry_run)
		check_result(&conversion);

	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
