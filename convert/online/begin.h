/*-------------------------------------------------------------------------
 *
 * begin.h
 *	  How a conversion of tables in use begins.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/begin.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_BEGIN_H
#define SNOWFLAKE_ONLINE_BEGIN_H

#include "fmgr.h"

#include "convert/online/transaction.h"

extern void snowflake_online_get_kind(FunctionCallInfo fcinfo, int argument,
									  SnowflakeOnline *online);
extern void snowflake_online_lock_conversions(bool until_commit);
extern void snowflake_online_unlock_conversions(void);
extern void snowflake_online_give_notices(SnowflakeConversion *conversion,
										  const List *steps, List *findings);
extern void snowflake_online_examine(SnowflakeOnline *online);
extern void snowflake_online_begin_function(FunctionCallInfo fcinfo,
											SnowflakeOnline *online);

#endif							/* SNOWFLAKE_ONLINE_BEGIN_H */
