/*-------------------------------------------------------------------------
 *
 * needs.h
 *	  What sessions want of the registry.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/needs.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_NEEDS_H
#define SNOWFLAKE_NEEDS_H

#include "ranges/slots.h"
#include "shared/compat.h"

/* What advancing to the next range comes to. */
typedef enum RangeAdvance
{
	RANGE_RETRY,				/* there is a range: claim again */
	RANGE_WAIT,					/* none is here */
	RANGE_EXHAUSTED,			/* none is left up to MAXVALUE */
	RANGE_OTHER					/* the slot belongs to another name */
} RangeAdvance;

/* What asking for a floor, or for where the registry is, comes to. */
typedef enum FloorState
{
	FLOOR_ASKED,				/* the registry has not answered */
	FLOOR_TAKEN,				/* other servers may not have heard it */
	FLOOR_SETTLED,
	FLOOR_OTHER					/* the slot belongs to another name */
} FloorState;

/* For sessions. */
extern RangeAdvance snowflake_advance(const RangeHandle *handle);
extern FloorState snowflake_ask_floor(const RangeHandle *handle, int64 floor);
extern FloorState snowflake_ask_next(const RangeHandle *handle, int64 since,
									 int64 *next);

/* And for the worker that calls the registry (registry_client/). */
extern PGDLLEXPORT void snowflake_note_need(RangeSlot *slot, int64 now);
extern PGDLLEXPORT int64 snowflake_wanted_count(RangeSlot *slot);

#endif							/* SNOWFLAKE_NEEDS_H */
