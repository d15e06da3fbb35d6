/*-------------------------------------------------------------------------
 *
 * findings.h
 *	  What is said of a conversion: rows of a report, and lists in notices.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/findings.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_FINDINGS_H
#define SNOWFLAKE_CONVERT_FINDINGS_H

#include "nodes/pg_list.h"

/* So many lines of a list are shown. */
#define SNOWFLAKE_CONVERT_LINES	10

/* What snowflake_convert_report() says of an object. */
typedef struct SnowflakeFinding
{
	const char *severity;
	const char *title;			/* of all like it, or NULL if there are none */
	const char *object;
	const char *line;			/* in a list, or NULL: the object */
	const char *finding;
	const char *what_to_do;
} SnowflakeFinding;

extern SnowflakeFinding *snowflake_convert_add_finding(List **findings, const char *severity,
													   const char *title, const char *object,
													   const char *finding,
													   const char *what_to_do);
extern char *snowflake_convert_join_lines(const List *lines, int limit);
extern void snowflake_convert_give_notice(const char *message, const char *detail,
										  const char *hint);
extern void snowflake_convert_give_list(const char *title, const List *lines,
										const char *hint);

#endif							/* SNOWFLAKE_CONVERT_FINDINGS_H */
