/*-------------------------------------------------------------------------
 *
 * wait_event.c
 *	  The wait events of this module.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/wait_event.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/wait_event.h"
#include "shared/compat.h"

static const char *const names[] = {
	[SNOWFLAKE_EVENT_SEQUENCE] = "SnowflakeSequence",
	[SNOWFLAKE_EVENT_CLOCK] = "SnowflakeClock",
	[SNOWFLAKE_EVENT_RESERVE] = "SnowflakeReserve",
	[SNOWFLAKE_EVENT_STANDBY] = "SnowflakeStandby",
	[SNOWFLAKE_EVENT_GRANT] = "SnowflakeGrant",
	[SNOWFLAKE_EVENT_RANGE] = "SnowflakeRange",
	[SNOWFLAKE_EVENT_GRANT_MAIN] = "SnowflakeGrantMain",
	[SNOWFLAKE_EVENT_RANGES_MAIN] = "SnowflakeRangesMain",
	[SNOWFLAKE_EVENT_REGISTRY] = "SnowflakeRegistry",
	[SNOWFLAKE_EVENT_STANDBYS_MAIN] = "SnowflakeStandbysMain",
};

/* What calls wait for, for messages. */
static const char *const contexts[
								  lengthof(names)] =
{
	[SNOWFLAKE_EVENT_SEQUENCE] = "the next tick of snowflake IDs",
		[SNOWFLAKE_EVENT_CLOCK] = "the clock to reach the last snowflake ID",
		[SNOWFLAKE_EVENT_STANDBY] = "synchronous standbys to have the mark of snowflake IDs",
		[SNOWFLAKE_EVENT_GRANT] = "the registry to grant a snowflake worker ID",
		[SNOWFLAKE_EVENT_RANGE] = "the registry to grant a range of numbers",
};

static void
wait_context(void *arg)
{
	const char *what = arg;

	errcontext("while waiting for %s", what);
}

/*
 * Add what is waited for to messages, such as that of a timeout, until the caller
 * takes the context away.
 */
void
snowflake_push_wait_context(ErrorContextCallback *context,
							SnowflakeWaitEvent event)
{
	Assert(contexts[event] != NULL);
	context->callback = wait_context;
	context->arg = unconstify(char *, contexts[event]);
	context->previous = error_context_stack;
	error_context_stack = context;
}

/*
 * The number of a wait event, which the server assigns to its name.
 */
uint32
snowflake_wait_event(SnowflakeWaitEvent event)
{
	static uint32 numbers[lengthof(names)];

	if (numbers[event] == 0)
		numbers[event] = snowflake_new_wait_event(names[event]);
	return numbers[event];
}
