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
 * The text of a sequence's label, or NULL.
 */
char *
snowflake_get_label(Oid relid)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, relid);
	return GetSecurityLabel(&object, SNOWFLAKE_LABEL_PROVIDER);
}

/*
 * Call a function for each sequence that has a label, until it returns true.
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
		FormData_pg_seclabel *form = (FormData_pg_seclabel *) GETSTRUCT(tuple);
		bool		isnull;
		Datum		provider = heap_getattr(tuple, Anum_pg_seclabel_provider,
											RelationGetDescr(labels), &isnull);

		if (form->classoid == RelationRelationId &&
			strcmp(TextDatumGetCString(provider), SNOWFLAKE_LABEL_PROVIDER) == 0 &&
			matches(form->objoid, arg))
			found = form->objoid;
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
