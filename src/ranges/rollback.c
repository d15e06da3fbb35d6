/*-------------------------------------------------------------------------
 *
 * rollback.c
 *	  Ranges that are noted in a file which a rollback takes back.
 *
 * What was granted is noted in the file of the sequence (granted.c).  If this
 * transaction gave the sequence that file, ROLLBACK brings back the one from
 * before, which does not have the note.  So the rollback drops the ranges, and
 * the next number is of another one, which is noted where it remains.
 *
 * Until then, nobody else takes numbers of these ranges: what gives a sequence
 * another file locks it against nextval() until the (sub)transaction ends, and
 * the callbacks come before its locks are released.
 *
 * The file is of this subtransaction or of one around it.  Which one is not
 * always known, so the rollback of each of them drops the ranges.  With PREPARE
 * TRANSACTION, it is not known whether there will be a rollback, so that drops
 * them, too.
 *
 * A callback must not fail: it finds all that it needs in memory.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/rollback.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "ranges/rollback.h"
#include "shared/compat.h"

/* Ranges of a sequence, and the subtransaction whose rollback drops them. */
typedef struct NotedRanges
{
	RangeHandle handle;
	SubTransactionId level;
} NotedRanges;

/* In the memory of the transaction. */
static List *noted_ranges = NIL;

/*
 * Have the ranges of a sequence be dropped if what this subtransaction does is
 * rolled back.
 */
void
snowflake_drop_on_rollback(const RangeHandle *handle)
{
	MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
	NotedRanges *noted = palloc_object(NotedRanges);

	noted->handle = *handle;
	noted->level = GetCurrentSubTransactionId();
	noted_ranges = lappend(noted_ranges, noted);
	MemoryContextSwitchTo(caller);
}

static void
end_subtransaction(SubXactEvent event, SubTransactionId level,
				   SubTransactionId parent, void *arg)
{
	ListCell   *cell;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach(cell, noted_ranges)
	{
		NotedRanges *noted = lfirst(cell);

		if (noted->level != level)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			noted->level = parent;
		else
		{
			snowflake_drop_ranges_of(&noted->handle);
			noted_ranges = foreach_delete_current(noted_ranges, cell);
		}
	}
}

static void
drop_all(void)
{
	ListCell   *cell;

	foreach(cell, noted_ranges)
		snowflake_drop_ranges_of(&((NotedRanges *) lfirst(cell))->handle);
}

static void
end_transaction(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
		event != XACT_EVENT_PREPARE)
		return;
	if (event != XACT_EVENT_COMMIT)
		drop_all();
	noted_ranges = NIL;
}

/*
 * Have rollbacks drop ranges.
 */
void
snowflake_watch_rollbacks(void)
{
	RegisterSubXactCallback(end_subtransaction, NULL);
	RegisterXactCallback(end_transaction, NULL);
}
