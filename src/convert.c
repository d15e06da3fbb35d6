/*-------------------------------------------------------------------------
 *
 * convert.c
 *	  snowflake_convert(): change an integer column to bigint, with a generator
 *	  of IDs as its default, and all columns that reference it to bigint.
 *
 * convert_steps.c has the steps, and convert.h says which file has what.
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
 * Copyright (c) 2026, the snowflake developers
 *
 * src/convert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "convert.h"
#include "table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert);

/*
 * Lock a table to convert, or to see what that would do, and return its owner.
 */
static Oid
lock_table(Oid relid, bool dry_run)
{
	Oid			owner = snowflake_lock_table(relid,
											 dry_run ? AccessShareLock : AccessExclusiveLock);

	if (IsCatalogRelationOid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is a system catalog", snowflake_relation_name(relid))));
	return owner;
}

/*
 * Return statements as the rows of the function's result.
 */
static void
return_statements(const List *statements, ReturnSetInfo *rsinfo)
{
	ListCell   *cell;

	foreach(cell, statements)
	{
		Datum		value = CStringGetTextDatum((char *) lfirst(cell));
		bool		isnull = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc,
							 &value, &isnull);
	}
}

/*
 * snowflake_convert(relation regclass, column_name name, dry_run boolean,
 *					 generator regprocedure) returns setof text
 */
Datum
snowflake_convert(PG_FUNCTION_ARGS)
{
	SnowflakeConversion conversion = {0};
	Oid			named = PG_ARGISNULL(3) ? InvalidOid : PG_GETARG_OID(3);
	List	   *statements;
	SnowflakeKey *key;
	Oid			owner;
	SnowflakeCaller caller;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		return (Datum) 0;

	snowflake_refuse_old_snapshot();
	if (!PG_ARGISNULL(3))
		snowflake_check_generator(named);
	conversion.dry_run = PG_GETARG_BOOL(2);
	owner = lock_table(PG_GETARG_OID(0), conversion.dry_run);

	snowflake_become_owner(owner, &caller);
	SPI_connect();

	key = snowflake_find_key(PG_GETARG_OID(0),
							 PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)),
							 OidIsValid(named));
	snowflake_choose_generator(key, named,
							   get_func_namespace(fcinfo->flinfo->fn_oid));
	conversion.keys = list_make1(key);
	snowflake_prepare(&conversion, owner);
	snowflake_report_obstacles(&conversion, snowflake_list_obstacles(&conversion));
	snowflake_give_notices(&conversion);
	statements = snowflake_execute(&conversion);
	if (statements == NIL)
		ereport(NOTICE,
				(errmsg("column \"%s\" of table %s is already converted",
						key->column, key->table)));
	return_statements(statements, (ReturnSetInfo *) fcinfo->resultinfo);

	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
