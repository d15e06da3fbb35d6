/*-------------------------------------------------------------------------
 *
 * slots.c
 *	  Ranges of numbers, in shared memory.
 *
 * A slot has the ranges of one name of one database: the current range, from
 * which numbers are claimed (numbers.c), and one in reserve.  Everything but
 * claims is done here, with one lock held.  Nothing waits, does I/O or raises
 * an error while it is held.
 *
 * The generation.  The word has the generation of the current range, and how
 * many of its numbers are used.  The segments belong to a generation each, by
 * its lowest bit: that of the word, and the next one.  With the lock held, a
 * range is
 *
 * - installed: in the segment of the next generation, which is invalid while
 *	 it is changed;
 * - made the current one: by moving the word to that generation, when the
 *	 range before has too few numbers left;
 * - dropped: by moving the word to the generation after the next one, with both
 *	 segments invalid;
 * - cut below a floor: if it is the current one, by claiming what is not above
 *	 the floor, and dropping that.
 *
 * So a claim that reads its segment late finds the range that it claimed from,
 * or an invalid segment, or another generation, and is made again.
 *
 * The word moves to another generation only here.  It has 2^24 of them, and a
 * claim would have to sleep for all of these ranges to be mistaken.  What is
 * used does not overflow: a claim that fails comes here and sets it back.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/slots.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "generator/settings.h"
#include "ranges/slots.h"
#include "shared/clock.h"
#include "shared/compat.h"

#define TRANCHE_NAME	"SnowflakeRanges"
#define NO_GENERATION	PG_UINT64_MAX

typedef struct Ranges
{
	LWLock	   *lock;
	Latch	   *worker_latch;	/* or NULL */
	TimestampTz failed_since;	/* 0: the last call did not fail */
	char		failure[SNOWFLAKE_RANGE_TEXT_SIZE];
} Ranges;

static Ranges *ranges = NULL;
static char *slots = NULL;

/* Each slot begins a cache line. */
static Size
slot_size(void)
{
	return TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(RangeSlot));
}

static Size
slots_size(void)
{
	return mul_size(snowflake_max_range_sequences, slot_size());
}

RangeSlot *
snowflake_range_slot(int number)
{
	return (RangeSlot *) (slots + number * slot_size());
}

void
snowflake_request_slots(void)
{
	if (!snowflake_has_registry)
		return;
	RequestAddinShmemSpace(sizeof(Ranges));
	RequestAddinShmemSpace(add_size(slots_size(), PG_CACHE_LINE_SIZE));
	RequestNamedLWLockTranche(TRANCHE_NAME, 1);
}

/*
 * Attach to the slots.  If they are new, no range is here.
 */
void
snowflake_attach_slots(void)
{
	bool		found;

	if (!snowflake_has_registry)
		return;
	slots = ShmemInitStruct("snowflake range slots", slots_size(), &found);
	ranges = ShmemInitStruct("snowflake ranges", sizeof(Ranges), &found);
	if (found)
		return;

	Assert(((uintptr_t) slots) % PG_CACHE_LINE_SIZE == 0);
	MemSet(ranges, 0, sizeof(Ranges));
	MemSet(slots, 0, slots_size());
	ranges->lock = &GetNamedLWLockTranche(TRANCHE_NAME)->lock;
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		pg_atomic_init_u64(&slot->word, 0);
		pg_atomic_init_u64(&slot->segments[0].generation, NO_GENERATION);
		pg_atomic_init_u64(&slot->segments[1].generation, NO_GENERATION);
		ConditionVariableInit(&slot->changed);
	}
}

/*
 * Does this server have ranges, because it has a registry?
 */
bool
snowflake_ranges_enabled(void)
{
	return ranges != NULL;
}

void
snowflake_lock_ranges(void)
{
	LWLockAcquire(ranges->lock, LW_EXCLUSIVE);
}

void
snowflake_unlock_ranges(void)
{
	LWLockRelease(ranges->lock);
}

/*
 * Release the lock and wake the worker.
 */
void
snowflake_unlock_and_wake_ranges(void)
{
	Latch	   *latch = ranges->worker_latch;

	snowflake_unlock_ranges();
	if (latch != NULL)
		SetLatch(latch);
}

static inline uint64
next_generation(uint64 generation)
{
	return (generation + 1) % RANGE_GENERATIONS;
}

static inline uint64
current_generation(RangeSlot *slot)
{
	return range_generation(pg_atomic_read_u64(&slot->word));
}

static inline RangeSegment *
segment_of(RangeSlot *slot, uint64 generation)
{
	return &slot->segments[generation & 1];
}

/*
 * The current range, or NULL if there is none.
 */
RangeSegment *
snowflake_current_range(RangeSlot *slot)
{
	uint64		generation = current_generation(slot);
	RangeSegment *segment = segment_of(slot, generation);

	return pg_atomic_read_u64(&segment->generation) == generation ? segment : NULL;
}

/*
 * The range in reserve, or NULL if there is none.
 */
RangeSegment *
snowflake_reserved_range(RangeSlot *slot)
{
	uint64		generation = next_generation(current_generation(slot));
	RangeSegment *segment = segment_of(slot, generation);

	return pg_atomic_read_u64(&segment->generation) == generation ? segment : NULL;
}

/*
 * How many numbers are left of the current range.
 */
int64
snowflake_numbers_left(RangeSlot *slot)
{
	RangeSegment *range = snowflake_current_range(slot);

	if (range == NULL)
		return 0;
	return Max(range->count - range_used(pg_atomic_read_u64(&slot->word)), 0);
}

static void
invalidate_segment(RangeSegment *segment)
{
	pg_atomic_write_u64(&segment->generation, NO_GENERATION);
	pg_write_barrier();
}

/*
 * Set the range in reserve.
 */
void
snowflake_set_reserve(RangeSlot *slot, int64 first, int64 last)
{
	uint64		generation = next_generation(current_generation(slot));
	RangeSegment *segment = segment_of(slot, generation);

	invalidate_segment(segment);
	segment->first = first;
	segment->count = last - first + 1;
	segment->step = slot->step;
	segment->version = slot->version;
	pg_atomic_write_u64(&segment->generation, generation);
}

/*
 * Set what is used of the current range, so that claims that fail do not add up
 * until it overflows.
 */
void
snowflake_set_back_used(RangeSlot *slot)
{
	RangeSegment *range = snowflake_current_range(slot);
	int64		used = range != NULL ? range->count : 0;

	pg_atomic_write_u64(&slot->word,
						(current_generation(slot) << RANGE_USED_BITS) | used);
}

/*
 * Move the word to a generation.  Who claims from it sees its segment as it is
 * now: it may have been cut since it was set.
 */
static void
move_word(RangeSlot *slot, uint64 generation)
{
	pg_write_barrier();
	pg_atomic_write_u64(&slot->word, generation << RANGE_USED_BITS);
}

/*
 * Make the reserve, which is there, the current range.
 */
void
snowflake_use_reserve(RangeSlot *slot)
{
	move_word(slot, next_generation(current_generation(slot)));
}

/*
 * Have each session look for the slot again before its next number.  Claims in
 * flight are valid with either version.
 */
void
snowflake_change_version(RangeSlot *slot)
{
	slot->version++;
	slot->segments[0].version = slot->segments[1].version = slot->version;
}

/*
 * Drop both ranges.  A claim in flight finds that its generation is over.  A
 * later one could still see the segment of the reserve as it was, so the word
 * skips that generation.
 */
void
snowflake_drop_ranges(RangeSlot *slot)
{
	uint64		reserved = next_generation(current_generation(slot));

	invalidate_segment(&slot->segments[0]);
	invalidate_segment(&slot->segments[1]);
	move_word(slot, next_generation(reserved));
}

/*
 * Give up the numbers that are not above a floor.
 */
void
snowflake_give_up(RangeSlot *slot, int64 floor)
{
	RangeSegment *current = snowflake_current_range(slot);
	RangeSegment *reserve = snowflake_reserved_range(slot);

	if (current != NULL && current->first <= floor)
	{
		int64		skipped = Min(floor - current->first + 1, current->count);
		int64		used = range_used(pg_atomic_read_u64(&slot->word));

		/* Claims meanwhile only make it more. */
		if (skipped > used)
			pg_atomic_fetch_add_u64(&slot->word, skipped - used);
	}
	if (reserve != NULL && reserve->first <= floor)
	{
		int64		last = reserve->first + reserve->count - 1;

		if (last > floor)
			snowflake_set_reserve(slot, floor + 1, last);
		else
			invalidate_segment(reserve);
	}
}

/*
 * Belong to nothing.  The version makes claims fail that come late.
 */
static void
clear_slot(RangeSlot *slot)
{
	snowflake_drop_ranges(slot);
	slot->version++;
	slot->in_use = slot->shared = false;
	slot->granted = slot->noted = 0;
	slot->heard = slot->asked = slot->told = slot->settled = -1;
	slot->wanted = slot->announce = false;
	slot->ask_at = slot->announce_at = slot->retry_at = slot->waited_until = 0;
	slot->current_since = slot->window_since = slot->window_us = 0;
	slot->used_now = slot->used_before = 0;
	slot->first_granted = slot->first_granted_at = 0;
	slot->problem[0] = slot->waits_for[0] = '\0';
	slot->problem_kind = PROBLEM_NONE;
	slot->problem_at = 0;
}

static bool
belongs_to(const RangeSlot *slot, Oid database_id, const char *name)
{
	return slot->in_use && slot->database_id == database_id &&
		strcmp(slot->name, name) == 0;
}

/*
 * A slot that nobody uses: free, or without a range and without a session that
 * waits for one.
 */
static RangeSlot *
unused_slot(void)
{
	int64		now = snowflake_steady_clock();
	RangeSlot  *idle = NULL;

	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		if (!slot->in_use)
			return slot;
		if (snowflake_numbers_left(slot) == 0 && snowflake_reserved_range(slot) == NULL &&
			slot->waited_until < now)
			idle = slot;
	}
	return idle;
}

static RangeSlot *
occupy_slot(const RangeHandle *handle, const char *database, const char *name)
{
	RangeSlot  *slot = unused_slot();

	if (slot == NULL)
		return NULL;
	clear_slot(slot);
	slot->in_use = true;
	slot->database_id = MyDatabaseId;
	slot->relid = handle->relid;
	strlcpy(slot->database, database, sizeof(slot->database));
	strlcpy(slot->name, name, sizeof(slot->name));
	slot->last = handle->last;
	slot->step = handle->step;
	return slot;
}

/*
 * Several sequences have a name, or the former one of this name was rolled back.
 * From now on, each session looks for the slot again before it uses another range,
 * so that the file of its own sequence has the note.
 */
static void
share_slot(RangeSlot *slot)
{
	if (!slot->shared)
		snowflake_change_version(slot);
	slot->shared = true;
}

/*
 * Does a sequence with this last value have all numbers of a range?
 */
static bool
ends_within(const RangeSegment *range, int64 last)
{
	return range == NULL || range->first + range->count - 1 <= last;
}

/*
 * Can a sequence use what a slot has?  Another one of its name may have another end.
 */
static bool
can_use_slot(RangeSlot *slot, const RangeHandle *handle)
{
	if (slot->relid == handle->relid)
		return slot->last == handle->last;
	return ends_within(snowflake_current_range(slot), handle->last) &&
		ends_within(snowflake_reserved_range(slot), handle->last);
}

/*
 * The next number is for a sequence with another end.  What the registry says of the
 * former one, also in an answer that is on its way, does not count.
 */
static void
change_end(RangeSlot *slot, int64 last)
{
	slot->last = last;
	slot->problem_kind = PROBLEM_NONE;
	slot->problem[0] = '\0';
	slot->retry_at = 0;
	snowflake_change_version(slot);
}

/*
 * Find the slot of a name of this database.  It changes hands if the database
 * was renamed, or the sequence has another end.
 */
static RangeSlot *
find_or_occupy_slot(const RangeHandle *handle, const char *database, const char *name)
{
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		if (!belongs_to(slot, MyDatabaseId, name))
			continue;
		if (strcmp(slot->database, database) == 0 && can_use_slot(slot, handle))
		{
			if (slot->relid != handle->relid)
				share_slot(slot);
			if (slot->last != handle->last)
				change_end(slot, handle->last);
			slot->relid = handle->relid;
			return slot;
		}
		clear_slot(slot);
		ConditionVariableBroadcast(&slot->changed);
		break;
	}
	return occupy_slot(handle, database, name);
}

/*
 * Have a session know the slot of a sequence, which has its step, last value
 * and OID.  The caller has locked the sequence, and read what its file says
 * was granted.  Returns what that is to say before a number is used.
 */
int64
snowflake_find_slot(RangeHandle *handle, const char *name, int64 granted)
{
	const char *database = get_database_name(MyDatabaseId);
	RangeSlot  *slot;
	int64		noted = 0;

	snowflake_lock_ranges();
	slot = find_or_occupy_slot(handle, database, name);
	if (slot != NULL)
	{
		slot->granted = Max(slot->granted, granted);
		handle->slot = slot;
		handle->version = slot->version;
		noted = slot->noted;
	}
	snowflake_unlock_ranges();
	if (slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many range sequences are used on this server"),
				 errhint("Increase \"snowflake.max_range_sequences\", which is %d.",
						 snowflake_max_range_sequences)));
	return noted;
}

/*
 * Drop the ranges of a slot, whatever its version is by now: a shared one changes it
 * with each range.  Another sequence that has the slot loses numbers, which does no
 * harm.
 */
void
snowflake_drop_ranges_of(const RangeHandle *handle)
{
	snowflake_lock_ranges();
	snowflake_drop_ranges(handle->slot);
	snowflake_unlock_ranges();
}

/*
 * Free the slot of a sequence, or all of a database.
 */
void
snowflake_free_slot(Oid database_id, Oid relid)
{
	if (!snowflake_ranges_enabled())
		return;
	snowflake_lock_ranges();
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		if (!slot->in_use || slot->database_id != database_id ||
			(OidIsValid(relid) && slot->relid != relid))
			continue;
		clear_slot(slot);
		ConditionVariableBroadcast(&slot->changed);
	}
	snowflake_unlock_ranges();
}

/*
 * Get the problem that the registry had with a sequence since a time, by the
 * steady clock; PROBLEM_NONE if it had none.
 */
RangeProblem
snowflake_get_problem(const RangeHandle *handle, int64 since, char *problem)
{
	RangeSlot  *slot = handle->slot;
	RangeProblem kind = PROBLEM_NONE;

	snowflake_lock_ranges();
	if (slot->version == handle->version && slot->problem_at >= since)
		kind = slot->problem_kind;
	if (kind != PROBLEM_NONE)
		strlcpy(problem, slot->problem, SNOWFLAKE_RANGE_TEXT_SIZE);
	snowflake_unlock_ranges();
	return kind;
}

/*
 * Get the names of the servers that a floor waits for.
 */
void
snowflake_get_waits_for(const RangeHandle *handle, char *servers)
{
	snowflake_lock_ranges();
	strlcpy(servers, handle->slot->waits_for, SNOWFLAKE_RANGE_TEXT_SIZE);
	snowflake_unlock_ranges();
}

/*
 * A session waits for an answer until a time, by the steady clock.
 */
void
snowflake_expect_answer(const RangeHandle *handle, int64 until)
{
	snowflake_lock_ranges();
	handle->slot->waited_until = Max(handle->slot->waited_until, until);
	snowflake_unlock_ranges();
}

/*
 * Note why the last call failed; NULL if it did not.  The lock is held.
 */
void
snowflake_note_range_failure(const char *why)
{
	if (why == NULL)
		ranges->failed_since = 0;
	else
	{
		if (ranges->failed_since == 0)
			ranges->failed_since = GetCurrentTimestamp();
		strlcpy(ranges->failure, why, sizeof(ranges->failure));
	}
}

void
snowflake_get_range_failure(RangeFailure *failure)
{
	snowflake_lock_ranges();
	failure->worker_runs = ranges->worker_latch != NULL;
	failure->since = ranges->failed_since;
	strlcpy(failure->why, ranges->failure, sizeof(failure->why));
	snowflake_unlock_ranges();
}

static void
fill_statistics(RangeSlot *slot, RangeStatistics *statistics)
{
	RangeSegment *reserve = snowflake_reserved_range(slot);

	statistics->granted = slot->granted;
	statistics->held = snowflake_numbers_left(slot);
	if (reserve != NULL)
		statistics->held += reserve->count;
	statistics->first_granted = slot->first_granted;
	statistics->first_granted_at = slot->first_granted_at;
	strlcpy(statistics->problem, slot->problem, sizeof(statistics->problem));
}

/*
 * Get what is known of a sequence of this database.  Returns false if it was
 * not used since the start of the server.
 */
bool
snowflake_get_range_statistics(Oid relid, RangeStatistics *statistics)
{
	bool		found = false;

	if (!snowflake_ranges_enabled())
		return false;
	snowflake_lock_ranges();
	for (int i = 0; i < snowflake_max_range_sequences && !found; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		found = slot->in_use && slot->database_id == MyDatabaseId &&
			slot->relid == relid;
		if (found)
			fill_statistics(slot, statistics);
	}
	snowflake_unlock_ranges();
	return found;
}

/*
 * What the registry cannot have forgotten: the greatest number that was granted, and
 * the floor that it took or said, below which it grants none.
 */
int64
snowflake_greatest_known(const RangeSlot *slot)
{
	return slot->heard < slot->last ? Max(slot->granted, slot->heard) : slot->granted;
}

/*
 * Get what the registry cannot have forgotten of a name of this database, and the
 * greatest number of the ranges that were used; 0 for none since the server's start.
 */
void
snowflake_get_granted(const char *name, int64 *known, int64 *noted)
{
	*known = *noted = 0;
	if (!snowflake_ranges_enabled())
		return;
	name = pg_server_to_any(name, strlen(name), PG_UTF8);
	snowflake_lock_ranges();
	for (int i = 0; i < snowflake_max_range_sequences; i++)
	{
		RangeSlot  *slot = snowflake_range_slot(i);

		if (!belongs_to(slot, MyDatabaseId, name))
			continue;
		*known = snowflake_greatest_known(slot);
		*noted = slot->noted;
	}
	snowflake_unlock_ranges();
}

/*
 * Set the latch of the worker that calls the registry, or NULL when it ends.
 */
void
snowflake_set_range_worker_latch(Latch *latch)
{
	snowflake_lock_ranges();
	ranges->worker_latch = latch;
	snowflake_unlock_ranges();
}
