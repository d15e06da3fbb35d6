/*-------------------------------------------------------------------------
 *
 * obstacles.h
 *	  What prevents a conversion.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/checks/obstacles.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_OBSTACLES_H
#define SNOWFLAKE_CONVERT_OBSTACLES_H

#include "convert/catalog/queries.h"

/* What prevents a conversion, and what to do about it. */
typedef struct SnowflakeObstacle
{
	const char *object;			/* the table or column that cannot be changed */
	const char *line;
	const char *hint;
} SnowflakeObstacle;

extern void snowflake_convert_add_obstacle(List **obstacles, const char *object,
										   const char *line, const char *hint);
extern void snowflake_convert_ask_obstacles(const SnowflakeConversion *conversion,
											SnowflakeQuery query, List **obstacles);
extern void snowflake_convert_find_type_obstacles(const SnowflakeConversion *conversion,
												  List **obstacles);
extern void snowflake_convert_find_trigger_obstacles(const SnowflakeConversion *conversion,
													 List **obstacles);
extern void snowflake_convert_find_obstacles(const SnowflakeConversion *conversion,
											 List **obstacles);
extern void snowflake_convert_report_obstacles(const SnowflakeConversion *conversion,
											   const List *obstacles);

#endif							/* SNOWFLAKE_CONVERT_OBSTACLES_H */
