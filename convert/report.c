/*-------------------------------------------------------------------------
 *
 * report.c
 *	  snowflake_convert_report(): what a conversion of a schema would do, what
 *	  is in its way, and, afterwards, what is not converted, or not anymore.
 *
 * It plans the conversion as a dry run does, so both find the same.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/report.c
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
#include "utils/tuplestore.h"

#include "convert/conversion.h"
#include "convert/obstacles.h"
#include "convert/queries.h"
#include "convert/schema.h"
#include "convert/statements.h"
#include "queries/report.sql.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_report);

/* What the report says about keys that are left as they are. */
static const struct
{
	const char *finding;
	const char *what_to_do;
}			left_keys[SNOWFLAKE_KEY_KINDS] = {

	[SNOWFLAKE_KEY_EXCLUDED] = {
		"it is excluded", NULL
	},
	[SNOWFLAKE_KEY_REFERENCING] = {
		"it is a foreign key, and has the values of the referenced table", NULL
	},
	[SNOWFLAKE_KEY_SUPPLIED] = {
		"no sequence or generator is its default, so the application supplies its values",
		"If the application can omit it in INSERT, convert the table with snowflake_convert()."
	},
	[SNOWFLAKE_KEY_COUNTER] = {
		"it has a sequence, but is not in the primary key, and no foreign key references it",
		"If it is a key, convert it with snowflake_convert()."
	},
};

static void
add_row(ReturnSetInfo *rsinfo, const char *severity, const char *object,
		const char *finding, const char *what_to_do)
{
	Datum		values[4];
	bool		nulls[lengthof(values)] = {false};

	values[0] = CStringGetTextDatum(severity);
	values[1] = CStringGetTextDatum(object);
	values[2] = CStringGetTextDatum(finding);
	nulls[3] = what_to_do == NULL;
	values[3] = nulls[3] ? (Datum) 0 : CStringGetTextDatum(what_to_do);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * What is in the way, and the views among it.
 */
static void
add_obstacles(const SnowflakeConversion *conversion, ReturnSetInfo *rsinfo)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_list_obstacles(conversion))
	{
		const SnowflakeObstacle *obstacle = lfirst(cell);

		add_row(rsinfo, "obstacle", obstacle->object, obstacle->line,
				obstacle->hint);
	}
	foreach(cell, snowflake_convert_ask(conversion, sql_views))
	{
		char	  **row = lfirst(cell);

		add_row(rsinfo, "obstacle", row[0], row[1], row[2]);
	}
}

/*
 * Keys that are not converted, which is a reason to worry only if others are:
 * these tables are newer, or an upgrade of the application restored a default.
 */
static void
add_unconverted_keys(const SnowflakeConversion *conversion,
					 ReturnSetInfo *rsinfo)
{
	const char *severity = "info";
	const char *what_to_do = "snowflake_convert_schema() converts it, or snowflake_convert_online() while it is in use.";
	ListCell   *cell;

	foreach(cell, conversion->keys)
	{
		if (!((SnowflakeKey *) lfirst(cell))->set_default)
		{
			severity = "warning";
			what_to_do = "Others are converted. The table is new, or something, such as an upgrade of the application, changed the default. Convert it with snowflake_convert() or snowflake_convert_schema(), or snowflake_convert_online() while it is in use.";
		}
	}
	foreach(cell, snowflake_convert_ask(conversion, sql_unconverted_keys))
	{
		char	  **row = lfirst(cell);

		add_row(rsinfo, severity, row[0],
				psprintf("it is not a snowflake key: %s", row[1]), what_to_do);
	}
}

static void
add_findings(const SnowflakeConversion *conversion, ReturnSetInfo *rsinfo)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_list_findings(conversion))
	{
		const SnowflakeFinding *finding = lfirst(cell);

		add_row(rsinfo, finding->severity, finding->object, finding->finding,
				finding->what_to_do);
	}
}

static void
add_left_keys(const List *left, ReturnSetInfo *rsinfo)
{
	ListCell   *cell;

	foreach(cell, left)
	{
		const SnowflakeLeftKey *key = lfirst(cell);

		add_row(rsinfo, "info", key->object, left_keys[key->kind].finding,
				left_keys[key->kind].what_to_do);
	}
}

/*
 * snowflake_convert_report(schema regnamespace, exclude regclass[],
 *							widen_ids boolean)
 *	returns table (severity text, object text, finding text, what_to_do text)
 */
Datum
snowflake_convert_report(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	SnowflakeConversion conversion = {.dry_run = true};
	List	   *left;
	Oid			owner;
	SnowflakeCaller caller;
	SnowflakeCaller self;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		return (Datum) 0;

	conversion.schema = PG_GETARG_OID(0);
	snowflake_become_owner(GetUserId(), &caller);
	SPI_connect();
	left = snowflake_convert_find_keys(&conversion, PG_GETARG_ARRAYTYPE_P(1), InvalidOid,
									   &owner);

	snowflake_become_owner(owner, &self);
	if (PG_GETARG_BOOL(2) && conversion.keys != NIL)
		snowflake_convert_find_narrow_columns(&conversion);
	snowflake_convert_prepare(&conversion, owner);
	add_obstacles(&conversion, rsinfo);
	add_unconverted_keys(&conversion, rsinfo);
	add_findings(&conversion, rsinfo);
	add_left_keys(left, rsinfo);
	snowflake_become_caller(&self);

	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
