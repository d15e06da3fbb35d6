/*-------------------------------------------------------------------------
 *
 * state.c
 *	  The generator's state in shared memory.
 *
 * generator.c has the protocol: which lock guards what, and who may change
 * the word.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/state.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "generator.h"
#include "grant.h"
#include "preload.h"
#include "state.h"

#define WORD_TRANCHE_NAME "SnowflakeGenerator"
#define RESERVE_TRANCHE_NAME "SnowflakeReserve"

/* The longest sleep before the clock is checked again. */
#define MAX_NAP_US	INT64CONST(100000)

int			snowflake_sequence_start = SNOWFLAKE_START_RANDOM;
int			snowflake_max_lead = 0;
int			snowflake_clock_backward = SNOWFLAKE_CLOCK_CONTINUE;
int			snowflake_max_clock_backward = 5000;
int			snowflake_max_clock_forward = 365 * SECS_PER_DAY;
int			snowflake_reserve_time = 1000;
bool		snowflake_synchronous_mark = true;

Generator  *snowflake_state = NULL;
SnowflakeLayout snowflake_layout;

/*
 * Set the server's scheme, which never changes while it runs.
 */
void
snowflake_generator_configure(const SnowflakeScheme *scheme)
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
	return add_size(offsetof(Generator, waiters),
					mul_size(max_waiters(), sizeof(Waiter)));
}

void
snowflake_generator_request_shmem(void)
{
	RequestAddinShmemSpace(state_size());
	RequestNamedLWLockTranche(WORD_TRANCHE_NAME, 1);
	RequestNamedLWLockTranche(RESERVE_TRANCHE_NAME, 1);
}

/*
 * When the server was created, which is in its system identifier, and when it
 * wrote its last checkpoint.  This is called before recovery starts, and
 * therefore before a checkpoint with the current clock.
 */
static void
read_times(TimestampTz *created, TimestampTz *last_checkpoint)
{
	bool		valid;
	ControlFileData *control = get_controlfile(DataDir, &valid);

	if (valid)
	{
		*created =
			time_t_to_timestamptz((pg_time_t) (control->system_identifier >> 32));
		*last_checkpoint =
			time_t_to_timestamptz((pg_time_t) control->checkPointCopy.time);
	}
	pfree(control);
}

static void
init_wait_counter(WaitCounter *counter)
{
	pg_atomic_init_u64(&counter->waits, 0);
	pg_atomic_init_u64(&counter->wait_us, 0);
}

void
snowflake_generator_attach_shmem(void)
{
	Generator  *state;
	bool		found;

	state = ShmemInitStruct("snowflake generator", state_size(), &found);
	snowflake_state = state;
	if (found)
		return;

	Assert(((uintptr_t) state) % PG_CACHE_LINE_SIZE == 0);
	MemSet(state, 0, state_size());
	pg_atomic_init_u64(&state->word, empty_word(&snowflake_layout));
	state->lock = &GetNamedLWLockTranche(WORD_TRANCHE_NAME)->lock;
	snowflake_init_grant(&state->grant);
	pg_atomic_init_u64(&state->entered, 0);
	pg_atomic_init_u64(&state->ids_before, -snowflake_layout.number_limit);
	pg_atomic_init_u64(&state->changes, 0);
	dlist_init(&state->queue);

	pg_atomic_init_u64(&state->reserved, 0);
	state->reserve_lock = &GetNamedLWLockTranche(RESERVE_TRANCHE_NAME)->lock;
	ConditionVariableInit(&state->reserve_done);
	read_times(&state->created, &state->last_checkpoint);
	state->pending_lsn = InvalidXLogRecPtr;

	pg_atomic_init_u64(&state->write_us, 0);
	pg_atomic_init_u64(&state->known_lead, SNOWFLAKE_CLOCK_STEP_US);
	pg_atomic_init_u32(&state->not_followed, 0);
	init_wait_counter(&state->sequence_waits);
	init_wait_counter(&state->clock_waits);
	init_wait_counter(&state->reserve_waits);
	init_wait_counter(&state->grant_waits);
	pg_atomic_init_u64(&state->clock_errors, 0);
	pg_atomic_init_u64(&state->clock_steps, 0);
	pg_atomic_init_u64(&state->max_backward_us, 0);
	pg_atomic_init_u64(&state->reserves, 0);
	pg_atomic_init_u64(&state->ids_reset, 0);
	pg_atomic_init_u64(&state->stats_reset, GetCurrentTimestamp());
	for (int i = 0; i < max_waiters(); i++)
		pg_atomic_init_u32(&state->waiters[i].given, 0);
}

/*
 * Fail if this server has no generator.
 */
void
snowflake_check_loaded(void)
{
	if (unlikely(snowflake_state == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
				 snowflake_errhint_preload()));
}

/*
 * Fail if this server has no generator, or is a standby.
 */
void
snowflake_check_primary(const char *action)
{
	snowflake_check_loaded();
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot %s during recovery", action),
				 errhint("Use the primary server.")));
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
	Generator  *state = snowflake_state;
	bool		changed;
	uint64		changes = pg_atomic_read_u64(&state->changes);

	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	Assert(changes % 2 == 0);

	/* Only snowflake_reset() lowers the word; then nothing is reserved. */
	Assert(new > *expected ||
		   (pg_atomic_read_u64(&state->reserved) == 0 &&
			LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE)));
	Assert(skipped <= numbers_used(&snowflake_layout, new));

	pg_atomic_write_u64(&state->changes, changes + 1);
	pg_write_barrier();
	changed = pg_atomic_compare_exchange_u64(&state->word, expected, new);
	if (changed)
		pg_atomic_write_u64(&state->ids_before,
							pg_atomic_read_u64(&state->ids_before) +
							numbers_used(&snowflake_layout, *expected) -
							skipped);
	pg_write_barrier();
	pg_atomic_write_u64(&state->changes, changes + 2);
	return changed;
}

/*
 * Read the state and the time.  Without the lock, the tick may change
 * meanwhile, so conclusions must be checked again with the lock.
 */
void
snowflake_take_moment(SnowflakeMoment *moment)
{
	Generator  *state = snowflake_state;

	moment->word = pg_atomic_read_u64(&state->word);
	moment->entered = (int64) pg_atomic_read_u64(&state->entered);
	moment->first_tick = state->first_tick;
	moment->has_mark = state->has_mark;
	moment->until = (int64) pg_atomic_read_u64(&state->grant.until);
	moment->last_checkpoint = state->last_checkpoint;
	moment->created = state->created;
	snowflake_read_clocks(&moment->wall, &moment->steady);
}

SnowflakeRules
snowflake_rules(void)
{
	SnowflakeRules rules;

	rules.wait = snowflake_clock_backward == SNOWFLAKE_CLOCK_WAIT;
	rules.max_lead = (int64) snowflake_max_lead * 1000;
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

/*
 * Sleep, without holding a lock, for this time or a little longer, but not for
 * long: the caller checks the clock again, which may have been set.  naps
 * counts the sleeps of a call.
 *
 * WaitLatch() sleeps for whole milliseconds.  The rest of the time to the next
 * tick is slept without the latch, which delays interrupts by less than 2 ms.
 */
void
snowflake_nap(int64 us, uint32 wait_event, WaitCounter *counter, int *naps)
{
	instr_time	start;
	instr_time	slept;

	Assert(!LWLockHeldByMe(snowflake_state->lock));
	Assert(!LWLockHeldByMe(snowflake_state->reserve_lock));
	us = Min(us, MAX_NAP_US);
	if ((*naps)++ == 0)
		pg_atomic_fetch_add_u64(&counter->waits, 1);
	INSTR_TIME_SET_CURRENT(start);
	if (us >= 2000)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 us / 1000, wait_event);
		ResetLatch(MyLatch);
	}
	else
	{
		pgstat_report_wait_start(wait_event);
		pg_usleep(us);
		pgstat_report_wait_end();
	}
	INSTR_TIME_SET_CURRENT(slept);
	INSTR_TIME_SUBTRACT(slept, start);
	pg_atomic_fetch_add_u64(&counter->wait_us, INSTR_TIME_GET_MICROSEC(slept));
	CHECK_FOR_INTERRUPTS();
}
