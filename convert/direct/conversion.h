/*-------------------------------------------------------------------------
 *
 * conversion.h
 *	  The steps of a conversion, of one key or of many.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/conversion.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_CONVERSION_H
#define SNOWFLAKE_CONVERT_CONVERSION_H

#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"

extern void snowflake_convert_refuse_old_snapshot(void);
extern bool snowflake_convert_prepare(SnowflakeConversion *conversion, Oid owner);
extern bool snowflake_convert_list_obstacles(const SnowflakeConversion *conversion,
											 List **findings);
extern List *snowflake_convert_list_notices(const SnowflakeConversion *conversion);
extern List *snowflake_convert_find_statements(SnowflakeConversion *conversion);
extern void snowflake_convert_execute(SnowflakeConversion *conversion,
									  const List *statements);
extern void snowflake_convert_lock_and_plan(SnowflakeConversion *conversion,
											SnowflakeWork plan, void *argument);

#endif							/* SNOWFLAKE_CONVERT_CONVERSION_H */
