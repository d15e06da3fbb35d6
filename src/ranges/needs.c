/*-------------------------------------------------------------------------
 *
 * needs.c
 *	  What the registry is to be asked, and what its answers come to.
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
 * Floors.  What a session asks for (asked) and what the registry says (heard)
 * is given up at once, and told with the next call.  It is settled when the
 * registry names no server any more that has not told it.
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

/* A window until the registry has told its own. */
#define DEFAULT_WINDOW_US	(10 * USECS_PER_MINUTE)

/* How long the registry is not asked again after a problem. */
#define PROBLEM_US		USECS_PER_SEC

/* The longest time that a reserve waits for others. */
#define MAX_DELAY_US	(10 * USECS_PER_SEC)

/* How often a registry that grants nothing is told again what it may have lost. */
#define STOPPED_US		(10 * USECS_PER_SEC)

/* How often other servers are asked again whether they heard a floor. */
#define FLOOR_RETRY_US	(200 * INT64CONST(1000))

/* The most floors of released names in a call; others are heard again. */
#define MAX_RELEASED	20

/* Where the worker continues. */
static int	next_slot = 0;

/* Floors of names of which the worker heard, and that have no slot anymore. */
static RangeRequest released[MAX_RELEASED];
static int	nreleased = 0;

static int64
window_us(const RangeSlot *slot)
{
	return slot->window_us > 0 ? slot->window_us : DEFAULT_WINDOW_US;
}

/*
 * Begin another window if one is over.
 */
static void
roll_window(RangeSlot *slot, int64 now)
{
	int64		over = now - slot->window_since;

	if (over < window_us(slot))
		return;
	slot->used_before = over < 2 * window_us(slot) ? slot->used_now : 0;
	slot->used_now = 0;
	slot->window_since = now;
}

/*
 * Count the numbers of a range that is exhausted; of one that lasted longer than
 * a window, those of a window.
 */
static void
count_used(RangeSlot *slot, int64 count, int64 now)
{
	double		lasted = Max(now - slot->current_since, 1);

	roll_window(slot, now);
	slot->used_now += (int64) (count * Min(1.0, window_us(slot) / lasted));
}

/*
 * How many numbers to ask for: what was used in the last window, at most
 * double the current range.
 */
static int64
wanted_count(RangeSlot *slot)
{
	int64		now = snowflake_steady_clock();
	RangeSegment *current = snowflake_current_range(slot);
	double		left;
	int64		count;
	int64		least = MIN_RANGE * slot->step;

	roll_window(slot, now);
	left = 1.0 - Min(1.0, (now - slot->window_since) / (double) window_us(slot));
	count = slot->used_now + (int64) (slot->used_before * left);
	if (current != NULL)
		count = Min(count, 2 * current->count);
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
		count_used(slot, before->count, now);
		slot->ask_at += Min((now - slot->current_since) / 10, MAX_DELAY_US);
	}
	slot->current_since = now;
	if (slot->shared)
		snowflake_change_version(slot);
	snowflake_use_reserve(slot);
}

static bool
has_number(RangeSlot *slot)
{
	RangeSegment *range = snowflake_current_range(slot);

	return range != NULL &&
		range_has(range->count, range_used(pg_atomic_read_u64(&slot->word)),
				  slot->step);
}

/*
 * See to it that a claim finds a range, for a session whose claim failed.  The
 * first use of a range has the next one asked for.
 */
static RangeAdvance
advance(const RangeHandle *handle, int64 *granted)
{
	RangeSlot  *slot = handle->slot;
	RangeSegment *reserve;

	if (slot->version != handle->version)
		return RANGE_OTHER;
	if (slot->step != handle->step)
	{
		snowflake_drop_ranges(slot);
		slot->step = handle->step;
	}
	if (has_number(slot))
		return RANGE_RETRY;
	snowflake_set_back_used(slot);
	slot->wanted = true;
	reserve = snowflake_reserved_range(slot);
	if (reserve == NULL)
	{
		slot->ask_at = 0;
		return RANGE_WAIT;
	}
	*granted = reserve->first + reserve->count - 1;
	if (slot->noted < *granted)
		return RANGE_NOTE;
	use_reserve(slot);
	return RANGE_RETRY;
}

RangeAdvance
snowflake_advance(const RangeHandle *handle, int64 *granted)
{
	RangeAdvance result;

	snowflake_lock_ranges();
	result = advance(handle, granted);
	snowflake_unlock_and_wake_ranges();
	return result;
}

/*
 * What was granted is in the file of the sequence.
 */
void
snowflake_note_granted(const RangeHandle *handle, int64 granted)
{
	snowflake_lock_ranges();
	if (handle->slot->version == handle->version)
		handle->slot->noted = Max(handle->slot->noted, granted);
	snowflake_unlock_ranges();
}

static FloorState
ask_floor(const RangeHandle *handle, int64 floor)
{
	RangeSlot  *slot = handle->slot;

	if (slot->version != handle->version)
		return FLOOR_OTHER;
	if (slot->settled >= floor)
		return FLOOR_SETTLED;
	if (slot->asked < floor && slot->heard < floor)
	{
		slot->asked = floor;
		slot->retry_at = 0;
		snowflake_give_up(slot, floor);
	}
	return FLOOR_ASKED;
}

/*
 * Give up the numbers that are not above a floor, and have the registry see to
 * it that all servers do.
 */
FloorState
snowflake_ask_floor(const RangeHandle *handle, int64 floor)
{
	FloorState	state;

	snowflake_lock_ranges();
	state = ask_floor(handle, floor);
	snowflake_unlock_and_wake_ranges();
	return state;
}

static bool
wants_range(RangeSlot *slot)
{
	return slot->wanted && snowflake_reserved_range(slot) == NULL;
}

/*
 * The floor that the registry is told: what this server has given up.
 */
static int64
floor_to_tell(const RangeSlot *slot)
{
	return Max(slot->heard, slot->asked);
}

/*
 * The same, or -1 if the registry has answered that all servers have given it up:
 * it is spared looking for them.  A new connection may be to another registry.
 */
static int64
floor_to_send(const RangeSlot *slot)
{
	int64		floor = floor_to_tell(slot);

	return floor > Min(slot->told, slot->settled) || slot->announce ? floor : -1;
}

/*
 * Can the registry be asked now?
 */
static bool
can_be_asked(const RangeSlot *slot, int64 now)
{
	return slot->in_use && now >= slot->retry_at;
}

/*
 * Is it to be asked now?
 */
static bool
is_due(RangeSlot *slot, int64 now)
{
	if (wants_range(slot) && now >= slot->ask_at)
		return true;
	if (slot->announce && now >= slot->announce_at)
		return true;
	return floor_to_tell(slot) > slot->told ||
		(floor_to_tell(slot) > slot->settled && now < slot->waited_until);
}

static void
fill_request(RangeSlot *slot, int number, RangeRequest *request)
{
	request->slot = number;
	request->version = slot->version;
	strlcpy(request->database, slot->database, sizeof(request->database));
	strlcpy(request->name, slot->name, sizeof(request->name));
	request->last = slot->last;
	request->count = wants_range(slot) ? wanted_count(slot) : 0;
	request->least = 2 * slot->step - 1;
	request->floor = floor_to_send(slot);
	request->source[0] = '\0';
}

static RangeSlot *
find_slot(const char *database, const char *name)
{
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		if (slot->in_use && strcmp(slot->database, database) == 0 &&
			strcmp(slot->name, name) == 0)
			return slot;
	}
	return NULL;
}

/*
 * The registry waits for this server, which has given up all numbers of a name,
 * because its slot was freed: say so with the next call.  With its floor as the
 * last number, it does not add a name that it does not know.
 */
static void
note_released(const char *database, const char *name, int64 floor)
{
	RangeRequest *request = &released[nreleased];

	if (nreleased == MAX_RELEASED || floor < 1 ||
		strlen(database) >= sizeof(request->database) ||
		strlen(name) >= sizeof(request->name))
		return;
	memset(request, 0, sizeof(RangeRequest));
	request->slot = NO_SLOT;
	strlcpy(request->database, database, sizeof(request->database));
	strlcpy(request->name, name, sizeof(request->name));
	request->last = request->floor = floor;
	request->least = 1;
	nreleased++;
}

/*
 * Collect what was released, unless it has a slot by now: then that knows it.
 */
static int
collect_released(RangeRequest *requests, int max)
{
	int			n = 0;

	for (int i = 0; i < nreleased && n < max; i++)
	{
		if (find_slot(released[i].database, released[i].name) == NULL)
			requests[n++] = released[i];
	}
	nreleased = 0;
	return n;
}

/*
 * Collect requests of the slots that are due, or of those that are not, but want a
 * range.
 */
static int
collect(RangeRequest *requests, int max, bool due, int64 now)
{
	int			n = 0;

	for (int i = 0; i < snowflake_max_range_sequences && n < max; i++)
	{
		int			number = (next_slot + i) % snowflake_max_range_sequences;
		RangeSlot  *slot = snowflake_range_slot(number);

		if (can_be_asked(slot, now) &&
			(due ? is_due(slot, now) : wants_range(slot) && !is_due(slot, now)))
			fill_request(slot, number, &requests[n++]);
	}
	return n;
}

/*
 * Collect what the registry is to be asked now, at most so many sequences.  If it
 * is, it is also asked for what could wait.
 */
int
snowflake_collect_range_requests(RangeRequest *requests, int max)
{
	int64		now = snowflake_steady_clock();
	int			n;
	int			next = next_slot;

	snowflake_lock_ranges();
	n = collect(requests, max, true, now);
	if (n > 0)
		next = (requests[n - 1].slot + 1) % snowflake_max_range_sequences;
	n += collect_released(requests + n, max - n);
	if (n > 0)
		n += collect(requests + n, max - n, false, now);
	next_slot = next;
	snowflake_unlock_ranges();
	return n;
}

/*
 * Is a problem that no number is left, be it up to what the registry has as the last
 * one?  The floor of the same request counts.
 */
bool
snowflake_is_exhausted_there(RangeProblem problem)
{
	return problem == PROBLEM_MAXIMUM || problem == PROBLEM_LAST;
}

/*
 * The registry does not take a request.  What it said of floors before counts
 * again.
 */
static void
take_problem(RangeSlot *slot, RangeProblem kind, const char *problem)
{
	slot->problem_kind = kind;
	strlcpy(slot->problem, problem, sizeof(slot->problem));
	slot->problem_at = snowflake_steady_clock();
	if (kind == PROBLEM_BUSY)
	{
		slot->retry_at = slot->problem_at + PROBLEM_US;
		return;
	}
	if (kind != PROBLEM_FLOOR)
		slot->wanted = false;

	/*
	 * A floor that a session asked for is not sent again, so there may be
	 * numbers.
	 */
	if (kind != PROBLEM_FLOOR || slot->asked <= slot->heard)
		slot->retry_at = slot->problem_at + PROBLEM_US;
	if (snowflake_is_exhausted_there(kind))
		return;

	/* With a floor, the registry adds a name. */
	if (kind == PROBLEM_UNKNOWN && floor_to_tell(slot) >= 0)
	{
		slot->announce = true;
		slot->announce_at = 0;
	}
	slot->asked = -1;
	slot->told = Min(slot->told, slot->heard);
	slot->waits_for[0] = '\0';
}

static void
take_floor(RangeSlot *slot, int64 sent, const RangeAnswer *answer)
{
	slot->told = Max(slot->told, sent);
	slot->heard = Max(slot->heard, Max(answer->floor, sent));
	if (slot->asked <= slot->heard)
		slot->asked = -1;
	snowflake_give_up(slot, slot->heard);
	strlcpy(slot->waits_for, answer->waits_for, sizeof(slot->waits_for));
	if (slot->waits_for[0] == '\0')
		slot->settled = Max(slot->settled, sent);
	else
		slot->retry_at = snowflake_steady_clock() + FLOOR_RETRY_US;
}

/*
 * Take a range in reserve, as far as it is above what was given up.
 */
static void
take_range(RangeSlot *slot, const RangeAnswer *answer)
{
	int64		floor = floor_to_tell(slot);
	int64		first;

	if (answer->first <= slot->granted)
	{
		take_problem(slot, PROBLEM_GRANTED,
					 "The registry granted numbers that this server had before.");
		return;
	}
	slot->granted = answer->last;
	if (slot->first_granted == 0)
	{
		slot->first_granted = answer->last;
		slot->first_granted_at = GetCurrentTimestamp();
	}

	/* A floor can be the greatest integer, above which there is none. */
	if (snowflake_reserved_range(slot) != NULL || answer->last <= floor)
		return;
	first = Max(answer->first, floor + 1);
	if (!range_has(answer->last - first + 1, 0, slot->step))
		return;
	snowflake_set_reserve(slot, first, answer->last);
	slot->wanted = false;
}

static void
take_answer(RangeSlot *slot, int64 sent, const RangeAnswer *answer)
{
	slot->problem_kind = PROBLEM_NONE;
	slot->problem[0] = '\0';
	if (answer->problem_kind != PROBLEM_NONE)
		take_problem(slot, answer->problem_kind, answer->problem);
	if (answer->problem_kind != PROBLEM_NONE &&
		!snowflake_is_exhausted_there(answer->problem_kind))
		return;
	take_floor(slot, sent, answer);
	if (answer->first > 0)
		take_range(slot, answer);
}

/*
 * What was granted was said.  A registry that grants nothing may forget it.
 */
static void
take_announcement(RangeSlot *slot, RangeProblem problem)
{
	if (problem == PROBLEM_STOPPED)
		slot->announce_at = snowflake_steady_clock() + STOPPED_US;
	else if (problem != PROBLEM_BUSY)
		slot->announce = false;
}

/*
 * Take an answer, unless the slot belongs to another sequence by now.
 */
void
snowflake_install_range(const RangeRequest *request, const RangeAnswer *answer)
{
	RangeSlot  *slot;

	if (request->slot == NO_SLOT)
		return;
	slot = snowflake_range_slot(request->slot);
	snowflake_lock_ranges();
	snowflake_note_range_failure(NULL);
	if (slot->version == request->version)
	{
		take_announcement(slot, answer->problem_kind);
		if (answer->grant_time_ms > 0)
			slot->window_us = answer->grant_time_ms * 1000;
		take_answer(slot, request->floor, answer);
	}
	snowflake_unlock_ranges();
	ConditionVariableBroadcast(&slot->changed);
}

/*
 * Note that a call failed, or that its answer did not arrive.
 */
void
snowflake_fail_range_requests(const RangeRequest *requests, int n, const char *why)
{
	snowflake_lock_ranges();
	snowflake_note_range_failure(why);
	snowflake_unlock_ranges();
	for (int i = 0; i < n; i++)
	{
		if (requests[i].slot != NO_SLOT)
			ConditionVariableBroadcast(&snowflake_range_slot(requests[i].slot)->changed);
	}
}

/*
 * Give up all numbers that are not above a floor.
 */
void
snowflake_note_range_floor(const char *database, const char *name, int64 floor)
{
	bool		found = false;

	snowflake_lock_ranges();
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		if (!slot->in_use || strcmp(slot->database, database) != 0 ||
			strcmp(slot->name, name) != 0)
			continue;
		found = true;
		slot->heard = Max(slot->heard, Min(floor, slot->last));
		snowflake_give_up(slot, slot->heard);
	}
	snowflake_unlock_ranges();
	if (!found)
		note_released(database, name, floor);
}

/*
 * Have the next calls say what was granted: the registry may be another one, or may
 * have lost what it was told.
 */
void
snowflake_announce_ranges(void)
{
	snowflake_lock_ranges();
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		slot->announce = slot->in_use;
		slot->announce_at = 0;
		slot->settled = -1;
	}
	snowflake_unlock_ranges();
}

/*
 * Give up all numbers: to the registry, this is another server from now on.
 */
void
snowflake_drop_all_ranges(void)
{
	snowflake_lock_ranges();
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		if (!slot->in_use)
			continue;
		snowflake_drop_ranges(slot);
		slot->told = -1;
		slot->waits_for[0] = '\0';
	}
	snowflake_unlock_ranges();
	for (int i = 0; i < snowflake_max_range_sequences; i++)
		ConditionVariableBroadcast(&snowflake_range_slot(i)->changed);
}
