/*-------------------------------------------------------------------------
 *
 * numbers.c
 *	  Numbers of range sequences: claims, waits for a range, and floors.
 *
 * A claim adds the INCREMENT n to what is used of the current range, with one
 * atomic fetch-add, and gets the generation of that range with it.  It is
 * valid if the segment has that generation after its members were read (what
 * replaces them makes it invalid before), belongs to the same sequence with the
 * same INCREMENT, and has that many numbers.  The value is the last of the n
 * numbers, and n - 1 follow it in the range: some clients count down from the
 * value, others up.  So the first value is START + n - 1, and never START, of
 * which some clients (Hibernate's pooled optimizer) take all numbers to their
 * next value, between which another server has its own.
 *
 * If it is not valid, its numbers are lost, and it is made again, after the
 * reserve became the current range, or one has come from the registry.
 *
 * The caller has locked the sequence as nextval() does, so that it is neither
 * altered nor dropped meanwhile.  What it knows of the slot may be from before
 * another session did that; the slot's version says so.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/numbers.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "base/wait_event.h"
#include "generator/grant.h"
#include "generator/loaded.h"
#include "generator/settings.h"
#include "ranges/needs.h"
#include "ranges/numbers.h"
#include "shared/clock.h"
#include "shared/compat.h"

/* How long the registry's refusal answers further calls, too. */
#define REFUSED_US		USECS_PER_SEC

/* The longest sleep before a waiter checks again. */
#define MAX_RANGE_SLEEP_MS	1000

/* A wait for the registry. */
typedef struct RangeWait
{
	int64		since;			/* by the steady clock */
	int64		until;
	ErrorContextCallback context;
} RangeWait;

/*
 * Fail if this server has no registry, as one that did not preload the library.
 */
void
snowflake_check_ranges_enabled(void)
{
	if (snowflake_ranges_enabled())
		return;
	snowflake_check_loaded();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("range sequences require a registry"),
			 errhint("Set \"snowflake.registry\" and restart the server.")));
}

void
snowflake_fail_long_name(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_NAME_TOO_LONG),
			 errmsg("name of a range sequence is too long"),
			 errdetail("It can have %d bytes, in UTF8.", SNOWFLAKE_RANGE_NAME_SIZE - 1)));
}

/*
 * Have a session know where the ranges of a sequence are.  The registry knows
 * it by its name in UTF8.
 */
void
snowflake_attach_range(RangeHandle *handle, const char *name)
{
	snowflake_check_ranges_enabled();
	name = pg_server_to_any(name, strlen(name), PG_UTF8);
	if (strlen(name) >= SNOWFLAKE_RANGE_NAME_SIZE)
		snowflake_fail_long_name();
	snowflake_find_slot(handle, name, "", -1);
}

/*
 * Claim a number of the current range.
 */
static inline bool
claim(const RangeHandle *handle, int64 *number)
{
	RangeSlot  *slot = handle->slot;
	int64		step = handle->step;
	uint64		word = pg_atomic_fetch_add_u64(&slot->word, step);
	uint64		generation = range_generation(word);
	RangeSegment *segment = &slot->segments[generation & 1];
	bool		ours;
	int64		first;
	int64		count;

	first = segment->first;
	count = segment->count;
	ours = segment->step == step && segment->version == handle->version;
	pg_read_barrier();
	if (unlikely(pg_atomic_read_u64(&segment->generation) != generation))
		return false;
	*number = first + range_used(word) + step - 1;
	return likely(ours && range_has(count, range_used(word), step) &&
				  *number <= handle->last - step + 1);
}

static void
begin_wait(RangeWait *wait, const RangeHandle *handle)
{
	wait->since = snowflake_steady_clock();
	wait->until = wait->since + INT64CONST(1000) * snowflake_grant_timeout;
	snowflake_expect_answer(handle, wait->until);
}

/*
 * Sleep until something has changed, or for some time.  The caller is prepared
 * to sleep.  Returns false if it has waited for too long.
 */
static bool
sleep_for_answer(RangeWait *wait, const RangeHandle *handle)
{
	int64		left = (wait->until - snowflake_steady_clock()) / 1000;

	if (left <= 0 || !IsUnderPostmaster)
		return false;
	snowflake_push_wait_context(&wait->context, SNOWFLAKE_EVENT_RANGE);
	(void) ConditionVariableTimedSleep(&handle->slot->changed,
									   Min(left, MAX_RANGE_SLEEP_MS),
									   snowflake_wait_event(SNOWFLAKE_EVENT_RANGE));
	error_context_stack = wait->context.previous;
	return true;
}

static int
errdetail_no_answer(const RangeFailure *failure)
{
	if (!IsUnderPostmaster)
		return errdetail("In single-user mode, no background worker calls the registry.");
	if (failure->since != 0)
		return errdetail("Calls to the registry have failed since %s: %s",
						 timestamptz_to_str(failure->since),
						 snowflake_may_see_registry_error() ? failure->why : "See the server log.");
	if (!failure->worker_runs)
		return errdetail("The background worker \"snowflake ranges\", which calls the registry, is not running.");
	return errdetail("The registry did not answer within \"snowflake.grant_timeout\" (%d ms).",
					 snowflake_grant_timeout);
}

/*
 * Fail because the registry did not grant a range in time.
 */
snowflake_noreturn static void
fail_no_range(const RangeHandle *handle)
{
	RangeFailure failure;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
	bool		is_busy;

	ConditionVariableCancelSleep();
	snowflake_get_range_failure(&failure);
	is_busy = failure.since == 0 &&
		snowflake_get_problem(handle, 0, problem) == PROBLEM_BUSY;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("no number of sequence \"%s\" is granted to this server",
					get_rel_name(handle->relid)),
			 is_busy ? errdetail("%s", problem) : errdetail_no_answer(&failure),
			 errhint("Check \"snowflake.registry\", the registry, and the server log.")));
}

/*
 * Fail because the registry said why it grants none.
 */
snowflake_noreturn static void
fail_refused(const RangeHandle *handle, RangeProblem kind, const char *problem)
{
	char	   *name = get_rel_name(handle->relid);

	ConditionVariableCancelSleep();
	if (kind == PROBLEM_MAXIMUM)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("nextval: reached maximum value of sequence \"%s\" (" INT64_FORMAT ")",
						name, handle->last)));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the registry refuses numbers of sequence \"%s\"", name),
			 errdetail("%s", problem)));
}

/*
 * Claim a number, or wait for one.  Returns false if the slot belongs to
 * another name.
 */
static pg_noinline bool
wait_for_number(const RangeHandle *handle, int64 *number)
{
	RangeWait	wait;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
	RangeProblem kind;
	RangeAdvance advance;

	begin_wait(&wait, handle);
	if (handle->first > 0)
		(void) snowflake_ask_floor(handle, handle->first - 1);
	ConditionVariablePrepareToSleep(&handle->slot->changed);
	while ((advance = snowflake_advance(handle)) != RANGE_OTHER)
	{
		CHECK_FOR_INTERRUPTS();
		if (advance == RANGE_RETRY && claim(handle, number))
			break;
		if (advance == RANGE_EXHAUSTED)
			fail_refused(handle, PROBLEM_MAXIMUM, "");
		if (advance == RANGE_WAIT)
		{
			kind = snowflake_get_problem(handle, wait.since - REFUSED_US, problem);
			if (kind != PROBLEM_NONE && kind != PROBLEM_FLOOR && kind != PROBLEM_BUSY)
				fail_refused(handle, kind, problem);
			if (!sleep_for_answer(&wait, handle))
				fail_no_range(handle);
		}
	}
	ConditionVariableCancelSleep();
	return advance != RANGE_OTHER;
}

/*
 * The next number of a sequence.  Returns false if what is known of its ranges
 * is of another one.
 */
bool
snowflake_next_number(const RangeHandle *handle, int64 *number)
{
	if (likely(claim(handle, number)))
		return true;
	return wait_for_number(handle, number);
}

/*
 * Fail because other servers may still give out numbers that are not above a
 * floor.
 */
snowflake_noreturn static void
fail_floor(const RangeHandle *handle, int64 floor)
{
	char		servers[SNOWFLAKE_RANGE_TEXT_SIZE];

	ConditionVariableCancelSleep();
	snowflake_get_waits_for(handle, servers);
	if (servers[0] == '\0')
		fail_no_range(handle);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("other servers can still return numbers up to " INT64_FORMAT " of sequence \"%s\"",
					floor, get_rel_name(handle->relid)),
			 errdetail("These servers did not answer within \"snowflake.grant_timeout\" (%d ms): %s.",
					   snowflake_grant_timeout, servers),
			 errhint("Start them. For a server whose machine was started again, also this one, try again after a minute. If one will never run again, or is a standby now, call snowflake_registry.free_ranges() on the registry.")));
}

/*
 * Fail because the registry does not take a floor.
 */
snowflake_noreturn static void
fail_floor_refused(const RangeHandle *handle, int64 floor, const char *problem)
{
	ConditionVariableCancelSleep();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the registry refuses to continue sequence \"%s\" above " INT64_FORMAT,
					get_rel_name(handle->relid), floor),
			 errdetail("%s", problem)));
}

/*
 * Have all servers give up the numbers that are not above a floor, and wait
 * until they have.  Returns false if what is known of the ranges is of another
 * sequence.
 */
bool
snowflake_settle_floor(const RangeHandle *handle, int64 floor)
{
	RangeWait	wait;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
	RangeProblem kind;
	FloorState	state;

	begin_wait(&wait, handle);
	ConditionVariablePrepareToSleep(&handle->slot->changed);
	while ((state = snowflake_ask_floor(handle, floor)) == FLOOR_ASKED || state == FLOOR_TAKEN)
	{
		CHECK_FOR_INTERRUPTS();
		if (!sleep_for_answer(&wait, handle))
			fail_floor(handle, floor);
		kind = snowflake_get_problem(handle, wait.since, problem);
		if (kind != PROBLEM_NONE && kind != PROBLEM_BUSY &&
			!snowflake_is_exhausted_there(kind))
			fail_floor_refused(handle, floor, problem);
	}
	ConditionVariableCancelSleep();
	return state == FLOOR_SETTLED;
}
