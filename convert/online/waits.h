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

#include "convert/online/transaction.h"

/* About how long until a lock is requested again. */
#define SNOWFLAKE_RETRY_MS	400

/* Transactions older than so many times lock_wait are waited for. */
#define SNOWFLAKE_PATIENCE	INT64CONST(3)

extern void snowflake_online_nap(double ms);
extern void snowflake_online_nap_about(double ms);
extern void snowflake_online_end_wait(SnowflakeOnline *online);
extern void snowflake_online_report_wait(SnowflakeOnline *online, const char *what,
										 const char *who);
extern void snowflake_online_report_transactions(const SnowflakeOnline *online,
												 const char *what);

#endif							/* SNOWFLAKE_ONLINE_WAITS_H */
