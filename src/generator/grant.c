/*-------------------------------------------------------------------------
 *
 * grant.c
 *	  The grant: the worker ID that this server generates IDs with, up to a tick.
 *
 * Without a registry, that is the worker ID of the settings, forever.  With
 * one (snowflake.registry), it is a grant: a worker ID W and a range of ticks.
 * The ranges that a registry grants for the same W never overlap, and a server
 * generates IDs only in its own range.  So no clock, pause, or partition can make
 * two servers generate the same ID.  A server that was suspended for an hour still
 * has its old range, which no other server was or will be granted, and nothing
 * beyond it.
 *
 * The end.  The word moves only to ticks that are reserved (reserve.c), and
 * reserved ticks never go past the end of the grant.  So the move has only one
 * thing to check, and a server without a grant has not raised its mark.
 *
 * The change.  A new grant mostly has another W.  It is installed with both
 * locks held, in this order: the word is set to the end of a tick, so that
 * nothing can be claimed from it; then the worker bits are stored; then the
 * grant's generation is raised.  To generate an ID, a backend reads the
 * generation and the worker bits, claims, and reads the generation again; if
 * it has changed, the claim is dropped and the call starts again.  So no ID
 * has the old W in a tick of the new grant: such a tick is entered after the
 * generation was raised, which every claim from it sees.  Nor does one have
 * the new W in an old tick: for those who read the new worker bits, the word
 * is exhausted.  Numbers for waiters become IDs under the lock.
 *
 * The tokens.  The registry identifies the holder of a grant by a token, a
 * random value that each call replaces with a new one.  It is only in memory:
 * a server that is started or promoted, or is a copy of a disk, has none, and
 * gets a W of its own.  A machine restored from a snapshot of its memory, or
 * running twice, has one that was replaced since then, and is refused.  A call
 * passes all tokens that might be the current one: the last that was
 * confirmed, and those sent since then whose answers were lost.
 *
 * Which calls have a token?  The registry stores the token in the transaction
 * of the call, so it can be the current one only if that was committed:
 *
 * - A call that was never sent has no token.  It is drawn when the connection
 *	 is ready, right before the query is sent.
 * - If the registry answers with an ERROR, the transaction was rolled back,
 *	 and the token is removed.  The end of the connection, even with a FATAL
 *	 error, does not say that.
 * - If there is no answer (it was lost, or the commit waits for a standby), the
 *	 call might have been committed, or might be later.  The token remains until
 *	 a later call is confirmed.
 *
 * A call that is sent again, to the same or to another host, has a token of
 * its own.  If two machines resume from the same snapshot, the first that
 * calls takes W from the other; with the same token, both would be answered.
 * And of two calls that arrive in the wrong order, the late one has no current
 * token, so it extends nothing.
 *
 * There is room for a limited number of tokens.  If it is exhausted, the oldest
 * one that was not confirmed is dropped, never the confirmed one.  So the
 * server loses W only if a call was committed, its answer was lost, and the 15
 * calls after it were neither committed nor refused.  Even then it merely gets
 * another W: a token only proves who holds a grant.
 *
 * When a backend crashes, the postmaster reinitializes shared memory, but it
 * is still the same server.  So its knowledge of the grant is kept in separate
 * memory, which its children share: the worker ID, where its ticks begin, and
 * where they end.  The mark does not say where they begin: it is below the
 * first tick until the first ID is generated.  When the mark is lowered by
 * snowflake_set_mark(), the server drops its grant for good: IDs that it generated
 * may now be above the mark.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/grant.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "base/wait_event.h"
#include "generator/grant.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "shared/clock.h"
#include "shared/compat.h"

/* The longest sleep before a waiter checks again. */
#define MAX_GRANT_SLEEP_MS	1000

/* What is shown in place of an error. */
#define HIDDEN_ERROR	"See the server log."

/*
 * The part of a grant that is kept when a backend crashes and other shared
 * memory is reinitialized.  Protected by the reserve lock.
 */
typedef struct KeptGrant
{
	int			worker_id;		/* -1: none is granted */
	int64		from;			/* the first tick granted */
	int64		until;			/* and the first one that is not */

	/* The last token that was confirmed, and those sent since. */
	int			ntokens;
	pg_uuid_t	tokens[SNOWFLAKE_MAX_TOKENS];
	pg_crc32c	crc;
} KeptGrant;

/* What is known of the grant beside the generator's state. */
typedef struct GrantState
{
	ConditionVariable changed;	/* the grant was changed */

	/* Protected by the mutex. */
	slock_t		mutex;
	Latch	   *worker_latch;	/* or NULL */
	bool		call_wanted;	/* should the worker call now? */
	bool		calling;		/* is it doing so? */
	bool		connecting;		/* is the worker, or did it fail to? */
	SnowflakeRegistryStatus status;

	KeptGrant	unkept;			/* if it cannot be kept */
} GrantState;

static GrantState *shared = NULL;

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
	return kept != NULL ? kept : &shared->unkept;
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

void
snowflake_request_grant(void)
{
	RequestAddinShmemSpace(sizeof(GrantState));
}

/*
 * Attach to the state of the grant.  If the generator's state is new, use the
 * grant that was kept.
 */
void
snowflake_attach_grant(bool is_new)
{
	KeptGrant  *last;
	bool		found;

	shared = ShmemInitStruct("snowflake grant", sizeof(GrantState), &found);
	if (!found)
	{
		MemSet(shared, 0, sizeof(GrantState));
		ConditionVariableInit(&shared->changed);
		SpinLockInit(&shared->mutex);
	}
	if (!is_new || !snowflake_state->grant.registry)
		return;

	/* Nothing is kept at the first start, or if a crash destroyed it. */
	last = get_kept();
	if (kept_crc(last) != last->crc || last->ntokens == 0)
		clear_kept(last);
	if (last->worker_id >= 0)
		snowflake_init_worker_id(last->worker_id, last->from, last->until);
}

/*
 * Draw a token.  Two machines resumed from one memory snapshot could draw the
 * same from the same state of the random number generator, but not at the same
 * time.
 */
void
snowflake_draw_token(pg_uuid_t *token)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!pg_strong_random(token->data, UUID_LEN))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (size_t i = 0; i < sizeof(now); i++)
		token->data[i] ^= (unsigned char) ((uint64) now >> (8 * i));
}

/*
 * What to tell the registry about this server: its worker ID, or -1, and the
 * tokens that may identify it.
 */
static void
fill_call(SnowflakeGrantCall *call, const KeptGrant *grant)
{
	call->worker_id = grant->worker_id;
	call->ntokens = grant->ntokens;
	memcpy(call->tokens, grant->tokens, sizeof(call->tokens));
}

/*
 * Prepare a call of the registry, right before it is sent: draw the token that
 * will identify this server from then on.  From now on, it might be the
 * current one.
 */
void
snowflake_begin_call(SnowflakeGrantCall *call)
{
	KeptGrant  *grant;

	snowflake_draw_token(&call->new_token);

	snowflake_lock_reserve();
	grant = get_kept();
	fill_call(call, grant);

	/* With a worker ID, the first token is the confirmed one. */
	if (grant->ntokens == SNOWFLAKE_MAX_TOKENS)
	{
		int			oldest = grant->worker_id >= 0 ? 1 : 0;

		grant->ntokens--;
		memmove(&grant->tokens[oldest], &grant->tokens[oldest + 1],
				(grant->ntokens - oldest) * sizeof(pg_uuid_t));
	}
	grant->tokens[grant->ntokens++] = call->new_token;
	put_kept(grant);
	snowflake_unlock_reserve();
}

/*
 * Is this the last call?  Not if the server has dropped its grant meanwhile.
 */
static bool
is_last_call(const SnowflakeGrantCall *call, const KeptGrant *grant)
{
	return grant->ntokens > 0 &&
		memcmp(&grant->tokens[grant->ntokens - 1], &call->new_token,
			   UUID_LEN) == 0;
}

/*
 * The registry refused a call and rolled it back: its token is not the current
 * one.
 */
void
snowflake_cancel_call(const SnowflakeGrantCall *call)
{
	KeptGrant  *grant = get_kept();

	snowflake_lock_reserve();
	if (is_last_call(call, grant))
	{
		grant->ntokens--;
		put_kept(grant);
	}
	snowflake_unlock_reserve();
}

/*
 * Is the answer to a call still wanted?  If so, its token is the current one.
 * The reserve lock is held.
 */
static bool
confirm_call(const SnowflakeGrantCall *call, KeptGrant *grant)
{
	if (!is_last_call(call, grant))
		return false;
	grant->tokens[0] = call->new_token;
	grant->ntokens = 1;
	return true;
}

/*
 * Exhaust the word, so that nothing can be claimed before it moves to the
 * given tick or a later one.  Both locks are held.
 *
 * The current time by the word and the steady clock remains the same.  If no
 * ID was generated since the start, the tick becomes the first one: the
 * registry has checked the clock.
 */
static void
exhaust_below(int64 from)
{
	SnowflakeGenerator *state = snowflake_state;
	const SnowflakeLayout *layout = &snowflake_layout;
	int64		tick = snowflake_word_tick(layout, pg_atomic_read_u64(&state->word));
	int64		last = Max(tick, from - 1);
	int64		entered = (int64) pg_atomic_read_u64(&state->entered);

	if (tick >= state->first_tick)
		entered += (last - tick) * layout->tick_us;
	else if (from > state->first_tick)
	{
		state->first_tick = from;
		entered = snowflake_steady_clock() - layout->tick_us;
	}
	snowflake_exhaust_word(last, entered);
}

/*
 * Install a grant: a worker ID for a range of ticks.  Returns false if the
 * server has dropped it meanwhile.
 */
bool
snowflake_install_grant(const SnowflakeGrantCall *call, int worker_id,
						int64 from, int64 until)
{
	SnowflakeGenerator *state = snowflake_state;
	KeptGrant  *grant = get_kept();
	bool		wanted;

	snowflake_lock_reserve();
	wanted = confirm_call(call, grant);
	if (wanted)
	{
		grant->worker_id = worker_id;
		grant->from = from;
		grant->until = until;
		put_kept(grant);

		LWLockAcquire(state->lock, LW_EXCLUSIVE);
		exhaust_below(from);
		snowflake_limit_reserve(until);
		snowflake_change_worker_id(worker_id, from, until);
		LWLockRelease(state->lock);
	}
	snowflake_unlock_reserve();
	ConditionVariableBroadcast(&shared->changed);
	return wanted;
}

/*
 * Install a later end of the grant.  Returns false if the server has dropped
 * it meanwhile.
 */
bool
snowflake_extend_grant(const SnowflakeGrantCall *call, int64 until)
{
	KeptGrant  *grant = get_kept();
	bool		wanted;

	snowflake_lock_reserve();
	wanted = confirm_call(call, grant);
	if (wanted)
	{
		grant->until = Max(grant->until, until);
		put_kept(grant);
		pg_atomic_write_u64(&snowflake_state->grant.until, grant->until);
	}
	snowflake_unlock_reserve();
	ConditionVariableBroadcast(&shared->changed);
	return wanted;
}

/*
 * Remove the grant.  Both locks are held.
 */
static void
clear_grant(void)
{
	clear_kept(get_kept());
	exhaust_below(0);
	snowflake_change_worker_id(-1, 0, 0);
}

/*
 * Generate no more IDs of the grant, and return the first tick without any, for
 * the call that returns the grant.  The mark has been read, so the word is above
 * all IDs.  If the mark was set in the meantime, the grant was dropped, and the
 * call has no worker ID.
 */
int64
snowflake_seal_grant(SnowflakeGrantCall *call)
{
	SnowflakeGenerator *state = snowflake_state;
	KeptGrant  *grant = get_kept();
	int64		next;
	int64		end;

	snowflake_lock_reserve();
	Assert(pg_atomic_read_u64(&state->reserved) > 0);
	fill_call(call, grant);
	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	next = snowflake_word_tick(&snowflake_layout, pg_atomic_read_u64(&state->word)) + 1;
	end = Max(Min(next, grant->until), grant->from);
	snowflake_limit_reserve(next);
	clear_grant();
	LWLockRelease(state->lock);
	snowflake_unlock_reserve();
	return end;
}

/*
 * Forget the tokens, which the registry refused, and so become a new server to
 * it.  The grant stays, but does not outlive a crash.
 */
void
snowflake_forget_tokens(void)
{
	snowflake_lock_reserve();
	clear_kept(get_kept());
	snowflake_unlock_reserve();
}

/*
 * Generate no more IDs of the grant, and do not extend it: the mark is set to any
 * value, so it is not above the IDs that were generated.  The reserve lock is held,
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
 * Set the latch by which the worker is woken, or NULL.
 */
void
snowflake_set_worker_latch(Latch *latch)
{
	SpinLockAcquire(&shared->mutex);
	shared->worker_latch = latch;
	SpinLockRelease(&shared->mutex);
}

/*
 * Wake the worker to call the registry now.
 */
void
snowflake_wake_grant_worker(void)
{
	Latch	   *latch;

	SpinLockAcquire(&shared->mutex);
	shared->call_wanted = true;
	latch = shared->worker_latch;
	SpinLockRelease(&shared->mutex);
	if (latch != NULL)
		SetLatch(latch);
}

/*
 * Should the worker call the registry now?  True once after it was woken.
 */
bool
snowflake_call_is_wanted(void)
{
	bool		wanted;

	SpinLockAcquire(&shared->mutex);
	wanted = shared->call_wanted;
	shared->call_wanted = false;
	SpinLockRelease(&shared->mutex);
	return wanted;
}

/*
 * Note whether the worker calls the registry.
 */
void
snowflake_note_calling(bool calling)
{
	SpinLockAcquire(&shared->mutex);
	shared->calling = calling;
	SpinLockRelease(&shared->mutex);
}

/*
 * Note whether the worker is connecting to a database; returns what was noted
 * before.  A worker that fails to connect leaves true behind.
 */
bool
snowflake_note_connecting(bool connecting)
{
	bool		before;

	SpinLockAcquire(&shared->mutex);
	before = shared->connecting;
	shared->connecting = connecting;
	SpinLockRelease(&shared->mutex);
	return before;
}

/*
 * The worker ID that the registry knows this server by, or -1.
 */
int
snowflake_held_worker_id(void)
{
	int			worker_id;

	snowflake_lock_reserve();
	worker_id = get_kept()->worker_id;
	snowflake_unlock_reserve();
	return worker_id;
}

/*
 * Do two errors differ in more than numbers, such as times?
 */
bool
snowflake_errors_differ(const char *one, const char *other)
{
	const char *digits = "0123456789";

	while (*one != '\0' && *other != '\0')
	{
		size_t		one_number = strspn(one, digits);
		size_t		other_number = strspn(other, digits);

		if (one_number > 0 && other_number > 0)
		{
			one += one_number;
			other += other_number;
		}
		else if (*one++ != *other++)
			return true;
	}
	return *one != *other;
}

/*
 * Keep the error of a call of the registry, or NULL for none.  Returns true if
 * it is another one than that before.
 */
bool
snowflake_note_answer(const char *error)
{
	SnowflakeRegistryStatus *status = &shared->status;
	TimestampTz now = GetCurrentTimestamp();
	bool		changed;

	SpinLockAcquire(&shared->mutex);
	if (error == NULL)
	{
		changed = status->error_since != 0;
		status->contact = now;
		status->error_since = 0;
		status->error[0] = '\0';
	}
	else
	{
		changed = snowflake_errors_differ(status->error, error);
		if (status->error_since == 0)
			status->error_since = now;
		strlcpy(status->error, error, sizeof(status->error));
	}
	SpinLockRelease(&shared->mutex);
	return changed;
}

/*
 * An error can contain parts of snowflake.registry, so it is not for everybody,
 * like that setting.
 */
static bool
may_see_error(Oid role)
{
	return has_privs_of_role(role, ROLE_PG_MONITOR) ||
		has_privs_of_role(role, ROLE_PG_READ_ALL_SETTINGS);
}

/*
 * May who is connected see it?  An error goes to the client.  A SECURITY
 * DEFINER function, in a trigger for example, is not meant to show anything of
 * its owner.
 */
static bool
may_see_registry_error(void)
{
	return may_see_error(GetOuterUserId());
}

/*
 * The results of the last calls of the registry, for the current user.  As with
 * pg_stat_activity, a SECURITY DEFINER function can show others what its owner
 * may see, and a view cannot.
 */
void
snowflake_get_registry_status(SnowflakeRegistryStatus *status)
{
	SpinLockAcquire(&shared->mutex);
	*status = shared->status;
	status->worker_runs = shared->worker_latch != NULL;
	status->worker_responds = shared->calling || !shared->call_wanted;
	SpinLockRelease(&shared->mutex);
	if (!may_see_error(GetUserId()))
		strlcpy(status->error, HIDDEN_ERROR, sizeof(status->error));
}

/*
 * Why a worker has no answer of the registry: its calls have failed since then, if that is
 * not 0.
 */
const char *
snowflake_no_answer(const char *worker, bool runs, TimestampTz failed_since, const char *error)
{
	if (!IsUnderPostmaster)
		return "In single-user mode, no background worker calls the registry.";
	if (failed_since != 0)
		return psprintf("Calls to the registry have failed since %s: %s",
						timestamptz_to_str(failed_since),
						may_see_registry_error() ? error : HIDDEN_ERROR);
	if (!runs)
		return psprintf("The background worker \"%s\", which calls the registry, is not running.",
						worker);
	return psprintf("The registry did not answer within \"snowflake.grant_timeout\" (%d ms).",
					snowflake_grant_timeout);
}

/*
 * Fail because no tick is granted.  The worker is woken nevertheless, so that a
 * later call succeeds; but what it did not do before does not count.
 */
snowflake_noreturn static void
fail_no_grant(void)
{
	SnowflakeRegistryStatus status;
	int			worker_id = snowflake_state->grant.worker_id;
	int64		until = snowflake_granted_until();
	bool		hangs;

	snowflake_get_registry_status(&status);
	hangs = IsUnderPostmaster && status.worker_runs && !status.worker_responds &&
		status.error_since == 0;
	snowflake_wake_grant_worker();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 until == 0 ?
			 errmsg("no worker ID is granted to this server") :
			 errmsg("the grant of worker ID %d ended at %s", worker_id,
					timestamptz_to_str(snowflake_tick_start(&snowflake_layout, until))),
			 hangs ?
			 errdetail("The background worker \"snowflake grant\", which calls the registry, does not respond.") :
			 errdetail_internal("%s", snowflake_no_answer("snowflake grant", status.worker_runs,
														  status.error_since, status.error)),
			 !IsUnderPostmaster ?
			 errhint("Start the server normally.") :
			 hangs ?
			 errhint("Terminate it: SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'snowflake grant'. It is started again after a second.") :
			 errhint("Check \"snowflake.registry\", the registry, and the server log.")));
}

/*
 * Wait some time until a tick is granted, or fail if that takes too long.
 * since is when the call started to wait, or 0.
 */
void
snowflake_wait_for_grant(int64 next, int64 *since)
{
	int64		start = snowflake_steady_clock();
	int64		left;
	ErrorContextCallback context;

	if (*since == 0)
	{
		*since = start;
		snowflake_count(SNOWFLAKE_GRANT_WAITS, 1);
	}
	left = (int64) snowflake_grant_timeout - (start - *since) / 1000;
	if (left <= 0 || !IsUnderPostmaster)
		fail_no_grant();

	snowflake_wake_grant_worker();
	snowflake_push_wait_context(&context, SNOWFLAKE_EVENT_GRANT);
	ConditionVariablePrepareToSleep(&shared->changed);
	if (next >= snowflake_granted_until())
		(void) ConditionVariableTimedSleep(&shared->changed,
										   Min(left, MAX_GRANT_SLEEP_MS),
										   snowflake_wait_event(SNOWFLAKE_EVENT_GRANT));
	ConditionVariableCancelSleep();
	error_context_stack = context.previous;
	snowflake_count(SNOWFLAKE_GRANT_WAIT_US, snowflake_steady_clock() - start);
}
