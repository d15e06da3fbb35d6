/*-------------------------------------------------------------------------
 *
 * wait_event.h
 *	  The wait events of this module.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/wait_event.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_WAIT_EVENT_H
#define SNOWFLAKE_WAIT_EVENT_H

#include "shared/compat.h"

typedef enum SnowflakeWaitEvent
{
	SNOWFLAKE_EVENT_SEQUENCE,	/* a call, for the next tick */
	SNOWFLAKE_EVENT_CLOCK,		/* a call, for a clock that is behind */
	SNOWFLAKE_EVENT_RESERVE,	/* a call, for another that reserves ticks */
	SNOWFLAKE_EVENT_STANDBY,	/* a call, for synchronous standbys */
	SNOWFLAKE_EVENT_GRANT,		/* a call, for a grant */
	SNOWFLAKE_EVENT_RANGE,		/* a call, for a range of numbers */
	SNOWFLAKE_EVENT_GRANT_MAIN, /* the worker, for its next call */
	SNOWFLAKE_EVENT_RANGES_MAIN,	/* worker "snowflake ranges", for what is
									 * due */
	SNOWFLAKE_EVENT_REGISTRY,	/* a worker, for the registry's answer */
	SNOWFLAKE_EVENT_STANDBYS_MAIN	/* worker "snowflake standbys", for a
									 * reload */
} SnowflakeWaitEvent;

extern PGDLLEXPORT uint32 snowflake_wait_event(SnowflakeWaitEvent event);
extern void snowflake_push_wait_context(ErrorContextCallback *context,
										SnowflakeWaitEvent event);

#endif							/* SNOWFLAKE_WAIT_EVENT_H */
