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
 * A note of another name says which numbers the copied rows have: the sequence
 * continues above them (kind.c).  So there is one from when the sequence becomes a
 * range sequence, although rows can have come from other servers alone, and again from
 * when pg_upgrade sets its label.
 *
 * A new sequence, of which the registry has not heard, has another hash until a number
 * is used: its first request carries START.  One that was restored has none of both,
 * because nobody knows here which numbers its rows have.
 *
 * It is written into log_cnt before the first number of a range is given out, and
 * when the registry took a floor, up to which it must not grant a number either.  An
 * exhausted sequence does not use that: the server's nextval() fails before it
 * counts.  The server's setval() sets it to 0, a new file has no note.
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
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_sequence.h"
#include "commands/dbcommands.h"
#include "commands/sequence.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "ranges/granted.h"
#include "shared/compat.h"

/* What the server gives each new file, also if it copies the tuple. */
#define NO_DATABASE		FirstCommandId

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
 * A hash of the name of this database.
 */
static CommandId
database_hash(void)
{
	const char *name = get_database_name(MyDatabaseId);
	uint32		hash = hash_bytes((const unsigned char *) name, strlen(name));

	return hash != NO_DATABASE ? hash : NO_DATABASE + 1;
}

/*
 * Other ones, for new sequences of this database, and for copies of sequences.
 */
static CommandId
other_hash(CommandId bit)
{
	CommandId	hash = database_hash() ^ bit;

	return hash != NO_DATABASE ? hash : NO_DATABASE + 1 + bit;
}

static CommandId
new_hash(void)
{
	return other_hash(1);
}

/*
 * Is it that of a sequence of which the registry has not heard?
 */
bool
snowflake_is_new(const GrantedNote *note)
{
	return note->database == new_hash();
}

/*
 * Was it written in a database of another name?
 */
bool
snowflake_is_foreign(const GrantedNote *note)
{
	return note->database != NO_DATABASE && note->database != database_hash() &&
		!snowflake_is_new(note);
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
 * The note in a tuple.  Without a database, what counts the server's own values is
 * none.
 */
static GrantedNote
note_of(HeapTupleHeader tuple, int64 last)
{
	Form_pg_sequence_data data = sequence_data(tuple);
	GrantedNote note = {0, HeapTupleHeaderGetRawCommandId(tuple)};

	if (note.database != NO_DATABASE && is_at_end(data, last))
		note.granted = data->log_cnt;
	return note;
}

/*
 * Read the note of a sequence that the caller has locked, whose last value is given.
 */
GrantedNote
snowflake_read_note(Oid relid, int64 last)
{
	Relation	sequence = relation_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(sequence, 0);
	GrantedNote note;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	note = note_of(sequence_tuple(buffer), last);
	UnlockReleaseBuffer(buffer);
	relation_close(sequence, NoLock);
	return note;
}

/*
 * What a file is to have instead of its note: the greater number, and the database of
 * the new note, or if that has none, as now.
 */
static GrantedNote
merge_notes(const GrantedNote *now, const GrantedNote *note, CommandId own)
{
	GrantedNote merged = {Max(now->granted, note->granted), note->database};

	if (merged.database == NO_DATABASE)
		merged.database = now->database != NO_DATABASE ? now->database : own;
	return merged;
}

/*
 * Write a note into a fork of an exhausted sequence, or of one that this exhausts,
 * unless it has that.
 *
 * It is durable then: others use the range before this transaction commits, or after it
 * was rolled back, and their commits wait for no WAL.  With synchronous standbys, the
 * commit of this one waits for them, as with the server's nextval().
 */
static void
write_fork(Relation sequence, ForkNumber fork, int64 last, const GrantedNote *note,
		   bool exhaust)
{
	CommandId	own = database_hash();
	Buffer		buffer = ReadBufferExtended(sequence, fork, 0, RBM_NORMAL, NULL);
	bool		needs_wal = fork == INIT_FORKNUM || RelationNeedsWAL(sequence);
	HeapTupleHeader tuple;
	Form_pg_sequence_data data;
	GrantedNote now;
	GrantedNote merged;
	XLogRecPtr	end;

	if (needs_wal)
		(void) GetTopTransactionId();
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	tuple = sequence_tuple(buffer);
	data = sequence_data(tuple);
	now = note_of(tuple, last);
	merged = merge_notes(&now, note, own);
	if ((exhaust || is_at_end(data, last)) &&
		(merged.granted != now.granted || merged.database != now.database))
	{
		START_CRIT_SECTION();
		data->last_value = last;
		data->is_called = true;
		data->log_cnt = merged.granted;
		HeapTupleHeaderSetCmin(tuple, merged.database);
		MarkBufferDirty(buffer);
		if (needs_wal)
			log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
	}
	end = PageGetLSN(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	if (needs_wal)
		XLogFlush(end);
}

/*
 * The same for a sequence.  After a crash or a promotion, an unlogged one has what is in
 * its initialization fork.  Returns whether a rollback takes the note back, because this
 * transaction gave the sequence its file.
 */
static bool
write_note(Oid relid, int64 last, const GrantedNote *note, bool exhaust)
{
	Relation	sequence = relation_open(relid, NoLock);
	bool		has_new_file = snowflake_has_new_file(sequence);

	write_fork(sequence, MAIN_FORKNUM, last, note, exhaust);
	if (sequence->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		write_fork(sequence, INIT_FORKNUM, last, note, exhaust);
	relation_close(sequence, NoLock);
	return has_new_file;
}

/*
 * Note what was granted of a sequence that the caller has locked, and that has
 * continued above the numbers of another database if it was copied from there.
 * Returns whether a rollback takes the note back.
 */
bool
snowflake_write_note(Oid relid, int64 last, int64 granted)
{
	GrantedNote note = {granted, database_hash()};

	return write_note(relid, last, &note, false);
}

/*
 * Note that the registry has not heard of a sequence that the caller has locked.
 */
void
snowflake_note_new(Oid relid, int64 last)
{
	GrantedNote note = {0, new_hash()};

	(void) write_note(relid, last, &note, false);
}

/*
 * If the registry has not heard of it, note that it is a copy of another one, whose rows
 * may be copied, too: it continues above them, as above those of another database.
 */
void
snowflake_note_copied(Oid relid, int64 last)
{
	GrantedNote now = snowflake_read_note(relid, last);
	GrantedNote note = {0, other_hash(2)};

	if (snowflake_is_new(&now))
		(void) write_note(relid, last, &note, false);
}

/*
 * Note what was granted of a range sequence whose next range is about to be used.  It is not
 * exhausted if something that did not pass nextval() has set its position, such as C
 * code that calls setval().
 */
bool
snowflake_note_range(Oid relid, int64 last, int64 granted)
{
	GrantedNote note = {granted, database_hash()};

	return write_note(relid, last, &note, true);
}

/*
 * Have the new file of a sequence that the caller has locked say what the one before
 * said, or what is known in memory, which has no database: that is no reason to take
 * the sequence for one that has continued.
 */
void
snowflake_keep_note(Oid relid, int64 last, const GrantedNote *note)
{
	(void) write_note(relid, last, note, false);
}
