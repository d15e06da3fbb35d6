/*-------------------------------------------------------------------------
 *
 * columns.h
 *	  Which columns that hold a key without a foreign key are widened.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/columns.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_COLUMNS_H
#define SNOWFLAKE_CONVERT_COLUMNS_H

#include "convert/catalog/queries.h"

extern void snowflake_convert_check_widen(const char *widen);
extern void snowflake_convert_choose_columns(SnowflakeConversion *conversion,
											 const char *widen);
extern void snowflake_convert_find_holders(SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_CONVERT_COLUMNS_H */
