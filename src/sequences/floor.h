/*-------------------------------------------------------------------------
 *
 * floor.h
 *	  What range sequences continue above.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/floor.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_FLOOR_H
#define SNOWFLAKE_FLOOR_H

#include "nodes/pg_list.h"

#include "ranges/slots.h"
#include "sequences/label.h"

/* A range sequence, and what no server is to give out. */
typedef struct RangeFloor
{
	RangeHandle handle;
	int64		floor;
	char		database[NAMEDATALEN];
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];
} RangeFloor;

extern PGDLLEXPORT int64 snowflake_number_before(Oid relid, const SequenceLabel *label);
extern RangeFloor *snowflake_range_floor(Oid relid, const SequenceLabel *label);
extern void snowflake_settle_floors(const List *floors);
extern void snowflake_settle_range(Oid relid, const SequenceLabel *label);
extern void snowflake_attach_sequence_range(RangeHandle *handle);
extern void snowflake_begin_sequence_range(RangeHandle *handle);
extern void snowflake_ask_granted(Oid relid, const SequenceLabel *label);
extern int64 snowflake_granted_number(Oid relid, const SequenceLabel *label);

#endif							/* SNOWFLAKE_FLOOR_H */
