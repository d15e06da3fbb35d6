/*-------------------------------------------------------------------------
 *
 * drop.c
 *	  Sequences that are dropped, and databases that are dropped or renamed.
 *
 * Their slots are freed at once.  If the transaction rolls back, the next call
 * finds no slot that is its own, and takes another one.  The ranges are lost.
 *
 * DROP DATABASE first waits for sessions that are still there, or ends them, and they
 * may use their sequences meanwhile.  So it frees the slots when it commits.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/drop.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

#include "ranges/drop.h"
#include "ranges/slots.h"

static object_access_hook_type prev_object_access_hook = NULL;

/* The database that this transaction drops; there is no other one in it. */
static Oid	dropped_database = InvalidOid;

static void
object_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);

	/* A database that is renamed has other sequences at the registry. */
	if (classId == DatabaseRelationId && access == OAT_POST_ALTER)
		snowflake_free_slot(objectId, InvalidOid);
	else if (classId == DatabaseRelationId && access == OAT_DROP)
		dropped_database = objectId;
	else if (access == OAT_DROP && classId == RelationRelationId && subId == 0 &&
			 get_rel_relkind(objectId) == RELKIND_SEQUENCE)
		snowflake_free_slot(MyDatabaseId, objectId);
}

static void
end_transaction(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT)
		return;
	if (event == XACT_EVENT_COMMIT && OidIsValid(dropped_database))
		snowflake_free_slot(dropped_database, InvalidOid);
	dropped_database = InvalidOid;
}

/*
 * Free slots after drops, and after new names of databases.
 */
void
snowflake_watch_drops(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = object_access;
	RegisterXactCallback(end_transaction, NULL);
}
