/*-------------------------------------------------------------------------
 *
 * range_needs.c
 *	  What the registry is asked for each sequence, and what its answers come to.
 *
 * The queue.  A slot that needs something is in a queue, from which the worker takes
 * it round and round, and which it leaves when it is found to need nothing.  Those for
 * which sessions wait are in one that goes first.
 *
 * Floors.  What a session asks for (asked) and what the registry says (heard)
 * is given up at once, and told with the next call.  It is settled when the
 * registry names no server any more that has not told it.
 *
 * All this goes by the steady clock, as what sessions want (needs.c).
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_needs.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"


#include "generator/grant.h"
#include "generator/settings.h"
#include "registry_client/workers/range_needs.h"
#include "shared/clock.h"

/* How long the registry is not asked again after a problem. */
#define PROBLEM_US		USECS_PER_SEC

/* How often other servers are asked again whether they heard a floor. */
#define FLOOR_RETRY_US	(200 * INT64CONST(1000))

/* The most floors of released names in a call; others are heard again. */
#define MAX_RELEASED	20

/* The most slots that are looked at while the lock is held. */
#define MAX_LOOK		1000

/* How often it is noted for some slots whether numbers were used. */
#define NOTE_USE_US		USECS_PER_SEC

/* Floors of names of which the worker heard, and that have no slot anymore. */
static RangeRequest released[MAX_RELEASED];
static int	nreleased = 0;

/* The connection of the worker: floors that were settled over another one count no more. */
static uint32 connection = 1;

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

	return floor > Min(slot->told, slot->settled) || slot->connection != connection ? floor : -1;
}

/*
 * Does it need an answer, with a range or without one?
 */
static bool
needs_answer(const RangeSlot *slot, int64 now)
{
	int64		floor = floor_to_tell(slot);

	return floor > slot->told || (now < slot->waited_until &&
								  (floor > slot->settled || slot->next_asked > slot->next_heard));
}

/*
 * Does it need a range?  Of a name that the registry does not know, it grants none until
 * a session says what it begins with.
 */
static bool
needs_range(RangeSlot *slot, int64 now)
{
	return wants_range(slot) && (slot->problem_kind != PROBLEM_UNKNOWN || now < slot->waited_until);
}

/*
 * Is the registry to be asked, whether or not it is asked for others?
 */
static bool
is_due(RangeSlot *slot, int64 now)
{
	return (needs_range(slot, now) && now >= slot->ask_at) || needs_answer(slot, now);
}

static void
fill_request(RangeSlot *slot, RangeRequest *request, int64 now)
{
	request->slot = snowflake_slot_number(slot);
	request->version = slot->version;
	request->asked_at = now;
	strlcpy(request->database, slot->database, sizeof(request->database));
	strlcpy(request->name, slot->name, sizeof(request->name));
	request->last = slot->last;
	request->count = wants_range(slot) ? snowflake_wanted_count(slot) : 0;
	request->least = 2 * slot->step - 1;
	request->floor = floor_to_send(slot);
	strlcpy(request->source, slot->source, sizeof(request->source));
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
		if (snowflake_look_up_slot(released[i].database, released[i].name) == NULL)
			requests[n++] = released[i];
	}
	nreleased = 0;
	return n;
}

/*
 * Collect requests of the slots of a queue that are due, or of those that are not, but
 * want a range.
 */
static int
collect(RangeQueue queue, RangeRequest *requests, int max, bool due, int64 now)
{
	RangeSlot  *first = NULL;
	RangeSlot  *slot;
	int			n = 0;

	for (int i = 0; i < MAX_LOOK && n < max; i++)
	{
		slot = snowflake_queued_slot(queue);
		if (slot == NULL || slot == first)
			break;
		if (!needs_range(slot, now) && !needs_answer(slot, now))
		{
			snowflake_queue_slot(slot, RANGE_NOT_QUEUED);
			continue;
		}
		if (slot->waited_until <= now && queue != RANGE_QUEUED)
		{
			snowflake_queue_slot(slot, RANGE_QUEUED);
			continue;
		}
		snowflake_queue_slot(slot, queue);
		if (first == NULL)
			first = slot;
		if (now >= slot->retry_at && is_due(slot, now) == due)
			fill_request(slot, &requests[n++], now);
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
	static int64 noted_use = 0;
	int64		now = snowflake_steady_clock();
	int			n;

	snowflake_lock_ranges();
	if (now - noted_use >= NOTE_USE_US)
	{
		snowflake_note_use(now);
		noted_use = now;
	}
	n = collect(RANGE_QUEUED_FIRST, requests, max, true, now);
	n += collect(RANGE_QUEUED, requests + n, max - n, true, now);
	n += collect_released(requests + n, max - n);
	if (n > 0)
		n += collect(RANGE_QUEUED, requests + n, max - n, false, now);
	snowflake_unlock_ranges();
	return n;
}

/*
 * Is a problem that no number is left, be it up to what the registry has as the last
 * one?  The floor of the same request counts.
 */
static bool
is_exhausted_there(RangeProblem kind)
{
	return kind == PROBLEM_MAXIMUM || kind == PROBLEM_LAST;
}

/*
 * The registry does not take a request.  What it said of floors before counts
 * again; if it does not know the name, none does, and the range is still wanted: the
 * session finds out what it begins with.
 */
static void
take_problem(RangeSlot *slot, RangeProblem kind, const char *problem)
{
	slot->problem_kind = kind;
	strlcpy(slot->problem, problem, sizeof(slot->problem));
	slot->problem_at = snowflake_steady_clock();
	slot->retry_at = slot->problem_at + PROBLEM_US;
	if (kind == PROBLEM_BUSY)
		return;

	/*
	 * A floor that a session asked for is not sent again, so there may be
	 * numbers.
	 */
	if (kind == PROBLEM_FLOOR && slot->asked > slot->heard)
		slot->retry_at = 0;
	if (kind != PROBLEM_FLOOR && kind != PROBLEM_UNKNOWN)
		slot->wanted = false;
	if (is_exhausted_there(kind))
		return;
	slot->asked = -1;
	slot->told = Min(slot->told, slot->heard);
	if (kind == PROBLEM_UNKNOWN)
		slot->heard = slot->told = slot->settled = -1;
	slot->waits_for[0] = '\0';
}

static void
take_floor(RangeSlot *slot, int64 sent, const RangeAnswer *answer)
{
	if (slot->connection != connection)
		slot->settled = -1;
	slot->connection = connection;
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
 * Take a range in reserve, as far as it is above what was given up.  One that was asked
 * for before a session named the source does not continue above that.
 */
static void
take_range(RangeSlot *slot, const RangeRequest *request, const RangeAnswer *answer)
{
	int64		floor = floor_to_tell(slot);
	int64		first;

	if (answer->first <= slot->granted)
	{
		take_problem(slot, PROBLEM_GRANTED, "The registry granted numbers that this server had before.");
		return;
	}
	slot->granted = answer->last;
	slot->next_number = Max(slot->next_number, answer->last + 1);

	/* A floor can be the greatest integer, above which there is none. */
	if (snowflake_reserved_range(slot) != NULL || answer->last <= floor ||
		strcmp(request->source, slot->source) != 0)
		return;
	first = Max(answer->first, floor + 1);
	if (!range_has(answer->last - first + 1, 0, slot->step))
		return;
	snowflake_set_reserve(slot, first, answer->last);

	/*
	 * A sequence with a lower MAXVALUE can have lowered it since the request,
	 * but a floor up to which this server gives up its numbers has to be
	 * above these.
	 */
	slot->last = Max(slot->last, request->last);
	slot->wanted = false;
}

/*
 * Another MAXVALUE than that of the request may have numbers left.
 */
static void
take_answer(RangeSlot *slot, const RangeRequest *request, const RangeAnswer *answer,
			bool *is_other)
{
	RangeProblem kind = answer->problem_kind;
	bool		exhausted = is_exhausted_there(kind);

	if (answer->grant_time_ms > 0)
		slot->window_us = answer->grant_time_ms * 1000;
	if (kind == PROBLEM_UNKNOWN ||
		(answer->next > 0 && kind != PROBLEM_STOPPED && kind != PROBLEM_REPORT))
	{
		slot->next_number = Max(answer->next, 0);
		slot->next_heard = request->asked_at;
	}
	slot->problem_kind = PROBLEM_NONE;
	if (kind == PROBLEM_NONE)
		slot->problem[0] = '\0';
	else if (!exhausted || request->last == slot->last)
	{
		*is_other = kind != PROBLEM_UNKNOWN &&
			snowflake_errors_differ(slot->problem, answer->problem);
		take_problem(slot, kind, answer->problem);
	}
	if (kind != PROBLEM_NONE && !exhausted)
		return;
	take_floor(slot, request->floor, answer);
	if (answer->first > 0)
		take_range(slot, request, answer);
}

/*
 * Take an answer, unless the slot belongs to another name by now.  Returns whether it has
 * a problem that is to be logged, because it is another one than before.
 */
bool
snowflake_install_range(const RangeRequest *request, const RangeAnswer *answer)
{
	RangeSlot  *slot;
	bool		is_other = false;

	if (request->slot == NO_SLOT)
		return false;
	slot = snowflake_range_slot(request->slot);
	snowflake_lock_ranges();
	snowflake_note_range_failure(NULL);
	if (slot->version == request->version)
		take_answer(slot, request, answer, &is_other);
	snowflake_unlock_ranges();
	ConditionVariableBroadcast(&slot->changed);
	return is_other;
}

/*
 * Note that a call failed, or that its answer did not arrive; NULL: it did.
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
 * Give up all numbers that are not above a floor, and tell the registry, which waits for
 * that.  It may have been told before, or another registry.
 */
void
snowflake_note_range_floor(const char *database, const char *name, int64 floor)
{
	RangeSlot  *slot;

	snowflake_lock_ranges();
	slot = snowflake_look_up_slot(database, name);
	if (slot != NULL)
	{
		slot->heard = Max(slot->heard, Min(floor, slot->last));
		slot->told = -1;
		snowflake_give_up(slot, slot->heard);
		snowflake_note_need(slot, snowflake_steady_clock());
	}
	snowflake_unlock_ranges();
	if (slot == NULL)
		note_released(database, name, floor);
}

/*
 * Have the next request of each name tell its floor again: the registry may be another
 * one, or may have lost what it was told.
 */
void
snowflake_repeat_floors(void)
{
	connection++;
}

/*
 * Hold a range of a name of which this server was granted numbers before its start.  Those
 * of other names that are used are not given up for it.  Returns false if no slot is
 * free.
 */
bool
snowflake_expect_range(const char *database, const char *name, int64 last, int64 least,
					   int64 wish)
{
	int64		now = snowflake_steady_clock();
	RangeSlot  *slot;
	static int64 order = 0;

	snowflake_lock_ranges();
	slot = snowflake_look_up_slot(database, name);
	if (slot == NULL && snowflake_has_free_slot())
	{
		slot = snowflake_new_slot(database, name, InvalidOid, last, (least + 1) / 2);
		slot->used_before = wish;
		slot->window_since = now;

		/* It is given up before those that are used, and that came before. */
		slot->used_at = now - range_window_us(slot) - ++order;
		slot->used_word = pg_atomic_read_u64(&slot->word);
	}
	if (slot != NULL)
	{
		slot->wanted |= snowflake_current_range(slot) == NULL;
		snowflake_note_need(slot, now);
	}
	snowflake_unlock_ranges();
	return slot != NULL;
}

/*
 * Get what is known of a slot, by its number; it is exact if numbers were granted in this
 * life: those before were lower.  Returns false if there is no such slot.
 */
bool
snowflake_get_granted_here(int number, RangeReport *granted)
{
	RangeSlot  *slot;

	memset(granted, 0, sizeof(*granted));
	if (number >= snowflake_max_range_sequences)
		return false;
	slot = snowflake_range_slot(number);
	snowflake_lock_ranges();
	strlcpy(granted->database, slot->database, sizeof(granted->database));
	strlcpy(granted->name, slot->name, sizeof(granted->name));
	granted->last = slot->last;
	granted->granted = slot->granted;

	/* Up to the floor that it took or said, the registry grants none. */
	if (slot->heard < slot->last)
		granted->granted = Max(slot->granted, slot->heard);
	granted->is_exact = slot->granted > 0;
	snowflake_unlock_ranges();
	return true;
}

/*
 * Give up all numbers: to the registry, this is another server from now on.
 */
void
snowflake_drop_all_ranges(void)
{
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		snowflake_lock_ranges();
		snowflake_drop_ranges(slot);
		slot->told = -1;
		slot->waits_for[0] = '\0';
		snowflake_unlock_ranges();
		ConditionVariableBroadcast(&slot->changed);
	}
}
