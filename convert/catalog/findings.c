/*-------------------------------------------------------------------------
 *
 * findings.c
 *	  What is said of a conversion: obstacles, notices, and rows of a report.
 *
 * Everything that can be known is found before anything is said, so a call names
 * all obstacles at once, and notices only if there are none.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/findings.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "utils/lsyscache.h"

#include "convert/catalog/findings.h"

SnowflakeFinding *
snowflake_convert_add_finding(List **findings, SnowflakeSeverity severity,
							  const char *title, const char *object,
							  const char *message, const char *hint)
{
	SnowflakeFinding *finding = palloc0_object(SnowflakeFinding);

	finding->severity = severity;
	finding->title = title;
	finding->object = object;
	finding->message = message;
	finding->hint = hint;
	*findings = lappend(*findings, finding);
	return finding;
}

void
snowflake_convert_add_obstacle(List **findings, const char *object, const char *line,
							   const char *hint)
{
	SnowflakeFinding *obstacle;

	obstacle = snowflake_convert_add_finding(findings, SNOWFLAKE_OBSTACLE,
											 "they prevent the conversion", object,
											 line, hint);
	obstacle->line = line;
}

/*
 * Add the obstacles that a query of a list of them finds.  Returns whether there are any.
 */
bool
snowflake_convert_ask_obstacles(const SnowflakeConversion *conversion, SnowflakeQuery query,
								List **findings)
{
	List	   *rows = snowflake_convert_ask(conversion, query);
	ListCell   *cell;

	foreach(cell, rows)
	{
		const SnowflakeRow *row = lfirst(cell);

		snowflake_convert_add_obstacle(findings, snowflake_convert_text(row, "object"),
									   snowflake_convert_text(row, "line"),
									   snowflake_convert_text(row, "hint"));
	}
	return rows != NIL;
}

/*
 * What a query of a list of notices finds.
 */
List *
snowflake_convert_ask_notices(const SnowflakeConversion *conversion, SnowflakeQuery query)
{
	List	   *findings = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, query))
	{
		const SnowflakeRow *row = lfirst(cell);
		bool		is_warning = strcmp(snowflake_convert_text(row, "severity"), "warning") == 0;
		SnowflakeFinding *finding;

		finding = snowflake_convert_add_finding(&findings,
												is_warning ? SNOWFLAKE_WARNING : SNOWFLAKE_INFO,
												snowflake_convert_text(row, "title"),
												snowflake_convert_text(row, "object"),
												snowflake_convert_text(row, "message"),
												snowflake_convert_text(row, "hint"));
		finding->is_list = strcmp(snowflake_convert_text(row, "form"), "list") == 0;
		finding->line = snowflake_convert_text(row, "line");
		finding->detail = snowflake_convert_text(row, "detail");
		finding->place = snowflake_convert_number(row, "place");
	}
	return findings;
}

bool
snowflake_convert_has_obstacle(const List *findings)
{
	ListCell   *cell;

	foreach(cell, findings)
	{
		if (((const SnowflakeFinding *) lfirst(cell))->severity == SNOWFLAKE_OBSTACLE)
			return true;
	}
	return false;
}

static bool
is_same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/*
 * Are two findings told together?  Obstacles are if the same removes them.
 */
static bool
belong_together(const SnowflakeFinding *a, const SnowflakeFinding *b, SnowflakeGrouping grouping)
{
	if (grouping == SNOWFLAKE_GROUP_NONE ||
		(grouping == SNOWFLAKE_GROUP_LISTS && !a->is_list) ||
		a->title == NULL || !is_same(a->title, b->title) || a->severity != b->severity)
		return false;
	return a->severity != SNOWFLAKE_OBSTACLE || is_same(a->hint, b->hint);
}

/*
 * The findings as lists of those that are told together.
 */
List *
snowflake_convert_group(const List *findings, SnowflakeGrouping grouping)
{
	List	   *groups = NIL;
	ListCell   *cell;

	foreach(cell, findings)
	{
		const SnowflakeFinding *finding = lfirst(cell);
		ListCell   *other;

		foreach(other, groups)
		{
			if (belong_together(finding, linitial(lfirst(other)), grouping))
				break;
		}
		if (other != NULL)
			lfirst(other) = lappend(lfirst(other), lfirst(cell));
		else
			groups = lappend(groups, list_make1(lfirst(cell)));
	}
	return groups;
}

/*
 * Join lines.  Of more than a limit, the last one says how many there are.
 */
char *
snowflake_convert_join_lines(const List *lines, int limit)
{
	int			n = list_length(lines);
	int			shown = n > limit ? limit - 1 : n;
	StringInfoData joined;

	initStringInfo(&joined);
	for (int i = 0; i < shown; i++)
		appendStringInfo(&joined, "%s%s", i > 0 ? "\n" : "", (char *) list_nth(lines, i));
	if (n > shown)
		appendStringInfo(&joined, "\nand %d more", n - shown);
	return joined.data;
}

static List *
lines_of(const List *findings)
{
	List	   *lines = NIL;
	ListCell   *cell;

	foreach(cell, findings)
		lines = lappend(lines, unconstify(char *, ((SnowflakeFinding *) lfirst(cell))->line));
	return lines;
}

/*
 * Give a notice for each finding that is none of a list, or, of a schema, for all with
 * the same title: the lines of these, and the hint of the first.
 */
void
snowflake_convert_give_notices(const SnowflakeConversion *conversion, const List *findings)
{
	bool		all = OidIsValid(conversion->schema);
	ListCell   *cell;

	foreach(cell, snowflake_convert_group(findings,
										  all ? SNOWFLAKE_GROUP_ALL : SNOWFLAKE_GROUP_LISTS))
	{
		const SnowflakeFinding *first = linitial(lfirst(cell));
		bool		listed = first->title != NULL && (all || first->is_list);
		const char *detail = listed ?
			snowflake_convert_join_lines(lines_of(lfirst(cell)), SNOWFLAKE_CONVERT_LINES) :
			first->detail;

		ereport(NOTICE,
				(errmsg_internal("%s", listed ? first->title : first->message),
				 detail != NULL ? errdetail_internal("%s", detail) : 0,
				 first->hint != NULL ? errhint("%s", first->hint) : 0));
	}
}

/*
 * Fail if there are obstacles, and list all of them, each hint once.
 */
void
snowflake_convert_report_obstacles(const SnowflakeConversion *conversion, const List *findings)
{
	const SnowflakeKey *key = conversion->keys == NIL ? NULL : linitial(conversion->keys);
	List	   *lines = NIL;
	List	   *hints = NIL;
	StringInfoData hint;
	ListCell   *cell;

	foreach(cell, findings)
	{
		const SnowflakeFinding *finding = lfirst(cell);

		if (finding->severity != SNOWFLAKE_OBSTACLE)
			continue;
		lines = lappend(lines, unconstify(char *, finding->line));
		hints = list_append_unique(hints, makeString(unconstify(char *, finding->hint)));
	}
	if (lines == NIL)
		return;
	initStringInfo(&hint);
	foreach(cell, hints)
		appendStringInfo(&hint, " %s", strVal(lfirst(cell)));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 OidIsValid(conversion->schema) ?
			 errmsg("cannot convert the tables of schema \"%s\"",
					get_namespace_name(conversion->schema)) :
			 key == NULL ? errmsg("cannot change the kind of these sequences") :
			 errmsg("cannot convert column \"%s\" of table %s", key->column,
					key->table),
			 errdetail_internal("%s", snowflake_convert_join_lines(lines, list_length(lines))),
			 errhint("Nothing was changed.%s", hint.data)));
}
