/*-------------------------------------------------------------------------
 *
 * findings.h
 *	  What is said of a conversion: obstacles, notices, and rows of a report.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/findings.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_FINDINGS_H
#define SNOWFLAKE_CONVERT_FINDINGS_H

#include "convert/catalog/queries.h"

/* So many lines of a list are shown. */
#define SNOWFLAKE_CONVERT_LINES	10

typedef enum SnowflakeSeverity
{
	SNOWFLAKE_OBSTACLE,			/* prevents the conversion */
	SNOWFLAKE_WARNING,			/* needs a decision */
	SNOWFLAKE_INFO,
	SNOWFLAKE_SEVERITIES
} SnowflakeSeverity;

/* What is said of an object. */
typedef struct SnowflakeFinding
{
	SnowflakeSeverity severity;
	const char *title;			/* of all like it, or NULL if there are none */
	bool		is_list;		/* do these make one notice? */
	const char *object;
	const char *line;			/* in a list, or NULL: the object */
	const char *message;
	const char *detail;			/* or NULL */
	const char *hint;			/* or NULL: there is nothing to do */
	int			place;			/* of a column that was found, or 0 */
} SnowflakeFinding;

/* Which findings with the same title are told together. */
typedef enum SnowflakeGrouping
{
	SNOWFLAKE_GROUP_NONE,
	SNOWFLAKE_GROUP_LISTS,
	SNOWFLAKE_GROUP_ALL
} SnowflakeGrouping;

extern SnowflakeFinding *snowflake_convert_add_finding(List **findings,
													   SnowflakeSeverity severity,
													   const char *title, const char *object,
													   const char *message, const char *hint);
extern void snowflake_convert_add_obstacle(List **findings, const char *object,
										   const char *line, const char *hint);
extern bool snowflake_convert_ask_obstacles(const SnowflakeConversion *conversion,
											SnowflakeQuery query, List **findings);
extern List *snowflake_convert_ask_notices(const SnowflakeConversion *conversion,
										   SnowflakeQuery query);
extern bool snowflake_convert_has_obstacle(const List *findings);
extern List *snowflake_convert_group(const List *findings, SnowflakeGrouping grouping);
extern char *snowflake_convert_join_lines(const List *lines, int limit);
extern void snowflake_convert_give_notices(const SnowflakeConversion *conversion,
										   const List *findings);
extern void snowflake_convert_report_obstacles(const SnowflakeConversion *conversion,
											   const List *findings);

#endif							/* SNOWFLAKE_CONVERT_FINDINGS_H */
