/*-------------------------------------------------------------------------
 *
 * state.h
 *	  The generator's state in shared memory, for the files that share it:
 *	  generator.c and reserve.c.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/state.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_STATE_H
#define SNOWFLAKE_STATE_H

#include "access/xlogdefs.h"
#include "lib/ilist.h"
#include "port/pg_crc32c.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/uuid.h"

#include "generator.h"
#include "word.h"

/* How often and how long calls waited for something. */
typedef struct WaitCounter
{
	pg_atomic_uint64 waits;		/* calls that waited */
	pg_atomic_uint64 wait_us;
} WaitCounter;

/* A backend that waits for the next tick.  Protected by the lock. */
typedef struct Waiter
{
	dlist_node	link;
	bool		queued;			/* in Generator.queue? */
	int			wanted;			/* at most this many numbers */

	/* The numbers it was given; written before given becomes nonzero. */
	int64		first;			/* the first ID */
	pg_atomic_uint32 given;		/* how many; cleared by the waiter */
} Waiter;

/* Room for the error of a call of the registry. */
#define SNOWFLAKE_REGISTRY_ERROR_SIZE	1024

/* Maximum number of tokens that might be the current one. */
#define SNOWFLAKE_MAX_TOKENS	16

/*
 * The part of a registry's grant that is kept when a backend crashes and other
 * shared memory is reinitialized (grant.c).  Protected by the reserve lock.
 */
typedef struct KeptGrant
{
	int			worker_id;		/* -1: none is granted */
	int64		from;			/* the first tick granted */
	int64		until;			/* and the first one that is not */

	/* The last token that was confirmed, and those sent since. */
	int			ntokens;
	pg_uuid_t	tokens[SNOWFLAKE_MAX_TOKENS];
	pg_crc32c	crc;
} KeptGrant;

/*
 * The grant: the worker ID that this server makes IDs with, up to a tick
 * (grant.c).
 */
typedef struct Grant
{
	/* Changed with both locks held; number is raised with the constant. */
	pg_atomic_uint64 number;
	int64		constant;		/* datacenter and worker ID in their places */

	/*
	 * The first tick that may not be entered.  What is reserved never goes
	 * past it.  Changed with the reserve lock held; lowered with both.
	 */
	pg_atomic_uint64 until;

	/* The members above are read for each ID. */
	char		pad[PG_CACHE_LINE_SIZE - 2 * sizeof(pg_atomic_uint64) - sizeof(int64)];

	bool		registry;		/* is there one?  constant */
	int			worker_id;		/* of the constant; -1: none is granted */
	ConditionVariable changed;	/* the grant was changed */

	/* Protected by the mutex. */
	slock_t		mutex;
	Latch	   *worker_latch;	/* or NULL */
	TimestampTz contact;		/* the registry's last answer, or 0 */
	TimestampTz error_since;	/* 0: there is no error */
	char		error[SNOWFLAKE_REGISTRY_ERROR_SIZE];

	KeptGrant	unkept;			/* if it cannot be kept */
} Grant;

typedef struct Generator
{
	/* In its own cache line: all backends write to it all the time. */
	pg_atomic_uint64 word;
	char		pad[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];

	Grant		grant;

	LWLock	   *lock;			/* protects the word's tick, and the queue */

	/* Steady time when the word's tick began; changed with that. */
	pg_atomic_uint64 entered;

	/*
	 * The number of IDs made is this plus the word's number (up to the
	 * limit): claims do not count.  Changed with the word's tick; changes is
	 * odd meanwhile, so that readers of both can detect it.
	 */
	pg_atomic_uint64 ids_before;
	pg_atomic_uint64 changes;

	/* Waiters for the next tick, in the order of their arrival. */
	dlist_head	queue;
	int			queue_length;

	/*
	 * The word may move to ticks below this one: they are reserved, as the
	 * durable mark is above all their IDs.  (Right after the mark was read,
	 * it may be in the middle of the last of them; but the word was lifted to
	 * the end of that tick, so none of its IDs can be made.)  0 if the mark
	 * has not been read since the start.  Changed with the reserve lock held.
	 */
	pg_atomic_uint64 reserved;

	LWLock	   *reserve_lock;	/* held while the mark is read or written */
	ConditionVariable reserve_done; /* that lock was released */

	/* Changed with the reserve lock held, while no tick can be entered. */
	int64		first_tick;		/* the first tick after the start */
	bool		has_mark;		/* does it tell something of the time? */

	TimestampTz last_checkpoint;	/* before the start; constant, as is */
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

	/*
	 * The lead over the clock, in us, up to which no further WARNING is
	 * logged; and whether one was logged for a clock that is not followed.
	 */
	pg_atomic_uint64 known_lead;
	pg_atomic_uint32 not_followed;

	/* Counters, each changed by itself. */
	WaitCounter sequence_waits;
	WaitCounter clock_waits;
	WaitCounter reserve_waits;
	WaitCounter grant_waits;
	pg_atomic_uint64 clock_errors;
	pg_atomic_uint64 clock_steps;
	pg_atomic_uint64 max_backward_us;
	pg_atomic_uint64 reserves;
	pg_atomic_uint64 ids_reset; /* IDs made before stats_reset */
	pg_atomic_uint64 stats_reset;

	Waiter		waiters[FLEXIBLE_ARRAY_MEMBER]; /* by process number */
} Generator;

/*
 * The word is in a cache line of its own, as is what is read with it for each
 * ID.  What changes with the tick is in neither.
 */
StaticAssertDecl(offsetof(Generator, word) == 0 &&
				 offsetof(Generator, grant) == PG_CACHE_LINE_SIZE,
				 "nothing shares the cache line of the word");
StaticAssertDecl(offsetof(Grant, until) + sizeof(pg_atomic_uint64) <= PG_CACHE_LINE_SIZE &&
				 offsetof(Grant, registry) == PG_CACHE_LINE_SIZE,
				 "what is read for each ID has a cache line of its own");

/* The most that is reserved because of a slow disk or standby. */
#define SNOWFLAKE_MAX_RESERVE_US	INT64CONST(60000000)

extern Generator *snowflake_state;
extern SnowflakeLayout snowflake_layout;

extern void snowflake_check_loaded(void);
extern void snowflake_check_primary(const char *action);
extern bool snowflake_change_word(uint64 *expected, uint64 new,
								  uint64 skipped);
extern void snowflake_take_moment(SnowflakeMoment *moment);
extern void snowflake_nap(int64 us, uint32 wait_event, WaitCounter *counter,
						  int *naps);

/* The rules for the current settings. */
extern SnowflakeRules snowflake_rules(void);

/* The minimum number of ticks to reserve. */
extern int64 snowflake_reserve_ticks(void);

#endif							/* SNOWFLAKE_STATE_H */
