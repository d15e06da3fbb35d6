/*-------------------------------------------------------------------------
 *
 * references.c
 *	  Columns that reference keys become as wide as these.
 *
 * A column that is widened may be a key itself, as that of a table that shares
 * its key with another one.  So what references it is widened, too, if it has the
 * same owner.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/references.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "sequences/defaults.h"
#include "sequences/kind.h"
#include "sequences/references.h"
#include "shared/table_owner.h"

/* A column that references another one. */
typedef struct Referrer
{
	Oid			relid;
	AttrNumber	attnum;
} Referrer;

static bool
is_narrow(Oid type)
{
	return type == INT2OID || type == INT4OID;
}

/*
 * Execute a statement that belongs to the one of the user.
 */
void
snowflake_run_statement(Node *statement, const char *query)
{
	PlannedStmt *planned = makeNode(PlannedStmt);

	planned->commandType = CMD_UTILITY;
	planned->utilityStmt = statement;
	planned->stmt_location = -1;
	ProcessUtility(planned, query, false, PROCESS_UTILITY_QUERY, NULL, NULL,
				   None_Receiver, NULL);
	CommandCounterIncrement();
}

/*
 * A relation by its whole name.
 */
RangeVar *
snowflake_range_of(Oid relid)
{
	return makeRangeVar(get_namespace_name(get_rel_namespace(relid)),
						get_rel_name(relid), -1);
}

/*
 * Read the columns of a constraint.  Returns how many there are.
 */
static int
read_columns(Relation constraints, HeapTuple tuple, int attribute,
			 AttrNumber *columns)
{
	bool		isnull;
	Datum		datum = heap_getattr(tuple, attribute,
									 RelationGetDescr(constraints), &isnull);
	ArrayType  *array;

	if (isnull)
		return 0;
	array = DatumGetArrayTypeP(datum);
	memcpy(columns, ARR_DATA_PTR(array), ARR_DIMS(array)[0] * sizeof(int16));
	return ARR_DIMS(array)[0];
}

/*
 * The n-th column of a table's primary key, from 0, or NULL.
 */
static char *
primary_key_column(Oid relid, int n)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	char	   *name = NULL;

	ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(constraints, ConstraintRelidTypidNameIndexId,
							  true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		AttrNumber	columns[INDEX_MAX_KEYS];

		if (((Form_pg_constraint) GETSTRUCT(tuple))->contype == CONSTRAINT_PRIMARY &&
			n < read_columns(constraints, tuple, Anum_pg_constraint_conkey, columns))
			name = get_attname(relid, columns[n], false);
	}
	systable_endscan(scan);
	table_close(constraints, AccessShareLock);
	return name;
}

/*
 * Add the column of a foreign key that references a column.
 */
static List *
add_referrer(List *referrers, Relation constraints, HeapTuple tuple,
			 AttrNumber referenced)
{
	Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);
	AttrNumber	own[INDEX_MAX_KEYS];
	AttrNumber	others[INDEX_MAX_KEYS];
	int			n = read_columns(constraints, tuple, Anum_pg_constraint_confkey, others);

	(void) read_columns(constraints, tuple, Anum_pg_constraint_conkey, own);
	while (--n >= 0)
	{
		Referrer   *referrer;

		if (others[n] != referenced)
			continue;
		referrer = palloc(sizeof(Referrer));
		referrer->relid = form->conrelid;
		referrer->attnum = own[n];
		referrers = lappend(referrers, referrer);
	}
	return referrers;
}

/*
 * All columns that reference a column.  Those of partitions are altered with
 * their parents'.
 */
static List *
find_referrers(Oid relid, AttrNumber attnum)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);
	List	   *referrers = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_confrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(constraints, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		if (form->contype == CONSTRAINT_FOREIGN && !OidIsValid(form->conparentid))
			referrers = add_referrer(referrers, constraints, tuple, attnum);
	}
	systable_endscan(scan);
	table_close(constraints, AccessShareLock);
	return referrers;
}

/*
 * ALTER TABLE ... ALTER COLUMN ... TYPE bigint
 */
static void
alter_type(Oid relid, const char *column, const char *query)
{
	AlterTableStmt *statement = makeNode(AlterTableStmt);
	AlterTableCmd *command = makeNode(AlterTableCmd);
	ColumnDef  *definition = makeNode(ColumnDef);

	definition->typeName = makeTypeNameFromOid(INT8OID, -1);
	definition->location = -1;
	command->subtype = AT_AlterColumnType;
	command->name = pstrdup(column);
	command->def = (Node *) definition;
	command->behavior = DROP_RESTRICT;
	statement->relation = snowflake_range_of(relid);
	statement->cmds = list_make1(command);
	statement->objtype = OBJECT_TABLE;
	snowflake_run_statement((Node *) statement, query);
}

/*
 * The same as the owner of the table.  To rewrite it executes code of the owner,
 * such as that of constraints, which the statement of a caller who is somebody
 * else need not do.
 */
static void
alter_type_as_owner(Oid relid, const char *column, const char *query)
{
	Oid			owner = snowflake_table_owner(relid);
	SnowflakeCaller caller;

	if (owner == GetUserId())
	{
		alter_type(relid, column, query);
		return;
	}
	snowflake_become_owner(owner, &caller);
	alter_type(relid, column, query);
	snowflake_become_caller(&caller);
}

/*
 * Can the type of a column of a table be altered?  Not if that comes from elsewhere,
 * or if the column is in the partition key.
 */
bool
snowflake_has_own_type(Oid relid, const char *column)
{
	Relation	relation = relation_open(relid, AccessShareLock);
	AttrNumber	attnum = get_attnum(relid, column);
	Bitmapset  *columns = bms_make_singleton(attnum - FirstLowInvalidHeapAttributeNumber);
	bool		in_key = has_partition_attrs(relation, columns, NULL);
	bool		inherited = TupleDescAttr(RelationGetDescr(relation), attnum - 1)->attinhcount > 0;
	bool		is_typed = OidIsValid(relation->rd_rel->reloftype);

	relation_close(relation, AccessShareLock);
	return !is_typed && !inherited && !in_key;
}

/*
 * May a column be altered because the one that it references was?  Only if the
 * tables have the same owner, whose rights the caller has.
 */
static bool
may_widen(const Referrer *referrer, Oid owner)
{
	char	   *column = get_attname(referrer->relid, referrer->attnum, false);
	bool		has_own_type = snowflake_has_own_type(referrer->relid, column);

	if (!is_narrow(get_atttype(referrer->relid, referrer->attnum)))
		return false;
	if (snowflake_table_owner(referrer->relid) == owner && has_own_type)
		return true;
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("column \"%s\" of table \"%s\" is narrower than the column that it references",
					column, get_rel_name(referrer->relid)),
			 has_own_type ?
			 errdetail("The referenced column is bigint now, and the tables have different owners.") :
			 errdetail("The referenced column is bigint now, and this one is inherited, of a type, or in the partition key."),
			 has_own_type ? errhint("Use ALTER TABLE ... ALTER COLUMN ... TYPE bigint.") : 0));
	return false;
}

/*
 * Have a column of a table be bigint, and what references it.
 */
void
snowflake_widen_column(Oid relid, const char *column, const char *query)
{
	AttrNumber	attnum = get_attnum(relid, column);
	Oid			owner = snowflake_table_owner(relid);
	ListCell   *cell;

	check_stack_depth();
	alter_type_as_owner(relid, column, query);
	foreach(cell, find_referrers(relid, attnum))
	{
		const Referrer *referrer = lfirst(cell);

		if (may_widen(referrer, owner))
			snowflake_widen_column(referrer->relid,
								   get_attname(referrer->relid, referrer->attnum, false),
								   query);
	}
}

/*
 * The n-th column of the primary key of the statement, or NULL.
 */
static char *
primary_key_of_statement(const SnowflakeNewTable *table, int n)
{
	Constraint *primary = snowflake_find_constraint(table->constraints, CONSTR_PRIMARY);
	ListCell   *cell;

	if (primary != NULL)
		return n < list_length(primary->keys) ? strVal(list_nth(primary->keys, n)) : NULL;
	foreach(cell, table->columns)
	{
		ColumnDef  *column = lfirst_node(ColumnDef, cell);

		if (snowflake_find_constraint(column->constraints, CONSTR_PRIMARY) != NULL && n == 0)
			return column->colname;
	}
	return NULL;
}

/*
 * Does a foreign key reference the table of the statement?
 */
static bool
references_itself(const SnowflakeNewTable *table, const RangeVar *referenced)
{
	return strcmp(referenced->relname, table->name) == 0 &&
		(referenced->schemaname == NULL ||
		 get_namespace_oid(referenced->schemaname, true) == table->schema);
}

/*
 * The type of the n-th column that a foreign key references, or InvalidOid.
 */
static Oid
referenced_type(const SnowflakeNewTable *table, const Constraint *key, int n)
{
	bool		itself = references_itself(table, key->pktable);
	Oid			relid = itself ? table->relid : RangeVarGetRelid(key->pktable, NoLock, true);
	char	   *name = NULL;
	ColumnDef  *column;

	if (n < list_length(key->pk_attrs))
		name = strVal(list_nth(key->pk_attrs, n));
	else if (itself)
		name = primary_key_of_statement(table, n);
	if (name == NULL && OidIsValid(relid))
		name = primary_key_column(relid, n);
	if (name == NULL)
		return InvalidOid;
	column = itself ? snowflake_find_column(table, name) : NULL;
	return column != NULL ? snowflake_column_type(table, column) :
		snowflake_existing_type(relid, name);
}

/*
 * Have a column be bigint if it is narrower and the one that it references is
 * not.  Returns whether something has changed.
 */
static bool
widen_reference(const SnowflakeNewTable *table, const char *name, Oid referenced)
{
	ColumnDef  *column = snowflake_find_column(table, name);
	Oid			type = column != NULL ? snowflake_column_type(table, column) :
		snowflake_existing_type(table->relid, name);

	if (!is_narrow(type) || referenced != INT8OID)
		return false;
	if (column != NULL)
		return snowflake_set_type(column, INT8OID);
	if (!snowflake_has_own_type(table->relid, name))
		return false;
	snowflake_widen_column(table->relid, name, table->query);
	return true;
}

/*
 * The same for all columns of the foreign keys among some constraints; those of a
 * column do not have its name.
 */
static bool
widen_references(const SnowflakeNewTable *table, const List *constraints,
				 const char *column)
{
	bool		changed = false;
	ListCell   *cell;

	foreach(cell, constraints)
	{
		Constraint *key = lfirst_node(Constraint, cell);
		int			count = column != NULL ? 1 : list_length(key->fk_attrs);

		if (key->contype != CONSTR_FOREIGN)
			continue;
		for (int n = 0; n < count; n++)
		{
			const char *name = column != NULL ? column : strVal(list_nth(key->fk_attrs, n));

			if (widen_reference(table, name, referenced_type(table, key, n)))
				changed = true;
		}
	}
	return changed;
}

/*
 * A column may reference one that was just widened.
 */
void
snowflake_widen_references_of(const SnowflakeNewTable *table)
{
	bool		changed;

	do
	{
		ListCell   *cell;

		changed = widen_references(table, table->constraints, NULL);
		foreach(cell, table->columns)
		{
			ColumnDef  *column = lfirst_node(ColumnDef, cell);

			if (widen_references(table, column->constraints, column->colname))
				changed = true;
		}
	} while (changed);
}

/*
 * Is a relation a table of the caller, and not a temporary one?
 */
bool
snowflake_is_own_table(Oid relid)
{
	char		relkind = OidIsValid(relid) ? get_rel_relkind(relid) : '\0';

	return (relkind == RELKIND_RELATION || relkind == RELKIND_PARTITIONED_TABLE ||
			relkind == RELKIND_FOREIGN_TABLE) &&
		get_rel_persistence(relid) != RELPERSISTENCE_TEMP &&
		has_privs_of_role(GetUserId(), snowflake_table_owner(relid));
}

static bool
drops_default(const AlterTableStmt *statement, const char *column)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_ColumnDefault && command->def == NULL &&
			strcmp(command->name, column) == 0)
			return true;
	}
	return false;
}

/*
 * Fail if the default of a column is a snowflake sequence.
 */
static void
check_remains_wide(Oid relid, const char *column)
{
	Oid			sequence = snowflake_sequence_in_default(relid, column);

	if (OidIsValid(sequence) &&
		snowflake_sequence_kind(sequence) == SNOWFLAKE_KIND_SNOWFLAKE)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table \"%s\" must remain bigint",
						column, get_rel_name(relid)),
				 errdetail("Its default is nextval() of snowflake sequence \"%s\".",
						   get_rel_name(sequence)),
				 errhint("Leave the type as it is, or call snowflake_set_sequence_kind(sequence, 'local') first.")));
}

/*
 * The tables of a composite type.
 */
static List *
find_typed_tables(Oid type)
{
	Relation	relations = table_open(RelationRelationId, AccessShareLock);
	List	   *tables = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_reloftype, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(type));
	scan = systable_beginscan(relations, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		tables = lappend_oid(tables, ((Form_pg_class) GETSTRUCT(tuple))->oid);
	systable_endscan(scan);
	table_close(relations, AccessShareLock);
	return tables;
}

/*
 * The tables whose columns change with those of a table or composite type of the
 * caller.
 */
static List *
find_altered_tables(Oid relid)
{
	if (OidIsValid(relid) && get_rel_relkind(relid) == RELKIND_COMPOSITE_TYPE &&
		has_privs_of_role(GetUserId(), snowflake_table_owner(relid)))
		return find_typed_tables(get_rel_type_id(relid));
	return snowflake_is_own_table(relid) ? find_all_inheritors(relid, NoLock, NULL) : NIL;
}

/*
 * Fail if a statement makes a column too narrow for its snowflake sequence, also
 * that of a partition, or another table that inherits it, which may have a default
 * of its own, and those of the tables of a type.
 */
void
snowflake_check_narrowing(const AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		Oid			type;
		ListCell   *table;

		if (command->subtype != AT_AlterColumnType ||
			drops_default(statement, command->name))
			continue;
		type = LookupTypeNameOid(NULL, castNode(ColumnDef, command->def)->typeName, true);
		if (!OidIsValid(type) || !is_narrow(getBaseType(type)))
			continue;
		foreach(table, find_altered_tables(RangeVarGetRelid(statement->relation, NoLock, true)))
			check_remains_wide(lfirst_oid(table), command->name);
	}
}
