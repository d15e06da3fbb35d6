/*-------------------------------------------------------------------------
 *
 * reserve.c
 *	  Reserving ticks: a durable mark above their IDs.
 *
 * The mark (mark.c) is a promise: every ID handed out so far is below it.  It
 * is written some time ahead (snowflake.reserve_time), so that it is written
 * rarely, and counts only when it is durable: flushed to the local WAL and, if
 * there are synchronous standbys, to theirs.  A commit waits for them, but a
 * call without a transaction ID does not commit, and a promoted standby must
 * know a mark above every ID that any client received.
 *
 * One backend at a time writes the mark, with the reserve lock held.  It does
 * so when half of the reserve is left, while all others continue.  Nobody
 * waits for that lock itself, and it is not held while waiting for a standby:
 *
 * - Whoever needs a tick that is not reserved waits for the release of the
 *	 lock on a condition variable.
 * - A mark that is flushed here but not yet on the standbys is pending.
 *	 Whoever takes the lock next and finds that they have it makes it count.
 *	 Whoever needs it waits for the standbys separately, by checking their
 *	 position.
 *
 * So each wait can be cancelled without affecting others: a mark counts
 * because the standbys have it, not because a wait has ended.  If a standby
 * answers within half of snowflake.reserve_time, nobody waits for it at all.
 *
 * How much is reserved: reserve_time, or more if that would not last as long.
 * First, writes may take longer, so that the reserved time would be over
 * before the mark counts.  This is assumed if the last two writes did; a
 * single stall is no reason to run far ahead.  Second, with
 * snowflake.max_lead, ticks can be used faster than time passes; a flush for
 * every few of them would be too many.
 *
 * At first, nothing is reserved.  The first caller after server start, or
 * after promotion, reads the mark and lifts the word to the last number of the
 * tick before it, so that the next ID is above all IDs handed out by any
 * server of this timeline, with any worker ID.  If the clock is behind that
 * tick, part of the distance is most likely the unused reserve.  So the first
 * tick is entered when the clock reaches it, but after reserve_time at the
 * latest.  If it were entered at once, each start would add to the lead.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/reserve.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "generator.h"
#include "grant.h"
#include "mark.h"
#include "reserve.h"
#include "standby.h"

/* The longest wait before checking again whether the lock is free. */
#define MAX_RESERVE_WAIT_MS 100

/* At each start, the mark is raised if it is older than this. */
#define OLDEST_MARK_US	USECS_PER_DAY

/*
 * The mark above all IDs of ticks below this one.
 */
static uint64
tick_mark(int64 tick)
{
	return (uint64) tick << snowflake_layout.scheme.shift[SNOWFLAKE_TIMESTAMP];
}

/*
 * The first tick whose IDs are all at or above a mark; the one after the last
 * if the mark is above all IDs of the scheme.
 */
static int64
mark_tick(uint64 mark)
{
	int64		tick = (int64) (mark >>
								snowflake_layout.scheme.shift[SNOWFLAKE_TIMESTAMP]);

	if (tick_mark(tick) != mark)
		tick++;
	return Min(tick, snowflake_layout.last_tick + 1);
}

/*
 * The tick of a time, or the nearest one that the scheme has.
 */
static int64
time_tick(TimestampTz time)
{
	int64		tick;

	if (time < tick_start(&snowflake_layout, snowflake_layout.base_tick))
		return snowflake_layout.base_tick;
	tick = (time - snowflake_layout.epoch) / snowflake_layout.tick_us;
	return Min(tick, snowflake_layout.last_tick + 1);
}

/*
 * Get the reserve lock, or return false if another backend holds it: at once,
 * or, if required, when that backend has released it.  The wait is on a
 * condition variable, so that it can be cancelled.  It is short because a
 * backend that fails while holding the lock wakes nobody.
 */
bool
snowflake_get_reserve_lock(bool required)
{
	static uint32 wait_event = 0;
	Generator  *state = snowflake_state;
	bool		acquired;

	acquired = LWLockConditionalAcquire(state->reserve_lock, LW_EXCLUSIVE);
	if (acquired || !required)
		return acquired;

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeReserve");

	ConditionVariablePrepareToSleep(&state->reserve_done);
	acquired = LWLockConditionalAcquire(state->reserve_lock, LW_EXCLUSIVE);
	if (!acquired)
		(void) ConditionVariableTimedSleep(&state->reserve_done,
										   MAX_RESERVE_WAIT_MS, wait_event);
	ConditionVariableCancelSleep();
	return acquired;
}

void
snowflake_release_reserve_lock(void)
{
	LWLockRelease(snowflake_state->reserve_lock);
	ConditionVariableBroadcast(&snowflake_state->reserve_done);
}

/*
 * Forget the reserved ticks: no ID is handed out until the mark was read
 * again.  The reserve lock is held.
 */
static void
forget_reserve(void)
{
	Assert(LWLockHeldByMeInMode(snowflake_state->reserve_lock, LW_EXCLUSIVE));
	pg_atomic_write_u64(&snowflake_state->reserved, 0);
	snowflake_state->pending_lsn = InvalidXLogRecPtr;
	snowflake_state->written_at = 0;
	pg_memory_barrier();
}

/*
 * Read the mark for the first time since the start or promotion of the server,
 * and lift the word to it.  After snowflake_reset(), a mark in the past says
 * nothing about the time.  The reserve lock is held.
 */
static uint64
recover_mark(bool after_reset)
{
	Generator  *state = snowflake_state;
	uint64		mark = snowflake_mark_read();
	int64		reserve_us =
		snowflake_reserve_ticks() * snowflake_layout.tick_us;
	int64		lead;
	int64		unused;
	uint64		word;
	uint64		lifted;
	TimestampTz wall;
	int64		steady;

	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(pg_atomic_read_u64(&state->reserved) == 0);
	state->first_tick = Max(mark_tick(mark), snowflake_layout.base_tick + 1);
	lifted = make_word(&snowflake_layout, state->first_tick - 1,
					   snowflake_layout.number_limit);

	/* When the first tick is entered if the clock stays behind it. */
	snowflake_read_clocks(&wall, &steady);
	lead = tick_lead(&snowflake_layout, state->first_tick, wall);
	state->has_mark = mark > 0 && !(after_reset && lead < 0);
	unused = Min(Max(lead - (int64) snowflake_max_lead * 1000, 0), reserve_us);

	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	word = pg_atomic_read_u64(&state->word);
	while (word < lifted &&
		   !snowflake_change_word(&word, lifted,
								  snowflake_layout.number_limit))
		;
	Assert(pg_atomic_read_u64(&state->word) >= lifted);
	pg_atomic_write_u64(&state->entered,
						steady + unused - snowflake_layout.tick_us);
	LWLockRelease(state->lock);

	pg_write_barrier();
	pg_atomic_write_u64(&state->reserved, state->first_tick);
	return mark;
}

/*
 * Make a pending mark count if the standbys have it, or need not.  The reserve
 * lock is held.
 */
static void
settle_pending_mark(void)
{
	Generator  *state = snowflake_state;

	if (state->pending_lsn == InvalidXLogRecPtr ||
		(snowflake_synchronous_mark &&
		 !snowflake_standbys_have(state->pending_lsn)))
		return;
	state->pending_lsn = InvalidXLogRecPtr;

	/* Reserved ticks are granted, below the mark, and not taken back. */
	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(snowflake_mark_read() >= tick_mark(state->pending_end));
	Assert((uint64) state->pending_end >= pg_atomic_read_u64(&state->reserved));
	Assert(state->pending_end <= granted_until());
	pg_atomic_write_u64(&state->reserved, state->pending_end);
}

/*
 * The tick to reserve up to, for a caller that is about to use the next one:
 * not past the grant.
 */
static int64
reserve_end(const SnowflakeMoment *moment, int64 next)
{
	Generator  *state = snowflake_state;
	int64		ticks = snowflake_reserve_ticks();
	int64		write_us = 2 * Min((int64) pg_atomic_read_u64(&state->write_us),
								   state->previous_write_us);
	int64		writes =
		Min(write_us, SNOWFLAKE_MAX_RESERVE_US) / snowflake_layout.tick_us + 1;
	int64		end = next + Max(ticks, writes);

	/* If reserve_time has time for two writes, it is enough. */
	if (state->written_at != 0)
	{
		double		used = next - state->written_next;
		double		us = Max(moment->steady - state->written_at, 1);
		double		needed = used / us * snowflake_reserve_time * 1000;
		int64		latest = time_tick(moment->wall +
									   (int64) snowflake_max_lead * 1000);

		/* Ticks that cannot be used by then are not needed. */
		if (needed > ticks)
			end = Max(end, Min(next + (int64) Min(needed, (double) PG_INT32_MAX),
							   latest + ticks));
	}
	end = Min(end, snowflake_layout.last_tick + 1);
	return Min(end, granted_until());
}

/*
 * Reserve ticks if few are left.  The reserve lock is held.
 */
static void
raise_mark(void)
{
	Generator  *state = snowflake_state;
	SnowflakeRules rules = snowflake_rules();
	SnowflakeMoment moment;
	SnowflakeStep step;
	XLogRecPtr	lsn;
	int64		end;

	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(!LWLockHeldByMe(state->lock));
	Assert(state->pending_lsn == InvalidXLogRecPtr);
	snowflake_take_moment(&moment);
	snowflake_plan(&snowflake_layout, &rules, &moment, &step);
	if ((step.plan != SNOWFLAKE_CLAIM && step.plan != SNOWFLAKE_MOVE &&
		 step.plan != SNOWFLAKE_WAIT_SEQUENCE) ||
		!reserve_is_low(step.next))
		return;

	end = reserve_end(&moment, step.next);
	if (end <= (int64) pg_atomic_read_u64(&state->reserved) || end <= step.next)
		return;
	lsn = snowflake_mark_raise(tick_mark(end));
	state->written_at = moment.steady;
	state->written_next = step.next;
	state->previous_write_us = (int64) pg_atomic_read_u64(&state->write_us);
	pg_atomic_write_u64(&state->write_us,
						snowflake_steady_clock() - moment.steady);
	pg_atomic_fetch_add_u64(&state->reserves, 1);

	/* Usually it counts at once. */
	state->pending_end = end;
	state->pending_lsn = lsn;
	settle_pending_mark();
}

/*
 * Wait until the synchronous standbys have a mark, by checking their position,
 * less often the longer they need.
 */
static void
wait_for_standbys(XLogRecPtr lsn, int *naps)
{
	static uint32 wait_event = 0;
	int64		start = snowflake_steady_clock();
	int64		waited;
	int64		us = 500;

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeStandby");
	while (snowflake_synchronous_mark && !snowflake_standbys_have(lsn))
	{
		snowflake_nap(us, wait_event, &snowflake_state->reserve_waits, naps);
		us += us / 4;
	}
	waited = snowflake_steady_clock() - start;
	if (waited > (int64) pg_atomic_read_u64(&snowflake_state->write_us))
		pg_atomic_write_u64(&snowflake_state->write_us, waited);
}

static void
log_start(uint64 mark)
{
	if (mark == 0)
		ereport(LOG,
				(errmsg("snowflake IDs start without a mark"),
				 errdetail("No ID has been made on this server yet, or the server has lost its replication origin progress.")));
	else
		ereport(LOG,
				(errmsg("snowflake IDs continue above the mark " UINT64_FORMAT,
						mark),
				 errdetail("The time of the mark is %s in this scheme.",
						   timestamptz_to_str(tick_start(&snowflake_layout,
														 mark_tick(mark))))));
}

/*
 * Reserve more ticks: make a mark above them durable, before their IDs are
 * handed out.  Wait for another backend that is doing it, or for standbys,
 * only if required.  In any case, the caller must look at the word again: it
 * is lifted when the mark is read for the first time.
 */
void
snowflake_reserve(bool required, int *naps)
{
	Generator  *state = snowflake_state;
	XLogRecPtr	pending;
	uint64		mark = 0;
	bool		recovered = false;

	if (!snowflake_get_reserve_lock(required))
		return;
	if (pg_atomic_read_u64(&state->reserved) == 0)
	{
		mark = recover_mark(false);
		recovered = true;
	}
	else
	{
		settle_pending_mark();
		if (state->pending_lsn == InvalidXLogRecPtr)
			raise_mark();
	}
	pending = state->pending_lsn;
	snowflake_release_reserve_lock();

	if (recovered)
		log_start(mark);
	if (required && pending != InvalidXLogRecPtr)
		wait_for_standbys(pending, naps);
}

/*
 * The tick of the next ID, if that is not in the word's tick; the grant is to
 * start there.  If the clock is so wrong that no ID can be made, the registry
 * will detect that.
 */
int64
snowflake_next_tick(void)
{
	SnowflakeRules rules = snowflake_rules();
	SnowflakeMoment moment;
	SnowflakeStep step;
	int64		next;
	int			naps = 0;

	while (pg_atomic_read_u64(&snowflake_state->reserved) == 0)
		snowflake_reserve(true, &naps);
	snowflake_take_moment(&moment);
	snowflake_plan(&snowflake_layout, &rules, &moment, &step);
	next = step.plan <= SNOWFLAKE_WAIT_CLOCK ?
		step.next : time_tick(moment.wall);
	return Max(next, word_tick(&snowflake_layout, moment.word) + 1);
}

/*
 * When the server can write: take a replication origin for the mark, so that
 * it is known now if none is free, and read the mark.
 *
 * A mark that is older than a day is raised to a day ago, so that the next
 * start knows the time of this one: a clock that is far ahead of the mark is
 * refused, which should not happen on a server that made no ID for years.  It
 * is a day, so that a clock that starts in the wrong time zone does no harm.
 * (A registry knows the time on its own.)
 */
void
snowflake_begin_reserving(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz mark_time;
	uint64		mark;
	bool		recovered = false;

	while (!snowflake_get_reserve_lock(true))
		CHECK_FOR_INTERRUPTS();
	mark = snowflake_mark_read();
	if (mark > 0 && !snowflake_state->grant.registry)
	{
		mark_time = tick_start(&snowflake_layout, mark_tick(mark));
		if (now - OLDEST_MARK_US > mark_time &&
			now - mark_time <= snowflake_rules().max_forward)
			mark = tick_mark(time_tick(now - OLDEST_MARK_US));
	}
	(void) snowflake_mark_raise(mark);
	if (pg_atomic_read_u64(&snowflake_state->reserved) == 0)
	{
		mark = recover_mark(false);
		recovered = true;
	}
	snowflake_release_reserve_lock();

	/* Otherwise a call was first, and has logged it. */
	if (recovered)
		log_start(mark);
}

/*
 * Set the mark to any value, and continue from there as after a start.
 */
void
snowflake_set_mark(int64 mark)
{
	Generator  *state = snowflake_state;
	uint64		before;
	uint64		word;

	snowflake_check_primary("set the mark of snowflake IDs");
	while (!snowflake_get_reserve_lock(true))
		CHECK_FOR_INTERRUPTS();
	before = snowflake_mark_read();

	forget_reserve();
	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	word = pg_atomic_read_u64(&state->word);
	while (!snowflake_change_word(&word, empty_word(&snowflake_layout),
								  snowflake_layout.number_limit))
		;
	LWLockRelease(state->lock);
	snowflake_drop_grant();
	(void) snowflake_mark_set(mark);
	(void) recover_mark(true);
	snowflake_release_reserve_lock();

	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("mark of snowflake IDs was set from " UINT64_FORMAT " to " INT64_FORMAT,
					before, mark),
			 (uint64) mark < before ?
			 errdetail("IDs at or above the new mark that were handed out before can be handed out again.") : 0));
}

/*
 * Accept the clock although it is far ahead of the mark, or of the time
 * elapsed since the last ID: raise the mark to it, and continue from there.
 * Returns the time.
 */
TimestampTz
snowflake_accept_clock_now(void)
{
	TimestampTz now;
	int64		tick;

	snowflake_check_primary("accept the clock");
	now = GetCurrentTimestamp();
	tick = time_tick(now);
	if (now < tick_start(&snowflake_layout, snowflake_layout.base_tick) ||
		tick > snowflake_layout.last_tick)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("clock is out of range for the snowflake scheme"),
				 errdetail("The clock reads %s.", timestamptz_to_str(now))));

	while (!snowflake_get_reserve_lock(true))
		CHECK_FOR_INTERRUPTS();
	forget_reserve();
	(void) snowflake_mark_raise(tick_mark(tick));
	(void) recover_mark(false);
	snowflake_release_reserve_lock();
	return now;
}
