/*-------------------------------------------------------------------------
 *
 * word.c
 *	  The generator's word, ticks, and when a tick may be used.
 *
 * The generator's state is a word of 64 bits: in its high bits a tick (the
 * timestamp of an ID), in its low bits the next number of that tick (the
 * sequence).  The tick counts from the epoch, or from 2000 if that is later.
 * The number has room above the scheme's last one for late claims
 * (generator.c).
 *
 * snowflake_plan() decides by a word and the time whether a number of the
 * word's tick may be claimed, the word may be moved to a later tick, or the
 * caller must wait or fail.  There are two clocks.  The wall clock is the time
 * that IDs should have, but it can be wrong, and it can be set.  The steady
 * clock only measures elapsed time.  The rules:
 *
 * 1. The next tick is that of the wall clock, or the one after the word's if
 *	  that is later.  It may be entered if it is at most max_lead ahead of the
 *	  wall clock.
 *
 * 2. Otherwise the clock is behind: it was set back, or the mark is from a
 *	  server whose clock was ahead.  Then the next tick may be entered one tick
 *	  of steady time after the word's tick began.  So IDs continue at the pace
 *	  of real time, and the lead (tick minus wall clock) cannot grow.  It
 *	  decreases whenever a tick stays longer because few IDs are needed.  A
 *	  caller that is late does not lose that time, up to one tick; otherwise,
 *	  full load would fall behind that pace.
 *
 * 3. A number of the word's tick may be claimed however far the clock is
 *	  behind.
 *
 * 4. If the wall clock jumped ahead of the steady clock by more than
 *	  max_forward, it is not followed: IDs continue at the pace of the steady
 *	  clock.  A slightly wrong timestamp costs less than an exhausted timestamp
 *	  field.  Meanwhile, bursts get no lead: each would start where the
 *	  previous one ended, and move the IDs towards the wrong time.  A wall
 *	  clock that jumped past the end of the grant is not followed either.  The
 *	  registry checks its own clock: if it grants later ticks, the wall clock
 *	  is correct, and is followed then.
 *
 * With rules->wait, 2 and 3 do not hold: the word's tick and the next one may
 * be used only while they are at most max_lead ahead of the clock.
 *
 * Right after the start, nothing is known about the time before except the
 * mark and the server's last checkpoint.  Then a clock that is ahead of the
 * mark by more than max_forward is refused, before it moves the mark ahead.
 * So is a mark that is as far ahead of both clock and checkpoint: then the
 * clock is not behind, but the mark was made with another scheme.  (Unless the
 * clock is before the creation of the server: then it is behind.)
 *
 * This file is independent of the server and its settings.  It can be built
 * and tested on its own (with -DFRONTEND).
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/word.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef FRONTEND
#include "postgres.h"
#else
#include "postgres_fe.h"
#endif

#include "word.h"

void
snowflake_layout_init(SnowflakeLayout *layout, const SnowflakeScheme *scheme)
{
	int			sequence_bits = scheme->width[SNOWFLAKE_SEQUENCE];
	int64		last_tick;
	int64		span;

	layout->scheme = *scheme;
	layout->epoch = (scheme->epoch_ms -
					 (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) *
					 (USECS_PER_DAY / 1000)) * 1000;
	layout->tick_us = scheme->tick_us;
	layout->number_bits = Max(sequence_bits, SNOWFLAKE_LATE_CLAIM_BITS) + 1;
	layout->number_limit = UINT64CONST(1) << sequence_bits;

	/*
	 * The word counts ticks from the epoch, or from 2000 if that is later: it
	 * has at least 45 bits for them if the sequence has less than 18 bits,
	 * and room for every tick otherwise.
	 */
	layout->base_tick =
		layout->epoch < 0 ? -layout->epoch / layout->tick_us : 0;

	/* The last tick of the field, or of word or timestamptz if lower. */
	last_tick = snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP);
	last_tick = Min(last_tick, layout->base_tick +
					(INT64CONST(1) << (64 - layout->number_bits)) - 1);
	if (pg_sub_s64_overflow(END_TIMESTAMP - 1, layout->epoch, &span))
		span = PG_INT64_MAX;
	last_tick = Min(last_tick, span / layout->tick_us - 1);
	layout->last_tick = last_tick;
}

/*
 * Check the clock right after the start, by the mark and the last checkpoint:
 * can IDs be made by it at all?
 */
static bool
plan_start(const SnowflakeLayout *layout, const SnowflakeRules *rules,
		   const SnowflakeMoment *moment, SnowflakePlan *plan)
{
	bool		before_epoch =
		moment->wall < tick_start(layout, layout->base_tick);
	int64		lead = tick_lead(layout, moment->first_tick, moment->wall);

	if (tick_lead(layout, layout->last_tick + 1, moment->wall) <= 0)
		*plan = SNOWFLAKE_USED_UP;
	else if (!moment->has_mark)
	{
		*plan = SNOWFLAKE_BEFORE_EPOCH;
		return !before_epoch;
	}
	else if (lead < -rules->max_forward)
		*plan = SNOWFLAKE_CLOCK_AHEAD;
	else
	{
		lead = Min(lead, tick_lead(layout, moment->first_tick,
								   moment->last_checkpoint));
		*plan = before_epoch ? SNOWFLAKE_BEFORE_EPOCH : SNOWFLAKE_MARK_AHEAD;
		return lead <= rules->max_forward || moment->wall < moment->created;
	}
	return false;
}

/*
 * Decide what a caller must do.
 */
void
snowflake_plan(const SnowflakeLayout *layout, const SnowflakeRules *rules,
			   const SnowflakeMoment *moment, SnowflakeStep *step)
{
	int64		tick = word_tick(layout, moment->word);
	TimestampTz now = moment->wall;
	int64		max_lead = rules->max_lead;
	int64		clock_tick = (now - layout->epoch) / layout->tick_us;

	memset(step, 0, sizeof(*step));
	step->followed = true;
	step->next = numbers_left(layout, moment->word) ? tick : tick + 1;

	if (tick < moment->first_tick)
	{
		if (!plan_start(layout, rules, moment, &step->plan))
			return;
	}
	else
	{
		/* Where the wall clock should be by the steady one. */
		TimestampTz expected = tick_start(layout, tick) +
			(moment->steady - moment->entered);

		step->jump = now - expected;
		if (step->jump > rules->max_forward ||
			(step->jump > SNOWFLAKE_CLOCK_STEP_US &&
			 clock_tick >= moment->until))
		{
			step->followed = false;
			now = expected;
			max_lead = 0;
			clock_tick = (now - layout->epoch) / layout->tick_us;
		}
	}

	step->next = Max(step->next, clock_tick);
	if (step->next > layout->last_tick)
	{
		step->plan = SNOWFLAKE_USED_UP;
		return;
	}
	step->lead = tick_lead(layout, step->next, now);

	if (step->next == tick)
	{
		if (step->lead <= max_lead || !rules->wait)
			step->plan = SNOWFLAKE_CLAIM;
		else
		{
			step->plan = SNOWFLAKE_WAIT_CLOCK;
			step->wait = step->lead - max_lead;
		}
	}
	else if (step->lead <= max_lead)
	{
		/* The tick began when the clock reached it, not when it is used. */
		step->plan = SNOWFLAKE_MOVE;
		step->entered = moment->steady + Min(step->lead, 0);
	}
	else if (rules->wait)
	{
		/* Is the word's own tick too far ahead, or just the next one? */
		bool		behind = step->lead - layout->tick_us > max_lead;

		step->plan = behind ? SNOWFLAKE_WAIT_CLOCK : SNOWFLAKE_WAIT_SEQUENCE;
		step->wait = step->lead - max_lead;
	}
	else
	{
		int64		due = moment->entered + layout->tick_us;

		if (moment->steady >= due + SNOWFLAKE_READING_ERROR_US)
		{
			step->plan = SNOWFLAKE_MOVE;
			step->entered = Max(due, moment->steady - layout->tick_us);
		}
		else
		{
			step->plan = SNOWFLAKE_WAIT_SEQUENCE;
			due += SNOWFLAKE_READING_ERROR_US;
			step->wait = Min(due - moment->steady, step->lead - max_lead);
		}
	}
}
