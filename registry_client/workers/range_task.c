/*-------------------------------------------------------------------------
 *
 * range_task.c
 *	  The call for ranges, and how its answer is used.
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

#include "generator/durable.h"
#include "registry_client/workers/range_log.h"
#include "registry_client/workers/range_task.h"
#include "shared/compat.h"

static void
prepare_ranges(RangeTask *task)
{
	snowflake_extend_chain(&task->chain);
	snowflake_ask_for_ranges(task);
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
	RangeOutcome outcome = snowflake_read_ranges(task, error);

	if (outcome != SNOWFLAKE_RANGES_ANSWERED)
		return outcome;
	if (task->receipt != 0 && !keep_receipt(task->receipt, error))
		return SNOWFLAKE_RANGES_FAILED;

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
