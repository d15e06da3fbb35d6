/*-------------------------------------------------------------------------
 *
 * backfill.h
 *	  Copies the old columns of a table to the new ones.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/backfill.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_BACKFILL_H
#define SNOWFLAKE_ONLINE_BACKFILL_H

#include "convert/online/steps.h"
#include "convert/online/transaction.h"

extern void snowflake_online_backfill(SnowflakeOnline *online,
									  const SnowflakeOnlineStep *step);
extern int	snowflake_online_backfill_percent(const SnowflakeConversion *conversion,
											  const SnowflakeOnlineStep *step);

#endif							/* SNOWFLAKE_ONLINE_BACKFILL_H */
