/*-------------------------------------------------------------------------
 *
 * granted.c
 *	  The greatest number that a server was granted, in the sequence's file.
 *
 * A registry that grants it again has lost commits, which its server can prove
 * only with what outlives a restart.  No number is ever made of it: where it
 * is copied, or was lost, nothing is given twice.
 *
 * It is written before the first number of a range is given out, into
 * log_cnt.  An exhausted sequence does not use that: the server's nextval()
 * fails before it counts.  The WAL record need not be flushed, because a
 * committed row that has a number of the range is behind it.  The server's
 * setval() and a new file of the sequence begin with 0.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/granted.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xloginsert.h"
#include "catalog/pg_sequence.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "ranges/granted.h"

/*
 * The tuple of a sequence, in a buffer that is locked.
 */
static Form_pg_sequence_data
sequence_tuple(Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	ItemId		item = PageGetItemId(page, FirstOffsetNumber);
	HeapTupleData tuple;

	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	return (Form_pg_sequence_data) GETSTRUCT(&tuple);
}

/*
 * Is the sequence at its last value, as one that has a label should be?
 */
static bool
is_at_end(Form_pg_sequence_data data, int64 last)
{
	return data->is_called && data->last_value == last;
}

/*
 * Read it of a sequence that the caller has locked, whose last value is given.
 */
int64
snowflake_read_granted(Oid relid, int64 last)
{
	Relation	sequence = relation_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(sequence, 0);
	Form_pg_sequence_data data;
	int64		granted;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	data = sequence_tuple(buffer);
	granted = is_at_end(data, last) ? data->log_cnt : 0;
	UnlockReleaseBuffer(buffer);
	relation_close(sequence, NoLock);
	return granted;
}

/*
 * Raise it, of a sequence that the caller has locked.
 */
void
snowflake_write_granted(Oid relid, int64 last, int64 granted)
{
	Relation	sequence = relation_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(sequence, 0);
	Form_pg_sequence_data data;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	data = sequence_tuple(buffer);
	if (is_at_end(data, last) && data->log_cnt < granted)
	{
		START_CRIT_SECTION();
		data->log_cnt = granted;
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(sequence))
			log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(buffer);
	relation_close(sequence, NoLock);
}
