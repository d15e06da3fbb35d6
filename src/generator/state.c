/*-------------------------------------------------------------------------
 *
 * state.c
 *	  The generator's state in shared memory, its word, and its two locks.
 *
 * This file alone takes the reserve lock, and changes the word's tick and the
 * worker ID; generator.c has the protocol, and says why.  If both locks are
 * needed, the reserve lock is taken first.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/state.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "base/wait_event.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "shared/clock.h"
#include "shared/compat.h"

#define WORD_TRANCHE_NAME "SnowflakeGenerator"
#define RESERVE_TRANCHE_NAME "SnowflakeReserve"

/* The longest wait before checking again whether the reserve lock is free. */
#define MAX_RESERVE_WAIT_MS 100

SnowflakeGenerator *snowflake_state = NULL;
SnowflakeLayout snowflake_layout;

/*
 * Set the server's scheme, which never changes while it runs.
 */
void
snowflake_configure_state(const SnowflakeScheme *scheme)
{
	snowflake_layout_init(&snowflake_layout, scheme);
}

/* Processes that can call a function, and therefore wait. */
static int
max_waiters(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

static Size
state_size(void)
{
	return add_size(offsetof(SnowflakeGenerator, waiters),
					mul_size(max_waiters(), sizeof(SnowflakeWaiter)));
}

void
snowflake_request_state(void)
{
	RequestAddinShmemSpace(state_size());
	RequestNamedLWLockTranche(WORD_TRANCHE_NAME, 1);
	RequestNamedLWLockTranche(RESERVE_TRANCHE_NAME, 1);
}

/*
 * When the server was created, which is in its system identifier, and when it
 * wrote its last checkpoint.  This is called before recovery starts, and
 * therefore before a checkpoint with the current clock.  When shared memory is
 * initialized again after a crash, checkpoints may have had a clock that was set
 * back since the start, so the latest time counts that this postmaster has seen.
 */
static void
read_times(TimestampTz *created, TimestampTz *last_checkpoint)
{
	static TimestampTz latest_checkpoint = DT_NOBEGIN;
	bool		valid;
	ControlFileData *control = get_controlfile(DataDir, &valid);

	if (valid)
	{
		*created =
			time_t_to_timestamptz((pg_time_t) (control->system_identifier >> 32));
		latest_checkpoint =
			Max(latest_checkpoint,
				time_t_to_timestamptz((pg_time_t) control->checkPointCopy.time));
		*last_checkpoint = latest_checkpoint;
	}
	pfree(control);
}

/*
 * The datacenter and worker ID in their places in an ID.
 */
static int64
compose_worker_bits(int worker_id)
{
	const SnowflakeScheme *scheme = &snowflake_layout.scheme;

	return snowflake_field_put(scheme, SNOWFLAKE_DATACENTER,
							   snowflake_datacenter_id) |
		snowflake_field_put(scheme, SNOWFLAKE_WORKER, Max(worker_id, 0));
}

/*
 * Initialize the grant as it is without a registry; with one, nothing is
 * granted.
 */
static void
init_grant(SnowflakeGrant *grant)
{
	grant->registry = snowflake_has_registry;
	grant->worker_id = grant->registry ? -1 : Max(snowflake_worker_id, 0);
	grant->worker_bits = compose_worker_bits(grant->worker_id);
	grant->from = 0;
	pg_atomic_init_u64(&grant->until, grant->registry ? 0 : PG_INT64_MAX);
	pg_atomic_init_u64(&grant->generation, 1);
}

/*
 * Start with a worker ID for ticks from one up to another, while shared memory
 * is initialized.
 */
void
snowflake_init_worker_id(int worker_id, int64 from, int64 until)
{
	SnowflakeGrant *grant = &snowflake_state->grant;

	grant->worker_bits = compose_worker_bits(worker_id);
	grant->worker_id = worker_id;
	grant->from = from;
	pg_atomic_write_u64(&grant->until, until);
}

/*
 * Attach to the state, and initialize it if it is new: then return true.
 */
bool
snowflake_attach_state(void)
{
	SnowflakeGenerator *state;
	bool		found;

	state = ShmemInitStruct("snowflake generator", state_size(), &found);
	snowflake_state = state;
	snowflake_shared_synchronous_mark = &state->synchronous_mark;
	if (found)
		return false;

	Assert(((uintptr_t) state) % PG_CACHE_LINE_SIZE == 0);
	MemSet(state, 0, state_size());
	pg_atomic_init_u64(&state->word, snowflake_empty_word(&snowflake_layout));
	state->lock = &GetNamedLWLockTranche(WORD_TRANCHE_NAME)->lock;
	init_grant(&state->grant);
	pg_atomic_init_u64(&state->entered, 0);
	pg_atomic_init_u64(&state->ids_before, -snowflake_layout.number_limit);
	pg_atomic_init_u64(&state->changes, 0);
	dlist_init(&state->queue);

	pg_atomic_init_u64(&state->reserved, 0);
	pg_atomic_init_u64(&state->mark_lsn, InvalidXLogRecPtr);
	state->reserve_lock = &GetNamedLWLockTranche(RESERVE_TRANCHE_NAME)->lock;
	ConditionVariableInit(&state->reserve_done);
	read_times(&state->created, &state->last_checkpoint);
	state->pending_lsn = InvalidXLogRecPtr;

	pg_atomic_init_u64(&state->write_us, 0);
	state->synchronous_mark = snowflake_synchronous_mark;
	pg_atomic_init_u32(&state->required_standbys, 0);
	pg_atomic_init_u64(&state->logged_lead, SNOWFLAKE_CLOCK_STEP_US);
	pg_atomic_init_u32(&state->not_followed, 0);
	for (int i = 0; i < SNOWFLAKE_COUNTERS; i++)
		pg_atomic_init_u64(&state->counters[i], 0);
	pg_atomic_init_u64(&state->ids_reset, 0);
	pg_atomic_init_u64(&state->stats_reset, GetCurrentTimestamp());
	for (int i = 0; i < max_waiters(); i++)
		pg_atomic_init_u32(&state->waiters[i].given, 0);
	return true;
}

/*
 * Try to take the reserve lock, without waiting.
 */
bool
snowflake_try_lock_reserve(void)
{
	return LWLockConditionalAcquire(snowflake_state->reserve_lock,
									LW_EXCLUSIVE);
}

/*
 * Take the reserve lock; or, if another backend holds it, wait for some time
 * until it is released, and return false.
 *
 * The wait is on a condition variable, so that it can be cancelled.  It is
 * short because a backend that fails while holding the lock wakes nobody.
 */
bool
snowflake_lock_reserve_or_wait(void)
{
	ConditionVariable *done = &snowflake_state->reserve_done;
	bool		acquired = snowflake_try_lock_reserve();

	if (acquired)
		return true;
	ConditionVariablePrepareToSleep(done);
	acquired = snowflake_try_lock_reserve();
	if (!acquired)
		(void) ConditionVariableTimedSleep(done, MAX_RESERVE_WAIT_MS,
										   snowflake_wait_event(SNOWFLAKE_EVENT_RESERVE));
	ConditionVariableCancelSleep();
	return acquired;
}

void
snowflake_lock_reserve(void)
{
	while (!snowflake_lock_reserve_or_wait())
		CHECK_FOR_INTERRUPTS();
}

void
snowflake_unlock_reserve(void)
{
	LWLockRelease(snowflake_state->reserve_lock);
	ConditionVariableBroadcast(&snowflake_state->reserve_done);
}

/*
 * Set the word, while numbers of its old tick may be claimed.  expected is its
 * last known value; if it has changed, return false with the current value.
 * The lock is held.  skipped is how many numbers of the new word are not used
 * for IDs.
 */
bool
snowflake_change_word(uint64 *expected, uint64 new, uint64 skipped)
{
	SnowflakeGenerator *state = snowflake_state;
	bool		changed;
	uint64		changes = pg_atomic_read_u64(&state->changes);

	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	Assert(changes % 2 == 0);

	/* Only snowflake_set_mark() lowers the word; then nothing is reserved. */
	Assert(new > *expected ||
		   (pg_atomic_read_u64(&state->reserved) == 0 &&
			LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE)));
	Assert(skipped <= snowflake_numbers_used(&snowflake_layout, new));

	pg_atomic_write_u64(&state->changes, changes + 1);
	pg_write_barrier();
	changed = pg_atomic_compare_exchange_u64(&state->word, expected, new);
	if (changed)
		pg_atomic_write_u64(&state->ids_before,
							pg_atomic_read_u64(&state->ids_before) +
							snowflake_numbers_used(&snowflake_layout, *expected) -
							skipped);
	pg_write_barrier();
	pg_atomic_write_u64(&state->changes, changes + 2);
	return changed;
}

/*
 * Set the word to the end of a tick that began at this steady time, unless it
 * is past that, so that nothing can be claimed before it moves to a later
 * tick.  The lock is held.
 */
void
snowflake_exhaust_word(int64 tick, int64 entered)
{
	SnowflakeGenerator *state = snowflake_state;
	uint64		limit = snowflake_layout.number_limit;
	uint64		exhausted = snowflake_make_word(&snowflake_layout, tick, limit);
	uint64		word = pg_atomic_read_u64(&state->word);

	Assert(tick >= snowflake_layout.base_tick && tick <= snowflake_layout.last_tick);
	while (word < exhausted && !snowflake_change_word(&word, exhausted, limit))
		;
	Assert(pg_atomic_read_u64(&state->word) >= exhausted);
	pg_atomic_write_u64(&state->entered, entered);
}

/*
 * Set the word to a value from which nothing was claimed.  Both locks are
 * held, and nothing is reserved.
 */
void
snowflake_reset_word(void)
{
	uint64		word = pg_atomic_read_u64(&snowflake_state->word);

	while (!snowflake_change_word(&word, snowflake_empty_word(&snowflake_layout),
								  snowflake_layout.number_limit))
		;
}

/*
 * Make a tick and later ones unreserved.  Both locks are held.
 */
void
snowflake_limit_reserve(int64 until)
{
	SnowflakeGenerator *state = snowflake_state;

	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	if ((int64) pg_atomic_read_u64(&state->reserved) > until)
		pg_atomic_write_u64(&state->reserved, until);

	state->pending_end = Min(state->pending_end, until);
	if (state->pending_end <= (int64) pg_atomic_read_u64(&state->reserved))
		state->pending_lsn = InvalidXLogRecPtr;
}

/*
 * Change the worker ID, for ticks from one up to another, after the word was
 * exhausted.  Without a worker ID no ticks are granted, so a mark that standbys
 * do not have yet must not reserve any when they have it.  Both locks are held.
 */
void
snowflake_change_worker_id(int worker_id, int64 from, int64 until)
{
	SnowflakeGrant *grant = &snowflake_state->grant;

	Assert(LWLockHeldByMeInMode(snowflake_state->reserve_lock, LW_EXCLUSIVE));
	Assert(LWLockHeldByMeInMode(snowflake_state->lock, LW_EXCLUSIVE));
	Assert(!snowflake_has_numbers(&snowflake_layout,
								  pg_atomic_read_u64(&snowflake_state->word)));
	if (worker_id < 0)
		snowflake_state->pending_lsn = InvalidXLogRecPtr;
	snowflake_init_worker_id(worker_id, from, until);
	pg_write_barrier();
	pg_atomic_write_u64(&grant->generation,
						pg_atomic_read_u64(&grant->generation) + 1);
}

/*
 * Read the state and the time.  Without the lock, the tick may change
 * meanwhile, so conclusions must be checked again with the lock.
 */
void
snowflake_take_snapshot(SnowflakeSnapshot *snapshot)
{
	SnowflakeGenerator *state = snowflake_state;

	/* The caller has seen that the mark was read: first_tick is from then. */
	pg_read_barrier();

	/* It is stored after the word and first_tick, so they are no older. */
	snapshot->entered = (int64) pg_atomic_read_u64(&state->entered);
	pg_read_barrier();
	snapshot->word = pg_atomic_read_u64(&state->word);
	snapshot->first_tick = state->first_tick;
	snapshot->has_mark = state->has_mark;
	snapshot->until = (int64) pg_atomic_read_u64(&state->grant.until);
	snapshot->last_checkpoint = state->last_checkpoint;
	snapshot->created = state->created;
	snowflake_read_clocks(&snapshot->wall, &snapshot->steady);
}

void
snowflake_count(SnowflakeCounter counter, uint64 n)
{
	pg_atomic_fetch_add_u64(&snowflake_state->counters[counter], (int64) n);
}

SnowflakeRules
snowflake_rules(void)
{
	SnowflakeRules rules;

	rules.wait = snowflake_clock_backward == SNOWFLAKE_CLOCK_WAIT;
	rules.max_lead = snowflake_max_lead_us();
	rules.max_forward = (int64) snowflake_max_clock_forward * USECS_PER_SEC;
	return rules;
}

int64
snowflake_reserve_ticks(void)
{
	int64		reserve_us = (int64) snowflake_reserve_time * 1000;

	return (reserve_us + snowflake_layout.tick_us - 1) /
		snowflake_layout.tick_us;
}
