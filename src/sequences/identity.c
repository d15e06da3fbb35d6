/*-------------------------------------------------------------------------
 *
 * identity.c
 *	  Identity columns: their values come from our nextval().
 *
 * What the rewriter makes of an identity column is not a call, but an expression
 * node with the sequence, a NextValueExpr, which the server evaluates by itself.  So
 * the planner replaces it by a call: in queries that write a table with an
 * identity column, and in those that rules made of others, because NEW.id in a rule
 * is the same node, in whatever query.  COPY plans no query; see copy_identity.c.
 *
 * A call is put in for local sequences, too: a plan does not depend on the sequence
 * in the node, so it would not be made again when the kind changes.
 *
 * Who may insert may have the number: like the server, nobody asks for privileges
 * on the sequence.  This must be true of these calls alone.  So the argument of such
 * a call is marked.  No text of SQL can have the mark: type modifiers of constants
 * come from casts, and regclass has none.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/identity.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

#include "sequences/attach.h"
#include "sequences/copy_identity.h"
#include "sequences/identity.h"
#include "shared/compat.h"

static planner_hook_type prev_planner = NULL;

/*
 * Does a query write a table that has an identity column?
 */
static bool
writes_identity(const Query *query)
{
	Relation	relation;
	bool		found = false;

	if (query->commandType == CMD_SELECT || query->resultRelation == 0)
		return false;
	relation = relation_open(rt_fetch(query->resultRelation, query->rtable)->relid,
							 NoLock);
	for (int i = 0; i < RelationGetNumberOfAttributes(relation) && !found; i++)
		found = TupleDescAttr(RelationGetDescr(relation), i)->attidentity != '\0';
	relation_close(relation, NoLock);
	return found;
}

/*
 * Can a query have values of identity columns?
 */
static bool
may_have_identity(const Query *query)
{
	ListCell   *cell;

	if (query->querySource != QSRC_ORIGINAL || writes_identity(query))
		return true;
	if (!query->hasModifyingCTE)
		return false;
	foreach(cell, query->cteList)
	{
		if (may_have_identity(castNode(Query, lfirst_node(CommonTableExpr, cell)->ctequery)))
			return true;
	}
	return false;
}

/*
 * The call in place of a value, of the type of the column.
 */
static Node *
make_call(const NextValueExpr * value, Oid function)
{
	Node	   *call = (Node *) snowflake_marked_call(function, value->seqid);
	Oid			cast = value->typeId == INT2OID ? F_INT2_INT8 : F_INT4_INT8;

	if (value->typeId == INT8OID)
		return call;
	return (Node *) makeFuncExpr(cast, value->typeId, list_make1(call), InvalidOid,
								 InvalidOid, COERCE_IMPLICIT_CAST);
}

static Node *
replace_values(Node *node, void *function)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, NextValueExpr))
		return make_call((NextValueExpr *) node, *(Oid *) function);
	if (IsA(node, Query))
		return (Node *) query_tree_mutator((Query *) node, replace_values, function, 0);
	return expression_tree_mutator(node, replace_values, function);
}

static PlannedStmt *
plan_query(Query *query, const char *text, int options,
		   ParamListInfo params SNOWFLAKE_PLANNER_PARAMETER)
{
	Oid			function;

	if (may_have_identity(query) &&
		OidIsValid(function = snowflake_find_nextval()))
		query = query_tree_mutator(query, replace_values, &function, 0);
	if (prev_planner)
		return prev_planner(query, text, options, params SNOWFLAKE_PLANNER_ARGUMENT);
	return standard_planner(query, text, options, params SNOWFLAKE_PLANNER_ARGUMENT);
}

/*
 * Before a utility statement, which can be COPY FROM.
 */
SnowflakeCopiedTable *
snowflake_prepare_copy(const Node *statement)
{
	if (!IsA(statement, CopyStmt) || !((const CopyStmt *) statement)->is_from ||
		RecoveryInProgress() || !OidIsValid(snowflake_find_nextval()))
		return NULL;
	return snowflake_begin_identities((const CopyStmt *) statement);
}

void
snowflake_watch_identities(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
	snowflake_watch_copies();
}
