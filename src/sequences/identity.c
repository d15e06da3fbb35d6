/*-------------------------------------------------------------------------
 *
 * identity.c
 *	  Identity columns, for lastval().
 *
 * The value of an identity column comes from an expression node, not from a
 * function, so no support function sees it.  Where a query has such a node,
 * the planner puts a function around it that returns its argument, and notes
 * that a sequence of the server was the last.  Whoever else calls the function
 * gets the server's lastval(), and no more.
 *
 * Only queries that write a table with an identity column are searched.  COPY
 * and ALTER TABLE plan no query; see values.c for what lastval() does then.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/identity.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

#include "sequences/attach.h"
#include "sequences/identity.h"
#include "sequences/values.h"
#include "shared/compat.h"

static planner_hook_type prev_planner = NULL;

PG_FUNCTION_INFO_V1(snowflake_sequence_noted);

/*
 * Does a query write a table that has an identity column?
 */
static bool
writes_identity(const Query *query)
{
	Relation	relation;
	bool		found = false;
	ListCell   *cell;

	if (query->commandType != CMD_SELECT && query->resultRelation > 0)
	{
		relation = relation_open(rt_fetch(query->resultRelation, query->rtable)->relid,
								 NoLock);
		for (int i = 0; i < RelationGetNumberOfAttributes(relation) && !found; i++)
			found = TupleDescAttr(RelationGetDescr(relation), i)->attidentity != '\0';
		relation_close(relation, NoLock);
	}
	if (!query->hasModifyingCTE)
		return found;
	foreach(cell, query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, cell);

		found = found || writes_identity(castNode(Query, cte->ctequery));
	}
	return found;
}

/*
 * Put the function around each value of an identity column.
 */
static Node *
note_values(Node *node, void *function)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, NextValueExpr))
		return (Node *) makeFuncExpr(*(Oid *) function,
									 ((NextValueExpr *) node)->typeId,
									 list_make1(node), InvalidOid, InvalidOid,
									 COERCE_EXPLICIT_CALL);
	if (IsA(node, Query))
		return (Node *) query_tree_mutator((Query *) node, note_values, function, 0);
	return expression_tree_mutator(node, note_values, function);
}

static PlannedStmt *
plan_query(Query *query, const char *text, int options,
		   ParamListInfo params SNOWFLAKE_PLANNER_PARAMETER)
{
	Oid			function;

	if ((query->commandType != CMD_SELECT || query->hasModifyingCTE) &&
		writes_identity(query) &&
		OidIsValid(function = snowflake_find_noted()))
		query = query_tree_mutator(query, note_values, &function, 0);
	if (prev_planner)
		return prev_planner(query, text, options, params SNOWFLAKE_PLANNER_ARGUMENT);
	return standard_planner(query, text, options, params SNOWFLAKE_PLANNER_ARGUMENT);
}

void
snowflake_watch_identities(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
}

/*
 * snowflake_sequence_noted(anyelement) returns anyelement
 */
Datum
snowflake_sequence_noted(PG_FUNCTION_ARGS)
{
	snowflake_note_server_sequence();
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}
