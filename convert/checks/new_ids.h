/*-------------------------------------------------------------------------
 *
 * new_ids.h
 *	  Whether tables accept the IDs to come.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/checks/new_ids.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_NEW_IDS_H
#define SNOWFLAKE_CONVERT_NEW_IDS_H

#include "convert/catalog/queries.h"

extern char *snowflake_convert_generate(const SnowflakeKey *key);
extern void snowflake_convert_check_new_ids(const SnowflakeConversion *conversion,
											List **obstacles);

#endif							/* SNOWFLAKE_CONVERT_NEW_IDS_H */
