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

extern bool snowflake_convert_find_obstacles(const SnowflakeConversion *conversion,
											 List **obstacles);

#endif							/* SNOWFLAKE_CONVERT_OBSTACLES_H */
