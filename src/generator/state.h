/*-------------------------------------------------------------------------
 *
 * state.h
 *	  The generator's state in shared memory, its word, and its two locks.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/state.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_STATE_H
#define SNOWFLAKE_STATE_H

#include "access/xlogdefs.h"
#include "lib/ilist.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

#include "generator/word.h"
#include "shared/compat.h"

/*
 * Counters, each changed by itself, in the order of snowflake_stat.  The time that
 * calls waited for something follows how many did.
 */
typedef enum SnowflakeCounter
{
	SNOWFLAKE_SEQUENCE_WAITS,
	SNOWFLAKE_SEQUENCE_WAIT_US,
	SNOWFLAKE_CLOCK_WAITS,
	SNOWFLAKE_CLOCK_WAIT_US,
	SNOWFLAKE_RESERVE_WAITS,
	SNOWFLAKE_RESERVE_WAIT_US,
	SNOWFLAKE_GRANT_WAITS,
	SNOWFLAKE_GRANT_WAIT_US,
	SNOWFLAKE_CLOCK_ERRORS,
	SNOWFLAKE_MARK_ERRORS,
	SNOWFLAKE_CLOCK_STEPS,
	SNOWFLAKE_MAX_BACKWARD_US,
	SNOWFLAKE_RESERVES,
	SNOWFLAKE_COUNTERS
} SnowflakeCounter;

/* A backend that waits for the next tick.  Protected by the lock. */
typedef struct SnowflakeWaiter
{
	dlist_node	link;
	bool		queued;			/* in SnowflakeGenerator.queue? */
	int			wanted;			/* at most this many numbers */
	int			least;			/* fewer than these are of no use */

	/* The numbers it was given; written before given becomes nonzero. */
	int64		first;			/* the first ID */
	pg_atomic_uint32 given;		/* how many; cleared by the waiter */
} SnowflakeWaiter;

/*
 * The grant: the worker ID that this server generates IDs with, and the ticks
 * that it may use (grant.c).  Without a registry, the worker ID is that of the
 * settings, for all ticks.
 */
typedef struct SnowflakeGrant
{
	/* Changed with both locks held; generation is raised with the bits. */
	pg_atomic_uint64 generation;
	int64		worker_bits;	/* datacenter and worker ID in their places */

	/*
	 * The first tick that may not be entered.  What is reserved never goes
	 * past it.  Changed with the reserve lock held; lowered with both.
	 */
	pg_atomic_uint64 until;

	/* The members above are read for each ID. */
	char		pad[PG_CACHE_LINE_SIZE - 2 * sizeof(pg_atomic_uint64) - sizeof(int64)];

	int64		from;			/* the first tick that may be entered */
	int			worker_id;		/* of worker_bits; -1: none is granted */
	bool		registry;		/* is there one?  constant */
} SnowflakeGrant;

typedef struct SnowflakeGenerator
{
	/* In its own cache line: all backends write to it all the time. */
	pg_atomic_uint64 word;
	char		pad[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];

	SnowflakeGrant grant;

	LWLock	   *lock;			/* protects the word's tick, and the queue */

	/* Steady time when the word's tick began; changed with that. */
	pg_atomic_uint64 entered;

	/*
	 * The number of IDs generated is this plus the word's number (up to the
	 * limit): claims do not count.  Changed with the word's tick; changes is
	 * odd meanwhile, so that readers of both can detect it.
	 */
	pg_atomic_uint64 ids_before;
	pg_atomic_uint64 changes;

	/* Waiters for the next tick, in the order of their arrival. */
	dlist_head	queue;
	int			queue_length;

	/*
	 * The word may move to ticks below this one: they are reserved, because
	 * the durable mark is above all their IDs.  (Right after the mark was
	 * read, it may be in the middle of the last of them; but the word was
	 * lifted to the end of that tick, so none of its IDs can be generated.) 0
	 * if the mark has not been read since the start.  Changed with the
	 * reserve lock held.
	 */
	pg_atomic_uint64 reserved;

	/*
	 * The end of the WAL record of the mark that reserved them: synchronous
	 * standbys have to have it.  0 if none was reserved since the start.
	 */
	pg_atomic_uint64 mark_lsn;

	LWLock	   *reserve_lock;	/* held while the mark is read or written */
	ConditionVariable reserve_done; /* that lock was released */

	/* Changed with the reserve lock held, while no tick can be entered. */
	int64		first_tick;		/* the first tick after the start */
	bool		has_mark;		/* is the mark usable as a time? */

	/* Constant. */
	TimestampTz last_checkpoint;	/* before the start */
	TimestampTz created;		/* when initdb was run */

	/* Protected by the reserve lock: the mark that standbys do not have yet. */
	XLogRecPtr	pending_lsn;	/* invalid if there is none */
	int64		pending_end;	/* reserved when they have it */

	/* Protected by the reserve lock: the last write of the mark. */
	int64		written_at;		/* steady time, or 0 */
	int64		written_next;	/* the first tick that it was for */

	int64		previous_write_us;	/* write_us of the one before */

	/* How long the last write took, with the wait for its standbys. */
	pg_atomic_uint64 write_us;

	/* The postmaster's value of snowflake.synchronous_mark (settings.c). */
	bool		synchronous_mark;

	/* How many synchronous standbys are required, as standby.c says; or 0. */
	pg_atomic_uint32 required_standbys;

	/*
	 * The lead over the clock, in us, up to which no further WARNING is
	 * logged; and whether the last move did not follow the clock.
	 */
	pg_atomic_uint64 logged_lead;
	pg_atomic_uint32 not_followed;

	pg_atomic_uint64 counters[SNOWFLAKE_COUNTERS];
	pg_atomic_uint64 ids_reset; /* IDs generated before stats_reset */
	pg_atomic_uint64 stats_reset;

	SnowflakeWaiter waiters[FLEXIBLE_ARRAY_MEMBER]; /* by process number */
} SnowflakeGenerator;

/*
 * The word is in a cache line of its own, as is what is read with it for each
 * ID.  What changes with the tick is in neither.
 */
StaticAssertDecl(offsetof(SnowflakeGenerator, word) == 0 &&
				 offsetof(SnowflakeGenerator, grant) == PG_CACHE_LINE_SIZE,
				 "nothing shares the cache line of the word");
StaticAssertDecl(offsetof(SnowflakeGrant, until) + sizeof(pg_atomic_uint64) <= PG_CACHE_LINE_SIZE &&
				 offsetof(SnowflakeGrant, from) == PG_CACHE_LINE_SIZE,
				 "what is read for each ID has a cache line of its own");

/* The most that is reserved because of a slow disk or standby. */
#define SNOWFLAKE_MAX_RESERVE_US	INT64CONST(60000000)

extern PGDLLEXPORT SnowflakeGenerator *snowflake_state;
extern PGDLLEXPORT SnowflakeLayout snowflake_layout;

extern void snowflake_configure_state(const SnowflakeScheme *scheme);
extern void snowflake_request_state(void);
extern bool snowflake_attach_state(void);
extern void snowflake_init_worker_id(int worker_id, int64 from, int64 until);

/* The locks. */
extern void snowflake_lock_reserve(void);
extern bool snowflake_try_lock_reserve(void);
extern bool snowflake_lock_reserve_or_wait(void);
extern void snowflake_unlock_reserve(void);

/* The word. */
extern bool snowflake_change_word(uint64 *expected, uint64 new,
								  uint64 skipped);
extern void snowflake_exhaust_word(int64 tick, int64 entered);
extern void snowflake_reset_word(void);

/* What is reserved and granted. */
extern void snowflake_limit_reserve(int64 until);
extern void snowflake_change_worker_id(int worker_id, int64 from, int64 until);

extern void snowflake_take_snapshot(SnowflakeSnapshot *snapshot);
extern void snowflake_count(SnowflakeCounter counter, uint64 n);

/* The rules for the current settings. */
extern SnowflakeRules snowflake_rules(void);

/* The minimum number of ticks to reserve. */
extern int64 snowflake_reserve_ticks(void);

/* The first tick that may not be entered. */
static inline int64
snowflake_granted_until(void)
{
	return (int64) pg_atomic_read_u64(&snowflake_state->grant.until);
}

/* May the word move to a tick? */
static inline bool
snowflake_is_reserved(int64 tick)
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
snowflake_was_reserved(int64 tick)
{
	uint64		reserved = pg_atomic_read_u64(&snowflake_state->reserved);

	return reserved == 0 || tick < (int64) reserved;
}

#endif							/* SNOWFLAKE_STATE_H */
