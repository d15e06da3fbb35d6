/*-------------------------------------------------------------------------
 *
 * mark.c
 *	  The durable mark: every ID handed out so far is below it.
 *
 * The mark has to survive a crash, reach every physical standby, be written
 * by any backend in any transaction, read-only ones too, and leave the server
 * able to recover and to replicate without this module.  PostgreSQL has a
 * store like that: the progress of replication origins.  It is a table of
 * 64-bit positions in shared memory, each change of which is WAL-logged and
 * replayed by the server's own code, and which each checkpoint writes to a
 * file.  The mark is the position of an origin ID that no row of
 * pg_replication_origin has: pg_replication_origin_create() gives out the
 * lowest free ID from 1 on, and this is the highest there is (0xFFFF means
 * DoNotReplicateId).  It shows in pg_replication_origin_status as local_id
 * 65534, and takes one of the places that max_replication_slots (since
 * PostgreSQL 18 max_active_replication_origins) provides.
 *
 * A checkpoint may not lose a change whose WAL record is before its redo
 * point.  It does not: replorigin_advance() inserts the record and changes the
 * table under one exclusive hold of ReplicationOriginLock, which the
 * checkpoint takes, shared, after it has determined the redo point.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/mark.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "replication/origin.h"
#include "replication/slot.h"
#include "utils/memutils.h"

#include "compat.h"
#include "mark.h"

#define MARK_ORIGIN		((SNOWFLAKE_ORIGIN_ID) 0xFFFE)

/*
 * The mark as of now, or 0 if there was none ever.  During recovery it is
 * that of the WAL replayed so far.
 */
uint64
snowflake_mark_read(void)
{
	return replorigin_get_progress(MARK_ORIGIN, false);
}

static void
mark_error_context(void *arg)
{
	errcontext("while writing the mark of snowflake IDs to replication origin %d",
			   MARK_ORIGIN);
}

/*
 * Tell that there is no place for the mark, and what to do.
 */
snowflake_noreturn static void
fail_no_place(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("no replication origin is free for the mark of snowflake IDs"),
			 errdetail("\"%s\" is %d, and all replication origins are in use.",
					   SNOWFLAKE_ORIGINS_SETTING, snowflake_max_origins),
			 errhint("Increase \"%s\" to at least %d, on the physical standbys first, and restart the servers.",
					 SNOWFLAKE_ORIGINS_SETTING, snowflake_max_origins + 1)));
}

/*
 * Write a mark, and return the end of its WAL record when that is flushed.
 * Without a place for another replication origin this fails with a message that
 * names the setting.
 *
 * replorigin_advance() asks for a lock on pg_replication_origin, against a
 * concurrent drop of the origin.  This one is in no row, so nobody can drop
 * it, and a call is spared the lock manager.
 */
static XLogRecPtr
write_mark(uint64 mark, bool lower)
{
	MemoryContext oldcontext = CurrentMemoryContext;
	ErrorContextCallback context;
	XLogRecPtr	end;

	context.callback = mark_error_context;
	context.arg = NULL;
	context.previous = error_context_stack;
	error_context_stack = &context;

	PG_TRY();
	{
		replorigin_advance(MARK_ORIGIN, mark, InvalidXLogRecPtr, lower, true);
	}
	PG_CATCH();
	{
		if (geterrcode() == ERRCODE_CONFIGURATION_LIMIT_EXCEEDED)
		{
			MemoryContextSwitchTo(oldcontext);
			FlushErrorState();
			fail_no_place();
		}
		PG_RE_THROW();
	}
	PG_END_TRY();

	end = XactLastRecEnd;
	XLogFlush(end);

	error_context_stack = context.previous;
	return end;
}

/*
 * Raise the mark.  One that is higher already stays.
 */
XLogRecPtr
snowflake_mark_raise(uint64 mark)
{
	return write_mark(mark, false);
}

/*
 * Set the mark to what is given, even if that is lower.
 */
XLogRecPtr
snowflake_mark_set(uint64 mark)
{
	return write_mark(mark, true);
}
