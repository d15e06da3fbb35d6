/*-------------------------------------------------------------------------
 *
 * identity.c
 *	  Moving the identity of a column to the one that takes its place.
 *
 * The server drops the sequence of an identity with its column, and allows no other
 * column to have it.  So this changes the rows of the catalogs that say whose it is.
 * The sequence has the OID, the name, the position, the privileges and the label that
 * it had, so nothing has to be copied that somebody else might change meanwhile.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/identity.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/tablecmds.h"
#include "fmgr.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "convert/columns/keys.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_move_identity);

/*
 * The sequence of an identity column.  Since 17, a partition shares that of its
 * table, and has none; then, the result is InvalidOid.
 */
static Oid
identity_sequence(Oid relid, AttrNumber attnum)
{
	ListCell   *cell;

	foreach(cell, getOwnedSequences(relid))
	{
		Oid			table;
		int32		column;

		if (sequenceIsOwned(lfirst_oid(cell), DEPENDENCY_INTERNAL, &table, &column) &&
			column == attnum)
			return lfirst_oid(cell);
	}
	return InvalidOid;
}

/*
 * Set what a column has in pg_attribute, and return what it had.
 */
static char
set_identity(Oid relid, AttrNumber attnum, char identity)
{
	Relation	attributes = table_open(AttributeRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopyAttNum(relid, attnum);
	Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(tuple);
	char		before = form->attidentity;

	form->attidentity = identity;
	CatalogTupleUpdate(attributes, &tuple->t_self, tuple);
	InvokeObjectPostAlterHook(RelationRelationId, relid, attnum);
	heap_freetuple(tuple);
	table_close(attributes, RowExclusiveLock);
	return before;
}

/*
 * Has a column an identity that belongs to another table?
 */
static bool
shares_identity(Oid relid, const char *column)
{
	HeapTuple	tuple = SearchSysCacheAttName(relid, column);
	bool		has_identity;
	AttrNumber	attnum;

	if (!HeapTupleIsValid(tuple))
		return false;
	has_identity = ((Form_pg_attribute) GETSTRUCT(tuple))->attidentity != '\0';
	attnum = ((Form_pg_attribute) GETSTRUCT(tuple))->attnum;
	ReleaseSysCache(tuple);
	return has_identity && !OidIsValid(identity_sequence(relid, attnum));
}

/*
 * Fail if a column cannot have one: ALTER TABLE ... ADD GENERATED ... AS IDENTITY would.
 */
static void
check_new_column(Oid relid, AttrNumber attnum, const char *column)
{
	HeapTuple	tuple = SearchSysCacheCopyAttNum(relid, attnum);
	Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(tuple);

	if (form->atttypid != INT8OID || !form->attnotnull || form->atthasdef ||
		form->attidentity != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("column \"%s\" of table %s cannot become an identity column",
						column, snowflake_relation_name(relid)),
				 errdetail("It must be bigint and NOT NULL, and have no default and no identity.")));
	heap_freetuple(tuple);
}

/*
 * Move it, also in the partitions of a table that is locked, so it gets no others
 * meanwhile.
 */
static void
move_identity(Oid relid, const char *column, const char *new_column)
{
	char		identity = set_identity(relid, get_attnum(relid, column), '\0');
	ListCell   *cell;

	(void) set_identity(relid, get_attnum(relid, new_column), identity);
	foreach(cell, find_inheritance_children(relid, NoLock))
	{
		if (!shares_identity(lfirst_oid(cell), column))
			continue;
		LockRelationOid(lfirst_oid(cell), AccessExclusiveLock);
		move_identity(lfirst_oid(cell), column, new_column);
	}
}

static void
give_sequence(Oid sequence, Oid relid, AttrNumber attnum)
{
	ObjectAddress given;
	ObjectAddress column;

	ObjectAddressSet(given, RelationRelationId, sequence);
	ObjectAddressSubSet(column, RelationRelationId, relid, attnum);
	deleteDependencyRecordsForClass(RelationRelationId, sequence, RelationRelationId,
									DEPENDENCY_INTERNAL);
	recordDependencyOn(&given, &column, DEPENDENCY_INTERNAL);
}

/*
 * _snowflake_convert_move_identity(relation regclass, column_name name,
 *								   new_column name) returns void
 */
Datum
snowflake_convert_move_identity(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	char	   *column = NameStr(*PG_GETARG_NAME(1));
	char	   *new_column = NameStr(*PG_GETARG_NAME(2));
	const char *name;
	Relation	table;
	AttrNumber	attnum;
	Oid			sequence;

	(void) snowflake_convert_lock(relid, AccessExclusiveLock);
	name = snowflake_relation_name(relid);
	sequence = identity_sequence(relid, snowflake_convert_find_column(relid, name, column));
	if (!OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("column \"%s\" of table %s has no identity of its own",
						column, name)));
	attnum = snowflake_convert_find_column(relid, name, new_column);
	check_new_column(relid, attnum, new_column);
	table = table_open(relid, NoLock);
	CheckTableNotInUse(table, "ALTER TABLE");
	table_close(table, NoLock);
	move_identity(relid, column, new_column);
	give_sequence(sequence, relid, attnum);
	PG_RETURN_VOID();
}
