/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  The statements that convert a column, and the notices beside them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/statements.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/queries.h"
#include "convert/catalog/rows.h"
#include "convert/direct/sequences.h"
#include "convert/direct/statements.h"

/*
 * Report what the statements do not show: a notice for each row, or, if they are a
 * list, or the conversion is that of a schema, one for all with the same title, which
 * has their lines, and the hint of the first.
 */
void
snowflake_convert_give_notices(const SnowflakeConversion *conversion)
{
	List	   *rows = snowflake_convert_ask(conversion, sql_notices);
	List	   *lines = NIL;

	for (int i = 0, first = 0; i < list_length(rows); i++)
	{
		char	  **row = list_nth(rows, i);
		char	   *title = snowflake_convert_text(row, "title");

		if (strcmp(snowflake_convert_text(row, "form"), "list") != 0 &&
			!OidIsValid(conversion->schema))
		{
			snowflake_convert_give_notice(snowflake_convert_text(row, "message"),
										  snowflake_convert_text(row, "detail"),
										  snowflake_convert_text(row, "hint"));
			first = i + 1;
			continue;
		}
		lines = lappend(lines, snowflake_convert_text(row, "line"));
		if (i + 1 < list_length(rows) &&
			strcmp(snowflake_convert_text(list_nth(rows, i + 1), "title"), title) == 0)
			continue;
		snowflake_convert_give_list(title, lines,
									snowflake_convert_text(list_nth(rows, first), "hint"));
		lines = NIL;
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
		char	  **row = lfirst(cell);
		char	   *message = snowflake_convert_text(row, "message");
		char	   *detail = snowflake_convert_text(row, "detail");
		SnowflakeFinding *finding;

		finding = snowflake_convert_add_finding(&findings,
												snowflake_convert_text(row, "severity"),
												snowflake_convert_text(row, "title"),
												snowflake_convert_text(row, "object"),
												detail == NULL ? message :
												psprintf("%s: %s", message, detail),
												snowflake_convert_text(row, "hint"));
		finding->line = snowflake_convert_text(row, "line");
	}
	return findings;
}

List *
snowflake_convert_statements(const SnowflakeConversion *conversion)
{
	List	   *statements = snowflake_convert_texts(snowflake_convert_ask(conversion,
																		   sql_statements));

	if (conversion->sequences == NIL)
		return statements;
	return list_concat(statements, snowflake_convert_kind_statements(conversion));
}
