/*-------------------------------------------------------------------------
 *
 * findings.c
 *	  What is said of a conversion: rows of a report, and lists in notices.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/findings.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "convert/catalog/findings.h"

SnowflakeFinding *
snowflake_convert_add_finding(List **findings, const char *severity, const char *title,
							  const char *object, const char *finding, const char *what_to_do)
{
	SnowflakeFinding *result = palloc0(sizeof(SnowflakeFinding));

	result->severity = severity;
	result->title = title;
	result->object = object;
	result->finding = finding;
	result->what_to_do = what_to_do;
	*findings = lappend(*findings, result);
	return result;
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

void
snowflake_convert_give_notice(const char *message, const char *detail, const char *hint)
{
	ereport(NOTICE,
			(errmsg_internal("%s", message),
			 detail != NULL ? errdetail_internal("%s", detail) : 0,
			 hint != NULL ? errhint("%s", hint) : 0));
}

/*
 * Give one notice about all objects of a list, if there are any.
 */
void
snowflake_convert_give_list(const char *title, const List *lines, const char *hint)
{
	if (lines != NIL)
		snowflake_convert_give_notice(title,
									  snowflake_convert_join_lines(lines, SNOWFLAKE_CONVERT_LINES),
									  hint);
}
