/*-------------------------------------------------------------------------
 *
 * calls.h
 *	  Names that are looked up again.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/calls.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_CALLS_H
#define SNOWFLAKE_CONVERT_CALLS_H

#include "convert/queries.h"

extern void snowflake_convert_hold_calls(const SnowflakeConversion *conversion);
extern void snowflake_convert_hold_names(const List *relids);
extern void snowflake_convert_hold_tables(const SnowflakeConversion *conversion);
extern void snowflake_convert_hold_calls_longer(void);
extern void snowflake_convert_release_calls(void);

#endif							/* SNOWFLAKE_CONVERT_CALLS_H */
