/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  The wall clock and the steady clock.
 *
 * The steady clock is never set, and all processes read the same.  Where the
 * system has one that goes on while the machine is suspended, it is that one:
 * waking up is no leap of the wall clock then.  (It is slewed as the wall
 * clock is, so slewing does not part the two.)
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/clock.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "utils/timestamp.h"

#include "clock.h"

#ifdef CLOCK_BOOTTIME
#define STEADY_CLOCK	CLOCK_BOOTTIME
#else
#define STEADY_CLOCK	CLOCK_MONOTONIC
#endif

/* Two readings that are this near to each other count as one. */
#define SAME_TIME_US	1000
#define MAX_READINGS	10

/*
 * Microseconds since some time before the server's start.
 */
int64
snowflake_steady_clock(void)
{
	struct timespec now;

	(void) clock_gettime(STEADY_CLOCK, &now);
	return (int64) now.tv_sec * USECS_PER_SEC + now.tv_nsec / 1000;
}

/*
 * Read both clocks at once.
 *
 * The wall clock is read between two readings of the steady clock.  If those
 * are far apart, the process was held up in between, and it is not known which
 * of them belongs to the wall clock's: the difference would look like a leap.
 * Then they are read again.
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
