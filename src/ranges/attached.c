/*-------------------------------------------------------------------------
 *
 * attached.c
 *	  The slot that a session uses for a sequence.
 *
 * A sequence that was copied with its database is attached once the registry has what it
 * continues above; then others of this database need not say it again.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/attached.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

#include "generator/settings.h"
#include "ranges/attached.h"
#include "shared/table_owner.h"

/*
 * Was a sequence of this database, which was copied, the last one to use a slot?  A database
 * of the same name that was dropped is another one.
 */
static bool
is_attached(const RangeSlot *slot, Oid relid)
{
	return slot->attached_in == MyDatabaseId && slot->attached == relid;
}

bool
snowflake_is_slot_attached(const char *name, Oid relid)
{
	const char *database = get_database_name(MyDatabaseId);
	RangeSlot  *slot;
	bool		attached;

	if (!snowflake_ranges_enabled())
		return false;
	name = pg_server_to_any(name, strlen(name), PG_UTF8);
	snowflake_lock_ranges();
	slot = snowflake_look_up_slot(database, name);
	attached = slot != NULL && is_attached(slot, relid);
	snowflake_unlock_ranges();
	return attached;
}

static RangeSlot *
find_slot(const RangeHandle *handle, const char *database, const char *name, Oid owner)
{
	RangeSlot  *slot = snowflake_look_up_slot(database, name);

	if (slot == NULL)
	{
		slot = snowflake_new_slot(database, name, owner);
		if (slot == NULL)
			return NULL;
		slot->last = handle->last;
		slot->step = handle->step;
	}
	slot->owner = owner;
	return slot;
}

/*
 * Ranges from before do not continue above what was copied, nor, if the database has
 * replaced another one, does what is granted right now.
 */
static void
drop_before_copy(RangeSlot *slot, Oid relid)
{
	if (is_attached(slot, relid))
		return;
	snowflake_drop_ranges(slot);
	if (slot->copied_in != MyDatabaseId)
		slot->version++;
	slot->copied_in = MyDatabaseId;
}

/*
 * Have a session know the slot of a sequence, which has its step, last value
 * and OID.  The caller has locked the sequence.  It may have been copied from a
 * database, and continue above a floor: nobody uses lower numbers in between.
 */
void
snowflake_find_slot(RangeHandle *handle, const char *name, const char *source,
					int64 floor)
{
	const char *database = get_database_name(MyDatabaseId);
	Oid			owner = snowflake_table_owner(handle->relid);
	RangeSlot  *slot;

	snowflake_lock_ranges();
	slot = find_slot(handle, database, name, owner);
	if (slot != NULL)
	{
		handle->slot = slot;
		if (source[0] != '\0')
			drop_before_copy(slot, handle->relid);
		handle->version = slot->version;
		strlcpy(slot->source, source, sizeof(slot->source));
		if (floor >= 0)
			snowflake_want_floor(slot, floor);
	}
	snowflake_unlock_and_wake_ranges();
	if (slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many range sequences are used on this server"),
				 errhint("Increase \"snowflake.max_range_sequences\", which is %d.",
						 snowflake_max_range_sequences)));
}

/*
 * The registry has what a sequence that was copied continues above.
 */
void
snowflake_note_attached(const RangeHandle *handle)
{
	snowflake_lock_ranges();
	if (handle->slot->version == handle->version)
	{
		handle->slot->attached_in = MyDatabaseId;
		handle->slot->attached = handle->relid;
	}
	snowflake_unlock_ranges();
}
