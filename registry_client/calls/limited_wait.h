/*-------------------------------------------------------------------------
 *
 * limited_wait.h
 *	  Waits of a background worker that end in time, and at a shutdown.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/limited_wait.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LIMITED_WAIT_H
#define SNOWFLAKE_LIMITED_WAIT_H

#include "lib/stringinfo.h"

#include "base/wait_event.h"

/* What ends a wait. */
typedef struct WaitLimit
{
	int64		end;			/* by the steady clock */
	bool		ends_at_shutdown;	/* or when the process must stop */
} WaitLimit;

/* As a length of time: no limit by the clock. */
#define SNOWFLAKE_NO_LIMIT_MS	(-1)

extern WaitLimit snowflake_limit_wait(int64 ms, bool ends_at_shutdown);
extern WaitLimit snowflake_shorten_wait(const WaitLimit *limit, int64 ms);
extern bool snowflake_wait_is_over(const WaitLimit *limit, StringInfo error);
extern bool snowflake_limited_wait(const WaitLimit *limit, pgsocket socket,
								   int events, SnowflakeWaitEvent event,
								   StringInfo error);

#endif							/* SNOWFLAKE_LIMITED_WAIT_H */
