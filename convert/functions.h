/*-------------------------------------------------------------------------
 *
 * functions.h
 *	  Functions that hold keys, and how they change.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/functions.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_FUNCTIONS_H
#define SNOWFLAKE_CONVERT_FUNCTIONS_H

#include "convert/queries.h"

extern void snowflake_convert_find_functions(SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_CONVERT_FUNCTIONS_H */
