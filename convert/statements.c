/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  The statements that convert a column, and the notices beside them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/statements.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "convert/queries.h"
#include "convert/statements.h"
#include "queries/statements.sql.h"

/*
 * Give a notice: message, detail, and hint.
 */
static void
give_notice(const char *message, const char *detail, const char *hint)
{
	ereport(NOTICE,
			(errmsg_internal("%s", message),
			 detail != NULL ? errdetail_internal("%s", detail) : 0,
			 hint != NULL ? errhint("%s", hint) : 0));
}

/*
 * A row of the query of what an administrator needs to know besides the statements.
 */
typedef struct NoticeRow
{
	const char *severity;
	const char *form;
	const char *title;
	const char *object;
	const char *line;
	const char *message;
	const char *detail;
	const char *hint;
} NoticeRow;

/*
 * Report what the statements do not show: a notice for each row, or, if they are a
 * list, or the conversion is that of a schema, one for all with the same title, which
 * has their lines, and the hint of the first.
 */
void
snowflake_convert_give_notices(const SnowflakeConversion *conversion)
{
	List	   *rows = snowflake_convert_ask(conversion, sql_notices);
	StringInfoData lines;

	initStringInfo(&lines);
	for (int i = 0, first = 0; i < list_length(rows); i++)
	{
		const NoticeRow *row = list_nth(rows, i);
		const NoticeRow *next = i + 1 < list_length(rows) ? list_nth(rows, i + 1) : NULL;

		if (strcmp(row->form, "list") != 0 && !OidIsValid(conversion->schema))
		{
			give_notice(row->message, row->detail, row->hint);
			first = i + 1;
			continue;
		}
		appendStringInfo(&lines, "%s%s", lines.len > 0 ? "\n" : "", row->line);
		if (next != NULL && strcmp(next->title, row->title) == 0)
			continue;
		row = list_nth(rows, first);
		give_notice(row->title, lines.data, row->hint);
		resetStringInfo(&lines);
		first = i + 1;
	}
}

/*
 * The same as rows of a report.
 */
List *
snowflake_convert_list_findings(const SnowflakeConversion *conversion)
{
	List	   *findings = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_notices))
	{
		const NoticeRow *row = lfirst(cell);
		SnowflakeFinding *finding = palloc(sizeof(SnowflakeFinding));

		finding->severity = row->severity;
		finding->object = row->object;
		finding->finding = row->detail == NULL ? row->message :
			psprintf("%s: %s", row->message, row->detail);
		finding->what_to_do = row->hint;
		findings = lappend(findings, finding);
	}
	return findings;
}

/*
 * The statements that convert the column.
 */
List *
snowflake_convert_statements(const SnowflakeConversion *conversion)
{
	List	   *statements = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_statements))
		statements = lappend(statements, ((char **) lfirst(cell))[0]);
	return statements;
}
