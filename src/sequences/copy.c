/*-------------------------------------------------------------------------
 *
 * copy.c
 *	  Defaults with which COPY FROM keeps its multi-insert.
 *
 * COPY FROM collects up to a thousand rows and writes them together, with one
 * WAL record a page, unless a default is volatile: it might read the table.
 * The server exempts nextval().  Functions that generate keys read no table
 * either.  So while COPY FROM prepares its defaults, the planner support
 * function of a key function puts _snowflake_copy_default() in its place, which
 * calls it, and is declared STABLE.
 *
 * That declaration is false.  Whoever else trusts it may evaluate a call once
 * for many rows, which then have the same key: ALTER TABLE ADD COLUMN does.
 * Two rules prevent that.
 *
 * A call is replaced only where COPY FROM plans its own defaults.  It does that
 * in a memory context that it has just created, as a child of the one in which
 * the statement began, and does nothing else in it.  Whatever runs meanwhile
 * has contexts of its own: functions that the planner evaluates because they
 * are declared immutable, and their statements.  Triggers, nested COPY and the
 * WHERE clause have, too, and file_fdw and logical replication are no
 * statement COPY.  There is one exception, see is_loading_domain().
 *
 * And _snowflake_copy_default() fails wherever it is called for anything but
 * the row that a COPY FROM reads, so that what should escape the first rule
 * results in an error, not in equal keys.  Such a default is evaluated for each
 * row, because COPY does not cache what is stable.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/copy.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/copy.h"
#include "commands/copyfrom_internal.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "sequences/copy.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

/* Arguments before those of the function: the address of the seal, and its OID */
#define SEAL_ARGUMENT		0
#define FUNCTION_ARGUMENT	1
#define OWN_ARGUMENTS		2

/*
 * Only the calls that are put in here have its address.  In SQL there are values of
 * type internal that are NULL (a strict function returns one without being called),
 * but no others.
 */
static const char seal[] = "";

/* The memory context in which a COPY FROM began, or NULL: no COPY FROM. */
static MemoryContext copy_statement = NULL;

PG_FUNCTION_INFO_V1(snowflake_copy_support);
PG_FUNCTION_INFO_V1(snowflake_copy_default);

/*
 * Before a utility statement is executed.  Returns what to give to
 * snowflake_end_statement() after it, also after an error.
 */
MemoryContext
snowflake_begin_statement(const Node *statement)
{
	MemoryContext outer = copy_statement;

	copy_statement = NULL;
	if (IsA(statement, CopyStmt) && ((const CopyStmt *) statement)->is_from)
		copy_statement = CurrentMemoryContext;
	return outer;
}

void
snowflake_end_statement(MemoryContext outer)
{
	copy_statement = outer;
}

/*
 * Does the server read the constraints of a domain?  If a default has a domain
 * as its type, that may be while it is planned, and since PostgreSQL 19 in the
 * same memory context.  The constraints are planned, too, and kept for the
 * session.  Their catalog is open meanwhile.
 */
static bool
is_loading_domain(void)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);
	bool		in_use = constraints->rd_refcnt > 1;

	table_close(constraints, AccessShareLock);
	return in_use;
}

/*
 * Does COPY FROM plan a default, here and now?
 */
static bool
is_preparing(void)
{
	return copy_statement != NULL &&
		CurrentMemoryContext->parent == copy_statement &&
		strcmp(CurrentMemoryContext->name, "COPY") == 0 &&
		!is_loading_domain();
}

/*
 * May the user execute both functions?  If not, the server has to check the
 * call as it is.
 */
static bool
may_execute(Oid function, Oid copy_default)
{
	return snowflake_function_aclcheck(function, GetUserId()) == ACLCHECK_OK &&
		snowflake_function_aclcheck(copy_default, GetUserId()) == ACLCHECK_OK;
}

/*
 * Is a call too expensive to be evaluated more than once in a row?  The server
 * inlines a function in SQL that uses its argument twice if the argument is
 * neither volatile nor expensive, by this test.
 */
static bool
is_expensive(FuncExpr *call)
{
	QualCost	cost;

	cost_qual_eval_node(&cost, (Node *) call, NULL);
	return cost.startup + cost.per_tuple > 10 * cpu_operator_cost;
}

/*
 * A call that COPY FROM may use in place of a volatile one in the default that
 * it prepares, or NULL if the call must stay.  Its result has the type of the
 * function's.
 */
Node *
snowflake_copy_substitute(const FuncExpr *call)
{
	static const Oid types[] = {INTERNALOID, ANYOID};
	Oid			copy_default;
	List	   *args;
	FuncExpr   *substitute;

	if (!is_preparing())
		return NULL;
	copy_default = snowflake_look_up_function(get_func_namespace(call->funcid),
											  "_snowflake_copy_default", types, lengthof(types));
	if (!OidIsValid(copy_default) || !may_execute(call->funcid, copy_default))
		return NULL;
	InvokeFunctionExecuteHook(call->funcid);

	args = list_make2(makeConst(INTERNALOID, -1, InvalidOid, SIZEOF_DATUM,
								PointerGetDatum(seal), false, true),
					  makeConst(OIDOID, -1, InvalidOid, sizeof(Oid),
								ObjectIdGetDatum(call->funcid), false, true));
	substitute = makeFuncExpr(copy_default, call->funcresulttype,
							  list_concat(args, call->args),
							  call->funccollid, call->inputcollid,
							  COERCE_EXPLICIT_CALL);
	return is_expensive(substitute) ? (Node *) substitute : NULL;
}

/*
 * _snowflake_copy_support(internal) returns internal
 */
Datum
snowflake_copy_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	Node	   *result = NULL;

	if (IsA(request, SupportRequestSimplify))
		result = snowflake_copy_substitute(((SupportRequestSimplify *) request)->fcall);
	PG_RETURN_POINTER(result);
}

/*
 * Does a COPY FROM read a row whose defaults were prepared in this memory
 * context?  It has its error context while it reads rows.
 */
static bool
is_read_by_copy(MemoryContext context)
{
	ErrorContextCallback *frame;

	for (frame = error_context_stack; frame != NULL; frame = frame->previous)
	{
		if (frame->callback == CopyFromErrorCallback &&
			((CopyFromState) frame->arg)->copycontext == context)
			return true;
	}
	return false;
}

/*
 * Is this a call that snowflake_copy_substitute() made?  Otherwise, whoever can create a
 * table could have any function called, with any arguments.
 */
static bool
is_sealed(FunctionCallInfo fcinfo)
{
	return PG_NARGS() >= OWN_ARGUMENTS && !PG_ARGISNULL(SEAL_ARGUMENT) &&
		PG_GETARG_POINTER(SEAL_ARGUMENT) == seal;
}

/*
 * The call that was replaced, for a function that looks at its expression.
 */
static Node *
substituted_call(const FmgrInfo *flinfo)
{
	const FuncExpr *substitute = castNode(FuncExpr, flinfo->fn_expr);
	const Const *function = list_nth_node(Const, substitute->args, FUNCTION_ARGUMENT);

	return (Node *) makeFuncExpr(DatumGetObjectId(function->constvalue),
								 substitute->funcresulttype,
								 list_copy_tail(substitute->args, OWN_ARGUMENTS),
								 substitute->funccollid, substitute->inputcollid,
								 COERCE_EXPLICIT_CALL);
}

/*
 * Prepare the call of the function that an argument names.
 */
static FunctionCallInfo
prepare_call(FunctionCallInfo fcinfo)
{
	MemoryContext context = fcinfo->flinfo->fn_mcxt;
	MemoryContext caller = MemoryContextSwitchTo(context);
	int			nargs = PG_NARGS() - OWN_ARGUMENTS;
	FmgrInfo   *function = palloc_object(FmgrInfo);
	FunctionCallInfo call = palloc(SizeForFunctionCallInfo(nargs));

	fmgr_info_cxt(PG_GETARG_OID(FUNCTION_ARGUMENT), function, context);
	fmgr_info_set_expr(substituted_call(fcinfo->flinfo), function);
	InitFunctionCallInfoData(*call, function, nargs, PG_GET_COLLATION(),
							 NULL, NULL);
	MemoryContextSwitchTo(caller);
	return call;
}

/*
 * Call a function with the arguments that are meant for it.
 */
static Datum
pass_call(FunctionCallInfo call, FunctionCallInfo fcinfo)
{
	Datum		result;
	int			n;

	for (n = 0; n < call->nargs; n++)
	{
		call->args[n] = fcinfo->args[OWN_ARGUMENTS + n];
		if (call->args[n].isnull && call->flinfo->fn_strict)
			PG_RETURN_NULL();
	}
	call->isnull = false;
	result = FunctionCallInvoke(call);
	fcinfo->isnull = call->isnull;
	return result;
}

/*
 * _snowflake_copy_default(internal, VARIADIC "any") returns internal
 */
Datum
snowflake_copy_default(PG_FUNCTION_ARGS)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;

	/* Look at no argument before this is clear. */
	if (!is_read_by_copy(flinfo->fn_mcxt))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("default that COPY FROM prepared was evaluated outside of COPY FROM"),
				 errdetail("Several rows might have the same key."),
				 errhint("Look for another module that executes COPY in place of the server.")));
	if (!is_sealed(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("_snowflake_copy_default() cannot be called in SQL")));

	if (flinfo->fn_extra == NULL)
		flinfo->fn_extra = prepare_call(fcinfo);
	return pass_call(flinfo->fn_extra, fcinfo);
}
