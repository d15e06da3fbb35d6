/*-------------------------------------------------------------------------
 *
 * waits.c
 *	  Waits of a conversion: naps, and what is reported during them.
 *
 * Times here and in the other files of online conversions are those of the steady
 * clock, because a call that naps until a time of a wall clock which is set back
 * meanwhile would do so for as long.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/waits.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#include "convert/catalog/queries.h"
#include "convert/online/waits.h"
#include "shared/clock.h"
#include "shared/compat.h"

/* How often a wait is reported. */
#define REPORT_US	INT64CONST(5000000)

/*
 * Sleep, with a wait event.
 */
void
snowflake_online_nap(double ms)
{
	static uint32 event = 0;
	int64		end = snowflake_steady_clock() + (int64) ceil(ms * 1000);

	if (event == 0)
		event = snowflake_new_wait_event("SnowflakeConvert");
	for (;;)
	{
		int64		rest = end - snowflake_steady_clock();

		CHECK_FOR_INTERRUPTS();
		if (rest <= 0)
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) (rest / 1000 + 1), event);
		ResetLatch(MyLatch);
	}
}

/*
 * Sleep for a time that others do not sleep, who wait for the same.
 */
void
snowflake_online_nap_about(double ms)
{
	snowflake_online_nap(ms * (0.5 + pg_prng_double(&pg_global_prng_state)));
}

/*
 * The next wait is another one.
 */
void
snowflake_online_end_wait(SnowflakeOnline *online)
{
	online->wait.start = online->wait.told = 0;
}

/*
 * Report a wait every few seconds, and give up after a time.
 */
void
snowflake_online_report_wait(SnowflakeOnline *online, const char *what, const char *who)
{
	int64		now = snowflake_steady_clock();

	if (online->wait.start == 0)
		online->wait.start = now;
	if (online->options.give_up_us > 0 &&
		now - online->wait.start > online->options.give_up_us)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("gave up waiting to %s", what),
				 who == NULL ? 0 : errdetail_internal("%s", who),
				 online->options.undo ?
				 errhint("Nothing was undone. Call snowflake_convert_undo() again.") :
				 errhint("What is done is kept. Call snowflake_convert_online() again to continue.")));
	if (now - online->wait.told > REPORT_US)
	{
		online->wait.told = now;
		ereport(NOTICE,
				(errmsg("waiting to %s", what),
				 who == NULL ? 0 : errdetail_internal("%s", who)));
	}
}

/*
 * Report the oldest transaction that a statement such as CREATE INDEX
 * CONCURRENTLY will wait for, if there is one.  It waits by itself, for as long
 * as that takes; nobody waits for it.
 */
void
snowflake_online_report_transactions(const SnowflakeOnline *online, const char *what)
{
	char	   *age = psprintf(INT64_FORMAT " ms",
							   (int64) online->options.lock_ms * SNOWFLAKE_PATIENCE);
	List	   *rows = snowflake_convert_ask_server(list_make1(age), sql_oldest_transaction);

	if (rows != NIL)
		ereport(NOTICE,
				(errmsg("waiting to %s", what),
				 errdetail_internal("%s", snowflake_convert_first(rows))));
}
