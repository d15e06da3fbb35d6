/*-------------------------------------------------------------------------
 *
 * compared.c
 *	  Columns that the database's own queries compare.
 *
 * A view that joins orders to users by orders.buyer = users.id knows what no name and no value
 * tells.  The server has the queries of views, rules, policies, and functions with BEGIN ATOMIC
 * as trees, in which a column is a number of a table.  So their comparisons by = are read there,
 * and each side is followed to the columns that it comes from: through joins, subqueries, WITH,
 * UNION, and views.
 *
 * Nothing is run, so it does not matter whose they are.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/compared.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "convert/columns/compared.h"
#include "shared/compat.h"

/* Queries in queries, and views of views, are followed so deep, and so many steps. */
#define MAX_DEPTH	100
#define MAX_STEPS	10000

/* The query of a view. */
typedef struct View
{
	Oid			relid;
	Query	   *query;
} View;

/* A search for comparisons. */
typedef struct Search
{
	List	   *views;
	List	   *queries;		/* that the node is in, the innermost one
								 * first */
	Query	   *subselect;		/* that a test such as IN is about */
	const char *where;
	List	   *comparisons;
	List	   *origins;		/* of the value that is followed */
	int			depth;
	int			steps;
} Search;

static void follow(Search *search, Node *node, List *queries);

/*
 * Follow a column of a query's result; the query is in the outer ones.
 */
static void
follow_result(Search *search, Query *query, int number, List *outer)
{
	List	   *queries = lcons(query, list_copy(outer));
	TargetEntry *entry = get_tle_by_resno(query->commandType == CMD_SELECT ?
										  query->targetList : query->returningList, number);
	ListCell   *cell;

	if (query->setOperations == NULL && entry != NULL)
		follow(search, (Node *) entry->expr, queries);
	if (query->setOperations == NULL)
		return;
	foreach(cell, query->rtable)
	{
		const RangeTblEntry *table = lfirst(cell);

		if (table->rtekind == RTE_SUBQUERY)
			follow_result(search, table->subquery, number, queries);
	}
}

/*
 * A column of a table, which may be a view.
 */
static void
follow_column(Search *search, Oid relid, AttrNumber attnum)
{
	SnowflakeOrigin *origin;
	ListCell   *cell;

	foreach(cell, search->views)
	{
		const View *view = lfirst(cell);

		if (view->relid == relid)
		{
			follow_result(search, view->query, attnum, NIL);
			return;
		}
	}
	foreach(cell, search->origins)
	{
		origin = lfirst(cell);
		if (origin->relid == relid && origin->attnum == attnum)
			return;
	}
	origin = palloc_object(SnowflakeOrigin);
	origin->relid = relid;
	origin->attnum = attnum;
	search->origins = lappend(search->origins, origin);
}

/*
 * A column of a query in WITH, which ends by the number of steps if it is recursive.
 */
static void
follow_with(Search *search, const RangeTblEntry *table, AttrNumber attnum, List *queries)
{
	List	   *outer = list_copy_tail(queries, table->ctelevelsup);
	ListCell   *cell;

	if (outer == NIL)
		return;
	foreach(cell, ((Query *) linitial(outer))->cteList)
	{
		CommonTableExpr *with = lfirst(cell);

		if (strcmp(with->ctename, table->ctename) == 0)
			follow_result(search, (Query *) with->ctequery, attnum, outer);
	}
}

static void
follow_var(Search *search, const Var *var, List *queries)
{
	List	   *own = list_copy_tail(queries, var->varlevelsup);
	const RangeTblEntry *table;

	if (own == NIL || var->varattno <= 0)
		return;
	table = rt_fetch(var->varno, ((Query *) linitial(own))->rtable);
	switch (table->rtekind)
	{
		case RTE_RELATION:
			follow_column(search, table->relid, var->varattno);
			break;
		case RTE_JOIN:
			follow(search, list_nth(table->joinaliasvars, var->varattno - 1), own);
			break;
		case RTE_SUBQUERY:
			follow_result(search, table->subquery, var->varattno, own);
			break;
		case RTE_CTE:
			follow_with(search, table, var->varattno, own);
			break;
		default:
			follow(search, snowflake_group_expression(table, var->varattno), own);
			break;
	}
}

/*
 * Follow a value to the columns that it comes from.
 */
static void
follow(Search *search, Node *node, List *queries)
{
	ListCell   *cell;

	CHECK_FOR_INTERRUPTS();
	if (node == NULL || search->depth >= MAX_DEPTH || search->steps++ >= MAX_STEPS)
		return;
	search->depth++;
	node = strip_implicit_coercions(node);
	if (IsA(node, Var))
		follow_var(search, (Var *) node, queries);
	else if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcformat == COERCE_EXPLICIT_CAST)
		follow(search, linitial(((FuncExpr *) node)->args), queries);
	else if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK)
		follow_result(search, search->subselect, ((Param *) node)->paramid, queries);
	else if (IsA(node, SubLink) && ((SubLink *) node)->subLinkType == EXPR_SUBLINK)
		follow_result(search, (Query *) ((SubLink *) node)->subselect, 1, queries);
	else if (IsA(node, CoalesceExpr))
		foreach(cell, ((CoalesceExpr *) node)->args)
			follow(search, lfirst(cell), queries);
	search->depth--;
}

static List *
find_origins(Search *search, Node *node)
{
	search->origins = NIL;
	search->steps = 0;
	follow(search, node, search->queries);
	return search->origins;
}

static void
add_comparisons(Search *search, const SnowflakeOrigin *one, const List *others)
{
	ListCell   *other;

	foreach(other, others)
	{
		SnowflakeComparison *comparison = palloc_object(SnowflakeComparison);

		comparison->one = *one;
		comparison->other = *(SnowflakeOrigin *) lfirst(other);
		comparison->where = search->where;
		search->comparisons = lappend(search->comparisons, comparison);
	}
}

static void
follow_operator(Search *search, const OpExpr *operator)
{
	List	   *ones;
	List	   *others;
	ListCell   *one;

	if (list_length(operator->args) != 2 ||
		!op_mergejoinable(operator->opno, exprType(linitial(operator->args))))
		return;
	ones = find_origins(search, linitial(operator->args));
	others = find_origins(search, lsecond(operator->args));
	foreach(one, ones)
		add_comparisons(search, lfirst(one), others);
}

static bool
walk(Node *node, void *context)
{
	Search	   *search = context;

	CHECK_FOR_INTERRUPTS();
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		search->queries = lcons(node, search->queries);
		(void) query_tree_walker((Query *) node, walk, search, QTW_IGNORE_JOINALIASES);
		search->queries = list_delete_first(search->queries);
		return false;
	}
	if (IsA(node, SubLink))
	{
		SubLink    *link = (SubLink *) node;
		Query	   *before = search->subselect;

		search->subselect = (Query *) link->subselect;
		(void) walk(link->testexpr, search);
		search->subselect = before;
		return walk(link->subselect, search);
	}
	if (IsA(node, OpExpr))
		follow_operator(search, (OpExpr *) node);
	return expression_tree_walker(node, walk, search);
}

/*
 * The query that the expressions of a policy are in.
 */
static Query *
query_of_table(Oid relid)
{
	Query	   *query = makeNode(Query);
	RangeTblEntry *table = makeNode(RangeTblEntry);

	table->rtekind = RTE_RELATION;
	table->relid = relid;
	query->commandType = CMD_SELECT;
	query->rtable = list_make1(table);
	return query;
}

/*
 * Find the columns that are compared by the queries that are about the schema.
 */
List *
snowflake_convert_find_comparisons(const SnowflakeConversion *conversion)
{
	List	   *rows = snowflake_convert_ask(conversion, sql_stored_queries);
	List	   *trees = NIL;
	Search		search = {0};
	ListCell   *cell;

	foreach(cell, rows)
	{
		Node	   *tree = stringToNode(snowflake_convert_text(lfirst(cell), "tree"));
		View	   *view = palloc_object(View);

		CHECK_FOR_INTERRUPTS();
		trees = lappend(trees, tree);
		view->relid = snowflake_convert_oid(lfirst(cell), "view");
		if (!OidIsValid(view->relid))
			continue;
		view->query = linitial_node(Query, (List *) tree);
		search.views = lappend(search.views, view);
	}
	foreach(cell, rows)
	{
		Oid			ruled = snowflake_convert_oid(lfirst(cell), "ruled");

		search.where = snowflake_convert_text(lfirst(cell), "name");
		search.queries = OidIsValid(ruled) ? list_make1(query_of_table(ruled)) : NIL;
		(void) walk(list_nth(trees, foreach_current_index(cell)), &search);
	}
	return search.comparisons;
}
