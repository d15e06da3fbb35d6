/*-------------------------------------------------------------------------
 *
 * granted.c
 *	  The greatest number that a server was granted, in the sequence's file.
 *
 * A registry that grants it again has lost commits, which its server can prove
 * only with what outlives a restart.  No number is ever made of it: where it
 * is copied, or was lost, nothing is given twice.
 *
 * A database that is copied as a template, or renamed, has the notes of another
 * name at the registry.  For the registry that is no proof: it would stop.  So the
 * command ID of the tuple, which nobody needs, has a hash of the database's name.
 *
 * It is written into log_cnt before the first number of a range is given out, and
 * when the registry took a floor, up to which it must not grant a number either.  An
 * exhausted sequence does not use that: the server's nextval() fails before it
 * counts.  The WAL record need not be flushed, because a committed row that has a
 * number of the range is behind it.  The server's setval() and a new file of the
 * sequence begin with 0.
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
#include "commands/dbcommands.h"
#include "commands/sequence.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "ranges/granted.h"
#include "shared/compat.h"

/*
 * The tuple of a sequence, in a buffer that is locked.
 */
static HeapTupleHeader
sequence_tuple(Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	ItemId		item = PageGetItemId(page, FirstOffsetNumber);

	return (HeapTupleHeader) PageGetItem(page, item);
}

static Form_pg_sequence_data
sequence_data(HeapTupleHeader tuple)
{
	return (Form_pg_sequence_data) ((char *) tuple + tuple->t_hoff);
}

/*
 * What a note of this database has.  A new file has FirstCommandId.
 */
static CommandId
database_hash(void)
{
	const char *name = get_database_name(MyDatabaseId);
	uint32		hash = hash_bytes((const unsigned char *) name, strlen(name));

	return hash != FirstCommandId ? hash : FirstCommandId + 1;
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
 * Read it, and the hash of the database where it was written.
 */
static int64
read_note(Oid relid, int64 last, CommandId *database)
{
	Relation	sequence = relation_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(sequence, 0);
	HeapTupleHeader tuple;
	Form_pg_sequence_data data;
	int64		granted;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	tuple = sequence_tuple(buffer);
	data = sequence_data(tuple);
	granted = is_at_end(data, last) ? data->log_cnt : 0;
	*database = HeapTupleHeaderGetRawCommandId(tuple);
	UnlockReleaseBuffer(buffer);
	relation_close(sequence, NoLock);
	return granted;
}

/*
 * Read it of a sequence that the caller has locked, whose last value is given.
 */
int64
snowflake_read_granted(Oid relid, int64 last)
{
	CommandId	database;

	return read_note(relid, last, &database);
}

/*
 * The same, or 0 if it was granted to a database with another name.
 */
int64
snowflake_read_granted_here(Oid relid, int64 last)
{
	CommandId	database;
	int64		granted = read_note(relid, last, &database);

	return granted > 0 && database == database_hash() ? granted : 0;
}

/*
 * Raise it, of a sequence that the caller has locked.  Returns whether a rollback
 * takes it back, because this transaction gave the sequence its file.
 */
bool
snowflake_write_granted(Oid relid, int64 last, int64 granted)
{
	Relation	sequence = relation_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(sequence, 0);
	bool		has_new_file = snowflake_has_new_file(sequence);
	CommandId	here = database_hash();
	HeapTupleHeader tuple;
	Form_pg_sequence_data data;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	tuple = sequence_tuple(buffer);
	data = sequence_data(tuple);
	if (is_at_end(data, last) && granted > 0 &&
		(data->log_cnt < granted || HeapTupleHeaderGetRawCommandId(tuple) != here))
	{
		START_CRIT_SECTION();
		data->log_cnt = granted;
		HeapTupleHeaderSetCmin(tuple, here);
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(sequence))
			log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(buffer);
	relation_close(sequence, NoLock);
	return has_new_file;
}
