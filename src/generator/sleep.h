/*-------------------------------------------------------------------------
 *
 * sleep.h
 *	  Sleeping until the clock has moved.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/sleep.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SLEEP_H
#define SNOWFLAKE_SLEEP_H

#include "base/wait_event.h"
#include "generator/state.h"

extern void snowflake_sleep(int64 us, SnowflakeWaitEvent event,
							SnowflakeCounter waits, int *sleeps);
extern void snowflake_exit_on_postmaster_death(void);

#endif							/* SNOWFLAKE_SLEEP_H */
