/*-------------------------------------------------------------------------
 *
 * convert.c
 *	  snowflake_convert(): change an integer column to bigint, with a generator
 *	  of IDs as its default, and all columns that reference it to bigint; and
 *	  snowflake_convert_schema(), which does this for all keys of a schema.
 *
 * With a kind that fits every column, they change sequences alone: sequences.c.
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
 *	 until the end of the transaction, or taken again if nothing has changed, so a
 *	 name refers to the same table throughout.  Only a schema can still be renamed,
 *	 so the result is looked up by OID.
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
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/tuplestore.h"

#include "convert/catalog/findings.h"
#include "convert/columns/columns.h"
#include "convert/columns/keys.h"
#include "convert/direct/conversion.h"
#include "convert/direct/sequences.h"
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

/* A call, and what is to be done. */
typedef struct Call
{
	SnowflakeConversion conversion;
	Oid			relid;
	const char *column;			/* or NULL */
	ArrayType  *exclude;
	const char *widen;
	Oid			generator;		/* as specified */
	Oid			owner;			/* of the tables */
	List	   *holders;		/* of a single key, found with weak locks */
	List	   *notices;		/* of the last plan */
	List	   *statements;
} Call;

/*
 * Find the columns that hold a single key.  That reads many tables, so it is not done
 * while the table is locked exclusively, but before.
 */
static void
find_holders(Call *call)
{
	if (call->conversion.lock != AccessExclusiveLock)
	{
		snowflake_convert_find_holders(&call->conversion);
		call->holders = call->conversion.found;
	}
	call->conversion.found = call->holders;
}

/*
 * Lock the tables that belong together, look for obstacles, and find the statements.
 */
static void
find_statements(Call *call)
{
	SnowflakeConversion *conversion = &call->conversion;
	List	   *findings = NIL;
	bool		prepared = snowflake_convert_prepare(conversion, call->owner);

	call->notices = NIL;
	call->statements = NIL;
	if (!OidIsValid(conversion->schema))
		find_holders(call);
	if (!prepared)
		return;
	(void) snowflake_convert_list_obstacles(conversion, &findings);
	snowflake_convert_report_obstacles(conversion, findings);
	call->notices = list_concat(findings, snowflake_convert_list_notices(conversion));
	call->statements = snowflake_convert_find_statements(conversion);
}

/*
 * Plan the conversion of a key.  What is locked for that need not stay so.
 */
static bool
plan_key(void *argument)
{
	Call	   *call = argument;
	SnowflakeCaller caller;

	call->owner = snowflake_convert_lock(call->relid, call->conversion.lock);
	snowflake_become_owner(call->owner, &caller);
	snowflake_convert_add_key(&call->conversion, call->relid, call->column, call->generator,
							  OidIsValid(call->generator));
	find_statements(call);
	snowflake_become_caller(&caller);
	return false;
}

/*
 * Lock and plan, which may take several plans, because ANALYZE counts as a change of a
 * table, too; and give the notices of the last one.
 */
static void
make_plan(Call *call, SnowflakeWork plan)
{
	snowflake_convert_lock_and_plan(&call->conversion, plan, call);
	snowflake_convert_give_notices(&call->conversion, call->notices);
}

/*
 * Execute the statements of a plan as the owner of the tables, unless it is a dry
 * run.
 */
static void
execute(Call *call)
{
	SnowflakeCaller caller;

	if (call->conversion.dry_run)
		return;
	snowflake_become_owner(call->owner, &caller);
	snowflake_convert_execute(&call->conversion, call->statements);
	snowflake_become_caller(&caller);
}

/*
 * The arguments generator, and kind after it.
 */
static void
get_generator(Call *call, FunctionCallInfo fcinfo, int argument)
{
	call->generator = PG_ARGISNULL(argument) ? InvalidOid : PG_GETARG_OID(argument);
	snowflake_convert_get_kind(fcinfo, argument + 1, call->generator, &call->conversion);
	if (!PG_ARGISNULL(argument))
		snowflake_convert_check_generator(call->generator);
}

/*
 * Convert a key.
 */
static void
convert_key(Call *call)
{
	const SnowflakeKey *key;

	make_plan(call, plan_key);
	execute(call);
	key = linitial(call->conversion.keys);
	if (call->statements == NIL)
		ereport(NOTICE,
				(errmsg("column \"%s\" of table %s is already converted",
						key->column, key->table)));
}

/*
 * Change the kind of the sequences that feed a table, one of its columns, or the tables
 * of a schema.
 */
static void
change_kinds(Call *call)
{
	SnowflakeKindCall kinds = {
		.conversion = &call->conversion,
		.relid = call->relid,
		.column = call->column,
		.exclude = call->exclude
	};

	snowflake_convert_change_kinds(&kinds);
	call->statements = kinds.statements;
}

/*
 * Convert, and return the statements.
 */
static Datum
run_call(Call *call, void (*convert) (Call *call), FunctionCallInfo fcinfo)
{
	SPI_connect();
	if (snowflake_convert_keeps_columns(&call->conversion))
		change_kinds(call);
	else
		convert(call);
	return_statements(call->statements, (ReturnSetInfo *) fcinfo->resultinfo);
	SPI_finish();
	return (Datum) 0;
}

/*
 * snowflake_convert(relation regclass, column_name name, dry_run boolean,
 *					 generator regprocedure, kind text) returns setof text
 */
Datum
snowflake_convert(PG_FUNCTION_ARGS)
{
	Call		call = {0};

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		return (Datum) 0;

	snowflake_convert_refuse_old_snapshot();
	get_generator(&call, fcinfo, 3);
	call.relid = PG_GETARG_OID(0);
	call.column = PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1));
	call.conversion.dry_run = PG_GETARG_BOOL(2);

	return run_call(&call, convert_key, fcinfo);
}

/*
 * Plan the conversion of a schema, if it has keys to convert.
 */
static bool
plan_schema(void *argument)
{
	Call	   *call = argument;
	SnowflakeConversion *conversion = &call->conversion;
	SnowflakeCaller caller;
	SnowflakeCaller self;

	/* The catalogs are queried as the caller, whose tables these are not yet. */
	snowflake_become_owner(GetUserId(), &caller);
	(void) snowflake_convert_find_keys(conversion, call->exclude, call->generator,
									   &call->owner);
	if (conversion->keys != NIL)
	{
		snowflake_become_owner(call->owner, &self);
		snowflake_convert_choose_columns(conversion, call->widen);
		find_statements(call);
		snowflake_become_caller(&self);
	}
	snowflake_become_caller(&caller);
	return false;
}

/*
 * Say what was done to the keys of a schema.
 */
static void
report_result(const Call *call)
{
	const SnowflakeConversion *conversion = &call->conversion;
	char	   *name = get_namespace_name(conversion->schema);

	if (call->statements == NIL)
		ereport(NOTICE,
				(errmsg("keys of schema \"%s\" are already converted", name)));
	else
		ereport(NOTICE,
				(conversion->dry_run ?
				 errmsg("keys of schema \"%s\" would be converted", name) :
				 errmsg("keys of schema \"%s\" are converted", name),
				 conversion->dry_run ?
				 errhint("Nothing was changed.") :
				 errhint("snowflake_convert_report() names what is left.")));
}

/*
 * Convert the keys of a schema.
 */
static void
convert_schema(Call *call)
{
	make_plan(call, plan_schema);
	if (call->conversion.keys == NIL)
	{
		ereport(NOTICE,
				(errmsg("schema \"%s\" has no keys to convert",
						get_namespace_name(call->conversion.schema)),
				 strcmp(call->widen, "names") == 0 ?
				 errhint("So its columns are not widened. To widen a column, use ALTER TABLE ... ALTER COLUMN ... TYPE bigint.") : 0));
		return;
	}
	execute(call);
	report_result(call);
}

/*
 * snowflake_convert_schema(schema regnamespace, exclude regclass[],
 *							widen text, dry_run boolean,
 *							generator regprocedure, kind text)
 *	returns setof text
 */
Datum
snowflake_convert_schema(PG_FUNCTION_ARGS)
{
	Call		call = {0};

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		return (Datum) 0;

	snowflake_convert_refuse_old_snapshot();
	get_generator(&call, fcinfo, 4);
	call.conversion.schema = PG_GETARG_OID(0);
	call.exclude = PG_GETARG_ARRAYTYPE_P(1);
	call.widen = text_to_cstring(PG_GETARG_TEXT_PP(2));
	snowflake_convert_check_widen(call.widen);
	call.conversion.dry_run = PG_GETARG_BOOL(3);

	snowflake_convert_check_schema(call.conversion.schema, call.exclude);
	return run_call(&call, convert_schema, fcinfo);
}
