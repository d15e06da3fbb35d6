/*-------------------------------------------------------------------------
 *
 * key_functions.h
 *	  Functions that hold keys in integers, of tables in use.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/key_functions.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_KEY_FUNCTIONS_H
#define SNOWFLAKE_ONLINE_KEY_FUNCTIONS_H

#include "convert/queries.h"

extern SnowflakeConversion snowflake_online_with_functions(const SnowflakeConversion *conversion);
extern char *snowflake_online_function_statements(const SnowflakeConversion *conversion);
extern void snowflake_online_change_functions(const SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_ONLINE_KEY_FUNCTIONS_H */
