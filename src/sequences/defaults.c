/*-------------------------------------------------------------------------
 *
 * defaults.c
 *	  The sequence of a default, as it was written or stored.
 *
 * Only a default that is nextval() of a constant has one.  The constant may
 * be a name that is looked up whenever the default is evaluated, nextval('s'::text);
 * then it is what the name means now.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/defaults.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "parser/parser.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/varlena.h"

#include "sequences/defaults.h"

/*
 * The sequence of a name, or InvalidOid.
 */
static Oid
find_sequence(text *name)
{
	RangeVar   *range = makeRangeVarFromNameList(textToQualifiedNameList(name));
	Oid			relid = RangeVarGetRelid(range, NoLock, true);

	return OidIsValid(relid) && get_rel_relkind(relid) == RELKIND_SEQUENCE ?
		relid : InvalidOid;
}

/*
 * The constant that an argument is, with or without a type; NULL if it is none.
 */
static const char *
get_raw_string(const Node *node)
{
	const		A_Const *constant;

	while (IsA(node, TypeCast))
		node = ((const TypeCast *) node)->arg;
	if (!IsA(node, A_Const))
		return NULL;
	constant = (const A_Const *) node;
	if (constant->isnull || nodeTag(&constant->val) != T_String)
		return NULL;
	return constant->val.sval.sval;
}

/*
 * A default as it was written, without its casts.
 */
Node *
snowflake_strip_casts(Node *expression)
{
	while (expression != NULL && IsA(expression, TypeCast))
		expression = ((TypeCast *) expression)->arg;
	return expression;
}

/*
 * The sequence of a default as it was written, or InvalidOid.
 */
Oid
snowflake_sequence_in_raw_default(Node *expression)
{
	const		FuncCall *call = (const FuncCall *) snowflake_strip_casts(expression);
	const char *name;

	if (call == NULL || !IsA(call, FuncCall) ||
		strcmp(strVal(llast(call->funcname)), "nextval") != 0 ||
		list_length(call->args) != 1)
		return InvalidOid;
	name = get_raw_string(linitial(call->args));
	return name != NULL ? find_sequence(cstring_to_text(name)) : InvalidOid;
}

/*
 * The sequence that nextval() gets as its argument, or InvalidOid.
 */
static Oid
get_argument(const Node *argument)
{
	const Const *constant = (const Const *) argument;
	const FuncExpr *cast = (const FuncExpr *) argument;

	if (IsA(argument, Const) && !constant->constisnull)
		return DatumGetObjectId(constant->constvalue);
	if (!IsA(argument, FuncExpr) || cast->funcid != F_REGCLASS)
		return InvalidOid;
	argument = strip_implicit_coercions(linitial(cast->args));
	constant = (const Const *) argument;
	if (!IsA(argument, Const) || constant->constisnull)
		return InvalidOid;
	return find_sequence(DatumGetTextPP(constant->constvalue));
}

static bool
find_nextval(Node *node, void *found)
{
	const FuncExpr *call = (const FuncExpr *) node;

	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr) && call->funcid == F_NEXTVAL)
	{
		*(Oid *) found = get_argument(linitial(call->args));
		return true;
	}
	return expression_tree_walker(node, find_nextval, found);
}

/*
 * The sequence of the default of a column, or InvalidOid.
 */
Oid
snowflake_sequence_in_default(Oid relid, const char *column)
{
	AttrNumber	attnum = get_attnum(relid, column);
	Relation	relation;
	Oid			found = InvalidOid;

	if (attnum <= 0)
		return InvalidOid;
	relation = try_relation_open(relid, AccessShareLock);
	if (relation == NULL)
		return InvalidOid;
	(void) find_nextval(build_column_default(relation, attnum), &found);
	/* The statement takes its own lock, at once. */
	relation_close(relation, AccessShareLock);
	return found;
}

/*
 * A default for a sequence, like the one that the server makes of serial.
 */
Node *
snowflake_make_raw_default(const RangeVar *sequence)
{
	A_Const    *name = makeNode(A_Const);
	TypeCast   *cast = makeNode(TypeCast);

	name->val.sval.type = T_String;
	name->val.sval.sval = quote_qualified_identifier(sequence->schemaname,
													 sequence->relname);
	name->location = -1;
	cast->arg = (Node *) name;
	cast->typeName = SystemTypeName("regclass");
	cast->location = -1;
	return (Node *) makeFuncCall(SystemFuncName("nextval"), list_make1(cast),
								 COERCE_EXPLICIT_CALL, -1);
}
