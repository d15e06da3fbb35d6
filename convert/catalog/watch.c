/*-------------------------------------------------------------------------
 *
 * watch.c
 *	  Whether the definitions of tables change.
 *
 * Whatever changes the definition of a table has the sessions read it again.  They
 * learn of it when they lock the table, so with a lock it is known whether it was
 * changed since it was locked before.  VACUUM and ANALYZE count as changes.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/watch.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/inval.h"
#include "utils/memutils.h"

#include "convert/catalog/watch.h"

static List *watched;
static bool changed;

/*
 * RelcacheCallbackFunction
 */
static void
note_change(Datum argument, Oid relid)
{
	if (!OidIsValid(relid) || list_member_oid(watched, relid))
		changed = true;
}

/*
 * From now on, watch some tables, which are locked, instead of others.
 */
void
snowflake_convert_watch(const List *relids)
{
	static bool is_registered = false;
	MemoryContext old;

	if (!is_registered)
		CacheRegisterRelcacheCallback(note_change, (Datum) 0);
	is_registered = true;
	list_free(watched);
	watched = NIL;
	old = MemoryContextSwitchTo(TopMemoryContext);
	watched = list_copy(relids);
	MemoryContextSwitchTo(old);
	changed = false;
}

/*
 * Has the definition of one of them changed, as far as this session was told?
 */
bool
snowflake_convert_has_changed(void)
{
	return changed;
}
