/*-------------------------------------------------------------------------
 *
 * defaults.c
 *	  The sequences of a default, as it was written.
 *
 * These are those with nextval() of a constant.  The constant may be a name that is
 * looked up whenever the default is evaluated, nextval('s'::text); then it is what the
 * name means now.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/defaults.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

#include "new_tables/defaults.h"

/*
 * The sequence of a name, or InvalidOid.  Nothing here is an error: the server may never
 * look the name up.
 */
static Oid
find_sequence(const char *name)
{
	List	   *names;
	Oid			relid = InvalidOid;

	if (!SplitIdentifierString(pstrdup(name), '.', &names))
		return InvalidOid;
	if (list_length(names) == 1)
		relid = RelnameGetRelid(linitial(names));
	else if (list_length(names) > 1)
		relid = get_relname_relid(llast(names),
								  get_namespace_oid(list_nth(names, list_length(names) - 2), true));
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
 * Is a name that of the server's function?
 */
static bool
is_nextval(const List *name)
{
	return strcmp(strVal(llast(name)), "nextval") == 0 &&
		(list_length(name) == 1 || strcmp(strVal(linitial(name)), "pg_catalog") == 0);
}

static bool
find_raw_nextval(Node *node, void *found)
{
	const		FuncCall *call = (const FuncCall *) node;
	List	  **sequences = found;

	if (node == NULL)
		return false;
	if (IsA(node, FuncCall) && list_length(call->args) == 1 && is_nextval(call->funcname))
	{
		const char *name = get_raw_string(linitial(call->args));
		Oid			sequence = name != NULL ? find_sequence(name) : InvalidOid;

		if (OidIsValid(sequence))
			*sequences = list_append_unique_oid(*sequences, sequence);
	}
	return raw_expression_tree_walker(node, find_raw_nextval, found);
}

/*
 * The sequences of a default as it was written.
 */
List *
snowflake_sequences_in_raw_default(Node *expression)
{
	List	   *sequences = NIL;

	(void) find_raw_nextval(expression, &sequences);
	return sequences;
}
