/*-------------------------------------------------------------------------
 *
 * copy_identity.c
 *	  Identity columns that COPY FROM fills.
 *
 * COPY FROM asks for the default of each column that it does not read, and for an
 * identity column the server makes a node of it that no hook sees (identity.c).  So
 * while COPY FROM prepares its columns, those have a default in the descriptor of the
 * table, nextval() of their sequence, in place of the identity.
 *
 * From when to when.  The descriptor is that of this session, which everything that
 * looks at the table uses, a column that is GENERATED ALWAYS is not protected
 * meanwhile, and CREATE TABLE ... (LIKE ...) would store the default.  So only columns
 * get a default that COPY asks for, as soon as its privileges were checked: its WHERE
 * has called immutable functions before that.  Each gets its identity back as soon
 * as its default is planned, which the planner support function of nextval() hears, so
 * before the first row is read and a trigger is called.  What does not get that far
 * is undone at the end of the statement, also after an error.
 *
 * Invalidations.  The server may read the descriptor again at any time, and then it has
 * the identity.  So a callback puts the default in again, without looking at
 * catalogs.  The server frees the descriptor with all that is in it, so each time the
 * default is a copy of its own.
 *
 * If another table has the name when COPY looks it up, or the support function is not
 * called, a column gets the server's number, which is an error if its sequence
 * is not local, because that is exhausted.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/copy_identity.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "sequences/copy_identity.h"
#include "shared/compat.h"

/* The type modifier of an argument that is marked: none, but not the usual one. */
#define MARK	(-2)

/* An identity column that has a default now. */
typedef struct IdentityColumn
{
	AttrNumber	attnum;
	char		identity;
	Oid			sequence;
	char	   *text;			/* the default */
	bool		is_planned;
} IdentityColumn;

struct SnowflakeCopiedTable
{
	Relation	relation;
	List	   *columns;		/* IdentityColumn */
	Snapshot	snapshot;		/* of the statement */
	bool		has_begun;		/* are the privileges checked? */
	SnowflakeCopiedTable *outer;
};

static ExecutorCheckPerms_hook_type prev_check_perms = NULL;

/* The table of the COPY FROM that prepares its columns, and of those around it. */
static SnowflakeCopiedTable *copied = NULL;

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

/*
 * Give a column its default.  The order of defaults does not matter here.
 */
static void
put_default(TupleDesc descriptor, const IdentityColumn *column)
{
	Form_pg_attribute attribute = TupleDescAttr(descriptor, column->attnum - 1);
	TupleConstr *constr = descriptor->constr;
	int			n = constr->num_defval;
	AttrDefault *defaults;
	char	   *adbin;

	if (column->is_planned || attribute->attidentity == '\0')
		return;
	adbin = MemoryContextStrdup(CacheMemoryContext, column->text);
	defaults = MemoryContextAlloc(CacheMemoryContext, (n + 1) * sizeof(AttrDefault));
	if (n > 0)
	{
		memcpy(defaults, constr->defval, n * sizeof(AttrDefault));
		pfree(constr->defval);
	}
	defaults[n].adnum = column->attnum;
	defaults[n].adbin = adbin;
	constr->defval = defaults;
	constr->num_defval = n + 1;
	attribute->attidentity = '\0';
	attribute->atthasdef = true;
}

/*
 * Give a column its identity back, unless it has another default: it may have lost the
 * identity meanwhile.
 */
static void
take_default(TupleDesc descriptor, const IdentityColumn *column)
{
	Form_pg_attribute attribute = TupleDescAttr(descriptor, column->attnum - 1);
	TupleConstr *constr = descriptor->constr;
	int			n = 0;

	if (constr == NULL)
		return;
	while (n < constr->num_defval && (constr->defval[n].adnum != column->attnum ||
									  strcmp(constr->defval[n].adbin, column->text) != 0))
		n++;
	if (n == constr->num_defval)
		return;
	pfree(constr->defval[n].adbin);
	constr->num_defval--;
	memmove(&constr->defval[n], &constr->defval[n + 1],
			(constr->num_defval - n) * sizeof(AttrDefault));
	if (constr->num_defval == 0)
	{
		pfree(constr->defval);
		constr->defval = NULL;
	}
	attribute->attidentity = column->identity;
	attribute->atthasdef = false;
}

static void
put_defaults(const SnowflakeCopiedTable *table)
{
	ListCell   *cell;

	foreach(cell, table->columns)
		put_default(RelationGetDescr(table->relation), lfirst(cell));
}

/*
 * A relation was invalidated, and read again if it is open.  When a session ends in the
 * middle of a COPY, its transaction is rolled back before the end of the statement:
 * then, table and relation can be gone.
 */
void
snowflake_renew_identities(Oid relid)
{
	if (!IsTransactionState())
		return;
	for (SnowflakeCopiedTable *table = copied; table != NULL; table = table->outer)
	{
		if (table->has_begun &&
			(!OidIsValid(relid) || relid == RelationGetRelid(table->relation)))
			put_defaults(table);
	}
}

/*
 * Are these the tables of the COPY FROM that is about to prepare its columns?  What a
 * function in its WHERE writes, it writes with a snapshot of its own.
 */
static bool
is_copy(const List *tables)
{
	const RangeTblEntry *table;

	if (copied == NULL || list_length(tables) != 1 || GetActiveSnapshot() != copied->snapshot)
		return false;
	table = linitial_node(RangeTblEntry, tables);
	return table->relid == RelationGetRelid(copied->relation) &&
		table->rellockmode == RowExclusiveLock;
}

/*
 * The privileges of a query or COPY are checked.
 */
static bool
check_perms(List *tables SNOWFLAKE_PERMS_PARAMETER, bool fails)
{
	bool		result = prev_check_perms == NULL ||
		prev_check_perms(tables SNOWFLAKE_PERMS_ARGUMENT, fails);

	if (is_copy(tables))
	{
		copied->has_begun = true;
		put_defaults(copied);
	}
	return result;
}

/*
 * A session that ends in the middle of a COPY does not get to the end of the statement, and
 * has another transaction afterwards if it has temporary tables.
 */
static void
end_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		copied = NULL;
}

void
snowflake_watch_copies(void)
{
	RegisterXactCallback(end_transaction, NULL);
	prev_check_perms = ExecutorCheckPerms_hook;
	ExecutorCheckPerms_hook = check_perms;
}

/*
 * Does COPY ask for the default of a column?  It does for those that it does not read,
 * and with the option DEFAULT for all.
 */
static bool
asks_for_default(const CopyStmt * copy, const char *column)
{
	ListCell   *cell;

	foreach(cell, copy->options)
	{
		if (strcmp(lfirst_node(DefElem, cell)->defname, "default") == 0)
			return true;
	}
	foreach(cell, copy->attlist)
	{
		if (strcmp(strVal(lfirst(cell)), column) == 0)
			return false;
	}
	return copy->attlist != NIL;
}

static List *
find_columns(const CopyStmt * copy, Relation relation)
{
	List	   *columns = NIL;

	for (int i = 0; i < RelationGetNumberOfAttributes(relation); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), i);
		IdentityColumn *column;

		if (attribute->attisdropped || attribute->attidentity == '\0' ||
			!asks_for_default(copy, NameStr(attribute->attname)))
			continue;
		column = palloc0_object(IdentityColumn);
		column->attnum = attribute->attnum;
		column->identity = attribute->attidentity;
		column->sequence = snowflake_identity_sequence(relation, attribute->attnum);
		column->text = nodeToString(snowflake_marked_call(F_NEXTVAL, column->sequence));
		columns = lappend(columns, column);
	}
	return columns;
}

/*
 * Lock and open the table of COPY FROM, as it does itself.
 */
static Relation
open_table(const CopyStmt * copy)
{
	Oid			relid = RangeVarGetRelid(copy->relation, RowExclusiveLock, true);

	return OidIsValid(relid) ? try_table_open(relid, NoLock) : NULL;
}

/*
 * Before COPY FROM.  Returns what to give to snowflake_end_identities() after it, also
 * after an error, and then to snowflake_close_identities(), but not after one; NULL if it
 * fills no identity column.
 */
SnowflakeCopiedTable *
snowflake_begin_identities(const CopyStmt * copy)
{
	Relation	relation = open_table(copy);
	SnowflakeCopiedTable *table;

	if (relation == NULL)
		return NULL;
	table = palloc0_object(SnowflakeCopiedTable);
	table->relation = relation;
	table->columns = find_columns(copy, relation);
	if (table->columns == NIL)
	{
		table_close(relation, NoLock);
		return NULL;
	}
	table->snapshot = GetActiveSnapshot();
	table->outer = copied;
	copied = table;
	return table;
}

/*
 * The default of a column is planned.  Returns false if there is no such column: somebody
 * stored it, and its call has no right of its own.
 */
bool
snowflake_end_identity(const FuncExpr *call)
{
	Oid			sequence = DatumGetObjectId(linitial_node(Const, call->args)->constvalue);
	ListCell   *cell;

	foreach(cell, copied != NULL ? copied->columns : NIL)
	{
		IdentityColumn *column = lfirst(cell);

		if (column->sequence != sequence || column->is_planned)
			continue;
		column->is_planned = true;
		take_default(RelationGetDescr(copied->relation), column);
		return true;
	}
	return false;
}

void
snowflake_end_identities(SnowflakeCopiedTable *table)
{
	ListCell   *cell;

	if (table == NULL)
		return;
	copied = table->outer;
	foreach(cell, table->columns)
		take_default(RelationGetDescr(table->relation), lfirst(cell));
}

void
snowflake_close_identities(SnowflakeCopiedTable *table)
{
	if (table != NULL)
		table_close(table->relation, NoLock);
}
