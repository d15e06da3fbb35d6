/*-------------------------------------------------------------------------
 *
 * floor.c
 *	  What range sequences continue above.
 *
 * The registry knows what it granted of a name, and the servers know nothing of that.
 * If it does not know a name, the numbers begin above what is found here then: the keys
 * in the columns, START, and the position from before.
 *
 * A label from another database says that this one is a copy of that, or has got
 * another name.  Its rows can have numbers that the registry granted to that, so the
 * first use of the sequence in a life of this server has all servers continue above
 * the keys, and the registry continues above the numbers of that database.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/floor.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/lsyscache.h"

#include "ranges/needs.h"
#include "ranges/numbers.h"
#include "sequences/exhaust.h"
#include "sequences/floor.h"
#include "sequences/suitable.h"
#include "shared/clock.h"
#include "shared/compat.h"

/*
 * The greatest number that a sequence gave out before it had a label, or that is before
 * its first one.
 */
int64
snowflake_number_before(Oid relid, const SequenceLabel *label)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);
	int64		next = Max(Max(definition.seqmin, definition.seqstart), 1);
	int64		floor = 0;

	/* The end was copied from a sequence that is not local. */
	if (label->has_position && label->position.is_called)
		floor = label->position.last_value < definition.seqmax ? label->position.last_value : 0;
	else if (label->has_position)
		next = Max(next, label->position.last_value);
	return Max(floor, next - 1);
}

/*
 * The same, or the greatest that its columns have.
 */
static int64
greatest_number(Oid relid, const SequenceLabel *label)
{
	int64		key = snowflake_greatest_key(relid, NULL);
	int64		before = snowflake_number_before(relid, label);

	return Max(key, before);
}

static void
fill_handle(Oid relid, RangeHandle *handle)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);

	memset(handle, 0, sizeof(RangeHandle));
	handle->relid = relid;
	handle->step = definition.seqincrement;
	handle->last = definition.seqmax;
}

/*
 * The database from which a label is, if that is another one; or an empty name.
 */
static const char *
label_source(const SequenceLabel *label)
{
	return strcmp(label->database, get_database_name(MyDatabaseId)) != 0 ? label->database : "";
}

/*
 * What a sequence with a label that it has, or is to have, continues above.  The
 * caller has locked it.
 */
RangeFloor *
snowflake_range_floor(Oid relid, const SequenceLabel *label)
{
	RangeFloor *floor = palloc0_object(RangeFloor);

	fill_handle(relid, &floor->handle);
	floor->floor = greatest_number(relid, label);
	strlcpy(floor->database, label_source(label), sizeof(floor->database));
	strlcpy(floor->name, label->name, sizeof(floor->name));
	return floor;
}

static void
attach_floor(RangeFloor *floor)
{
	snowflake_attach_range(&floor->handle, floor->name, floor->database, floor->floor);
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
		attach_floor(lfirst(cell));
	foreach(cell, floors)
	{
		RangeFloor *floor = lfirst(cell);

		while (!snowflake_settle_floor(&floor->handle, floor->floor, true))
			attach_floor(floor);
	}
}

void
snowflake_settle_range(Oid relid, const SequenceLabel *label)
{
	snowflake_settle_floors(list_make1(snowflake_range_floor(relid, label)));
}

/*
 * Have a sequence of a database that was copied or renamed know where its ranges are, once
 * the registry has what it continues above: a floor that is refused is an error.
 */
static void
attach_copied(RangeHandle *handle, const SequenceLabel *label, const char *source)
{
	int64		floor = greatest_number(handle->relid, label);

	do
	{
		snowflake_attach_range(handle, label->name, source, floor);
	} while (!snowflake_settle_floor(handle, floor, false));
	snowflake_note_attached(handle);
}

/*
 * Have a range sequence know where its ranges are.
 */
void
snowflake_attach_sequence_range(RangeHandle *handle)
{
	SequenceLabel label = snowflake_sequence_label(handle->relid);
	const char *source;

	if (label.kind != SNOWFLAKE_KIND_RANGE)
		elog(ERROR, "sequence %u is no range sequence", handle->relid);
	source = label_source(&label);
	if (*source == '\0' || snowflake_is_slot_attached(label.name, handle->relid))
		snowflake_attach_range(handle, label.name, source, NO_FLOOR);
	else
		attach_copied(handle, &label, source);
}

/*
 * The registry does not know the name of a range sequence: have it begin above what
 * is here.  Servers that come to this together all do so.
 */
void
snowflake_begin_sequence_range(RangeHandle *handle)
{
	SequenceLabel label = snowflake_sequence_label(handle->relid);
	int64		floor = greatest_number(handle->relid, &label);

	/* Code of a table's owner ran, and can have had the slot forgotten. */
	if (handle->slot == NULL)
		snowflake_attach_sequence_range(handle);
	(void) snowflake_settle_floor(handle, floor, false);
}

/*
 * Have the registry be asked for what it granted of a sequence, without waiting.
 */
void
snowflake_ask_granted(Oid relid, const SequenceLabel *label)
{
	RangeHandle handle;
	int64		next;

	fill_handle(relid, &handle);
	snowflake_attach_range(&handle, label->name, label_source(label), NO_FLOOR);
	(void) snowflake_ask_next(&handle, snowflake_steady_clock(), &next);
}

/*
 * The greatest number that the registry granted of a sequence to any server; 0 if it does
 * not know the name.
 */
int64
snowflake_granted_number(Oid relid, const SequenceLabel *label)
{
	RangeHandle handle;
	int64		granted;

	snowflake_check_asked(relid);
	fill_handle(relid, &handle);
	do
	{
		snowflake_attach_range(&handle, label->name, label_source(label), NO_FLOOR);
	} while (!snowflake_find_granted(&handle, &granted));
	return granted;
}
