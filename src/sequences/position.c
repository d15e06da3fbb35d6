/*-------------------------------------------------------------------------
 *
 * position.c
 *	  The position of a sequence, in its file.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/position.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_authid.h"
#include "commands/sequence.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "sequences/position.h"
#include "sequences/suitable.h"
#include "shared/compat.h"

/* The last position that this session has set of a sequence. */
typedef struct SetPosition
{
	Oid			relid;			/* hash key */
	int64		value;
} SetPosition;

static HTAB *set_positions = NULL;

/*
 * The position of a sequence that the caller has locked.
 */
SequencePosition
snowflake_get_position(Oid relid)
{
	Relation	sequence = relation_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(sequence, 0);
	HeapTupleData tuple;
	Form_pg_sequence_data data;
	SequencePosition position;
	ItemId		item;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	item = PageGetItemId(BufferGetPage(buffer), FirstOffsetNumber);
	tuple.t_data = (HeapTupleHeader) PageGetItem(BufferGetPage(buffer), item);
	tuple.t_len = ItemIdGetLength(item);
	data = (Form_pg_sequence_data) GETSTRUCT(&tuple);
	position.last_value = data->last_value;
	position.is_called = data->is_called;
	UnlockReleaseBuffer(buffer);
	relation_close(sequence, NoLock);
	return position;
}

/*
 * Note that the server's currval() of a sequence is a position that was set
 * here.  That is not undone when the transaction rolls back.
 */
static void
note_position(Oid relid, int64 value)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(SetPosition),
		.hcxt = TopMemoryContext
	};
	SetPosition *set;

	if (set_positions == NULL)
		set_positions = hash_create("snowflake sequence positions", 32, &control,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	set = hash_search(set_positions, &relid, HASH_ENTER, NULL);
	set->value = value;
}

/*
 * Is a value that the server's currval() or lastval() returns for a sequence a
 * position that this module set, and not from nextval() or setval()?
 */
bool
snowflake_has_set_position(Oid relid, int64 value)
{
	SetPosition *set = NULL;

	if (set_positions != NULL)
		set = hash_search(set_positions, &relid, HASH_FIND, NULL);
	return set != NULL && set->value == value;
}

/*
 * Set the position, as the server's setval().  The owner may have revoked the
 * privilege from itself; no code of users runs meanwhile.
 */
void
snowflake_set_position(Oid relid, SequencePosition position)
{
	Oid			user;
	int			sec_context;

	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   sec_context | SECURITY_LOCAL_USERID_CHANGE);
	DirectFunctionCall3(setval3_oid, ObjectIdGetDatum(relid),
						Int64GetDatum(position.last_value),
						BoolGetDatum(position.is_called));
	SetUserIdAndSecContext(user, sec_context);
	if (position.is_called)
		note_position(relid, position.last_value);
}

/*
 * Exhaust a sequence in its file.
 */
void
snowflake_set_end(Oid relid)
{
	SequencePosition end = {snowflake_get_definition(relid).seqmax, true};

	snowflake_set_position(relid, end);
}

bool
snowflake_is_exhausted(Oid relid)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);
	SequencePosition position = snowflake_get_position(relid);

	return position.is_called && position.last_value == definition.seqmax;
}

/*
 * Is the position of a sequence that of a new one?  The caller has locked it.
 */
bool
snowflake_is_unused(Oid relid)
{
	SequencePosition position = snowflake_get_position(relid);

	return !position.is_called &&
		position.last_value == snowflake_get_definition(relid).seqstart;
}
