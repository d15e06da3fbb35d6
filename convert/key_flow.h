/*-------------------------------------------------------------------------
 *
 * key_flow.h
 *	  Which parameters, variables and results of functions hold keys.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/key_flow.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_KEY_FLOW_H
#define SNOWFLAKE_CONVERT_KEY_FLOW_H

#include "nodes/pg_list.h"

#include "convert/variables.h"

extern void snowflake_convert_follow_keys(const List *functions, const List *key_names);
extern List *snowflake_convert_find_casts(const SnowflakeFunction *function,
										  const List *functions, const List *key_names);

#endif							/* SNOWFLAKE_CONVERT_KEY_FLOW_H */
