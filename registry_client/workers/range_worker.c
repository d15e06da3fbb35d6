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
 * next one is made after a pause, which doubles up to a limit.  If it fails
 * because of a value, fewer sequences are in the next call, until it is known
 * which of them has it, so that the others do not suffer.  A call that hangs is
 * given up after a second, and the next ones have more time, for a registry that
 * is slow.
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
 * The connection is closed when it was not used for a minute, and made anew now and
 * then, as the registry may be elsewhere, or somebody else's, by now.
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
#include "generator/settings.h"
#include "ranges/elsewhere.h"
#include "registry_client/workers/call_log.h"
#include "registry_client/workers/local_call.h"
#include "registry_client/workers/range_report.h"
#include "registry_client/workers/range_request.h"
#include "registry_client/workers/registry_worker.h"
#include "shared/clock.h"
#include "shared/compat.h"

PGDLLEXPORT void snowflake_ranges_main(Datum main_arg);

/* Time for a call: at first, and at most; and for that at a shutdown. */
#define MIN_CALL_TIMEOUT_MS		1000
#define MAX_CALL_TIMEOUT_MS		5000
#define LAST_CALL_TIMEOUT_MS	2000

/* How soon to call again after a failure: the first one, and others. */
#define MIN_PAUSE_US	INT64CONST(200000)
#define MAX_PAUSE_US	INT64CONST(5000000)

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

/* How often to look for what is due by its time. */
#define LOOK_US				INT64CONST(200000)

/* When a connection that is not used, or any, is closed. */
#define IDLE_US			INT64CONST(60000000)
#define MAX_AGE_US		INT64CONST(600000000)

/* The connection of this process. */
typedef struct Connection
{
	Registry	registry;
	MemoryContext context;		/* of the round */
	RegistryRound *round;		/* with a session, or NULL */
	int64		opened;			/* when that was, by the steady clock */
	int64		used;
	int			timeout_ms;		/* of its calls */
	bool		is_known;		/* was a call made over it? */
} Connection;

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
	int			failures;		/* since the last one that succeeded */
	int			most;			/* the most sequences of a call */
	int			timeout_ms;		/* of calls over a new connection */
} Pacing;

/*
 * If the registry has certainly rolled a call back, its token is none.
 */
static void
shorten_if_rolled_back(const RangeTask *task)
{
	if (task->kind->extends_chain && task->call.answer.rolled_back)
		snowflake_shorten_chain(&task->chain);
}

/*
 * Make a call of a local registry.
 */
static void
call_locally(Connection *connection, RangeTask *task, StringInfo error)
{
	bool		answered;

	task->kind->prepare(task);
	answered = snowflake_call_locally(&connection->registry, &task->call,
									  task->kind->extends_chain, &task->limit, error);
	shorten_if_rolled_back(task);
	if (answered)
		task->outcome = task->kind->read(task, error);
}

static void
close_connection(Connection *connection)
{
	if (connection->round == NULL)
		return;
	snowflake_end_round(connection->round);
	connection->round = NULL;
	MemoryContextReset(connection->context);
}

/*
 * Make a call where the round has a session.  Any answer that is one ends the
 * round's search: another host might give this server what it gave up.
 */
static void
call_session(Connection *connection, RangeTask *task)
{
	RegistryRound *round = connection->round;
	StringInfoData reason;

	initStringInfo(&reason);
	task->kind->prepare(task);
	if (!snowflake_ask_registry(round, &task->call))
	{
		shorten_if_rolled_back(task);
		return;
	}
	task->outcome = task->kind->read(task, &reason);
	if (task->outcome == SNOWFLAKE_RANGES_FAILED)
		snowflake_reject_answer(round, reason.data);
	else
		snowflake_accept_answer(round);
	connection->used = snowflake_steady_clock();
}

/*
 * Begin a round, and make a call of each host until one answers.  If it does,
 * its connection is kept.
 */
static void
call_hosts(Connection *connection, RangeTask *task, StringInfo error)
{
	MemoryContext outer = MemoryContextSwitchTo(connection->context);

	connection->round = snowflake_begin_round(snowflake_registry,
											  &connection->registry.start,
											  &task->limit, error);
	if (connection->round != NULL)
	{
		snowflake_limit_answers(connection->round, task->timeout_ms);
		connection->timeout_ms = task->timeout_ms;
		while (task->outcome == SNOWFLAKE_RANGES_FAILED &&
			   snowflake_connect_next(connection->round))
		{
			connection->opened = snowflake_steady_clock();
			connection->is_known = false;
			MemoryContextSwitchTo(outer);
			call_session(connection, task);
			MemoryContextSwitchTo(connection->context);
		}
	}
	MemoryContextSwitchTo(outer);
	if (task->outcome == SNOWFLAKE_RANGES_FAILED)
		close_connection(connection);
}

/*
 * Make a call over the connection, or a new one.
 */
static void
call_remotely(Connection *connection, RangeTask *task, StringInfo error)
{
	if (connection->round != NULL)
	{
		snowflake_continue_round(connection->round, &task->limit, error);
		call_session(connection, task);
		if (task->outcome != SNOWFLAKE_RANGES_FAILED)
			return;
		close_connection(connection);
	}
	resetStringInfo(error);
	call_hosts(connection, task, error);
}

/*
 * Another client has this server's ranges: have none, and be a new one.
 */
static void
begin_again(void)
{
	snowflake_log_superseded();
	snowflake_drop_all_ranges();
	snowflake_begin_chain();
	snowflake_repeat_floors();
}

/*
 * Give the next calls more time if this one had too little, and the first time
 * again if it needed little.
 */
static void
note_duration(const RangeTask *task, int64 began, Pacing *pacing)
{
	int64		lasted_ms = (snowflake_steady_clock() - began) / 1000;

	if (task->outcome != SNOWFLAKE_RANGES_FAILED)
	{
		if (lasted_ms < MIN_CALL_TIMEOUT_MS / 2)
			pacing->timeout_ms = MIN_CALL_TIMEOUT_MS;
	}
	else if (lasted_ms >= task->timeout_ms - task->timeout_ms / 10)
		pacing->timeout_ms = Min(2 * pacing->timeout_ms, MAX_CALL_TIMEOUT_MS);
}

/*
 * Make a call.  Returns false if it fails.
 */
static bool
make_call(Connection *connection, RangeTask *task, Pacing *pacing, StringInfo error)
{
	int64		began = snowflake_steady_clock();

	task->outcome = SNOWFLAKE_RANGES_FAILED;
	if (connection->registry.local)
		call_locally(connection, task, error);
	else
		call_remotely(connection, task, error);
	note_duration(task, began, pacing);
	if (task->outcome == SNOWFLAKE_RANGES_FAILED)
		return false;
	if (!connection->is_known)
	{
		snowflake_repeat_floors();
		snowflake_repeat_report();
		connection->is_known = true;
		pacing->floors_due = pacing->changes_due = 0;
		pacing->is_due = true;
	}
	return true;
}

/*
 * How long a call may take: elsewhere, each host has its own time.
 */
static void
limit_call(RangeTask *task, const Connection *connection, const Pacing *pacing)
{
	task->timeout_ms = pacing->timeout_ms;
	task->limit = snowflake_limit_wait(connection->registry.local ? task->timeout_ms :
									   SNOWFLAKE_NO_LIMIT_MS, true);
}

/*
 * Note what a call came to.
 */
static void
note_outcome(const RangeTask *task, StringInfo error, Pacing *pacing)
{
	if (task->outcome == SNOWFLAKE_RANGES_ANSWERED)
	{
		snowflake_log_range_call(NULL);
		snowflake_fail_range_requests(NULL, 0, NULL);
		pacing->failures = 0;
		pacing->not_before = 0;
		return;
	}

	/* The new configuration may have other hosts. */
	if (ShutdownRequestPending || ConfigReloadPending)
		return;
	if (task->outcome == SNOWFLAKE_RANGES_SUPERSEDED)
		begin_again();
	else
	{
		snowflake_log_range_call(error);
		snowflake_fail_range_requests(task->requests,
									  task->requests != NULL ? task->n : 0, error->data);
	}
	pacing->not_before = snowflake_steady_clock() +
		Min(MIN_PAUSE_US << Min(pacing->failures, 10), MAX_PAUSE_US);
	pacing->failures++;
}

/*
 * Did a call fail because of a value?
 */
static bool
failed_by_value(const RangeTask *task)
{
	const RegistryAnswer *answer = &task->call.answer;

	/* data_exception, integrity_constraint_violation */
	return answer->rolled_back && (strncmp(answer->sqlstate, "22", 2) == 0 ||
								   strncmp(answer->sqlstate, "23", 2) == 0);
}

/*
 * Make a call that has up to so many sequences, and the next one half, or twice as many.
 * Returns false if the registry refuses a value of it.
 */
static bool
ask_for_many(Connection *connection, RangeTask *task, Pacing *pacing, int *most,
			 StringInfo error)
{
	limit_call(task, connection, pacing);
	initStringInfo(error);
	if (make_call(connection, task, pacing, error))
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
	snowflake_install_range(&task->requests[0], answer);
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
get_ranges(Connection *connection, Pacing *pacing)
{
	RangeTask	task = {0};
	StringInfoData error;

	task.requests = palloc(pacing->most * sizeof(RangeRequest));
	task.n = snowflake_collect_range_requests(task.requests, pacing->most);
	if (task.n == 0 && pacing->is_due && snowflake_has_client())
		request_nothing(&task);
	if (task.n == 0)
		return false;
	pacing->is_due = false;
	task.answers = palloc0(task.n * sizeof(RangeAnswer));
	task.kind = &snowflake_ranges_task;
	if (!ask_for_many(connection, &task, pacing, &pacing->most, &error))
	{
		if (task.n == 1)
			note_refusal(&task, &error);
	}
	else if (task.outcome != SNOWFLAKE_RANGES_FAILED)
		snowflake_want_report(task.must_report);
	return true;
}

/*
 * Make a call that is not for ranges.  Returns false if it fails.
 */
static bool
ask(Connection *connection, RangeTask *task, Pacing *pacing)
{
	StringInfoData error;
	bool		answered;

	limit_call(task, connection, pacing);
	initStringInfo(&error);
	answered = make_call(connection, task, pacing, &error);
	note_outcome(task, &error, pacing);
	return answered;
}

/*
 * Hold numbers of the sequences of which the life before this one was granted some.
 */
static void
expect_ranges(Connection *connection, Pacing *pacing)
{
	RangeTask	task = {
		.kind = &snowflake_names_task
	};

	task.names = palloc_array(RangeName, SNOWFLAKE_MAX_REQUESTS);
	do
	{
		if (!ask(connection, &task, pacing))
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
learn_elsewhere(Connection *connection, Pacing *pacing)
{
	StringInfoData error;
	uint64	   *set = palloc0_array(uint64, SNOWFLAKE_ELSEWHERE);
	RangeTask	task = {
		.kind = &snowflake_names_task,
		.elsewhere = true
	};

	pacing->elsewhere_due = snowflake_steady_clock() + IDLE_US;
	task.names = palloc_array(RangeName, SNOWFLAKE_MAX_REQUESTS);
	initStringInfo(&error);
	do
	{
		limit_call(&task, connection, pacing);
		if (!make_call(connection, &task, pacing, &error))
			return;
		for (int i = 0; i < task.n; i++)
			snowflake_add_elsewhere(set, task.names[i].database, task.names[i].name);
		task.after += task.n;
	} while (task.n == SNOWFLAKE_MAX_REQUESTS && task.after < SNOWFLAKE_ELSEWHERE &&
			 !ShutdownRequestPending);
	snowflake_set_elsewhere(set);
	pacing->elsewhere_due = snowflake_steady_clock() + ELSEWHERE_US;
}

/*
 * Report what this server was granted.  Returns false if there is nothing to report, or
 * it is not known yet.  What the registry refuses for its value, it never granted.
 */
static bool
report(Connection *connection, Pacing *pacing)
{
	static int	most = SNOWFLAKE_MAX_REQUESTS;
	StringInfoData error;
	RangeTask	task = {
		.kind = &snowflake_report_task
	};

	if (!snowflake_get_report(&task.reports, &task.n, &task.after, most, &task.is_complete,
							  &task.unread))
		return false;
	if (!ask_for_many(connection, &task, pacing, &most, &error))
	{
		if (task.n == 1)
			snowflake_skip_report(error.data);
	}
	else if (task.outcome == SNOWFLAKE_RANGES_ANSWERED)
		snowflake_note_reported(task.n);
	else
		snowflake_drop_report();
	return true;
}

/*
 * Ask whether there may be other floors than when they were asked for.
 */
static void
look_for_changes(Connection *connection, Pacing *pacing)
{
	RangeTask	task = {
		.kind = &snowflake_changes_task
	};

	if (!ask(connection, &task, pacing))
		return;
	if (task.changes == pacing->changes)
		return;
	pacing->changes = task.changes;
	pacing->changed = snowflake_steady_clock();
	pacing->floors_due = 0;
}

/*
 * Ask for floors that other servers have set.
 */
static void
get_floors(Connection *connection, Pacing *pacing)
{
	RangeTask	task = {
		.kind = &snowflake_floors_task
	};

	if (!ask(connection, &task, pacing))
		return;
	pacing->floors_due = snowflake_steady_clock() + FLOORS_US;
	snowflake_want_report(task.must_report);
}

/*
 * Hear of floors, if there are others.
 */
static void
hear_floors(Connection *connection, Pacing *pacing)
{
	int64		now;

	look_for_changes(connection, pacing);
	if (snowflake_steady_clock() >= pacing->floors_due)
		get_floors(connection, pacing);
	now = snowflake_steady_clock();
	pacing->changes_due = now +
		(now - pacing->changed < WHILE_CHANGES_US ? MORE_CHANGES_US : CHANGES_US);
}

/*
 * Return all ranges, so that nobody waits for this server.
 */
static void
give_back(Connection *connection)
{
	RangeTask	task = {0};
	Pacing		pacing = {0};	/* of no other call */
	StringInfoData error;

	if (!snowflake_has_client())
		return;
	snowflake_drop_all_ranges();
	task.kind = &snowflake_return_task;
	task.timeout_ms = LAST_CALL_TIMEOUT_MS;
	task.limit = snowflake_limit_wait(LAST_CALL_TIMEOUT_MS, false);
	initStringInfo(&error);
	if (!make_call(connection, &task, &pacing, &error))
		snowflake_log_ranges_not_returned(&error);
	close_connection(connection);

	/* If the shutdown waits for sessions, the next process begins anew. */
	snowflake_begin_chain();
}

/*
 * Close a connection that is not used, that is old, or whose calls have more time
 * than they need.
 */
static void
close_if_due(Connection *connection, const Pacing *pacing, int64 now)
{
	if (now - connection->used >= IDLE_US ||
		now - connection->opened >= MAX_AGE_US ||
		connection->timeout_ms > pacing->timeout_ms)
		close_connection(connection);
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
 * Can the registry need this server, which was granted numbers of it, or of another one?
 */
static bool
is_known_there(void)
{
	return snowflake_has_client() || snowflake_receipt_read() != 0;
}

/*
 * Do floors go before ranges, for which sessions here wait?  Otherwise, if there is
 * always a range that is due, others wait for this server without end.
 */
static bool
floors_are_late(const Pacing *pacing, int64 now)
{
	return is_known_there() && pacing->failures == 0 &&
		now - pacing->changes_due >= MORE_CHANGES_US;
}

/*
 * Call the registry whenever something is due, until the process must stop.
 */
static void
serve(Connection *connection)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext,
												  "snowflake ranges",
												  ALLOCSET_DEFAULT_SIZES);
	Pacing		pacing = {
		.most = SNOWFLAKE_MAX_REQUESTS,
		.timeout_ms = MIN_CALL_TIMEOUT_MS,
		.elsewhere_due = snowflake_steady_clock() + FIRST_ELSEWHERE_US
	};

	MemoryContextSwitchTo(context);
	while (!ShutdownRequestPending)
	{
		int64		now = snowflake_steady_clock();

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			close_connection(connection);
			snowflake_reload_registry_worker(&connection->registry);
			pacing.not_before = 0;
		}
		close_if_due(connection, &pacing, now);
		if (now < pacing.not_before)
			pause_for(pacing.not_before - now);
		else if (report(connection, &pacing) ||
				 (!floors_are_late(&pacing, now) && get_ranges(connection, &pacing)))
			pacing.called = now;
		else if (is_known_there() && !snowflake_names_are_known())
		{
			expect_ranges(connection, &pacing);
			pacing.called = now;
		}
		else if (now >= pacing.elsewhere_due)
			learn_elsewhere(connection, &pacing);
		else if (is_known_there())
		{
			if (now >= pacing.changes_due)
				hear_floors(connection, &pacing);
			else
				pause_for(Min(LOOK_US, pacing.changes_due - now));
			pacing.called = now;
		}
		else
			pause_for(Min(now - pacing.called < IDLE_US ? LOOK_US : IDLE_US,
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
 * Note that the worker is connecting to a local database.  If the last one
 * failed to, tell those who wait for ranges why.
 */
static bool
note_connecting(bool connecting)
{
	const char *error = snowflake_range_error();

	if (connecting && error[0] != '\0')
		snowflake_fail_range_requests(NULL, 0, error);
	return snowflake_note_range_connecting(connecting);
}

/*
 * Main function of the background worker.
 */
void
snowflake_ranges_main(Datum main_arg)
{
	static const RegistryWorker worker = {
		.note_connecting = note_connecting,
		.note_error = snowflake_note_range_error,
		.pause = SNOWFLAKE_EVENT_RANGES_MAIN
	};
	Connection	connection = {0};

	snowflake_begin_registry_worker(&connection.registry, &worker);
	connection.context = AllocSetContextCreate(TopMemoryContext,
											   "snowflake ranges connection",
											   ALLOCSET_DEFAULT_SIZES);
	snowflake_set_range_worker_latch(MyLatch);
	before_shmem_exit(clear_worker_latch, 0);
	serve(&connection);

	snowflake_check_registry_shutdown();
	give_back(&connection);

	/* If the shutdown waits for sessions, the worker is started again. */
	proc_exit(1);
}
