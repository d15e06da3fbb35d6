/*-------------------------------------------------------------------------
 *
 * exhaust.c
 *	  Sequences that are not local are exhausted, also after what resets them.
 *
 * Whatever reaches the server's own nextval() fails then.  See README.md for what
 * resets the position of a sequence.
 *
 * While a statement runs that can reset sequences, and in the worker of a subscription,
 * it is noted that a relation is changed.  What this transaction has reset has the lock of
 * that.  It is exhausted again at the end, and before a trigger, or an event trigger, is
 * called: from there on a cursor that is open, or an expression, would get its numbers.
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
#include "fmgr.h"
#include "miscadmin.h"
#include "replication/worker_internal.h"
#include "utils/lsyscache.h"

#include "sequences/exhaust.h"
#include "sequences/label.h"
#include "sequences/position.h"
#include "sequences/suitable.h"
#include "shared/compat.h"

/* How many statements run that can reset sequences, one in the other. */
static int	nstatements = 0;

/* Was a relation changed meanwhile, since sequences were looked at? */
static bool is_changed = false;

static needs_fmgr_hook_type prev_needs_call_hook = NULL;
static fmgr_hook_type prev_call_hook = NULL;

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
 * Exhaust a sequence until the transaction rolls back.  The new file makes
 * other sessions drop the values that they cached.  A crash resets an unlogged
 * sequence to what it was when it got its file, so it gets that last.
 */
void
snowflake_exhaust(Oid relid)
{
	ResetSequence(relid);
	snowflake_set_end(relid);
	if (get_rel_persistence(relid) == RELPERSISTENCE_UNLOGGED)
		SequenceChangePersistence(relid, RELPERSISTENCE_UNLOGGED);
}

/*
 * Exhaust a sequence in its file, if something reset it where this module does
 * not see it.  The caller has locked it as nextval() does, so its kind cannot
 * change.  Returns false if this transaction must not write.
 */
bool
snowflake_exhaust_in_place(Oid relid)
{
	if (XactReadOnly || IsInParallelMode())
		return false;
	if (!snowflake_is_exhausted(relid))
		snowflake_set_end(relid);
	return true;
}

/*
 * Exhaust a sequence with a label again, if this transaction has reset it: it has the lock
 * of that until its end.  One that somebody drops is not looked at.
 */
static bool
exhaust_reset(Oid relid, void *altered)
{
	SequenceLabel label;

	if (!snowflake_is_locked(relid, ShareRowExclusiveLock) ||
		get_rel_relkind(relid) != RELKIND_SEQUENCE)
		return false;
	label = snowflake_sequence_label(relid);
	if (*(bool *) altered)
		snowflake_check_definition(relid, label.kind);
	if (!snowflake_is_exhausted(relid))
		snowflake_exhaust(relid);
	return false;
}

/*
 * Exhaust the sequences again that this transaction has reset, by ALTER SEQUENCE or
 * otherwise.  It may do so also if it is read-only, or if transactions are to be so:
 * workers of subscriptions reset sequences in any case.  An error resets what that was.
 */
void
snowflake_exhaust_reset(bool altered)
{
	bool		read_only = XactReadOnly;

	if (IsInParallelMode())
		return;
	CommandCounterIncrement();

	/* Those that an event trigger had exhausted are checked, too. */
	if (!is_changed && !altered)
		return;

	XactReadOnly = false;
	(void) snowflake_find_labelled(exhaust_reset, &altered);
	XactReadOnly = read_only;

	/* Last, because an error here can be caught, and is not to end it. */
	is_changed = false;
}

/*
 * Exhaust a sequence again whose position this transaction has copied from another
 * server, which is written into its file.
 */
static bool
exhaust_copied(Oid relid, void *arg)
{
	if (snowflake_is_locked(relid, RowExclusiveLock))
		(void) snowflake_exhaust_in_place(relid);
	return false;
}

/*
 * A statement begins that can reset sequences.
 */
void
snowflake_begin_resets(void)
{
	nstatements++;
}

void
snowflake_end_resets(void)
{
	nstatements--;
}

/*
 * Before the transaction of a worker of a subscription commits: it replicates TRUNCATE ...
 * RESTART IDENTITY, and copies positions, both without a statement, and also if
 * transactions are to be read-only.  An error resets what that was.
 */
static void
finish_subscription(void)
{
	bool		read_only = XactReadOnly;

	snowflake_exhaust_reset(false);
	if (!snowflake_copies_positions())
		return;
	XactReadOnly = false;
	(void) snowflake_find_labelled(exhaust_copied, NULL);
	XactReadOnly = read_only;
}

static void
end_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		if (MyLogicalRepWorker != NULL)
			finish_subscription();
	}
	else
		is_changed = false;
}

static bool
is_watching(void)
{
	return nstatements > 0 || MyLogicalRepWorker != NULL;
}

/*
 * A relation was changed, here or by others.
 */
void
snowflake_note_change(Oid relid)
{
	if (is_watching() && OidIsValid(relid))
		is_changed = true;
}

/*
 * A function is looked up that is not the server's own.  One of a trigger is so for each
 * statement.
 */
static bool
needs_call_hook(Oid function)
{
	return (unlikely(is_changed) && is_watching()) ||
		(prev_needs_call_hook && prev_needs_call_hook(function));
}

/*
 * Before such a function, which can be one of a trigger in the middle of a statement, and
 * after it.
 */
static void
call_hook(FmgrHookEventType event, FmgrInfo *function, Datum *arg)
{
	if (event == FHET_START && unlikely(is_changed) && is_watching())
		snowflake_exhaust_reset(false);
	if (prev_call_hook)
		prev_call_hook(event, function, arg);
}

void
snowflake_watch_resets(void)
{
	RegisterXactCallback(end_transaction, NULL);
	prev_needs_call_hook = needs_fmgr_hook;
	needs_fmgr_hook = needs_call_hook;
	prev_call_hook = fmgr_hook;
	fmgr_hook = call_hook;
}
