/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  The wall clock and the steady clock.
 *
 * The steady clock is never set, and is the same for all processes.  Where the
 * system has one that continues while the machine is suspended, that one is
 * used, so that resuming is not a jump of the wall clock.  (It is slewed like
 * the wall clock, so slewing does not make the two diverge.)
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * shared/clock.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "utils/timestamp.h"

#include "shared/clock.h"

#ifdef CLOCK_BOOTTIME
#define STEADY_CLOCK	CLOCK_BOOTTIME
#else
#define STEADY_CLOCK	CLOCK_MONOTONIC
#endif

/* Two readings that are this close count as simultaneous. */
#define SAME_TIME_US	1000
#define MAX_READINGS	10

/*
 * Microseconds since some time before server start.
 */
int64
snowflake_steady_clock(void)
{
	struct timespec now;

	(void) clock_gettime(STEADY_CLOCK, &now);
	return (int64) now.tv_sec * USECS_PER_SEC + now.tv_nsec / 1000;
}

/*
 * Read both clocks at the same time.
 *
 * The wall clock is read between two readings of the steady clock.  If these
 * are far apart, the process was delayed in between, and it is unknown which
 * of them matches the wall clock: the difference would look like a jump.  Then
 * the clocks are read again.
 */
void
snowflake_read_clocks(TimestampTz *wall, int64 *steady)
{
	int64		before = snowflake_steady_clock();

	for (int i = 0; i < MAX_READINGS; i++)
	{
		int64		previous = before;

		*wall = GetCurrentTimestamp();
		*steady = before = snowflake_steady_clock();
		if (*steady - previous <= SAME_TIME_US)
			break;
	}
}
