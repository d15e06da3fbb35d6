/*-------------------------------------------------------------------------
 *
 * reserve.c
 *	  Reserving ticks: a durable mark above their IDs.
 *
 * The mark (durable.c) is a promise: every ID handed out so far is below it.  It
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
 * server of this timeline, with any worker ID.  (If this server was granted a
 * worker ID for ticks above the mark, and shared memory was reinitialized since
 * then, the first tick is that of the grant: below it, the worker ID belonged
 * to others.)  If the clock is behind that
 * tick, part of the distance is most likely the unused reserve.  So the first
 * tick is entered when the clock reaches it, but after reserve_time at the
 * latest.  If it were entered at once, each start would add to the lead.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/reserve.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "generator/durable.h"
#include "generator/reserve.h"
#include "generator/settings.h"
#include "generator/sleep.h"
#include "generator/standby.h"
#include "generator/state.h"
#include "shared/clock.h"

/* At each start, the mark is raised if it is older than this. */
#define OLDEST_MARK_US	USECS_PER_DAY

/*
 * Does a mark, whose record ends there, lack synchronous standbys?
 */
static bool
lacks_standbys(XLogRecPtr lsn)
{
	return snowflake_state->synchronous_mark && !snowflake_standbys_have(lsn);
}

/*
 * Forget the reserved ticks: no ID is handed out until the mark was read
 * again.  The reserve lock is held.
 */
void
snowflake_forget_reserve(void)
{
	Assert(LWLockHeldByMeInMode(snowflake_state->reserve_lock, LW_EXCLUSIVE));
	pg_atomic_write_u64(&snowflake_state->reserved, 0);
	snowflake_state->pending_lsn = InvalidXLogRecPtr;
	snowflake_state->written_at = 0;
	pg_memory_barrier();
}

/*
 * Read the mark for the first time since the start or promotion of the server,
 * lift the word to it, and return it.  After snowflake_set_mark(), a mark in the
 * past says nothing about the time.  The reserve lock is held.
 */
uint64
snowflake_recover_mark(bool after_reset)
{
	SnowflakeGenerator *state = snowflake_state;
	uint64		mark = snowflake_mark_read();
	int64		reserve_us =
		snowflake_reserve_ticks() * snowflake_layout.tick_us;
	int64		lead;
	int64		unused;
	TimestampTz wall;
	int64		steady;

	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(pg_atomic_read_u64(&state->reserved) == 0);
	state->first_tick = Max(snowflake_mark_tick(&snowflake_layout, mark), state->grant.from);
	state->first_tick = Max(state->first_tick, snowflake_layout.base_tick + 1);

	/* When the first tick is entered if the clock stays behind it. */
	snowflake_read_clocks(&wall, &steady);
	lead = snowflake_tick_lead(&snowflake_layout, state->first_tick, wall);
	state->has_mark = mark > 0 && !(after_reset && lead < 0);
	unused = Min(Max(lead - snowflake_max_lead_us(), 0), reserve_us);

	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	snowflake_exhaust_word(state->first_tick - 1,
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
	SnowflakeGenerator *state = snowflake_state;

	if (state->pending_lsn == InvalidXLogRecPtr || lacks_standbys(state->pending_lsn))
		return;
	pg_atomic_write_u64(&state->mark_lsn, state->pending_lsn);
	state->pending_lsn = InvalidXLogRecPtr;

	/* Reserved ticks are granted, below the mark, and not taken back. */
	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(snowflake_mark_read() >= snowflake_tick_mark(&snowflake_layout, state->pending_end));
	Assert((uint64) state->pending_end >= pg_atomic_read_u64(&state->reserved));
	Assert(state->pending_end <= snowflake_granted_until());

	/* Whoever sees the ticks reserved sees which mark standbys must have. */
	pg_write_barrier();
	pg_atomic_write_u64(&state->reserved, state->pending_end);
}

/*
 * The tick to reserve up to, for a caller that is about to use the next one:
 * not past the grant.
 */
static int64
reserve_end(const SnowflakeSnapshot *snapshot, int64 next)
{
	SnowflakeGenerator *state = snowflake_state;
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
		double		us = Max(snapshot->steady - state->written_at, 1);
		double		needed = used / us * snowflake_reserve_time * 1000;
		int64		latest = snowflake_time_tick(&snowflake_layout, snapshot->wall +
												 snowflake_max_lead_us());

		/* Ticks that cannot be used by then are not needed. */
		if (needed > ticks)
			end = Max(end, Min(next + (int64) Min(needed, (double) PG_INT32_MAX),
							   latest + ticks));
	}
	end = Min(end, snowflake_layout.last_tick + 1);
	return Min(end, snowflake_granted_until());
}

/*
 * Are few reserved ticks left, and can more be reserved?
 */
bool
snowflake_reserve_is_low(int64 tick)
{
	int64		reserved = (int64) pg_atomic_read_u64(&snowflake_state->reserved);

	return reserved - tick <= snowflake_reserve_ticks() / 2 &&
		reserved < snowflake_granted_until();
}

/*
 * Reserve ticks if few are left.  The reserve lock is held.
 */
static void
raise_mark(void)
{
	SnowflakeGenerator *state = snowflake_state;
	SnowflakeRules rules = snowflake_rules();
	SnowflakeSnapshot snapshot;
	SnowflakeStep step;
	XLogRecPtr	lsn;
	int64		end;

	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(!LWLockHeldByMe(state->lock));
	Assert(state->pending_lsn == InvalidXLogRecPtr);
	snowflake_take_snapshot(&snapshot);
	snowflake_plan(&snowflake_layout, &rules, &snapshot, &step);
	if ((step.plan != SNOWFLAKE_CLAIM && step.plan != SNOWFLAKE_MOVE &&
		 step.plan != SNOWFLAKE_WAIT_SEQUENCE) ||
		!snowflake_reserve_is_low(step.next))
		return;

	end = reserve_end(&snapshot, step.next);
	if (end <= (int64) pg_atomic_read_u64(&state->reserved) || end <= step.next)
		return;
	PG_TRY();
	{
		lsn = snowflake_mark_raise(snowflake_tick_mark(&snowflake_layout, end));
	}
	PG_CATCH();
	{
		snowflake_count(SNOWFLAKE_MARK_ERRORS, 1);
		PG_RE_THROW();
	}
	PG_END_TRY();
	state->written_at = snapshot.steady;
	state->written_next = step.next;
	state->previous_write_us = (int64) pg_atomic_read_u64(&state->write_us);
	pg_atomic_write_u64(&state->write_us,
						snowflake_steady_clock() - snapshot.steady);
	snowflake_count(SNOWFLAKE_RESERVES, 1);

	/* Usually it counts at once. */
	state->pending_end = end;
	state->pending_lsn = lsn;
	settle_pending_mark();
}

/*
 * Wait until the synchronous standbys have a mark, by checking their position,
 * less often the longer they need.
 */
void
snowflake_wait_for_standbys(XLogRecPtr lsn, int *sleeps)
{
	int64		start = snowflake_steady_clock();
	int64		waited;
	int64		us = 500;

	while (lacks_standbys(lsn))
	{
		snowflake_sleep(us, SNOWFLAKE_EVENT_STANDBY,
						SNOWFLAKE_RESERVE_WAITS, sleeps);
		us = Min(us + us / 4, USECS_PER_SEC);
	}
	waited = snowflake_steady_clock() - start;
	if (waited > (int64) pg_atomic_read_u64(&snowflake_state->write_us))
		pg_atomic_write_u64(&snowflake_state->write_us, waited);
}

/*
 * Are ticks reserved by a mark that the standbys which are synchronous now have
 * not confirmed?  Others may have, or there were none.  The caller has seen that
 * the ticks are reserved.
 */
bool
snowflake_mark_is_unconfirmed(void)
{
	pg_read_barrier();
	return lacks_standbys(pg_atomic_read_u64(&snowflake_state->mark_lsn));
}

/*
 * Wait until synchronous standbys have confirmed the mark.
 */
void
snowflake_confirm_mark(int *sleeps)
{
	snowflake_wait_for_standbys(pg_atomic_read_u64(&snowflake_state->mark_lsn),
								sleeps);
}

static void
log_start(uint64 mark)
{
	if (mark == 0)
		ereport(LOG,
				(errmsg("snowflake IDs start without a mark"),
				 errdetail("No ID has been generated on this server yet, or the server has lost its replication origin progress."),
				 errhint("If this server, or one that it replaces, generated IDs before, call snowflake_raise_mark() with an ID above all of them.")));
	else
		ereport(LOG,
				(errmsg("snowflake IDs continue above the mark " UINT64_FORMAT,
						mark),
				 errdetail("The time of the mark is %s in this scheme.",
						   timestamptz_to_str(snowflake_mark_time(&snowflake_layout, mark)))));
}

/*
 * Read the mark if nobody did since the start.  Unlike snowflake_reserve(),
 * this writes nothing and waits for no standby.
 */
void
snowflake_recover(void)
{
	uint64		mark;

	while (pg_atomic_read_u64(&snowflake_state->reserved) == 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (!snowflake_lock_reserve_or_wait())
			continue;
		if (pg_atomic_read_u64(&snowflake_state->reserved) != 0)
		{
			snowflake_unlock_reserve();
			break;
		}
		mark = snowflake_recover_mark(false);
		snowflake_unlock_reserve();
		log_start(mark);
	}
}

/*
 * Reserve more ticks: make a mark above them durable, before their IDs are
 * handed out.  Wait for another backend that is doing it, or for standbys,
 * only if required.  In any case, the caller must look at the word again.
 *
 * Without a postmaster nothing is reserved, so a session that hardly ever
 * waits for a tick ends here.
 */
void
snowflake_reserve(bool required, int *sleeps)
{
	SnowflakeGenerator *state = snowflake_state;
	XLogRecPtr	pending;

	snowflake_exit_on_postmaster_death();
	snowflake_recover();
	if (!(required ? snowflake_lock_reserve_or_wait() :
		  snowflake_try_lock_reserve()))
		return;

	/* snowflake_set_mark() may have been called since then. */
	if (pg_atomic_read_u64(&state->reserved) != 0)
	{
		settle_pending_mark();
		if (state->pending_lsn == InvalidXLogRecPtr)
			raise_mark();
	}
	pending = state->pending_lsn;
	snowflake_unlock_reserve();

	if (required && pending != InvalidXLogRecPtr)
		snowflake_wait_for_standbys(pending, sleeps);
}

/*
 * The tick of the next ID, if that is not in the word's tick; the grant is to
 * start there.  If the clock is so wrong that no ID can be generated, the
 * registry will detect that.
 */
int64
snowflake_next_tick(void)
{
	SnowflakeRules rules = snowflake_rules();
	SnowflakeSnapshot snapshot;
	SnowflakeStep step;
	int64		next;

	snowflake_recover();
	snowflake_take_snapshot(&snapshot);
	snowflake_plan(&snowflake_layout, &rules, &snapshot, &step);
	next = step.plan <= SNOWFLAKE_WAIT_CLOCK ?
		step.next : snowflake_time_tick(&snowflake_layout, snapshot.wall);
	return Max(next, snowflake_word_tick(&snowflake_layout, snapshot.word) + 1);
}

/*
 * When the server can write: take a replication origin for the mark, so that
 * it is known now if none is free, and read the mark.
 *
 * A mark that is older than a day is raised to a day ago, so that the next
 * start knows the time of this one: a clock that is far ahead of the mark is
 * refused, which should not happen on a server that generated no ID for years.  It
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

	snowflake_lock_reserve();
	mark = snowflake_mark_read();
	if (mark > 0 && !snowflake_state->grant.registry)
	{
		mark_time = snowflake_mark_time(&snowflake_layout, mark);
		if (now - OLDEST_MARK_US > mark_time &&
			now - mark_time <= snowflake_rules().max_forward)
			mark = snowflake_tick_mark(&snowflake_layout,
									   snowflake_time_tick(&snowflake_layout,
														   now - OLDEST_MARK_US));
	}
	(void) snowflake_mark_raise(mark);
	if (pg_atomic_read_u64(&snowflake_state->reserved) == 0)
	{
		mark = snowflake_recover_mark(false);
		recovered = true;
	}
	snowflake_unlock_reserve();

	/* Otherwise a call was first, and has logged it. */
	if (recovered)
		log_start(mark);
}
