/*-------------------------------------------------------------------------
 *
 * generator.c
 *	  Generating snowflake IDs, one generator for all backends of a server.
 *
 * The generator's state is one 64-bit word in shared memory.  Its high bits
 * are a tick (the ID's timestamp, counted from the scheme's epoch), its low
 * bits the next sequence number of that tick.  Three rules keep it right:
 *
 * 1. A number inside the word's tick is claimed by an atomic fetch-add of 1.
 *	  The word that the fetch-add returns, not one read before, says which
 *	  tick and number the caller has.  (Several numbers are claimed at once by
 *	  a compare-and-swap that adds no more than the tick has left.)
 *
 * 2. The tick changes only under the generator's LWLock, held exclusively,
 *	  and only upwards (snowflake_set_mark() alone takes it back).  It is changed
 *	  by compare-and-swap, because claims go on meanwhile.
 *
 * 3. The word moves to a tick only if a mark above that tick is durable
 *	  (reserve.c).  Claims need not check the mark, because the word's
 *	  tick is below it.  Only whether the standbys that are synchronous have it can
 *	  change, so in a tick that lasts, claims check that once a millisecond.
 *
 * So the word never decreases, and each value of it is claimed at most once.
 * An ID consists of the word's bits in the same order (the worker ID, between
 * or below them, is the same for all IDs of a tick: grant.c).  Therefore IDs
 * are strictly increasing across all backends: an ID requested after another
 * one was received is greater.  See docs/develop/internals.md for the whole argument.
 *
 * Usually a call takes no lock: the clock is inside the word's tick, and there
 * are numbers left.
 *
 * Late claims.  A claim that comes too late for the last number still adds to
 * the word.  A backend with a late claim looks at the word again, and adds
 * again only after it has seen a number left, so there are at most as many
 * late claims as backends.  The number has room above the scheme's last one
 * for more than MAX_BACKENDS of them, so they cannot carry into the tick.
 *
 * Whether to claim, move, wait, or fail is decided in one place,
 * snowflake_plan() (word.c), which depends only on the state and the clocks.
 * It is called first without the lock, where waiting and errors are allowed;
 * then again with the lock held, where only the claim or the move is done.
 * Those who find the lock taken only wait for its release, because the holder
 * most likely did the work for them (LWLockAcquireOrWait).  The usual call checks
 * may_claim() instead of the plan; it allows no claim that the plan forbids,
 * but not all that it allows.
 *
 * Fairness.  When the numbers of a tick are exhausted, callers wait for the
 * next one.  The first to wake up could take all its numbers, and again in the
 * tick after that, while others wait for many ticks.  So callers queue for the
 * next tick, and whoever moves the word to it gives numbers to all of them
 * before any can be claimed: one to each who wants one, and an equal share to
 * each who wants a block.  They find them when they wake up.  Such a number
 * counts as claimed at the move: its caller was waiting then, so no ID that
 * was received before its call is greater.
 *
 * A caller that is cancelled while it waits remains in the queue.  The numbers
 * that it is given are lost, like those of a transaction that rolls back; the
 * next time its process waits, it starts anew.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/generator.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "generator/clock_messages.h"
#include "generator/generator.h"
#include "generator/grant.h"
#include "generator/loaded.h"
#include "generator/reserve.h"
#include "generator/settings.h"
#include "generator/sleep.h"
#include "generator/state.h"
#include "shared/compat.h"

StaticAssertDecl(MAX_BACKENDS < (1 << SNOWFLAKE_LATE_CLAIM_BITS),
				 "late claims of all backends must not carry into the tick");

/* How often claims in the same tick check the standbys. */
#define CONFIRM_US	1000

/* The waits of a call so far. */
typedef struct Wait
{
	bool		queued;			/* for the next tick? */
	int			wanted;			/* numbers, in total */
	int			least;			/* consecutive ones */
	int			sleeps;
	int			reserve_sleeps;
	int64		grant_since;
} Wait;

/* The datacenter and worker ID in their fields, and the grant's generation. */
static uint64 worker_bits_generation = 0;
static int64 worker_bits;

/*
 * Use the current grant for the following IDs, and return its generation,
 * which must still be the same after a number was claimed.
 */
static inline uint64
use_worker_bits(void)
{
	SnowflakeGrant *grant = &snowflake_state->grant;
	uint64		generation = pg_atomic_read_u64(&grant->generation);

	if (unlikely(generation != worker_bits_generation))
	{
		pg_read_barrier();
		worker_bits = grant->worker_bits;
		worker_bits_generation = generation;
	}
	return generation;
}

static inline bool
is_same_generation(uint64 generation)
{
	return generation == pg_atomic_read_u64(&snowflake_state->grant.generation);
}

/*
 * The ID that belongs to a number of a tick.
 */
static inline int64
compose_id(int64 tick, uint64 number)
{
	Assert(tick >= snowflake_layout.base_tick &&
		   tick <= snowflake_layout.last_tick);
	return worker_bits |
		snowflake_field_put(&snowflake_layout.scheme, SNOWFLAKE_TIMESTAMP, tick) |
		snowflake_field_put(&snowflake_layout.scheme, SNOWFLAKE_SEQUENCE, number);
}

static inline int64
word_id(uint64 word)
{
	return compose_id(snowflake_word_tick(&snowflake_layout, word),
					  snowflake_word_number(&snowflake_layout, word));
}

/*
 * The number to start a tick with.
 *
 * If less than one ID per tick is needed, starting with 0 would make all IDs
 * even, and a table sharded by id % N would use only one of its shards.
 * However, a tick that follows an exhausted one probably needs all its
 * numbers, as does one from which a large block is taken.
 */
static inline uint64
start_number(uint64 previous, int wanted)
{
	uint64		half = snowflake_layout.number_limit / 2;

	if (snowflake_sequence_start == SNOWFLAKE_START_ZERO ||
		!snowflake_has_numbers(&snowflake_layout, previous) || (uint64) wanted > half)
		return 0;
	return pg_prng_uint64(&pg_global_prng_state) & (Max(half, 2) - 1);
}

/*
 * The entry of this process in the array of waiters.
 */
static inline SnowflakeWaiter *
my_waiter(void)
{
	return &snowflake_state->waiters[snowflake_process_number()];
}

/*
 * Join the queue for the tick after an exhausted one.  If that tick has come
 * meanwhile, return false: the caller should look again.
 */
static bool
join_queue(int64 tick, const Wait *wait)
{
	SnowflakeGenerator *state = snowflake_state;
	SnowflakeWaiter *waiter = my_waiter();
	uint64		word;
	bool		joined = false;

	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	word = pg_atomic_read_u64(&state->word);
	if (snowflake_word_tick(&snowflake_layout, word) == tick &&
		!snowflake_has_numbers(&snowflake_layout, word))
	{
		/* A cancelled call may have left its entry, or numbers it was given. */
		Assert((state->queue_length == 0) == dlist_is_empty(&state->queue));
		if (!waiter->queued)
		{
			dlist_push_tail(&state->queue, &waiter->link);
			state->queue_length++;
			waiter->queued = true;
		}
		waiter->wanted = wait->wanted;
		waiter->least = wait->least;
		pg_atomic_write_u32(&waiter->given, 0);
		joined = true;
	}
	LWLockRelease(state->lock);
	return joined;
}

/*
 * Take the numbers that a caller in the queue was given, if any: return how
 * many, with the first ID.
 */
static int
take_given(int64 *first)
{
	SnowflakeWaiter *waiter = my_waiter();
	int			given = (int) pg_atomic_read_u32(&waiter->given);

	if (given > 0)
	{
		pg_read_barrier();
		*first = waiter->first;
		pg_atomic_write_u32(&waiter->given, 0);
	}
	return given;
}

/*
 * How many of a tick's numbers, from one on, a waiter gets.  One that needs more than a
 * share gets them when it is the first in the queue, if not before.
 */
static uint64
waiter_share(const SnowflakeWaiter *waiter, uint64 number, uint64 share)
{
	uint64		count = Min(Min((uint64) waiter->wanted, Max(share, (uint64) waiter->least)),
							snowflake_layout.number_limit - number);

	return count < (uint64) waiter->least ? 0 : count;
}

/*
 * The first number that remains after each waiter in the queue was given a
 * share of a tick's numbers, from one on.  The lock is held.
 */
static uint64
count_shares(uint64 number, uint64 share)
{
	dlist_iter	iter;

	dlist_foreach(iter, &snowflake_state->queue)
	{
		SnowflakeWaiter *waiter = dlist_container(SnowflakeWaiter, link, iter.cur);
		uint64		count = waiter_share(waiter, number, share);

		if (count == 0)
			break;
		number += count;
	}
	return number;
}

/*
 * Give each waiter in the queue its share of a tick's numbers, from one on;
 * those for whom nothing is left remain in the queue.  The lock is held.
 */
static void
serve_queue(int64 tick, uint64 number, uint64 share)
{
	SnowflakeGenerator *state = snowflake_state;
	dlist_mutable_iter iter;

	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	dlist_foreach_modify(iter, &state->queue)
	{
		SnowflakeWaiter *waiter = dlist_container(SnowflakeWaiter, link, iter.cur);
		uint64		count = waiter_share(waiter, number, share);

		if (count == 0)
			break;
		/* A waiter in the queue has not been given anything yet. */
		Assert(waiter->queued && pg_atomic_read_u32(&waiter->given) == 0);
		dlist_delete(&waiter->link);
		state->queue_length--;
		waiter->queued = false;
		waiter->first = compose_id(tick, number);
		pg_write_barrier();
		pg_atomic_write_u32(&waiter->given, (uint32) count);
		number += count;
	}
}

/*
 * Move the word to a later tick, serve those who wait for it, and take as many
 * numbers as wanted, or as are left.  Return how many, with the first ID.
 * The lock is held.
 */
static int
enter_tick(const SnowflakeStep *step, const Wait *wait, int64 *first)
{
	SnowflakeGenerator *state = snowflake_state;
	SnowflakeWaiter *waiter = my_waiter();
	bool		queued = waiter->queued;
	int			callers = state->queue_length + (queued ? 0 : 1);
	uint64		word = pg_atomic_read_u64(&state->word);
	uint64		start;
	uint64		share;
	uint64		number;
	uint64		taken;

	/* The tick only increases, and only to one that is reserved. */
	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	Assert(step->next > snowflake_word_tick(&snowflake_layout, word));
	Assert(snowflake_was_reserved(step->next));
	Assert(is_same_generation(worker_bits_generation));

	/* It may be the entry of a call that was cancelled. */
	waiter->wanted = wait->wanted;
	waiter->least = wait->least;

	/* Meanwhile, claims change the number, and therefore perhaps the start. */
	do
	{
		start = callers > 1 ? 0 : start_number(word, wait->wanted);
		share = Max((snowflake_layout.number_limit - start) / callers, 1);
		number = count_shares(start, share);
		taken = queued ? 0 : waiter_share(waiter, number, share);
	} while (!snowflake_change_word(&word,
									snowflake_make_word(&snowflake_layout, step->next,
														number + taken), start));
	pg_atomic_write_u64(&state->entered, step->entered);

	serve_queue(step->next, start, share);
	if (queued)
		return take_given(first);
	*first = compose_id(step->next, number);
	return (int) taken;
}

/*
 * Claim as many numbers of the word's tick as wanted, or as are left.  Return
 * how many, with the first ID.
 *
 * This is done by compare-and-swap, because there is room for late claims of a
 * single number only.
 */
static int
claim_numbers(uint64 *word, int wanted, int64 *first)
{
	uint64		taken;

	taken = Min((uint64) wanted, snowflake_layout.number_limit -
				snowflake_numbers_used(&snowflake_layout, *word));
	*first = word_id(*word);
	if (taken > 0 &&
		pg_atomic_compare_exchange_u64(&snowflake_state->word, word,
									   *word + taken))
		return (int) taken;
	return 0;
}

/*
 * Do standbys that are synchronous now lack the mark of the word's tick?  Each
 * backend checks this every CONFIRM_US.
 */
static bool
lost_confirmation(TimestampTz now)
{
	static TimestampTz confirmed_at = 0;

	if (confirmed_at <= now && now - confirmed_at < CONFIRM_US)
		return false;
	if (snowflake_mark_is_unconfirmed())
		return true;
	confirmed_at = now;
	return false;
}

/*
 * May numbers of this tick be claimed at this time?  Only if snowflake_plan()
 * allows it too.
 *
 * If IDs are ahead of the clock, this is allowed only up to a lead that has
 * been logged, so that every greater lead is logged.  In a tick that lasts,
 * another standby may have become synchronous since it was entered.
 */
static inline bool
may_claim(int64 tick, TimestampTz now)
{
	int64		lead = snowflake_tick_lead(&snowflake_layout, tick, now);

	if (lead <= -snowflake_layout.tick_us)
		return false;
	if ((lead > 0 || snowflake_layout.tick_us > CONFIRM_US) && lost_confirmation(now))
		return false;
	return lead <= snowflake_max_lead_us() ||
		(snowflake_clock_backward == SNOWFLAKE_CLOCK_CONTINUE &&
		 lead <= (int64) pg_atomic_read_u64(&snowflake_state->logged_lead));
}

/*
 * Wait in the queue for the next tick.  The sequence of the word's tick is
 * exhausted; or, right after the start, the clock is behind the ticks that
 * were reserved before.
 */
static void
wait_for_tick(const SnowflakeSnapshot *snapshot, const SnowflakeStep *step,
			  Wait *wait)
{
	if (!wait->queued)
		wait->queued = join_queue(snowflake_word_tick(&snowflake_layout, snapshot->word), wait);
	if (!wait->queued)
		return;
	if (snowflake_before_first_tick(&snowflake_layout, snapshot))
		snowflake_sleep(step->wait, SNOWFLAKE_EVENT_CLOCK, SNOWFLAKE_CLOCK_WAITS,
						&wait->sleeps);
	else
		snowflake_sleep(step->wait, SNOWFLAKE_EVENT_SEQUENCE, SNOWFLAKE_SEQUENCE_WAITS,
						&wait->sleeps);
}

/*
 * Wait for the clock, which is behind the word's tick, or fail if it is too
 * far behind.
 */
static void
wait_for_clock(const SnowflakeSnapshot *snapshot, const SnowflakeStep *step,
			   Wait *wait)
{
	snowflake_note_backward(step->lead);
	if (snowflake_is_too_far_behind(snapshot, step))
		snowflake_fail_plan(step, snapshot);
	snowflake_sleep(step->wait, SNOWFLAKE_EVENT_CLOCK,
					SNOWFLAKE_CLOCK_WAITS, &wait->sleeps);
}

/*
 * Move the word to a later tick, or claim where the usual way does not.  Take
 * as many numbers as wanted, or as are left.  Return how many, with the first
 * ID, or 0 if the caller should look again: another backend moved the word, or
 * some time was spent waiting.
 */
static int
move_word(int64 *first, Wait *wait)
{
	SnowflakeGenerator *state = snowflake_state;
	SnowflakeRules rules = snowflake_rules();
	SnowflakeSnapshot snapshot;
	SnowflakeStep step;
	int			taken = 0;

	if (wait->queued && (taken = take_given(first)) > 0)
		return taken;
	if (pg_atomic_read_u64(&state->reserved) == 0)
	{
		snowflake_recover();
		return 0;
	}
	if (snowflake_granted_until() == 0)
	{
		snowflake_wait_for_grant(0, &wait->grant_since);
		return 0;
	}

	snowflake_take_snapshot(&snapshot);
	snowflake_plan(&snowflake_layout, &rules, &snapshot, &step);
	switch (step.plan)
	{
		case SNOWFLAKE_CLAIM:
			if (!wait->queued && may_claim(step.next, snapshot.wall))
				return 0;
			break;
		case SNOWFLAKE_MOVE:
			if (snowflake_is_reserved(step.next))
				break;
			if (step.next < snowflake_granted_until())
				snowflake_reserve(true, &wait->reserve_sleeps);
			else
				snowflake_wait_for_grant(step.next, &wait->grant_since);
			return 0;
		case SNOWFLAKE_WAIT_SEQUENCE:
			wait_for_tick(&snapshot, &step, wait);
			return 0;
		case SNOWFLAKE_WAIT_CLOCK:
			wait_for_clock(&snapshot, &step, wait);
			return 0;
		default:
			snowflake_fail_plan(&step, &snapshot);
	}

	if (snowflake_mark_is_unconfirmed())
	{
		snowflake_confirm_mark(&wait->reserve_sleeps);
		return 0;
	}
	if (!LWLockAcquireOrWait(state->lock, LW_EXCLUSIVE))
		return 0;
	(void) use_worker_bits();
	snowflake_take_snapshot(&snapshot);
	snowflake_plan(&snowflake_layout, &rules, &snapshot, &step);
	if (wait->queued && (taken = take_given(first)) > 0)
		 /* was served while waiting for the lock */ ;
	else if (step.plan == SNOWFLAKE_CLAIM && !snowflake_mark_is_unconfirmed())
	{
		Assert(snowflake_was_reserved(step.next));
		taken = claim_numbers(&snapshot.word, wait->wanted, first);
	}
	else if (step.plan == SNOWFLAKE_MOVE && snowflake_is_reserved(step.next) &&
			 !snowflake_mark_is_unconfirmed())
		taken = enter_tick(&step, wait, first);
	LWLockRelease(state->lock);

	if (taken > 0)
	{
		if (step.plan == SNOWFLAKE_CLAIM || step.plan == SNOWFLAKE_MOVE)
			snowflake_note_lead(step.next, snapshot.wall);
		if (step.plan == SNOWFLAKE_MOVE)
			snowflake_note_jump(&snapshot, &step);
		if (snowflake_reserve_is_low(step.next))
			snowflake_reserve(false, &wait->reserve_sleeps);
	}
	return taken;
}

/*
 * Generate an ID.
 *
 * Fails during recovery, if the clock is so wrong that no ID can be generated, and
 * if the timestamp field is exhausted.  May wait for the next tick.
 */
int64
snowflake_generate(void)
{
	/*
	 * The word as this backend last saw it, or 0.  As long as the clock is in
	 * its tick, the word is most likely still in that tick.  If many backends
	 * generate IDs, the word's cache line then travels only once per ID, for
	 * the fetch-add, and not for a read before it, too.
	 */
	static uint64 seen = 0;
	int64		id;
	Wait		wait = {.wanted = 1,.least = 1};

	snowflake_check_primary("generate snowflake IDs");
	if (seen == 0)
		seen = pg_atomic_read_u64(&snowflake_state->word);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (!wait.queued && snowflake_has_numbers(&snowflake_layout, seen))
		{
			int64		tick = snowflake_word_tick(&snowflake_layout, seen);
			TimestampTz now = GetCurrentTimestamp();
			uint64		generation = use_worker_bits();

			if (may_claim(tick, now))
			{
				seen = pg_atomic_fetch_add_u64(&snowflake_state->word, 1);

				/*
				 * If the number is from another tick than the one seen, the
				 * clock might not allow it, or it might be of another grant.
				 * Then it is not used.
				 */
				if (snowflake_has_numbers(&snowflake_layout, seen) &&
					(snowflake_word_tick(&snowflake_layout, seen) == tick ||
					 may_claim(snowflake_word_tick(&snowflake_layout, seen), now)) &&
					is_same_generation(generation))
					return word_id(seen);
			}
		}
		if (move_word(&id, &wait) > 0)
			return id;
		seen = pg_atomic_read_u64(&snowflake_state->word);
	}
}

/*
 * Generate a block of IDs, as many as wanted or as a tick has left, but at least so many,
 * which a tick must have.  Returns how many; the first ID is first, and each of the
 * others is step more than the one before.  Fails and waits like snowflake_generate().
 *
 * If a tick has fewer left, they are lost, so that the next one is waited for in the
 * queue.
 */
int
snowflake_generate_block(int wanted, int least, int64 *first, int64 *step)
{
	int			taken = 0;
	Wait		wait = {.wanted = wanted,.least = least};

	if (wanted < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("count of snowflake IDs must be at least 1")));
	snowflake_check_primary("generate snowflake IDs");
	*step = snowflake_field_put(&snowflake_layout.scheme, SNOWFLAKE_SEQUENCE, 1);
	while (taken == 0)
	{
		uint64		generation = use_worker_bits();
		uint64		word = pg_atomic_read_u64(&snowflake_state->word);

		CHECK_FOR_INTERRUPTS();
		while (!wait.queued && taken == 0 &&
			   snowflake_has_numbers(&snowflake_layout, word) &&
			   may_claim(snowflake_word_tick(&snowflake_layout, word),
						 GetCurrentTimestamp()))
			taken = claim_numbers(&word, wanted, first);
		if (taken > 0 && !is_same_generation(generation))
			taken = 0;
		else if (taken == 0)
			taken = move_word(first, &wait);
		if (taken < least)
			taken = 0;
	}
	return taken;
}
