/*-------------------------------------------------------------------------
 *
 * limited_wait.c
 *	  Waits of a background worker that end in time, and at a shutdown.
 *
 * The worker that calls the registry waits for other machines, which may never
 * answer.  So each of its waits has an end, and each but those of its last call
 * ends when the process must stop.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/limited_wait.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"

#include "registry_client/calls/limited_wait.h"
#include "shared/clock.h"

/*
 * A limit that many milliseconds from now.
 */
WaitLimit
snowflake_limit_wait(int64 ms, bool ends_at_shutdown)
{
	WaitLimit	limit;

	limit.end = ms == SNOWFLAKE_NO_LIMIT_MS ? PG_INT64_MAX :
		snowflake_steady_clock() + ms * 1000;
	limit.ends_at_shutdown = ends_at_shutdown;
	return limit;
}

/*
 * A limit, or that many milliseconds from now if that is earlier.
 */
WaitLimit
snowflake_shorten_wait(const WaitLimit *limit, int64 ms)
{
	WaitLimit	shorter = snowflake_limit_wait(ms, limit->ends_at_shutdown);

	shorter.end = Min(shorter.end, limit->end);
	return shorter;
}

/*
 * Has a wait come to its end?  If so, append the reason.
 */
bool
snowflake_wait_is_over(const WaitLimit *limit, StringInfo error)
{
	CHECK_FOR_INTERRUPTS();
	if (ShutdownRequestPending && limit->ends_at_shutdown)
		appendStringInfoString(error, "server is shutting down");
	else if (snowflake_steady_clock() >= limit->end)
		appendStringInfoString(error, "no answer in time");
	else
		return false;
	return true;
}

/*
 * Wait for events of a socket.  Returns false if the wait comes to its end before that,
 * with the reason.
 */
bool
snowflake_limited_wait(const WaitLimit *limit, pgsocket socket, int events,
					   SnowflakeWaitEvent event, StringInfo error)
{
	while (!snowflake_wait_is_over(limit, error))
	{
		int64		left = limit->end - snowflake_steady_clock();
		int			rc =
			WaitLatchOrSocket(MyLatch,
							  events | WL_LATCH_SET | WL_TIMEOUT |
							  WL_EXIT_ON_PM_DEATH,
							  socket, (long) Min(Max(left, 0) / 1000 + 1, PG_INT32_MAX),
							  snowflake_wait_event(event));

		if (rc & WL_LATCH_SET)
			ResetLatch(MyLatch);
		if (rc & events)
			return true;
	}
	return false;
}
