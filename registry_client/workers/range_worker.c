/*-------------------------------------------------------------------------
 *
 * range_worker.c
 *	  The background worker that gets ranges of sequences from the registry.
 *
 * It is apart from the worker that gets grants, so that neither waits for the
 * other's calls.  Like that, it starts at the end of recovery, calls with no
 * lock held, and tries the hosts of the registry in turn (client.c), or calls a
 * database of this server (local_call.c).
 *
 * One call is made at a time.  It has all sequences that need something, up to
 * a limit; those that come meanwhile are in the next one.  If a call fails, the
 * next one is made after a pause.  If it fails because of a value, fewer sequences are
 * in the next call, until it is known which of them has it, so that the others do not
 * suffer.
 *
 * The connection is kept, because calls follow one another: while the registry
 * may wait for this server, as it was granted ranges, it has to hear of floors that
 * other servers set.  So every two seconds it reads a number, which costs the registry
 * little, and changes with them.  It asks for them over a new connection, when that
 * number has changed, and every 20 seconds:
 *
 * - The number changes before the commit of a floor.  Who reads it in between asks
 *	 too early.  But who set the floor calls again until all have heard it, and each
 *	 of these calls changes the number.
 * - After a crash or a failover of the registry, the number may be any; but the
 *	 connection is another one.
 * - Whatever goes wrong with it, a floor waits for 20 seconds, and is never passed.
 *	 As often, the registry notes that this server runs.
 *
 * The connection is made anew now and then, as the registry may be elsewhere, or
 * somebody else's, by now.
 *
 * The receipt.  Each answer with ranges has one, and each call has the last one, which
 * proves whether the registry lost something since then; so after each new connection,
 * one is made.  It is durable before the answer is confirmed (chain.c), and that is
 * confirmed before anything of it is used.  If the registry says that it needs to know
 * what this server was granted, the worker finds that out and reports it (range_report.c).
 *
 * A new life of the server has no numbers.  So that it can do without the registry soon,
 * it first asks for the names of which the one before was granted numbers, those used
 * last first, and then for numbers of as many as there are slots.
 *
 * Soon after its start, and every hour, it also asks for names of which others were
 * granted numbers: elsewhere.c says what for.
 *
 * The end.  At a shutdown of the server, all ranges are given up and returned.
 * If that fails, setval() of other servers waits in vain until the ranges are
 * freed.  If this process alone ends, the next one continues the chain.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include "generator/durable.h"
#include "generator/grant.h"
#include "generator/settings.h"
#include "ranges/elsewhere.h"
#include "registry_client/workers/range_report.h"
#include "registry_client/workers/range_request.h"
#include "shared/clock.h"
#include "shared/compat.h"

PGDLLEXPORT void snowflake_ranges_main(Datum main_arg);

/* How soon to call again after a failure. */
#define PAUSE_US			INT64CONST(500000)

/*
 * How often to ask whether there are floors: usually, and for a while after there
 * were some, because then sequences often follow one another; and how often to ask
 * for floors in any case.
 */
#define CHANGES_US			INT64CONST(2000000)
#define MORE_CHANGES_US		INT64CONST(500000)
#define WHILE_CHANGES_US	INT64CONST(10000000)
#define FLOORS_US			INT64CONST(20000000)

/* How soon after the start, and how often, to ask for names of other servers. */
#define FIRST_ELSEWHERE_US	INT64CONST(10000000)
#define ELSEWHERE_US		INT64CONST(3600000000)
#define ELSEWHERE_RETRY_US	INT64CONST(60000000)

/* How often to look for what is due by its time, and how long after the last call. */
#define LOOK_US				INT64CONST(200000)
#define WHILE_LOOK_US		INT64CONST(60000000)

/* When a connection is closed. */
#define MAX_AGE_US			INT64CONST(600000000)

/* When calls are made. */
typedef struct Pacing
{
	int64		called;			/* when the last one was, by the steady clock */
	int64		not_before;		/* when the next one can be */
	int64		changes_due;	/* when it is asked whether there are floors */
	int64		floors_due;		/* when they are asked for in any case */
	int64		elsewhere_due;	/* when names of other servers are */
	int64		changes;		/* the last answer to that */
	int64		changed;		/* when it was another one than before */
	bool		is_due;			/* one, whether or not a sequence needs
								 * something */
	int			most;			/* the most sequences of a call */
} Pacing;

/*
 * Can the registry need this server, which was granted numbers of it, or of another one?
 */
static bool
is_known_there(void)
{
	return snowflake_has_client() || snowflake_receipt_read() != 0;
}

/*
 * A call for ranges has succeeded, or failed with this error.
 */
static void
log_range_call(StringInfo error)
{
	static char last[SNOWFLAKE_REGISTRY_ERROR_SIZE] = "";
	const char *now = error != NULL ? error->data : "";
	bool		is_other = snowflake_errors_differ(last, now);

	strlcpy(last, now, sizeof(last));
	if (!is_other)
		return;
	if (error == NULL)
		ereport(LOG,
				(errmsg("the registry of sequence ranges is available again")));
	else
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("could not call the registry of sequence ranges"),
				 errdetail_internal("%s", error->data)));
}

/*
 * Another client has this server's ranges: have none, and be a new one.
 */
static void
begin_again(void)
{
	ereport(LOG,
			(errmsg("the registry does not know this server as the holder of its sequence ranges"),
			 errdetail("The server does not use the rest of them, and requests others.")));
	snowflake_drop_all_ranges();
	snowflake_begin_chain();
	snowflake_repeat_floors();
}

/*
 * Make a call.  Returns false if it fails.
 */
static bool
make_call(Registry *registry, RangeTask *task, Pacing *pacing, StringInfo error)
{
	initStringInfo(error);
	task->outcome = snowflake_call_registry(registry, &task->base, error);
	if (task->outcome == REGISTRY_FAILED)
		return false;
	if (registry->is_new)
	{
		snowflake_repeat_floors();
		snowflake_repeat_report();
		registry->is_new = false;
		pacing->floors_due = pacing->changes_due = 0;
		pacing->is_due = true;
	}
	return true;
}

/*
 * Note what a call came to.
 */
static void
note_outcome(const RangeTask *task, StringInfo error, Pacing *pacing)
{
	if (task->outcome == REGISTRY_ANSWERED)
	{
		log_range_call(NULL);
		snowflake_fail_range_requests(NULL, 0, NULL);
		pacing->not_before = 0;
		return;
	}

	/* The new configuration may have other hosts. */
	if (ShutdownRequestPending || ConfigReloadPending)
		return;
	if (task->outcome == REGISTRY_NOT_HELD)
		begin_again();
	else
	{
		log_range_call(error);
		snowflake_fail_range_requests(task->requests,
									  task->requests != NULL ? task->n : 0, error->data);
	}
	pacing->not_before = snowflake_steady_clock() + PAUSE_US;
}

/*
 * Did a call fail because of a value?
 */
static bool
failed_by_value(const RangeTask *task)
{
	const RegistryAnswer *answer = &task->base.call.answer;

	/* data_exception, integrity_constraint_violation */
	return answer->rolled_back && (strncmp(answer->sqlstate, "22", 2) == 0 ||
								   strncmp(answer->sqlstate, "23", 2) == 0);
}

/*
 * Make a call that has up to so many sequences, and the next one half, or twice as many.
 * Returns false if the registry refuses a value of it.
 */
static bool
ask_for_many(Registry *registry, RangeTask *task, Pacing *pacing, int *most,
			 StringInfo error)
{
	if (make_call(registry, task, pacing, error))
		*most = Min(2 * *most, SNOWFLAKE_MAX_REQUESTS);
	else if (task->n > 0 && failed_by_value(task))
	{
		*most = Max(task->n / 2, 1);
		return false;
	}
	note_outcome(task, error, pacing);
	return true;
}

/*
 * The registry refused a value of one sequence.
 */
static void
note_refusal(const RangeTask *task, StringInfo error)
{
	RangeAnswer *answer = &task->answers[0];

	memset(answer, 0, sizeof(*answer));
	answer->floor = -1;
	answer->problem_kind = PROBLEM_VALUE;
	strlcpy(answer->problem, error->data, sizeof(answer->problem));
	if (snowflake_install_range(&task->requests[0], answer))
		snowflake_log_range_problem(&task->requests[0], answer);
}

/*
 * Make a call for a name that is none, so that this server hears whether another one has
 * called as this client.
 */
static void
request_nothing(RangeTask *task)
{
	memset(task->requests, 0, sizeof(RangeRequest));
	task->requests->slot = NO_SLOT;
	task->requests->last = task->requests->least = 1;
	task->requests->floor = -1;
	task->n = 1;
}

/*
 * Ask for what sequences need.  Returns false if they need nothing.
 */
static bool
get_ranges(Registry *registry, Pacing *pacing)
{
	RangeTask	task = {
		.base = snowflake_ranges_request
	};
	StringInfoData error;

	task.requests = palloc(pacing->most * sizeof(RangeRequest));
	task.n = snowflake_collect_range_requests(task.requests, pacing->most);
	if (task.n == 0 && pacing->is_due && snowflake_has_client())
		request_nothing(&task);
	if (task.n == 0)
		return false;
	pacing->is_due = false;
	task.answers = palloc0(task.n * sizeof(RangeAnswer));
	if (!ask_for_many(registry, &task, pacing, &pacing->most, &error))
	{
		if (task.n == 1)
			note_refusal(&task, &error);
	}
	else if (task.outcome != REGISTRY_FAILED)
		snowflake_want_report(task.must_report);
	return true;
}

/*
 * Make a call that is not for ranges.  Returns false if it fails.
 */
static bool
ask(Registry *registry, RangeTask *task, Pacing *pacing)
{
	StringInfoData error;
	bool		answered;

	answered = make_call(registry, task, pacing, &error);
	note_outcome(task, &error, pacing);
	return answered;
}

/*
 * Hold numbers of the sequences of which the life before this one was granted some.
 */
static void
expect_ranges(Registry *registry, Pacing *pacing)
{
	RangeTask	task = {
		.base = snowflake_names_request
	};

	task.names = palloc_array(RangeName, SNOWFLAKE_MAX_REQUESTS);
	do
	{
		if (!ask(registry, &task, pacing))
			return;
		for (int i = 0; i < task.n; i++)
		{
			RangeName  *name = &task.names[i];

			if (!snowflake_expect_range(name->database, name->name, name->last,
										name->least, name->wish))
				task.n = 0;
		}
		task.after += task.n;
	} while (task.n == SNOWFLAKE_MAX_REQUESTS && !ShutdownRequestPending);
	snowflake_note_names_known();
}

/*
 * Learn of which names other servers are granted numbers.  If that fails, it is tried again
 * later, and no range waits for it.
 */
static void
learn_elsewhere(Registry *registry, Pacing *pacing)
{
	StringInfoData error;
	uint64	   *set = palloc0_array(uint64, SNOWFLAKE_ELSEWHERE);
	RangeTask	task = {
		.base = snowflake_names_request,
		.elsewhere = true
	};

	pacing->elsewhere_due = snowflake_steady_clock() + ELSEWHERE_RETRY_US;
	task.names = palloc_array(RangeName, SNOWFLAKE_MAX_REQUESTS);
	do
	{
		if (!make_call(registry, &task, pacing, &error))
			return;
		for (int i = 0; i < task.n; i++)
			snowflake_add_elsewhere(set, task.names[i].database, task.names[i].name);
		task.after += task.n;
	} while (task.n == SNOWFLAKE_MAX_REQUESTS && task.after < SNOWFLAKE_ELSEWHERE &&
			 !ShutdownRequestPending);
	snowflake_set_elsewhere(set);
	pacing->elsewhere_due = snowflake_steady_clock() + ELSEWHERE_US;
	if (!is_known_there())
		snowflake_close_registry(registry);
}

/*
 * Report what this server was granted.  Returns false if there is nothing to report, or
 * it is not known yet.  What the registry refuses for its value, it never granted.
 */
static bool
report(Registry *registry, Pacing *pacing)
{
	static int	most = SNOWFLAKE_MAX_REQUESTS;
	StringInfoData error;
	RangeTask	task = {
		.base = snowflake_report_request
	};

	if (!snowflake_get_report(&task, most))
		return false;
	if (!ask_for_many(registry, &task, pacing, &most, &error))
	{
		if (task.n == 1)
			snowflake_skip_report(error.data);
	}
	else if (task.outcome == REGISTRY_ANSWERED)
		snowflake_note_reported(task.n);
	else
		snowflake_drop_report();
	return true;
}

/*
 * Ask whether other servers may have set floors since they were asked for, and for these.
 */
static void
hear_floors(Registry *registry, Pacing *pacing)
{
	RangeTask	changes = {
		.base = snowflake_changes_request
	};
	RangeTask	floors = {
		.base = snowflake_floors_request
	};
	int64		now;

	if (ask(registry, &changes, pacing) && changes.changes != pacing->changes)
	{
		pacing->changes = changes.changes;
		pacing->changed = snowflake_steady_clock();
		pacing->floors_due = 0;
	}
	if (snowflake_steady_clock() >= pacing->floors_due && ask(registry, &floors, pacing))
	{
		pacing->floors_due = snowflake_steady_clock() + FLOORS_US;
		snowflake_want_report(floors.must_report);
	}
	now = snowflake_steady_clock();
	pacing->changes_due = now +
		(now - pacing->changed < WHILE_CHANGES_US ? MORE_CHANGES_US : CHANGES_US);
}

/*
 * Return all ranges, so that nobody waits for this server.
 */
static void
give_back(Registry *registry)
{
	RangeTask	task = {
		.base = snowflake_return_request
	};
	StringInfoData error;

	if (!snowflake_has_client())
		return;
	snowflake_drop_all_ranges();
	initStringInfo(&error);
	if (snowflake_call_registry(registry, &task.base, &error) == REGISTRY_FAILED)
		ereport(LOG,
				(errmsg("could not return sequence ranges to the registry"),
				 errdetail_internal("%s", error.data)));
	snowflake_close_registry(registry);

	/* If the shutdown waits for sessions, the next process begins anew. */
	snowflake_begin_chain();
}

/*
 * Wait until something might be due.
 */
static void
pause_for(int64 us)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 us / 1000 + 1,
					 snowflake_wait_event(SNOWFLAKE_EVENT_RANGES_MAIN));
	ResetLatch(MyLatch);
}

/*
 * Do floors go before ranges, for which sessions here wait?  Otherwise, if there is
 * always a range that is due, others wait for this server without end.
 */
static bool
floors_are_late(const Pacing *pacing, int64 now)
{
	return is_known_there() && pacing->not_before == 0 &&
		now - pacing->changes_due >= MORE_CHANGES_US;
}

/*
 * Call the registry whenever something is due, until the process must stop.
 */
static void
serve(Registry *registry)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext,
												  "snowflake ranges",
												  ALLOCSET_DEFAULT_SIZES);
	Pacing		pacing = {
		.most = SNOWFLAKE_MAX_REQUESTS,
		.elsewhere_due = snowflake_steady_clock() + FIRST_ELSEWHERE_US
	};

	MemoryContextSwitchTo(context);
	while (!ShutdownRequestPending)
	{
		int64		now = snowflake_steady_clock();

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			snowflake_close_registry(registry);
			snowflake_reload_registry_worker(registry);
			pacing.not_before = 0;
		}
		if (now - registry->opened >= MAX_AGE_US)
			snowflake_close_registry(registry);
		if (now < pacing.not_before)
			pause_for(pacing.not_before - now);
		else if (report(registry, &pacing) ||
				 (!floors_are_late(&pacing, now) && get_ranges(registry, &pacing)))
			pacing.called = now;
		else if (is_known_there() && !snowflake_names_are_known())
		{
			expect_ranges(registry, &pacing);
			pacing.called = now;
		}
		else if (now >= pacing.elsewhere_due)
			learn_elsewhere(registry, &pacing);
		else if (is_known_there())
		{
			if (now >= pacing.changes_due)
				hear_floors(registry, &pacing);
			else
				pause_for(Min(LOOK_US, pacing.changes_due - now));
			pacing.called = now;
		}
		else
			pause_for(Min(now - pacing.called < WHILE_LOOK_US ? LOOK_US : WHILE_LOOK_US,
						  pacing.elsewhere_due - now));
		MemoryContextReset(context);
	}
}

static void
clear_worker_latch(int code, Datum arg)
{
	snowflake_set_range_worker_latch(NULL);
}

/*
 * Has the last call failed, or the last worker to connect?
 */
static bool
note_connecting(bool connecting)
{
	RangeFailure failure;

	snowflake_get_range_failure(&failure);
	return failure.since != 0;
}

/*
 * The worker cannot connect to a local database.
 */
static void
note_error(const char *error)
{
	snowflake_fail_range_requests(NULL, 0, error);
}

/*
 * Main function of the background worker.
 */
void
snowflake_ranges_main(Datum main_arg)
{
	static const RegistryWorker worker = {
		.note_connecting = note_connecting,
		.note_error = note_error,
		.pause = SNOWFLAKE_EVENT_RANGES_MAIN
	};
	Registry	registry;

	snowflake_begin_registry_worker(&registry, &worker);
	snowflake_set_range_worker_latch(MyLatch);
	before_shmem_exit(clear_worker_latch, 0);
	serve(&registry);

	snowflake_check_registry_shutdown();
	give_back(&registry);

	/* If the shutdown waits for sessions, the worker is started again. */
	proc_exit(1);
}
