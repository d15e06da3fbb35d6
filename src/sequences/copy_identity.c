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
 * looks at the table uses, and a column that is GENERATED ALWAYS is not protected
 * meanwhile.  So only columns get a default that COPY asks for, before the
 * statement; and each gets its identity back as soon as its default is planned,
 * which the planner support function of nextval() hears, so before the first row
 * is read and a trigger is called.  What does not get that far is undone at the
 * end of the statement, also after an error.
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
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "nodes/parsenodes.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "sequences/copy_identity.h"
#include "sequences/marked.h"
#include "shared/compat.h"

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
	SnowflakeCopiedTable *outer;
};

/* The table of the COPY FROM that prepares its columns, and of those around it. */
static SnowflakeCopiedTable *copied = NULL;

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

	if (column->is_planned || attribute->attidentity == '\0')
		return;
	defaults = MemoryContextAlloc(CacheMemoryContext, (n + 1) * sizeof(AttrDefault));
	if (n > 0)
	{
		memcpy(defaults, constr->defval, n * sizeof(AttrDefault));
		pfree(constr->defval);
	}
	defaults[n].adnum = column->attnum;
	defaults[n].adbin = MemoryContextStrdup(CacheMemoryContext, column->text);
	constr->defval = defaults;
	constr->num_defval = n + 1;
	attribute->attidentity = '\0';
	attribute->atthasdef = true;
}

/*
 * Give a column its identity back.
 */
static void
take_default(TupleDesc descriptor, const IdentityColumn *column)
{
	Form_pg_attribute attribute = TupleDescAttr(descriptor, column->attnum - 1);
	TupleConstr *constr = descriptor->constr;
	int			n = 0;

	if (attribute->attidentity != '\0')
		return;
	while (constr->defval[n].adnum != column->attnum)
		n++;
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
 * A relation was invalidated, and read again if it is open.
 */
static void
relation_changed(Datum arg, Oid relid)
{
	for (SnowflakeCopiedTable *table = copied; table != NULL; table = table->outer)
	{
		if (!OidIsValid(relid) || relid == RelationGetRelid(table->relation))
			put_defaults(table);
	}
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
	static bool is_watching = false;
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
	if (!is_watching)
		CacheRegisterRelcacheCallback(relation_changed, 0);
	is_watching = true;
	table->outer = copied;
	copied = table;
	put_defaults(table);
	return table;
}

/*
 * The default of a column is planned.
 */
void
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
	}
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
