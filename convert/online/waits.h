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

/*
 * One attempt at what is waited for.  If it fails, it has reported the wait, and
 * ended the transaction that it began.
 */
typedef bool (*SnowflakeOnlineAttempt) (SnowflakeOnline *online, void *argument);

/* Transactions older than so many times lock_wait are waited for. */
#define SNOWFLAKE_PATIENCE	INT64CONST(3)

extern void snowflake_online_nap(double ms);
extern void snowflake_online_nap_about(double ms);
extern void snowflake_online_wait_until(SnowflakeOnline *online,
										SnowflakeOnlineAttempt attempt,
										void *argument, double ms);
extern void snowflake_online_end_wait(SnowflakeOnline *online);
extern void snowflake_online_report_wait(SnowflakeOnline *online, const char *what,
										 const char *who);
extern void snowflake_online_report_transactions(const SnowflakeOnline *online,
												 const char *what);

#endif							/* SNOWFLAKE_ONLINE_WAITS_H */
