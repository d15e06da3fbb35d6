/*-------------------------------------------------------------------------
 *
 * reserve.h
 *	  Reserving ticks: a durable mark above their IDs.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/reserve.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RESERVE_H
#define SNOWFLAKE_RESERVE_H

#include "access/xlogdefs.h"

#include "shared/compat.h"

extern bool snowflake_reserve_is_low(int64 tick);
extern void snowflake_reserve(bool required, int *sleeps);
extern bool snowflake_mark_is_unconfirmed(void);
extern void snowflake_confirm_mark(int *sleeps);
extern void snowflake_wait_for_standbys(XLogRecPtr lsn, int *sleeps);

/* Read the mark, if nobody did since the start. */
extern PGDLLEXPORT void snowflake_recover(void);
extern PGDLLEXPORT int64 snowflake_next_tick(void);
extern void snowflake_begin_reserving(void);

/* For those who set the mark, with the reserve lock held. */
extern void snowflake_forget_reserve(void);
extern uint64 snowflake_recover_mark(bool after_reset);

#endif							/* SNOWFLAKE_RESERVE_H */
