/*-------------------------------------------------------------------------
 *
 * generator.c
 *	  Making snowflake IDs, one generator for all backends of a server.
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
 *	  and only upwards (snowflake_reset() alone takes it back).  It is changed
 *	  by compare-and-swap, because claims go on meanwhile.
 *
 * 3. The word moves to a tick only if a mark above that tick is durable
 *	  (reserve.c).  Only the move has to check the mark: claims need not, as
 *	  the word's tick is below it.
 *
 * So the word never decreases, and each value of it is claimed at most once.
 * An ID consists of the word's bits in the same order (the worker ID, between
 * or below them, is the same for all IDs of a tick: grant.c).  Therefore IDs
 * are strictly increasing across all backends: an ID requested after another
 * one was received is greater.  See docs/guarantees.md for the whole argument.
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
 * Those who find the lock taken only wait for its release, as the holder most
 * likely did the work for them (LWLockAcquireOrWait).  The usual call checks
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
 * src/generator.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "generator.h"
#include "mark.h"
#include "reserve.h"
#include "snowflake.h"
#include "state.h"

StaticAssertDecl(MAX_BACKENDS < (1 << SNOWFLAKE_LATE_CLAIM_BITS),
				 "late claims of all backends must not carry into the tick");

/* The waits of a call so far. */
typedef struct Wait
{
	bool		queued;			/* for the next tick? */
	int			naps;
	int			reserve_naps;
	int64		grant_since;
} Wait;

/* The datacenter and worker ID in their fields, and the grant's number. */
static uint64 constant_grant = 0;
static int64 constant;

const SnowflakeScheme *
snowflake_server_scheme(void)
{
	snowflake_check_loaded();
	return &snowflake_layout.scheme;
}

/*
 * Use the current grant for the following IDs, and return its number, which
 * must still be the same after a number was claimed.
 */
static inline uint64
use_grant(void)
{
	Grant	   *grant = &snowflake_state->grant;
	uint64		number = pg_atomic_read_u64(&grant->number);

	if (unlikely(number != constant_grant))
	{
		pg_read_barrier();
		constant = grant->constant;
		constant_grant = number;
	}
	return number;
}

static inline bool
is_same_grant(uint64 number)
{
	return number == pg_atomic_read_u64(&snowflake_state->grant.number);
}

/*
 * The ID that belongs to a number of a tick.
 */
static inline int64
make_id(int64 tick, uint64 number)
{
	Assert(tick >= snowflake_layout.base_tick &&
		   tick <= snowflake_layout.last_tick);
	return constant |
		snowflake_field_put(&snowflake_layout.scheme, SNOWFLAKE_TIMESTAMP, tick) |
		snowflake_field_put(&snowflake_layout.scheme, SNOWFLAKE_SEQUENCE, number);
}

static inline int64
word_id(uint64 word)
{
	return make_id(word_tick(&snowflake_layout, word),
				   word_number(&snowflake_layout, word));
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
		!numbers_left(&snowflake_layout, previous) || (uint64) wanted > half)
		return 0;
	return pg_prng_uint64(&pg_global_prng_state) & (Max(half, 2) - 1);
}

/*
 * The entry of this process in the array of waiters.
 */
static inline Waiter *
my_waiter(void)
{
	return &snowflake_state->waiters[snowflake_process_number()];
}

/*
 * Join the queue for the tick after an exhausted one.  If that tick has come
 * meanwhile, return false: the caller should look again.
 */
static bool
join_queue(int64 tick, int wanted)
{
	Generator  *state = snowflake_state;
	Waiter	   *waiter = my_waiter();
	uint64		word;
	bool		joined = false;

	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	word = pg_atomic_read_u64(&state->word);
	if (word_tick(&snowflake_layout, word) == tick &&
		!numbers_left(&snowflake_layout, word))
	{
		/* A cancelled call may have left its entry, or numbers it was given. */
		Assert((state->queue_length == 0) == dlist_is_empty(&state->queue));
		if (!waiter->queued)
		{
			dlist_push_tail(&state->queue, &waiter->link);
			state->queue_length++;
			waiter->queued = true;
		}
		waiter->wanted = wanted;
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
	Waiter	   *waiter = my_waiter();
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
 * Go through the queue and give each waiter a share of a tick's numbers,
 * starting with a number; return the next number.  Unless in_earnest, only
 * count.  The lock is held.
 */
static uint64
serve_queue(int64 tick, uint64 number, uint64 share, bool in_earnest)
{
	Generator  *state = snowflake_state;
	dlist_mutable_iter iter;

	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	dlist_foreach_modify(iter, &state->queue)
	{
		Waiter	   *waiter = dlist_container(Waiter, link, iter.cur);
		uint64		count = Min((uint64) waiter->wanted, share);

		count = Min(count, snowflake_layout.number_limit - number);
		if (count == 0)
			break;
		/* A waiter in the queue has not been given anything yet. */
		Assert(waiter->queued && pg_atomic_read_u32(&waiter->given) == 0);
		if (in_earnest)
		{
			dlist_delete(&waiter->link);
			state->queue_length--;
			waiter->queued = false;
			waiter->first = make_id(tick, number);
			pg_write_barrier();
			pg_atomic_write_u32(&waiter->given, (uint32) count);
		}
		number += count;
	}
	return number;
}

/*
 * Move the word to a later tick, serve those who wait for it, and take as many
 * numbers as wanted, or as are left.  Return how many, with the first ID.
 * The lock is held.
 */
static int
enter_tick(const SnowflakeStep *step, int wanted, int64 *first)
{
	Generator  *state = snowflake_state;
	Waiter	   *waiter = my_waiter();
	bool		queued = waiter->queued;
	int			callers = state->queue_length + (queued ? 0 : 1);
	uint64		word = pg_atomic_read_u64(&state->word);
	uint64		start;
	uint64		share;
	uint64		number;
	uint64		served PG_USED_FOR_ASSERTS_ONLY;
	uint64		taken;

	/* The tick only increases, and only to one that is reserved. */
	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	Assert(step->next > word_tick(&snowflake_layout, word));
	Assert(may_stand_at(step->next));
	Assert(is_same_grant(constant_grant));

	/* It may be the entry of a call that was cancelled. */
	waiter->wanted = wanted;

	/* Meanwhile, claims change the number, and therefore perhaps the start. */
	do
	{
		start = callers > 1 ? 0 : start_number(word, wanted);
		share = Max((snowflake_layout.number_limit - start) / callers, 1);
		number = serve_queue(step->next, start, share, false);
		taken = queued ? 0 :
			Min(Min((uint64) wanted, share),
				snowflake_layout.number_limit - number);
	} while (!snowflake_change_word(&word,
									make_word(&snowflake_layout, step->next,
											  number + taken), start));
	pg_atomic_write_u64(&state->entered, step->entered);

	served = serve_queue(step->next, start, share, true);
	Assert(served == number);
	if (queued)
		return take_given(first);
	*first = make_id(step->next, number);
	return (int) taken;
}

/*
 * Claim as many numbers of the word's tick as wanted, or as are left.  Return
 * how many, with the first ID.
 *
 * This is done by compare-and-swap, as there is room for late claims of a
 * single number only.
 */
static int
claim_numbers(uint64 *word, int wanted, int64 *first)
{
	uint64		taken;

	taken = Min((uint64) wanted, snowflake_layout.number_limit -
				numbers_used(&snowflake_layout, *word));
	*first = word_id(*word);
	if (taken > 0 &&
		pg_atomic_compare_exchange_u64(&snowflake_state->word, word,
									   *word + taken))
		return (int) taken;
	return 0;
}

/*
 * May numbers of this tick be claimed at this time?  Only if snowflake_plan()
 * allows it too.
 *
 * If IDs are ahead of the clock, this is allowed only up to a lead that has
 * been logged, so that every greater lead is logged.
 */
static inline bool
may_claim(int64 tick, TimestampTz now)
{
	int64		lead = tick_lead(&snowflake_layout, tick, now);

	if (lead <= -snowflake_layout.tick_us)
		return false;
	return lead <= (int64) snowflake_max_lead * 1000 ||
		(snowflake_clock_backward == SNOWFLAKE_CLOCK_CONTINUE &&
		 lead <= (int64) pg_atomic_read_u64(&snowflake_state->known_lead));
}

/*
 * Keep the farthest that the clock was behind.
 */
static void
record_backward(int64 lead)
{
	pg_atomic_uint64 *record = &snowflake_state->max_backward_us;
	uint64		most = pg_atomic_read_u64(record);

	while (lead > (int64) most &&
		   !pg_atomic_compare_exchange_u64(record, &most, lead))
		;
}

/*
 * Warn once that IDs are ahead of the clock, and again if the clock is set
 * back further.
 */
static void
note_lead(int64 tick, TimestampTz now)
{
	Generator  *state = snowflake_state;
	int64		lead = tick_lead(&snowflake_layout, tick, now);
	bool		behind = lead > (int64) snowflake_max_lead * 1000;
	uint64		known = pg_atomic_read_u64(&state->known_lead);
	uint64		new_known = Max(lead, 0) + SNOWFLAKE_CLOCK_STEP_US;

	Assert(!LWLockHeldByMe(state->lock));
	if (behind)
		record_backward(lead);
	if (lead <= (int64) known || !behind)
	{
		/* As the lead decreases, so does the lead that has been logged. */
		if (new_known < known)
			(void) pg_atomic_compare_exchange_u64(&state->known_lead, &known,
												  new_known);
		return;
	}
	if (!pg_atomic_compare_exchange_u64(&state->known_lead, &known, new_known))
		return;

	pg_atomic_fetch_add_u64(&state->clock_steps, 1);
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("snowflake IDs are " INT64_FORMAT " ms ahead of the clock",
					lead / 1000),
			 errdetail("The timestamp of the last ID is %s, and the clock reads %s.",
					   pstrdup(timestamptz_to_str(tick_start(&snowflake_layout, tick))),
					   pstrdup(timestamptz_to_str(now))),
			 errhint("IDs continue at the pace of real time until the server's clock has caught up. Check the server's clock and, after a failover, the clock of the former primary.")));
}

/*
 * Warn that the wall clock has jumped ahead of the steady one.  Slewing, up to
 * a thousandth of the time elapsed, is not a jump.
 */
static void
note_jump(const SnowflakeMoment *moment, const SnowflakeStep *step)
{
	Generator  *state = snowflake_state;
	TimestampTz expected = moment->wall - step->jump;
	const char *wall;

	if (step->followed)
		pg_atomic_write_u32(&state->not_followed, 0);
	else if (pg_atomic_exchange_u32(&state->not_followed, 1) == 1)
		return;
	else if (state->grant.registry)
		snowflake_wake_grant_worker();
	if (step->jump <= SNOWFLAKE_CLOCK_STEP_US +
		(moment->steady - moment->entered) / 1000)
		return;

	pg_atomic_fetch_add_u64(&state->clock_steps, 1);
	wall = pstrdup(timestamptz_to_str(moment->wall));
	if (step->followed)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("clock jumped ahead by " INT64_FORMAT " ms",
						step->jump / 1000),
				 errdetail("The clock reads %s, but the last snowflake ID and the time elapsed since then indicate %s.",
						   wall, timestamptz_to_str(expected)),
				 errhint("Snowflake IDs follow the clock. Check that it is correct.")));
	else
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("clock jumped ahead by " INT64_FORMAT " ms, but snowflake IDs do not follow it",
						step->jump / 1000),
				 step->jump > (int64) snowflake_max_clock_forward * USECS_PER_SEC ?
				 errdetail("The clock reads %s, but the last snowflake ID and the time elapsed since then indicate %s. \"snowflake.max_clock_forward\" is %d s.",
						   wall, timestamptz_to_str(expected),
						   snowflake_max_clock_forward) :
				 errdetail("The clock reads %s, but the last snowflake ID and the time elapsed since then indicate %s. The registry has granted IDs up to %s.",
						   wall, pstrdup(timestamptz_to_str(expected)),
						   timestamptz_to_str(tick_start(&snowflake_layout, moment->until))),
				 state->grant.registry ?
				 errhint("Correct the server's clock. If it is correct, snowflake IDs follow it as soon as the registry grants later IDs.") :
				 errhint("Correct the server's clock. If it is correct, call snowflake_accept_clock().")));
}

/*
 * Fail, as the clock is too far behind the last ID or behind the mark, below
 * which are all IDs that were made before the server's start.
 */
snowflake_noreturn static void
fail_clock_behind(const SnowflakeMoment *moment, int64 next)
{
	const char *next_time =
		pstrdup(timestamptz_to_str(tick_start(&snowflake_layout, next)));
	const char *clock_time = pstrdup(timestamptz_to_str(moment->wall));

	if (word_tick(&snowflake_layout, moment->word) < moment->first_tick)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("clock is too far behind the mark of snowflake IDs"),
				 errdetail("The mark is " UINT64_FORMAT " (%s in this scheme), and the clock reads %s. \"snowflake.max_clock_backward\" is %d ms, and \"snowflake.max_lead\" is %d ms.",
						   snowflake_mark_read(), next_time, clock_time,
						   snowflake_max_clock_backward, snowflake_max_lead),
				 errhint("Correct the server's clock, or set \"snowflake.clock_backward\" to \"continue\".")));
	else
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("clock is too far behind the last snowflake ID"),
				 errdetail("The timestamp of the next ID is %s, and the clock reads %s. \"snowflake.max_clock_backward\" is %d ms, and \"snowflake.max_lead\" is %d ms.",
						   next_time, clock_time,
						   snowflake_max_clock_backward, snowflake_max_lead),
				 errhint("Correct the server's clock, or set \"snowflake.clock_backward\" to \"continue\".")));
}

/*
 * Fail, as no ID can be made at this time.
 */
snowflake_noreturn static void
fail_plan(SnowflakePlan plan, const SnowflakeMoment *moment)
{
	const SnowflakeLayout *layout = &snowflake_layout;
	const char *clock_time = pstrdup(timestamptz_to_str(moment->wall));
	const char *first_time =
		pstrdup(timestamptz_to_str(tick_start(layout, moment->first_tick)));

	pg_atomic_fetch_add_u64(&snowflake_state->clock_errors, 1);
	switch (plan)
	{
		case SNOWFLAKE_BEFORE_EPOCH:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("clock is before the epoch of the snowflake scheme"),
					 errdetail("The clock reads %s, and the first ID can be made at %s.",
							   clock_time,
							   timestamptz_to_str(tick_start(layout, layout->base_tick))),
					 errhint("Correct the server's clock, or set an earlier epoch in \"snowflake.scheme\".")));
			break;
		case SNOWFLAKE_USED_UP:
			ereport(ERROR,
					(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
					 errmsg("timestamp field of the snowflake scheme is exhausted"),
					 errdetail("The clock reads %s, and the field ends at %s.",
							   clock_time,
							   timestamptz_to_str(tick_start(layout, layout->last_tick + 1))),
					 errhint("Correct the server's clock, or set a wider timestamp field in \"snowflake.scheme\".")));
			break;
		case SNOWFLAKE_CLOCK_AHEAD:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("clock is too far ahead of the mark of snowflake IDs"),
					 errdetail("The mark is " UINT64_FORMAT " (%s in this scheme), and the clock reads %s. \"snowflake.max_clock_forward\" is %d s.",
							   snowflake_mark_read(), first_time, clock_time,
							   snowflake_max_clock_forward),
					 errhint("Correct the server's clock. If it is correct because no ID was made for that long or \"snowflake.scheme\" was changed, call snowflake_accept_clock().")));
			break;
		default:
			Assert(plan == SNOWFLAKE_MARK_AHEAD);
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("mark of snowflake IDs is too far ahead of the clock"),
					 errdetail("The mark is " UINT64_FORMAT " (%s in this scheme), the clock reads %s, and the last checkpoint before server start was at %s. \"snowflake.max_clock_forward\" is %d s.",
							   snowflake_mark_read(), first_time, clock_time,
							   pstrdup(timestamptz_to_str(moment->last_checkpoint)),
							   snowflake_max_clock_forward),
					 errhint("If \"snowflake.scheme\" was changed, revert the change. If the clock is wrong, correct it. To continue above the mark anyway, increase \"snowflake.max_clock_forward\".")));
			break;
	}
	pg_unreachable();
}

/*
 * Wait in the queue for the next tick.  The sequence of the word's tick is
 * exhausted; or, right after the start, the clock is behind the ticks that
 * were reserved before.
 */
static void
wait_for_tick(const SnowflakeMoment *moment, const SnowflakeStep *step,
			  int wanted, Wait *wait)
{
	static uint32 sequence_event = 0;
	static uint32 clock_event = 0;
	Generator  *state = snowflake_state;

	if (!wait->queued)
		wait->queued = join_queue(word_tick(&snowflake_layout, moment->word),
								  wanted);
	if (!wait->queued)
		return;
	if (sequence_event == 0)
	{
		sequence_event = snowflake_wait_event("SnowflakeSequence");
		clock_event = snowflake_wait_event("SnowflakeClock");
	}
	if (word_tick(&snowflake_layout, moment->word) < moment->first_tick)
		snowflake_nap(step->wait, clock_event, &state->clock_waits,
					  &wait->naps);
	else
		snowflake_nap(step->wait, sequence_event, &state->sequence_waits,
					  &wait->naps);
}

/*
 * Wait for the clock, which is behind the word's tick, or fail if it is too
 * far behind.  Right after the start, the unused reserve does not count; it
 * may be larger than usual because of a slow disk or standby.
 */
static void
wait_for_clock(const SnowflakeMoment *moment, const SnowflakeStep *step,
			   Wait *wait)
{
	static uint32 wait_event = 0;
	int64		longest = (int64) snowflake_max_clock_backward * 1000;

	if (word_tick(&snowflake_layout, moment->word) < moment->first_tick)
		longest += Max(snowflake_reserve_ticks() * snowflake_layout.tick_us,
					   SNOWFLAKE_MAX_RESERVE_US);
	record_backward(step->lead);
	if (step->wait > longest)
	{
		pg_atomic_fetch_add_u64(&snowflake_state->clock_errors, 1);
		fail_clock_behind(moment, step->next);
	}

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeClock");
	snowflake_nap(step->wait, wait_event, &snowflake_state->clock_waits,
				  &wait->naps);
}

/*
 * Move the word to a later tick, or claim where the usual way does not.  Take
 * as many numbers as wanted, or as are left.  Return how many, with the first
 * ID, or 0 if the caller should look again: another backend moved the word, or
 * some time was spent waiting.
 */
static int
move_word(int wanted, int64 *first, Wait *wait)
{
	Generator  *state = snowflake_state;
	SnowflakeRules rules = snowflake_rules();
	SnowflakeMoment moment;
	SnowflakeStep step;
	int			taken = 0;

	if (wait->queued && (taken = take_given(first)) > 0)
		return taken;
	if (pg_atomic_read_u64(&state->reserved) == 0)
	{
		/* The mark has not been read since the start. */
		snowflake_reserve(true, &wait->reserve_naps);
		return 0;
	}
	if (granted_until() == 0)
	{
		snowflake_wait_for_grant(0, &wait->grant_since);
		return 0;
	}

	snowflake_take_moment(&moment);
	snowflake_plan(&snowflake_layout, &rules, &moment, &step);
	switch (step.plan)
	{
		case SNOWFLAKE_CLAIM:
			if (!wait->queued && may_claim(step.next, moment.wall))
				return 0;
			break;
		case SNOWFLAKE_MOVE:
			if (is_reserved(step.next))
				break;
			if (step.next < granted_until())
				snowflake_reserve(true, &wait->reserve_naps);
			else
				snowflake_wait_for_grant(step.next, &wait->grant_since);
			return 0;
		case SNOWFLAKE_WAIT_SEQUENCE:
			wait_for_tick(&moment, &step, wanted, wait);
			return 0;
		case SNOWFLAKE_WAIT_CLOCK:
			wait_for_clock(&moment, &step, wait);
			return 0;
		default:
			fail_plan(step.plan, &moment);
	}

	if (!LWLockAcquireOrWait(state->lock, LW_EXCLUSIVE))
		return 0;
	(void) use_grant();
	snowflake_take_moment(&moment);
	snowflake_plan(&snowflake_layout, &rules, &moment, &step);
	if (wait->queued && (taken = take_given(first)) > 0)
		 /* was served while waiting for the lock */ ;
	else if (step.plan == SNOWFLAKE_CLAIM)
	{
		Assert(may_stand_at(step.next));
		taken = claim_numbers(&moment.word, wanted, first);
	}
	else if (step.plan == SNOWFLAKE_MOVE && is_reserved(step.next))
		taken = enter_tick(&step, wanted, first);
	LWLockRelease(state->lock);

	if (taken > 0)
	{
		if (step.plan == SNOWFLAKE_CLAIM || step.plan == SNOWFLAKE_MOVE)
			note_lead(step.next, moment.wall);
		if (step.plan == SNOWFLAKE_MOVE)
			note_jump(&moment, &step);
		if (reserve_is_low(step.next))
			snowflake_reserve(false, &wait->reserve_naps);
	}
	return taken;
}

/*
 * Make an ID.
 *
 * Fails during recovery, if the clock is so wrong that no ID can be made, and
 * if the timestamp field is exhausted.  May wait for the next tick.
 */
int64
snowflake_generate(void)
{
	/*
	 * The word as this backend last saw it, or 0.  As long as the clock is in
	 * its tick, the word is most likely still in that tick.  If many backends
	 * make IDs, the word's cache line then travels only once per ID, for the
	 * fetch-add, and not for a read before it, too.
	 */
	static uint64 seen = 0;
	int64		id;
	Wait		wait = {0};

	snowflake_check_primary("make snowflake IDs");
	if (seen == 0)
		seen = pg_atomic_read_u64(&snowflake_state->word);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (!wait.queued && numbers_left(&snowflake_layout, seen))
		{
			int64		tick = word_tick(&snowflake_layout, seen);
			TimestampTz now = GetCurrentTimestamp();
			uint64		grant = use_grant();

			if (may_claim(tick, now))
			{
				seen = pg_atomic_fetch_add_u64(&snowflake_state->word, 1);

				/*
				 * If the number is from another tick than the one seen, the
				 * clock might not allow it, or it might be of another grant.
				 * Then it is not used.
				 */
				if (numbers_left(&snowflake_layout, seen) &&
					(word_tick(&snowflake_layout, seen) == tick ||
					 may_claim(word_tick(&snowflake_layout, seen), now)) &&
					is_same_grant(grant))
					return word_id(seen);
			}
		}
		if (move_word(1, &id, &wait) > 0)
			return id;
		seen = pg_atomic_read_u64(&snowflake_state->word);
	}
}

/*
 * Make a block of IDs, as many as wanted or as a tick has left.  Returns how
 * many, at least 1; the first ID is first, and each of the others is step more
 * than the one before.  Fails and waits like snowflake_generate().
 */
int
snowflake_generate_block(int wanted, int64 *first, int64 *step)
{
	int			taken = 0;
	Wait		wait = {0};

	snowflake_check_primary("make snowflake IDs");
	*step = snowflake_field_put(&snowflake_layout.scheme, SNOWFLAKE_SEQUENCE, 1);
	while (taken == 0)
	{
		uint64		grant = use_grant();
		uint64		word = pg_atomic_read_u64(&snowflake_state->word);

		CHECK_FOR_INTERRUPTS();
		while (!wait.queued && taken == 0 &&
			   numbers_left(&snowflake_layout, word) &&
			   may_claim(word_tick(&snowflake_layout, word),
						 GetCurrentTimestamp()))
			taken = claim_numbers(&word, wanted, first);
		if (taken > 0 && !is_same_grant(grant))
			taken = 0;
		else if (taken == 0)
			taken = move_word(wanted, first, &wait);
	}
	return taken;
}
