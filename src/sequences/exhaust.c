/*-------------------------------------------------------------------------
 *
 * exhaust.c
 *	  Sequences that are not local are exhausted, also after what resets them.
 *
 * Whatever reaches the server's own nextval() fails then.  See README.md for what
 * resets the position of a sequence.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/exhaust.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "ranges/granted.h"
#include "ranges/slots.h"
#include "sequences/exhaust.h"
#include "sequences/labelled.h"
#include "sequences/position.h"
#include "sequences/suitable.h"

/*
 * A label could have been set while this library was not preloaded.
 */
snowflake_noreturn static void
fail_invalid_label(const char *string)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("invalid label of a sequence: \"%s\"", string),
			 errhint("Call snowflake_set_sequence_kind().")));
}

/*
 * The label of a sequence; that of a local one is empty.
 */
SequenceLabel
snowflake_sequence_label(Oid relid)
{
	SequenceLabel label = {0};
	char	   *string = snowflake_get_label(relid);

	if (string != NULL && !snowflake_read_label(string, &label))
		fail_invalid_label(string);
	return label;
}

/*
 * Note in the file of a sequence with a label, which is exhausted, what was granted
 * of its name.  A transaction that was rolled back could have used another name.
 */
void
snowflake_keep_granted_number(Oid relid, const SequenceLabel *label)
{
	GrantedNote note = {0};

	if (label->kind != SNOWFLAKE_KIND_RANGE)
		return;
	note.granted = snowflake_greatest_granted(label->name);
	snowflake_keep_note(relid, snowflake_get_definition(relid).seqmax, &note);
}

/*
 * Exhaust a sequence until the transaction rolls back.  The new file makes
 * other sessions drop the values that they cached.  A crash resets an unlogged
 * sequence to what it was when it got its file, so it gets that last.
 */
void
snowflake_exhaust(Oid relid, const SequenceLabel *label)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);

	ResetSequence(relid);
	snowflake_set_position(relid, snowflake_end_position(&definition));
	if (get_rel_persistence(relid) == RELPERSISTENCE_UNLOGGED)
		SequenceChangePersistence(relid, RELPERSISTENCE_UNLOGGED);
	snowflake_keep_granted_number(relid, label);
}

/*
 * Exhaust a sequence in its file, if something reset it where this module does
 * not see it.  The caller has locked it as nextval() does, so its kind cannot
 * change.  Returns false if this transaction must not write.
 */
bool
snowflake_exhaust_in_place(Oid relid, const SequenceLabel *label)
{
	FormData_pg_sequence definition;

	if (XactReadOnly || IsInParallelMode())
		return false;
	if (!snowflake_is_exhausted(relid))
	{
		definition = snowflake_get_definition(relid);
		snowflake_set_position(relid, snowflake_end_position(&definition));
		snowflake_keep_granted_number(relid, label);
	}
	return true;
}

/*
 * Has this transaction locked a sequence like this, or more strongly?
 */
bool
snowflake_is_locked(Oid relid, LOCKMODE mode)
{
	Relation	sequence = RelationIdGetRelation(relid);
	bool		locked;

	if (!RelationIsValid(sequence))
		return false;
	locked = CheckRelationLockedByMe(sequence, mode, true);
	RelationClose(sequence);
	return locked;
}

/*
 * Exhaust a sequence again that this transaction has truncated.
 */
static bool
exhaust_truncated(Oid relid, void *arg)
{
	SequenceLabel label;

	if (!snowflake_is_locked(relid, AccessExclusiveLock) || snowflake_is_exhausted(relid))
		return false;
	label = snowflake_sequence_label(relid);
	snowflake_exhaust(relid, &label);
	return false;
}

/*
 * Exhaust a sequence again that this transaction has altered.  Its name may be
 * that of another one by now, so its lock tells which it is.  The new file of
 * one that is still exhausted has lost what was granted.
 */
static bool
exhaust_altered(Oid relid, void *arg)
{
	SequenceLabel label;

	if (!snowflake_is_locked(relid, ShareRowExclusiveLock))
		return false;
	label = snowflake_sequence_label(relid);
	snowflake_check_definition(relid, label.kind);
	if (!snowflake_is_exhausted(relid))
		snowflake_exhaust(relid, &label);
	else
		snowflake_keep_granted_number(relid, &label);
	CacheInvalidateRelcacheByRelid(relid);
	return false;
}

/*
 * Exhaust a sequence again whose position this transaction has copied from another
 * server.  One that is still exhausted has lost what was granted.
 */
static bool
exhaust_copied(Oid relid, void *arg)
{
	SequenceLabel label;

	if (!snowflake_is_locked(relid, RowExclusiveLock))
		return false;
	label = snowflake_sequence_label(relid);
	if (snowflake_exhaust_in_place(relid, &label))
		snowflake_keep_granted_number(relid, &label);
	return false;
}

/*
 * After something that resets sequences: what it has reset is exhausted again, in
 * the same transaction.  Its lock is held until the end of that.
 */
void
snowflake_exhaust_after(SnowflakeReset reset)
{
	bool		(*exhausts[]) (Oid relid, void *arg) = {
		[SNOWFLAKE_RESET_BY_ALTER] = exhaust_altered,
		[SNOWFLAKE_RESET_BY_TRUNCATE] = exhaust_truncated,
		[SNOWFLAKE_RESET_BY_COPY] = exhaust_copied
	};

	if (reset == SNOWFLAKE_RESET_NONE)
		return;
	CommandCounterIncrement();
	(void) snowflake_find_labelled(exhausts[reset], NULL);
}
