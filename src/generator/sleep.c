/*-------------------------------------------------------------------------
 *
 * sleep.c
 *	  Sleeping until the clock has moved.
 *
 * Nobody sleeps with a lock held, every sleep can be cancelled, and none outlasts
 * the postmaster.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/sleep.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "utils/wait_event.h"

#include "generator/sleep.h"

/* The longest sleep before the clock is checked again. */
#define MAX_SLEEP_US	INT64CONST(100000)

/*
 * End this process if the postmaster has died, as WaitLatch() does.  A loop
 * that only generates IDs waits for nothing else, and the server cannot be
 * started again as long as it runs.  Where the kernel sends a signal when the
 * postmaster dies, this only looks at a flag.
 */
void
snowflake_exit_on_postmaster_death(void)
{
	if (IsUnderPostmaster && !PostmasterIsAlive())
		proc_exit(1);
}

/*
 * Sleep, without holding a lock, for this time or a little longer, but not for
 * long: the caller checks the clock again, which may have been set.  sleeps
 * counts the sleeps of a call.
 *
 * WaitLatch() sleeps for whole milliseconds.  The rest of the time to the next
 * tick is slept without the latch, which delays interrupts by less than 2 ms.
 * A process may never sleep for longer, so the death of the postmaster is
 * looked for there, too.
 */
void
snowflake_sleep(int64 us, SnowflakeWaitEvent event, SnowflakeCounter waits,
				int *sleeps)
{
	uint32		wait_event = snowflake_wait_event(event);
	instr_time	start;
	instr_time	slept;
	ErrorContextCallback context;

	Assert(!LWLockHeldByMe(snowflake_state->lock));
	Assert(!LWLockHeldByMe(snowflake_state->reserve_lock));
	us = Min(us, MAX_SLEEP_US);
	if ((*sleeps)++ == 0)
		snowflake_count(waits, 1);
	INSTR_TIME_SET_CURRENT(start);
	if (us >= 2000)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 us / 1000, wait_event);
		ResetLatch(MyLatch);
	}
	else
	{
		snowflake_exit_on_postmaster_death();
		pgstat_report_wait_start(wait_event);
		pg_usleep(us);
		pgstat_report_wait_end();
	}
	INSTR_TIME_SET_CURRENT(slept);
	INSTR_TIME_SUBTRACT(slept, start);
	snowflake_count(waits + 1, INSTR_TIME_GET_MICROSEC(slept));

	snowflake_push_wait_context(&context, event);
	CHECK_FOR_INTERRUPTS();
	error_context_stack = context.previous;
}
