/*-------------------------------------------------------------------------
 *
 * grant.c
 *	  The grant: the worker ID that this server makes IDs with, up to a tick.
 *
 * Without a registry, that is the worker ID of the settings, forever.  With
 * one (snowflake.registry), it is a grant: a worker ID W and a range of ticks.
 * The ranges that a registry grants for the same W never overlap, and a server
 * makes IDs only in its own range.  So no clock, pause, or partition can make
 * two servers make the same ID.  A server that was suspended for an hour still
 * has its old range, which no other server was or will be granted, and nothing
 * beyond it.
 *
 * The end.  The word moves only to ticks that are reserved (reserve.c), and
 * reserved ticks never go past the end of the grant.  So the move has only one
 * thing to check, and a server without a grant has not raised its mark.
 *
 * The change.  A new grant mostly has another W.  It is installed with the
 * generator's lock held, in this order: the word is set to the end of a tick,
 * so that nothing can be claimed from it; then the constant is stored; then
 * the grant's number is raised.  To make an ID, a backend reads the number and
 * the constant, claims, and reads the number again; if it has changed, the
 * claim is dropped and the call starts again.  So no ID has the old W in a
 * tick of the new grant: such a tick is entered after the number was raised,
 * which every claim from it sees.  Nor does one have the new W in an old tick:
 * for those who read the new constant, the word is exhausted.  Numbers for
 * waiters are made into IDs under the lock.
 *
 * The tokens.  The registry identifies the holder of a grant by a token, a
 * random value that each call replaces with a new one.  It is only in memory:
 * a server that is started or promoted, or is a copy of a disk, has none, and
 * gets a W of its own.  A machine restored from a snapshot of its memory, or
 * running twice, has one that was replaced since then, and is refused.  A call
 * passes all tokens that might be the current one: the last that was
 * confirmed, and those sent since then whose answers were lost.
 *
 * When a backend crashes, the postmaster reinitializes shared memory, but it
 * is still the same server.  So its knowledge of the grant is kept in separate
 * memory, which its children share.  When the mark is set by
 * snowflake_reset(), the server drops its grant for good: IDs that it made may
 * now be above the mark.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/grant.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "generator.h"
#include "grant.h"
#include "reserve.h"
#include "snowflake.h"

/* The longest sleep before a waiter checks again. */
#define MAX_GRANT_NAP_MS	1000

int			snowflake_grant_timeout = 10000;

/* Memory that the postmaster maps once and its children share. */
static KeptGrant *kept = NULL;

/*
 * Map the memory in which the grant outlives a crash of a backend.  This is
 * called when the library is loaded at server start.
 */
void
snowflake_keep_grant(void)
{
#ifndef EXEC_BACKEND
	kept = mmap(NULL, sizeof(KeptGrant), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kept == MAP_FAILED)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not map memory for the grant of a snowflake worker ID: %m")));
#endif
}

static pg_crc32c
kept_crc(const KeptGrant *grant)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, grant, offsetof(KeptGrant, crc));
	FIN_CRC32C(crc);
	return crc;
}

/*
 * Get the kept grant, to change it with the reserve lock held; put_kept() ends
 * the change.  If children do not share the postmaster's memory, it is not
 * kept.
 */
static KeptGrant *
get_kept(void)
{
	return kept != NULL ? kept : &snowflake_state->grant.unkept;
}

static void
put_kept(KeptGrant *grant)
{
	grant->crc = kept_crc(grant);
}

/*
 * Keep nothing.
 */
static void
clear_kept(KeptGrant *grant)
{
	MemSet(grant, 0, sizeof(KeptGrant));
	grant->worker_id = -1;
	put_kept(grant);
}

static int64
id_constant(int worker_id)
{
	const SnowflakeScheme *scheme = &snowflake_layout.scheme;

	return snowflake_field_put(scheme, SNOWFLAKE_DATACENTER,
							   snowflake_datacenter_id) |
		snowflake_field_put(scheme, SNOWFLAKE_WORKER, worker_id);
}

/*
 * Initialize the grant.  This also determines whether there is a registry.
 */
void
snowflake_init_grant(Grant *grant)
{
	grant->registry = snowflake_registry[0] != '\0';
	pg_atomic_init_u64(&grant->number, 1);
	if (!grant->registry)
	{
		grant->worker_id = Max(snowflake_worker_id, 0);
		pg_atomic_init_u64(&grant->until, PG_INT64_MAX);
	}
	else
	{
		KeptGrant  *last = kept != NULL ? kept : &grant->unkept;

		/* Nothing is kept at the first start, or if a crash destroyed it. */
		if (kept_crc(last) != last->crc || last->ntokens == 0)
			clear_kept(last);
		grant->worker_id = last->worker_id;
		pg_atomic_init_u64(&grant->until,
						   last->worker_id < 0 ? 0 : last->until);
	}
	grant->constant = id_constant(Max(grant->worker_id, 0));
	ConditionVariableInit(&grant->changed);
	SpinLockInit(&grant->mutex);
}

/*
 * Exhaust the word, so that nothing can be claimed before it moves to the
 * given tick or a later one.  Both locks are held.
 *
 * The current time by the word and the steady clock remains the same.  If no
 * ID was made since the start, the tick becomes the first one: the registry
 * has checked the clock.
 */
static void
use_up_word(int64 from)
{
	Generator  *state = snowflake_state;
	const SnowflakeLayout *layout = &snowflake_layout;
	uint64		word = pg_atomic_read_u64(&state->word);
	int64		tick = word_tick(layout, word);
	int64		last = Max(tick, from - 1);
	uint64		used_up = make_word(layout, last, layout->number_limit);

	while (word < used_up &&
		   !snowflake_change_word(&word, used_up, layout->number_limit))
		;
	if (tick >= state->first_tick)
		pg_atomic_write_u64(&state->entered,
							pg_atomic_read_u64(&state->entered) +
							(last - tick) * layout->tick_us);
	else if (from > state->first_tick)
	{
		state->first_tick = from;
		pg_atomic_write_u64(&state->entered,
							snowflake_steady_clock() - layout->tick_us);
	}
}

/*
 * Make this tick and later ones unreserved.  Both locks are held.
 */
static void
cut_off(int64 until)
{
	Generator  *state = snowflake_state;

	Assert(LWLockHeldByMeInMode(state->reserve_lock, LW_EXCLUSIVE));
	Assert(LWLockHeldByMeInMode(state->lock, LW_EXCLUSIVE));
	if ((int64) pg_atomic_read_u64(&state->reserved) > until)
		pg_atomic_write_u64(&state->reserved, until);
	state->pending_end = Min(state->pending_end, until);
}

static void
get_reserve_lock(void)
{
	while (!snowflake_get_reserve_lock(true))
		CHECK_FOR_INTERRUPTS();
}

/*
 * Change the worker ID after the word was exhausted.  Both locks are held.
 */
static void
change_worker_id(int worker_id, int64 until)
{
	Grant	   *grant = &snowflake_state->grant;

	Assert(LWLockHeldByMeInMode(snowflake_state->reserve_lock, LW_EXCLUSIVE));
	Assert(LWLockHeldByMeInMode(snowflake_state->lock, LW_EXCLUSIVE));
	Assert(!numbers_left(&snowflake_layout,
						 pg_atomic_read_u64(&snowflake_state->word)));
	grant->constant = id_constant(Max(worker_id, 0));
	grant->worker_id = worker_id;
	pg_atomic_write_u64(&grant->until, until);
	pg_write_barrier();
	pg_atomic_write_u64(&grant->number,
						pg_atomic_read_u64(&grant->number) + 1);
}

/*
 * What to tell the registry about this server: its worker ID, or -1, and the
 * tokens that may identify it.
 */
static void
fill_call(GrantCall *call, const KeptGrant *grant)
{
	call->worker_id = grant->worker_id;
	call->ntokens = grant->ntokens;
	memcpy(call->tokens, grant->tokens, sizeof(call->tokens));
}

/*
 * Prepare a call of the registry: draw the token that will identify this
 * server from then on.  From now on, it might be the current one.
 */
void
snowflake_begin_call(GrantCall *call)
{
	KeptGrant  *grant;

	if (!pg_strong_random(call->new_token.data, UUID_LEN))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));

	get_reserve_lock();
	grant = get_kept();
	fill_call(call, grant);

	/* Without the oldest one, the server might get another worker ID. */
	if (grant->ntokens == SNOWFLAKE_MAX_TOKENS)
		memmove(&grant->tokens[0], &grant->tokens[1],
				--grant->ntokens * sizeof(pg_uuid_t));
	grant->tokens[grant->ntokens++] = call->new_token;
	put_kept(grant);
	snowflake_release_reserve_lock();
}

/*
 * Is the answer to a call still wanted?  If so, its token is the current one.
 * The reserve lock is held.
 */
static bool
confirm_call(const GrantCall *call, KeptGrant *grant)
{
	if (grant->ntokens == 0 ||
		memcmp(&grant->tokens[grant->ntokens - 1], &call->new_token,
			   UUID_LEN) != 0)
		return false;
	grant->tokens[0] = call->new_token;
	grant->ntokens = 1;
	return true;
}

/*
 * Install a grant: a worker ID for a range of ticks.  Returns false if the
 * server has dropped it meanwhile.
 */
bool
snowflake_install_grant(const GrantCall *call, int worker_id,
						int64 from, int64 until)
{
	Generator  *state = snowflake_state;
	KeptGrant  *grant = get_kept();
	bool		wanted;

	get_reserve_lock();
	wanted = confirm_call(call, grant);
	if (wanted)
	{
		grant->worker_id = worker_id;
		grant->from = from;
		grant->until = until;
		put_kept(grant);

		LWLockAcquire(state->lock, LW_EXCLUSIVE);
		use_up_word(from);
		cut_off(until);
		change_worker_id(worker_id, until);
		LWLockRelease(state->lock);
	}
	snowflake_release_reserve_lock();
	ConditionVariableBroadcast(&state->grant.changed);
	return wanted;
}

/*
 * Install a later end of the grant.  Returns false if the server has dropped
 * it meanwhile.
 */
bool
snowflake_extend_grant(const GrantCall *call, int64 until)
{
	KeptGrant  *grant = get_kept();
	bool		wanted;

	get_reserve_lock();
	wanted = confirm_call(call, grant);
	if (wanted)
	{
		grant->until = Max(grant->until, until);
		put_kept(grant);
		pg_atomic_write_u64(&snowflake_state->grant.until, grant->until);
	}
	snowflake_release_reserve_lock();
	ConditionVariableBroadcast(&snowflake_state->grant.changed);
	return wanted;
}

/*
 * Remove the grant.  Both locks are held.
 */
static void
clear_grant(void)
{
	clear_kept(get_kept());
	use_up_word(0);
	change_worker_id(-1, 0);
}

/*
 * Make no more IDs of the grant, and return the first tick without any, for
 * the call that returns the grant.  The mark has been read, so the word is above
 * all IDs.  If the mark was set in the meantime, the grant was dropped, and the
 * call has no worker ID.
 */
int64
snowflake_seal_grant(GrantCall *call)
{
	Generator  *state = snowflake_state;
	KeptGrant  *grant = get_kept();
	int64		next;
	int64		end;

	get_reserve_lock();
	Assert(pg_atomic_read_u64(&state->reserved) > 0);
	fill_call(call, grant);
	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	next = word_tick(&snowflake_layout, pg_atomic_read_u64(&state->word)) + 1;
	end = Max(Min(next, grant->until), grant->from);
	cut_off(next);
	state->pending_lsn = InvalidXLogRecPtr;
	clear_grant();
	LWLockRelease(state->lock);
	snowflake_release_reserve_lock();
	return end;
}

/*
 * Forget the tokens, which the registry refused, and so become a new server to
 * it.  The grant stays, but does not outlive a crash.
 */
void
snowflake_forget_tokens(void)
{
	get_reserve_lock();
	clear_kept(get_kept());
	snowflake_release_reserve_lock();
}

/*
 * Make no more IDs of the grant, and do not extend it: the mark is set to any
 * value, so it is not above the IDs that were made.  The reserve lock is held,
 * and nothing is reserved.
 */
void
snowflake_drop_grant(void)
{
	if (!snowflake_state->grant.registry)
		return;
	LWLockAcquire(snowflake_state->lock, LW_EXCLUSIVE);
	clear_grant();
	LWLockRelease(snowflake_state->lock);
}

/*
 * Wake the worker to call the registry now.
 */
void
snowflake_wake_grant_worker(void)
{
	Grant	   *grant = &snowflake_state->grant;
	Latch	   *latch;

	SpinLockAcquire(&grant->mutex);
	latch = grant->worker_latch;
	SpinLockRelease(&grant->mutex);
	if (latch != NULL)
		SetLatch(latch);
}

/*
 * Keep the error of a call of the registry, or NULL for none.  Returns true if
 * it differs from the one before.  What follows a semicolon is details, which
 * contain times.
 */
bool
snowflake_note_answer(const char *error)
{
	Grant	   *grant = &snowflake_state->grant;
	TimestampTz now = GetCurrentTimestamp();
	bool		changed;

	SpinLockAcquire(&grant->mutex);
	if (error == NULL)
	{
		changed = grant->error_since != 0;
		grant->contact = now;
		grant->error_since = 0;
		grant->error[0] = '\0';
	}
	else
	{
		changed = strncmp(grant->error, error, strcspn(error, ";")) != 0;
		if (grant->error_since == 0)
			grant->error_since = now;
		strlcpy(grant->error, error, SNOWFLAKE_REGISTRY_ERROR_SIZE);
	}
	SpinLockRelease(&grant->mutex);
	return changed;
}

snowflake_noreturn static void
fail_no_grant(void)
{
	Grant	   *grant = &snowflake_state->grant;
	char	   *error = palloc(SNOWFLAKE_REGISTRY_ERROR_SIZE);
	int			worker_id = grant->worker_id;
	int64		until = granted_until();
	TimestampTz since;

	SpinLockAcquire(&grant->mutex);
	strlcpy(error, grant->error, SNOWFLAKE_REGISTRY_ERROR_SIZE);
	since = grant->error_since;
	SpinLockRelease(&grant->mutex);

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 until == 0 ?
			 errmsg("no worker ID is granted to this server") :
			 errmsg("the grant of worker ID %d ended at %s", worker_id,
					timestamptz_to_str(tick_start(&snowflake_layout, until))),
			 since == 0 ?
			 errdetail("The registry did not answer within \"snowflake.grant_timeout\" (%d ms).",
					   snowflake_grant_timeout) :
			 errdetail("Calls to the registry have failed since %s: %s",
					   timestamptz_to_str(since), error),
			 errhint("Check \"snowflake.registry\", the registry, and the server log.")));
}

/*
 * Wait some time until a tick is granted, or fail if that takes too long.
 * since is when the call started to wait, or 0.
 */
void
snowflake_wait_for_grant(int64 next, int64 *since)
{
	static uint32 wait_event = 0;
	Generator  *state = snowflake_state;
	int64		start = snowflake_steady_clock();
	int64		left;

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeGrant");
	if (*since == 0)
	{
		*since = start;
		pg_atomic_fetch_add_u64(&state->grant_waits.waits, 1);
	}
	left = (int64) snowflake_grant_timeout - (start - *since) / 1000;
	if (left <= 0)
		fail_no_grant();

	snowflake_wake_grant_worker();
	ConditionVariablePrepareToSleep(&state->grant.changed);
	if (next >= granted_until())
		(void) ConditionVariableTimedSleep(&state->grant.changed,
										   Min(left, MAX_GRANT_NAP_MS),
										   wait_event);
	ConditionVariableCancelSleep();
	pg_atomic_fetch_add_u64(&state->grant_waits.wait_us,
							snowflake_steady_clock() - start);
}
