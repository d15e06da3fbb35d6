/*-------------------------------------------------------------------------
 *
 * range_task.c
 *	  What each call for ranges asks, and how its answer is used.
 *
 * An answer with ranges is used in this order: its receipt is made durable, the chain
 * of tokens is confirmed, and the ranges are installed.  If this ends in between, the
 * next call gets the same answer again, and nobody has used any of it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_task.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/one_line.h"
#include "generator/durable.h"
#include "registry_client/workers/range_log.h"
#include "registry_client/workers/range_task.h"
#include "shared/compat.h"

static void
prepare_ranges(RangeTask *task)
{
	snowflake_extend_chain(&task->chain);
	snowflake_ask_for_ranges(&task->call, &task->chain, snowflake_receipt_read(),
							 task->requests, task->n);
}

/*
 * Make the receipt durable.  Returns false if that fails: nothing of the answer is used,
 * and the next call gets it again.
 */
static bool
keep_receipt(int64 receipt, StringInfo error)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool kept = true;

	StartTransactionCommand();
	PG_TRY();
	{
		if (receipt != snowflake_receipt_read())
			snowflake_receipt_set(receipt);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(context);
		snowflake_append_message(error, edata->message);
		if (edata->detail != NULL)
			appendStringInfo(error, "; %s", edata->detail);
		if (edata->hint != NULL)
			appendStringInfo(error, "; %s", edata->hint);
		FreeErrorData(edata);
		kept = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return kept;
}

/*
 * Use an answer with ranges.
 */
static RangeOutcome
read_ranges(RangeTask *task, StringInfo error)
{
	RangeStanding standing = {0};
	RangeOutcome outcome =
		snowflake_read_ranges(&task->call.answer, task->requests, task->n,
							  task->answers, &standing, error);

	if (outcome != SNOWFLAKE_RANGES_ANSWERED)
		return outcome;
	if (standing.receipt != 0 && !keep_receipt(standing.receipt, error))
		return SNOWFLAKE_RANGES_FAILED;
	task->must_report = standing.must_report;

	/*
	 * Otherwise, the next process would get and use the same ranges.  Nothing
	 * may end this one in between: the registry takes it that who asks again
	 * has exhausted all ranges before the last one, and a floor would not
	 * wait for one that is in use.
	 */
	HOLD_INTERRUPTS();
	snowflake_confirm_chain(&task->chain);
	for (int i = 0; i < task->n; i++)
		snowflake_install_range(&task->requests[i], &task->answers[i]);
	RESUME_INTERRUPTS();
	for (int i = 0; i < task->n; i++)
		snowflake_log_range_problem(&task->requests[i], &task->answers[i]);
	return outcome;
}

const RangeTaskKind snowflake_ranges_task = {
	.prepare = prepare_ranges,
	.read = read_ranges,
	.extends_chain = true
};

static void
prepare_floors(RangeTask *task)
{
	snowflake_get_chain(&task->chain);
	snowflake_ask_for_floors(&task->call, &task->chain, snowflake_receipt_read());
}

static RangeOutcome
read_floors(RangeTask *task, StringInfo error)
{
	return snowflake_read_floors(&task->call.answer, &task->must_report, error);
}

const RangeTaskKind snowflake_floors_task = {
	.prepare = prepare_floors,
	.read = read_floors
};

static void
prepare_names(RangeTask *task)
{
	snowflake_get_chain(&task->chain);
	snowflake_ask_for_names(&task->call, &task->chain, task->after);
}

static RangeOutcome
read_names(RangeTask *task, StringInfo error)
{
	return snowflake_read_names(&task->call.answer, task->names, &task->n, error);
}

const RangeTaskKind snowflake_names_task = {
	.prepare = prepare_names,
	.read = read_names
};

static void
prepare_report(RangeTask *task)
{
	snowflake_get_chain(&task->chain);
	snowflake_report_ranges(&task->call, &task->chain, task->reports, task->n,
							task->is_complete);
}

static RangeOutcome
read_taken(RangeTask *task, StringInfo error)
{
	return snowflake_read_taken(&task->call.answer, error);
}

const RangeTaskKind snowflake_report_task = {
	.prepare = prepare_report,
	.read = read_taken
};

static void
prepare_changes(RangeTask *task)
{
	snowflake_ask_for_changes(&task->call);
}

static RangeOutcome
read_changes(RangeTask *task, StringInfo error)
{
	return snowflake_read_changes(&task->call.answer, &task->changes, error);
}

const RangeTaskKind snowflake_changes_task = {
	.prepare = prepare_changes,
	.read = read_changes
};

/*
 * Give up all ranges, and return them.
 */
static void
prepare_return(RangeTask *task)
{
	snowflake_drop_all_ranges();
	snowflake_get_chain(&task->chain);
	snowflake_return_ranges(&task->call, &task->chain);
}

const RangeTaskKind snowflake_return_task = {
	.prepare = prepare_return,
	.read = read_taken
};
