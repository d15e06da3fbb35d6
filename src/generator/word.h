/*-------------------------------------------------------------------------
 *
 * word.h
 *	  The generator's word, ticks, and when a tick may be used.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/word.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_WORD_H
#define SNOWFLAKE_WORD_H

#include "common/int.h"
#include "datatype/timestamp.h"

#include "base/scheme.h"

/*
 * Bits of a number that have room for a late claim of each backend
 * (generator.c): more than MAX_BACKENDS.
 */
#define SNOWFLAKE_LATE_CLAIM_BITS 18

/*
 * Both clocks are read in whole microseconds, and not at the same moment.  A
 * tick that is entered by the steady clock is entered later by this time;
 * otherwise it could be ahead of a correct wall clock.
 */
#define SNOWFLAKE_READING_ERROR_US	10

/* Leads and jumps up to this are not logged. */
#define SNOWFLAKE_CLOCK_STEP_US	INT64CONST(1000000)

/* Values derived from the scheme. */
typedef struct SnowflakeLayout
{
	SnowflakeScheme scheme;
	TimestampTz epoch;			/* start of tick 0 */
	int64		tick_us;		/* length of a tick */
	int64		base_tick;		/* the first one that can be used */
	int64		last_tick;		/* the last one */
	int			number_bits;	/* bits of the word below the tick */
	uint64		number_limit;	/* the first number that is too high */
} SnowflakeLayout;

/* The generator's state at a time, and the time by two clocks. */
typedef struct SnowflakeSnapshot
{
	uint64		word;
	int64		entered;		/* steady time when the word's tick began */
	int64		first_tick;		/* the first tick after the start */
	bool		has_mark;		/* does it say anything about the time? */
	int64		until;			/* the first tick not granted */
	TimestampTz last_checkpoint;	/* before the start */
	TimestampTz created;		/* when initdb was run */
	TimestampTz wall;			/* the wall clock */
	int64		steady;			/* the steady clock, in us */
} SnowflakeSnapshot;

/* The settings, in microseconds. */
typedef struct SnowflakeRules
{
	bool		wait;			/* wait for a clock that is behind */
	int64		max_lead;
	int64		max_forward;
} SnowflakeRules;

/* What to do with the word. */
typedef enum SnowflakePlan
{
	SNOWFLAKE_CLAIM,			/* claim a number of the word's tick */
	SNOWFLAKE_MOVE,				/* move the word to a later tick */
	SNOWFLAKE_WAIT_SEQUENCE,	/* wait until a later tick may be used */
	SNOWFLAKE_WAIT_CLOCK,		/* wait until the word's tick may be used */
	SNOWFLAKE_BEFORE_EPOCH,		/* fail: there is no tick for the time */
	SNOWFLAKE_EXHAUSTED,		/* fail: the timestamp does not fit */
	SNOWFLAKE_CLOCK_AHEAD,		/* fail: clock is far ahead of the mark */
	SNOWFLAKE_MARK_AHEAD		/* fail: mark is far ahead of the clock */
} SnowflakePlan;

typedef struct SnowflakeStep
{
	SnowflakePlan plan;
	int64		next;			/* the tick to claim from, move to, wait for */
	int64		entered;		/* MOVE: steady time when next began */
	int64		wait;			/* WAIT: probably for this time, us */
	int64		lead;			/* of the next tick over the wall clock, us */
	int64		jump;			/* how far the wall clock is ahead of the
								 * steady one since the last move, us */
	bool		followed;		/* false: too far to be followed */
} SnowflakeStep;

extern void snowflake_layout_init(SnowflakeLayout *layout,
								  const SnowflakeScheme *scheme);
extern void snowflake_plan(const SnowflakeLayout *layout,
						   const SnowflakeRules *rules,
						   const SnowflakeSnapshot *snapshot,
						   SnowflakeStep *step);

static inline int64
snowflake_word_tick(const SnowflakeLayout *layout, uint64 word)
{
	return (int64) (word >> layout->number_bits) + layout->base_tick;
}

static inline uint64
snowflake_word_number(const SnowflakeLayout *layout, uint64 word)
{
	return word & ((UINT64CONST(1) << layout->number_bits) - 1);
}

static inline uint64
snowflake_make_word(const SnowflakeLayout *layout, int64 tick, uint64 number)
{
	return ((uint64) (tick - layout->base_tick) << layout->number_bits) |
		number;
}

/* Was no tick entered since the start? */
static inline bool
snowflake_before_first_tick(const SnowflakeLayout *layout,
							const SnowflakeSnapshot *snapshot)
{
	return snowflake_word_tick(layout, snapshot->word) < snapshot->first_tick;
}

/* A word from which nothing was claimed, and nothing can be. */
static inline uint64
snowflake_empty_word(const SnowflakeLayout *layout)
{
	return snowflake_make_word(layout, layout->base_tick, layout->number_limit);
}

/* Numbers of the word's tick that were claimed, or skipped at its start. */
static inline uint64
snowflake_numbers_used(const SnowflakeLayout *layout, uint64 word)
{
	return Min(snowflake_word_number(layout, word), layout->number_limit);
}

/* Are there numbers left in the word's tick? */
static inline bool
snowflake_has_numbers(const SnowflakeLayout *layout, uint64 word)
{
	return snowflake_word_number(layout, word) < layout->number_limit;
}

/* The tick of the next number: the word's, or the one after it. */
static inline int64
snowflake_word_next_tick(const SnowflakeLayout *layout, uint64 word)
{
	return snowflake_word_tick(layout, word) + (snowflake_has_numbers(layout, word) ? 0 : 1);
}

static inline TimestampTz
snowflake_tick_start(const SnowflakeLayout *layout, int64 tick)
{
	return layout->epoch + tick * layout->tick_us;
}

/*
 * How far the start of a tick is ahead of a time, in microseconds.  (At the
 * ends of the calendar, it is limited to the range of int64.)
 */
static inline int64
snowflake_tick_lead(const SnowflakeLayout *layout, int64 tick, TimestampTz now)
{
	int64		lead;

	if (unlikely(pg_sub_s64_overflow(snowflake_tick_start(layout, tick), now, &lead)))
		lead = PG_INT64_MAX;
	return lead;
}

/*
 * The tick of a time, or the nearest one that the scheme has.
 */
static inline int64
snowflake_time_tick(const SnowflakeLayout *layout, TimestampTz time)
{
	if (time < snowflake_tick_start(layout, layout->base_tick))
		return layout->base_tick;
	return Min((time - layout->epoch) / layout->tick_us,
			   layout->last_tick + 1);
}

/*
 * The mark above all IDs of ticks below this one.
 */
static inline uint64
snowflake_tick_mark(const SnowflakeLayout *layout, int64 tick)
{
	return (uint64) tick << layout->scheme.shift[SNOWFLAKE_TIMESTAMP];
}

/*
 * The first tick whose IDs are all at or above a mark; the one after the last
 * if the mark is above all IDs of the scheme.
 */
static inline int64
snowflake_mark_tick(const SnowflakeLayout *layout, uint64 mark)
{
	int64		tick =
		(int64) (mark >> layout->scheme.shift[SNOWFLAKE_TIMESTAMP]);

	if (snowflake_tick_mark(layout, tick) != mark)
		tick++;
	return Min(tick, layout->last_tick + 1);
}

/*
 * The time of a mark: when that tick starts.
 */
static inline TimestampTz
snowflake_mark_time(const SnowflakeLayout *layout, uint64 mark)
{
	return snowflake_tick_start(layout, snowflake_mark_tick(layout, mark));
}

#endif							/* SNOWFLAKE_WORD_H */
