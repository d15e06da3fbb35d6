/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  The wall clock and the steady clock.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * shared/clock.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CLOCK_H
#define SNOWFLAKE_CLOCK_H

#include "datatype/timestamp.h"

extern int64 snowflake_steady_clock(void);
extern void snowflake_read_clocks(TimestampTz *wall, int64 *steady);

#endif							/* SNOWFLAKE_CLOCK_H */
