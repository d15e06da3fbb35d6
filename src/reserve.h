/*-------------------------------------------------------------------------
 *
 * reserve.h
 *	  Reserving ticks: a durable mark above their IDs.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/reserve.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RESERVE_H
#define SNOWFLAKE_RESERVE_H

#include "grant.h"
#include "state.h"

extern bool snowflake_get_reserve_lock(bool required);
extern void snowflake_release_reserve_lock(void);

extern void snowflake_reserve(bool required, int *naps);
extern int64 snowflake_next_tick(void);
extern void snowflake_begin_reserving(void);
extern void snowflake_set_mark(int64 mark);
extern TimestampTz snowflake_accept_clock_now(void);

/* May the word move to a tick? */
static inline bool
is_reserved(int64 tick)
{
	return tick < (int64) pg_atomic_read_u64(&snowflake_state->reserved);
}

/*
 * May the word be at a tick?  It moved there when the tick was reserved.  The
 * reserve may have been forgotten since then, but then nothing is reserved
 * until the word was lifted with the lock held.  For assertions, with the lock
 * held.
 */
static inline bool
may_stand_at(int64 tick)
{
	uint64		reserved = pg_atomic_read_u64(&snowflake_state->reserved);

	return reserved == 0 || tick < (int64) reserved;
}

/* Are few reserved ticks left, and can more be reserved? */
static inline bool
reserve_is_low(int64 tick)
{
	int64		reserved = (int64) pg_atomic_read_u64(&snowflake_state->reserved);

	return reserved - tick <= snowflake_reserve_ticks() / 2 &&
		reserved < granted_until();
}

#endif							/* SNOWFLAKE_RESERVE_H */
