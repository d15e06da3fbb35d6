/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  What the planner is told about functions on snowflake IDs.
 *
 * Functions that use the server's scheme are STABLE: snowflake.scheme can
 * change with a restart, so no index or generated column may depend on it.
 * But no plan survives a restart, so for a plan they are as good as IMMUTABLE.
 * Their support function replaces calls with constant arguments by the result
 * while a query is planned.  So the planner prunes partitions without locking
 * them, and what looks at constants only (foreign servers, Citus) can use the
 * bound.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ids/planner.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/planmain.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

#include "generator/state.h"
#include "shared/compat.h"

PG_FUNCTION_INFO_V1(snowflake_fold_support);

/*
 * The result of a call with constant arguments, or NULL if it is an error.
 *
 * A call that fails is left to the executor, which might never get there.  The
 * functions that have this support note their errors (see base/id_time.c), and
 * a role that may not call the function gets that error from the executor, too.
 */
static Node *
compute(const FuncExpr *call)
{
	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS);
	FmgrInfo	function;
	ErrorSaveContext escontext = {.type = T_ErrorSaveContext};
	Datum		result;
	int16		length;
	bool		by_value;
	int			n = 0;
	ListCell   *cell;

	if (snowflake_function_aclcheck(call->funcid, GetUserId()) != ACLCHECK_OK)
		return NULL;
	InvokeFunctionExecuteHook(call->funcid);

	fmgr_info(call->funcid, &function);
	InitFunctionCallInfoData(*fcinfo, &function, list_length(call->args),
							 call->inputcollid, (Node *) &escontext, NULL);
	foreach(cell, call->args)
	{
		const Const *argument = lfirst_node(Const, cell);

		fcinfo->args[n].value = argument->constvalue;
		fcinfo->args[n++].isnull = argument->constisnull;
	}
	result = FunctionCallInvoke(fcinfo);
	if (escontext.error_occurred)
		return NULL;

	get_typlenbyval(call->funcresulttype, &length, &by_value);
	return (Node *) makeConst(call->funcresulttype, -1, call->funccollid,
							  length, result, fcinfo->isnull, by_value);
}

/*
 * The result of a call as a constant, or NULL if it has to be computed when
 * the query is executed.
 *
 * Without a PlannerInfo, the expression is not part of a query: it is that of
 * an index, a constraint or a default, which outlive the scheme.  The planner
 * reads constraints itself, to exclude tables by them, and would take one that
 * is constant for immutable.  That is after it has begun to use its arrays of
 * relations, and the query's own expressions come before.
 *
 * Without the library preloaded, the call fails.
 */
static Node *
fold_call(const SupportRequestSimplify *request)
{
	FuncExpr   *call = request->fcall;
	Node	   *result;
	ListCell   *cell;

	if (request->root == NULL || request->root->simple_rel_array != NULL ||
		snowflake_state == NULL)
		return NULL;
	foreach(cell, call->args)
	{
		if (!IsA(lfirst(cell), Const))
			return NULL;
	}

	/* The plan depends on the function as if it was in it. */
	result = compute(call);
	if (result != NULL)
		record_plan_function_dependency(request->root, call->funcid);
	return result;
}

/*
 * _snowflake_fold_support(internal) returns internal
 */
Datum
snowflake_fold_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	Node	   *result = NULL;

	if (IsA(request, SupportRequestSimplify))
		result = fold_call((SupportRequestSimplify *) request);
	PG_RETURN_POINTER(result);
}
