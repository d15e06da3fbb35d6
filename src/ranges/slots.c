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

#include "catalog/namespace.h"
#include "commands/dbcommands.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/shmem.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "generator/settings.h"
#include "ranges/slots.h"
#include "shared/clock.h"
#include "shared/compat.h"

#define TRANCHE_NAME	"SnowflakeRanges"
#define NO_GENERATION	PG_UINT64_MAX

/* The most slots that are looked at for one to take, and classes of their owners. */
#define MAX_LOOK		1000
#define OWNER_CLASSES	1024

typedef struct Ranges
{
	LWLock	   *lock;
	Latch	   *worker_latch;	/* or NULL */
	TimestampTz failed_since;	/* 0: the last call did not fail */
	char		failure[SNOWFLAKE_RANGE_TEXT_SIZE];
	bool		has_forgotten;	/* a slot was given up that had numbers */
	dlist_head	queues[RANGE_QUEUED_FIRST + 1];
	int			nused;			/* slots that have a name: the first ones */
	int			buckets[FLEXIBLE_ARRAY_MEMBER]; /* the first slot of a hash,
												 * or -1 */
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

static uint32
bucket_count(void)
{
	return pg_nextpower2_32(snowflake_max_range_sequences);
}

static Size
ranges_size(void)
{
	return add_size(offsetof(Ranges, buckets), mul_size(bucket_count(), sizeof(int)));
}

RangeSlot *
snowflake_range_slot(int number)
{
	return (RangeSlot *) (slots + number * slot_size());
}

int
snowflake_slot_number(const RangeSlot *slot)
{
	return ((const char *) slot - slots) / slot_size();
}

void
snowflake_request_slots(void)
{
	if (!snowflake_has_registry)
		return;
	RequestAddinShmemSpace(ranges_size());
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
	ranges = ShmemInitStruct("snowflake ranges", ranges_size(), &found);
	if (found)
		return;

	Assert(((uintptr_t) slots) % PG_CACHE_LINE_SIZE == 0);
	MemSet(ranges, 0, sizeof(Ranges));
	MemSet(slots, 0, slots_size());
	ranges->lock = &GetNamedLWLockTranche(TRANCHE_NAME)->lock;
	for (size_t i = 0; i < lengthof(ranges->queues); i++)
		dlist_init(&ranges->queues[i]);
	memset(ranges->buckets, -1, bucket_count() * sizeof(int));
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

static int *
bucket_of(const char *database, const char *name)
{
	uint32		hash = hash_combine(hash_bytes((const unsigned char *) database, strlen(database)),
									hash_bytes((const unsigned char *) name, strlen(name)));

	return &ranges->buckets[hash & (bucket_count() - 1)];
}

/*
 * Find the slot of a name, or NULL.
 */
RangeSlot *
snowflake_look_up_slot(const char *database, const char *name)
{
	RangeSlot  *slot;

	for (int i = *bucket_of(database, name); i >= 0; i = slot->next)
	{
		slot = snowflake_range_slot(i);
		if (strcmp(slot->name, name) == 0 && strcmp(slot->database, database) == 0)
			return slot;
	}
	return NULL;
}

/*
 * Move a slot to the end of a queue, or take it out of the one where it is.
 */
void
snowflake_queue_slot(RangeSlot *slot, RangeQueue queue)
{
	if (slot->queue != RANGE_NOT_QUEUED)
		dlist_delete(&slot->node);
	slot->queue = queue;
	if (queue != RANGE_NOT_QUEUED)
		dlist_push_tail(&ranges->queues[queue], &slot->node);
}

/*
 * The first slot of a queue, or NULL.
 */
RangeSlot *
snowflake_queued_slot(RangeQueue queue)
{
	dlist_head *head = &ranges->queues[queue];

	return dlist_is_empty(head) ? NULL : dlist_head_element(RangeSlot, node, head);
}

/*
 * Take a slot from its name, and wake who waits for it.
 */
static void
free_slot(RangeSlot *slot)
{
	int		   *link = bucket_of(slot->database, slot->name);

	while (*link != snowflake_slot_number(slot))
		link = &snowflake_range_slot(*link)->next;
	*link = slot->next;
	ranges->has_forgotten |= slot->granted > 0;
	ConditionVariableBroadcast(&slot->changed);
}

/*
 * When a number of a slot was used last, at the latest.  Claims do not note it.
 */
static int64
last_use(RangeSlot *slot, int64 now)
{
	uint64		word = pg_atomic_read_u64(&slot->word);

	if (word != slot->used_word ||
		(slot->waited_until > now && snowflake_current_range(slot) == NULL))
		slot->used_at = now;
	slot->used_word = word;
	return slot->used_at;
}

/*
 * Note for some slots in turn whether numbers were used, so that it is known of those
 * that were not.  The lock is held.
 */
void
snowflake_note_use(int64 now)
{
	static int	position = 0;

	for (int i = Min(snowflake_max_range_sequences, MAX_LOOK); i > 0; i--)
	{
		(void) last_use(snowflake_range_slot(position), now);
		position = (position + 1) % snowflake_max_range_sequences;
	}
}

/*
 * The slot that is given up for another name, or NULL.  It is the one that was unused
 * for longest, if that is longer than what servers hold numbers for.  If all are in
 * use, it is one of an owner who has more of them than the owner of the new one, so
 * that nobody keeps others out.  Of many slots, some are looked at; and owners are
 * counted by classes, which are others each time.
 */
static RangeSlot *
slot_to_give_up(Oid owner)
{
	int64		now = snowflake_steady_clock();
	int			most = Min(snowflake_max_range_sequences, MAX_LOOK);
	uint32		first = pg_prng_uint32(&pg_global_prng_state) % snowflake_max_range_sequences;
	uint32		salt = pg_prng_uint32(&pg_global_prng_state);
	int			counts[OWNER_CLASSES] = {0};
	RangeSlot  *idle = NULL;
	RangeSlot  *used = NULL;
	int			used_count = 0;

#define CLASS_OF(owner)	(murmurhash32((owner) ^ salt) % OWNER_CLASSES)
	for (int i = 0; i < most; i++)
	{
		int			number = (first + i) % snowflake_max_range_sequences;

		counts[CLASS_OF(snowflake_range_slot(number)->owner)]++;
	}
	for (int i = 0; i < most; i++)
	{
		RangeSlot  *slot = snowflake_range_slot((first + i) % snowflake_max_range_sequences);
		int64		used_at = last_use(slot, now);
		int			count = counts[CLASS_OF(slot->owner)];

		if (now - used_at >= range_window_us(slot))
		{
			if (idle == NULL || used_at < idle->used_at)
				idle = slot;
		}
		else if (count > counts[CLASS_OF(owner)] + 1 &&
				 (used == NULL || count > used_count ||
				  (count == used_count && used_at < used->used_at)))
		{
			used = slot;
			used_count = count;
		}
	}
	return idle != NULL ? idle : used;
}

bool
snowflake_has_free_slot(void)
{
	return ranges->nused < snowflake_max_range_sequences;
}

/*
 * Have a slot for a name that has none.  Returns NULL if none is free, nor to be
 * given up for this owner.  The version makes claims fail that come late.
 */
RangeSlot *
snowflake_new_slot(const char *database, const char *name, Oid owner, int64 last, int64 step)
{
	int		   *bucket = bucket_of(database, name);
	RangeSlot  *slot;

	if (snowflake_has_free_slot())
		slot = snowflake_range_slot(ranges->nused++);
	else if ((slot = slot_to_give_up(owner)) != NULL)
		free_slot(slot);
	else
		return NULL;
	snowflake_drop_ranges(slot);
	snowflake_queue_slot(slot, RANGE_NOT_QUEUED);
	slot->version++;
	memset((char *) slot + offsetof(RangeSlot, next), 0,
		   offsetof(RangeSlot, changed) - offsetof(RangeSlot, next));
	slot->heard = slot->asked = slot->told = slot->settled = -1;
	slot->used_at = snowflake_steady_clock();
	slot->owner = owner;
	slot->last = last;
	slot->step = step;
	strlcpy(slot->database, database, sizeof(slot->database));
	strlcpy(slot->name, name, sizeof(slot->name));
	slot->next = *bucket;
	*bucket = snowflake_slot_number(slot);
	return slot;
}

/*
 * A session wants nobody to give out numbers up to a floor: have this server give
 * them up, and the registry told.
 */
void
snowflake_want_floor(RangeSlot *slot, int64 floor)
{
	bool		unknown = slot->problem_kind == PROBLEM_UNKNOWN;

	if (slot->settled >= floor)
		return;
	if (unknown || (slot->asked < floor && slot->heard < floor))
	{
		slot->asked = floor;
		slot->retry_at = 0;
		snowflake_give_up(slot, floor);
	}
	if (unknown)
		slot->problem_kind = PROBLEM_NONE;
	snowflake_queue_slot(slot, RANGE_QUEUED_FIRST);
}

/*
 * Get the problem that the registry had with a sequence since a time, by the
 * steady clock.
 */
RangeProblem
snowflake_get_problem(const RangeHandle *handle, int64 since, char *problem)
{
	RangeSlot  *slot = handle->slot;
	RangeProblem kind = PROBLEM_NONE;

	snowflake_lock_ranges();
	if (slot->version == handle->version && slot->problem_at >= since)
	{
		kind = slot->problem_kind;
		strlcpy(problem, slot->problem, SNOWFLAKE_RANGE_TEXT_SIZE);
	}
	snowflake_unlock_ranges();
	return kind;
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
	statistics->held = snowflake_numbers_left(slot) + (reserve != NULL ? reserve->count : 0);
	strlcpy(statistics->problem,
			slot->problem_kind != PROBLEM_NONE ? slot->problem :
			statistics->held == 0 && ranges->failed_since != 0 ?
			"no number is left here, and calls of the registry fail: see the server log" : "",
			sizeof(statistics->problem));
}

/*
 * A name in UTF8, as the registry knows it.  NULL if that is not possible, so that numbers of
 * the name were never granted: such a name is not to fail what reads those of others.
 */
const char *
snowflake_utf8_name(const char *name)
{
	int			encoding = GetDatabaseEncoding();
	int			length = strlen(name);
	int			size = length * MAX_CONVERSION_GROWTH + 1;
	unsigned char *converted;
	Oid			conversion;

	if (encoding == PG_UTF8)
		return name;
	if (encoding == PG_SQL_ASCII)
		return pg_verify_mbstr(PG_UTF8, name, length, true) ? name : NULL;
	conversion = FindDefaultConversionProc(encoding, PG_UTF8);
	if (!OidIsValid(conversion))
		return NULL;
	converted = palloc(size);
	if (pg_do_encoding_conversion_buf(conversion, encoding, PG_UTF8,
									  (unsigned char *) unconstify(char *, name), length,
									  converted, size, true) < length)
		return NULL;
	return (const char *) converted;
}

/*
 * Get what is known of a name of this database.  Returns false if it was not used
 * since the start of the server.
 */
bool
snowflake_get_range_statistics(const char *name, RangeStatistics *statistics)
{
	const char *database = get_database_name(MyDatabaseId);
	RangeSlot  *slot;

	if (!snowflake_ranges_enabled())
		return false;
	name = snowflake_utf8_name(name);
	if (name == NULL)
		return false;
	snowflake_lock_ranges();
	slot = snowflake_look_up_slot(database, name);
	if (slot != NULL)
		fill_statistics(slot, statistics);
	snowflake_unlock_ranges();
	return slot != NULL;
}

/*
 * Was a slot given up whose numbers were granted in this life of the server?  Sessions can
 * have numbers of it that are in no table.  Who saw under the lock that a slot has another
 * name sees this, too.
 */
bool
snowflake_have_slots_forgotten(void)
{
	return ranges->has_forgotten;
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
