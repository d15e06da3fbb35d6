/*-------------------------------------------------------------------------
 *
 * marked.c
 *	  Calls of nextval() that give identity columns their values.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/marked.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"

#include "sequences/marked.h"

/* The type modifier of an argument that is marked: none, but not the usual one. */
#define MARK	(-2)

/*
 * A call of nextval(), ours or the server's, that is marked.
 */
FuncExpr *
snowflake_marked_call(Oid function, Oid sequence)
{
	Const	   *argument = makeConst(REGCLASSOID, MARK, InvalidOid, sizeof(Oid),
									 ObjectIdGetDatum(sequence), false, true);

	return makeFuncExpr(function, INT8OID, list_make1(argument), InvalidOid,
						InvalidOid, COERCE_EXPLICIT_CALL);
}

/*
 * Is a call one that snowflake_marked_call() made?
 */
bool
snowflake_is_marked(const Node *call)
{
	const Node *argument;

	if (call == NULL || !IsA(call, FuncExpr) || ((const FuncExpr *) call)->args == NIL)
		return false;
	argument = linitial(((const FuncExpr *) call)->args);
	return IsA(argument, Const) && ((const Const *) argument)->consttype == REGCLASSOID &&
		((const Const *) argument)->consttypmod == MARK;
}

/*
 * Make a call one like any other.
 */
void
snowflake_unmark_call(FuncExpr *call)
{
	Const	   *argument = copyObject(linitial_node(Const, call->args));

	argument->consttypmod = -1;
	call->args = list_make1(argument);
}
