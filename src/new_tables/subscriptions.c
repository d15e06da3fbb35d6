/*-------------------------------------------------------------------------
 *
 * subscriptions.c
 *	  Sequences whose position a subscription resets.
 *
 * A worker of a subscription replicates TRUNCATE ... RESTART IDENTITY, and
 * copies the positions of sequences, both without a statement.  So before its
 * transaction commits, what it has reset of the sequences that are not local
 * is exhausted again, and their files say again what was granted.
 *
 * What the files said is read when the worker commits for the first time, which
 * is before it resets anything; what was granted later is in shared memory.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/subscriptions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "replication/worker_internal.h"
#include "storage/lockdefs.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "new_tables/alter.h"
#include "new_tables/subscriptions.h"
#include "sequences/exhaust.h"
#include "sequences/kind.h"
#include "shared/compat.h"

/* Has this worker read what the files said, and what was that? */
static bool has_read = false;
static List *granted = NIL;

/* Has a relation been changed since the last commit? */
static bool is_changed = false;

static void
relation_changed(Datum arg, Oid relid)
{
	is_changed = true;
}

static void
read_files(void)
{
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);

	granted = snowflake_granted_before(NULL, SNOWFLAKE_RESET_BY_COPY);
	has_read = true;
	MemoryContextSwitchTo(caller);
}

static void
repair(void)
{
	if (!has_read)
		read_files();
	if (snowflake_copies_positions())
	{
		snowflake_exhaust_after(SNOWFLAKE_RESET_BY_COPY);
		snowflake_keep_granted(granted, RowExclusiveLock);
	}
	else if (is_changed)
	{
		snowflake_exhaust_after(SNOWFLAKE_RESET_BY_TRUNCATE);
		snowflake_keep_granted(granted, AccessExclusiveLock);
	}
	is_changed = false;
}

/*
 * Repair what this transaction of a worker has reset, also if transactions are to be
 * read-only, which workers ignore.  An error resets what it was.
 */
static void
before_commit(XactEvent event, void *arg)
{
	bool		read_only = XactReadOnly;

	if (MyLogicalRepWorker == NULL ||
		(event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE))
		return;
	XactReadOnly = false;
	repair();
	XactReadOnly = read_only;
}

void
snowflake_watch_subscriptions(void)
{
	CacheRegisterRelcacheCallback(relation_changed, 0);
	RegisterXactCallback(before_commit, NULL);
}
