/*-------------------------------------------------------------------------
 *
 * floor.c
 *	  What range sequences continue above.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/floor.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "storage/lmgr.h"

#include "ranges/granted.h"
#include "ranges/needs.h"
#include "ranges/numbers.h"
#include "sequences/exhaust.h"
#include "sequences/floor.h"
#include "sequences/suitable.h"
#include "shared/compat.h"

/*
 * What was granted, as the file says.  The caller's lock may be too weak to keep that.
 */
static int64
noted_number(Oid relid, int64 last)
{
	GrantedNote note;

	LockRelationOid(relid, RowExclusiveLock);
	note = snowflake_read_note(relid, last);
	UnlockRelationOid(relid, RowExclusiveLock);
	return note.granted;
}

/*
 * The greatest number that a sequence gave out, or that its columns have, or that is
 * before its first one.
 */
static int64
greatest_number(Oid relid, const SequenceLabel *label)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);
	int64		next = Max(Max(definition.seqmin, definition.seqstart), 1);
	int64		floor = 0;

	/* The end was copied from a sequence that is not local. */
	if (label->has_position && label->position.is_called)
		floor = label->position.last_value < definition.seqmax ? label->position.last_value : 0;
	else if (label->has_position)
		next = Max(next, label->position.last_value);
	floor = Max(floor, next - 1);
	floor = Max(floor, noted_number(relid, definition.seqmax));
	return Max(floor, snowflake_greatest_key(relid));
}

/*
 * What a sequence with a label that it has, or is to have, continues above.  The
 * caller has locked it.
 */
RangeFloor *
snowflake_range_floor(Oid relid, const SequenceLabel *label)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);
	RangeFloor *floor = palloc0_object(RangeFloor);

	floor->handle.relid = relid;
	floor->handle.step = definition.seqincrement;
	floor->handle.last = definition.seqmax;
	floor->floor = greatest_number(relid, label);
	strlcpy(floor->name, label->name, sizeof(floor->name));
	return floor;
}

/*
 * Tell the registry the names, so that all servers continue above what the
 * sequences gave out.  All are asked for before the first is waited for, so that a
 * call of the registry has many of them.
 */
void
snowflake_settle_floors(const List *floors)
{
	ListCell   *cell;

	foreach(cell, floors)
	{
		RangeFloor *floor = lfirst(cell);

		snowflake_attach_range(&floor->handle, floor->name);
		(void) snowflake_ask_floor(&floor->handle, floor->floor);
	}
	foreach(cell, floors)
	{
		RangeFloor *floor = lfirst(cell);

		while (!snowflake_settle_floor(&floor->handle, floor->floor))
			snowflake_attach_range(&floor->handle, floor->name);
	}
}

/*
 * What a range sequence continues above, when the registry and all servers know it.
 */
int64
snowflake_settle_range(Oid relid, const SequenceLabel *label)
{
	RangeFloor *floor = snowflake_range_floor(relid, label);

	snowflake_settle_floors(list_make1(floor));
	return floor->floor;
}

/*
 * Note that in its file, as a number that the registry must not forget.
 */
void
snowflake_note_floor(Oid relid, int64 floor)
{
	(void) snowflake_write_note(relid, snowflake_get_definition(relid).seqmax, floor);
}

/*
 * Find the ranges of a range sequence, and what a new one begins with.
 *
 * If the sequence was copied from a database of another name, all servers continue above
 * its numbers.  That is noted, so that it is done once.
 */
void
snowflake_attach_sequence_range(RangeHandle *handle)
{
	SequenceLabel label = snowflake_sequence_label(handle->relid);
	GrantedNote note;

	if (label.kind != SNOWFLAKE_KIND_RANGE)
		elog(ERROR, "sequence %u is no range sequence", handle->relid);
	note = snowflake_read_note(handle->relid, handle->last);
	if (snowflake_is_foreign(&note))
		snowflake_note_floor(handle->relid, snowflake_settle_range(handle->relid, &label));
	handle->first = snowflake_is_new(&note) ?
		Max(snowflake_get_definition(handle->relid).seqstart, 1) : 0;
	snowflake_attach_range(handle, label.name);
	if (handle->first > 0)
		(void) snowflake_ask_floor(handle, handle->first - 1);
}
