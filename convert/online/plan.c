/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  snowflake_convert_plan(): the steps of a conversion of tables in use, with
 *	  their statements, which can be run by hand.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/plan.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "convert/online/backfill.h"
#include "convert/online/begin.h"
#include "convert/online/run.h"
#include "convert/online/sessions.h"
#include "convert/online/steps.h"
#include "convert/online/swap.h"
#include "convert/online/transaction.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_plan);

/* What the plan says about locks. */
static const char *const lock_names[] = {
	[SNOWFLAKE_STEP_PREPARE] = "ACCESS EXCLUSIVE",
	[SNOWFLAKE_STEP_BACKFILL] = "ROW EXCLUSIVE",
	[SNOWFLAKE_STEP_INDEX] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_CHECK] = "ACCESS EXCLUSIVE",
	[SNOWFLAKE_STEP_STATISTICS] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_ANALYZE] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_FOREIGN_KEY] = "SHARE ROW EXCLUSIVE",
	[SNOWFLAKE_STEP_VALIDATE] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_SWAP] = "ACCESS EXCLUSIVE",
	[SNOWFLAKE_STEP_DEFAULT] = "ACCESS EXCLUSIVE",
};

static char *
step_text(const SnowflakeOnline *online, const SnowflakeOnlineStep *step)
{
	switch (step->kind)
	{
		case SNOWFLAKE_STEP_SWAP:
			return snowflake_online_swap_script(online, step->relid);
		case SNOWFLAKE_STEP_DEFAULT:
			return snowflake_online_default_statement(online);
		case SNOWFLAKE_STEP_PREPARE:
			return psprintf("BEGIN;\n%s;\nCOMMIT", step->statement);
		default:
			return snowflake_online_step_statement(&online->transaction.conversion, step);
	}
}

/*
 * The steps as rows.
 */
static void
put_plan(SnowflakeOnline *online, const List *steps, ReturnSetInfo *rsinfo)
{
	const SnowflakeConversion *conversion = &online->transaction.conversion;
	bool		found = false;
	ListCell   *cell;

	foreach(cell, steps)
	{
		SnowflakeOnlineStep *step = lfirst(cell);
		bool		is_next = !step->done && !found;
		Datum		values[6];
		bool		nulls[6] = {false};
		const char *state = step->done ? "done" : is_next ? "next" : "to do";

		if (is_next &&
			(step->kind == SNOWFLAKE_STEP_SWAP || step->kind == SNOWFLAKE_STEP_DEFAULT))
		{
			char	   *who = step->kind == SNOWFLAKE_STEP_SWAP ?
				snowflake_online_find_old_snapshot(online, step->relid) :
				snowflake_online_find_old_sessions(online);

			if (who != NULL)
				state = psprintf("to do, and has to wait: %s", who);
		}
		if (is_next && step->kind == SNOWFLAKE_STEP_BACKFILL)
			state = psprintf("next, about %d %% are copied",
							 snowflake_online_backfill_percent(conversion, step));
		found |= !step->done;
		values[0] = Int32GetDatum(foreach_current_index(cell) + 1);
		values[1] = CStringGetTextDatum(snowflake_online_phase_name(step->phase));
		values[2] = CStringGetTextDatum(step->table);
		values[3] = CStringGetTextDatum(snowflake_online_needs_access_exclusive(step) ?
										"ACCESS EXCLUSIVE" : lock_names[step->kind]);
		nulls[4] = step->done && step->statement == NULL;
		values[4] = nulls[4] ? (Datum) 0 : CStringGetTextDatum(step_text(online, step));
		values[5] = CStringGetTextDatum(state);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

/*
 * snowflake_convert_plan(relation regclass, column_name name,
 *						  subscribers_ready boolean, kind text) returns table
 */
Datum
snowflake_convert_plan(PG_FUNCTION_ARGS)
{
	SnowflakeOnline online = {0};
	SnowflakeConversion *conversion = &online.transaction.conversion;
	List	   *findings = NIL;
	List	   *steps;
	char	   *changer;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	snowflake_online_get_kind(fcinfo, 3, &online);
	snowflake_online_begin_function(fcinfo, &online);
	snowflake_online_open(&online);
	online.options.subscribers_ready = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	online.options.by_hand = true;
	steps = snowflake_online_list_steps(conversion);
	if (!snowflake_online_check_obstacles(&online, steps, &findings, &changer))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("cannot look for obstacles of table %s now",
						snowflake_relation_name(online.relid)),
				 errdetail_internal("%s", changer != NULL ? changer :
									"Somebody changes privileges."),
				 errhint("Try again when it has ended.")));
	snowflake_online_give_notices(conversion, steps, findings);
	put_plan(&online, steps, (ReturnSetInfo *) fcinfo->resultinfo);
	snowflake_online_end_function(&online);
	return (Datum) 0;
}
