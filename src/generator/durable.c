/*-------------------------------------------------------------------------
 *
 * durable.c
 *	  Durable numbers of the server: the mark, and the receipt.
 *
 * Every ID handed out so far is below the mark.  The receipt is what the registry
 * sent with the last answer that this server used (range_worker.c).
 *
 * Such a number must survive a crash, reach every physical standby, be writable by
 * any backend in any transaction, including read-only ones, and leave the
 * server able to recover and to replicate without this module.  PostgreSQL has
 * a store with these properties: the progress of replication origins.  It is a
 * table of 64-bit positions in shared memory; each change is WAL-logged and
 * replayed by the server's own code, and each checkpoint writes it to a file.
 * A number is the position of an origin ID that is in no row of
 * pg_replication_origin: pg_replication_origin_create() assigns the lowest
 * free ID starting with 1, and these are the highest ones (0xFFFF is
 * DoNotReplicateId).  pg_replication_origin_status shows them as local_id 65534
 * and 65533.  Each takes one of the origins that max_replication_slots (since
 * PostgreSQL 18, max_active_replication_origins) allows, from when it is first set.
 *
 * A checkpoint must not lose a change whose WAL record is before its redo
 * point.  It does not: replorigin_advance() inserts the record and changes the
 * table while holding ReplicationOriginLock exclusively, and the checkpoint
 * takes that lock, shared, after it has determined the redo point.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/durable.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "replication/origin.h"
#include "replication/slot.h"

#include "generator/durable.h"
#include "shared/compat.h"

#define MARK_ORIGIN		((SNOWFLAKE_ORIGIN_ID) 0xFFFE)
#define RECEIPT_ORIGIN	((SNOWFLAKE_ORIGIN_ID) 0xFFFD)

/*
 * The current mark, or 0 if there never was one.  During recovery, it is that
 * of the WAL replayed so far.
 */
uint64
snowflake_mark_read(void)
{
	return replorigin_get_progress(MARK_ORIGIN, false);
}

/*
 * The current receipt, or 0 if there never was one.
 */
int64
snowflake_receipt_read(void)
{
	return (int64) replorigin_get_progress(RECEIPT_ORIGIN, false);
}

/*
 * The context of an error of the server, also that no replication origin is free.
 */
static void
write_error_context(void *arg)
{
	SNOWFLAKE_ORIGIN_ID origin = *(SNOWFLAKE_ORIGIN_ID *) arg;

	if (origin == MARK_ORIGIN)
		errcontext("while writing the mark of snowflake IDs to replication origin %d", origin);
	else
		errcontext("while writing the receipt of the registry to replication origin %d", origin);
	if (geterrcode() == ERRCODE_CONFIGURATION_LIMIT_EXCEEDED)
		errhint("Increase \"%s\" to at least %d, on the physical standbys first, and restart the servers.",
				SNOWFLAKE_ORIGINS_SETTING, snowflake_max_origins + 1);
}

/*
 * Write a number, and return the end of its WAL record after flushing it.
 *
 * replorigin_advance() requires a lock on pg_replication_origin, against a
 * concurrent drop of the origin.  This one is in no row, so it cannot be
 * dropped, and the lock is not needed.
 */
static XLogRecPtr
write_number(SNOWFLAKE_ORIGIN_ID origin, uint64 number, bool lower)
{
	ErrorContextCallback context;
	XLogRecPtr	end;

	context.callback = write_error_context;
	context.arg = &origin;
	context.previous = error_context_stack;
	error_context_stack = &context;

	replorigin_advance(origin, number, InvalidXLogRecPtr, lower, true);
	end = XactLastRecEnd;
	XLogFlush(end);

	error_context_stack = context.previous;
	return end;
}

/*
 * Raise the mark, unless it is already higher.
 */
XLogRecPtr
snowflake_mark_raise(uint64 mark)
{
	return write_number(MARK_ORIGIN, mark, false);
}

/*
 * Set the mark, even to a lower value.
 */
XLogRecPtr
snowflake_mark_set(uint64 mark)
{
	return write_number(MARK_ORIGIN, mark, true);
}

/*
 * Set the receipt.
 */
void
snowflake_receipt_set(int64 receipt)
{
	(void) write_number(RECEIPT_ORIGIN, (uint64) receipt, true);
}
