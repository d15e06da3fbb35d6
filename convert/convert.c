/*-------------------------------------------------------------------------
 *
 * convert.c
 *	  snowflake_convert(): change an integer column to bigint, with a generator
 *	  of IDs as its default, and all columns that reference it to bigint; and
 *	  snowflake_convert_schema(), which does this for all keys of a schema.
 *
 * conversion.c has the steps, and README.md says which file has what.
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
 * convert/convert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/tuplestore.h"

#include "convert/conversion.h"
#include "convert/obstacles.h"
#include "convert/queries.h"
#include "convert/schema.h"
#include "convert/statements.h"
#include "queries/convert.sql.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

SNOWFLAKE_MODULE_MAGIC("snowflake_convert");

PG_FUNCTION_INFO_V1(snowflake_convert);
PG_FUNCTION_INFO_V1(snowflake_convert_schema);

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

	snowflake_convert_refuse_old_snapshot();
	if (!PG_ARGISNULL(3))
		snowflake_convert_check_generator(named);
	conversion.dry_run = PG_GETARG_BOOL(2);
	owner = snowflake_convert_lock(PG_GETARG_OID(0), conversion.dry_run);

	snowflake_become_owner(owner, &caller);
	SPI_connect();

	key = snowflake_convert_find_key(PG_GETARG_OID(0),
									 PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)),
									 OidIsValid(named));
	snowflake_convert_choose_generator(key, named);
	if (!OidIsValid(named))
		snowflake_convert_report_kept_default(key);
	conversion.keys = list_make1(key);
	snowflake_convert_prepare(&conversion, owner);
	snowflake_convert_report_obstacles(&conversion, snowflake_convert_list_obstacles(&conversion));
	snowflake_convert_give_notices(&conversion);
	statements = snowflake_convert_execute(&conversion);
	if (statements == NIL)
		ereport(NOTICE,
				(errmsg("column \"%s\" of table %s is already converted",
						key->column, key->table)));
	return_statements(statements, (ReturnSetInfo *) fcinfo->resultinfo);

	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}

/*
 * The numbers of the summary, one per line.
 */
static char *
summarize(const SnowflakeConversion *conversion, const List *left)
{
	static const char *const names[SNOWFLAKE_KEY_KINDS] = {
		[SNOWFLAKE_KEY_EXCLUDED] = "excluded",
		[SNOWFLAKE_KEY_REFERENCING] = "foreign keys",
		[SNOWFLAKE_KEY_SUPPLIED] = "supplied by the application",
		[SNOWFLAKE_KEY_COUNTER] = "counters",
	};
	int			counts[SNOWFLAKE_KEY_KINDS] = {0};
	char	  **row;
	StringInfoData lines;
	ListCell   *cell;
	const char *separator = "";

	row = linitial(snowflake_convert_ask(conversion, sql_summary));
	initStringInfo(&lines);
	appendStringInfo(&lines,
					 "keys that get a generator: %s\n"
					 "columns that become bigint: %s\n"
					 "tables that are rewritten: %s\n"
					 "sequences that are dropped: %s\n"
					 "keys that are left: ",
					 row[0], row[1], row[2], row[3]);
	foreach(cell, left)
		counts[((SnowflakeLeftKey *) lfirst(cell))->kind]++;
	for (int i = 0; i < SNOWFLAKE_KEY_KINDS; i++)
	{
		if (counts[i] == 0)
			continue;
		appendStringInfo(&lines, "%s%s (%d)", separator, names[i], counts[i]);
		separator = ", ";
	}
	if (left == NIL)
		appendStringInfoString(&lines, "none");
	return lines.data;
}

/*
 * Convert the keys that were found, and say what was done.
 */
static List *
convert_keys(SnowflakeConversion *conversion, Oid owner, bool widen_ids,
			 const List *left)
{
	char	   *name = get_namespace_name(conversion->schema);
	char	   *summary;
	List	   *statements;

	if (widen_ids)
		snowflake_convert_find_narrow_columns(conversion);
	snowflake_convert_prepare(conversion, owner);
	snowflake_convert_report_obstacles(conversion, snowflake_convert_list_obstacles(conversion));
	snowflake_convert_give_notices(conversion);
	summary = summarize(conversion, left);
	statements = snowflake_convert_execute(conversion);
	if (statements == NIL)
		ereport(NOTICE,
				(errmsg("keys of schema \"%s\" are already converted", name)));
	else
		ereport(NOTICE,
				(conversion->dry_run ?
				 errmsg("keys of schema \"%s\" would be converted", name) :
				 errmsg("keys of schema \"%s\" are converted", name),
				 errdetail_internal("%s", summary),
				 conversion->dry_run ?
				 errhint("Nothing was changed.") :
				 errhint("snowflake_convert_report() names what is left.")));
	return statements;
}

/*
 * snowflake_convert_schema(schema regnamespace, exclude regclass[],
 *							widen_ids boolean, dry_run boolean,
 *							generator regprocedure) returns setof text
 */
Datum
snowflake_convert_schema(PG_FUNCTION_ARGS)
{
	SnowflakeConversion conversion = {0};
	Oid			named = PG_ARGISNULL(4) ? InvalidOid : PG_GETARG_OID(4);
	List	   *left;
	Oid			owner;
	SnowflakeCaller caller;
	SnowflakeCaller self;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		return (Datum) 0;

	snowflake_convert_refuse_old_snapshot();
	if (!PG_ARGISNULL(4))
		snowflake_convert_check_generator(named);
	conversion.schema = PG_GETARG_OID(0);
	conversion.dry_run = PG_GETARG_BOOL(3);

	/* The catalogs are queried as the caller, whose tables these are not yet. */
	snowflake_become_owner(GetUserId(), &caller);
	SPI_connect();
	left = snowflake_convert_find_keys(&conversion, PG_GETARG_ARRAYTYPE_P(1), named,
									   &owner);
	if (conversion.keys == NIL)
		ereport(NOTICE,
				(errmsg("schema \"%s\" has no keys to convert",
						get_namespace_name(conversion.schema)),
				 PG_GETARG_BOOL(2) ?
				 errhint("So its columns are not widened. To widen a column, use ALTER TABLE ... ALTER COLUMN ... TYPE bigint.") : 0));
	else
	{
		snowflake_become_owner(owner, &self);
		return_statements(convert_keys(&conversion, owner, PG_GETARG_BOOL(2), left),
						  (ReturnSetInfo *) fcinfo->resultinfo);
		snowflake_become_caller(&self);
	}
	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
