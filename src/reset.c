/*-------------------------------------------------------------------------
 *
 * reset.c
 *	  snowflake_reset(): setting the mark.
 *
 * Raising the mark causes no harm except a lead.  Lowering it can: IDs between
 * the new and the old mark were handed out before, and may be stored.  So that
 * requires the tables to check, which must not have an ID at or above the new
 * mark, or the caller's confirmation that there is none.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/reset.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "generator.h"
#include "ids.h"
#include "mark.h"
#include "reserve.h"
#include "table.h"

PG_FUNCTION_INFO_V1(snowflake_reset);

/*
 * The bigint columns of a table ($1) with snowflake IDs: those whose default
 * calls snowflake_nextval() ($2) or snowflake_id() ($3), and the first column
 * of the primary key.
 */
static const char column_query[] =
"SELECT quote_ident(a.attname)"
" FROM pg_attribute a"
" WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped"
" AND a.atttypid = 'int8'::regtype"
" AND (EXISTS (SELECT FROM pg_index i"
"              WHERE i.indrelid = a.attrelid AND i.indisprimary AND i.indkey[0] = a.attnum)"
"      OR EXISTS (SELECT FROM pg_attrdef f JOIN pg_depend d"
"                 ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid"
"                 AND d.refclassid = 'pg_proc'::regclass AND d.refobjid IN ($2, $3)"
"                 WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum))"
" ORDER BY a.attnum";

/*
 * Fail if a column has a value at or above the new mark.
 */
static void
check_column(const char *table, const char *column, int64 mark)
{
	char	   *query = psprintf("SELECT max(%s) FROM %s", column, table);
	int64		greatest;
	bool		isnull;

	if (SPI_execute(query, true, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "query failed: %s", query);
	greatest = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
										   SPI_tuptable->tupdesc, 1, &isnull));
	if (!isnull && greatest >= mark)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("column %s of table %s has IDs at or above the new mark",
						column, table),
				 errdetail("The greatest ID is " INT64_FORMAT ". It could be handed out again.",
						   greatest),
				 errhint("Set the mark above this ID, or assign other IDs to such rows first.")));
}

/*
 * Fail if a table has an ID at or above the new mark.  Its lock, which
 * prevents others from adding one, is held until the end of the transaction.
 */
static void
check_table(Oid relid, Oid namespace, int64 mark)
{
	Oid			types[] = {OIDOID, OIDOID, OIDOID};
	Datum		values[lengthof(types)];
	SnowflakeCaller caller;
	Oid			owner = snowflake_lock_table(relid, ShareLock);
	char	   *table = snowflake_relation_name(relid);
	char	  **columns;
	uint64		ncolumns;

	values[0] = ObjectIdGetDatum(relid);
	values[1] = ObjectIdGetDatum(snowflake_find_function(namespace,
														 "snowflake_nextval"));
	values[2] = ObjectIdGetDatum(snowflake_find_function(namespace,
														 "snowflake_id"));
	snowflake_become_owner(owner, &caller);
	SPI_connect();
	if (SPI_execute_with_args(column_query, lengthof(types), types, values,
							  NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", column_query);
	ncolumns = SPI_processed;
	if (ncolumns == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table %s has no column of snowflake IDs", table),
				 errdetail("Such a column is of type bigint, and is the first column of the primary key or has the default snowflake_nextval() or snowflake_id().")));
	columns = palloc(ncolumns * sizeof(char *));
	for (uint64 i = 0; i < ncolumns; i++)
		columns[i] = SPI_getvalue(SPI_tuptable->vals[i],
								  SPI_tuptable->tupdesc, 1);
	for (uint64 i = 0; i < ncolumns; i++)
		check_column(table, columns[i], mark);
	SPI_finish();
	snowflake_become_caller(&caller);
}

/*
 * snowflake_reset(mark bigint, tables regclass[], force boolean) returns void
 */
Datum
snowflake_reset(PG_FUNCTION_ARGS)
{
	int64		mark = PG_GETARG_INT64(0);
	ArrayType  *tables = PG_GETARG_ARRAYTYPE_P(1);
	bool		force = PG_GETARG_BOOL(2);
	Oid			namespace = get_func_namespace(fcinfo->flinfo->fn_oid);
	Datum	   *relids;
	bool	   *nulls;
	int			ntables;

	snowflake_check_id_fits(snowflake_server_scheme(), mark);
	deconstruct_array(tables, REGCLASSOID, sizeof(Oid), true, TYPALIGN_INT,
					  &relids, &nulls, &ntables);
	if ((uint64) mark < snowflake_mark_read() && ntables == 0 && !force)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot lower the mark of snowflake IDs without checking tables for IDs above it"),
				 errdetail("The mark is " UINT64_FORMAT ". Stored IDs below it could be handed out again.",
						   snowflake_mark_read()),
				 errhint("Specify all tables that have such IDs: snowflake_reset(" INT64_FORMAT ", '{table, ...}'). To lower the mark without a check, add force => true.",
						 mark)));
	for (int i = 0; i < ntables; i++)
	{
		if (!nulls[i])
			check_table(DatumGetObjectId(relids[i]), namespace, mark);
	}
	snowflake_set_mark(mark);
	PG_RETURN_VOID();
}
