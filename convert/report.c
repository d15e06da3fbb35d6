/*-------------------------------------------------------------------------
 *
 * report.c
 *	  snowflake_convert_report(): what a conversion of a schema would do, what
 *	  is in its way, and, afterwards, what is not converted, or not anymore.
 *
 * It plans the conversion as a dry run does, so both find the same.  If the caller
 * asks for it, rehearse.c does the conversion, tries rows, and undoes both.
 *
 * What needs a decision comes before what is only told.  What is found of many
 * objects is one row, with their names and, of those that need a decision, why.
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

#include "convert/catalog/findings.h"
#include "convert/columns/columns.h"
#include "convert/columns/keys.h"
#include "convert/direct/conversion.h"
#include "convert/direct/rehearse.h"
#include "convert/direct/sequences.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_report);

/* What comes first in the report, and how many objects a row names at most. */
static const struct
{
	const char *name;
	int			limit;
}			severities[SNOWFLAKE_SEVERITIES] = {
	[SNOWFLAKE_OBSTACLE] = {"obstacle", SNOWFLAKE_CONVERT_LINES},
	[SNOWFLAKE_WARNING] = {"warning", SNOWFLAKE_CONVERT_LINES},
	[SNOWFLAKE_INFO] = {"info", 4},
};

/* A call, and what was found. */
typedef struct Report
{
	SnowflakeConversion conversion;
	const char *schema;			/* its name, with quotes if need be */
	ArrayType  *exclude;
	const char *widen;
	bool		rehearse;
	bool		details;		/* a row for each object? */
	List	   *findings;
} Report;

/*
 * A name without the schema of the report.
 */
static const char *
without_schema(const Report *report, const char *name)
{
	size_t		length = strlen(report->schema);

	if (strncmp(name, report->schema, length) == 0 && name[length] == '.')
		return name + length + 1;
	return name;
}

/*
 * An object in a list, whose title says what it is: a column as widen names it.
 */
static char *
list_name(const Report *report, const char *object)
{
	const char *table = strstr(object, " of table ");
	const char *column = strncmp(object, "column ", 7) == 0 ? object + 7 : NULL;

	if (column != NULL && table != NULL)
		return psprintf("%s.%.*s", without_schema(report, table + 10),
						(int) (table - column), column);
	if (strncmp(object, "sequence ", 9) == 0 || strncmp(object, "function ", 9) == 0)
		object += 9;
	return pstrdup(without_schema(report, object));
}

/*
 * A finding as a line of a list: all that is in the way, what is to be decided, or only
 * its name.
 */
static char *
list_line(const Report *report, const SnowflakeFinding *finding)
{
	size_t		length = strlen(finding->object);

	if (finding->severity == SNOWFLAKE_OBSTACLE)
		return pstrdup(finding->message);
	if (finding->severity == SNOWFLAKE_INFO || finding->line == NULL)
		return list_name(report, finding->object);
	if (strncmp(finding->line, finding->object, length) != 0)
		return pstrdup(without_schema(report, finding->line));
	return psprintf("%s%s", list_name(report, finding->object), finding->line + length);
}

static const char *
text_of(const SnowflakeFinding *finding)
{
	return finding->detail == NULL ? finding->message :
		psprintf("%s: %s", finding->message, finding->detail);
}

static void
add_row(ReturnSetInfo *rsinfo, const SnowflakeFinding *finding, const char *text,
		int count, const char *objects)
{
	Datum		values[5];
	bool		nulls[lengthof(values)] = {false};

	values[0] = CStringGetTextDatum(severities[finding->severity].name);
	values[1] = Int32GetDatum(count);
	values[2] = CStringGetTextDatum(objects);
	values[3] = CStringGetTextDatum(text);
	nulls[4] = finding->hint == NULL;
	values[4] = nulls[4] ? (Datum) 0 : CStringGetTextDatum(finding->hint);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static int
compare_lines(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/*
 * The lines in order, unless they have one, each once: a sequence may feed several columns.
 */
static List *
sorted_lines(const Report *report, const List *findings)
{
	List	   *lines = NIL;
	List	   *sorted = NIL;
	ListCell   *cell;

	foreach(cell, findings)
		lines = lappend(lines, list_line(report, lfirst(cell)));
	if (((const SnowflakeFinding *) linitial(findings))->place == 0)
		list_sort(lines, compare_lines);
	foreach(cell, lines)
	{
		if (sorted == NIL || strcmp(llast(sorted), lfirst(cell)) != 0)
			sorted = lappend(sorted, lfirst(cell));
	}
	return sorted;
}

/*
 * Return the findings of a severity.
 */
static void
return_rows(const Report *report, SnowflakeSeverity severity, ReturnSetInfo *rsinfo)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_group(report->findings, report->details ?
										  SNOWFLAKE_GROUP_NONE : SNOWFLAKE_GROUP_ALL))
	{
		const List *findings = lfirst(cell);
		const SnowflakeFinding *first = linitial(findings);
		List	   *lines = sorted_lines(report, findings);

		if (first->severity != severity)
			continue;
		if (list_length(findings) == 1)
			add_row(rsinfo, first, text_of(first), 1, first->object);
		else
			add_row(rsinfo, first, first->title, list_length(lines),
					snowflake_convert_join_lines(lines, severities[severity].limit));
	}
}

/*
 * Find what is to be said of sequences that get another kind by themselves.
 */
static void
find_kinds(Report *report)
{
	SnowflakeKindCall call = {.conversion = &report->conversion,.exclude = report->exclude};

	report->conversion.dry_run = true;
	report->findings = snowflake_convert_list_kinds(&call);
}

/*
 * Try rows with new keys.  What fails comes before what might.
 */
static void
rehearse(Report *report)
{
	if (!snowflake_convert_has_obstacle(report->findings))
		report->findings = list_concat(snowflake_convert_rehearse(&report->conversion),
									   report->findings);
	else
		(void) snowflake_convert_add_finding(&report->findings, SNOWFLAKE_WARNING, NULL,
											 psprintf("schema %s", report->schema),
											 "it is not rehearsed, because there are obstacles",
											 "Remove the obstacles, and rehearse in the same transaction, which can be rolled back.");
}

/*
 * Find what a conversion of keys would do.
 */
static void
find_keys(Report *report)
{
	SnowflakeConversion *conversion = &report->conversion;
	List	   *left;
	Oid			owner;
	SnowflakeCaller self;

	if (report->rehearse)
		snowflake_convert_refuse_pending_triggers();
	left = snowflake_convert_find_keys(conversion, report->exclude, InvalidOid, &owner);

	snowflake_become_owner(owner, &self);
	if (conversion->keys != NIL)
		snowflake_convert_choose_columns(conversion, report->widen);
	(void) snowflake_convert_prepare(conversion, owner);
	(void) snowflake_convert_list_obstacles(conversion, &report->findings);
	report->findings = list_concat(report->findings, snowflake_convert_list_notices(conversion));
	report->findings = list_concat(report->findings, left);
	if (report->rehearse && conversion->keys != NIL)
		rehearse(report);
	snowflake_become_caller(&self);
}

/*
 * snowflake_convert_report(schema regnamespace, exclude regclass[], widen text,
 *							rehearse boolean, kind text, details boolean)
 *	returns table (severity text, count integer, object text, finding text, what_to_do text)
 */
Datum
snowflake_convert_report(PG_FUNCTION_ARGS)
{
	Report		report = {0};
	SnowflakeCaller caller;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3) ||
		PG_ARGISNULL(5))
		return (Datum) 0;

	report.exclude = PG_GETARG_ARRAYTYPE_P(1);
	report.widen = text_to_cstring(PG_GETARG_TEXT_PP(2));
	snowflake_convert_check_widen(report.widen);
	report.rehearse = PG_GETARG_BOOL(3);
	report.details = PG_GETARG_BOOL(5);
	snowflake_convert_get_kind(fcinfo, 4, InvalidOid, &report.conversion);
	if (report.rehearse)
		snowflake_convert_refuse_old_snapshot();
	report.conversion.dry_run = !report.rehearse;
	report.conversion.lock = report.rehearse ? AccessExclusiveLock : AccessShareLock;
	report.conversion.schema = PG_GETARG_OID(0);
	snowflake_convert_check_schema(report.conversion.schema, report.exclude);

	/* With settings that do not change how names are quoted. */
	snowflake_become_owner(GetUserId(), &caller);
	report.schema = quote_identifier(get_namespace_name(report.conversion.schema));
	SPI_connect();
	if (snowflake_convert_keeps_columns(&report.conversion))
		find_kinds(&report);
	else
		find_keys(&report);
	report.findings = list_concat(report.findings,
								  snowflake_convert_ask_notices(&report.conversion,
																sql_report_notices));
	for (SnowflakeSeverity severity = 0; severity < SNOWFLAKE_SEVERITIES; severity++)
		return_rows(&report, severity, (ReturnSetInfo *) fcinfo->resultinfo);
	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
