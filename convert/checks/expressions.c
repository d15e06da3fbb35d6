/*-------------------------------------------------------------------------
 *
 * expressions.c
 *	  Whether what depends on the columns accepts bigint, and the IDs to come.
 *
 * ALTER TABLE creates CHECK constraints, indexes, and statistics again from
 * their text, which is parsed with the new type of the column.  That fails, for
 * example, if a function or an operator class accepts integers only.  So the
 * text is parsed here, too, in the same way.
 *
 * After the conversion, INSERT fails if a CHECK constraint is false for a new
 * ID, or if an expression of an index or a generated column cannot be computed,
 * and ANALYZE if one of statistics cannot.  So the column is replaced by the ID,
 * and the expression evaluated.  Generated columns in it are computed from the
 * ID, too.  If the result depends on other columns, nothing is known.  A partition
 * is left out for IDs that it does not accept.  Rows with new IDs might not belong
 * into a child, nor into a partition with a CHECK constraint of its own, which may
 * describe its old rows: these get a notice only.
 *
 * INSERT also fails if a unique index has the same value for two IDs, such as
 * their first digits.  So each ID is compared with the one before it.
 *
 * Errors are caught in a subtransaction, and reported as obstacles.  The code
 * that is evaluated belongs to the owner of the table; tables of other owners,
 * and their partitions, are left out.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/checks/expressions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_oper.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/regproc.h"
#include "utils/rel.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/checks/expressions.h"

/* The column that an ID takes the place of. */
typedef struct Replacement
{
	AttrNumber	attnum;
	int64		id;
} Replacement;

/* What depends on a column, and what is found out about it. */
typedef struct Dependent
{
	const SnowflakeConversion *conversion;
	Oid			relid;			/* the table */
	AttrNumber	attnum;			/* the column */
	bool		is_check;
	bool		is_doubtful;	/* might rows with new IDs not belong there? */
	const char *text;			/* of a statement */
	const SnowflakeSample *sample;	/* NULL: only parse it */
	MemoryContext context;		/* for the values */
	Relation	relation;		/* the table, while it is open */
	Node	   *predicate;		/* of an index; true for others */
	bool		is_unique;		/* is it a unique index? */
	int			nrejected;		/* IDs for which it is false, or has the same
								 * value as for the one before */
} Dependent;

static Node *
replace_column(Node *node, void *context)
{
	const Replacement *replacement = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varattno == replacement->attnum)
		return (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
								  Int64GetDatum(replacement->id), false,
								  get_typbyval(INT8OID));
	return expression_tree_mutator(node, replace_column, context);
}

/*
 * The value of an expression if an ID takes the place of the column, as a
 * constant, unless it depends on other columns.  Fails as an INSERT would.
 */
static Node *
value_with_id(Node *expression, AttrNumber attnum, int64 id)
{
	Replacement replacement = {attnum, id};

	expression = eval_const_expressions(NULL, replace_column(expression, &replacement));
	if (IsA(expression, Const) || contain_var_clause(expression))
		return expression;

	/* A function that is not immutable. */
	return (Node *) evaluate_expr((Expr *) expression, exprType(expression),
								  exprTypmod(expression), exprCollation(expression));
}

/*
 * Is a value known, and not null?
 */
static bool
is_known(const Node *value)
{
	return IsA(value, Const) && !((const Const *) value)->constisnull;
}

static bool
are_known(const List *values)
{
	ListCell   *cell;

	foreach(cell, values)
	{
		if (!is_known(lfirst(cell)))
			return false;
	}
	return true;
}

/*
 * Is a value known, and false?
 */
static bool
is_false(const Node *value)
{
	return is_known(value) && !DatumGetBool(((const Const *) value)->constvalue);
}

/*
 * Does a condition become false if an ID takes the place of the column?
 */
bool
snowflake_convert_is_false(Node *condition, AttrNumber attnum, int64 id)
{
	return is_false(value_with_id(condition, attnum, id));
}

/*
 * Parse an expression, or a column of an index or of statistics.
 */
static Node *
parse_element(ParseState *pstate, const char *name, Node *expression)
{
	Node	   *result = expression;

	if (name != NULL)
	{
		ColumnRef  *column = makeNode(ColumnRef);

		column->fields = list_make1(makeString(pstrdup(name)));
		result = (Node *) column;
	}
	result = transformExpr(pstate, result, EXPR_KIND_OTHER);
	assign_expr_collations(pstate, result);
	return result;
}

/*
 * The expressions of an index, and of an exclusion constraint if there are
 * operators.  Fails if an operator class or operator does not accept the type
 * of a column or expression, as creating the index would.
 */
static List *
parse_index(ParseState *pstate, Dependent *dependent, const char *method_name,
			List *elements, List *operators, Node *predicate)
{
	Oid			method = get_index_am_oid(method_name, false);
	List	   *expressions = NIL;

	for (int i = 0; i < list_length(elements); i++)
	{
		IndexElem  *element = list_nth_node(IndexElem, elements, i);
		Node	   *expression = parse_element(pstate, element->name,
											   element->expr);
		Oid			type = exprType(expression);
		Oid			opclass = ResolveOpClass(element->opclass, type,
											 method_name, method);

		if (operators != NIL)
		{
			Oid			operator = compatible_oper_opid(list_nth(operators, i),
														type, type, false);

			if (!op_in_opfamily(operator, get_opclass_family(opclass)))
				ereport(ERROR,
						(errcode(ERRCODE_WRONG_OBJECT_TYPE),
						 errmsg("operator %s is not in the operator family of the index",
								format_operator(operator))));
		}
		expressions = lappend(expressions, expression);
	}
	if (predicate != NULL)
		dependent->predicate = parse_element(pstate, NULL, predicate);
	return expressions;
}

/*
 * The expressions of ALTER TABLE ... ADD EXCLUDE.
 */
static List *
parse_exclusion(ParseState *pstate, Dependent *dependent,
				const AlterTableStmt *statement)
{
	AlterTableCmd *command = linitial_node(AlterTableCmd, statement->cmds);
	Constraint *constraint = castNode(Constraint, command->def);
	List	   *elements = NIL;
	List	   *operators = NIL;
	ListCell   *cell;

	foreach(cell, constraint->exclusions)
	{
		elements = lappend(elements, linitial(lfirst(cell)));
		operators = lappend(operators, lsecond(lfirst(cell)));
	}
	return parse_index(pstate, dependent, constraint->access_method, elements,
					   operators, constraint->where_clause);
}

/*
 * Have the columns that are converted be bigint.
 */
static void
widen_columns(const SnowflakeConversion *conversion, Oid relid,
			  ParseNamespaceItem *item)
{
	for (int attnum = 1; attnum <= list_length(item->p_names->colnames); attnum++)
	{
		ParseNamespaceColumn *column = &item->p_nscolumns[attnum - 1];

		if ((column->p_vartype == INT2OID || column->p_vartype == INT4OID) &&
			snowflake_convert_find_target(conversion, relid, attnum) >= 0)
			column->p_vartype = INT8OID;
	}
}

/*
 * The expressions of the statement by which ALTER TABLE would create a dependent again,
 * parsed with the columns that are converted as bigint.  Those of an index do not include its
 * predicate.
 */
static List *
parse_dependent(Dependent *dependent)
{
	ParseState *pstate = make_parsestate(NULL);
	List	   *parsed = raw_parser(dependent->text, RAW_PARSE_DEFAULT);
	Node	   *statement = linitial_node(RawStmt, parsed)->stmt;
	List	   *expressions = NIL;
	ParseNamespaceItem *item;
	ListCell   *cell;

	item = addRangeTableEntryForRelation(pstate, dependent->relation,
										 AccessShareLock, NULL, false, true);
	addNSItemToQuery(pstate, item, false, true, true);
	widen_columns(dependent->conversion, dependent->relid, item);

	if (IsA(statement, AlterTableStmt))
		return parse_exclusion(pstate, dependent, (AlterTableStmt *) statement);
	if (IsA(statement, IndexStmt))
	{
		IndexStmt  *index = (IndexStmt *) statement;

		dependent->is_unique = index->unique;
		return parse_index(pstate, dependent, index->accessMethod,
						   index->indexParams, NIL, index->whereClause);
	}
	if (IsA(statement, CreateStatsStmt))
	{
		foreach(cell, ((CreateStatsStmt *) statement)->exprs)
		{
			StatsElem  *element = lfirst_node(StatsElem, cell);

			expressions = lappend(expressions,
								  parse_element(pstate, element->name,
												element->expr));
		}
		return expressions;
	}
	foreach(cell, castNode(SelectStmt, statement)->targetList)
	{
		expressions = lappend(expressions,
							  parse_element(pstate, NULL,
											lfirst_node(ResTarget, cell)->val));
	}
	return expressions;
}

/*
 * Replace generated columns by their expressions, with the casts to the types of
 * these columns, which the text of an expression does not show.  A generated
 * column does not depend on another one.
 */
static Node *
expand_generated(Node *node, void *context)
{
	const Dependent *dependent = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		AttrNumber	attnum = ((Var *) node)->varattno;
		TupleDesc	columns = RelationGetDescr(dependent->relation);

		if (attnum > 0 && attnum != dependent->attnum &&
			TupleDescAttr(columns, attnum - 1)->attgenerated != '\0')
			return build_column_default(dependent->relation, attnum);
	}
	return expression_tree_mutator(node, expand_generated, context);
}

/*
 * Which rows a partition accepts, if that depends on the column; otherwise true.
 */
static Node *
partition_bounds(const Dependent *dependent)
{
	List	   *bounds = RelationGetPartitionQual(dependent->relation);
	Bitmapset  *attnums = NULL;

	pull_varattnos((Node *) bounds, 1, &attnums);
	if (!bms_is_member(dependent->attnum - FirstLowInvalidHeapAttributeNumber, attnums))
		bounds = NIL;
	return (Node *) make_ands_explicit(bounds);
}

/*
 * Parse a dependent, and evaluate it with the IDs of the sample.
 */
static bool
examine(void *argument)
{
	Dependent  *dependent = argument;
	const SnowflakeSample *sample = dependent->sample;
	List	   *expressions;
	Node	   *bounds;
	Node	   *predicate;
	List	   *previous = NIL;

	dependent->relation = relation_open(dependent->relid, AccessShareLock);
	dependent->predicate = makeBoolConst(true, false);
	expressions = parse_dependent(dependent);
	expressions = (List *) expand_generated((Node *) expressions, dependent);
	predicate = expand_generated(dependent->predicate, dependent);
	bounds = partition_bounds(dependent);
	for (int i = 0; sample != NULL && i < sample->count; i++)
	{
		Node	   *indexed = value_with_id(predicate, dependent->attnum,
											sample->ids[i]);
		List	   *values = list_make1(indexed);
		ListCell   *cell;

		/*
		 * Nothing is computed for a row that is not in the table, or the
		 * index.
		 */
		if (snowflake_convert_is_false(bounds, dependent->attnum, sample->ids[i]) ||
			is_false(indexed))
			continue;
		foreach(cell, expressions)
		{
			Node	   *value = value_with_id(lfirst(cell), dependent->attnum,
											  sample->ids[i]);

			if (dependent->is_check && is_false(value))
				dependent->nrejected++;
			values = lappend(values, value);
		}

		/* The same value is equal for any operator class. */
		if (dependent->is_unique && are_known(values) && equal(values, previous))
			dependent->nrejected++;
		previous = values;
	}
	relation_close(dependent->relation, NoLock);
	return true;
}

/*
 * What would be an obstacle if rows with new IDs belonged there.
 */
static void
make_doubt(SnowflakeFinding *finding)
{
	finding->severity = SNOWFLAKE_WARNING;
	finding->title = "some partitions or children do not accept new IDs";
	finding->is_list = true;
	finding->hint = "INSERTs into them will fail. If they get new rows, change what does not accept the IDs.";
}

/*
 * Check a dependent, by its description.  Returns false if it is an obstacle.
 */
static bool
check_dependent(Dependent *dependent, const char *description, List **findings)
{
	const SnowflakeSample *sample = dependent->sample;
	MemoryContext old;
	char	   *message;

	dependent->nrejected = 0;
	MemoryContextReset(dependent->context);
	old = MemoryContextSwitchTo(dependent->context);
	message = snowflake_convert_try(examine, dependent);
	MemoryContextSwitchTo(old);
	if (message == NULL && dependent->nrejected == 0)
		return true;

	if (sample == NULL)
		snowflake_convert_add_obstacle(findings, description,
									   psprintf("%s cannot be created again: %s",
												description, message),
									   "Change or drop what does not accept values of type bigint.");
	else if (message != NULL)
		snowflake_convert_add_obstacle(findings, description,
									   psprintf("%s does not accept %s: %s",
												description, sample->name, message),
									   "Change or drop what does not accept new IDs.");
	else if (dependent->is_unique)
		snowflake_convert_add_obstacle(findings, description,
									   psprintf("%s has the same value for different %s",
												description, sample->name),
									   "Change or drop unique indexes and constraints that have the same value for different IDs.");
	else
		snowflake_convert_add_obstacle(findings, description,
									   psprintf("%s rejects %s%s", description,
												dependent->nrejected < sample->count ? "some " : "",
												sample->name),
									   "Change constraints that reject new IDs.");
	if (dependent->is_doubtful)
		make_doubt(llast(*findings));
	return false;
}

/*
 * Is an obstacle known that is about this?
 */
static bool
is_named(const List *findings, const char *description)
{
	ListCell   *cell;

	foreach(cell, findings)
	{
		if (strcmp(((SnowflakeFinding *) lfirst(cell))->object, description) == 0)
			return true;
	}
	return false;
}

/*
 * Check what depends on the columns: with samples of new IDs of a generator,
 * whether it accepts them; without, whether it can be created again.  Returns whether
 * partition keys can be computed.
 */
bool
snowflake_convert_check_expressions(const SnowflakeConversion *conversion,
									Oid generator, const SnowflakeSample *samples,
									size_t nsamples, List **findings)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "expressions",
												  ALLOCSET_DEFAULT_SIZES);
	bool		computed = true;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_dependents))
	{
		const SnowflakeRow *row = lfirst(cell);
		const char *description = snowflake_convert_text(row, "description");
		Dependent	dependent = {
			.conversion = conversion,
			.relid = snowflake_convert_oid(row, "relid"),
			.attnum = (AttrNumber) snowflake_convert_number(row, "attnum"),
			.is_check = snowflake_convert_flag(row, "is_check"),
			.text = snowflake_convert_text(row, "text"),
			.context = context,
		};

		CHECK_FOR_INTERRUPTS();
		/* There is no text of what was dropped since the snapshot. */
		if (dependent.text == NULL)
			continue;
		if (nsamples == 0 && snowflake_convert_flag(row, "recreated"))
			(void) check_dependent(&dependent, description, findings);
		if (nsamples == 0 || snowflake_convert_oid(row, "receives") != generator ||
			is_named(*findings, description))
			continue;
		dependent.is_doubtful = snowflake_convert_flag(row, "is_doubtful");
		for (size_t i = 0; i < nsamples; i++)
		{
			dependent.sample = &samples[i];
			if (check_dependent(&dependent, description, findings))
				continue;
			computed &= !snowflake_convert_flag(row, "is_partition_key");
			break;
		}
	}
	MemoryContextDelete(context);
	return computed;
}
