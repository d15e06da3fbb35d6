/*-------------------------------------------------------------------------
 *
 * numbers.c
 *	  Numbers of range sequences: claims, waits for a range, and floors.
 *
 * A claim adds the INCREMENT n to what is used of the current range, with one
 * atomic fetch-add, and gets the generation of that range with it.  It is
 * valid if the segment has that generation after its members were read (what
 * replaces them makes it invalid before), belongs to the same sequence with the
 * same INCREMENT, and has that many numbers up to its MAXVALUE.  The value is the last of the n
 * numbers, and n - 1 follow it in the range: some clients count down from the
 * value, others up.  So the first value is START + n - 1, and never START, of
 * which some clients (Hibernate's pooled optimizer) take all numbers to their
 * next value, between which another server has its own.
 *
 * If it is not valid, its numbers are lost, and it is made again, after the
 * reserve became the current range, or one has come from the registry.
 *
 * A sequence that was copied with its database is attached once the registry has what it
 * continues above; then others of this database need not say it again.
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

#include "access/xact.h"
#include "commands/dbcommands.h"
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
#include "shared/table_owner.h"

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
 * The name in UTF8, by which the registry knows it.
 */
static const char *
registry_name(const char *name)
{
	name = pg_server_to_any(name, strlen(name), PG_UTF8);
	if (strlen(name) >= SNOWFLAKE_RANGE_NAME_SIZE)
		snowflake_fail_long_name();
	return name;
}

/*
 * Was a sequence of this database, which was copied, the last one to use a slot?  A database
 * of the same name that was dropped is another one.
 */
static bool
is_attached(const RangeSlot *slot, Oid relid)
{
	return slot->attached_in == MyDatabaseId && slot->attached == relid;
}

bool
snowflake_is_slot_attached(const char *name, Oid relid)
{
	const char *database = get_database_name(MyDatabaseId);
	RangeSlot  *slot;
	bool		attached;

	if (!snowflake_ranges_enabled())
		return false;
	name = pg_server_to_any(name, strlen(name), PG_UTF8);
	snowflake_lock_ranges();
	slot = snowflake_look_up_slot(database, name);
	attached = slot != NULL && is_attached(slot, relid);
	snowflake_unlock_ranges();
	return attached;
}

/*
 * Ranges from before do not continue above what was copied, nor, if the database has
 * replaced another one, does what is granted right now.
 */
static void
drop_before_copy(RangeSlot *slot, Oid relid)
{
	if (is_attached(slot, relid))
		return;
	snowflake_drop_ranges(slot);
	if (slot->copied_in != MyDatabaseId)
		slot->version++;
	slot->copied_in = MyDatabaseId;
}

/*
 * Have a session know where the ranges of a sequence are, with its step, last value and
 * OID.  The caller has locked it.  It may have been copied from another database, the
 * source, or else an empty name, and continue above a floor, of which the registry is told:
 * nobody here takes numbers that are not above it.
 */
void
snowflake_attach_range(RangeHandle *handle, const char *name, const char *source, int64 floor)
{
	const char *database = get_database_name(MyDatabaseId);
	Oid			owner = snowflake_table_owner(handle->relid);
	RangeSlot  *slot;

	snowflake_check_ranges_enabled();
	name = registry_name(name);
	snowflake_lock_ranges();
	slot = snowflake_look_up_slot(database, name);
	if (slot == NULL)
		slot = snowflake_new_slot(database, name, owner, handle->last, handle->step);
	if (slot != NULL)
	{
		handle->slot = slot;
		slot->owner = owner;
		if (source[0] != '\0')
			drop_before_copy(slot, handle->relid);
		handle->version = slot->version;
		strlcpy(slot->source, source, sizeof(slot->source));
		if (floor >= 0)
			snowflake_want_floor(slot, floor);
	}
	snowflake_unlock_and_wake_ranges();
	if (slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many range sequences are used on this server"),
				 errhint("Increase \"snowflake.max_range_sequences\", which is %d.",
						 snowflake_max_range_sequences)));
}

/*
 * The registry has what a sequence that was copied continues above.
 */
void
snowflake_note_attached(const RangeHandle *handle)
{
	snowflake_lock_ranges();
	if (handle->slot->version == handle->version)
	{
		handle->slot->attached_in = MyDatabaseId;
		handle->slot->attached = handle->relid;
	}
	snowflake_unlock_ranges();
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
				  *number <= handle->last - (step - 1));
}

static void
begin_wait(RangeWait *wait, const RangeHandle *handle)
{
	wait->since = snowflake_steady_clock();
	wait->until = wait->since + INT64CONST(1000) * snowflake_grant_timeout;
	snowflake_lock_ranges();
	handle->slot->waited_until = Max(handle->slot->waited_until, wait->until);
	snowflake_unlock_ranges();
	ConditionVariablePrepareToSleep(&handle->slot->changed);
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

/*
 * Why there is no answer of the registry, or only that it is to be asked again.
 */
static const char *
no_answer(const RangeHandle *handle)
{
	RangeFailure failure;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
	RangeProblem kind = snowflake_get_problem(handle, 0, problem);

	snowflake_get_range_failure(&failure);
	if (IsUnderPostmaster && failure.since == 0 &&
		(kind == PROBLEM_BUSY || kind == PROBLEM_REPORT))
		return pstrdup(problem);
	return snowflake_no_answer("snowflake ranges", failure.worker_runs, failure.since,
							   failure.why);
}

/*
 * Fail because the registry did not grant a range in time.
 */
snowflake_noreturn static void
fail_no_range(const RangeHandle *handle)
{
	ConditionVariableCancelSleep();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("no number of sequence \"%s\" is granted to this server",
					get_rel_name(handle->relid)),
			 errdetail("%s", no_answer(handle)),
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
 * Does a problem end a wait for numbers?  A floor that the registry does not take is not
 * sent again, so there may be numbers; the others end by themselves.
 */
static bool
ends_wait(RangeProblem problem)
{
	return problem != PROBLEM_NONE && problem != PROBLEM_FLOOR &&
		problem != PROBLEM_BUSY && problem != PROBLEM_REPORT;
}

/*
 * Does it end a wait for an answer that has no numbers?
 */
static bool
ends_question(RangeProblem problem)
{
	return ends_wait(problem) && problem != PROBLEM_MAXIMUM && problem != PROBLEM_LAST &&
		problem != PROBLEM_UNKNOWN;
}

/*
 * Claim a number, or wait for one.
 */
static pg_noinline RangeNumber
wait_for_number(const RangeHandle *handle, int64 *number)
{
	RangeWait	wait;
	RangeProblem kind = PROBLEM_NONE;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
	RangeAdvance advance;

	begin_wait(&wait, handle);
	while ((advance = snowflake_advance(handle)) != RANGE_OTHER)
	{
		CHECK_FOR_INTERRUPTS();
		if (advance == RANGE_RETRY)
		{
			if (claim(handle, number))
				break;
			continue;
		}
		kind = advance == RANGE_EXHAUSTED ? PROBLEM_MAXIMUM :
			snowflake_get_problem(handle, wait.since - REFUSED_US, problem);
		if (kind == PROBLEM_UNKNOWN)
			break;
		if (ends_wait(kind))
			fail_refused(handle, kind, problem);
		if (!sleep_for_answer(&wait, handle))
			fail_no_range(handle);
	}
	ConditionVariableCancelSleep();
	if (advance == RANGE_OTHER)
		return RANGE_NUMBER_OTHER;
	return advance == RANGE_RETRY ? RANGE_NUMBER_TAKEN : RANGE_NUMBER_UNKNOWN;
}

/*
 * The next number of a sequence.
 */
RangeNumber
snowflake_next_number(const RangeHandle *handle, int64 *number)
{
	if (likely(claim(handle, number)))
		return RANGE_NUMBER_TAKEN;
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
	snowflake_lock_ranges();
	strlcpy(servers, handle->slot->waits_for, sizeof(servers));
	snowflake_unlock_ranges();
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
 * Have all servers give up the numbers that are not above a floor, and wait until they
 * have, or until the registry has the floor.  Returns false if what is known of the ranges
 * is of another sequence.
 */
bool
snowflake_settle_floor(const RangeHandle *handle, int64 floor, bool wait_for_others)
{
	RangeWait	wait;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
	FloorState	state;

	begin_wait(&wait, handle);
	while ((state = snowflake_ask_floor(handle, floor)) == FLOOR_ASKED ||
		   (state == FLOOR_TAKEN && wait_for_others))
	{
		RangeProblem kind;

		CHECK_FOR_INTERRUPTS();
		if (!sleep_for_answer(&wait, handle))
			fail_floor(handle, floor);
		kind = snowflake_get_problem(handle, wait.since, problem);
		if (kind == PROBLEM_FLOOR || ends_question(kind))
			fail_floor_refused(handle, floor, problem);
	}
	ConditionVariableCancelSleep();
	return state != FLOOR_OTHER;
}

/*
 * Fail because it is not known what the registry granted.
 */
snowflake_noreturn static void
fail_local(Oid relid, const char *detail)
{
	ConditionVariableCancelSleep();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("it is not known which numbers of sequence \"%s\" were granted",
					get_rel_name(relid)),
			 errdetail("%s", detail),
			 errhint("If the registry is gone for good, call snowflake_set_sequence_kind(), or for many snowflake_set_sequence_kinds(), with without_registry => true. Then it continues above its keys.")));
}

/*
 * Fail if this server has no registry to ask.
 */
void
snowflake_check_asked(Oid relid)
{
	if (!snowflake_ranges_enabled())
		fail_local(relid, "This server has no registry.");
}

/*
 * Find the greatest number of a sequence that the registry granted to any server.  It is 0
 * if the registry does not know the name.  Returns false if what is known of the ranges is
 * of another sequence.  What was asked for many sequences at the beginning of the
 * statement is not asked for again.
 */
bool
snowflake_find_granted(const RangeHandle *handle, int64 *granted)
{
	RangeWait	wait;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
	int64		lasted = GetCurrentTimestamp() - GetCurrentStatementStartTimestamp();
	int64		since;
	int64		next = 0;
	FloorState	state;

	/* By the steady clock: the other one may have been set. */
	since = snowflake_steady_clock() - Max(lasted, 0);
	begin_wait(&wait, handle);
	while ((state = snowflake_ask_next(handle, since, &next)) == FLOOR_ASKED)
	{
		CHECK_FOR_INTERRUPTS();
		if (!sleep_for_answer(&wait, handle))
			fail_local(handle->relid, no_answer(handle));
		if (ends_question(snowflake_get_problem(handle, wait.since, problem)))
			fail_local(handle->relid, problem);
	}
	ConditionVariableCancelSleep();
	*granted = Max(next - 1, 0);
	return state != FLOOR_OTHER;
}
