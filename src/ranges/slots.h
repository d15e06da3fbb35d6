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

/* The ranges of a sequence.  numbers.c has the protocol. */
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
	bool		in_use;
	Oid			database_id;
	Oid			relid;			/* one of its sequences */
	bool		shared;			/* several sequences have had it */
	char		database[NAMEDATALEN];
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];
	int64		last;			/* MAXVALUE */
	int64		step;			/* INCREMENT */

	/* The greatest number that was granted, and that is in files. */
	int64		granted;
	int64		noted;

	/* Floors; -1: none.  What is not above heard or asked was given up. */
	int64		heard;			/* from the registry */
	int64		asked;			/* by a session, not answered yet */
	int64		told;			/* to the registry */
	int64		settled;		/* nobody gives out what is not above it */

	/* What is to be asked. */
	bool		wanted;			/* a range */
	int64		ask_at;			/* not before, unless others are asked for */
	bool		announce;		/* say what was granted */
	int64		announce_at;	/* not before, unless it is asked anyway */
	int64		retry_at;		/* not before, by the steady clock */
	int64		waited_until;	/* sessions wait for it until then */

	/* Numbers used in this and in the last window, for the size. */
	int64		current_since;	/* when the current range began */
	int64		window_since;
	int64		window_us;		/* 0: not known yet */
	int64		used_now;
	int64		used_before;

	/* What was granted first since the start, for the rate. */
	int64		first_granted;
	TimestampTz first_granted_at;

	int64		problem_at;		/* by the steady clock */
	RangeProblem problem_kind;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE]; /* or empty */
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
	int64		first;			/* of a new sequence; or 0 */
} RangeHandle;

/* What is known of the numbers of a sequence. */
typedef struct RangeStatistics
{
	int64		granted;		/* the greatest number, or 0 */
	int64		held;			/* numbers that this server has */
	int64		first_granted;
	TimestampTz first_granted_at;
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
extern void snowflake_lock_ranges(void);
extern void snowflake_unlock_ranges(void);
extern void snowflake_unlock_and_wake_ranges(void);
extern RangeSlot *snowflake_range_slot(int number);
extern RangeSegment *snowflake_current_range(RangeSlot *slot);
extern RangeSegment *snowflake_reserved_range(RangeSlot *slot);
extern int64 snowflake_numbers_left(RangeSlot *slot);
extern void snowflake_set_reserve(RangeSlot *slot, int64 first, int64 last);
extern void snowflake_use_reserve(RangeSlot *slot);
extern void snowflake_set_back_used(RangeSlot *slot);
extern void snowflake_change_version(RangeSlot *slot);
extern void snowflake_drop_ranges(RangeSlot *slot);
extern void snowflake_give_up(RangeSlot *slot, int64 floor);
extern int64 snowflake_greatest_known(const RangeSlot *slot);
extern void snowflake_note_range_failure(const char *why);

/* For sessions. */
extern int64 snowflake_find_slot(RangeHandle *handle, const char *name,
								 int64 granted);
extern void snowflake_drop_ranges_of(const RangeHandle *handle);
extern void snowflake_free_slot(Oid database_id, Oid relid);
extern RangeProblem snowflake_get_problem(const RangeHandle *handle, int64 since,
										  char *problem);
extern void snowflake_get_waits_for(const RangeHandle *handle, char *servers);
extern void snowflake_expect_answer(const RangeHandle *handle, int64 until);
extern void snowflake_get_range_failure(RangeFailure *failure);
extern bool snowflake_get_range_statistics(Oid relid, RangeStatistics *statistics);
extern void snowflake_get_granted(const char *name, int64 *known, int64 *noted);

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
