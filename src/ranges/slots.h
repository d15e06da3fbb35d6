/*-------------------------------------------------------------------------
 *
 * slots.h
 *	  Ranges of numbers, in shared memory.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/slots.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SLOTS_H
#define SNOWFLAKE_SLOTS_H

#include "datatype/timestamp.h"
#include "lib/ilist.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

#include "shared/compat.h"

/* Room for a name: schema.sequence, each part quoted where that is needed. */
#define SNOWFLAKE_RANGE_NAME_SIZE	264

/* Room for each text of an answer; longer ones are cut. */
#define SNOWFLAKE_RANGE_TEXT_SIZE	512

/* The most numbers that are asked for, and the greatest INCREMENT. */
#define SNOWFLAKE_MAX_RANGE			(INT64CONST(1) << 31)
#define SNOWFLAKE_MAX_RANGE_STEP	1000000

/*
 * A range.  What makes a number of a claim is valid if the generation is that
 * of the claim after it was read.
 */
typedef struct RangeSegment
{
	pg_atomic_uint64 generation;	/* or NO_GENERATION */
	int64		first;
	int64		count;			/* how many numbers */
	int64		step;			/* how many each claim takes */
	uint32		version;		/* of the slot */
} RangeSegment;

/*
 * Why the registry grants no range.  The first ones are its own words, the others
 * are what the client finds in an answer.
 */
typedef enum RangeProblem
{
	PROBLEM_NONE,
	PROBLEM_STOPPED,			/* it grants nothing to anybody */
	PROBLEM_REPORT,				/* this server has to report before */
	PROBLEM_BUSY,				/* somebody has locked the sequence */
	PROBLEM_UNKNOWN,			/* it does not know the name */
	PROBLEM_DATABASE,			/* nor the database */
	PROBLEM_FLOOR,				/* it does not take the floor */
	PROBLEM_MAXIMUM,			/* none is left up to MAXVALUE */
	PROBLEM_LAST,				/* ... up to what it has as the last number */
	PROBLEM_VALUE,				/* it refused a value of the call */
	PROBLEM_ANSWER,				/* it granted what cannot be granted */
	PROBLEM_GRANTED				/* it granted what was granted before */
} RangeProblem;

/* In which queue of what the registry is to be asked a slot is (range_needs.c). */
typedef enum RangeQueue
{
	RANGE_NOT_QUEUED,
	RANGE_QUEUED,
	RANGE_QUEUED_FIRST			/* sessions wait */
} RangeQueue;

/* The ranges of a name.  numbers.c has the protocol. */
typedef struct RangeSlot
{
	/* In its own cache line: the current generation, and what is used of it. */
	pg_atomic_uint64 word;
	char		pad[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];

	/* The current range, and the one in reserve; by their generation. */
	RangeSegment segments[2];
	char		pad2[PG_CACHE_LINE_SIZE - 2 * sizeof(RangeSegment)];

	/* All else is protected by the lock. */
	uint32		version;		/* changes with what the slot belongs to */
	int			next;			/* slot with the same hash, or -1 */
	char		database[NAMEDATALEN];
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];
	char		source[NAMEDATALEN];	/* database that was copied, or empty */
	Oid			owner;			/* of a sequence; or no session has used it */
	Oid			copied_in;		/* the database, if it was copied */
	Oid			attached_in;	/* the database of the last such sequence */
	Oid			attached;		/* that sequence */
	int64		last;			/* the lowest MAXVALUE that has numbers left */
	int64		step;			/* INCREMENT */
	int64		step_until;		/* others wait with another INCREMENT */

	/*
	 * When a number was used, at the latest, and the word when that was
	 * noted.
	 */
	int64		used_at;
	uint64		used_word;

	/* The greatest number that was granted, and from which on others are. */
	int64		granted;
	int64		next_number;	/* or 0: the registry does not know the name */
	int64		next_asked;		/* when a session asked for that */
	int64		next_heard;		/* it is as new as this */

	/* Floors; -1: none.  What is not above heard or asked was given up. */
	int64		heard;			/* from the registry */
	int64		asked;			/* by a session, not answered yet */
	int64		told;			/* to the registry */
	int64		settled;		/* nobody gives out what is not above it */
	uint32		connection;		/* over which the registry answered */

	/* What is to be asked. */
	RangeQueue	queue;
	dlist_node	node;			/* of the queue */
	bool		wanted;			/* a range */
	int64		ask_at;			/* not before, unless others are asked for */
	int64		retry_at;		/* not before, by the steady clock */
	int64		waited_until;	/* sessions wait for it until then */

	/* Numbers used in this and in the last window, for the size. */
	int64		current_since;	/* when the current range began */
	int64		window_since;
	int64		window_us;		/* 0: not known yet */
	int64		used_now;
	int64		used_before;

	int64		problem_at;		/* by the steady clock */
	RangeProblem problem_kind;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE]; /* a sentence */
	char		waits_for[SNOWFLAKE_RANGE_TEXT_SIZE];	/* or empty */
	ConditionVariable changed;
} RangeSlot;

StaticAssertDecl(offsetof(RangeSlot, segments) == PG_CACHE_LINE_SIZE &&
				 offsetof(RangeSlot, version) == 2 * PG_CACHE_LINE_SIZE,
				 "word and segments have cache lines of their own");

/* What a session knows of a slot. */
typedef struct RangeHandle
{
	RangeSlot  *slot;			/* or NULL */
	uint32		version;
	Oid			relid;
	int64		step;
	int64		last;
} RangeHandle;

/* What is known of the numbers of a name. */
typedef struct RangeStatistics
{
	int64		granted;		/* the greatest number, or 0 */
	int64		held;			/* numbers that this server has */
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
} RangeStatistics;

/* Why the last call failed. */
typedef struct RangeFailure
{
	bool		worker_runs;
	TimestampTz since;			/* 0: it did not */
	char		why[SNOWFLAKE_RANGE_TEXT_SIZE];
} RangeFailure;

extern void snowflake_request_slots(void);
extern void snowflake_attach_slots(void);
extern bool snowflake_ranges_enabled(void);
extern PGDLLEXPORT void snowflake_set_range_worker_latch(Latch *latch);

/* The lock, and what is done while it is held. */
extern PGDLLEXPORT void snowflake_lock_ranges(void);
extern PGDLLEXPORT void snowflake_unlock_ranges(void);
extern void snowflake_unlock_and_wake_ranges(void);
extern PGDLLEXPORT RangeSlot *snowflake_range_slot(int number);
extern PGDLLEXPORT int snowflake_slot_number(const RangeSlot *slot);
extern PGDLLEXPORT RangeSlot *snowflake_look_up_slot(const char *database, const char *name);
extern PGDLLEXPORT RangeSlot *snowflake_new_slot(const char *database, const char *name, Oid owner,
												 int64 last, int64 step);
extern PGDLLEXPORT void snowflake_note_use(int64 now);
extern PGDLLEXPORT bool snowflake_has_free_slot(void);
extern PGDLLEXPORT void snowflake_queue_slot(RangeSlot *slot, RangeQueue queue);
extern PGDLLEXPORT RangeSlot *snowflake_queued_slot(RangeQueue queue);
extern PGDLLEXPORT RangeSegment *snowflake_current_range(RangeSlot *slot);
extern PGDLLEXPORT RangeSegment *snowflake_reserved_range(RangeSlot *slot);
extern int64 snowflake_numbers_left(RangeSlot *slot);
extern PGDLLEXPORT void snowflake_set_reserve(RangeSlot *slot, int64 first, int64 last);
extern void snowflake_use_reserve(RangeSlot *slot);
extern void snowflake_set_back_used(RangeSlot *slot);
extern PGDLLEXPORT void snowflake_drop_ranges(RangeSlot *slot);
extern PGDLLEXPORT void snowflake_give_up(RangeSlot *slot, int64 floor);
extern PGDLLEXPORT bool snowflake_have_slots_forgotten(void);
extern void snowflake_want_floor(RangeSlot *slot, int64 floor);
extern PGDLLEXPORT void snowflake_note_range_failure(const char *why);

/* For sessions. */
extern RangeProblem snowflake_get_problem(const RangeHandle *handle, int64 since,
										  char *problem);
extern PGDLLEXPORT void snowflake_get_range_failure(RangeFailure *failure);
extern PGDLLEXPORT const char *snowflake_utf8_name(const char *name);
extern bool snowflake_get_range_statistics(const char *name, RangeStatistics *statistics);

/* The word: 24 bits of generation, 40 of what is used. */
#define RANGE_USED_BITS		40
#define RANGE_USED_MASK		((UINT64CONST(1) << RANGE_USED_BITS) - 1)
#define RANGE_GENERATIONS	(UINT64CONST(1) << (64 - RANGE_USED_BITS))

static inline uint64
range_generation(uint64 word)
{
	return word >> RANGE_USED_BITS;
}

static inline int64
range_used(uint64 word)
{
	return (int64) (word & RANGE_USED_MASK);
}

/* A window until the registry has told its own. */
#define DEFAULT_WINDOW_US	(10 * USECS_PER_MINUTE)

/* For how long numbers are to be held. */
static inline int64
range_window_us(const RangeSlot *slot)
{
	return slot->window_us > 0 ? slot->window_us : DEFAULT_WINDOW_US;
}

/*
 * Has a range numbers for a claim that begins after those used?  A client that
 * counts up from its number uses as many as one that counts down to it.
 */
static inline bool
range_has(int64 count, int64 used, int64 step)
{
	return used <= count - (2 * step - 1);
}

#endif							/* SNOWFLAKE_SLOTS_H */
