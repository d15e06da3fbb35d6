/*-------------------------------------------------------------------------
 *
 * labelled.c
 *	  Which sequences have a label, and which one.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/labelled.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_seclabel.h"
#include "commands/seclabel.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "sequences/labelled.h"

/*
 * The text of a sequence's label, or NULL if it is local.
 */
char *
snowflake_get_label(Oid relid)
{
	ObjectAddress object;
	char	   *label;

	ObjectAddressSet(object, RelationRelationId, relid);
	label = GetSecurityLabel(&object, SNOWFLAKE_LABEL_PROVIDER);
	return label != NULL && strcmp(label, SNOWFLAKE_LABEL_LOCAL) != 0 ? label : NULL;
}

/*
 * Does a row of pg_seclabel say that a sequence is not local?
 *
 * heap_getattr() is inline, and calls functions that a minor version has added:
 * a library that was built with its headers could not be loaded by the one before.
 */
static bool
is_nonlocal(HeapTuple tuple, TupleDesc desc)
{
	bool		isnull;
	Datum		provider = fastgetattr(tuple, Anum_pg_seclabel_provider, desc, &isnull);
	Datum		label = fastgetattr(tuple, Anum_pg_seclabel_label, desc, &isnull);

	return ((FormData_pg_seclabel *) GETSTRUCT(tuple))->classoid == RelationRelationId &&
		strcmp(TextDatumGetCString(provider), SNOWFLAKE_LABEL_PROVIDER) == 0 &&
		strcmp(TextDatumGetCString(label), SNOWFLAKE_LABEL_LOCAL) != 0;
}

/*
 * Call a function for each sequence that is not local, until it returns true.
 * Returns that sequence, or InvalidOid.
 */
Oid
snowflake_find_labelled(bool (*matches) (Oid relid, void *arg), void *arg)
{
	Relation	labels = table_open(SecLabelRelationId, AccessShareLock);
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	scan = systable_beginscan(labels, InvalidOid, false, NULL, 0, NULL);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			relid = ((FormData_pg_seclabel *) GETSTRUCT(tuple))->objoid;

		if (is_nonlocal(tuple, RelationGetDescr(labels)) && matches(relid, arg))
			found = relid;
	}
	systable_endscan(scan);
	table_close(labels, AccessShareLock);
	return found;
}

static bool
is_any(Oid relid, void *arg)
{
	return true;
}

/*
 * A sequence that is not local, or InvalidOid.
 */
Oid
snowflake_find_nonlocal_sequence(void)
{
	return snowflake_find_labelled(is_any, NULL);
}
