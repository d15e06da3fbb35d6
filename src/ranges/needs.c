/*-------------------------------------------------------------------------
 *
 * needs.c
 *	  What sessions want of the registry (range_needs.c asks it).
 *
 * Sizes.  A range is asked for as many numbers as were used in the last window,
 * which is as long as the registry grants worker IDs for, and at most double
 * the current range.  The range in reserve is asked for when the current one
 * begins.  So a server that is busy for longer than a window can do without a
 * registry for one, and a start loses about as many numbers as were used.
 *
 * Calls.  Most of the cost of a call is that of one sequence.  So a reserve waits
 * for others that are asked for with it: a tenth of the time for which the range
 * before it lasted, and at most MAX_DELAY_US.
 *
 * Several sequences of one name can have another MAXVALUE.  The registry is asked for
 * the lowest one up to which it still grants numbers, so all of them use the same ranges.
 * With another INCREMENT, a range cannot be used, and is dropped, but not more often
 * than each second.
 *
 * All this goes by the steady clock.  Otherwise, if the clock is set back by a
 * day, nothing that is to be asked again is asked for a day.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/needs.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "generator/settings.h"
#include "ranges/needs.h"
#include "shared/clock.h"

/* The fewest numbers that are asked for, times INCREMENT. */
#define MIN_RANGE		100

/* The longest time that a reserve waits for others. */
#define MAX_DELAY_US	(10 * USECS_PER_SEC)

/* How long a range is used before another INCREMENT drops it. */
#define STEP_US			USECS_PER_SEC

/*
 * Begin another window if one is over.
 */
static void
roll_window(RangeSlot *slot, int64 now)
{
	int64		over = now - slot->window_since;

	if (over < range_window_us(slot))
		return;
	slot->used_before = over < 2 * range_window_us(slot) ? slot->used_now : 0;
	slot->used_now = 0;
	slot->window_since = now;
}

/*
 * How many of the numbers that were used of the current range were so in a window, if it
 * lasted longer.
 */
static int64
used_in_window(const RangeSlot *slot, int64 count, int64 now)
{
	double		lasted = Max(now - slot->current_since, 1);

	return (int64) (count * Min(1.0, range_window_us(slot) / lasted));
}

/*
 * How many numbers to ask for: what was used in the last window, at most
 * double the current range.
 */
int64
snowflake_wanted_count(RangeSlot *slot)
{
	int64		now = snowflake_steady_clock();
	RangeSegment *current = snowflake_current_range(slot);
	double		left;
	int64		count;
	int64		least = MIN_RANGE * slot->step;

	roll_window(slot, now);
	left = 1.0 - Min(1.0, (now - slot->window_since) / (double) range_window_us(slot));
	count = slot->used_now + (int64) (slot->used_before * left);
	if (current != NULL)
	{
		count += used_in_window(slot, current->count - snowflake_numbers_left(slot), now);
		count = Min(count, 2 * current->count);
	}
	return Min(Max(count, least), SNOWFLAKE_MAX_RANGE);
}

/*
 * Make the reserve the current range.
 */
static void
use_reserve(RangeSlot *slot)
{
	RangeSegment *before = snowflake_current_range(slot);
	int64		now = snowflake_steady_clock();

	slot->ask_at = now;
	if (before != NULL)
	{
		roll_window(slot, now);
		slot->used_now += used_in_window(slot, before->count, now);
		slot->ask_at += Min((now - slot->current_since) / 10, MAX_DELAY_US);
	}
	slot->current_since = now;
	snowflake_use_reserve(slot);
}

/*
 * Has a range a number after those used, for a sequence with this last value?
 */
static bool
has_number(const RangeSegment *range, int64 used, const RangeHandle *handle)
{
	return range_has(range->count, used, handle->step) &&
		range->first + used + 2 * handle->step - 2 <= handle->last;
}

/*
 * Have a slot in the queue if it needs something.
 */
void
snowflake_note_need(RangeSlot *slot, int64 now)
{
	RangeQueue	queue = slot->waited_until > now ? RANGE_QUEUED_FIRST : RANGE_QUEUED;

	if (slot->queue < queue)
		snowflake_queue_slot(slot, queue);
}

/*
 * Have the registry asked up to the last value of a sequence, if it may grant numbers up
 * to it, or if none is left up to the one before.
 */
static void
use_last(RangeSlot *slot, int64 last)
{
	if (last < slot->last && slot->next_number <= last)
		slot->last = last;
	else if (last > slot->last && (slot->next_number > slot->last ||
								   slot->problem_kind == PROBLEM_MAXIMUM))
	{
		slot->last = last;
		slot->problem_kind = PROBLEM_NONE;
		slot->retry_at = 0;
	}
}

/*
 * Have the ranges be used with an INCREMENT.  Returns false if that has to wait.
 */
static bool
use_step(RangeSlot *slot, int64 step, int64 now)
{
	if (slot->step == step)
		return true;
	if (now < slot->step_until)
		return false;
	snowflake_drop_ranges(slot);
	slot->step = step;
	slot->step_until = now + STEP_US;
	return true;
}

/*
 * See to it that a claim finds a range, for a session whose claim failed.  The
 * first use of a range has the next one asked for.
 */
static RangeAdvance
advance(const RangeHandle *handle)
{
	RangeSlot  *slot = handle->slot;
	int64		now = snowflake_steady_clock();
	RangeSegment *current;
	RangeSegment *reserve;
	int64		used = range_used(pg_atomic_read_u64(&slot->word));

	if (slot->version != handle->version)
		return RANGE_OTHER;
	slot->used_at = now;
	if (!use_step(slot, handle->step, now))
		return RANGE_WAIT;
	current = snowflake_current_range(slot);
	if (current != NULL && range_has(current->count, used, slot->step))
		return has_number(current, used, handle) ? RANGE_RETRY : RANGE_EXHAUSTED;
	snowflake_set_back_used(slot);
	use_last(slot, handle->last);
	reserve = snowflake_reserved_range(slot);
	if (reserve == NULL && slot->next_number > handle->last && slot->last > handle->last)
		return RANGE_EXHAUSTED;
	slot->wanted = true;
	if (reserve == NULL)
	{
		slot->ask_at = 0;
		snowflake_note_need(slot, now);
		return RANGE_WAIT;
	}
	if (!has_number(reserve, 0, handle))
		return RANGE_EXHAUSTED;
	use_reserve(slot);
	snowflake_note_need(slot, now);
	return RANGE_RETRY;
}

RangeAdvance
snowflake_advance(const RangeHandle *handle)
{
	RangeAdvance result;

	snowflake_lock_ranges();
	result = advance(handle);
	snowflake_unlock_and_wake_ranges();
	return result;
}

/*
 * Give up the numbers that are not above a floor, and have the registry see to
 * it that all servers do.
 */
FloorState
snowflake_ask_floor(const RangeHandle *handle, int64 floor)
{
	RangeSlot  *slot = handle->slot;
	FloorState	state = FLOOR_OTHER;

	snowflake_lock_ranges();
	if (slot->version == handle->version)
	{
		if (floor >= slot->last && handle->last > slot->last && slot->settled < floor)
			slot->last = handle->last;
		snowflake_want_floor(slot, floor);
		state = slot->settled >= floor ? FLOOR_SETTLED :
			slot->told >= floor ? FLOOR_TAKEN : FLOOR_ASKED;
	}
	snowflake_unlock_and_wake_ranges();
	return state;
}

/*
 * Have the registry say which number of a name it grants next, since a time, by the
 * steady clock.  It is 0 if the registry does not know the name.
 */
FloorState
snowflake_ask_next(const RangeHandle *handle, int64 since, int64 *next)
{
	RangeSlot  *slot = handle->slot;
	FloorState	state = FLOOR_OTHER;

	snowflake_lock_ranges();
	if (slot->version == handle->version)
	{
		*next = slot->next_number;
		state = slot->next_heard >= since ? FLOOR_TAKEN : FLOOR_ASKED;
		if (state == FLOOR_ASKED)
		{
			slot->next_asked = Max(slot->next_asked, since);
			snowflake_note_need(slot, snowflake_steady_clock());
		}
	}
	snowflake_unlock_and_wake_ranges();
	return state;
}
