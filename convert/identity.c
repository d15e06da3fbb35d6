/*-------------------------------------------------------------------------
 *
 * identity.c
 *	  Identity columns that become plain ones, and keep their sequences.
 *
 * The sequence of an identity cannot be of another kind, and the server drops it
 * with the identity.  So this does what ALTER TABLE ... DROP IDENTITY does, but has
 * the column own the sequence as a serial column does.  Nothing of the sequence
 * changes: neither its position nor its privileges, and nothing has to be copied
 * that somebody else might change meanwhile.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/identity.c
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
#include "commands/tablecmds.h"
#include "fmgr.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "convert/conversion.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_identity);

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
 * Have a column be without an identity.
 */
static void
reset_identity(Oid relid, AttrNumber attnum)
{
	Relation	attributes = table_open(AttributeRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopyAttNum(relid, attnum);

	((Form_pg_attribute) GETSTRUCT(tuple))->attidentity = '\0';
	CatalogTupleUpdate(attributes, &tuple->t_self, tuple);
	InvokeObjectPostAlterHook(RelationRelationId, relid, attnum);
	heap_freetuple(tuple);
	table_close(attributes, RowExclusiveLock);
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
 * Have the column be without one in the partitions, too, of a table that is locked, so
 * it gets no others meanwhile.
 */
static void
reset_partitions(Oid relid, const char *column)
{
	ListCell   *cell;

	foreach(cell, find_inheritance_children(relid, NoLock))
	{
		Oid			partition = lfirst_oid(cell);

		if (!shares_identity(partition, column))
			continue;
		LockRelationOid(partition, AccessExclusiveLock);
		reset_identity(partition, get_attnum(partition, column));
		reset_partitions(partition, column);
	}
}

static void
own_sequence(Oid sequence, Oid relid, AttrNumber attnum)
{
	ObjectAddress owned;
	ObjectAddress column;

	ObjectAddressSet(owned, RelationRelationId, sequence);
	ObjectAddressSubSet(column, RelationRelationId, relid, attnum);
	deleteDependencyRecordsForClass(RelationRelationId, sequence, RelationRelationId,
									DEPENDENCY_INTERNAL);
	recordDependencyOn(&owned, &column, DEPENDENCY_AUTO);
}

/*
 * snowflake_convert_identity(relation regclass, column_name name) returns void
 */
Datum
snowflake_convert_identity(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	char	   *column = NameStr(*PG_GETARG_NAME(1));
	Relation	table;
	AttrNumber	attnum;
	Oid			sequence;

	(void) snowflake_convert_lock(relid, AccessExclusiveLock);
	attnum = snowflake_convert_find_column(relid, snowflake_relation_name(relid), column);
	sequence = identity_sequence(relid, attnum);
	if (!OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("column \"%s\" of table %s has no identity of its own",
						column, snowflake_relation_name(relid))));
	table = table_open(relid, NoLock);
	CheckTableNotInUse(table, "ALTER TABLE");
	table_close(table, NoLock);
	reset_partitions(relid, column);
	reset_identity(relid, attnum);
	own_sequence(sequence, relid, attnum);
	PG_RETURN_VOID();
}
