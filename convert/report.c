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
#include "convert/catalog/queries.h"
#include "convert/checks/obstacles.h"
#include "convert/columns/columns.h"
#include "convert/columns/schema.h"
#include "convert/direct/conversion.h"
#include "convert/direct/kinds.h"
#include "convert/direct/rehearse.h"
#include "convert/direct/sequences.h"
#include "convert/direct/statements.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_report);

/* What the report says about keys that are left as they are. */
static const struct
{
	const char *title;
	const char *finding;
	const char *what_to_do;
}			left_keys[SNOWFLAKE_KEY_KINDS] = {

	[SNOWFLAKE_KEY_EXCLUDED] = {
		"keys that are excluded stay as they are",
		"it is excluded", NULL
	},
	[SNOWFLAKE_KEY_REFERENCING] = {
		"keys that are foreign keys have the values of the referenced tables",
		"it is a foreign key, and has the values of the referenced table", NULL
	},
	[SNOWFLAKE_KEY_SUPPLIED] = {
		"keys whose values the application supplies stay as they are",
		"no sequence or generator is its default, so the application supplies its values",
		"If the application can omit it in INSERT, convert the table with snowflake_convert()."
	},
	[SNOWFLAKE_KEY_COUNTER] = {
		"columns with a sequence that are no keys stay as they are",
		"it has a sequence, but is not in the primary key, and no foreign key references it",
		"If it is a key, convert it with snowflake_convert()."
	},
};

/* What comes first in the report, and how many objects a row names at most. */
static const struct
{
	const char *severity;
	int			limit;
}			severities[] = {
	{"obstacle", SNOWFLAKE_CONVERT_LINES},
	{"warning", SNOWFLAKE_CONVERT_LINES},
	{"info", 4},
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

	if (strcmp(finding->severity, "obstacle") == 0)
		return pstrdup(finding->finding);
	if (strcmp(finding->severity, "info") == 0 || finding->line == NULL)
		return list_name(report, finding->object);
	if (strncmp(finding->line, finding->object, length) != 0)
		return pstrdup(without_schema(report, finding->line));
	return psprintf("%s%s", list_name(report, finding->object), finding->line + length);
}

static void
add_row(ReturnSetInfo *rsinfo, const SnowflakeFinding *finding, const char *text,
		int count, const char *objects)
{
	Datum		values[5];
	bool		nulls[lengthof(values)] = {false};

	values[0] = CStringGetTextDatum(finding->severity);
	values[1] = Int32GetDatum(count);
	values[2] = CStringGetTextDatum(objects);
	values[3] = CStringGetTextDatum(text);
	nulls[4] = finding->what_to_do == NULL;
	values[4] = nulls[4] ? (Datum) 0 : CStringGetTextDatum(finding->what_to_do);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Findings that are one row. */
typedef struct Row
{
	const SnowflakeFinding *first;
	List	   *lines;
} Row;

static bool
is_same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/*
 * Do findings of a severity say the same?  Obstacles do if the same removes them.
 */
static bool
is_like(const SnowflakeFinding *a, const SnowflakeFinding *b)
{
	if (a->title == NULL || !is_same(a->title, b->title))
		return false;
	return strcmp(a->severity, "obstacle") != 0 || is_same(a->what_to_do, b->what_to_do);
}

/*
 * The row that a finding belongs to: that of others like it, or a new one.
 */
static Row *
row_of(const Report *report, const SnowflakeFinding *finding, List **rows)
{
	Row		   *row;
	ListCell   *cell;

	foreach(cell, *rows)
	{
		row = lfirst(cell);
		if (!report->details && is_like(row->first, finding))
			return row;
	}
	row = palloc0(sizeof(Row));
	row->first = finding;
	*rows = lappend(*rows, row);
	return row;
}

static int
compare_lines(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/*
 * The lines in order, each once: a sequence may feed several columns.
 */
static List *
sort_lines(List *lines)
{
	List	   *sorted = NIL;
	ListCell   *cell;

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
return_rows(const Report *report, const char *severity, int limit, ReturnSetInfo *rsinfo)
{
	List	   *rows = NIL;
	ListCell   *cell;

	foreach(cell, report->findings)
	{
		const SnowflakeFinding *finding = lfirst(cell);
		Row		   *row;

		if (strcmp(finding->severity, severity) != 0)
			continue;
		row = row_of(report, finding, &rows);
		row->lines = lappend(row->lines, list_line(report, finding));
	}
	foreach(cell, rows)
	{
		const Row  *row = lfirst(cell);
		List	   *lines = sort_lines(row->lines);

		if (list_length(row->lines) == 1)
			add_row(rsinfo, row->first, row->first->finding, 1, row->first->object);
		else
			add_row(rsinfo, row->first, row->first->title, list_length(lines),
					snowflake_convert_join_lines(lines, limit));
	}
}

static void
add_obstacles(Report *report, const List *obstacles)
{
	ListCell   *cell;

	foreach(cell, obstacles)
	{
		const SnowflakeObstacle *obstacle = lfirst(cell);

		(void) snowflake_convert_add_finding(&report->findings, "obstacle",
											 "they prevent the conversion", obstacle->object,
											 obstacle->line, obstacle->hint);
	}
}

/*
 * Views that are in the way, with the statements that drop them and create them again.
 */
static void
add_views(Report *report)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(&report->conversion, sql_views))
	{
		char	  **row = lfirst(cell);

		(void) snowflake_convert_add_finding(&report->findings, "obstacle", NULL, row[0],
											 row[1], row[2]);
	}
}

/*
 * Keys that are not converted, which is a reason to worry only if others are:
 * these tables are newer, or an upgrade of the application restored a default.
 */
static void
add_unconverted_keys(Report *report)
{
	const char *severity = "info";
	const char *what_to_do = "Convert them with snowflake_convert_schema(), or with snowflake_convert_online() while they are in use.";
	ListCell   *cell;

	foreach(cell, report->conversion.keys)
	{
		if (!((SnowflakeKey *) lfirst(cell))->set_default)
		{
			severity = "warning";
			what_to_do = "Others are. The tables are new, or something, such as an upgrade of the application, changed the defaults. Convert them with snowflake_convert_schema(), or with snowflake_convert_online() while they are in use.";
		}
	}
	foreach(cell, snowflake_convert_ask(&report->conversion, sql_unconverted_keys))
	{
		char	  **row = lfirst(cell);

		(void) snowflake_convert_add_finding(&report->findings, severity,
											 "keys are not snowflake keys", row[0],
											 psprintf("it is not a snowflake key: %s", row[1]),
											 what_to_do);
	}
}

/*
 * Sequences that are local, as a script that looks like a dump leaves them, where new
 * tables get another kind.
 */
static void
add_local_sequences(Report *report)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(&report->conversion, sql_local_sequences))
		(void) snowflake_convert_add_finding(&report->findings, "warning",
											 "sequences are local, although new tables get another kind",
											 ((char **) lfirst(cell))[0],
											 "it is local, although new tables get another kind",
											 "Call snowflake_convert_schema() with the kind that they are to have, or snowflake_set_sequence_kind() with 'local' in a session that has the setting.");
}

static void
add_left_keys(Report *report, const List *left)
{
	ListCell   *cell;

	foreach(cell, left)
	{
		const SnowflakeLeftKey *key = lfirst(cell);

		(void) snowflake_convert_add_finding(&report->findings, "info",
											 left_keys[key->kind].title, key->object,
											 left_keys[key->kind].finding,
											 left_keys[key->kind].what_to_do);
	}
}

/*
 * Find what is to be said of sequences that get another kind by themselves.
 */
static void
find_kinds(Report *report)
{
	SnowflakeKindCall call = {.conversion = &report->conversion,.exclude = report->exclude};
	List	   *obstacles;
	List	   *findings;

	report->conversion.dry_run = true;
	findings = snowflake_convert_list_kinds(&call, &obstacles);
	add_obstacles(report, obstacles);
	report->findings = list_concat(report->findings, findings);
}

/*
 * Try rows with new keys.  What fails comes before what might.
 */
static void
rehearse(Report *report)
{
	if (report->findings != NIL &&
		strcmp(((SnowflakeFinding *) linitial(report->findings))->severity, "obstacle") == 0)
		(void) snowflake_convert_add_finding(&report->findings, "warning", NULL,
											 psprintf("schema %s", report->schema),
											 "it is not rehearsed, because there are obstacles",
											 "Remove the obstacles, and rehearse in the same transaction, which can be rolled back.");
	else
		report->findings = list_concat(snowflake_convert_rehearse(&report->conversion),
									   report->findings);
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
	add_obstacles(report, snowflake_convert_list_obstacles(conversion));
	add_views(report);
	add_unconverted_keys(report);
	report->findings = list_concat(report->findings, snowflake_convert_list_findings(conversion));
	add_left_keys(report, left);
	snowflake_convert_list_doubles(conversion, &report->findings);
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
	add_local_sequences(&report);
	for (size_t i = 0; i < lengthof(severities); i++)
		return_rows(&report, severities[i].severity, severities[i].limit,
					(ReturnSetInfo *) fcinfo->resultinfo);
	SPI_finish();
	snowflake_become_caller(&caller);
	return (Datum) 0;
}
