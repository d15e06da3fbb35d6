/*-------------------------------------------------------------------------
 *
 * run.h
 *	  Runs the steps of a conversion.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/run.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_RUN_H
#define SNOWFLAKE_ONLINE_RUN_H

#include "convert/online/steps.h"
#include "convert/online/transaction.h"

extern void snowflake_online_run_steps(SnowflakeOnline *online);
extern bool snowflake_online_needs_access_exclusive(const SnowflakeOnlineStep *step);
extern char *snowflake_online_default_statement(const SnowflakeOnline *online);

#endif							/* SNOWFLAKE_ONLINE_RUN_H */
