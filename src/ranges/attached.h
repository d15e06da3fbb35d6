/*-------------------------------------------------------------------------
 *
 * attached.h
 *	  The slot that a session uses for a sequence.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/attached.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ATTACHED_H
#define SNOWFLAKE_ATTACHED_H

#include "ranges/slots.h"

extern bool snowflake_is_slot_attached(const char *name, Oid relid);
extern void snowflake_note_attached(const RangeHandle *handle);
extern void snowflake_find_slot(RangeHandle *handle, const char *name,
								const char *source, int64 floor);

#endif							/* SNOWFLAKE_ATTACHED_H */
