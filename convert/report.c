/*-------------------------------------------------------------------------
 *
 * report.c
 *	  snowflake_convert_report(): what a conversion of a schema would do, what
 *	  is in its way, and, afterwards, what is not converted, or not anymore.
 *
 * It plans the conversion as a dry run does, so both find the same.  If the caller
 * asks for it, rehearse.c does the conversion, tries rows, and undoes both.
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
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "convert/columns.h"
#include "convert/conversion.h"
#include "convert/kinds.h"
#include "convert/obstacles.h"
#include "convert/queries.h"
#include "convert/rehearse.h"
#include "convert/schema.h"
#include "convert/statements.h"
#include "queries/report.sql.h"
#include "shared/compat.h"
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

static void
add_obstacle_rows(const List *obstacles, ReturnSetInfo *rsinfo)
{
	ListCell   *cell;

	foreach(cell, obstacles)
	{
		const SnowflakeObstacle *obstacle = lfirst(cell);

		add_row(rsinfo, "obstacle", obstacle->object, obstacle->line,
				obstacle->hint);
	}
}

/*
 * What is in the way, and the views among it.  Is there anything?
 */
static bool
add_obstacles(const SnowflakeConversion *conversion, ReturnSetInfo *rsinfo)
{
	List	   *obstacles = snowflake_convert_list_obstacles(conversion);
	ListCell   *cell;

	add_obstacle_rows(obstacles, rsinfo);
	foreach(cell, snowflake_convert_ask(conversion, sql_views))
	{
		char	  **row = lfirst(cell);

		add_row(rsinfo, "obstacle", row[0], row[1], row[2]);
	}
	return obstacles != NIL;
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

/*
 * What the notices of the conversion would be, or what a rehearsal finds.
 */
static void
add_findings(const List *findings, ReturnSetInfo *rsinfo)
{
	ListCell   *cell;

	foreach(cell, findings)
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
 * What is to be said of sequences that get another kind by themselves.
 */
static void
add_kinds(SnowflakeConversion *conversion, ArrayType *exclude, ReturnSetInfo *rsinfo)
{
	SnowflakeKindCall call = {.conversion = conversion,.exclude = exclude};
	List	   *obstacles;
	List	   *findings;

	conversion->dry_run = true;
	snowflake_convert_check_schema(conversion->schema, exclude);
	findings = snowflake_convert_list_kinds(&call, &obstacles);
	add_obstacle_rows(obstacles, rsinfo);
	add_findings(findings, rsinfo);
}

/*
 * Try rows with new keys.
 */
static void
add_rehearsal(const SnowflakeConversion *conversion, bool has_obstacles,
			  const char *search_path, ReturnSetInfo *rsinfo)
{
	if (has_obstacles)
		add_row(rsinfo, "warning",
				psprintf("schema %s", quote_identifier(get_namespace_name(conversion->schema))),
				"it is not rehearsed, because there are obstacles",
				"Remove the obstacles, and rehearse in the same transaction, which can be rolled back.");
	else
		add_findings(snowflake_convert_rehearse(conversion, search_path), rsinfo);
}

/*
 * snowflake_convert_report(schema regnamespace, exclude regclass[],
 *							widen text, rehearse boolean, kind text)
 *	returns table (severity text, object text, finding text, what_to_do text)
 */
Datum
snowflake_convert_report(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	SnowflakeConversion conversion = {0};
	const char *search_path = pstrdup(GetConfigOption("search_path", false, false));
	const char *widen;
	bool		rehearse;
	bool		has_obstacles;
	List	   *left;
	Oid			owner;
	SnowflakeCaller caller;
	SnowflakeCaller self;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		return (Datum) 0;

	widen = text_to_cstring(PG_GETARG_TEXT_PP(2));
	snowflake_convert_check_widen(widen);
	rehearse = PG_GETARG_BOOL(3);
	snowflake_convert_get_kind(fcinfo, 4, InvalidOid, &conversion);
	if (rehearse)
		snowflake_convert_refuse_old_snapshot();
	conversion.dry_run = !rehearse;
	conversion.lock = rehearse ? AccessExclusiveLock : AccessShareLock;
	conversion.schema = PG_GETARG_OID(0);
	snowflake_become_owner(GetUserId(), &caller);
	SPI_connect();
	if (snowflake_convert_keeps_columns(&conversion))
	{
		add_kinds(&conversion, PG_GETARG_ARRAYTYPE_P(1), rsinfo);
		SPI_finish();
		snowflake_become_caller(&caller);
		return (Datum) 0;
	}
	if (rehearse)
		snowflake_convert_refuse_pending_triggers();
	left = snowflake_convert_find_keys(&conversion, PG_GETARG_ARRAYTYPE_P(1), InvalidOid,
									   &owner);

	snowflake_become_owner(owner, &self);
	if (conversion.keys != NIL)
		snowflake_convert_choose_columns(&conversion, widen);
	snowflake_convert_prepare(&conversion, owner);
	has_obstacles = add_obstacles(&conversion, rsinfo);
	add_unconverted_keys(&conversion, rsinfo);
	add_findings(snowflake_convert_list_findings(&conversion), rsinfo);
	add_left_keys(left, rsinfo);
	if (rehearse && conversion.keys != NIL)
		add_rehearsal(&conversion, has_obstacles, search_path, rsinfo);
	snowflake_become_caller(&self);

	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
