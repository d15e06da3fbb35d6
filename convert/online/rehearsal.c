/*-------------------------------------------------------------------------
 *
 * rehearsal.c
 *	  Whether what a swap creates again accepts the new columns.
 *
 * A swap creates views, policies, triggers, defaults and row filters again
 * from their text.  That fails if one of them calls a function that accepts
 * integers only.  So the text is parsed before the first change, when the
 * columns have their new types.
 *
 * They have them in a subtransaction that is always rolled back, in which
 * pg_attribute is changed, and nothing else: no table is rewritten or locked
 * against clients, no other session sees anything, and no event trigger is
 * fired.  Only parse analysis looks at the columns
 * then, which does not read the rows.  A copy of the table would not do:
 * functions that accept a row of the table do not accept one of its copy, and
 * GROUP BY needs its primary key.
 *
 * Who could read a row meanwhile would have bytes of it, and beyond it, taken for
 * what they are not.  And parsing does call code: a constant of an array or a
 * composite type with a domain in it is checked by the domain's constraint.  So
 * no function may be called but those of the server that are immutable, and so
 * read no table.
 *
 * The tables are swapped one by one, and a view of several of them is created
 * again in each of their swaps.  So each swap is rehearsed after the one before
 * it.  The columns of a view get the types that they have then, for the views
 * that depend on it.
 *
 * From the first phase to the swap, a table has more columns than before it,
 * and after it.  The server adds them to a list of column names that a view
 * has, which then has more names than there are columns.  So such lists are
 * obstacles, too.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/rehearsal.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/heap.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "parser/analyze.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/online/catalog_rows.h"
#include "convert/online/locks.h"
#include "convert/online/rehearsal.h"
#include "convert/online/steps.h"
#include "convert/online/swap.h"

/* A column that becomes bigint. */
typedef struct Column
{
	Oid			relid;
	Oid			swap;			/* the table with which this one is swapped */
	AttrNumber	attnum;
	char	   *name;
	char	   *new_name;
} Column;

/* The swap of a table, and of its partitions. */
typedef struct Swap
{
	Oid			relid;
	List	   *locked;			/* relations */
	List	   *statements;
} Swap;

typedef struct Rehearsal
{
	bool		has_locks;		/* on what it changes: did it begin? */
	List	   *swaps;
	List	   *columns;
	Oid			swap;			/* the present one */
	List	   *failed;			/* descriptions of what cannot be created */
	List	  **obstacles;
	Node	   *statement;		/* the present one */
	char	   *names;			/* what has a list of column names in it */
} Rehearsal;

/*
 * Change the type of a column, until the subtransaction is rolled back.
 */
static void
change_type(Oid relid, AttrNumber attnum, Oid type, int32 typmod,
			Oid collation)
{
	Relation	catalog = table_open(AttributeRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy2(ATTNUM, ObjectIdGetDatum(relid),
											Int16GetDatum(attnum));
	Form_pg_attribute attribute;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for attribute %d of relation %u",
			 attnum, relid);
	attribute = (Form_pg_attribute) GETSTRUCT(tuple);
	attribute->atttypid = type;
	attribute->atttypmod = typmod;
	attribute->attcollation = collation;
	attribute->attstorage = get_typstorage(type);
	get_typlenbyvalalign(type, &attribute->attlen, &attribute->attbyval,
						 &attribute->attalign);
	/* It would be one of the old type. */
	attribute->atthasmissing = false;
	CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(catalog, RowExclusiveLock);
}

/*
 * Has a table columns that the present swap changes?
 */
static bool
is_changed(const Rehearsal *rehearsal, Oid relid)
{
	ListCell   *cell;

	foreach(cell, rehearsal->columns)
	{
		const Column *column = lfirst(cell);

		if (column->relid == relid && column->swap == rehearsal->swap)
			return true;
	}
	return false;
}

/*
 * The relation whose rows an entry of a range table has, if the present swap changes
 * its columns.
 */
static Oid
changed_relation_of(const Rehearsal *rehearsal, const RangeTblEntry *rte)
{
	ListCell   *cell;

	if (rte->rtekind == RTE_RELATION)
		return is_changed(rehearsal, rte->relid) ? rte->relid : InvalidOid;
	if (rte->rtekind != RTE_FUNCTION)
		return InvalidOid;
	foreach(cell, rte->functions)
	{
		Oid			type = exprType(lfirst_node(RangeTblFunction, cell)->funcexpr);
		Oid			relid = get_typ_typrelid(getBaseType(type));

		if (is_changed(rehearsal, relid))
			return relid;
	}
	return InvalidOid;
}

/*
 * What has a list of column names, some of which the present swap changes?  A
 * function in FROM always is printed with one, which the new columns are not
 * added to.  So there would be no error, but columns with the names of others.
 */
static char *
find_list(const Rehearsal *rehearsal, const RangeTblEntry *rte)
{
	Oid			relid = changed_relation_of(rehearsal, rte);

	if (rte->alias == NULL || rte->alias->colnames == NIL || !OidIsValid(relid))
		return NULL;
	return psprintf(rte->rtekind == RTE_RELATION ?
					"has a list of column names for table %s" :
					"calls a function in FROM that returns rows of table %s",
					snowflake_relation_name(relid));
}

/*
 * Find such lists in a query or an expression.  A join with a name of its own may be
 * printed with one, too.
 */
static bool
find_names(Node *node, void *context)
{
	Rehearsal  *rehearsal = context;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;
		ListCell   *cell;

		foreach(cell, query->rtable)
		{
			rehearsal->names = find_list(rehearsal, lfirst_node(RangeTblEntry, cell));
			if (rehearsal->names != NULL)
				return true;
		}
		return query_tree_walker(query, find_names, context, 0);
	}
	if (IsA(node, JoinExpr) && ((JoinExpr *) node)->alias != NULL)
	{
		rehearsal->names = psprintf("has a name for join %s",
									quote_identifier(((JoinExpr *) node)->alias->aliasname));
		return true;
	}
	return expression_tree_walker(node, find_names, context);
}

/*
 * The relation that a statement names, if it is of this owner.
 */
static Oid
find_relation(const RangeVar *name)
{
	Oid			relid = RangeVarGetRelid(name, AccessShareLock, false);

	return snowflake_table_owner(relid) == GetUserId() ? relid : InvalidOid;
}

/*
 * Parse a view, and have its columns the types that it gets.
 */
static Node *
parse_view(const ViewStmt * statement)
{
	Oid			relid = find_relation(statement->view);
	Query	   *query;
	ListCell   *cell;

	if (!OidIsValid(relid) || get_rel_relkind(relid) != RELKIND_VIEW)
		return NULL;
	query = transformStmt(make_parsestate(NULL), statement->query);
	foreach(cell, query->targetList)
	{
		const TargetEntry *target = lfirst_node(TargetEntry, cell);
		Node	   *value = (Node *) target->expr;

		if (!target->resjunk &&
			exprType(value) != get_atttype(relid, target->resno))
			change_type(relid, target->resno, exprType(value),
						exprTypmod(value), exprCollation(value));
	}
	return (Node *) query;
}

/*
 * Parse a condition on a row of a relation, or on two.
 */
static Node *
parse_condition(const RangeVar *name, const char *alias, const char *alias2,
				Node *condition, ParseExprKind kind)
{
	Oid			relid = find_relation(name);
	ParseState *pstate = make_parsestate(NULL);
	const char *const aliases[] = {alias, alias2};
	Relation	relation;
	Node	   *result;

	if (condition == NULL || !OidIsValid(relid))
		return NULL;
	relation = relation_open(relid, AccessShareLock);
	for (int i = 0; i < (alias2 == NULL ? 1 : 2); i++)
	{
		ParseNamespaceItem *item;

		item = addRangeTableEntryForRelation(pstate, relation, AccessShareLock,
											 aliases[i] == NULL ? NULL : makeAlias(aliases[i], NIL),
											 false, false);
		addNSItemToQuery(pstate, item, false, true, true);
	}
	result = transformWhereClause(pstate, condition, kind, "WHERE");
	assign_expr_collations(pstate, result);
	relation_close(relation, NoLock);
	return result;
}

/*
 * The name of a column before the swap.
 */
static const char *
old_name(const Rehearsal *rehearsal, Oid relid, const char *new_name)
{
	ListCell   *cell;

	foreach(cell, rehearsal->columns)
	{
		const Column *column = lfirst(cell);

		if (column->relid == relid && strcmp(column->new_name, new_name) == 0)
			return column->name;
	}
	return new_name;
}

/*
 * The default that a statement sets, if it sets one.
 */
static const AlterTableCmd *
find_default(const AlterTableStmt *statement)
{
	const AlterTableCmd *command = linitial_node(AlterTableCmd, statement->cmds);

	return command->subtype == AT_ColumnDefault && command->def != NULL ?
		command : NULL;
}

static Node *
parse_default(const Rehearsal *rehearsal, const AlterTableStmt *statement)
{
	const AlterTableCmd *command = find_default(statement);
	Oid			relid = find_relation(statement->relation);
	const char *name = old_name(rehearsal, relid, command->name);
	Oid			type;
	int32		typmod;
	Oid			collation;

	if (!OidIsValid(relid))
		return NULL;
	get_atttypetypmodcoll(relid, get_attnum(relid, name), &type, &typmod,
						  &collation);
	return cookDefault(make_parsestate(NULL), command->def, type, typmod, name,
					   '\0');
}

/*
 * The table and its row filter that a statement adds to a publication.
 */
static const PublicationTable *
find_row_filter(const AlterPublicationStmt * statement)
{
	const		PublicationObjSpec *object = linitial_node(PublicationObjSpec,
														   statement->pubobjects);

	return object->pubtable != NULL && object->pubtable->whereClause != NULL ?
		object->pubtable : NULL;
}

static const char *
name_of(const RangeVar *relation)
{
	return quote_qualified_identifier(relation->schemaname, relation->relname);
}

/*
 * What a statement creates again.  NULL if it is none of these.
 */
static char *
describe(const Rehearsal *rehearsal, Node *node)
{
	switch (nodeTag(node))
	{
		case T_ViewStmt:
			return psprintf("view %s", name_of(((ViewStmt *) node)->view));
		case T_CreatePolicyStmt:
			return psprintf("policy %s of table %s",
							quote_identifier(((CreatePolicyStmt *) node)->policy_name),
							name_of(((CreatePolicyStmt *) node)->table));
		case T_CreateTrigStmt:
			{
				const		CreateTrigStmt *trigger = (CreateTrigStmt *) node;

				return trigger->whenClause == NULL ? NULL :
					psprintf("trigger %s of table %s",
							 quote_identifier(trigger->trigname),
							 name_of(trigger->relation));
			}
		case T_AlterTableStmt:
			{
				const AlterTableStmt *statement = (AlterTableStmt *) node;
				const AlterTableCmd *command = find_default(statement);
				Oid			relid;

				if (command == NULL)
					return NULL;
				relid = RangeVarGetRelid(statement->relation, AccessShareLock, false);
				return psprintf("default of column %s of %s %s",
								quote_identifier(old_name(rehearsal, relid, command->name)),
								statement->objtype == OBJECT_VIEW ? "view" : "table",
								name_of(statement->relation));
			}
		case T_AlterPublicationStmt:
			{
				const		AlterPublicationStmt *statement = (AlterPublicationStmt *) node;
				const		PublicationTable *table = find_row_filter(statement);

				return table == NULL ? NULL :
					psprintf("row filter of table %s in publication %s",
							 name_of(table->relation),
							 quote_identifier(statement->pubname));
			}
		default:
			return NULL;
	}
}

/*
 * Parse a statement as its execution would, and look for lists of names.
 */
static bool
try_statement(void *argument)
{
	Rehearsal  *rehearsal = argument;
	Node	   *node = rehearsal->statement;
	Node	   *result = NULL;
	Node	   *check = NULL;

	switch (nodeTag(node))
	{
		case T_ViewStmt:
			result = parse_view((ViewStmt *) node);
			break;
		case T_CreatePolicyStmt:
			{
				const		CreatePolicyStmt *policy = (CreatePolicyStmt *) node;

				result = parse_condition(policy->table, NULL, NULL,
										 policy->qual, EXPR_KIND_POLICY);
				check = parse_condition(policy->table, NULL, NULL,
										policy->with_check, EXPR_KIND_POLICY);
				break;
			}
		case T_CreateTrigStmt:
			result = parse_condition(((CreateTrigStmt *) node)->relation, "old", "new",
									 ((CreateTrigStmt *) node)->whenClause,
									 EXPR_KIND_TRIGGER_WHEN);
			break;
		case T_AlterTableStmt:
			result = parse_default(rehearsal, (AlterTableStmt *) node);
			break;
		default:
			{
				AlterPublicationStmt *alter = (AlterPublicationStmt *) node;
				const		PublicationTable *table = find_row_filter(alter);

				result = parse_condition(table->relation, NULL, NULL,
										 table->whereClause, EXPR_KIND_WHERE);
			}
	}
	if (!find_names(result, rehearsal))
		(void) find_names(check, rehearsal);
	return true;
}

static void
rehearse_statement(Rehearsal *rehearsal, const char *text)
{
	char	   *object;
	char	   *message;

	rehearsal->statement = linitial_node(RawStmt, raw_parser(text, RAW_PARSE_DEFAULT))->stmt;
	rehearsal->names = NULL;
	object = describe(rehearsal, rehearsal->statement);
	if (object == NULL || list_member(rehearsal->failed, makeString(object)))
		return;					/* or it has failed for another table */
	message = snowflake_convert_try(try_statement, rehearsal);
	if (message != NULL)
		snowflake_convert_add_obstacle(rehearsal->obstacles, object,
									   psprintf("%s cannot be created again: %s", object, message),
									   "Change or drop what does not accept values of type bigint.");
	else if (rehearsal->names != NULL)
		snowflake_convert_add_obstacle(rehearsal->obstacles, object,
									   psprintf("%s cannot be created again: it %s", object, rehearsal->names),
									   "Write views and policies without column aliases for the table, as in FROM t AS x (a, b), without a name for a join, and without functions in FROM that return its rows, because the order of its columns changes.");
	else
		return;
	rehearsal->failed = lappend(rehearsal->failed, makeString(object));
}

static void
rehearse_swap(Rehearsal *rehearsal, const Swap *swap)
{
	ListCell   *cell;

	rehearsal->swap = swap->relid;
	foreach(cell, rehearsal->columns)
	{
		const Column *column = lfirst(cell);

		if (column->swap != swap->relid)
			continue;
		LockRelationOid(column->relid, AccessShareLock);
		change_type(column->relid, column->attnum, INT8OID, -1, InvalidOid);
	}
	CommandCounterIncrement();
	foreach(cell, swap->statements)
		rehearse_statement(rehearsal, lfirst(cell));
	CommandCounterIncrement();
}

/* The hook of another module, while refuse_call() may be in its place. */
static object_access_hook_type previous_hook = NULL;

/*
 * Fail if a function that might read rows is about to be called.
 */
static void
refuse_call(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id,
			void *argument)
{
	if (access == OAT_FUNCTION_EXECUTE &&
		(object_id >= FirstNormalObjectId ||
		 func_volatile(object_id) != PROVOLATILE_IMMUTABLE))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a constant of it calls function %s",
						format_procedure(object_id))));
	if (previous_hook != NULL)
		previous_hook(access, class_id, object_id, sub_id, argument);
}

static bool
rehearse(void *argument)
{
	Rehearsal  *rehearsal = argument;
	List	   *relids = NIL;
	ListCell   *cell;

	foreach(cell, rehearsal->swaps)
		relids = list_concat_unique_oid(relids, ((Swap *) lfirst(cell))->locked);

	rehearsal->has_locks =
		snowflake_online_lock_rows(snowflake_online_with_partitions(relids));
	if (!rehearsal->has_locks)
		return false;
	object_access_hook = refuse_call;
	foreach(cell, rehearsal->swaps)
		rehearse_swap(rehearsal, lfirst(cell));
	return false;
}

/*
 * The swaps, in their order, of tables of this owner.
 */
static List *
find_swaps(const SnowflakeConversion *conversion, const List *steps)
{
	List	   *swaps = NIL;
	ListCell   *cell;

	foreach(cell, steps)
	{
		const SnowflakeOnlineStep *step = lfirst(cell);
		Swap	   *swap;
		List	   *after_drop;

		if (step->kind != SNOWFLAKE_STEP_SWAP ||
			snowflake_table_owner(step->relid) != GetUserId())
			continue;
		swap = palloc_object(Swap);
		swap->relid = step->relid;
		swap->locked = snowflake_convert_ask_oids(conversion, step->relid, sql_swap_locks);
		snowflake_online_swap_statements(conversion, step->relid, &swap->statements,
										 &after_drop);
		swap->statements = list_concat(swap->statements, after_drop);
		swaps = lappend(swaps, swap);
	}
	return swaps;
}

static List *
find_columns(const SnowflakeConversion *conversion)
{
	List	   *columns = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_swapped_together))
	{
		const SnowflakeRow *row = lfirst(cell);
		Column	   *column = palloc0_object(Column);

		column->relid = snowflake_convert_oid(row, "relid");
		column->attnum = (AttrNumber) snowflake_convert_number(row, "attnum");
		column->name = snowflake_convert_text(row, "attname");
		column->new_name = snowflake_convert_text(row, "newname");
		column->swap = snowflake_convert_oid(row, "team");
		columns = lappend(columns, column);
	}
	return columns;
}

/*
 * Add what cannot be created again to the obstacles.  Returns false if it is not
 * known, because somebody has changed privileges just now.
 */
bool
snowflake_online_rehearse_swaps(const SnowflakeConversion *conversion, const List *steps,
								List **obstacles)
{
	Rehearsal	rehearsal = {
		.swaps = find_swaps(conversion, steps),
		.columns = find_columns(conversion),
		.obstacles = obstacles,
	};
	ErrorData  *error;

	previous_hook = object_access_hook;
	(void) snowflake_convert_do(rehearse, &rehearsal, &error);
	object_access_hook = previous_hook;
	if (error != NULL)
		ReThrowError(error);
	return rehearsal.has_locks;
}
