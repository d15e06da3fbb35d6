/*-------------------------------------------------------------------------
 *
 * waits.h
 *	  Waits of a conversion.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/waits.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_WAITS_H
#define SNOWFLAKE_ONLINE_WAITS_H

#include "convert/online/online.h"

/* Before a lock is requested again. */
#define SNOWFLAKE_RETRY_MS		200
#define SNOWFLAKE_RETRY_MORE_MS	400

/* Transactions older than so many times lock_wait are waited for. */
#define SNOWFLAKE_PATIENCE	INT64CONST(3)

extern void snowflake_online_nap(double ms);
extern void snowflake_online_report_wait(SnowflakeOnline *online, const char *what,
										 const char *who);
extern void snowflake_online_report_transactions(const SnowflakeOnline *online,
												 const char *what);

#endif							/* SNOWFLAKE_ONLINE_WAITS_H */
